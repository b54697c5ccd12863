/* Frames that start a session, and what ends one that fails. */
#include <assert.h>

#include "wire/codec.h"

size_t wire_hello_encode(uint8_t *out, const struct wire_hello *h)
{
	uint8_t *p = out + WIRE_HEADER_BYTES;
	unsigned i;

	assert(h->n_abilities <= WIRE_ABILITIES_MAX && h->software.n <= WIRE_SOFTWARE_MAX);
	p = write_u32(p, WIRE_MAGIC);
	p = write_u16(p, h->version_min);
	p = write_u16(p, h->version_max);
	p = write_u32(p, h->timeout_ms);
	p = write_u32(p, h->max_entries);
	p = write_u16(p, h->max_streams);
	p = write_u8(p, h->n_abilities);
	for (i = 0; i < h->n_abilities; i++)
		p = write_u16(p, h->abilities[i]);
	p = write_u8(p, (uint8_t)h->software.n);
	p = write_span(p, h->software);
	return frame_finish(out, p, WIRE_HELLO);
}

int wire_hello_decode(struct wire_hello *h, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_hello d = { 0 };
	bool ok = read_u32(&r) == WIRE_MAGIC;
	unsigned i;
	int err;

	d.version_min = read_u16(&r);
	d.version_max = read_u16(&r);
	d.timeout_ms = read_u32(&r);
	d.max_entries = read_u32(&r);
	d.max_streams = read_u16(&r);
	d.n_abilities = read_u8(&r);
	ok = ok && d.n_abilities <= WIRE_ABILITIES_MAX;
	for (i = 0; ok && i < d.n_abilities; i++)
		d.abilities[i] = read_u16(&r);
	d.software = read_span(&r, read_u8(&r));
	ok = ok && d.software.n <= WIRE_SOFTWARE_MAX && d.version_min <= d.version_max &&
	    d.timeout_ms > 0 && d.max_entries > 0 && d.max_streams > 0;
	/* What a later version appends is not ours to judge. */
	if (ok && !r.bad && d.version_max > WIRE_VERSION)
		r.p = r.end;
	if ((err = frame_done(&r, ok, WIRE_HELLO, e)) < 0)
		return err;
	*h = d;
	return 0;
}

size_t wire_open_encode(uint8_t *out, const struct wire_open *o)
{
	uint8_t *p = out + WIRE_HEADER_BYTES;

	assert(o->n_paths <= WIRE_PATHS_MAX && o->paths.n <= WIRE_CONTROL_MAX - 12);
	p = write_u8(p, o->role);
	p = write_u8(p, o->cipher);
	p = write_u8(p, o->fsync);
	p = write_u8(p, 0);
	p = write_u32(p, o->flags);
	p = write_u16(p, o->streams);
	p = write_u16(p, o->n_paths);
	p = write_span(p, o->paths);
	return frame_finish(out, p, WIRE_OPEN);
}

/* A destination, sources and patterns; a measurement has neither paths nor flags. */
static bool path_count_ok(const struct wire_open *o)
{
	switch (o->role) {
	case WIRE_ACCEPTOR_RECEIVES: return o->n_paths == 1;
	case WIRE_ACCEPTOR_SENDS: return o->n_paths > 0 && o->n_paths <= WIRE_PATHS_MAX;
	case WIRE_ACCEPTOR_DISCARDS:
	case WIRE_ACCEPTOR_GENERATES: return o->n_paths == 0 && o->flags == 0;
	default: return false;
	}
}

/* One path of OPEN, and whether it is a source or destination. */
static bool path_ok(uint8_t role, uint8_t flags, struct span path, bool *place)
{
	if (path.n > WIRE_PATH_MAX || (path.n > 0 && memchr(path.p, '\0', path.n) != NULL))
		return false;
	*place = flags == 0 || (flags == WIRE_PATH_CONTENTS && role == WIRE_ACCEPTOR_SENDS);
	return *place || (role == WIRE_ACCEPTOR_SENDS && path.n > 0 &&
	    (flags == WIRE_PATH_EXCLUDE || flags == WIRE_PATH_INCLUDE));
}

static bool paths_ok(const struct wire_open *o)
{
	struct span rest = o->paths, path;
	bool any = false, place;
	uint8_t flags;
	unsigned i;

	for (i = 0; i < o->n_paths; i++) {
		if (!wire_path_next(&rest, &flags, &path) || !path_ok(o->role, flags, path, &place))
			return false;
		any |= place;
	}
	return (any || o->n_paths == 0) && rest.n == 0;
}

int wire_open_decode(struct wire_open *o, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_open d = { 0 };
	bool ok;
	int err;

	d.role = read_u8(&r);
	d.cipher = read_u8(&r);
	d.fsync = read_u8(&r);
	ok = read_u8(&r) == 0 && d.fsync <= WIRE_FSYNC_FILE;
	d.flags = read_u32(&r);
	d.streams = read_u16(&r);
	d.n_paths = read_u16(&r);
	ok = ok && !r.bad && (d.flags & ~(uint32_t)WIRE_OPEN_FLAGS) == 0 && d.streams > 0 &&
	    path_count_ok(&d);
	if (ok)
		d.paths = read_span(&r, (size_t)(r.end - r.p));
	if ((err = frame_done(&r, ok && paths_ok(&d), WIRE_OPEN, e)) < 0)
		return err;
	*o = d;
	return 0;
}

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

size_t wire_opened_encode(uint8_t *out, const struct wire_opened *o)
{
	uint8_t *p = out + WIRE_HEADER_BYTES;

	assert(o->n_endpoints <= WIRE_ENDPOINTS_MAX);
	memcpy(p, o->session, WIRE_SESSION_BYTES);
	p += WIRE_SESSION_BYTES;
	p = write_u8(p, o->cipher);
	p = write_u16(p, o->streams);
	p = write_u8(p, o->n_endpoints);
	p = write_span(p, o->endpoints);
	return frame_finish(out, p, WIRE_OPENED);
}

int wire_opened_decode(struct wire_opened *o, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in), ends;
	struct wire_opened d = { 0 };
	const uint8_t *id = read_bytes(&r, WIRE_SESSION_BYTES);
	bool ok;
	unsigned i;
	int err;

	if (id != NULL)
		memcpy(d.session, id, WIRE_SESSION_BYTES);
	d.cipher = read_u8(&r);
	d.streams = read_u16(&r);
	d.n_endpoints = read_u8(&r);
	ok = !r.bad && d.streams > 0 && d.n_endpoints <= WIRE_ENDPOINTS_MAX;
	if (ok)
		d.endpoints = read_span(&r, (size_t)(r.end - r.p));
	ends = reader_of(d.endpoints);
	for (i = 0; ok && i < d.n_endpoints; i++) {
		ok = read_u16(&ends) != 0;
		ok = host_ok(read_span(&ends, read_u8(&ends))) && ok;
	}
	ok = ok && !ends.bad && ends.p == ends.end;
	if ((err = frame_done(&r, ok, WIRE_OPENED, e)) < 0)
		return err;
	*o = d;
	return 0;
}

size_t wire_error_encode(uint8_t *out, const struct wire_error *f)
{
	uint8_t *p = out + WIRE_HEADER_BYTES;

	assert(f->text.n <= WIRE_TEXT_MAX);
	p = write_u16(p, f->code);
	p = write_u16(p, (uint16_t)f->text.n);
	p = write_span(p, f->text);
	return frame_finish(out, p, WIRE_ERROR);
}

int wire_error_decode(struct wire_error *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_error d = { 0 };
	int err;

	d.code = read_u16(&r);
	d.text = read_span(&r, read_u16(&r));
	if ((err = frame_done(&r, d.text.n <= WIRE_TEXT_MAX, WIRE_ERROR, e)) < 0)
		return err;
	*f = d;
	return 0;
}
