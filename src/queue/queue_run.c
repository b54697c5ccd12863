#include "queue/queue_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/err.h"

enum {
	FIRST_PAUSE_S = 10,  /* after the first failure; doubled after each further one */
	DOUBLINGS = 8,       /* 43 minutes, up to a quarter more */
	RECORD_PAUSE_S = 5,  /* between attempts to write records */
	EXIT_PARTIAL_PAIRS = 6
};

/* A process, or an end without a record. */
struct queue_slot {
	struct queue_job *job; /* NULL: free */
	bool ended, told;
	struct queue_process process;
	char error[sizeof ((struct ptcp_err *)0)->msg];
	bool has_error;
};

/* A pair of hosts without a response. */
struct queue_silence {
	char *hosts;
	unsigned failures;
	int64_t until_s;
};

struct queue_run {
	struct job_queue *q;
	struct queue_world w;
	unsigned at_once;
	bool stopping, troubled, recovered;
	struct queue_slot slot[QUEUE_PROCESSES_MAX];
	struct queue_silence *silence;
	size_t n_silences;
	struct queue_record record;
};

int queue_run_new(struct queue_run **out, struct job_queue *q, unsigned at_once, const struct queue_world *w,
    struct ptcp_err *e)
{
	struct queue_run *r = calloc(1, sizeof *r);

	if (r == NULL)
		return err_nomem(e);
	r->q = q;
	r->w = *w;
	r->at_once = at_once;
	*out = r;
	return 0;
}

void queue_run_free(struct queue_run *r)
{
	size_t i;

	if (r == NULL)
		return;
	for (i = 0; i < r->n_silences; i++)
		free(r->silence[i].hosts);
	free(r->silence);
	queue_record_free(&r->record);
	free(r);
}

/* Tells the user once. */
static void tell_trouble(struct queue_run *r, const struct ptcp_err *e)
{
	if (!r->troubled)
		r->w.trouble(r->w.arg, e);
	r->troubled = true;
}

/* Writes the record. */
static int commit(struct queue_run *r, struct ptcp_err *e)
{
	int result = r->w.record(r->w.arg, &r->record, e);

	if (result < 0) {
		tell_trouble(r, e);
	} else if (r->troubled) {
		r->troubled = false;
		r->w.trouble(r->w.arg, NULL);
	}
	return result;
}

static int lock(struct queue_run *r, struct ptcp_err *e)
{
	int result = r->w.lock(r->w.arg, e);

	queue_record_clear(&r->record);
	if (result < 0)
		tell_trouble(r, e);
	return result;
}

/* Records the ends of processes of a killed run. False: not yet. */
static bool recover(struct queue_run *r, int64_t now_s)
{
	const struct queue_ended stopped = { .end = QUEUE_STOPPED };
	struct ptcp_err e = { .code = 0 };
	size_t i;

	if (r->recovered)
		return true;
	if (lock(r, &e) < 0)
		return false;
	for (i = 0; i < r->q->n; i++)
		if (r->q->job[i]->state == QUEUE_RUNNING)
			queue_write_end(&r->record, r->q->job[i]->name, &stopped, now_s);
	if (r->record.n == 0)
		r->w.record(r->w.arg, NULL, NULL);
	return r->recovered = r->record.n == 0 || commit(r, &e) == 0;
}

/* ---- Hosts without a response ---- */

static struct queue_silence *silence_of(const struct queue_run *r, const char *hosts)
{
	size_t i;

	for (i = 0; i < r->n_silences; i++)
		if (strcmp(r->silence[i].hosts, hosts) == 0)
			return &r->silence[i];
	return NULL;
}

static int64_t pause_s(unsigned failures, const char *name)
{
	uint8_t drawn = (uint8_t)failures;

	for (; *name != '\0'; name++)
		drawn = (uint8_t)(drawn * 31 + (uint8_t)*name);
	return (int64_t)(backoff_ns(FIRST_PAUSE_S * NS_PER_S, failures, DOUBLINGS, drawn) / NS_PER_S);
}

/* Returns the time of the next attempt. */
static int64_t note_silence(struct queue_run *r, const char *hosts, int64_t now_s)
{
	struct queue_silence *s = silence_of(r, hosts), *more;

	if (s == NULL) {
		if ((more = realloc(r->silence, (r->n_silences + 1) * sizeof *more)) == NULL)
			return now_s + pause_s(0, hosts);
		r->silence = more;
		s = &more[r->n_silences];
		*s = (struct queue_silence){ .hosts = strdup(hosts) };
		if (s->hosts == NULL)
			return now_s + pause_s(0, hosts);
		r->n_silences++;
	}
	s->until_s = now_s + pause_s(s->failures++, hosts);
	return s->until_s;
}

static void end_silence(struct queue_run *r, const char *hosts)
{
	struct queue_silence *s = silence_of(r, hosts);

	if (s == NULL)
		return;
	free(s->hosts);
	*s = r->silence[--r->n_silences];
}

/* ---- Ends ---- */

/* The end of a process for a list of pairs: the list continues behind failing pairs. */
static int judge_pairs(struct queue_run *r, struct queue_job *j, const struct queue_process *p, struct queue_ended *x,
    struct ptcp_err *e)
{
	bool over = p->verdict == QUEUE_WRONG || (p->verdict == QUEUE_FAILS && p->alone) ||
	    (p->verdict != QUEUE_FINE && j->tries >= j->task.retries);

	if (p->verdict == QUEUE_FINE) {
		x->end = QUEUE_MORE;
	} else if (!p->alone && p->verdict != QUEUE_NO_HOST) {
		x->end = QUEUE_MORE;
		x->alone_until = p->counts.position;
		x->counts.position = x->counts.pairs = 0;
	} else if (over) {
		if (r->w.skip(r->w.arg, j, e) < 0)
			return e->code;
		x->end = QUEUE_MORE;
		x->counts.failed_pairs = p->counts.pairs;
	} else {
		x->counts.position = x->counts.pairs = 0;
	}
	return 0;
}

static int judge_end(struct queue_run *r, struct queue_slot *s, struct queue_ended *x, int64_t now_s,
    struct ptcp_err *e)
{
	const struct queue_process *p = &s->process;
	struct queue_job *j = s->job;
	const char *hosts = j->hosts != NULL ? j->hosts : "";
	int64_t until_s;

	*x = (struct queue_ended){ .end = QUEUE_AGAIN, .exit = p->exit, .error = s->has_error ? s->error : NULL,
		.counts = p->counts };
	if (s->told && p->verdict != QUEUE_FINE) {
		x->end = QUEUE_STOPPED;
		x->counts = (struct queue_counts){ .seconds = p->counts.seconds };
		return 0;
	}
	until_s = p->verdict == QUEUE_NO_HOST ? note_silence(r, hosts, now_s) : now_s + pause_s(j->tries, j->name);
	if (p->verdict != QUEUE_NO_HOST)
		end_silence(r, hosts);
	if (j->task.pairs != NULL)
		return judge_pairs(r, j, p, x, e) < 0 ? e->code : (x->again_s = x->end == QUEUE_AGAIN ? until_s : 0, 0);
	if (p->verdict == QUEUE_FINE)
		x->end = QUEUE_SUCCEEDED;
	else if (p->verdict == QUEUE_WRONG || j->tries >= j->task.retries)
		x->end = QUEUE_GIVEN_UP;
	else
		x->again_s = until_s;
	return 0;
}

/* False: not recorded yet. */
static bool record_end(struct queue_run *r, struct queue_slot *s, int64_t now_s)
{
	struct queue_job *j = s->job;
	struct queue_ended x;
	struct ptcp_err e = { .code = 0 };

	if (lock(r, &e) < 0)
		return false;
	if (judge_end(r, s, &x, now_s, &e) < 0) {
		tell_trouble(r, &e);
		r->w.record(r->w.arg, NULL, NULL);
		return false;
	}
	queue_write_end(&r->record, j->name, &x, now_s);
	if (commit(r, &e) < 0)
		return false;
	j->alive = false;
	s->job = NULL;
	r->w.changed(r->w.arg, j);
	return true;
}

static bool record_ends(struct queue_run *r, int64_t now_s)
{
	bool all = true;
	size_t i;

	for (i = 0; i < QUEUE_PROCESSES_MAX && all; i++)
		if (r->slot[i].job != NULL && r->slot[i].ended)
			all = record_end(r, &r->slot[i], now_s);
	return all;
}

static struct queue_slot *slot_of(struct queue_run *r, const struct queue_job *j)
{
	size_t i;

	for (i = 0; i < QUEUE_PROCESSES_MAX && r->slot[i].job != j; i++)
		;
	return i < QUEUE_PROCESSES_MAX ? &r->slot[i] : NULL;
}

void queue_run_ended(struct queue_run *r, struct queue_job *j, const struct queue_process *p, int64_t now_s)
{
	struct queue_slot *s = slot_of(r, j);

	if (s == NULL || s->ended)
		return;
	s->ended = true;
	s->process = *p;
	s->has_error = p->error != NULL;
	snprintf(s->error, sizeof s->error, "%s", p->error != NULL ? p->error : "");
	record_end(r, s, now_s);
}

/* ---- Beginnings ---- */

/* Whether the hosts, and the disk, of a job have room for its process. */
static bool has_room(const struct queue_run *r, const struct queue_job *j, int64_t now_s)
{
	const struct queue_silence *silent = silence_of(r, j->hosts);
	unsigned hosts = 0, disk = 0;
	size_t i;

	if (silent != NULL && silent->until_s > now_s && silent->until_s <= now_s + QUEUE_PAUSE_MAX_S)
		return false;
	for (i = 0; i < QUEUE_PROCESSES_MAX; i++) {
		const struct queue_job *other = r->slot[i].job;

		hosts += other != NULL && strcmp(other->hosts, j->hosts) == 0;
		disk += other != NULL && j->disk != 0 && other->disk == j->disk;
	}
	return hosts < (silent != NULL ? 1 : r->at_once) && disk < r->at_once;
}

/* Priority counts first, then fewer turns, then the order of entry. */
static bool is_before(const struct queue_job *a, const struct queue_job *b)
{
	if (a->task.priority != b->task.priority)
		return a->task.priority > b->task.priority;
	return a->turns < b->turns;
}

/* An unprepared job ends at once, like a failed process. */
static void end_unprepared(struct queue_run *r, struct queue_job *j, int prepared, const struct ptcp_err *why,
    int64_t now_s)
{
	struct queue_ended x = { .end = QUEUE_SUCCEEDED };
	struct ptcp_err e;
	char text[96 + QUEUE_NAME_MAX];

	if (prepared > 0 && j->sum.failed_pairs > 0) {
		snprintf(text, sizeof text, "%llu of %llu pairs have failed (failed/%s lists them)",
		    (unsigned long long)j->sum.failed_pairs, (unsigned long long)j->sum.pairs, j->name);
		x = (struct queue_ended){ .end = QUEUE_GIVEN_UP, .exit = EXIT_PARTIAL_PAIRS, .error = text };
	} else if (prepared < 0) {
		x = (struct queue_ended){ .exit = 1,
			.end = why->code == PTCP_ECONFIG || j->tries >= j->task.retries ? QUEUE_GIVEN_UP : QUEUE_AGAIN,
			.error = why->msg, .again_s = now_s + pause_s(j->tries, j->name) };
	}
	if (lock(r, &e) < 0)
		return;
	queue_write_end(&r->record, j->name, &x, now_s);
	if (commit(r, &e) == 0)
		r->w.changed(r->w.arg, j);
}

/* False: records cannot be written. */
static bool prepare(struct queue_run *r, struct queue_job *j, int64_t now_s)
{
	struct ptcp_err e = { .code = 0 };
	int prepared;

	if (j->prepared)
		return true;
	if ((prepared = r->w.prepare(r->w.arg, j, &e)) != 0)
		end_unprepared(r, j, prepared, &e, now_s);
	else
		j->prepared = true;
	return !r->troubled;
}

static bool is_ready(const struct queue_run *r, const struct queue_job *j, int64_t now_s)
{
	return j->state == QUEUE_WAITING && !j->alive && queue_held_by(r->q, j, now_s) == NULL;
}

/* The next job to begin, or NULL. */
static struct queue_job *pick(struct queue_run *r, int64_t now_s)
{
	struct queue_job *best = NULL, *j;
	size_t i;

	for (i = 0; i < r->q->n; i++) {
		j = r->q->job[i];
		if (!is_ready(r, j, now_s) || (best != NULL && !is_before(j, best)))
			continue;
		if (!prepare(r, j, now_s))
			return NULL;
		if (j->prepared && has_room(r, j, now_s))
			best = j;
	}
	return best;
}

/* False: records cannot be written. */
static bool begin(struct queue_run *r, struct queue_job *j, struct queue_slot *s, int64_t now_s)
{
	struct ptcp_err e = { .code = 0 };

	if (lock(r, &e) < 0)
		return false;
	if (!is_ready(r, j, now_s)) { /* an order has come */
		r->w.record(r->w.arg, NULL, NULL);
		return true;
	}
	queue_write_begin(&r->record, j->name, now_s);
	if (commit(r, &e) < 0)
		return false;
	j->alive = true;
	*s = (struct queue_slot){ .job = j };
	r->w.changed(r->w.arg, j);
	if (r->w.start(r->w.arg, j, &e) < 0)
		queue_run_ended(r, j, &(struct queue_process){ .verdict = QUEUE_FAILS, .exit = 1, .error = e.msg,
		    .alone = true }, now_s);
	return true;
}

/* Stops the processes of paused and cancelled jobs, and those within a window. */
static void stop_ordered(struct queue_run *r, int64_t now_s)
{
	struct queue_slot *s;

	for (s = r->slot; s < r->slot + QUEUE_PROCESSES_MAX; s++)
		if (s->job != NULL && !s->ended && !s->told &&
		    (r->stopping || s->job->paused || s->job->state != QUEUE_RUNNING ||
		    queue_blackout(r->q, s->job, now_s).closed)) {
			s->told = true;
			r->w.stop(r->w.arg, s->job);
		}
}

/* The deadline of a job that is not over; 0: none, or told. */
static int64_t next_deadline(const struct queue_job *j)
{
	return j->alerted || j->state == QUEUE_DONE || j->state == QUEUE_CANCELLED ? 0 : j->task.deadline_s;
}

/* Tells which jobs have become overdue. False: not yet. */
static bool alert(struct queue_run *r, int64_t now_s)
{
	struct ptcp_err e = { .code = 0 };
	size_t i;

	for (i = 0; i < r->q->n; i++) {
		struct queue_job *j = r->q->job[i];

		if (next_deadline(j) == 0 || !queue_is_overdue(j, now_s))
			continue;
		if (lock(r, &e) < 0)
			return false;
		queue_write_overdue(&r->record, j->name, now_s);
		if (commit(r, &e) < 0)
			return false;
		r->w.overdue(r->w.arg, j);
	}
	return true;
}

/* The next time that releases a job, or makes one overdue. */
static int64_t next_time(const struct queue_run *r, int64_t now_s)
{
	int64_t at_s = INT64_MAX, start_s, again_s, window_s;
	size_t i;

	for (i = 0; i < r->q->n; i++) {
		const struct queue_job *j = r->q->job[i];
		const char *held = j->state == QUEUE_WAITING ? queue_held_by(r->q, j, now_s) : "";

		start_s = held != NULL && strcmp(held, "start") == 0 ? j->task.start_s : INT64_MAX;
		again_s = held != NULL && strcmp(held, "retry") == 0 ? j->again_s : INT64_MAX;
		at_s = start_s < at_s ? start_s : again_s < at_s ? again_s : at_s;
		if (j->state == QUEUE_RUNNING || (held != NULL && strcmp(held, "blackout") == 0)) {
			window_s = queue_blackout(r->q, j, now_s).until_s;
			at_s = window_s < at_s ? window_s : at_s;
		}
		if (next_deadline(j) > now_s && next_deadline(j) < at_s)
			at_s = next_deadline(j) + 1;
	}
	for (i = 0; i < r->n_silences; i++)
		if (r->silence[i].until_s > now_s && r->silence[i].until_s < at_s)
			at_s = r->silence[i].until_s;
	return at_s;
}

int64_t queue_run_step(struct queue_run *r, int64_t now_s)
{
	struct queue_slot *s;
	struct queue_job *j;

	stop_ordered(r, now_s);
	if (!recover(r, now_s) || !record_ends(r, now_s) || !alert(r, now_s))
		return now_s + RECORD_PAUSE_S;
	while (!r->stopping && (s = slot_of(r, NULL)) != NULL && (j = pick(r, now_s)) != NULL)
		if (!begin(r, j, s, now_s))
			break;
	return r->troubled ? now_s + RECORD_PAUSE_S : next_time(r, now_s);
}

void queue_run_stop(struct queue_run *r)
{
	r->stopping = true;
	stop_ordered(r, 0);
}

bool queue_run_idle(const struct queue_run *r, int64_t now_s)
{
	size_t i;

	for (i = 0; i < QUEUE_PROCESSES_MAX; i++)
		if (r->slot[i].job != NULL && !(r->slot[i].ended && r->stopping && r->troubled))
			return false; /* the next run repeats what has ended without a record */
	if (!r->recovered && !r->stopping)
		return false;
	for (i = 0; i < r->q->n && !r->stopping; i++) {
		const struct queue_job *j = r->q->job[i];
		const char *held = j->state == QUEUE_WAITING ? queue_held_by(r->q, j, now_s) : "pause";

		if (held == NULL || strcmp(held, "start") == 0 || strcmp(held, "retry") == 0 ||
		    strcmp(held, "blackout") == 0)
			return false;
	}
	return true;
}
