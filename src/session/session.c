#include "session/session_impl.h"

#include <stdlib.h>
#include <string.h>

#include "core/charged.h"
#include "core/err.h"
#include "core/units.h"
#include "fs/fd_budget.h"
#include "session/receive_impl.h"

#define QUIET_NS (5 * NS_PER_S)       /* limit of the end that replaces the control connection; see control_pump() */
#define ENTRY_BYTES (UINT64_C(256) + RECEIVE_ENTRY_BYTES) /* includes the engine's part */
#define KEPT_ALIVE_NS (60 * NS_PER_S) /* three PINGs in this time keep the entry of a NAT */

/* ---- Its parts ---- */

/* While the session runs, pump() does the part's due work, and is called at the deadline at the latest. Each part
 * checks itself whether the session has it. Members may be NULL. */
static const struct session_part {
	void (*pump)(struct session *sess, struct mono now);
	struct mono (*deadline)(const struct session *sess);
	void (*free)(struct session *sess);
} parts[] = { /* pump() and deadline() are called in this order */
	{ adapt_rates, adapt_rates_deadline, NULL },
	{ control_pump, control_deadline, control_free },
	{ stalls_pump, stalls_deadline, NULL },
	{ adapt_to_movers, NULL, NULL },
	{ striping_pump, striping_deadline, striping_stop },
	{ adapt_requested, NULL, NULL },
	{ stream_connect_pump, stream_connect_deadline, NULL },
	{ adapt_streams, adapt_streams_deadline, NULL },
	{ tcp_report_pump, tcp_report_deadline, NULL },
	{ congestion_pump, congestion_deadline, NULL },
	{ yielding_pump, yielding_deadline, yielding_free },
	{ adapt_dead_paths, adapt_dead_paths_deadline, NULL },
	{ adapt_paths, adapt_paths_deadline, NULL },
	{ adapt_load, adapt_load_deadline, spending_free },
	{ progress_pump, NULL, NULL },
	{ send_pump, NULL, send_free },
	{ receive_pump, receive_deadline, receive_free },
	{ probe_session_pump, probe_session_deadline, probe_session_free },
};
#define PARTS (sizeof parts / sizeof parts[0])

/* ---- The end ---- */

static void notify_gone(struct msg *m)
{
	struct session *sess = CONTAINER_OF(m, struct session, end.gone);

	sess->o.ops->gone(sess->o.arg, sess, sess->end.failed ? &sess->end.why : NULL);
}

/* A starter that has received everything, and confirmed the end, does not wait until the sender closes: the result is
 * final. Reads what has arrived: with unread input the kernel would reset the connection, and END could be lost. */
static bool leaves_first(struct session *sess)
{
	uint8_t rest[1024];

	if (sess->end.failed || sess->o.open == NULL || sess->receive == NULL || sess->control.mux != NULL)
		return false;
	chan_flush(sess->control.chan);
	if (!chan_flushed(sess->control.chan))
		return false;
	while (chan_read(sess->control.chan, rest, sizeof rest) > 0)
		;
	control_replay_end(&sess->control.replay);
	return true;
}

/* The last frames, and the end of the control connection. */
static void wind_up_control(struct session *sess, struct mono now)
{
	bool done;

	control_flush(sess);
	chan_pause(sess->control.chan, false); /* notices its end */
	done = buf_len(&engine_outbox(sess->engine)->b) == 0 && sess->control.replay.resend == 0 &&
	    (sess->control.mux == NULL || mux_is_between(sess->control.mux));
	if (done)
		chan_shutdown(sess->control.chan);
	if ((done && leaves_first(sess)) || now.ns >= sess->end.give_up.ns) {
		chan_free(sess->control.chan);
		sess->control.chan = NULL;
	} else {
		timer_set(sess->timer, sess->end.give_up);
	}
}

/* Ends the session: informs the peer, releases streams and files, and once no other thread works for the session,
 * informs the owner. */
static void wind_up(struct session *sess, struct mono now)
{
	receive_lend_room(sess->receive); /* at once: the client's next run may need it */
	stream_connect_stop(sess);
	striping_stop(sess);
	streams_close(sess, false);
	if (sess->control.chan != NULL)
		wind_up_control(sess, now);
	if (sess->control.chan == NULL && control_may_resume(sess) && now.ns < sess->end.give_up.ns) {
		control_pump(sess, now);
		stream_connect_control(sess, now);
		timer_set(sess->timer, mono_min(sess->end.give_up,
		    mono_min(control_deadline(sess), stream_connect_deadline(sess))));
		return;
	}
	stream_connect_stop_control(sess);
	if (sess->control.chan != NULL || sess->streams.n_connected + sess->streams.n_ending > 0 ||
	    (sess->send != NULL && !send_idle(sess)))
		return;
	if (sess->engine != NULL) {
		/* Releases unfinished entries; received parts need work by the store. */
		engine_drop(sess->engine);
		if (sess->receive != NULL) {
			receive_pump(sess, now);
			if (!receive_idle(sess))
				return;
		}
	}
	if (sess->end.gone_posted)
		return;
	sess->end.gone_posted = true;
	sess->end.gone.run = notify_gone;
	loop_post(sess->o.context->control, &sess->end.gone);
}

void session_free(struct session *sess)
{
	unsigned i;

	if (sess == NULL)
		return;
	peer_drop_spare(sess);
	mux_free(sess->control.mux);
	timer_free(sess->timer);
	engine_free(sess->engine);
	for (i = 0; i < PARTS; i++)
		if (parts[i].free != NULL)
			parts[i].free(sess);
	striping_free(sess);
	streams_free(sess);
	explicit_bzero(sess->key, sizeof sess->key);
	memory_release(sess->o.memory, CHAN_BYTES);
	memory_free(sess->o.memory, sess, sizeof *sess);
}

/* ---- Driving the parts ---- */

static struct mono deadline(const struct session *sess)
{
	struct mono at = engine_deadline(sess->engine);
	unsigned i;

	for (i = 0; i < PARTS && sess->running; i++)
		if (parts[i].deadline != NULL)
			at = mono_min(at, parts[i].deadline(sess));
	return at;
}

static void pump(struct session *sess)
{
	struct mono now = mono_now();
	unsigned i;

	if (sess->pumping)
		return; /* called from an operation: the outer call continues */
	sess->pumping = true;
	control_flush(sess); /* makes room for more */
	if (sess->control.mux != NULL && mux_has_pending(sess->control.mux))
		/* the peer is not silent: this end does not read */
		engine_input(sess->engine, (const uint8_t *)"", 0, now);
	engine_tick(sess->engine, now);
	if (sess->running && !sess->end.over) {
		for (i = 0; i < PARTS; i++)
			if (parts[i].pump != NULL)
				parts[i].pump(sess, now);
		engine_tick(sess->engine, now);
	} else if (!sess->end.over) {
		send_early(sess);
	}
	sess->pumping = false;
	if (sess->end.over) {
		wind_up(sess, now);
		return;
	}
	control_flush(sess);
	timer_set(sess->timer, deadline(sess));
}

static void on_timer(void *arg)
{
	pump(arg);
}

/* Before the end of the session, as no stream is left then. */
static void on_due(struct msg *m)
{
	struct session *sess = CONTAINER_OF(m, struct session, due);

	sess->due_posted = false;
	pump(sess);
}

void session_cancel(struct session *sess, const struct ptcp_err *why)
{
	engine_fail(sess->engine, why);
	if (sess->end.over && sess->control.chan == NULL)
		sess->end.give_up = mono_now(); /* a peer might have resumed for the last frame */
	pump(sess);
}

void session_yield(struct session *sess)
{
	struct ptcp_err why;

	err_set(&why, PTCP_ESUPERSEDED, "transfer: superseded by a newer run of the same client with the same files "
	    "(let the newer run finish)");
	engine_fail(sess->engine, &why);
	sess->end.give_up = mono_now(); /* a connected peer has the reason by now */
	pump(sess);
}

void session_offer_early(struct session *sess) { pump(sess); }

bool session_over(const struct session *sess) { return sess->end.over; }

bool session_is_abandoned(const struct session *sess)
{
	return !sess->end.over && sess->control.return_by.ns != MONO_NEVER.ns;
}

/* ---- Making one ---- */

static uint64_t min_ns(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Of a receiver, a sixth of the session's limit: the entries of twelve sessions fit in the memory of one client, so
 * that parallel transfers of small files do not fail for each other's; and the default limit takes a tree of
 * WALK_DEPTH_MAX levels, whose directories are all unfinished at a time. */
static uint32_t entries_in_memory(const struct memory_account *a)
{
	uint64_t n = memory_session_max(a) / 6 / ENTRY_BYTES;

	return n < WIRE_SLOTS ? (uint32_t)n : WIRE_SLOTS;
}

/* The session with its control connection. Takes what `o` holds, also on failure. */
static struct session *allocate(const struct session_opts *o, struct ptcp_err *e)
{
	struct session *sess = NULL;

	if (memory_charge(o->memory, CHAN_BYTES, e) == 0) {
		if ((sess = memory_calloc(o->memory, sizeof *sess, e)) != NULL)
			return sess;
		memory_release(o->memory, CHAN_BYTES);
	}
	fd_budget_count(-(int)o->fds);
	connect_cancel(o->spare);
	chan_free(o->control);
	return NULL;
}

int session_new(struct session **out, const struct session_opts *o, struct ptcp_err *e)
{
	static const char software[] = "ptcp " PTCP_VERSION;
	struct engine_opts so = {
		.starter = o->open != NULL, .one_channel = o->one_channel, .software = software,
		.timeout_ns = o->timeout_ns, .quiet_ns = min_ns(o->timeout_ns, o->connects ? QUIET_NS : KEPT_ALIVE_NS),
		.linger_ns = o->one_channel ? 0 : o->linger_ns,
		.max_entries = entries_in_memory(o->memory), .max_streams = o->max_streams,
		.ops = &session_engine_ops, .log = &o->context->log, .memory = o->memory
	};
	struct session *sess = allocate(o, e);
	int r;

	if (sess == NULL)
		return PTCP_ENOMEM;
	sess->o = *o;
	streams_init(sess, o);
	peer_init(sess, o);
	striping_init(sess, o);
	adapt_init(sess);
	control_init(sess, o, so.quiet_ns);
	sess->pump = pump;
	sess->due.run = on_due;
	so.arg = sess;
	if ((r = chan_export(sess->control.chan, sess->key, e)) < 0 ||
	    (r = packing_new(&sess->streams.packing, o->context->n_workers, o->memory, e)) < 0 ||
	    (r = timer_new(&sess->timer, o->context->control, on_timer, sess, e)) < 0 ||
	    (o->one_channel && (r = mux_new(&sess->control.mux, o->context->control, &control_mux_ops, sess, e)) < 0) ||
	    (r = engine_new(&sess->engine, &so, o->open, mono_now(), e)) < 0) {
		session_free(sess);
		return r;
	}
	if ((r = chan_attach(sess->control.chan, o->context->control, &control_ops, sess, e)) < 0) {
		session_free(sess);
		return r;
	}
	pump(sess);
	*out = sess;
	return 0;
}

struct engine *session_engine(struct session *sess) { return sess->engine; }
const uint8_t *session_id(const struct session *sess) { return sess->id; }
enum ptcp_cipher session_cipher(const struct session *sess) { return sess->cipher; }

void session_wait(struct session *sess, uint32_t ahead)
{
	engine_wait(sess->engine, ahead);
	pump(sess);
}

bool session_sources_expanded(const struct session *sess) { return sess->sources_expanded; }

void session_accept(struct session *sess, unsigned streams, enum ptcp_cipher cipher, bool expanded)
{
	struct wire_opened o = { .cipher = (uint8_t)cipher,
		.streams = (uint16_t)(sess->o.one_channel ? 1 : streams),
		.stripe = sess->striping.pool != NULL ? sess->o.stripe : 0,
		.flags = (expanded ? WIRE_OPENED_EXPANDED : 0) |
		(sess->striping.pool != NULL ? WIRE_OPENED_MOVERS : 0) };
	struct ptcp_err e;

	if (tls_random(o.session, sizeof o.session, &e) < 0)
		engine_fail(sess->engine, &e);
	else
		engine_accept(sess->engine, &o, mono_now());
	pump(sess);
}
