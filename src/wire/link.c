#include "wire/link.h"

#include <assert.h>

#include "wire/codec.h"

size_t wire_links_encode(uint8_t *out)
{
	return frame_finish(out, out + WIRE_HEADER_BYTES, WIRE_LINKS);
}

int wire_links_decode(struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);

	return frame_done(&r, true, WIRE_LINKS, e);
}

size_t wire_link_encode(uint8_t *out, const struct wire_link *f)
{
	uint8_t *p = out + WIRE_HEADER_BYTES;

	assert(f->host.n <= WIRE_HOST_MAX && f->text.n <= WIRE_TEXT_MAX);
	p = write_u64(p, f->rate_bps);
	p = write_u64(p, f->rate_error_bps);
	p = write_u64(p, f->delay_ns);
	p = write_u64(p, f->delay_error_ns);
	p = write_u64(p, f->age_ms);
	p = write_u32(p, f->messages);
	p = write_u16(p, f->streams);
	p = write_u16(p, f->port);
	p = write_u8(p, f->flags);
	p = write_u8(p, (uint8_t)f->host.n);
	p = write_u16(p, (uint16_t)f->text.n);
	p = write_span(p, f->host);
	p = write_span(p, f->text);
	return frame_finish(out, p, WIRE_LINK);
}

static bool error_ok(uint64_t v, uint64_t most)
{
	return v <= most || v == WIRE_LINK_NOT_KNOWN;
}

/* All is known, or nothing is. */
static bool numbers_ok(const struct wire_link *f)
{
	if (f->rate_bps == 0)
		return (f->rate_error_bps | f->delay_ns | f->delay_error_ns | f->age_ms | f->messages | f->streams |
		    f->flags) == 0;
	return f->rate_bps <= WIRE_LINK_BPS_MAX && error_ok(f->rate_error_bps, WIRE_LINK_BPS_MAX) &&
	    f->delay_ns <= WIRE_LINK_NS_MAX && error_ok(f->delay_error_ns, WIRE_LINK_NS_MAX) && f->messages != 0 &&
	    f->streams != 0 && (f->flags & ~WIRE_LINK_FLAGS) == 0;
}

int wire_link_decode(struct wire_link *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_link d = { 0 };
	size_t host_n, text_n;
	int err;

	d.rate_bps = read_u64(&r);
	d.rate_error_bps = read_u64(&r);
	d.delay_ns = read_u64(&r);
	d.delay_error_ns = read_u64(&r);
	d.age_ms = read_u64(&r);
	d.messages = read_u32(&r);
	d.streams = read_u16(&r);
	d.port = read_u16(&r);
	d.flags = read_u8(&r);
	host_n = read_u8(&r);
	text_n = read_u16(&r);
	d.host = read_span(&r, host_n);
	d.text = read_span(&r, text_n);
	if ((err = frame_done(&r, numbers_ok(&d) && d.port != 0 && host_ok(d.host) &&
	    d.text.n <= WIRE_TEXT_MAX, WIRE_LINK, e)) < 0)
		return err;
	*f = d;
	return 0;
}
