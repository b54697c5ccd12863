/* What a party does at its session's word. */
#include <string.h>

#include "core/units.h"
#include "lib/party_impl.h"

#define LINGER_NS (2 * NS_PER_S) /* how long a peer may take to close */

static void on_open(void *arg, const struct wire_open *o)
{
	struct party *p = arg;

	p->o.ops->open(p->o.arg, p, o);
}

static void on_running(void *arg, const struct wire_opened *o)
{
	struct party *p = arg;
	struct ptcp_err why;

	memcpy(p->id, o->session, sizeof p->id);
	p->cipher = o->cipher;
	p->n_granted = o->streams;
	if (!session_steered(p->session))
		party_want(p, p->n_granted, "agreed");
	p->running = true;
	p->none_since = p->began = mono_now();
	if (choosing_new(p, &why) < 0 || ends_new(p, &why) < 0)
		party_fail(p, &why);
	p->o.ops->running(p->o.arg, p);
}

static void on_use(void *arg, const struct wire_use *u)
{
	struct party *p = arg;

	party_want(p, u->streams < p->n_granted ? u->streams : p->n_granted, "asked for");
	if (p->prb != NULL)
		probing_use(p, u->bytes);
}

static void on_seen(void *arg, const struct wire_seen *f)
{
	struct party *p = arg;

	if (p->prb != NULL)
		probing_seen(p, f);
	else
		steering_seen(p, f);
}

static void on_load(void *arg, const struct wire_load *f)
{
	ends_heard(arg, f, mono_now());
}

static void on_note(void *arg, const struct wire_note *n)
{
	struct party *p = arg;
	char path[WIRE_PATH_MAX + 1];
	struct ptcp_err why;

	memcpy(path, n->path.n > 0 ? (const char *)n->path.p : "", n->path.n);
	path[n->path.n] = '\0';
	outbox_reason(&why, n->code, n->text);
	if (n->kind == WIRE_NOTE_FAILED)
		p->o.ops->file(p->o.arg, path, PTCP_FILE_FAILED, &why);
	else
		p->o.ops->warning(p->o.arg, path, why.msg);
}

bool party_waits_for_disk(const struct party *p)
{
	unsigned i;

	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		if (p->stream[i] != NULL && stream_on_disk(p->stream[i]))
			return true;
	return false;
}

/* Beside rates, and what relays hold. */
static enum wire_busy works(const struct party *p)
{
	if (party_waits_for_disk(p))
		return p->snd != NULL ? WIRE_READING : WIRE_WRITING;
	if (p->snd != NULL && p->snd->comparing > 0)
		return WIRE_VERIFYING;
	if (p->snd != NULL && !sending_idle(p))
		return WIRE_READING;
	if (p->rcv != NULL && receiving_busy(p) != WIRE_IDLE)
		return receiving_busy(p);
	return WIRE_IDLE;
}

enum wire_busy party_busy(const struct party *p)
{
	enum wire_busy b = works(p);

	if (b != WIRE_IDLE)
		return b;
	/* What relays hold is why nothing comes; the starter says so, and each bears that for its own time. */
	if (session_held(p->session) && p->o.open != NULL)
		return p->snd != NULL ? WIRE_READING : WIRE_WRITING;
	/* Who keeps to a rate is slow for a reason, too; what the receiver has asked for it knows itself. */
	if (!rates_hold(p) || (p->snd == NULL && rates_at_sender(p)))
		return WIRE_IDLE;
	return p->snd != NULL ? WIRE_READING : WIRE_WRITING;
}

static enum wire_busy busy(void *arg)
{
	return party_busy(arg);
}

static bool paced(void *arg)
{
	struct party *p = arg;

	return works(p) == WIRE_IDLE && (rates_slow(p) || party_busy(p) != WIRE_IDLE);
}

static void on_ended(void *arg, const struct ptcp_err *why)
{
	struct party *p = arg;

	p->over = true;
	p->failed = why != NULL;
	if (why != NULL)
		p->why = *why;
	/* Who was silent for the time-out will not close in good order either; who may not have got our last
	 * word may come back for it. */
	p->give_up = mono_add_ns(mono_now(), why != NULL && why->code == PTCP_ETIMEOUT ? 0 :
	    returning_may(p) ? p->o.timeout_ns : LINGER_NS);
}

const struct session_ops party_session_ops = {
	.open = on_open, .running = on_running, .note = on_note, .heard = returning_told, .busy = busy, .paced = paced,
	.ended = on_ended, .snd = &sending_snd_ops, .rcv = &receiving_rcv_ops, .use = on_use, .seen = on_seen,
	.rate = rates_told, .load = on_load
};
