/* Path history: probes of earlier transfers, one text line per entry, and their aging. No file access.
 *
 * Lu, Qiao, Dinda, Bustamante found that the throughput of a path stays within a factor of 2 for over an
 * hour in 60 % of cases, within a factor of 10 for over three hours in 80 %. Answers from entries therefore have ranges
 * that widen with age to both sides, and entries expire after HISTORY_MAX_S. */
#ifndef MODEL_HISTORY_H
#define MODEL_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/evidence.h"
#include "model/fit.h"
#include "model/parameters.h"
#include "model/stream_control.h"

#define HISTORY_PROBES_MAX 8
#define HISTORY_PEER_BYTES 768
#define HISTORY_CC_BYTES 16
#define HISTORY_LOCAL_BYTES 80
#define HISTORY_LINE_BYTES 4096
#define HISTORY_MAX_S (3 * 3600)

/* Key of a path; the texts of an entry are not empty. */
struct history_key {
	bool sends;                           /* direction: from this host */
	char peer[HISTORY_PEER_BYTES];        /* name that the user gave */
	char congestion[HISTORY_CC_BYTES];    /* congestion control of the sending side */
	char local[HISTORY_LOCAL_BYTES];      /* source address of this host towards the peer */
};

struct history_entry {
	struct history_key key;
	int64_t when_s;                       /* s since 1970 */
	struct probe probe[HISTORY_PROBES_MAX];
	size_t n_probes;                      /* number of probes, at least 1 */
	struct evidence evidence;             /* evidence of these probes; n 0: unknown */
	enum limit limit;                     /* what limited the probes */
	bool partly_limited;                  /* windows or buffers limited the probes, limit_is_partial() */
};

/* An empty congestion control matches any. */
bool history_same(const struct history_key *a, const struct history_key *b);

_Static_assert(HISTORY_PROBES_MAX <= EVIDENCE_LEVELS_MAX, "sizes");

/* Writes a line with its newline; returns its length, or 0 if the entry does not fit. */
size_t history_format(char out[HISTORY_LINE_BYTES], const struct history_entry *h);
/* Parses a line with or without its newline; false for a malformed line, *out then undefined. */
bool history_parse(struct history_entry *out, const char *line);

/* The levels that the control has observed itself; false: it has no answer, or one of earlier probes. */
bool history_learn(struct history_entry *h, const struct stream_control *s);

/* False for an entry expired, or from the future. */
bool history_is_valid(const struct history_entry *h, int64_t now_s);
/* Factor, at least 1, by which the throughput may have risen or fallen after this time, in 80 % of cases. */
double history_doubt(double age_s);

#endif
