/* against: policy */
#include "one.h"

#include <stdlib.h>
#include <string.h>

#include "core/err.h"

/* ---- Agreeing ---- */

static void versions(void **state)
{
	static const struct { uint16_t min, max; bool fits; } of[] = {
		{ 1, 1, true }, { 1, 9, true }, { 2, 3, false }
	};
	struct wire_hello h = { .timeout_ms = 1000, .quiet_ms = 1000, .max_entries = WIRE_EARLY_ENTRIES, .max_streams = 1 };
	struct span p;
	struct one o;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof of / sizeof *of; i++) {
		one_init(&o, i & 1, true);
		one_forget(&o);
		h.version_min = of[i].min;
		h.version_max = of[i].max;
		ONE_PUT(&o, hello, &h);
		assert_int_equal(one_broke(&o), !of[i].fits);
		if (!of[i].fits) {
			assert_non_null(strstr(o.why.msg, "version"));
			assert_true(one_found(&o, WIRE_ERROR, &p));
		}
		one_fini(&o);
	}
}

static void both_say_hello_at_once(void **state)
{
	struct wire_hello h;
	struct span p;
	struct one o;

	(void)state;
	one_init(&o, false, true);
	assert_int_equal(one_said(&o, &p), WIRE_HELLO);
	assert_int_equal(wire_hello_decode(&h, p, NULL), 0);
	assert_true(h.timeout_ms == ONE_TIMEOUT_NS / NS_PER_MS && h.max_entries == WIRE_SLOTS);
	assert_int_equal(one_said(&o, &p), 0);
	one_fini(&o);
}

static void keep_code(void *arg, const struct ptcp_err *why)
{
	*(int *)arg = why != NULL ? why->code : 0;
}

static enum wire_busy never_busy(void *arg)
{
	(void)arg;
	return WIRE_IDLE;
}

/* Where blocks have to travel on the control connection both must be able to; elsewhere nobody offers it. */
static void who_has_one_channel(void **state)
{
	static const struct engine_ops ops = { .busy = never_busy, .ended = keep_code };
	static const uint16_t abilities[] = { 7, WIRE_ABLE_ONE_CHANNEL };
	struct wire_hello h = { .version_min = 1, .version_max = 1, .timeout_ms = 1000, .quiet_ms = 1000, .max_entries = WIRE_EARLY_ENTRIES,
		.max_streams = 1 };
	struct mono now = { 1 };
	struct engine *s;
	struct wire_hello ours;
	uint8_t frame[WIRE_HELLO_MAX_BYTES];
	unsigned i;
	int code;
	struct engine_opts so = { .one_channel = true, .software = "x", .timeout_ns = ONE_TIMEOUT_NS,
		.max_entries = WIRE_EARLY_ENTRIES, .max_streams = 1, .ops = &ops, .arg = &code };

	(void)state;
	memcpy(h.abilities, abilities, sizeof abilities);
	for (i = 0; i <= 2; i++) {
		code = 0;
		assert_int_equal(engine_new(&s, &so, NULL, now, NULL), 0);
		assert_int_equal(wire_hello_decode(&ours, (struct span){ buf_head(&engine_outbox(s)->b) +
		    WIRE_HEADER_BYTES, buf_len(&engine_outbox(s)->b) - WIRE_HEADER_BYTES }, NULL), 0);
		assert_true(ours.n_abilities == 1 && ours.abilities[0] == WIRE_ABLE_ONE_CHANNEL);
		h.n_abilities = (uint8_t)i;
		engine_input(s, frame, wire_hello_encode(frame, &h), now);
		assert_int_equal(code, i == 2 ? 0 : PTCP_EPROTO);
		engine_free(s);
	}
}

static void other_versions(void **state)
{
	static const uint16_t versions[][2] = { { 0, 0 }, { 2, 2 }, { 2, UINT16_MAX } };
	struct wire_hello h = { .timeout_ms = 1000, .quiet_ms = 1000, .max_entries = WIRE_EARLY_ENTRIES, .max_streams = 1 };
	struct one o;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof versions / sizeof *versions; i++) {
		one_init(&o, false, true);
		h.version_min = versions[i][0];
		h.version_max = versions[i][1];
		ONE_PUT(&o, hello, &h);
		assert_true(one_broke(&o) && strstr(o.why.msg, "update the older side") != NULL);
		one_fini(&o);
	}
}

/* Where one end does not let sessions linger nobody may acknowledge the control stream. */
static void a_control_ack_that_was_not_agreed(void **state)
{
	struct wire_hello h = { .version_min = 1, .version_max = 1, .timeout_ms = 1000, .quiet_ms = 1000, .max_entries = WIRE_EARLY_ENTRIES, .max_streams = 1 };
	struct wire_control_ack f = { 1 };
	struct one o;

	(void)state;
	one_init(&o, false, true);
	assert_true(engine_linger_ns(o.s) > 0); /* offered */
	ONE_PUT(&o, hello, &h);
	assert_int_equal(engine_linger_ns(o.s), 0);
	ONE_PUT(&o, control_ack, &f);
	assert_true(one_broke(&o));
	one_fini(&o);
}

/* OPEN does not wait for the acceptor's HELLO. */
static void hello_and_open_at_once(void **state)
{
	struct wire_open f;
	struct span p;
	struct one o;

	(void)state;
	one_init(&o, true, true);
	assert_int_equal(one_said(&o, &p), WIRE_HELLO);
	assert_int_equal(one_said(&o, &p), WIRE_OPEN);
	assert_int_equal(wire_open_decode(&f, p, NULL), 0);
	assert_true(f.streams == 3 && f.n_paths == 1 && f.paths.n > 0);
	one_hello(&o);
	assert_int_equal(one_said(&o, &p), 0);
	one_fini(&o);
}

/* Both in one piece. */
static void takes_hello_and_open_at_once(void **state)
{
	struct one starter, o;

	(void)state;
	one_init(&starter, true, true);
	one_init(&o, false, false);
	one_input(&o, buf_head(&engine_outbox(starter.s)->b), buf_len(&engine_outbox(starter.s)->b));
	assert_int_equal(o.opened, 1);
	assert_int_equal(o.ended, 0);
	one_fini(&o);
	one_fini(&starter);
}

static void more_streams_than_requested(void **state)
{
	struct wire_opened granted = { .streams = 4 };
	struct one o;

	(void)state;
	one_init(&o, true, true);
	one_hello(&o);
	ONE_PUT(&o, opened, &granted);
	assert_true(one_broke(&o));
	one_fini(&o);
}

static void a_granted_cipher_that_was_not_asked_for(void **state)
{
	struct wire_opened granted = { .streams = 1, .cipher = 3 };
	struct one o;

	(void)state;
	one_init(&o, true, true);
	one_hello(&o);
	ONE_PUT(&o, opened, &granted);
	assert_true(one_broke(&o));
	one_fini(&o);
}

/* ---- A busy acceptor ---- */

/* WAITING keeps the starter from its time-out, until OPENED. */
static void waits_for_room(void **state)
{
	struct wire_waiting f;
	struct wire_open open;
	struct span p;
	struct one o;
	int i;

	(void)state;
	one_init(&o, true, true);
	one_hello(&o);
	assert_true(one_found(&o, WIRE_OPEN, &p));
	assert_int_equal(wire_open_decode(&open, p, NULL), 0);
	assert_int_equal(open.wait_ms, ONE_WAIT_MS);
	for (i = 0; i < 6; i++) {
		f.ahead = 20 - (uint32_t)i;
		ONE_PUT(&o, waiting, &f);
		assert_int_equal(o.ahead, 20 - i);
		one_tick(&o, ONE_TIMEOUT_NS - 1);
		assert_int_equal(o.ended, 0);
	}
	assert_int_equal(o.waited, 6);
	one_opened(&o);
	assert_int_equal(o.running, 1);
	one_fini(&o);
}

/* Requested were 60 s. */
static void waits_no_longer_than_requested(void **state)
{
	struct wire_waiting f = { 0 };
	const uint64_t limit_s = (ONE_WAIT_MS + ONE_TIMEOUT_NS / NS_PER_MS) / 1000;
	struct one o;
	unsigned s;

	(void)state;
	one_init(&o, true, true);
	one_hello(&o);
	for (s = 0; o.ended == 0 && s < 200; s++) {
		ONE_PUT(&o, waiting, &f);
		one_tick(&o, NS_PER_S);
	}
	assert_int_equal(o.why.code, PTCP_EBUSY);
	assert_in_range(s, limit_s, limit_s + 3);
	one_fini(&o);
}

static void waits_only_on_request(void **state)
{
	struct wire_open f = { .role = WIRE_ACCEPTOR_DISCARDS, .streams = 3 };
	struct wire_waiting waiting = { 0 };
	struct one o;

	(void)state;
	one_as_open(&o, true, &f);
	one_hello(&o);
	ONE_PUT(&o, waiting, &waiting);
	assert_true(one_broke(&o));
	one_fini(&o);
}

static void tells_the_position(void **state)
{
	struct wire_waiting f;
	struct span p;
	struct one o;

	(void)state;
	one_init(&o, false, false);
	one_hello(&o);
	engine_wait(o.s, 3);
	assert_false(one_found(&o, WIRE_WAITING, &p)); /* nothing was requested yet */
	one_open(&o, false, true);
	engine_wait(o.s, 3);
	assert_true(one_found(&o, WIRE_WAITING, &p));
	assert_int_equal(wire_waiting_decode(&f, p, NULL), 0);
	assert_int_equal(f.ahead, 3);
	one_accept(&o);
	one_forget(&o);
	engine_wait(o.s, 2);
	assert_false(one_found(&o, WIRE_WAITING, &p));
	one_fini(&o);
}

/* ---- Bytes ---- */

static void byte_by_byte(void **state)
{
	struct one starter, o;
	const uint8_t *bytes;
	size_t n, i;

	(void)state;
	one_init(&starter, true, true);
	one_init(&o, false, false);
	bytes = buf_head(&engine_outbox(starter.s)->b);
	n = buf_len(&engine_outbox(starter.s)->b);
	for (i = 0; i < n; i++) {
		assert_int_equal(o.opened, 0);
		one_input(&o, bytes + i, 1);
	}
	assert_int_equal(o.opened, 1);
	one_fini(&o);
	one_fini(&starter);
}

static void nonsense(void **state)
{
	static const uint8_t of[][WIRE_HEADER_BYTES] = {
		{ 1, 2, 0, 0, 0, 0, 0, 1 },       /* an unknown flag */
		{ 1, 1, 0, 0, 0, 0, 8, 0 },       /* a HELLO too long */
		{ 200, 1, 0, 0, 0, 0, 0, 0 },     /* unknown and critical */
		{ 200, 0, 0, 0, 0, 1, 0, 1 },     /* unknown and too long to skip */
		{ 32, 1, 0, 0, 0, 16, 0, 0 },     /* a BLOCK of a megabyte */
		{ 1, 1, 0, 0, 0, 0, 0, 0 },       /* an empty HELLO */
	};
	struct span p;
	struct one o;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof of / sizeof *of; i++) {
		one_init(&o, false, true);
		one_input(&o, of[i], sizeof of[i]);
		assert_true(one_broke(&o));
		assert_true(one_found(&o, WIRE_ERROR, &p));
		one_hello(&o); /* is ignored */
		assert_int_equal(o.ended, 1);
		assert_int_equal(engine_deadline(o.s).ns, MONO_NEVER.ns);
		one_fini(&o);
	}
}

static void the_peers_codes(void **state)
{
	static const int keeps[] = { PTCP_ENOMEM, PTCP_EREFUSED, PTCP_EVERIFY, PTCP_EPROTO, PTCP_ETIMEOUT,
		PTCP_EIO, PTCP_ENOSPC, PTCP_ECHANGED, PTCP_ENOTYET, PTCP_EBUSY, PTCP_ESUPERSEDED, PTCP_EVANISHED,
		PTCP_EPARENT };
	struct wire_error f = { { 0, 0, { (const uint8_t *)"a\033b", 3 } } };
	struct one o;
	size_t i;
	int code;

	(void)state;
	for (code = 0; code <= 23; code++) {
		int want = PTCP_EPEER;

		for (i = 0; i < sizeof keeps / sizeof *keeps; i++)
			want = keeps[i] == -code ? -code : want;
		f.why.code = (uint16_t)code;
		one_run(&o, true, true);
		ONE_PUT(&o, error, &f);
		assert_int_equal(o.why.code, want);
		assert_null(strchr(o.why.msg, '\033'));
		one_fini(&o);
		one_run_as(&o, true, true); /* its request */
		ONE_PUT(&o, error, &f);
		assert_int_equal(o.why.code, code == -PTCP_EUSAGE ? PTCP_EUSAGE : want);
		one_fini(&o);
	}
	f.why.text.n = 0;
	one_run(&o, true, true);
	ONE_PUT(&o, error, &f);
	assert_true(o.why.msg[0] != '\0');
	one_fini(&o);
}

/* ---- Time ---- */

static void ticks(struct one *o, uint64_t for_ns)
{
	uint64_t end = o->now_ns + for_ns, at;

	while (o->now_ns < end && o->ended == 0) {
		at = engine_deadline(o->s).ns;
		at = at > end ? end : at;
		assert_true(at >= o->now_ns);
		one_tick(o, at - o->now_ns);
	}
}

static void a_silent_peer(void **state)
{
	uint64_t start;
	struct span p;
	struct one o;
	int at;

	(void)state;
	for (at = 0; at < 4; at++) {
		one_init(&o, at == 1, true);
		if (at >= 1)
			one_hello(&o);
		if (at >= 2)
			one_open(&o, true, true);
		if (at >= 3)
			one_accept(&o);
		start = o.now_ns;
		ticks(&o, 2 * ONE_TIMEOUT_NS);
		assert_int_equal(o.ended, 1);
		assert_int_equal(o.why.code, PTCP_ETIMEOUT);
		assert_int_equal(o.now_ns - start, ONE_TIMEOUT_NS);
		assert_true(one_found(&o, WIRE_ERROR, &p)); /* should it still listen */
		one_fini(&o);
	}
}

/* Pings at least every third of the peer's time-out (9 s), numbered, and say what the disk does. */
static void pings(void **state)
{
	struct wire_ping f, ours = { WIRE_IDLE, 1 };
	struct span p;
	struct one o;
	unsigned i, n = 0;

	(void)state;
	one_run(&o, true, true);
	o.busy = WIRE_READING;
	for (i = 0; i < 12; i++) {
		ticks(&o, NS_PER_S);
		ONE_PUT(&o, ping, &ours); /* it is alive */
		while (one_said(&o, &p) == WIRE_PING) {
			assert_int_equal(wire_ping_decode(&f, p, NULL), 0);
			assert_int_equal(f.tick, ++n);
			assert_int_equal(f.busy, WIRE_READING);
		}
	}
	assert_int_equal(n, 4);
	one_fini(&o);
}

/* Who is busy no more says so at once, as the peer waits with all else; who is busy again, in its turn, unless a rate is
 * why. */
static void idle_again(void **state)
{
	struct wire_ping f;
	struct span p;
	struct one o;

	(void)state;
	one_run(&o, true, true);
	o.busy = WIRE_WRITING;
	one_tick(&o, 4 * NS_PER_S);
	assert_true(one_found(&o, WIRE_PING, &p) && wire_ping_decode(&f, p, NULL) == 0);
	assert_int_equal(f.busy, WIRE_WRITING);
	o.busy = WIRE_IDLE;
	one_tick(&o, NS_PER_S / 4);
	assert_true(one_found(&o, WIRE_PING, &p) && wire_ping_decode(&f, p, NULL) == 0);
	assert_int_equal(f.busy, WIRE_IDLE);
	o.busy = WIRE_WRITING;
	one_tick(&o, NS_PER_S / 4);
	assert_false(one_found(&o, WIRE_PING, &p));
	o.paced = true;
	one_tick(&o, NS_PER_S / 4);
	assert_true(one_found(&o, WIRE_PING, &p) && wire_ping_decode(&f, p, NULL) == 0);
	assert_int_equal(f.busy, WIRE_WRITING);
	one_tick(&o, NS_PER_S / 4);
	assert_false(one_found(&o, WIRE_PING, &p)); /* once */
	one_fini(&o);
}

/* A peer that is alive but owes us something and does nothing: idle pings do not help it, busy ones do. */
static void idle_and_busy_pings(void **state)
{
	struct wire_ping f = { WIRE_IDLE, 1 };
	struct one o;
	unsigned i, busy;

	(void)state;
	for (busy = 0; busy < 2; busy++) {
		one_run(&o, true, true);
		one_offer(&o, WIRE_FILE, 10);
		f.busy = busy ? WIRE_WRITING : WIRE_IDLE;
		for (i = 0; i < 40 && o.ended == 0; i++) {
			ticks(&o, NS_PER_S);
			ONE_PUT(&o, ping, &f);
		}
		assert_int_equal(o.ended, !busy);
		if (!busy)
			assert_true(o.why.code == PTCP_ETIMEOUT && strstr(o.why.msg, "progress") != NULL);
		one_fini(&o);
	}
}

/* A ping a second until it has ended, for so long at most: how long that was. */
static uint64_t pinged(struct one *o, const struct wire_ping *f, uint64_t most_ns)
{
	uint64_t start = o->now_ns;

	while (o->now_ns - start < most_ns && o->ended == 0) {
		ticks(o, NS_PER_S);
		ONE_PUT(o, ping, f);
		one_forget(o);
	}
	return o->now_ns - start;
}

/* But not for ever: an hour with the usual time-out, a day for what must be read again. Progress begins it anew. */
static void busy_for_ever(void **state)
{
	static const enum wire_busy kinds[] = { WIRE_READING, WIRE_WRITING, WIRE_SYNCING, WIRE_VERIFYING };
	struct wire_ping f = { WIRE_IDLE, 1 };
	uint64_t id, believed, lasted;
	struct one o;
	unsigned i;

	(void)state;
	for (i = 0; i < 4; i++) {
		one_run(&o, true, true);
		id = one_offer(&o, WIRE_FILE, 10);
		f.busy = (uint8_t)kinds[i];
		believed = ONE_TIMEOUT_NS * (kinds[i] == WIRE_VERIFYING ? ENGINE_VERIFYING_TIMEOUTS :
		    ENGINE_BUSY_TIMEOUTS);
		pinged(&o, &f, believed - NS_PER_S);
		assert_int_equal(o.ended, 0);
		one_answer(&o, id, WIRE_SEND_ALL);
		lasted = pinged(&o, &f, 2 * believed);
		assert_int_equal(o.ended, 1);
		assert_int_equal(o.why.code, PTCP_ETIMEOUT);
		assert_in_range(lasted, believed, believed + ONE_TIMEOUT_NS + NS_PER_S);
		one_fini(&o);
	}
}

/* A rate that we keep to is as good as a peer's being busy, for as long; whether it is said to be work or not. */
static void paced_for_ever(void **state)
{
	const uint64_t believed = ONE_TIMEOUT_NS * ENGINE_BUSY_TIMEOUTS;
	struct wire_ping f = { WIRE_IDLE, 1 };
	uint64_t id, lasted;
	struct one o;
	unsigned said;

	(void)state;
	for (said = 0; said < 2; said++) {
		one_run(&o, true, true);
		id = one_offer(&o, WIRE_FILE, 10);
		o.paced = true;
		o.busy = said ? WIRE_READING : WIRE_IDLE;
		pinged(&o, &f, believed - NS_PER_S);
		assert_int_equal(o.ended, 0);
		one_answer(&o, id, WIRE_SEND_ALL);
		lasted = pinged(&o, &f, 2 * believed);
		assert_int_equal(o.why.code, PTCP_ETIMEOUT);
		assert_in_range(lasted, believed, believed + ONE_TIMEOUT_NS + NS_PER_S);
		one_fini(&o);
	}
}

/* However much a peer talks, what it owes is still to come. */
static void log_opts_is_no_progress(void **state)
{
	struct wire_warning note = { WIRE_WARNING_ONLY, { (const uint8_t *)"x", 1 }, { 13, 0, { (const uint8_t *)"y", 1 } } };
	struct wire_set_streams use = { 1, 0 };
	struct wire_rate rate = { .all_bps = 0 };
	unsigned what;

	(void)state;
	for (what = 0; what < 3; what++) {
		struct one o;
		uint64_t start;

		one_run_as(&o, false, true);
		one_offer(&o, WIRE_FILE, 10);
		for (start = o.now_ns; o.now_ns - start < 3 * ONE_TIMEOUT_NS && o.ended == 0; one_forget(&o)) {
			ticks(&o, NS_PER_S);
			if (what == 0)
				ONE_PUT(&o, warning, &note);
			else if (what == 1)
				ONE_PUT(&o, set_streams, &use);
			else
				ONE_PUT(&o, rate, &rate);
		}
		assert_int_equal(o.ended, 1);
		assert_int_equal(o.why.code, PTCP_ETIMEOUT);
		assert_in_range(o.now_ns - start, ONE_TIMEOUT_NS, ONE_TIMEOUT_NS + 2 * NS_PER_S);
		one_fini(&o);
	}
}

/* Nothing is owed: a sender whose listing takes long waits for ever; so does one that is busy. */
static void nothing_owed_no_hurry(void **state)
{
	struct wire_ping f = { WIRE_IDLE, 1 };
	struct one o;
	unsigned i, owed;

	(void)state;
	for (owed = 0; owed < 2; owed++) {
		one_run(&o, true, true);
		if (owed) {
			one_offer(&o, WIRE_FILE, 10);
			o.busy = WIRE_READING;
		}
		for (i = 0; i < 60; i++) {
			ticks(&o, NS_PER_S);
			ONE_PUT(&o, ping, &f);
		}
		assert_int_equal(o.ended, 0);
		one_fini(&o);
	}
}

/* What kept it busy when it last looked did so until now: it may have been long, and nothing else happened. */
static void busy_until_now(void **state)
{
	struct wire_ping f = { WIRE_IDLE, 1 };
	struct one o;

	(void)state;
	one_run(&o, true, true);
	one_offer(&o, WIRE_FILE, 10);
	o.busy = WIRE_READING;
	one_tick(&o, NS_PER_S);
	o.busy = WIRE_IDLE;
	one_tick(&o, 7 * NS_PER_S);
	ONE_PUT(&o, ping, &f);
	one_tick(&o, 7 * NS_PER_S);
	assert_int_equal(o.ended, 0);
	ONE_PUT(&o, ping, &f);
	one_tick(&o, 5 * NS_PER_S);
	assert_true(o.ended == 1 && o.why.code == PTCP_ETIMEOUT);
	one_fini(&o);
}

/* While an acceptor judges its peer is kept waiting, and told that it is worth it. */
static void judging_is_work(void **state)
{
	struct wire_ping f, idle = { WIRE_IDLE, 1 };
	struct span p;
	struct one o;
	unsigned i;

	(void)state;
	one_init(&o, false, true);
	one_hello(&o);
	one_open(&o, true, true);
	one_forget(&o);
	for (i = 0; i < 40; i++) {
		ticks(&o, NS_PER_S);
		ONE_PUT(&o, ping, &idle);
	}
	assert_int_equal(o.ended, 0);
	assert_true(one_found(&o, WIRE_PING, &p));
	assert_int_equal(wire_ping_decode(&f, p, NULL), 0);
	assert_int_not_equal(f.busy, WIRE_IDLE);
	one_accept(&o);
	assert_int_equal(o.running, 1);
	one_fini(&o);
}

/* A peer with a time-out of 1 ms does not make us ping a thousand times a second. */
static void a_hasty_peer(void **state)
{
	struct wire_hello h = { .version_min = 1, .version_max = 1, .timeout_ms = 1, .quiet_ms = 1, .max_entries = WIRE_EARLY_ENTRIES,
		.max_streams = 1 };
	struct span p;
	struct one o;
	unsigned n = 0;

	(void)state;
	one_init(&o, false, true);
	ONE_PUT(&o, hello, &h);
	one_forget(&o);
	ticks(&o, NS_PER_S);
	while (one_said(&o, &p) == WIRE_PING)
		n++;
	assert_in_range(n, 9, 10);
	one_fini(&o);
}

/* ---- The end ---- */

static void end_with_something_unfinished(void **state)
{
	struct wire_entry f = one_entry(WIRE_FILE, one_id(1, 0), 0, 10);
	struct wire_end end = { 0, 0 };
	struct one o;

	(void)state;
	one_run(&o, false, true);
	ONE_PUT(&o, entry, &f);
	ONE_PUT(&o, end, &end);
	assert_true(one_broke(&o));
	one_fini(&o);
}

/* A receiver may have work after the last entry; nothing but its end is possible meanwhile. */
static void finished_later(void **state)
{
	const struct wire_leftovers left = { 2, 100, 5000 };
	const struct wire_entry late = one_entry(WIRE_FILE, one_id(1, 1), 0, 10);
	struct wire_end end = { 0, 0 };
	struct span p;
	struct one o;

	(void)state;
	one_run(&o, false, true);
	o.finish_later = true;
	ONE_PUT(&o, end, &end);
	assert_false(one_found(&o, WIRE_END, &p));
	assert_true(engine_closing(o.s) && !engine_over(o.s) && o.ended == 0);
	engine_report_leftovers(o.s, &left);
	engine_finished(o.s);
	assert_int_equal(one_said(&o, &p), WIRE_LEFTOVERS);
	assert_int_equal(one_said(&o, &p), WIRE_END);
	assert_true(o.ended == 1 && o.why.code == 0);
	engine_finished(o.s);
	assert_int_equal(o.ended, 1);
	one_fini(&o);

	one_run(&o, false, true);
	o.finish_later = true;
	ONE_PUT(&o, end, &end);
	ONE_PUT(&o, end, &end);
	assert_true(one_broke(&o));
	engine_finished(o.s);
	assert_int_equal(o.ended, 1);
	one_fini(&o);

	one_run(&o, false, true);
	o.finish_later = true;
	ONE_PUT(&o, end, &end);
	ONE_PUT(&o, entry, &late);
	assert_true(one_broke(&o));
	one_fini(&o);

	one_run(&o, false, true);
	o.finish_later = o.finish_fails = true;
	ONE_PUT(&o, end, &end);
	assert_true(engine_over(o.s) && o.ended == 1 && o.why.code == PTCP_ENOSPC);
	assert_int_equal(one_said(&o, &p), WIRE_ERROR);
	one_fini(&o);
}

/* SELECT frames: only where OPEN promised them, and none behind the last. */
static void selects(void **state)
{
	static const struct { bool promised; uint8_t final[3]; bool ok; unsigned n; } cases[] = {
		{ true, { 0, 0, 1 }, true, 3 }, { true, { 0, 1, 0 }, false, 2 }, { true, { 1, 1, 1 }, false, 1 },
		{ false, { 1, 1, 1 }, false, 0 }
	};
	struct wire_open open = { .role = WIRE_ACCEPTOR_SENDS, .streams = 3, .n_paths = 1,
		.paths = { (const uint8_t *)"\1\0\1a", 4 } };
	struct wire_select f = { 0, 1, { (const uint8_t *)"x", 2 } }, bad = { 0, 1, { (const uint8_t *)"!", 2 } };
	struct one o;
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		one_as(&o, false, WIRE_ACCEPTOR_SENDS);
		one_hello(&o);
		open.flags = cases[i].promised ? WIRE_OPEN_SELECTED : 0;
		ONE_PUT(&o, open, &open);
		one_accept(&o);
		for (k = 0; k < 3; k++) {
			f.final = cases[i].final[k];
			ONE_PUT(&o, select, &f);
		}
		assert_int_equal(o.selects, cases[i].n);
		assert_true(cases[i].ok ? !engine_over(o.s) : one_broke(&o));
		one_fini(&o);
	}
	one_as(&o, false, WIRE_ACCEPTOR_SENDS);
	one_hello(&o);
	open.flags = WIRE_OPEN_SELECTED;
	ONE_PUT(&o, open, &open);
	one_accept(&o);
	ONE_PUT(&o, select, &bad);
	assert_true(one_broke(&o) && strcmp(o.why.msg, "a refused path") == 0);
	one_fini(&o);
}

/* DELETED: a starter that requested it, at most as often as it permitted. */
static void deletions(void **state)
{
	static const struct { uint32_t flags, max; unsigned sent, n; } cases[] = {
		{ WIRE_OPEN_DELETE, 2, 2, 2 }, { WIRE_OPEN_DELETE, 2, 3, 2 }, { WIRE_OPEN_DELETE, 0, 1, 0 }, { 0, 0, 1, 0 },
		{ WIRE_OPEN_DELETE, PTCP_MAX_DELETE_CAREFUL, 1001, 1000 }
	};
	struct wire_open open = { .role = WIRE_ACCEPTOR_RECEIVES, .streams = 3, .n_paths = 1,
		.paths = { (const uint8_t *)"\0\0\1a", 4 } };
	const struct wire_deleted f = { { (const uint8_t *)"x", 1 } };
	struct one o;
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		open.flags = cases[i].flags;
		open.max_delete = cases[i].max;
		one_as_open(&o, true, &open);
		one_hello(&o);
		one_opened(&o);
		for (k = 0; k < cases[i].sent / 2; k++)
			ONE_PUT(&o, deleted, &f);
		snd_listed(engine_snd(o.s), 0, 0, true);
		engine_tick(o.s, (struct mono){ o.now_ns });
		assert_true(engine_closing(o.s));
		for (; k < cases[i].sent; k++)
			ONE_PUT(&o, deleted, &f);
		assert_int_equal(o.deleted, cases[i].n);
		assert_true(cases[i].sent > cases[i].n ? one_broke(&o) : !engine_over(o.s));
		one_fini(&o);
	}
}

/* Movers of the acceptor: only for a starter that has asked for them, and not without end. */
static void endpoints(void **state)
{
	struct wire_open open = { .role = WIRE_ACCEPTOR_RECEIVES, .streams = 3, .n_paths = 1, .flags = WIRE_OPEN_MOVERS,
		.paths = { (const uint8_t *)"\0\0\1a", 4 } };
	const struct wire_endpoint f = { .id = 1, .port = 7811, .host = { (const uint8_t *)"192.0.2.1", 9 } };
	struct wire_opened granted = { .streams = 3, .flags = WIRE_OPENED_MOVERS };
	struct one o;
	unsigned i;

	(void)state;
	one_as_open(&o, true, &open);
	one_hello(&o);
	ONE_PUT(&o, opened, &granted);
	assert_false(engine_over(o.s));
	for (i = 0; i < ENGINE_RATES; i++)
		ONE_PUT(&o, endpoint, &f);
	assert_true(o.endpoints == ENGINE_RATES && !engine_over(o.s));
	ONE_PUT(&o, endpoint, &f);
	assert_true(one_broke(&o));
	one_fini(&o);
	open.flags = 0;
	one_as_open(&o, true, &open);
	one_hello(&o);
	ONE_PUT(&o, opened, &granted);
	assert_true(one_broke(&o));
	one_fini(&o);
	granted.flags = 0;
	one_as_open(&o, true, &open);
	one_hello(&o);
	ONE_PUT(&o, opened, &granted);
	ONE_PUT(&o, endpoint, &f);
	assert_true(one_broke(&o) && o.endpoints == 0);
	one_fini(&o);
}

/* A starter that sends is told once. */
static void leftovers_once(void **state)
{
	const struct wire_leftovers left = { 2, 100, 5000 };
	struct one o;

	(void)state;
	one_run_as(&o, true, true);
	ONE_PUT(&o, leftovers, &left);
	assert_true(o.leftovers == 2 && o.ended == 0);
	ONE_PUT(&o, leftovers, &left);
	assert_true(one_broke(&o) && o.leftovers == 2);
	one_fini(&o);
}

/* In CLOSING: a starter that receives may be gone behind its END; a starter that sends needs the END. */
static void the_end_of_the_channel_in_closing(void **state)
{
	struct ptcp_err why;
	struct one o;
	int starter, closing;

	(void)state;
	err_set(&why, PTCP_EPEER, "gone");
	for (starter = 0; starter <= 1; starter++)
		for (closing = 0; closing <= 1; closing++) {
			one_run_as(&o, starter, true);
			snd_listed(one_snd(&o), 0, 0, closing);
			one_tick(&o, 0);
			engine_closed(o.s, &why);
			assert_int_equal(o.ended, 1);
			assert_int_equal(o.why.code, closing && !starter ? 0 : PTCP_EPEER);
			one_fini(&o);
		}
}

static void end_counts_agree(void **state)
{
	static const struct { bool sends; uint64_t files, failed; bool fits; } of[] = {
		{ false, 0, 0, false }, { false, 0, 1, true }, { false, 0, 5, true }, { false, 1, 1, false },
		{ true, 0, 1, true }, { true, 0, 2, false }, { true, 1, 1, false }, { true, 0, 0, false },
	};
	struct wire_warning note = { .kind = WIRE_WARNING_FAILED, .why.code = 99 };
	struct wire_warning gone = { .kind = WIRE_WARNING_INSIDE, .why.code = (uint16_t)-PTCP_EVANISHED };
	struct wire_end end;
	struct ptcp_err why;
	struct span p;
	struct one o;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof of / sizeof *of; i++) {
		one_run(&o, of[i].sends, true);
		if (of[i].sends) {
			err_set(&why, PTCP_EIO, "missing");
			engine_warn(o.s, WIRE_WARNING_FAILED, "path", &why);
			engine_warn(o.s, WIRE_WARNING_ONLY, "path", &why);
			err_set(&why, PTCP_EVANISHED, "gone"); /* counts at neither end */
			engine_warn(o.s, WIRE_WARNING_INSIDE, "path", &why);
			assert_false(engine_closing(o.s));
			snd_listed(engine_snd(o.s), 0, 0, true);
			one_tick(&o, 0);
			assert_true(one_found(&o, WIRE_END, &p));
			assert_true(engine_closing(o.s) && !engine_over(o.s)); /* streams may end from here on */
			assert_int_equal(wire_end_decode(&end, p, NULL), 0);
			assert_true(end.files == 0 && end.failed == 1);
		} else {
			ONE_PUT(&o, warning, &note);
			assert_int_equal(o.notes, 1);
			ONE_PUT(&o, warning, &gone);
		}
		end = (struct wire_end){ of[i].files, of[i].failed };
		ONE_PUT(&o, end, &end);
		assert_int_equal(o.ended, 1);
		assert_int_equal(o.why.code, of[i].fits ? 0 : PTCP_EPROTO);
		if (of[i].fits)
			assert_int_equal(engine_failed(o.s), of[i].failed);
		one_fini(&o);
	}
}

static void a_channel_that_goes(void **state)
{
	struct ptcp_err why;
	struct span p;
	struct one o;

	(void)state;
	err_set(&why, PTCP_EPEER, "cut");
	one_run(&o, true, true);
	one_offer(&o, WIRE_FILE, 10);
	one_forget(&o);
	engine_closed(o.s, &why);
	assert_true(o.ended == 1 && o.why.code == PTCP_EPEER);
	assert_false(engine_unanswered(o.s));
	assert_int_equal(one_said(&o, &p), 0);
	engine_closed(o.s, &why); /* said once */
	one_accept(&o);
	engine_fail(o.s, &why);
	one_tick(&o, ONE_TIMEOUT_NS);
	assert_int_equal(o.ended, 1);
	assert_int_equal(o.fates[SND_DROPPED], 0);
	engine_drop(o.s);
	assert_int_equal(o.fates[SND_DROPPED], 1);
	one_fini(&o);
	one_init(&o, true, true);
	engine_closed(o.s, &why); /* before the peer's HELLO: it may be too busy for us */
	assert_true(o.ended == 1 && engine_unanswered(o.s));
	one_fini(&o);
}

/* ---- The outbox ---- */

/* Nobody takes what is said: offering stops first, and what must be said all the same ends it. */
static void a_peer_that_never_reads(void **state)
{
	struct wire_entry f = one_entry(WIRE_FILE, one_id(1, 0), 0, 100u << 18);
	struct digest d = { 0, 0 };
	unsigned i, offered = 0;
	struct one o;

	(void)state;
	one_run(&o, true, true);
	while (snd_room(engine_snd(o.s)) > 0 && offered < 30000) {
		one_offer(&o, WIRE_SYMLINK, 0);
		offered++;
	}
	assert_in_range(offered, 1000, WIRE_SLOTS - 1);
	one_tick(&o, 0);
	assert_int_equal(o.ended, 0);
	one_forget(&o);
	assert_int_equal(snd_room(engine_snd(o.s)), WIRE_SLOTS - offered);
	one_fini(&o);

	/* A receiver has no choice: the sender offers, it answers. */
	one_run(&o, false, true);
	ONE_PUT(&o, entry, &f);
	for (i = 0; o.ended == 0 && i < 2000000; i++) {
		rcv_block(engine_rcv(o.s), f.id, 0, RCV_BLOCK_BAD, d, NULL);
		if (i % 1000 == 0)
			one_tick(&o, 0);
	}
	assert_true(o.ended == 1 && o.why.code == PTCP_ENOMEM);
	assert_in_range(buf_len(&engine_outbox(o.s)->b), OUTBOX_MAX_BYTES, OUTBOX_MAX_BYTES + 1000);
	one_fini(&o);
}

/* Memory was short once: the session ends, and its peer is told why. */
static void the_last_word_is_said(void **state)
{
	struct wire_error f;
	struct span p;
	struct one o;

	(void)state;
	one_run(&o, true, true);
	engine_outbox(o.s)->failed = true;
	one_tick(&o, 0);
	assert_true(o.ended == 1 && o.why.code == PTCP_ENOMEM);
	assert_int_equal(one_said(&o, &p), WIRE_ERROR);
	assert_int_equal(wire_error_decode(&f, p, NULL), 0);
	assert_int_equal(f.why.code, -PTCP_ENOMEM);
	one_fini(&o);
}

static void what_the_outbox_cuts(void **state)
{
	struct outbox out = { .b = BUF_INIT };
	struct ptcp_err why;
	struct wire_fail f;

	(void)state;
	why.code = PTCP_EIO;
	memset(why.msg, 'x', sizeof why.msg);
	why.msg[sizeof why.msg - 1] = '\0';
	outbox_put_fail(&out, one_id(1, 1), &why);
	assert_int_equal(wire_fail_decode(&f, (struct span){ buf_head(&out.b) + 8, buf_len(&out.b) - 8 },
	    NULL), 0);
	assert_true(f.why.code == 13 && f.why.text.n == WIRE_TEXT_MAX);
	buf_fini(&out.b);
}

/* The starter sets the number of streams; a sender that is not the starter reports on its streams. */
static void streams(void **state)
{
	struct wire_set_streams use = { .streams = 2 };
	struct wire_tcp_report seen = { .elapsed_us = 7 };
	struct span p;
	struct one o;

	(void)state;
	one_run_as(&o, false, true);
	ONE_PUT(&o, set_streams, &use);
	assert_int_equal(o.used, 2);
	engine_report_tcp(o.s, &seen);
	assert_true(one_found(&o, WIRE_TCP_REPORT, &p));
	one_fini(&o);
	one_run_as(&o, true, false);
	ONE_PUT(&o, tcp_report, &seen);
	assert_int_equal(o.seen_us, 7);
	engine_set_streams(o.s, &use);
	use.streams = 0;
	assert_true(one_found(&o, WIRE_SET_STREAMS, &p) && wire_set_streams_decode(&use, p, NULL) == 0);
	assert_int_equal(use.streams, 2);
	one_fini(&o);
}

/* A starter that receives says what the streams are to carry. */
static void rates(void **state)
{
	const struct wire_rate f = { .all_bps = 1000000, .n = 1, .m = 2, .bps = { 500000 }, .of = { 0, 1 } };
	struct wire_rate d;
	struct span p;
	struct one o;

	(void)state;
	one_run(&o, true, true);
	ONE_PUT(&o, rate, &f);
	assert_true(o.ended == 0 && o.rates == 1 && o.rate.all_bps == 1000000 && o.rate.of[1] == 1);
	one_fini(&o);
	one_run_as(&o, true, false);
	engine_set_rates(o.s, &f);
	assert_true(one_found(&o, WIRE_RATE, &p) && wire_rate_decode(&d, p, NULL) == 0);
	assert_true(d.n == 1 && d.bps[0] == 500000 && d.m == 2);
	one_fini(&o);
}

/* No more of them than so many a second; a burst, as after a silence, is fine. */
static void a_flood_of_rates(void **state)
{
	const struct wire_rate f = { .all_bps = 1000000 };
	struct one o;
	unsigned i;

	(void)state;
	one_run(&o, true, true);
	one_tick(&o, NS_PER_S);
	for (i = 0; i < ENGINE_RATES + ENGINE_RATES_PER_S; i++)
		ONE_PUT(&o, rate, &f);
	assert_true(o.ended == 0 && o.rates == i);
	one_tick(&o, NS_PER_S);
	for (i = 0; i < ENGINE_RATES_PER_S; i++)
		ONE_PUT(&o, rate, &f);
	assert_true(o.ended == 0);
	ONE_PUT(&o, rate, &f);
	assert_true(one_broke(&o));
	one_fini(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions),
		cmocka_unit_test(both_say_hello_at_once),
		cmocka_unit_test(who_has_one_channel),
		cmocka_unit_test(other_versions),
		cmocka_unit_test(a_control_ack_that_was_not_agreed),
		cmocka_unit_test(streams),
		cmocka_unit_test(rates),
		cmocka_unit_test(a_flood_of_rates),
		cmocka_unit_test(hello_and_open_at_once),
		cmocka_unit_test(takes_hello_and_open_at_once),
		cmocka_unit_test(more_streams_than_requested),
		cmocka_unit_test(a_granted_cipher_that_was_not_asked_for),
		cmocka_unit_test(waits_for_room),
		cmocka_unit_test(waits_no_longer_than_requested),
		cmocka_unit_test(waits_only_on_request),
		cmocka_unit_test(tells_the_position),
		cmocka_unit_test(byte_by_byte),
		cmocka_unit_test(nonsense),
		cmocka_unit_test(the_peers_codes),
		cmocka_unit_test(a_silent_peer),
		cmocka_unit_test(pings),
		cmocka_unit_test(idle_again),
		cmocka_unit_test(idle_and_busy_pings), cmocka_unit_test(busy_until_now), cmocka_unit_test(busy_for_ever), cmocka_unit_test(paced_for_ever),
		cmocka_unit_test(log_opts_is_no_progress),
		cmocka_unit_test(nothing_owed_no_hurry),
		cmocka_unit_test(judging_is_work),
		cmocka_unit_test(a_hasty_peer),
		cmocka_unit_test(end_with_something_unfinished),
		cmocka_unit_test(finished_later),
		cmocka_unit_test(leftovers_once), cmocka_unit_test(endpoints), cmocka_unit_test(selects), cmocka_unit_test(deletions),
		cmocka_unit_test(the_end_of_the_channel_in_closing),
		cmocka_unit_test(end_counts_agree),
		cmocka_unit_test(a_channel_that_goes),
		cmocka_unit_test(a_peer_that_never_reads),
		cmocka_unit_test(the_last_word_is_said),
		cmocka_unit_test(what_the_outbox_cuts),
	};
	return cmocka_run_group_tests_name("engine/engine", tests, NULL, NULL);
}
