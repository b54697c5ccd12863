/* Queries a server for the links from its host that it publishes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/remote_job_impl.h"
#include "core/err.h"
#include "core/text.h"

static char *address(const struct wire_link *f)
{
	char host[WIRE_HOST_MAX + 1], out[WIRE_HOST_MAX + 10];

	sock_join(out, sizeof out, span_copy(host, f->host), f->port);
	return strdup(out);
}

static char *text(struct span s)
{
	char raw[WIRE_TEXT_MAX + 1], shown[sizeof ((struct ptcp_err *)0)->msg];

	return strdup(text_escape(shown, sizeof shown, span_copy(raw, s)));
}

static double error_of(uint64_t v, double units)
{
	return v == WIRE_LINK_NOT_KNOWN ? NAN : (double)v / units;
}

int remote_job_link(struct remote_job *h, const struct wire_link *f, struct ptcp_err *e)
{
	struct ptcp_published_link *l;

	if (h->n_links == PTCP_PUBLISHED_LINKS_MAX)
		return err_set(e, PTCP_EPROTO, "more than %d LINK frames", PTCP_PUBLISHED_LINKS_MAX);
	l = &h->link[h->n_links++];
	*l = (struct ptcp_published_link){
		.to = address(f), .why = f->text.n > 0 ? text(f->text) : NULL, .messages = f->messages, .streams = f->streams,
		.rate_bps = (double)f->rate_bps, .rate_error_bps = error_of(f->rate_error_bps, 1),
		.delay_s = (double)f->delay_ns / 1e9, .delay_error_s = error_of(f->delay_error_ns, 1e9),
		.delay_from_round_trip = (f->flags & WIRE_LINK_ROUND_TRIP) != 0, .age_s = (double)f->age_ms / 1e3
	};
	return l->to == NULL || (f->text.n > 0 && l->why == NULL) ? err_nomem(e) : 0;
}

int ptcp_link_query_new(struct ptcp_transfer **out, const struct ptcp_transfer_opts *o, const char *from,
    struct ptcp_err *e)
{
	struct ptcp_transfer *t;
	int r;

	if ((r = remote_job_query_new(&t, o, JOB_FRAMES_LINKS_REQUESTED, from, e)) < 0)
		return r;
	if (t->target.ssh)
		r = err_set(e, PTCP_EUSAGE, "%s: a link query needs a server, which ssh does not start (write HOST[:PORT])", from);
	else if ((t->third->link = calloc(PTCP_PUBLISHED_LINKS_MAX, sizeof *t->third->link)) == NULL)
		r = err_nomem(e);
	if (r < 0)
		client_fini(t);
	else
		*out = t;
	return r;
}

size_t ptcp_transfer_links(const struct ptcp_transfer *t, struct ptcp_published_link *out, size_t most)
{
	const struct remote_job *h = t->third;

	if (h == NULL || h->n_links == 0)
		return 0;
	if (most > 0)
		memcpy(out, h->link, (h->n_links < most ? h->n_links : most) * sizeof *out);
	return h->n_links;
}
