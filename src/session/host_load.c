/* More paths bring nothing where an end is the bottleneck: the starter says so, once. What an end knows of itself is how
 * long its threads that move data had nothing to do, and how long its disk kept them waiting; an acceptor tells the
 * starter. Where the network limits, both ends have time. */
#include <stdio.h>
#include <stdlib.h>

#include "core/err.h"
#include "core/units.h"
#include "session/session_impl.h"

#define LOOK_NS NS_PER_S
#define FULL_PERMILLE 800u /* of that time, and so many times, */
#define LOOKS 4u           /* those when it was not taken off */

enum cause { OUR_PROCESSOR, OUR_DISK, THEIR_PROCESSOR, THEIR_DISK, CAUSES };

struct host_load {
	struct mono looked;
	uint64_t idle_ns[CONTEXT_WORKERS_MAX];
	struct mono counted;         /* the disk, */
	bool on_disk;                /* which was waited for then; */
	uint64_t disk_ns;            /* and for so long since the last look */
	struct wire_load theirs;     /* as it was told; */
	struct mono heard;           /* when */
	unsigned full, full_by[CAUSES]; /* times; by what most of all */
	bool told;
};

int host_load_new(struct session *sess, struct ptcp_err *e)
{
	bool warns = sess->o.open != NULL && sess->o.paths != NULL && sess->o.paths->n > 1;

	if (sess->probe != NULL || (sess->o.open != NULL && !warns))
		return 0;
	if ((sess->host_load = calloc(1, sizeof *sess->host_load)) == NULL)
		return err_nomem(e);
	sess->host_load->looked = sess->host_load->counted = mono_now();
	return 0;
}

void host_load_free(struct session *sess)
{
	free(sess->host_load);
	sess->host_load = NULL;
}

void host_load_heard(struct session *sess, const struct wire_load *f, struct mono now)
{
	if (sess->host_load != NULL) {
		sess->host_load->theirs = *f;
		sess->host_load->heard = now;
	}
}

/* ---- Looking ---- */

static unsigned permille(uint64_t part, uint64_t whole)
{
	return part < whole ? (unsigned)(1000 * part / whole) : 1000;
}

/* Of the idlest thread: while that has time, another stream would bring more. */
static unsigned busy_permille(struct session *sess, uint64_t elapsed_ns)
{
	uint64_t idle, most = 0, *was;
	unsigned i;

	for (i = 0; i < sess->o.host->n_workers; i++) {
		was = &sess->host_load->idle_ns[i];
		idle = loop_idle_ns(sess->o.host->worker[i]);
		if (idle - *was > most)
			most = idle - *was;
		*was = idle;
	}
	return 1000 - permille(most, elapsed_ns);
}

static void count_disk(struct session *sess, struct mono now)
{
	struct host_load *n = sess->host_load;

	if (n->on_disk)
		n->disk_ns += mono_diff_ns(now, n->counted);
	n->on_disk = session_waits_for_disk(sess);
	n->counted = now;
}

/* Who keeps to a rate, lets relays hold, or still compares what is there is slow by choice or for a while. */
static bool is_held_back(const struct session *sess)
{
	const struct pacing *rate = &sess->o.host->pacing;

	return engine_spooled(sess->engine) || path_rates_limit(sess) || pacer_limits(sess->send != NULL ? &rate->out : &rate->in) ||
	    session_progress(sess).activity != PTCP_TRANSFERRING;
}

/* Which is fullest; CAUSES: none is full. */
static enum cause cause_of(const struct session *sess, const struct wire_load *ours, struct mono now)
{
	const struct wire_load *theirs = &sess->host_load->theirs;
	bool fresh = mono_diff_ns(now, sess->host_load->heard) < 2 * LOOK_NS;
	const unsigned load[CAUSES] = { ours->busy_permille, ours->disk_permille, fresh ? theirs->busy_permille : 0,
		fresh ? theirs->disk_permille : 0 };
	enum cause most = OUR_PROCESSOR, i;

	for (i = OUR_DISK; i < CAUSES; i++)
		if (load[i] > load[most])
			most = i;
	return load[most] < FULL_PERMILLE || is_held_back(sess) ? CAUSES : most;
}

/* ---- Telling ---- */

static void warn(struct session *sess)
{
	static const char *const what[CAUSES] = { "this host's processor", "this host's disk", "the other side's processor",
		"the other side's disk" };
	const unsigned *by = sess->host_load->full_by;
	enum cause most = OUR_PROCESSOR, i;
	char text[200];

	for (i = OUR_DISK; i < CAUSES; i++)
		if (by[i] > by[most])
			most = i;
	snprintf(text, sizeof text, "%s is what limits this transfer, not the paths: more of them bring nothing (see what else "
	    "keeps it busy)", what[most]);
	sess->o.ops->warning(sess->o.arg, NULL, text);
}

static void judge(struct session *sess, const struct wire_load *ours, struct mono now)
{
	struct host_load *n = sess->host_load;
	enum cause cause = cause_of(sess, ours, now);

	if (cause == CAUSES) {
		n->full -= n->full > 0;
		return;
	}
	n->full_by[cause]++;
	if (++n->full == LOOKS && !n->told) {
		n->told = true;
		warn(sess);
	}
}

void host_load_pump(struct session *sess, struct mono now)
{
	struct host_load *n = sess->host_load;
	struct wire_load ours;
	uint64_t elapsed;

	if (n == NULL)
		return;
	count_disk(sess, now);
	elapsed = mono_diff_ns(now, n->looked);
	if (elapsed < LOOK_NS)
		return;
	ours.busy_permille = (uint16_t)busy_permille(sess, elapsed);
	ours.disk_permille = (uint16_t)permille(n->disk_ns, elapsed);
	n->disk_ns = 0;
	n->looked = now;
	log_at(&sess->o.host->log, LOG_DEBUG, "ends", "busy_permille=%u disk_permille=%u their_busy=%u their_disk=%u",
	    ours.busy_permille, ours.disk_permille, n->theirs.busy_permille, n->theirs.disk_permille);
	if (sess->o.open != NULL)
		judge(sess, &ours, now);
	else if (ours.busy_permille >= FULL_PERMILLE || ours.disk_permille >= FULL_PERMILLE)
		engine_report_load(sess->engine, &ours);
}

struct mono host_load_deadline(const struct session *sess)
{
	return sess->host_load != NULL && !sess->host_load->told ? mono_add_ns(sess->host_load->looked, LOOK_NS) : MONO_NEVER;
}
