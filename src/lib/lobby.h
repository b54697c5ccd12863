/* Where connections wait that have yet to say what they are: guests behind a door (net/door.h), of a daemon
 * or of a client that its server is to connect to. Control thread. */
#ifndef LIB_LOBBY_H
#define LIB_LOBBY_H

#include "core/list.h"
#include "lib/host.h"
#include "net/door.h"

struct guest;
struct guest_ops;

struct lobby_opts {
	struct host *host;
	uint64_t timeout_ns;                   /* for the socket, once it is a stream */
	unsigned waiting, sessions, streams;   /* as door_new() has them; fewer wait where descriptors are few */
	const struct guest_ops *ops;
	void *arg;
};

struct lobby {
	struct lobby_opts o;
	struct door *door;
	struct list guests;                    /* the oldest first */
	unsigned n;
	uint64_t shut_out;                     /* connections closed at once */
	struct mono told;                      /* when that was said last */
};

int lobby_init(struct lobby *l, const struct lobby_opts *o, struct ptcp_err *e);
/* Every guest must be gone. Zeroed memory is fine. */
void lobby_fini(struct lobby *l);
/* A connection comes; `fd` is taken, and perhaps closed at once. `one_channel`: for who asks for a session this is
 * all there is. */
void lobby_take(struct lobby *l, int fd, const char *address, bool one_channel);
/* A guest is about to be freed. */
void lobby_left(struct lobby *l, struct source *from, enum door_end how);
void lobby_empty(struct lobby *l);

#endif
