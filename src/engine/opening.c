/* The handshake: HELLO, OPEN, WAITING, OPENED (PROTOCOL.md, section 4). */
#include "core/err.h"

#include <string.h>

#include "core/units.h"
#include "engine/engine_impl.h"

#define QUIET_MIN_MS 300u
#define REGION_BYTES (UINT64_C(64) << 20) /* a multiple of nearly all stripes */
#define BLOCK_BYTES (2u << 20)            /* a multiple of all sizes of blocks */

/* Regions end at stripes of the receiver's file system, which pays more for a stripe that two hosts write than the
 * sender's for one that two hosts read; and, if that costs little, at ends of blocks. */
static uint64_t region_bytes(const struct engine *s, const struct wire_opened *o)
{
	uint32_t receiver = s->open.role == WIRE_ACCEPTOR_RECEIVES ? o->stripe : s->open.stripe,
	    sender = s->open.role == WIRE_ACCEPTOR_RECEIVES ? s->open.stripe : o->stripe;
	uint64_t stripe = (uint64_t)(receiver > 0 ? receiver : sender) * WIRE_STRIPE_BYTES, step = stripe;

	if (s->o.region_bytes > 0)
		return s->o.region_bytes;
	if (stripe == 0)
		return REGION_BYTES;
	while (step % BLOCK_BYTES != 0)
		step *= 2;
	if (step > (uint64_t)WIRE_STRIPES_MAX * WIRE_STRIPE_BYTES)
		step = stripe;
	return (REGION_BYTES + step - 1) / step * step;
}

static int run(struct engine *s, const struct wire_opened *o, const char *event, struct ptcp_err *e)
{
	struct rcv_opts rcv = { s->o.max_entries, (s->open.flags & WIRE_OPEN_VERIFY) != 0,
		(s->open.flags & WIRE_OPEN_DRY_RUN) != 0, s->o.ops->rcv, s->o.arg, s->o.memory, s->tape };
	struct snd_terms terms = { s->peer_entries, s->timeout_ns, s->linger_ns, engine_spooled(s),
		region_bytes(s, o) };
	int r = 0;

	if (!s->o.starter && s->open.role == WIRE_ACCEPTOR_SENDS)
		r = engine_new_sender(s, e);
	else if (!engine_measures(s) && s->snd == NULL)
		r = rcv_new(&s->rcv, &rcv, &s->conn.out, e);
	if (r < 0)
		return r;
	if (s->snd != NULL)
		snd_agree(s->snd, &terms);
	s->running_since = s->conn.last_progress;
	s->moved = false;
	engine_set_state(s, RUNNING, event);
	s->o.ops->running(s->o.arg, o);
	return 0;
}

static bool has_ability(const struct wire_hello *h, enum wire_ability a)
{
	unsigned i;

	for (i = 0; i < h->n_abilities; i++)
		if (h->abilities[i] == a)
			return true;
	return false;
}

/* A longer time-out of the peer holds here, too, as far as this end would wait for a lost connection. */
static void agree_on_times(struct engine *s, const struct wire_hello *h)
{
	uint64_t peer_ns = h->timeout_ms * NS_PER_MS, linger_ns = h->linger_ms * NS_PER_MS;

	s->ping_ns = (h->quiet_ms > QUIET_MIN_MS ? h->quiet_ms : QUIET_MIN_MS) * NS_PER_MS / 3;
	if (peer_ns > s->o.linger_ns)
		peer_ns = s->o.linger_ns;
	if (s->timeout_ns < peer_ns)
		s->timeout_ns = peer_ns;
	if (s->linger_ns > linger_ns)
		s->linger_ns = linger_ns;
}

int engine_on_hello(struct engine *s, const struct wire_hello *h, struct ptcp_err *e)
{
	if (h->version_min > WIRE_VERSION || h->version_max < WIRE_VERSION)
		return err_set(e, PTCP_EPROTO, "the peer speaks versions %u to %u of the protocol, "
		    "this is version %u (update the older side)", h->version_min, h->version_max, WIRE_VERSION);
	if (s->o.one_channel && !has_ability(h, WIRE_ABLE_ONE_CHANNEL))
		return err_set(e, PTCP_EPROTO,
		    "the peer does not accept data on the control connection (open a port to it)");
	agree_on_times(s, h);
	s->peer_entries = h->max_entries;
	if (!s->o.starter) {
		engine_set_state(s, AWAIT_OPEN, "HELLO");
		return 0;
	}
	s->opened = s->conn.last_input;
	engine_set_state(s, OPENING, "HELLO");
	return 0;
}

int engine_on_open(struct engine *s, const struct wire_open *o, struct ptcp_err *e)
{
	(void)e;
	s->open = *o;
	s->open.paths = (struct span){ NULL, 0 };
	engine_set_state(s, AUTHORIZING, "OPEN");
	s->o.ops->open(s->o.arg, o);
	return 0;
}

int engine_on_early_entry(struct engine *s, struct span in, struct ptcp_err *e)
{
	uint8_t *p;

	if (++s->n_early > WIRE_EARLY_ENTRIES || buf_len(&s->early) + in.n > WIRE_EARLY_BYTES)
		return err_set(e, PTCP_EPROTO, "too many ENTRY frames before OPENED");
	if ((p = buf_reserve(&s->early, in.n, e)) == NULL)
		return PTCP_ENOMEM;
	memcpy(p, in.p, in.n);
	buf_added(&s->early, in.n);
	return 0;
}

/* The early entries, in order, as if they arrived now. */
static int take_early(struct engine *s, struct ptcp_err *e)
{
	struct span in;
	struct wire_header h;
	struct wire_entry f;
	int r = 0;

	while (r == 0 && !engine_over(s) && buf_len(&s->early) > 0 &&
	    (r = wire_frame_next(&h, &in, (struct span){ buf_head(&s->early), buf_len(&s->early) }, e)) > 0) {
		if ((r = wire_entry_decode(&f, in, e)) == 0)
			r = rcv_on_entry(s->rcv, &f, e);
		buf_consume(&s->early, WIRE_HEADER_BYTES + h.length);
	}
	buf_fini(&s->early);
	return r;
}

int engine_on_waiting(struct engine *s, const struct wire_waiting *f, struct ptcp_err *e)
{
	if (s->open.wait_ms == 0)
		return frame_conn_unexpected(&s->conn, WIRE_WAITING, e);
	if (mono_diff_ns(s->conn.last_input, s->opened) > s->open.wait_ms * NS_PER_MS + s->o.timeout_ns)
		return err_set(e, PTCP_EBUSY,
		    "too busy: the server has no room yet (try again later, or wait longer with --wait)");
	s->o.ops->waiting(s->o.arg, f->ahead);
	return 0;
}

int engine_on_opened(struct engine *s, const struct wire_opened *o, struct ptcp_err *e)
{
	if (o->streams > s->open.streams || o->cipher != s->open.cipher ||
	    ((o->flags & WIRE_OPENED_MOVERS) != 0 && (s->open.flags & WIRE_OPEN_MOVERS) == 0))
		return err_set(e, PTCP_EPROTO, "the peer granted more than was requested");
	return run(s, o, "OPENED", e);
}

void engine_wait(struct engine *s, uint32_t ahead)
{
	struct wire_waiting f = { ahead };

	if (s->state == AUTHORIZING)
		OUTBOX_PUT(&s->conn.out, waiting, WAITING, &f);
}

void engine_accept(struct engine *s, const struct wire_opened *o, struct mono now)
{
	struct ptcp_err e;

	tape_write_opened(s->tape, o, now);
	if (s->state != AUTHORIZING)
		return;
	OUTBOX_PUT(&s->conn.out, opened, OPENED, o);
	engine_advance(s, now);
	if (run(s, o, "accept", &e) < 0 || take_early(s, &e) < 0)
		engine_give_up(s, &e);
}
