/* Frames of connections that join a session, and those to a relay. */
#include <assert.h>

#include "wire/codec.h"

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

size_t wire_route_encode(uint8_t *out, const struct wire_route *f)
{
	uint8_t *p = out + WIRE_HEADER_BYTES;

	assert(f->port != 0 && host_ok(f->host));
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
	if ((err = frame_done(&r, d.port != 0 && host_ok(d.host) && holds == (d.hold_bytes > 0), WIRE_ROUTE, e)) < 0)
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
