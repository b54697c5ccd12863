/* Internals of work on files, for managing.c (requests, lists, sizes, removal), managing_change.c (new directories,
 * renaming) and managing_sum.c (digests). On an I/O thread. */
#ifndef SERVER_MANAGING_IMPL_H
#define SERVER_MANAGING_IMPL_H

#include "core/filter.h"
#include "server/file_job.h"
#include "store/expand.h"
#include "store/file_sums.h"
#include "store/walk.h"

/* Digests of files, one after the other. */
struct managing_sums {
	unsigned digests;
	struct wire_range range;
	struct file_sums *at;      /* NULL: another operation */
	char *path;                /* the file at work, as the client knows it; NULL: none */
	struct wire_listed listed; /* its properties, without spans; `bytes` are those of the range */
	uint64_t content_bytes;    /* size of its content in memory, if any */
	uint64_t room;             /* number of bytes that the step may read yet */
};

struct managing {
	struct file_job job; /* first */
	enum wire_manage_op op;
	uint8_t flags;
	struct wire_managed totals;
	unsigned next;         /* path of the request */
	struct expand *expand; /* matches of the path before; NULL: none */
	bool expanded;
	size_t next_match;
	struct filter *visible;
	/* the tree at work */
	struct walk *walk;     /* NULL: none */
	struct dir *base;      /* the walk is relative to it */
	char *prefix;          /* prefix of the shown paths: "", or ending in a slash */
	char *path;            /* path of the request, or of the match */
	bool named;            /* SUM: the path is to be a file */
	uint64_t failed_before;
	struct wire_listed sum; /* COUNT */
	struct managing_sums sums; /* SUM */
};

/* ---- managing.c ---- */

void managing_fail(struct managing *m, const char *path, const struct ptcp_err *why);
/* `why` may begin with the path of `name` in d, by which the client does not know the file. */
void managing_fail_in(struct managing *m, const char *path, const struct dir *d, const char *name,
    const struct ptcp_err *why);
/* The properties of an entry, without spans. */
struct wire_listed managing_listed(const struct walk_entry *w);
/* Puts LISTED of the entry at the path, and counts it. */
void managing_put_listed(struct managing *m, struct wire_listed *f, const char *path);

/* ---- managing_change.c ---- */

/* The directory and the name of an entry to be changed: never a root or a home directory. */
int managing_find_name(struct managing *m, const char *path, struct dir **dir, char name[DESTINATION_NAME_BYTES],
    struct ptcp_err *e);
/* MKDIR, RMDIR or TOUCH of the next path, or RENAME. *path is what a failure is about; the error does not name it. */
int managing_change(struct managing *m, const char **path, struct ptcp_err *e);

/* ---- managing_sum.c ---- */

/* An entry below m->path, or that entry itself: digests a file, which is taken, as far as the step has room. */
int managing_sum_entry(struct managing *m, struct walk_entry *w, const char *path, struct ptcp_err *e);
/* Continues with the file at work. */
int managing_sum_more(struct managing *m, struct ptcp_err *e);
/* Whether the step is full. */
bool managing_sum_full(const struct managing *m);
void managing_sum_fini(struct managing *m);

#endif
