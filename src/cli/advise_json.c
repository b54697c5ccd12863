#include <string.h>

#include "cli/advise_output.h"
#include "cli/json.h"
#include "core/err.h"

/* All that speaks against the answer in one text; null for nothing. */
static json_t *warning(const struct ptcp_advice *a)
{
	char all[2048] = "";
	const char *one;
	size_t i, n = 0;

	if (a->limit_advice != NULL)
		n = (size_t)snprintf(all, sizeof all, "%s%s", a->limit_advice,
		    a->warnings != 0 ? "; " : "");
	for (i = 0; (one = ptcp_advice_warning(a, i)) != NULL && n < sizeof all; i++)
		n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", i > 0 ? "; " : "", one);
	return n > 0 ? json_string(all) : json_null();
}

static json_t *probes(const struct ptcp_advice *a)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < a->n_probes; i++)
		json_array_append_new(list, json_pack("{s:o, s:f}", "streams",
		    json_count(a->probes[i].streams), "throughput_bps", a->probes[i].throughput_bps));
	return json_whole(list, a->n_probes);
}

static json_t *model(const struct ptcp_advice *a)
{
	json_t *o = json_pack("{s:s, s:f, s:f, s:f, s:f}", "name", ptcp_model_name(a->model), "a",
	    a->used[0], "b", a->used[1], "raw_a", a->raw[0], "raw_b", a->raw[1]);

	if (a->model == PTCP_MODEL_QUADRATIC) {
		json_object_set_new(o, "c", json_real(a->used[2]));
		json_object_set_new(o, "raw_c", json_real(a->raw[2]));
	}
	return o;
}

static json_t *curve(const struct ptcp_advice *a)
{
	json_t *list = json_array();
	struct ptcp_advice_point p;
	unsigned n;

	for (n = 1; n <= a->max_streams; n++) {
		ptcp_advice_at(a, n, &p);
		json_array_append_new(list, json_pack("{s:o, s:f, s:f}", "streams", json_count(n),
		    "throughput_bps", p.throughput_bps, "impact_percent", p.impact_percent));
	}
	return json_whole(list, a->max_streams);
}

int advise_json(const struct ptcp_advice *a, struct ptcp_err *e)
{
	json_t *o;

	o = json_pack("{s:o, s:f, s:f, s:f, s:s, s:s, s:o, s:f, s:s?, s:s?, s:s, s:b, s:o, s:o, s:o}",
	    "streams", json_count(a->streams), "throughput_bps", a->throughput_bps,
	    "impact_percent", a->impact_percent, "budget_percent", a->budget_percent,
	    "limited_by", ptcp_limited_by_name(a->limited_by),
	    "confidence", a->confident ? "high" : "low", "warning", warning(a),
	    "impact_total_percent", a->impact_total_percent,
	    "congestion", a->congestion[0] != '\0' ? a->congestion : NULL,
	    "congestion_advice", a->congestion_advice, "limit", ptcp_limit_name(a->limit), "from_history",
	    a->from_history,
	    "probes", probes(a), "model", model(a), "curve", curve(a));
	if (o == NULL)
		return err_nomem(e);
	json_line(o);
	return 0;
}
