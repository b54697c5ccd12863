#include "queue/queue_metrics.h"

#include <string.h>

#include "core/prometheus.h"

enum { OVERDUE_MAX = 100 };

/* Reasons of queue_held_by(); "limits" stands for NULL. */
static const char *const reasons[] = { "pause", "after", "start", "retry", "blackout", "limits" };
#define N_REASONS (sizeof reasons / sizeof *reasons)

struct queue_sums {
	size_t state[QUEUE_CANCELLED + 1], held[N_REASONS], overdue;
	struct queue_counts counts;
};

static void add_job(struct queue_sums *t, const struct job_queue *q, const struct queue_job *j, int64_t now_s)
{
	const char *held = j->state == QUEUE_WAITING ? queue_held_by(q, j, now_s) : NULL;
	size_t i = N_REASONS - 1;

	t->state[j->state]++;
	t->overdue += queue_is_overdue(j, now_s) && j->state != QUEUE_DONE;
	queue_counts_add(&t->counts, j->sum);
	if (held != NULL)
		for (i = 0; i < N_REASONS - 1 && strcmp(held, reasons[i]) != 0; i++)
			;
	t->held[i] += j->state == QUEUE_WAITING;
}

static void print_overdue(FILE *f, const struct job_queue *q, int64_t now_s)
{
	size_t i, n = 0;

	prometheus_head(f, "jobs_overdue_seconds", "gauge",
	    "Time since the deadlines of overdue jobs, at most 100 jobs.");
	for (i = 0; i < q->n && n < OVERDUE_MAX; i++)
		if (queue_is_overdue(q->job[i], now_s) && q->job[i]->state != QUEUE_DONE) {
			prometheus_sample(f, "jobs_overdue_seconds", "name", q->job[i]->name,
			    (double)(now_s - q->job[i]->task.deadline_s));
			n++;
		}
}

static void print_counter(FILE *f, const char *name, const char *help, uint64_t v)
{
	prometheus_head(f, name, "counter", help);
	fprintf(f, "ptcp_%s %llu\n", name, (unsigned long long)v);
}

void queue_metrics(FILE *f, const struct job_queue *q, int64_t now_s)
{
	struct queue_sums t = { .overdue = 0 };
	size_t i;

	for (i = 0; i < q->n; i++)
		add_job(&t, q, q->job[i], now_s);
	prometheus_head(f, "jobs", "gauge", "Jobs of the queue by state.");
	for (i = 0; i <= QUEUE_CANCELLED; i++)
		prometheus_sample(f, "jobs", "state", queue_state_name((enum queue_state)i), (double)t.state[i]);
	prometheus_head(f, "jobs_held", "gauge", "Waiting jobs by the reason why they wait.");
	for (i = 0; i < N_REASONS; i++)
		prometheus_sample(f, "jobs_held", "by", reasons[i], (double)t.held[i]);
	prometheus_gauge(f, "jobs_overdue", "Open jobs after their deadline.",
	    (double)t.overdue);
	print_overdue(f, q, now_s);
	print_counter(f, "jobs_failures_total", "Failed processes of jobs.", t.counts.failures);
	print_counter(f, "jobs_files_total", "Files that jobs have completed.", t.counts.files - t.counts.same_files);
	print_counter(f, "jobs_bytes_total", "Bytes of these files.", t.counts.bytes - t.counts.same_bytes);
}
