/* Two pipes made into a socket: everything is carried, ends are noticed, descriptors are as they were. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/bridge.h"
#include "patience.h"

#define MUCH (3u << 20)

static struct {
	struct loop *loop;
	struct bridge *bridge;
	int in[2], out[2], fd;
	bool ended;
} fx;

static void on_ended(void *arg)
{
	(void)arg;
	assert_false(fx.ended);
	fx.ended = true;
}

static void begin(void)
{
	memset(&fx, 0, sizeof fx);
	assert_int_equal(pipe(fx.in), 0);
	assert_int_equal(pipe(fx.out), 0);
	assert_int_equal(loop_new(&fx.loop, NULL), 0);
	assert_int_equal(bridge_new(&fx.bridge, fx.loop, fx.in[0], fx.out[1], &fx.fd, on_ended, NULL, NULL), 0);
	fcntl(fx.in[1], F_SETFL, O_NONBLOCK);
	fcntl(fx.out[0], F_SETFL, O_NONBLOCK);
}

static void end(void)
{
	bridge_free(fx.bridge);
	assert_int_equal(fcntl(fx.in[0], F_GETFL) & O_NONBLOCK, 0);
	close(fx.fd);
	close(fx.in[0]);
	if (fx.in[1] >= 0)
		close(fx.in[1]);
	if (fx.out[0] >= 0)
		close(fx.out[0]);
	close(fx.out[1]);
	loop_free(fx.loop);
}

static void both_ways(void **state)
{
	size_t sent = 0, got = 0, sent_back = 0, got_back = 0;
	struct mono from = mono_now();

	(void)state;
	begin();
	while (got < MUCH || got_back < MUCH) {
		nf_move(fx.in[1], fx.fd, MUCH, &sent, &got);
		if (got > MUCH / 2) /* one way does not wait for the other */
			nf_move(fx.fd, fx.out[0], MUCH, &sent_back, &got_back);
		loop_run_once(fx.loop, false);
		assert_true(mono_diff_ns(mono_now(), from) < patience_s(20) * NS_PER_S);
	}
	assert_false(fx.ended);
	end();
}

static void input_ends(void **state)
{
	char got[16];

	(void)state;
	begin();
	assert_int_equal(write(fx.in[1], "last", 4), 4);
	close(fx.in[1]);
	fx.in[1] = -1;
	assert_true(nf_run_until(fx.loop, &fx.ended, 2000));
	assert_int_equal(read(fx.fd, got, sizeof got), 4); /* first what there was, */
	assert_int_equal(read(fx.fd, got, sizeof got), 0); /* then the end */
	assert_int_equal(write(fx.fd, "word", 4), 4);      /* the other way is open still */
	nf_settle(fx.loop);
	assert_int_equal(read(fx.out[0], got, sizeof got), 4);
	end();
}

static void nobody_reads(void **state)
{
	(void)state;
	begin();
	close(fx.out[0]);
	fx.out[0] = -1;
	assert_int_equal(write(fx.fd, "word", 4), 4);
	assert_true(nf_run_until(fx.loop, &fx.ended, 2000));
	end();
}

static void the_last_word(void **state)
{
	char got[16];

	(void)state;
	begin();
	assert_int_equal(write(fx.fd, "why", 3), 3);
	bridge_free(fx.bridge);
	fx.bridge = NULL;
	assert_int_equal(read(fx.out[0], got, sizeof got), 3);
	end();
}

static void no_pipes(void **state)
{
	int file, fd = -1;
	struct ptcp_err e;

	(void)state;
	begin();
	bridge_free(fx.bridge);
	nf_write("file", "x", 0600);
	file = open(nf_path("file"), O_RDONLY);
	assert_int_equal(bridge_new(&fx.bridge, fx.loop, file, fx.out[1], &fd, on_ended, NULL, &e), PTCP_EUSAGE);
	assert_int_equal(fd, -1);
	fx.bridge = NULL;
	close(file);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		nf_test(both_ways),
		nf_test(input_ends),
		nf_test(nobody_reads),
		nf_test(the_last_word),
		nf_test(no_pipes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
