/* Inputs and outputs of unknown length, without a network: pipe_source, pipe_sink and pipe_io. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "core/err.h"
#include "fs/pipe_io.h"
#include "store/hash.h"
#include "store/pipe_sink.h"
#include "store/pipe_source.h"

#define BLOCK 1000u
#define WINDOW 4u

static atomic_uint changes;

static void on_change(void *arg)
{
	(void)arg;
	atomic_fetch_add(&changes, 1);
}

static void pause_ms(long ms)
{
	const struct timespec t = { .tv_nsec = ms * 1000000 };

	nanosleep(&t, NULL);
}

static uint8_t byte_at(uint64_t i) { return (uint8_t)(i * 7 + i / 251); }

static void fill(uint8_t *p, uint64_t from, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		p[i] = byte_at(from + i);
}

static void assert_bytes(const uint8_t *p, uint64_t from, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		assert_int_equal(p[i], byte_at(from + i));
}

/* ---- Inputs ---- */

static struct pipe_source *source_of(int fd, int (*ended)(void *arg, struct ptcp_err *e), uint64_t max_bytes)
{
	struct pipe_source_opts o = { .fd = fd, .block_bytes = BLOCK, .max_blocks = WINDOW, .max_bytes = max_bytes,
		.ended = ended };
	struct pipe_source *p;

	assert_int_equal(pipe_source_new(&p, &o, NULL), 0);
	assert_int_equal(pipe_source_start(p, on_change, NULL, NULL), 0);
	return p;
}

static struct pipe_source_state ended_state(struct pipe_source *p, struct ptcp_err *why)
{
	struct pipe_source_state s;

	while (!(s = pipe_source_state(p, why)).ended)
		pause_ms(1);
	return s;
}

static void write_bytes(int fd, uint64_t from, size_t n)
{
	uint8_t *p = malloc(n + 1);

	fill(p, from, n);
	assert_int_equal(write(fd, p, n), n);
	free(p);
}

static void blocks_and_a_tail(void **state)
{
	struct pipe_source_state s;
	struct pipe_source *p;
	uint8_t buf[BLOCK];
	struct ptcp_err e;
	int fd[2];

	(void)state;
	assert_int_equal(pipe(fd), 0);
	atomic_store(&changes, 0);
	p = source_of(fd[0], NULL, UINT64_MAX);
	assert_true(pipe_source_state(p, NULL).waits);
	write_bytes(fd[1], 0, 300); /* a slow writer */
	pause_ms(5);
	assert_int_equal(pipe_source_state(p, NULL).blocks, 0);
	write_bytes(fd[1], 300, 2 * BLOCK);
	close(fd[1]);
	s = ended_state(p, NULL);
	assert_true(!s.failed && !s.waits);
	assert_int_equal(s.blocks, 2);
	assert_int_equal(s.size_bytes, 2 * BLOCK + 300);
	assert_true(atomic_load(&changes) >= 3);
	assert_int_equal(pipe_source_read(p, buf, BLOCK, BLOCK, &e), 0);
	assert_bytes(buf, BLOCK, BLOCK);
	assert_int_equal(pipe_source_read(p, buf, 300, 2 * BLOCK, &e), 0);
	assert_bytes(buf, 2 * BLOCK, 300);
	assert_int_equal(pipe_source_check(p, &e), 0);
	assert_true(pipe_source_is_whole(p));
	pipe_source_release(p, 1);
	assert_false(pipe_source_is_whole(p));
	assert_int_equal(pipe_source_read(p, buf, BLOCK, BLOCK, &e), PTCP_ECHANGED);
	pipe_source_free(p);
	close(fd[0]);
}

static void an_input_waits_for_room(void **state)
{
	struct pipe_source *p;
	uint8_t buf[BLOCK];
	int fd[2], i;

	(void)state;
	assert_int_equal(pipe(fd), 0);
	p = source_of(fd[0], NULL, UINT64_MAX);
	write_bytes(fd[1], 0, 10 * BLOCK);
	while (pipe_source_state(p, NULL).blocks < WINDOW)
		pause_ms(1);
	pause_ms(10);
	assert_int_equal(pipe_source_state(p, NULL).blocks, WINDOW);
	pipe_source_release(p, 2); /* in any order: only the first makes room */
	pause_ms(10);
	assert_int_equal(pipe_source_state(p, NULL).blocks, WINDOW);
	pipe_source_release(p, 0);
	while (pipe_source_state(p, NULL).blocks < WINDOW + 1)
		pause_ms(1);
	close(fd[1]);
	for (i = 1; i < 10; i++) {
		while (pipe_source_state(p, NULL).blocks <= (uint32_t)i)
			pause_ms(1);
		if (i != 2) {
			assert_int_equal(pipe_source_read(p, buf, BLOCK, (uint64_t)i * BLOCK, NULL), 0);
			assert_bytes(buf, (uint64_t)i * BLOCK, BLOCK);
			pipe_source_release(p, (uint32_t)i);
		}
	}
	assert_int_equal(ended_state(p, NULL).size_bytes, 10 * BLOCK);
	pipe_source_free(p);
	close(fd[0]);
}

static int not_complete(void *arg, struct ptcp_err *e)
{
	(void)arg;
	return err_set(e, PTCP_EIO, "the command failed");
}

static void inputs_that_fail(void **state)
{
	struct pipe_source *p;
	struct ptcp_err e;
	int fd[2], dir;

	(void)state;
	assert_int_equal(pipe(fd), 0);
	p = source_of(fd[0], not_complete, UINT64_MAX);
	close(fd[1]);
	assert_true(ended_state(p, &e).failed);
	assert_string_equal(e.msg, "the command failed");
	assert_int_equal(pipe_source_check(p, &e), PTCP_EIO);
	pipe_source_free(p);
	close(fd[0]);
	assert_int_equal(pipe(fd), 0);
	p = source_of(fd[0], NULL, 2 * BLOCK);
	write_bytes(fd[1], 0, 2 * BLOCK + 1);
	close(fd[1]);
	assert_true(ended_state(p, &e).failed);
	assert_int_equal(e.code, PTCP_ERANGE);
	pipe_source_free(p);
	close(fd[0]);
	dir = open("/", O_RDONLY | O_DIRECTORY);
	assert_int_equal(pipe_source_new(&p, &(struct pipe_source_opts){ .fd = dir, .block_bytes = BLOCK,
	    .max_blocks = 2 }, &e), PTCP_EUSAGE);
	close(dir);
	assert_int_equal(pipe_source_new(&p, &(struct pipe_source_opts){ .fd = 9999, .block_bytes = BLOCK,
	    .max_blocks = 2 }, &e), PTCP_EUSAGE);
}

/* Neither a silent writer nor a full memory delays the end. */
static void an_input_is_stopped(void **state)
{
	struct pipe_source *p;
	int fd[2];

	(void)state;
	assert_int_equal(pipe(fd), 0);
	p = source_of(fd[0], NULL, UINT64_MAX);
	pause_ms(5);
	pipe_source_free(p);
	p = source_of(fd[0], NULL, UINT64_MAX);
	write_bytes(fd[1], 0, 6 * BLOCK);
	pause_ms(5);
	pipe_source_free(p);
	close(fd[0]);
	close(fd[1]);
}

/* ---- Outputs ---- */

struct reader {
	int fd;
	uint8_t *bytes;
	size_t n, room;
	long pause_ms;
	pthread_t thread;
};

static void *read_all(void *arg)
{
	struct reader *r = arg;
	ssize_t n;

	while ((n = read(r->fd, r->bytes + r->n, r->room - r->n < 700 ? r->room - r->n : 700)) > 0) {
		r->n += (size_t)n;
		if (r->pause_ms > 0)
			pause_ms(r->pause_ms);
	}
	return NULL;
}

static void reader_start(struct reader *r, int fd, size_t room, long pause)
{
	*r = (struct reader){ .fd = fd, .bytes = malloc(room + 1), .room = room, .pause_ms = pause };
	assert_int_equal(pthread_create(&r->thread, NULL, read_all, r), 0);
}

static struct pipe_sink_file file_of(uint64_t size)
{
	return (struct pipe_sink_file){ .size_bytes = size, .block_bytes = BLOCK,
		.n_blocks = (uint32_t)((size + BLOCK - 1) / BLOCK), .has_version = true, .version = { 1 } };
}

static struct pipe_sink *sink_to(int fd, uint64_t size)
{
	const struct pipe_sink_file f = file_of(size);
	struct pipe_sink *p;

	assert_int_equal(pipe_sink_new(&p, fd, WINDOW * BLOCK, NULL), 0);
	pipe_sink_attach(p, on_change, NULL);
	assert_int_equal(pipe_sink_begin(p, &f, NULL), 0);
	return p;
}

static uint32_t length_of(uint64_t size, uint32_t block)
{
	return size - (uint64_t)block * BLOCK < BLOCK ? (uint32_t)(size - (uint64_t)block * BLOCK) : BLOCK;
}

static int put(struct pipe_sink *p, uint64_t size, uint32_t block, struct ptcp_err *e)
{
	uint8_t buf[BLOCK];
	uint32_t n = length_of(size, block);

	fill(buf, (uint64_t)block * BLOCK, n);
	return pipe_sink_put(p, buf, n, (uint64_t)block * BLOCK, true, hash_content(buf, n), e);
}

static void wait_written(struct pipe_sink *p, uint32_t n)
{
	while (pipe_sink_state(p, NULL).written < n)
		pause_ms(1);
}

/* Blocks of each window arrive in reverse, some twice; the reader is slow. */
static void any_order_is_put_in_order(int fd[2], long pause)
{
	const uint64_t size = 41 * BLOCK + 17;
	struct digest sum = { 0, 0 };
	struct pipe_sink *p = sink_to(fd[1], size);
	struct pipe_sink_state s;
	uint32_t i, k, n = 42;
	uint8_t buf[BLOCK];
	struct reader r;

	reader_start(&r, fd[0], size, pause);
	for (i = 0; i < n; i += WINDOW) {
		wait_written(p, i);
		for (k = i + WINDOW < n ? i + WINDOW : n; k-- > i;) {
			assert_true(pipe_sink_admits(p, k));
			assert_int_equal(put(p, size, k, NULL), 0);
			assert_int_equal(put(p, size, k, NULL), 0);
		}
	}
	wait_written(p, n);
	for (i = 0; i < n; i++) {
		fill(buf, (uint64_t)i * BLOCK, length_of(size, i));
		digest_add(&sum, hash_term(i, length_of(size, i), hash_content(buf, length_of(size, i))));
	}
	s = pipe_sink_state(p, NULL);
	assert_true(!s.failed && s.taken == n && digest_equal(s.sum, sum));
	pipe_sink_free(p);
	pthread_join(r.thread, NULL); /* the end of a terminal discards what was not read */
	close(fd[1]);
	assert_int_equal(r.n, size);
	assert_bytes(r.bytes, 0, size);
	free(r.bytes);
	close(fd[0]);
}

/* A terminal that neither echoes nor changes bytes: [0] its master, [1] the terminal */
static void terminal(int fd[2])
{
	struct termios t;
	char name[64];

	assert_true((fd[0] = posix_openpt(O_RDWR | O_NOCTTY)) >= 0);
	assert_int_equal(grantpt(fd[0]) | unlockpt(fd[0]) | ptsname_r(fd[0], name, sizeof name), 0);
	assert_true((fd[1] = open(name, O_RDWR | O_NOCTTY)) >= 0);
	assert_int_equal(tcgetattr(fd[1], &t), 0);
	cfmakeraw(&t);
	assert_int_equal(tcsetattr(fd[1], TCSANOW, &t), 0);
}

static void outputs_of_all_kinds(void **state)
{
	int fd[2];

	(void)state;
	assert_int_equal(pipe(fd), 0);
	any_order_is_put_in_order(fd, 0);
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(fcntl(fd[1], F_SETPIPE_SZ, 4096), 4096);
	any_order_is_put_in_order(fd, 1);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	any_order_is_put_in_order(fd, 0);
	terminal(fd);
	any_order_is_put_in_order(fd, 1);
	terminal(fd);
	any_order_is_put_in_order((int[2]){ fd[1], fd[0] }, 1); /* the master's name in /proc names no terminal */
}

static void a_window_is_a_limit(void **state)
{
	const uint64_t size = 20 * BLOCK;
	struct pipe_sink *p;
	struct ptcp_err e;
	struct reader r;
	int fd[2];

	(void)state;
	assert_int_equal(pipe(fd), 0);
	p = sink_to(fd[1], size);
	assert_int_equal(pipe_sink_state(p, NULL).end, WINDOW);
	assert_true(pipe_sink_admits(p, WINDOW - 1));
	assert_false(pipe_sink_admits(p, WINDOW));
	assert_false(pipe_sink_admits(p, UINT32_MAX));
	assert_int_equal(put(p, size, WINDOW, &e), PTCP_EPROTO);
	assert_int_equal(put(p, size, 1, &e), 0);
	pause_ms(5);
	assert_int_equal(pipe_sink_state(p, NULL).taken, 0); /* nothing is written before the first */
	assert_int_equal(put(p, size, 0, &e), 0);
	wait_written(p, 2);
	assert_true(pipe_sink_admits(p, 0)); /* a late copy */
	assert_int_equal(put(p, size, 0, &e), 0);
	assert_true(pipe_sink_admits(p, WINDOW + 1));
	assert_false(pipe_sink_admits(p, WINDOW + 2));
	pipe_sink_free(p);
	close(fd[1]);
	reader_start(&r, fd[0], size, 0);
	pthread_join(r.thread, NULL);
	assert_int_equal(r.n, 2 * BLOCK);
	free(r.bytes);
	close(fd[0]);
}

static void nothing_beyond_the_end(void **state)
{
	const uint64_t size = BLOCK + 10;
	static const uint8_t buf[BLOCK];
	struct pipe_sink *p;
	struct ptcp_err e;
	int fd[2];

	(void)state;
	assert_int_equal(pipe(fd), 0);
	p = sink_to(fd[1], size);
	assert_int_equal(pipe_sink_put(p, buf, 11, BLOCK, false, 0, &e), PTCP_EPROTO);
	assert_int_equal(pipe_sink_put(p, buf, 10, BLOCK + 1, false, 0, &e), PTCP_EPROTO);
	assert_int_equal(pipe_sink_put(p, buf, 10, BLOCK, false, 0, &e), 0);
	pipe_sink_free(p);
	close(fd[0]);
	close(fd[1]);
}

static void chunks_and_holes(void **state)
{
	struct pipe_sink_file f = { .size_bytes = 3 * BLOCK, .block_bytes = BLOCK, .n_blocks = 3 };
	uint8_t buf[BLOCK], got[3 * BLOCK];
	struct pipe_sink *p;
	struct reader r;
	int fd[2];

	(void)state;
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(pipe_sink_new(&p, fd[1], WINDOW * BLOCK, NULL), 0);
	assert_int_equal(pipe_sink_begin(p, &f, NULL), 0);
	fill(buf, 0, BLOCK);
	assert_int_equal(pipe_sink_put(p, buf, 400, 0, false, 0, NULL), 0);
	assert_int_equal(pipe_sink_put(p, buf, 400, 0, false, 0, NULL), 0); /* another stream's copy */
	pipe_sink_hole(p, 1, 2);
	assert_int_equal(pipe_sink_state(p, NULL).taken, 0);
	assert_int_equal(pipe_sink_put(p, buf + 400, 600, 400, true, 1, NULL), 0);
	wait_written(p, 3);
	pipe_sink_free(p);
	close(fd[1]);
	reader_start(&r, fd[0], sizeof got, 0);
	pthread_join(r.thread, NULL);
	assert_int_equal(r.n, sizeof got);
	assert_bytes(r.bytes, 0, BLOCK);
	memset(got, 0, sizeof got);
	assert_memory_equal(r.bytes + BLOCK, got, 2 * BLOCK);
	free(r.bytes);
	close(fd[0]);
}

static void an_output_that_ends(void **state)
{
	const uint64_t size = 20 * BLOCK;
	struct pipe_sink *p;
	struct ptcp_err e;
	int fd[2];

	(void)state;
	signal(SIGPIPE, SIG_IGN); /* the manual tells hosts to */
	assert_int_equal(pipe(fd), 0);
	p = sink_to(fd[1], size);
	close(fd[0]);
	assert_int_equal(put(p, size, 0, NULL), 0);
	while (!pipe_sink_state(p, &e).failed)
		pause_ms(1);
	assert_int_equal(e.sys, EPIPE);
	assert_int_equal(put(p, size, 1, &e), PTCP_EIO);
	pipe_sink_free(p);
	close(fd[1]);
	fd[1] = open("/dev/full", O_WRONLY);
	p = sink_to(fd[1], size);
	assert_int_equal(put(p, size, 0, NULL), 0);
	while (!pipe_sink_state(p, &e).failed)
		pause_ms(1);
	assert_int_equal(e.sys, ENOSPC);
	pipe_sink_free(p);
	close(fd[1]);
}

/* A reader that does not read delays neither the end nor the tasks of others. */
static void an_output_is_stopped(void **state)
{
	const uint64_t size = 1000 * BLOCK;
	int kind, fd[2];
	struct pipe_sink *p;
	uint32_t i;

	(void)state;
	for (kind = 0; kind < 2; kind++) {
		assert_int_equal(kind == 0 ? pipe(fd) : socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
		p = sink_to(fd[1], size);
		for (i = 0; pipe_sink_admits(p, i); i++) {
			assert_int_equal(put(p, size, i, NULL), 0);
			if (!pipe_sink_admits(p, i + 1))
				pause_ms(20);
		}
		assert_true(i > WINDOW);
		assert_false(fcntl(fd[1], F_GETFL) & O_NONBLOCK); /* others may share it */
		pipe_sink_free(p);
		close(fd[0]);
		close(fd[1]);
	}
}

struct writer {
	struct pipe_io io;
	int sys;
};

static void *write_until_stopped(void *arg)
{
	static const uint8_t zeros[1 << 20];
	struct writer *w = arg;

	w->sys = pipe_io_write(&w->io, zeros, sizeof zeros);
	return NULL;
}

/* poll() reports POLLOUT for a terminal with room for less than PIPE_BUF: a blocking write would wait for the rest. */
static void stop_terminal(int reads)
{
	struct timespec limit;
	uint8_t buf[700];
	pthread_t thread;
	struct writer w;
	int fd[2], i;

	terminal(fd);
	assert_int_equal(pipe_io_init(&w.io, fd[1], true, NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, write_until_stopped, &w), 0);
	for (i = 0; i < reads; i++) {
		pause_ms(2);
		assert_true(read(fd[0], buf, sizeof buf) > 0);
	}
	pause_ms(10);
	pipe_io_stop(&w.io);
	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += 10;
	assert_int_equal(pthread_timedjoin_np(thread, NULL, &limit), 0);
	assert_int_equal(w.sys, ECANCELED);
	assert_false(fcntl(fd[1], F_GETFL) & O_NONBLOCK);
	pipe_io_fini(&w.io);
	close(fd[0]);
	close(fd[1]);
}

static void a_terminal_is_stopped(void **state)
{
	int reads;

	(void)state;
	for (reads = 0; reads < 10; reads++)
		stop_terminal(reads);
}

static void another_session_goes_on(void **state)
{
	const uint64_t size = 6 * BLOCK;
	struct pipe_sink_file f = file_of(size);
	struct pipe_sink_state s;
	struct pipe_sink *p;
	struct ptcp_err e;
	struct reader r;
	uint32_t i;
	int fd[2];

	(void)state;
	assert_int_equal(pipe(fd), 0);
	p = sink_to(fd[1], size);
	assert_int_equal(put(p, size, 0, NULL), 0);
	assert_int_equal(put(p, size, 2, NULL), 0); /* is lost with the session */
	pipe_sink_detach(p);
	assert_int_equal(pipe_sink_begin(p, &f, NULL), 0);
	s = pipe_sink_state(p, NULL);
	assert_int_equal(s.taken, 1);
	f.version[0]++;
	assert_int_equal(pipe_sink_begin(p, &f, &e), PTCP_ECHANGED);
	f = file_of(size - 1);
	assert_int_equal(pipe_sink_begin(p, &f, &e), PTCP_ECHANGED);
	for (i = 1; i < 6; i++) {
		wait_written(p, i > WINDOW ? i - WINDOW : 0);
		while (!pipe_sink_admits(p, i))
			pause_ms(1);
		assert_int_equal(put(p, size, i, NULL), 0);
	}
	wait_written(p, 6);
	pipe_sink_free(p);
	close(fd[1]);
	reader_start(&r, fd[0], size, 0);
	pthread_join(r.thread, NULL);
	assert_bytes(r.bytes, 0, size);
	free(r.bytes);
	close(fd[0]);
}

/* As senders offer a file of one block: without a version. */
static void another_session_without_versions(void **state)
{
	struct pipe_sink_file f = { .size_bytes = 700, .mtime_s = 1000, .mtime_ns = 5,
		.block_bytes = BLOCK, .n_blocks = 1 };
	struct pipe_sink_file other;
	struct pipe_sink *p;
	struct ptcp_err e;
	int fd[2];

	(void)state;
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(pipe_sink_new(&p, fd[1], WINDOW * BLOCK, NULL), 0);
	assert_int_equal(pipe_sink_begin(p, &f, NULL), 0);
	assert_int_equal(put(p, 700, 0, NULL), 0);
	assert_int_equal(pipe_sink_begin(p, &f, &e), 0);
	assert_int_equal(pipe_sink_state(p, NULL).taken, 1);
	other = f;
	other.mtime_ns++;
	assert_int_equal(pipe_sink_begin(p, &other, &e), PTCP_ECHANGED);
	other = f;
	other.mtime_s++;
	assert_int_equal(pipe_sink_begin(p, &other, &e), PTCP_ECHANGED);
	other = f;
	other.size_bytes++;
	assert_int_equal(pipe_sink_begin(p, &other, &e), PTCP_ECHANGED);
	other = f;
	other.has_version = true;
	assert_int_equal(pipe_sink_begin(p, &other, &e), PTCP_ECHANGED);
	pipe_sink_free(p);
	close(fd[0]);
	close(fd[1]);
}

static void directions(void **state)
{
	struct pipe_io io;
	struct ptcp_err e;
	int fd[2];

	(void)state;
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(pipe_io_init(&io, fd[0], true, &e), PTCP_EUSAGE);
	assert_int_equal(pipe_io_init(&io, fd[1], false, &e), PTCP_EUSAGE);
	close(fd[0]);
	close(fd[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fx_test(blocks_and_a_tail), fx_test(an_input_waits_for_room), fx_test(inputs_that_fail),
		fx_test(an_input_is_stopped), fx_test(outputs_of_all_kinds), fx_test(a_window_is_a_limit),
		fx_test(nothing_beyond_the_end), fx_test(chunks_and_holes), fx_test(an_output_that_ends),
		fx_test(an_output_is_stopped), fx_test(a_terminal_is_stopped), fx_test(another_session_goes_on),
		fx_test(another_session_without_versions), fx_test(directions),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
