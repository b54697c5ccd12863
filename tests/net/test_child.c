/* Tests of child processes whose standard input and output are a socket: messages, exit status, signals. */
#include "fixture.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/child.h"
#include "patience.h"

struct ending {
	bool over;
	int status, signal;
};

static void on_ended(void *arg, int status, int signal)
{
	struct ending *e = arg;

	e->over = true;
	e->status = status;
	e->signal = signal;
}

static struct child *start(struct loop *l, const char *script, struct ending *e, int *fd)
{
	char *argv[] = { "sh", "-c", (char *)(uintptr_t)script, NULL };
	struct child_opts o = { .argv = argv, .quiet = true, .ended = on_ended, .arg = e };
	struct child *c;

	memset(e, 0, sizeof *e);
	assert_int_equal(child_start(&c, l, &o, fd, NULL), 0);
	return c;
}

static void talks_and_ends(void **state)
{
	char *argv[] = { "sh", "-c", "echo 1; echo 2 >&2", NULL };
	struct child_opts o = { .argv = argv, .merged = true };
	struct ending e;
	struct loop *l;
	struct child *c;
	char got[64];
	int fd;

	(void)state;
	assert_int_equal(loop_new(&l, NULL), 0);
	c = start(l, "read x; echo \"<$x>\"; exit 7", &e, &fd);
	assert_int_equal(recv(fd, got, sizeof got, 0), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(write(fd, "hello\n", 6), 6);
	assert_true(nf_run_until(l, &e.over, 5000));
	assert_int_equal(e.status, 7);
	assert_int_equal(e.signal, 0);
	assert_int_equal(recv(fd, got, sizeof got, 0), 8);
	assert_memory_equal(got, "<hello>\n", 8);
	assert_int_equal(recv(fd, got, sizeof got, 0), 0);
	close(fd);
	child_free(c);

	c = start(l, "echo 1; echo 2 >&2", &e, &fd); /* quiet */
	assert_true(nf_run_until(l, &e.over, 5000));
	assert_int_equal(recv(fd, got, sizeof got, 0), 2);
	close(fd);
	child_free(c);

	o.ended = on_ended;
	o.arg = &e;
	e.over = false;
	assert_int_equal(child_start(&c, l, &o, &fd, NULL), 0);
	assert_true(nf_run_until(l, &e.over, 5000));
	assert_int_equal(recv(fd, got, sizeof got, 0), 4);
	assert_memory_equal(got, "1\n2\n", 4);
	close(fd);
	child_free(c);

	c = start(l, "kill -KILL $$", &e, &fd);
	assert_true(nf_run_until(l, &e.over, 5000));
	assert_int_equal(e.signal, SIGKILL);
	close(fd);
	child_free(c);
	loop_free(l);
}

static void cannot_be_started(void **state)
{
	char *argv[] = { "/no/such/program", NULL };
	struct child_opts o = { .argv = argv, .ended = on_ended };
	struct child *c = NULL;
	struct ptcp_err e;
	struct loop *l;
	int fd = -1;

	(void)state;
	assert_int_equal(loop_new(&l, NULL), 0);
	assert_int_equal(child_start(&c, l, &o, &fd, &e), PTCP_ECONNECT);
	assert_non_null(strstr(e.msg, "/no/such/program"));
	assert_null(c);
	assert_int_equal(fd, -1);
	child_free(NULL);
	loop_free(l);
}

static bool is_alive(const char *pid_file)
{
	return kill((pid_t)strtol(nf_read(pid_file), NULL, 10), 0) == 0;
}

static void when_freed(const char *script, unsigned most_ms)
{
	struct mono from;
	struct ending e;
	struct loop *l;
	struct child *c;
	char text[300], got;
	int fd;

	assert_int_equal(loop_new(&l, NULL), 0);
	snprintf(text, sizeof text, "%s", script);
	snprintf(text + strlen(text), sizeof text - strlen(text), "; echo $$ >%s; echo; read x; ", nf_path("pid"));
	strcat(text, strstr(script, "TERM") != NULL ? "while :; do sleep 0.1; done" : "exit 0");
	c = start(l, text, &e, &fd);
	while (recv(fd, &got, 1, 0) < 0)
		nf_sleep_ms(5);
	assert_true(is_alive("pid"));
	close(fd);
	child_free(c);
	from = mono_now();
	loop_free(l); /* waits for it */
	assert_true(mono_diff_ns(mono_now(), from) < most_ms * patience_s(1) * NS_PER_MS);
	assert_false(e.over); /* nobody asked any more */
	assert_false(is_alive("pid"));
}

static void is_ended(void **state)
{
	(void)state;
	when_freed(":", 400);             /* by itself, as its input ends */
	when_freed("trap '' TERM", 4000); /* by force */
}

static bool is_gone(const char *pid_file)
{
	struct mono until = mono_add_ns(mono_now(), patience_s(3) * NS_PER_S);

	while (is_alive(pid_file) && mono_now().ns < until.ns)
		nf_sleep_ms(5); /* until init has reaped the orphan */
	return !is_alive(pid_file);
}

/* The command of a shell outlives the shell, unless the whole group is ended. */
static void group_is_ended(const char *traps)
{
	char text[300], got, *argv[] = { "sh", "-c", text, NULL };
	struct child_opts o = { .argv = argv, .apart = true };
	struct child *c;
	struct loop *l;
	int fd;

	snprintf(text, sizeof text, "%s; sleep 1000 & echo $! >%s; ps -o sid= -p $$ >%s; echo; read x; wait", traps,
	    nf_path("pid"), nf_path("sid"));
	assert_int_equal(loop_new(&l, NULL), 0);
	assert_int_equal(child_start(&c, l, &o, &fd, NULL), 0);
	while (recv(fd, &got, 1, 0) < 0)
		nf_sleep_ms(5);
	assert_true(is_alive("pid"));
	assert_int_not_equal(strtol(nf_read("sid"), NULL, 10), getsid(0));
	close(fd);
	child_free(c);
	loop_free(l);
	assert_true(is_gone("pid"));
}

static void groups_are_ended(void **state)
{
	(void)state;
	group_is_ended(":");
	group_is_ended("trap '' TERM");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		nf_test(talks_and_ends),
		nf_test(cannot_be_started),
		nf_timed_test(is_ended),
		nf_test(groups_are_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
