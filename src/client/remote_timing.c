/* Handles that have one server measure the path to another. */
#include <stdlib.h>
#include <string.h>

#include "client/remote_job_impl.h"
#include "core/err.h"

int ptcp_timing_between_new(struct ptcp_transfer **out, const struct ptcp_transfer_opts *o, const char *from,
    const char *to, const struct ptcp_timing_opts *m, struct ptcp_err *e)
{
	struct ptcp_timing_opts timing;
	struct ptcp_transfer *t;
	struct remote other;
	int r;

	if ((r = timing_opts_take(&timing, m, e)) < 0 || (r = client_new(&t, o, e)) < 0)
		return r;
	if ((r = remote_parse_host(&t->target, from, e)) < 0 || (r = remote_parse_host(&other, to, e)) < 0 ||
	    (r = client_name_target(t, e)) < 0 || (r = remote_job_new(t, &other, e)) < 0) {
		client_fini(t);
		return r;
	}
	t->third->request = JOB_FRAMES_TIMING_REQUESTED;
	t->third->mode = WIRE_GRANT_PROBE;
	t->third->timing = timing;
	if ((t->third->message = calloc(timing.messages, sizeof *t->third->message)) == NULL)
		r = err_nomem(e);
	else if (t->target.ssh || other.ssh)
		r = err_set(e, PTCP_ENOTYET, "between two remote hosts: not available through ssh yet (both must be servers: "
		    "HOST[:PORT])");
	if (r < 0) {
		client_fini(t);
		return r;
	}
	*out = t;
	return 0;
}

void remote_job_sampled(struct remote_job *h, const struct wire_sample *f)
{
	h->message[h->frames.n_samples - 1] = (struct ptcp_message){ f->bytes, (double)f->delay_ns / 1e9 };
	h->round_trip_s = (double)f->round_trip_ns / 1e9;
}

size_t remote_job_messages(const struct remote_job *h, struct ptcp_message *out, size_t most, double *round_trip_s)
{
	size_t n = h->frames.n_samples;

	*round_trip_s = h->round_trip_s;
	if (n > 0 && most > 0)
		memcpy(out, h->message, (n < most ? n : most) * sizeof *out);
	return n;
}
