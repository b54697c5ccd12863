/* Streams chosen where curves count them: by hand, and against every choice there is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <ptcp/plan.h>
#include <stdlib.h>
#include <string.h>

#include "parsed.h"
#include "plain.h"
#include "plan/plan.h"

/* A plan that has been verified, or NULL and `code`. */
static struct ptcp_plan *plan(const struct ptcp_overlay *o, enum ptcp_plan_method m, int *code,
    struct ptcp_err *e)
{
	struct ptcp_plan_opts opts;
	struct ptcp_plan *p = NULL;

	ptcp_plan_opts_init(&opts);
	opts.method = m;
	if ((*code = ptcp_plan_make(&p, o, &opts, e)) < 0)
		return NULL;
	if (ptcp_plan_verify(p, o, e) < 0)
		fail_msg("%s", e->msg);
	return p;
}

static double makespan(const struct ptcp_plan *p)
{
	struct ptcp_plan_info info;

	ptcp_plan_info(p, &info);
	return info.makespan_s;
}

static int near(double a, double b)
{
	return fabs(a - b) <= 1e-6 * fmax(fabs(a), fabs(b));
}

/* 8 Mbit/s a stream, of which the bottleneck may have 3. */
#define SOURCES                                                                    \
	"destination: D\n"                                                         \
	"hosts: {D: {}, A: {data: 1MB, relay: true}, B: {data: 2MB}}\n"
#define LINKS "links: [{from: A, to: D, rate: 1Gbit/s}, {from: B, to: D, rate: 1Gbit/s}"
#define SHARED                                                                     \
	"shared: [{links: [A>D, B>D], curve: {1: {rate: 8Mbit/s, impact: 0}, "     \
	"3: {rate: 24Mbit/s, impact: 10}, 9: {rate: 48Mbit/s, impact: 40}}}]\n"

static void sources_share_the_budget(void **state)
{
	struct ptcp_overlay *o = overlay_of(SOURCES LINKS "]\n" SHARED);
	struct ptcp_plan *p;
	struct ptcp_err e;
	int code, a, b, d;

	(void)state;
	d = ptcp_overlay_find_host(o, "D");
	a = ptcp_overlay_find_host(o, "A");
	b = ptcp_overlay_find_host(o, "B");
	p = plan(o, PTCP_PLAN_PIPELINED, &code, &e);
	assert_non_null(p);
	assert_true(near(makespan(p), 1)); /* 1 and 2 MB over 1 and 2 streams of 1 MB/s */
	assert_int_equal(ptcp_plan_streams(p, a, d), 1);
	assert_int_equal(ptcp_plan_streams(p, b, d), 2);
	assert_int_equal(ptcp_plan_streams(p, a, b), 0);
	ptcp_plan_free(p);
	/* Evenly, as far as it goes: the first in the file gets the odd one. */
	p = plan(o, PTCP_PLAN_DIRECT, &code, &e);
	assert_non_null(p);
	assert_true(near(makespan(p), 2));
	assert_int_equal(ptcp_plan_streams(p, a, d), 2);
	assert_int_equal(ptcp_plan_streams(p, b, d), 1);
	ptcp_plan_free(p);
	p = plan(o, PTCP_PLAN_COORDINATED, &code, &e);
	assert_non_null(p);
	assert_int_equal(ptcp_plan_streams(p, b, d), 2);
	ptcp_plan_free(p);
	ptcp_overlay_free(o);
}

static void a_greater_budget(void **state)
{
	struct ptcp_overlay *o = overlay_of("impact: 40\n" SOURCES LINKS "]\n" SHARED);
	struct ptcp_plan *p;
	struct ptcp_err e;
	int code;

	(void)state;
	/* 48 Mbit/s by 9 streams, 3 and 6. */
	p = plan(o, PTCP_PLAN_PIPELINED, &code, &e);
	assert_non_null(p);
	assert_true(near(makespan(p), 0.5));
	ptcp_plan_free(p);
	ptcp_overlay_free(o);
}

static void too_small_a_budget(void **state)
{
	struct ptcp_overlay *o = overlay_of("impact: 0\n" SOURCES LINKS "]\n" SHARED);
	struct ptcp_err e;
	struct ptcp_plan *p;
	int code;

	(void)state;
	assert_null(plan(o, PTCP_PLAN_PIPELINED, &code, &e));
	assert_int_equal(code, PTCP_EINFEASIBLE);
	assert_non_null(strstr(e.msg, "shared bottleneck 1 may carry 1 together (raise 'impact')"));
	assert_null(plan(o, PTCP_PLAN_DIRECT, &code, &e));
	assert_int_equal(code, PTCP_EINFEASIBLE);
	assert_non_null(strstr(e.msg, "too few streams for all sources at once"));
	ptcp_overlay_free(o);
	/* With a way to A beside it, A's one stream carries all. */
	o = overlay_of("impact: 0\n" SOURCES LINKS ", {from: B, to: A, rate: 1Gbit/s}]\n" SHARED);
	p = plan(o, PTCP_PLAN_PIPELINED, &code, &e);
	assert_non_null(p);
	assert_true(near(makespan(p), 3));
	assert_int_equal(ptcp_plan_streams(p, 1, 0), 1);
	assert_int_equal(ptcp_plan_streams(p, 2, 0), 0);
	ptcp_plan_free(p);
	ptcp_overlay_free(o);
}

/* 100 Mbit/s shared equally with 4 others: the rates of 1 and 10 streams say so, and n take
 * 1 - 5 / (n + 4) of each other flow: 4 streams 37.5 %, 5 44 %. */
static void impact_by_the_model(void **state)
{
	struct ptcp_overlay *o = overlay_of("impact: 40\ndestination: D\n"
	    "hosts: {D: {}, A: {data: 10MB}}\n"
	    "links: [{from: A, to: D, curve: {1: 20Mbit/s, 4: 50Mbit/s, 10: 71.428571Mbit/s}}]\n");
	struct ptcp_overlay_link l;
	struct ptcp_plan *p;
	struct ptcp_err e;
	int code;

	(void)state;
	ptcp_overlay_link(o, 0, &l);
	assert_int_equal(l.rate_bps, 50000000);
	p = plan(o, PTCP_PLAN_PIPELINED, &code, &e);
	assert_non_null(p);
	assert_int_equal(ptcp_plan_streams(p, 1, 0), 4);
	assert_true(near(makespan(p), 80.0 / 50));
	ptcp_plan_free(p);
	/* What if is of all those streams. */
	assert_int_equal(ptcp_overlay_set_rate(o, "A>D", 25000000, &e), 0);
	p = plan(o, PTCP_PLAN_PIPELINED, &code, &e);
	assert_true(near(makespan(p), 80.0 / 25));
	ptcp_plan_free(p);
	ptcp_overlay_free(o);
}

/* With no time to search they are divided evenly among what would carry anything; the bound says so. */
static void no_time_to_choose(void **state)
{
	struct ptcp_overlay *o = overlay_of(SOURCES LINKS "]\n" SHARED);
	struct plan_tuning tuning;
	struct ptcp_plan_opts opts;
	struct ptcp_plan_info info;
	struct ptcp_plan *p;
	struct ptcp_err e;

	(void)state;
	ptcp_plan_opts_init(&opts);
	opts.effort_s = 0;
	plan_tuning_init(&tuning);
	assert_int_equal(plan_make(&p, o, &opts, &tuning, &e), 0);
	assert_true(near(makespan(p), 1));
	ptcp_plan_free(p);
	tuning.streams_s = 0;
	assert_int_equal(plan_make(&p, o, &opts, &tuning, &e), 0);
	assert_int_equal(ptcp_plan_verify(p, o, &e), 0);
	ptcp_plan_info(p, &info);
	assert_true(near(info.makespan_s, 2) && near(info.bound_s, 1));
	ptcp_plan_free(p);
	ptcp_overlay_free(o);
}

/* A window scales what streams bring; here A's streams are needed in the first second only. */
static void windows(void **state)
{
	struct ptcp_overlay *o = overlay_of(SOURCES LINKS "]\n" SHARED
	    "windows: [{link: A>D, from: 1s, rate: 0}]\n");
	struct ptcp_plan_info info;
	struct ptcp_plan *p;
	struct ptcp_err e;
	int code;

	(void)state;
	p = plan(o, PTCP_PLAN_PIPELINED, &code, &e);
	assert_non_null(p);
	ptcp_plan_info(p, &info);
	assert_true(near(info.makespan_s, 1) && info.bound_s <= 1 + 1e-6);
	ptcp_plan_free(p);
	ptcp_overlay_free(o);
}

static void bad_curves(void **state)
{
	static const struct { const char *text, *want; } bad[] = {
		{ "curve: {2: 5Mbit/s}", "t:3:33: curve: expected rates at two numbers of streams" },
		{ "curve: {1: {rate: 5Mbit/s, impact: 12}}",
		    "t:3:33: curve: one stream has an impact of 12 %, above the budget of 10 %" },
	};
	char text[300];
	struct ptcp_overlay *o;
	struct ptcp_err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		snprintf(text, sizeof text, "destination: D\nhosts: {D: {}, A: {data: 1MB}}\n"
		    "links: [{from: A, to: D, %s}]\n", bad[i].text);
		assert_int_equal(ptcp_overlay_parse(&o, text, strlen(text), "t", &e), PTCP_ECONFIG);
		if (strstr(e.msg, bad[i].want) == NULL)
			fail_msg("<%s>: got <%s>", bad[i].text, e.msg);
	}
}

/* Streams and rates as the verifier should not have them. */
static void the_verifier_counts(void **state)
{
	struct ptcp_overlay *o = overlay_of(SOURCES LINKS "]\n" SHARED);
	struct ptcp_plan *p;
	struct ptcp_err e;
	int code, n, a, b;

	(void)state;
	n = (int)ptcp_overlay_hosts(o);
	a = ptcp_overlay_find_host(o, "A") * n; /* to D, the first */
	b = ptcp_overlay_find_host(o, "B") * n;
	p = plan(o, PTCP_PLAN_PIPELINED, &code, &e);
	p->streams[a]++;
	assert_int_equal(ptcp_plan_verify(p, o, &e), PTCP_EVERIFY);
	assert_non_null(strstr(e.msg, "shared bottleneck 1 has 4 streams, more than the 3 of its budget"));
	p->streams[b]--; /* 2 MB/s over one stream */
	assert_int_equal(ptcp_plan_verify(p, o, &e), PTCP_EVERIFY);
	assert_non_null(strstr(e.msg, "link B>D carries 16000000 bit/s"));
	p->streams[a]--;
	p->streams[b]++;
	assert_int_equal(ptcp_plan_verify(p, o, &e), 0);
	p->streams[a] = 0;
	assert_int_equal(ptcp_plan_verify(p, o, &e), PTCP_EVERIFY);
	p->streams[a] = 1;
	p->streams[b + 1] = 1; /* B>A, which is no link, counts nothing */
	assert_int_equal(ptcp_plan_verify(p, o, &e), 0);
	ptcp_plan_free(p);
	ptcp_overlay_free(o);
}

/* ---- Random overlays against every choice of streams. Rates are in Mbit/s and multiples of
 * 840, so that shares of up to 8 streams are whole numbers. */

#define UNIT 840
#define STREAMS 4

struct curve {
	int n, rate[STREAMS], step, most; /* of n points, 1 to n streams; impact a stream, % */
};

struct counted {
	struct inst in;
	struct curve link[8], group[2];
	int budget;
};

static struct counted c;

static void draw_curve(struct curve *x, int budget, uint64_t *s)
{
	int i, more = inst_between(s, 3, 9);

	x->n = inst_between(s, 1, STREAMS);
	x->step = inst_between(s, 2, 8);
	for (i = 0; i < x->n; i++) {
		x->rate[i] = (i > 0 ? x->rate[i - 1] : 0) + more * UNIT;
		more = inst_between(s, 1, more);
	}
	x->most = 1 + budget / x->step < x->n ? 1 + budget / x->step : x->n;
}

/* Two or three sources, of which one relays, a relay, the destination; one or two bottlenecks. */
static void draw(uint64_t seed)
{
	static const int ends[][2] = { { 1, 0 }, { 2, 0 }, { 4, 0 }, { 1, 2 }, { 1, 4 }, { 3, 4 }, { 3, 0 } };
	uint64_t s = seed;
	int i, h, g, a, b;

	memset(&c, 0, sizeof c);
	c.budget = inst_between(&s, 0, 20);
	c.in.nhosts = 5;
	for (h = 0; h < 5; h++)
		c.in.data[h] = c.in.storage[h] = c.in.ingress[h] = c.in.egress[h] = NONE;
	for (h = 1; h < 4; h++)
		if (h < 3 || inst_between(&s, 0, 1))
			c.in.data[h] = inst_between(&s, 100, 900) * UNIT / 8;
	c.in.relay[2] = c.in.relay[4] = true;
	for (i = 0; i < 7; i++) {
		c.in.link[i] = (struct inst_link){ ends[i][0], ends[i][1], inst_between(&s, 2, 20) * UNIT };
		if (i < 3 && inst_between(&s, 0, 2) > 0)
			draw_curve(&c.link[i], c.budget, &s);
	}
	c.in.nlinks = 7;
	c.in.ngroups = inst_between(&s, 1, 2);
	for (g = 0; g < c.in.ngroups; g++) {
		a = inst_between(&s, 0, 2);
		b = (a + inst_between(&s, 1, 2)) % 3;
		c.in.group[g] = (struct inst_group){ .nlinks = 2, .link = { a, b } };
		draw_curve(&c.group[g], c.budget, &s);
		c.in.group[g].rate = c.group[g].rate[c.group[g].most - 1];
	}
}

static void print_curve(FILE *f, const struct curve *x)
{
	int i;

	for (i = 0; i < x->n; i++)
		fprintf(f, "%s%d: {rate: %dMbit/s, impact: %d}", i == 0 ? "curve: {" : ", ", i + 1, x->rate[i],
		    i * x->step);
	fputs("}", f);
}

static char *text_of(void)
{
	char *text;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	int i;

	fprintf(f, "impact: %d\ndestination: H0\nhosts:\n", c.budget);
	for (i = 0; i < 5; i++) {
		fprintf(f, "  H%d: {relay: %s", i, c.in.relay[i] ? "true" : "false");
		if (c.in.data[i] != NONE)
			fprintf(f, ", data: %dMB", c.in.data[i]);
		fputs("}\n", f);
	}
	fputs("links:\n", f);
	for (i = 0; i < c.in.nlinks; i++) {
		fprintf(f, "  - {from: H%d, to: H%d, ", c.in.link[i].from, c.in.link[i].to);
		if (c.link[i].n > 0)
			print_curve(f, &c.link[i]);
		else
			fprintf(f, "rate: %dMbit/s", c.in.link[i].rate);
		fputs("}\n", f);
	}
	fputs("shared:\n", f);
	for (i = 0; i < c.in.ngroups; i++) {
		fprintf(f, "  - {links: [H%d>H0, H%d>H0], ", c.in.link[c.in.group[i].link[0]].from,
		    c.in.link[c.in.group[i].link[1]].from);
		print_curve(f, &c.group[i]);
		fputs("}\n", f);
	}
	fclose(f);
	return text;
}

static bool in_group(int link, int g)
{
	return c.in.group[g].link[0] == link || c.in.group[g].link[1] == link;
}

/* Mbit/s of one of the first three links with so many streams; -1: it may not have them. */
static int carries(int link, int streams)
{
	const struct curve *own = &c.link[link];
	int rate = c.in.link[link].rate, g, share;
	bool counted = own->n > 0;

	if (own->n > 0)
		rate = streams > own->most ? -1 : streams == 0 ? 0 : own->rate[streams - 1];
	for (g = 0; g < c.in.ngroups; g++)
		if (in_group(link, g)) {
			counted = true;
			share = c.in.group[g].rate / c.group[g].most * streams;
			rate = share < rate ? share : rate;
		}
	return counted || streams == 0 ? rate : -1;
}

static bool keeps_budgets(const int *streams)
{
	int g, i, n;

	for (g = 0; g < c.in.ngroups; g++) {
		for (i = n = 0; i < 3; i++)
			n += in_group(i, g) ? streams[i] : 0;
		if (n > c.group[g].most)
			return false;
	}
	return true;
}

/* The least makespan over all choices of streams of the first three links, the only counted ones. */
static double enumerate(int link, int *streams)
{
	static struct inst with;
	double least = INFINITY;
	struct plain out;
	int i, n;

	for (n = 0; n <= STREAMS && link < 3; n++) {
		streams[link] = n;
		if (carries(link, n) >= 0)
			least = fmin(least, enumerate(link + 1, streams));
	}
	if (link < 3 || !keeps_budgets(streams))
		return least;
	with = c.in;
	for (i = 0; i < 3; i++)
		with.link[i].rate = carries(i, streams[i]);
	plain_fluid(&with, 1, NULL, &out);
	return out.feasible ? out.makespan_s : INFINITY;
}

static void no_choice_is_better(void **state)
{
	int streams[3], code, possible = 0;
	struct ptcp_plan_info info;
	struct ptcp_overlay *o;
	struct ptcp_plan *p;
	struct ptcp_err e;
	uint64_t seed;
	double least;
	char *text;

	(void)state;
	for (seed = 1; seed <= 60; seed++) {
		draw(seed);
		text = text_of();
		o = overlay_of(text);
		least = enumerate(0, streams);
		p = plan(o, PTCP_PLAN_PIPELINED, &code, &e);
		if (isinf(least) ? code != PTCP_EINFEASIBLE : p == NULL)
			fail_msg("seed %d: %s, at best %g s\n%s", (int)seed, p == NULL ? e.msg : "planned", least,
			    text);
		if (p != NULL) {
			ptcp_plan_info(p, &info);
			if (!near(info.makespan_s, least) || info.bound_s > least * (1 + 1e-6) ||
			    info.bound_s < least * (1 - 1e-6))
				fail_msg("seed %d: %.9g s, bound %.9g, at best %.9g\n%s", (int)seed, info.makespan_s,
				    info.bound_s, least, text);
			possible++;
		}
		ptcp_plan_free(p);
		ptcp_overlay_free(o);
		free(text);
	}
	assert_true(possible > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sources_share_the_budget),
		cmocka_unit_test(a_greater_budget),
		cmocka_unit_test(too_small_a_budget),
		cmocka_unit_test(impact_by_the_model),
		cmocka_unit_test(no_time_to_choose),
		cmocka_unit_test(windows),
		cmocka_unit_test(bad_curves),
		cmocka_unit_test(the_verifier_counts),
		cmocka_unit_test(no_choice_is_better),
	};
	return cmocka_run_group_tests_name("plan/streams", tests, NULL, NULL);
}
