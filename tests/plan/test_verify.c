/* The verifier finds what is wrong: good plans, each spoilt in one way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "plan/plan.h"

static const char text[] =
    "destination: D\n"
    "slot: 1s\n"
    "hosts:\n"
    "  D: {}\n"
    "  S: {data: 100MB}\n"
    "  K: {relay: true, storage: 60MB, ingress: 80Mbit/s, egress: 80Mbit/s}\n"
    "  N: {data: 10MB}\n"
    "links:\n"
    "  - {from: S, to: K, rate: 160Mbit/s}\n"
    "  - {from: K, to: D, rate: 160Mbit/s}\n"
    "  - {from: N, to: D, rate: 8Mbit/s}\n"
    "  - {from: S, to: N, rate: 8Mbit/s}\n"
    "  - {from: S, to: D, rate: 8Mbit/s}\n"
    "shared:\n"
    "  - {rate: 80Mbit/s, links: [S>K, S>D]}\n"
    "windows:\n"
    "  - {link: K>D, from: 20s, until: 30s, rate: 0}\n";

enum { D, S, K, N };

/* A plan made by hand: S sends 90 MB through K and 10 MB directly in 10 s, N its
 * 10 MB in 10 s. */
static struct ptcp_plan_hop hops[] = {
	{ S, K, 0, 10 }, { K, D, 0, 10 }, { S, D, 0, 10 }, { N, D, 0, 10 },
	{ K, D, 0, 10 }, { S, D, 0, 10 }, /* room */
};
static struct plan_piece pieces[] = {
	{ S, 0, 90000000, 0, 2 }, { S, 90000000, 10000000, 2, 1 }, { N, 0, 10000000, 3, 1 },
};

struct bench {
	struct ptcp_overlay *o;
	struct ptcp_plan plan;
	struct ptcp_plan_hop hop[6];
	struct plan_piece piece[4];
	double peak[4];
};

static void set_up(struct bench *b)
{
	struct ptcp_err e;

	memset(b, 0, sizeof *b);
	assert_int_equal(ptcp_overlay_parse(&b->o, text, sizeof text - 1, "t", &e), 0);
	memcpy(b->hop, hops, sizeof hops);
	memcpy(b->piece, pieces, sizeof pieces);
	b->plan = (struct ptcp_plan){ .piece = b->piece, .hop = b->hop, .npieces = 3, .nhops = 4,
		.nhosts = 4, .info = { .makespan_s = 10 } };
}

static void expect(struct bench *b, const char *want)
{
	struct ptcp_err e = { 0 };
	int r = plan_verify(&b->plan, b->o, b->peak, &e);

	if (want == NULL ? r != 0 : r != PTCP_EVERIFY || strstr(e.msg, want) == NULL)
		fail_msg("got <%s> (%d), wanted <%s>", e.msg, r, want == NULL ? "success" : want);
	ptcp_overlay_free(b->o);
}

static void accepts_what_is_right(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b);
	/* 9 MB/s through K, which may take 10; the two links of S share 10. */
	expect(&b, NULL);
	assert_true(b.peak[K] < 1);
}

static void data(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b);
	b.piece[1].bytes--;
	expect(&b, "of the 100000000 bytes of S, the plan delivers 99999999");
	set_up(&b);
	b.piece[1].offset++;
	expect(&b, "of the 100000000 bytes of S, the plan delivers 90000000");
	set_up(&b);
	b.plan.npieces = 2;
	expect(&b, "of the 10000000 bytes of N, the plan delivers 0");
	set_up(&b);
	b.piece[3] = b.piece[0];
	b.plan.npieces = 4;
	expect(&b, "out of order");
	set_up(&b);
	assert_int_equal(ptcp_overlay_set_data(b.o, "S", 100000001, NULL), 0);
	expect(&b, "of the 100000001 bytes of S");
}

static void paths(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b);
	b.piece[0].nhops = 1;
	expect(&b, "does not lead from there to the destination");
	set_up(&b);
	b.hop[2] = (struct ptcp_plan_hop){ N, D, 0, 10 };
	expect(&b, "does not lead from there");
	set_up(&b);
	b.hop[0].to = N;
	b.hop[1].from = N;
	expect(&b, "forwarded by N, which is no relay");
	set_up(&b);
	b.hop[1].from = D;
	expect(&b, "crosses a missing link");
	set_up(&b);
	b.hop[0].to = 99; /* no host */
	b.hop[1].from = 99;
	expect(&b, "crosses a missing link");
	set_up(&b);
	b.hop[1].from = -1;
	expect(&b, "crosses a missing link");
	set_up(&b);
	b.hop[0].to = D; /* K forwards data that S sends elsewhere */
	expect(&b, "forwarded by K");
	set_up(&b);
	b.piece[0].nhops = 0;
	b.piece[0].first_hop = 2; /* where the path of another piece begins */
	expect(&b, "does not lead from there to the destination");
	set_up(&b);
	b.hop[3].end_s = 0;
	expect(&b, "which is not within the plan");
	set_up(&b);
	b.hop[3].end_s = 11;
	expect(&b, "which is not within the plan");
	set_up(&b);
	b.hop[3].start_s = -1;
	expect(&b, "which is not within the plan");
}

/* Another overlay; and streams on a link that has no curve. */
static void hosts_and_streams(void **state)
{
	unsigned short streams[4 * 4] = { 0 };
	struct bench b;

	(void)state;
	set_up(&b);
	b.plan.nhosts = 3;
	expect(&b, "the plan is for 3 hosts, the overlay has 4");
	set_up(&b);
	b.plan.streams = streams;
	expect(&b, NULL);
	set_up(&b);
	b.plan.streams = streams;
	streams[N * 4 + D] = 1;
	expect(&b, "link N>D has 1 stream, more than its curve allows");
}

static void causes(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b);
	b.hop[0].start_s = 0.5;
	expect(&b, "K forwards data of S before receiving it");
	set_up(&b);
	b.hop[1].end_s = 9.5;
	expect(&b, "K forwards data of S before receiving it");
	/* With slots the same plan is wrong: K must be a slot behind. */
	set_up(&b);
	b.plan.info.slot_s = 1;
	expect(&b, "K forwards data of S before receiving it");
	set_up(&b);
	b.plan.info.slot_s = 1;
	b.plan.info.makespan_s = 11;
	b.hop[1].start_s = 1;
	b.hop[1].end_s = 11;
	expect(&b, NULL);
	assert_true(b.peak[K] > 8.9e6 && b.peak[K] < 9.1e6);
	set_up(&b);
	b.plan.info.slot_s = 1;
	b.plan.info.makespan_s = 11;
	b.hop[1].start_s = 0.9;
	b.hop[1].end_s = 11;
	expect(&b, "K forwards data of S before receiving it");
}

static void rates(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b);
	b.hop[3].start_s = 0.01;
	expect(&b, "link N>D carries");
	set_up(&b);
	b.hop[2].start_s = 0.01;
	expect(&b, "link S>D carries");
	set_up(&b);
	b.piece[0].bytes = 92000000; /* 9.2 + 0.8 MB/s: within the shared rate */
	b.piece[1] = (struct plan_piece){ S, 92000000, 8000000, 2, 1 };
	expect(&b, NULL);
	set_up(&b);
	b.piece[0].bytes = 91000000; /* 9.1 and, for a while, 1 MB/s: not */
	b.piece[1] = (struct plan_piece){ S, 91000000, 9000000, 2, 1 };
	b.hop[2].end_s = 9;
	expect(&b, "shared bottleneck 1 carries");
	set_up(&b);
	b.hop[1].start_s = 2; /* 90 MB in 8 s out of K */
	expect(&b, "egress of K carries");
	set_up(&b);
	b.o->groups[0].rate_bps = 800000000;
	b.hop[0].end_s = 8; /* and into it */
	expect(&b, "ingress of K carries");
	/* Within the window K>D has no rate. */
	set_up(&b);
	b.plan.info.makespan_s = 25;
	b.hop[1] = (struct ptcp_plan_hop){ K, D, 15, 25 };
	b.o->hosts[K].storage_bytes = PTCP_UNKNOWN;
	expect(&b, "link K>D carries 72000000 bit/s from 20 to 25 s, more than its 0");
	set_up(&b);
	b.plan.info.makespan_s = 45;
	b.hop[1] = (struct ptcp_plan_hop){ K, D, 30, 45 };
	b.o->hosts[K].storage_bytes = PTCP_UNKNOWN;
	expect(&b, NULL);
	assert_true(b.peak[K] > 89.9e6 && b.peak[K] < 90.1e6);
}

static void storage(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b);
	b.plan.info.makespan_s = 20;
	b.hop[1] = (struct ptcp_plan_hop){ K, D, 10, 20 };
	expect(&b, "K stores 90000000 bytes for other hosts at 10 s, more than its 60000000");
	set_up(&b);
	b.plan.info.makespan_s = 16;
	b.hop[1] = (struct ptcp_plan_hop){ K, D, 6, 16 }; /* 54 MB held at 6 s */
	expect(&b, NULL);
	assert_true(b.peak[K] > 53.9e6 && b.peak[K] < 54.1e6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepts_what_is_right),
		cmocka_unit_test(data),
		cmocka_unit_test(paths),
		cmocka_unit_test(hosts_and_streams),
		cmocka_unit_test(causes),
		cmocka_unit_test(rates),
		cmocka_unit_test(storage),
	};
	return cmocka_run_group_tests_name("plan/verify", tests, NULL, NULL);
}
