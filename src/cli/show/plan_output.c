#include "cli/show/plan_output.h"

#include <math.h>
#include <stdlib.h>

#include "cli/show/json.h"
#include "core/units.h"

/* ---- Text ---- */

static void print_method(FILE *f, const struct plan_shown *s, int m)
{
	const struct ptcp_plan_info *i = &s->baseline[m];
	char b[UNITS_TEXT_BYTES];

	fprintf(f, "%-12s", ptcp_plan_method_name((enum ptcp_plan_method)m));
	if (isnan(i->makespan_s)) {
		fprintf(f, "%12s\n", "impossible");
		return;
	}
	if (isinf(i->makespan_s)) {
		fprintf(f, "%12s\n", "not planned");
		return;
	}
	fprintf(f, "%10.6g s  %-8s", i->makespan_s, units_time_text(b, i->makespan_s));
	if (m == PTCP_PLAN_COORDINATED && i->slot_s > 0)
		fprintf(f, "  slots of %.6g s", i->slot_s);
	if (m == PTCP_PLAN_PIPELINED)
		fprintf(f, "  fluid bound of all methods");
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
		    ptcp_plan_method_name(i->method), 100 * (1 - i->bound_s / i->makespan_s), i->bound_s);
	if (i->relayed_bytes > i->relayed_bound_bytes + 1e-6 * i->data_bytes)
		fprintf(f, "Relayed data may be reducible by %s.\n", units_size_text(b,
		    (uint64_t)(i->relayed_bytes - i->relayed_bound_bytes)));
}

/* "-" for a link without a stream count. */
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
		    units_size_text(size, st.bytes), units_rate_text(rate,
		    (double)st.bytes * 8 / (st.end_s - st.start_s)), streams_text(streams, s, &st));
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
	    info.makespan_s, units_time_text(b, info.makespan_s), units_size_text(c, (uint64_t)info.data_bytes),
	    units_size_text(d, (uint64_t)info.relayed_bytes));
	print_proof(f, &info);
	fprintf(f, "\n");
	for (m = 0; m < PLAN_METHODS; m++)
		print_method(f, s, m);
	print_steps(f, s);
	fprintf(f, "\n");
	for (i = 0; i < n; i++) {
		double stored = ptcp_plan_storage_bytes(s->plan, (int)i);

		if (stored >= 1)
			fprintf(f, "%s stores up to %s in transit\n",
			    host_name(s->overlay, (int)i), units_size_text(b, (uint64_t)stored));
	}
}

/* ---- JSON: fields and units are described in ptcp-plan(1) ---- */

static const char *const baseline_names[PLAN_METHODS] = {
	[PTCP_PLAN_DIRECT] = "direct_s",
	[PTCP_PLAN_BEST_PATH] = "best_path_s",
	[PTCP_PLAN_COORDINATED] = "coordinated_s",
	[PTCP_PLAN_PIPELINED] = "pipelined_s",
};

static json_t *baselines(const struct plan_shown *s)
{
	json_t *o = json_object();
	int m;

	for (m = 0; m < PLAN_METHODS; m++)
		json_object_set_new(o, baseline_names[m], !isfinite(s->baseline[m].makespan_s) ? json_null() :
		    json_real(s->baseline[m].makespan_s));
	return o;
}

/* Null for a link without a stream count. */
static json_t *streams(const struct ptcp_plan *p, const struct ptcp_plan_step *st)
{
	unsigned n = ptcp_plan_streams(p, st->from, st->to);

	return n > 0 ? json_integer(n) : json_null();
}

json_t *plan_json_schedule(const struct ptcp_overlay *o, const struct ptcp_plan *p)
{
	json_t *list = json_array();
	struct ptcp_plan_step st;
	size_t i;

	for (i = 0; i < ptcp_plan_steps(p); i++) {
		ptcp_plan_step(p, i, &st);
		json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:f, s:f, s:o, s:o}", "from",
		    host_name(o, st.from), "to", host_name(o, st.to), "source", host_name(o, st.source), "start_s",
		    st.start_s, "end_s", st.end_s, "bytes", json_count(st.bytes), "streams", streams(p, &st)));
	}
	return json_whole(list, ptcp_plan_steps(p));
}

static json_t *bytes(double n)
{
	return json_integer((json_int_t)floor(n + 0.5));
}

static json_t *storage(const struct plan_shown *s)
{
	json_t *o = json_object();
	struct ptcp_overlay_host h;
	size_t i;

	for (i = 0; i < ptcp_overlay_hosts(s->overlay); i++) {
		ptcp_overlay_host(s->overlay, i, &h);
		if (h.relay && (int)i != ptcp_overlay_destination(s->overlay))
			json_object_set_new(o, h.name, bytes(ptcp_plan_storage_bytes(s->plan, (int)i)));
	}
	return o;
}

int plan_json(const struct plan_shown *s, struct ptcp_err *e)
{
	struct ptcp_plan_info info;

	ptcp_plan_info(s->plan, &info);
	return json_result(json_pack("{s:s, s:f, s:f, s:f, s:o, s:f, s:o, s:o, s:o}", "method",
	    ptcp_plan_method_name(info.method), "makespan_s", info.makespan_s, "bound_s",
	    info.bound_s, "slot_s", s->baseline[PTCP_PLAN_COORDINATED].slot_s, "baselines",
	    baselines(s), "solve_s", info.solve_s, "relayed_bytes", bytes(info.relayed_bytes),
	    "schedule", plan_json_schedule(s->overlay, s->plan), "storage_bytes", storage(s)), e);
}
