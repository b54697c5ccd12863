/* The log of sessions: what is written is read, whatever clients name their files; its size is bounded; a full disk
 * leaves whole lines. */
#include "cli/session_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/ptcp-session-log-XXXXXX", path[64], earlier[72];
static struct session_log made;

static int setup(void **state)
{
	(void)state;
	strcpy(strrchr(dir, '-'), "-XXXXXX");
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(path, sizeof path, "%s/log", dir);
	snprintf(earlier, sizeof earlier, "%s.1", path);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	unlink(earlier);
	return rmdir(dir);
}

static struct ptcp_server_record record_of(const char *name, uint64_t files)
{
	return (struct ptcp_server_record){ .work = "receive", .client = "SHA256:x", .name = name,
		.address = "192.0.2.1:7", .third = "", .path = name, .files = files, .bytes = 5, .failed = 1,
		.seconds = 0.25, .code = PTCP_EIO, .sys = ENOSPC, .why = name, .text = "" };
}

static void add(const char *name, uint64_t files)
{
	struct ptcp_server_record r = record_of(name, files);
	struct ptcp_err e;

	assert_int_equal(session_log_add(&made, &r, &e), 0);
}

static struct read { unsigned n; uint64_t sum, last; char path[400]; } found;
static uint64_t skipped;

static void on_record(void *arg, json_t *j)
{
	(void)arg;
	found.n++;
	found.last = (uint64_t)json_integer_value(json_object_get(j, "files"));
	found.sum += found.last;
	snprintf(found.path, sizeof found.path, "%s", json_string_value(json_object_get(j, "path")));
}

static void read_all(void)
{
	struct ptcp_err e;

	memset(&found, 0, sizeof found);
	assert_int_equal(session_log_read(path, on_record, NULL, &skipped, &e), 0);
}

static off_t size_of(const char *file)
{
	struct stat st;

	return stat(file, &st) == 0 ? st.st_size : -1;
}

static void hostile_names(void **state)
{
	static const char *const names[] = { "plain", "\"}\n{\"event\":\"record\",\"files\":99}\n", "\033[2J",
		"\xff\xfe", "\\n", "\342\200\256reversed", "" };
	static const char *const shown[] = { "plain", "\"}\n{\"event\":\"record\",\"files\":99}\n", "\033[2J",
		"\\377\\376", "\\n", "\342\200\256reversed", "" };
	char line[2000];
	size_t i;
	FILE *f;

	(void)state;
	assert_int_equal(session_log_open(&made, path, 1 << 20, NULL), 0);
	for (i = 0; i < sizeof names / sizeof *names; i++) {
		add(names[i], i);
		read_all();
		assert_int_equal(found.n, i + 1);
		assert_int_equal(found.last, i);
		assert_string_equal(found.path, shown[i]);
		assert_int_equal(skipped, 0);
	}
	assert_non_null(f = fopen(path, "r")); /* the file itself is harmless to a terminal */
	for (i = 0; fgets(line, sizeof line, f) != NULL; i++) {
		const char *p;

		for (p = line; *p != '\n'; p++)
			assert_in_range(*p, ' ', '~');
	}
	fclose(f);
	assert_int_equal(i, sizeof names / sizeof *names);
}

static void size_is_bounded(void **state)
{
	unsigned i;

	(void)state;
	assert_int_equal(session_log_open(&made, path, 4096, NULL), 0);
	for (i = 1; i <= 100; i++) {
		add("a name of some length", i);
		assert_true(size_of(path) <= 4096 && size_of(earlier) <= 4096);
		read_all();
		assert_int_equal(found.last, i); /* the youngest are there, in order, without a gap */
		assert_int_equal(found.sum, (uint64_t)found.n * (2 * i - found.n + 1) / 2);
	}
	assert_true(found.n < 30);
	assert_true(size_of(earlier) > 2048);
}

static void several_writers(void **state)
{
	enum { WRITERS = 4, RECORDS = 200 };
	uint64_t all = 0;
	int i, n, status;

	(void)state;
	assert_int_equal(session_log_open(&made, path, 1 << 17, NULL), 0); /* about two files */
	for (i = 0; i < WRITERS; i++)
		if (fork() == 0) {
			struct ptcp_server_record r = record_of("x", 1);
			struct ptcp_err e;

			for (n = 0; n < RECORDS;)
				if (session_log_add(&made, &r, &e) == 0)
					n++;
				else if (e.sys != EWOULDBLOCK) /* a busy machine may hold a lock for long */
					_exit(1);
			_exit(0);
		}
	for (i = 0; i < WRITERS; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	read_all();
	all = found.sum;
	assert_int_equal(skipped, 0);
	assert_int_equal(all, WRITERS * RECORDS);
	assert_true(size_of(earlier) > 0);
}

/* A limit of the process stands for the end of the disk. */
static void full_disk(void **state)
{
	struct rlimit before, limit;
	struct ptcp_server_record r = record_of("does not fit", 2);
	struct ptcp_err e;
	off_t size;

	(void)state;
	assert_int_equal(session_log_open(&made, path, 1 << 20, NULL), 0);
	add("fits", 1);
	size = size_of(path);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = (rlim_t)size + 20;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(session_log_add(&made, &r, &e), PTCP_EIO);
	assert_int_equal(size_of(path), size);
	assert_non_null(strstr(e.msg, path));
	setrlimit(RLIMIT_FSIZE, &before);
	add("fits again", 3);
	read_all();
	assert_int_equal(found.n, 2);
	assert_int_equal(found.last, 3);
	assert_int_equal(skipped, 0);
}

/* Another process, perhaps stopped, keeps the lock: this one waits no longer than its clients would notice. */
static void locked(void **state)
{
	struct ptcp_server_record r = record_of("not now", 2);
	struct ptcp_err e;
	int holder;

	(void)state;
	assert_int_equal(session_log_open(&made, path, 1 << 20, NULL), 0);
	add("before", 1);
	assert_true((holder = open(path, O_RDWR | O_CLOEXEC)) >= 0);
	assert_int_equal(flock(holder, LOCK_EX), 0);
	assert_int_equal(session_log_add(&made, &r, &e), PTCP_EIO);
	assert_int_equal(e.sys, EWOULDBLOCK);
	close(holder);
	add("after", 3);
	read_all();
	assert_int_equal(found.n, 2);
	assert_int_equal(found.sum, 4);
}

static void cut_by_a_crash(void **state)
{
	(void)state;
	assert_int_equal(session_log_open(&made, path, 1 << 20, NULL), 0);
	add("before", 1);
	assert_int_equal(truncate(path, size_of(path) - 10), 0);
	add("after", 2);
	read_all();
	assert_int_equal(found.n, 1);
	assert_int_equal(found.last, 2);
	assert_int_equal(skipped, 1);
}

static void not_a_file(void **state)
{
	struct ptcp_err e;

	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(session_log_open(&made, path, 4096, &e), PTCP_ECONFIG);
	assert_int_equal(session_log_read(path, on_record, NULL, &skipped, &e), PTCP_EIO);
	unlink(path);
	assert_int_equal(symlink(earlier, path), 0);
	assert_int_equal(session_log_open(&made, path, 4096, &e), PTCP_ECONFIG);
	assert_int_equal(size_of(earlier), -1);
	unlink(path);
	assert_int_equal(session_log_read(path, on_record, NULL, &skipped, &e), PTCP_EIO);
	assert_int_equal(session_log_open(&made, "none", 4096, &e), 0);
	add("nowhere", 1);
	assert_int_equal(size_of("none"), -1);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = { CASE(hostile_names), CASE(size_is_bounded), CASE(several_writers),
		CASE(full_disk), CASE(locked), CASE(cut_by_a_crash), CASE(not_a_file) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
