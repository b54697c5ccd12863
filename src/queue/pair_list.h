/* Lists of pairs: lines "SOURCE DESTINATION", as globus-url-copy -f reads such lists. Words may be within quotes; empty
 * lines and comments (# ..) are skipped. Reading takes memory for one batch. */
#ifndef QUEUE_PAIR_LIST_H
#define QUEUE_PAIR_LIST_H

#include <stdio.h>

#include "queue/queue.h"

/* Pairs for one process: the sources go into one directory, and keep their names. */
struct pair_batch {
	struct queue_texts sources;
	char *destination;
	uint64_t begin, end; /* positions in the list */
	uint64_t n;          /* sources */
	bool missing;        /* none of the sources exists */
};

/* Reads the batch at `position`. Before `alone_until` a batch has one pair, or several whose local sources do not exist
 * in `directory`: b->missing. n is 0 at the end of the list. PTCP_ECONFIG: a faulty line; PTCP_EIO. */
int pair_batch_read(struct pair_batch *b, const char *path, const char *directory, uint64_t position,
    uint64_t alone_until, struct ptcp_err *e);
void pair_batch_fini(struct pair_batch *b); /* zeroed is fine */

/* Writes a pair as a line. Local paths become absolute: a URL with escapes, if it has
 * other characters than letters, digits and a few more. */
void pair_write(FILE *f, const char *source, const char *dest, const char *directory);

/* The host of an operand, "" for a local path, as written: to compare hosts of jobs. */
#define PAIR_HOST_BYTES 320
const char *pair_host(char out[PAIR_HOST_BYTES], const char *operand);

#endif
