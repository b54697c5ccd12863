/* Decodes whole frames of any type and encodes what came out of it: what the tests of
 * src/wire and the fuzz target have in common. A new frame gets its line in recode().
 *
 * The switch has no default, so the compiler names a type without a line; without
 * warnings a type of WIRE_FRAMES without one gives RECODE_MISSING, which fails the tests. */
#ifndef TESTS_WIRE_RECODE_H
#define TESTS_WIRE_RECODE_H

#include <assert.h>
#include <string.h>

#include "core/byteorder.h"
#include "wire/grant.h"
#include "wire/job.h"
#include "wire/link.h"

enum { RECODE_MISSING = 1 };

/* Room that recode() needs for its output. */
#define RECODE_MAX_BYTES (WIRE_HEADER_BYTES + WIRE_BLOCK_MAX + WIRE_BLOCK_FIELDS + WIRE_BLOCK_END_BYTES)

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
	assert(WIRE_BLOCK_HEAD_BYTES + f.length_bytes + WIRE_BLOCK_END_BYTES == n);
	*out_n = wire_block_encode(out, &f);
	memcpy(out + *out_n, frame + *out_n, f.length_bytes);
	*out_n += f.length_bytes;
	*out_n += wire_block_end_encode(out + *out_n, &end);
	return 0;
}

/* `frame` is a header and all that follows it. 0 and the frame encoded anew, a
 * negative PTCP_E* when it is refused, RECODE_MISSING. Frames of unknown types that are
 * to be skipped come out as they are. */
static inline int recode(const uint8_t *frame, size_t n, uint8_t *out, size_t *out_n,
    struct ptcp_err *e)
{
	struct wire_header h;
	struct span in = { frame + WIRE_HEADER_BYTES, n - WIRE_HEADER_BYTES };
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
	r = RECODE_MISSING;
	switch ((enum wire_type)h.type) {
#define LINE(X, x, type)                                                       \
	case WIRE_##X: {                                                       \
		struct type f;                                                 \
		if ((r = wire_##x##_decode(&f, in, e)) == 0)                   \
			*out_n = wire_##x##_encode(out, &f);                   \
		break;                                                         \
	}
	LINE(HELLO, hello, wire_hello)
	LINE(OPEN, open, wire_open)
	LINE(OPENED, opened, wire_opened)
	LINE(ERROR, error, wire_error)
	LINE(PING, ping, wire_ping)
	LINE(SET_STREAMS, set_streams, wire_set_streams)
	LINE(TCP_REPORT, tcp_report, wire_tcp_report)
	LINE(JOIN, join, wire_join)
	LINE(CONTROL_ACK, control_ack, wire_control_ack)
	LINE(RATE, rate, wire_rate)
	LINE(LOAD, load, wire_load)
	LINE(ROUTE, route, wire_route)
	LINE(ENTRY, entry, wire_entry)
	LINE(ANSWER, answer, wire_answer)
	LINE(NEED, need, wire_blocks)
	LINE(HAVE, have, wire_blocks)
	LINE(HOLE, hole, wire_blocks)
	LINE(ACK, ack, wire_ack)
	LINE(FILE_END, file_end, wire_file_end)
	LINE(DONE, done, wire_done)
	LINE(FAIL, fail, wire_fail)
	LINE(TOTALS, totals, wire_totals)
	LINE(END, end, wire_end)
	LINE(WARNING, warning, wire_warning)
	LINE(GRANT, grant, wire_grant)
	LINE(JOB, job, wire_job)
	LINE(STARTED, started, wire_started)
	LINE(PROGRESS, progress, ptcp_progress)
	LINE(EVENT, event, wire_event)
	LINE(STATUS, status, wire_status)
	LINE(STATE, state, wire_state)
	LINE(PROBE, probe, wire_probe)
	LINE(SAMPLE, sample, wire_sample)
	LINE(LINK, link, wire_link)
#undef LINE
	case WIRE_JOINED:
		if ((r = wire_joined_decode(in, e)) == 0)
			*out_n = wire_joined_encode(out);
		break;
	case WIRE_ROUTED:
		if ((r = wire_routed_decode(in, e)) == 0)
			*out_n = wire_routed_encode(out);
		break;
	case WIRE_LINKS:
		if ((r = wire_links_decode(in, e)) == 0)
			*out_n = wire_links_encode(out);
		break;
	case WIRE_BLOCK:
		r = recode_block(frame, n, out, out_n, e);
		break;
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
