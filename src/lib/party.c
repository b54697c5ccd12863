#include "lib/party_impl.h"

#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/text.h"
#include "core/units.h"
#include "store/fds.h"

#define LINGER_NS (2 * NS_PER_S) /* how long a peer may take to close */

/* ---- The session's decisions ---- */

static void on_open(void *arg, const struct wire_open *o)
{
	struct party *p = arg;

	p->o.ops->open(p->o.arg, p, o);
}

static void on_running(void *arg, const struct wire_opened *o)
{
	struct party *p = arg;
	struct ptcp_err why;

	memcpy(p->id, o->session, sizeof p->id);
	p->cipher = o->cipher;
	p->n_granted = o->streams;
	if (!session_steered(p->session))
		party_want(p, p->n_granted, "agreed");
	p->running = true;
	p->none_since = p->began = mono_now();
	if (choosing_new(p, &why) < 0)
		party_fail(p, &why);
	p->o.ops->running(p->o.arg, p);
}

static void on_use(void *arg, const struct wire_use *u)
{
	struct party *p = arg;

	party_want(p, u->streams < p->n_granted ? u->streams : p->n_granted, "asked for");
	if (p->prb != NULL)
		probing_use(p, u->bytes);
}

static void on_seen(void *arg, const struct wire_seen *f)
{
	struct party *p = arg;

	if (p->prb != NULL)
		probing_seen(p, f);
	else
		steering_seen(p, f);
}

static void on_note(void *arg, const struct wire_note *n)
{
	struct party *p = arg;
	char path[WIRE_PATH_MAX + 1];
	struct ptcp_err why;

	memcpy(path, n->path.n > 0 ? (const char *)n->path.p : "", n->path.n);
	path[n->path.n] = '\0';
	outbox_reason(&why, n->code, n->text);
	if (n->kind == WIRE_NOTE_FAILED)
		p->o.ops->file(p->o.arg, path, PTCP_FILE_FAILED, &why);
	else
		p->o.ops->warning(p->o.arg, path, why.msg);
}

enum wire_busy party_busy(const struct party *p)
{
	unsigned i;

	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		if (p->stream[i] != NULL && stream_on_disk(p->stream[i]))
			return p->snd != NULL ? WIRE_READING : WIRE_WRITING;
	if (p->snd != NULL && p->snd->comparing > 0)
		return WIRE_VERIFYING;
	if (p->snd != NULL && !sending_idle(p))
		return WIRE_READING;
	if (p->rcv != NULL && receiving_busy(p) != WIRE_IDLE)
		return receiving_busy(p);
	/* What relays hold is why nothing comes; the starter says so, whose peer bears that for its own time. */
	if (session_held(p->session) && p->o.open != NULL)
		return p->snd != NULL ? WIRE_READING : WIRE_WRITING;
	/* Who keeps to a rate is slow for a reason, too; what the receiver has asked for it knows itself. */
	if (p->snd != NULL)
		return rates_limit(p) || pacer_limits(&p->o.host->pacing.out) ? WIRE_READING : WIRE_IDLE;
	return !rates_at_sender(p) && (rates_limit(p) || pacer_limits(&p->o.host->pacing.in)) ? WIRE_WRITING : WIRE_IDLE;
}

static enum wire_busy busy(void *arg)
{
	return party_busy(arg);
}

static void on_ended(void *arg, const struct ptcp_err *why)
{
	struct party *p = arg;

	p->over = true;
	p->failed = why != NULL;
	if (why != NULL)
		p->why = *why;
	/* Who was silent for the time-out will not close in good order either; who may not have got our last
	 * word may come back for it. */
	p->give_up = mono_add_ns(mono_now(), why != NULL && why->code == PTCP_ETIMEOUT ? 0 :
	    returning_may(p) ? p->o.timeout_ns : LINGER_NS);
}

static const struct session_ops session_ops = {
	.open = on_open, .running = on_running, .note = on_note, .heard = returning_told, .busy = busy,
	.ended = on_ended, .snd = &sending_snd_ops, .rcv = &receiving_rcv_ops, .use = on_use, .seen = on_seen, .rate = rates_told
};

/* ---- The control channel ---- */

/* Control frames, and between them the blocks that have no other way. */
static void flush(struct party *p)
{
	struct buf *b = &session_outbox(p->session)->b;
	size_t n;

	if (p->control == NULL)
		return;
	do {
		if (p->mux != NULL && !mux_is_between(p->mux))
			continue;
		do
			buf_consume(b, n = returning_write(p, buf_head(b), buf_len(b)));
		while (n > 0 && buf_len(b) > 0);
		if (buf_len(b) > 0 || p->over)
			break;
	} while (p->mux != NULL && mux_output(p->mux, p->control));
	chan_flush(p->control);
}

static void on_control(void *arg, const uint8_t *bytes, size_t n)
{
	struct party *p = arg;

	session_input(p->session, bytes, n, mono_now());
}

static void on_pump(void *arg)
{
	struct party *p = arg;

	if (p->control != NULL && !p->over && mux_holds(p->mux))
		mux_input(p->mux, p->control);
	party_pump(p);
}

static const struct mux_ops mux_ops = { on_control, on_pump };

static void on_readable(void *arg)
{
	struct party *p = arg;
	uint8_t bytes[16384];
	size_t n, total = 0;

	if (p->mux != NULL && !p->over) {
		mux_input(p->mux, p->control);
		session_input(p->session, bytes, 0, mono_now()); /* what blocks bring is heard as well */
	} else {
		while (total < 8 * sizeof bytes && (n = chan_read(p->control, bytes, sizeof bytes)) > 0) {
			total += n;
			returning_heard(p, n);
			session_input(p->session, bytes, n, mono_now());
		}
	}
	party_pump(p);
}

static void on_writable(void *arg)
{
	party_pump(arg);
}

static void on_closed(void *arg, const struct ptcp_err *why)
{
	struct party *p = arg;
	struct ptcp_err cut;

	err_set(&cut, PTCP_EPEER, "control connection: %s (run it again when the other host can be "
	    "reached)", why != NULL ? why->msg : "the peer closed it");
	if (why == NULL || !returning_may(p))
		session_closed(p->session, &cut);
	else
		returning_lost(p, why->msg);
	chan_free(p->control); /* `why` goes with it */
	p->control = NULL;
	party_pump(p);
}

static void on_opened(void *arg)
{
	(void)arg;
}

const struct chan_ops party_control_ops = { on_opened, on_readable, on_writable, on_closed };

/* ---- The end ---- */

static void tell_gone(struct msg *m)
{
	struct party *p = CONTAINER_OF(m, struct party, gone);

	p->o.ops->gone(p->o.arg, p, p->failed ? &p->why : NULL);
}

/* The session is over: says so to the peer, lets go of streams and files, and when nothing of it is
 * left on other threads, tells the owner. */
static void wind_up(struct party *p, struct mono now)
{
	struct mono at;
	unsigned i;

	joining_stop(p);
	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		if (p->stream[i] != NULL) {
			party_close_tap(p, i);
			stream_stop(p->stream[i]);
		}
	if (p->control != NULL) {
		flush(p);
		chan_pause(p->control, false); /* its end is to be heard */
		if (buf_len(&session_outbox(p->session)->b) == 0 && p->returning.again == 0 &&
		    (p->mux == NULL || mux_is_between(p->mux)))
			chan_shutdown(p->control);
		if (now.ns >= p->give_up.ns) {
			chan_free(p->control);
			p->control = NULL;
		} else {
			timer_set(p->timer, p->give_up);
		}
	}
	if (p->control == NULL && returning_may(p) && now.ns < p->give_up.ns) {
		returning_pump(p, now);
		if ((at = returning_deadline(p)).ns > p->give_up.ns)
			at = p->give_up;
		timer_set(p->timer, joining_deadline(p).ns < at.ns ? joining_deadline(p) : at);
		return;
	}
	joining_stop_control(p);
	if (p->control != NULL || p->n_up + p->n_ending > 0 || (p->snd != NULL && !sending_idle(p)))
		return;
	if (p->session != NULL) {
		/* What was unfinished is let go of; for received parts that is work for the store. */
		session_drop(p->session);
		if (p->rcv != NULL) {
			receiving_pump(p, now);
			if (!receiving_idle(p))
				return;
		}
	}
	if (p->told_gone)
		return;
	p->told_gone = true;
	p->gone.run = tell_gone;
	loop_post(p->o.host->control, &p->gone);
}

void party_free(struct party *p)
{
	unsigned i;

	if (p == NULL)
		return;
	chan_free(p->control);
	returning_fini(p);
	mux_free(p->mux);
	timer_free(p->timer);
	session_free(p->session);
	sending_free(p);
	receiving_free(p);
	probing_free(p);
	steering_free(p);
	seeing_free(p);
	choosing_free(p);
	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		party_close_tap(p, i);
	fds_count(-1 - (int)p->n_counted);
	explicit_bzero(p->key, sizeof p->key);
	free(p);
}

/* ---- Turning the crank ---- */

void party_pump(struct party *p)
{
	struct mono now = mono_now(), at, t;

	if (p->pumping)
		return; /* an operation called back; the outer one goes on */
	p->pumping = true;
	flush(p); /* first, so that what waits does not keep back what could be added */
	if (p->mux != NULL && mux_holds(p->mux))
		session_input(p->session, (const uint8_t *)"", 0, now); /* it is we who do not listen */
	session_tick(p->session, now);
	if (p->running && !p->over) {
		rates_pump(p, now);
		joining_pump(p, now);
		if (p->str != NULL)
			steering_pump(p, now);
		if (p->see != NULL)
			seeing_pump(p, now);
		returning_pump(p, now);
		stale_pump(p, now);
		choosing_pump(p, now);
		if (p->snd != NULL) {
			sending_pump(p);
			sending_feed(p, now);
		} else if (p->rcv != NULL) {
			receiving_pump(p, now);
		} else if (p->prb != NULL) {
			probing_pump(p, now);
		}
		session_tick(p->session, now);
	}
	p->pumping = false;
	if (p->over) {
		wind_up(p, now);
		return;
	}
	flush(p);
	at = session_deadline(p->session);
	if ((t = joining_deadline(p)).ns < at.ns)
		at = t;
	if ((t = returning_deadline(p)).ns < at.ns)
		at = t;
	if ((t = stale_deadline(p)).ns < at.ns)
		at = t;
	if ((t = choosing_deadline(p)).ns < at.ns)
		at = t;
	if ((t = rates_deadline(p)).ns < at.ns)
		at = t;
	if (p->rcv != NULL && (t = receiving_deadline(p)).ns < at.ns)
		at = t;
	if (p->prb != NULL && (t = probing_deadline(p)).ns < at.ns)
		at = t;
	if (p->str != NULL && (t = steering_deadline(p)).ns < at.ns)
		at = t;
	if (p->see != NULL && (t = seeing_deadline(p)).ns < at.ns)
		at = t;
	timer_set(p->timer, at);
}

static void on_timer(void *arg)
{
	party_pump(arg);
}

void party_fail(struct party *p, const struct ptcp_err *why)
{
	session_fail(p->session, why);
}

void party_cancel(struct party *p, const struct ptcp_err *why)
{
	session_fail(p->session, why);
	if (p->over && p->control == NULL)
		p->give_up = mono_now(); /* on who might come back for our last word */
	party_pump(p);
}

void party_yield(struct party *p)
{
	struct ptcp_err why;

	err_set(&why, PTCP_ECANCELED, "transfer ended: another one of the same files by this client took over "
	    "(it goes on from here; let it end)");
	session_fail(p->session, &why);
	p->give_up = mono_now(); /* who is there still has been told; nobody waits for who is not */
	party_pump(p);
}

bool party_over(const struct party *p) { return p->over; }

bool party_holds(const struct party *p, uint64_t dev, uint64_t ino)
{
	return p->rcv != NULL && intake_holds(&p->rcv->intake, dev, ino);
}

/* ---- Making one ---- */

/* A relay may die where the other side lives. */
static bool has_other_ways(const struct party_opts *o)
{
	return o->connects && o->paths != NULL && (o->paths->n > 1 || o->paths->at[0].n_relays > 0);
}

int party_new(struct party **out, const struct party_opts *o, struct ptcp_err *e)
{
	static const char software[] = "ptcp " PTCP_VERSION;
	struct session_opts so = {
		.starter = o->open != NULL, .one_channel = o->one_channel, .software = software,
		.returns = !o->one_channel && (o->open == NULL || has_other_ways(o)), .timeout_ns = o->timeout_ns,
		.max_entries = WIRE_SLOTS, .max_streams = o->max_streams,
		.fixed_streams = o->fixed_streams, .ops = &session_ops,
		.log = &o->host->log
	};
	struct party *p = calloc(1, sizeof *p);
	unsigned i;
	int r;

	if (p == NULL) {
		chan_free(o->control);
		return err_nomem(e);
	}
	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		p->tap[i] = -1;
	fds_count(1);
	if (so.starter && so.returns && so.timeout_ns > PARTY_QUIET_NS)
		so.hello_timeout_ns = PARTY_QUIET_NS;
	p->o = *o;
	rates_init(&p->rates);
	p->returning.since = mono_now();
	p->returning.path = o->path;
	p->control = o->control;
	so.arg = p;
	strncpy(p->address, o->address, sizeof p->address - 1);
	strcpy(p->fingerprint, chan_fingerprint(p->control));
	if ((r = chan_export(p->control, p->key, e)) < 0 ||
	    (r = timer_new(&p->timer, o->host->control, on_timer, p, e)) < 0 ||
	    (o->one_channel && (r = mux_new(&p->mux, o->host->control, &mux_ops, p, e)) < 0) ||
	    (r = session_new(&p->session, &so, o->open, mono_now(), e)) < 0) {
		party_free(p);
		return r;
	}
	chan_depart(p->control);
	if ((r = chan_arrive(p->control, o->host->control, &party_control_ops, p, e)) < 0) {
		party_free(p);
		return r;
	}
	party_pump(p);
	*out = p;
	return 0;
}

struct session *party_session(struct party *p) { return p->session; }
const char *party_fingerprint(const struct party *p) { return p->fingerprint; }
int party_control_fd(const struct party *p) { return p->control != NULL ? chan_fd(p->control) : -1; }
const uint8_t *party_id(const struct party *p) { return p->id; }
const uint8_t *party_key(const struct party *p) { return p->key; }
enum ptcp_cipher party_cipher(const struct party *p) { return p->cipher; }

void party_accept(struct party *p, unsigned streams, enum ptcp_cipher cipher)
{
	struct wire_opened o = { .cipher = (uint8_t)cipher,
		.streams = (uint16_t)(p->o.one_channel ? 1 : streams) };
	struct ptcp_err e;

	if (tls_random(o.session, sizeof o.session, &e) < 0)
		party_fail(p, &e);
	else
		session_accept(p->session, &o, mono_now());
	party_pump(p);
}

/* What keeps either end when no bytes move. */
static enum ptcp_activity activity(const struct party *p)
{
	enum wire_busy ours = p->running && !p->over ? party_busy(p) : WIRE_IDLE;
	enum wire_busy theirs = session_peer_busy(p->session);

	if (ours == WIRE_SYNCING || theirs == WIRE_SYNCING)
		return PTCP_SYNCING;
	if (ours == WIRE_VERIFYING || theirs == WIRE_VERIFYING)
		return PTCP_VERIFYING;
	return PTCP_TRANSFERRING;
}

struct party_progress party_progress(const struct party *p)
{
	struct party_progress g = { .streams = party_in_use(p), .streams_most = p->n_most };
	struct snd_stats s;
	struct rcv_stats r;

	g.failed = session_failed(p->session);
	g.activity = activity(p);
	if (p->snd != NULL && session_snd(p->session) != NULL) {
		s = snd_stats(session_snd(p->session));
		g.bytes = s.acked_bytes;
		g.files = s.files;
		g.others = s.others;
		g.file_bytes = s.bytes;
		g.wire_bytes = p->snd->wire_bytes;
		g.resumed_bytes = s.resumed_bytes;
		g.total_bytes = p->snd->bytes;
		g.total_files = p->snd->files;
		g.total_known = p->snd->end;
	} else if (p->rcv != NULL && session_rcv(p->session) != NULL) {
		r = rcv_stats(session_rcv(p->session));
		g.bytes = r.bytes;
		g.files = r.files;
		g.others = r.others;
		g.file_bytes = r.file_bytes;
		g.wire_bytes = r.bytes - r.resumed_bytes - r.hole_bytes;
		g.resumed_bytes = r.resumed_bytes;
		g.total_bytes = p->rcv->total_bytes;
		g.total_files = p->rcv->total_files;
		g.total_known = p->rcv->total_known;
	}
	return g;
}

struct party_path party_path(const struct party *p, unsigned path)
{
	struct party_path g = { p->carried[path], 0 };
	unsigned i;

	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		g.streams += p->stream[i] != NULL && stream_path(p->stream[i]) == path;
	return g;
}
