/* The inside of a party that sends, for sending.c (listing, feeding streams), sending_offer.c (what is listed is
 * offered), sending_jobs.c (what the engine asks of sources) and links.c (files with several names). */
#ifndef LIB_SENDING_IMPL_H
#define LIB_SENDING_IMPL_H

#include "lib/party_impl.h"
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

/* ---- sending_offer.c ---- */

/* Offers an entry of the batch, or notes why it cannot be; takes its name. */
void sending_offer(struct party *p, unsigned i);

/* ---- sending_jobs.c: operations of the engine ---- */

void sending_check(void *arg, void *cookie, uint64_t id);
void sending_map(void *arg, void *cookie, uint64_t id);
void sending_compare(void *arg, void *cookie, uint64_t id);
/* At the end: those that wait for their turn. */
void sending_forget_compares(struct sending *t);

#endif
