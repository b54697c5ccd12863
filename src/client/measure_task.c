/* Tasks that measure, from this host or between two other hosts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/remote_job_impl.h"
#include "core/err.h"

static void on_told(void *arg, const struct ptcp_advice *so_far)
{
	struct ptcp_event ev = { .type = PTCP_EVENT_ADVICE, .advice = so_far };

	task_emit(arg, &ev);
}

static int measure_task_start(struct ptcp_task **out, const struct ptcp_transfer_opts *o, const char *target,
    struct prober *b, struct ptcp_err *e)
{
	struct ptcp_task *t;
	int r;

	if ((r = task_new(&t, o, e)) < 0) {
		b->ops->free(b);
		return r;
	}
	t->prober = b;
	b->loop = t->loop;
	b->log = &t->context.log;
	b->told = on_told;
	b->told_arg = t;
	t->o.streams = b->max_streams;
	if ((r = remote_parse_host(&t->target, target, e)) == 0)
		r = task_name_target(t, e);
	return task_made(out, t, r);
}

int ptcp_advise_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o,
    const char *target, const struct ptcp_advice_opts *a, struct ptcp_err *e)
{
	struct prober *b;
	int r;

	return (r = advise_new(&b, a, e)) < 0 ? r : measure_task_start(out, o, target, b, e);
}

int ptcp_measure_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o,
    const char *target, const struct ptcp_measure_opts *m, struct ptcp_err *e)
{
	struct prober *b;
	int r;

	return (r = measure_new(&b, m, e)) < 0 ? r : measure_task_start(out, o, target, b, e);
}

int ptcp_timing_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o,
    const char *target, const struct ptcp_timing_opts *m, struct ptcp_err *e)
{
	struct prober *b;
	int r;

	return (r = timing_new(&b, m, e)) < 0 ? r : measure_task_start(out, o, target, b, e);
}

int ptcp_timing_between_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o, const char *from,
    const char *to, const struct ptcp_timing_opts *m, struct ptcp_err *e)
{
	struct ptcp_timing_opts timing;
	struct ptcp_task *t;
	struct remote other;
	int r;

	if ((r = timing_opts_take(&timing, m, e)) < 0 || (r = task_new(&t, o, e)) < 0)
		return r;
	if ((r = remote_parse_host(&t->target, from, e)) < 0 || (r = remote_parse_host(&other, to, e)) < 0 ||
	    (r = task_name_target(t, e)) < 0 || (r = remote_job_new(t, &other, e)) < 0)
		return task_made(out, t, r);
	t->remote_job->request = JOB_FRAMES_TIMING_REQUESTED;
	t->remote_job->mode = WIRE_GRANT_PROBE;
	t->remote_job->timing = timing;
	if ((t->remote_job->message = calloc(timing.messages, sizeof *t->remote_job->message)) == NULL)
		r = err_nomem(e);
	else if (t->target.ssh || other.ssh)
		r = err_set(e, PTCP_ENOTYET, "between two remote hosts: not available through ssh yet (both must be "
		    "servers: HOST[:PORT])");
	return task_made(out, t, r);
}

void remote_job_sampled(struct remote_job *h, const struct wire_sample *f)
{
	h->message[h->frames.n_samples - 1] = (struct ptcp_message){ f->bytes, (double)f->delay_ns / 1e9 };
	h->round_trip_s = (double)f->round_trip_ns / 1e9;
}

size_t ptcp_timing_messages(const struct ptcp_task *t, struct ptcp_message *out, size_t most, double *round_trip_s)
{
	const struct remote_job *h = t->remote_job;
	size_t n;

	if (h == NULL)
		return timing_messages(t->prober, out, most, round_trip_s);
	n = h->frames.n_samples;
	*round_trip_s = h->round_trip_s > 0 ? h->round_trip_s : NAN;
	if (n > 0 && most > 0)
		memcpy(out, h->message, (n < most ? n : most) * sizeof *out);
	return n;
}

int ptcp_advise_result(const struct ptcp_task *t, struct ptcp_advice *a, struct ptcp_err *e)
{
	const struct ptcp_advice *found = advise_advice(t->prober);
	size_t size;

	if (found == NULL)
		return err_set(e, PTCP_EUSAGE,
		    "no advice: the task has not probed yet (run a task of ptcp_advise_new())");
	size = a->size < found->size ? a->size : found->size;
	memcpy(a, found, size);
	a->size = size;
	return 0;
}

size_t ptcp_measure_levels(const struct ptcp_task *t, struct ptcp_level *out, size_t most, unsigned *saturates_at)
{
	return measure_levels(t->prober, out, most, saturates_at);
}
