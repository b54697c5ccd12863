/* Backups: before a transfer replaces or removes an old file or link, the file gets a second name, as by rsync's
 * --backup: the same with a suffix, or the same path below a further directory, perhaps with a suffix. Directories
 * above a backup get mode and owner of the originals; special files contain no data to keep. A backup replaces an
 * earlier backup of the same name.
 *
 * A backup is a hard link of the old file until the new file has the name: the old file has a name at each moment. A
 * file system without hard links renames the file; for a backup on a different file system the file is copied. One
 * thread at a time. */
#ifndef STORE_BACKUP_H
#define STORE_BACKUP_H

#include "core/memory_budget.h"
#include "store/published.h"

struct backup_opts {
	const char *dir;    /* relative to the directory of the transfer; NULL or "": beside the file */
	const char *suffix; /* without "/"; with `dir` NULL or "" is possible */
	bool own;           /* `dir` is this user's and trusted, else a peer's and below the root */
	bool durable;       /* backups are synced to disk */
};

struct backup;

/* Copies the texts. *out NULL: neither directory nor suffix. No I/O. */
int backup_new(struct backup **out, const struct backup_opts *o, struct memory_account *memory, struct ptcp_err *e);
void backup_free(struct backup *b); /* NULL is fine */

/* The functions below accept NULL, for no backups, and block on disk. */

/* Names the directory of the transfer, above all entries, for the calls to come. */
void backup_begin(struct backup *b, struct dir *top);
/* Backs up a file or link `name` of d, open at `at`, before its end, unless the file is published or excluded. 1: only
 * the backup has the file now. */
int backup_keep(struct backup *b, struct dir *d, int at, const char *name, struct published *published,
    struct ptcp_err *e);
/* With `durable`: the backups are on disk. */
int backup_sync(struct backup *b, struct ptcp_err *e);
/* Whether --delete spares the entry: a backup, by the suffix, or the directory of the backups. */
bool backup_spares(struct backup *b, const char *name, uint64_t dev, uint64_t ino);
/* Whether backups stay beside the new files: directories with backups are never empty. */
bool backup_is_beside(const struct backup *b);

#endif
