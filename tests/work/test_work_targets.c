/* Files that an engine has a mover write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "work/work_impl.h"

#define ID (UINT64_C(1) << 16 | 3) /* of a file in slot 3 */

static char top[] = "/tmp/ptcp-work-targets.XXXXXX";

static struct {
	struct mover_process process;
	struct work w;
	struct outbox out;
	unsigned jobs;             /* on I/O threads */
	bool ended;
	struct ptcp_err e;
} fx;

struct outbox *mover_link_out(struct mover_link *k) { (void)k; return &fx.out; }
void work_end(struct work *w, const struct ptcp_err *why) { (void)w; (void)why; fx.ended = true; }
void work_step_ended(struct work *w) { (void)w; }
void work_streams_known(struct work *w, uint64_t id) { (void)w; (void)id; }
bool work_stream_is_there(const struct work *w, uint32_t handle) { (void)w; (void)handle; return false; }

static int set_up(void **state)
{
	(void)state;
	return mkdtemp(top) != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", top);
	return system(command);
}

static void begin(bool receives)
{
	struct invitation v = { .root = { top }, .n_roots = 1 };

	memset(&fx, 0, sizeof fx);
	fx.w.process = &fx.process;
	fx.w.receives = receives;
	assert_int_equal(loop_new(&fx.w.loop, NULL), 0);
	assert_int_equal(io_new(&fx.process.context.io, 1, NULL), 0);
	fx.process.context.control = fx.w.loop;
	work_targets_init(&fx.w.targets);
	atomic_store(&fx.w.targets.lease.until_ns, UINT64_MAX);
	assert_int_equal(work_files_open(&fx.w.files, &v, 0, NULL), 0);
}

static void end(void)
{
	work_files_fini(&fx.w.files);
	work_targets_fini(&fx.w.targets);
	buf_fini(&fx.out.b);
	io_free(fx.process.context.io);
	loop_free(fx.w.loop);
}

/* TARGET of a part file in `top`, which exists. */
static int target(uint64_t id)
{
	static const char name[] = ".ptcp-0123456789abcdef.part";
	struct wire_target f = { .id = id, .size_bytes = 6, .path = { (const uint8_t *)name, sizeof name - 1 } };
	char path[64];
	struct stat st;
	FILE *made;
	int r;

	snprintf(path, sizeof path, "%s/%s", top, name);
	assert_non_null(made = fopen(path, "a"));
	fclose(made);
	assert_int_equal(stat(path, &st), 0);
	f.ino = st.st_ino;
	r = work_on_target(&fx.w, &f, &fx.e);
	fx.jobs += fx.w.n_io;
	return r;
}

static struct sink *sink_of(uint64_t id)
{
	struct sink *s = open_files_get(&fx.w.targets.files, id, NULL);

	sink_unref(s); /* the table has one */
	return s;
}

/* No thread opens a file before its first block. */
static void opened(void **state)
{
	struct sink *s;

	(void)state;
	begin(true);
	assert_int_equal(target(ID), 0);
	assert_false(fx.ended);
	assert_non_null(s = sink_of(ID));
	assert_false(sink_is_open(s));
	assert_int_equal(target(ID), 0); /* the answer to another stream */
	assert_ptr_equal(sink_of(ID), s);
	assert_int_equal(sink_write(s, "number", 6, 0, 0, NULL), 0);
	assert_true(sink_is_open(s));
	assert_int_equal(fx.jobs, 0);
	end();
}

/* A result of the stream with this handle; `why` NULL: written. */
static void result(uint64_t id, const struct ptcp_err *why)
{
	struct stream_results r = { .n = 1 };

	r.of[0].id = id;
	r.of[0].what = why != NULL ? RCV_BLOCK_FAILED : RCV_BLOCK_WRITTEN;
	if (why != NULL) {
		assert_non_null(r.of[0].why = malloc(sizeof *why));
		*r.of[0].why = *why;
	}
	work_targets_received(&fx.w, 1, &r);
	while (fx.w.n_io > 0)
		loop_run_once(fx.w.loop, true);
}

/* The only block is the file, which is closed before its report: CLOSE waits for no thread. A copy of the block opens
 * it again: the report may have been lost with its stream. */
static void whole(void **state)
{
	size_t before;
	unsigned i;

	(void)state;
	begin(true);
	assert_int_equal(target(ID), 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(sink_write(sink_of(ID), "number", 6, 0, 0, NULL), 0);
		assert_true(sink_is_open(sink_of(ID)));
		result(ID, NULL);
		assert_false(sink_is_open(sink_of(ID)));
	}
	before = buf_len(&fx.out.b);
	assert_int_equal(work_on_close(&fx.w, &(struct wire_close){ ID }, &fx.e), 0);
	assert_int_equal(fx.w.n_io, 0);
	assert_true(buf_len(&fx.out.b) > before); /* CLOSED */
	assert_true(work_target_missing(&fx.w, ID));
	end();
}

/* A mover that cannot open the part leaves; one that cannot write reports the block. */
static void unwritten(void **state)
{
	const struct ptcp_err why = { .code = PTCP_EIO, .sys = EACCES, .msg = "Permission denied" };

	(void)state;
	begin(true);
	assert_int_equal(target(ID), 0);
	assert_int_equal(sink_write(sink_of(ID), "number", 6, 0, 0, NULL), 0);
	result(ID, &why);
	assert_false(fx.ended);
	end();
	begin(true);
	assert_int_equal(target(ID), 0);
	result(ID, &why);
	assert_true(fx.ended);
	end();
}

static int close_of(uint64_t id)
{
	int r = work_on_close(&fx.w, &(struct wire_close){ id }, &fx.e);

	while (fx.w.n_io > 0)
		loop_run_once(fx.w.loop, true);
	return r;
}

/* A stream that waits asks once; a file that is closed is unknown again. */
static void missing(void **state)
{
	size_t before;

	(void)state;
	begin(true);
	assert_true(work_target_missing(&fx.w, ID));
	assert_int_equal(target(ID), 0);
	assert_false(work_target_missing(&fx.w, ID));
	before = buf_len(&fx.out.b);
	assert_int_equal(close_of(ID), 0);
	assert_true(buf_len(&fx.out.b) > before); /* CLOSED */
	assert_true(work_target_missing(&fx.w, ID));
	end();
}

/* A mover that sends opens nothing for writing. */
static void by_a_sender(void **state)
{
	(void)state;
	begin(false);
	assert_int_equal(target(ID), PTCP_EPROTO);
	assert_null(sink_of(ID));
	end();
}

static void in_the_place_of_another(void **state)
{
	(void)state;
	begin(true);
	assert_int_equal(target(ID), 0);
	assert_int_equal(target(ID + (1u << 16)), PTCP_EPROTO);
	assert_non_null(sink_of(ID));
	end();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(opened), cmocka_unit_test(whole), cmocka_unit_test(unwritten),
		cmocka_unit_test(missing), cmocka_unit_test(by_a_sender), cmocka_unit_test(in_the_place_of_another),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
