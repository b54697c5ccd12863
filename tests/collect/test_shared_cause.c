/* Which links are concluded to share a bottleneck. Limits: 0 S1>K, 1 K>D, 2 S1>D, 3 S2>D, 4 S3>D; then the overlay's
 * own bottleneck, if any, those not yet concluded, and the hosts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "collect/shared_cause.h"
#include "plan/rate_limits.h"

#define LIMITS_MAX 64
#define OVERLAY "destination: D\nhosts: {D: {}, S1: {data: 1GB, path: /d}, S2: {data: 1GB, path: /d}, " \
	"S3: {data: 1GB, path: /d}, K: {relay: true}}\nlinks:\n  - {from: S1, to: K, rate: 20Mbit/s}\n" \
	"  - {from: K, to: D, rate: 20Mbit/s}\n  - {from: S1, to: D, rate: 16Mbit/s}\n" \
	"  - {from: S2, to: D, rate: 16Mbit/s}\n  - {from: S3, to: D, rate: 16Mbit/s}\n"

static struct ptcp_overlay *overlay;
static double found[LIMITS_MAX];
static size_t n_found, limit;
static size_t s1_k_d[] = { 0, 1 }, s1_d[] = { 2 }, s2_d[] = { 3 }, s3_d[] = { 4 };
/* In Mbit/s: over K as planned, the others a third of what was assumed. */
static struct drift_flow flow[4];

static void begin(const char *text)
{
	static const struct drift_flow third[] = { { s1_k_d, 2, 18e6, 18e6, true, false },
		{ s1_d, 1, 15e6, 5e6, true, false }, { s2_d, 1, 15e6, 4e6, true, false },
		    { s3_d, 1, 15e6, 6e6, true, false } };
	struct ptcp_err e;
	size_t i;

	ptcp_overlay_free(overlay);
	assert_int_equal(ptcp_overlay_parse(&overlay, text, strlen(text), "o", &e), 0);
	assert_int_equal(shared_cause_reserve(overlay, &e), 0);
	memcpy(flow, third, sizeof flow);
	for (i = 0; i < LIMITS_MAX; i++)
		found[i] = NAN;
	n_found = 0;
}

static void is_slow(size_t link, double bps)
{
	found[link] = bps;
	n_found++;
}

static bool concluded(void)
{
	return shared_cause_conclude(overlay, flow, 4, found, &n_found, &limit);
}

static void links_that_slow_down_together_share(void **state)
{
	struct ptcp_shared_bottleneck shared[SHARED_CAUSE_MAX];
	size_t links[10], limits[20], n;
	char name[100];

	(void)state;
	begin(OVERLAY);
	is_slow(2, 5e6);
	is_slow(3, 4e6);
	is_slow(4, 6e6);
	assert_true(concluded());
	assert_int_equal(n_found, 1);
	assert_true(found[limit] == 15e6 && isnan(found[2]) && isnan(found[3]) && isnan(found[4]));
	assert_string_equal(limits_name(overlay, limit, name, sizeof name), "S1>D + S2>D + S3>D");
	assert_true(limits_bps(overlay, limit) == 15e6 && limits_bps(overlay, 2) == 16e6);
	n = limits_of_link(overlay, 3, limits, 20);
	assert_true(n == 4 && limits[1] == limit);
	assert_int_equal(shared_cause_list(overlay, shared, links, 10), 1);
	assert_true(shared[0].n == 3 && shared[0].links[0] == 2 && shared[0].links[2] == 4 &&
	    shared[0].rate_bps == 15e6);
	/* If they are slow again, each is slow by itself. */
	is_slow(2, 3e6);
	is_slow(3, 3e6);
	n_found = 2;
	assert_false(concluded());
	assert_true(found[2] == 3e6 && n_found == 2);
}

static void one_link_shares_with_nobody(void **state)
{
	(void)state;
	begin(OVERLAY);
	is_slow(2, 5e6);
	assert_false(concluded());
	assert_true(n_found == 1 && found[2] == 5e6);
}

/* The links of one path slow down together, but with the same data. */
static void links_of_a_path_are_one_cause(void **state)
{
	(void)state;
	begin(OVERLAY);
	flow[0].observed_bps = 6e6;
	is_slow(0, 6e6);
	is_slow(1, 6e6);
	assert_false(concluded());
	is_slow(2, 5e6);
	assert_true(concluded());
	assert_true(n_found == 1 && found[limit] == 11e6 && isnan(found[0]) && isnan(found[1]));
}

/* S1>K is slow for another reason than the links to D, and no link of a relay is joined with another. */
static void links_to_other_hosts_are_apart(void **state)
{
	(void)state;
	begin(OVERLAY);
	flow[0].observed_bps = 6e6;
	is_slow(0, 6e6);
	is_slow(2, 5e6);
	assert_false(concluded());
	is_slow(3, 4e6);
	assert_true(concluded());
	assert_true(n_found == 2 && found[limit] == 9e6 && found[0] == 6e6);
}

/* Links that carry nothing are lost, each for its own reason, and may return alone. */
static void lost_links_share_nothing(void **state)
{
	(void)state;
	begin(OVERLAY);
	flow[1].observed_bps = flow[2].observed_bps = 0;
	is_slow(2, 0);
	is_slow(3, 0);
	assert_false(concluded());
}

static void known_bottlenecks_are_not_concluded(void **state)
{
	struct ptcp_shared_bottleneck shared[SHARED_CAUSE_MAX];
	size_t links[10];

	(void)state;
	begin(OVERLAY "shared: [{rate: 30Mbit/s, links: [S1>D, S2>D]}]\n");
	is_slow(2, 5e6);
	is_slow(3, 5e6);
	assert_false(concluded());
	is_slow(4, 5e6);
	assert_true(concluded());
	assert_int_equal(shared_cause_list(overlay, shared, links, 10), 1);
	assert_int_equal(shared_cause_list(overlay, shared, links, 2), 0);
	ptcp_overlay_free(overlay);
	overlay = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_that_slow_down_together_share),
		cmocka_unit_test(one_link_shares_with_nobody),
		cmocka_unit_test(links_of_a_path_are_one_cause),
		cmocka_unit_test(links_to_other_hosts_are_apart),
		cmocka_unit_test(lost_links_share_nothing),
		cmocka_unit_test(known_bottlenecks_are_not_concluded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
