#include "conf/curve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conf/fields.h"
#include "core/err.h"
#include "core/units.h"

static const struct conf_field point_fields[] = {
	{ "rate", CONF_RATE, offsetof(struct conf_point, rate_bps), 1 },
	{ "impact", CONF_PERCENT, offsetof(struct conf_point, impact_ratio), 1 },
	{ NULL, CONF_TEXT, 0, 0 }
};

/* Rates are written in a few digits: what they leave of concavity. */
#define ROUNDING 0.005

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

/* A rate, or a map of rate and impact. */
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

/* The i-th point against those before it. */
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
		return conf_fail(d, node, e, "curve: expected more than %u streams after the point before",
		    last->streams);
	if (p->rate_bps < last->rate_bps)
		return conf_fail(d, node, e, "curve: expected at least the rate of %u streams (leave out "
		    "points where more streams bring less)", last->streams);
	if (slope(last, p) > slope(i > 1 ? last - 1 : &none, last) * (1 + ROUNDING))
		return conf_fail(d, node, e, "curve: expected no stream to bring more than those before it, "
		    "as ptcp advise says it (leave out points that scatter)");
	if (isnan(p->impact_ratio) != isnan(last->impact_ratio))
		return conf_fail(d, node, e, "curve: expected an impact at every point or at none");
	if (p->impact_ratio < last->impact_ratio)
		return conf_fail(d, node, e, "curve: expected at least the impact of %u streams",
		    last->streams);
	return 0;
}

int conf_read_curve(struct conf_curve **out, const struct conf_doc *d, int node, const char *what,
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
		conf_curve_free(c);
		return err_nomem(e);
	}
	c->n = n;
	c->mark = conf_doc_mark(d, node);
	for (i = 0; i < n && r == 0; i++)
		if ((r = read_streams(d, conf_key(d, node, i), &c->point[i].streams, e)) == 0 &&
		    (r = read_value(d, conf_value(d, node, i), &c->point[i], e)) == 0)
			r = check_point(d, conf_key(d, node, i), c, i, e);
	if (r < 0)
		conf_curve_free(c);
	else
		*out = c;
	return r;
}

void conf_curve_free(struct conf_curve *c)
{
	if (c == NULL)
		return;
	free(c->point);
	free(c);
}
