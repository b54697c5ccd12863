/* Leftovers: part files, journals, unfinished links and marks of transfers that do not run. Blocks on disk. */
#ifndef STORE_LEFTOVER_H
#define STORE_LEFTOVER_H

#include <time.h>

#include "store/dir.h"

/* Files without a lock of their own (a link, a mark, a journal without its part) may belong to a running transfer
 * if they changed later than this. */
#define LEFTOVER_UNLOCKED_S 60.0

struct leftover {
	struct dir *dir;
	const char *name;
	uint64_t size_bytes;
	double age_s;    /* since the last change of the file, or of its part or journal */
	const char *why; /* why it cannot be removed; NULL: removed, or would be in a dry run */
};

struct leftover_opts {
	double older_s;       /* min age */
	bool dry_run;
	struct timespec now;
	/* Each leftover, and each file that cannot be removed. False: stop. */
	bool (*found)(void *arg, const struct leftover *l);
	void *arg;
};

struct leftover_totals {
	uint64_t files, bytes;   /* removed */
	uint64_t in_use, recent; /* retained: of running transfers; younger than older_s */
	uint64_t failed;         /* not removed for other reasons, unreadable directories included */
};

/* Removes the leftovers in `base` and below, without following links. Only files of this user with ptcp's own names
 * are removed, and a part only while its lock is ours: no running transfer uses the part. Marks of directories are
 * removed last, and only if the walk found no part in use and none too recent, since these resume by the mark. 0,
 * or a negative PTCP_E* if `base` cannot be listed or without memory. */
int leftovers_clean(struct dir *base, const struct leftover_opts *o, struct leftover_totals *out, struct ptcp_err *e);

#endif
