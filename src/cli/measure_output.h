/* What ptcp measure prints: each round as it ends, then the levels, ascending by streams. */
#ifndef CLI_MEASURE_OUTPUT_H
#define CLI_MEASURE_OUTPUT_H

#include <stdio.h>

#include <ptcp/ptcp.h>

/* `saturates_at` 0: throughput was still rising at the highest level. */
struct measure_summary {
	const struct ptcp_level *level;
	size_t levels;
	unsigned saturates_at;
};

void measure_text_round(FILE *f, const struct ptcp_round *r);
void measure_text_summary(FILE *f, const struct measure_summary *s);

/* One object, one line on stdout; its fields are described in ptcp-measure(1). Without memory,
 * or when writing fails, the line is lost and -1 returned. */
int measure_json_round(const struct ptcp_round *r);
int measure_json_summary(const struct measure_summary *s);

/* A line of names, then a line for each stream of a round, or one for a round that failed. */
void measure_csv_head(FILE *f);
void measure_csv_round(FILE *f, const struct ptcp_round *r);

/* Mean, least and most over the number of streams. Errors as of plot_draw(). */
int measure_plot(const char *file, const struct measure_summary *s, struct ptcp_err *e);

#endif
