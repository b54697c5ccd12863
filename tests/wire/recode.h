/* Decodes whole frames of any type and encodes the result: shared by the tests of src/wire and the fuzz target. A type
 * of WIRE_FRAMES without a layout gives RECODE_MISSING, which fails the tests. */
#ifndef TESTS_WIRE_RECODE_H
#define TESTS_WIRE_RECODE_H

#include <assert.h>
#include <string.h>

#include "core/byteorder.h"
#include "wire/block.h"
#include "wire/fields.h"
#include "wire/grant.h"
#include "wire/jobs.h"
#include "wire/mover.h"

enum { RECODE_MISSING = 1 };

/* Room that recode() needs for its output. */
#define RECODE_MAX_BYTES (WIRE_HEADER_BYTES + WIRE_CHUNK_BYTES + WIRE_BLOCK_FIELDS + WIRE_BLOCK_END_BYTES)

static inline int recode_block(const uint8_t *frame, size_t n, uint8_t *out, size_t *out_n,
    struct ptcp_err *e)
{
	struct wire_block f;
	struct wire_block_end end;
	int r;

	if (n < WIRE_BLOCK_HEAD_BYTES + WIRE_BLOCK_END_BYTES)
		return PTCP_EPROTO;
	if ((r = wire_block_decode(&f, frame, e)) < 0)
		return r;
	if ((r = wire_block_end_decode(&end, frame + n - WIRE_BLOCK_END_BYTES, e)) < 0)
		return r;
	assert(WIRE_BLOCK_HEAD_BYTES + wire_block_data_bytes(&f) + WIRE_BLOCK_END_BYTES == n);
	*out_n = wire_block_encode(out, &f);
	memcpy(out + *out_n, frame + *out_n, wire_block_data_bytes(&f));
	*out_n += wire_block_data_bytes(&f);
	*out_n += wire_block_end_encode(out + *out_n, &end);
	return 0;
}

/* `frame` is a header and its payload. 0 and the frame encoded again, a negative PTCP_E* if the decoder refuses it, or
 * RECODE_MISSING. Unknown types that a receiver skips come out unchanged. */
static inline int recode(const uint8_t *frame, size_t n, uint8_t *out, size_t *out_n,
    struct ptcp_err *e)
{
	struct wire_header h;
	struct span in = { frame + WIRE_HEADER_BYTES, n - WIRE_HEADER_BYTES };
	union { /* room for the struct of any frame */
		struct wire_hello hello;
		struct wire_rate rate;
		struct wire_tcp_report tcp_report;
		struct wire_grant grant;
		struct wire_state state;
		struct wire_listed listed;
		struct wire_traffic traffic;
	} f;
	int r;

	assert(n >= WIRE_HEADER_BYTES);
	if ((r = wire_header_decode(&h, frame, e)) < 0)
		return r;
	if (h.length != in.n)
		return PTCP_EPROTO;
	if (!wire_type_known(h.type)) {
		memcpy(out, frame, *out_n = n);
		return 0;
	}
	if (h.type == WIRE_BLOCK) {
		r = recode_block(frame, n, out, out_n, e);
	} else if (wire_layouts[h.type].n == 0 && h.type != WIRE_JOINED && h.type != WIRE_ROUTED &&
	    h.type != WIRE_LINKS) {
		return RECODE_MISSING;
	} else if ((r = wire_decode(&f, h.type, in, e)) == 0) {
		*out_n = wire_encode(out, h.type, &f);
	}
	/* The flag is for those who do not know the type; encoders set it or not by the type alone. */
	if (r == 0)
		out[1] = h.flags;
	return r;
}

/* Did recode() give back what it was given? A HELLO of a later version may go on after
 * what we know of it; there the header's length and the rest differ. */
static inline int recoded_same(const uint8_t *frame, size_t n, const uint8_t *out, size_t out_n)
{
	if (frame[0] == WIRE_HELLO && out_n < n &&
	    (frame[WIRE_HEADER_BYTES + 6] << 8 | frame[WIRE_HEADER_BYTES + 7]) > WIRE_VERSION)
		return memcmp(frame + WIRE_HEADER_BYTES, out + WIRE_HEADER_BYTES,
		    out_n - WIRE_HEADER_BYTES) == 0;
	return out_n == n && memcmp(frame, out, n) == 0;
}

#endif
