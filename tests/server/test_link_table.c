/* Link estimates that a server publishes: which are accepted, and how they appear on the wire. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/err.h"
#include "server/link_table.h"
#include "wire/jobs.h"

static struct link_table table;
static struct outbox box;

static int setup(void **state)
{
	(void)state;
	memset(&box, 0, sizeof box);
	link_table_init(&table);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	link_table_fini(&table);
	buf_fini(&box.b);
	return 0;
}

static struct ptcp_published_link estimate(void)
{
	return (struct ptcp_published_link){ .to = "host.example:7000", .messages = 8, .streams = 4, .rate_bps = 1e9,
		.rate_error_bps = 1e7, .delay_s = 0.05, .delay_error_s = NAN, .age_s = 2, .why = NULL };
}

/* The next LINK of the outbox; false: none is left. */
static bool next(struct wire_link *f)
{
	const uint8_t *p = buf_head(&box.b);
	struct wire_header h;

	if (buf_len(&box.b) == 0)
		return false;
	assert_int_equal(wire_header_decode(&h, p, NULL), 0);
	assert_int_equal(h.type, WIRE_LINK);
	assert_int_equal(wire_link_decode(f, (struct span){ p + WIRE_HEADER_BYTES, h.length }, NULL), 0);
	buf_consume(&box.b, WIRE_HEADER_BYTES + h.length);
	return true;
}

static bool is(struct span s, const char *text) { return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0; }

/* A server that does not measure says so; one that measures no link publishes an empty list. */
static void none(void **state)
{
	(void)state;
	assert_false(link_table_put(&table, &box));
	assert_int_equal(link_table_set(&table, &(struct ptcp_published_link){ 0 }, 0, NULL), 0);
	assert_true(link_table_put(&table, &box));
	assert_int_equal(buf_len(&box.b), 0);
	assert_int_equal(link_table_set(&table, NULL, 0, NULL), 0);
	assert_false(link_table_put(&table, &box));
}

static void published(void **state)
{
	struct ptcp_published_link l[2] = { estimate(), { .to = "[2001:db8::1]", .why = "no answer" } };
	struct wire_link f;

	(void)state;
	l[0].delay_from_round_trip = true;
	assert_int_equal(link_table_set(&table, l, 2, NULL), 0);
	assert_int_equal(link_table_count(&table), 1);
	assert_true(link_table_put(&table, &box));
	assert_true(next(&f));
	assert_true(is(f.host, "host.example") && is(f.text, ""));
	assert_int_equal(f.port, 7000);
	assert_int_equal(f.rate_bps, 1000000000);
	assert_int_equal(f.rate_error_bps, 10000000);
	assert_int_equal(f.delay_ns, 50000000);
	assert_true(f.delay_error_ns == WIRE_LINK_NOT_KNOWN);
	assert_int_equal(f.messages, 8);
	assert_int_equal(f.streams, 4);
	assert_int_equal(f.flags, WIRE_LINK_ROUND_TRIP);
	assert_in_range(f.age_ms, 2000, 1000000); /* grows until it is put */
	assert_true(next(&f));
	assert_true(is(f.host, "2001:db8::1") && is(f.text, "no answer"));
	assert_int_equal(f.port, PTCP_PORT);
	assert_int_equal(f.rate_bps | f.age_ms | f.messages, 0);
	assert_false(next(&f));
}

/* Each member beyond its range is refused, and the table stays as before. */
static void ranges(void **state)
{
	struct ptcp_published_link good = estimate(), l;
	struct ptcp_err e;
	struct wire_link f;
	unsigned i;

	(void)state;
	assert_int_equal(link_table_set(&table, &good, 1, NULL), 0);
	for (i = 0; i < 14; i++) {
		l = estimate();
		switch (i) {
		case 0: l.streams = 0; break;
		case 1: l.streams = PTCP_STREAMS_MAX + 1; break;
		case 2: l.rate_bps = 0; break;
		case 3: l.rate_bps = -1; break;
		case 4: l.rate_bps = NAN; break;
		case 5: l.rate_bps = 2e15; break;
		case 6: l.rate_error_bps = -1; break;
		case 7: l.rate_error_bps = INFINITY; break;
		case 8: l.delay_s = -1e-9; break;
		case 9: l.delay_s = 3601; break;
		case 10: l.delay_error_s = 1e9; break;
		case 11: l.age_s = -1; break;
		case 12: l.age_s = NAN; break;
		case 13: l.to = "ssh://host"; break;
		}
		if (link_table_set(&table, &l, 1, &e) != PTCP_EUSAGE)
			fail_msg("case %u is accepted", i);
	}
	l = estimate();
	l.to = "";
	assert_true(link_table_set(&table, &l, 1, &e) < 0);
	assert_int_equal(link_table_set(&table, &good, WIRE_LINKS_MAX + 1, &e), PTCP_EUSAGE);
	assert_true(link_table_put(&table, &box));
	assert_true(next(&f));
	assert_true(is(f.host, "host.example"));
	assert_false(next(&f));
}

/* A long reason is cut to what a frame holds. */
static void a_long_reason(void **state)
{
	struct ptcp_published_link l = { .to = "h" };
	char why[2 * WIRE_TEXT_MAX];
	struct wire_link f;

	(void)state;
	memset(why, 'w', sizeof why);
	why[sizeof why - 1] = '\0';
	l.why = why;
	assert_int_equal(link_table_set(&table, &l, 1, NULL), 0);
	link_table_put(&table, &box);
	assert_true(next(&f));
	assert_int_equal(f.text.n, WIRE_TEXT_MAX);
}

#define link_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		link_test(none), link_test(published), link_test(ranges), link_test(a_long_reason),
	};

	return cmocka_run_group_tests_name("server/link_table", tests, NULL, NULL);
}
