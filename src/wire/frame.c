#include "wire/frame.h"

#include <assert.h>

#include "core/err.h"
#include "wire/block.h"
#include "wire/codec.h"

static const struct {
	const char *name;
	uint32_t max;
} frames[] = {
#define X(name, number, max) [number] = { #name, max },
	WIRE_FRAMES(X)
#undef X
};

bool wire_type_known(unsigned type)
{
	return type < sizeof frames / sizeof *frames && frames[type].name != NULL;
}

const char *wire_type_name(unsigned type)
{
	return wire_type_known(type) ? frames[type].name : "?";
}

void wire_header_encode(uint8_t out[WIRE_HEADER_BYTES], const struct wire_header *h)
{
	out[0] = h->type;
	out[1] = h->flags;
	put_u16(out + 2, 0);
	put_u32(out + 4, h->length);
}

int wire_header_decode(struct wire_header *h, const uint8_t in[WIRE_HEADER_BYTES],
    struct ptcp_err *e)
{
	struct wire_header d = { in[0], in[1], get_u32(in + 4) };
	bool known = wire_type_known(d.type);

	if ((d.flags & ~WIRE_CRITICAL) != 0 || get_u16(in + 2) != 0)
		return err_set(e, PTCP_EPROTO, "malformed frame header");
	if (!known && (d.flags & WIRE_CRITICAL) != 0)
		return err_set(e, PTCP_EPROTO, "unknown critical frame %u", d.type);
	if (d.length > (known ? frames[d.type].max : WIRE_CONTROL_MAX))
		return err_set(e, PTCP_EPROTO, "%s frame of %u bytes is too long",
		    wire_type_name(d.type), (unsigned)d.length);
	*h = d;
	return 0;
}

int wire_frame_next(struct wire_header *h, struct span *payload, struct span in, struct ptcp_err *e)
{
	int r;

	if (in.n < WIRE_HEADER_BYTES)
		return 0;
	if ((r = wire_header_decode(h, in.p, e)) < 0)
		return r;
	if (h->length > WIRE_CONTROL_MAX)
		return err_set(e, PTCP_EPROTO, "unexpected %s frame", wire_type_name(h->type));
	if (in.n - WIRE_HEADER_BYTES < h->length)
		return 0;
	*payload = (struct span){ in.p + WIRE_HEADER_BYTES, h->length };
	return 1;
}

/* ---- Hashes ---- */

void wire_hash_encode(uint8_t out[WIRE_HASH_BYTES], struct block_sum sum)
{
	put_u64(out, sum.content);
	put_u32(out + 8, sum.head);
}

struct block_sum wire_hash_decode(const uint8_t in[WIRE_HASH_BYTES])
{
	return (struct block_sum){ .content = get_u64(in), .head = get_u32(in + 8) };
}

/* ---- Blocks ---- */

size_t wire_block_encode(uint8_t *out, const struct wire_block *f)
{
	struct wire_header h = { WIRE_BLOCK, WIRE_CRITICAL,
		WIRE_BLOCK_FIELDS + wire_block_data_bytes(f) + WIRE_BLOCK_END_BYTES };
	uint8_t *p = out + WIRE_HEADER_BYTES;

	assert(f->length_bytes > 0 && f->length_bytes <= WIRE_CHUNK_BYTES && f->packed_bytes < f->length_bytes);
	assert(!f->patch || f->packed_bytes >= WIRE_OMIT_BYTES);
	wire_header_encode(out, &h);
	p = write_u64(p, f->id);
	p = write_u64(p, f->offset);
	p = write_u32(p, f->length_bytes);
	p = write_u32(p, f->packed_bytes | (f->patch ? WIRE_BLOCK_PATCH : 0));
	return (size_t)(p - out);
}

int wire_block_decode(struct wire_block *f, const uint8_t *in, struct ptcp_err *e)
{
	struct wire_header h;
	struct wire_block d;
	int r;

	if ((r = wire_header_decode(&h, in, e)) < 0)
		return r;
	in += WIRE_HEADER_BYTES;
	d.id = get_u64(in);
	d.offset = get_u64(in + 8);
	d.length_bytes = get_u32(in + 16);
	d.packed_bytes = get_u32(in + 20);
	d.patch = (d.packed_bytes & WIRE_BLOCK_PATCH) != 0;
	d.packed_bytes &= ~WIRE_BLOCK_PATCH;
	if (h.type != WIRE_BLOCK || !wire_id_ok(d.id) || d.length_bytes == 0 || d.length_bytes > WIRE_CHUNK_BYTES ||
	    d.packed_bytes >= d.length_bytes || (d.patch && d.packed_bytes < WIRE_OMIT_BYTES) ||
	    h.length != WIRE_BLOCK_FIELDS + (uint64_t)wire_block_data_bytes(&d) + WIRE_BLOCK_END_BYTES ||
	    d.offset > WIRE_FILE_MAX - d.length_bytes)
		return err_set(e, PTCP_EPROTO, "malformed BLOCK frame");
	*f = d;
	return 0;
}

static uint32_t piece_bytes(uint32_t n, uint32_t piece)
{
	return n - piece * WIRE_BLOCK_PIECE_BYTES < WIRE_BLOCK_PIECE_BYTES ? n - piece * WIRE_BLOCK_PIECE_BYTES :
	    WIRE_BLOCK_PIECE_BYTES;
}

uint32_t wire_patch_bytes(uint32_t n, uint64_t omit)
{
	uint32_t i, sum = 0;

	for (i = 0; i < wire_pieces(n); i++)
		sum += (omit >> i & 1) != 0 ? 0 : piece_bytes(n, i);
	return sum;
}

uint32_t wire_patch_gather(uint8_t *data, uint32_t n, uint64_t omit)
{
	uint32_t i, to = 0, from;

	for (i = 0; i < wire_pieces(n); i++) {
		from = i * WIRE_BLOCK_PIECE_BYTES;
		if ((omit >> i & 1) != 0)
			continue;
		if (to < from)
			memmove(data + to, data + from, piece_bytes(n, i));
		to += piece_bytes(n, i);
	}
	return to;
}

void wire_patch_spread(uint8_t *data, uint32_t n, uint64_t omit)
{
	uint32_t i = wire_pieces(n), from = wire_patch_bytes(n, omit);

	while (i-- > 0) {
		if ((omit >> i & 1) != 0)
			continue;
		from -= piece_bytes(n, i);
		if (from < i * WIRE_BLOCK_PIECE_BYTES)
			memmove(data + i * WIRE_BLOCK_PIECE_BYTES, data + from, piece_bytes(n, i));
	}
}

size_t wire_block_end_encode(uint8_t *out, const struct wire_block_end *f)
{
	uint8_t *p = out;

	p = write_u32(p, f->status);
	p = write_u32(p, 0);
	p = write_u64(p, f->check);
	return (size_t)(p - out);
}

int wire_block_end_decode(struct wire_block_end *f, const uint8_t *in, struct ptcp_err *e)
{
	struct wire_block_end d = { get_u32(in), get_u64(in + 8) };

	if (d.status > WIRE_BLOCK_VOID || get_u32(in + 4) != 0)
		return err_set(e, PTCP_EPROTO, "malformed end of a BLOCK frame");
	*f = d;
	return 0;
}

/* Rounded up; cannot wrap, whatever the size. */
static uint64_t divide_up(uint64_t size_bytes, uint32_t b)
{
	return size_bytes / b + (size_bytes % b != 0);
}

uint32_t wire_grid_bytes(uint64_t size_bytes)
{
	uint32_t b = WIRE_CHUNK_BYTES;

	while (b < WIRE_BLOCK_MAX && divide_up(size_bytes, b) > 1u << 20)
		b *= 2;
	return b;
}

struct wire_grid wire_grid_of(uint64_t size_bytes)
{
	return (struct wire_grid){ size_bytes, wire_grid_bytes(size_bytes) };
}

struct wire_grid wire_grid_unsized(uint64_t size_bytes) { return (struct wire_grid){ size_bytes, WIRE_CHUNK_BYTES }; }

uint32_t wire_grid_blocks(struct wire_grid g)
{
	return g.size_bytes > WIRE_FILE_MAX ? 0 : (uint32_t)divide_up(g.size_bytes, g.block_bytes);
}

uint32_t wire_grid_length(struct wire_grid g, uint32_t block)
{
	uint64_t start = (uint64_t)block * g.block_bytes;

	if (g.size_bytes > WIRE_FILE_MAX || start >= g.size_bytes)
		return 0;
	return g.size_bytes - start < g.block_bytes ? (uint32_t)(g.size_bytes - start) : g.block_bytes;
}

uint64_t wire_grid_range_bytes(struct wire_grid g, uint32_t first, uint32_t count)
{
	uint64_t b = g.block_bytes, start = first * b, end = start + count * b;

	if (g.size_bytes > WIRE_FILE_MAX || start >= g.size_bytes)
		return 0;
	return (end < g.size_bytes ? end : g.size_bytes) - start;
}

bool wire_chunk_find(struct wire_chunk *out, const struct wire_block *f, struct wire_grid g)
{
	uint32_t within, rest;
	struct wire_chunk c;

	if (g.size_bytes > WIRE_FILE_MAX || f->offset >= g.size_bytes)
		return false;
	c.block = (uint32_t)(f->offset / g.block_bytes);
	c.block_bytes = wire_grid_length(g, c.block);
	within = (uint32_t)(f->offset % g.block_bytes);
	rest = c.block_bytes - within;
	c.index = within / WIRE_CHUNK_BYTES;
	c.last = rest <= WIRE_CHUNK_BYTES;
	*out = c;
	return within % WIRE_CHUNK_BYTES == 0 && f->length_bytes == (c.last ? rest : WIRE_CHUNK_BYTES);
}
