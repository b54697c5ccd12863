/* Output of ptcp links. */
#include "cli/show/links_output.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/overlay_names.h"
#include "cli/show/terminal.h"
#include "core/units.h"

size_t links_shared(struct ptcp_shared_bottleneck **out, const struct ptcp_links *l)
{
	size_t n = ptcp_links_shared(l, NULL, 0);

	*out = n > 0 ? calloc(n, sizeof **out) : NULL;
	return *out != NULL ? ptcp_links_shared(l, *out, n) : 0;
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
	printf("  %u over %u stream%s: %s%s\n", m->messages, m->streams, plural(m->streams),
	    m->result != NULL ? m->result : units_time_text(age, m->age_s), m->result != NULL ? "" : " ago");
}

void links_print_one(const struct ptcp_overlay *o, const struct ptcp_links *l, size_t i)
{
	char name[LINK_NAME_BYTES];
	struct ptcp_link_estimate m;

	ptcp_links_get(l, i, &m);
	printf("%-16s ", link_name_of(name, o, i));
	if (m.state == PTCP_LINK_MEASURED)
		print_measured(&m);
	else
		printf("not measured: %s\n", m.state == PTCP_LINK_ELSEWHERE ? m.why : "failed");
	fflush(stdout);
}

static void print_shared(const struct ptcp_overlay *o, const struct ptcp_links *l)
{
	struct ptcp_shared_bottleneck *found;
	char name[LINK_NAME_BYTES], rate[UNITS_TEXT_BYTES];
	size_t i, k, n = links_shared(&found, l);

	for (i = 0; i < n; i++) {
		printf("shared: %s over", units_rate_text(rate, found[i].rate_bps));
		for (k = 0; k < found[i].n; k++)
			printf("%s %s", k > 0 ? "," : "", link_name_of(name, o, found[i].links[k]));
		puts("");
	}
	free(found);
}

void links_print(const struct ptcp_overlay *o, const struct ptcp_links *l, bool queried)
{
	size_t i;

	printf("%-16s %25s %30s", "link", "rate", "delay, one way");
	if (!queried)
		printf(" %6s %8s", "R^2", "bound");
	puts("  messages");
	for (i = 0; i < ptcp_overlay_links(o); i++)
		links_print_one(o, l, i);
	print_shared(o, l);
}

/* ---- JSON: fields and units are described in ptcp-links(1) ---- */

static json_t *number(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

json_t *links_one_json(const struct ptcp_overlay *o, const struct ptcp_links *l, size_t i)
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
	    isfinite(m.messages_bound) ? json_count((uint64_t)m.messages_bound) : json_null(),
	    "streams", (int)m.streams, "age_s", json_seconds(m.age_s));
}

static json_t *shared_json(const struct ptcp_overlay *o, const struct ptcp_links *l)
{
	struct ptcp_shared_bottleneck *found;
	char name[LINK_NAME_BYTES];
	json_t *list = json_array(), *links;
	size_t i, k, n = links_shared(&found, l);

	for (i = 0; i < n; i++) {
		links = json_array();
		for (k = 0; k < found[i].n; k++)
			json_array_append_new(links, json_string(link_name_of(name, o, found[i].links[k])));
		json_array_append_new(list, json_pack("{s:f, s:o}", "rate_bps", found[i].rate_bps, "links", links));
	}
	free(found);
	return list;
}

json_t *links_all_json(const struct ptcp_overlay *o, const struct ptcp_links *l)
{
	json_t *list = json_array();
	int local = ptcp_links_local_host(l);
	size_t i;

	for (i = 0; i < ptcp_overlay_links(o); i++)
		json_array_append_new(list, links_one_json(o, l, i));
	return json_pack("{s:s?, s:o, s:o}", "local_host", local >= 0 ? host_name(o, local) : NULL, "links",
	    json_whole(list, ptcp_overlay_links(o)), "shared", shared_json(o, l));
}

/* ---- Failures ---- */

/* The next link from `i` on that has failed, for this reason unless `why` is NULL; or the number of links. */
static size_t next_failed(const struct ptcp_overlay *o, const struct ptcp_links *l, size_t i, const char *why)
{
	struct ptcp_link_estimate m;

	for (; i < ptcp_overlay_links(o); i++) {
		ptcp_links_get(l, i, &m);
		if (m.state == PTCP_LINK_FAILED && (why == NULL || strcmp(m.why, why) == 0))
			break;
	}
	return i;
}

/* One line for all links that failed for the same reason, such as a host that is down. */
static void warn_links(const struct ptcp_overlay *o, const struct ptcp_links *l, size_t first, const char *why)
{
	char names[10 * LINK_NAME_BYTES], name[LINK_NAME_BYTES];
	size_t i, n = 0, used = 0;

	for (i = first; (i = next_failed(o, l, i, why)) < ptcp_overlay_links(o); i++)
		if (used + sizeof name + sizeof ", " < sizeof names)
			used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used > 0 ? ", " : "",
			    link_name_of(name, o, i));
		else
			n++;
	if (n > 0)
		terminal_line("ptcp: warning: %s and %zu more: %s", names, n, why);
	else
		terminal_line("ptcp: warning: %s: %s", names, why);
}

void links_warn_failed(const struct ptcp_overlay *o, const struct ptcp_links *l, bool first_told)
{
	size_t i, n = ptcp_overlay_links(o), first = next_failed(o, l, 0, NULL);
	struct ptcp_link_estimate m;

	for (i = first; i < n; i = next_failed(o, l, i + 1, NULL)) {
		ptcp_links_get(l, i, &m);
		if (next_failed(o, l, 0, m.why) == i && !(first_told && i == first))
			warn_links(o, l, i, m.why);
	}
}
