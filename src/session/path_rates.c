/* What paths carry at most: as the caller has it, as path_select.c divides the demand, and as a receiver asks a sender
 * for. Who sends keeps to it by the engine's choice of streams and by their pacers. Who receives has the sender told,
 * and reads no faster than that and an eighth more. */
#include <string.h>

#include "core/err.h"
#include "core/units.h"
#include "session/session_impl.h"

#define TELL_NS (100 * NS_PER_MS) /* between two RATEs at least: they are counted */
#define LOOK_NS NS_PER_S
#define HOLDS_LOOK_NS (NS_PER_S / 4)

_Static_assert(WIRE_RATES_MAX >= PTCP_PATHS_MAX && SND_RATES >= WIRE_RATES_MAX &&
    WIRE_RATE_STREAMS_MAX >= PTCP_STREAMS_MAX && PTCP_PATH_IDLE == SND_IDLE && WIRE_RATE_IDLE == SND_IDLE, "rates");

void path_rates_init(struct path_rates *r)
{
	unsigned i;

	pacer_init(&r->all);
	for (i = 0; i < WIRE_RATES_MAX; i++)
		pacer_init(&r->of[i]);
}

/* Whose rates are ours to set. */
static bool sets(const struct session *sess)
{
	return sess->running && sess->o.open != NULL && sess->probe == NULL;
}

bool path_rates_at_sender(const struct session *sess)
{
	return sets(sess) && engine_rcv(sess->engine) != NULL;
}

static unsigned n_paths(const struct session *sess)
{
	return sess->o.paths != NULL ? sess->o.paths->n : 1;
}

static unsigned path_of(const struct session *sess, unsigned stream)
{
	return sess->o.paths != NULL ? paths_of_stream(sess->o.paths, stream) : 0;
}

/* The lower of both. */
static uint64_t rate_bps(const struct session *sess, unsigned path)
{
	uint64_t asked = sess->path_rates.asked[path], chosen = sess->path_rates.chosen[path];

	if (asked == 0 || (chosen > 0 && chosen < asked && asked != PTCP_PATH_IDLE))
		return chosen;
	return asked;
}

bool path_rates_limit(const struct session *sess)
{
	unsigned i;

	for (i = 0; i < PTCP_PATHS_MAX; i++)
		if (rate_bps(sess, i) != 0)
			return true;
	return false;
}

static const struct pacer *of_host(const struct session *sess)
{
	return sess->send != NULL ? &sess->o.host->pacing.out : &sess->o.host->pacing.in;
}

bool path_rates_hold(const struct session *sess)
{
	return path_rates_limit(sess) || pacer_throttles(of_host(sess), mono_now());
}

void session_set_path_rate(struct session *sess, unsigned path, uint64_t bps)
{
	sess->path_rates.asked[path] = bps;
	session_pump(sess);
}

/* ---- Keeping to them ---- */

static void set(struct session *sess, unsigned path, struct mono now)
{
	uint64_t bps = rate_bps(sess, path);
	unsigned i;

	if (bps == sess->path_rates.set[path])
		return;
	sess->path_rates.set[path] = bps;
	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		if (path_of(sess, i) == path) /* what it brings from now on tells whether it is alive */
			sess->life[i].at = now;
	if (bps != PTCP_PATH_IDLE)
		pacer_set(&sess->path_rates.of[path], path_rates_at_sender(sess) ? pacing_loose_bps(bps) : bps, now);
	if (engine_snd(sess->engine) != NULL)
		snd_set_rate(engine_snd(sess->engine), path + 1, bps);
}

uint64_t path_rates_patience_ns(const struct session *sess, unsigned path)
{
	uint64_t bps = sess->path_rates.set[path];

	return bps == PTCP_PATH_IDLE ? UINT64_MAX : bps > 0 ? 2 * pacer_quantum_ns(bps) : 0;
}

/* Which of the rates a stream shares, from 1; 0: none. */
static unsigned share_of(const struct session *sess, unsigned number)
{
	if (sess->o.open != NULL)
		return path_of(sess, number) + 1;
	return number < sess->path_rates.told.m ? sess->path_rates.told.of[number] : 0;
}

void path_rates_stream_up(struct session *sess, unsigned number)
{
	unsigned share = share_of(sess, number);

	if (sess->probe != NULL)
		return;
	stream_share(sess->stream[number], share > 0 ? &sess->path_rates.of[share - 1] : NULL);
	if (engine_snd(sess->engine) != NULL)
		snd_share(engine_snd(sess->engine), number, share);
}

void path_rates_received(void *arg, const struct wire_rate *f)
{
	struct session *sess = arg;
	struct mono now = mono_now();
	unsigned i;

	sess->path_rates.told = *f;
	pacer_set(&sess->path_rates.all, f->all_bps, now);
	for (i = 0; i < WIRE_RATES_MAX; i++) {
		if (f->bps[i] != WIRE_RATE_IDLE) /* those there are none of are 0 */
			pacer_set(&sess->path_rates.of[i], f->bps[i], now);
		snd_set_rate(engine_snd(sess->engine), i + 1, f->bps[i]);
	}
	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		if (sess->stream[i] != NULL)
			path_rates_stream_up(sess, i);
	log_at(&sess->o.host->log, LOG_DEBUG, "rates", "all_bps=%llu rates=%u streams=%u", (unsigned long long)f->all_bps, f->n,
	    f->m);
}

/* ---- Telling them ---- */

/* What the sender is to keep to. Only paths that have a rate are named. */
static void describe(const struct session *sess, struct wire_rate *f)
{
	unsigned share[PTCP_PATHS_MAX] = { 0 }, i;

	*f = (struct wire_rate){ .all_bps = sess->o.host->pacing.bps };
	for (i = 0; i < n_paths(sess); i++)
		if (rate_bps(sess, i) != 0) {
			f->bps[f->n++] = rate_bps(sess, i);
			share[i] = f->n;
		}
	for (i = 0; i < sess->n_granted && i < PTCP_STREAMS_MAX; i++)
		if ((f->of[i] = (uint8_t)share[path_of(sess, i)]) != 0)
			f->m = (uint8_t)(i + 1);
}

static bool same(const struct wire_rate *a, const struct wire_rate *b)
{
	return a->all_bps == b->all_bps && a->n == b->n && a->m == b->m &&
	    memcmp(a->bps, b->bps, sizeof a->bps) == 0 && memcmp(a->of, b->of, sizeof a->of) == 0;
}

static void tell(struct session *sess, struct mono now)
{
	struct path_rates *r = &sess->path_rates;
	struct wire_rate f;

	describe(sess, &f);
	if (same(&f, &r->told) || (r->told_at.ns > 0 && mono_diff_ns(now, r->told_at) < TELL_NS))
		return;
	if (r->told_at.ns == 0)
		pacing_loosen(&sess->o.host->pacing);
	r->told = f;
	r->told_at = now;
	engine_set_rates(sess->engine, &f);
}

bool path_rates_slow(const struct session *sess)
{
	return sess->path_rates.told.all_bps > 0 || sess->path_rates.told.n > 0;
}

void path_rates_pump(struct session *sess, struct mono now)
{
	unsigned i;

	sess->path_rates.looked = now;
	for (i = 0; sets(sess) && i < n_paths(sess); i++)
		set(sess, i, now);
	if (path_rates_at_sender(sess))
		tell(sess, now);
}

/* A timetable may have another rate by then; or what we keep to ourselves may hold us up, which the peer is to hear. */
struct mono path_rates_deadline(const struct session *sess)
{
	struct wire_rate f;

	if (!path_rates_at_sender(sess))
		return pacer_limits(of_host(sess)) ? mono_add_ns(sess->path_rates.looked, HOLDS_LOOK_NS) : MONO_NEVER;
	describe(sess, &f);
	if (!same(&f, &sess->path_rates.told))
		return mono_add_ns(sess->path_rates.told_at, TELL_NS);
	return sess->o.host->pacing.timer != NULL ? mono_add_ns(sess->path_rates.looked, LOOK_NS) : MONO_NEVER;
}
