/* Frames between an engine and its movers.
 * against: arithmetic */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "check.h"
#include "wire/mover.h"

#define CHECK(cases, check) check(cases, sizeof cases / sizeof *cases)

static void from_the_engine(void **state)
{
	struct wire_stream s = { .handle = 7, .number = 3, .family = 4,
		.flags = WIRE_STREAM_VERIFY | WIRE_STREAM_PATIENT,
		.segment_bytes = 1280, .timeout_ms = 30000, .connect_ms = 10000, .port = 7811,
		.host = text_span("192.0.2.1"),
		.label = text_span("ab12"), .congestion = text_span("cubic"), .spool_bytes = 1 << 20,
		.route_session = UINT64_C(0xb0b1b2b3b4b5b6b7), .relays = text_span("r1:1,r2:2") }, d;
	const struct wire_pass pass = { 7, text_span("gone") };
	struct wire_pass dp;
	const struct wire_source o = { 0x10002, 1, 300000, 77, -1, 1700000000, 999999999, 5, text_span("run7/a") };
	const struct wire_forget forget = { 0x10002 };
	const struct wire_check check = { 7, 5000000000, 1 };
	const struct wire_stop stop = { 7, 1 };
	const struct wire_pace pace = { 50000000, text_span("bbr") };
	struct wire_invite v = { .flags = WIRE_STREAM_VERIFY | WIRE_STREAM_RECEIVE, .streams = 16, .timeout_ms = 30000,
		.near = text_span("192.0.2.1"), .congestion = text_span("cubic") }, dv;
	struct wire_source source;
	uint8_t f[WIRE_SOURCE_MAX_BYTES];
	struct span in;
	unsigned i;

	(void)state;
	for (i = 0; i < 32; i++) {
		s.session[i % 16] = (uint8_t)(0xa0 + i % 16);
		s.key[i] = (uint8_t)(0x10 + i);
		s.peer[i] = v.peer[i] = (uint8_t)(0x40 + i);
		v.run[i % 16] = v.session[i % 16] = s.session[i % 16];
		v.key[i] = s.key[i];
		v.join[i] = (uint8_t)(0x60 + i);
	}
	in = check_golden("stream", f, wire_stream_encode(f, &s));
	assert_int_equal(wire_stream_decode(&d, in, NULL), 0);
	assert_int_equal(d.handle, 7);
	assert_int_equal(d.number, 3);
	assert_memory_equal(d.session, s.session, sizeof s.session);
	assert_memory_equal(d.key, s.key, sizeof s.key);
	assert_memory_equal(d.peer, s.peer, sizeof s.peer);
	assert_int_equal(d.flags, s.flags);
	assert_int_equal(d.segment_bytes, 1280);
	assert_int_equal(d.timeout_ms, 30000);
	assert_int_equal(d.connect_ms, 10000);
	assert_int_equal(d.port, 7811);
	assert_span(d.host, "192.0.2.1");
	assert_span(d.label, "ab12");
	assert_span(d.congestion, "cubic");
	assert_true(d.spool_bytes == 1 << 20 && d.route_session == s.route_session);
	assert_span(d.relays, "r1:1,r2:2");
	drop(in);
	in = check_golden("pass", f, wire_pass_encode(f, &pass));
	assert_int_equal(wire_pass_decode(&dp, in, NULL), 0);
	assert_int_equal(dp.handle, 7);
	assert_span(dp.grant, "gone");
	drop(in);
	in = check_golden("source", f, wire_source_encode(f, &o));
	assert_int_equal(wire_source_decode(&source, in, NULL), 0);
	assert_int_equal(source.id, 0x10002);
	assert_int_equal(source.root, 1);
	assert_int_equal(source.size_bytes, 300000);
	assert_int_equal(source.ino, 77);
	assert_int_equal(source.mtime_s, -1);
	assert_int_equal(source.mtime_ns, 999999999);
	assert_int_equal(source.ctime_s, 1700000000);
	assert_int_equal(source.ctime_ns, 5);
	assert_span(source.path, "run7/a");
	drop(in);
	drop(check_golden("forget", f, wire_forget_encode(f, &forget)));
	drop(check_golden("check", f, wire_check_encode(f, &check)));
	drop(check_golden("stop", f, wire_stop_encode(f, &stop)));
	drop(check_golden("pace", f, wire_pace_encode(f, &pace)));
	in = check_golden("invite", f, wire_invite_encode(f, &v));
	assert_int_equal(wire_invite_decode(&dv, in, NULL), 0);
	assert_memory_equal(dv.run, v.run, sizeof v.run);
	assert_memory_equal(dv.key, v.key, sizeof v.key);
	assert_memory_equal(dv.session, v.session, sizeof v.session);
	assert_memory_equal(dv.join, v.join, sizeof v.join);
	assert_memory_equal(dv.peer, v.peer, sizeof v.peer);
	assert_true(dv.flags == v.flags && dv.streams == 16 && dv.timeout_ms == 30000);
	assert_span(dv.near, "192.0.2.1");
	assert_span(dv.congestion, "cubic");
	drop(in);
}

static void from_the_mover(void **state)
{
	const struct wire_mover mover = { text_span("node17") };
	const struct wire_connected connected = { 7 };
	struct wire_accepted accepted = { 7, 3, { 0 } };
	const struct wire_lost lost = { 7, 2, 1, 4096, 1500, { 3, 33, text_span("gone") } };
	struct wire_hop hop = { .handle = 7, .hop = 1, .certificates = text_span("gone") }, dh;
	const struct wire_gone gone = { 7 };
	const struct wire_unread unread = { 7, 1, { 14, 8, text_span("gone") } };
	const struct wire_traffic t = { 7, 1000000, 1, 1, 2, 3, 4, 5, 6, 7000, 8000, 9, 10, 11, 12, 13, 1, 1,
		text_span("cubic") };
	struct wire_traffic d;
	struct wire_lost l;
	uint8_t f[WIRE_UNREAD_MAX_BYTES];
	struct span in;
	unsigned i;

	(void)state;
	drop(check_golden("mover", f, wire_mover_encode(f, &mover)));
	drop(check_golden("connected", f, wire_connected_encode(f, &connected)));
	for (i = 0; i < sizeof accepted.peer; i++)
		hop.peer[i] = accepted.peer[i] = (uint8_t)(0xa0 + i);
	drop(check_golden("accepted", f, wire_accepted_encode(f, &accepted)));
	in = check_golden("hop", f, wire_hop_encode(f, &hop));
	assert_int_equal(wire_hop_decode(&dh, in, NULL), 0);
	assert_true(dh.handle == 7 && dh.hop == 1);
	assert_memory_equal(dh.peer, hop.peer, sizeof hop.peer);
	assert_span(dh.certificates, "gone");
	drop(in);
	in = check_golden("lost", f, wire_lost_encode(f, &lost));
	assert_int_equal(wire_lost_decode(&l, in, NULL), 0);
	assert_true(l.cause == 2 && l.hop == 1);
	assert_int_equal(l.why.code, 3);
	assert_int_equal(l.acked_bytes, 4096);
	assert_int_equal(l.silent_ms, 1500);
	assert_span(l.why.text, "gone");
	drop(in);
	drop(check_golden("gone", f, wire_gone_encode(f, &gone)));
	drop(check_golden("unread", f, wire_unread_encode(f, &unread)));
	in = check_golden("traffic", f, wire_traffic_encode(f, &t));
	assert_int_equal(wire_traffic_decode(&d, in, NULL), 0);
	assert_int_equal(d.moved_bytes, 1000000);
	assert_int_equal(d.retransmits, 6);
	assert_int_equal(d.rtt_us, 7000);
	assert_int_equal(d.buffer_us, 13);
	assert_int_equal(d.timeouts, 1);
	assert_span(d.congestion, "cubic");
	drop(in);
}

static void of_receivers(void **state)
{
	static const uint8_t item[] = { 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 255,
		WIRE_WRITTEN_CORRUPT };
	const struct wire_target target = { 0x10002, 1, 300000, 77, WIRE_TARGET_SPARSE | WIRE_TARGET_DURABLE,
		text_span("in/.ptcp-000000000000.part") };
	const struct wire_want want = { 7, 0x10002 };
	const struct wire_wrote wrote = { 7, 1, { item, sizeof item } };
	const struct wire_unwritten unwritten = { 7, 0x10002, 3, { 28, 9, text_span("gone") } };
	const struct wire_close close = { 0x10002 };
	const struct wire_closed closed = { 0x10002 };
	uint8_t f[WIRE_TARGET_MAX_BYTES];
	struct wire_unwritten u;
	struct wire_target t;
	struct wire_wrote w;
	struct span in;

	(void)state;
	in = check_golden("target", f, wire_target_encode(f, &target));
	assert_int_equal(wire_target_decode(&t, in, NULL), 0);
	assert_int_equal(t.id, 0x10002);
	assert_int_equal(t.root, 1);
	assert_int_equal(t.size_bytes, 300000);
	assert_int_equal(t.ino, 77);
	assert_int_equal(t.flags, target.flags);
	assert_span(t.path, "in/.ptcp-000000000000.part");
	drop(in);
	drop(check_golden("close", f, wire_close_encode(f, &close)));
	drop(check_golden("want", f, wire_want_encode(f, &want)));
	in = check_golden("wrote", f, wire_wrote_encode(f, &wrote));
	assert_int_equal(wire_wrote_decode(&w, in, NULL), 0);
	assert_int_equal(w.n, 1);
	assert_memory_equal(w.items.p, item, sizeof item);
	drop(in);
	in = check_golden("unwritten", f, wire_unwritten_encode(f, &unwritten));
	assert_int_equal(wire_unwritten_decode(&u, in, NULL), 0);
	assert_int_equal(u.block, 3);
	assert_int_equal(u.why.code, 28);
	assert_span(u.why.text, "gone");
	drop(in);
	drop(check_golden("closed", f, wire_closed_encode(f, &closed)));
}

static void lists(void **state)
{
	uint8_t bytes[WIRE_EXTENTS_MAX * WIRE_EXTENT_BYTES], f[WIRE_SEND_MAX_BYTES];
	struct wire_send send = { 7, WIRE_EXTENTS_MAX, { bytes, sizeof bytes } }, d;
	struct wire_sent sent = { 7, WIRE_EXTENTS_MAX, { bytes, WIRE_EXTENTS_MAX * WIRE_TERM_BYTES } };
	size_t n;

	(void)state;
	memset(bytes, 0xff, sizeof bytes);
	n = wire_send_encode(f, &send);
	assert_int_equal(n, WIRE_SEND_MAX_BYTES);
	check_frame("largest SEND", f, n);
	assert_int_equal(wire_send_decode(&d, (struct span){ f + WIRE_HEADER_BYTES, n - WIRE_HEADER_BYTES }, NULL), 0);
	assert_int_equal(d.n, WIRE_EXTENTS_MAX);
	assert_int_equal(d.extents.n, sizeof bytes);
	n = wire_sent_encode(f, &sent);
	assert_int_equal(n, WIRE_SENT_MAX_BYTES);
	check_frame("largest SENT", f, n);
}

static void rules(void **state)
{
	static const struct patch cases[] = {
		{ "more extents than are there", "send", 4, "03", false },
		{ "fewer extents than are there", "send", 4, "01", false },
		{ "no extent", "send", 4, "00", false },
		{ "more terms than are there", "sent", 4, "03", false },
		{ "no term", "sent", 4, "00", false },
		{ "an unknown flag", "stream", 88, "10", false },
		{ "all flags", "stream", 88, "0f", true },
		{ "an unknown flag of a target", "target", 26, "08", false },
		{ "all flags of a target", "target", 26, "07", true },
		{ "an empty target", "target", 10, "0000000000000000", false },
		{ "a NUL in the path of a part", "target", 29, "00", false },
		{ "more results than are there", "wrote", 4, "02", false },
		{ "no result", "wrote", 4, "00", false },
		{ "a want without a file", "want", 4, "0000000000000002", false },
		{ "an unwritten block without a code", "unwritten", 16, "0000", false },
		{ "an unknown family", "stream", 87, "05", false },
		{ "an invitation for no stream", "invite", 130, "0000", false },
		{ "an invitation without a limit", "invite", 132, "00000000", false },
		{ "a flag that no stream has", "invite", 129, "10", false },
		{ "any family", "stream", 87, "00", true },
		{ "no time to connect", "stream", 95, "00000000", false },
		{ "port 0", "stream", 115, "0000", false },
		{ "more relays than are there", "stream", 120, "000a", false },
		{ "a space among the relays", "stream", 144, "20", false },
		{ "an empty grant", "pass", 4, "0000", false },
		{ "certificates that are not there", "hop", 37, "0005", false },
		{ "an id without a count", "source", 0, "0000000000000002", false },
		{ "a size over the limit", "source", 10, "0001000000000001", false },
		{ "a second of more nanoseconds", "source", 42, "3b9aca00", false },
		{ "a NUL in the path", "source", 52, "00", false },
		{ "any other byte in the path", "source", 52, "ff", true },
		{ "a slot that does not exist", "forget", 6, "4000", false },
		{ "neither reset nor not", "stop", 4, "02", false },
		{ "a space in the host's name", "mover", 1, "20", false },
		{ "a failure without a code", "lost", 6, "0000", false },
		{ "an extent that no job has", "unread", 4, "40", false },
		{ "neither on disk nor not", "traffic", 12, "02", false },
	};

	(void)state;
	CHECK(cases, check_patches);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(from_the_engine), cmocka_unit_test(from_the_mover), cmocka_unit_test(of_receivers),
		cmocka_unit_test(lists), cmocka_unit_test(rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
