/* Plans of small overlays whose optimum is known by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <ptcp/plan.h>
#include <stdio.h>
#include <string.h>

#include "parsed.h"
#include "worked.h"

static int equal(double a, double b)
{
	return fabs(a - b) <= 1e-6 * fmax(fabs(a), fabs(b));
}
#define EQUAL(a, b) assert_true(equal(a, b))

struct got {
	int code;
	char msg[512];
	struct ptcp_plan_info info;
	double storage[8];
	size_t pieces;
	int hops; /* of the first piece */
	uint64_t bytes; /* of all pieces */
};

static struct got plan_with(const struct ptcp_overlay *o, enum ptcp_plan_method m,
    double slot_s, double deadline_s)
{
	struct ptcp_plan_opts opts;
	struct ptcp_plan_piece piece;
	struct ptcp_plan *p;
	struct ptcp_err e = { 0 };
	struct got g = { 0 };
	size_t i;

	ptcp_plan_opts_init(&opts);
	opts.method = m;
	opts.slot_s = slot_s;
	opts.deadline_s = deadline_s;
	g.code = ptcp_plan_make(&p, o, &opts, &e);
	memcpy(g.msg, e.msg, sizeof g.msg);
	if (g.code < 0)
		return g;
	assert_int_equal(ptcp_plan_verify(p, o, &e), 0);
	ptcp_plan_info(p, &g.info);
	for (i = 0; i < ptcp_overlay_hosts(o) && i < 8; i++)
		g.storage[i] = ptcp_plan_storage_bytes(p, (int)i);
	g.pieces = ptcp_plan_pieces(p);
	for (i = 0; i < g.pieces; i++) {
		ptcp_plan_piece(p, i, &piece);
		g.hops = i == 0 ? (int)piece.nhops : g.hops;
		g.bytes += piece.bytes;
	}
	ptcp_plan_free(p);
	return g;
}

static struct got plan_text(const char *text, enum ptcp_plan_method m)
{
	struct ptcp_overlay *o = overlay_of(text);
	struct got g = plan_with(o, m, 0, 0);

	ptcp_overlay_free(o);
	return g;
}

static void worked_example(void **state)
{
	static const double slots[] = { 1, 0.5, 0.25, 0.125, 0.1, 0.05, 0.01, 0.001 };
	struct ptcp_overlay *o = overlay_of(WORKED_OVERLAY);
	struct got g;
	size_t i;

	(void)state;
	EQUAL(plan_with(o, PTCP_PLAN_DIRECT, 0, 0).info.makespan_s, 2);
	g = plan_with(o, PTCP_PLAN_BEST_PATH, 0, 0);
	EQUAL(g.info.makespan_s, 2);
	assert_true(g.info.relayed_bytes == 0); /* K is not 5 % better */
	for (i = 0; i < sizeof slots / sizeof *slots; i++) {
		g = plan_with(o, PTCP_PLAN_COORDINATED, slots[i], 0);
		EQUAL(g.info.makespan_s, 1 + slots[i]);
		EQUAL(g.info.bound_s, g.info.makespan_s);
		EQUAL(g.info.slot_s, slots[i]);
	}
	g = plan_with(o, PTCP_PLAN_PIPELINED, 0, 0);
	EQUAL(g.info.makespan_s, 1);
	EQUAL(g.info.bound_s, 1);
	EQUAL(g.info.relayed_bytes, 1e9);
	assert_true(g.storage[3] <= 1);
	assert_int_equal(g.bytes, 2000000000);
	/* The slot left out is a hundredth of the direct makespan. */
	g = plan_with(o, PTCP_PLAN_COORDINATED, 0, 0);
	EQUAL(g.info.slot_s, 0.02);
	EQUAL(g.info.makespan_s, 1.02);
	ptcp_overlay_free(o);
}

/* Everything stored whole at K: both units to K, then both on to D. */
static void worked_example_stored_whole(void **state)
{
	struct got in = plan_text(
	    "destination: K\n"
	    "hosts: {K: {ingress: 8Gbit/s}, S1: {data: 1GB}, S2: {data: 1GB}}\n"
	    "links: [{from: S1, to: K, rate: 8Gbit/s}, {from: S2, to: K, rate: 8Gbit/s}]\n",
	    PTCP_PLAN_DIRECT);
	struct got out = plan_text(
	    "destination: D\n"
	    "hosts: {D: {}, K: {data: 2GB, egress: 16Gbit/s}}\n"
	    "links: [{from: K, to: D, rate: 16Gbit/s}]\n", PTCP_PLAN_DIRECT);

	(void)state;
	EQUAL(in.info.makespan_s + out.info.makespan_s, 3);
}

#define CHOICE(direct, k1, k2)                                                     \
	"destination: D\n"                                                         \
	"hosts: {D: {}, K1: {relay: true}, K2: {relay: true}, S: {data: 1GB}}\n"   \
	"links:\n"                                                                 \
	"  - {from: S, to: D, rate: " direct "}\n"                                 \
	"  - {from: S, to: K1, rate: 1Gbit/s}\n"                                   \
	"  - {from: K1, to: D, rate: " k1 "}\n"                                    \
	"  - {from: S, to: K2, rate: " k2 "}\n"                                    \
	"  - {from: K2, to: D, rate: 1Gbit/s}\n"

static void best_path_takes_more_than_105_percent(void **state)
{
	(void)state;
	/* 105 Mbit/s is not more than 105 % of 100; 106 is. */
	EQUAL(plan_text(CHOICE("100Mbit/s", "105Mbit/s", "1Mbit/s"),
	    PTCP_PLAN_BEST_PATH).info.makespan_s, 80);
	EQUAL(plan_text(CHOICE("100Mbit/s", "106Mbit/s", "1Mbit/s"),
	    PTCP_PLAN_BEST_PATH).info.makespan_s, 8000 / 106.0);
	/* The second relay must beat the first, which already beat direct. */
	EQUAL(plan_text(CHOICE("100Mbit/s", "110Mbit/s", "115Mbit/s"),
	    PTCP_PLAN_BEST_PATH).info.makespan_s, 8000 / 110.0);
	EQUAL(plan_text(CHOICE("100Mbit/s", "110Mbit/s", "116Mbit/s"),
	    PTCP_PLAN_BEST_PATH).info.makespan_s, 8000 / 116.0);
}

static void fair_sharing(void **state)
{
	/* A and B share 100; A can take only 20, so B gets 80: A ends at 40 s, B
	 * has sent 400 MB of 2000 by then and goes on at 100. */
	struct got g = plan_text(
	    "destination: D\n"
	    "hosts: {D: {}, A: {data: 100MB}, B: {data: 2GB}}\n"
	    "links: [{from: A, to: D, rate: 20Mbit/s}, {from: B, to: D, rate: 1Gbit/s}]\n"
	    "shared: [{rate: 100Mbit/s, links: [A>D, B>D]}]\n", PTCP_PLAN_DIRECT);

	(void)state;
	EQUAL(g.info.makespan_s, 40 + 1600 * 8 / 100.0);
	assert_int_equal(g.pieces, 3);
}

static void windows_delay_direct(void **state)
{
	static const char text[] =
	    "destination: D\n"
	    "hosts: {D: {}, S: {data: 1GB}}\n"
	    "links: [{from: S, to: D, rate: 100Mbit/s}]\n"
	    "windows: [{link: S>D, from: 10s, until: 30s, rate: 0},\n"
	    "  {link: S>D, from: 30s, until: 40s, rate: 200Mbit/s}]\n";

	/* 125 MB by 10 s, nothing until 30 s, 250 MB until 40 s, 625 MB at 12.5. */
	(void)state;
	EQUAL(plan_text(text, PTCP_PLAN_DIRECT).info.makespan_s, 90);
	EQUAL(plan_text(text, PTCP_PLAN_PIPELINED).info.makespan_s, 90);
}

#define NIGHT(storage)                                                             \
	"destination: D\n"                                                         \
	"slot: 1s\n"                                                               \
	"hosts: {D: {}, S: {data: 1GB}, K: {relay: true" storage "}}\n"            \
	"links: [{from: S, to: K, rate: 80Mbit/s}, {from: K, to: D, rate: 800Mbit/s}]\n" \
	"windows: [{link: K>D, from: 0s, until: 60s, rate: 0}]\n"

/* The link from K to D opens after 60 s. Until then K stores data up to its limit. */
static void relay_storage_at_a_relay(void **state)
{
	struct got g = plan_text(NIGHT(""), PTCP_PLAN_PIPELINED);

	(void)state;
	EQUAL(g.info.makespan_s, 100); /* bound by S>K: 1 GB at 10 MB/s */
	/* K>D could carry all that comes after 60 s and what is held within 40 s
	 * only if it begins with 600 MB held at 60 s. */
	EQUAL(g.storage[2], 600e6);
	g = plan_text(NIGHT(", storage: 200MB"), PTCP_PLAN_PIPELINED);
	EQUAL(g.info.makespan_s, 140); /* 200 MB held, 800 MB from 60 s on */
	EQUAL(g.storage[2], 200e6);
	g = plan_text(NIGHT(", storage: 0"), PTCP_PLAN_PIPELINED);
	EQUAL(g.info.makespan_s, 160);
	g = plan_text(NIGHT(""), PTCP_PLAN_COORDINATED);
	EQUAL(g.info.makespan_s, 101);
	/* In slots of 1 s, K holds 10 MB a slot on top at the end of each. */
	g = plan_text(NIGHT(", storage: 200MB"), PTCP_PLAN_COORDINATED);
	EQUAL(g.info.makespan_s, 141);
	assert_true(g.storage[2] <= 200e6 + 10);
}

static void least_relayed_then_least_storage(void **state)
{
	/* Direct alone takes 10 s, which is also the least: nothing is relayed. */
	struct got g = plan_text(
	    "destination: D\n"
	    "hosts: {D: {ingress: 80Mbit/s}, S: {data: 100MB}, K: {relay: true}}\n"
	    "links: [{from: S, to: D, rate: 80Mbit/s}, {from: S, to: K, rate: 1Gbit/s},\n"
	    "  {from: K, to: D, rate: 1Gbit/s}]\n", PTCP_PLAN_PIPELINED);

	(void)state;
	EQUAL(g.info.makespan_s, 10);
	assert_true(g.info.relayed_bytes < 2);
	assert_true(g.storage[2] < 2);
}

static void only_relays_pass_on(void **state)
{
	static const char chain[] =
	    "destination: D\n"
	    "hosts: {D: {}, A: {data: 10MB}, B: {data: 10MB%s}}\n"
	    "links: [{from: A, to: B, rate: 80Mbit/s}, {from: B, to: D, rate: 80Mbit/s}]\n";
	char text[400];
	struct got g;

	(void)state;
	snprintf(text, sizeof text, chain, ", relay: true");
	g = plan_text(text, PTCP_PLAN_PIPELINED);
	EQUAL(g.info.makespan_s, 2);
	snprintf(text, sizeof text, chain, "");
	g = plan_text(text, PTCP_PLAN_PIPELINED);
	assert_int_equal(g.code, PTCP_EINFEASIBLE);
	assert_non_null(strstr(g.msg, "source A cannot reach D"));
	assert_non_null(strstr(g.msg, "B is no relay"));
}

static void says_why_infeasible(void **state)
{
	struct got g;
	struct ptcp_overlay *o = overlay_of(WORKED_OVERLAY);

	(void)state;
	g = plan_text("destination: D\nhosts: {D: {}, A: {data: 1MB}}\n", PTCP_PLAN_PIPELINED);
	assert_int_equal(g.code, PTCP_EINFEASIBLE);
	assert_non_null(strstr(g.msg, "source A cannot reach D: it has no link"));
	g = plan_text("destination: D\nhosts: {D: {}, A: {data: 1MB}}\n"
	    "links: [{from: A, to: D, rate: 0}]\n", PTCP_PLAN_PIPELINED);
	assert_non_null(strstr(g.msg, "its link to D never has a rate above 0"));
	g = plan_text("destination: D\nhosts: {D: {}, A: {data: 1MB}, K: {relay: true}}\n"
	    "links: [{from: A, to: K, rate: 1}, {from: K, to: D, rate: 1}]\n", PTCP_PLAN_DIRECT);
	assert_int_equal(g.code, PTCP_EINFEASIBLE);
	assert_non_null(strstr(g.msg, "source A has no direct link to D"));
	g = plan_text("destination: D\nhosts: {D: {}, A: {data: 1MB}, K: {relay: true, storage: 0}}\n"
	    "links: [{from: A, to: K, rate: 1Mbit/s}, {from: K, to: D, rate: 1Mbit/s}]\n",
	    PTCP_PLAN_COORDINATED);
	assert_int_equal(g.code, PTCP_EINFEASIBLE);
	assert_non_null(strstr(g.msg, "relay K has no storage"));
	g = plan_with(o, PTCP_PLAN_PIPELINED, 0, 0.5);
	assert_int_equal(g.code, PTCP_EINFEASIBLE);
	assert_non_null(strstr(g.msg, "deadline"));
	assert_non_null(strstr(g.msg, "shared bottleneck 1 (50 %)"));
	assert_non_null(strstr(g.msg, "ingress of K (50 %)"));
	assert_int_equal(plan_with(o, PTCP_PLAN_PIPELINED, 0, 1).code, 0);
	assert_int_equal(plan_with(o, PTCP_PLAN_DIRECT, 0, 1.9).code, PTCP_EINFEASIBLE);
	ptcp_overlay_free(o);
}

/* A rate of 0, wherever an overlay may have one, is no path for any method, and named. */
static void rates_of_zero(void **state)
{
	static const struct {
		const char *dest, *source, *relay, *direct, *in, *out, *more, *why;
	} places[] = {
		{ "", "", "", "0", "0", "1Mbit/s", "", "its link to K never has" },
		{ "", "", "", "0", "1Mbit/s", "0", "", "none of its relays can reach D" },
		{ ", ingress: 0", "", "", "1Mbit/s", "1Mbit/s", "1Mbit/s", "", "can reach D" },
		{ "", ", egress: 0", "", "1Mbit/s", "1Mbit/s", "1Mbit/s", "", "crosses the egress of A, which" },
		{ "", "", ", ingress: 0", "0", "1Mbit/s", "1Mbit/s", "", "crosses the ingress of K, which" },
		{ "", "", ", egress: 0", "0", "1Mbit/s", "1Mbit/s", "", "none of its relays can reach D" },
		{ "", "", "", "1Mbit/s", "1Mbit/s", "1Mbit/s", "shared: [{rate: 0, links: [A>D, A>K]}]",
			"crosses the shared bottleneck 1, which" },
		{ "", "", "", "0", "1Mbit/s", "1Mbit/s", "windows: [{link: K>D, from: 0s, rate: 0}]",
			"none of its relays can reach D" },
		{ "", "", "", "1Mbit/s", "0", "0", "windows: [{link: A>D, from: 0s, rate: 0}]",
		    "its link to K never has" },
	};
	char text[600];
	struct got g;
	size_t i;
	int m;

	(void)state;
	for (i = 0; i < sizeof places / sizeof *places; i++) {
		snprintf(text, sizeof text,
		    "destination: D\nhosts: {D: {address: d%s}, A: {data: 1MB%s}, K: {relay: true%s}}\n"
		    "links: [{from: A, to: D, rate: %s}, {from: A, to: K, rate: %s}, {from: K, to: D, rate: %s}]\n%s\n",
		    places[i].dest, places[i].source, places[i].relay, places[i].direct, places[i].in, places[i].out,
		    places[i].more);
		for (m = 0; m <= PTCP_PLAN_PIPELINED; m++) {
			g = plan_text(text, (enum ptcp_plan_method)m);
			if (g.code != PTCP_EINFEASIBLE || strstr(g.msg, places[i].why) == NULL)
				fail_msg("%s: %d, %s, without '%s':\n%s",
				    ptcp_plan_method_name((enum ptcp_plan_method)m), g.code,
				    g.msg, places[i].why, text);
		}
	}
}

static void says_which_window(void **state)
{
	/* The link closes for good after 10 s, half way. */
	static const char text[] =
	    "destination: D\nhosts: {D: {}, A: {data: 20MB}}\n"
	    "links: [{from: A, to: D, rate: 8Mbit/s}]\n"
	    "windows: [{link: A>D, from: 10s, rate: 0}]\n";
	struct got g = plan_text(text, PTCP_PLAN_PIPELINED);

	(void)state;
	assert_int_equal(g.code, PTCP_EINFEASIBLE);
	assert_non_null(strstr(g.msg, "source A cannot reach D any more after 10 s"));
	assert_non_null(strstr(g.msg, "A>D: window from 10 s on"));
	assert_non_null(strstr(g.msg, "50 % of the data"));
	g = plan_text(text, PTCP_PLAN_DIRECT);
	assert_int_equal(g.code, PTCP_EINFEASIBLE);
	assert_non_null(strstr(g.msg, "with 50 % of its data left"));
	assert_int_equal(plan_text(text, PTCP_PLAN_COORDINATED).code, PTCP_EINFEASIBLE);
}

static void what_if(void **state)
{
	struct ptcp_overlay *o = overlay_of(WORKED_OVERLAY);
	struct ptcp_err e;

	(void)state;
	assert_int_equal(ptcp_overlay_set_rate(o, "K>D", 4000000000, &e), 0);
	EQUAL(plan_with(o, PTCP_PLAN_PIPELINED, 0, 0).info.makespan_s, 2 / 1.5);
	assert_int_equal(ptcp_overlay_set_data(o, "S2", 0, &e), 0);
	EQUAL(plan_with(o, PTCP_PLAN_DIRECT, 0, 0).info.makespan_s, 1);
	assert_int_equal(ptcp_overlay_set_rate(o, "D>K", 1, &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_overlay_set_rate(o, "K-D", 1, &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_overlay_set_data(o, "X", 1, &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_overlay_set_data(o, "D", 1, &e), PTCP_EUSAGE);
	/* Nothing to collect is a plan, an empty one. */
	assert_int_equal(ptcp_overlay_set_data(o, "S1", 0, &e), 0);
	assert_true(plan_with(o, PTCP_PLAN_COORDINATED, 0, 0).info.makespan_s == 0);
	ptcp_overlay_free(o);
}

static void unknown_numbers_are_errors(void **state)
{
	struct got g = plan_text("destination: D\nhosts: {D: {}, A: {path: /x}}\n"
	    "links: [{from: A, to: D, rate: 1}]\n", PTCP_PLAN_DIRECT);

	(void)state;
	assert_int_equal(g.code, PTCP_ECONFIG);
	assert_non_null(strstr(g.msg, "test:2:16: host A: expected 'data'"));
	g = plan_text("destination: D\nhosts: {D: {}, A: {data: 1}}\n"
	    "links: [{from: A, to: D}]\n", PTCP_PLAN_DIRECT);
	assert_int_equal(g.code, PTCP_ECONFIG);
	assert_non_null(strstr(g.msg, "test:3:9: link A>D: expected 'rate'"));
	g = plan_text("destination: D\nslot: 1ms\nhosts: {D: {}, A: {data: 1TB}}\n"
	    "links: [{from: A, to: D, rate: 1Mbit/s}]\n", PTCP_PLAN_COORDINATED);
	assert_int_equal(g.code, PTCP_ERANGE);
}

/* Terabytes beside kilobytes, Gbit/s beside kbit/s, over the same relay. */
static void scales_far_apart(void **state)
{
	static const char text[] =
	    "destination: D\n"
	    "hosts: {D: {}, BIG: {data: 400TB}, SMALL: {data: 2kB}, K: {relay: true}}\n"
	    "links:\n"
	    "  - {from: BIG, to: D, rate: 100Gbit/s}\n"
	    "  - {from: BIG, to: K, rate: 100Gbit/s}\n"
	    "  - {from: SMALL, to: K, rate: 1kbit/s}\n"
	    "  - {from: K, to: D, rate: 60Gbit/s}\n";
	struct got g = plan_text(text, PTCP_PLAN_PIPELINED);

	(void)state;
	assert_int_equal(g.code, 0);
	EQUAL(g.info.makespan_s, 3200.0e12 / 160e9);
	assert_int_equal(g.bytes, 400000000002000);
	g = plan_text(text, PTCP_PLAN_COORDINATED);
	assert_string_equal(g.msg, "");
	g = plan_text("destination: D\nhosts: {D: {}, A: {data: 1}}\n"
	    "links: [{from: A, to: D, rate: 1}]\n", PTCP_PLAN_PIPELINED);
	EQUAL(g.info.makespan_s, 8);
}

/* Thousands of slots, whose bytes are no whole numbers: none is lost in rounding. */
static void many_slots_lose_no_byte(void **state)
{
	static const double slot_s[] = { 0.06, 0.07, 0.085 };
	struct ptcp_overlay *o = overlay_of("destination: D\n"
	    "hosts: {D: {}, S1: {data: 20GB, relay: true}, S2: {data: 10GB, relay: true}, S3: {data: 10GB, relay: "
	    "true},\n  S4: {data: 5GB, relay: true}, S5: {data: 5GB, relay: true}, K: {relay: true, storage: 2GB}}\n"
	    "links: [{from: S1, to: D, rate: 160Mbit/s}, {from: S2, to: D, rate: 160Mbit/s},\n"
	    "  {from: S3, to: D, rate: 160Mbit/s}, {from: S4, to: D, rate: 160Mbit/s}, {from: S5, to: D, rate: "
	    "160Mbit/s},\n  {from: S1, to: K, rate: 600Mbit/s}, {from: S2, to: K, rate: 600Mbit/s}, {from: S3, to: K, "
	    "rate: 600Mbit/s},\n  {from: S1, to: S4, rate: 600Mbit/s}, {from: S2, to: S4, rate: 600Mbit/s}, {from: S1, "
	    "to: S5, rate: 600Mbit/s},\n  {from: K, to: D, rate: 100Mbit/s}]\n"
	    "shared: [{rate: 160Mbit/s, links: [S1>D, S2>D, S3>D]}, {rate: 160Mbit/s, links: [S4>D, S5>D]}]\n"
	    "windows: [{link: K>D, from: 200s, until: 400s, rate: 0}]\n");
	struct got g;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof slot_s / sizeof *slot_s; i++) {
		g = plan_with(o, PTCP_PLAN_COORDINATED, slot_s[i], 0);
		if (g.code < 0)
			fail_msg("%s", g.msg);
		assert_int_equal(g.bytes, 50000000000);
		assert_true(g.info.makespan_s > 10000 * slot_s[i]);
	}
	ptcp_overlay_free(o);
}

static void options_are_checked(void **state)
{
	struct ptcp_overlay *o = overlay_of(WORKED_OVERLAY);
	struct ptcp_plan_opts opts;
	struct ptcp_plan *p;
	struct ptcp_err e;

	(void)state;
	memset(&opts, 0, sizeof opts);
	assert_int_equal(ptcp_plan_make(&p, o, &opts, &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_plan_make(&p, o, NULL, &e), 0);
	ptcp_plan_free(p);
	ptcp_plan_opts_init(&opts);
	opts.method = (enum ptcp_plan_method)77;
	assert_int_equal(ptcp_plan_make(&p, o, &opts, &e), PTCP_EUSAGE);
	ptcp_plan_opts_init(&opts);
	opts.slot_s = NAN;
	assert_int_equal(ptcp_plan_make(&p, o, &opts, NULL), PTCP_EUSAGE);
	assert_int_equal(ptcp_plan_method_find("best-path"), PTCP_PLAN_BEST_PATH);
	assert_int_equal(ptcp_plan_method_find("best"), -1);
	assert_string_equal(ptcp_plan_method_name(PTCP_PLAN_COORDINATED), "coordinated");
	ptcp_overlay_free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worked_example),
		cmocka_unit_test(worked_example_stored_whole),
		cmocka_unit_test(best_path_takes_more_than_105_percent),
		cmocka_unit_test(fair_sharing),
		cmocka_unit_test(windows_delay_direct),
		cmocka_unit_test(relay_storage_at_a_relay),
		cmocka_unit_test(least_relayed_then_least_storage),
		cmocka_unit_test(only_relays_pass_on),
		cmocka_unit_test(says_why_infeasible),
		cmocka_unit_test(rates_of_zero),
		cmocka_unit_test(says_which_window),
		cmocka_unit_test(what_if),
		cmocka_unit_test(unknown_numbers_are_errors),
		cmocka_unit_test(scales_far_apart), cmocka_unit_test(many_slots_lose_no_byte),
		cmocka_unit_test(options_are_checked),
	};
	return cmocka_run_group_tests_name("plan/plan", tests, NULL, NULL);
}
