/* Two sockets made one: everything is carried, in both directions, with back-pressure or held on disk; ends, failures
 * and silence end it as they should. */
#include "fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/splice_impl.h" /* to have the disk push back */
#include "patience.h"

#define MUCH (6u << 20)

static struct {
	struct loop *loop;
	struct splice *splice;
	int end[2];          /* of the two connections, the far ones */
	bool ended;
	struct ptcp_err why; /* code 0: none */
	struct spool_quota room;
	struct splice_spool hold;
	unsigned n_elsewhere;
	bool gone;
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

static void begin_held(uint64_t idle_ns, const struct splice_spool *hold)
{
	struct splice_opts o;
	int a[2], b[2];

	connected(a);
	connected(b);
	fx.end[0] = a[0];
	fx.end[1] = b[0];
	assert_int_equal(loop_new(&fx.loop, NULL), 0);
	o = (struct splice_opts){ .idle_ns = idle_ns, .spool = hold, .ended = on_ended };
	assert_int_equal(splice_new(&fx.splice, fx.loop, (int[]){ a[1], b[1] }, &o, NULL), 0);
}

static void begin(uint64_t idle_ns)
{
	memset(&fx, 0, sizeof fx);
	begin_held(idle_ns, NULL);
}

static void *run_job(void *arg)
{
	struct splice_job *job = arg;

	nf_sleep_ms(2); /* a disk */
	job->run(job);
	return NULL;
}

static void elsewhere(void *arg, struct splice_job *job)
{
	pthread_t t;

	(void)arg;
	fx.n_elsewhere++;
	assert_int_equal(pthread_create(&t, NULL, run_job, job), 0);
	pthread_detach(t);
}

/* It may hold so much of either direction. */
static void begin_holding(uint64_t most, uint64_t idle_ns, uint64_t held_idle_ns)
{
	memset(&fx, 0, sizeof fx);
	fx.room.max_bytes = most;
	fx.hold = (struct splice_spool){ .dir = nf_dir, .quota = &fx.room, .idle_ns = held_idle_ns,
	    .submit = elsewhere };
	begin_held(idle_ns, &fx.hold);
}

static void end(void)
{
	int i;

	splice_free(fx.splice, NULL, NULL);
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
		loop_run_once(fx.loop, false);
		assert_true(mono_diff_ns(mono_now(), from) < patience_s(20) * NS_PER_S);
	}
	assert_int_equal(splice_bytes(fx.splice), 2 * MUCH);
	assert_false(fx.ended);
	end();
}

static bool is_readable(void *arg)
{
	struct pollfd p = { .fd = fx.end[*(const int *)arg], .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* Data, or the end, at that far end. */
static void await_readable(int end)
{
	assert_true(nf_await(fx.loop, is_readable, &end));
}

/* The end of one direction leaves the other open; both ends make it an end. */
static void ends_are_carried_on(void **state)
{
	char got[16];

	(void)state;
	begin(NS_PER_S * 60);
	assert_int_equal(write(fx.end[0], "last", 4), 4);
	shutdown(fx.end[0], SHUT_WR);
	await_readable(1);
	assert_int_equal(read(fx.end[1], got, sizeof got), 4);
	await_readable(1);
	assert_int_equal(read(fx.end[1], got, sizeof got), 0);
	assert_false(fx.ended);
	assert_int_equal(write(fx.end[1], "answer", 6), 6);
	await_readable(0);
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

	(void)state;
	begin(NS_PER_S * 60);
	setsockopt(fx.end[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
	setsockopt(fx.end[1], SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
	do {
		before = sent;
		while ((n = send(fx.end[0], p, sizeof p, MSG_NOSIGNAL)) > 0)
			sent += (size_t)n;
		nf_run_for(fx.loop, 100);
		assert_true(sent < 64u << 20);
	} while (sent > before);
	assert_true(sent > 0);
	while (splice_bytes(fx.splice) < sent) { /* and when it reads, it goes on */
		while (read(fx.end[1], p, sizeof p) > 0)
			;
		loop_run_once(fx.loop, false);
	}
	assert_false(fx.ended);
	end();
}

/* What one side sends: at most so much. */
struct filled {
	size_t most, sent;
};

static void put(struct filled *f)
{
	while (nf_put(fx.end[0], f->most, &f->sent))
		;
}

static bool all_sent(void *arg)
{
	struct filled *f = arg;

	put(f);
	return f->sent == f->most;
}

static void fill(size_t n)
{
	struct filled f = { n, 0 };

	assert_true(nf_await(fx.loop, all_sent, &f));
}

static bool room_is_full(void *arg)
{
	put(arg);
	return fx.room.used_bytes == fx.room.max_bytes;
}

/* Sends until the room is full, and then until nothing more is taken for a while: this much. */
static size_t fill_room(void)
{
	struct filled f = { SIZE_MAX, 0 };
	size_t before;

	assert_true(nf_await(fx.loop, room_is_full, &f));
	do {
		before = f.sent;
		nf_run_for(fx.loop, 100);
		put(&f);
	} while (f.sent > before);
	return f.sent;
}

static bool ends_without_a_place(void *arg)
{
	if (!fx.ended)
		put(arg);
	return fx.ended;
}

/* Reads it all, in order. */
static void drain(size_t n)
{
	struct mono from = mono_now();
	size_t got = 0;

	while (got < n) {
		loop_run_once(fx.loop, false);
		nf_take(fx.end[1], &got);
		assert_true(mono_diff_ns(mono_now(), from) < patience_s(20) * NS_PER_S);
	}
	assert_int_equal(got, n);
}

static bool has_stored(void *arg) { return splice_spooled_bytes(fx.splice) > *(const uint64_t *)arg; }

static bool nothing_stored(void *arg)
{
	(void)arg;
	return splice_spooled_bytes(fx.splice) == 0 && fx.room.used_bytes == 0;
}

/* What it stored is gone from the disk, and so is its share of the room. */
static void becomes_empty(void)
{
	assert_true(nf_await(fx.loop, nothing_stored, NULL));
	assert_false(fx.ended);
}

/* The sender is done while the next hop has read nothing; then all comes, and the end behind it. */
static void stored(void **state)
{
	char got[1];

	(void)state;
	begin_holding(256u << 20, 60 * NS_PER_S, 60 * NS_PER_S);
	fill(64u << 20);
	shutdown(fx.end[0], SHUT_WR);
	assert_true(nf_await(fx.loop, has_stored, &(uint64_t){ 32u << 20 })); /* sockets hold less than that */
	assert_true(splice_total_spooled_bytes(fx.splice) >= splice_spooled_bytes(fx.splice));
	assert_true(fx.room.used_bytes >= splice_spooled_bytes(fx.splice));
	drain(64u << 20);
	await_readable(1);
	assert_int_equal(read(fx.end[1], got, 1), 0);
	becomes_empty();
	shutdown(fx.end[1], SHUT_WR);
	assert_true(nf_run_until(fx.loop, &fx.ended, 2000));
	assert_int_equal(fx.why.code, 0);
	assert_int_equal(nf_count_files(), 0);
	end();
}

/* The other direction does not wait, and after that it is as if nothing had been held. */
static void past_the_file_again(void **state)
{
	size_t sent = 0, got = 0, sent_back = 0, got_back = 0;
	struct mono from = mono_now();
	uint64_t before;

	(void)state;
	begin_holding(256u << 20, 60 * NS_PER_S, 60 * NS_PER_S);
	fill(32u << 20);
	while (got_back < MUCH) {
		nf_move(fx.end[1], fx.end[0], MUCH, &sent_back, &got_back);
		loop_run_once(fx.loop, false);
	}
	drain(32u << 20);
	becomes_empty();
	before = splice_total_spooled_bytes(fx.splice);
	while (got < MUCH) {
		nf_move(fx.end[0], fx.end[1], MUCH, &sent, &got);
		loop_run_once(fx.loop, false);
		assert_true(mono_diff_ns(mono_now(), from) < patience_s(20) * NS_PER_S);
	}
	assert_true(splice_total_spooled_bytes(fx.splice) - before < MUCH);
	end();
}

/* A full room is back-pressure; what it has goes on when the next hop reads. */
static void full(void **state)
{
	size_t sent;

	(void)state;
	begin_holding(8u << 20, 60 * NS_PER_S, 60 * NS_PER_S);
	sent = fill_room();
	assert_true(sent < 256u << 20);
	assert_true(fx.room.used_bytes == 8u << 20 && splice_spooled_bytes(fx.splice) <= 8u << 20);
	drain(sent);
	becomes_empty();
	end();
}

/* While the disk pushes back the loop goes on, and other threads write; nothing changes places. */
static void a_slow_disk(void **state)
{
	const size_t all = 24u << 20;
	size_t sent = 0, got = 0;
	struct mono from = mono_now();
	unsigned i;

	(void)state;
	begin_holding(64u << 20, 60 * NS_PER_S, 60 * NS_PER_S);
	fx.splice->slow_until = mono_add_ns(from, 60 * NS_PER_S);
	for (i = 0; got < all; i++) {
		if (sent < all)
			nf_put(fx.end[0], all, &sent);
		if (sent == all || i % 3 == 0) /* reads less than is sent */
			nf_take(fx.end[1], &got);
		loop_run_once(fx.loop, false);
		assert_true(mono_diff_ns(mono_now(), from) < patience_s(60) * NS_PER_S);
	}
	assert_true(fx.n_elsewhere > 0 && splice_total_spooled_bytes(fx.splice) > 0);
	becomes_empty();
	end();
}

static void on_gone(void *arg)
{
	(void)arg;
	fx.gone = true;
}

/* Freed while another thread still writes for it. */
static void freed_meanwhile(void **state)
{
	size_t sent = 0;

	(void)state;
	begin_holding(64u << 20, 60 * NS_PER_S, 60 * NS_PER_S);
	fx.splice->slow_until = mono_add_ns(mono_now(), 60 * NS_PER_S);
	while (fx.n_elsewhere == 0 || !fx.splice->lane[0].write.submitted) {
		nf_put(fx.end[0], SIZE_MAX, &sent);
		loop_run_once(fx.loop, false);
	}
	splice_free(fx.splice, on_gone, NULL);
	fx.splice = NULL;
	assert_true(nf_run_until(fx.loop, &fx.gone, 5000));
	assert_int_equal(fx.room.used_bytes, 0);
	end();
}

/* What is held may wait for longer, and not for ever; once it has gone, silence is silence. */
static void waits_while_it_holds(void **state)
{
	struct mono from = mono_now();

	(void)state;
	begin_holding(256u << 20, NS_PER_S / 2, 2 * NS_PER_S);
	fill(32u << 20);
	assert_true(nf_run_until(fx.loop, &fx.ended, 10000));
	assert_int_equal(fx.why.code, PTCP_ETIMEOUT);
	assert_true(mono_diff_ns(mono_now(), from) > 2 * NS_PER_S);
	end();
	begin_holding(256u << 20, NS_PER_S / 2, 3600 * NS_PER_S);
	fill(32u << 20);
	assert_false(fx.ended);
	drain(32u << 20);
	assert_true(nf_run_until(fx.loop, &fx.ended, 10000));
	assert_int_equal(fx.why.code, PTCP_ETIMEOUT);
	end();
}

static void without_a_place(void **state)
{
	(void)state;
	begin_holding(64u << 20, 60 * NS_PER_S, 60 * NS_PER_S);
	fx.hold.dir = "/proc/nonexistent";
	assert_true(nf_await(fx.loop, ends_without_a_place, &(struct filled){ 32u << 20, 0 }));
	assert_int_equal(fx.why.code, PTCP_EIO);
	assert_non_null(strstr(fx.why.msg, "/proc/nonexistent"));
	end();
	assert_int_equal(fx.room.used_bytes, 0);
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
	splice_free(fx.splice, NULL, NULL);
	fx.splice = NULL;
	assert_int_equal(read(fx.end[1], got, sizeof got), 0);
	end();
}

static void silence_ends_it(void **state)
{
	struct mono last = mono_now(), before;
	int i;

	(void)state;
	begin(NS_PER_S);
	for (i = 0; i < 5 && !fx.ended; i++) { /* any byte is life */
		before = mono_now();
		assert_int_equal(write(fx.end[0], "x", 1), 1);
		nf_run_for(fx.loop, 250);
		if (splice_bytes(fx.splice) == (uint64_t)i + 1)
			last = before;
	}
	assert_true(nf_run_until(fx.loop, &fx.ended, 10000));
	assert_int_equal(fx.why.code, PTCP_ETIMEOUT);
	assert_true(mono_diff_ns(mono_now(), last) > NS_PER_S);
	end();
}

static void without_descriptors(void **state)
{
	struct rlimit was, few;
	int pair[2], other[2];
	struct splice_opts o = { .idle_ns = NS_PER_S, .ended = on_ended };
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
	assert_int_equal(splice_new(&s, l, (int[]){ pair[1], other[1] }, &o, &e), PTCP_EIO);
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
		nf_test(stored),
		nf_test(past_the_file_again),
		nf_test(full),
		nf_test(a_slow_disk),
		nf_test(freed_meanwhile),
		nf_timed_test(waits_while_it_holds),
		nf_test(without_a_place),
		nf_test(a_reset_ends_it),
		nf_timed_test(silence_ends_it),
		nf_test(without_descriptors),
	};

	return cmocka_run_group_tests_name("net/splice", tests, NULL, NULL);
}
