/* Splits the bytes of a control connection into frames. No sockets. */
#ifndef ENGINE_FRAME_READER_H
#define ENGINE_FRAME_READER_H

#include "core/buf.h"
#include "wire/frame.h"

struct frame {
	unsigned type;
	struct span bytes, payload; /* the whole frame; the part after its header */
};

/* Zero-initialized. */
struct frame_reader {
	struct buf in;
	size_t taken; /* length of the frame returned last, at the start of `in` */
};

void frame_reader_fini(struct frame_reader *r);
int frame_reader_add(struct frame_reader *r, const uint8_t *p, size_t n, struct ptcp_err *e); /* PTCP_ENOMEM */
/* 1: *f is the next frame of a known type, valid until the next call; frames of other types are skipped unless they
 * are critical. 0: the frame is incomplete. PTCP_EPROTO: malformed, too long or a BLOCK. */
int frame_reader_next(struct frame_reader *r, struct frame *f, struct ptcp_err *e);
/* Bytes received after the last frame. */
size_t frame_reader_rest(const struct frame_reader *r);

#endif
