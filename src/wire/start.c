/* Frames that start, join and end a session, and those to a relay. */
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

/* A destination, sources and patterns, or nothing. Only a session that can be steered can be told to flood. */
static bool path_count_ok(const struct wire_open *o)
{
	switch (o->role) {
	case WIRE_YOU_RECEIVE: return o->n_paths == 1;
	case WIRE_YOU_SEND: return o->n_paths > 0 && o->n_paths <= WIRE_PATHS_MAX;
	case WIRE_YOU_DROP: return o->n_paths == 0 && (o->flags & ~(uint32_t)WIRE_OPEN_STEERED) == 0;
	case WIRE_YOU_FLOOD: return o->n_paths == 0 && o->flags == WIRE_OPEN_STEERED;
	default: return false;
	}
}

/* One path of OPEN, and whether it is a source or destination. */
static bool path_ok(uint8_t role, uint8_t flags, struct span path, bool *place)
{
	if (path.n > WIRE_PATH_MAX || (path.n > 0 && memchr(path.p, '\0', path.n) != NULL))
		return false;
	*place = flags == 0 || (flags == WIRE_PATH_CONTENTS && role == WIRE_YOU_SEND);
	return *place || (role == WIRE_YOU_SEND && path.n > 0 &&
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

/* A name, to be looked up and logged: nothing that could not be typed. */
static bool printable(struct span name)
{
	size_t i;

	for (i = 0; i < name.n; i++)
		if (name.p[i] <= ' ' || name.p[i] > '~')
			return false;
	return name.n > 0;
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
		ok = printable(read_span(&ends, read_u8(&ends))) && ok;
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

size_t wire_ping_encode(uint8_t *out, const struct wire_ping *f)
{
	uint8_t *p = out + WIRE_HEADER_BYTES;

	p = write_u8(p, f->busy);
	p = write_u64(p, f->tick);
	return frame_finish(out, p, WIRE_PING);
}

int wire_ping_decode(struct wire_ping *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_ping d = { 0 };
	int err;

	d.busy = read_u8(&r);
	d.tick = read_u64(&r);
	if ((err = frame_done(&r, d.busy <= WIRE_VERIFYING, WIRE_PING, e)) < 0)
		return err;
	*f = d;
	return 0;
}

size_t wire_use_encode(uint8_t *out, const struct wire_use *f)
{
	uint8_t *p = out + WIRE_HEADER_BYTES;

	p = write_u16(p, f->streams);
	p = write_u64(p, f->bytes);
	return frame_finish(out, p, WIRE_USE);
}

int wire_use_decode(struct wire_use *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_use d = { 0 };
	int err;

	d.streams = read_u16(&r);
	d.bytes = read_u64(&r);
	if ((err = frame_done(&r, true, WIRE_USE, e)) < 0)
		return err;
	*f = d;
	return 0;
}

size_t wire_seen_encode(uint8_t *out, const struct wire_seen *f)
{
	uint8_t *p = out + WIRE_HEADER_BYTES;

	assert(f->congestion.n <= WIRE_CONGESTION_MAX);
	p = write_u64(p, f->elapsed_us);
	p = write_u64(p, f->busy_us);
	p = write_u64(p, f->window_us);
	p = write_u64(p, f->buffer_us);
	p = write_u64(p, f->retransmits);
	p = write_u8(p, (uint8_t)f->congestion.n);
	p = write_span(p, f->congestion);
	return frame_finish(out, p, WIRE_SEEN);
}

int wire_seen_decode(struct wire_seen *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_seen d = { 0 };
	bool ok;
	int err;

	d.elapsed_us = read_u64(&r);
	d.busy_us = read_u64(&r);
	d.window_us = read_u64(&r);
	d.buffer_us = read_u64(&r);
	d.retransmits = read_u64(&r);
	d.congestion = read_span(&r, read_u8(&r));
	ok = d.congestion.n == 0 || (d.congestion.n <= WIRE_CONGESTION_MAX && printable(d.congestion));
	if ((err = frame_done(&r, ok, WIRE_SEEN, e)) < 0)
		return err;
	*f = d;
	return 0;
}

size_t wire_rate_encode(uint8_t *out, const struct wire_rate *f)
{
	uint8_t *p = out + WIRE_HEADER_BYTES;
	size_t n;
	unsigned i;

	assert(f->n <= WIRE_RATES_MAX && f->m <= WIRE_RATE_STREAMS_MAX);
	p = write_u64(p, f->all_bps);
	p = write_u8(p, f->n);
	p = write_u8(p, f->m);
	for (i = 0; i < f->n; i++)
		p = write_u64(p, f->bps[i]);
	p = write_span(p, (struct span){ f->of, f->m });
	n = frame_finish(out, p, WIRE_RATE);
	out[1] = 0; /* who does not know it does without */
	return n;
}

int wire_rate_decode(struct wire_rate *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_rate d = { 0 };
	bool ok;
	unsigned i;
	int err;

	d.all_bps = read_u64(&r);
	d.n = read_u8(&r);
	d.m = read_u8(&r);
	ok = d.n <= WIRE_RATES_MAX && d.m <= WIRE_RATE_STREAMS_MAX;
	for (i = 0; ok && i < d.n; i++)
		ok = (d.bps[i] = read_u64(&r)) != 0;
	for (i = 0; ok && i < d.m; i++)
		ok = (d.of[i] = read_u8(&r)) <= d.n;
	ok = ok && (d.m == 0 || d.of[d.m - 1] != 0);
	if ((err = frame_done(&r, ok, WIRE_RATE, e)) < 0)
		return err;
	*f = d;
	return 0;
}

size_t wire_join_encode(uint8_t *out, const struct wire_join *f)
{
	uint8_t *p = out + WIRE_HEADER_BYTES;

	p = write_span(p, (struct span){ f->session, WIRE_SESSION_BYTES });
	p = write_u16(p, f->stream);
	p = write_span(p, (struct span){ f->mac, WIRE_MAC_BYTES });
	return frame_finish(out, p, WIRE_JOIN);
}

int wire_join_decode(struct wire_join *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_join d = { 0 };
	struct span session = read_span(&r, WIRE_SESSION_BYTES), mac;
	int err;

	d.stream = read_u16(&r);
	mac = read_span(&r, WIRE_MAC_BYTES);
	if ((err = frame_done(&r, true, WIRE_JOIN, e)) < 0)
		return err;
	memcpy(d.session, session.p, WIRE_SESSION_BYTES);
	memcpy(d.mac, mac.p, WIRE_MAC_BYTES);
	*f = d;
	return 0;
}

size_t wire_joined_encode(uint8_t *out)
{
	return frame_finish(out, out + WIRE_HEADER_BYTES, WIRE_JOINED);
}

int wire_joined_decode(struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);

	return frame_done(&r, true, WIRE_JOINED, e);
}

size_t wire_heard_encode(uint8_t *out, const struct wire_heard *f)
{
	return frame_finish(out, write_u64(out + WIRE_HEADER_BYTES, f->bytes), WIRE_HEARD);
}

int wire_heard_decode(struct wire_heard *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_heard d = { read_u64(&r) };
	int err;

	if ((err = frame_done(&r, true, WIRE_HEARD, e)) < 0)
		return err;
	*f = d;
	return 0;
}

size_t wire_route_encode(uint8_t *out, const struct wire_route *f)
{
	uint8_t *p = out + WIRE_HEADER_BYTES;

	assert(f->port != 0 && f->host.n <= UINT8_MAX && printable(f->host));
	p = write_u16(p, f->port);
	p = write_u8(p, (uint8_t)f->host.n);
	p = write_span(p, f->host);
	if (f->hold_bytes > 0)
		p = write_u64(p, f->hold_bytes);
	return frame_finish(out, p, WIRE_ROUTE);
}

int wire_route_decode(struct wire_route *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_route d = { 0 };
	bool holds;
	int err;

	d.port = read_u16(&r);
	d.host = read_span(&r, read_u8(&r));
	if ((holds = r.p < r.end))
		d.hold_bytes = read_u64(&r);
	if ((err = frame_done(&r, d.port != 0 && printable(d.host) && holds == (d.hold_bytes > 0), WIRE_ROUTE, e)) < 0)
		return err;
	*f = d;
	return 0;
}

size_t wire_routed_encode(uint8_t *out)
{
	return frame_finish(out, out + WIRE_HEADER_BYTES, WIRE_ROUTED);
}

int wire_routed_decode(struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);

	return frame_done(&r, true, WIRE_ROUTED, e);
}
