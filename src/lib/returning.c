/* The control connection's successors: when it dies the starter makes another one, over another path where there
 * is one, and both sides go on where the other has got to. */
#include <string.h>

#include "core/err.h"
#include "core/units.h"
#include "lib/party_impl.h"

#define KEPT_MAX_BYTES (8u << 20)
#define TELL_BYTES (32u << 10)      /* the peer is told after so many */
#define RESYNC_NS (3 * NS_PER_S)    /* for the peer to say where to go on */

/* The last word is the receiver's: a sender that is over has heard it. */
bool returning_may(const struct party *p)
{
	return p->running && !p->failed && !p->told_gone && !p->returning.vain && session_returns(p->session) &&
	    (!p->over || p->rcv != NULL);
}

static bool starts(const struct party *p)
{
	return p->o.connects && p->o.open != NULL;
}

/* ---- Counting and keeping ---- */

size_t returning_write(struct party *p, const uint8_t *bytes, size_t n)
{
	struct returning *r = &p->returning;
	size_t len = buf_len(&r->kept), done;
	uint8_t *room;

	if (!session_returns(p->session))
		return n > 0 ? chan_write(p->control, bytes, n) : 0;
	while (r->again > 0) {
		if ((done = chan_write(p->control, buf_head(&r->kept) + len - r->again, r->again)) == 0)
			return 0;
		r->again -= done;
	}
	if (n > KEPT_MAX_BYTES - len)
		n = KEPT_MAX_BYTES - len;
	if (n == 0 || (room = buf_reserve(&r->kept, n)) == NULL)
		return 0;
	done = chan_write(p->control, bytes, n);
	memcpy(room, bytes, done);
	buf_added(&r->kept, done);
	return done;
}

void returning_heard(struct party *p, size_t n)
{
	struct returning *r = &p->returning;
	struct wire_heard f = { r->heard + n };

	r->heard = f.bytes;
	if (!session_returns(p->session) || !p->running || r->heard - r->told < TELL_BYTES)
		return;
	r->told = r->heard;
	OUTBOX_PUT(session_outbox(p->session), heard, HEARD, &f);
}

int returning_told(void *arg, uint64_t bytes, struct ptcp_err *e)
{
	struct party *p = arg;
	struct returning *r = &p->returning;

	if (bytes < r->kept_from || bytes - r->kept_from > buf_len(&r->kept) - r->again)
		return err_set(e, PTCP_EPROTO, "the peer has heard what was not sent");
	buf_consume(&r->kept, (size_t)(bytes - r->kept_from));
	r->kept_from = bytes;
	return 0;
}

/* ---- The next connection ---- */

static void drop(struct party *p)
{
	chan_free(p->returning.chan);
	p->returning.chan = NULL;
}

static void on_opened(void *arg)
{
	(void)arg;
}

static void go_on(struct party *p, const struct wire_heard *f)
{
	struct returning *r = &p->returning;
	struct chan *c = r->chan;
	struct ptcp_err why;

	r->chan = NULL;
	r->again = 0;
	chan_depart(c);
	if (chan_arrive(c, p->o.host->control, &party_control_ops, p, &why) < 0) {
		chan_free(c);
		party_fail(p, &why);
		party_pump(p);
		return;
	}
	p->control = c;
	if (returning_told(p, f->bytes, &why) < 0) {
		party_fail(p, &why);
	} else {
		log_at(&p->o.host->log, LOG_INFO, "session", "event=control-back again=%zu", buf_len(&r->kept));
		r->again = buf_len(&r->kept);
		r->since = mono_now();
		p->retries[JOINER_CONTROL] = 0;
	}
	party_pump(p);
}

static void on_readable(void *arg)
{
	struct party *p = arg;
	struct returning *r = &p->returning;
	struct wire_header h;
	struct wire_heard f;
	struct ptcp_err why;

	r->got += chan_read(r->chan, r->frame + r->got, sizeof r->frame - r->got);
	if (r->got < sizeof r->frame)
		return;
	if (wire_header_decode(&h, r->frame, &why) < 0 || h.type != WIRE_HEARD ||
	    h.length != sizeof r->frame - WIRE_HEADER_BYTES ||
	    wire_heard_decode(&f, (struct span){ r->frame + WIRE_HEADER_BYTES, h.length }, &why) < 0) {
		drop(p);
		party_pump(p);
		return;
	}
	go_on(p, &f);
}

static void on_closed(void *arg, const struct ptcp_err *why)
{
	struct party *p = arg;

	(void)why;
	drop(p);
	party_pump(p);
}

static const struct chan_ops heard_ops = { on_opened, on_readable, on_opened, on_closed };

void returning_take(struct party *p, struct chan *c)
{
	struct returning *r = &p->returning;
	struct wire_heard f = { r->heard };
	uint8_t frame[WIRE_HEARD_MAX_BYTES];
	struct ptcp_err why;

	if (!returning_may(p)) {
		chan_free(c);
		return;
	}
	drop(p);
	chan_free(p->control); /* the peer has left it */
	p->control = NULL;
	chan_depart(c);
	if (chan_arrive(c, p->o.host->control, &heard_ops, p, &why) < 0) {
		chan_free(c);
		return;
	}
	r->chan = c;
	r->got = 0;
	r->since = mono_now();
	r->told = r->heard;
	chan_write(c, frame, wire_heard_encode(frame, &f));
	chan_flush(c);
	party_pump(p);
}

/* ---- The starter's part ---- */

static void next_path(struct party *p)
{
	if (starts(p))
		p->returning.path = (p->returning.path + 1) % p->o.paths->n;
}

void returning_lost(struct party *p, const char *why)
{
	log_at(&p->o.host->log, LOG_INFO, "session", "event=control-lost why=\"%s\"", why);
	next_path(p);
}

void returning_failed(struct party *p, const struct ptcp_err *why, bool refused)
{
	struct ptcp_err e;

	next_path(p);
	if (!refused && !(p->o.once && p->over)) /* nobody is there any more who could have missed our last word */
		return;
	p->returning.vain = true;
	err_set(&e, PTCP_EPEER, "control connection: it was lost, and the session with it: %s (run it again)",
	    why->msg);
	party_fail(p, &e);
}

/* The connection counts as dead then. */
static struct mono dead_at(const struct party *p)
{
	struct mono heard = session_heard(p->session), since = p->returning.since;

	if (p->returning.chan != NULL)
		return mono_add_ns(since, RESYNC_NS);
	if (p->control == NULL)
		return MONO_NEVER;
	return mono_add_ns(heard.ns > since.ns ? heard : since, PARTY_QUIET_NS);
}

void returning_pump(struct party *p, struct mono now)
{
	if (!starts(p) || !returning_may(p))
		return;
	if (dead_at(p).ns <= now.ns) {
		returning_lost(p, "nothing comes any more");
		drop(p);
		chan_free(p->control);
		p->control = NULL;
	}
	if (p->control == NULL && p->returning.chan == NULL)
		joining_control(p, now);
}

struct mono returning_deadline(const struct party *p)
{
	return starts(p) && returning_may(p) ? dead_at(p) : MONO_NEVER;
}

void returning_fini(struct party *p)
{
	drop(p);
	buf_fini(&p->returning.kept);
}
