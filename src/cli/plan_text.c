#include <math.h>

#include "cli/plan_output.h"
#include "core/units.h"

static void print_method(FILE *f, const struct plan_shown *s, int m)
{
	const struct ptcp_plan_info *i = &s->baseline[m];
	char b[UNITS_TEXT_BYTES];

	fprintf(f, "%-12s", ptcp_plan_method_name((enum ptcp_plan_method)m));
	if (isnan(i->makespan_s)) {
		fprintf(f, "%12s\n", "impossible");
		return;
	}
	fprintf(f, "%10.6g s  %-8s", i->makespan_s, units_time_text(b, i->makespan_s));
	if (m == PTCP_PLAN_COORDINATED && i->slot_s > 0)
		fprintf(f, "  slots of %.6g s", i->slot_s);
	if (m == PTCP_PLAN_PIPELINED)
		fprintf(f, "  the fluid bound of all methods");
	fprintf(f, "\n");
}

static void print_proof(FILE *f, const struct ptcp_plan_info *i)
{
	char b[UNITS_TEXT_BYTES];

	if (i->method <= PTCP_PLAN_BEST_PATH)
		return;
	if (i->bound_s >= i->makespan_s * (1 - 1e-6))
		fprintf(f, "No %s plan is shorter.\n", ptcp_plan_method_name(i->method));
	else
		fprintf(f, "A %s plan may be up to %.3g %% shorter (bound %.6g s).\n",
		    ptcp_plan_method_name(i->method), 100 * (1 - i->bound_s / i->makespan_s),
		    i->bound_s);
	if (i->relayed_bytes > i->relayed_bound_bytes + 1e-6 * i->data_bytes)
		fprintf(f, "It may be possible to relay %s less.\n", units_size_text(b,
		    (uint64_t)(i->relayed_bytes - i->relayed_bound_bytes)));
}

/* Wide as in the head of the table; "-" where they are not counted. */
static const char *streams_text(char b[UNITS_TEXT_BYTES], const struct plan_shown *s,
    const struct ptcp_plan_step *st)
{
	unsigned n = ptcp_plan_streams(s->plan, st->from, st->to);

	snprintf(b, UNITS_TEXT_BYTES, n > 0 ? "%u" : "-", n);
	return b;
}

static void print_steps(FILE *f, const struct plan_shown *s)
{
	struct ptcp_plan_step st;
	char size[UNITS_TEXT_BYTES], rate[UNITS_TEXT_BYTES], streams[UNITS_TEXT_BYTES], link[LINK_NAME_BYTES];
	size_t i, n = ptcp_plan_steps(s->plan);

	fprintf(f, "\n%12s %12s  %-24s %-12s %10s %12s %8s\n", "from s", "to s", "link", "source",
	    "size", "rate", "streams");
	for (i = 0; i < n; i++) {
		ptcp_plan_step(s->plan, i, &st);
		fprintf(f, "%12.6g %12.6g  %-24s %-12s %10s %12s %8s\n", st.start_s, st.end_s,
		    link_name(link, s->overlay, st.from, st.to), host_name(s->overlay, st.source),
		    units_size_text(size, st.bytes), units_rate_text(rate, (double)st.bytes * 8 / (st.end_s - st.start_s)),
		    streams_text(streams, s, &st));
	}
}

void plan_text(FILE *f, const struct plan_shown *s)
{
	struct ptcp_plan_info info;
	char b[UNITS_TEXT_BYTES], c[UNITS_TEXT_BYTES], d[UNITS_TEXT_BYTES];
	size_t i, n = ptcp_overlay_hosts(s->overlay);
	int m;

	ptcp_plan_info(s->plan, &info);
	fprintf(f, "%s: %.6g s (%s) for %s, %s relayed\n", ptcp_plan_method_name(info.method),
	    info.makespan_s, units_time_text(b, info.makespan_s),
	    units_size_text(c, (uint64_t)info.data_bytes),
	    units_size_text(d, (uint64_t)info.relayed_bytes));
	print_proof(f, &info);
	fprintf(f, "\n");
	for (m = 0; m < PLAN_METHODS; m++)
		print_method(f, s, m);
	print_steps(f, s);
	fprintf(f, "\n");
	for (i = 0; i < n; i++) {
		double held = ptcp_plan_storage_bytes(s->plan, (int)i);

		if (held >= 1)
			fprintf(f, "%s holds up to %s for others\n",
			    host_name(s->overlay, (int)i), units_size_text(b, (uint64_t)held));
	}
}
