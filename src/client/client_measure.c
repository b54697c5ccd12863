/* Handles that measure: transfers that move nothing. */
#include <string.h>

#include "client/remote_job_impl.h"
#include "core/err.h"

static int start(struct ptcp_transfer **out, const struct ptcp_transfer_opts *o, const char *target,
    struct prober *b, struct ptcp_err *e)
{
	struct ptcp_transfer *t;
	int r;

	if ((r = client_new(&t, o, e)) < 0) {
		b->ops->free(b);
		return r;
	}
	t->prober = b;
	b->loop = t->loop;
	b->log = &t->host.log;
	t->o.streams = b->most_streams;
	if ((r = remote_parse_host(&t->target, target, e)) < 0 || (r = client_name_target(t, e)) < 0) {
		client_fini(t);
		return r;
	}
	*out = t;
	return 0;
}

int ptcp_advise_new(struct ptcp_transfer **out, const struct ptcp_transfer_opts *o,
    const char *target, const struct ptcp_advice_opts *a, struct ptcp_err *e)
{
	struct prober *b;
	int r;

	return (r = advise_new(&b, a, e)) < 0 ? r : start(out, o, target, b, e);
}

int ptcp_measure_new(struct ptcp_transfer **out, const struct ptcp_transfer_opts *o,
    const char *target, const struct ptcp_measure_opts *m, struct ptcp_err *e)
{
	struct prober *b;
	int r;

	return (r = measure_new(&b, m, e)) < 0 ? r : start(out, o, target, b, e);
}

int ptcp_timing_new(struct ptcp_transfer **out, const struct ptcp_transfer_opts *o,
    const char *target, const struct ptcp_timing_opts *m, struct ptcp_err *e)
{
	struct prober *b;
	int r;

	return (r = timing_new(&b, m, e)) < 0 ? r : start(out, o, target, b, e);
}

size_t ptcp_transfer_messages(const struct ptcp_transfer *t, struct ptcp_message *out, size_t most,
    double *round_trip_s)
{
	return t->third != NULL ? remote_job_messages(t->third, out, most, round_trip_s) :
	    timing_messages(t->prober, out, most, round_trip_s);
}

int ptcp_transfer_advice(const struct ptcp_transfer *t, struct ptcp_advice *a, struct ptcp_err *e)
{
	const struct ptcp_advice *found = advise_advice(t->prober);
	size_t size;

	if (found == NULL)
		return err_set(e, PTCP_EUSAGE, "no advice: nothing has been probed (run ptcp_advise_new()'s handle)");
	size = a->size < found->size ? a->size : found->size;
	memcpy(a, found, size);
	a->size = size;
	return 0;
}

size_t ptcp_transfer_levels(const struct ptcp_transfer *t, struct ptcp_level *out, size_t most,
    unsigned *saturates_at)
{
	return measure_levels(t->prober, out, most, saturates_at);
}
