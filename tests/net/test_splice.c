/* Two sockets made one: everything is carried, in both directions, with back-pressure; ends, failures and
 * silence end it as they should. */
#include "fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/splice.h"

#define MUCH (6u << 20)

static struct {
	struct loop *loop;
	struct splice *splice;
	int end[2];          /* of the two connections, the far ones */
	bool ended;
	struct ptcp_err why; /* code 0: none */
} fx;

static void on_ended(void *arg, const struct ptcp_err *why)
{
	(void)arg;
	assert_false(fx.ended);
	fx.ended = true;
	if (why != NULL)
		fx.why = *why;
}

/* Two ends of a TCP connection. */
static void connected(int out[2])
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof a;
	int ls = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(ls, (struct sockaddr *)&a, sizeof a), 0);
	assert_int_equal(listen(ls, 1), 0);
	assert_int_equal(getsockname(ls, (struct sockaddr *)&a, &n), 0);
	out[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(out[0], (struct sockaddr *)&a, sizeof a), 0);
	out[1] = accept4(ls, NULL, NULL, SOCK_CLOEXEC);
	assert_true(out[1] >= 0);
	close(ls);
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	fcntl(out[1], F_SETFL, O_NONBLOCK);
}

static void begin(uint64_t idle_ns)
{
	int a[2], b[2];

	memset(&fx, 0, sizeof fx);
	connected(a);
	connected(b);
	fx.end[0] = a[0];
	fx.end[1] = b[0];
	assert_int_equal(loop_new(&fx.loop, NULL), 0);
	assert_int_equal(splice_new(&fx.splice, fx.loop, a[1], b[1], idle_ns, on_ended, NULL, NULL), 0);
}

static void end(void)
{
	int i;

	splice_free(fx.splice);
	for (i = 0; i < 2; i++)
		if (fx.end[i] >= 0)
			close(fx.end[i]);
	loop_free(fx.loop);
}

static void both_ways(void **state)
{
	size_t sent = 0, got = 0, sent_back = 0, got_back = 0;
	struct mono from = mono_now();

	(void)state;
	begin(NS_PER_S * 60);
	while (got < MUCH || got_back < MUCH) {
		nf_move(fx.end[0], fx.end[1], MUCH, &sent, &got);
		if (got > MUCH / 2) /* one way does not wait for the other */
			nf_move(fx.end[1], fx.end[0], MUCH, &sent_back, &got_back);
		loop_turn(fx.loop, false);
		assert_true(mono_diff_ns(mono_now(), from) < 20 * NS_PER_S);
	}
	assert_int_equal(splice_bytes(fx.splice), 2 * MUCH);
	assert_false(fx.ended);
	end();
}

/* The end of one direction leaves the other open; both ends make it an end. */
static void ends_are_carried_on(void **state)
{
	char got[16];

	(void)state;
	begin(NS_PER_S * 60);
	assert_int_equal(write(fx.end[0], "last", 4), 4);
	shutdown(fx.end[0], SHUT_WR);
	nf_run_for(fx.loop, 30);
	assert_int_equal(read(fx.end[1], got, sizeof got), 4);
	assert_int_equal(read(fx.end[1], got, sizeof got), 0);
	assert_false(fx.ended);
	assert_int_equal(write(fx.end[1], "answer", 6), 6);
	nf_run_for(fx.loop, 30);
	assert_int_equal(read(fx.end[0], got, sizeof got), 6);
	shutdown(fx.end[1], SHUT_WR);
	assert_true(nf_run_until(fx.loop, &fx.ended, 2000));
	assert_int_equal(fx.why.code, 0);
	assert_int_equal(read(fx.end[0], got, sizeof got), 0);
	end();
}

/* Who does not read is not read for: what one side may send then is what sockets and a pipe hold. */
static void back_pressure(void **state)
{
	static uint8_t p[100000];
	int small = 65536;
	size_t sent = 0, before;
	ssize_t n;
	int i;

	(void)state;
	begin(NS_PER_S * 60);
	setsockopt(fx.end[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
	setsockopt(fx.end[1], SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
	do {
		before = sent;
		for (i = 0; i < 20; i++) {
			while ((n = send(fx.end[0], p, sizeof p, MSG_NOSIGNAL)) > 0)
				sent += (size_t)n;
			nf_run_for(fx.loop, 10);
		}
		assert_true(sent < 64u << 20);
	} while (sent > before);
	assert_true(sent > 0);
	while (splice_bytes(fx.splice) < sent) { /* and when it reads, it goes on */
		while (read(fx.end[1], p, sizeof p) > 0)
			;
		loop_turn(fx.loop, false);
	}
	assert_false(fx.ended);
	end();
}

static void a_reset_ends_it(void **state)
{
	struct linger hard = { 1, 0 };
	char got[4];

	(void)state;
	begin(NS_PER_S * 60);
	setsockopt(fx.end[0], SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
	close(fx.end[0]);
	fx.end[0] = -1;
	assert_true(nf_run_until(fx.loop, &fx.ended, 2000));
	assert_int_equal(fx.why.code, PTCP_EPEER);
	splice_free(fx.splice);
	fx.splice = NULL;
	assert_int_equal(read(fx.end[1], got, sizeof got), 0);
	end();
}

static void silence_ends_it(void **state)
{
	struct mono from = mono_now();
	int i;

	(void)state;
	begin(NS_PER_S / 5);
	for (i = 0; i < 10; i++) { /* any byte is life */
		assert_int_equal(write(fx.end[0], "x", 1), 1);
		nf_run_for(fx.loop, 50);
		assert_false(fx.ended);
	}
	assert_true(nf_run_until(fx.loop, &fx.ended, 2000));
	assert_int_equal(fx.why.code, PTCP_ETIMEOUT);
	assert_true(mono_diff_ns(mono_now(), from) > NS_PER_S / 2);
	end();
}

static void without_descriptors(void **state)
{
	struct rlimit was, few;
	int pair[2], other[2];
	struct loop *l;
	struct splice *s;
	struct ptcp_err e;
	char got[1];

	(void)state;
	connected(pair);
	connected(other);
	assert_int_equal(loop_new(&l, NULL), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = was;
	few.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(splice_new(&s, l, pair[1], other[1], NS_PER_S, on_ended, NULL, &e), PTCP_EIO);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(read(pair[0], got, 1), 0); /* they are closed all the same */
	close(pair[0]);
	close(other[0]);
	loop_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		nf_test(both_ways),
		nf_test(ends_are_carried_on),
		nf_test(back_pressure),
		nf_test(a_reset_ends_it),
		nf_test(silence_ends_it),
		nf_test(without_descriptors),
	};

	return cmocka_run_group_tests_name("net/splice", tests, NULL, NULL);
}
