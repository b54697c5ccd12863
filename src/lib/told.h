/* What a server has been told of the ways from it to other hosts, for clients who ask (PROTOCOL.md, section 13). Any
 * thread. */
#ifndef LIB_TOLD_H
#define LIB_TOLD_H

#include <pthread.h>
#include <ptcp/ptcp.h>

#include "xfer/outbox.h"

struct told {
	pthread_mutex_t mutex;
	struct told_way *way; /* NULL: it does not measure */
	size_t n;
};

void told_init(struct told *k);
void told_fini(struct told *k);

/* As ptcp_server_knows(). */
int told_set(struct told *k, const struct ptcp_known_link *l, size_t n, struct ptcp_err *e);
/* Of how many ways something is known. */
unsigned told_count(struct told *k);
/* Puts a LINK for each, of the age that they have by now. False: nothing, as it does not measure. */
bool told_put(struct told *k, struct outbox *o);

#endif
