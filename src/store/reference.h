/* References: directories with older copies of the files that a transfer brings, as of rsync's --link-dest,
 * --compare-dest and --copy-dest. A file that a reference has is not sent: the receiver makes a hard link,
 * leaves the file out, or copies the data. Without the attributes, the data is always copied.
 *
 * With REFERENCE_LINK, a file or link with several names never changes, as other copies may share it: the name gets a
 * new file. One thread at a time. */
#ifndef STORE_REFERENCE_H
#define STORE_REFERENCE_H

#include <sys/stat.h>

#include "core/memory_budget.h"
#include "fs/dir.h"

enum { REFERENCES_MAX = 20 };

enum reference_kind { REFERENCE_LINK, REFERENCE_COMPARE, REFERENCE_COPY };

struct meta;
struct store_rules;
struct references;

/* `own`: as of backup_opts. */
int references_new(struct references **out, enum reference_kind kind, bool own, struct memory_account *memory,
    struct ptcp_err *e);
void references_free(struct references *r); /* NULL is fine */
/* Adds a directory, relative to the directory of the transfer; the first one with a file counts. PTCP_EUSAGE beyond
 * REFERENCES_MAX. No I/O. */
int references_add(struct references *r, const char *path, struct ptcp_err *e);

/* Names the directory of the transfer, above all entries, for the calls to come. Blocks on disk. */
void references_begin(struct references *r, struct dir *top);
/* Why a reference is not used, a sentence; each once. NULL: no further ones. */
const char *references_warning(struct references *r);

/* Whether files of the destination may belong to older copies, too; false for NULL. */
bool references_share(const struct references *r);

/* An entry that was offered. */
struct reference_entry {
	struct dir *dir;
	const char *name;
	const struct meta *meta;
	const struct store_rules *rules;
	uint64_t size_bytes; /* size of a file */
	const char *target;  /* target of a symbolic link; NULL: a file */
};

enum reference_use {
	REFERENCE_NONE,
	REFERENCE_LINKED,  /* the name is a name of the reference's file or link */
	REFERENCE_OMITTED, /* nothing has the name, nor shall */
	REFERENCE_DATA     /* *fd, which the caller owns, is a file with the data */
};

/* What a reference does for the entry, by the rules and what has the name; `dry`: nothing is changed. Failures are
 * REFERENCE_NONE. Blocks on disk. */
enum reference_use references_use(struct references *r, const struct reference_entry *t, bool dry, int *fd);

#endif
