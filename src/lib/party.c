#include "lib/party_impl.h"

#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/units.h"
#include "store/fds.h"

/* ---- The end ---- */

static void tell_gone(struct msg *m)
{
	struct party *p = CONTAINER_OF(m, struct party, gone);

	p->o.ops->gone(p->o.arg, p, p->failed ? &p->why : NULL);
}

/* The session is over: says so to the peer, lets go of streams and files, and when nothing of it is
 * left on other threads, tells the owner. */
static void wind_up(struct party *p, struct mono now)
{
	unsigned i;

	joining_stop(p);
	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		if (p->stream[i] != NULL) {
			party_close_tap(p, i);
			stream_stop(p->stream[i]);
		}
	if (p->control != NULL) {
		party_flush(p);
		chan_pause(p->control, false); /* its end is to be heard */
		if (buf_len(&session_outbox(p->session)->b) == 0 && p->returning.again == 0 &&
		    (p->mux == NULL || mux_is_between(p->mux)))
			chan_shutdown(p->control);
		if (now.ns >= p->give_up.ns) {
			chan_free(p->control);
			p->control = NULL;
		} else {
			timer_set(p->timer, p->give_up);
		}
	}
	if (p->control == NULL && returning_may(p) && now.ns < p->give_up.ns) {
		returning_pump(p, now);
		timer_set(p->timer, mono_min(p->give_up, mono_min(returning_deadline(p), joining_deadline(p))));
		return;
	}
	joining_stop_control(p);
	if (p->control != NULL || p->n_up + p->n_ending > 0 || (p->snd != NULL && !sending_idle(p)))
		return;
	if (p->session != NULL) {
		/* What was unfinished is let go of; for received parts that is work for the store. */
		session_drop(p->session);
		if (p->rcv != NULL) {
			receiving_pump(p, now);
			if (!receiving_idle(p))
				return;
		}
	}
	if (p->told_gone)
		return;
	p->told_gone = true;
	p->gone.run = tell_gone;
	loop_post(p->o.host->control, &p->gone);
}

void party_free(struct party *p)
{
	unsigned i;

	if (p == NULL)
		return;
	chan_free(p->control);
	returning_fini(p);
	mux_free(p->mux);
	timer_free(p->timer);
	session_free(p->session);
	sending_free(p);
	receiving_free(p);
	probing_free(p);
	steering_free(p);
	seeing_free(p);
	choosing_free(p);
	ends_free(p);
	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		party_close_tap(p, i);
	fds_count(-1 - (int)p->n_counted);
	explicit_bzero(p->key, sizeof p->key);
	free(p);
}

/* ---- Turning the crank ---- */

static struct mono deadline(const struct party *p)
{
	struct mono at = session_deadline(p->session);

	at = mono_min(at, joining_deadline(p));
	at = mono_min(at, returning_deadline(p));
	at = mono_min(at, stale_deadline(p));
	at = mono_min(at, choosing_deadline(p));
	at = mono_min(at, ends_deadline(p));
	at = mono_min(at, rates_deadline(p));
	if (p->rcv != NULL)
		at = mono_min(at, receiving_deadline(p));
	if (p->prb != NULL)
		at = mono_min(at, probing_deadline(p));
	if (p->str != NULL)
		at = mono_min(at, steering_deadline(p));
	return p->see != NULL ? mono_min(at, seeing_deadline(p)) : at;
}

void party_pump(struct party *p)
{
	struct mono now = mono_now();

	if (p->pumping)
		return; /* an operation called back; the outer one goes on */
	p->pumping = true;
	party_flush(p); /* first, so that what waits does not keep back what could be added */
	if (p->mux != NULL && mux_holds(p->mux))
		session_input(p->session, (const uint8_t *)"", 0, now); /* it is we who do not listen */
	session_tick(p->session, now);
	if (p->running && !p->over) {
		rates_pump(p, now);
		joining_pump(p, now);
		if (p->str != NULL)
			steering_pump(p, now);
		if (p->see != NULL)
			seeing_pump(p, now);
		returning_pump(p, now);
		stale_pump(p, now);
		choosing_pump(p, now);
		ends_pump(p, now);
		if (p->snd != NULL) {
			sending_pump(p);
			sending_feed(p, now);
		} else if (p->rcv != NULL) {
			receiving_pump(p, now);
		} else if (p->prb != NULL) {
			probing_pump(p, now);
		}
		session_tick(p->session, now);
	}
	p->pumping = false;
	if (p->over) {
		wind_up(p, now);
		return;
	}
	party_flush(p);
	timer_set(p->timer, deadline(p));
}

static void on_timer(void *arg)
{
	party_pump(arg);
}

void party_fail(struct party *p, const struct ptcp_err *why)
{
	session_fail(p->session, why);
}

void party_cancel(struct party *p, const struct ptcp_err *why)
{
	session_fail(p->session, why);
	if (p->over && p->control == NULL)
		p->give_up = mono_now(); /* on who might come back for our last word */
	party_pump(p);
}

void party_yield(struct party *p)
{
	struct ptcp_err why;

	err_set(&why, PTCP_ECANCELED, "transfer ended: another one of the same files by this client took over "
	    "(it goes on from here; let it end)");
	session_fail(p->session, &why);
	p->give_up = mono_now(); /* who is there still has been told; nobody waits for who is not */
	party_pump(p);
}

bool party_over(const struct party *p) { return p->over; }

bool party_holds(const struct party *p, uint64_t dev, uint64_t ino)
{
	return p->rcv != NULL && intake_holds(&p->rcv->intake, dev, ino);
}

/* ---- Making one ---- */

/* A relay may die where the other side lives. */
static bool has_other_ways(const struct party_opts *o)
{
	return o->connects && o->paths != NULL && (o->paths->n > 1 || o->paths->at[0].n_relays > 0);
}

int party_new(struct party **out, const struct party_opts *o, struct ptcp_err *e)
{
	static const char software[] = "ptcp " PTCP_VERSION;
	struct session_opts so = {
		.starter = o->open != NULL, .one_channel = o->one_channel, .software = software,
		.returns = !o->one_channel && (o->open == NULL || has_other_ways(o)), .timeout_ns = o->timeout_ns,
		.max_entries = WIRE_SLOTS, .max_streams = o->max_streams,
		.fixed_streams = o->fixed_streams, .ops = &party_session_ops,
		.log = &o->host->log
	};
	struct party *p = calloc(1, sizeof *p);
	unsigned i;
	int r;

	if (p == NULL) {
		chan_free(o->control);
		return err_nomem(e);
	}
	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		p->tap[i] = -1;
	fds_count(1);
	if (so.starter && so.returns && so.timeout_ns > PARTY_QUIET_NS)
		so.hello_timeout_ns = PARTY_QUIET_NS;
	p->o = *o;
	rates_init(&p->rates);
	p->returning.since = mono_now();
	p->returning.path = o->path;
	p->control = o->control;
	so.arg = p;
	strncpy(p->address, o->address, sizeof p->address - 1);
	strcpy(p->fingerprint, chan_fingerprint(p->control));
	if ((r = chan_export(p->control, p->key, e)) < 0 ||
	    (r = timer_new(&p->timer, o->host->control, on_timer, p, e)) < 0 ||
	    (o->one_channel && (r = mux_new(&p->mux, o->host->control, &party_mux_ops, p, e)) < 0) ||
	    (r = session_new(&p->session, &so, o->open, mono_now(), e)) < 0) {
		party_free(p);
		return r;
	}
	chan_depart(p->control);
	if ((r = chan_arrive(p->control, o->host->control, &party_control_ops, p, e)) < 0) {
		party_free(p);
		return r;
	}
	party_pump(p);
	*out = p;
	return 0;
}

struct session *party_session(struct party *p) { return p->session; }
int party_control_fd(const struct party *p) { return p->control != NULL ? chan_fd(p->control) : -1; }
const uint8_t *party_id(const struct party *p) { return p->id; }
enum ptcp_cipher party_cipher(const struct party *p) { return p->cipher; }

void party_accept(struct party *p, unsigned streams, enum ptcp_cipher cipher)
{
	struct wire_opened o = { .cipher = (uint8_t)cipher,
		.streams = (uint16_t)(p->o.one_channel ? 1 : streams) };
	struct ptcp_err e;

	if (tls_random(o.session, sizeof o.session, &e) < 0)
		party_fail(p, &e);
	else
		session_accept(p->session, &o, mono_now());
	party_pump(p);
}
