/* Bad hosts that are asked for a job: to send to a third one, or to measure the way there. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hostile.h"
#include "wire/jobs.h"

struct asked_for {
	struct peer *us;
	bool measures;
	unsigned messages;
};

static struct asked_for taken_on(void)
{
	struct asked_for a = { .us = peer_accept(hostile_listener, ALPN_JOB) };
	const struct frame *f;

	expect(a.us, WIRE_JOB);
	expect(a.us, WIRE_GRANT);
	f = peer_frame(a.us);
	if (f->type != WIRE_PROBE && f->type != WIRE_OPEN)
		die("PROBE or OPEN expected, %s came", frame_name(f->type));
	a.measures = f->type == WIRE_PROBE;
	a.messages = a.measures ? get_u16(f->payload + 2) : 0;
	return a;
}

static bool tell_progress(struct asked_for *a, uint64_t bytes)
{
	struct ptcp_progress f = { .bytes = bytes, .total_bytes = bytes, .files = bytes > 0, .streams = 1 };
	uint8_t out[WIRE_PROGRESS_MAX_BYTES];

	return peer_try_send(a->us, out, wire_progress_encode(out, &f));
}

static void tell_started(struct asked_for *a)
{
	struct wire_started f = { 7, { (const uint8_t *)"127.0.0.1:1", 11 } };
	uint8_t out[WIRE_STARTED_MAX_BYTES];

	peer_send(a->us, out, wire_started_encode(out, &f));
}

static void tell_sample(struct asked_for *a, uint64_t bytes, uint64_t delay_ns, uint64_t round_trip_ns)
{
	struct wire_sample f = { bytes, delay_ns, round_trip_ns };
	uint8_t out[WIRE_SAMPLE_MAX_BYTES];

	peer_try_send(a->us, out, wire_sample_encode(out, &f));
}

/* Until the client goes, which it does by its own time. */
static void until_gone(struct asked_for *a, bool lives)
{
	time_t start = time(NULL);

	while (lives && tell_progress(a, 0) && time(NULL) - start < patience_s(100))
		poll(NULL, 0, 200);
	if (time(NULL) - start >= patience_s(100))
		die("it is listened to for ever");
	while (peer_frame(a->us)->type >= 0)
		;
	peer_close(a->us);
}

/* WHEN: tells that it lives, and nothing else, "before" or "behind" STARTED. */
static void only_lives(unsigned port, char **arguments)
{
	struct asked_for a = taken_on();

	(void)port;
	if (strcmp(arguments[0], "behind") == 0)
		tell_started(&a);
	until_gone(&a, true);
}

/* BYTES DELAY ROUND_TRIP, of each message, and MORE than there were to be. */
static void says_it_measured(unsigned port, char **arguments)
{
	struct asked_for a = taken_on();
	struct wire_end end = { 0, 0 };
	uint8_t out[WIRE_END_MAX_BYTES];
	uint64_t v[3];
	unsigned i;

	(void)port;
	if (!a.measures)
		die("no measurement is asked for");
	for (i = 0; i < 3; i++)
		v[i] = strtoull(arguments[i], NULL, 10);
	tell_started(&a);
	for (i = 0; i < a.messages + (unsigned)atoi(arguments[3]); i++)
		tell_sample(&a, v[0] > 4 ? v[0] >> i % 4 : v[0], v[1] > 4 ? v[1] >> i % 4 : v[1], v[2]);
	tell_progress(&a, 0);
	peer_try_send(a.us, out, wire_end_encode(out, &end));
	until_gone(&a, false);
}

/* TYPE BYTES: a frame of zeros behind STARTED. */
static void talks_nonsense(unsigned port, char **arguments)
{
	static const uint8_t zeros[200];
	struct asked_for a = taken_on();

	(void)port;
	tell_started(&a);
	peer_send_raw(a.us, (uint8_t)atoi(arguments[0]), 1, zeros, (uint32_t)atoi(arguments[1]));
	until_gone(&a, false);
}

/* Has sent what nobody has, and says so in the colours of a terminal. */
static void boasts(unsigned port, char **arguments)
{
	static const char text[] = "\033[31mdone\r\nptcp: all is well";
	struct wire_event e = { .kind = WIRE_EVENT_FAILED,
		.path = { (const uint8_t *)text, sizeof text - 1 },
		.why = { 13, 0, { (const uint8_t *)text, sizeof text - 1 } } };
	struct wire_end end = { 1, 0 };
	struct asked_for a = taken_on();
	uint8_t out[WIRE_EVENT_MAX_BYTES];

	(void)port;
	(void)arguments;
	tell_started(&a);
	peer_send(a.us, out, wire_event_encode(out, &e));
	e.kind = WIRE_EVENT_WARNING;
	peer_send(a.us, out, wire_event_encode(out, &e));
	e.kind = WIRE_EVENT_STREAMS;
	e.from = e.to = UINT16_MAX;
	peer_send(a.us, out, wire_event_encode(out, &e));
	tell_progress(&a, UINT64_MAX);
	peer_try_send(a.us, out, wire_end_encode(out, &end));
	until_gone(&a, false);
}

const struct hostile hostile_doers[] = {
	{ "only-lives", only_lives }, { "says-it-measured", says_it_measured }, { "talks-nonsense", talks_nonsense },
	{ "boasts", boasts }, { NULL, NULL }
};
