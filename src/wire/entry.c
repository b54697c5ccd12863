/* Frames about entries: what is sent, what is wanted, what has become of it. */
#include <assert.h>

#include "core/text.h"
#include "wire/attrs.h"
#include "wire/codec.h"

#define ENTRY_FIELDS 49 /* before the name */

size_t wire_entry_encode(uint8_t *out, const struct wire_entry *f)
{
	uint8_t *p = out + WIRE_HEADER_BYTES;

	assert(f->name.n <= 255 && f->target.n <= WIRE_PATH_MAX &&
	    f->attrs.n <= WIRE_CONTROL_MAX - ENTRY_FIELDS - f->name.n - f->target.n);
	p = write_u8(p, f->type);
	p = write_u64(p, f->id);
	p = write_u64(p, f->parent);
	p = write_u64(p, f->size_bytes);
	p = write_u64(p, (uint64_t)f->mtime_s);
	p = write_u32(p, f->mtime_ns);
	p = write_u32(p, f->mode);
	p = write_u16(p, (uint16_t)f->name.n);
	p = write_u16(p, (uint16_t)f->target.n);
	p = write_u32(p, (uint32_t)f->attrs.n);
	p = write_span(p, f->name);
	p = write_span(p, f->target);
	p = write_span(p, f->attrs);
	return frame_finish(out, p, WIRE_ENTRY);
}

static bool entry_ok(const struct wire_entry *d)
{
	struct wire_attrs attrs;
	bool named = d->name.p != NULL && text_name_ok((const char *)d->name.p, d->name.n);
	bool target = d->target.n > 0 && d->target.n <= WIRE_PATH_MAX &&
	    memchr(d->target.p, '\0', d->target.n) == NULL;

	if (d->mtime_ns >= 1000000000 || d->mode > 07777 || d->size_bytes > WIRE_FILE_MAX ||
	    !wire_id_ok(d->id) || wire_attrs_decode(&attrs, d, NULL) < 0)
		return false;
	if (d->parent != 0 && (!wire_id_ok(d->parent) || d->parent == d->id))
		return false;
	switch (d->type) {
	case WIRE_DIR:
		return named && d->target.n == 0 && d->size_bytes == 0;
	case WIRE_FILE:
		return named && d->target.n == 0;
	case WIRE_SYMLINK:
	case WIRE_HARDLINK:
		return named && target && d->size_bytes == 0;
	case WIRE_DIR_END:
		return d->name.n == 0 && d->target.n == 0 && d->size_bytes == 0 && d->parent == 0;
	default:
		return false;
	}
}

int wire_entry_decode(struct wire_entry *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_entry d = { 0 };
	uint16_t name, target;
	uint32_t attrs;
	int err;

	d.type = read_u8(&r);
	d.id = read_u64(&r);
	d.parent = read_u64(&r);
	d.size_bytes = read_u64(&r);
	d.mtime_s = (int64_t)read_u64(&r);
	d.mtime_ns = read_u32(&r);
	d.mode = read_u32(&r);
	name = read_u16(&r);
	target = read_u16(&r);
	attrs = read_u32(&r);
	d.name = read_span(&r, name);
	d.target = read_span(&r, target);
	d.attrs = read_span(&r, attrs);
	if ((err = frame_done(&r, !r.bad && entry_ok(&d), WIRE_ENTRY, e)) < 0)
		return err;
	*f = d;
	return 0;
}

size_t wire_file_end_encode(uint8_t *out, const struct wire_file_end *f)
{
	uint8_t *p = out + WIRE_HEADER_BYTES;

	p = write_u64(p, f->id);
	p = write_u64(p, f->digest.hi);
	p = write_u64(p, f->digest.lo);
	return frame_finish(out, p, WIRE_FILE_END);
}

int wire_file_end_decode(struct wire_file_end *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_file_end d;
	int err;

	d.id = read_u64(&r);
	d.digest.hi = read_u64(&r);
	d.digest.lo = read_u64(&r);
	if ((err = frame_done(&r, wire_id_ok(d.id), WIRE_FILE_END, e)) < 0)
		return err;
	*f = d;
	return 0;
}

size_t wire_totals_encode(uint8_t *out, const struct wire_totals *f)
{
	uint8_t *p = out + WIRE_HEADER_BYTES;

	p = write_u64(p, f->files);
	p = write_u64(p, f->bytes);
	p = write_u8(p, f->final);
	return frame_finish(out, p, WIRE_TOTALS);
}

int wire_totals_decode(struct wire_totals *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_totals d;
	int err;

	d.files = read_u64(&r);
	d.bytes = read_u64(&r);
	d.final = read_u8(&r);
	if ((err = frame_done(&r, d.final <= 1, WIRE_TOTALS, e)) < 0)
		return err;
	*f = d;
	return 0;
}

size_t wire_answer_encode(uint8_t *out, const struct wire_answer *f)
{
	uint8_t *p = out + WIRE_HEADER_BYTES;

	p = write_u64(p, f->id);
	p = write_u8(p, f->verdict);
	return frame_finish(out, p, WIRE_ANSWER);
}

int wire_answer_decode(struct wire_answer *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_answer d;
	int err;

	d.id = read_u64(&r);
	d.verdict = read_u8(&r);
	if ((err = frame_done(&r, wire_id_ok(d.id) && d.verdict >= WIRE_SEND_ALL &&
	    d.verdict <= WIRE_COMPARE, WIRE_ANSWER, e)) < 0)
		return err;
	*f = d;
	return 0;
}

static uint8_t *write_blocks(uint8_t *p, const struct wire_blocks *f)
{
	p = write_u64(p, f->id);
	p = write_u32(p, f->first);
	return write_u32(p, f->count);
}

/* A range of at least one block whose end does not wrap. */
static bool read_blocks(struct reader *r, struct wire_blocks *d)
{
	d->id = read_u64(r);
	d->first = read_u32(r);
	d->count = read_u32(r);
	return wire_id_ok(d->id) && d->count > 0 && d->count <= UINT32_MAX - d->first;
}

/* NEED and HOLE: the range alone. */
static int decode_range(struct wire_blocks *f, struct span in, unsigned type, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_blocks d = { 0 };
	bool ok = read_blocks(&r, &d);
	int err;

	if ((err = frame_done(&r, ok, type, e)) < 0)
		return err;
	*f = d;
	return 0;
}

size_t wire_need_encode(uint8_t *out, const struct wire_blocks *f)
{
	return frame_finish(out, write_blocks(out + WIRE_HEADER_BYTES, f), WIRE_NEED);
}

int wire_need_decode(struct wire_blocks *f, struct span in, struct ptcp_err *e)
{
	return decode_range(f, in, WIRE_NEED, e);
}

size_t wire_hole_encode(uint8_t *out, const struct wire_blocks *f)
{
	return frame_finish(out, write_blocks(out + WIRE_HEADER_BYTES, f), WIRE_HOLE);
}

int wire_hole_decode(struct wire_blocks *f, struct span in, struct ptcp_err *e)
{
	return decode_range(f, in, WIRE_HOLE, e);
}

size_t wire_have_encode(uint8_t *out, const struct wire_blocks *f)
{
	uint8_t *p = write_blocks(out + WIRE_HEADER_BYTES, f);

	p = write_u64(p, f->digest.hi);
	p = write_u64(p, f->digest.lo);
	return frame_finish(out, p, WIRE_HAVE);
}

int wire_have_decode(struct wire_blocks *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_blocks d = { 0 };
	bool ok = read_blocks(&r, &d);
	int err;

	d.digest.hi = read_u64(&r);
	d.digest.lo = read_u64(&r);
	if ((err = frame_done(&r, ok, WIRE_HAVE, e)) < 0)
		return err;
	*f = d;
	return 0;
}

size_t wire_ack_encode(uint8_t *out, const struct wire_ack *f)
{
	uint8_t *p = out + WIRE_HEADER_BYTES;

	p = write_u64(p, f->id);
	p = write_u32(p, f->block);
	return frame_finish(out, p, WIRE_ACK);
}

int wire_ack_decode(struct wire_ack *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_ack d;
	int err;

	d.id = read_u64(&r);
	d.block = read_u32(&r);
	if ((err = frame_done(&r, wire_id_ok(d.id), WIRE_ACK, e)) < 0)
		return err;
	*f = d;
	return 0;
}

size_t wire_done_encode(uint8_t *out, const struct wire_done *f)
{
	return frame_finish(out, write_u64(out + WIRE_HEADER_BYTES, f->id), WIRE_DONE);
}

int wire_done_decode(struct wire_done *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_done d = { read_u64(&r) };
	int err;

	if ((err = frame_done(&r, wire_id_ok(d.id), WIRE_DONE, e)) < 0)
		return err;
	*f = d;
	return 0;
}

size_t wire_fail_encode(uint8_t *out, const struct wire_fail *f)
{
	uint8_t *p = out + WIRE_HEADER_BYTES;

	assert(f->text.n <= WIRE_TEXT_MAX);
	p = write_u64(p, f->id);
	p = write_u16(p, f->code);
	p = write_u16(p, (uint16_t)f->text.n);
	p = write_span(p, f->text);
	return frame_finish(out, p, WIRE_FAIL);
}

int wire_fail_decode(struct wire_fail *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_fail d = { 0 };
	int err;

	d.id = read_u64(&r);
	d.code = read_u16(&r);
	d.text = read_span(&r, read_u16(&r));
	if ((err = frame_done(&r, wire_id_ok(d.id) && d.text.n <= WIRE_TEXT_MAX, WIRE_FAIL, e)) < 0)
		return err;
	*f = d;
	return 0;
}

size_t wire_end_encode(uint8_t *out, const struct wire_end *f)
{
	uint8_t *p = out + WIRE_HEADER_BYTES;

	p = write_u64(p, f->files);
	p = write_u64(p, f->failed);
	return frame_finish(out, p, WIRE_END);
}

int wire_end_decode(struct wire_end *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_end d;
	int err;

	d.files = read_u64(&r);
	d.failed = read_u64(&r);
	if ((err = frame_done(&r, true, WIRE_END, e)) < 0)
		return err;
	*f = d;
	return 0;
}

size_t wire_warning_encode(uint8_t *out, const struct wire_warning *f)
{
	uint8_t *p = out + WIRE_HEADER_BYTES;

	assert(f->path.n <= WIRE_PATH_MAX && f->text.n <= WIRE_TEXT_MAX);
	p = write_u8(p, f->kind);
	p = write_u16(p, f->code);
	p = write_u16(p, (uint16_t)f->path.n);
	p = write_u16(p, (uint16_t)f->text.n);
	p = write_span(p, f->path);
	p = write_span(p, f->text);
	return frame_finish(out, p, WIRE_WARNING);
}

int wire_warning_decode(struct wire_warning *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_warning d = { 0 };
	uint16_t path, text;
	bool ok;
	int err;

	d.kind = read_u8(&r);
	d.code = read_u16(&r);
	path = read_u16(&r);
	text = read_u16(&r);
	d.path = read_span(&r, path);
	d.text = read_span(&r, text);
	ok = !r.bad && (d.kind == WIRE_WARNING_FAILED || d.kind == WIRE_WARNING_ONLY) &&
	    path <= WIRE_PATH_MAX && text <= WIRE_TEXT_MAX &&
	    (path == 0 || memchr(d.path.p, '\0', path) == NULL);
	if ((err = frame_done(&r, ok, WIRE_WARNING, e)) < 0)
		return err;
	*f = d;
	return 0;
}
