#include "conf/overlay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/sorted.h"
#include "core/units.h"

/* ---- Curves ---- */

void conf_free_curve(struct conf_curve *c)
{
	if (c == NULL)
		return;
	free(c->point);
	free(c);
}

static const struct conf_field point_fields[] = {
	{ "rate", CONF_RATE, offsetof(struct conf_point, rate_bps), 1 },
	{ "impact", CONF_PERCENT, offsetof(struct conf_point, impact_ratio), 1 },
	{ NULL, CONF_TEXT, 0, 0 }
};

/* Tolerance of concavity: rates are rounded to a few digits. */
#define CURVE_ROUNDING 0.005

static int read_streams(const struct conf_doc *d, int node, unsigned *streams, struct ptcp_err *e)
{
	const char *text;
	char q[CONF_QUOTED_BYTES];
	unsigned long n;
	int r;

	if ((r = conf_want_text(d, node, "curve", &text, e)) < 0)
		return r;
	n = text[strspn(text, "0123456789")] == '\0' ? strtoul(text, NULL, 10) : 0;
	if (n < 1 || n > CONF_STREAMS_MAX)
		return conf_fail(d, node, e, "curve: expected a number of streams from 1 to %d, got '%s'",
		    CONF_STREAMS_MAX, conf_quoted(q, text));
	*streams = (unsigned)n;
	return 0;
}

/* Reads a rate, or a map of rate and impact. */
static int read_value(const struct conf_doc *d, int node, struct conf_point *p, struct ptcp_err *e)
{
	const char *text;
	char q[CONF_QUOTED_BYTES];
	size_t n;
	int r;

	p->impact_ratio = NAN;
	if (conf_want_map(d, node, "curve", 2, &n, NULL) == 0)
		return conf_read_map(d, node, "curve", point_fields, p, e);
	if ((r = conf_want_text(d, node, "curve", &text, e)) < 0)
		return r;
	if (units_parse_rate(text, &p->rate_bps) < 0 || p->rate_bps == CONF_UNSET)
		return conf_fail(d, node, e, "curve: expected a rate such as 400Mbit/s, or a rate and an "
		    "impact such as {rate: 400Mbit/s, impact: 5}, got '%s'", conf_quoted(q, text));
	return 0;
}

static double slope(const struct conf_point *from, const struct conf_point *to)
{
	return ((double)to->rate_bps - (double)from->rate_bps) / (to->streams - from->streams);
}

/* Checks the i-th point against the previous points. */
static int check_point(const struct conf_doc *d, int node, const struct conf_curve *c, size_t i,
    struct ptcp_err *e)
{
	static const struct conf_point none = { .streams = 0 };
	const struct conf_point *p = &c->point[i], *last = i > 0 ? p - 1 : &none;

	if (p->rate_bps == 0)
		return conf_fail(d, node, e, "curve: expected a rate above 0");
	if (i == 0)
		return 0;
	if (p->streams <= last->streams)
		return conf_fail(d, node, e, "curve: expected more than %u stream%s after the point before",
		    last->streams, plural(last->streams));
	if (p->rate_bps < last->rate_bps)
		return conf_fail(d, node, e, "curve: expected at least the rate of %u stream%s (leave out "
		    "points where throughput falls)", last->streams, plural(last->streams));
	if (slope(last, p) > slope(i > 1 ? last - 1 : &none, last) * (1 + CURVE_ROUNDING))
		return conf_fail(d, node, e, "curve: expected no stream to add more than the previous ones, "
		    "as ptcp advise reports (leave out points that scatter)");
	if (isnan(p->impact_ratio) != isnan(last->impact_ratio))
		return conf_fail(d, node, e, "curve: expected an impact at every point or at none");
	if (p->impact_ratio < last->impact_ratio)
		return conf_fail(d, node, e, "curve: expected at least the impact of %u stream%s",
		    last->streams, plural(last->streams));
	return 0;
}

static int read_curve(struct conf_curve **out, const struct conf_doc *d, int node, const char *what,
    struct ptcp_err *e)
{
	struct conf_curve *c;
	size_t i, n;
	int r;

	if ((r = conf_want_map(d, node, "curve", CONF_POINTS_MAX, &n, e)) < 0)
		return r;
	if (n == 0)
		return conf_fail(d, node, e, "%s: curve: expected at least one point, such as "
		    "{1: 94Mbit/s, 10: 412Mbit/s}", what);
	if ((c = calloc(1, sizeof *c)) == NULL || (c->point = calloc(n, sizeof *c->point)) == NULL) {
		conf_free_curve(c);
		return err_nomem(e);
	}
	c->n = n;
	c->mark = conf_doc_mark(d, node);
	for (i = 0; i < n && r == 0; i++)
		if ((r = read_streams(d, conf_key(d, node, i), &c->point[i].streams, e)) == 0 &&
		    (r = read_value(d, conf_value(d, node, i), &c->point[i], e)) == 0)
			r = check_point(d, conf_key(d, node, i), c, i, e);
	if (r < 0)
		conf_free_curve(c);
	else
		*out = c;
	return r;
}

/* ---- Links, shared bottlenecks, windows ---- */

struct link_text {
	int from, to, curve; /* nodes */
	uint64_t rate_bps, delay_ns;
};

static const struct conf_field link_fields[] = {
	{ "from", CONF_NODE, offsetof(struct link_text, from), 1 },
	{ "to", CONF_NODE, offsetof(struct link_text, to), 1 },
	{ "rate", CONF_RATE, offsetof(struct link_text, rate_bps), 0 },
	{ "curve", CONF_NODE, offsetof(struct link_text, curve), 0 },
	{ "delay", CONF_TIME, offsetof(struct link_text, delay_ns), 0 },
	{ NULL, CONF_TEXT, 0, 0 }
};

struct group_text {
	uint64_t rate_bps;
	int curve, links; /* nodes */
};

static const struct conf_field group_fields[] = {
	{ "rate", CONF_RATE, offsetof(struct group_text, rate_bps), 0 },
	{ "curve", CONF_NODE, offsetof(struct group_text, curve), 0 },
	{ "links", CONF_NODE, offsetof(struct group_text, links), 1 },
	{ NULL, CONF_TEXT, 0, 0 }
};

struct window_text {
	int link; /* node */
	uint64_t from_ns, until_ns, rate_bps;
};

static const struct conf_field window_fields[] = {
	{ "link", CONF_NODE, offsetof(struct window_text, link), 1 },
	{ "from", CONF_TIME, offsetof(struct window_text, from_ns), 0 },
	{ "until", CONF_TIME, offsetof(struct window_text, until_ns), 0 },
	{ "rate", CONF_RATE, offsetof(struct window_text, rate_bps), 1 },
	{ NULL, CONF_TEXT, 0, 0 }
};

struct name_at {
	const char *name;
	int host;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct name_at *)a)->name, ((const struct name_at *)b)->name);
}

/* Sorted: a full mesh of 300 hosts looks up 180,000 names. */
static struct name_at *sorted_names(const struct ptcp_overlay *o)
{
	struct name_at *names = calloc(o->nhosts + 1, sizeof *names);
	size_t i;

	if (names == NULL)
		return NULL;
	for (i = 0; i < o->nhosts; i++)
		names[i] = (struct name_at){ o->hosts[i].name, (int)i };
	sort_array(names, o->nhosts, sizeof *names, by_name);
	return names;
}

static int want_host(const struct conf_doc *d, int node, const char *what,
    const struct ptcp_overlay *o, const struct name_at *names, int *host, struct ptcp_err *e)
{
	struct name_at want = { NULL, 0 }, *got;
	char q[CONF_QUOTED_BYTES];
	int r;

	if ((r = conf_want_text(d, node, what, &want.name, e)) < 0)
		return r;
	got = bsearch(&want, names, o->nhosts, sizeof *names, by_name);
	if (got == NULL)
		return conf_fail(d, node, e, "%s: expected one of the hosts, got '%s'", what,
		    conf_quoted(q, want.name));
	*host = got->host;
	return 0;
}

static int read_link(const struct conf_doc *d, int node, struct ptcp_overlay *o,
    const struct name_at *names, struct conf_link *l, struct ptcp_err *e)
{
	struct link_text t = { .rate_bps = CONF_UNSET, .delay_ns = CONF_UNSET };
	const char *host;
	int r, *slot;

	if ((r = conf_read_map(d, node, "link", link_fields, &t, e)) < 0 ||
	    (r = want_host(d, t.from, "from", o, names, &l->from, e)) < 0 ||
	    (r = want_host(d, t.to, "to", o, names, &l->to, e)) < 0)
		return r;
	host = o->hosts[l->from].name;
	if (l->from == l->to)
		return conf_fail(d, node, e, "link: expected two hosts, got %s twice", host);
	slot = &o->link_of[(size_t)l->from * o->nhosts + (size_t)l->to];
	if (*slot >= 0)
		return conf_fail(d, node, e, "link: expected %s>%s once (first on line %d)", host,
		    o->hosts[l->to].name, o->links[*slot].mark.line);
	*slot = (int)(l - o->links);
	l->rate_bps = t.rate_bps;
	l->delay_ns = t.delay_ns;
	l->mark = conf_doc_mark(d, node);
	if (t.curve == 0)
		return 0;
	if (t.rate_bps != CONF_UNSET)
		return conf_fail(d, node, e, "link: expected 'rate' or 'curve', got both");
	return read_curve(&l->curve, d, t.curve, "link", e);
}

struct defaults {
	uint64_t rate_bps, delay_ns;
};

static const struct conf_field default_fields[] = {
	{ "rate", CONF_RATE, offsetof(struct defaults, rate_bps), 0 },
	{ "delay", CONF_TIME, offsetof(struct defaults, delay_ns), 0 },
	{ NULL, CONF_TEXT, 0, 0 }
};

/* Whether data can use a link between the two hosts. */
static bool is_useful(const struct ptcp_overlay *o, size_t from, size_t to)
{
	const struct conf_host *h = &o->hosts[from];
	bool has_data = h->path != NULL || (h->data_bytes != CONF_UNSET && h->data_bytes > 0);

	return from != to && (int)from != o->destination && (has_data || h->relay) &&
	    ((int)to == o->destination || o->hosts[to].relay);
}

/* Adds the useful links that are not listed, by host. */
static int add_links(const struct conf_doc *d, int all, struct ptcp_overlay *o, struct ptcp_err *e)
{
	size_t from, to, n = o->nlisted;
	struct conf_link *more;
	int *slot;

	for (from = 0; from < o->nhosts; from++)
		for (to = 0; to < o->nhosts; to++)
			n += is_useful(o, from, to) && o->link_of[from * o->nhosts + to] < 0;
	if (n > CONF_LINKS_MAX)
		return conf_fail(d, all, e, "all: expected at most %d links, got %zu (list the links that are used)",
		    CONF_LINKS_MAX, n);
	if ((more = realloc(o->links, (n + 1) * sizeof *more)) == NULL)
		return err_nomem(e);
	o->links = more;
	for (from = 0; from < o->nhosts; from++)
		for (to = 0; to < o->nhosts; to++) {
			slot = &o->link_of[from * o->nhosts + to];
			if (!is_useful(o, from, to) || *slot >= 0)
				continue;
			*slot = (int)o->nlinks;
			o->links[o->nlinks++] = (struct conf_link){ .from = (int)from, .to = (int)to,
			    .rate_bps = CONF_UNSET,
				.delay_ns = CONF_UNSET, .mark = conf_doc_mark(d, all) };
		}
	return 0;
}

static int read_all(const struct conf_doc *d, int all, struct ptcp_overlay *o, struct ptcp_err *e)
{
	struct defaults t = { CONF_UNSET, CONF_UNSET };
	size_t i;
	int r;

	if ((r = conf_read_map(d, all, "all", default_fields, &t, e)) < 0 || (r = add_links(d, all, o, e)) < 0)
		return r;
	for (i = 0; i < o->nlinks; i++) {
		struct conf_link *l = &o->links[i];

		if (l->rate_bps == CONF_UNSET && l->curve == NULL)
			l->rate_bps = t.rate_bps;
		if (l->delay_ns == CONF_UNSET)
			l->delay_ns = t.delay_ns;
	}
	return 0;
}

int conf_read_links(const struct conf_doc *d, int node, int all, struct ptcp_overlay *o, struct ptcp_err *e)
{
	struct name_at *names;
	size_t i, n = 0;
	int r = 0;

	if (node != 0 && (r = conf_want_list(d, node, "links", CONF_LINKS_MAX, &n, e)) < 0)
		return r;
	o->link_of = malloc((o->nhosts * o->nhosts + 1) * sizeof *o->link_of);
	o->links = calloc(n + 1, sizeof *o->links);
	names = sorted_names(o);
	if (o->link_of == NULL || o->links == NULL || names == NULL)
		r = err_nomem(e);
	else
		for (i = 0; i < o->nhosts * o->nhosts; i++)
			o->link_of[i] = -1;
	for (i = 0; i < n && r == 0; i++) {
		r = read_link(d, conf_item(d, node, i), o, names, &o->links[i], e);
		o->nlinks = i + 1;
	}
	o->nlisted = o->nlinks;
	free(names);
	return r == 0 && all != 0 ? read_all(d, all, o, e) : r;
}

static int want_link(const struct conf_doc *d, int node, const char *what,
    const struct ptcp_overlay *o, int *link, struct ptcp_err *e)
{
	char buf[CONF_LINK_TEXT_BYTES], q[CONF_QUOTED_BYTES], p[CONF_QUOTED_BYTES];
	const char *text, *missing;
	int r;

	if ((r = conf_want_text(d, node, what, &text, e)) < 0)
		return r;
	*link = conf_overlay_link(o, text, buf, &missing);
	if (*link >= 0)
		return 0;
	if (strchr(text, '>') == NULL)
		return conf_fail(d, node, e, "%s: expected a link such as A>B, got '%s'", what,
		    conf_quoted(q, text));
	if (missing != NULL)
		return conf_fail(d, node, e, "%s: expected two hosts in '%s'; there is no host "
		    "'%s'", what, conf_quoted(q, text), conf_quoted(p, missing));
	return conf_fail(d, node, e, "%s: expected one of the links, got '%s'", what, conf_quoted(q, text));
}

static int read_group(const struct conf_doc *d, int node, struct ptcp_overlay *o,
    int *used_by, int number, struct conf_group *g, struct ptcp_err *e)
{
	struct group_text t = { .rate_bps = CONF_UNSET };
	size_t i, n;
	int r, item;

	if ((r = conf_read_map(d, node, "shared", group_fields, &t, e)) < 0 ||
	    (r = conf_want_list(d, t.links, "links of a shared bottleneck", CONF_LINKS_MAX, &n, e)) < 0)
		return r;
	if ((t.rate_bps == CONF_UNSET) == (t.curve == 0))
		return conf_fail(d, node, e, t.curve == 0 ? "shared: expected the key 'rate' or 'curve'" :
		    "shared: expected 'rate' or 'curve', got both");
	if (t.curve != 0 && (r = read_curve(&g->curve, d, t.curve, "shared", e)) < 0)
		return r;
	if (n == 0)
		return conf_fail(d, t.links, e, "shared: expected at least one link");
	if ((g->links = calloc(n, sizeof *g->links)) == NULL)
		return err_nomem(e);
	for (i = 0; i < n; i++) {
		item = conf_item(d, t.links, i);
		if ((r = want_link(d, item, "shared", o, &g->links[i], e)) < 0)
			return r;
		if (used_by[g->links[i]] == number)
			return conf_fail(d, item, e, "shared: expected each link once");
		used_by[g->links[i]] = number;
		if (g->curve == NULL && o->links[g->links[i]].curve != NULL)
			return conf_fail(d, item, e, "shared: expected 'curve' in place of 'rate', as this "
			    "link has one, and links that share a bottleneck share its budget");
	}
	g->nlinks = n;
	g->rate_bps = t.rate_bps;
	g->mark = conf_doc_mark(d, node);
	return 0;
}

int conf_read_groups(const struct conf_doc *d, int node, struct ptcp_overlay *o, struct ptcp_err *e)
{
	int *used_by, r;
	size_t i, n;

	if (node == 0)
		return 0;
	if ((r = conf_want_list(d, node, "shared", CONF_GROUPS_MAX, &n, e)) < 0)
		return r;
	o->groups = calloc(n + 1, sizeof *o->groups);
	used_by = calloc(o->nlinks + 1, sizeof *used_by);
	if (o->groups == NULL || used_by == NULL)
		r = err_nomem(e);
	for (i = 0; i < n && r == 0; i++) {
		o->ngroups = i + 1;
		r = read_group(d, conf_item(d, node, i), o, used_by, (int)i + 1, &o->groups[i], e);
	}
	free(used_by);
	return r;
}

static int read_window(const struct conf_doc *d, int node, struct ptcp_overlay *o,
    struct conf_window *w, struct ptcp_err *e)
{
	struct window_text t = { .from_ns = 0, .until_ns = CONF_UNSET, .rate_bps = CONF_UNSET };
	int r;

	if ((r = conf_read_map(d, node, "window", window_fields, &t, e)) < 0 ||
	    (r = want_link(d, t.link, "window", o, &w->link, e)) < 0)
		return r;
	if (t.from_ns >= t.until_ns)
		return conf_fail(d, node, e, "window: expected 'from' before 'until'");
	w->from_ns = t.from_ns;
	w->until_ns = t.until_ns;
	w->rate_bps = t.rate_bps;
	w->mark = conf_doc_mark(d, node);
	return 0;
}

static int by_link_and_time(const void *a, const void *b)
{
	const struct conf_window *x = a, *y = b;

	if (x->link != y->link)
		return x->link < y->link ? -1 : 1;
	if (x->from_ns != y->from_ns)
		return x->from_ns < y->from_ns ? -1 : 1;
	return x->mark.line - y->mark.line;
}

int conf_read_windows(const struct conf_doc *d, int node, struct ptcp_overlay *o, struct ptcp_err *e)
{
	const struct conf_window *w;
	size_t i, n;
	int r;

	if (node == 0)
		return 0;
	if ((r = conf_want_list(d, node, "windows", CONF_WINDOWS_MAX, &n, e)) < 0)
		return r;
	if ((o->windows = calloc(n + 1, sizeof *o->windows)) == NULL)
		return err_nomem(e);
	for (i = 0; i < n; i++) {
		o->nwindows = i + 1;
		if ((r = read_window(d, conf_item(d, node, i), o, &o->windows[i], e)) < 0)
			return r;
	}
	sort_array(o->windows, n, sizeof *o->windows, by_link_and_time);
	for (i = 1; i < n; i++) {
		w = &o->windows[i];
		if (w->link == w[-1].link && w->from_ns < w[-1].until_ns)
			return err_set(e, PTCP_ECONFIG, "%s:%d:%d: window: expected no overlap "
			    "with the window of the same link on line %d", o->file, w->mark.line,
			    w->mark.column, w[-1].mark.line);
	}
	return 0;
}
