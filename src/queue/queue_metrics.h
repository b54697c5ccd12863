/* Metrics of a queue for Prometheus. */
#ifndef QUEUE_QUEUE_METRICS_H
#define QUEUE_QUEUE_METRICS_H

#include <stdio.h>

#include "queue/queue.h"

/* Writes jobs by state, waiting jobs by reason, overdue jobs, and counters of all processes. */
void queue_metrics(FILE *f, const struct job_queue *q, int64_t now_s);

#endif
