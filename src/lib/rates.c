/* What paths carry at most: as the caller has it, as choosing.c divides the demand, and as the receiver asks a sender
 * for. Who sends keeps to it by the engine's choice of streams and by their pacers; who receives has the sender told,
 * or, where that one cannot, reads more slowly. */
#include <string.h>

#include "core/units.h"
#include "lib/party_impl.h"

void rates_init(struct rates *r)
{
	unsigned i;

	for (i = 0; i < PTCP_PATHS_MAX; i++)
		pacer_init(&r->of[i]);
}

/* Whose rates are ours to set. */
static bool sets(const struct party *p)
{
	return p->o.open != NULL && p->prb == NULL;
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
uint64_t rates_bps(const struct party *p, unsigned path)
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
		if (rates_bps(p, i) != 0)
			return true;
	return false;
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
	uint64_t bps = rates_bps(p, path);
	unsigned i;

	if (bps == p->rates.set[path])
		return;
	p->rates.set[path] = bps;
	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		if (path_of(p, i) == path) /* what it brings from now on tells whether it is alive */
			p->life[i].at = now;
	if (bps != PTCP_PATH_IDLE)
		pacer_set(&p->rates.of[path], bps, now);
	if (session_snd(p->session) != NULL)
		snd_set_rate(session_snd(p->session), path + 1, bps);
	else if (bps == PTCP_PATH_IDLE)
		end_streams(p, path);
}

void party_set_path_rate(struct party *p, unsigned path, uint64_t bps)
{
	p->rates.asked[path] = bps;
	party_pump(p);
}

void rates_stream_up(struct party *p, unsigned number)
{
	unsigned path = path_of(p, number);

	if (!sets(p))
		return;
	stream_share(p->stream[number], &p->rates.of[path]);
	if (p->snd != NULL)
		snd_share(session_snd(p->session), number, path + 1);
}

bool rates_joins(const struct party *p, unsigned number)
{
	return p->snd != NULL || rates_bps(p, path_of(p, number)) != PTCP_PATH_IDLE;
}

uint64_t rates_patience_ns(const struct party *p, unsigned path)
{
	uint64_t bps = p->rates.set[path];

	return bps == PTCP_PATH_IDLE ? UINT64_MAX : bps > 0 ? 2 * pacer_piece_ns(bps) : 0;
}

void rates_pump(struct party *p, struct mono now)
{
	unsigned i;

	for (i = 0; sets(p) && i < n_paths(p); i++)
		set(p, i, now);
}
