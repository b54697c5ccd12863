/* Quotas: the space used beneath a directory, and the part of it that a client may use.
 *
 * The space of an entry is its space on disk, of which each of several hard links has a share; it is at least
 * QUOTA_GRAIN, also for empty files, directories and links. Changes made through a tree with a quota adjust the usage;
 * changes by other programs appear at the next count. The usage is never less than the space of the changes, and may be
 * more until the next count. Any thread. Functions accept NULL for a tree without a quota, and then have no effect. */
#ifndef FS_QUOTA_H
#define FS_QUOTA_H

#include "fs/dir.h"

#define QUOTA_GRAIN 4096

/* The space used beneath a directory, shared by all its trees. */
struct usage;

struct usage *usage_new(void); /* NULL without memory */
void usage_unref(struct usage *u); /* NULL is fine */
bool usage_is_shared(struct usage *u); /* there is another reference */
/* Including space reserved for files in transit. */
uint64_t usage_bytes(struct usage *u);
/* Before and after a count, the sum of usage_of_entry() of all entries: what is written meanwhile may be counted
 * twice. */
void usage_count_begin(struct usage *u);
void usage_count_end(struct usage *u, uint64_t bytes);
/* Whether space was refused since the last count. */
bool usage_refused(struct usage *u);
uint64_t usage_of_entry(uint32_t format, uint64_t disk_bytes, uint64_t nlink);

/* The quota of a tree. */
struct quota;

/* Before the first use of the tree, whose earlier quota the new one replaces; keeps a reference to u. */
int tree_set_quota(struct tree *t, struct usage *u, uint64_t limit_bytes, struct ptcp_err *e);
/* Changes the limit; without effect on a tree without a quota. */
void tree_change_quota(struct tree *t, uint64_t limit_bytes);
struct quota *dir_quota(const struct dir *d); /* NULL: none */
/* The usage and the limit; false: no quota. */
bool tree_quota(const struct tree *t, uint64_t *used_bytes, uint64_t *limit_bytes);
/* PTCP_ENOSPC, EDQUOT in e->sys: a sentence with the space left, and with the space that these entries need, or that
 * was taken and refused, if that is more. */
int quota_err(struct quota *q, uint64_t entries, uint64_t bytes, struct ptcp_err *e);

/* A new entry; PTCP_ENOSPC. */
int quota_take(struct quota *q, uint64_t bytes, struct ptcp_err *e);
void quota_give(struct quota *q, uint64_t bytes);

/* Before and after a name is removed or replaced: `freed` becomes the space of its entry, which quota_names_end() gives
 * back if `removed`. In between, other changes of names wait; may be nested. */
void quota_names_begin(struct quota *q, const struct sys *sys, int at, const char *name, uint64_t *freed);
void quota_names_end(struct quota *q, bool removed, uint64_t freed);

/* The space of a file in transit, zeroed at first; only the functions below read or change the space, for several
 * threads store. */
struct quota_hold {
	struct quota *q;
	uint64_t reserved, stored;
	bool whole;           /* reserved for its whole size */
	bool begun;           /* the part of the file exists */
};

/* The file will need `bytes` in all; unless `whole`, at least: quota_store() takes more. PTCP_ENOSPC. */
int quota_reserve(struct quota_hold *h, uint64_t bytes, bool whole, struct ptcp_err *e);
/* Before n bytes are written, or (0) the part is created. PTCP_ENOSPC. */
int quota_store(struct quota_hold *h, uint64_t n, struct ptcp_err *e);
/* The file continues a file with this space, which was counted before. */
void quota_found(struct quota_hold *h, uint64_t disk_bytes);
/* The file was emptied: space of a whole file remains reserved. False: the file had no space. */
bool quota_emptied(struct quota_hold *h);
/* The file is complete, with this size. */
void quota_complete(struct quota_hold *h, uint64_t size_bytes);
/* The file ends, with at most so much of its space. Repeated calls have no effect. */
void quota_end(struct quota_hold *h, uint64_t bytes);

/* The client of the tree has lost its connection, and may never return: space reserved for data that has not arrived is
 * free for others. Data that still arrives takes its space as if it were new. */
void quota_lend(struct quota *q);
/* The client has returned. PTCP_ENOSPC: others have taken the space. Without quota_lend(), no effect. */
int quota_reclaim(struct quota *q, struct ptcp_err *e);

#endif
