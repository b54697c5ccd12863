/* What the kernel tells of connections over loopback. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "net/tcpinfo.h"

static int client, server;

static int connect_both(void **state)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof a;
	int l = socket(AF_INET, SOCK_STREAM, 0), size = 8192;

	(void)state;
	client = socket(AF_INET, SOCK_STREAM, 0);
	if (setsockopt(l, SOL_SOCKET, SO_RCVBUF, &size, sizeof size) < 0 ||
	    bind(l, (struct sockaddr *)&a, sizeof a) < 0 || listen(l, 1) < 0 ||
	    getsockname(l, (struct sockaddr *)&a, &n) < 0 ||
	    connect(client, (struct sockaddr *)&a, sizeof a) < 0)
		return -1;
	server = accept(l, NULL, NULL);
	close(l);
	return server < 0 ? -1 : 0;
}

static int close_both(void **state)
{
	(void)state;
	close(client);
	close(server);
	return 0;
}

static void counts_what_is_acknowledged(void **state)
{
	char bytes[4096] = "", got[4096];
	struct tcpinfo before, after;
	struct timespec nap = { 0, 1000000 };
	int i;

	(void)state;
	assert_int_equal(setsockopt(client, IPPROTO_TCP, TCP_CONGESTION, "reno", 4), 0);
	assert_int_equal(tcpinfo_read(&before, client), 0);
	assert_string_equal(before.congestion, "reno");
	assert_int_equal(write(client, bytes, sizeof bytes), sizeof bytes);
	assert_int_equal(recv(server, got, sizeof got, MSG_WAITALL), sizeof got);
	for (i = 0; i < 1000; i++) {
		assert_int_equal(tcpinfo_read(&after, client), 0);
		if (after.acked_bytes - before.acked_bytes == sizeof bytes)
			break;
		nanosleep(&nap, NULL);
	}
	assert_int_equal(after.acked_bytes - before.acked_bytes, sizeof bytes);
	assert_int_equal(after.retransmits, 0);
	assert_true(after.rtt_s > 0 && after.rtt_s < 1);
}

/* Who does not read holds the sender up by its window, and the sender is busy meanwhile. */
static void tells_who_holds_it_up(void **state)
{
	static char bytes[65536];
	struct timespec nap = { 0, 300000000 };
	struct tcpinfo i;

	(void)state;
	while (send(client, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
		;
	nanosleep(&nap, NULL);
	assert_int_equal(tcpinfo_read(&i, client), 0);
	assert_true(i.busy_s > 0.2);
	assert_true(i.window_s > 0.2);
	assert_true(i.window_s <= i.busy_s);
}

static void only_tcp(void **state)
{
	int pair[2];
	struct tcpinfo i = { .retransmits = 42 };

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(tcpinfo_read(&i, pair[0]), -1);
	assert_int_equal(i.retransmits, 42);
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(counts_what_is_acknowledged, connect_both, close_both),
		cmocka_unit_test_setup_teardown(tells_who_holds_it_up, connect_both, close_both),
		cmocka_unit_test(only_tcp),
	};
	return cmocka_run_group_tests_name("net/tcpinfo", tests, NULL, NULL);
}
