#include <jansson.h>
#include <math.h>

#include "cli/plan_show.h"
#include "core/err.h"

/* Field names of the baselines, by method. */
static const char *const fields[PLAN_METHODS] = {
	[PTCP_PLAN_DIRECT] = "direct_s",
	[PTCP_PLAN_BEST_PATH] = "best_path_s",
	[PTCP_PLAN_COORDINATED] = "coordinated_s",
	[PTCP_PLAN_PIPELINED] = "pipelined_s",
};

static json_t *name(const struct ptcp_overlay *o, int host)
{
	struct ptcp_overlay_host h;

	ptcp_overlay_host(o, (size_t)host, &h);
	return json_string(h.name);
}

static json_t *baselines(const struct plan_shown *s)
{
	json_t *o = json_object();
	int m;

	for (m = 0; m < PLAN_METHODS; m++)
		json_object_set_new(o, fields[m], isnan(s->baseline[m].makespan_s) ? json_null() :
		    json_real(s->baseline[m].makespan_s));
	return o;
}

static json_t *schedule(const struct plan_shown *s)
{
	json_t *list = json_array(), *o;
	struct ptcp_plan_step st;
	size_t i;

	for (i = 0; i < ptcp_plan_steps(s->plan); i++) {
		ptcp_plan_step(s->plan, i, &st);
		o = json_object();
		json_object_set_new(o, "from", name(s->overlay, st.from));
		json_object_set_new(o, "to", name(s->overlay, st.to));
		json_object_set_new(o, "source", name(s->overlay, st.source));
		json_object_set_new(o, "start_s", json_real(st.start_s));
		json_object_set_new(o, "end_s", json_real(st.end_s));
		json_object_set_new(o, "bytes", json_integer((json_int_t)st.bytes));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *storage(const struct plan_shown *s)
{
	json_t *o = json_object();
	struct ptcp_overlay_host h;
	size_t i;

	for (i = 0; i < ptcp_overlay_hosts(s->overlay); i++) {
		ptcp_overlay_host(s->overlay, i, &h);
		if (h.relay && (int)i != ptcp_overlay_destination(s->overlay))
			json_object_set_new(o, h.name, json_integer((json_int_t)
			    floor(ptcp_plan_storage_bytes(s->plan, (int)i) + 0.5)));
	}
	return o;
}

int plan_json(FILE *f, const struct plan_shown *s, struct ptcp_err *e)
{
	struct ptcp_plan_info info;
	json_t *o = json_object();
	int r;

	ptcp_plan_info(s->plan, &info);
	json_object_set_new(o, "method", json_string(ptcp_plan_method_name(info.method)));
	json_object_set_new(o, "makespan_s", json_real(info.makespan_s));
	json_object_set_new(o, "bound_s", json_real(info.bound_s));
	json_object_set_new(o, "slot_s", json_real(s->baseline[PTCP_PLAN_COORDINATED].slot_s));
	json_object_set_new(o, "baselines", baselines(s));
	json_object_set_new(o, "solve_s", json_real(info.solve_s));
	json_object_set_new(o, "relayed_bytes", json_integer((json_int_t)info.relayed_bytes));
	json_object_set_new(o, "schedule", schedule(s));
	json_object_set_new(o, "storage_bytes", storage(s));
	r = json_dumpf(o, f, JSON_COMPACT | JSON_REAL_PRECISION(12));
	json_decref(o);
	if (r < 0)
		return err_set(e, PTCP_ENOMEM, "--json: out of memory or output closed");
	putc('\n', f);
	return 0;
}
