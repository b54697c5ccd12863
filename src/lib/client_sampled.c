/* Handles that have one daemon measure the way to another. */
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "lib/third_impl.h"

int ptcp_timing_between_new(struct ptcp_transfer **out, const struct ptcp_transfer_opts *o, const char *from,
    const char *to, const struct ptcp_timing_opts *m, struct ptcp_err *e)
{
	struct ptcp_timing_opts timing;
	struct ptcp_transfer *t;
	struct target other;
	int r;

	if ((r = timing_opts_take(&timing, m, e)) < 0 || (r = client_new(&t, o, e)) < 0)
		return r;
	if ((r = target_parse_host(&t->target, from, e)) < 0 || (r = target_parse_host(&other, to, e)) < 0 ||
	    (r = client_name_target(t, e)) < 0 || (r = third_new(t, &other, e)) < 0) {
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

int third_sampled(struct third *h, struct span in, struct ptcp_err *e)
{
	struct wire_sample f;
	int r;

	if ((r = wire_sample_decode(&f, in, e)) < 0)
		return r;
	if (h->message == NULL || h->n_messages == h->timing.messages)
		return err_set(e, PTCP_EPROTO, "unexpected SAMPLE frame");
	h->message[h->n_messages++] = (struct ptcp_message){ f.bytes, (double)f.delay_ns / 1e9 };
	h->round_trip_s = (double)f.round_trip_ns / 1e9;
	return 0;
}

size_t third_messages(const struct third *h, struct ptcp_message *out, size_t most, double *round_trip_s)
{
	*round_trip_s = h->round_trip_s;
	if (h->n_messages > 0 && most > 0)
		memcpy(out, h->message, (h->n_messages < most ? h->n_messages : most) * sizeof *out);
	return h->n_messages;
}
