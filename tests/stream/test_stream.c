/* Promises of every stream: rate limits, generated blocks, memory, checks of the connection, and the end. */
#include "fixture.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/fd.h"
#include "stream/stream_impl.h"

#define CHUNK WIRE_CHUNK_BYTES

/* ---- Rate limits ---- */

/* A stream for the limits alone, on the control loop. */
static struct stream *paced(struct pacer *host, struct pacer *session, struct pacer *shared)
{
	struct stream *s = calloc(1, sizeof *s);

	s->loop = sf.control;
	atomic_init(&s->pace.pacer[PACE_HOST], host);
	atomic_init(&s->pace.pacer[PACE_SESSION], session);
	atomic_init(&s->pace.pacer[PACE_SHARED], shared);
	return s;
}

static void paced_free(struct stream *s)
{
	timer_free(s->pace.timer);
	free(s);
}

static void set_bps(struct pacer *p, uint64_t bps)
{
	pacer_init(p);
	pacer_set(p, bps, mono_now());
}

static void without_a_limit(void **state)
{
	struct pacer none;
	struct stream *s = paced(&none, NULL, NULL);

	(void)state;
	pacer_init(&none);
	assert_int_equal(stream_allowance(s, 1 << 30), 1 << 30);
	stream_charge(s, 1 << 30);
	assert_int_equal(stream_allowance(s, 7), 7);
	assert_int_equal(stream_moved(s), 1 << 30);
	paced_free(s);
}

/* All limits are in force at once: the smallest allowance counts, and every byte is charged to each. */
static void the_smallest_limit(void **state)
{
	struct pacer fast, slow;
	struct stream *s = paced(&fast, &slow, NULL);
	size_t first, rest;

	(void)state;
	set_bps(&fast, UINT64_C(100000000000));
	set_bps(&slow, 8000); /* 4 KiB last four seconds */
	first = stream_allowance(s, 1 << 20);
	assert_int_equal(first, 4096);
	assert_int_equal(s->pace.allowance[PACE_HOST], PACER_MAX_QUANTUM_BYTES);
	stream_charge(s, 1000);
	assert_int_equal(stream_allowance(s, 1 << 20), first - 1000);
	assert_int_equal(stream_allowance(s, 5), 5);
	assert_int_equal(s->pace.allowance[PACE_HOST], PACER_MAX_QUANTUM_BYTES - 1000);
	rest = first - 1000;
	stream_charge(s, rest);
	assert_int_equal(stream_allowance(s, 1), 0);
	assert_true(s->pace.waits);
	assert_non_null(s->pace.timer);
	paced_free(s);
}

/* The limit shared by the streams of a path may come and go. */
static void a_shared_limit(void **state)
{
	struct pacer path;
	struct stream *s = paced(NULL, NULL, NULL), *t = paced(NULL, NULL, NULL);

	(void)state;
	set_bps(&path, 8000);
	assert_int_equal(stream_allowance(s, 100000), 100000);
	stream_share(s, &path);
	stream_share(t, &path);
	assert_int_equal(stream_allowance(s, 100000), 4096);
	assert_int_equal(stream_allowance(t, 100000), 0); /* the first has taken the quantum */
	stream_share(t, NULL);
	assert_int_equal(stream_allowance(t, 100000), 100000);
	paced_free(s);
	paced_free(t);
}

/* ---- Generated blocks ---- */

static uint8_t generated[STREAM_GENERATED_BLOCK];

static size_t read_some(void)
{
	static uint8_t p[1 << 20];
	ssize_t n = recv(sf.peer, p, sizeof p, 0);

	assert_true(n >= 0);
	return (size_t)n;
}

static void start_generator(void)
{
	unsigned i;

	for (i = 0; i < sizeof generated; i++)
		generated[i] = sf_byte(i);
	sf.o.generate_data = generated;
	sf_start();
}

/* Exactly the requested bytes, the last block shorter; then the stream closes. */
static void generates(void **state)
{
	const uint64_t all = 9 * (uint64_t)STREAM_GENERATED_BLOCK + 77;
	uint8_t head[WIRE_BLOCK_HEAD_BYTES], tail[WIRE_BLOCK_END_BYTES], *data = malloc(STREAM_GENERATED_BLOCK);
	struct mono from, until, before = mono_now();
	struct wire_block_end end;
	struct wire_block b;
	uint64_t got = 0;

	(void)state;
	start_generator();
	stream_generate(sf.stream, all);
	while (got < all) {
		assert_int_equal(recv(sf.peer, head, sizeof head, MSG_WAITALL), sizeof head);
		assert_int_equal(wire_block_decode(&b, head, NULL), 0);
		assert_int_equal(b.length_bytes, all - got < STREAM_GENERATED_BLOCK ? all - got :
		    STREAM_GENERATED_BLOCK);
		assert_int_equal(recv(sf.peer, data, b.length_bytes, MSG_WAITALL), b.length_bytes);
		assert_memory_equal(data, generated, b.length_bytes);
		assert_int_equal(recv(sf.peer, tail, sizeof tail, MSG_WAITALL), sizeof tail);
		assert_int_equal(wire_block_end_decode(&end, tail, NULL), 0);
		assert_int_equal(end.status, WIRE_BLOCK_GOOD);
		got += b.length_bytes;
	}
	free(data);
	assert_int_equal(got, all);
	assert_int_equal(read_some(), 0);
	fd_close(&sf.peer);
	sf_wait(&sf.n_lost, 1);
	assert_true(stream_generated(sf.stream, &from, &until));
	assert_true(from.ns >= before.ns && until.ns >= from.ns);
}

/* A connection that ends before the last byte is no measurement. */
static void interrupted(void **state)
{
	struct mono from, until;

	(void)state;
	start_generator();
	stream_generate(sf.stream, UINT64_MAX);
	assert_true(read_some() > 0);
	fd_close(&sf.peer);
	sf_wait(&sf.n_lost, 1);
	assert_false(stream_generated(sf.stream, &from, &until));
}

/* ---- Memory ---- */

static void never_granted(struct memory_claim *c) { (void)c; }

/* All memory is taken: data waits in the sockets until memory is free, and the stream takes its turn. */
static void waits_for_memory(void **state)
{
	struct memory_claim other;
	struct memory_budget *budget;
	struct memory_account *theirs;
	struct sink *sink;
	const struct wire_grid grid = { 1000, CHUNK };

	(void)state;
	assert_int_equal(memory_budget_new(&budget, PTCP_MEMORY_MIN, NULL), 0);
	assert_int_equal(memory_account_new(&theirs, budget, "other", NULL), 0);
	assert_int_equal(memory_account_new(&sf.o.memory, budget, "own", NULL), 0);
	memory_claim_init(&other, theirs);
	other.granted = never_granted;
	assert_true(memory_take(&other, 1 << 20));
	while (memory_grow(&other, 64 << 10))
		;
	memory_budget_set(budget, memory_budget_used(budget) + STREAM_BYTES + (128 << 10));
	sink = sf_sink("to", grid);
	open_files_set(&sf.files, SF_ID, sink, grid);
	sf.o.files = &sf.files;
	sf_start();
	sf_put(SF_ID, 0, 1000);
	while (!stream_on_disk(sf.stream))
		loop_run_once(sf.control, false);
	assert_int_equal(sf.n_results, 0);
	memory_give(&other);
	sf_wait(&sf.n_results, 1);
	assert_int_equal(sf.result[0].what, RCV_BLOCK_WRITTEN);
	sf_stop();
	assert_int_equal(memory_budget_used(budget), 0); /* an idle, and then an ended stream has none */
	memory_account_free(theirs);
	memory_account_free(sf.o.memory);
	memory_budget_free(budget);
	open_files_clear(&sf.files, SF_ID);
	sink_discard(sink);
	sink_unref(sink);
}

/* A stream in the middle of a block holds memory: if others wait and its peer sends nothing more, it is closed. */
static void a_peer_that_stalls(bool only_stream)
{
	uint8_t head[WIRE_BLOCK_HEAD_BYTES];
	const struct wire_block b = { SF_ID, 0, 1000, 0, false };
	const struct wire_grid grid = { 1000, CHUNK };
	struct memory_claim other;
	struct memory_budget *budget;
	struct sink *sink = sf_sink("to", grid);
	struct mono now;

	assert_int_equal(memory_budget_new(&budget, PTCP_MEMORY_MIN, NULL), 0);
	assert_int_equal(memory_account_new(&sf.o.memory, budget, "own", NULL), 0);
	open_files_set(&sf.files, SF_ID, sink, grid);
	sf.o.files = &sf.files;
	sf.o.only_stream = only_stream;
	sf_start();
	wire_block_encode(head, &b);
	sf_put_raw(head, sizeof head);
	sf_put_raw("abc", 3);
	while (stream_moved(sf.stream) < sizeof head + 3)
		loop_run_once(sf.control, false);
	memory_budget_set(budget, 1);
	memory_claim_init(&other, sf.o.memory);
	other.granted = never_granted;
	assert_false(memory_take(&other, 1 << 20));
	now = mono_now();
	memory_budget_check(budget, now);
	memory_budget_check(budget, mono_add_ns(now, MEMORY_STALL_NS + 1));
	if (!only_stream) {
		sf_wait_lost(PTCP_ETIMEOUT, "while other streams waited for memory");
	} else { /* a stream without a replacement stays: the rest of the block arrives */
		sf_put_raw(head, sizeof head);
		while (stream_moved(sf.stream) < 2 * sizeof head + 3)
			loop_run_once(sf.control, false);
		assert_int_equal(sf.n_lost, 0);
	}
	memory_give(&other);
	sf_stop();
	sf.n_lost = 0;
	memory_account_free(sf.o.memory);
	memory_budget_free(budget);
	open_files_clear(&sf.files, SF_ID);
	sink_discard(sink);
	sink_unref(sink);
}

static void peers_that_stall(void **state)
{
	(void)state;
	a_peer_that_stalls(false);
	a_peer_that_stalls(true);
}

/* A connection beyond the memory of its session is refused, and closed. */
static void no_memory_for_a_connection(void **state)
{
	static const struct chan_ops none = { 0 };
	const struct chan_opts c = { .ops = &none };
	struct memory_budget *budget;
	struct ptcp_err e;
	uint8_t byte;
	int fd[2];

	(void)state;
	assert_int_equal(memory_budget_new(&budget, STREAM_BYTES, NULL), 0);
	assert_int_equal(memory_account_new(&sf.o.memory, budget, "own", NULL), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd), 0);
	assert_int_equal(chan_new(&sf.o.chan, NULL, NULL, &fd[1], &c, NULL), 0);
	assert_int_equal(stream_new(&sf.stream, &sf.o, &e), PTCP_ENOMEM);
	sf.stream = NULL;
	assert_int_equal(recv(fd[0], &byte, 1, 0), 0);
	assert_int_equal(memory_budget_used(budget), 0);
	fd_close(&fd[0]);
	memory_account_free(sf.o.memory);
	memory_budget_free(budget);
}

/* ---- Checks and ends ---- */

/* The peer's TCP answers: a check finds no fault with the connection, however long the peer has sent nothing. */
static void a_check(void **state)
{
	(void)state;
	sf.o.number = 5;
	sf.o.path = 2;
	sf_start();
	assert_int_equal(stream_number(sf.stream), 5);
	assert_int_equal(stream_path(sf.stream), 2);
	stream_check(sf.stream, UINT64_C(3600) * NS_PER_S, false);
	stream_check(sf.stream, 0, true); /* nothing is unacknowledged */
	while (atomic_load(&sf.stream->check.posted))
		loop_run_once(sf.control, false);
	assert_int_equal(sf.n_lost, 0);
	while (sf.n_lost == 0) { /* silent for three times the RTT, which is an estimate */
		stream_check(sf.stream, 0, false);
		loop_run_once(sf.control, false);
	}
	sf_wait_lost(PTCP_ETIMEOUT, "no answer from the peer's host");
}

/* A reset discards what was not sent: the peer gets an error in place of the end. */
static void resets(void **state)
{
	uint8_t byte;

	(void)state;
	sf_start();
	stream_stop(sf.stream, true);
	stream_stop(sf.stream, false); /* too late */
	sf_wait(&sf.n_gone, 1);
	sf.n_gone = 0;
	assert_int_equal(recv(sf.peer, &byte, 1, 0), -1);
	fd_close(&sf.peer);
	sf_start();
	stream_stop(sf.stream, false);
	assert_int_equal(recv(sf.peer, &byte, 1, 0), 0);
}

/* ---- Streams of another host ---- */

static unsigned kind_calls[4];

/* The duplicate shows the connection until the stream is lost or stopped, and does not outlive it. */
static void a_tap(void **state)
{
	struct tcpinfo at;
	unsigned lost;
	int tap;

	(void)state;
	start_generator();
	assert_int_equal(stream_tap(sf.stream), -1);
	assert_false(stream_tcpinfo(sf.stream, &at));
	sf_stop();
	sf.o.tapped = true;
	for (lost = 0; lost < 2; lost++) {
		start_generator();
		assert_true((tap = stream_tap(sf.stream)) >= 0);
		assert_true(stream_tcpinfo(sf.stream, &at));
		assert_string_not_equal(at.congestion, "");
		if (lost) {
			fd_close(&sf.peer);
			sf_wait(&sf.n_lost, 1);
		} else {
			stream_stop(sf.stream, false);
		}
		assert_int_equal(stream_tap(sf.stream), -1);
		assert_int_equal(fcntl(tap, F_GETFD), -1);
		assert_false(stream_tcpinfo(sf.stream, &at));
		sf_stop();
	}
}

static void kind_send(struct stream *s, struct stream_job *job)
{
	assert_ptr_equal(job->stream, s);
	kind_calls[0]++;
}

static void kind_check(struct stream *s, uint64_t silent_ns, bool unacked)
{
	(void)s;
	assert_int_equal(silent_ns, 9);
	assert_true(unacked);
	kind_calls[1]++;
}

static void kind_stop(struct stream *s, bool reset)
{
	assert_true(reset);
	kind_calls[2]++;
	stream_gone(s);
}

static void kind_forget(struct stream *s)
{
	assert_ptr_equal(stream_remote(s), kind_calls);
	kind_calls[3]++;
}

/* The kind gets the jobs, and reports in their order; no worker and no channel is involved. */
static void another_host(void **state)
{
	static const struct stream_kind kind = { kind_send, kind_check, kind_stop, kind_forget };
	const struct tcpinfo early = { .retransmits = 3, .acked_bytes = 100 },
		late = { .retransmits = 5, .acked_bytes = 300 };
	struct stream_job *first, *second;
	struct tcpinfo seen;

	(void)state;
	memset(kind_calls, 0, sizeof kind_calls);
	sf.o.kind = &kind;
	sf.o.remote = kind_calls;
	assert_int_equal(stream_new(&sf.stream, &sf.o, NULL), 0);
	assert_ptr_equal(stream_kind_of(sf.stream), &kind);
	assert_null(stream_oldest_job(sf.stream));
	first = stream_free_job(sf.stream);
	stream_send(sf.stream);
	second = stream_free_job(sf.stream);
	stream_send(sf.stream);
	assert_int_equal(kind_calls[0], 2);
	assert_ptr_equal(stream_oldest_job(sf.stream), first);
	stream_job_done(sf.stream);
	assert_ptr_equal(stream_oldest_job(sf.stream), second);
	assert_int_equal(sf.n_sent, 1);
	assert_false(stream_tcpinfo(sf.stream, &seen));
	stream_observe(sf.stream, 1000, true, &early);
	assert_true(stream_tcpinfo(sf.stream, &seen));
	assert_int_equal(seen.acked_bytes, 100);
	stream_observe(sf.stream, 4000, false, &late);
	assert_true(stream_tcpinfo(sf.stream, &seen)); /* one report late */
	assert_in_range(seen.acked_bytes, 100, 300);
	assert_int_equal(stream_moved(sf.stream), 4000);
	assert_false(stream_on_disk(sf.stream));
	assert_int_equal(stream_retransmits(sf.stream), 5);
	stream_check(sf.stream, 9, true);
	assert_int_equal(kind_calls[1], 1);
	stream_stop(sf.stream, true);
	assert_int_equal(kind_calls[2], 1);
	assert_int_equal(kind_calls[3], 1);
	assert_int_equal(sf.n_gone, 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		sf_test(without_a_limit), sf_test(the_smallest_limit), sf_test(a_shared_limit), sf_test(generates),
		sf_test(interrupted), sf_test(waits_for_memory), sf_test(peers_that_stall),
		sf_test(no_memory_for_a_connection), sf_test(a_check), sf_test(resets), sf_test(a_tap),
		sf_test(another_host),
	};

	return cmocka_run_group_tests_name("stream/stream", tests, NULL, NULL);
}
