/* A path may die without a word (a cable, a relay that was stopped): its streams wait for what TCP sends
 * again, less and less often. While other paths bring something they are given up, and tried anew. */
#include "core/err.h"
#include "core/units.h"
#include "lib/party_impl.h"

#define STALE_NS (3 * NS_PER_S)
#define LOOK_NS (NS_PER_S / 2)

static bool watches(const struct party *p)
{
	return p->running && !p->over && p->o.connects && p->o.paths != NULL && p->o.paths->n > 1;
}

/* A stream that has nothing to do is no bad sign. What we receive, others send: there we cannot know. */
static bool has_work(const struct party *p, unsigned number)
{
	return p->snd == NULL || snd_stream_carries(session_snd(p->session), number);
}

/* When it last brought something, that we know of. */
static struct mono look(struct party *p, unsigned number, struct mono now)
{
	struct life *l = &p->life[number];
	uint64_t moved = stream_moved(p->stream[number]);
	struct mono acked = { 0 };

	if (p->snd != NULL)
		acked = snd_stream_acked(session_snd(p->session), number);
	if (moved != l->moved)
		l->at = now;
	if (acked.ns > l->at.ns)
		l->at = acked;
	l->moved = moved;
	return l->at;
}

static void give_up(struct party *p, unsigned path)
{
	struct ptcp_err why;
	unsigned i;

	err_set(&why, PTCP_ETIMEOUT, "path %s: nothing comes through it any more", paths_name(p->o.paths, path));
	for (i = 0; i < p->n_wanted; i++)
		if (p->stream[i] != NULL && paths_of_stream(p->o.paths, i) == path)
			party_stream_lost(p, p->stream[i], &why);
}

static uint64_t patience_ns(const struct party *p, unsigned path)
{
	uint64_t paced = rates_patience_ns(p, path);

	return paced < UINT64_MAX - STALE_NS ? STALE_NS + paced : UINT64_MAX;
}

static struct mono later(struct mono a, struct mono b) { return a.ns > b.ns ? a : b; }

void stale_pump(struct party *p, struct mono now)
{
	struct mono path_at[PTCP_PATHS_MAX] = { { 0 } }, latest = { 0 }, at;
	bool up[PTCP_PATHS_MAX] = { false };
	unsigned i, path;

	if (!watches(p) || mono_diff_ns(now, p->looked) < LOOK_NS)
		return;
	p->looked = now;
	for (i = 0; i < p->n_wanted; i++) {
		if (p->stream[i] == NULL)
			continue;
		path = paths_of_stream(p->o.paths, i);
		up[path] = true;
		at = look(p, i, now);
		latest = later(latest, at);
		path_at[path] = later(path_at[path], has_work(p, i) ? at : now);
	}
	for (path = 0; path < p->o.paths->n; path++)
		if (up[path] && p->o.paths->at[path].hold_bytes == 0 &&
		    latest.ns >= mono_add_ns(path_at[path], patience_ns(p, path)).ns)
			give_up(p, path);
}

struct mono stale_deadline(const struct party *p)
{
	return watches(p) && p->n_up > 0 ? mono_add_ns(p->looked, LOOK_NS) : MONO_NEVER;
}
