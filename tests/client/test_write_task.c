/* Small files for another host: the request with its data, and servers that answer with something else. */
#include <errno.h>

#include "client/remote_job_impl.h"
#include "fixture.h"
#include "store/hash.h"

static struct ptcp_task *t;
static struct ptcp_transfer_opts rules;
static struct ptcp_write_opts opts;
static char shown[256]; /* "PATH SIZE" of the written file */
static uint8_t data[PTCP_WRITE_MAX];

static void on_written(void *arg, const struct ptcp_entry *f)
{
	(void)arg;
	snprintf(shown, sizeof shown, "%s %llu", f->path, (unsigned long long)f->bytes);
}

static int setup(void **state)
{
	unsigned i;

	(void)state;
	ptcp_transfer_opts_init(&rules);
	ptcp_write_opts_init(&opts);
	opts.data = data;
	opts.written = on_written;
	for (i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i * 7 + i / 1000);
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

static void made(size_t bytes)
{
	struct ptcp_err e;

	ptcp_task_free(t);
	opts.bytes = bytes;
	if (ptcp_write_new(&t, &rules, CF_NO_HOST "f", &opts, &e) < 0)
		fail_msg("%s", e.msg);
	t->remote_job->work_ops->put(t);
}

static void refused(const char *why)
{
	struct ptcp_err e;

	assert_int_equal(ptcp_write_new(&t, &rules, CF_NO_HOST "f", &opts, &e), PTCP_EUSAGE);
	cf_says(&e, why);
	assert_null(t);
}

static void refuses(void **state)
{
	struct ptcp_err e;

	(void)state;
	assert_int_equal(ptcp_write_new(&t, &rules, "f", &opts, &e), PTCP_EUSAGE);
	cf_says(&e, "not on another host");
	assert_int_equal(ptcp_write_new(&t, &rules, "-", &opts, &e), PTCP_EUSAGE);
	opts.bytes = PTCP_WRITE_MAX + 1;
	refused("at most 1048576 bytes");
	opts.bytes = 1;
	opts.data = NULL;
	refused("needs its data");
	opts.data = data;
	opts.mode = 01000;
	refused("mode");
	opts.mode = -2;
	refused("mode");
	opts.mode = 0777;
	opts.set_mtime = true;
	opts.mtime_ns = 1000000000;
	refused("nanoseconds");
	opts.mtime_ns = 0;
	rules.rate = "1Mbit/s";
	refused("rate: an option of transfers only");
	rules.rate = NULL;
	rules.older.if_match = "5";
	refused("SIZE@SECONDS");
	rules.older.if_match = "5@6.000000007";
	rules.older.exclusive = true;
	refused("no version");
	rules.older.exclusive = false;
	opts.size = 0;
	refused("ptcp_write_opts_init");
}

/* The frames of the request: WRITE, and the file in pieces that a server accepts. */
static void requests(void **state)
{
	static const uint32_t sizes[] = { 0, 1, WIRE_PIECE_BYTES, WIRE_PIECE_BYTES + 1, PTCP_WRITE_MAX };
	struct wire_block_end end;
	const struct buf *out;
	struct wire_block b;
	struct wire_header h;
	struct wire_write f;
	struct span in;
	uint32_t at;
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		made(sizes[i]);
		out = &t->remote_job->frames.conn.out.b;
		in = (struct span){ buf_head(out), buf_len(out) };
		assert_int_equal(wire_header_decode(&h, in.p, NULL), 0);
		assert_int_equal(h.type, WIRE_WRITE);
		assert_int_equal(wire_write_decode(&f, (struct span){ in.p + WIRE_HEADER_BYTES, h.length }, NULL), 0);
		assert_true(f.size_bytes == sizes[i] && f.mtime_ns == WIRE_WRITE_NOW && f.flags == WIRE_WRITE_MKPATH &&
		    f.path.n > 0 && f.path.p[f.path.n - 1] == 'f');
		in.p += WIRE_HEADER_BYTES + h.length;
		in.n -= WIRE_HEADER_BYTES + h.length;
		for (at = 0; at < sizes[i]; at += b.length_bytes) {
			assert_int_equal(wire_block_decode(&b, in.p, NULL), 0);
			assert_true(b.id == wire_range_id(0) && b.offset == at && b.length_bytes <= WIRE_PIECE_BYTES);
			assert_true(b.length_bytes == WIRE_PIECE_BYTES || at + b.length_bytes == sizes[i]);
			assert_memory_equal(in.p + WIRE_BLOCK_HEAD_BYTES, data + at, b.length_bytes);
			wire_block_end_decode(&end, in.p + WIRE_BLOCK_HEAD_BYTES + b.length_bytes, NULL);
			assert_int_equal(end.check, hash_check(in.p + WIRE_HEADER_BYTES, hash_content(data + at,
			    b.length_bytes)));
			in.p += WIRE_BLOCK_HEAD_BYTES + b.length_bytes + WIRE_BLOCK_END_BYTES;
			in.n -= WIRE_BLOCK_HEAD_BYTES + b.length_bytes + WIRE_BLOCK_END_BYTES;
		}
		assert_int_equal(in.n, 0);
	}
}

static void rules_of_requests(void **state)
{
	struct wire_write f;
	struct buf *b;

	(void)state;
	rules.older.if_match = "5@-6.000000007";
	rules.no_mkpath = true;
	rules.fsync = PTCP_FSYNC_FILE;
	opts.mode = 0640;
	opts.set_mtime = true;
	opts.mtime_s = -6;
	opts.mtime_ns = 7;
	made(0);
	b = &t->remote_job->frames.conn.out.b;
	assert_int_equal(wire_write_decode(&f, (struct span){ buf_head(b) + WIRE_HEADER_BYTES,
	    buf_len(b) - WIRE_HEADER_BYTES }, NULL), 0);
	assert_true(f.flags == WIRE_WRITE_MODE && f.mode == 0640 && f.fsync == WIRE_FSYNC_FILE && f.mtime_s == -6 &&
	    f.mtime_ns == 7);
	assert_true(f.if_match.n == 14 && memcmp(f.if_match.p, "5@-6.000000007", 14) == 0);
}

/* ---- Answers ---- */

static int listed(uint16_t code)
{
	const struct wire_listed f = { .type = code == 0 ? WIRE_LISTED_FILE : WIRE_LISTED_UNKNOWN, .bytes = 3,
		.path = { (const uint8_t *)"f", 1 },
		.why = { code, code > 0 ? 4 : 0, { (const uint8_t *)"File exists", code > 0 ? 11 : 0 } } };
	struct ptcp_err e;

	return t->remote_job->work_ops->opened(t, &f, &e);
}

static int ended(uint64_t failed, uint8_t final)
{
	const struct wire_managed f = { .entries = failed == 0, .failed = failed, .final = final };
	struct ptcp_err e;

	return t->remote_job->work_ops->ended(t, &f, &e);
}

static void answers(void **state)
{
	struct ptcp_manage_result m;

	(void)state;
	made(3);
	assert_int_equal(ended(0, 0), 0); /* the server waits */
	assert_false(t->over);
	assert_int_equal(listed(0), 0);
	assert_int_equal(ended(0, 1), 0);
	assert_true(t->over && t->result == 0);
	assert_string_equal(shown, "f 3");
	ptcp_manage_result_init(&m);
	ptcp_manage_totals(t, &m);
	assert_true(m.entries == 1 && m.bytes == 3);
	made(3);
	assert_int_equal(listed(-PTCP_EREFUSED), 0);
	assert_int_equal(ended(1, 1), 0);
	assert_true(t->over && t->result == PTCP_EREFUSED && t->why.sys == EEXIST);
	cf_says(&t->why, "f: File exists");
}

/* Two answers, no answer, and counts that contradict the answer. */
static void lies(void **state)
{
	(void)state;
	made(3);
	assert_int_equal(listed(0), 0);
	assert_int_equal(listed(0), PTCP_EPROTO);
	assert_int_equal(ended(1, 1), PTCP_EPROTO);
	made(3);
	assert_int_equal(listed(-PTCP_EIO), 0);
	assert_int_equal(listed(0), PTCP_EPROTO);
	assert_int_equal(ended(0, 1), PTCP_EPROTO);
	made(3);
	assert_int_equal(ended(0, 1), PTCP_EPROTO);
	assert_int_equal(ended(1, 1), PTCP_EPROTO);
	assert_false(t->over);
}

int main(void)
{
#define write_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	static const struct CMUnitTest tests[] = {
		write_test(refuses), write_test(requests), write_test(rules_of_requests),
		write_test(answers), write_test(lies),
	};

	return cmocka_run_group_tests_name("client/write_task", tests, NULL, NULL);
}
