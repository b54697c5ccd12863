/* Part files: received files grow under a temporary name beside their target.
 *
 * The process that holds the flock(2) of the inode with the part's name owns the part: only the owner
 * truncates, renames or unlinks the part and its journal. An existing file of that name is not trusted: links
 * are not followed, and a file of another user or with a second name is not written to (its owner could read
 * along, or the other name's content would change). */
#ifndef STORE_PART_H
#define STORE_PART_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/dir.h"

#define PART_NAME_BYTES 40

/* ".ptcp-" + 16 hex digits of the XXH3 of `name` + `suffix`, into `out`. */
const char *part_name(char out[PART_NAME_BYTES], const char *name, const char *suffix);
#define PART_SUFFIX ".part"
#define PART_LINK_SUFFIX ".link"
#define PART_JOURNAL_SUFFIX ".journal"
#define PART_DIR_SUFFIX ".dir" /* see destination.h */

/* Whether `name` is a name of ptcp's part files, unfinished links, marks or journals. */
bool part_is_own_name(const char *name);

enum part_take {
	PART_NEW,   /* replace an existing part */
	PART_EMPTY, /* take over an existing part, emptied */
	PART_RESUME /* take over an existing part as it is; create none */
};

struct part {
	int fd;              /* locked; -1: no part (PART_RESUME) */
	uint64_t dev, ino;   /* identify the file with the part's name; also set on EWOULDBLOCK */
	bool existed;
	uint64_t size_bytes;  /* size of a target that was opened */
	uint64_t disk_bytes;  /* disk space of a part to resume, or of a target */
	uint64_t freed_bytes; /* space (fs/quota.h) of the old parts that were emptied or removed */
};

/* Opens the part of `name` in `d`, open at `at`; its own name is that of `key`. PART_NEW is required for empty files
 * and files written at once, so that an inode without data which we did not create is never ours (see created()). 0 or
 * a negative PTCP_E*; EWOULDBLOCK in e->sys if another transfer holds the part. */
int part_open(struct part *out, struct dir *d, int at, const char *name, const char *key, enum part_take take,
    struct ptcp_err *e);

/* Opens the existing file `name` itself as the part, locked likewise; `empty`: and empties it. */
int part_open_target(struct part *out, struct dir *d, int at, const char *name, bool empty, struct ptcp_err *e);

#endif
