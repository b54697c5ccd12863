/* Jobs for users and programs: lines of text, and JSON objects. */
#include <ptcp/ptcp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/jobs/jobs_impl.h"
#include "cli/show/json.h"
#include "core/text.h"
#include "core/units.h"
#include "queue/queue_metrics.h"
#include "queue/queue_report.h"

static json_t *json_moment(int64_t at_s) { return at_s > 0 ? json_integer((json_int_t)at_s) : json_null(); }

static const char *held_by(const struct jobs *s, const struct queue_job *j)
{
	return j->state == QUEUE_WAITING ? queue_held_by(&s->queue, j, (int64_t)time(NULL)) : NULL;
}

static json_t *impact_json(const struct queue_counts *c)
{
	return c->has_impact ? json_real(c->impact_percent) : json_null();
}

json_t *jobs_json(const struct jobs *s, const struct queue_job *j)
{
	bool failed = j->error != NULL;

	return json_pack("{s:s, s:s, s:s, s:o, s:i, s:i, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
	    "s:o, s:o}",
	    "event", "job", "name", j->name, "state", queue_state_name(j->state), "held_by",
	    json_text(held_by(s, j)),
	    "priority", j->task.priority, "failures", (int)j->tries, "exit", failed ?
	    json_integer(j->exit) : json_null(),
	    "error", json_text(j->error), "start", json_moment(j->task.start_s), "deadline",
	    json_moment(j->task.deadline_s), "overdue", queue_is_overdue(j, (int64_t)time(NULL)), "begun",
	    json_moment(j->begun_s), "ended", json_moment(j->ended_s), "again", json_moment(j->again_s),
	    "bytes", json_count(j->sum.bytes), "files",
	    json_count(j->sum.files), "seconds", json_seconds(j->sum.seconds), "impact_percent",
	    impact_json(&j->sum), "pairs",
	    j->task.pairs != NULL ? json_count(j->sum.pairs) : json_null(), "failed_pairs",
	    j->task.pairs != NULL ? json_count(j->sum.failed_pairs) : json_null());
}

/* "done, 3 files, 1.50 GB in 2.0s". */
static void print_job(FILE *f, const struct jobs *s, const struct queue_job *j)
{
	char size[UNITS_TEXT_BYTES], took[UNITS_TEXT_BYTES];

	queue_state_text(f, &s->queue, j, (int64_t)time(NULL));
	if (j->task.pairs != NULL && j->sum.pairs > 0)
		fprintf(f, ", %llu pair%s", (unsigned long long)j->sum.pairs, plural(j->sum.pairs));
	if (j->sum.seconds > 0)
		fprintf(f, ", %llu file%s, %s in %s", (unsigned long long)j->sum.files, plural(j->sum.files),
		    units_size_text(size, j->sum.bytes), units_time_text(took, j->sum.seconds));
	if (j->error != NULL)
		fprintf(f, ": %s", j->error);
}

void jobs_show(const struct jobs *s, const struct queue_job *j)
{
	char text[2048], shown[2048];
	FILE *f;

	if (s->json) {
		json_line(jobs_json(s, j));
		return;
	}
	if (s->quiet || (f = fmemopen(text, sizeof text, "w")) == NULL)
		return;
	print_job(f, s, j);
	fclose(f);
	text[sizeof text - 1] = '\0';
	printf("%s: %s\n", j->name, text_escape(shown, sizeof shown, text));
	fflush(stdout);
}

/* ---- The report ---- */

static json_t *counts_json(const struct queue_counts *c)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "bytes", json_count(c->bytes), "files",
	    json_count(c->files), "up_to_date", json_count(c->same_files), "up_to_date_bytes",
	    json_count(c->same_bytes), "failed", json_count(c->failed_files), "failures", json_count(c->failures),
	    "seconds", json_seconds(c->seconds), "impact_percent", impact_json(c));
}

static void report_json(const struct jobs *s)
{
	json_t *o, *jobs = json_object();
	struct queue_totals t;
	unsigned k;
	size_t i;

	for (i = 0; i < s->queue.n; i++) {
		if (!queue_is_reported(&s->queue, s->queue.job[i]))
			continue;
		o = jobs_json(s, s->queue.job[i]);
		json_object_set_new(o, "since", counts_json(&s->queue.job[i]->recent));
		json_object_set_new(o, "digest", json_text(queue_digests(s->queue.job[i])));
		json_line(o);
	}
	queue_add_up(&t, &s->queue, s->now_s);
	for (k = 0; k <= QUEUE_CANCELLED; k++)
		json_object_set_new(jobs, queue_state_name((enum queue_state)k), json_count(t.state[k]));
	json_object_set_new(jobs, "overdue", json_count(t.overdue));
	json_line(json_pack("{s:s, s:o, s:o, s:o, s:o}", "event", "report", "from",
	    json_count((uint64_t)s->queue.since_s), "to", json_count((uint64_t)s->now_s), "jobs", jobs, "since",
	    counts_json(&t.recent)));
}

void jobs_report(const struct jobs *s, bool html)
{
	if (s->json)
		report_json(s);
	else
		queue_report(stdout, &s->queue, s->dir, html, s->now_s);
}

void jobs_metrics(FILE *f, void *s) { queue_metrics(f, &((const struct jobs *)s)->queue, (int64_t)time(NULL)); }
