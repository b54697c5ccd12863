#include "cli/measure_output.h"
#include "core/units.h"

void measure_text_round(FILE *f, const struct ptcp_round *r)
{
	char rate[UNITS_TEXT_BYTES], slow[UNITS_TEXT_BYTES], fast[UNITS_TEXT_BYTES];
	double least, most;
	unsigned i;

	if (r->why != NULL) {
		fprintf(f, "round %u with %u: failed: %s\n", r->number, r->streams, r->why);
		fflush(f);
		return;
	}
	least = most = r->per_stream_bps[0];
	for (i = 1; i < r->streams; i++) {
		least = r->per_stream_bps[i] < least ? r->per_stream_bps[i] : least;
		most = r->per_stream_bps[i] > most ? r->per_stream_bps[i] : most;
	}
	fprintf(f, "round %u with %u: %s, a stream %s to %s, %llu retransmitted\n", r->number,
	    r->streams, units_rate_text(rate, r->throughput_bps), units_rate_text(slow, least),
	    units_rate_text(fast, most), (unsigned long long)r->retransmits);
	fflush(f);
}

static void print_level(FILE *f, const struct ptcp_level *l)
{
	char mean[UNITS_TEXT_BYTES], least[UNITS_TEXT_BYTES], most[UNITS_TEXT_BYTES];
	char sd[UNITS_TEXT_BYTES], each[UNITS_TEXT_BYTES];

	fprintf(f, "%7u %6u %6u", l->streams, l->rounds, l->failed);
	if (l->rounds == l->failed) {
		fprintf(f, " %12s\n", "-");
		return;
	}
	fprintf(f, " %12s %12s %12s %12s %12s %8.3f %6d\n", units_rate_text(mean, l->mean_bps),
	    units_rate_text(least, l->min_bps), units_rate_text(most, l->max_bps),
	    units_rate_text(sd, l->stddev_bps), units_rate_text(each, l->per_stream_mean_bps),
	    l->fairness, l->clusters);
}

void measure_text_summary(FILE *f, const struct measure_summary *s)
{
	size_t i;

	fprintf(f, "%7s %6s %6s %12s %12s %12s %12s %12s %8s %6s\n", "streams", "rounds", "failed",
	    "mean", "least", "most", "deviation", "a stream", "fairness", "groups");
	for (i = 0; i < s->levels; i++)
		print_level(f, &s->level[i]);
	if (s->saturates_at > 0)
		fprintf(f, "Saturates at %u stream%s: more bring less than 5 %%.\n", s->saturates_at,
		    s->saturates_at == 1 ? "" : "s");
	else
		fprintf(f, "Still rising at the most streams measured.\n");
}

void measure_csv_head(FILE *f)
{
	fprintf(f, "round,streams,ok,throughput_bps,retransmits,stream,stream_bps\n");
}

void measure_csv_round(FILE *f, const struct ptcp_round *r)
{
	unsigned i;

	if (r->why != NULL)
		fprintf(f, "%u,%u,0,,,,\n", r->number, r->streams);
	for (i = 0; r->why == NULL && i < r->streams; i++)
		fprintf(f, "%u,%u,1,%.0f,%llu,%u,%.0f\n", r->number, r->streams, r->throughput_bps,
		    (unsigned long long)r->retransmits, i, r->per_stream_bps[i]);
	fflush(f);
}
