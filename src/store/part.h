/* Part files: where a file that is being received grows, beside its target.
 *
 * Whoever holds the flock(2) of the inode that has the part's name owns it, and
 * only the owner truncates, renames or unlinks it, and its journal with it. What may lie under that name is
 * not trusted: a link is not followed, and a file of another user or with a second
 * name is not written to (its owner could read along, or the second name change). */
#ifndef STORE_PART_H
#define STORE_PART_H

#include <stdbool.h>
#include <stdint.h>

#include "store/dir.h"

#define PART_NAME_BYTES 40

/* ".ptcp-" + 16 hex digits of the XXH3 of `name` + `suffix`, into `out`. */
const char *part_name(char out[PART_NAME_BYTES], const char *name, const char *suffix);
#define PART_SUFFIX ".part"
#define PART_LINK_SUFFIX ".link"
#define PART_JOURNAL_SUFFIX ".journal"
#define PART_DIR_SUFFIX ".dir" /* see dir_mark.h */

enum part_take {
	PART_NEW,   /* a leftover makes way */
	PART_EMPTY, /* a leftover is taken over, emptied */
	PART_KEEP   /* a leftover is taken over as it is; without one there is none */
};

struct part {
	int fd;              /* locked; -1: there is none (PART_KEEP) */
	uint64_t dev, ino;   /* of what lies under the name; told too where another holds it (EWOULDBLOCK) */
	bool leftover;       /* something lay there */
};

/* The part of `name` in `d`, which is open at `at`. For a file that will have no data when it is
 * complete, and for one that is written at once, only PART_NEW: so an inode without data that we did
 * not create is never ours (see created()). 0 or a negative PTCP_E*; EWOULDBLOCK in e->sys if
 * another transfer holds it. */
int part_open(struct part *out, struct dir *d, int at, const char *name, enum part_take take,
    struct ptcp_err *e);

#endif
