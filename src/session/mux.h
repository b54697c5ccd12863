/* Blocks on the control connection, where it is the only channel (ability 1): between it and a stream,
 * which has one end of a socket pair as its channel and does not notice. Here frames are kept whole and
 * told apart; control frames go between blocks. Control thread. */
#ifndef SESSION_MUX_H
#define SESSION_MUX_H

#include "net/chan.h"

struct mux;

struct mux_ops {
	/* Bytes of control frames. May end the mux's session, not free it. */
	void (*control)(void *arg, const uint8_t *p, size_t n);
	/* The stream has something to send, or has taken something. */
	void (*pump)(void *arg);
};

int mux_new(struct mux **out, struct loop *l, const struct mux_ops *ops, void *arg, struct ptcp_err *e);
void mux_free(struct mux *m); /* NULL is fine */
/* From now on blocks are the stream's: its channel, to be given to it. */
int mux_open(struct mux *m, struct chan **stream_end, struct ptcp_err *e);

/* Reads what there is; pauses the control channel while the stream does not take its blocks. */
void mux_input(struct mux *m, struct chan *control);
/* The stream keeps the peer's frames waiting. */
bool mux_holds(const struct mux *m);

/* Sends what the stream has of its next block: true when it has sent that to its end. A block that the
 * stream leaves unfinished is made void. */
bool mux_output(struct mux *m, struct chan *control);
/* No block has begun: a control frame may be sent. */
bool mux_is_between(const struct mux *m);

#endif
