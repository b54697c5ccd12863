#include "cli/links_output.h"

#include <math.h>
#include <stdio.h>

#include "cli/json.h"
#include "core/err.h"
#include "core/units.h"

const char *links_name(char out[LINK_NAME_BYTES], const struct ptcp_overlay *o, size_t link)
{
	struct ptcp_overlay_link l;

	ptcp_overlay_link(o, link, &l);
	return link_name(out, o, l.from, l.to);
}

/* ---- Text ---- */

static void print_measured(const struct ptcp_link_estimate *m)
{
	char b[UNITS_TEXT_BYTES], c[UNITS_TEXT_BYTES], age[UNITS_TEXT_BYTES];

	if (isnan(m->rate_bps))
		printf("%12s %12s", "?", "");
	else if (isnan(m->rate_error_bps))
		printf("%12s %12s", units_rate_text(b, m->rate_bps), "");
	else
		printf("%12s +- %9s", units_rate_text(b, m->rate_bps), units_rate_text(c, m->rate_error_bps));
	printf(" %10.3f ms", 1e3 * m->delay_s);
	if (m->delay_from_round_trip)
		printf("  from round trip");
	else if (isnan(m->delay_error_s))
		printf("%17s", "");
	else
		printf(" +- %7.3f ms   ", 1e3 * m->delay_error_s);
	if (m->result != NULL)
		printf("  %5.3f %8.0f", m->r2_ratio, m->messages_bound);
	printf("  %u over %u stream%s: %s%s\n", m->messages, m->streams, m->streams == 1 ? "" : "s",
	    m->result != NULL ? m->result : units_time_text(age, m->age_s), m->result != NULL ? "" : " ago");
}

void links_text_link(const struct ptcp_overlay *o, const struct ptcp_links *l, size_t i)
{
	char name[LINK_NAME_BYTES];
	struct ptcp_link_estimate m;

	ptcp_links_get(l, i, &m);
	printf("%-16s ", links_name(name, o, i));
	if (m.state == PTCP_LINK_MEASURED)
		print_measured(&m);
	else
		printf("not measured: %s\n", m.state == PTCP_LINK_ELSEWHERE ? m.why : "failed");
	fflush(stdout);
}

void links_text(const struct ptcp_overlay *o, const struct ptcp_links *l, bool queried)
{
	size_t i;

	printf("%-16s %25s %30s", "link", "rate", "delay, one way");
	if (!queried)
		printf(" %6s %8s", "R^2", "bound");
	puts("  messages");
	for (i = 0; i < ptcp_overlay_links(o); i++)
		links_text_link(o, l, i);
}

/* ---- JSON ---- */

static json_t *number(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *link_json(const struct ptcp_overlay *o, const struct ptcp_links *l, size_t i)
{
	struct ptcp_overlay_link of;
	struct ptcp_link_estimate m;

	ptcp_overlay_link(o, i, &of);
	ptcp_links_get(l, i, &m);
	if (m.state != PTCP_LINK_MEASURED)
		return json_pack("{s:s, s:s, s:b, s:s}", "from", host_name(o, of.from), "to", host_name(o, of.to),
		    "measured", 0, "error", m.why != NULL ? m.why : "interrupted");
	return json_pack("{s:s, s:s, s:b, s:n, s:o, s:o, s:o, s:o, s:s, s:o, s:s?, s:i, s:o, s:i, s:o}", "from",
	    host_name(o, of.from), "to", host_name(o, of.to), "measured", 1, "error", "rate_bps", number(m.rate_bps),
	    "rate_error_bps", number(m.rate_error_bps), "delay_s", number(m.delay_s), "delay_error_s",
	    number(m.delay_error_s), "delay_from", m.delay_from_round_trip ? "round-trip" : "intercept", "r2_ratio",
	    number(m.r2_ratio), "regression", m.result, "messages", (int)m.messages, "messages_bound",
	    isfinite(m.messages_bound) ? json_count((uint64_t)m.messages_bound) : json_null(), "streams", (int)m.streams,
	    "age_s", json_seconds(m.age_s));
}

int links_json_link(const struct ptcp_overlay *o, const struct ptcp_links *l, size_t i, struct ptcp_err *e)
{
	json_t *object = link_json(o, l, i);

	if (object == NULL)
		return err_nomem(e);
	json_line(object);
	return 0;
}

int links_json(const struct ptcp_overlay *o, const struct ptcp_links *l, struct ptcp_err *e)
{
	json_t *list = json_array(), *object;
	int local = ptcp_links_here(l);
	size_t i;

	for (i = 0; i < ptcp_overlay_links(o); i++)
		json_array_append_new(list, link_json(o, l, i));
	object = json_pack("{s:s?, s:o}", "local_host", local >= 0 ? host_name(o, local) : NULL, "links",
	    json_whole(list, ptcp_overlay_links(o)));
	if (object == NULL)
		return err_nomem(e);
	json_line(object);
	return 0;
}
