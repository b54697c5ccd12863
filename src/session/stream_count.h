/* The starter's part in a session whose streams are steered: looks at what they do and has them used as
 * model/steer decides, whichever side sends. Control thread. */
#ifndef SESSION_STREAM_COUNT_H
#define SESSION_STREAM_COUNT_H

#include "model/stream_control.h"
#include "session/session.h"

struct stream_count_opts {
	double budget_ratio;
	unsigned max_streams;
	/* Once, when the congestion control of the streams that send is known: may call session_recall(). Or NULL. */
	void (*known)(void *arg, struct session *sess, const char *congestion);
	void *arg;
};

/* Starter, before running ends: the number of streams is not fixed. */
int session_steer(struct session *sess, const struct stream_count_opts *o, struct ptcp_err *e);
/* These probes of the path are known from earlier. */
void session_recall(struct session *sess, const struct probe *probe, size_t count);
/* What it has come to; NULL: it is not steered. As long as the party. */
const struct stream_control *session_steered(const struct session *sess);

#endif
