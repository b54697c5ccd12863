/* The inside of a party that sends, for send.c (listing, feeding streams), send_offer.c (what is listed is
 * offered), send_jobs.c (what the engine asks of sources) and links.c (files with several names). */
#ifndef SESSION_SEND_IMPL_H
#define SESSION_SEND_IMPL_H

#include "session/session_impl.h"
#include "store/source.h"

struct link;

/* The cookie of an entry in the engine. */
struct outgoing {
	struct source *source;   /* of a file */
	struct dir *dir;         /* of anything else: what it is in, */
	char *name;              /* and its name there */
	bool is_dir;
	struct link *link;       /* of the name under which a file is sent: what its other names refer to */
};

/* ---- send_offer.c ---- */

/* Offers an entry of the batch, or notes why it cannot be; takes its name. */
void send_offer(struct session *sess, unsigned i);

/* ---- send_jobs.c: operations of the engine ---- */

void send_check(void *arg, void *cookie, uint64_t id);
void send_map(void *arg, void *cookie, uint64_t id);
void send_compare(void *arg, void *cookie, uint64_t id);
/* At the end: those that wait for their turn. */
void send_forget_compares(struct send_side *t);

#endif
