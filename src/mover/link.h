/* Connection between an engine and a mover: frames out and in, and the silence of the other end. Control thread. */
#ifndef MOVER_LINK_H
#define MOVER_LINK_H

#include "engine/frame_reader.h"
#include "net/chan.h"
#include "wire/mover.h"
#include "wire/outbox.h"

#define LINK_PING_NS UINT64_C(1000000000)

struct mover_link;

struct mover_link_ops {
	/* A frame other than PING. Negative with `e`: the link is lost. May not free the link. */
	int (*frame)(void *arg, const struct frame *f, struct ptcp_err *e);
	/* The other end has received what this end sent at `sent` (0: nothing yet), and answers. NULL: this end answers the
	 * other one. */
	void (*answered)(void *arg, struct mono sent);
	/* Once, from the loop; only mover_link_free() is allowed then. */
	void (*lost)(void *arg, const struct ptcp_err *why);
};

/* Takes an opened channel without a loop, also on failure. The link is lost after `timeout_ns` without a byte of the other
 * end. */
int mover_link_new(struct mover_link **out, struct loop *l, struct chan *c, uint64_t timeout_ns,
    const struct mover_link_ops *ops, void *arg, struct ptcp_err *e);
/* For OUTBOX_PUT(): frames are sent together, at the end of the turn of the loop. */
struct outbox *mover_link_out(struct mover_link *k);
/* As if the connection had ended, for this reason. */
void mover_link_lose(struct mover_link *k, const struct ptcp_err *why);
/* Sends buffered frames without waiting, and closes. NULL is fine. */
void mover_link_free(struct mover_link *k);

#endif
