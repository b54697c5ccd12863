/* The channel that a party's control frames travel on. */
#include "core/err.h"
#include "session/session_impl.h"

void session_flush(struct session *sess)
{
	struct buf *b = &engine_outbox(sess->engine)->b;
	size_t n;

	if (sess->control == NULL)
		return;
	do {
		if (sess->mux != NULL && !mux_is_between(sess->mux))
			continue;
		do
			buf_consume(b, n = control_replay_write(sess, buf_head(b), buf_len(b)));
		while (n > 0 && buf_len(b) > 0);
		if (buf_len(b) > 0 || sess->over)
			break;
	} while (sess->mux != NULL && mux_output(sess->mux, sess->control));
	chan_flush(sess->control);
}

static void on_control(void *arg, const uint8_t *bytes, size_t n)
{
	struct session *sess = arg;

	engine_input(sess->engine, bytes, n, mono_now());
}

static void on_pump(void *arg)
{
	struct session *sess = arg;

	if (sess->control != NULL && !sess->over && mux_holds(sess->mux))
		mux_input(sess->mux, sess->control);
	session_pump(sess);
}

const struct mux_ops session_mux_ops = { on_control, on_pump };

static void on_readable(void *arg)
{
	struct session *sess = arg;
	uint8_t bytes[16384];
	size_t n, total = 0;

	if (sess->mux != NULL && !sess->over) {
		mux_input(sess->mux, sess->control);
		engine_input(sess->engine, bytes, 0, mono_now()); /* what blocks bring is heard as well */
	} else {
		while (total < 8 * sizeof bytes && (n = chan_read(sess->control, bytes, sizeof bytes)) > 0) {
			total += n;
			control_replay_heard(sess, n);
			engine_input(sess->engine, bytes, n, mono_now());
		}
	}
	session_pump(sess);
}

static void on_writable(void *arg)
{
	session_pump(arg);
}

static void on_closed(void *arg, const struct ptcp_err *why)
{
	struct session *sess = arg;
	struct ptcp_err cut;

	err_set(&cut, PTCP_EPEER, "control connection: %s (run it again when the other host can be "
	    "reached)", why != NULL ? why->msg : "the peer closed it");
	if (why == NULL)
		sess->control_replay.vain = true; /* who closes in good order has heard all, and does not come back */
	if (!control_replay_may(sess))
		engine_closed(sess->engine, &cut);
	else
		control_replay_lost(sess, why->msg);
	chan_free(sess->control); /* `why` goes with it */
	sess->control = NULL;
	session_pump(sess);
}

const struct chan_ops session_control_ops = { .readable = on_readable, .writable = on_writable, .closed = on_closed };
