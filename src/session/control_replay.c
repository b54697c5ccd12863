/* The control connection's successors: when it dies the starter makes another one, over another path where there
 * is one, and both sides go on where the other has got to. */
#include <string.h>

#include "core/err.h"
#include "core/units.h"
#include "session/session_impl.h"

#define KEPT_MAX_BYTES (8u << 20)
#define TELL_BYTES (32u << 10)      /* the peer is told after so many */
#define RESYNC_NS (3 * NS_PER_S)    /* for the peer to say where to go on */

/* The last word is the receiver's: a sender that is over has heard it. */
bool control_replay_may(const struct session *sess)
{
	return sess->running && !sess->failed && !sess->told_gone && !sess->control_replay.vain && engine_replays(sess->engine) &&
	    (!sess->over || sess->receive != NULL);
}

static bool starts(const struct session *sess)
{
	return sess->o.connects && sess->o.open != NULL;
}

/* ---- Counting and keeping ---- */

size_t control_replay_write(struct session *sess, const uint8_t *bytes, size_t n)
{
	struct control_replay *r = &sess->control_replay;
	size_t len = buf_len(&r->kept), done;
	uint8_t *room;

	if (!engine_replays(sess->engine))
		return n > 0 ? chan_write(sess->control, bytes, n) : 0;
	while (r->again > 0) {
		if ((done = chan_write(sess->control, buf_head(&r->kept) + len - r->again, r->again)) == 0)
			return 0;
		r->again -= done;
	}
	if (n > KEPT_MAX_BYTES - len)
		n = KEPT_MAX_BYTES - len;
	if (n == 0 || (room = buf_reserve(&r->kept, n)) == NULL)
		return 0;
	done = chan_write(sess->control, bytes, n);
	memcpy(room, bytes, done);
	buf_added(&r->kept, done);
	return done;
}

void control_replay_heard(struct session *sess, size_t n)
{
	struct control_replay *r = &sess->control_replay;
	struct wire_control_ack f = { r->heard + n };

	r->heard = f.bytes;
	if (!engine_replays(sess->engine) || !sess->running || r->heard - r->told < TELL_BYTES)
		return;
	r->told = r->heard;
	OUTBOX_PUT(engine_outbox(sess->engine), control_ack, CONTROL_ACK, &f);
}

int control_replay_told(void *arg, uint64_t bytes, struct ptcp_err *e)
{
	struct session *sess = arg;
	struct control_replay *r = &sess->control_replay;

	if (bytes < r->kept_from || bytes - r->kept_from > buf_len(&r->kept) - r->again)
		return err_set(e, PTCP_EPROTO, "the peer has heard what was not sent");
	buf_consume(&r->kept, (size_t)(bytes - r->kept_from));
	r->kept_from = bytes;
	return 0;
}

/* ---- The next connection ---- */

static void drop(struct session *sess)
{
	chan_free(sess->control_replay.chan);
	sess->control_replay.chan = NULL;
}

static void go_on(struct session *sess, const struct wire_control_ack *f)
{
	struct control_replay *r = &sess->control_replay;
	struct chan *c = r->chan;
	struct ptcp_err why;

	r->chan = NULL;
	r->again = 0;
	chan_detach(c);
	if (chan_attach(c, sess->o.host->control, &session_control_ops, sess, &why) < 0) {
		chan_free(c);
		session_fail(sess, &why);
		session_pump(sess);
		return;
	}
	sess->control = c;
	if (control_replay_told(sess, f->bytes, &why) < 0) {
		session_fail(sess, &why);
	} else {
		log_at(&sess->o.host->log, LOG_INFO, "session", "event=control-back again=%zu", buf_len(&r->kept));
		r->again = buf_len(&r->kept);
		r->since = mono_now();
		sess->retries[STREAM_CONNECT_CONTROL] = 0;
	}
	session_pump(sess);
}

static void on_readable(void *arg)
{
	struct session *sess = arg;
	struct control_replay *r = &sess->control_replay;
	struct wire_header h;
	struct wire_control_ack f;
	struct ptcp_err why;

	r->got += chan_read(r->chan, r->frame + r->got, sizeof r->frame - r->got);
	if (r->got < sizeof r->frame)
		return;
	if (wire_header_decode(&h, r->frame, &why) < 0 || h.type != WIRE_CONTROL_ACK ||
	    h.length != sizeof r->frame - WIRE_HEADER_BYTES ||
	    wire_control_ack_decode(&f, (struct span){ r->frame + WIRE_HEADER_BYTES, h.length }, &why) < 0) {
		drop(sess);
		session_pump(sess);
		return;
	}
	go_on(sess, &f);
}

static void on_closed(void *arg, const struct ptcp_err *why)
{
	struct session *sess = arg;

	(void)why;
	drop(sess);
	session_pump(sess);
}

static const struct chan_ops heard_ops = { .readable = on_readable, .closed = on_closed };

void control_replay_take(struct session *sess, struct chan *c)
{
	struct control_replay *r = &sess->control_replay;
	struct wire_control_ack f = { r->heard };
	uint8_t frame[WIRE_CONTROL_ACK_MAX_BYTES];
	struct ptcp_err why;

	if (!control_replay_may(sess)) {
		chan_free(c);
		return;
	}
	drop(sess);
	chan_free(sess->control); /* the peer has left it */
	sess->control = NULL;
	chan_detach(c);
	if (chan_attach(c, sess->o.host->control, &heard_ops, sess, &why) < 0) {
		chan_free(c);
		return;
	}
	r->chan = c;
	r->got = 0;
	r->since = mono_now();
	r->told = r->heard;
	chan_write(c, frame, wire_control_ack_encode(frame, &f));
	chan_flush(c);
	session_pump(sess);
}

/* ---- The starter's part ---- */

static void next_path(struct session *sess)
{
	if (starts(sess))
		sess->control_replay.path = (sess->control_replay.path + 1) % sess->o.paths->n;
}

void control_replay_lost(struct session *sess, const char *why)
{
	log_at(&sess->o.host->log, LOG_INFO, "session", "event=control-lost why=\"%s\"", why);
	next_path(sess);
}

void control_replay_failed(struct session *sess, const struct ptcp_err *why, bool refused)
{
	struct ptcp_err e;

	next_path(sess);
	if (!refused && !(sess->o.once && sess->over)) /* nobody is there any more who could have missed our last word */
		return;
	sess->control_replay.vain = true;
	err_set(&e, PTCP_EPEER, "control connection: it was lost, and the session with it: %s (run it again)",
	    why->msg);
	session_fail(sess, &e);
}

/* The connection counts as dead then. */
static struct mono dead_at(const struct session *sess)
{
	struct mono heard = engine_last_heard(sess->engine), since = sess->control_replay.since;

	if (sess->control_replay.chan != NULL)
		return mono_add_ns(since, RESYNC_NS);
	if (sess->control == NULL)
		return MONO_NEVER;
	return mono_add_ns(heard.ns > since.ns ? heard : since, SESSION_QUIET_NS);
}

void control_replay_pump(struct session *sess, struct mono now)
{
	if (!starts(sess) || !control_replay_may(sess))
		return;
	if (dead_at(sess).ns <= now.ns) {
		control_replay_lost(sess, "nothing comes any more");
		drop(sess);
		chan_free(sess->control);
		sess->control = NULL;
	}
	if (sess->control == NULL && sess->control_replay.chan == NULL)
		stream_connect_control(sess, now);
}

struct mono control_replay_deadline(const struct session *sess)
{
	return starts(sess) && control_replay_may(sess) ? dead_at(sess) : MONO_NEVER;
}

void control_replay_fini(struct session *sess)
{
	drop(sess);
	buf_fini(&sess->control_replay.kept);
}
