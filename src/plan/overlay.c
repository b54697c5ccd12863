#include "plan/overlay.h"

#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/units.h"
#include "plan/curve.h"

_Static_assert(PTCP_UNKNOWN == CONF_UNSET, "the public header promises the same mark");

static int wrap(struct ptcp_overlay **out, struct conf_overlay *conf, struct ptcp_err *e)
{
	struct ptcp_overlay *o = NULL;
	int r = curve_budgets(conf, e);

	if (r == 0 && (o = calloc(1, sizeof *o)) == NULL)
		r = err_nomem(e);
	if (r < 0) {
		conf_overlay_free(conf);
		return r;
	}
	o->conf = conf;
	*out = o;
	return 0;
}

int ptcp_overlay_load(struct ptcp_overlay **out, const char *path, struct ptcp_err *e)
{
	struct conf_overlay *conf;
	int r = conf_overlay_load(&conf, path, e);

	return r < 0 ? r : wrap(out, conf, e);
}

int ptcp_overlay_parse(struct ptcp_overlay **out, const char *text, size_t n, const char *name,
    struct ptcp_err *e)
{
	struct conf_overlay *conf;
	int r = conf_overlay_parse(&conf, text, n, name, e);

	return r < 0 ? r : wrap(out, conf, e);
}

void ptcp_overlay_free(struct ptcp_overlay *o)
{
	if (o == NULL)
		return;
	conf_overlay_free(o->conf);
	free(o);
}

size_t ptcp_overlay_hosts(const struct ptcp_overlay *o)
{
	return o->conf->nhosts;
}

size_t ptcp_overlay_links(const struct ptcp_overlay *o)
{
	return o->conf->nlinks;
}

int ptcp_overlay_destination(const struct ptcp_overlay *o)
{
	return o->conf->destination;
}

const char *ptcp_overlay_launch(const struct ptcp_overlay *o)
{
	return o->conf->launch;
}

double ptcp_overlay_deadline_s(const struct ptcp_overlay *o)
{
	if (o->conf->deadline_ns == CONF_UNSET)
		return 0;
	return (double)o->conf->deadline_ns / (double)NS_PER_S;
}

/* A host that names neither data nor a path has none; with a path alone it has
 * what measuring will find. */
static uint64_t host_data(const struct conf_host *h)
{
	if (h->data_bytes == CONF_UNSET && h->path == NULL)
		return 0;
	return h->data_bytes;
}

void ptcp_overlay_host(const struct ptcp_overlay *o, size_t i, struct ptcp_overlay_host *out)
{
	const struct conf_host *h = &o->conf->hosts[i];

	*out = (struct ptcp_overlay_host){
		.name = h->name, .address = h->address, .path = h->path,
		.data_bytes = (int)i == o->conf->destination ? 0 : host_data(h),
		.storage_bytes = h->storage_bytes,
		.ingress_bps = h->ingress_bps, .egress_bps = h->egress_bps,
		.relay = h->relay,
	};
}

void ptcp_overlay_link(const struct ptcp_overlay *o, size_t i, struct ptcp_overlay_link *out)
{
	const struct conf_link *l = &o->conf->links[i];

	*out = (struct ptcp_overlay_link){
		.from = l->from, .to = l->to, .rate_bps = l->rate_bps, .delay_ns = l->delay_ns,
	};
}

int ptcp_overlay_find_host(const struct ptcp_overlay *o, const char *name)
{
	return conf_overlay_host(o->conf, name);
}

int ptcp_overlay_set_rate(struct ptcp_overlay *o, const char *link, uint64_t rate_bps, struct ptcp_err *e)
{
	char buf[CONF_LINK_TEXT_BYTES], q[CONF_QUOTED_BYTES];
	const char *why;
	int i = conf_overlay_link(o->conf, link, buf, &why);

	if (i < 0)
		return err_set(e, PTCP_EUSAGE, "link '%s': not a link of %s (expected one as A>B)",
		    conf_quoted(q, link), o->conf->file);
	o->conf->links[i].rate_bps = rate_bps;
	return 0;
}

int ptcp_overlay_set_data(struct ptcp_overlay *o, const char *host, uint64_t bytes, struct ptcp_err *e)
{
	char q[CONF_QUOTED_BYTES];
	int i = conf_overlay_host(o->conf, host);

	if (i < 0)
		return err_set(e, PTCP_EUSAGE, "host '%s': not a host of %s (name one of its hosts)",
		    conf_quoted(q, host), o->conf->file);
	if (i == o->conf->destination && bytes > 0)
		return err_set(e, PTCP_EUSAGE, "host %s: is the destination, which has no data "
		    "to collect", host);
	if (bytes > CONF_DATA_MAX_BYTES)
		return err_set(e, PTCP_EUSAGE, "host %s: data: expected at most 2^60 bytes", host);
	o->conf->hosts[i].data_bytes = bytes;
	return 0;
}
