/* The engine's operations, carried out by the session. */
#include <string.h>

#include "core/units.h"
#include "session/session_impl.h"

#define LINGER_NS (2 * NS_PER_S) /* time for the peer to close */

static void on_open(void *arg, const struct wire_open *o)
{
	struct session *sess = arg;

	sess->o.ops->open(sess->o.arg, sess, o);
}

static void on_waiting(void *arg, uint32_t ahead)
{
	struct session *sess = arg;

	sess->o.ops->waiting(sess->o.arg, ahead);
}

static void on_running(void *arg, const struct wire_opened *o)
{
	struct session *sess = arg;
	struct ptcp_err why;

	memcpy(sess->id, o->session, sizeof sess->id);
	sess->cipher = o->cipher;
	sess->streams.n_granted = o->streams;
	sess->sources_expanded = (o->flags & WIRE_OPENED_EXPANDED) != 0;
	if (engine_snd(sess->engine) != NULL)
		packing_set(sess->streams.packing, engine_open(sess->engine)->compress);
	tcp_report_start(sess);
	if (sess->o.one_channel)
		streams_activate(sess, 1, "granted");
	sess->running = true;
	sess->began = mono_now();
	streams_await(sess, sess->began);
	if (striping_open(sess, (o->flags & WIRE_OPENED_MOVERS) != 0, &why) < 0 || congestion_start(sess, &why) < 0 ||
	    adapt_start(sess, &why) < 0)
		engine_fail(sess->engine, &why);
	sess->o.ops->running(sess->o.arg, sess);
	congestion_announce(sess);
	if (sess->o.open != NULL && !sess->o.one_channel && sess->streams.n_active == 0 &&
	    sess->adapt.requested.streams == 0 &&
	    (engine_snd(sess->engine) != NULL || engine_rcv(sess->engine) != NULL) &&
	    !striping_sets_streams(sess))
		adapt_request(sess, sess->o.streams > 0 && sess->o.streams < sess->streams.n_granted ? sess->o.streams :
		    sess->streams.n_granted,
		    "granted"); /* the number is fixed */
	striping_start(sess);
}

static void on_set_streams(void *arg, const struct wire_set_streams *u)
{
	struct session *sess = arg;

	streams_activate(sess, u->streams < sess->streams.n_granted ? u->streams : sess->streams.n_granted,
	    "requested");
	if (sess->probe != NULL)
		probe_session_on_set_streams(sess, u->bytes);
	else
		adapt_floor(sess, u->bytes);
}

static void on_tcp_report(void *arg, const struct wire_tcp_report *f)
{
	struct session *sess = arg;
	char name[WIRE_CONGESTION_MAX + 1];

	if (sess->probe != NULL) {
		probe_session_on_report(sess, f);
	} else {
		tcp_report_take(sess, f);
		adapt_on_tcp_report(sess, f);
	}
	memcpy(name, f->congestion.n > 0 ? (const char *)f->congestion.p : "", f->congestion.n);
	name[f->congestion.n] = '\0';
	if (name[0] != '\0')
		congestion_use(sess, name, NULL);
}

static void on_warning(void *arg, const struct wire_warning *n)
{
	struct session *sess = arg;
	char path[WIRE_PATH_MAX + 1];
	struct ptcp_err why;

	memcpy(path, n->path.n > 0 ? (const char *)n->path.p : "", n->path.n);
	path[n->path.n] = '\0';
	outbox_reason(&why, &n->why);
	if (n->kind != WIRE_WARNING_ONLY)
		session_file_failed(sess, path, &why);
	else
		sess->o.ops->warning(sess->o.arg, path, why.msg);
}

static void on_leftovers(void *arg, const struct wire_leftovers *f)
{
	struct session *sess = arg;

	sess->o.ops->leftovers(sess->o.arg, f);
}

static void on_deleted(void *arg, const struct wire_deleted *f)
{
	struct session *sess = arg;
	char path[WIRE_PATH_MAX + 1];

	sess->o.ops->file(sess->o.arg, &(struct session_file){ .path = span_copy(path, f->path),
	    .status = PTCP_FILE_DELETED, .size_bytes = UINT64_MAX });
}

static void on_endpoint(void *arg, const struct wire_endpoint *f) { striping_on_endpoint(arg, f); }

static int on_select(void *arg, const struct wire_select *f, struct ptcp_err *e) { return send_select(arg, f, e); }

static bool on_finish(void *arg) { return receive_finish(arg); }

static enum wire_busy on_busy(void *arg)
{
	return session_busy(arg);
}

static bool on_paced(void *arg)
{
	return session_is_paced(arg);
}

static void on_ended(void *arg, const struct ptcp_err *why)
{
	struct session *sess = arg;

	sess->end.over = true;
	sess->end.failed = why != NULL;
	if (why != NULL)
		sess->end.why = *why;
	/* Do not wait for a silent peer to close; wait longer for a peer that may resume to get the last frame. */
	sess->end.give_up = mono_add_ns(mono_now(), why != NULL && why->code == PTCP_ETIMEOUT ? 0 :
	    control_may_resume(sess) ? sess->o.timeout_ns : LINGER_NS);
}

const struct engine_ops session_engine_ops = {
	.open = on_open, .waiting = on_waiting, .running = on_running, .warning = on_warning,
	.control_ack = control_on_ack,
	.busy = on_busy, .paced = on_paced, .ended = on_ended, .snd = &send_snd_ops, .rcv = &receive_rcv_ops,
	.set_streams = on_set_streams, .tcp_report = on_tcp_report,
	.endpoint = on_endpoint, .finish = on_finish, .leftovers = on_leftovers, .deleted = on_deleted,
	.rate = adapt_on_rate, .select = on_select, .load = adapt_on_load
};
