/* The answers of a service to an ephemeral server that wants to share its port. A thread plays the service. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/local_sock.h"
#include "net/loop.h"
#include "server/port_lease.h"

static char dir[] = "/tmp/ptcp-lease.XXXXXX", path[64];
static struct loop *loop;
static struct port_lease *lease;

static int setup(void **state)
{
	(void)state;
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(path, sizeof path, "%s/sock", dir);
	return loop_new(&loop, NULL);
}

static int teardown(void **state)
{
	(void)state;
	loop_free(loop);
	unlink(path);
	return rmdir(dir);
}

struct service {
	int listener;
	const char *answer;
	char asked[LOCAL_SOCK_TEXT_BYTES];
};

/* One registration, and the answer. */
static void *serve(void *arg)
{
	struct service *s = arg;
	struct pollfd ready = { .fd = s->listener, .events = POLLIN };
	int fd = -1, passed = -1;

	if (poll(&ready, 1, 10000) == 1 && (fd = local_sock_accept(s->listener)) >= 0) {
		ready.fd = fd;
		if (poll(&ready, 1, 10000) == 1 && local_sock_receive(fd, s->asked, sizeof s->asked, &passed) == 1)
			local_sock_send(fd, s->answer, -1);
		close(fd);
	}
	return NULL;
}

static int answered(const char *answer, struct ptcp_err *e)
{
	const struct log log = { .level = LOG_ERROR };
	const struct port_lease_opts o = { .loop = loop, .log = &log, .path = path };
	struct service s = { .answer = answer };
	pthread_t thread;
	int r;

	assert_int_equal(local_sock_listen(&s.listener, path, 0600, e), 0);
	assert_int_equal(pthread_create(&thread, NULL, serve, &s), 0);
	r = port_lease_new(&lease, &o, e);
	pthread_join(thread, NULL);
	close(s.listener);
	unlink(path);
	assert_int_equal(strncmp(s.asked, "ptcp-share 1 ", 13), 0);
	return r;
}

static void a_port(void **state)
{
	struct ptcp_err e;

	(void)state;
	assert_int_equal(answered("ptcp-share 1 7811", &e), 0);
	assert_int_equal(port_lease_port(lease), 7811);
	assert_int_equal(strlen(port_lease_label(lease)), 32);
	port_lease_free(lease);
}

static void a_refusal(void **state)
{
	struct ptcp_err e;

	(void)state;
	assert_int_equal(answered("ptcp-share-error too many\033", &e), PTCP_EREFUSED);
	assert_string_equal(e.msg, "too many\\033");
}

static void nonsense(void **state)
{
	static const char *const answers[] = { "x", "ptcp-share", "ptcp-share 1", "ptcp-share 1 x", "ptcp-share 1 0",
		"ptcp-share 1 65536", "ptcp-share 1 7811 more", "ptcp-share 1 78 1", "ptcp-share 1 000007811",
		"ptcp-share 1 ", "ptcp-share 2 7811", "ptcp-share x 7811" };
	struct ptcp_err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof answers / sizeof *answers; i++) {
		if (answered(answers[i], &e) != PTCP_EPROTO)
			fail_msg("taken: %s", answers[i]);
		assert_string_equal(e.msg, "a malformed answer");
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_port), cmocka_unit_test(a_refusal), cmocka_unit_test(nonsense),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
