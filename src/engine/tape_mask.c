#include "core/byteorder.h"
#include "engine/tape_mask.h"
#include "wire/attrs.h"
#include "wire/codec.h"
#include "wire/fields.h"

void tape_mask_init(struct tape_mask *m, uint64_t a, uint64_t b)
{
	m->key = a;
	m->factor = (struct digest){ a ^ b << 1, b | 1 };
}

/* ---- Hashes: 128-bit numbers, whose sums are compared ---- */

static struct digest product_of_words(uint64_t a, uint64_t b)
{
	uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
	uint64_t low = a0 * b0, middle = a1 * b0 + (low >> 32), other = a0 * b1 + (uint32_t)middle;

	return (struct digest){ a1 * b1 + (middle >> 32) + (other >> 32), a * b };
}

struct digest tape_mask_digest(const struct tape_mask *m, struct digest d)
{
	struct digest p = product_of_words(d.lo, m->factor.lo);

	p.hi += d.hi * m->factor.lo + d.lo * m->factor.hi;
	return p;
}

/* ---- Names and texts ---- */

static uint64_t mixed(uint64_t z)
{
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* Between two slashes, or NULs, which list paths. "." is no name, but the directory itself. */
static void mask_component(const struct tape_mask *m, uint8_t *p, size_t n)
{
	uint64_t h = m->key;
	size_t i;

	if (n == 1 && p[0] == '.')
		return;
	for (i = 0; i < n; i++)
		h = mixed(h * 257 + p[i] + 1);
	for (i = 0; i < n; i++)
		p[i] = (uint8_t)('a' + mixed(h + i) % 26);
}

static void mask_text(const struct tape_mask *m, struct span s)
{
	uint8_t *p = (uint8_t *)(uintptr_t)s.p; /* into the frame that the caller gave to be changed */
	size_t from = 0, i;

	for (i = 0; i <= s.n; i++)
		if (i == s.n || p[i] == '/' || p[i] == '\0') {
			mask_component(m, p + from, i - from);
			from = i + 1;
		}
}

static void clear(struct span s)
{
	if (s.n > 0)
		memset((uint8_t *)(uintptr_t)s.p, 0, s.n);
}

/* ---- Frames ---- */

static void mask_attrs(const struct tape_mask *m, const struct wire_entry *f)
{
	struct span rest, name, value;
	struct wire_attrs a;

	if (wire_attrs_decode(&a, f, NULL) < 0)
		return;
	mask_text(m, a.user);
	mask_text(m, a.group);
	for (rest = a.xattrs; wire_xattr_next(&rest, &name, &value);) {
		mask_text(m, name);
		clear(value);
	}
}

static void mask_paths(const struct tape_mask *m, struct span paths)
{
	struct span path;
	uint8_t flags;

	while (wire_path_next(&paths, &flags, &path))
		mask_text(m, path);
}

static void mask_at(const struct tape_mask *m, uint8_t *p)
{
	struct digest d = tape_mask_digest(m, (struct digest){ get_u64(p), get_u64(p + 8) });

	put_u64(p, d.hi);
	put_u64(p + 8, d.lo);
}

/* Each span of the frame, as the table of its fields has it: a new frame needs no mention here unless a span of it has
 * a structure. */
static void mask_spans(const struct tape_mask *m, unsigned type, const void *f)
{
	const struct wire_layout *l = &wire_layouts[type];
	unsigned i;

	if (type == WIRE_OPEN) {
		mask_paths(m, ((const struct wire_open *)f)->paths);
		return;
	}
	if (type == WIRE_ENTRY)
		mask_attrs(m, f);
	for (i = 0; i < l->n; i++)
		if ((l->field[i].kind == WIRE_FIELD_DATA || l->field[i].kind == WIRE_FIELD_REST) &&
		    !(type == WIRE_ENTRY && l->field[i].at == offsetof(struct wire_entry, attrs)))
			mask_text(m, *(const struct span *)(const void *)((const char *)f + l->field[i].at));
}

/* Hashes, and arrays of bytes: identities, and the id of the session. They precede fields without a fixed width. */
static void mask_numbers(const struct tape_mask *m, const struct wire_layout *l, uint8_t *p)
{
	unsigned i;

	for (i = 0; i < l->n && l->field[i].kind != WIRE_FIELD_DATA && l->field[i].kind != WIRE_FIELD_REST &&
	    l->field[i].kind != WIRE_FIELD_ARRAY; p += l->field[i++].size)
		if (l->field[i].kind == WIRE_FIELD_BYTES)
			memset(p, 0, l->field[i].size);
		else if (l->field[i].name != NULL && strcmp(l->field[i].name, "digest") == 0)
			mask_at(m, p);
}

void tape_mask_frame(const struct tape_mask *m, uint8_t *frame, size_t n)
{
	struct span payload = { frame + WIRE_HEADER_BYTES, n - WIRE_HEADER_BYTES };
	struct wire_header h;
	union wire_any f;

	if (wire_header_decode(&h, frame, NULL) < 0 || !wire_type_known(h.type) || h.length != payload.n ||
	    wire_layouts[h.type].n == 0 || wire_decode(&f, h.type, payload, NULL) < 0) {
		clear(payload);
		return;
	}
	if (h.type == WIRE_HELLO) /* the name and version of the peer's program are wanted */
		return;
	mask_spans(m, h.type, &f);
	mask_numbers(m, &wire_layouts[h.type], frame + WIRE_HEADER_BYTES);
}
