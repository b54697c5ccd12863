/* libFuzzer target: the start of a session, from HELLO to OPENED, at either end. The first bytes choose the end and
 * the settings; then each move is a byte and its arguments: bytes or a frame from the peer, whole or in pieces, time,
 * or the decision of an acceptor, which lets a session wait, or admits its OPEN as a server does (server/request.h).
 * Beyond OPENED the target session takes over. */
#include "../wire/recode.h"
#include "core/err.h"
#include "core/units.h"
#include "engine/engine.h"
#include "fuzz.h"
#include "server/request.h"

#define MOVES_MAX 300
#define TIMEOUT_NS (12 * NS_PER_S)
#define QUIET_NS (4 * NS_PER_S)
#define LINGER_NS (40 * NS_PER_S)
#define STREAMS_MAX 8

enum {
	STARTER = 1, ONE_CHANNEL = 2, LINGERS = 4, READ_ONLY = 8, OWN_ROOT = 16, NO_ROOT = 32, OWN = 64, MEASURES = 128
};

struct start {
	struct engine *s;
	struct mono now;
	struct input in;
	unsigned kind;
	bool judging, answered, running, ended, permitted;
	unsigned heard_hello, heard_open, heard_waiting, heard_opened, heard_error; /* frames from the engine */
	unsigned waited;              /* acceptor: calls of engine_wait() */
	bool may_wait;                /* acceptor: the peer does */
	bool offers;                  /* starter: it sends entries right behind OPEN */
	uint32_t wait_ms;             /* starter */
	struct mono requested;        /* when the engine sent OPEN */
	uint16_t requested_streams;   /* of the OPEN that the engine sent */
	struct wire_opened granted;   /* by the acceptor */
	struct ptcp_server_opts server;
	struct request request;
};

static uint16_t take_u16(struct input *in)
{
	uint16_t high = take_byte(in);

	return (uint16_t)(high << 8 | take_byte(in));
}

/* ---- The engine's operations ---- */

/* The promises of request_take(): whatever the OPEN, a permitted one stays within the rights of the client. */
static void check_permitted(const struct start *c, const struct wire_open *o)
{
	const struct request *a = &c->request;
	struct span rest = o->paths, path;
	unsigned places = 0;
	uint8_t flags;

	while (wire_path_next(&rest, &flags, &path))
		places += !wire_path_is_rule(flags);
	MUST(o->cipher < PTCP_CIPHERS && (a->own || (c->server.ciphers & 1u << o->cipher) != 0));
	MUST(a->cipher == o->cipher && a->n_granted <= o->streams && a->n_granted <= c->server.max_streams);
	MUST(a->sends == (o->role == WIRE_ACCEPTOR_SENDS) && a->generates == (o->role == WIRE_ACCEPTOR_GENERATES));
	MUST(a->measures == (o->role == WIRE_ACCEPTOR_DISCARDS || o->role == WIRE_ACCEPTOR_GENERATES));
	if (a->measures)
		return;
	MUST(a->own || a->auth.root[0] != '\0' || a->root != NULL);
	MUST(a->sends || (!a->auth.read_only && places == 1));
	MUST(a->n_given == places && (places == 0 || strlen(request_first(a)) <= WIRE_PATH_MAX));
}

static void on_open(void *arg, const struct wire_open *f)
{
	struct start *c = arg;
	struct span rest = f->paths, path;
	uint8_t flags;
	unsigned n = 0;
	struct ptcp_err why;

	MUST((c->kind & STARTER) == 0 && !c->judging && !c->answered && !c->running && !c->ended);
	while (wire_path_next(&rest, &flags, &path))
		n++;
	MUST(n == f->n_paths && rest.n == 0 && f->streams > 0);
	c->judging = true;
	c->may_wait = f->wait_ms > 0;
	c->request = (struct request){ .o = &c->server, .own = (c->kind & OWN) != 0,
		.root = (c->kind & NO_ROOT) != 0 ? NULL : "/srv",
		.auth = { .read_only = (c->kind & READ_ONLY) != 0 } };
	if ((c->kind & OWN_ROOT) != 0)
		strcpy(c->request.auth.root, "/srv/client");
	c->permitted = request_take(&c->request, f, &why) == 0;
	if (c->permitted)
		check_permitted(c, f);
	else
		MUST(why.code < 0 && why.msg[0] != '\0');
}

static void on_waiting(void *arg, uint32_t ahead)
{
	struct start *c = arg;

	(void)ahead;
	MUST((c->kind & STARTER) != 0 && c->heard_open == 1 && !c->running && !c->ended);
	MUST(c->wait_ms > 0 && mono_diff_ns(c->now, c->requested) <= c->wait_ms * NS_PER_MS + TIMEOUT_NS);
}

static void on_running(void *arg, const struct wire_opened *f)
{
	struct start *c = arg;

	MUST(!c->running && !c->ended);
	c->running = true;
	MUST(f->cipher == engine_open(c->s)->cipher && f->streams > 0);
	if ((c->kind & STARTER) != 0)
		MUST(c->heard_open == 1 && f->streams <= c->requested_streams && f->streams <= 6);
	else
		MUST(c->permitted && f->streams == c->granted.streams);
	MUST(engine_snd(c->s) == NULL || engine_rcv(c->s) == NULL);
	MUST(engine_linger_ns(c->s) <= ((c->kind & LINGERS) != 0 ? LINGER_NS : 0));
}

/* Frames of a running session; each may arrive together with the OPENED. */
static void check_running(const struct start *c) { MUST(c->running); }

static void on_warning(void *arg, const struct wire_warning *f) { (void)f; check_running(arg); }
static int on_control_ack(void *arg, uint64_t bytes, struct ptcp_err *e)
{
	(void)arg;
	return bytes % 2 == 0 ? 0 : err_set(e, PTCP_EPROTO, "the script says so");
}
static enum wire_busy on_busy(void *arg) { (void)arg; return WIRE_IDLE; }
static void on_set_streams(void *arg, const struct wire_set_streams *f) { (void)f; check_running(arg); }
static void on_tcp_report(void *arg, const struct wire_tcp_report *f) { (void)f; check_running(arg); }
static void on_rate(void *arg, const struct wire_rate *f) { (void)f; check_running(arg); }

static int on_select(void *arg, const struct wire_select *f, struct ptcp_err *e)
{
	(void)f;
	(void)e;
	check_running(arg);
	return 0;
}

static void on_load(void *arg, const struct wire_load *f)
{
	MUST((((struct start *)arg)->kind & STARTER) != 0 && f->busy_permille <= 1000);
}

static void on_ended(void *arg, const struct ptcp_err *why)
{
	struct start *c = arg;

	MUST(!c->ended && why != NULL && why->code < 0 && why->msg[0] != '\0'); /* nothing can be complete yet */
	c->ended = true;
}

static const struct engine_ops ops = { .open = on_open, .waiting = on_waiting, .running = on_running,
	.warning = on_warning, .control_ack = on_control_ack, .busy = on_busy, .ended = on_ended, .load = on_load,
	.set_streams = on_set_streams, .tcp_report = on_tcp_report, .rate = on_rate, .select = on_select };

/* ---- The peer ---- */

static void input(struct start *c, const uint8_t *p, size_t n)
{
	uint8_t *exact = malloc(n + (n == 0)); /* a sanitizer detects reads beyond the end */

	MUST(exact != NULL);
	if (n > 0)
		memcpy(exact, p, n);
	engine_input(c->s, exact, n, c->now);
	free(exact);
}

/* Whole, byte by byte, or cut at a place that the script chooses. */
static void deliver(struct start *c, const uint8_t *p, size_t n)
{
	uint8_t how = take_byte(&c->in);
	size_t cut = how < 2 ? 0 : how % (n + 1), i;

	if (how == 1) {
		for (i = 0; i < n && !c->running; i++)
			input(c, p + i, 1);
		return;
	}
	if (cut > 0)
		input(c, p, cut);
	if (!c->running)
		input(c, p + cut, n - cut);
}

static void put_raw(struct start *c)
{
	struct input part = take_bytes(&c->in, take_byte(&c->in));

	deliver(c, part.p, part.n);
}

static void put_framed(struct start *c)
{
	struct wire_header h = { .type = take_byte(&c->in) % 70, .flags = take_byte(&c->in) & 3 };
	struct input part = take_bytes(&c->in, take_byte(&c->in));
	uint8_t frame[WIRE_HEADER_BYTES + 255];

	h.length = (uint32_t)part.n;
	wire_header_encode(frame, &h);
	if (part.n > 0)
		memcpy(frame + WIRE_HEADER_BYTES, part.p, part.n);
	deliver(c, frame, WIRE_HEADER_BYTES + part.n);
}

static void put_hello(struct start *c)
{
	static uint8_t frame[WIRE_HELLO_MAX_BYTES];
	uint8_t how = take_byte(&c->in);
	struct wire_hello h = { .version_min = how & 3, .version_max = how >> 2 & 3, .n_abilities = how >> 4 & 3 };
	unsigned i;

	h.timeout_ms = (uint32_t)take_u16(&c->in) << 4;
	h.quiet_ms = h.timeout_ms / 3 + 1;
	h.linger_ms = (how >> 6) * 20000u;
	h.max_entries = take_u16(&c->in) + (how & 32 ? 0 : WIRE_EARLY_ENTRIES);
	h.max_streams = take_u16(&c->in);
	for (i = 0; i < h.n_abilities; i++)
		h.abilities[i] = take_byte(&c->in) % 4;
	if (h.version_min > h.version_max)
		h.version_min = h.version_max;
	deliver(c, frame, wire_hello_encode(frame, &h));
}

static void put_open(struct start *c)
{
	static uint8_t frame[WIRE_OPEN_MAX_BYTES], paths[8 * (3 + 255)];
	uint8_t how = take_byte(&c->in);
	struct wire_open o = { .role = how % 4 + 1u, .cipher = how >> 2 & 7, .fsync = how >> 5 & 3,
		.flags = take_u16(&c->in) & WIRE_OPEN_FLAGS, .streams = take_u16(&c->in) };
	size_t n = 0;
	unsigned i;

	how = take_byte(&c->in);
	o.n_paths = how % 8;
	o.wait_ms = (how >> 3) * 1000u;
	o.preserve = take_byte(&c->in) & WIRE_PRESERVE_ALL;
	for (i = 0; i < o.n_paths; i++) {
		uint8_t flags = take_byte(&c->in) % 5;
		struct input part = take_bytes(&c->in, take_byte(&c->in));

		n += wire_path_encode(paths + n, flags, (struct span){ part.p, part.n });
	}
	o.paths = (struct span){ paths, n };
	deliver(c, frame, wire_open_encode(frame, &o));
}

static void put_opened(struct start *c)
{
	static uint8_t frame[WIRE_OPENED_MAX_BYTES];
	uint8_t how = take_byte(&c->in);
	struct wire_opened f = { .session = { how }, .cipher = how & 7, .flags = how >> 3 & WIRE_OPENED_FLAGS };

	f.streams = take_byte(&c->in);
	deliver(c, frame, wire_opened_encode(frame, &f));
}

static void put_waiting(struct start *c)
{
	static uint8_t frame[WIRE_WAITING_MAX_BYTES];
	struct wire_waiting f = { take_u16(&c->in) };

	deliver(c, frame, wire_waiting_encode(frame, &f));
}

/* ---- This end ---- */

static void let_wait(struct start *c)
{
	if (c->judging && !c->may_wait)
		return;
	c->waited += c->judging;
	engine_wait(c->s, c->waited);
}

static void decide(struct start *c)
{
	uint8_t how = take_byte(&c->in);
	struct ptcp_err e;

	if (!c->judging) {
		engine_accept(c->s, &c->granted, c->now); /* ignored */
		MUST(!c->running);
		return;
	}
	c->judging = false;
	c->answered = true;
	if (!c->permitted || how == 0xff) {
		err_set(&e, PTCP_EREFUSED, "the script says so");
		engine_fail(c->s, &e);
		return;
	}
	c->granted = (struct wire_opened){ .session = { 1 }, .cipher = (uint8_t)c->request.cipher,
		.streams = (uint16_t)c->request.n_granted };
	engine_accept(c->s, &c->granted, c->now);
}

static void pass_time(struct start *c)
{
	static const uint64_t ns[] = { 0, NS_PER_MS, NS_PER_S, 5 * NS_PER_S, 11 * NS_PER_S, 13 * NS_PER_S };

	c->now.ns += ns[take_byte(&c->in) % 6];
	engine_tick(c->s, c->now);
}

/* Frames from the engine, in the order of PROTOCOL.md, section 4. */
static void hear(struct start *c)
{
	static uint8_t out[RECODE_MAX_BYTES];
	struct buf *b = &engine_outbox(c->s)->b;
	struct wire_header h;
	struct wire_open o;
	struct span payload;
	size_t n;

	while (buf_len(b) > 0) {
		MUST(buf_len(b) >= WIRE_HEADER_BYTES && wire_header_decode(&h, buf_head(b), NULL) == 0);
		MUST(buf_len(b) - WIRE_HEADER_BYTES >= h.length);
		MUST(recode(buf_head(b), WIRE_HEADER_BYTES + h.length, out, &n, NULL) == 0);
		payload = (struct span){ buf_head(b) + WIRE_HEADER_BYTES, h.length };
		MUST(c->heard_error == 0 && (h.type == WIRE_HELLO) == (c->heard_hello == 0));
		c->heard_hello += h.type == WIRE_HELLO;
		c->heard_error += h.type == WIRE_ERROR;
		c->heard_opened += h.type == WIRE_OPENED;
		c->heard_waiting += h.type == WIRE_WAITING;
		if (h.type == WIRE_OPEN) {
			MUST((c->kind & STARTER) != 0 && c->heard_open++ == 0 &&
			    wire_open_decode(&o, payload, NULL) == 0);
			c->requested_streams = o.streams;
			c->requested = c->now;
			MUST(o.wait_ms == c->wait_ms);
		}
		buf_consume(b, WIRE_HEADER_BYTES + h.length);
	}
	MUST(c->heard_waiting == c->waited);
	MUST(c->heard_opened == ((c->kind & STARTER) == 0 && c->running ? 1 : 0));
}

/* The engine is punctual: a late tick would excuse the peer. */
static void fall_silent(struct start *c)
{
	struct mono end = mono_add_ns(c->now, TIMEOUT_NS);

	engine_tick(c->s, c->now);
	while (!engine_over(c->s) && c->now.ns < end.ns) {
		c->now = mono_min(engine_deadline(c->s), end);
		engine_tick(c->s, c->now);
	}
}

static void move(struct start *c)
{
	uint8_t what = take_byte(&c->in);

	switch (what % 10) {
	case 0: put_raw(c); break;
	case 1: put_framed(c); break;
	case 2: case 3: put_hello(c); break;
	case 4: case 5: put_open(c); break;
	case 6: what < 128 ? put_opened(c) : put_waiting(c); break;
	case 7: pass_time(c); break;
	case 8: what < 128 ? decide(c) : let_wait(c); break;
	default: engine_closed(c->s, &(struct ptcp_err){ .code = PTCP_EPEER, .msg = "connection lost" });
	}
}

static void begin(struct start *c)
{
	static const uint8_t a_path[] = { 0, 0, 1, 'p' };
	uint8_t how = take_byte(&c->in);
	bool measures = (c->kind & MEASURES) != 0;
	struct wire_open open = { .role = (measures ? WIRE_ACCEPTOR_DISCARDS : WIRE_ACCEPTOR_RECEIVES) + (how & 1u),
		.cipher = how >> 1 & 3, .streams = 6, .n_paths = measures ? 0 : 1,
		.paths = { a_path, measures ? 0 : sizeof a_path }, .flags = measures ? 0 : how >> 3 & 1u,
		.wait_ms = (how >> 4) * 5000u };
	struct engine_opts o = { .starter = (c->kind & STARTER) != 0, .one_channel = (c->kind & ONE_CHANNEL) != 0,
		.linger_ns = (c->kind & LINGERS) != 0 ? LINGER_NS : 0, .quiet_ns = QUIET_NS, .software = "fuzz",
		.timeout_ns = TIMEOUT_NS, .max_entries = 16, .max_streams = STREAMS_MAX, .ops = &ops, .arg = c };

	c->offers = o.starter && open.role == WIRE_ACCEPTOR_RECEIVES;
	c->wait_ms = open.wait_ms;
	ptcp_server_opts_init(&c->server);
	c->server.max_streams = STREAMS_MAX;
	c->server.ciphers = how >> 4;
	MUST(engine_new(&c->s, &o, o.starter ? &open : NULL, c->now, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct start *c = calloc(1, sizeof *c);
	unsigned moves;

	MUST(c != NULL);
	c->in = (struct input){ data, n };
	c->now.ns = NS_PER_S;
	c->kind = take_byte(&c->in);
	begin(c);
	for (moves = 0; moves < MOVES_MAX && c->in.n > 0 && !c->running && !engine_over(c->s); moves++) {
		MUST((engine_snd(c->s) != NULL) == c->offers && engine_rcv(c->s) == NULL);
		move(c);
		hear(c);
		MUST(c->running || engine_over(c->s) || engine_deadline(c->s).ns <= c->now.ns + TIMEOUT_NS);
	}
	if (!c->running) { /* no state before OPENED outlives a silent peer */
		fall_silent(c);
		MUST(engine_over(c->s));
		hear(c);
	}
	MUST(engine_over(c->s) == c->ended);
	engine_drop(c->s);
	engine_free(c->s);
	request_fini(&c->request);
	free(c);
	return 0;
}
