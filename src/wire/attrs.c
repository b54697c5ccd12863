#include "wire/attrs.h"

#include <assert.h>

#include "core/err.h"
#include "wire/codec.h"

#define OWNER_FIELDS 10 /* beside the names */

static size_t owner_bytes(const struct wire_attrs *a)
{
	return OWNER_FIELDS + a->user.n + a->group.n;
}

size_t wire_attrs_bytes(const struct wire_attrs *a)
{
	size_t n = 0;

	if (a->has_version)
		n += 4 + WIRE_VERSION_BYTES;
	if (a->sparse)
		n += 4;
	if (a->link_id != 0)
		n += 4 + 8;
	if (a->has_owner)
		n += 4 + owner_bytes(a);
	if (a->xattrs.n > 0)
		n += 4 + a->xattrs.n;
	if (a->linked)
		n += 4;
	if (a->unsized)
		n += 4;
	return n;
}

static uint8_t *write_tag(uint8_t *p, enum wire_attr tag, size_t length)
{
	return write_u16(write_u16(p, (uint16_t)tag), (uint16_t)length);
}

static uint8_t *write_name(uint8_t *p, struct span name)
{
	return write_span(write_u8(p, (uint8_t)name.n), name);
}

static uint8_t *write_owner(uint8_t *p, const struct wire_attrs *a)
{
	assert(a->user.n <= WIRE_OWNER_NAME_MAX && a->group.n <= WIRE_OWNER_NAME_MAX);
	p = write_tag(p, WIRE_ATTR_OWNER, owner_bytes(a));
	p = write_u32(p, a->uid);
	p = write_u32(p, a->gid);
	p = write_name(p, a->user);
	return write_name(p, a->group);
}

size_t wire_attrs_encode(uint8_t *out, const struct wire_attrs *a)
{
	uint8_t *p = out;

	assert(a->xattrs.n <= WIRE_XATTRS_MAX_BYTES);
	if (a->has_version) {
		p = write_tag(p, WIRE_ATTR_VERSION, WIRE_VERSION_BYTES);
		p = write_span(p, (struct span){ a->version, WIRE_VERSION_BYTES });
	}
	if (a->sparse)
		p = write_tag(p, WIRE_ATTR_SPARSE, 0);
	if (a->link_id != 0) {
		p = write_tag(p, WIRE_ATTR_LINK_ID, 8);
		p = write_u64(p, a->link_id);
	}
	if (a->has_owner)
		p = write_owner(p, a);
	if (a->xattrs.n > 0) {
		p = write_tag(p, WIRE_ATTR_XATTRS, a->xattrs.n);
		p = write_span(p, a->xattrs);
	}
	if (a->linked)
		p = write_tag(p, WIRE_ATTR_LINKED, 0);
	if (a->unsized)
		p = write_tag(p, WIRE_ATTR_UNSIZED, 0);
	return (size_t)(p - out);
}

/* ---- Decoding ---- */

/* A name, preceded by its length. */
static struct span read_name(struct reader *r)
{
	struct span s = read_span(r, read_u8(r));

	if (s.n > 0 && memchr(s.p, '\0', s.n) != NULL)
		r->bad = true;
	return s;
}

static void read_owner(struct reader *r, struct wire_attrs *a)
{
	a->has_owner = true;
	a->uid = read_u32(r);
	a->gid = read_u32(r);
	a->user = read_name(r);
	a->group = read_name(r);
}

static void read_xattrs(struct reader *r, struct wire_attrs *a)
{
	struct span name, value, list = a->xattrs = read_span(r, (size_t)(r->end - r->p));

	if (list.n == 0 || list.n > WIRE_XATTRS_MAX_BYTES)
		r->bad = true;
	while (list.n > 0 && !r->bad)
		if (!wire_xattr_next(&list, &name, &value) || name.n == 0)
			r->bad = true;
}

static bool belongs(uint16_t tag, uint8_t type)
{
	switch (tag) {
	case WIRE_ATTR_VERSION:
	case WIRE_ATTR_SPARSE:
	case WIRE_ATTR_UNSIZED:
		return type == WIRE_FILE;
	case WIRE_ATTR_LINKED:
		return wire_may_be_linked(type);
	case WIRE_ATTR_LINK_ID:
		return type == WIRE_HARDLINK;
	case WIRE_ATTR_OWNER:
	case WIRE_ATTR_XATTRS:
		return type == WIRE_FILE || type == WIRE_DIR || type == WIRE_SYMLINK;
	default:
		return tag < WIRE_ATTR_CRITICAL;
	}
}

/* False if the value is malformed or longer than its fields. */
static bool read_value(struct wire_attrs *a, uint16_t tag, struct span value)
{
	struct reader r = reader_of(value);
	const uint8_t *p;

	switch (tag) {
	case WIRE_ATTR_VERSION:
		a->has_version = true;
		if ((p = read_bytes(&r, WIRE_VERSION_BYTES)) != NULL)
			memcpy(a->version, p, WIRE_VERSION_BYTES);
		break;
	case WIRE_ATTR_SPARSE:
		a->sparse = true;
		break;
	case WIRE_ATTR_LINK_ID:
		a->link_id = read_u64(&r);
		break;
	case WIRE_ATTR_OWNER:
		read_owner(&r, a);
		break;
	case WIRE_ATTR_XATTRS:
		read_xattrs(&r, a);
		break;
	case WIRE_ATTR_LINKED:
		a->linked = true;
		break;
	case WIRE_ATTR_UNSIZED:
		a->unsized = true;
		break;
	default: /* unknown */
		return true;
	}
	return !r.bad && r.p == r.end;
}

/* A hard link refers to an earlier entry. */
static bool link_ok(uint64_t link_id, const struct wire_entry *f)
{
	if (f->type != WIRE_HARDLINK)
		return true;
	return wire_id_ok(link_id) && link_id >> 16 < f->id >> 16;
}

/* Nothing is known of a file without a size. */
static bool unsized_ok(const struct wire_attrs *a, const struct wire_entry *f)
{
	return !a->unsized || (f->size_bytes == 0 && !a->has_version && !a->sparse && !a->linked);
}

int wire_attrs_decode(struct wire_attrs *a, const struct wire_entry *f, struct ptcp_err *e)
{
	struct reader r = reader_of(f->attrs);
	struct wire_attrs d = { 0 };
	uint32_t last = 0, tag;
	struct span value;
	bool ok = true;

	if (f->attrs.n == 0 && f->type != WIRE_HARDLINK) { /* most files of most trees, four times each */
		*a = d;
		return 0;
	}
	while (ok && r.p != r.end) {
		tag = read_u16(&r);
		value = read_span(&r, read_u16(&r));
		ok = !r.bad && tag >= last && belongs((uint16_t)tag, f->type) &&
		    read_value(&d, (uint16_t)tag, value);
		last = tag + 1;
	}
	if (!ok || !link_ok(d.link_id, f) || !unsized_ok(&d, f))
		return err_set(e, PTCP_EPROTO, "malformed attributes of an entry");
	*a = d;
	return 0;
}

/* ---- Extended attributes ---- */

size_t wire_xattr_encode(uint8_t *out, struct span name, struct span value)
{
	uint8_t *p;

	assert(name.n > 0 && name.n <= WIRE_XATTR_NAME_MAX && value.n <= UINT16_MAX);
	p = write_name(out, name);
	p = write_u16(p, (uint16_t)value.n);
	p = write_span(p, value);
	return (size_t)(p - out);
}

bool wire_xattr_next(struct span *xattrs, struct span *name, struct span *value)
{
	struct reader r = reader_of(*xattrs);

	*name = read_name(&r);
	*value = read_span(&r, read_u16(&r));
	if (r.bad)
		return false;
	*xattrs = (struct span){ r.p, (size_t)(r.end - r.p) };
	return true;
}
