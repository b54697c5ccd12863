/* What paths carry at most: as the caller has it, as choosing.c divides the demand, and as a receiver asks a sender
 * for. Who sends keeps to it by the engine's choice of streams and by their pacers. Who receives has the sender told;
 * where that one cannot, it reads more slowly, and an idle path has no streams. */
#include <string.h>

#include "core/err.h"
#include "core/units.h"
#include "lib/party_impl.h"

#define TELL_NS (100 * NS_PER_MS) /* between two RATEs at least: they are counted */
#define LOOK_NS NS_PER_S
#define HOLDS_LOOK_NS (NS_PER_S / 4)

_Static_assert(WIRE_RATES_MAX >= PTCP_PATHS_MAX && SND_RATES >= WIRE_RATES_MAX &&
    WIRE_RATE_STREAMS_MAX >= PTCP_STREAMS_MAX && PTCP_PATH_IDLE == SND_IDLE && WIRE_RATE_IDLE == SND_IDLE, "rates");

void rates_init(struct rates *r)
{
	unsigned i;

	pacer_init(&r->all);
	for (i = 0; i < WIRE_RATES_MAX; i++)
		pacer_init(&r->of[i]);
}

/* Whose rates are ours to set. */
static bool sets(const struct party *p)
{
	return p->running && p->o.open != NULL && p->prb == NULL;
}

bool rates_at_sender(const struct party *p)
{
	return sets(p) && session_takes_rates(p->session);
}

static unsigned n_paths(const struct party *p)
{
	return p->o.paths != NULL ? p->o.paths->n : 1;
}

static unsigned path_of(const struct party *p, unsigned stream)
{
	return p->o.paths != NULL ? paths_of_stream(p->o.paths, stream) : 0;
}

/* The lower of both. */
static uint64_t rate_bps(const struct party *p, unsigned path)
{
	uint64_t asked = p->rates.asked[path], chosen = p->rates.chosen[path];

	if (asked == 0 || (chosen > 0 && chosen < asked && asked != PTCP_PATH_IDLE))
		return chosen;
	return asked;
}

bool rates_limit(const struct party *p)
{
	unsigned i;

	for (i = 0; i < PTCP_PATHS_MAX; i++)
		if (rate_bps(p, i) != 0)
			return true;
	return false;
}

static const struct pacer *of_host(const struct party *p)
{
	return p->snd != NULL ? &p->o.host->pacing.out : &p->o.host->pacing.in;
}

bool rates_hold(const struct party *p)
{
	return rates_limit(p) || pacer_holds(of_host(p), mono_now());
}

void party_set_path_rate(struct party *p, unsigned path, uint64_t bps)
{
	p->rates.asked[path] = bps;
	party_pump(p);
}

/* ---- Keeping to them ---- */

static void end_streams(struct party *p, unsigned path)
{
	struct ptcp_err why;
	unsigned i;

	err_set(&why, PTCP_ETIMEOUT, "the path is to carry nothing for now");
	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		if (p->stream[i] != NULL && path_of(p, i) == path)
			party_stream_lost(p, p->stream[i], &why);
}

static void set(struct party *p, unsigned path, struct mono now)
{
	uint64_t bps = rate_bps(p, path);
	unsigned i;

	if (bps == p->rates.set[path])
		return;
	p->rates.set[path] = bps;
	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		if (path_of(p, i) == path) /* what it brings from now on tells whether it is alive */
			p->life[i].at = now;
	if (bps != PTCP_PATH_IDLE)
		pacer_set(&p->rates.of[path], rates_at_sender(p) ? pacing_loose_bps(bps) : bps, now);
	if (session_snd(p->session) != NULL)
		snd_set_rate(session_snd(p->session), path + 1, bps);
	else if (bps == PTCP_PATH_IDLE && !rates_at_sender(p))
		end_streams(p, path);
}

bool rates_joins(const struct party *p, unsigned number)
{
	return session_snd(p->session) != NULL || rates_at_sender(p) || rate_bps(p, path_of(p, number)) != PTCP_PATH_IDLE;
}

uint64_t rates_patience_ns(const struct party *p, unsigned path)
{
	uint64_t bps = p->rates.set[path];

	return bps == PTCP_PATH_IDLE ? UINT64_MAX : bps > 0 ? 2 * pacer_piece_ns(bps) : 0;
}

/* Which of the rates a stream shares, from 1; 0: none. */
static unsigned share_of(const struct party *p, unsigned number)
{
	if (p->o.open != NULL)
		return path_of(p, number) + 1;
	return number < p->rates.told.m ? p->rates.told.of[number] : 0;
}

void rates_stream_up(struct party *p, unsigned number)
{
	unsigned share = share_of(p, number);

	if (p->prb != NULL)
		return;
	stream_share(p->stream[number], share > 0 ? &p->rates.of[share - 1] : NULL);
	if (session_snd(p->session) != NULL)
		snd_share(session_snd(p->session), number, share);
}

void rates_told(void *arg, const struct wire_rate *f)
{
	struct party *p = arg;
	struct mono now = mono_now();
	unsigned i;

	p->rates.told = *f;
	pacer_set(&p->rates.all, f->all_bps, now);
	for (i = 0; i < WIRE_RATES_MAX; i++) {
		if (f->bps[i] != WIRE_RATE_IDLE) /* those there are none of are 0 */
			pacer_set(&p->rates.of[i], f->bps[i], now);
		snd_set_rate(session_snd(p->session), i + 1, f->bps[i]);
	}
	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		if (p->stream[i] != NULL)
			rates_stream_up(p, i);
	log_at(&p->o.host->log, LOG_DEBUG, "rates", "all_bps=%llu rates=%u streams=%u", (unsigned long long)f->all_bps, f->n,
	    f->m);
}

/* ---- Telling them ---- */

/* What the sender is to keep to. Only paths that have a rate are named. */
static void describe(const struct party *p, struct wire_rate *f)
{
	unsigned share[PTCP_PATHS_MAX] = { 0 }, i;

	*f = (struct wire_rate){ .all_bps = p->o.host->pacing.bps };
	for (i = 0; i < n_paths(p); i++)
		if (rate_bps(p, i) != 0) {
			f->bps[f->n++] = rate_bps(p, i);
			share[i] = f->n;
		}
	for (i = 0; i < p->n_granted && i < PTCP_STREAMS_MAX; i++)
		if ((f->of[i] = (uint8_t)share[path_of(p, i)]) != 0)
			f->m = (uint8_t)(i + 1);
}

static bool same(const struct wire_rate *a, const struct wire_rate *b)
{
	return a->all_bps == b->all_bps && a->n == b->n && a->m == b->m &&
	    memcmp(a->bps, b->bps, sizeof a->bps) == 0 && memcmp(a->of, b->of, sizeof a->of) == 0;
}

static void tell(struct party *p, struct mono now)
{
	struct rates *r = &p->rates;
	struct wire_rate f;

	describe(p, &f);
	if (same(&f, &r->told) || (r->told_at.ns > 0 && mono_diff_ns(now, r->told_at) < TELL_NS))
		return;
	if (r->told_at.ns == 0)
		pacing_loosen(&p->o.host->pacing);
	r->told = f;
	r->told_at = now;
	session_rate(p->session, &f);
}

bool rates_slow(const struct party *p)
{
	return p->rates.told.all_bps > 0 || p->rates.told.n > 0;
}

void rates_pump(struct party *p, struct mono now)
{
	unsigned i;

	p->rates.looked = now;
	for (i = 0; sets(p) && i < n_paths(p); i++)
		set(p, i, now);
	if (rates_at_sender(p))
		tell(p, now);
}

/* A timetable may have another rate by then; or what we keep to ourselves may hold us up, which the peer is to hear. */
struct mono rates_deadline(const struct party *p)
{
	struct wire_rate f;

	if (!rates_at_sender(p))
		return pacer_limits(of_host(p)) ? mono_add_ns(p->rates.looked, HOLDS_LOOK_NS) : MONO_NEVER;
	describe(p, &f);
	if (!same(&f, &p->rates.told))
		return mono_add_ns(p->rates.told_at, TELL_NS);
	return p->o.host->pacing.timer != NULL ? mono_add_ns(p->rates.looked, LOOK_NS) : MONO_NEVER;
}
