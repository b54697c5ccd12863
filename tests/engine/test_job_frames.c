/* Both ends of a job connection, joined in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/err.h"
#include "core/units.h"
#include "engine/engine.h"
#include "engine/job_frames.h"

#define TIMEOUT_NS (4 * NS_PER_S)

struct end {
	struct job_frames j;
	unsigned calls[256];  /* by type */
	uint8_t role;         /* of the request */
	unsigned messages;
	char host[20], path[20];
	int refuse;           /* what on_frame() returns */
};

static struct mono at(double s) { return (struct mono){ 1000 * NS_PER_S + (uint64_t)(s * 1e9) }; }

static int on_frame(void *arg, unsigned type, const union job_frame *f, struct ptcp_err *e)
{
	struct end *d = arg;
	const struct job_request *q = &f->request;
	struct wire_grant g;

	d->calls[type]++;
	if (type == WIRE_OPEN || type == WIRE_PROBE) {
		d->role = q->open.role;
		d->messages = q->messages;
		memcpy(d->host, q->job.host.p, q->job.host.n);
		memcpy(d->path, q->grant.path.p, q->grant.path.n);
		assert_int_equal(wire_grant_decode(&g, (struct span){ q->grant_frame.p + WIRE_HEADER_BYTES,
		    q->grant_frame.n - WIRE_HEADER_BYTES }, NULL), 0);
	}
	return d->refuse < 0 ? err_set(e, d->refuse, "refused") : 0;
}

static void begin(struct end *d, enum job_frames_state state)
{
	*d = (struct end){ .j = { .frame = on_frame, .timeout_ns = TIMEOUT_NS, .messages = 2 } };
	d->j.arg = d;
	if (state == JOB_FRAMES_AWAIT_REQUEST)
		job_frames_await(&d->j, at(0));
	else
		job_frames_requested(&d->j, state, at(0));
}

/* Moves all output of one end to the other, in pieces of n bytes; the first error. */
static int deliver(struct end *from, struct end *to, size_t n, double s, struct ptcp_err *e)
{
	struct buf *b = &from->j.conn.out.b;
	int r = 0;

	assert_false(from->j.conn.out.failed);
	while (buf_len(b) > 0) {
		if (n > buf_len(b))
			n = buf_len(b);
		if (r == 0)
			r = job_frames_input(&to->j, buf_head(b), n, at(s), e);
		buf_consume(b, n);
	}
	return r;
}

static void fini(struct end *a, struct end *b)
{
	job_frames_fini(&a->j);
	job_frames_fini(&b->j);
}

static struct span text(const char *s) { return (struct span){ (const uint8_t *)s, strlen(s) }; }

static void put_job_and_grant(struct outbox *o)
{
	struct wire_job f = { .port = 7811, .timeout_ms = 4000, .host = text("b.example.org") };
	struct wire_grant g = { .mode = WIRE_GRANT_WRITE, .expiry_s = 1, .path = text("/data") };

	OUTBOX_PUT(o, job, JOB, &f);
	OUTBOX_PUT(o, grant, GRANT, &g);
}

static void put_request(struct outbox *o)
{
	struct wire_open f = { .role = WIRE_ACCEPTOR_SENDS, .streams = 4, .n_paths = 1 };
	uint8_t path[32], *p;

	put_job_and_grant(o);
	f.paths = (struct span){ path, wire_path_encode(path, 0, text("/src")) };
	p = outbox_room(o, WIRE_OPEN_MAX_BYTES + sizeof path);
	outbox_added(o, wire_open_encode(p, &f));
}

static void put_probe(struct outbox *o)
{
	struct wire_probe f = { 4, 2, 0, 0 };

	put_job_and_grant(o);
	OUTBOX_PUT(o, probe, PROBE, &f);
}

static void put_started(struct outbox *o)
{
	struct wire_started f = { 7, text("192.0.2.1:7811") };

	OUTBOX_PUT(o, started, STARTED, &f);
}

static void put_progress(struct outbox *o, uint64_t bytes)
{
	struct ptcp_progress f = { .bytes = bytes, .files = bytes > 0 };

	OUTBOX_PUT(o, progress, PROGRESS, &f);
}

static void put_sample_of(struct outbox *o, uint64_t bytes, double delay_s, double round_trip_s)
{
	struct wire_sample f = { bytes, (uint64_t)(delay_s * 1e9), (uint64_t)(round_trip_s * 1e9) };

	OUTBOX_PUT(o, sample, SAMPLE, &f);
}

static void put_sample(struct outbox *o, uint64_t bytes, double delay_s) { put_sample_of(o, bytes, delay_s, 1e-6); }

static void put_event(struct outbox *o)
{
	struct wire_event f = { .kind = WIRE_EVENT_DONE, .path = text("x") };

	OUTBOX_PUT(o, event, EVENT, &f);
}

static void job_in_any_pieces(void **state)
{
	struct end c, s;
	size_t n;

	(void)state;
	for (n = 1; n < 300; n++) {
		begin(&c, JOB_FRAMES_JOB_REQUESTED);
		begin(&s, JOB_FRAMES_AWAIT_REQUEST);
		put_request(&c.j.conn.out);
		assert_int_equal(deliver(&c, &s, n, 0.1, NULL), 0);
		assert_int_equal(s.calls[WIRE_OPEN], 1);
		assert_int_equal(s.j.state, JOB_FRAMES_ANSWERING);
		assert_true(s.role == WIRE_ACCEPTOR_SENDS && s.messages == 0);
		assert_string_equal(s.host, "b.example.org");
		assert_string_equal(s.path, "/data");
		put_progress(&s.j.conn.out, 0);
		put_started(&s.j.conn.out);
		put_event(&s.j.conn.out);
		put_progress(&s.j.conn.out, 10);
		job_frames_end(&s.j, NULL, &(struct wire_end){ 1, 0 }, at(0.2));
		assert_int_equal(deliver(&s, &c, n, 0.2, NULL), 0);
		assert_true(c.calls[WIRE_STARTED] == 1 && c.calls[WIRE_PROGRESS] == 2 && c.calls[WIRE_EVENT] == 1 &&
		    c.calls[WIRE_END] == 1);
		assert_int_equal(c.j.progress.bytes, 10);
		assert_int_equal(c.j.state, JOB_FRAMES_CLOSED);
		put_event(&s.j.conn.out); /* ignored */
		assert_int_equal(deliver(&s, &c, n, 0.3, NULL), 0);
		assert_int_equal(c.calls[WIRE_EVENT], 1);
		fini(&c, &s);
	}
}

static void measurement(void **state)
{
	struct end c, s;
	struct ptcp_err e;

	(void)state;
	begin(&c, JOB_FRAMES_TIMING_REQUESTED);
	begin(&s, JOB_FRAMES_AWAIT_REQUEST);
	put_probe(&c.j.conn.out);
	assert_int_equal(deliver(&c, &s, 50, 0, NULL), 0);
	assert_true(s.role == WIRE_ACCEPTOR_DISCARDS && s.messages == 2);
	put_started(&s.j.conn.out);
	put_sample(&s.j.conn.out, 1 << 20, 0.5);
	put_sample(&s.j.conn.out, 1 << 20, 0.5);
	assert_int_equal(deliver(&s, &c, 50, 1, NULL), 0);
	assert_int_equal(c.calls[WIRE_SAMPLE], 2);
	put_sample(&s.j.conn.out, 1 << 20, 0.5);
	assert_int_equal(deliver(&s, &c, 50, 9, &e), PTCP_EPROTO); /* one more than requested */
	assert_string_equal(e.msg, "unexpected SAMPLE frame in state TIMING_RUNNING");
	fini(&c, &s);
}

static void implausible_samples(void **state)
{
	static const struct { uint64_t bytes; double delay_s, round_trip_s; bool ok; } cases[] = {
		{ 1000, 0.9, 0.1, true }, { 1000, 1.1, 0.1, false }, /* since the request, with the first sample */
		{ 1000000000, 0.0001, 0.1, true }, { UINT64_MAX, 0.9, 0.1, false },
		{ 1000, 0.9, 2, true }, { 1000, 0.9, 2.1, false },
	};
	struct end c, s;
	struct ptcp_err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin(&c, JOB_FRAMES_TIMING_REQUESTED);
		begin(&s, JOB_FRAMES_AWAIT_REQUEST);
		put_started(&s.j.conn.out);
		put_sample(&s.j.conn.out, 1000, 1);
		put_sample_of(&s.j.conn.out, cases[i].bytes, cases[i].delay_s, cases[i].round_trip_s);
		assert_int_equal(deliver(&s, &c, 1000, 2, &e), cases[i].ok ? 0 : PTCP_EPROTO);
		assert_true(cases[i].ok || strstr(e.msg, "implausible SAMPLE frame") != NULL);
		fini(&c, &s);
	}
}

static void queries(void **state)
{
	struct wire_status q = { 7, 1 };
	struct wire_state f = { .id = 7, .kind = WIRE_STATE_RUNNING, .mode = WIRE_GRANT_WRITE, .port = 1,
		.host = text("b") };
	struct wire_link l = { .host = text("b"), .port = 1 };
	struct end c, s;

	(void)state;
	begin(&c, JOB_FRAMES_STATUS_REQUESTED);
	begin(&s, JOB_FRAMES_AWAIT_REQUEST);
	OUTBOX_PUT(&c.j.conn.out, status, STATUS, &q);
	assert_int_equal(deliver(&c, &s, 3, 0, NULL), 0);
	assert_int_equal(s.calls[WIRE_STATUS], 1);
	OUTBOX_PUT(&s.j.conn.out, state, STATE, &f);
	OUTBOX_PUT(&s.j.conn.out, state, STATE, &f);
	assert_int_equal(deliver(&s, &c, 3, 0, NULL), 0);
	assert_int_equal(c.calls[WIRE_STATE], 2);
	OUTBOX_PUT(&s.j.conn.out, link, LINK, &l);
	assert_int_equal(deliver(&s, &c, 3, 0, NULL), PTCP_EPROTO); /* the answer to another query */
	fini(&c, &s);

	begin(&c, JOB_FRAMES_LINKS_REQUESTED);
	begin(&s, JOB_FRAMES_AWAIT_REQUEST);
	outbox_added(&c.j.conn.out, wire_links_encode(outbox_room(&c.j.conn.out, WIRE_LINKS_MAX_BYTES)));
	assert_int_equal(deliver(&c, &s, 3, 0, NULL), 0);
	assert_int_equal(s.calls[WIRE_LINKS], 1);
	OUTBOX_PUT(&s.j.conn.out, link, LINK, &l);
	job_frames_end(&s.j, &(struct ptcp_err){ .code = PTCP_EPEER, .msg = "unknown" }, NULL, at(0));
	assert_int_equal(deliver(&s, &c, 3, 0, NULL), 0);
	assert_true(c.calls[WIRE_LINK] == 1 && c.calls[WIRE_ERROR] == 1);
	assert_int_equal(c.j.state, JOB_FRAMES_CLOSED);
	fini(&c, &s);
}

static void put_cleaned(struct outbox *o, uint64_t files, uint8_t final)
{
	struct wire_cleaned f = { .files = files, .final = final };

	OUTBOX_PUT(o, cleaned, CLEANED, &f);
}

/* A client counts what is listed: not more than there may be, nor more than was removed. */
static void cleaning(void **state)
{
	struct wire_clean q = { .older_ms = 1, .path = text("d") };
	struct wire_leftover l = { .path = text("p") };
	struct end c, s;
	struct ptcp_err e;
	unsigned i;

	(void)state;
	begin(&c, JOB_FRAMES_CLEAN_REQUESTED);
	begin(&s, JOB_FRAMES_AWAIT_REQUEST);
	OUTBOX_PUT(&c.j.conn.out, clean, CLEAN, &q);
	assert_int_equal(deliver(&c, &s, 3, 0, NULL), 0);
	assert_int_equal(s.calls[WIRE_CLEAN], 1);
	put_cleaned(&s.j.conn.out, 0, 0);
	OUTBOX_PUT(&s.j.conn.out, leftover, LEFTOVER, &l);
	put_cleaned(&s.j.conn.out, 1, 0);
	assert_int_equal(deliver(&s, &c, 3, 1, NULL), 0);
	assert_true(c.calls[WIRE_LEFTOVER] == 1 && c.calls[WIRE_CLEANED] == 2);
	OUTBOX_PUT(&s.j.conn.out, leftover, LEFTOVER, &l);
	put_cleaned(&s.j.conn.out, 1, 1);
	assert_int_equal(deliver(&s, &c, 3, 2, &e), PTCP_EPROTO);
	assert_string_equal(e.msg, "unexpected CLEANED frame in state CLEAN_REQUESTED");
	put_cleaned(&s.j.conn.out, 2, 1);
	assert_int_equal(deliver(&s, &c, 3, 2, NULL), 0);
	assert_int_equal(c.j.state, JOB_FRAMES_CLOSED);
	fini(&c, &s);

	begin(&c, JOB_FRAMES_CLEAN_REQUESTED);
	begin(&s, JOB_FRAMES_AWAIT_REQUEST);
	for (i = 0; i < WIRE_LEFTOVERS_MAX; i++)
		OUTBOX_PUT(&s.j.conn.out, leftover, LEFTOVER, &l);
	assert_int_equal(deliver(&s, &c, 1000, 0, NULL), 0);
	OUTBOX_PUT(&s.j.conn.out, leftover, LEFTOVER, &l);
	assert_int_equal(deliver(&s, &c, 1000, 0, &e), PTCP_EPROTO);
	assert_string_equal(e.msg, "more than 10000 LEFTOVER frames");
	fini(&c, &s);
}

static void put_managed(struct outbox *o, uint64_t entries, uint8_t final)
{
	struct wire_managed f = { .entries = entries, .failed = 1, .final = final };

	OUTBOX_PUT(o, managed, MANAGED, &f);
}

static void managing(void **state)
{
	static const uint8_t path[] = { 0, 0, 1, 'd' };
	struct wire_manage q = { .op = WIRE_MANAGE_LIST, .n_paths = 1, .paths = { path, sizeof path } };
	struct wire_listed l = { .type = WIRE_LISTED_FILE, .path = text("p") };
	struct end c, s;
	struct ptcp_err e;

	(void)state;
	begin(&c, JOB_FRAMES_MANAGE_REQUESTED);
	begin(&s, JOB_FRAMES_AWAIT_REQUEST);
	OUTBOX_PUT(&c.j.conn.out, manage, MANAGE, &q);
	assert_int_equal(deliver(&c, &s, 3, 0, NULL), 0);
	assert_int_equal(s.calls[WIRE_MANAGE], 1);
	OUTBOX_PUT(&s.j.conn.out, listed, LISTED, &l);
	OUTBOX_PUT(&s.j.conn.out, listed, LISTED, &l);
	put_managed(&s.j.conn.out, 1, 0);
	assert_int_equal(deliver(&s, &c, 3, 1, NULL), 0);
	assert_true(c.calls[WIRE_LISTED] == 2 && c.calls[WIRE_MANAGED] == 1);
	OUTBOX_PUT(&s.j.conn.out, listed, LISTED, &l);
	put_managed(&s.j.conn.out, 1, 1);
	assert_int_equal(deliver(&s, &c, 3, 2, &e), PTCP_EPROTO);
	assert_string_equal(e.msg, "unexpected MANAGED frame in state MANAGE_REQUESTED");
	put_managed(&s.j.conn.out, 2, 1);
	assert_int_equal(deliver(&s, &c, 3, 2, NULL), 0);
	assert_int_equal(c.j.state, JOB_FRAMES_CLOSED);
	fini(&c, &s);
}

static void put_piece_at(struct outbox *o, uint64_t id, uint64_t offset, uint32_t n, uint32_t packed, size_t data_bytes)
{
	const struct wire_block b = { .id = id, .offset = offset, .length_bytes = n, .packed_bytes = packed };
	const struct wire_block_end end = { 0 };
	uint8_t *p = outbox_room(o, WIRE_BLOCK_MAX_BYTES);
	size_t at = wire_block_encode(p, &b);

	memset(p + at, 'x', data_bytes);
	at += data_bytes;
	at += wire_block_end_encode(p + at, &end);
	wire_header_encode(p, &(struct wire_header){ WIRE_BLOCK, WIRE_CRITICAL, (uint32_t)(at - WIRE_HEADER_BYTES) });
	outbox_added(o, at);
}

static void put_piece(struct outbox *o, uint32_t n, uint32_t packed, size_t data_bytes)
{
	put_piece_at(o, wire_range_id(0), 0, n, packed, data_bytes);
}

static void put_read(struct end *c)
{
	static const uint8_t range[WIRE_RANGE_BYTES];
	const struct wire_read q = { .n_ranges = 1, .path = text("d"), .ranges = { range, sizeof range } };

	OUTBOX_PUT(&c->j.conn.out, read, READ, &q);
}

/* After one piece of work, the connection carries the next one; each has its own counts. */
static void work_after_work(void **state)
{
	const struct wire_listed l = { .type = WIRE_LISTED_FILE, .path = text("p") };
	unsigned i;
	struct end c, s;
	struct ptcp_err e;

	(void)state;
	begin(&c, JOB_FRAMES_READ_REQUESTED);
	begin(&s, JOB_FRAMES_AWAIT_REQUEST);
	for (i = 1; i <= 3; i++) {
		put_read(&c);
		assert_int_equal(deliver(&c, &s, 3, i, NULL), 0);
		assert_int_equal(s.calls[WIRE_READ], i);
		OUTBOX_PUT(&s.j.conn.out, listed, LISTED, &l);
		put_piece(&s.j.conn.out, 5, 0, 5);
		put_managed(&s.j.conn.out, 1, 1);
		job_frames_await_next(&s.j, at(i));
		assert_int_equal(deliver(&s, &c, 3, i, NULL), 0);
		assert_true(c.calls[WIRE_LISTED] == i && c.calls[WIRE_BLOCK] == i && c.calls[WIRE_MANAGED] == i);
		assert_int_equal(c.j.state, JOB_FRAMES_CLOSED);
		job_frames_requested(&c.j, JOB_FRAMES_READ_REQUESTED, at(i));
	}
	assert_int_equal(frame_conn_fault(&s.j.conn, at(62)), FRAME_ALIVE);
	assert_int_equal(frame_conn_fault(&s.j.conn, at(63)), FRAME_STALLED);
	put_job_and_grant(&c.j.conn.out);
	assert_int_equal(deliver(&c, &s, 1000, 4, &e), PTCP_EPROTO);
	assert_string_equal(e.msg, "unexpected JOB frame in state AWAIT_NEXT");
	fini(&c, &s);
}

static void put_write(struct end *c, uint32_t bytes)
{
	const struct wire_write f = { .size_bytes = bytes, .mtime_ns = WIRE_WRITE_NOW, .path = text("w") };

	OUTBOX_PUT(&c->j.conn.out, write, WRITE, &f);
}

/* A file comes in pieces of one size, the last one shorter; the answer follows the last; other work may precede. */
static void written_pieces(void **state)
{
	static const uint32_t sizes[] = { 0, 1, WIRE_PIECE_BYTES, WIRE_PIECE_BYTES + 1, WIRE_WRITE_MAX };
	const struct wire_listed l = { .type = WIRE_LISTED_FILE, .path = text("w") };
	unsigned i, pieces = 0;
	uint32_t from, n;
	struct end c, s;

	(void)state;
	begin(&c, JOB_FRAMES_WRITE_REQUESTED);
	begin(&s, JOB_FRAMES_AWAIT_REQUEST);
	for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		put_write(&c, sizes[i]);
		assert_int_equal(deliver(&c, &s, 1000, i, NULL), 0);
		for (from = 0; from < sizes[i]; from += n) {
			assert_int_equal(s.j.state, JOB_FRAMES_AWAIT_DATA);
			assert_int_equal(frame_conn_fault(&s.j.conn, at(i + 9)), FRAME_ALIVE);
			assert_int_equal(frame_conn_fault(&s.j.conn, at(i + 10)), FRAME_STALLED);
			n = sizes[i] - from < WIRE_PIECE_BYTES ? sizes[i] - from : WIRE_PIECE_BYTES;
			put_piece_at(&c.j.conn.out, wire_range_id(0), from, n, 0, n);
			assert_int_equal(deliver(&c, &s, 1000, i, NULL), 0);
			assert_int_equal(s.calls[WIRE_BLOCK], ++pieces);
		}
		assert_true(s.j.state == JOB_FRAMES_ANSWERING && s.calls[WIRE_WRITE] == i + 1);
		OUTBOX_PUT(&s.j.conn.out, listed, LISTED, &l);
		put_managed(&s.j.conn.out, 1, 1);
		job_frames_await_next(&s.j, at(i));
		assert_int_equal(deliver(&s, &c, 3, i, NULL), 0);
		assert_int_equal(c.j.state, JOB_FRAMES_CLOSED);
		job_frames_requested(&c.j, JOB_FRAMES_WRITE_REQUESTED, at(i + 1));
	}
	fini(&c, &s);
}

static void malformed_writes(void **state)
{
	static const struct { uint32_t size; uint64_t id, offset; uint32_t n; } cases[] = {
		{ 10, 1 << 16, 0, 9 }, { 10, 1 << 16, 0, 11 }, { 10, 1 << 16, 1, 10 }, { 10, 2 << 16, 0, 10 },
		{ 2 * WIRE_PIECE_BYTES, 1 << 16, 0, WIRE_PIECE_BYTES - 1 },
		{ 2 * WIRE_PIECE_BYTES, 1 << 16, 0, WIRE_PIECE_BYTES + 1 },
	};
	struct ptcp_err e;
	struct end c, s;
	size_t i;

	(void)state;
	for (i = 0; i <= sizeof cases / sizeof *cases; i++) {
		begin(&c, JOB_FRAMES_WRITE_REQUESTED);
		begin(&s, JOB_FRAMES_AWAIT_REQUEST);
		if (i < sizeof cases / sizeof *cases) {
			put_write(&c, cases[i].size);
			put_piece_at(&c.j.conn.out, cases[i].id, cases[i].offset, cases[i].n, 0, cases[i].n);
		} else { /* more than the file */
			put_write(&c, 1);
			put_piece_at(&c.j.conn.out, 1 << 16, 0, 1, 0, 1);
			put_piece_at(&c.j.conn.out, 1 << 16, 1, 1, 0, 1);
		}
		assert_int_equal(deliver(&c, &s, 100000, 0, &e), PTCP_EPROTO);
		assert_int_equal(s.calls[WIRE_BLOCK], 0);
		fini(&c, &s);
	}
}

static void malformed_pieces(void **state)
{
	static const struct { uint32_t n, packed; size_t data; bool good; } cases[] = {
		{ 1, 0, 1, true }, { WIRE_PIECE_BYTES, 0, WIRE_PIECE_BYTES, true }, { 5, 0, 4, false },
		{ 5, 0, 6, false }, { 5, 4, 4, false }, { 5, 0, 0, false },
	};
	struct end c, s;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin(&c, JOB_FRAMES_READ_REQUESTED);
		begin(&s, JOB_FRAMES_AWAIT_REQUEST);
		put_piece(&s.j.conn.out, cases[i].n, cases[i].packed, cases[i].data);
		assert_int_equal(deliver(&s, &c, 1000, 0, NULL), cases[i].good ? 0 : PTCP_EPROTO);
		assert_int_equal(c.calls[WIRE_BLOCK], cases[i].good);
		fini(&c, &s);
	}
}

/* A client that stops reading stalls a paused answer; the client's reading, however slow, keeps it alive. */
static void pausing(void **state)
{
	static const uint8_t zeros[JOB_FRAMES_PAUSE_BYTES];
	struct end s;

	(void)state;
	begin(&s, JOB_FRAMES_ANSWERING);
	assert_true(frame_conn_deadline(&s.j.conn).ns == UINT64_MAX);
	memcpy(buf_reserve(&s.j.conn.out.b, sizeof zeros, NULL), zeros, sizeof zeros);
	buf_added(&s.j.conn.out.b, sizeof zeros);
	job_frames_pause(&s.j, at(0));
	assert_false(job_frames_resume(&s.j));
	assert_int_equal(frame_conn_fault(&s.j.conn, at(119)), FRAME_ALIVE);
	buf_consume(&s.j.conn.out.b, 1);
	job_frames_wrote(&s.j, at(119));
	assert_int_equal(frame_conn_fault(&s.j.conn, at(238)), FRAME_ALIVE);
	assert_int_equal(frame_conn_fault(&s.j.conn, at(239)), FRAME_STALLED);
	buf_consume(&s.j.conn.out.b, sizeof zeros / 2);
	assert_true(job_frames_resume(&s.j));
	assert_false(job_frames_resume(&s.j));
	assert_int_equal(frame_conn_fault(&s.j.conn, at(1000)), FRAME_ALIVE);
	job_frames_fini(&s.j);
}

/* Every frame in every state: only those of this list are not "unexpected". */
static void wrong_order(void **state)
{
#define IN(state) (1u << JOB_FRAMES_##state)
	static const struct { unsigned type, states; } allowed[] = {
		{ WIRE_JOB, IN(AWAIT_REQUEST) }, { WIRE_STATUS, IN(AWAIT_REQUEST) }, { WIRE_LINKS, IN(AWAIT_REQUEST) },
		{ WIRE_GRANT, IN(AWAIT_GRANT) }, { WIRE_OPEN, IN(AWAIT_WORK) }, { WIRE_PROBE, IN(AWAIT_WORK) },
		{ WIRE_STARTED, IN(JOB_REQUESTED) | IN(TIMING_REQUESTED) },
		{ WIRE_WAITING, IN(JOB_REQUESTED) | IN(TIMING_REQUESTED) },
		{ WIRE_PROGRESS, IN(JOB_REQUESTED) | IN(TIMING_REQUESTED) | IN(JOB_RUNNING) | IN(TIMING_RUNNING) },
		{ WIRE_EVENT, IN(JOB_RUNNING) | IN(TIMING_RUNNING) },
		    { WIRE_END, IN(JOB_RUNNING) | IN(TIMING_RUNNING) },
		{ WIRE_MANAGE, IN(AWAIT_REQUEST) | IN(AWAIT_NEXT) },
		{ WIRE_SUM, IN(AWAIT_REQUEST) | IN(AWAIT_NEXT) },
		{ WIRE_READ, IN(AWAIT_REQUEST) | IN(AWAIT_NEXT) }, { WIRE_BLOCK, IN(READ_REQUESTED) | IN(AWAIT_DATA) },
		{ WIRE_WRITE, IN(AWAIT_REQUEST) | IN(AWAIT_NEXT) },
		{ WIRE_LISTED, IN(MANAGE_REQUESTED) | IN(READ_REQUESTED) | IN(WRITE_REQUESTED) },
		{ WIRE_MANAGED, IN(MANAGE_REQUESTED) | IN(READ_REQUESTED) | IN(WRITE_REQUESTED) },
		{ WIRE_CLEAN, IN(AWAIT_REQUEST) | IN(AWAIT_NEXT) }, { WIRE_LEFTOVER, IN(CLEAN_REQUESTED) },
		    { WIRE_CLEANED, IN(CLEAN_REQUESTED) },
		{ WIRE_SAMPLE, IN(TIMING_RUNNING) }, { WIRE_STATE, IN(STATUS_REQUESTED) },
		    { WIRE_LINK, IN(LINKS_REQUESTED) },
		{ WIRE_ERROR, IN(JOB_REQUESTED) | IN(TIMING_REQUESTED) | IN(JOB_RUNNING) | IN(TIMING_RUNNING) |
		    IN(STATUS_REQUESTED) | IN(LINKS_REQUESTED) | IN(CLEAN_REQUESTED) | IN(MANAGE_REQUESTED) |
		    IN(READ_REQUESTED) | IN(WRITE_REQUESTED) },
	};
	unsigned type, st, k, states;
	struct ptcp_err e;
	struct end d;
	uint8_t frame[WIRE_HEADER_BYTES];

	(void)state;
	for (type = 0; type < 256; type++)
		for (st = 0; st < JOB_FRAMES_CLOSED && wire_type_known(type); st++) {
			for (k = states = 0; k < sizeof allowed / sizeof *allowed; k++)
				states |= allowed[k].type == type ? allowed[k].states : 0;
			begin(&d, JOB_FRAMES_AWAIT_REQUEST);
			put_job_and_grant(&d.j.conn.out);
			assert_int_equal(deliver(&d, &d, 1000, 0, NULL), 0);
			d.j.state = (enum job_frames_state)st;
			wire_header_encode(frame, &(struct wire_header){ (uint8_t)type, WIRE_CRITICAL, 0 });
			err_set(&e, 0, "none");
			job_frames_input(&d.j, frame, sizeof frame, at(0), &e); /* without fields most are malformed */
			assert_int_equal(strncmp(e.msg, "unexpected", 10) == 0 || strncmp(e.msg, "trailing", 8) == 0,
			    (states & 1u << st) == 0);
			job_frames_fini(&d.j);
		}
}

static void unknown_frames(void **state)
{
	uint8_t frame[WIRE_HEADER_BYTES + 3] = { 0 };
	struct end c, s;

	(void)state;
	begin(&c, JOB_FRAMES_JOB_REQUESTED);
	begin(&s, JOB_FRAMES_AWAIT_REQUEST);
	wire_header_encode(frame, &(struct wire_header){ 200, 0, 3 });
	assert_int_equal(job_frames_input(&s.j, frame, sizeof frame, at(0), NULL), 0);
	put_request(&c.j.conn.out);
	assert_int_equal(deliver(&c, &s, 7, 0, NULL), 0);
	assert_int_equal(s.calls[WIRE_OPEN], 1);
	put_started(&s.j.conn.out);
	assert_int_equal(deliver(&s, &c, 7, 0, NULL), 0);
	assert_int_equal(job_frames_input(&c.j, frame, sizeof frame, at(0), NULL), 0);
	frame[1] = WIRE_CRITICAL;
	assert_int_equal(job_frames_input(&c.j, frame, sizeof frame, at(0), NULL), PTCP_EPROTO);
	fini(&c, &s);
}

static void trailing_bytes(void **state)
{
	struct end c, s;
	struct ptcp_err e;
	unsigned later;

	(void)state;
	for (later = 0; later < 2; later++) {
		begin(&c, JOB_FRAMES_JOB_REQUESTED);
		begin(&s, JOB_FRAMES_AWAIT_REQUEST);
		put_request(&c.j.conn.out);
		if (later)
			assert_int_equal(deliver(&c, &s, 1000, 0, &e), 0);
		memset(outbox_room(&c.j.conn.out, 1), 0, 1);
		outbox_added(&c.j.conn.out, 1);
		assert_int_equal(deliver(&c, &s, 1000, 0, &e), PTCP_EPROTO);
		assert_string_equal(e.msg, "trailing bytes after the request");
		assert_int_equal(s.calls[WIRE_OPEN], later); /* not begun if they came with it */
		fini(&c, &s);
	}
}

static void refused_by_the_owner(void **state)
{
	struct end c, s;

	(void)state;
	begin(&c, JOB_FRAMES_JOB_REQUESTED);
	begin(&s, JOB_FRAMES_AWAIT_REQUEST);
	s.refuse = PTCP_EREFUSED;
	put_request(&c.j.conn.out);
	assert_int_equal(deliver(&c, &s, 1000, 0, NULL), PTCP_EREFUSED);
	fini(&c, &s);
}

static void counts_that_differ(void **state)
{
	struct end c, s;
	struct ptcp_err e;

	(void)state;
	begin(&c, JOB_FRAMES_JOB_REQUESTED);
	begin(&s, JOB_FRAMES_AWAIT_REQUEST);
	put_started(&s.j.conn.out);
	put_progress(&s.j.conn.out, 10);
	job_frames_end(&s.j, NULL, &(struct wire_end){ 2, 0 }, at(0));
	assert_int_equal(deliver(&s, &c, 1000, 0, &e), PTCP_EPROTO);
	assert_string_equal(e.msg, "unexpected END frame in state JOB_RUNNING");
	fini(&c, &s);
	begin(&c, JOB_FRAMES_JOB_REQUESTED);
	begin(&s, JOB_FRAMES_AWAIT_REQUEST);
	put_started(&s.j.conn.out);
	put_progress(&s.j.conn.out, 10);
	job_frames_end(&s.j, NULL, &(struct wire_end){ 1, 1 }, at(0)); /* a failed file that was not reported */
	assert_int_equal(deliver(&s, &c, 1000, 0, &e), PTCP_EPROTO);
	fini(&c, &s);
}

/* Totals whose sum is no number. */
static void totals_without_end(void **state)
{
	const struct wire_cleaned f = { .files = UINT64_MAX, .failed = 1, .final = 1 };
	struct end c, s;

	(void)state;
	begin(&c, JOB_FRAMES_CLEAN_REQUESTED);
	begin(&s, JOB_FRAMES_AWAIT_REQUEST);
	OUTBOX_PUT(&s.j.conn.out, cleaned, CLEANED, &f);
	assert_int_equal(deliver(&s, &c, 1000, 0, NULL), PTCP_EPROTO);
	fini(&c, &s);
}

/* ---- Time ---- */

static void assert_due(const struct end *d, double s, enum frame_fault fault)
{
	struct mono due = frame_conn_deadline(&d->j.conn);

	assert_int_equal(due.ns, at(s).ns);
	assert_int_equal(frame_conn_fault(&d->j.conn, (struct mono){ due.ns - 1 }), FRAME_ALIVE);
	assert_int_equal(frame_conn_fault(&d->j.conn, due), fault);
}

static void silence(void **state)
{
	struct end c, s;
	uint8_t part[4] = { WIRE_PROGRESS, WIRE_CRITICAL };

	(void)state;
	begin(&c, JOB_FRAMES_JOB_REQUESTED);
	begin(&s, JOB_FRAMES_AWAIT_REQUEST);
	assert_due(&c, 4, FRAME_SILENT);
	assert_int_equal(job_frames_input(&c.j, part, sizeof part, at(3), NULL), 0); /* any byte counts */
	assert_due(&c, 7, FRAME_SILENT);
	fini(&c, &s);
}

static void heartbeat(struct end *s, struct end *c, uint64_t bytes, double now_s)
{
	put_progress(&s->j.conn.out, bytes);
	assert_int_equal(deliver(s, c, 1000, now_s, NULL), 0);
}

static void stalls(void **state)
{
	struct ptcp_progress verifying = { .bytes = 5, .files = 1, .activity = PTCP_VERIFYING };
	const double max_s = 4 * ENGINE_BUSY_TIMEOUTS;
	struct end c, s;

	(void)state;
	begin(&c, JOB_FRAMES_JOB_REQUESTED);
	begin(&s, JOB_FRAMES_AWAIT_REQUEST);
	put_started(&s.j.conn.out);
	heartbeat(&s, &c, 5, 1);
	heartbeat(&s, &c, 5, max_s - 1); /* the same: no progress */
	assert_due(&c, 1 + max_s, FRAME_STALLED);
	heartbeat(&s, &c, 6, max_s);
	heartbeat(&s, &c, 6, 2 * max_s - 1);
	assert_due(&c, 2 * max_s, FRAME_STALLED);
	OUTBOX_PUT(&s.j.conn.out, progress, PROGRESS, &verifying);
	assert_int_equal(deliver(&s, &c, 1000, 2 * max_s - 1, NULL), 0);
	assert_due(&c, 2 * max_s + 3, FRAME_SILENT); /* verification may take longer */
	fini(&c, &s);

	begin(&c, JOB_FRAMES_TIMING_REQUESTED);
	begin(&s, JOB_FRAMES_AWAIT_REQUEST);
	put_started(&s.j.conn.out);
	heartbeat(&s, &c, 5, 0);
	heartbeat(&s, &c, 6, 47); /* of a measurement samples alone are progress */
	assert_due(&c, 48, FRAME_STALLED);
	put_sample(&s.j.conn.out, 1000, 1);
	assert_int_equal(deliver(&s, &c, 1000, 47, NULL), 0);
	heartbeat(&s, &c, 6, 94);
	assert_due(&c, 95, FRAME_STALLED);
	fini(&c, &s);

	begin(&c, JOB_FRAMES_LINKS_REQUESTED); /* the whole answer within one timeout */
	begin(&s, JOB_FRAMES_AWAIT_REQUEST);
	assert_int_equal(job_frames_input(&c.j, (const uint8_t *)"A", 1, at(3), NULL), 0);
	assert_due(&c, 4, FRAME_STALLED);
	fini(&c, &s);
}

static void limits_of_a_server(void **state)
{
	struct end c, s;

	(void)state;
	begin(&c, JOB_FRAMES_JOB_REQUESTED);
	begin(&s, JOB_FRAMES_AWAIT_REQUEST);
	put_job_and_grant(&c.j.conn.out);
	assert_int_equal(deliver(&c, &s, 1, 9, NULL), 0); /* slow clients get no more time */
	assert_due(&s, 10, FRAME_STALLED);
	fini(&c, &s);

	begin(&c, JOB_FRAMES_JOB_REQUESTED);
	begin(&s, JOB_FRAMES_AWAIT_REQUEST);
	put_request(&c.j.conn.out);
	assert_int_equal(deliver(&c, &s, 1000, 9, NULL), 0);
	assert_int_equal(frame_conn_deadline(&s.j.conn).ns, MONO_NEVER.ns);
	while (buf_len(&s.j.conn.out.b) <= OUTBOX_MAX_BYTES) {
		assert_int_equal(frame_conn_fault(&s.j.conn, at(10)), FRAME_ALIVE);
		put_event(&s.j.conn.out);
	}
	assert_int_equal(frame_conn_fault(&s.j.conn, at(10)), FRAME_UNREAD);
	assert_true(frame_conn_deadline(&s.j.conn).ns < at(0).ns);
	buf_consume(&s.j.conn.out.b, buf_len(&s.j.conn.out.b));
	job_frames_end(&s.j, NULL, &(struct wire_end){ 0, 0 }, at(20));
	assert_due(&s, 22, FRAME_STALLED);
	fini(&c, &s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(job_in_any_pieces),
		cmocka_unit_test(measurement),
		cmocka_unit_test(implausible_samples),
		cmocka_unit_test(queries),
		cmocka_unit_test(cleaning),
		cmocka_unit_test(managing),
		cmocka_unit_test(work_after_work),
		cmocka_unit_test(malformed_pieces), cmocka_unit_test(written_pieces),
		cmocka_unit_test(malformed_writes),
		cmocka_unit_test(pausing),
		cmocka_unit_test(wrong_order),
		cmocka_unit_test(unknown_frames),
		cmocka_unit_test(trailing_bytes),
		cmocka_unit_test(refused_by_the_owner),
		cmocka_unit_test(counts_that_differ),
		cmocka_unit_test(totals_without_end),
		cmocka_unit_test(silence),
		cmocka_unit_test(stalls),
		cmocka_unit_test(limits_of_a_server),
	};

	return cmocka_run_group_tests_name("engine/job_frames", tests, NULL, NULL);
}
