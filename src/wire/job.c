#include "wire/job.h"

#include <assert.h>

#include "wire/codec.h"
#include "wire/grant.h"

static bool path_ok(struct span s)
{
	return s.n <= WIRE_PATH_MAX && (s.n == 0 || memchr(s.p, '\0', s.n) == NULL);
}

size_t wire_job_encode(uint8_t *out, const struct wire_job *f)
{
	uint8_t *p = out + WIRE_HEADER_BYTES;

	assert(f->host.n <= WIRE_HOST_MAX && f->congestion.n <= WIRE_CONGESTION_MAX);
	p = write_u8(p, f->flags);
	p = write_u8(p, f->family);
	p = write_u16(p, f->port);
	p = write_u32(p, f->timeout_ms);
	p = write_u8(p, (uint8_t)f->host.n);
	p = write_u8(p, (uint8_t)f->congestion.n);
	p = write_span(p, f->host);
	p = write_span(p, f->congestion);
	if ((f->flags & WIRE_JOB_RATE) != 0)
		p = write_u64(p, f->rate_bps);
	return frame_finish(out, p, WIRE_JOB);
}

int wire_job_decode(struct wire_job *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_job d = { 0 };
	size_t host_n, congestion_n;
	bool ok, rated;
	int err;

	d.flags = read_u8(&r);
	rated = (d.flags & WIRE_JOB_RATE) != 0;
	d.family = read_u8(&r);
	d.port = read_u16(&r);
	d.timeout_ms = read_u32(&r);
	host_n = read_u8(&r);
	congestion_n = read_u8(&r);
	d.host = read_span(&r, host_n);
	d.congestion = read_span(&r, congestion_n);
	if (rated)
		d.rate_bps = read_u64(&r);
	ok = (d.flags & ~WIRE_JOB_FLAGS) == 0 && (d.family == 0 || d.family == 4 || d.family == 6) &&
	    d.port != 0 && d.timeout_ms != 0 && d.host.n > 0 && word_ok(d.host, WIRE_HOST_MAX) &&
	    word_ok(d.congestion, WIRE_CONGESTION_MAX) &&
	    (!rated || (d.rate_bps >= WIRE_JOB_MIN_BPS && d.rate_bps != WIRE_RATE_IDLE));
	if ((err = frame_done(&r, ok, WIRE_JOB, e)) < 0)
		return err;
	*f = d;
	return 0;
}

size_t wire_probe_encode(uint8_t *out, const struct wire_probe *f)
{
	uint8_t *p = out + WIRE_HEADER_BYTES;

	p = write_u16(p, f->streams);
	p = write_u16(p, f->messages);
	p = write_u8(p, f->cipher);
	return frame_finish(out, p, WIRE_PROBE);
}

int wire_probe_decode(struct wire_probe *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_probe d = { 0 };
	int err;

	d.streams = read_u16(&r);
	d.messages = read_u16(&r);
	d.cipher = read_u8(&r);
	if ((err = frame_done(&r, d.streams != 0 && d.messages != 0 && d.messages <= WIRE_SAMPLES_MAX, WIRE_PROBE,
	    e)) < 0)
		return err;
	*f = d;
	return 0;
}

size_t wire_sample_encode(uint8_t *out, const struct wire_sample *f)
{
	uint8_t *p = out + WIRE_HEADER_BYTES;

	p = write_u64(p, f->bytes);
	p = write_u64(p, f->delay_ns);
	p = write_u64(p, f->round_trip_ns);
	return frame_finish(out, p, WIRE_SAMPLE);
}

int wire_sample_decode(struct wire_sample *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_sample d = { 0 };
	int err;

	d.bytes = read_u64(&r);
	d.delay_ns = read_u64(&r);
	d.round_trip_ns = read_u64(&r);
	if ((err = frame_done(&r, d.bytes != 0 && d.delay_ns != 0, WIRE_SAMPLE, e)) < 0)
		return err;
	*f = d;
	return 0;
}

size_t wire_started_encode(uint8_t *out, const struct wire_started *f)
{
	uint8_t *p = out + WIRE_HEADER_BYTES;

	assert(f->peer.n <= WIRE_HOST_MAX);
	p = write_u64(p, f->id);
	p = write_u8(p, (uint8_t)f->peer.n);
	p = write_span(p, f->peer);
	return frame_finish(out, p, WIRE_STARTED);
}

int wire_started_decode(struct wire_started *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_started d = { 0 };
	int err;

	d.id = read_u64(&r);
	d.peer = read_span(&r, read_u8(&r));
	if ((err = frame_done(&r, d.id != 0 && d.peer.n > 0 && word_ok(d.peer, WIRE_HOST_MAX), WIRE_STARTED,
	    e)) < 0)
		return err;
	*f = d;
	return 0;
}

/* ---- How far it is ---- */

static uint8_t *write_progress(uint8_t *p, const struct ptcp_progress *f)
{
	p = write_u64(p, f->bytes);
	p = write_u64(p, f->total_bytes);
	p = write_u64(p, f->files);
	p = write_u64(p, f->total_files);
	p = write_u64(p, f->failed);
	p = write_u64(p, f->wire_bytes);
	p = write_u64(p, f->resumed_bytes);
	p = write_u64(p, f->file_bytes);
	p = write_u64(p, f->others);
	p = write_u16(p, (uint16_t)f->streams);
	p = write_u16(p, (uint16_t)f->max_streams);
	p = write_u8(p, f->activity == PTCP_SYNCING ? WIRE_SYNCING : f->activity == PTCP_VERIFYING ? WIRE_VERIFYING : WIRE_IDLE);
	return write_u8(p, f->total_known);
}

static bool read_progress(struct ptcp_progress *f, struct reader *r)
{
	uint8_t busy, known;

	f->bytes = read_u64(r);
	f->total_bytes = read_u64(r);
	f->files = read_u64(r);
	f->total_files = read_u64(r);
	f->failed = read_u64(r);
	f->wire_bytes = read_u64(r);
	f->resumed_bytes = read_u64(r);
	f->file_bytes = read_u64(r);
	f->others = read_u64(r);
	f->streams = read_u16(r);
	f->max_streams = read_u16(r);
	busy = read_u8(r);
	known = read_u8(r);
	f->activity = busy == WIRE_SYNCING ? PTCP_SYNCING : busy == WIRE_VERIFYING ? PTCP_VERIFYING : PTCP_TRANSFERRING;
	f->total_known = known == 1;
	return known <= 1 && (busy == WIRE_IDLE || busy == WIRE_SYNCING || busy == WIRE_VERIFYING);
}

size_t wire_progress_encode(uint8_t *out, const struct ptcp_progress *f)
{
	return frame_finish(out, write_progress(out + WIRE_HEADER_BYTES, f), WIRE_PROGRESS);
}

int wire_progress_decode(struct ptcp_progress *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct ptcp_progress d;
	bool ok = read_progress(&d, &r);
	int err;

	if ((err = frame_done(&r, ok, WIRE_PROGRESS, e)) < 0)
		return err;
	*f = d;
	return 0;
}

size_t wire_event_encode(uint8_t *out, const struct wire_event *f)
{
	uint8_t *p = out + WIRE_HEADER_BYTES;

	assert(f->path.n <= WIRE_PATH_MAX && f->text.n <= WIRE_TEXT_MAX);
	p = write_u8(p, f->kind);
	p = write_u16(p, f->code);
	p = write_u16(p, f->from);
	p = write_u16(p, f->to);
	p = write_u16(p, (uint16_t)f->path.n);
	p = write_u16(p, (uint16_t)f->text.n);
	p = write_span(p, f->path);
	p = write_span(p, f->text);
	return frame_finish(out, p, WIRE_EVENT);
}

int wire_event_decode(struct wire_event *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_event d = { 0 };
	size_t path_n, text_n;
	int err;

	d.kind = read_u8(&r);
	d.code = read_u16(&r);
	d.from = read_u16(&r);
	d.to = read_u16(&r);
	path_n = read_u16(&r);
	text_n = read_u16(&r);
	d.path = read_span(&r, path_n);
	d.text = read_span(&r, text_n);
	if ((err = frame_done(&r, d.kind >= WIRE_EVENT_DONE && d.kind <= WIRE_EVENT_STREAMS && path_ok(d.path) &&
	    d.text.n <= WIRE_TEXT_MAX, WIRE_EVENT, e)) < 0)
		return err;
	*f = d;
	return 0;
}

/* ---- Asking later ---- */

size_t wire_status_encode(uint8_t *out, const struct wire_status *f)
{
	uint8_t *p = out + WIRE_HEADER_BYTES;

	p = write_u64(p, f->id);
	p = write_u8(p, f->cancel);
	return frame_finish(out, p, WIRE_STATUS);
}

int wire_status_decode(struct wire_status *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_status d = { 0 };
	int err;

	d.id = read_u64(&r);
	d.cancel = read_u8(&r);
	if ((err = frame_done(&r, d.cancel == 0 || (d.cancel == 1 && d.id != 0), WIRE_STATUS, e)) < 0)
		return err;
	*f = d;
	return 0;
}

size_t wire_state_encode(uint8_t *out, const struct wire_state *f)
{
	uint8_t *p = out + WIRE_HEADER_BYTES;

	assert(f->host.n <= WIRE_HOST_MAX && f->from.n <= WIRE_PATH_MAX && f->to.n <= WIRE_PATH_MAX &&
	    f->text.n <= WIRE_TEXT_MAX);
	p = write_u64(p, f->id);
	p = write_u8(p, f->kind);
	p = write_u8(p, f->mode);
	p = write_u16(p, f->code);
	p = write_u16(p, f->port);
	p = write_u64(p, f->age_ms);
	p = write_u64(p, f->took_ms);
	p = write_progress(p, &f->progress);
	p = write_u8(p, (uint8_t)f->host.n);
	p = write_u16(p, (uint16_t)f->from.n);
	p = write_u16(p, (uint16_t)f->to.n);
	p = write_u16(p, (uint16_t)f->text.n);
	p = write_span(p, f->host);
	p = write_span(p, f->from);
	p = write_span(p, f->to);
	p = write_span(p, f->text);
	return frame_finish(out, p, WIRE_STATE);
}

int wire_state_decode(struct wire_state *f, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_state d = { 0 };
	size_t host_n, from_n, to_n, text_n;
	bool ok;
	int err;

	d.id = read_u64(&r);
	d.kind = read_u8(&r);
	d.mode = read_u8(&r);
	d.code = read_u16(&r);
	d.port = read_u16(&r);
	d.age_ms = read_u64(&r);
	d.took_ms = read_u64(&r);
	ok = read_progress(&d.progress, &r);
	host_n = read_u8(&r);
	from_n = read_u16(&r);
	to_n = read_u16(&r);
	text_n = read_u16(&r);
	d.host = read_span(&r, host_n);
	d.from = read_span(&r, from_n);
	d.to = read_span(&r, to_n);
	d.text = read_span(&r, text_n);
	ok = ok && d.id != 0 && (d.kind == WIRE_STATE_RUNNING || d.kind == WIRE_STATE_OVER) &&
	    d.mode >= WIRE_GRANT_READ && d.mode <= WIRE_GRANT_PROBE && d.port != 0 &&
	    d.host.n > 0 && word_ok(d.host, WIRE_HOST_MAX) && path_ok(d.from) && path_ok(d.to) &&
	    d.text.n <= WIRE_TEXT_MAX;
	if ((err = frame_done(&r, ok, WIRE_STATE, e)) < 0)
		return err;
	*f = d;
	return 0;
}
