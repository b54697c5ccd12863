/* What a relay may store of what it relays: all of it together, half of that for one client, and for each connection
 * what its client asked for. Control thread, but for what splices do with it. */
#ifndef LIB_HOLDING_H
#define LIB_HOLDING_H

#include "core/list.h"
#include "net/splice.h"
#include "store/io.h"

struct hold;

struct holding {
	struct spool_room all;       /* most_bytes 0: nothing is stored */
	const char *dir;             /* borrowed, as is: */
	struct io *io;
	struct list clients;
};

void holding_init(struct holding *h, uint64_t most_bytes, const char *dir, struct io *io);
/* For one connection. NULL: nothing is stored for it, since it asks for nothing, or there is no room or memory. */
struct hold *holding_take(struct holding *h, const char *client, uint64_t asked_bytes);
/* For its splice, which is gone before holding_give(). NULL for NULL. */
const struct splice_hold *holding_of(const struct hold *d);
void holding_give(struct hold *d); /* NULL is fine */

#endif
