/* What a relay may store of what it relays: all of it together, half of that for one client, and for each connection
 * what its client asked for. Control thread, but for what splices do with it. */
#ifndef SERVER_RELAY_STORAGE_H
#define SERVER_RELAY_STORAGE_H

#include "core/list.h"
#include "net/splice.h"
#include "store/io.h"

struct hold;

struct relay_storage {
	struct spool_quota all;       /* max_bytes 0: nothing is stored */
	const char *dir;             /* borrowed, as is: */
	struct io *io;
	struct list clients;
};

void relay_storage_init(struct relay_storage *h, uint64_t max_bytes, const char *dir, struct io *io);
/* For one connection. NULL: nothing is stored for it, since it asks for nothing, or there is no room or memory. */
struct hold *relay_storage_take(struct relay_storage *h, const char *client, uint64_t asked_bytes);
/* For its splice, which is gone before relay_storage_give(). NULL for NULL. */
const struct splice_spool *relay_storage_of(const struct hold *d);
void relay_storage_give(struct hold *d); /* NULL is fine */

#endif
