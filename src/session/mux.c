#include "session/mux.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "core/byteorder.h"
#include "core/err.h"
#include "core/fd.h"
#include "wire/block.h"

#define PIECE_BYTES (32u << 10)
#define TURN_BYTES (256u << 10) /* bytes from the peer, per turn of the loop */

/* One direction: the position within the frame, and a piece of the frame being forwarded. */
struct mux_lane {
	size_t head_bytes;   /* first bytes of a frame, forwarded in one piece */
	uint8_t head[WIRE_BLOCK_HEAD_BYTES];
	size_t head_got;
	uint32_t left;       /* bytes of the frame after the head, not yet read */
	size_t start, end;
	uint8_t piece[PIECE_BYTES];
};

struct mux {
	struct loop *loop;
	struct chan *inner;  /* the other end of the stream's socket pair; NULL until opened */
	bool lost;           /* the stream has closed its end */
	const struct mux_ops *ops;
	void *arg;
	struct mux_lane in, out;
};

/* ---- Frames ---- */

/* Fills an empty piece with a head or a part of the payload. False: no data for now. */
static bool fill(struct mux_lane *l, struct chan *from)
{
	if (l->start < l->end)
		return true;
	if (l->head_got < l->head_bytes) {
		l->head_got += chan_read(from, l->head + l->head_got, l->head_bytes - l->head_got);
		if (l->head_got < l->head_bytes)
			return false;
		l->left = get_u32(l->head + 4) - (uint32_t)(l->head_bytes - WIRE_HEADER_BYTES);
		memcpy(l->piece, l->head, l->head_bytes);
		l->end = l->head_bytes;
	} else {
		l->end = chan_read(from, l->piece, l->left < PIECE_BYTES ? l->left : PIECE_BYTES);
		l->left -= (uint32_t)l->end;
	}
	l->start = 0;
	return l->end > 0;
}

/* ---- The stream's end ---- */

static void on_inner(void *arg)
{
	struct mux *m = arg;

	m->ops->pump(m->arg);
}

static void on_inner_closed(void *arg, const struct ptcp_err *why)
{
	struct mux *m = arg;

	(void)why; /* stream_stop() closed it */
	m->lost = true;
	m->ops->pump(m->arg);
}

static const struct chan_ops inner_ops = { .readable = on_inner, .writable = on_inner, .closed = on_inner_closed };
static const struct chan_ops no_ops = { .readable = NULL }; /* no callback before the stream takes the channel */

int mux_open(struct mux *m, struct chan **stream_end, struct ptcp_err *e)
{
	const struct chan_opts ours = { .ops = &inner_ops, .arg = m }, theirs = { .ops = &no_ops };
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return err_sys(e, PTCP_EIO, "making a socket pair");
	if ((r = chan_new(stream_end, m->loop, NULL, &pair[1], &theirs, e)) < 0)
		fd_close(&pair[0]);
	else if ((r = chan_new(&m->inner, m->loop, NULL, &pair[0], &ours, e)) < 0)
		chan_free(*stream_end);
	return r;
}

int mux_new(struct mux **out, struct loop *l, const struct mux_ops *ops, void *arg, struct ptcp_err *e)
{
	struct mux *m = calloc(1, sizeof *m);

	if (m == NULL)
		return err_nomem(e);
	m->loop = l;
	m->in.head_bytes = WIRE_HEADER_BYTES;
	m->out.head_bytes = WIRE_BLOCK_HEAD_BYTES; /* a stream sends only blocks */
	m->ops = ops;
	m->arg = arg;
	*out = m;
	return 0;
}

void mux_free(struct mux *m)
{
	if (m == NULL)
		return;
	chan_free(m->inner);
	free(m);
}

/* ---- From the peer ---- */

/* Returns the bytes accepted. */
static size_t forward(struct mux *m, const uint8_t *p, size_t n)
{
	if (m->in.head[0] != WIRE_BLOCK || m->inner == NULL)
		m->ops->control(m->arg, p, n);
	else if (!m->lost)
		return chan_write(m->inner, p, n);
	return n;
}

bool mux_has_pending(const struct mux *m) { return m->in.start < m->in.end; }

void mux_input(struct mux *m, struct chan *control)
{
	struct mux_lane *l = &m->in;
	size_t total = 0;

	while (total < TURN_BYTES && fill(l, control)) {
		total += l->end - l->start;
		l->start += forward(m, l->piece + l->start, l->end - l->start);
		if (mux_has_pending(m))
			break;
		if (l->left == 0)
			l->head_got = 0;
	}
	if (m->inner != NULL)
		chan_flush(m->inner);
	chan_pause(control, mux_has_pending(m));
}

/* ---- To the peer ---- */

/* The stream has ended within a block: completes the block with zeros and, unless the status is already being sent,
 * the status "void". */
static bool fill_void(struct mux *m)
{
	struct mux_lane *l = &m->out;
	size_t n = l->left;

	if (!m->lost || l->head_got < l->head_bytes)
		return false;
	if (n > WIRE_BLOCK_END_BYTES)
		n = n - WIRE_BLOCK_END_BYTES < PIECE_BYTES ? n - WIRE_BLOCK_END_BYTES : PIECE_BYTES;
	memset(l->piece, 0, n);
	if (l->left == WIRE_BLOCK_END_BYTES)
		put_u32(l->piece, WIRE_BLOCK_VOID);
	l->start = 0;
	l->end = n;
	l->left -= (uint32_t)n;
	return true;
}

bool mux_is_between(const struct mux *m)
{
	return m->out.start == m->out.end && m->out.head_got < m->out.head_bytes;
}

bool mux_output(struct mux *m, struct chan *control)
{
	struct mux_lane *l = &m->out;

	if (m->inner == NULL)
		return false;
	while (fill(l, m->inner) || fill_void(m)) {
		l->start += chan_write(control, l->piece + l->start, l->end - l->start);
		chan_pause(m->inner, l->start < l->end);
		if (l->start < l->end)
			return false;
		if (l->left == 0) {
			l->head_got = 0;
			return true;
		}
	}
	return false;
}
