/* More paths bring nothing where an end is the bottleneck: the starter says so, once. What an end knows of itself is how
 * long its threads that move data had nothing to do, and how long its disk kept them waiting; an acceptor tells the
 * starter. Where the network limits, both ends have time. */
#include <stdio.h>
#include <stdlib.h>

#include "core/err.h"
#include "core/units.h"
#include "lib/party_impl.h"

#define LOOK_NS NS_PER_S
#define FULL_PERMILLE 800u /* of that time, and so many times, */
#define LOOKS 4u           /* those when it was not taken off */

enum cause { OUR_PROCESSOR, OUR_DISK, THEIR_PROCESSOR, THEIR_DISK, CAUSES };

struct ends {
	struct mono looked;
	uint64_t idle_ns[HOST_WORKERS_MAX];
	struct mono counted;         /* the disk, */
	bool on_disk;                /* which was waited for then; */
	uint64_t disk_ns;            /* and for so long since the last look */
	struct wire_load theirs;     /* as it was told; */
	struct mono heard;           /* when */
	unsigned full, full_by[CAUSES]; /* times; by what most of all */
	bool told;
};

int ends_new(struct party *p, struct ptcp_err *e)
{
	bool warns = p->o.open != NULL && p->o.paths != NULL && p->o.paths->n > 1;

	if (p->prb != NULL || (p->o.open != NULL && !warns))
		return 0;
	if ((p->ends = calloc(1, sizeof *p->ends)) == NULL)
		return err_nomem(e);
	p->ends->looked = p->ends->counted = mono_now();
	return 0;
}

void ends_free(struct party *p)
{
	free(p->ends);
	p->ends = NULL;
}

void ends_heard(struct party *p, const struct wire_load *f, struct mono now)
{
	if (p->ends != NULL) {
		p->ends->theirs = *f;
		p->ends->heard = now;
	}
}

/* ---- Looking ---- */

static unsigned permille(uint64_t part, uint64_t whole)
{
	return part < whole ? (unsigned)(1000 * part / whole) : 1000;
}

/* Of the idlest thread: while that has time, another stream would bring more. */
static unsigned busy_permille(struct party *p, uint64_t elapsed_ns)
{
	uint64_t idle, most = 0, *was;
	unsigned i;

	for (i = 0; i < p->o.host->n_workers; i++) {
		was = &p->ends->idle_ns[i];
		idle = loop_idle_ns(p->o.host->worker[i]);
		if (idle - *was > most)
			most = idle - *was;
		*was = idle;
	}
	return 1000 - permille(most, elapsed_ns);
}

static void count_disk(struct party *p, struct mono now)
{
	struct ends *n = p->ends;

	if (n->on_disk)
		n->disk_ns += mono_diff_ns(now, n->counted);
	n->on_disk = party_waits_for_disk(p);
	n->counted = now;
}

/* Who keeps to a rate, lets relays hold, or still compares what is there is slow by choice or for a while. */
static bool is_held_back(const struct party *p)
{
	const struct pacing *rate = &p->o.host->pacing;

	return session_held(p->session) || rates_limit(p) || pacer_limits(p->snd != NULL ? &rate->out : &rate->in) ||
	    party_progress(p).activity != PTCP_TRANSFERRING;
}

/* Which is fullest; CAUSES: none is full. */
static enum cause cause_of(const struct party *p, const struct wire_load *ours, struct mono now)
{
	const struct wire_load *theirs = &p->ends->theirs;
	bool fresh = mono_diff_ns(now, p->ends->heard) < 2 * LOOK_NS;
	const unsigned load[CAUSES] = { ours->busy_permille, ours->disk_permille, fresh ? theirs->busy_permille : 0,
		fresh ? theirs->disk_permille : 0 };
	enum cause most = OUR_PROCESSOR, i;

	for (i = OUR_DISK; i < CAUSES; i++)
		if (load[i] > load[most])
			most = i;
	return load[most] < FULL_PERMILLE || is_held_back(p) ? CAUSES : most;
}

/* ---- Telling ---- */

static void warn(struct party *p)
{
	static const char *const what[CAUSES] = { "this host's processor", "this host's disk", "the other side's processor",
		"the other side's disk" };
	const unsigned *by = p->ends->full_by;
	enum cause most = OUR_PROCESSOR, i;
	char text[200];

	for (i = OUR_DISK; i < CAUSES; i++)
		if (by[i] > by[most])
			most = i;
	snprintf(text, sizeof text, "%s is what limits this transfer, not the paths: more of them bring nothing (see what else "
	    "keeps it busy)", what[most]);
	p->o.ops->warning(p->o.arg, NULL, text);
}

static void judge(struct party *p, const struct wire_load *ours, struct mono now)
{
	struct ends *n = p->ends;
	enum cause cause = cause_of(p, ours, now);

	if (cause == CAUSES) {
		n->full -= n->full > 0;
		return;
	}
	n->full_by[cause]++;
	if (++n->full == LOOKS && !n->told) {
		n->told = true;
		warn(p);
	}
}

void ends_pump(struct party *p, struct mono now)
{
	struct ends *n = p->ends;
	struct wire_load ours;
	uint64_t elapsed;

	if (n == NULL)
		return;
	count_disk(p, now);
	elapsed = mono_diff_ns(now, n->looked);
	if (elapsed < LOOK_NS)
		return;
	ours.busy_permille = (uint16_t)busy_permille(p, elapsed);
	ours.disk_permille = (uint16_t)permille(n->disk_ns, elapsed);
	n->disk_ns = 0;
	n->looked = now;
	log_at(&p->o.host->log, LOG_DEBUG, "ends", "busy_permille=%u disk_permille=%u their_busy=%u their_disk=%u",
	    ours.busy_permille, ours.disk_permille, n->theirs.busy_permille, n->theirs.disk_permille);
	if (p->o.open != NULL)
		judge(p, &ours, now);
	else if (ours.busy_permille >= FULL_PERMILLE || ours.disk_permille >= FULL_PERMILLE)
		session_tell_load(p->session, &ours);
}

struct mono ends_deadline(const struct party *p)
{
	return p->ends != NULL && !p->ends->told ? mono_add_ns(p->ends->looked, LOOK_NS) : MONO_NEVER;
}
