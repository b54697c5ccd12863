/* A port that is shared: processes register through a real socket, a connection is one end of a socket pair.
 * against: local */
#include "server/port_share.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conn/client_hello.h"
#include "core/fd.h"
#include "core/local_sock.h"
#include "net/admission.h"
#include "net/fixture.h"
#include "server/port_lease.h"

#define PORT 7811
#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeef"

static struct {
	struct loop *loop;
	struct port_share *share;
	struct log log;
	char last[300];         /* line of the log */
	unsigned labels, again;
	bool ready;
} t;

static void on_changed(void *arg, unsigned labels)
{
	(void)arg;
	t.labels = labels;
}

static void on_again(void *arg)
{
	(void)arg;
	t.again++;
	t.ready = true;
}

static void on_log(void *arg, enum log_level level, const char *component, const char *text)
{
	(void)arg;
	(void)level;
	(void)component;
	snprintf(t.last, sizeof t.last, "%s", text);
}

static void share(unsigned max_user, unsigned max)
{
	struct port_share_opts o = { .loop = t.loop, .log = &t.log, .path = nf_path("sock"), .port = PORT,
		.max_user = max_user, .max = max, .changed = on_changed, .again = on_again };
	struct ptcp_err e;

	assert_int_equal(port_share_new(&t.share, &o, &e), 0);
}

static void begin(unsigned max_user, unsigned max)
{
	struct ptcp_err e;

	memset(&t, 0, sizeof t);
	t.log = (struct log){ .write = on_log, .level = LOG_DEBUG };
	assert_int_equal(loop_new(&t.loop, &e), 0);
	share(max_user, max);
}

static void finish(void)
{
	port_share_free(t.share);
	loop_free(t.loop);
}

static void turns(void) { nf_run_for(t.loop, 10); }

static int join(void)
{
	struct ptcp_err e;
	int fd;

	assert_int_equal(local_sock_connect(&fd, nf_path("sock"), 0, &e), 0);
	return fd;
}

/* A message, and whether there was one (1), none (-1), or the end (0). */
static int hear(int fd, char text[LOCAL_SOCK_TEXT_BYTES], int *passed)
{
	int r;

	turns();
	*passed = -1;
	r = local_sock_receive(fd, text, LOCAL_SOCK_TEXT_BYTES, passed);
	return r;
}

/* Registers with the key that ends in that digit. */
static int registered(char digit, char label[TLS_SHARE_LABEL_BYTES])
{
	char text[LOCAL_SOCK_TEXT_BYTES], key[TLS_SHARE_KEY_BYTES];
	int fd = join(), passed;

	snprintf(key, sizeof key, "%s%c", KEY, digit);
	snprintf(text, sizeof text, "ptcp-share 1 %s", key);
	assert_true(local_sock_send(fd, text, -1));
	assert_int_equal(hear(fd, text, &passed), 1);
	assert_string_equal(text, "ptcp-share 1 7811");
	assert_int_equal(tls_share_label(label, key, NULL), 0);
	return fd;
}

static bool refuses(int fd, const char *why)
{
	char text[LOCAL_SOCK_TEXT_BYTES];
	int passed, r = hear(fd, text, &passed);

	if (r == 1 && (strncmp(text, "ptcp-share-error ", 17) != 0 || strstr(text, why) == NULL))
		fail_msg("answers: %s", text);
	close(fd);
	return r == 1;
}

/* Both ends are given away, or closed. */
static enum inbound_lend lend(const char *label)
{
	enum inbound_lend r;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	r = port_share_lend(t.share, label, pair[0]);
	close(pair[0]);
	close(pair[1]);
	return r;
}

static void passes_connections(void **state)
{
	char label[2][TLS_SHARE_LABEL_BYTES], text[LOCAL_SOCK_TEXT_BYTES], byte;
	int fd[2], pair[2], passed;

	(void)state;
	begin(32, 1024);
	assert_int_equal(lend("00000000000000000000000000000000"), INBOUND_LEND_UNKNOWN);
	fd[0] = registered('0', label[0]);
	assert_int_equal(t.labels, 1);
	snprintf(text, sizeof text, "event=registered user=%u process=%d", (unsigned)getuid(), (int)getpid());
	assert_string_equal(t.last, text);
	fd[1] = registered('1', label[1]);
	assert_int_equal(t.labels, 2);
	assert_string_not_equal(label[0], label[1]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(write(pair[1], "x", 1), 1);
	assert_int_equal(port_share_lend(t.share, label[1], pair[0]), INBOUND_LENT);
	close(pair[0]);
	assert_int_equal(hear(fd[0], text, &passed), -1);
	assert_int_equal(hear(fd[1], text, &passed), 1);
	assert_string_equal(text, "connection");
	assert_true(passed >= 0);
	assert_int_equal(read(passed, &byte, 1), 1);
	assert_int_equal(byte, 'x');
	close(passed);
	close(pair[1]);
	/* a process that dies takes its label along */
	close(fd[1]);
	turns();
	assert_int_equal(t.labels, 1);
	assert_int_equal(lend(label[1]), INBOUND_LEND_UNKNOWN);
	assert_int_equal(lend(label[0]), INBOUND_LENT);
	close(fd[0]);
	turns();
	assert_int_equal(t.labels, 0);
	finish();
}

/* A process that dies before the service has noticed. */
static void dies_at_once(void **state)
{
	char label[TLS_SHARE_LABEL_BYTES];

	(void)state;
	begin(32, 1024);
	close(registered('0', label));
	assert_int_equal(lend(label), INBOUND_LEND_UNKNOWN);
	assert_int_equal(t.labels, 0);
	turns();
	finish();
}

/* Who has seen a label on the path cannot register it, and who has the key cannot take it over. */
static void labels_of_others(void **state)
{
	char label[TLS_SHARE_LABEL_BYTES], text[LOCAL_SOCK_TEXT_BYTES];
	int first, fd, passed;

	(void)state;
	begin(32, 1024);
	first = registered('0', label);
	fd = join();
	snprintf(text, sizeof text, "ptcp-share 1 %s", label);
	assert_true(local_sock_send(fd, text, -1));
	assert_true(refuses(fd, "not a registration"));
	fd = join();
	snprintf(text, sizeof text, "ptcp-share 1 %s%s", label, label);
	assert_true(local_sock_send(fd, text, -1));
	assert_int_equal(hear(fd, text, &passed), 1);
	close(fd);
	fd = join();
	assert_true(local_sock_send(fd, "ptcp-share 1 " KEY "0", -1));
	assert_true(refuses(fd, "registered already"));
	assert_int_equal(lend(label), INBOUND_LENT);
	assert_int_equal(hear(first, text, &passed), 1);
	close(passed);
	/* the same process, after a restart, perhaps */
	close(first);
	turns();
	close(registered('0', label));
	turns();
	finish();
}

static void malformed(void **state)
{
	static const char *const bad[] = { "x", "ptcp-share", "ptcp-share 1", "ptcp-share 2 " KEY "0",
		"ptcp-share 1 " KEY,
		"ptcp-share 1 " KEY "00", "ptcp-share 1 " KEY "G", "ptcp-share 1 " KEY "0 ", "PTCP-share 1 " KEY "0" };
	char label[TLS_SHARE_LABEL_BYTES];
	size_t i;
	int fd;

	(void)state;
	begin(32, 1024);
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		fd = join();
		assert_true(local_sock_send(fd, bad[i], -1));
		assert_true(refuses(fd, "not a registration"));
	}
	fd = join();
	assert_true(local_sock_send(fd, "ptcp-share 1 " KEY "0", fd)); /* with a descriptor: nf_teardown() counts */
	turns();
	assert_int_equal(t.labels, 1);
	close(fd);
	fd = registered('1', label);
	assert_true(local_sock_send(fd, "ptcp-share 1 " KEY "2", -1));
	assert_true(refuses(fd, "a second message"));
	turns();
	assert_int_equal(t.labels, 0);
	finish();
}

static void too_many(void **state)
{
	char label[TLS_SHARE_LABEL_BYTES];
	int fd[3], i;

	(void)state;
	begin(3, 1024);
	for (i = 0; i < 3; i++)
		fd[i] = registered((char)('0' + i), label);
	assert_true(refuses(join(), "this user"));
	assert_true(refuses(join(), "this user"));
	close(fd[1]);
	turns();
	fd[1] = registered('1', label);
	assert_true(refuses(join(), "this user"));
	port_share_set_max_user(t.share, 4);
	close(registered('4', label));
	for (i = 0; i < 3; i++)
		close(fd[i]);
	turns();
	port_share_free(t.share);
	share(32, 4); /* one user may have half of all */
	for (i = 0; i < 2; i++)
		fd[i] = registered((char)('0' + i), label);
	assert_true(refuses(join(), "this user"));
	close(fd[0]);
	close(fd[1]);
	turns();
	finish();
}

/* Another user has room while one has used up his own (needs a second user, so root). */
static void another_user(void **state)
{
	char label[TLS_SHARE_LABEL_BYTES];
	struct pollfd p;
	int fd, pid, status = -1;

	(void)state;
	if (getuid() != 0)
		skip();
	begin(1, 1024);
	fd = registered('0', label);
	assert_int_equal(chmod(nf_dir, 0755), 0);
	if ((pid = fork()) == 0) {
		char text[LOCAL_SOCK_TEXT_BYTES];
		struct ptcp_err e;
		int other, passed;

		if (setuid(65534) < 0 || local_sock_connect(&other, nf_path("sock"), 0, &e) < 0 ||
		    !local_sock_send(other, "ptcp-share 1 " KEY "1", -1))
			_exit(1);
		p = (struct pollfd){ .fd = other, .events = POLLIN };
		poll(&p, 1, 5000);
		_exit(local_sock_receive(other, text, sizeof text, &passed) != 1 ||
		    strcmp(text, "ptcp-share 1 7811") != 0);
	}
	while (waitpid(pid, &status, WNOHANG) == 0)
		turns();
	assert_int_equal(status, 0);
	turns();
	assert_true(strstr(t.last, "user=65534") != NULL);
	assert_true(refuses(join(), "this user"));
	close(fd);
	turns();
	finish();
}

/* A process that takes nothing has a few connections in its queue, and its place until the queue is empty, whatever it
 * does to the registration. */
static void takes_nothing(void **state)
{
	char label[TLS_SHARE_LABEL_BYTES], text[LOCAL_SOCK_TEXT_BYTES];
	int fd, i, passed;

	(void)state;
	begin(1, 1024);
	fd = registered('0', label);
	for (i = 0; i < PORT_SHARE_PASSED_MAX; i++)
		assert_int_equal(lend(label), INBOUND_LENT);
	assert_int_equal(lend(label), INBOUND_LEND_BUSY);
	assert_int_equal(lend(label), INBOUND_LEND_BUSY);
	t.ready = false;
	assert_true(nf_run_until(t.loop, &t.ready, 2000));
	assert_int_equal(lend(label), INBOUND_LEND_BUSY);
	assert_int_equal(hear(fd, text, &passed), 1); /* one taken of eight: not yet */
	close(passed);
	assert_int_equal(lend(label), INBOUND_LEND_BUSY);
	shutdown(fd, SHUT_RDWR);
	turns();
	assert_int_equal(t.labels, 0);
	assert_true(refuses(join(), "this user"));
	nf_run_for(t.loop, 1200);
	assert_true(refuses(join(), "this user"));
	close(fd);
	nf_run_for(t.loop, 1200);
	close(registered('1', label));
	turns();
	finish();
}

static void takes_everything(void **state)
{
	char label[TLS_SHARE_LABEL_BYTES], text[LOCAL_SOCK_TEXT_BYTES];
	int fd, i, k, passed;

	(void)state;
	begin(1, 1024);
	fd = registered('0', label);
	for (k = 0; k < 4; k++) {
		for (i = 0; i < PORT_SHARE_PASSED_MAX; i++)
			assert_int_equal(lend(label), INBOUND_LENT);
		for (i = 0; i < PORT_SHARE_PASSED_MAX; i++) {
			assert_int_equal(local_sock_receive(fd, text, sizeof text, &passed), 1);
			close(passed);
		}
	}
	close(fd);
	turns();
	finish();
}

/* Many registrations of one user that take nothing have a limit in common. */
static void takes_nothing_often(void **state)
{
	char label[16][TLS_SHARE_LABEL_BYTES];
	unsigned lent = 0;
	int fd[16], i, k;

	(void)state;
	begin(16, 1024);
	for (i = 0; i < 16; i++)
		fd[i] = registered("0123456789abcdef"[i], label[i]);
	for (i = 0; i < 16; i++)
		for (k = 0; k < PORT_SHARE_PASSED_MAX; k++)
			lent += lend(label[i]) == INBOUND_LENT;
	assert_int_equal(lent, PORT_SHARE_USER_PASSED_MAX);
	for (i = 0; i < 16; i++)
		close(fd[i]);
	turns();
	finish();
}

static bool is_closed(void *arg)
{
	struct pollfd p = { .fd = *(const int *)arg, .events = POLLIN };

	return poll(&p, 1, 0) == 1 && (p.revents & POLLHUP) != 0;
}

static unsigned count_closed(const int *fd, unsigned n)
{
	unsigned i, closed = 0;

	for (i = 0; i < n; i++)
		closed += is_closed((void *)&fd[i]);
	return closed;
}

static bool all_closed(void *arg) { return count_closed(arg, 400) == 400; }

/* Silence, instead of a key, has an end; connecting without end has a pace: 16 in 5 ms. */
static void silent_and_fast(void **state)
{
	char label[TLS_SHARE_LABEL_BYTES];
	struct ptcp_err e;
	int fd[400], n = 0, silent;
	struct mono since;
	uint64_t turns_ms;

	(void)state;
	begin(2, 1024);
	silent = join();
	turns();
	while (n < 400 && local_sock_connect(&fd[n], nf_path("sock"), 0, &e) == 0)
		n++;
	assert_int_equal(n, 400);
	since = mono_now();
	nf_run_for(t.loop, 30);
	turns_ms = mono_diff_ns(mono_now(), since) / NS_PER_MS;
	assert_in_range(count_closed(fd, 400), 1, 16 * (turns_ms / 5 + 2));
	assert_true(nf_await(t.loop, all_closed, fd) && nf_await(t.loop, is_closed, &silent));
	while (n > 0)
		close(fd[--n]);
	close(silent);
	turns();
	close(registered('0', label));
	turns();
	finish();
}

/* ---- The other end ---- */

struct taken {
	bool any;
	int fd;
	char address[SOCK_TEXT_BYTES];
};

static void on_connection(void *arg, int *fd, const char *address)
{
	struct taken *k = arg;

	k->any = true;
	k->fd = fd_take(fd);
	snprintf(k->address, sizeof k->address, "%s", address);
}


/* port_lease_new() waits for the service: it registers in a process of its own, here a service of one answer. */
static struct port_lease *lease(struct taken *k)
{
	struct port_lease_opts o = { .loop = t.loop, .log = &t.log, .path = nf_path("sock"),
		.connection = on_connection, .arg = k };
	struct port_lease *p = NULL;
	struct ptcp_err e;
	struct pollfd ready;
	int listener, fd, pid, passed;
	char text[LOCAL_SOCK_TEXT_BYTES];

	assert_int_equal(local_sock_listen(&listener, nf_path("sock"), 0666, &e), 0);
	if ((pid = fork()) == 0) {
		ready = (struct pollfd){ .fd = listener, .events = POLLIN };
		poll(&ready, 1, 5000);
		fd = local_sock_accept(listener);
		ready.fd = fd;
		poll(&ready, 1, 5000);
		if (local_sock_receive(fd, text, sizeof text, &passed) == 1 &&
		    local_sock_send(fd, "ptcp-share 1 9", -1))
			poll(NULL, 0, 200);
		_exit(0);
	}
	close(listener);
	assert_int_equal(port_lease_new(&p, &o, &e), 0);
	waitpid(pid, NULL, 0);
	return p;
}

static bool has_label(void *arg)
{
	(void)arg;
	return t.labels > 0;
}

/* A service that ends and starts again: the label stays the same, and connections arrive. */
static void a_lease_outlives_the_service(void **state)
{
	struct taken k = { .any = false };
	struct port_lease *p;

	(void)state;
	begin(32, 1024);
	port_share_free(t.share);
	p = lease(&k);
	assert_int_equal(port_lease_port(p), 9);
	assert_true(client_hello_label_ok(port_lease_label(p)));
	port_lease_release(p);
	share(32, 1024);
	assert_true(nf_await(t.loop, has_label, NULL));
	assert_int_equal(t.labels, 1);
	assert_int_equal(port_lease_port(p), PORT);
	assert_int_equal(lend(port_lease_label(p)), INBOUND_LENT);
	assert_true(nf_run_until(t.loop, &k.any, 2000));
	close(k.fd);
	port_lease_free(p);
	turns();
	assert_int_equal(t.labels, 0);
	finish();
}

static void no_service(void **state)
{
	struct port_lease_opts o = { .path = nf_path("none"), .log = &t.log };
	struct port_lease *p;
	struct ptcp_err e;
	int listener;

	(void)state;
	begin(1, 4);
	port_share_free(t.share);
	o.loop = t.loop;
	assert_int_equal(port_lease_new(&p, &o, &e), PTCP_ECONNECT);
	/* one that does not answer */
	assert_int_equal(local_sock_listen(&listener, nf_path("none"), 0666, &e), 0);
	assert_int_equal(port_lease_new(&p, &o, &e), PTCP_ECONNECT);
	assert_non_null(strstr(e.msg, "no answer"));
	close(listener);
	loop_free(t.loop);
}

int main(void)
{
	unsetenv(ADMISSION_PATIENCE); /* tests wait for the limits */
	const struct CMUnitTest tests[] = {
		nf_test(passes_connections), nf_test(dies_at_once), nf_test(labels_of_others), nf_test(malformed),
		nf_test(too_many), nf_test(another_user), nf_test(takes_nothing), nf_test(takes_everything),
		nf_test(takes_nothing_often), nf_test(silent_and_fast), nf_test(a_lease_outlives_the_service),
		nf_test(no_service),
	};

	return cmocka_run_group_tests_name("server/port_share", tests, NULL, NULL);
}
