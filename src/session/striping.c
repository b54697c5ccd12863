/* Movers, which carry the streams of a session in place of worker threads: which mover carries which stream, and the
 * limits of all of them together. */
#include "core/err.h"
#include "session/session_impl.h"

#define CHECK_NS NS_PER_S

/* A mover has joined or left. */
static void on_changed(void *arg)
{
	struct session *sess = arg;
	unsigned i;

	if (sess->over)
		return;
	for (i = 0; i < sess->n_granted; i++)
		if (sess->stream[i] == NULL) { /* at once by another mover */
			sess->retries[i] = 0;
			sess->retry_at[i] = (struct mono){ 0 };
		}
	if (movers_count(sess->o.movers) > 0 && sess->n_connected == 0)
		sess->none_since = mono_now();
	session_pump(sess);
}

void striping_start(struct session *sess)
{
	if (sess->o.movers == NULL)
		return;
	movers_watch(sess->o.movers, on_changed, sess);
	on_changed(sess);
}

void striping_stop(struct session *sess)
{
	if (sess->o.movers != NULL && sess->running)
		movers_watch(sess->o.movers, NULL, NULL);
}

/* As many streams as the movers have together. */
static void activate(struct session *sess)
{
	unsigned want = sess->o.streams_per_mover * movers_count(sess->o.movers);

	if (want > sess->n_granted)
		want = sess->n_granted;
	if (want == 0 || want == sess->movers_streams)
		return;
	sess->movers_streams = want;
	adapt_request(sess, want, "movers");
}

void striping_pump(struct session *sess, struct mono now)
{
	struct ptcp_err why;

	if (sess->o.movers == NULL)
		return;
	if (sess->o.streams_per_mover > 0 && sess->o.open != NULL)
		activate(sess);
	movers_deal(sess->o.movers, sess->mover, sess->n_active);
	movers_set_rate(sess->o.movers, sess->o.host->pacing.bps);
	if (!engine_closing(sess->engine) && movers_fault(sess->o.movers, now, &why) < 0)
		engine_fail(sess->engine, &why);
	else if (movers_count(sess->o.movers) == 0)
		engine_progress(sess->engine, now); /* the movers' limit applies */
}

struct mono striping_deadline(const struct session *sess)
{
	if (sess->o.movers == NULL)
		return MONO_NEVER;
	return mono_min(movers_deadline(sess->o.movers), mono_add_ns(mono_now(), CHECK_NS));
}
