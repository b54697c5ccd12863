#include "cli/json.h"
#include "cli/measure_output.h"

int measure_json_round(const struct ptcp_round *r)
{
	json_t *each;
	unsigned i;

	if (r->why != NULL)
		return json_line(json_pack("{s:s, s:o, s:b, s:n, s:[], s:n, s:s}", "event", "round",
		    "streams", json_count(r->streams), "ok", 0, "throughput_bps", "per_stream_bps",
		    "retransmits", "error", r->why));
	each = json_array();
	for (i = 0; i < r->streams; i++)
		json_array_append_new(each, json_real(r->per_stream_bps[i]));
	return json_line(json_pack("{s:s, s:o, s:b, s:f, s:o, s:o}", "event", "round", "streams",
	    json_count(r->streams), "ok", 1, "throughput_bps", r->throughput_bps, "per_stream_bps",
	    json_whole(each, r->streams), "retransmits", json_count(r->retransmits)));
}

/* Where all rounds have failed there is no rate. */
static json_t *rate(const struct ptcp_level *l, double value)
{
	return l->rounds > l->failed ? json_real(value) : json_null();
}

static json_t *level(const struct ptcp_level *l)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i}", "streams",
	    json_count(l->streams), "rounds", json_count(l->rounds), "failed", json_count(l->failed),
	    "mean_bps", rate(l, l->mean_bps), "min_bps", rate(l, l->min_bps), "max_bps",
	    rate(l, l->max_bps), "stddev_bps", rate(l, l->stddev_bps), "per_stream_mean_bps",
	    rate(l, l->per_stream_mean_bps), "fairness", rate(l, l->fairness), "clusters", l->clusters);
}

int measure_json_summary(const struct measure_summary *s)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < s->levels; i++)
		json_array_append_new(list, level(&s->level[i]));
	return json_line(json_pack("{s:s, s:o, s:o}", "event", "summary", "levels",
	    json_whole(list, s->levels), "saturates_at",
	    s->saturates_at > 0 ? json_count(s->saturates_at) : json_null()));
}
