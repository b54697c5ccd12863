#include "bench/collect/study.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* What flows meet: peering points, each source's way out and in, the destination's way in. */
enum { OUT = POINTS, IN = OUT + SOURCES, DEST = IN + SOURCES, LIMITS };

enum point study_point(int source)
{
	return source < NORTH_SOURCES ? NORTH : SOUTH;
}

/* What so many streams together get beside the others. */
static double share_bps(const struct study *s, enum point p, double streams)
{
	return 8 * (1 - s->udp_ratio) * PEERING_BPS * streams / (streams + s->others[p]);
}

void study_draw(struct study *s, double total, double north, double south, enum error error,
    double ratio, struct rng *r)
{
	double sum = 0;
	int i;

	*s = (struct study){ .others = { total * north / (north + south), total * south / (north + south) } };
	/* Of sizes drawn evenly those are kept that come to 350 MB; what is missing is spread. */
	do {
		for (sum = 0, i = 0; i < SOURCES; i++)
			sum += s->data[i] = 25e6 + 50e6 * rng_uniform(r);
	} while (fabs(sum - ALL_BYTES) > 0.01 * ALL_BYTES);
	for (i = 0; i < SOURCES; i++)
		s->data[i] = floor(s->data[i] * ALL_BYTES / sum);
	for (i = 0; i < SOURCES + POINTS; i++) {
		bool up = error == ERROR_OVER || (error == ERROR_MIXED && rng_below(r, 2) == 1);
		double factor = error == ERROR_NONE ? 1 : up ? 1 + ratio : 1 - ratio;

		if (i < SOURCES)
			s->link_factor[i] = factor;
		else
			s->point_factor[i - SOURCES] = factor;
	}
	s->seed = rng_next(r);
}

static void print_group(FILE *f, const struct study *s, enum point p)
{
	int i, n = 0;

	fprintf(f, "  - {rate: %.0fbit/s, links: [", share_bps(s, p, POINT_STREAMS) * s->point_factor[p]);
	for (i = 0; i < SOURCES; i++)
		if (study_point(i) == p)
			fprintf(f, "%sS%d>D", n++ > 0 ? ", " : "", i + 1);
	fprintf(f, "]}\n");
}

char *study_overlay(const struct study *s)
{
	char *text;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	int i, j;

	fprintf(f, "destination: D\nslot: %gs\nhosts:\n  D: {}\n", SLOT_S);
	for (i = 0; i < SOURCES; i++)
		fprintf(f, "  S%d: {data: %.0f, relay: true}\n", i + 1, s->data[i]);
	fprintf(f, "links:\n");
	for (i = 0; i < SOURCES; i++) {
		fprintf(f, "  - {from: S%d, to: D, rate: %.0fbit/s}\n", i + 1,
		    share_bps(s, study_point(i), LINK_STREAMS) * s->link_factor[i]);
		for (j = 0; j < SOURCES; j++)
			if (j != i)
				fprintf(f, "  - {from: S%d, to: S%d, rate: %.0fbit/s}\n", i + 1, j + 1,
				    8 * ACCESS_BPS);
	}
	if (!s->blind) {
		fprintf(f, "shared:\n");
		print_group(f, s, NORTH);
		print_group(f, s, SOUTH);
	}
	fclose(f);
	return text;
}

/* ---- Fair shares */

#define LIMITS_MAX 5 /* that a flow meets */
#define ALL_MAX (STUDY_FLOWS_MAX + POINTS)

static int limits_of(const struct study_flow *f, int limit[LIMITS_MAX])
{
	int last = f->relay >= 0 ? f->relay : f->source, n = 0;

	limit[n++] = OUT + f->source;
	if (f->relay >= 0) {
		limit[n++] = IN + f->relay;
		limit[n++] = OUT + f->relay;
	}
	limit[n++] = (int)study_point(last);
	limit[n++] = DEST;
	return n;
}

struct filling {
	double room[LIMITS], users[LIMITS];
};

static double share_of(const struct filling *s, const int *limit, int n)
{
	double least = INFINITY;
	int i;

	for (i = 0; i < n; i++)
		least = fmin(least, s->room[limit[i]] / s->users[limit[i]]);
	return least;
}

static void freeze(struct filling *s, const int *limit, int n, double rate, double flows)
{
	int i;

	for (i = 0; i < n; i++) {
		s->room[limit[i]] = fmax(0, s->room[limit[i]] - rate * flows);
		s->users[limit[i]] -= flows;
	}
}

/* Progressive filling: those with the least share or cap are frozen at it, the rest divide what is
 * left; the others of a point are one flow that counts as many. */
void study_share(const struct study *s, struct study_flow *f, int n, const bool on[POINTS],
    double other_rate[POINTS])
{
	struct filling fill;
	int limit[ALL_MAX][LIMITS_MAX], nlimits[ALL_MAX], i, k, open = 0;
	double want[ALL_MAX], flows[ALL_MAX], least;
	bool frozen[ALL_MAX];

	for (i = 0; i < LIMITS; i++) {
		fill.room[i] = i >= POINTS ? ACCESS_BPS :
		    PEERING_BPS * (on[i] ? 1 - 2 * s->udp_ratio : 1);
		fill.users[i] = 0;
	}
	for (i = 0; i < n + POINTS; i++) {
		limit[i][0] = i - n;
		nlimits[i] = i < n ? limits_of(&f[i], limit[i]) : 1;
		flows[i] = i < n ? 1 : s->others[i - n];
		frozen[i] = !(flows[i] > 0);
		for (k = 0; k < nlimits[i]; k++)
			fill.users[limit[i][k]] += flows[i];
		open += !frozen[i];
	}
	other_rate[NORTH] = other_rate[SOUTH] = 0;
	while (open > 0) {
		for (least = INFINITY, i = 0; i < n + POINTS; i++)
			if (!frozen[i])
				least = fmin(least, want[i] = fmin(i < n ? f[i].cap : INFINITY,
				    share_of(&fill, limit[i], nlimits[i])));
		for (i = 0; i < n + POINTS; i++) {
			if (frozen[i] || want[i] > least * (1 + 1e-12))
				continue;
			frozen[i] = true;
			open--;
			freeze(&fill, limit[i], nlimits[i], least, flows[i]);
			if (i < n)
				f[i].rate = least;
			else
				other_rate[i - n] = least;
		}
	}
}
