/* The starter's part in a session whose streams are steered: looks at what they do and has them used as
 * model/steer decides, whichever side sends. Control thread. */
#ifndef LIB_STEERING_H
#define LIB_STEERING_H

#include "lib/party.h"
#include "model/steer.h"

struct steering_opts {
	double budget_ratio;
	unsigned max_streams;
	/* Once, when the congestion control of the streams that send is known: may call party_recall(). Or NULL. */
	void (*known)(void *arg, struct party *p, const char *congestion);
	void *arg;
};

/* Starter, before running ends; only if session_steered(). */
int party_steer(struct party *p, const struct steering_opts *o, struct ptcp_err *e);
/* These probes of the path are known from earlier. */
void party_recall(struct party *p, const struct probe *probe, size_t count);
/* What it has come to; NULL: it is not steered. As long as the party. */
const struct steer *party_steered(const struct party *p);

#endif
