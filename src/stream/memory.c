/* Memory of a stream: taken from the session's account while the stream has data in buffers, so idle streams have
 * none. Beyond the limit streams wait in turn, while their data waits in the sockets. */
#include <assert.h>

#include "core/err.h"
#include "stream/stream_impl.h"

/* A receiver fills the channel's input buffer and a chunk, a sender a job's buffer and the channel's output buffer, a
 * generator the latter only. */
static uint64_t need_bytes(const struct stream *s)
{
	if (s->o.files != NULL)
		return 2 * WIRE_CHUNK_BYTES;
	return LOOP_LARGE_BUFFER_BYTES + (s->o.generate_data != NULL ? 0 : LOOP_BUFFER_BYTES);
}

static_assert(LOOP_LARGE_BUFFER_BYTES + LOOP_BUFFER_BYTES <= MEMORY_SESSION_BYTES, "guaranteed: memory for a stream");

/* ---- Messages from the budget ---- */

static void on_granted(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, memory.granted);

	s->memory.awaits = false;
	s->memory.has = true;
	s->memory.worked = false;
	if (!s->stopping && !s->lost_posted) {
		if (s->o.files != NULL)
			chan_pause(s->chan, false);
		else
			s->chan_ops->writable(s);
	}
	stream_io_done(s);
}

/* Unless this end is to blame: then the peer must be. */
static bool waits_for_peer(const struct stream *s)
{
	return !s->stopping && s->memory.has && !s->pace.waits && s->n_io == 0 && s->lock.since.ns == 0;
}

static void on_stalled(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, memory.stalled);
	struct ptcp_err why;

	atomic_store(&s->memory.stall_posted, false);
	if (s->memory.awaits_stall) {
		stream_io_done(s);
	} else if (waits_for_peer(s)) {
		err_set(&why, PTCP_ETIMEOUT, "no progress for %u s while other streams waited for memory",
		    (unsigned)(MEMORY_STALL_NS / NS_PER_S));
		stream_fail(s, &why);
	}
}

/* On any thread, under the budget's lock, like stalled(). */
static void granted(struct memory_claim *c)
{
	struct stream *s = CONTAINER_OF(c, struct stream, memory.claim);

	s->memory.granted.run = on_granted;
	mailbox_post(s->box, &s->memory.granted);
}

static void stalled(struct memory_claim *c)
{
	struct stream *s = CONTAINER_OF(c, struct stream, memory.claim);

	if (atomic_exchange(&s->memory.stall_posted, true))
		return;
	s->memory.stalled.run = on_stalled;
	mailbox_post(s->box, &s->memory.stalled);
}

/* ---- On the worker ---- */

void stream_memory_init(struct stream *s)
{
	memory_claim_init(&s->memory.claim, s->o.memory);
	s->memory.claim.granted = granted;
	s->memory.claim.stalled = s->o.only_stream ? NULL : stalled;
	s->memory.claim.moved = &s->moved;
	atomic_init(&s->memory.stall_posted, false);
}

bool stream_memory_take(struct stream *s)
{
	if (s->memory.has)
		return true;
	if (!s->memory.awaits && memory_take(&s->memory.claim, need_bytes(s))) {
		s->memory.has = true;
		s->memory.worked = false;
		return true;
	}
	if (s->o.files != NULL)
		chan_pause(s->chan, true);
	if (!s->memory.awaits) { /* the peer sees a busy stream */
		s->memory.awaits = true;
		stream_io_begin(s);
	}
	return false;
}

bool stream_memory_turn(struct stream *s)
{
	if (s->memory.has && s->memory.worked && memory_wanted(&s->memory.claim))
		stream_memory_give(s);
	return stream_memory_take(s);
}

void stream_memory_give(struct stream *s)
{
	if (!s->memory.has)
		return;
	memory_give(&s->memory.claim);
	s->memory.has = false;
}

uint8_t *stream_memory_take_buf(struct stream *s)
{
	uint8_t *buf;

	if (s->memory.n_bufs > 0 && !memory_grow(&s->memory.claim, LOOP_BUFFER_BYTES))
		return NULL;
	if ((buf = loop_buffer_take(s->loop, false)) != NULL)
		s->memory.n_bufs++;
	else if (s->memory.n_bufs > 0)
		memory_shrink(&s->memory.claim, LOOP_BUFFER_BYTES);
	return buf;
}

void stream_memory_give_buf(struct stream *s, uint8_t *buf)
{
	if (buf == NULL)
		return;
	loop_buffer_give(s->loop, buf, false);
	if (--s->memory.n_bufs > 0)
		memory_shrink(&s->memory.claim, LOOP_BUFFER_BYTES);
}

void stream_memory_stop(struct stream *s)
{
	if (s->memory.awaits && memory_give(&s->memory.claim))
		stream_io_done(s); /* else on_granted() will */
}

bool stream_memory_fini(struct stream *s)
{
	stream_memory_give(s);
	if (!atomic_load(&s->memory.stall_posted))
		return true;
	s->memory.awaits_stall = true;
	stream_io_begin(s);
	return false;
}
