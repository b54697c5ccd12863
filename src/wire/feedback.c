/* Frames about a session that is running: signs of life, streams, what either end sees. */
#include <assert.h>

#include "wire/codec.h"

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

size_t wire_control_ack_encode(uint8_t *out, const struct wire_control_ack *f)
{
	return frame_finish(out, write_u64(out + WIRE_HEADER_BYTES, f->bytes), WIRE_CONTROL_ACK);
}

int wire_control_ack_decode(struct wire_control_ack *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_control_ack d = { read_u64(&r) };
	int err;

	if ((err = frame_done(&r, true, WIRE_CONTROL_ACK, e)) < 0)
		return err;
	*f = d;
	return 0;
}

size_t wire_set_streams_encode(uint8_t *out, const struct wire_set_streams *f)
{
	uint8_t *p = out + WIRE_HEADER_BYTES;

	p = write_u16(p, f->streams);
	p = write_u64(p, f->bytes);
	return frame_finish(out, p, WIRE_SET_STREAMS);
}

int wire_set_streams_decode(struct wire_set_streams *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_set_streams d = { 0 };
	int err;

	d.streams = read_u16(&r);
	d.bytes = read_u64(&r);
	if ((err = frame_done(&r, true, WIRE_SET_STREAMS, e)) < 0)
		return err;
	*f = d;
	return 0;
}

size_t wire_tcp_report_encode(uint8_t *out, const struct wire_tcp_report *f)
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
	return frame_finish(out, p, WIRE_TCP_REPORT);
}

int wire_tcp_report_decode(struct wire_tcp_report *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_tcp_report d = { 0 };
	int err;

	d.elapsed_us = read_u64(&r);
	d.busy_us = read_u64(&r);
	d.window_us = read_u64(&r);
	d.buffer_us = read_u64(&r);
	d.retransmits = read_u64(&r);
	d.congestion = read_span(&r, read_u8(&r));
	if ((err = frame_done(&r, word_ok(d.congestion, WIRE_CONGESTION_MAX), WIRE_TCP_REPORT, e)) < 0)
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

size_t wire_load_encode(uint8_t *out, const struct wire_load *f)
{
	uint8_t *p = write_u16(out + WIRE_HEADER_BYTES, f->busy_permille);
	size_t n = frame_finish(out, write_u16(p, f->disk_permille), WIRE_LOAD);

	out[1] = 0; /* likewise */
	return n;
}

int wire_load_decode(struct wire_load *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_load d;
	int err;

	d.busy_permille = read_u16(&r);
	d.disk_permille = read_u16(&r);
	if ((err = frame_done(&r, d.busy_permille <= 1000 && d.disk_permille <= 1000, WIRE_LOAD, e)) < 0)
		return err;
	*f = d;
	return 0;
}
