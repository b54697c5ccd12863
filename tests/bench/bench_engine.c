/* Microseconds that the engines of both ends, and thus their control threads, need for a block of one large file,
 * by number of streams and of blocks in flight. Two engines, joined in memory, in simulated time; each block causes
 * the calls of a session whose worker threads report every block alone.
 *
 *   bench_engine [BLOCKS]     (default: 60000) */
#include <stdio.h>
#include <stdlib.h>

#include "core/buf.h"
#include "core/err.h"
#include "core/units.h"
#include "engine/engine.h"
#include "model/rng.h"

#define BLOCK_BYTES (256u << 10)
#define STEP_NS 20000u /* between two acknowledgments: 100 Gbit/s */
#define STREAMS_MAX 128u

struct end {
	struct pair *pair;
	struct engine *engine;
	bool sends, accepts, prepared, checks, commits;
	uint64_t id, wall_ns; /* wall_ns: time spent in the engine */
};

/* Blocks of a stream in flight, in a ring. */
struct fifo {
	uint32_t *block, first, n;
};

struct pair {
	struct end end[2]; /* sender, receiver */
	struct mono now;
	struct rng rng;
	struct fifo fifo[STREAMS_MAX];
	unsigned streams;
	uint32_t in_flight, fifo_size;
	bool over;
};

static void die(const char *what)
{
	fprintf(stderr, "bench_engine: %s\n", what);
	exit(1);
}

/* ---- Decisions of the engines ---- */

static void on_open(void *arg, const struct wire_open *f)
{
	(void)f;
	((struct end *)arg)->accepts = true;
}

static enum wire_busy on_busy(void *arg)
{
	(void)arg;
	return WIRE_IDLE;
}

static void on_running(void *arg, const struct wire_opened *f)
{
	(void)arg;
	(void)f;
}

static void on_ended(void *arg, const struct ptcp_err *why)
{
	if (why != NULL)
		die(why->msg);
	((struct end *)arg)->pair->over = true;
}

static void on_snd_ended(void *arg, void *cookie, enum snd_fate fate, const struct ptcp_err *why)
{
	(void)arg;
	(void)cookie;
	(void)why;
	if (fate != SND_DONE)
		die("the file was not sent");
}

static void on_check(void *arg, void *cookie, uint64_t id)
{
	(void)cookie;
	((struct end *)arg)->checks = true;
	((struct end *)arg)->id = id;
}

static void on_stalled(void *arg, unsigned stream)
{
	(void)arg;
	(void)stream;
	die("a stream stalled");
}

static enum rcv_prep on_prepare(void *arg, uint64_t id, const struct wire_entry *f, void *parent, void **cookie,
    uint64_t **claimed, struct ptcp_err *e)
{
	(void)f;
	(void)parent;
	(void)claimed;
	(void)e;
	((struct end *)arg)->id = id;
	*cookie = arg;
	return RCV_ACCEPT;
}

static void on_accepted(void *arg, uint64_t id, void *cookie, uint64_t size_bytes, bool parts)
{
	(void)id;
	(void)cookie;
	(void)size_bytes;
	(void)parts;
	((struct end *)arg)->prepared = true;
}

static void on_commit(void *arg, uint64_t id, void *cookie, const struct wire_entry *end)
{
	(void)id;
	(void)cookie;
	(void)end;
	((struct end *)arg)->commits = true;
}

static void on_rcv_ended(void *arg, uint64_t id, void *cookie, bool skipped, const struct ptcp_err *why)
{
	(void)arg;
	(void)id;
	(void)cookie;
	(void)skipped;
	if (why != NULL)
		die(why->msg);
}

static void on_totals(void *arg, uint64_t files, uint64_t bytes, bool final)
{
	(void)arg;
	(void)files;
	(void)bytes;
	(void)final;
}

static const struct snd_ops snd_ops = { .ended = on_snd_ended, .check = on_check, .stalled = on_stalled };
static const struct rcv_ops rcv_ops = { .prepare = on_prepare, .accepted = on_accepted, .commit = on_commit,
	.ended = on_rcv_ended, .totals = on_totals };
static const struct engine_ops engine_ops = { .open = on_open, .running = on_running, .busy = on_busy,
	.ended = on_ended, .snd = &snd_ops, .rcv = &rcv_ops };

/* ---- Two engines ---- */

/* As session.c: a tick before and after the session's work, then the timer. */
static void pump(struct pair *p, struct end *end)
{
	engine_tick(end->engine, p->now);
	engine_tick(end->engine, p->now);
	(void)engine_deadline(end->engine);
}

static uint64_t wall_ns(void) { return mono_now().ns; }

/* Delivers the control frames of one end to the other. */
static void deliver(struct pair *p, unsigned to)
{
	struct end *end = &p->end[to];
	struct buf *b = &engine_outbox(p->end[!to].engine)->b;
	uint64_t from = wall_ns();

	if (buf_len(b) > 0) {
		engine_input(end->engine, buf_head(b), buf_len(b), p->now);
		buf_consume(b, buf_len(b));
	}
	if (!engine_over(end->engine))
		pump(p, end);
	end->wall_ns += wall_ns() - from;
}

static void deliver_all(struct pair *p)
{
	do {
		deliver(p, 0);
		deliver(p, 1);
	} while (buf_len(&engine_outbox(p->end[1].engine)->b) > 0);
}

static void begin(struct pair *p, uint32_t blocks)
{
	static const uint8_t path[] = { 0, 0, 1, 'p' };
	struct wire_open open = { .role = WIRE_ACCEPTOR_RECEIVES, .streams = (uint16_t)p->streams, .n_paths = 1,
		.paths = { path, sizeof path }, .flags = WIRE_OPEN_VERIFY };
	struct wire_opened opened = { .session = { 1 }, .streams = (uint16_t)p->streams };
	struct engine_opts o = { .software = "bench", .timeout_ns = 30 * NS_PER_S, .max_entries = 1000,
		.max_streams = STREAMS_MAX, .ops = &engine_ops };
	struct wire_entry f = { .type = WIRE_FILE, .size_bytes = (uint64_t)blocks * BLOCK_BYTES, .mode = 0644,
		.name = { (const uint8_t *)"f", 1 } };
	struct ptcp_err e;
	unsigned i;

	for (i = 0; i < 2; i++) {
		p->end[i] = (struct end){ .pair = p, .sends = i == 0 };
		o.arg = &p->end[i];
		o.starter = i == 0;
		if (engine_new(&p->end[i].engine, &o, i == 0 ? &open : NULL, p->now, &e) < 0)
			die(e.msg);
	}
	deliver_all(p);
	if (!p->end[1].accepts)
		die("no request arrived");
	engine_accept(p->end[1].engine, &opened, p->now);
	deliver_all(p);
	for (i = 0; i < p->streams; i++)
		snd_stream_up(engine_snd(p->end[0].engine), i, p->now);
	snd_offer(engine_snd(p->end[0].engine), &f, &p->end[0]);
	snd_listed(engine_snd(p->end[0].engine), 1, f.size_bytes, true);
	deliver_all(p);
	deliver_all(p);
	if (!p->end[1].prepared)
		die("the file was not accepted");
}

/* One job of a stream, sent at once; false: no block. */
static bool send_job(struct pair *p, unsigned stream)
{
	struct snd *snd = engine_snd(p->end[0].engine);
	struct fifo *q = &p->fifo[stream];
	struct snd_job job;
	uint64_t from = wall_ns();
	bool took = snd_take(snd, stream, p->now, &job);
	unsigned i;

	for (i = 0; took && i < job.n; i++)
		snd_read(snd, stream, job.extent[i].id, job.extent[i].block, (struct digest){ 0, 1 }, NULL, p->now);
	p->end[0].wall_ns += wall_ns() - from;
	for (i = 0; took && i < job.n; i++) {
		if (q->n == p->fifo_size)
			die("too many blocks in flight");
		q->block[(q->first + q->n++) % p->fifo_size] = job.extent[i].block;
		p->in_flight++;
	}
	return took;
}

/* The oldest block of a random stream arrives. */
static void arrive(struct pair *p)
{
	struct end *end = &p->end[1];
	struct fifo *q;
	uint64_t from;

	do
		q = &p->fifo[rng_next(&p->rng) % p->streams];
	while (q->n == 0);
	p->now = mono_add_ns(p->now, STEP_NS);
	from = wall_ns();
	engine_progress(end->engine, p->now);
	rcv_block(engine_rcv(end->engine), end->id, q->block[q->first], RCV_BLOCK_WRITTEN,
	    (struct digest){ 0, 1 }, NULL);
	pump(p, end);
	end->wall_ns += wall_ns() - from;
	q->first = (q->first + 1) % p->fifo_size;
	q->n--;
	p->in_flight--;
	deliver(p, 0);
}

static void finish(struct pair *p)
{
	unsigned i;

	if (!p->end[0].checks)
		die("blocks are missing");
	snd_checked(engine_snd(p->end[0].engine), p->end[0].id, NULL);
	deliver_all(p);
	if (!p->end[1].commits)
		die("the file is incomplete");
	rcv_committed(engine_rcv(p->end[1].engine), p->end[1].id, NULL);
	deliver_all(p);
	deliver_all(p);
	if (!p->over)
		die("the session did not end");
	for (i = 0; i < 2; i++)
		engine_free(p->end[i].engine);
}

static double mean_us(uint64_t ns, uint32_t blocks) { return (double)ns / 1e3 / blocks; }

/* Prints a row. First as many blocks are in flight as wanted; each arrival makes room for one block. When no block is
 * left, all streams have room, and ask for copies after each arrival. */
static void measure(unsigned streams, uint32_t in_flight, uint32_t blocks)
{
	struct pair p = { .now = { NS_PER_S }, .rng = { 1 }, .streams = streams,
		.fifo_size = 2 * in_flight / streams + 64 };
	double us[2], tail_us;
	uint32_t n, tail;
	unsigned i;

	if (p.fifo_size > in_flight)
		p.fifo_size = in_flight + 1;
	for (i = 0; i < streams; i++)
		if ((p.fifo[i].block = calloc(p.fifo_size, sizeof p.fifo[i].block[0])) == NULL)
			die("out of memory");
	begin(&p, in_flight + blocks);
	for (n = 0; n < in_flight; n++)
		if (!send_job(&p, n % streams))
			die("no block to send");
	p.end[0].wall_ns = p.end[1].wall_ns = 0;
	for (n = 0; n < blocks; n++) {
		arrive(&p);
		if (!send_job(&p, n % streams))
			die("no block to send");
	}
	us[0] = mean_us(p.end[0].wall_ns, blocks);
	us[1] = mean_us(p.end[1].wall_ns, blocks);
	p.end[0].wall_ns = 0;
	for (tail = 0; p.in_flight > 0; tail++) {
		arrive(&p);
		for (i = 0; i < streams; i++)
			send_job(&p, i);
	}
	tail_us = mean_us(p.end[0].wall_ns, tail);
	finish(&p);
	printf("%7u %9u %10.2f %10.2f %12.0f %10.2f\n", streams, in_flight, us[0], us[1],
	    1e6 / (us[0] > us[1] ? us[0] : us[1]), tail_us);
	fflush(stdout);
	for (i = 0; i < streams; i++)
		free(p.fifo[i].block);
}

int main(int argc, char **argv)
{
	static const unsigned streams[] = { 1, 4, 16, 64, 128 };
	static const uint32_t in_flight[] = { 100, 1000, 10000 };
	uint32_t blocks = argc > 1 ? (uint32_t)atoi(argv[1]) : 60000;
	unsigned i, j;

	if (blocks == 0)
		die("usage: bench_engine [BLOCKS]");
	printf("%7s %9s %10s %10s %12s %10s\n", "", "", "us a block", "us a block", "", "us a block");
	printf("%7s %9s %10s %10s %12s %10s\n", "streams", "in flight", "sender", "receiver", "blocks/s", "tail");
	for (i = 0; i < sizeof streams / sizeof streams[0]; i++)
		for (j = 0; j < sizeof in_flight / sizeof in_flight[0]; j++)
			if (in_flight[j] >= streams[i])
				measure(streams[i], in_flight[j], blocks);
	return 0;
}
