/* Connection between an engine and a mover: frames out and in, and the silence of the other end. Control thread. */
#ifndef MOVER_LINK_H
#define MOVER_LINK_H

#include "core/units.h"
#include "engine/frame_conn.h"
#include "net/chan.h"
#include "wire/mover.h"

#define LINK_PING_NS NS_PER_S
/* Limit of a silent end: a mover ends its work, an engine gives the blocks to other movers. */
#define LINK_TIMEOUT_NS (8 * NS_PER_S)

struct mover_link;

/* The limits of both ends, for their tables. */
static inline struct frame_limits mover_link_limits(const void *owner)
{
	(void)owner;
	return (struct frame_limits){ .silence_ns = LINK_TIMEOUT_NS, .stall_ns = UINT64_MAX, .outage_ns = UINT64_MAX,
		.ping_ns = LINK_PING_NS };
}

/* Takes an opened channel without a loop, also on failure. A handler of `t` may lose, but not free the link. on_lost()
 * is called once, from the loop; only mover_link_free() is allowed then. */
int mover_link_new(struct mover_link **out, struct loop *l, struct chan *c, const struct frame_table *t, void *owner,
    void (*on_lost)(void *owner, const struct ptcp_err *why), struct ptcp_err *e);
/* For OUTBOX_PUT(): frames are sent together, at the end of the turn of the loop. */
struct outbox *mover_link_out(struct mover_link *k);
/* As if the connection had ended, for this reason. */
void mover_link_lose(struct mover_link *k, const struct ptcp_err *why);
/* Sends buffered frames without waiting, and closes. NULL is fine. */
void mover_link_free(struct mover_link *k);

#endif
