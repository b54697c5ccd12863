#include "xfer/session.h"

#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/units.h"

#define STATES(X) X(HELLO) X(OPENING) X(ASKED) X(JUDGING) X(RUNNING) X(ENDING) X(ENDED) X(FAILED)

enum state {
#define X(name) name,
	STATES(X)
#undef X
};

static const char *const state_names[] = {
#define X(name) #name,
	STATES(X)
#undef X
};

#define TELL_NS (200 * NS_PER_MS) /* between PINGs at the least */

struct session {
	struct session_opts o;
	enum state state;
	struct buf in;
	struct outbox out;
	struct buf wanted_paths;         /* the starter's */
	struct wire_open open;
	struct snd *snd;
	struct rcv *rcv;
	uint64_t peer_timeout_ns, ticks;
	uint32_t peer_entries;
	bool peer_links;                 /* it takes HARDLINK entries */
	bool returns;                    /* offered, and not declined */
	bool peer_rates;                 /* it knows RATE */
	uint64_t n_rates;                /* it has sent */
	struct mono running_since;
	uint64_t noted_failures;
	enum wire_busy told_busy, peer_busy;
	struct wire_end end;             /* the sender's, at the receiver */
	struct mono last_ping, last_heard, last_progress;
	struct mono last_work;           /* as last_progress, but a peer that says it is busy does not count */
};

static void set_state(struct session *s, enum state to, const char *event)
{
	log_at(s->o.log, LOG_DEBUG, "session", "state=%s->%s event=%s", state_names[s->state],
	    state_names[to], event);
	s->state = to;
}

int session_new(struct session **out, const struct session_opts *o, const struct wire_open *open,
    struct mono now, struct ptcp_err *e)
{
	struct session *s = calloc(1, sizeof *s);
	struct wire_hello h = {
		.version_min = WIRE_VERSION, .version_max = WIRE_VERSION,
		.timeout_ms = (uint32_t)((o->hello_timeout_ns > 0 ? o->hello_timeout_ns : o->timeout_ns) / NS_PER_MS),
		.max_entries = o->max_entries, .max_streams = o->max_streams,
		.n_abilities = 4,
		.abilities = { WIRE_ABLE_HARDLINK, WIRE_ABLE_STEERED, WIRE_ABLE_HELD, WIRE_ABLE_RATE },
		.software = { (const uint8_t *)o->software, strlen(o->software) }
	};
	uint8_t *p;

	if (s == NULL)
		return err_nomem(e);
	if (o->one_channel)
		h.abilities[h.n_abilities++] = WIRE_ABLE_ONE_CHANNEL;
	if (o->returns)
		h.abilities[h.n_abilities++] = WIRE_ABLE_RETURN;
	s->o = *o;
	s->returns = o->returns;
	s->last_ping = s->last_heard = now;
	session_progress(s, now);
	s->peer_timeout_ns = o->timeout_ns;
	if (open != NULL) {
		s->open = *open;
		if ((p = buf_reserve(&s->wanted_paths, open->paths.n + 1)) == NULL) {
			free(s);
			return err_nomem(e);
		}
		if (open->paths.n > 0)
			memcpy(p, open->paths.p, open->paths.n);
		s->open.paths.p = p;
	}
	OUTBOX_PUT(&s->out, hello, HELLO, &h);
	*out = s;
	return 0;
}

void session_free(struct session *s)
{
	if (s == NULL)
		return;
	snd_free(s->snd);
	rcv_free(s->rcv);
	buf_fini(&s->in);
	buf_fini(&s->out.b);
	buf_fini(&s->wanted_paths);
	free(s);
}

void session_drop(struct session *s)
{
	if (s->snd != NULL)
		snd_drop(s->snd);
	if (s->rcv != NULL)
		rcv_drop(s->rcv);
}

struct outbox *session_outbox(struct session *s) { return &s->out; }
struct snd *session_snd(struct session *s) { return s->snd; }
struct rcv *session_rcv(struct session *s) { return s->rcv; }
bool session_takes_links(const struct session *s) { return s->peer_links; }
bool session_returns(const struct session *s) { return s->returns; }
struct mono session_heard(const struct session *s) { return s->last_heard; }
const struct wire_open *session_open(const struct session *s) { return &s->open; }

bool session_over(const struct session *s)
{
	return s->state == ENDED || s->state == FAILED;
}

/* ---- The end ---- */

static void fail(struct session *s, const struct ptcp_err *why, bool tell)
{
	struct ptcp_err copy = *why;

	if (session_over(s))
		return;
	if (tell) {
		s->out.failed = false; /* the last word, whatever went wrong before */
		outbox_put_error(&s->out, &copy);
	}
	set_state(s, FAILED, ptcp_err_name(copy.code));
	s->o.ops->ended(s->o.arg, &copy);
}

void session_fail(struct session *s, const struct ptcp_err *why)
{
	fail(s, why, true);
}

void session_closed(struct session *s, const struct ptcp_err *why)
{
	fail(s, why, false);
}

static void finish(struct session *s)
{
	set_state(s, ENDED, "END");
	s->o.ops->ended(s->o.arg, NULL);
}

uint64_t session_failed(const struct session *s)
{
	uint64_t n = s->noted_failures;

	if (s->snd != NULL)
		return n + snd_stats(s->snd).failed;
	if (s->rcv != NULL)
		n += rcv_stats(s->rcv).failed;
	/* More when directories failed: what is in them was never offered. */
	return s->end.failed > n ? s->end.failed : n;
}

uint64_t session_files(const struct session *s)
{
	return s->snd != NULL ? snd_stats(s->snd).files :
	    s->rcv != NULL ? rcv_stats(s->rcv).files : 0;
}

void session_note(struct session *s, enum wire_note_kind kind, const char *path,
    const struct ptcp_err *why)
{
	size_t path_n = strlen(path), text_n = strlen(why->msg);
	struct wire_note n = {
		.kind = (uint8_t)kind, .code = (uint16_t)-why->code,
		.path = { (const uint8_t *)path, path_n < WIRE_PATH_MAX ? path_n : WIRE_PATH_MAX },
		.text = { (const uint8_t *)why->msg, text_n < WIRE_TEXT_MAX ? text_n : WIRE_TEXT_MAX }
	};

	if (kind == WIRE_NOTE_FAILED)
		s->noted_failures++;
	OUTBOX_PUT(&s->out, note, NOTE, &n);
}

static void send_end(struct session *s)
{
	struct wire_end end = { session_files(s), session_failed(s) };

	OUTBOX_PUT(&s->out, end, END, &end);
	set_state(s, ENDING, "finished");
}

void session_finish(struct session *s)
{
	if (s->state == RUNNING)
		send_end(s);
}

/* ---- Agreeing ---- */

static bool measures(const struct session *s)
{
	return s->open.role == WIRE_YOU_DROP || s->open.role == WIRE_YOU_FLOOD;
}

/* Whether the acceptor sends. */
static bool gives(const struct session *s)
{
	return s->open.role == WIRE_YOU_SEND || s->open.role == WIRE_YOU_FLOOD;
}

bool session_held(const struct session *s)
{
	return (s->open.flags & WIRE_OPEN_HELD) != 0;
}

bool session_steered(const struct session *s)
{
	return (s->open.flags & WIRE_OPEN_STEERED) != 0;
}

void session_use(struct session *s, const struct wire_use *u)
{
	if (s->state == RUNNING)
		OUTBOX_PUT(&s->out, use, USE, u);
}

void session_tell_load(struct session *s, const struct wire_load *f)
{
	if (s->state == RUNNING)
		OUTBOX_PUT(&s->out, load, LOAD, f);
}

void session_tell_seen(struct session *s, const struct wire_seen *f)
{
	if (s->state == RUNNING)
		OUTBOX_PUT(&s->out, seen, SEEN, f);
}

bool session_takes_rates(const struct session *s)
{
	return s->peer_rates && s->o.starter && s->rcv != NULL;
}

void session_rate(struct session *s, const struct wire_rate *f)
{
	if (s->state == RUNNING)
		OUTBOX_PUT(&s->out, rate, RATE, f);
}

static int start_engine(struct session *s, struct ptcp_err *e)
{
	/* `role` is what the acceptor does. */
	bool sends = (s->open.role == WIRE_YOU_SEND) != s->o.starter;
	bool verify = (s->open.flags & WIRE_OPEN_VERIFY) != 0;
	bool dry_run = (s->open.flags & WIRE_OPEN_DRY_RUN) != 0;

	if (measures(s))
		return 0;
	if (sends) {
		struct snd_opts so = { s->peer_entries, s->o.timeout_ns, s->peer_timeout_ns, verify, dry_run,
			s->o.ops->snd, s->o.arg };

		return snd_new(&s->snd, &so, &s->out, e);
	} else {
		struct rcv_opts ro = { s->o.max_entries, verify, dry_run, s->o.ops->rcv, s->o.arg };

		return rcv_new(&s->rcv, &ro, &s->out, e);
	}
}

static int run(struct session *s, const struct wire_opened *o, const char *event, struct ptcp_err *e)
{
	int r;

	if ((r = start_engine(s, e)) < 0)
		return r;
	s->running_since = s->last_progress;
	set_state(s, RUNNING, event);
	s->o.ops->running(s->o.arg, o);
	return 0;
}

static bool is_able(const struct wire_hello *h, enum wire_ability a)
{
	unsigned i;

	for (i = 0; i < h->n_abilities; i++)
		if (h->abilities[i] == a)
			return true;
	return false;
}

static int do_without_steering(struct session *s, struct ptcp_err *e)
{
	if (s->open.role == WIRE_YOU_FLOOD)
		return err_set(e, PTCP_ENOTYET, "the peer is too old to be measured in this direction (update it)");
	s->open.flags &= ~(uint32_t)WIRE_OPEN_STEERED;
	if (s->o.fixed_streams > 0)
		s->open.streams = s->o.fixed_streams;
	return 0;
}

static int on_hello(struct session *s, struct span in, struct ptcp_err *e)
{
	struct wire_hello h;
	struct wire_open o = s->open;
	uint8_t *p;
	int r;

	if ((r = wire_hello_decode(&h, in, e)) < 0)
		return r;
	if (h.version_min > WIRE_VERSION || h.version_max < WIRE_VERSION)
		return err_set(e, PTCP_EPROTO, "the peer speaks versions %u to %u of the protocol, "
		    "this is version %u (update the older side)", h.version_min, h.version_max,
		    WIRE_VERSION);
	if (s->o.one_channel && !is_able(&h, WIRE_ABLE_ONE_CHANNEL))
		return err_set(e, PTCP_EPROTO, "the peer cannot take data on the control connection (update it, or "
		    "open a port to it)");
	s->peer_timeout_ns = (h.timeout_ms > 300 ? h.timeout_ms : 300) * NS_PER_MS;
	s->peer_entries = h.max_entries;
	s->peer_links = is_able(&h, WIRE_ABLE_HARDLINK);
	s->peer_rates = is_able(&h, WIRE_ABLE_RATE);
	s->returns = s->returns && is_able(&h, WIRE_ABLE_RETURN);
	if (!s->o.starter) {
		set_state(s, ASKED, "HELLO");
		return 0;
	}
	if (session_steered(s) && !is_able(&h, WIRE_ABLE_STEERED)) {
		if ((r = do_without_steering(s, e)) < 0)
			return r;
		o = s->open;
	}
	if (!is_able(&h, WIRE_ABLE_HELD))
		o.flags = s->open.flags &= ~(uint32_t)WIRE_OPEN_HELD;
	if (o.streams > h.max_streams)
		o.streams = s->open.streams = h.max_streams;
	if ((p = outbox_room(&s->out, WIRE_OPEN_MAX_BYTES + o.paths.n)) != NULL)
		outbox_added(&s->out, wire_open_encode(p, &o));
	set_state(s, OPENING, "HELLO");
	return 0;
}

static int on_open(struct session *s, struct span in, struct ptcp_err *e)
{
	struct wire_open o;
	int r;

	if ((r = wire_open_decode(&o, in, e)) < 0)
		return r;
	s->open = o;
	s->open.paths = (struct span){ NULL, 0 };
	set_state(s, JUDGING, "OPEN");
	s->o.ops->open(s->o.arg, &o);
	return 0;
}

static int on_opened(struct session *s, struct span in, struct ptcp_err *e)
{
	struct wire_opened o;
	int r;

	if ((r = wire_opened_decode(&o, in, e)) < 0)
		return r;
	if (o.streams > s->open.streams || o.cipher != s->open.cipher)
		return err_set(e, PTCP_EPROTO, "the peer agreed to more than was asked for");
	return run(s, &o, "OPENED", e);
}

void session_accept(struct session *s, const struct wire_opened *o, struct mono now)
{
	struct ptcp_err e;

	if (s->state != JUDGING)
		return;
	OUTBOX_PUT(&s->out, opened, OPENED, o);
	session_progress(s, now);
	if (run(s, o, "accept", &e) < 0)
		fail(s, &e, true);
}

/* ---- Frames ---- */

static int unexpected(const struct session *s, unsigned type, struct ptcp_err *e)
{
	return err_set(e, PTCP_EPROTO, "unexpected %s frame in state %s", wire_type_name(type),
	    state_names[s->state]);
}

static int on_error(struct session *s, struct span in, struct ptcp_err *e)
{
	struct wire_error f;
	struct ptcp_err why;
	int r;

	if ((r = wire_error_decode(&f, in, e)) < 0)
		return r;
	outbox_reason(&why, f.code, f.text);
	fail(s, &why, false);
	return 0;
}

/* Not for ever. */
static bool believes(const struct session *s, unsigned timeouts, struct mono now)
{
	return mono_diff_ns(now, s->last_work) / timeouts < s->o.timeout_ns;
}

/* Not before there is anything to be busy with. */
static bool is_excuse(const struct session *s, enum wire_busy busy, struct mono now)
{
	return busy != WIRE_IDLE && s->state != HELLO && s->state != ASKED &&
	    believes(s, busy == WIRE_VERIFYING ? SESSION_VERIFYING_TIMEOUTS : SESSION_BUSY_TIMEOUTS, now);
}

static int on_ping(struct session *s, struct span in, struct mono now, struct ptcp_err *e)
{
	struct wire_ping f;
	int r;

	if ((r = wire_ping_decode(&f, in, e)) < 0)
		return r;
	s->peer_busy = is_excuse(s, (enum wire_busy)f.busy, now) ? (enum wire_busy)f.busy : WIRE_IDLE;
	if (s->peer_busy != WIRE_IDLE) {
		s->last_progress = now;
		if (s->snd != NULL)
			snd_excuse(s->snd, now);
	}
	return 0;
}

static int on_heard(struct session *s, struct span in, struct ptcp_err *e)
{
	struct wire_heard f;
	int r;

	if (s->state == HELLO || !s->returns)
		return unexpected(s, WIRE_HEARD, e);
	return (r = wire_heard_decode(&f, in, e)) < 0 ? r : s->o.ops->heard(s->o.arg, f.bytes, e);
}

/* No sign of progress. */
static int on_load(struct session *s, struct span in, struct ptcp_err *e)
{
	struct wire_load f;
	int r;

	if (s->state == HELLO || !s->o.starter)
		return unexpected(s, WIRE_LOAD, e);
	if ((r = wire_load_decode(&f, in, e)) == 0)
		s->o.ops->load(s->o.arg, &f);
	return r;
}

static int on_note(struct session *s, struct span in, struct ptcp_err *e)
{
	struct wire_note n;
	int r;

	if ((r = wire_note_decode(&n, in, e)) < 0)
		return r;
	if (n.kind == WIRE_NOTE_FAILED && s->snd != NULL)
		return err_set(e, PTCP_EPROTO, "unexpected NOTE of a failure from the receiver");
	if (n.kind == WIRE_NOTE_FAILED)
		s->noted_failures++;
	s->o.ops->note(s->o.arg, &n);
	return 0;
}

/* Both ends must have come to the same. */
static int on_end(struct session *s, struct span in, struct ptcp_err *e)
{
	struct wire_end end;
	int r;

	if ((r = wire_end_decode(&end, in, e)) < 0)
		return r;
	if (s->rcv != NULL && !rcv_idle(s->rcv))
		return unexpected(s, WIRE_END, e);
	if (end.files != session_files(s) || end.failed < session_failed(s) ||
	    (s->snd != NULL && end.failed != session_failed(s)))
		return err_set(e, PTCP_EPROTO, "the peer's count of files differs");
	if (s->state == RUNNING) { /* the sender's, which gets it back */
		s->end = end;
		OUTBOX_PUT(&s->out, end, END, &end);
	}
	finish(s);
	return 0;
}

static int on_use(struct session *s, struct span in, struct ptcp_err *e)
{
	struct wire_use u;
	int r;

	if ((r = wire_use_decode(&u, in, e)) < 0)
		return r;
	s->o.ops->use(s->o.arg, &u);
	return 0;
}

static int on_seen(struct session *s, struct span in, struct ptcp_err *e)
{
	struct wire_seen f;
	int r;

	if ((r = wire_seen_decode(&f, in, e)) < 0)
		return r;
	s->o.ops->seen(s->o.arg, &f);
	return 0;
}

/* Each makes us look at all streams. */
static int on_rate(struct session *s, struct span in, struct mono now, struct ptcp_err *e)
{
	struct wire_rate f;
	int r;

	if (++s->n_rates > SESSION_RATES + SESSION_RATES_PER_S * (mono_diff_ns(now, s->running_since) / NS_PER_S))
		return err_set(e, PTCP_EPROTO, "too many RATE frames");
	if ((r = wire_rate_decode(&f, in, e)) < 0)
		return r;
	s->o.ops->rate(s->o.arg, &f);
	return 0;
}

static int running_frame(struct session *s, unsigned type, struct span in, struct mono now,
    struct ptcp_err *e)
{
	if (type == WIRE_USE && session_steered(s) && !s->o.starter)
		return on_use(s, in, e);
	if (type == WIRE_SEEN && session_steered(s) && s->o.starter && gives(s))
		return on_seen(s, in, e);
	if (type == WIRE_RATE && s->peer_rates && s->snd != NULL && !s->o.starter)
		return on_rate(s, in, now, e);
	if (type == WIRE_NOTE)
		return on_note(s, in, e);
	if (s->snd != NULL)
		return type == WIRE_END && s->state == ENDING ? on_end(s, in, e) :
		    snd_frame(s->snd, type, in, now, e);
	if (s->rcv == NULL)
		return type == WIRE_END && (s->state == ENDING) == s->o.starter ? on_end(s, in, e) :
		    unexpected(s, type, e);
	return type == WIRE_END ? on_end(s, in, e) : rcv_frame(s->rcv, type, in, e);
}

/* Talk brings nothing on, however much there is of it. */
static bool brings(unsigned type)
{
	return type != WIRE_USE && type != WIRE_SEEN && type != WIRE_RATE && type != WIRE_NOTE;
}

static int frame(struct session *s, unsigned type, struct span in, struct mono now,
    struct ptcp_err *e)
{
	if (type == WIRE_ERROR)
		return on_error(s, in, e);
	if (type == WIRE_PING)
		return on_ping(s, in, now, e);
	if (type == WIRE_HEARD)
		return on_heard(s, in, e);
	if (type == WIRE_LOAD)
		return on_load(s, in, e);
	if (brings(type))
		session_progress(s, now);
	switch (s->state) {
	case HELLO:
		return type == WIRE_HELLO ? on_hello(s, in, e) : unexpected(s, type, e);
	case OPENING:
		return type == WIRE_OPENED ? on_opened(s, in, e) : unexpected(s, type, e);
	case ASKED:
		return type == WIRE_OPEN ? on_open(s, in, e) : unexpected(s, type, e);
	case RUNNING:
	case ENDING:
		return running_frame(s, type, in, now, e);
	case JUDGING:
	case ENDED:
	case FAILED:
		break;
	}
	return unexpected(s, type, e);
}

/* 1 when a frame was taken, 0 when more bytes are needed. */
static int next_frame(struct session *s, struct mono now, struct ptcp_err *e)
{
	struct wire_header h;
	int r;

	if (buf_len(&s->in) < WIRE_HEADER_BYTES)
		return 0;
	if ((r = wire_header_decode(&h, buf_head(&s->in), e)) < 0)
		return r;
	if (h.length > WIRE_CONTROL_MAX)
		return unexpected(s, h.type, e); /* a BLOCK: not on this channel */
	if (buf_len(&s->in) - WIRE_HEADER_BYTES < h.length)
		return 0;
	if (wire_type_known(h.type) &&
	    (r = frame(s, h.type, (struct span){ buf_head(&s->in) + WIRE_HEADER_BYTES, h.length },
	    now, e)) < 0)
		return r;
	buf_consume(&s->in, WIRE_HEADER_BYTES + h.length);
	return 1;
}

void session_input(struct session *s, const uint8_t *p, size_t n, struct mono now)
{
	struct ptcp_err e;
	uint8_t *room;
	int r = 1;

	if (session_over(s))
		return;
	s->last_heard = now;
	if ((room = buf_reserve(&s->in, n)) == NULL) {
		err_nomem(&e);
		fail(s, &e, true);
		return;
	}
	memcpy(room, p, n);
	buf_added(&s->in, n);
	while (r > 0 && !session_over(s))
		if ((r = next_frame(s, now, &e)) < 0)
			fail(s, &e, true);
	if (!session_over(s))
		session_tick(s, now);
}

/* ---- Time ---- */

void session_progress(struct session *s, struct mono now)
{
	s->last_progress = s->last_work = now;
}

/* Whether the peer owes us something. */
static bool waiting(const struct session *s)
{
	if (s->state == JUDGING || (s->state == RUNNING && measures(s)))
		return false;
	return s->state != RUNNING || s->snd == NULL || snd_stats(s->snd).live > 0;
}

/* Judging is looking at the disk, too. */
static enum wire_busy busy(const struct session *s)
{
	return s->state == JUDGING ? WIRE_READING : s->o.ops->busy(s->o.arg);
}

/* What the peer's user wants to see of it at once: nothing moves meanwhile. */
static bool worth_telling(enum wire_busy b)
{
	return b == WIRE_SYNCING || b == WIRE_VERIFYING;
}

/* How long after the last PING the next is due. That we are busy no more is told soon: until then the peer bears what
 * it would else do something about. */
static uint64_t ping_after_ns(const struct session *s, enum wire_busy now)
{
	uint64_t regular = s->peer_timeout_ns / 3;

	if (now == s->told_busy || (now != WIRE_IDLE && !worth_telling(now) && !worth_telling(s->told_busy)))
		return regular;
	return regular < TELL_NS ? regular : TELL_NS;
}

struct mono session_deadline(const struct session *s)
{
	struct mono at = mono_add_ns(s->last_ping, ping_after_ns(s, busy(s))), t;

	if (session_over(s))
		return MONO_NEVER;
	t = mono_add_ns(s->last_heard, s->o.timeout_ns);
	if (t.ns < at.ns)
		at = t;
	t = mono_add_ns(s->last_progress, s->o.timeout_ns);
	if (waiting(s) && t.ns < at.ns)
		at = t;
	if (s->snd != NULL && (t = snd_deadline(s->snd)).ns < at.ns)
		at = t;
	if (s->rcv != NULL && (t = rcv_deadline(s->rcv)).ns < at.ns)
		at = t;
	return at;
}

static void check_time(struct session *s, struct mono now)
{
	enum wire_busy doing = busy(s);
	bool paced = s->o.ops->paced != NULL && s->o.ops->paced(s->o.arg);
	struct wire_ping ping = { (uint8_t)doing, 0 };
	struct ptcp_err e;

	if (!waiting(s) || (doing != WIRE_IDLE && !paced))
		session_progress(s, now);
	else if (paced && believes(s, SESSION_BUSY_TIMEOUTS, now))
		s->last_progress = now;
	if (mono_diff_ns(now, s->last_heard) >= s->o.timeout_ns) {
		err_set(&e, PTCP_ETIMEOUT, "the peer: not heard of for %.3g s "
		    "(check the network and the other host, then run it again)",
		    (double)s->o.timeout_ns / 1e9);
		fail(s, &e, true);
	} else if (mono_diff_ns(now, s->last_progress) >= s->o.timeout_ns) {
		err_set(&e, PTCP_ETIMEOUT, "the peer: no progress for %.3g s "
		    "(check the network and the other host, then run it again)",
		    (double)s->o.timeout_ns / 1e9);
		fail(s, &e, true);
	} else if (mono_diff_ns(now, s->last_ping) >= ping_after_ns(s, doing)) {
		s->told_busy = doing;
		ping.tick = ++s->ticks;
		OUTBOX_PUT(&s->out, ping, PING, &ping);
		s->last_ping = now;
	}
}

void session_tick(struct session *s, struct mono now)
{
	struct ptcp_err e;

	if (session_over(s))
		return;
	if (s->snd != NULL) {
		snd_tick(s->snd, now);
		if (session_over(s))
			return; /* an operation ended it */
		if (s->state == RUNNING && snd_finished(s->snd))
			send_end(s);
	}
	if (s->rcv != NULL)
		rcv_tick(s->rcv);
	check_time(s, now);
	if (s->out.failed && !session_over(s)) {
		err_set(&e, PTCP_ENOMEM, "control connection: the peer does not read it, or memory is short");
		fail(s, &e, true);
	}
}

enum wire_busy session_peer_busy(const struct session *s) { return s->peer_busy; }
