/* What the file system of a destination has room for, as found before the first byte. */
#ifndef FS_ROOM_H
#define FS_ROOM_H

#include "fs/dir.h"

#define ROOM_UNKNOWN UINT64_MAX

struct room {
	uint64_t dev;                      /* st_dev of the directory; 0: nothing is known */
	uint64_t free_bytes, free_entries; /* for this user; ROOM_UNKNOWN: the file system states no number */
	int no_names;                      /* why the directory takes no new names, an errno; 0: it does */
};

/* Of d, or (in a dry run, where d is missing) of the nearest directory above. I/O threads. */
void room_look(struct room *out, struct dir *d);

/* The st_dev of the nearest directory, d or above, that was opened: that of d, unless something is mounted in a
 * directory that was not opened yet. 0: none was. */
uint64_t room_dev(struct dir *d);

/* Whether `bytes` in `entries` new entries fit; else PTCP_ENOSPC: both numbers, and how to try all the same.
 * `at_least`: the needs are not all known. */
int room_check(const struct room *r, uint64_t bytes, uint64_t entries, bool at_least, struct ptcp_err *e);

#endif
