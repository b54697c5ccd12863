#include "net/sock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"

static void classes_of_service(void **state)
{
	static const struct {
		const char *text;
		int dscp;
	} cases[] = { { "le", 1 }, { "LE", 1 }, { "df", 0 }, { "va", 44 }, { "EF", 46 }, { "cs0", 0 }, { "CS7", 56 },
		{ "af11", 10 }, { "af43", 38 }, { "AF22", 20 }, { "0", 0 }, { "63", 63 }, { "46", 46 }, { "07", 7 },
		{ "64", -1 }, { "", -1 }, { "-1", -1 }, { "+1", -1 }, { " 1", -1 }, { "1 ", -1 }, { "1x", -1 },
		{ "cs8", -1 }, { "cs", -1 }, { "cs10", -1 }, { "af10", -1 }, { "af14", -1 }, { "af51", -1 },
		{ "af01", -1 }, { "af111", -1 }, { "af1", -1 }, { "l", -1 }, { "lee", -1 }, { "4294967297", -1 } };
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++)
		if (sock_dscp(cases[i].text) != cases[i].dscp)
			fail_msg("'%s': %d", cases[i].text, sock_dscp(cases[i].text));
}

static int tos_of(int fd, int level, int name)
{
	int tos = -1;
	socklen_t n = sizeof tos;

	assert_int_equal(getsockopt(fd, level, name, &tos, &n), 0);
	return tos;
}

/* A connection from `local`, marked, to a listening socket of this address; the accepted socket. */
static int connected(const char *address, unsigned dscp, const char *local, int *client)
{
	struct sockaddr_storage sa = { 0 };
	struct sockaddr_in *v4 = (struct sockaddr_in *)&sa;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&sa;
	bool six = strchr(address, ':') != NULL;
	socklen_t n = six ? sizeof *v6 : sizeof *v4;
	int listening = socket(six ? AF_INET6 : AF_INET, SOCK_STREAM, 0), accepted;

	sa.ss_family = six ? AF_INET6 : AF_INET;
	assert_int_equal(inet_pton(sa.ss_family, address, six ? (void *)&v6->sin6_addr : (void *)&v4->sin_addr), 1);
	assert_int_equal(bind(listening, (struct sockaddr *)&sa, n), 0);
	assert_int_equal(listen(listening, 1), 0);
	sock_keep_marks(listening);
	assert_int_equal(getsockname(listening, (struct sockaddr *)&sa, &n), 0);
	*client = socket(sa.ss_family, SOCK_STREAM, 0);
	if (local != NULL)
		assert_int_equal(sock_leave_from(*client, local), 0);
	sock_mark(*client, dscp);
	assert_int_equal(connect(*client, (struct sockaddr *)&sa, n), 0);
	assert_true((accepted = accept(listening, NULL, NULL)) >= 0);
	close(listening);
	return accepted;
}

static void marks(void **state)
{
	static const char *const addresses[] = { "127.0.0.1", "::1" };
	const struct sock_opts o = { .timeout_ns = 1000000000, .dscp = 46 };
	int client, accepted, level, name;
	unsigned dscp, i;

	(void)state;
	for (i = 0; i < 2; i++) {
		bool six = addresses[i][0] == ':';

		if (six && access("/proc/net/if_inet6", F_OK) < 0)
			continue;
		level = six ? IPPROTO_IPV6 : IPPROTO_IP;
		name = six ? IPV6_TCLASS : IP_TOS;
		for (dscp = 0; dscp <= SOCK_DSCP_MAX; dscp++) {
			accepted = connected(addresses[i], dscp, NULL, &client);
			assert_int_equal(tos_of(client, level, name) >> 2, dscp);
			assert_int_equal(sock_answer_mark(accepted), dscp == SOCK_DSCP_LE ? SOCK_DSCP_LE : 0);
			assert_int_equal(sock_answer_mark(accepted), 0);
			close(client);
			close(accepted);
		}
		accepted = connected(addresses[i], 0, NULL, &client);
		assert_int_equal(sock_tune(accepted, &o, NULL), 0);
		assert_int_equal(tos_of(accepted, level, name) >> 2, 46);
		close(client);
		close(accepted);
	}
	assert_int_equal(sock_answer_mark(-1), 0);
}

static void local_ends(void **state)
{
	struct sockaddr_in from;
	socklen_t n = sizeof from;
	struct ptcp_err e;
	int client, accepted;

	(void)state;
	assert_int_equal(sock_local_family("127.0.0.1", &e), 4);
	assert_int_equal(sock_local_family("::1", &e), 6);
	assert_int_equal(sock_local_family("lo", &e), 0);
	assert_int_equal(sock_local_family("no0", &e), PTCP_EUSAGE);
	assert_non_null(strstr(e.msg, "'no0' is neither"));
	assert_int_equal(sock_local_family("", &e), PTCP_EUSAGE);
	assert_int_equal(sock_local_family("localhost", &e), PTCP_EUSAGE);
	accepted = connected("127.0.0.1", 0, "127.0.0.9", &client);
	assert_int_equal(getpeername(accepted, (struct sockaddr *)&from, &n), 0);
	assert_int_equal(ntohl(from.sin_addr.s_addr), 0x7f000009);
	close(accepted);
	close(client);
	client = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(sock_leave_from(client, "192.0.2.1"), EADDRNOTAVAIL);
	assert_int_equal(sock_leave_from(client, "no0"), ENODEV);
	close(client);
	client = -1;
	accepted = connected("127.0.0.1", 0, "lo", &client);
	close(accepted);
	close(client);
}

static void split(void **state)
{
	static const struct {
		const char *text, *host;
		unsigned port;
	} good[] = {
		{ "h", "h", 9 }, { "h:1", "h", 1 }, { "h:65535", "h", 65535 }, { "h:0", "h", 0 },
		{ "h:080", "h", 80 }, { ":80", "", 80 }, { "", "", 9 }, { "1.2.3.4:5", "1.2.3.4", 5 },
		{ "::1", "::1", 9 }, { "[::1]", "::1", 9 }, { "[::1]:5", "::1", 5 }, { "::", "::", 9 },
		{ "[fe80::1%eth0]:5", "fe80::1%eth0", 5 }, { "fe80::1%eth0", "fe80::1%eth0", 9 },
		{ "::ffff:1.2.3.4", "::ffff:1.2.3.4", 9 }, { "[]:5", "", 5 },
	};
	static const char *const bad[] = { "h:", "h:65536", "h:-1", "h:+1", "h: 1", "h:1 ", "h:1x", "h:x",
		"h:99999999999999999999", "h:4294967297", "h:18446744073709551617", "[::1", "[::1]x", "[::1]:",
		"[::1]5", "[::1]:5:6", "[::1]::5", "h:0x10", "h:1\n" };
	char host[SOCK_HOST_BYTES], text[SOCK_HOST_BYTES + 20];
	struct ptcp_err e;
	unsigned port;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof good / sizeof *good; i++) {
		assert_int_equal(sock_split(good[i].text, host, &port, 9, &e), 0);
		assert_string_equal(host, good[i].host);
		assert_int_equal(port, good[i].port);
	}
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		strcpy(host, "untouched");
		assert_int_equal(sock_split(bad[i], host, &port, 9, &e), PTCP_EUSAGE);
		assert_string_equal(host, "untouched");
	}
	memset(text, 'x', sizeof text);
	text[SOCK_HOST_BYTES - 1] = '\0';
	assert_int_equal(sock_split(text, host, &port, 9, &e), 0);
	text[SOCK_HOST_BYTES - 1] = 'x';
	text[SOCK_HOST_BYTES] = '\0';
	assert_int_equal(sock_split(text, host, &port, 9, &e), PTCP_EUSAGE);
	assert_int_equal(sock_split("a\033[31m:x", host, &port, 9, &e), PTCP_EUSAGE);
	assert_null(strchr(e.msg, '\033'));
}

static void join(void **state)
{
	char out[SOCK_HOST_BYTES + 10], host[SOCK_HOST_BYTES];
	unsigned port;

	(void)state;
	sock_join(out, sizeof out, "::1", 5);
	assert_string_equal(out, "[::1]:5");
	sock_join(out, sizeof out, "h", 65535);
	assert_string_equal(out, "h:65535");
	assert_int_equal(sock_split(out, host, &port, 9, NULL), 0); /* and back */
	assert_string_equal(host, "h");
	sock_join(out, 5, "longer", 5);
	assert_string_equal(out, "long");
}

static void address_text(void **state)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT,
		.sin6_port = htons(7) };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(65535),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr odd = { .sa_family = AF_UNIX };
	char out[SOCK_TEXT_BYTES];

	(void)state;
	sock_address_text(out, (struct sockaddr *)&six, sizeof six);
	assert_string_equal(out, "[::1]:7");
	sock_address_text(out, (struct sockaddr *)&four, sizeof four);
	assert_string_equal(out, "127.0.0.1:65535");
	sock_address_text(out, &odd, 1);
	assert_true(strlen(out) < sizeof out);
	memset(&six.sin6_addr, 0xfe, sizeof six.sin6_addr); /* the longest */
	six.sin6_port = htons(65535);
	sock_address_text(out, (struct sockaddr *)&six, sizeof six);
	assert_string_equal(out, "[fefe:fefe:fefe:fefe:fefe:fefe:fefe:fefe]:65535");
}

static int option(int fd, int level, int name)
{
	int v = -1;
	socklen_t n = sizeof v;

	assert_int_equal(getsockopt(fd, level, name, &v, &n), 0);
	return v;
}

static void tune(void **state)
{
	struct sock_opts o = { .timeout_ns = 30 * NS_PER_S };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), pair[2];
	struct ptcp_err e;

	(void)state;
	assert_int_equal(sock_tune(fd, &o, &e), 0);
	assert_int_not_equal(option(fd, IPPROTO_TCP, TCP_NODELAY), 0);
	assert_int_not_equal(option(fd, SOL_SOCKET, SO_KEEPALIVE), 0);
	assert_int_equal(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 30000);
	assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 10);
	o.timeout_ns = 100 * NS_PER_MS;
	assert_int_equal(sock_tune(fd, &o, &e), 0);
	assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 1);
	assert_int_equal(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 100);
	o.congestion = "no-such-thing";
	assert_int_equal(sock_tune(fd, &o, &e), PTCP_EUSAGE);
	assert_non_null(strstr(e.msg, "no-such-thing"));
	assert_int_equal(sock_set_congestion(fd, "no-such-thing"), ENOENT);
	assert_int_equal(sock_set_congestion(fd, "reno"), 0);
	assert_true(sock_permits_congestion("reno"));
	assert_false(sock_permits_congestion("no-such-thing"));
	close(fd);
	o.congestion = NULL;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(sock_tune(pair[0], &o, &e), 0); /* what cannot be set is left */
	close(pair[0]);
	close(pair[1]);
}

/* ---- TCP_INFO over loopback ---- */

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
	assert_true(after.delivered_bytes - before.delivered_bytes >= sizeof bytes);
	assert_true(after.sent_segments > before.sent_segments);
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

/* Increases of a counter between reports sum to its increase, whenever the reports arrive. */
static void between_two_reports(void **state)
{
	const struct tcpinfo a = { .acked_bytes = 1000, .received_bytes = 7, .sent_segments = 10,
		.busy_s = 1, .rtt_s = 0.5 },
	    b = { .acked_bytes = 3000, .received_bytes = 7, .sent_segments = 30, .retransmits = 4,
	    .busy_s = 2, .rtt_s = 0.25 };
	struct tcpinfo out;

	(void)state;
	tcpinfo_between(&out, &a, &b, 0);
	assert_true(out.acked_bytes == 1000 && out.sent_segments == 10 && out.retransmits == 0 && out.busy_s == 1);
	tcpinfo_between(&out, &a, &b, 0.25);
	assert_true(out.acked_bytes == 1500 && out.received_bytes == 7 && out.sent_segments == 15 &&
	    out.retransmits == 1);
	assert_true(out.busy_s == 1.25 && out.rtt_s == 0.25);
	tcpinfo_between(&out, &a, &b, 1);
	assert_true(out.acked_bytes == 3000 && out.sent_segments == 30 && out.retransmits == 4 && out.busy_s == 2);
	tcpinfo_between(&out, &b, &a, 0.5); /* another connection */
	assert_int_equal(out.acked_bytes, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = { nf_test(split), nf_test(join), nf_test(address_text),
		nf_test(tune), nf_test(classes_of_service), nf_test(marks), nf_test(local_ends),
		cmocka_unit_test_setup_teardown(counts_what_is_acknowledged, connect_both, close_both),
		cmocka_unit_test_setup_teardown(tells_who_holds_it_up, connect_both, close_both),
		cmocka_unit_test(only_tcp), cmocka_unit_test(between_two_reports) };
	return cmocka_run_group_tests_name("net/sock", tests, NULL, NULL);
}
