/* Outgoing control frames, collected until the channel accepts them. Sets `failed` when memory or the limit ran out,
 * so that a caller checks once per round. */
#ifndef WIRE_OUTBOX_H
#define WIRE_OUTBOX_H

#include <stdbool.h>

#include "core/buf.h"
#include "wire/frame.h"

/* A peer that does not read the control channel is disconnected above this limit. */
#define OUTBOX_MAX_BYTES (8u << 20)

struct outbox {
	struct buf b;
	bool failed;
};

/* Room for n bytes, or NULL; outbox_added() takes the number of encoded bytes. */
static inline uint8_t *outbox_room(struct outbox *o, size_t n)
{
	uint8_t *p = NULL;

	if (!o->failed && buf_len(&o->b) <= OUTBOX_MAX_BYTES)
		p = buf_reserve(&o->b, n, NULL);
	if (p == NULL)
		o->failed = true;
	return p;
}

static inline void outbox_added(struct outbox *o, size_t n) { buf_added(&o->b, n); }

/* Encode one frame X of type struct wire_x at the end. */
#define OUTBOX_PUT(o, x, X, ...) \
	do { \
		uint8_t *put_ = outbox_room((o), WIRE_##X##_MAX_BYTES); \
		if (put_ != NULL) \
			outbox_added((o), wire_##x##_encode(put_, __VA_ARGS__)); \
	} while (0)

/* A reason for the peer: code, err_cause(), and the sentence, borrowed, cut to WIRE_TEXT_MAX. */
struct wire_why outbox_why(const struct ptcp_err *why);
void outbox_put_error(struct outbox *o, const struct ptcp_err *why);
void outbox_put_fail(struct outbox *o, uint64_t id, const struct ptcp_err *why);

/* The reason that the peer sent, with the text escaped. An unknown code, and a code without meaning for this side
 * (usage, configuration or interrupt of the peer), becomes PTCP_EPEER. Users have to know on which host something
 * failed: out->from_peer. */
void outbox_reason(struct ptcp_err *out, const struct wire_why *w);

/* Whether FAIL and WARNING with this code count as failures, at both ends: sources that vanish do not. */
static inline bool outbox_is_failure(int code) { return code != PTCP_EVANISHED; }

#endif
