#include "measure/prober.h"

#include <stdlib.h>

#include "core/err.h"

void prober_fail(struct prober *b, const struct ptcp_err *why)
{
	if (b->timer != NULL)
		timer_set(b->timer, MONO_NEVER);
	session_cancel(b->session, why);
}

bool prober_begin(struct prober *b, struct session *sess, const struct probe_session_ops *ops,
    void (*on_timer)(void *arg), unsigned streams)
{
	struct ptcp_err why;

	b->session = sess;
	if (session_probe(sess, ops, b, &why) == 0 &&
	    (b->timer != NULL || timer_new(&b->timer, b->loop, on_timer, b, &why) == 0)) {
		if (streams <= probe_session_granted(sess))
			return true;
		err_set(&why, PTCP_EREFUSED, "%u streams: the server grants at most %u (request fewer)", streams,
		    probe_session_granted(sess));
	}
	prober_fail(b, &why);
	return false;
}

void prober_ended(void *prober, unsigned number, const struct probe_run *run, const struct ptcp_err *why)
{
	struct ptcp_err lost;

	(void)number, (void)run;
	err_set(&lost, why != NULL ? why->code : PTCP_EPEER,
	    "measurement: a stream was lost: %s (run the same command again)",
	    why != NULL ? why->msg : "the peer ended it");
	prober_fail(prober, &lost);
}

void prober_gone(struct prober *b)
{
	timer_free(b->timer);
	b->timer = NULL;
	b->session = NULL;
}

void prober_free(struct prober *b)
{
	timer_free(b->timer);
	free(b);
}
