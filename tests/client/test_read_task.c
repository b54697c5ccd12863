/* Parts of a file of another host: requests, the pieces as the user's callback gets them, and servers that answer with
 * something else. */
#include "client/remote_job_impl.h"
#include "fixture.h"
#include "store/hash.h"

static struct ptcp_task *t;
static struct ptcp_transfer_opts connection;
static struct ptcp_read_opts opts;
static char shown[4096]; /* "RANGE@OFFSET DATA", and "PATH SIZE" of the file, one per line */

static void on_piece(void *arg, const struct ptcp_piece *p)
{
	size_t n = strlen(shown);

	(void)arg;
	snprintf(shown + n, sizeof shown - n, "%zu@%llu %.*s\n", p->range, (unsigned long long)p->offset, (int)p->bytes,
	    (const char *)p->data);
}

static void on_opened(void *arg, const struct ptcp_entry *f)
{
	size_t n = strlen(shown);

	(void)arg;
	snprintf(shown + n, sizeof shown - n, "%s %llu\n", f->path, (unsigned long long)f->bytes);
}

static int setup(void **state)
{
	(void)state;
	ptcp_transfer_opts_init(&connection);
	ptcp_read_opts_init(&opts);
	opts.opened = on_opened;
	opts.piece = on_piece;
	shown[0] = '\0';
	t = NULL;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ptcp_task_free(t);
	return 0;
}

static struct span span_of(const char *text) { return (struct span){ (const uint8_t *)text, strlen(text) }; }

static void reads(const struct ptcp_range *ranges, size_t n)
{
	struct ptcp_err e;

	ptcp_task_free(t);
	opts.ranges = ranges;
	opts.n_ranges = n;
	if (ptcp_read_new(&t, &connection, CF_NO_HOST "f", &opts, &e) < 0)
		fail_msg("%s", e.msg);
	shown[0] = '\0';
	t->remote_job->work_ops->put(t);
}

static void requested(struct wire_read *f)
{
	struct buf *b = &t->remote_job->frames.conn.out.b;

	assert_int_equal(buf_head(b)[0], WIRE_READ);
	assert_int_equal(wire_read_decode(f, (struct span){ buf_head(b) + WIRE_HEADER_BYTES,
	    buf_len(b) - WIRE_HEADER_BYTES }, NULL), 0);
}

static int opened(uint64_t bytes, int64_t mtime_s)
{
	const struct wire_listed f = { .type = WIRE_LISTED_FILE, .bytes = bytes, .mtime_s = mtime_s,
		.path = span_of("/f") };
	struct ptcp_err e;

	return t->remote_job->work_ops->opened(t, &f, &e);
}

static int piece_of(uint64_t id, uint64_t offset, const char *data, uint32_t status, uint64_t flip)
{
	const struct wire_block b = { .id = id, .offset = offset, .length_bytes = (uint32_t)strlen(data) };
	uint8_t head[WIRE_BLOCK_HEAD_BYTES];
	struct job_piece p = { .block = b, .fields = head + WIRE_HEADER_BYTES, .data = span_of(data),
		.end = { status, 0 } };
	struct ptcp_err e;

	wire_block_encode(head, &b);
	p.end.check = hash_check(p.fields, hash_content(data, strlen(data))) ^ flip;
	return t->remote_job->work_ops->piece(t, &p, &e);
}

static int piece(unsigned range, uint64_t offset, const char *data)
{
	return piece_of(wire_range_id(range), offset, data, WIRE_BLOCK_GOOD, 0);
}

static int ended(uint64_t failed)
{
	const struct wire_managed f = { .entries = failed == 0, .failed = failed, .final = 1 };
	struct ptcp_err e;

	return t->remote_job->work_ops->ended(t, &f, &e);
}

static void refuses(void **state)
{
	struct ptcp_err e;

	(void)state;
	assert_int_equal(ptcp_read_new(&t, &connection, "f", &opts, &e), PTCP_EUSAGE);
	cf_says(&e, "not on another host");
	opts.n_ranges = 1;
	assert_int_equal(ptcp_read_new(&t, &connection, CF_NO_HOST "f", &opts, &e), PTCP_EUSAGE);
	opts.n_ranges = 0;
	opts.piece = NULL;
	assert_int_equal(ptcp_read_new(&t, &connection, CF_NO_HOST "f", &opts, &e), PTCP_EUSAGE);
	cf_says(&e, "a function for the pieces");
	assert_int_equal(ptcp_read_new(&t, &connection, CF_NO_HOST "f", NULL, &e), PTCP_EUSAGE);
	opts.size = 0;
	assert_int_equal(ptcp_read_new(&t, &connection, CF_NO_HOST "f", &opts, &e), PTCP_EUSAGE);
	cf_says(&e, "ptcp_read_opts_init");
	assert_null(t);
}

static void whole_file(void **state)
{
	struct wire_range r;
	struct wire_read f;

	(void)state;
	reads(NULL, 0);
	requested(&f);
	assert_int_equal(f.n_ranges, 1);
	r = wire_range_next(&f.ranges);
	assert_true(r.start == 0 && r.end == WIRE_RANGE_REST);
	assert_int_equal(opened(7, 1), 0);
	assert_int_equal(piece(0, 0, "abcd"), 0);
	assert_int_equal(piece(0, 4, "efg"), 0);
	assert_int_equal(ended(0), 0);
	assert_true(t->over && t->result == 0);
	assert_string_equal(shown, "/f 7\n0@0 abcd\n0@4 efg\n");
	assert_int_equal(t->remote_job->managed.bytes, 7);
}

static void empty_ranges(void **state)
{
	static const struct ptcp_range r[] = { { 3, 3 }, { -2, PTCP_RANGE_REST }, { 9, 12 }, { 1, 2 }, { -1, -3 } };

	(void)state;
	reads(r, 5);
	assert_int_equal(opened(5, 1), 0);
	assert_int_equal(piece(1, 3, "de"), 0);
	assert_int_equal(piece(3, 1, "b"), 0);
	assert_int_equal(ended(0), 0);
	assert_int_equal(t->result, 0);
	assert_string_equal(shown, "/f 5\n1@3 de\n3@1 b\n");
	reads(r, 5);
	assert_int_equal(opened(0, 1), 0);
	assert_int_equal(ended(0), 0);
	assert_int_equal(t->result, 0);
}

/* What is not the next piece of what was requested ends the task. */
static void lies(void **state)
{
	static const struct ptcp_range r[] = { { 0, 3 }, { 5, 8 } };
	static const struct { unsigned range; uint64_t offset; const char *data; } wrong[] = {
		{ 1, 5, "fgh" }, { 0, 1, "bc" }, { 0, 0, "abcd" }, { 2, 0, "abc" },
	};
	struct wire_listed dir = { .type = WIRE_LISTED_DIR, .path = span_of("/f") };
	struct ptcp_err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		reads(r, 2);
		assert_int_equal(opened(9, 1), 0);
		assert_int_equal(piece(wrong[i].range, wrong[i].offset, wrong[i].data), PTCP_EPROTO);
		assert_string_equal(shown, "/f 9\n");
	}
	reads(r, 2);
	assert_int_equal(piece(0, 0, "abc"), PTCP_EPROTO); /* of no file */
	assert_int_equal(ended(0), PTCP_EPROTO);
	assert_int_equal(ended(1), PTCP_EPROTO); /* a failure that nobody described */
	assert_int_equal(t->remote_job->work_ops->opened(t, &dir, &e), PTCP_EPROTO);
	assert_int_equal(opened(WIRE_FILE_MAX + 1, 1), PTCP_EPROTO);
	assert_int_equal(opened(9, 1), 0);
	assert_int_equal(opened(9, 1), PTCP_EPROTO); /* twice */
	assert_int_equal(piece_of(wire_range_id(0), 0, "abc", WIRE_BLOCK_VOID, 0), PTCP_EPROTO);
	assert_int_equal(piece_of(wire_range_id(0), 0, "abc", WIRE_BLOCK_GOOD, 1), PTCP_EVERIFY);
	assert_string_equal(shown, "/f 9\n");
	assert_int_equal(piece(0, 0, "abc"), 0);
	assert_int_equal(ended(0), PTCP_EPROTO); /* the second range is missing */
	assert_int_equal(piece(1, 5, "fgh"), 0);
	assert_int_equal(piece(1, 8, "i"), PTCP_EPROTO);
	assert_int_equal(ended(0), 0);
}

static void failures(void **state)
{
	const struct wire_listed f = { .type = WIRE_LISTED_FILE, .path = span_of("f\033"),
		.why = { -PTCP_EIO, 1, span_of("\033 no") } };
	struct ptcp_err e;

	(void)state;
	reads(NULL, 0);
	assert_int_equal(t->remote_job->work_ops->opened(t, &f, &e), 0);
	assert_int_equal(t->remote_job->work_ops->opened(t, &f, &e), PTCP_EPROTO);
	assert_int_equal(ended(1), 0);
	assert_int_equal(t->result, PTCP_EIO);
	cf_says(&t->why, " no");
	assert_null(strchr(t->why.msg, '\033'));
	assert_string_equal(shown, "");
}

/* More ranges than a request has: the next request follows, about the same file. */
static void many_ranges(void **state)
{
	enum { N = WIRE_RANGES_MAX + 5 };
	static struct ptcp_range r[N];
	struct wire_read f;
	unsigned i;

	(void)state;
	for (i = 0; i < N; i++)
		r[i] = (struct ptcp_range){ i % 9, i % 9 + 1 };
	for (i = 0; i < 3; i++) {
		reads(r, N);
		requested(&f);
		assert_int_equal(f.n_ranges, WIRE_RANGES_MAX);
		assert_int_equal(opened(9, 1), 0);
		for (unsigned k = 0; k < WIRE_RANGES_MAX; k++) {
			const char data[] = { (char)('a' + k % 9), '\0' };

			shown[0] = '\0';
			assert_int_equal(piece(k, k % 9, data), 0);
		}
		buf_consume(&t->remote_job->frames.conn.out.b, buf_len(&t->remote_job->frames.conn.out.b));
		t->remote_job->frames.conn.out.failed = true; /* the test has no connection for the request */
		assert_int_equal(ended(0), PTCP_ENOMEM);
		t->remote_job->frames.conn.out.failed = false;
		t->remote_job->work_ops->put(t);
		requested(&f);
		assert_int_equal(f.n_ranges, 5);
		assert_int_equal(piece(0, WIRE_RANGES_MAX % 9, "x"), PTCP_EPROTO); /* of a file not described anew */
		assert_int_equal(opened(i < 2 ? 9 + i : 9, i < 2 ? 1 + i : 2), i < 2 ? 0 : PTCP_ECHANGED);
		shown[0] = '\0';
		if (i == 2)
			break;
		for (unsigned k = 0; k < 5; k++)
			assert_int_equal(piece(k, (WIRE_RANGES_MAX + k) % 9, "x"), 0);
		assert_int_equal(ended(0), 0);
		assert_true(t->over && t->result == 0);
	}
}

/* Ends that count from the end of the file, or are it, mean the file of the first answer, also in later requests. */
static void ranges_of_grown_file(void **state)
{
	enum { N = WIRE_RANGES_MAX + 4 };
	static const struct ptcp_range last[] = { { -2, PTCP_RANGE_REST }, { 7, PTCP_RANGE_REST }, { 0, -8 },
		{ 9, 12 } };
	static const struct wire_range asked[] = { { 7, 9 }, { 7, 9 }, { 0, 1 }, { 9, 9 } };
	static struct ptcp_range r[N];
	struct wire_read f;
	unsigned i;

	(void)state;
	memcpy(r + WIRE_RANGES_MAX, last, sizeof last); /* those before are empty */
	reads(r, N);
	assert_int_equal(opened(9, 1), 0);
	buf_consume(&t->remote_job->frames.conn.out.b, buf_len(&t->remote_job->frames.conn.out.b));
	t->remote_job->frames.conn.out.failed = true;
	assert_int_equal(ended(0), PTCP_ENOMEM);
	t->remote_job->frames.conn.out.failed = false;
	t->remote_job->work_ops->put(t);
	requested(&f);
	for (i = 0; i < 4; i++) {
		const struct wire_range w = wire_range_next(&f.ranges);

		assert_true(w.start == asked[i].start && w.end == asked[i].end);
	}
	assert_int_equal(opened(20, 2), 0);
	assert_int_equal(piece(0, 7, "hi"), 0);
	assert_int_equal(piece(1, 7, "hi"), 0);
	assert_int_equal(piece(2, 0, "a"), 0);
	assert_int_equal(ended(0), 0);
	assert_true(t->over && t->result == 0);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		test(refuses), test(whole_file), test(empty_ranges), test(lies), test(failures), test(many_ranges),
		test(ranges_of_grown_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
