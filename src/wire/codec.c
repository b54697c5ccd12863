/* The encoder and the decoder of all frames but BLOCK, driven by the tables of wire/fields.c. */
#include "wire/codec.h"

#include <assert.h>

#include "core/err.h"
#include "wire/fields.h"

static uint64_t load_uint(const void *p, unsigned size)
{
	uint64_t u64;
	uint32_t u32;
	uint16_t u16;

	switch (size) {
	case 1: return *(const uint8_t *)p;
	case 2: return memcpy(&u16, p, 2), u16;
	case 4: return memcpy(&u32, p, 4), u32;
	default: return memcpy(&u64, p, 8), u64;
	}
}

static void store_uint(void *p, unsigned size, uint64_t v)
{
	switch (size) {
	case 1: *(uint8_t *)p = (uint8_t)v; break;
	case 2: memcpy(p, &(uint16_t){ (uint16_t)v }, 2); break;
	case 4: memcpy(p, &(uint32_t){ (uint32_t)v }, 4); break;
	default: memcpy(p, &v, 8);
	}
}

static uint8_t *write_uint(uint8_t *p, unsigned size, uint64_t v)
{
	switch (size) {
	case 1: return write_u8(p, (uint8_t)v);
	case 2: return write_u16(p, (uint16_t)v);
	case 4: return write_u32(p, (uint32_t)v);
	default: return write_u64(p, v);
	}
}

static uint64_t read_uint(struct reader *r, unsigned size)
{
	switch (size) {
	case 1: return read_u8(r);
	case 2: return read_u16(r);
	case 4: return read_u32(r);
	default: return read_u64(r);
	}
}

static uint8_t *write_field(uint8_t *p, const struct wire_field *d, const uint8_t *f)
{
	const uint8_t *member = f + d->at;
	struct span span;
	unsigned i;

	switch ((enum wire_field_kind)d->kind) {
	case WIRE_FIELD_UINT:
	case WIRE_FIELD_ID:
		return write_uint(p, d->size, load_uint(member, d->size));
	case WIRE_FIELD_FIXED:
		return write_uint(p, d->size, d->min);
	case WIRE_FIELD_LENGTH:
		memcpy(&span, member, sizeof span);
		assert(span.n >= d->min && span.n <= d->max);
		return write_uint(p, d->size, span.n);
	case WIRE_FIELD_DATA:
	case WIRE_FIELD_REST:
		memcpy(&span, member, sizeof span);
		return write_span(p, span);
	case WIRE_FIELD_BYTES:
		return write_span(p, (struct span){ member, d->size });
	case WIRE_FIELD_ARRAY:
		for (i = 0; i < f[d->count_at]; i++)
			p = write_uint(p, d->size, load_uint(member + i * d->size, d->size));
	}
	return p;
}

static bool data_valid(struct span s, unsigned text)
{
	return text == WIRE_FIELD_ANY || s.n == 0 ||
	    (text == WIRE_FIELD_WORD ? word_ok(s) : memchr(s.p, '\0', s.n) == NULL);
}

/* False: out of bytes, or a value out of its range. */
static bool read_field(struct reader *r, const struct wire_field *d, uint8_t *f)
{
	uint8_t *member = f + d->at;
	const uint8_t *bytes;
	struct span span;
	uint64_t v = d->min;
	unsigned i;

	switch ((enum wire_field_kind)d->kind) {
	case WIRE_FIELD_UINT:
	case WIRE_FIELD_ID:
	case WIRE_FIELD_FIXED:
		v = read_uint(r, d->size);
		if (d->kind != WIRE_FIELD_FIXED)
			store_uint(member, d->size, v);
		if (d->kind == WIRE_FIELD_ID && !wire_id_ok(v))
			return false;
		break;
	case WIRE_FIELD_LENGTH:
		v = read_uint(r, d->size);
		span = (struct span){ NULL, (size_t)v };
		memcpy(member, &span, sizeof span);
		break;
	case WIRE_FIELD_DATA:
	case WIRE_FIELD_REST:
		memcpy(&span, member, sizeof span);
		span = read_span(r, d->kind == WIRE_FIELD_REST ? (size_t)(r->end - r->p) : span.n);
		memcpy(member, &span, sizeof span);
		return !r->bad && data_valid(span, d->text);
	case WIRE_FIELD_BYTES:
		if ((bytes = read_bytes(r, d->size)) != NULL)
			memcpy(member, bytes, d->size);
		break;
	case WIRE_FIELD_ARRAY:
		for (i = 0; i < f[d->count_at]; i++) {
			v = read_uint(r, d->size);
			store_uint(member + i * d->size, d->size, v);
			if (v < d->min || v > d->max)
				return false;
		}
		return !r->bad;
	}
	return !r->bad && (d->kind == WIRE_FIELD_BYTES || (v >= d->min && v <= d->max));
}

size_t wire_encode(uint8_t *out, unsigned type, const void *f)
{
	const struct wire_layout *l = &wire_layouts[type];
	struct wire_header h = { (uint8_t)type, l->optional ? 0 : WIRE_CRITICAL, 0 };
	uint8_t *p = out + WIRE_HEADER_BYTES;
	unsigned i;

	for (i = 0; i < l->n; i++)
		p = write_field(p, &l->field[i], f);
	h.length = (uint32_t)(p - out - WIRE_HEADER_BYTES);
	wire_header_encode(out, &h);
	return (size_t)(p - out);
}

/* A HELLO of a side that also speaks later versions may go on. */
static bool may_grow(unsigned type, const void *f)
{
	return type == WIRE_HELLO && ((const struct wire_hello *)f)->version_max > WIRE_VERSION;
}

int wire_decode(void *f, unsigned type, struct span in, struct ptcp_err *e)
{
	union wire_any d;
	const struct wire_layout *l = &wire_layouts[type];
	struct reader r = reader_of(in);
	bool ok = true;
	unsigned i;

	assert(l->bytes <= sizeof d);
	memset(&d, 0, l->bytes);
	for (i = 0; ok && i < l->n; i++)
		ok = read_field(&r, &l->field[i], (uint8_t *)&d);
	if (!ok || (r.p != r.end && !may_grow(type, &d)) || (l->valid != NULL && !l->valid(&d)))
		return err_set(e, PTCP_EPROTO, "malformed %s frame", wire_type_name(type));
	if (l->bytes > 0)
		memcpy(f, &d, l->bytes);
	return 0;
}

/* ---- What frames carry inside ---- */

size_t wire_path_encode(uint8_t *out, uint8_t flags, struct span path)
{
	uint8_t *p = out;

	assert(path.n <= WIRE_PATH_MAX);
	p = write_u8(p, flags);
	p = write_u16(p, (uint16_t)path.n);
	p = write_span(p, path);
	return (size_t)(p - out);
}

bool wire_path_next(struct span *paths, uint8_t *flags, struct span *path)
{
	struct reader r = reader_of(*paths);

	*flags = read_u8(&r);
	*path = read_span(&r, read_u16(&r));
	if (r.bad)
		return false;
	*paths = (struct span){ r.p, (size_t)(r.end - r.p) };
	return true;
}

size_t wire_range_encode(uint8_t *out, const struct wire_range *r)
{
	put_u64(out, (uint64_t)r->start);
	put_u64(out + 8, (uint64_t)r->end);
	return WIRE_RANGE_BYTES;
}

struct wire_range wire_range_next(struct span *ranges)
{
	struct wire_range r = { (int64_t)get_u64(ranges->p), (int64_t)get_u64(ranges->p + 8) };

	ranges->p += WIRE_RANGE_BYTES;
	ranges->n -= WIRE_RANGE_BYTES;
	return r;
}

static uint64_t range_place(int64_t at, uint64_t size_bytes)
{
	if (at >= 0)
		return (uint64_t)at < size_bytes ? (uint64_t)at : size_bytes;
	return 0 - (uint64_t)at < size_bytes ? size_bytes + (uint64_t)at : 0;
}

uint64_t wire_range_clip(struct wire_range r, uint64_t size_bytes, uint64_t *from)
{
	uint64_t end = range_place(r.end, size_bytes);

	*from = range_place(r.start, size_bytes);
	return end > *from ? end - *from : 0;
}

uint8_t wire_grant_role(uint8_t mode)
{
	switch (mode) {
	case WIRE_GRANT_READ: return WIRE_ACCEPTOR_SENDS;
	case WIRE_GRANT_WRITE: return WIRE_ACCEPTOR_RECEIVES;
	case WIRE_GRANT_PROBE: return WIRE_ACCEPTOR_DISCARDS;
	default: return 0;
	}
}

size_t wire_grant_text(uint8_t *out, const struct wire_grant *g)
{
	static const char prefix[] = "ptcp grant v1"; /* signed with its NUL */
	uint8_t frame[WIRE_GRANT_MAX_BYTES];
	size_t n = wire_grant_encode(frame, g) - WIRE_HEADER_BYTES - WIRE_SIGNATURE_BYTES;

	memcpy(out, prefix, sizeof prefix);
	memcpy(out + sizeof prefix, frame + WIRE_HEADER_BYTES, n);
	return sizeof prefix + n;
}
