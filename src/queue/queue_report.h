/* A page about a queue, as text or HTML; jobs as text. */
#ifndef QUEUE_QUEUE_REPORT_H
#define QUEUE_QUEUE_REPORT_H

#include <stdio.h>

#include "queue/queue.h"

/* Date and time by the local clock. */
const char *queue_moment(char out[32], int64_t at_s);
/* Writes "waiting after other", "waiting, start at ..", "done". */
void queue_state_text(FILE *f, const struct job_queue *q, const struct queue_job *j, int64_t now_s);

/* Whether a job belongs on the page: done and cancelled jobs do if they ended since q->since_s. */
bool queue_is_reported(const struct job_queue *q, const struct queue_job *j);
struct queue_totals {
	size_t state[QUEUE_CANCELLED + 1], overdue; /* jobs on the page */
	struct queue_counts recent;
};
void queue_add_up(struct queue_totals *t, const struct job_queue *q, int64_t now_s);
/* Digests of whole files, besides those of blocks; NULL: none. */
const char *queue_digests(const struct queue_job *j);

/* Writes the page. */
void queue_report(FILE *f, const struct job_queue *q, const char *dir, bool html, int64_t now_s);

#endif
