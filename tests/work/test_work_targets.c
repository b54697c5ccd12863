/* Files that an engine has a mover write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

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
	unsigned opens;            /* jobs on I/O threads */
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
	fx.opens += fx.w.n_io;
	while (fx.w.n_io > 0)
		loop_run_once(fx.w.loop, true);
	return r;
}

static void opened(void **state)
{
	(void)state;
	begin(true);
	assert_int_equal(target(ID), 0);
	assert_int_equal(fx.opens, 1);
	assert_false(fx.ended);
	assert_int_equal(target(ID), 0); /* the answer to another stream */
	assert_int_equal(fx.opens, 1);
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
	bool known;
	size_t before;

	(void)state;
	begin(true);
	assert_true(work_target_missing(&fx.w, ID, &known));
	assert_false(known);
	assert_int_equal(target(ID), 0);
	assert_false(work_target_missing(&fx.w, ID, &known));
	assert_true(known);
	before = buf_len(&fx.out.b);
	assert_int_equal(close_of(ID), 0);
	assert_true(buf_len(&fx.out.b) > before); /* CLOSED */
	assert_true(work_target_missing(&fx.w, ID, &known));
	assert_false(known);
	end();
}

/* A mover that sends opens nothing for writing. */
static void by_a_sender(void **state)
{
	(void)state;
	begin(false);
	assert_int_equal(target(ID), PTCP_EPROTO);
	assert_int_equal(fx.opens, 0);
	end();
}

static void in_the_place_of_another(void **state)
{
	(void)state;
	begin(true);
	assert_int_equal(target(ID), 0);
	assert_int_equal(target(ID + (1u << 16)), PTCP_EPROTO);
	assert_int_equal(fx.opens, 1);
	end();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(opened), cmocka_unit_test(missing), cmocka_unit_test(by_a_sender),
		cmocka_unit_test(in_the_place_of_another),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
