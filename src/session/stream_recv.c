/* The receiving half of a stream, on its worker: a block is gathered in memory, verified, and only
 * then written to its file: what does not verify never touches one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conn/err_path.h"
#include "core/err.h"
#include "core/units.h"
#include "session/stream_impl.h"
#include "store/hash.h"

#define BLOCKS_PER_TURN 8u        /* so that one stream does not starve the others */
#define SMALL_PER_TURN 128u
#define BUF_BYTES (256u << 10)
#define SLOW_WRITE_NS (50 * NS_PER_MS)
#define SLOW_FOR_NS (5 * NS_PER_S)
#define HELD_RETRY_NS (20 * NS_PER_MS)
#define HELD_NS (5 * NS_PER_S)

struct news_msg {
	struct msg msg;
	struct stream *stream;
	struct stream_news news;
};

/* On the control thread. */
static void tell_news(struct msg *m)
{
	struct news_msg *n = (struct news_msg *)(void *)m;

	n->stream->o.ops->received(n->stream->o.arg, n->stream, &n->news);
	free(n);
}

static void post_news(struct stream *s)
{
	struct news_msg *n = s->news;

	if (n == NULL)
		return;
	s->news = NULL;
	n->msg.run = tell_news;
	loop_post(s->o.host->control, &n->msg);
}

/* One allocation for up to STREAM_NEWS blocks of a turn. */
static void add_news(struct stream *s, enum rcv_block_news what, struct digest term,
    const struct ptcp_err *why)
{
	struct stream_news *n;
	struct ptcp_err nomem;

	if (s->news == NULL && (s->news = calloc(1, sizeof *s->news)) == NULL) {
		err_nomem(&nomem);
		stream_fail(s, &nomem);
		return;
	}
	s->news->stream = s;
	n = &s->news->news;
	n->of[n->n].id = s->block.id;
	n->of[n->n].block = s->index;
	n->of[n->n].what = what;
	n->of[n->n].term = term;
	n->of[n->n].why = NULL;
	if (why != NULL && (n->of[n->n].why = malloc(sizeof *why)) != NULL)
		*n->of[n->n].why = *why;
	if (++n->n == STREAM_NEWS)
		post_news(s);
}

static void block_written(struct stream *s, int result, const struct ptcp_err *why)
{
	struct digest term = { 0, 0 };
	char path[DIR_PATH_TEXT_BYTES];
	struct ptcp_err bare;

	if (result == 0) {
		if (s->o.verify)
			term = hash_term(s->index, s->block.length_bytes, s->hash);
		add_news(s, RCV_BLOCK_WRITTEN, term, NULL);
	} else {
		err_path_strip(&bare, why, sink_path_text(s->sink, path, sizeof path));
		/* That ends the transfer, and is told without a path beside it. */
		add_news(s, RCV_BLOCK_FAILED, term, why->code == PTCP_ENOSPC ? why : &bare);
	}
	sink_unref(s->sink);
	s->sink = NULL;
}

static bool write_block(struct stream *s);

static void on_waited(void *arg)
{
	struct stream *s = arg;

	if (!s->stopping && s->sink != NULL && write_block(s)) {
		post_news(s);
		chan_pause(s->chan, false);
	}
}

/* False when it has waited for long or cannot. */
static bool wait_a_moment(struct stream *s)
{
	struct mono now = mono_now();
	struct ptcp_err e;

	if (s->waiting_since.ns == 0)
		s->waiting_since = now;
	if (mono_diff_ns(now, s->waiting_since) > HELD_NS ||
	    (s->waiting == NULL && timer_new(&s->waiting, s->loop, on_waited, s, &e) < 0))
		return false;
	chan_pause(s->chan, true);
	timer_set(s->waiting, mono_add_ns(now, HELD_RETRY_NS));
	return true;
}

static void on_held_answer(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, ask_held);

	s->asking_held = false;
	if (s->held == HELD_ASKED)
		s->held = s->held_yields ? HELD_YIELDS : HELD_ALIEN;
	stream_io_done(s);
}

/* On the control thread. */
static void ask_held(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, ask_held);

	s->held_yields = s->o.ops->held(s->o.arg, s->held_dev, s->held_ino);
	m->run = on_held_answer;
	loop_post(s->loop, m);
}

/* Whether to try again; as after a connection that died without a word, whose session still has what it
 * was receiving. */
static bool wait_for_holder(struct stream *s)
{
	switch (s->held) {
	case HELD_NO:
		if (s->asking_held) /* about one before this */
			return wait_a_moment(s);
		if (!sink_part_id(s->sink, &s->held_dev, &s->held_ino))
			return false;
		s->asking_held = true;
		s->held = HELD_ASKED;
		s->n_io++;
		atomic_fetch_add(&s->on_disk, 1);
		s->ask_held.run = ask_held;
		loop_post(s->o.host->control, &s->ask_held);
		return wait_a_moment(s);
	case HELD_ASKED:
	case HELD_YIELDS:
		return wait_a_moment(s);
	case HELD_ALIEN:
		s->held = HELD_LAST;
		return wait_a_moment(s);
	case HELD_LAST:
		break;
	}
	return false;
}

/* 1: done with the block, 0: it waits. */
static bool settle(struct stream *s, int result, const struct ptcp_err *why)
{
	if (result < 0 && why->sys == EWOULDBLOCK && !s->stopping && wait_for_holder(s))
		return false;
	s->waiting_since.ns = 0;
	s->held = HELD_NO;
	block_written(s, result, why);
	return true;
}

static void on_write_done(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, write_done);

	if (settle(s, s->write_result, &s->write_why)) {
		post_news(s);
		if (!s->stopping)
			chan_pause(s->chan, false);
	}
	stream_io_done(s);
}

/* On an I/O thread. */
static void write_on_disk(struct io_job *io)
{
	struct stream *s = CONTAINER_OF(io, struct stream, write_io);

	s->write_result = sink_write(s->sink, s->buf, s->block.length_bytes, s->block.offset,
	    s->hash, &s->write_why);
	s->write_done.run = on_write_done;
	loop_post(s->loop, &s->write_done);
}

/* Into the page cache from here; when that took long the disk pushes back, and for a while writes go
 * to the I/O threads, the stream pausing meanwhile. False: it pauses. */
static bool write_block(struct stream *s)
{
	struct mono start = mono_now(), end;
	struct ptcp_err why;
	int r;

	if (start.ns < s->slow_until.ns) {
		chan_pause(s->chan, true);
		s->n_io++;
		atomic_fetch_add(&s->on_disk, 1);
		s->write_io.run = write_on_disk;
		io_submit(s->o.host->io, &s->write_io);
		return false;
	}
	r = sink_write(s->sink, s->buf, s->block.length_bytes, s->block.offset, s->hash, &why);
	end = mono_now();
	if (mono_diff_ns(end, start) > SLOW_WRITE_NS)
		s->slow_until = mono_add_ns(end, SLOW_FOR_NS);
	return settle(s, r, &why);
}

/* The head is here: where does the block go? */
static int start_block(struct stream *s, struct ptcp_err *e)
{
	size_t need;
	bool ok;
	int r;

	if ((r = wire_block_decode(&s->block, s->head, e)) < 0)
		return r;
	if (s->taken == 0)
		s->began = mono_now();
	s->taken += s->block.length_bytes;
	if (s->o.most_bytes > 0 && s->taken > s->o.most_bytes)
		return err_set(e, PTCP_EREFUSED, "more than this host takes on one stream of a probe");
	s->sink = open_files_find(s->o.intake, &s->block, &s->index, &ok);
	if (!ok)
		return err_set(e, PTCP_EPROTO, "a block that does not fit its file");
	need = s->block.length_bytes > BUF_BYTES ? s->block.length_bytes : BUF_BYTES;
	if (need > s->buf_bytes) {
		free(s->buf);
		s->buf = malloc(need);
		s->buf_bytes = s->buf != NULL ? need : 0;
		if (s->buf == NULL)
			return err_nomem(e);
	}
	return 0;
}

/* The block is here whole. 1: go on, 0: paused, negative: of no use any more. */
static int end_block(struct stream *s, struct ptcp_err *e)
{
	struct digest none = { 0, 0 };
	struct wire_block_end end;
	int r;

	if ((r = wire_block_end_decode(&end, s->tail, e)) < 0)
		return r;
	if (s->sink != NULL && end.status == WIRE_BLOCK_VOID) {
		sink_unref(s->sink);
		s->sink = NULL;
	}
	if (s->sink == NULL)
		return 1;
	if (s->o.verify || sink_has_journal(s->sink))
		s->hash = hash_content(s->buf, s->block.length_bytes);
	if (s->o.verify) {
		if (end.check != hash_check(s->head + WIRE_HEADER_BYTES, s->hash)) {
			add_news(s, RCV_BLOCK_BAD, none, NULL);
			sink_unref(s->sink);
			s->sink = NULL;
			return 1;
		}
	}
	return write_block(s);
}

/* Fills one part of the block; false: not all of it is here yet, or the rate forbids to read it. */
static bool gather(struct stream *s, uint8_t *to, size_t n)
{
	size_t leave, got;

	while (s->got < n) {
		if ((leave = stream_leave(s, n - s->got)) == 0) {
			chan_pause(s->chan, true);
			return false;
		}
		got = chan_read(s->chan, to + s->got, leave);
		stream_took(s, got);
		s->got += got;
		if (got < leave)
			return false;
	}
	s->got = 0;
	return true;
}

/* 1: one step done, 0: nothing more now, negative: broken. */
static int step(struct stream *s, unsigned *blocks, unsigned *small, struct ptcp_err *e)
{
	int r;

	switch (s->phase) {
	case PHASE_HEAD:
		if (!gather(s, s->head, sizeof s->head))
			return 0;
		if ((r = start_block(s, e)) < 0)
			return r;
		s->phase = PHASE_BODY;
		return 1;
	case PHASE_BODY:
		if (!gather(s, s->buf, s->block.length_bytes))
			return 0;
		s->phase = PHASE_END;
		return 1;
	case PHASE_END:
		if (!gather(s, s->tail, sizeof s->tail))
			return 0;
		s->phase = PHASE_HEAD;
		if ((r = end_block(s, e)) <= 0)
			return r;
		if (s->block.length_bytes >= BUF_BYTES / 2)
			++*blocks;
		return ++*small < SMALL_PER_TURN && *blocks < BLOCKS_PER_TURN;
	}
	return 0;
}

void stream_recv_readable(void *arg)
{
	struct stream *s = arg;
	unsigned blocks = 0, small = 0;
	struct ptcp_err why;
	int r;

	if (s->told_lost)
		return;
	while ((r = step(s, &blocks, &small, &why)) > 0)
		;
	post_news(s);
	if (r < 0) {
		chan_pause(s->chan, true);
		stream_fail(s, &why);
	}
}

/* A rate pauses it only between two parts of what is read, never while a block is being written. */
void stream_recv_go_on(struct stream *s)
{
	chan_pause(s->chan, false);
}

void stream_recv_fini(struct stream *s)
{
	sink_unref(s->sink);
	free(s->news);
	free(s->buf);
}
