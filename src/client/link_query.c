/* Asking a daemon what it has learnt of the ways from it to others. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/remote_job_impl.h"
#include "core/err.h"
#include "core/text.h"

static char *address(const struct wire_link *f)
{
	char host[WIRE_HOST_MAX + 1], out[WIRE_HOST_MAX + 10];

	memcpy(host, f->host.p, f->host.n);
	host[f->host.n] = '\0';
	sock_join(out, sizeof out, host, f->port);
	return strdup(out);
}

static char *text(struct span s)
{
	char raw[WIRE_TEXT_MAX + 1], shown[sizeof ((struct ptcp_err *)0)->msg];

	memcpy(raw, s.p, s.n);
	raw[s.n] = '\0';
	return strdup(text_escape(shown, sizeof shown, raw));
}

static double error_of(uint64_t v, double units)
{
	return v == WIRE_LINK_NOT_KNOWN ? NAN : (double)v / units;
}

static int on_link(struct ptcp_transfer *t, struct span in, struct ptcp_err *e)
{
	struct remote_job_asks *a = t->third->asks;
	struct ptcp_known_link *l;
	struct wire_link f;
	int r;

	if ((r = wire_link_decode(&f, in, e)) < 0)
		return r;
	if (a->n_known == PTCP_KNOWN_MAX)
		return err_set(e, PTCP_EPROTO, "more than %d LINK frames", PTCP_KNOWN_MAX);
	l = &a->known[a->n_known++];
	*l = (struct ptcp_known_link){
		.to = address(&f), .why = f.text.n > 0 ? text(f.text) : NULL, .messages = f.messages, .streams = f.streams,
		.rate_bps = (double)f.rate_bps, .rate_error_bps = error_of(f.rate_error_bps, 1),
		.delay_s = (double)f.delay_ns / 1e9, .delay_error_s = error_of(f.delay_error_ns, 1e9),
		.delay_from_round_trip = (f.flags & WIRE_LINK_ROUND_TRIP) != 0, .age_s = (double)f.age_ms / 1e3
	};
	return l->to == NULL || (f.text.n > 0 && l->why == NULL) ? err_nomem(e) : 0;
}

static int make(struct ptcp_transfer *t, const char *from, struct ptcp_err *e)
{
	struct remote none = { .ssh = false };
	struct remote_job_asks *a;
	int r;

	if ((r = remote_job_new(t, &none, e)) < 0)
		return r;
	if ((a = t->third->asks = calloc(1, sizeof *a)) == NULL ||
	    (a->known = calloc(PTCP_KNOWN_MAX, sizeof *a->known)) == NULL)
		return err_nomem(e);
	a->answer = WIRE_LINK;
	a->heard = on_link;
	if ((r = remote_parse_host(&t->target, from, e)) < 0)
		return r;
	if (t->target.ssh)
		return err_set(e, PTCP_EUSAGE, "%s: through ssh there is no daemon to ask (write HOST[:PORT])", from);
	return client_name_target(t, e);
}

int ptcp_known_new(struct ptcp_transfer **out, const struct ptcp_transfer_opts *o, const char *from,
    struct ptcp_err *e)
{
	struct ptcp_transfer *t;
	int r;

	if ((r = client_new(&t, o, e)) < 0)
		return r;
	if ((r = make(t, from, e)) < 0)
		client_fini(t);
	else
		*out = t;
	return r;
}

size_t ptcp_transfer_known(const struct ptcp_transfer *t, struct ptcp_known_link *out, size_t most)
{
	const struct remote_job_asks *a = t->third != NULL ? t->third->asks : NULL;

	if (a == NULL || a->known == NULL)
		return 0;
	if (most > 0)
		memcpy(out, a->known, (a->n_known < most ? a->n_known : most) * sizeof *out);
	return a->n_known;
}
