/* Internals of work on files, for managing.c (requests, lists, sums, removal) and managing_change.c (new directories,
 * renaming). On an I/O thread. */
#ifndef SERVER_MANAGING_IMPL_H
#define SERVER_MANAGING_IMPL_H

#include "core/glob.h"
#include "server/file_job.h"
#include "store/expand.h"
#include "store/walk.h"

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
	uint64_t failed_before;
	struct wire_listed sum; /* COUNT */
};

/* ---- managing_change.c ---- */

/* The directory and the name of an entry to be changed: never a root or a home directory. */
int managing_find_name(struct managing *m, const char *path, struct dir **dir, char name[DESTINATION_NAME_BYTES],
    struct ptcp_err *e);
/* MKDIR of the next path, or RENAME. *path is what a failure is about; the error does not name it. */
int managing_change(struct managing *m, const char **path, struct ptcp_err *e);

#endif
