/* What earlier transfers have learnt of paths: entries of a file, a line each, and how they age. Text in and out; the file
 * itself is lib's affair.
 *
 * Lu, Qiao, Dinda, Bustamante found that what a path carries stays within a factor of 2 for over an hour in 60 %
 * of cases, within a factor of 10 for over three hours in 80 %: so an entry says less with time, and after
 * HISTORY_MOST_S nothing. */
#ifndef MODEL_HISTORY_H
#define MODEL_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/fit.h"

#define HISTORY_PROBES_MAX 8
#define HISTORY_PEER_BYTES 768
#define HISTORY_CC_BYTES 16
#define HISTORY_LOCAL_BYTES 80
#define HISTORY_LINE_BYTES 4096
#define HISTORY_MOST_S (3 * 3600)
/* One deviation of what a path carries, after an hour; it grows with the root of time. */
#define HISTORY_HOUR_RATIO 0.8

/* Of a path; in an entry none of the texts is empty. */
struct history_key {
	bool sends;                           /* from here */
	char peer[HISTORY_PEER_BYTES];        /* as the user names it */
	char congestion[HISTORY_CC_BYTES];    /* of the sending side */
	char local[HISTORY_LOCAL_BYTES];      /* address of this host on the way there */
};

struct history_entry {
	struct history_key key;
	int64_t when_s;                       /* since 1970 */
	struct probe probe[HISTORY_PROBES_MAX];
	size_t n_probes;                      /* at least 1 */
};

/* An empty congestion control is like any. */
bool history_same(const struct history_key *a, const struct history_key *b);

/* A line, with its newline; its length, or 0 for what has no place in one. */
size_t history_format(char out[HISTORY_LINE_BYTES], const struct history_entry *h);
/* Back; false for anything else, *out then undefined. `line` with or without its newline. */
bool history_parse(struct history_entry *out, const char *line);

/* As of now: the probes' errors grow with the entry's age. False: it is too old, or of the future. */
bool history_age(struct history_entry *h, int64_t now_s);

#endif
