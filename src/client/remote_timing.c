/* Handles that have one daemon measure the way to another. */
#include <math.h>
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
	t->third->mode = WIRE_GRANT_PROBE;
	t->third->timing = timing;
	if ((t->third->message = calloc(timing.messages, sizeof *t->third->message)) == NULL)
		r = err_nomem(e);
	else if (t->target.ssh || other.ssh)
		r = err_set(e, PTCP_ENOTYET, "between two remote hosts: through ssh: not available yet (both must be daemons: "
		    "HOST[:PORT])");
	if (r < 0) {
		client_fini(t);
		return r;
	}
	*out = t;
	return 0;
}

#define MOST_BPS 1e14 /* no link carries more */

/* Where there was no time for that since it was asked, or no link can be so fast, nothing was measured. */
static bool can_be(const struct remote_job *h, const struct wire_sample *f)
{
	uint64_t waited_ns = mono_diff_ns(mono_now(), h->asked_at);

	return f->delay_ns <= waited_ns - h->messages_ns && f->round_trip_ns <= waited_ns &&
	    (double)f->bytes * 8e9 / (double)f->delay_ns <= MOST_BPS;
}

int remote_job_sampled(struct remote_job *h, struct span in, struct ptcp_err *e)
{
	struct wire_sample f;
	int r;

	if ((r = wire_sample_decode(&f, in, e)) < 0)
		return r;
	if (h->message == NULL || h->n_messages == h->timing.messages)
		return err_set(e, PTCP_EPROTO, "unexpected SAMPLE frame");
	if (!can_be(h, &f))
		return err_set(e, PTCP_EPROTO, "a message of %llu bytes that took %.3g s, as that host says, cannot be (see that it runs "
		    "the same version of ptcp)", (unsigned long long)f.bytes, (double)f.delay_ns / 1e9);
	h->messages_ns += f.delay_ns;
	h->moved = mono_now();
	h->message[h->n_messages++] = (struct ptcp_message){ f.bytes, (double)f.delay_ns / 1e9 };
	h->round_trip_s = (double)f.round_trip_ns / 1e9;
	return 0;
}

size_t remote_job_messages(const struct remote_job *h, struct ptcp_message *out, size_t most, double *round_trip_s)
{
	*round_trip_s = h->round_trip_s > 0 ? h->round_trip_s : NAN;
	if (h->n_messages > 0 && most > 0)
		memcpy(out, h->message, (h->n_messages < most ? h->n_messages : most) * sizeof *out);
	return h->n_messages;
}
