#include <math.h>

#include "cli/json.h"
#include "cli/plan_output.h"
#include "core/err.h"

/* Field names of the baselines, by method. */
static const char *const fields[PLAN_METHODS] = {
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
		json_object_set_new(o, fields[m], isnan(s->baseline[m].makespan_s) ? json_null() :
		    json_real(s->baseline[m].makespan_s));
	return o;
}

/* null where they are not counted. */
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
	json_t *o;

	ptcp_plan_info(s->plan, &info);
	o = json_pack("{s:s, s:f, s:f, s:f, s:o, s:f, s:o, s:o, s:o}", "method",
	    ptcp_plan_method_name(info.method), "makespan_s", info.makespan_s, "bound_s",
	    info.bound_s, "slot_s", s->baseline[PTCP_PLAN_COORDINATED].slot_s, "baselines",
	    baselines(s), "solve_s", info.solve_s, "relayed_bytes", bytes(info.relayed_bytes),
	    "schedule", plan_json_schedule(s->overlay, s->plan), "storage_bytes", storage(s));
	if (o == NULL)
		return err_nomem(e);
	json_line(o);
	return 0;
}
