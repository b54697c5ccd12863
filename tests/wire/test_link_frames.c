/* LINKS and LINK.
 * against: arithmetic */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "check.h"

#define CHECK(cases, check) check(cases, sizeof cases / sizeof *cases)

static void links_golden(void **state)
{
	uint8_t f[WIRE_LINKS_MAX_BYTES];

	(void)state;
	drop(check_golden("links", f, wire_links_encode(f)));
}

static const struct wire_link some = { 400000000, 8000000, 20000000, 500000, 61000, 12, 4, 7811, 0, { NULL, 0 },
	{ NULL, 0 } };

static void link_golden(void **state)
{
	struct wire_link s = some, d;
	uint8_t f[WIRE_LINK_MAX_BYTES];
	struct span in;

	(void)state;
	s.host = text_span("::1");
	s.text = text_span("gone");
	in = check_golden("link", f, wire_link_encode(f, &s));
	assert_int_equal(wire_link_decode(&d, in, NULL), 0);
	assert_int_equal(d.rate_bps, 400000000);
	assert_int_equal(d.rate_error_bps, 8000000);
	assert_int_equal(d.delay_ns, 20000000);
	assert_int_equal(d.delay_error_ns, 500000);
	assert_int_equal(d.age_ms, 61000);
	assert_int_equal(d.messages, 12);
	assert_int_equal(d.streams, 4);
	assert_int_equal(d.port, 7811);
	assert_int_equal(d.flags, 0);
	assert_span(d.host, "::1");
	assert_span(d.text, "gone");
	drop(in);
	s = (struct wire_link){ 1000000, WIRE_LINK_NOT_KNOWN, 20000000, WIRE_LINK_NOT_KNOWN, 0, 1, 1, 7811,
		WIRE_LINK_ROUND_TRIP, text_span("b"), text_span("") };
	drop(check_golden("link-round-trip", f, wire_link_encode(f, &s)));
	s = (struct wire_link){ .port = 7811, .host = text_span("b"), .text = text_span("gone") };
	drop(check_golden("link-unknown", f, wire_link_encode(f, &s)));
}

static void link_rules(void **state)
{
	static const struct patch cases[] = {
		{ "the largest rate", "link", 0, "00038d7ea4c68000", true },
		{ "a rate too large", "link", 0, "00038d7ea4c68001", false },
		{ "a rate that is negative", "link", 0, "ffffffffffffffff", false },
		{ "no rate, but the rest", "link", 0, "0000000000000000", false },
		{ "an error that is not known", "link", 8, "ffffffffffffffff", true },
		{ "an error too large", "link", 8, "00038d7ea4c68001", false },
		{ "a negative error", "link", 8, "fffffffffffffffe", false },
		{ "a delay of an hour", "link", 16, "0000034630b8a000", true },
		{ "and a nanosecond more", "link", 16, "0000034630b8a001", false },
		{ "no delay", "link", 16, "0000000000000000", true },
		{ "a delay that is not known", "link", 16, "ffffffffffffffff", false },
		{ "an error of the delay that is not known", "link", 24, "ffffffffffffffff", true },
		{ "any age", "link", 32, "ffffffffffffffff", true },
		{ "no messages", "link", 40, "00000000", false },
		{ "no streams", "link", 44, "0000", false },
		{ "no port", "link", 46, "0000", false },
		{ "an unknown flag", "link", 48, "02", false },
		{ "a host that is not there", "link", 49, "ff", false },
		{ "no host", "link-round-trip", 49, "00", false },
		{ "a newline in the host", "link", 52, "0a", false },
		{ "a blank in the host", "link", 52, "20", false },
		{ "any byte in the text", "link", 55, "1b", true },
		{ "nothing is known, but an error", "link-unknown", 15, "01", false },
		{ "nothing is known, but streams", "link-unknown", 45, "01", false },
		{ "nothing is known, but a round trip", "link-unknown", 48, "01", false },
	};

	(void)state;
	CHECK(cases, check_patches);
}

static void link_largest(void **state)
{
	static uint8_t host[WIRE_HOST_MAX], text[WIRE_TEXT_MAX];
	uint8_t f[WIRE_LINK_MAX_BYTES + 1];
	struct wire_link s = some;
	bool same;
	size_t n;

	(void)state;
	memset(host, 'h', sizeof host);
	memset(text, 't', sizeof text);
	s.host = (struct span){ host, sizeof host };
	s.text = (struct span){ text, sizeof text };
	n = wire_link_encode(f, &s);
	assert_int_equal(n, WIRE_LINK_MAX_BYTES);
	check_frame("largest LINK", f, n);
	put_u16(f + WIRE_HEADER_BYTES + 50, WIRE_TEXT_MAX + 1); /* one byte of text more */
	f[n] = 't';
	set_length(f, n + 1);
	assert_int_equal(recode_exact(f, n + 1, &same), PTCP_EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_golden),
		cmocka_unit_test(link_golden),
		cmocka_unit_test(link_rules),
		cmocka_unit_test(link_largest),
	};

	return cmocka_run_group_tests_name("wire/link_frames", tests, NULL, NULL);
}
