#include "plan/overlay_copy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/edit.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"
#include "plan/streams.h"

_Static_assert(PTCP_UNKNOWN == CONF_UNSET, "the public header promises the same mark");

/* Passes an overlay to the caller, with the budgets of its curves. */
static int overlay_copy_finish(struct ptcp_overlay **out, struct ptcp_overlay *o, struct ptcp_err *e)
{
	int r = curve_budgets(o, e);

	if (r < 0)
		conf_overlay_free(o);
	else
		*out = o;
	return r;
}

int ptcp_overlay_load(struct ptcp_overlay **out, const char *path, struct ptcp_err *e)
{
	struct ptcp_overlay *o;
	int r = conf_overlay_load(&o, path, e);

	return r < 0 ? r : overlay_copy_finish(out, o, e);
}

int ptcp_overlay_parse(struct ptcp_overlay **out, const char *text, size_t n, const char *name,
    struct ptcp_err *e)
{
	struct ptcp_overlay *o;
	int r = conf_overlay_parse(&o, text, n, name, e);

	return r < 0 ? r : overlay_copy_finish(out, o, e);
}

void ptcp_overlay_free(struct ptcp_overlay *o)
{
	conf_overlay_free(o);
}

size_t ptcp_overlay_hosts(const struct ptcp_overlay *o)
{
	return o->nhosts;
}

size_t ptcp_overlay_links(const struct ptcp_overlay *o)
{
	return o->nlinks;
}

int ptcp_overlay_destination(const struct ptcp_overlay *o)
{
	return o->destination;
}

const char *ptcp_overlay_launch(const struct ptcp_overlay *o)
{
	return o->launch;
}

double ptcp_overlay_deadline_s(const struct ptcp_overlay *o)
{
	if (o->deadline_ns == CONF_UNSET)
		return 0;
	return (double)o->deadline_ns / (double)NS_PER_S;
}

/* Hosts without data and path have no data; the data of hosts with only a path is unknown. */
static uint64_t host_data(const struct conf_host *h)
{
	if (h->data_bytes == CONF_UNSET && h->path == NULL)
		return 0;
	return h->data_bytes;
}

void ptcp_overlay_host(const struct ptcp_overlay *o, size_t i, struct ptcp_overlay_host *out)
{
	const struct conf_host *h = &o->hosts[i];

	*out = (struct ptcp_overlay_host){
		.name = h->name, .address = h->address, .path = h->path,
		.data_bytes = (int)i == o->destination ? 0 : host_data(h),
		.storage_bytes = h->storage_bytes,
		.ingress_bps = h->ingress_bps, .egress_bps = h->egress_bps,
		.relay = h->relay,
	};
}

void ptcp_overlay_link(const struct ptcp_overlay *o, size_t i, struct ptcp_overlay_link *out)
{
	const struct conf_link *l = &o->links[i];

	*out = (struct ptcp_overlay_link){
		.from = l->from, .to = l->to, .rate_bps = l->rate_bps, .delay_ns = l->delay_ns,
	};
}

int ptcp_overlay_find_host(const struct ptcp_overlay *o, const char *name)
{
	return conf_overlay_host(o, name);
}

int ptcp_overlay_set_rate(struct ptcp_overlay *o, const char *link, uint64_t rate_bps, struct ptcp_err *e)
{
	char buf[CONF_LINK_TEXT_BYTES], q[CONF_QUOTED_BYTES];
	const char *why;
	int i = conf_overlay_link(o, link, buf, &why);

	if (i < 0)
		return err_set(e, PTCP_EUSAGE, "link '%s': not a link of %s (expected one as A>B)",
		    conf_quoted(q, link), o->file);
	o->links[i].rate_bps = rate_bps;
	return 0;
}

int ptcp_overlay_set_data(struct ptcp_overlay *o, const char *host, uint64_t bytes, struct ptcp_err *e)
{
	char q[CONF_QUOTED_BYTES];
	int i = conf_overlay_host(o, host);

	if (i < 0)
		return err_set(e, PTCP_EUSAGE, "host '%s': not a host of %s (name one of its hosts)",
		    conf_quoted(q, host), o->file);
	if (i == o->destination && bytes > 0)
		return err_set(e, PTCP_EUSAGE, "host %s: is the destination, which has no data "
		    "to collect", host);
	if (bytes > CONF_DATA_MAX_BYTES)
		return err_set(e, PTCP_EUSAGE, "host %s: data: expected at most 2^60 bytes", host);
	o->hosts[i].data_bytes = bytes;
	return 0;
}

/* ---- Saving ---- */

/* "47.6Mbit/s", without a space. */
static void rate_text(char out[CONF_CHANGE_BYTES], uint64_t bps)
{
	char *space;

	units_rate_text(out, (double)bps);
	if ((space = strchr(out, ' ')) != NULL)
		memmove(space, space + 1, strlen(space));
}

static struct conf_change change_of(const struct ptcp_overlay_found *f)
{
	struct conf_change c = { .link = (int)f->link };

	if (f->rate_bps != PTCP_UNKNOWN)
		rate_text(c.rate, f->rate_bps);
	if (f->delay_ns != PTCP_UNKNOWN)
		snprintf(c.delay, sizeof c.delay, "%.3fms", (double)f->delay_ns / (double)NS_PER_MS);
	return c;
}

static int make_changes(struct conf_change **out, const struct ptcp_overlay_found *found, size_t n, size_t links,
    struct ptcp_err *e)
{
	struct conf_change *c = calloc(n + 1, sizeof *c);
	size_t i;

	if (c == NULL)
		return err_nomem(e);
	for (i = 0; i < n; i++) {
		if (found[i].link >= links || (i > 0 && found[i].link <= found[i - 1].link)) {
			free(c);
			return err_set(e, PTCP_EUSAGE, "links to write: must be links, ascending");
		}
		c[i] = change_of(&found[i]);
	}
	*out = c;
	return 0;
}

int ptcp_overlay_save(const char *from, const char *to, const struct ptcp_overlay_found *found, size_t n,
    struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES], *text = NULL, *now = NULL;
	struct ptcp_overlay *was = NULL;
	struct conf_change *changes = NULL;
	size_t bytes, now_bytes;
	int r;

	text_escape(shown, sizeof shown, from);
	if ((r = conf_read_file(&text, &bytes, from, shown, NULL, e)) < 0)
		return r;
	if ((r = conf_overlay_parse(&was, text, bytes, shown, e)) == 0 &&
	    (r = make_changes(&changes, found, n, was->nlinks, e)) == 0 &&
	    (r = conf_overlay_edit(&now, &now_bytes, text, bytes, shown, changes, n, e)) == 0)
		r = conf_save(to, now, now_bytes, e);
	conf_overlay_free(was);
	free(changes);
	free(text);
	free(now);
	return r;
}

/* ---- Copies ---- */

static void *copy(const void *from, size_t n, size_t size)
{
	void *to = calloc(n > 0 ? n : 1, size);

	if (to != NULL && n > 0)
		memcpy(to, from, n * size);
	return to;
}

int overlay_snapshot(struct ptcp_overlay **out, const struct ptcp_overlay *o, struct ptcp_err *e)
{
	struct ptcp_overlay *to = copy(o, 1, sizeof *o);

	if (to == NULL)
		return err_nomem(e);
	to->hosts = copy(o->hosts, o->nhosts, sizeof *o->hosts);
	to->links = copy(o->links, o->nlinks, sizeof *o->links);
	to->groups = copy(o->groups, o->ngroups, sizeof *o->groups);
	to->windows = copy(o->windows, o->nwindows, sizeof *o->windows);
	if (to->hosts == NULL || to->links == NULL || to->groups == NULL || to->windows == NULL) {
		overlay_snapshot_free(to);
		return err_nomem(e);
	}
	*out = to;
	return 0;
}

void overlay_snapshot_free(struct ptcp_overlay *o)
{
	if (o == NULL)
		return;
	free(o->hosts);
	free(o->links);
	free(o->groups);
	free(o->windows);
	free(o);
}

static bool are_links(const struct ptcp_overlay *o, const struct ptcp_shared_bottleneck *found, size_t n)
{
	size_t i, k;

	for (i = 0; i < n; i++)
		for (k = 0; k < found[i].n; k++)
			if (found[i].links[k] >= o->nlinks)
				return false;
	return true;
}

/* The items of the list, one per line; freed by the caller. */
static char *shared_text(const struct ptcp_overlay *o, const struct ptcp_shared_bottleneck *found, size_t n)
{
	char rate[CONF_CHANGE_BYTES], *text = NULL;
	const struct conf_link *l;
	size_t i, k, bytes;
	FILE *f = open_memstream(&text, &bytes);

	for (i = 0; f != NULL && i < n; i++) {
		rate_text(rate, (uint64_t)(found[i].rate_bps + 0.5));
		fprintf(f, "  - {rate: %s, links: [", rate);
		for (k = 0; k < found[i].n; k++) {
			l = &o->links[found[i].links[k]];
			fprintf(f, "%s%s>%s", k > 0 ? ", " : "", o->hosts[l->from].name, o->hosts[l->to].name);
		}
		fputs("]}\n", f);
	}
	return f != NULL && fclose(f) == 0 ? text : NULL;
}

int ptcp_overlay_save_shared(const char *from, const char *to, const struct ptcp_shared_bottleneck *found, size_t n,
    struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES], *text = NULL, *shared = NULL, *now = NULL;
	struct ptcp_overlay *was = NULL;
	size_t bytes, now_bytes;
	int r;

	text_escape(shown, sizeof shown, from);
	if ((r = conf_read_file(&text, &bytes, from, shown, NULL, e)) < 0)
		return r;
	if ((r = conf_overlay_parse(&was, text, bytes, shown, e)) == 0 && was->ngroups > 0)
		r = 1;
	if (r == 0 && !are_links(was, found, n))
		r = err_set(e, PTCP_EUSAGE, "shared bottlenecks to write: must be of links");
	if (r == 0 && (shared = shared_text(was, found, n)) == NULL)
		r = err_nomem(e);
	if (r == 0 && (r = conf_overlay_add_shared(&now, &now_bytes, text, bytes, shown, shared, e)) == 0)
		r = conf_save(to, now, now_bytes, e);
	conf_overlay_free(was);
	free(text);
	free(shared);
	free(now);
	return r;
}
