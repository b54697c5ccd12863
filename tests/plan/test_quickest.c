/* Quickest paths of overlays whose answer is known by hand, and what must hold in all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <ptcp/plan.h>
#include <stdio.h>
#include <string.h>

#include "model/rng.h"
#include "parsed.h"

static struct ptcp_paths *paths(const struct ptcp_overlay *o, const char *from, const char *to,
    uint64_t bytes, size_t most)
{
	struct ptcp_paths *p;
	struct ptcp_err e;

	if (ptcp_paths_find(&p, o, ptcp_overlay_find_host(o, from), ptcp_overlay_find_host(o, to), bytes,
	    most, &e) < 0)
		fail_msg("%s", e.msg);
	return p;
}

static void expect(const struct ptcp_paths *p, size_t i, size_t n_relays, double rate, double delay,
    uint64_t bytes)
{
	struct ptcp_quickest g;

	assert_true(i < ptcp_paths_count(p));
	ptcp_paths_get(p, i, &g);
	assert_int_equal(g.n_relays, n_relays);
	assert_true(fabs(g.rate_bps - rate) <= 1e-6 * rate);
	assert_true(fabs(g.delay_s - delay) <= 1e-9);
	assert_int_equal(g.bytes, bytes);
}

#define TWO \
	"destination: B\n" \
	"hosts: {A: {}, B: {}, K: {relay: true}, N: {}}\n" \
	"links:\n" \
	"  - {from: A, to: B, rate: 10Mbit/s, delay: 5ms}\n" \
	"  - {from: A, to: K, rate: 50Mbit/s, delay: 20ms}\n" \
	"  - {from: K, to: B, rate: 30Mbit/s, delay: 20ms}\n" \
	"  - {from: A, to: N, rate: 1Gbit/s}\n" \
	"  - {from: N, to: B, rate: 1Gbit/s}\n"

/* The paper's two equations: r_1 = 3/4 r + 10 * 30 / 40 Mbit/s * (5 - 40 ms) / 8. */
static void two_paths(void **state)
{
	struct ptcp_overlay *o = overlay_of(TWO);
	struct ptcp_paths *p = paths(o, "A", "B", 40000001, 2);
	struct ptcp_quickest g;

	(void)state;
	assert_int_equal(ptcp_paths_count(p), 2);
	expect(p, 0, 1, 30e6, 0.04, 29967188);
	expect(p, 1, 0, 10e6, 0.005, 10032813);
	assert_true(fabs(ptcp_paths_finish_s(p) - (8 * 29967188.25 / 30e6 + 0.04)) < 1e-9);
	ptcp_paths_get(p, 0, &g);
	assert_int_equal(g.relays[0], ptcp_overlay_find_host(o, "K"));
	ptcp_paths_free(p);
	/* So little is there before the first byte could come by way of K. */
	p = paths(o, "A", "B", 1000, 2);
	assert_int_equal(ptcp_paths_count(p), 1);
	expect(p, 0, 0, 10e6, 0.005, 1000);
	ptcp_paths_free(p);
	p = paths(o, "A", "B", 40000000, 1);
	assert_int_equal(ptcp_paths_count(p), 1);
	expect(p, 0, 1, 30e6, 0.04, 40000000);
	ptcp_paths_free(p);
	ptcp_overlay_free(o);
}

/* What several links share is given out once. */
static void shared(void **state)
{
	struct ptcp_overlay *o = overlay_of(TWO "shared: [{rate: 32Mbit/s, links: [A>B, A>K]}]\n");
	struct ptcp_paths *p = paths(o, "A", "B", 1000000000, 3);

	(void)state;
	assert_int_equal(ptcp_paths_count(p), 2);
	expect(p, 0, 1, 30e6, 0.04, 937491797);
	expect(p, 1, 0, 2e6, 0.005, 62508203);
	ptcp_paths_free(p);
	ptcp_overlay_free(o);
	/* Both links of the way by K: it gets half. */
	o = overlay_of(TWO "shared: [{rate: 32Mbit/s, links: [A>K, K>B]}]\n");
	p = paths(o, "A", "B", 1000000000, 3);
	assert_int_equal(ptcp_paths_count(p), 2);
	expect(p, 0, 1, 16e6, 0.04, 615357692);
	ptcp_paths_free(p);
	ptcp_overlay_free(o);
}

static void host_limits(void **state)
{
	struct ptcp_overlay *o = overlay_of(
	    "destination: B\n"
	    "hosts: {A: {egress: 25Mbit/s}, B: {}, K: {relay: true, ingress: 20Mbit/s}}\n"
	    "links:\n"
	    "  - {from: A, to: B, rate: 10Mbit/s}\n"
	    "  - {from: A, to: K, rate: 50Mbit/s}\n"
	    "  - {from: K, to: B, rate: 30Mbit/s}\n");
	struct ptcp_paths *p = paths(o, "A", "B", 25000000, 2);

	(void)state;
	expect(p, 0, 1, 20e6, 0, 20000000);
	expect(p, 1, 0, 5e6, 0, 5000000);
	assert_true(fabs(ptcp_paths_finish_s(p) - 8) < 1e-9);
	ptcp_paths_free(p);
	ptcp_overlay_free(o);
}

static void no_path(void **state)
{
	struct ptcp_overlay *o = overlay_of(TWO);
	int a = ptcp_overlay_find_host(o, "A"), b = ptcp_overlay_find_host(o, "B");
	struct ptcp_paths *p = NULL;
	struct ptcp_err e;

	(void)state;
	assert_int_equal(ptcp_paths_find(&p, o, b, a, 1000, 2, &e), PTCP_EINFEASIBLE);
	assert_non_null(strstr(e.msg, "B to A: no path"));
	assert_int_equal(ptcp_paths_find(&p, o, a, a, 1000, 2, &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_paths_find(&p, o, a, 99, 1000, 2, &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_paths_find(&p, o, -1, a, 1000, 2, &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_paths_find(&p, o, a, b, 0, 2, &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_paths_find(&p, o, a, b, 1, 0, &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_paths_find(&p, o, a, b, 1, PTCP_QUICKEST_MAX + 1, &e), PTCP_EUSAGE);
	assert_null(p);
	ptcp_overlay_free(o);
}

/* ---- Random overlays: whatever is found fits into all limits, and bytes sum up ---- */

#define HOSTS 8

static size_t draw(char *text, size_t cap, struct rng *r, double rate[HOSTS][HOSTS], double *group)
{
	size_t n, i, j;

	n = (size_t)snprintf(text, cap, "destination: H7\nhosts:\n");
	for (i = 0; i < HOSTS; i++)
		n += (size_t)snprintf(text + n, cap - n, "  H%zu: {relay: true}\n", i);
	n += (size_t)snprintf(text + n, cap - n, "links:\n");
	for (i = 0; i < HOSTS; i++)
		for (j = 0; j < HOSTS; j++) {
			rate[i][j] = i != j && (j == i + 1 || rng_uniform(r) < 0.4) ?
			    floor(1e6 * pow(10, 3 * rng_uniform(r))) : 0;
			if (rate[i][j] > 0)
				n += (size_t)snprintf(text + n, cap - n,
				    "  - {from: H%zu, to: H%zu, rate: %.0f, delay: %.3fms}\n", i, j,
				    rate[i][j], 100 * rng_uniform(r));
		}
	*group = floor(1e6 + 1e8 * rng_uniform(r)); /* of all that goes along the chain */
	n += (size_t)snprintf(text + n, cap - n, "shared: [{rate: %.0f, links: [", *group);
	for (i = 0; i + 1 < HOSTS; i++)
		n += (size_t)snprintf(text + n, cap - n, "%sH%zu>H%zu", i > 0 ? ", " : "", i, i + 1);
	return n + (size_t)snprintf(text + n, cap - n, "]}]\n");
}

static void limits_hold(void **state)
{
	static char text[16384];
	double rate[HOSTS][HOSTS], group, used[HOSTS][HOSTS], chain;
	struct rng r = { 7 };
	uint64_t bytes, sum;
	struct ptcp_quickest g;
	size_t found = 0;
	int i;

	(void)state;
	for (i = 0; i < 300; i++) {
		struct ptcp_overlay *o;
		struct ptcp_paths *p;
		size_t k, h;
		int at, to;

		draw(text, sizeof text, &r, rate, &group);
		o = overlay_of(text);
		bytes = (uint64_t)pow(10, 3 + 7 * rng_uniform(&r));
		p = paths(o, "H0", "H7", bytes, 5);
		memset(used, 0, sizeof used);
		for (k = 0, sum = 0; k < ptcp_paths_count(p); k++) {
			ptcp_paths_get(p, k, &g);
			assert_true(g.bytes > 0);
			/* Within a byte of the common end. */
			assert_true(fabs(8 * (double)g.bytes / g.rate_bps + g.delay_s -
			    ptcp_paths_finish_s(p)) <= 8.001 / g.rate_bps + 1e-9 * ptcp_paths_finish_s(p));
			sum += g.bytes;
			for (h = 0, at = 0; h <= g.n_relays; h++, at = to) {
				to = h < g.n_relays ? g.relays[h] : HOSTS - 1;
				used[at][to] += g.rate_bps;
			}
		}
		assert_true(sum == bytes);
		for (at = 0, chain = 0; at < HOSTS; at++)
			for (to = 0; to < HOSTS; to++) {
				assert_true(used[at][to] <= rate[at][to] * (1 + 1e-9));
				chain += to == at + 1 ? used[at][to] : 0;
			}
		assert_true(chain <= group * (1 + 1e-6));
		found += ptcp_paths_count(p);
		ptcp_paths_free(p);
		ptcp_overlay_free(o);
	}
	assert_true(found > 600); /* several a draw, or this would prove little */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_paths),
		cmocka_unit_test(shared),
		cmocka_unit_test(host_limits),
		cmocka_unit_test(no_path),
		cmocka_unit_test(limits_hold),
	};

	return cmocka_run_group_tests_name("plan/quickest", tests, NULL, NULL);
}
