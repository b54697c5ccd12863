/* What a server has been told of the ways from it to other hosts, for clients who ask (PROTOCOL.md, section 13). Any
 * thread. */
#ifndef LIB_LEARNT_H
#define LIB_LEARNT_H

#include <pthread.h>
#include <ptcp/ptcp.h>

#include "core/clock.h"
#include "net/sock.h"
#include "wire/link.h"
#include "xfer/outbox.h"

struct learnt_way {
	struct wire_link f;      /* without host and text: */
	char host[SOCK_HOST_BYTES], text[WIRE_TEXT_MAX + 1];
	struct mono at;          /* when it had f.age_ms */
};

struct learnt {
	pthread_mutex_t mutex;
	struct learnt_way *way;   /* NULL: it does not measure */
	size_t n;
};

void learnt_init(struct learnt *k);
void learnt_fini(struct learnt *k);

/* As ptcp_server_knows(). */
int learnt_set(struct learnt *k, const struct ptcp_known_link *l, size_t n, struct ptcp_err *e);
/* Of how many ways something is known. */
unsigned learnt_count(struct learnt *k);
/* Puts a LINK for each, of the age that they have by now. False: nothing, as it does not measure. */
bool learnt_put(struct learnt *k, struct outbox *o);

#endif
