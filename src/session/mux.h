/* Blocks on the control connection, the only channel of a session with ability ONE_CHANNEL: forwards between the
 * control connection and a stream, whose channel is one end of a socket pair. Keeps frames whole; control frames are
 * sent between blocks. Control thread. */
#ifndef SESSION_MUX_H
#define SESSION_MUX_H

#include "net/chan.h"

struct mux;

struct mux_ops {
	/* Bytes of control frames. May end the session of the mux, not free it. */
	void (*control)(void *arg, const uint8_t *p, size_t n);
	/* The stream has data to send, or has accepted data. */
	void (*pump)(void *arg);
};

int mux_new(struct mux **out, struct loop *l, const struct mux_ops *ops, void *arg, struct ptcp_err *e);
void mux_free(struct mux *m); /* NULL is fine */
/* From now on blocks are forwarded; *stream_end is the channel for the stream. */
int mux_open(struct mux *m, struct chan **stream_end, struct ptcp_err *e);

/* Reads available frames; pauses the control channel while the stream does not accept its blocks. */
void mux_input(struct mux *m, struct chan *control);
/* Received blocks wait for the stream. */
bool mux_has_pending(const struct mux *m);

/* Sends available data of the stream's next block; true: the block is complete. A block that the stream leaves
 * unfinished is completed as void. */
bool mux_output(struct mux *m, struct chan *control);
/* No block is in progress: a control frame may be sent. */
bool mux_is_between(const struct mux *m);

#endif
