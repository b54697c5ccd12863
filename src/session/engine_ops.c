/* What a party does at its session's word. */
#include <string.h>

#include "core/units.h"
#include "session/session_impl.h"

#define LINGER_NS (2 * NS_PER_S) /* how long a peer may take to close */

static void on_open(void *arg, const struct wire_open *o)
{
	struct session *sess = arg;

	sess->o.ops->open(sess->o.arg, sess, o);
}

/* The number of streams is fixed: all that were granted. */
static void use_granted(struct session *sess)
{
	struct wire_set_streams use = { .streams = (uint16_t)sess->n_granted };

	engine_set_streams(sess->engine, &use);
	session_want(sess, sess->n_granted, "agreed");
}

/* An acceptor that sends, over sockets that its kernel knows. */
static bool reports(const struct session *sess)
{
	uint8_t role = engine_open(sess->engine)->role;

	return sess->o.open == NULL && !sess->o.one_channel &&
	    (role == WIRE_ACCEPTOR_SENDS || role == WIRE_ACCEPTOR_GENERATES);
}

static void on_running(void *arg, const struct wire_opened *o)
{
	struct session *sess = arg;
	struct ptcp_err why;

	memcpy(sess->id, o->session, sizeof sess->id);
	sess->cipher = o->cipher;
	sess->n_granted = o->streams;
	if (sess->o.one_channel)
		session_want(sess, 1, "agreed");
	sess->running = true;
	sess->none_since = sess->began = mono_now();
	if (path_select_new(sess, &why) < 0 || host_load_new(sess, &why) < 0 || (reports(sess) && tcp_report_new(sess, &why) < 0))
		session_fail(sess, &why);
	sess->o.ops->running(sess->o.arg, sess);
	if (sess->o.open != NULL && !sess->o.one_channel && sess->stream_count == NULL &&
	    (engine_snd(sess->engine) != NULL || engine_rcv(sess->engine) != NULL))
		use_granted(sess);
}

static void on_set_streams(void *arg, const struct wire_set_streams *u)
{
	struct session *sess = arg;

	session_want(sess, u->streams < sess->n_granted ? u->streams : sess->n_granted, "asked for");
	if (sess->probe != NULL)
		probe_session_use(sess, u->bytes);
}

static void on_tcp_report(void *arg, const struct wire_tcp_report *f)
{
	struct session *sess = arg;

	if (sess->probe != NULL)
		probe_session_seen(sess, f);
	else
		stream_count_seen(sess, f);
}

static void on_load(void *arg, const struct wire_load *f)
{
	host_load_heard(arg, f, mono_now());
}

static void on_warning(void *arg, const struct wire_warning *n)
{
	struct session *sess = arg;
	char path[WIRE_PATH_MAX + 1];
	struct ptcp_err why;

	memcpy(path, n->path.n > 0 ? (const char *)n->path.p : "", n->path.n);
	path[n->path.n] = '\0';
	outbox_reason(&why, n->code, n->text);
	if (n->kind == WIRE_WARNING_FAILED)
		sess->o.ops->file(sess->o.arg, path, PTCP_FILE_FAILED, &why);
	else
		sess->o.ops->warning(sess->o.arg, path, why.msg);
}

bool session_waits_for_disk(const struct session *sess)
{
	unsigned i;

	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		if (sess->stream[i] != NULL && stream_on_disk(sess->stream[i]))
			return true;
	return false;
}

/* Beside rates, and what relays hold. */
static enum wire_busy works(const struct session *sess)
{
	if (session_waits_for_disk(sess))
		return sess->send != NULL ? WIRE_READING : WIRE_WRITING;
	if (sess->send != NULL && sess->send->comparing > 0)
		return WIRE_VERIFYING;
	if (sess->send != NULL && !send_idle(sess))
		return WIRE_READING;
	if (sess->receive != NULL && receive_busy(sess) != WIRE_IDLE)
		return receive_busy(sess);
	return WIRE_IDLE;
}

enum wire_busy session_busy(const struct session *sess)
{
	enum wire_busy b = works(sess);

	if (b != WIRE_IDLE)
		return b;
	/* What relays hold is why nothing comes; the starter says so, and each bears that for its own time. */
	if (engine_spooled(sess->engine) && sess->o.open != NULL)
		return sess->send != NULL ? WIRE_READING : WIRE_WRITING;
	/* Who keeps to a rate is slow for a reason, too; what the receiver has asked for it knows itself. */
	if (!path_rates_hold(sess) || (sess->send == NULL && path_rates_at_sender(sess)))
		return WIRE_IDLE;
	return sess->send != NULL ? WIRE_READING : WIRE_WRITING;
}

static enum wire_busy busy(void *arg)
{
	return session_busy(arg);
}

static bool paced(void *arg)
{
	struct session *sess = arg;

	return works(sess) == WIRE_IDLE && (path_rates_slow(sess) || session_busy(sess) != WIRE_IDLE);
}

static void on_ended(void *arg, const struct ptcp_err *why)
{
	struct session *sess = arg;

	sess->over = true;
	sess->failed = why != NULL;
	if (why != NULL)
		sess->why = *why;
	/* Who was silent for the time-out will not close in good order either; who may not have got our last
	 * word may come back for it. */
	sess->give_up = mono_add_ns(mono_now(), why != NULL && why->code == PTCP_ETIMEOUT ? 0 :
	    control_replay_may(sess) ? sess->o.timeout_ns : LINGER_NS);
}

const struct engine_ops session_session_ops = {
	.open = on_open, .running = on_running, .warning = on_warning, .control_ack = control_replay_told, .busy = busy, .paced = paced,
	.ended = on_ended, .snd = &send_snd_ops, .rcv = &receive_rcv_ops, .set_streams = on_set_streams, .tcp_report = on_tcp_report,
	.rate = path_rates_received, .load = on_load
};
