/* A path may die without a word (a cable, a relay that was stopped): its streams wait for what TCP sends
 * again, less and less often. While other paths bring something they are given up, and tried anew. */
#include "core/err.h"
#include "core/units.h"
#include "session/session_impl.h"

#define DEAD_PATH_NS (3 * NS_PER_S)
#define LOOK_NS (NS_PER_S / 2)

static bool watches(const struct session *sess)
{
	return sess->running && !sess->over && sess->o.connects && sess->o.paths != NULL && sess->o.paths->n > 1;
}

/* A stream that has nothing to do is no bad sign. What we receive, others send: there we cannot know. */
static bool has_work(const struct session *sess, unsigned number)
{
	return sess->send == NULL || snd_stream_carries(engine_snd(sess->engine), number);
}

/* When it last brought something, that we know of. */
static struct mono look(struct session *sess, unsigned number, struct mono now)
{
	struct life *l = &sess->life[number];
	uint64_t moved = stream_moved(sess->stream[number]);
	struct mono acked = { 0 };

	if (sess->send != NULL)
		acked = snd_stream_acked(engine_snd(sess->engine), number);
	if (moved != l->moved)
		l->at = now;
	if (acked.ns > l->at.ns)
		l->at = acked;
	l->moved = moved;
	return l->at;
}

static void give_up(struct session *sess, unsigned path)
{
	struct ptcp_err why;
	unsigned i;

	err_set(&why, PTCP_ETIMEOUT, "path %s: nothing comes through it any more", paths_name(sess->o.paths, path));
	for (i = 0; i < sess->n_wanted; i++)
		if (sess->stream[i] != NULL && paths_of_stream(sess->o.paths, i) == path)
			session_stream_lost(sess, sess->stream[i], &why);
}

static uint64_t patience_ns(const struct session *sess, unsigned path)
{
	uint64_t paced = path_rates_patience_ns(sess, path);

	return paced < UINT64_MAX - DEAD_PATH_NS ? DEAD_PATH_NS + paced : UINT64_MAX;
}

static struct mono later(struct mono a, struct mono b) { return a.ns > b.ns ? a : b; }

void dead_path_pump(struct session *sess, struct mono now)
{
	struct mono path_at[PTCP_PATHS_MAX] = { { 0 } }, latest = { 0 }, at;
	bool up[PTCP_PATHS_MAX] = { false };
	unsigned i, path;

	if (!watches(sess) || mono_diff_ns(now, sess->looked) < LOOK_NS)
		return;
	sess->looked = now;
	for (i = 0; i < sess->n_wanted; i++) {
		if (sess->stream[i] == NULL)
			continue;
		path = paths_of_stream(sess->o.paths, i);
		up[path] = true;
		at = look(sess, i, now);
		latest = later(latest, at);
		path_at[path] = later(path_at[path], has_work(sess, i) ? at : now);
	}
	for (path = 0; path < sess->o.paths->n; path++)
		if (up[path] && sess->o.paths->at[path].hold_bytes == 0 &&
		    latest.ns >= mono_add_ns(path_at[path], patience_ns(sess, path)).ns)
			give_up(sess, path);
}

struct mono dead_path_deadline(const struct session *sess)
{
	return watches(sess) && sess->n_up > 0 ? mono_add_ns(sess->looked, LOOK_NS) : MONO_NEVER;
}
