#include "bench/advice/cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS 18
#define LINE_BYTES 8192
#define PATHS_MAX 256

enum { SCENARIO, QUEUE, CC, CROSS_CC, M, STREAMS, RUN, OURS, CROSS, MARK = 15, SERIES, HELD };

/* Splits at commas, in place; the number of fields. */
static size_t split(char *line, char *field[COLUMNS])
{
	size_t n = 0;

	line[strcspn(line, "\n")] = '\0';
	while (n < COLUMNS) {
		field[n++] = line;
		if ((line = strchr(line, ',')) == NULL)
			break;
		*line++ = '\0';
	}
	return n;
}

static struct path_case *path_of(struct path_case *all, size_t *count, char *field[COLUMNS])
{
	struct path_case *c;
	char name[sizeof c->name];
	size_t i;

	snprintf(name, sizeof name, "%s,%s,%s,%s,%s", field[SCENARIO], field[QUEUE], field[CC],
	    field[CROSS_CC], field[M]);
	for (i = 0; i < *count; i++)
		if (strcmp(all[i].name, name) == 0)
			return &all[i];
	if (*count == PATHS_MAX)
		return NULL;
	c = &all[(*count)++];
	memset(c, 0, sizeof *c);
	strcpy(c->name, name);
	snprintf(c->cc, sizeof c->cc, "%s", field[CC]);
	snprintf(c->cross_cc, sizeof c->cross_cc, "%s", field[CROSS_CC]);
	c->scenario = (unsigned)atoi(field[SCENARIO]);
	c->m = (unsigned)atoi(field[M]);
	return c;
}

static int add_truth(struct path_case *c, unsigned streams, double ours, double cross, bool disturbed)
{
	struct case_truth *t, was;
	size_t i = 0;

	while (i < c->truths && c->truth[i].streams < streams)
		i++;
	t = &c->truth[i];
	if (i == c->truths || t->streams != streams) {
		if (c->truths == CASE_LEVELS_MAX)
			return -1;
		memmove(t + 1, t, (c->truths++ - i) * sizeof *t);
		*t = (struct case_truth){ streams, 1, disturbed, ours, cross };
		return 0;
	}
	if (t->disturbed != disturbed) {
		if (t->disturbed)
			*t = (struct case_truth){ streams, 1, false, ours, cross };
		return 0;
	}
	was = *t;
	t->runs++;
	t->ours_mbps = (was.ours_mbps * was.runs + ours) / t->runs;
	t->cross_mbps = (was.cross_mbps * was.runs + cross) / t->runs;
	return 0;
}

/* Rates separated by spaces, group after group of streams, which overlap; " + " between groups. */
static void add_series(struct case_sight *s, char *text)
{
	bool first = true;
	char *end;
	size_t i = 0;

	for (; *text != '\0' && i < CASE_SERIES_MAX; text = end) {
		double rate = strtod(text, &end);

		if (end == text) {
			i = 0;
			first = false;
			end = text + strcspn(text, "+") + 1;
			continue;
		}
		if (first)
			s->older_mbps[i] = rate;
		s->rate_mbps[i++] += rate;
		if (i > s->n)
			s->n = i;
	}
}

/* Four times of each level, separated by " > "; empty: none were recorded. */
static void add_times(struct case_sight *s, const char *text)
{
	struct limit_times *t = s->times;
	int used;

	for (; t < s->times + s->levels && sscanf(text, "%lf %lf %lf %lf%n", &t->elapsed_s, &t->busy_s,
	    &t->window_s, &t->buffer_s, &used) == 4; t++)
		text += used + strspn(text + used, " >");
}

static int add_sight(struct path_case *c, const char *streams, char *series, const char *held)
{
	struct case_sight *s = &c->sight[c->sights];
	size_t i;
	char *end;

	if (c->sights == CASE_SIGHTS_MAX)
		return -1;
	memset(s, 0, sizeof *s);
	for (; s->levels < CASE_PROBES_MAX; streams = end + 1) {
		s->level[s->levels++] = (unsigned)strtoul(streams, &end, 10);
		s->joins |= *end == '+';
		if (*end == '\0')
			break;
	}
	for (i = 1; s->joins && i < s->levels; i++)
		s->level[i] += s->level[i - 1];
	add_series(s, series);
	add_times(s, held);
	c->sights++;
	return 0;
}

static int add(struct path_case *c, char *field[COLUMNS])
{
	const char *streams = field[STREAMS];
	bool disturbed = *field[MARK] != '\0';

	if (strpbrk(streams, ">+") != NULL)
		return disturbed ? 0 : add_sight(c, streams, field[SERIES], field[HELD]);
	if (strcmp(streams, "0") != 0)
		return add_truth(c, (unsigned)atoi(streams), atof(field[OURS]), atof(field[CROSS]), disturbed);
	c->alone_mbps = atof(field[CROSS]);
	return 0;
}

int cases_read(const char *file, struct path_case **out, size_t *count)
{
	static char line[LINE_BYTES];
	char *field[COLUMNS];
	struct path_case *c;
	unsigned at = 1;
	FILE *f = fopen(file, "r");

	*count = 0;
	if (f == NULL || (*out = calloc(PATHS_MAX, sizeof **out)) == NULL ||
	    fgets(line, sizeof line, f) == NULL) { /* the head */
		perror(file);
		return -1;
	}
	while (fgets(line, sizeof line, f) != NULL) {
		at++;
		if (split(line, field) != COLUMNS || (c = path_of(*out, count, field)) == NULL ||
		    add(c, field) < 0) {
			fprintf(stderr, "%s:%u: not a row of %d columns, or more rows than there is room for\n",
			    file, at, COLUMNS);
			fclose(f);
			return -1;
		}
	}
	fclose(f);
	return 0;
}

bool case_is_whole(const struct path_case *c)
{
	return c->truths > 2 && c->truth[0].streams == 1 &&
	    c->truth[c->truths - 1].streams == CASE_STREAMS_MOST;
}

void case_truth_at(const struct path_case *c, double streams, double *ours_mbps, double *cross_mbps)
{
	const struct case_truth *b = c->truth, *a;
	size_t i = 0;
	double share;

	while (i + 1 < c->truths && c->truth[i].streams < streams)
		i++;
	b += i;
	a = i > 0 ? b - 1 : b;
	share = a == b || streams >= b->streams ? 1 : (streams - a->streams) / (b->streams - a->streams);
	*ours_mbps = a->ours_mbps + share * (b->ours_mbps - a->ours_mbps);
	*cross_mbps = a->cross_mbps + share * (b->cross_mbps - a->cross_mbps);
}

double case_impact(const struct path_case *c, double streams)
{
	double ours, cross, one;

	case_truth_at(c, 1, &ours, &one);
	case_truth_at(c, streams, &ours, &cross);
	return c->m > 0 ? 1 - cross / one : 0;
}

double case_best_mbps(const struct path_case *c, double budget_ratio)
{
	double brought, unused, best = 0;
	unsigned n;

	for (n = 1; n <= CASE_STREAMS_MOST; n++) {
		case_truth_at(c, n, &brought, &unused);
		if (case_impact(c, n) <= budget_ratio && brought > best)
			best = brought;
	}
	return best;
}
