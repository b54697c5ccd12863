/* Leftovers: part files, journals, unfinished links and marks of transfers that do not run. Blocks on disk. */
#ifndef STORE_LEFTOVER_H
#define STORE_LEFTOVER_H

#include <time.h>

#include "fs/dir.h"

/* Files without a lock of their own (a link, a mark, a journal without its part) may belong to a running transfer
 * if they changed later than this. */
#define LEFTOVER_UNLOCKED_S 60.0

struct leftover {
	struct dir *dir;
	const char *name;
	uint64_t size_bytes;
	double age_s;    /* time since the last change of the file, or of its part or journal */
	const char *why; /* why it cannot be removed; NULL: removed, or would be in a dry run */
	int sys;         /* errno of `why`, or 0 */
};

struct leftover_opts {
	double older_s;       /* min age */
	bool dry_run;
	struct timespec now;
	struct memory_account *memory; /* NULL: no limit */
	/* Each leftover, and each file that cannot be removed. May be NULL. */
	void (*found)(void *arg, const struct leftover *l);
	void *arg;
};

struct leftover_totals {
	uint64_t files, bytes;   /* removed */
	uint64_t in_use, recent; /* retained: of running transfers; younger than older_s */
	uint64_t failed;         /* number of those not removed for other reasons, unreadable directories included */
};

struct leftovers;

/* Removes the leftovers in `base` and below, without following links. Only files of this user with ptcp's own names
 * are removed, and a part only while its lock is ours: no running transfer uses the part. Marks of directories are
 * removed last, and only if the walk found no part in use and none too recent, since these resume by the mark.
 *
 * leftovers_step() examines up to `entries` entries: 1: more remain; 0: done; or a negative PTCP_E* if `base` cannot
 * be listed or without memory. Freed earlier, the walk ends; each removal is whole. `o` is copied. */
int leftovers_new(struct leftovers **out, struct dir *base, const struct leftover_opts *o, struct ptcp_err *e);
int leftovers_step(struct leftovers *k, unsigned entries, struct ptcp_err *e);
const struct leftover_totals *leftovers_totals(const struct leftovers *k);
void leftovers_free(struct leftovers *k); /* NULL is fine */
/* All steps. */
int leftovers_clean(struct dir *base, const struct leftover_opts *o, struct leftover_totals *out, struct ptcp_err *e);

/* Leftovers in `d` alone that leftovers_clean() would remove at any age, without marks: adds to *c. Errors count as
 * none. */
struct leftover_count {
	uint64_t files, bytes;
	double age_s; /* age of the youngest */
};
void leftovers_count(struct dir *d, struct leftover_count *c);
void leftover_count_add(struct leftover_count *to, const struct leftover_count *c);

#endif
