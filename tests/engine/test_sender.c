/* The sending half by hand: what the random worlds meet rarely, or a receiver of ours never does. */
#include "one.h"

#include <stdlib.h>
#include <string.h>

#include "core/byteorder.h"
#include "core/err.h"


static void news(struct one *o, unsigned stream, uint64_t id, uint32_t block, bool bad)
{
	struct digest d = { 0, block + 1 };
	struct ptcp_err why;

	err_set(&why, PTCP_EIO, "cannot be read");
	snd_read(one_snd(o), stream, id, block, d, bad ? &why : NULL, one_now(o));
}

static void blocks(struct one *o, uint64_t id, bool need, uint32_t first, uint32_t count)
{
	struct wire_blocks f = { .id = id, .first = first, .count = count, .digest = { 0, 0 } };
	uint32_t i;

	for (i = 0; i < count; i++)
		f.digest.lo += first + i + 1;
	if (need)
		ONE_PUT(o, need, &f);
	else
		ONE_PUT(o, have, &f);
}

static void done(struct one *o, uint64_t id)
{
	struct wire_done f = { id };

	ONE_PUT(o, done, &f);
}

static uint32_t again(struct one *o, unsigned stream, uint64_t id)
{
	uint32_t block = one_take(o, stream);

	if (block != UINT32_MAX)
		news(o, stream, id, block, false);
	return block;
}

/* What is left of the file is fine, and ends with that digest. */
static void finish(struct one *o, uint64_t id, uint64_t digest_lo)
{
	struct wire_file_end f;
	struct span p;

	assert_int_equal(o->checks, 1);
	snd_checked(one_snd(o), id, NULL);
	assert_true(one_found(o, WIRE_FILE_END, &p));
	assert_int_equal(wire_file_end_decode(&f, p, NULL), 0);
	assert_true(f.id == id && f.digest.hi == 0 && f.digest.lo == digest_lo);
	done(o, id);
	assert_int_equal(o->fates[SND_DONE], 1);
}

/* ---- Resuming ---- */

static void parts_in_order(void **state)
{
	static const uint32_t want[] = { 3, 4, 7, 100, 101, 199 };
	struct snd_stats st;
	struct one o;
	uint64_t id = one_sending(&o, 3, 200, WIRE_SEND_PARTS);
	size_t i;

	(void)state;
	assert_int_equal(one_take(&o, 0), UINT32_MAX);
	blocks(&o, id, true, 3, 2);
	blocks(&o, id, true, 7, 1);
	blocks(&o, id, false, 0, 3);
	blocks(&o, id, true, 100, 2);
	blocks(&o, id, true, 199, 1);
	for (i = 0; i < sizeof want / sizeof *want; i++)
		assert_int_equal(again(&o, i % 3, id), want[i]);
	assert_int_equal(one_take(&o, 0), UINT32_MAX);
	for (i = 0; i < sizeof want / sizeof *want; i++)
		one_ack(&o, id, want[i]);
	blocks(&o, id, false, 5, 2);
	blocks(&o, id, false, 8, 92);
	assert_int_equal(o.checks, 0);
	blocks(&o, id, false, 102, 97);
	st = snd_stats(one_snd(&o));
	assert_true(st.done.resumed_bytes == 194u * ONE_BLOCK && st.done.bytes == 200u * ONE_BLOCK);
	finish(&o, id, 200 * 201 / 2);
	one_fini(&o);
}

static void many_ranges_keep_their_order(void **state)
{
	struct one o;
	uint64_t id = one_sending(&o, 3, 3000, WIRE_SEND_PARTS);
	uint32_t asked = 0, sent = 0;

	(void)state;
	/* Asked for faster than sent, by turns. */
	while (sent < 3000) {
		for (; asked < 3000 && asked < 3 * sent + 10; asked += 2)
			blocks(&o, id, true, asked, 1);
		assert_int_equal(again(&o, 0, id), sent);
		one_ack(&o, id, sent);
		sent += 2;
	}
	blocks(&o, id, false, 1, 1);
	assert_int_equal(o.ended, 0);
	blocks(&o, id, false, 2, 1); /* has been acknowledged */
	assert_true(one_broke(&o));
	one_fini(&o);
}

static void what_is_had_need_not_arrive(void **state)
{
	struct one o;
	uint64_t id = one_sending(&o, 3, 2, WIRE_SEND_PARTS);

	(void)state;
	blocks(&o, id, true, 0, 2);
	assert_int_equal(one_take(&o, 0), 0);
	blocks(&o, id, false, 0, 1); /* it is on its way, but not needed any more */
	assert_int_equal(again(&o, 1, id), 1);
	one_ack(&o, id, 1);
	finish(&o, id, 3);
	one_fini(&o);
}

/* Each range costs its receiver a frame, and us all its blocks. */
static void no_end_of_ranges(void **state)
{
	struct one o;
	unsigned i;
	uint64_t id = one_sending(&o, 3, 1000, WIRE_SEND_PARTS);

	(void)state;
	for (i = 0; i < 3; i++)
		blocks(&o, id, true, 0, 1000);
	blocks(&o, id, true, 0, 15);
	assert_int_equal(o.ended, 0);
	assert_int_equal(one_take(&o, 0), 0);
	blocks(&o, id, true, 500, 2); /* what has been taken makes room */
	assert_int_equal(o.ended, 0);
	blocks(&o, id, true, 500, 1);
	assert_true(one_broke(&o));
	one_fini(&o);
}

static void all_is_had(void **state)
{
	struct one o;
	uint64_t id = one_sending(&o, 3, 1, WIRE_SEND_PARTS);

	(void)state;
	blocks(&o, id, false, 0, 1);
	done(&o, id);
	assert_int_equal(o.fates[SND_DONE], 1);
	one_fini(&o);
}

/* ---- Blocks that do not verify ---- */

static void spoilt_ones_go_again_at_once(void **state)
{
	struct one o;
	uint64_t id = one_sending(&o, 3, 2, WIRE_SEND_ALL);

	(void)state;
	assert_int_equal(again(&o, 0, id), 0);
	assert_int_equal(again(&o, 1, id), 1);
	blocks(&o, id, true, 0, 1);
	assert_int_equal(again(&o, 2, id), 0);
	/* Nobody waits for the spoilt one: when the copy is lost it goes again. */
	snd_stream_lost(one_snd(&o), 2);
	assert_int_equal(again(&o, 1, id), 0);
	one_ack(&o, id, 0);
	one_ack(&o, id, 1);
	finish(&o, id, 3);
	one_fini(&o);
}

static void no_end_of_spoilt_ones(void **state)
{
	struct wire_fail f;
	struct span p;
	struct one o;
	uint64_t id = one_sending(&o, 3, 1000, WIRE_SEND_ALL);
	uint32_t i, n = 0;

	(void)state;
	for (i = 0; i < 640; i++) {
		assert_int_equal(again(&o, 0, id), i);
		one_ack(&o, id, i);
	}
	one_forget(&o);
	assert_int_equal(again(&o, 0, id), 640);
	while (!one_found(&o, WIRE_FAIL, &p)) {
		assert_true(++n < 100);
		blocks(&o, id, true, 640, 1);
		again(&o, 0, id);
	}
	assert_int_equal(n, 16 + 640 / 64 + 1);
	assert_int_equal(wire_fail_decode(&f, p, NULL), 0);
	assert_true(f.id == id && f.why.code == -PTCP_EVERIFY);
	one_fail(&o, id, PTCP_EIO);
	assert_true(o.fates[SND_FAILED] == 1 && o.fate_why.code == PTCP_EVERIFY); /* in our words */
	one_fini(&o);
}

/* Requests for block 0 until the file fails; `read`: news of each reading arrives before. */
static void spoilt(uint8_t verdict, bool read)
{
	struct span p;
	struct one o;
	uint64_t id = one_sending(&o, 3, 1000, verdict);
	unsigned n = 0;

	if (verdict == WIRE_SEND_PARTS)
		blocks(&o, id, true, 0, 1); /* the first request is none for a spoilt block */
	one_forget(&o);
	assert_int_equal(one_take(&o, 0), 0);
	while (!one_found(&o, WIRE_FAIL, &p)) {
		assert_true(++n < 100);
		if (read)
			news(&o, 0, id, 0, false);
		blocks(&o, id, true, 0, 1);
		one_take(&o, 0);
	}
	assert_int_equal(n, 17);
	one_fail(&o, id, PTCP_EIO);
	assert_true(o.fates[SND_FAILED] == 1 && o.fate_why.code == PTCP_EVERIFY);
	one_fini(&o);
}

static void no_end_before_the_first_good_one(void **state)
{
	(void)state;
	spoilt(WIRE_SEND_ALL, false);
	spoilt(WIRE_SEND_PARTS, true);
}

/* ---- Reading ---- */

static void a_copy_that_cannot_be_read(void **state)
{
	struct one o;
	uint64_t id = one_sending(&o, 3, 2, WIRE_SEND_ALL);

	(void)state;
	assert_int_equal(again(&o, 0, id), 0);
	assert_int_equal(again(&o, 1, id), 1);
	one_ack(&o, id, 1);
	o.now_ns += 5 * NS_PER_S;
	assert_int_equal(one_take(&o, 2), 0); /* a copy */
	news(&o, 2, id, 0, true);
	assert_int_equal(snd_stats(one_snd(&o)).live, 1);
	assert_int_equal(o.fates[SND_FAILED], 0);
	one_ack(&o, id, 0);
	finish(&o, id, 3);
	one_fini(&o);
}

/* The other one may be on a stream that is dead, and is not known to have been read. */
static void a_copy_that_cannot_be_read_of_what_has_not_been(void **state)
{
	struct span p;
	struct one o;
	uint64_t id = one_sending(&o, 3, 2, WIRE_SEND_ALL);

	(void)state;
	assert_int_equal(one_take(&o, 0), 0);
	assert_int_equal(again(&o, 1, id), 1);
	one_ack(&o, id, 1);
	o.now_ns += 5 * NS_PER_S;
	assert_int_equal(one_take(&o, 2), 0);
	news(&o, 2, id, 0, true);
	assert_true(one_found(&o, WIRE_FAIL, &p));
	one_fail(&o, id, PTCP_EIO);
	assert_int_equal(o.fates[SND_FAILED], 1);
	one_fini(&o);
}

static void the_only_one_that_cannot_be_read(void **state)
{
	struct span p;
	struct one o;
	uint64_t id = one_sending(&o, 3, 2, WIRE_SEND_ALL);

	(void)state;
	assert_int_equal(again(&o, 0, id), 0);
	assert_int_equal(one_take(&o, 1), 1);
	news(&o, 1, id, 1, true);
	assert_true(one_found(&o, WIRE_FAIL, &p));
	one_fail(&o, id, PTCP_EIO);
	assert_int_equal(o.fates[SND_FAILED], 1);
	one_fini(&o);
}

/* Read failures that come after the file is on its way to its name. */
static void late_read_failures(void **state)
{
	struct span p;
	struct one o;
	uint64_t id = one_sending(&o, 3, 1, WIRE_SEND_ALL);

	(void)state;
	assert_int_equal(one_take(&o, 0), 0);
	o.now_ns += 5 * NS_PER_S;
	assert_int_equal(one_take(&o, 1), 0);
	one_ack(&o, id, 0); /* before the news that it was read */
	news(&o, 1, id, 0, true);
	news(&o, 0, id, 0, true);
	assert_false(one_found(&o, WIRE_FAIL, &p));
	done(&o, id);
	assert_int_equal(o.fates[SND_DONE], 1);
	one_fini(&o);
}

/* Blocks 0 and 1, over a stream each, whose words that they were read them have yet to come. */
static void first_two_arrive(struct one *o, uint64_t id)
{
	assert_int_equal(one_take(o, 0), 0);
	assert_int_equal(again(o, 1, id), 1);
	one_ack(o, id, 0);
	one_ack(o, id, 1);
}

/* The digest needs a term that only reading gives; that news can die with its stream. */
static void acknowledged_without_its_term(void **state)
{
	struct one o;
	uint64_t id = one_sending(&o, 3, 2, WIRE_SEND_ALL);

	(void)state;
	first_two_arrive(&o, id);
	assert_int_equal(o.checks, 0);
	assert_int_equal(one_take(&o, 2), UINT32_MAX);
	snd_stream_lost(one_snd(&o), 0);
	assert_int_equal(again(&o, 2, id), 0);
	finish(&o, id, 3);
	one_fini(&o);
}

static void changed_too_late(void **state)
{
	struct one o;
	uint64_t id = one_sending(&o, 3, 0, WIRE_SEND_ALL);
	struct ptcp_err why;
	struct span p;

	(void)state;
	err_set(&why, PTCP_ECHANGED, "changed");
	snd_checked(one_snd(&o), id, &why);
	assert_true(one_found(&o, WIRE_FAIL, &p));
	done(&o, id); /* it was faster: then it is done */
	assert_true(o.fates[SND_DONE] == 1 && snd_stats(one_snd(&o)).done.files == 1);
	one_fini(&o);
}

/* A source that vanishes is no failure, unless the receiver fails at the same time: both ends count the same. */
static void vanished(void **state)
{
	static const struct { int own, answer, outcome; unsigned failed; } cases[] = {
		{ PTCP_EVANISHED, PTCP_EVANISHED, PTCP_EVANISHED, 0 }, { PTCP_EVANISHED, PTCP_ENOSPC, PTCP_ENOSPC, 1 },
		{ PTCP_ECHANGED, PTCP_ENOSPC, PTCP_ECHANGED, 1 }, { PTCP_ECHANGED, PTCP_EVANISHED, PTCP_EPEER, 1 },
		{ 0, PTCP_EVANISHED, PTCP_EPEER, 1 }, /* a receiver has no sources */
	};
	struct ptcp_err why;
	struct span p;
	struct one o;
	uint64_t id;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		id = one_sending(&o, 3, 0, WIRE_SEND_ALL);
		err_set(&why, cases[i].own, "it");
		if (cases[i].own != 0)
			snd_checked(one_snd(&o), id, &why);
		assert_int_equal(one_found(&o, WIRE_FAIL, &p), cases[i].own != 0);
		one_fail(&o, id, cases[i].answer);
		assert_int_equal(o.fates[SND_FAILED], 1);
		assert_int_equal(o.fate_why.code, cases[i].outcome);
		assert_int_equal(snd_stats(one_snd(&o)).done.failed, cases[i].failed);
		one_fini(&o);
	}
}

/* ---- Streams ---- */

static void lost_blocks_go_first(void **state)
{
	struct one o;
	uint64_t id = one_sending(&o, 3, 10, WIRE_SEND_ALL);

	(void)state;
	assert_int_equal(again(&o, 0, id), 0);
	assert_int_equal(again(&o, 1, id), 1);
	assert_int_equal(again(&o, 0, id), 2);
	snd_stream_lost(one_snd(&o), 0);
	assert_int_equal(again(&o, 1, id), 0);
	assert_int_equal(again(&o, 2, id), 2);
	assert_int_equal(again(&o, 2, id), 3);
	one_fini(&o);
}

/* Also of a file that had nothing more to send, before new ones of another. */
static void lost_blocks_go_before_other_files(void **state)
{
	struct snd_job job;
	struct one o;
	uint64_t id = one_sending(&o, 3, 1, WIRE_SEND_ALL), next = one_offer(&o, WIRE_FILE, 9 * ONE_BLOCK);

	(void)state;
	assert_int_equal(again(&o, 0, id), 0);
	one_answer(&o, next, WIRE_SEND_ALL);
	assert_int_equal(again(&o, 1, next), 0);
	snd_stream_lost(one_snd(&o), 0);
	assert_true(snd_take(one_snd(&o), 1, one_now(&o), &job));
	assert_int_equal(job.extent[0].id, id);
	assert_int_equal(again(&o, 1, next), 1);
	one_fini(&o);
}

/* A copy is made of what is old, when nothing else is left to do; again when the copy is old itself, as both
 * may be on a dead path; and once more when the copy is lost. Nobody carries one block twice. */
static void copies(void **state)
{
	struct one o;
	uint64_t id = one_sending(&o, 3, 2, WIRE_SEND_ALL);

	(void)state;
	snd_listed(one_snd(&o), 1, 0, false);
	assert_int_equal(again(&o, 0, id), 0);
	assert_int_equal(again(&o, 1, id), 1);
	one_ack(&o, id, 1);
	o.now_ns += NS_PER_S;
	assert_int_equal(one_take(&o, 1), UINT32_MAX); /* more may come */
	snd_listed(one_snd(&o), 1, 0, true);
	assert_int_equal(one_take(&o, 0), UINT32_MAX); /* it has it */
	assert_int_equal(again(&o, 1, id), 0);
	assert_int_equal(one_take(&o, 2), UINT32_MAX); /* one is on its way */
	o.now_ns += NS_PER_S;
	assert_int_equal(one_take(&o, 1), UINT32_MAX);
	assert_int_equal(again(&o, 2, id), 0);
	o.now_ns += NS_PER_S;
	assert_int_equal(one_take(&o, 2), UINT32_MAX);
	assert_int_equal(one_take(&o, 0), UINT32_MAX);
	snd_stream_lost(one_snd(&o), 0);
	snd_stream_up(one_snd(&o), 0, one_now(&o));
	assert_int_equal(again(&o, 0, id), 0);
	one_ack(&o, id, 0);
	finish(&o, id, 3);
	one_fini(&o);
}

/* A block has arrived, but the stream stalls before it says that it was read: another reads it. */
static void copies_of_what_was_not_read(void **state)
{
	struct one o;
	uint64_t id = one_sending(&o, 3, 2, WIRE_SEND_ALL);

	(void)state;
	first_two_arrive(&o, id);
	o.now_ns += NS_PER_S;
	assert_int_equal(again(&o, 1, id), 0);
	assert_int_equal(one_take(&o, 2), UINT32_MAX);
	finish(&o, id, 3);
	one_fini(&o);
}

/* Where a rate that all share holds blocks up, a copy would only take from it, and no stream is to blame. */
static void paced(void **state)
{
	struct one o;
	uint64_t id = one_sending(&o, 3, 2, WIRE_SEND_ALL);

	(void)state;
	assert_int_equal(again(&o, 0, id), 0);
	assert_int_equal(again(&o, 1, id), 1);
	snd_set_paced(one_snd(&o), true);
	one_ack(&o, id, 1);
	o.now_ns += 1000 * NS_PER_S;
	assert_int_equal(one_take(&o, 1), UINT32_MAX);
	assert_int_equal(snd_deadline(one_snd(&o)).ns, MONO_NEVER.ns);
	snd_set_paced(one_snd(&o), false);
	assert_true(snd_deadline(one_snd(&o)).ns <= o.now_ns);
	assert_int_equal(again(&o, 1, id), 0);
	one_fini(&o);
}

/* A stream waits for as long as it takes itself, and says until when. */
static void patience(void **state)
{
	struct one o;
	uint64_t id = one_sending(&o, 3, 2, WIRE_SEND_ALL), due;

	(void)state;
	assert_int_equal(again(&o, 0, id), 0);
	assert_int_equal(again(&o, 1, id), 1);
	o.now_ns += 100 * NS_PER_MS;
	one_ack(&o, id, 1);
	due = NS_PER_S + 250 * NS_PER_MS; /* 50 ms and twice its 100 */
	assert_int_equal(one_take(&o, 1), UINT32_MAX);
	assert_in_range(snd_deadline(one_snd(&o)).ns, due, due + 2);
	one_tick(&o, 149 * NS_PER_MS);
	assert_int_equal(one_take(&o, 1), UINT32_MAX);
	one_tick(&o, 1 * NS_PER_MS + 2);
	assert_int_equal(one_take(&o, 1), 0);
	one_fini(&o);
}

/* However long it takes itself: the peer ends a session in which nothing comes, and two streams may be dead. */
static void patience_ends_before_the_peers(void **state)
{
	struct one o;
	uint64_t id = one_sending(&o, 3, 2, WIRE_SEND_ALL);

	(void)state;
	assert_int_equal(again(&o, 0, id), 0);
	assert_int_equal(again(&o, 1, id), 1);
	o.now_ns += 3 * NS_PER_S;
	one_ack(&o, id, 1);
	assert_int_equal(one_take(&o, 1), UINT32_MAX);
	one_tick(&o, NS_PER_S); /* a third of ONE_TIMEOUT_NS has passed */
	assert_int_equal(one_take(&o, 1), 0);
	one_tick(&o, 4 * NS_PER_S);
	assert_int_equal(one_take(&o, 2), 0);
	one_fini(&o);
}

static void a_stalled_stream_is_told_of_once(void **state)
{
	struct wire_ping busy = { WIRE_WRITING, 1 }, idle = { WIRE_IDLE, 1 };
	struct one o;
	uint64_t id = one_sending(&o, 3, 10, WIRE_SEND_ALL), at;

	(void)state;
	at = snd_deadline(one_snd(&o)).ns;
	assert_int_equal(at, UINT64_MAX);
	again(&o, 0, id);
	again(&o, 1, id);
	o.now_ns += 4 * NS_PER_S;
	one_ack(&o, id, 1);
	at = snd_deadline(one_snd(&o)).ns;
	assert_int_equal(at, NS_PER_S + ONE_TIMEOUT_NS / 4 * 3);
	one_tick(&o, at - o.now_ns - 1);
	assert_int_equal(o.stalled, 0);
	one_tick(&o, 1);
	assert_int_equal(o.stalled, 1);
	o.stalled = 0;
	ONE_PUT(&o, ping, &idle);
	one_tick(&o, 2 * NS_PER_S);
	assert_int_equal(o.stalled, 0);
	/* Still there, for our disk was to blame. And the receiver's disk excuses it. */
	ONE_PUT(&o, ping, &busy);
	one_tick(&o, 8 * NS_PER_S);
	assert_int_equal(o.stalled, 0);
	ONE_PUT(&o, ping, &busy);
	one_tick(&o, 8 * NS_PER_S);
	ONE_PUT(&o, ping, &idle);
	one_tick(&o, 2 * NS_PER_S);
	assert_int_equal(o.stalled, 1);
	one_fini(&o);
}

/* Blocks that need longer than the time-out are acknowledged in the end: each connection gets more time than the last,
 * until the stream's latency is known. */
static void a_slow_stream_gets_more_time(void **state)
{
	const struct wire_hello peer = { .version_min = 1, .version_max = 1, .timeout_ms = ONE_TIMEOUT_NS / NS_PER_MS,
		.linger_ms = 600000, .quiet_ms = 9000, .max_entries = WIRE_SLOTS, .max_streams = 8 };
	const uint64_t limit = ONE_TIMEOUT_NS / 4 * 3;
	struct one o;
	uint64_t id;
	unsigned i;

	(void)state;
	one_run_lingering(&o, true, 600 * NS_PER_S, &peer);
	snd_stream_up(one_snd(&o), 0, (struct mono){ o.now_ns });
	id = one_offer(&o, WIRE_FILE, 10 * ONE_BLOCK);
	snd_listed(one_snd(&o), 1, 0, true);
	one_answer(&o, id, WIRE_SEND_ALL);
	again(&o, 0, id);
	for (i = 0; i < 3; i++) {
		one_tick(&o, (limit << i) - 1);
		assert_int_equal(o.stalled, 0);
		one_tick(&o, 1);
		assert_int_equal(o.stalled, 1);
		o.stalled = 0;
		snd_stream_lost(one_snd(&o), 0);
		snd_stream_up(one_snd(&o), 0, (struct mono){ o.now_ns });
		again(&o, 0, id);
	}
	o.now_ns += 5 * limit;
	one_ack(&o, id, 0);
	again(&o, 0, id);
	one_tick(&o, 9 * limit);
	assert_int_equal(o.stalled, 0);
	one_tick(&o, 2 * limit);
	assert_int_equal(o.stalled, 1);
	one_fini(&o);
}

/* A connection in the place of a lost one may die in the same way: its buffers would be sent again, too. */
static void a_new_connection_begins_with_one_job(void **state)
{
	struct one o;
	uint64_t id = one_sending(&o, 3, 10, WIRE_SEND_ALL);

	(void)state;
	assert_int_equal(again(&o, 0, id), 0);
	assert_int_equal(again(&o, 0, id), 1);
	snd_stream_lost(one_snd(&o), 0);
	snd_stream_up(one_snd(&o), 0, (struct mono){ o.now_ns });
	assert_int_equal(again(&o, 0, id), 0);
	assert_int_equal(one_take(&o, 0), UINT32_MAX);
	assert_int_equal(again(&o, 1, id), 1); /* a stream that works takes the rest */
	one_ack(&o, id, 0);
	assert_int_equal(again(&o, 0, id), 2);
	assert_int_equal(again(&o, 0, id), 3);
	one_fini(&o);
}

/* The file has failed; its block still blocks the stream. */
static void stalled_with_what_nobody_waits_for(void **state)
{
	struct one o;
	uint64_t id = one_sending(&o, 3, 2, WIRE_SEND_ALL);

	(void)state;
	assert_int_equal(one_take(&o, 0), 0);
	one_offer(&o, WIRE_FILE, 5);
	one_fail(&o, id, PTCP_EIO);
	one_tick(&o, 9 * NS_PER_S);
	assert_int_equal(o.stalled, 1);
	one_fini(&o);
}

static void small_files_share_jobs(void **state)
{
	struct snd_job job;
	struct one o;
	unsigned i;

	(void)state;
	one_run(&o, true, true);
	snd_stream_up(one_snd(&o), 0, one_now(&o));
	for (i = 0; i < 100; i++)
		one_answer(&o, one_offer(&o, WIRE_FILE, 100), WIRE_SEND_ALL);
	for (i = 0; i < 3; i++)
		one_answer(&o, one_offer(&o, WIRE_FILE, 100u << 10), WIRE_SEND_ALL);
	assert_true(snd_take(one_snd(&o), 0, one_now(&o), &job));
	assert_int_equal(job.n, SND_JOB_EXTENTS);
	assert_true(snd_take(one_snd(&o), 0, one_now(&o), &job));
	assert_int_equal(job.n, 100 - SND_JOB_EXTENTS + 2);
	assert_true(snd_take(one_snd(&o), 0, one_now(&o), &job));
	assert_int_equal(job.n, 1);
	assert_false(snd_take(one_snd(&o), 0, one_now(&o), &job));
	one_fini(&o);
}

/* ---- Entries ---- */

static void slots_are_used_again_with_higher_counts(void **state)
{
	struct one o;
	uint64_t id, last = 0;
	unsigned i;

	(void)state;
	one_run(&o, true, true);
	assert_int_equal(snd_room(one_snd(&o)), WIRE_SLOTS);
	for (i = 0; i < 3 * WIRE_SLOTS; i++) {
		id = one_offer(&o, WIRE_SYMLINK, 0);
		assert_true(wire_id_ok(id) && id >> 16 > last >> 16);
		last = id;
		one_answer(&o, id, WIRE_SEND_NONE);
		one_forget(&o);
	}
	assert_int_equal(snd_room(one_snd(&o)), WIRE_SLOTS);
	one_fini(&o);
}

static void a_lost_directory_takes_all_within(void **state)
{
	struct one o;
	uint64_t dir, child;

	(void)state;
	one_run(&o, true, true);
	dir = one_offer(&o, WIRE_DIR, 0);
	child = one_offer(&o, WIRE_FILE, 10);
	one_fail(&o, dir, PTCP_EIO);
	assert_int_equal(snd_room(one_snd(&o)), WIRE_SLOTS - 1);
	assert_true(o.fates[SND_FAILED] == 1 && o.fate_why.code == PTCP_EIO);
	one_offer(&o, WIRE_FILE, 10);
	one_offer(&o, WIRE_DIR, 0);
	one_offer(&o, WIRE_FILE, 10);
	assert_int_equal(snd_depth(one_snd(&o)), 2);
	snd_leave(one_snd(&o));
	assert_int_equal(o.fates[SND_FAILED], 4);
	snd_leave(one_snd(&o));
	snd_listed(one_snd(&o), 0, 0, true);
	assert_false(snd_finished(one_snd(&o)));
	one_fail(&o, child, PTCP_EPEER);
	assert_int_equal(o.fates[SND_FAILED], 5);
	assert_true(snd_finished(one_snd(&o)));
	assert_int_equal(engine_failed(o.s), 5);
	one_fini(&o);
}

/* The sender ends once its owner has done with ended entries. */
static void held(void **state)
{
	struct one o;
	struct span p;

	(void)state;
	one_run(&o, true, true);
	snd_hold(one_snd(&o));
	snd_hold(one_snd(&o));
	snd_listed(one_snd(&o), 0, 0, true);
	assert_true(snd_all_ended(one_snd(&o)) && !snd_finished(one_snd(&o)));
	engine_tick(o.s, (struct mono){ o.now_ns });
	assert_false(one_found(&o, WIRE_END, &p));
	snd_release(one_snd(&o));
	engine_tick(o.s, (struct mono){ o.now_ns });
	assert_false(one_found(&o, WIRE_END, &p));
	snd_release(one_snd(&o));
	engine_tick(o.s, (struct mono){ o.now_ns });
	assert_true(one_found(&o, WIRE_END, &p));
	one_fini(&o);
}

/* Ranges that wait are the session's memory: beyond its quarter, the file fails with the reason. */
static void ranges_are_limited(void **state)
{
	enum { MAX = 8 << 20, BLOCKS = 1 << 20 };
	struct memory_budget *b;
	struct span p;
	struct one o;
	uint32_t i;
	uint64_t id;

	(void)state;
	assert_int_equal(memory_budget_new(&b, MAX, NULL), 0);
	assert_int_equal(memory_account_new(&one_memory, b, "client", NULL), 0);
	id = one_sending(&o, 1, BLOCKS, WIRE_SEND_PARTS);
	for (i = 0; i < BLOCKS && !one_found(&o, WIRE_FAIL, &p); i += 2)
		blocks(&o, id, true, i, 1);
	assert_true(i < MAX / 4 / sizeof(uint64_t) * 2);
	one_fail(&o, id, PTCP_ENOMEM);
	assert_int_equal(o.fates[SND_FAILED], 1);
	assert_non_null(strstr(o.fate_why.msg, "quarter of the server's --max-memory"));
	assert_int_equal(o.ended, 0);
	one_fini(&o);
	assert_int_equal(memory_budget_used(b), 0);
	memory_account_free(one_memory);
	one_memory = NULL;
	memory_budget_free(b);
}

static void match(struct one *o, uint64_t id, uint32_t first, uint32_t count)
{
	ONE_PUT(o, match, (&(struct wire_blocks){ .id = id, .first = first, .count = count }));
}

static void assert_hashes(struct one *o, uint32_t first, uint16_t n, uint64_t hash)
{
	struct wire_hashes f;
	struct span p;

	assert_int_equal(one_said(o, &p), WIRE_HASHES);
	assert_int_equal(wire_hashes_decode(&f, p, NULL), 0);
	assert_true(f.first == first && f.n == n && wire_hash_decode(f.hashes.p).content == hash);
}

/* Two requests at a time, one after the other, in pieces. */
static void hashes_are_sent(void **state)
{
	static const struct block_sum hash[] = { { 7, 1 }, { 8, 2 }, { 9, 3 } };
	struct span p;
	struct one o;
	uint64_t id = one_sending(&o, 1, 10, WIRE_SEND_PARTS);

	(void)state;
	one_forget(&o);
	match(&o, id, 0, 3);
	match(&o, id, 5, 5);
	assert_true(o.hashes == 1 && o.hash_first == 0 && o.hash_count == 3 && snd_awaits_digest(one_snd(&o), id));
	snd_hashed(one_snd(&o), id, hash, 1, NULL);
	assert_hashes(&o, 0, 1, 7);
	assert_int_equal(o.hashes, 1);
	snd_hashed(one_snd(&o), id, hash + 1, 2, NULL);
	assert_hashes(&o, 1, 2, 8);
	assert_true(o.hashes == 2 && o.hash_first == 5 && o.hash_count == 5);
	snd_hashed(one_snd(&o), id, hash, 3, NULL);
	snd_hashed(one_snd(&o), id, hash, 2, NULL);
	assert_hashes(&o, 5, 3, 7);
	assert_hashes(&o, 8, 2, 7);
	assert_false(snd_awaits_digest(one_snd(&o), id));
	snd_hashed(one_snd(&o), id, hash, 1, NULL); /* nobody asked */
	assert_int_equal(one_said(&o, &p), 0);
	one_fini(&o);
}

/* A receiver that made us hash without end. */
static void hashes_are_sent_once(void **state)
{
	static const struct { uint32_t first, count; } bad[] = { { 0, 1 }, { 2, 1 }, { 9, 2 }, { 3, 1025 } };
	struct one o;
	uint64_t id;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		id = one_sending(&o, 1, bad[i].count > 2 ? 2000 : 10, WIRE_SEND_PARTS);
		match(&o, id, 0, 3);
		assert_int_equal(o.ended, 0);
		match(&o, id, bad[i].first, bad[i].count);
		assert_true(one_broke(&o) && o.hashes == 1);
		one_fini(&o);
	}
	id = one_sending(&o, 1, 10, WIRE_SEND_PARTS); /* a third one */
	match(&o, id, 0, 1);
	match(&o, id, 1, 1);
	assert_int_equal(o.ended, 0);
	match(&o, id, 2, 1);
	assert_true(one_broke(&o));
	one_fini(&o);
}

/* The file cannot be read: it fails, and requests in transit are ignored. */
static void hashes_that_cannot_be(void **state)
{
	struct ptcp_err why;
	struct span p;
	struct one o;
	uint64_t id = one_sending(&o, 1, 10, WIRE_SEND_PARTS);

	(void)state;
	one_forget(&o);
	err_set(&why, PTCP_EIO, "cannot be read");
	match(&o, id, 0, 3);
	snd_hashed(one_snd(&o), id, NULL, 0, &why);
	assert_int_equal(one_said(&o, &p), WIRE_FAIL);
	match(&o, id, 5, 3);
	assert_true(o.ended == 0 && o.hashes == 1);
	one_fail(&o, id, PTCP_EIO);
	assert_int_equal(o.fates[SND_FAILED], 1);
	one_fini(&o);
}

static void split(struct one *o, uint64_t id, uint32_t first, uint32_t count)
{
	ONE_PUT(o, split, (&(struct wire_blocks){ .id = id, .first = first, .count = count }));
}

static void patch(struct one *o, uint64_t id, uint32_t block, uint64_t omit)
{
	ONE_PUT(o, patch, (&(struct wire_patch){ id, block, omit }));
}

static void assert_pieces(struct one *o, uint32_t block)
{
	struct wire_hashes f;
	struct span p;

	assert_int_equal(one_said(o, &p), WIRE_PIECES);
	assert_int_equal(wire_pieces_decode(&f, p, NULL), 0);
	assert_true(f.first == block && f.n == WIRE_PIECES_MAX);
}

/* Any number of requests, one after the other, a block a frame; beside those for blocks. */
static void pieces_are_sent(void **state)
{
	static const struct block_sum sum[WIRE_PIECES_MAX];
	struct span p;
	struct one o;
	uint64_t id = one_sending(&o, 1, 10, WIRE_SEND_PARTS);

	(void)state;
	one_forget(&o);
	split(&o, id, 1, 2);
	split(&o, id, 5, 1);
	match(&o, id, 0, 1);
	assert_true(o.splits == 1 && o.hashes == 1 && snd_awaits_digest(one_snd(&o), id));
	snd_pieces(one_snd(&o), id, sum, WIRE_PIECES_MAX - 1, NULL); /* not all */
	assert_int_equal(one_said(&o, &p), 0);
	snd_pieces(one_snd(&o), id, sum, WIRE_PIECES_MAX, NULL);
	assert_pieces(&o, 1);
	assert_true(o.splits == 2 && o.hash_first == 2);
	snd_pieces(one_snd(&o), id, sum, WIRE_PIECES_MAX, NULL);
	assert_pieces(&o, 2);
	assert_true(o.splits == 3 && o.hash_first == 5);
	snd_pieces(one_snd(&o), id, sum, WIRE_PIECES_MAX, NULL);
	assert_pieces(&o, 5);
	snd_pieces(one_snd(&o), id, sum, WIRE_PIECES_MAX, NULL); /* nobody asked */
	assert_int_equal(one_said(&o, &p), 0);
	one_fini(&o);
}

/* A receiver that made us hash or store without end, and a block that the file does not have. */
static void wrong_requests_for_pieces(void **state)
{
	struct one o;
	uint64_t id;
	uint32_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		id = one_sending(&o, 1, 10, WIRE_SEND_PARTS);
		split(&o, id, 0, 3);
		assert_int_equal(o.ended, 0);
		if (i == 0)
			split(&o, id, 2, 1);
		else if (i == 1)
			split(&o, id, 9, 2);
		else
			patch(&o, id, 10, 1);
		assert_true(one_broke(&o) && o.splits == 1);
		one_fini(&o);
	}
	id = one_sending(&o, 1, 3000, WIRE_SEND_PARTS);
	for (i = 0; i < 1024; i++)
		split(&o, id, 2 * i, 1);
	assert_int_equal(o.ended, 0);
	split(&o, id, 2 * i, 1);
	assert_true(one_broke(&o));
	one_fini(&o);
	id = one_sending(&o, 1, 10, WIRE_SEND_ALL);
	patch(&o, id, 1, 1);
	assert_true(one_broke(&o));
	one_fini(&o);
	for (i = 0; i < 2; i++) {
		one_run(&o, true, true);
		id = one_offer(&o, WIRE_FILE, ONE_BLOCK + 5000);
		one_answer(&o, id, WIRE_SEND_PARTS);
		patch(&o, id, 1, 2 + 2 * i); /* the last block has two pieces */
		assert_int_equal(one_broke(&o), i == 1);
		one_fini(&o);
	}
}

/* Without the pieces, once; a lost or damaged one is sent whole. */
static void patches_are_sent(void **state)
{
	struct snd_job job;
	struct one o;
	uint64_t id = one_sending(&o, 2, 10, WIRE_SEND_PARTS);

	(void)state;
	patch(&o, id, 3, 0xf0);
	patch(&o, id, 4, 0x0f);
	ONE_PUT(&o, need, (&(struct wire_blocks){ .id = id, .first = 5, .count = 1 }));
	assert_true(snd_take(one_snd(&o), 0, (struct mono){ 1 }, &job));
	assert_true(job.n == 1 && job.extent[0].block == 3 && job.extent[0].omit == 0xf0);
	snd_stream_lost(one_snd(&o), 0);
	assert_true(snd_take(one_snd(&o), 1, (struct mono){ 2 }, &job));
	assert_true(job.extent[0].block == 4 && job.extent[0].omit == 0x0f);
	snd_read(one_snd(&o), 1, id, 4, (struct digest){ 0, 1 }, NULL, (struct mono){ 3 });
	assert_true(snd_take(one_snd(&o), 1, (struct mono){ 3 }, &job));
	assert_true(job.extent[0].block == 5 && job.extent[0].omit == 0);
	assert_true(snd_take(one_snd(&o), 1, (struct mono){ 3 }, &job));
	assert_true(job.extent[0].block == 3 && job.extent[0].omit == 0);
	ONE_PUT(&o, need, (&(struct wire_blocks){ .id = id, .first = 4, .count = 1 }));
	assert_true(snd_take(one_snd(&o), 1, (struct mono){ 4 }, &job));
	assert_true(job.extent[0].block == 4 && job.extent[0].omit == 0);
	assert_int_equal(o.ended, 0);
	one_fini(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hashes_are_sent), cmocka_unit_test(hashes_are_sent_once),
		cmocka_unit_test(hashes_that_cannot_be), cmocka_unit_test(pieces_are_sent),
		cmocka_unit_test(wrong_requests_for_pieces), cmocka_unit_test(patches_are_sent),
		cmocka_unit_test(parts_in_order),
		cmocka_unit_test(many_ranges_keep_their_order),
		cmocka_unit_test(what_is_had_need_not_arrive),
		cmocka_unit_test(no_end_of_ranges), cmocka_unit_test(ranges_are_limited),
		cmocka_unit_test(all_is_had),
		cmocka_unit_test(spoilt_ones_go_again_at_once),
		cmocka_unit_test(no_end_of_spoilt_ones),
		cmocka_unit_test(no_end_before_the_first_good_one),
		cmocka_unit_test(a_copy_that_cannot_be_read),
		cmocka_unit_test(a_copy_that_cannot_be_read_of_what_has_not_been),
		cmocka_unit_test(the_only_one_that_cannot_be_read),
		cmocka_unit_test(late_read_failures),
		cmocka_unit_test(acknowledged_without_its_term),
		cmocka_unit_test(changed_too_late), cmocka_unit_test(vanished),
		cmocka_unit_test(lost_blocks_go_first),
		cmocka_unit_test(lost_blocks_go_before_other_files),
		cmocka_unit_test(copies),
		cmocka_unit_test(copies_of_what_was_not_read),
		cmocka_unit_test(paced),
		cmocka_unit_test(patience),
		cmocka_unit_test(patience_ends_before_the_peers),
		cmocka_unit_test(a_stalled_stream_is_told_of_once),
		cmocka_unit_test(a_slow_stream_gets_more_time),
		cmocka_unit_test(a_new_connection_begins_with_one_job),
		cmocka_unit_test(stalled_with_what_nobody_waits_for),
		cmocka_unit_test(small_files_share_jobs),
		cmocka_unit_test(slots_are_used_again_with_higher_counts),
		cmocka_unit_test(a_lost_directory_takes_all_within), cmocka_unit_test(held),
	};
	return cmocka_run_group_tests_name("engine/sender", tests, NULL, NULL);
}
