/* Readers and writers of big-endian fields. A reader that runs out of bytes sets `bad` and returns zeros from then
 * on, so a decoder checks once. */
#ifndef WIRE_CODEC_H
#define WIRE_CODEC_H

#include <string.h>

#include "core/byteorder.h"
#include "wire/grant.h"
#include "wire/jobs.h"
#include "wire/mover.h"

/* Room for any decoded frame, aligned: the largest structs. */
union wire_any {
	struct wire_hello hello;
	struct wire_rate rate;
	struct wire_tcp_report tcp_report;
	struct wire_grant grant;
	struct wire_state state;
	struct wire_traffic traffic;
};

struct reader {
	const uint8_t *p, *end;
	bool bad;
};

static inline struct reader reader_of(struct span in)
{
	return (struct reader){ in.p, in.n > 0 ? in.p + in.n : in.p, false };
}

/* n bytes, or NULL. */
static inline const uint8_t *read_bytes(struct reader *r, size_t n)
{
	const uint8_t *p = r->p;

	if (r->bad || n > (size_t)(r->end - r->p)) {
		r->bad = true;
		return NULL;
	}
	if (n > 0)
		r->p += n;
	return p;
}

static inline uint8_t read_u8(struct reader *r)
{
	const uint8_t *p = read_bytes(r, 1);
	return p != NULL ? *p : 0;
}

static inline uint16_t read_u16(struct reader *r)
{
	const uint8_t *p = read_bytes(r, 2);
	return p != NULL ? get_u16(p) : 0;
}

static inline uint32_t read_u32(struct reader *r)
{
	const uint8_t *p = read_bytes(r, 4);
	return p != NULL ? get_u32(p) : 0;
}

static inline uint64_t read_u64(struct reader *r)
{
	const uint8_t *p = read_bytes(r, 8);
	return p != NULL ? get_u64(p) : 0;
}

static inline struct span read_span(struct reader *r, size_t n)
{
	const uint8_t *p = read_bytes(r, n);
	return p != NULL ? (struct span){ p, n } : (struct span){ NULL, 0 };
}

static inline uint8_t *write_u8(uint8_t *p, uint8_t v) { *p = v; return p + 1; }
static inline uint8_t *write_u16(uint8_t *p, uint16_t v) { put_u16(p, v); return p + 2; }
static inline uint8_t *write_u32(uint8_t *p, uint32_t v) { put_u32(p, v); return p + 4; }
static inline uint8_t *write_u64(uint8_t *p, uint64_t v) { put_u64(p, v); return p + 8; }

static inline uint8_t *write_span(uint8_t *p, struct span s)
{
	if (s.n > 0)
		memcpy(p, s.p, s.n);
	return p + s.n;
}

/* Printable ASCII without spaces: safe to resolve, log and display. */
static inline bool word_ok(struct span s)
{
	size_t i;

	for (i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] > '~')
			return false;
	return true;
}

#endif
