#include "server/link_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conn/remote.h"
#include "core/err.h"
#include "core/units.h"
#include "server/server_impl.h"
#include "wire/jobs.h"

struct link_table_entry {
	struct wire_link f; /* values without host and text */
	char host[SOCK_HOST_BYTES], text[WIRE_TEXT_MAX + 1];
	struct mono at;     /* time of f.age_ms */
};

void link_table_init(struct link_table *k)
{
	memset(k, 0, sizeof *k);
	pthread_mutex_init(&k->mutex, NULL);
}

void link_table_fini(struct link_table *k)
{
	free(k->entry);
	pthread_mutex_destroy(&k->mutex);
}

/* ---- Setting ---- */

/* Converts `v` to the wire's unit; `units` is the number of wire units in a unit of `v`. */
static bool to_number(uint64_t *out, double v, double units, uint64_t max)
{
	if (!(v >= 0 && v * units <= (double)max))
		return false;
	*out = (uint64_t)(v * units + 0.5);
	return true;
}

/* NAN: unknown. */
static bool to_error(uint64_t *out, double v, double units, uint64_t max)
{
	*out = WIRE_LINK_NOT_KNOWN;
	return isnan(v) || to_number(out, v, units, max);
}

static bool take_numbers(struct wire_link *f, const struct ptcp_published_link *l)
{
	*f = (struct wire_link){ .rate_bps = 0 };
	if (l->messages == 0)
		return true;
	f->messages = l->messages;
	f->streams = (uint16_t)l->streams;
	f->flags = l->delay_from_round_trip ? WIRE_LINK_ROUND_TRIP : 0;
	return l->streams > 0 && l->streams <= PTCP_STREAMS_MAX &&
	    to_number(&f->rate_bps, l->rate_bps, 1, WIRE_LINK_BPS_MAX) && f->rate_bps > 0 &&
	    to_error(&f->rate_error_bps, l->rate_error_bps, 1, WIRE_LINK_BPS_MAX) &&
	    to_number(&f->delay_ns, l->delay_s, NS_PER_S, WIRE_LINK_NS_MAX) &&
	    to_error(&f->delay_error_ns, l->delay_error_s, NS_PER_S, WIRE_LINK_NS_MAX) &&
	    to_number(&f->age_ms, l->age_s, 1e3, UINT64_C(1) << 53);
}

static int take_link(struct link_table_entry *w, const struct ptcp_published_link *l, struct ptcp_err *e)
{
	struct remote to;
	int r;

	if ((r = remote_parse_host(&to, l->to, e)) < 0)
		return r;
	if (to.ssh || !take_numbers(&w->f, l))
		return err_set(e, PTCP_EUSAGE, "%s: link estimate out of range, or an address through ssh", l->to);
	w->f.port = (uint16_t)to.port;
	strcpy(w->host, to.host);
	strncpy(w->text, l->why != NULL ? l->why : "", WIRE_TEXT_MAX);
	w->at = mono_now();
	return 0;
}

int link_table_set(struct link_table *k, const struct ptcp_published_link *l, size_t n, struct ptcp_err *e)
{
	struct link_table_entry *entry = NULL, *old;
	size_t i;
	int r = 0;

	if (n > WIRE_LINKS_MAX)
		return err_set(e, PTCP_EUSAGE, "more than %d links of one host", WIRE_LINKS_MAX);
	if (l != NULL && (entry = calloc(n + 1, sizeof *entry)) == NULL)
		return err_nomem(e);
	for (i = 0; l != NULL && r == 0 && i < n; i++)
		r = take_link(&entry[i], &l[i], e);
	if (r < 0) {
		free(entry);
		return r;
	}
	pthread_mutex_lock(&k->mutex);
	old = k->entry;
	k->entry = entry;
	k->n = n;
	pthread_mutex_unlock(&k->mutex);
	free(old);
	return 0;
}

int ptcp_server_set_links(struct ptcp_server *s, const struct ptcp_published_link *l, size_t n, struct ptcp_err *e)
{
	return link_table_set(&s->links, l, n, e);
}

/* ---- Publishing ---- */

unsigned link_table_count(struct link_table *k)
{
	unsigned known = 0;
	size_t i;

	pthread_mutex_lock(&k->mutex);
	for (i = 0; i < k->n; i++)
		known += k->entry[i].f.rate_bps > 0;
	pthread_mutex_unlock(&k->mutex);
	return known;
}

static void put_link(const struct link_table_entry *w, struct outbox *o)
{
	struct wire_link f = w->f;

	f.host = (struct span){ (const uint8_t *)w->host, strlen(w->host) };
	f.text = (struct span){ (const uint8_t *)w->text, strlen(w->text) };
	if (f.rate_bps > 0)
		f.age_ms += mono_diff_ns(mono_now(), w->at) / NS_PER_MS;
	OUTBOX_PUT(o, link, LINK, &f);
}

bool link_table_put(struct link_table *k, struct outbox *o)
{
	bool measures;
	size_t i;

	pthread_mutex_lock(&k->mutex);
	measures = k->entry != NULL;
	for (i = 0; measures && i < k->n; i++)
		put_link(&k->entry[i], o);
	pthread_mutex_unlock(&k->mutex);
	return measures;
}
