#include "core/local_sock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/fixture.h"
#include "net/watch.h"

struct pair {
	int listener, near, far; /* far: accepted */
};

static struct pair connected(const char *path)
{
	struct pair p;
	struct ptcp_err e;

	assert_int_equal(local_sock_listen(&p.listener, path, 0666, &e), 0);
	assert_int_equal(local_sock_connect(&p.near, path, 100, &e), 0);
	assert_true((p.far = local_sock_accept(p.listener)) >= 0);
	return p;
}

static void close_pair(struct pair *p)
{
	close(p->listener);
	close(p->near);
	close(p->far);
}

static void passes_messages_and_descriptors(void **state)
{
	struct pair p = connected(nf_path("sock"));
	char text[LOCAL_SOCK_TEXT_BYTES], byte;
	int pipes[2], passed;
	uid_t user;
	pid_t process;

	(void)state;
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_true(local_sock_peer(p.far, &user, &process));
	assert_int_equal(user, getuid());
	assert_int_equal(process, getpid());
	assert_int_equal(local_sock_receive(p.near, text, sizeof text, &passed), -1);
	assert_true(local_sock_send(p.far, "a message", -1));
	assert_true(local_sock_send(p.far, "another", pipes[0]));
	assert_false(local_sock_drained(p.far));
	close(pipes[0]);
	assert_int_equal(local_sock_receive(p.near, text, sizeof text, &passed), 1);
	assert_string_equal(text, "a message");
	assert_int_equal(passed, -1);
	assert_int_equal(local_sock_receive(p.near, text, sizeof text, &passed), 1);
	assert_string_equal(text, "another");
	assert_true(passed >= 0);
	assert_true(fcntl(passed, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(write(pipes[1], "x", 1), 1);
	assert_int_equal(read(passed, &byte, 1), 1);
	assert_true(local_sock_drained(p.far));
	close(passed);
	close(pipes[1]);
	close(p.near);
	p.near = -1;
	assert_int_equal(local_sock_receive(p.far, text, sizeof text, &passed), 0);
	close_pair(&p);
}

/* Two descriptors in a message, and one in an empty message: at most one arrives, and none stays open (see
 * nf_teardown). */
static void more_descriptors_than_one(void **state)
{
	struct pair p = connected(nf_path("sock"));
	char text[LOCAL_SOCK_TEXT_BYTES];
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct iovec io = { "x", 1 };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = CMSG_SPACE(2 * sizeof(int)) };
	int two[2] = { p.near, p.far }, passed;

	(void)state;
	memset(&control, 0, sizeof control);
	control.h = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof two), .cmsg_level = SOL_SOCKET,
	    .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(&control.h), two, sizeof two);
	assert_int_equal(sendmsg(p.near, &m, 0), 1);
	assert_int_equal(local_sock_receive(p.far, text, sizeof text, &passed), 1);
	assert_true(passed >= 0);
	close(passed);
	io.iov_len = 0;
	control.h.cmsg_len = CMSG_LEN(sizeof two[0]);
	m.msg_controllen = CMSG_SPACE(sizeof two[0]);
	assert_int_equal(sendmsg(p.near, &m, 0), 0);
	assert_int_equal(local_sock_receive(p.far, text, sizeof text, &passed), 0);
	close_pair(&p);
}

/* A message without a byte is an end for the receiver, as if no descriptor had come: the caller gets no number, which
 * another file of the process may have by then. */
static void a_descriptor_in_an_empty_message(void **state)
{
	struct pair p = connected(nf_path("sock"));
	char text[LOCAL_SOCK_TEXT_BYTES];
	int passed, opened;

	(void)state;
	assert_true(local_sock_send(p.near, "", p.near));
	assert_int_equal(local_sock_receive(p.far, text, sizeof text, &passed), 0);
	opened = open("/dev/null", O_RDONLY | O_CLOEXEC); /* as another thread may do at this moment */
	assert_true(opened >= 0);
	if (passed >= 0)
		close(passed);
	assert_true(fcntl(opened, F_GETFD) >= 0);
	assert_int_equal(passed, -1);
	close(opened);
	close_pair(&p);
}

/* Neither must pass for the part before the NUL, or before the cut. */
static void no_texts(void **state)
{
	static const char nul[] = "cancel\0more", longer[LOCAL_SOCK_TEXT_BYTES] = "rate 1Mbit/s";
	struct pair p = connected(nf_path("sock"));
	char text[LOCAL_SOCK_TEXT_BYTES], x[LOCAL_SOCK_TEXT_BYTES];
	int passed;

	(void)state;
	memset(x, 'x', sizeof x);
	assert_int_equal(send(p.near, nul, sizeof nul - 1, 0), sizeof nul - 1);
	assert_int_equal(send(p.near, nul, strlen(nul) + 1, 0), strlen(nul) + 1);
	assert_int_equal(send(p.near, longer, sizeof longer, 0), sizeof longer);
	assert_int_equal(send(p.near, x, sizeof x, 0), sizeof x);
	assert_int_equal(send(p.near, x, sizeof x - 1, 0), sizeof x - 1);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(local_sock_receive(p.far, text, sizeof text, &passed), 1);
		assert_string_equal(text, "");
	}
	assert_int_equal(local_sock_receive(p.far, text, sizeof text, &passed), 1);
	assert_int_equal(strlen(text), sizeof text - 1);
	close_pair(&p);
}

static void a_full_queue(void **state)
{
	struct pair p = connected(nf_path("sock"));
	char text[LOCAL_SOCK_TEXT_BYTES];
	unsigned sent = 0, got = 0;
	int passed;

	(void)state;
	while (local_sock_send(p.far, "x", p.near) && sent < 100000)
		sent++;
	assert_int_equal(errno, EAGAIN);
	assert_in_range(sent, 1, 10000);
	for (; local_sock_receive(p.near, text, sizeof text, &passed) == 1; got++)
		close(passed);
	assert_int_equal(got, sent);
	close_pair(&p);
}

/* The socket of an ended process is replaced; one in use, and another file, is not. */
static void what_is_at_the_path(void **state)
{
	const char *path = nf_path("sock"), *file = nf_path("file");
	struct pair p = connected(path);
	struct ptcp_err e;
	struct stat st;
	int fd;

	(void)state;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0666);
	assert_int_equal(local_sock_listen(&fd, path, 0666, &e), PTCP_ECONFIG);
	assert_non_null(strstr(e.msg, "Address already in use"));
	close_pair(&p);
	assert_int_equal(local_sock_connect(&fd, path, 100, &e), PTCP_ECONNECT);
	assert_int_equal(local_sock_listen(&fd, path, 0666, &e), 0);
	close(fd);
	nf_write("file", "precious", 0600);
	assert_int_equal(local_sock_listen(&fd, file, 0666, &e), PTCP_ECONFIG);
	assert_string_equal(nf_read("file"), "precious");
	assert_int_equal(local_sock_listen(&fd, nf_path("missing/sock"), 0666, &e), PTCP_ECONFIG);
	assert_non_null(strstr(e.msg, "No such file or directory"));
	assert_int_equal(local_sock_listen(&fd, "", 0666, &e), PTCP_ECONFIG);
	assert_int_equal(local_sock_connect(&fd, nf_path("none"), 0, &e), PTCP_ECONNECT);
}

/* A listener that accepts nothing: the wait has an end. */
static void a_listener_that_does_not_accept(void **state)
{
	const char *path = nf_path("sock");
	int listener, fd[1200], n = 0;
	struct ptcp_err e;

	(void)state;
	assert_int_equal(local_sock_listen(&listener, path, 0666, &e), 0);
	assert_int_equal(listen(listener, 3), 0);
	while (n < 1200 && local_sock_connect(&fd[n], path, 0, &e) == 0)
		n++;
	assert_in_range(n, 1, 100);
	assert_int_equal(local_sock_connect(&fd[n], path, 50, &e), PTCP_ECONNECT);
	while (n > 0)
		close(fd[--n]);
	close(listener);
}

struct seen {
	struct watch *watch;
	int fd;
	unsigned n;
	bool ended;
};

static void on_readable(void *arg)
{
	struct seen *s = arg;
	char text[LOCAL_SOCK_TEXT_BYTES];
	int passed;

	s->n++;
	if (local_sock_receive(s->fd, text, sizeof text, &passed) == 0) {
		s->ended = true;
		watch_free(s->watch);
		s->watch = NULL;
	}
}

static void a_watch(void **state)
{
	struct pair p = connected(nf_path("sock"));
	struct seen s = { .fd = p.near };
	struct loop *l;
	struct ptcp_err e;

	(void)state;
	assert_int_equal(loop_new(&l, &e), 0);
	assert_int_equal(watch_new(&s.watch, l, p.near, on_readable, &s, &e), 0);
	watch_hold(s.watch, true);
	assert_true(local_sock_send(p.far, "x", -1));
	nf_settle(l);
	assert_int_equal(s.n, 0);
	watch_hold(s.watch, false);
	nf_settle(l);
	assert_int_equal(s.n, 1);
	close(p.far);
	p.far = -1;
	assert_true(nf_run_until(l, &s.ended, 2000));
	loop_free(l);
	close_pair(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		nf_test(passes_messages_and_descriptors), nf_test(more_descriptors_than_one),
		nf_test(a_descriptor_in_an_empty_message), nf_test(no_texts), nf_test(a_full_queue),
		nf_test(what_is_at_the_path), nf_test(a_listener_that_does_not_accept), nf_test(a_watch),
	};

	return cmocka_run_group_tests_name("core/local_sock", tests, NULL, NULL);
}
