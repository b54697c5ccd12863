/* Work on names that a client requests: making and removing directories, removing files, renaming. Nothing here
 * follows a link in a last component, touches an excluded directory, or, except for manage_clear(), the files of
 * running or interrupted transfers. All functions block on disk. */
#ifndef STORE_MANAGE_H
#define STORE_MANAGE_H

#include <ptcp/options.h>
#include <time.h>

#include "core/filter.h"
#include "core/name_set.h"
#include "fs/dir.h"
#include "store/backup.h"
#include "store/published.h"

/* Makes the directory `name` in `d`. `existing`: an existing directory is no failure. */
int manage_mkdir(struct dir *d, const char *name, bool existing, struct ptcp_err *e);

/* The time of change of the file or directory becomes the present; a missing file is made, empty. A link is refused. */
int manage_touch(struct dir *d, const char *name, struct ptcp_err *e);

/* Removes the empty directory `name`; PTCP_EIO with ENOTEMPTY or ENOTDIR in e->sys. */
int manage_remove_dir(struct dir *d, const char *name, struct ptcp_err *e);
/* Removes a file, link or special file. A directory: PTCP_EIO with EISDIR in e->sys. */
int manage_remove(struct dir *d, const char *name, struct ptcp_err *e);
/* The same for an entry of a directory to be removed with its content: files of transfers too. */
int manage_clear(struct dir *d, const char *name, struct ptcp_err *e);
/* The file or link that an entry was when it was listed. */
struct manage_stamp {
	uint64_t dev, ino, nlink, size_bytes;
	struct timespec mtime, ctime;
};
int manage_stamp(struct dir *d, const char *name, struct manage_stamp *out, struct ptcp_err *e);
/* As manage_remove(), if the entry is unchanged: else PTCP_ECHANGED. The ctime counts unless the file has other names,
 * whose removal changes it. */
int manage_remove_unchanged(struct dir *d, const char *name, const struct manage_stamp *was, struct ptcp_err *e);
/* Makes an existing file and its name durable; of a link, the name. */
int manage_sync(struct dir *d, const char *name, struct ptcp_err *e);
/* Removes the empty directory d, a node made by dir_child(). */
int manage_rmdir(struct dir *d, struct ptcp_err *e);

/* What removals change of a directory. */
struct manage_dir {
	struct dir *dir; /* NULL: nothing was changed */
	bool opened;     /* the mode was changed */
	uint32_t mode;
	struct timespec atime, mtime;
};
/* Before the first removal in the directory: grants this user a directory of its own. */
int manage_open_dir(struct dir *d, struct manage_dir *was, struct ptcp_err *e);
int manage_open_above(struct dir *d, struct manage_dir *was, struct ptcp_err *e); /* the directory above d */
/* After the last one: restores the mode, and (`times`) the time. */
void manage_close_dir(struct manage_dir *was, bool times);

/* Renames `name` in `from` to `new_name` in `to`, by one system call. `replace`: an existing file, link or empty
 * directory is replaced, else PTCP_EIO with EEXIST in e->sys. A directory above an excluded one is refused. */
int manage_rename(struct dir *from, const char *name, struct dir *to, const char *new_name, bool replace,
    struct ptcp_err *e);

/* ---- prune.c: removes what a transfer did not bring ----
 *
 * Entries of received directories that the source does not have. Never removed: excluded paths, special files and,
 * unless the transfer preserves them, links (none of these are sent), unfinished files of ptcp, the server's own
 * directories, and directories that contain any of these. One thread at a time. */

struct prune_opts {
	const struct name_set *names; /* names of the source, by hash_name(); borrowed */
	struct published *published; /* files of the transfer, which stay under any name; borrowed; NULL: none */
	struct backup *backup;        /* keeps what is removed; borrowed; NULL: nothing is kept */
	const struct filter *filter;  /* rules of the transfer; borrowed; NULL: includes all */
	bool own;                     /* see walk_filter() */
	uint32_t max_depth;           /* levels of the roots to remove from; 0: all */
	bool links;                   /* links are transferred */
	bool dry_run;
	bool lists_ways;              /* directories whose names the source has for other entries are removed as well */
	struct memory_account *memory; /* NULL: no limit */
	bool times;                   /* directories keep their times */
	uint64_t max;                 /* entries, files and directories; if there are more, none is removed; */
	bool careful;                 /* neither if the source has none, or fewer and these are more than PRUNE_FEW */
	const uint64_t *source_entries; /* number of entries of the source; borrowed */
	/* An entry was removed (why NULL), or could not be; in a dry run, would be. */
	void (*entry)(void *arg, const char *path, const struct ptcp_err *why);
	void *arg;
};

struct prune;

int prune_new(struct prune **out, const struct prune_opts *o, struct ptcp_err *e);
void prune_free(struct prune *p); /* NULL is fine; each removal is whole */
/* Members of opts.names: the hash of each entry by hash_name(), and for directories prune_dir_hash() as well. */
uint64_t prune_dir_hash(uint64_t hash);
/* Likewise of a directory of which the source may have more: nothing is removed in it, but in directories below that
 * the source has. */
uint64_t prune_closed_hash(uint64_t hash);
#define PRUNE_FEW (PTCP_MAX_DELETE / 10)
/* Adds a received directory: `hash` as it is among the names; `source`: its path in patterns of the filter, "" for the
 * top. A directory that does not exist is fine. */
int prune_add(struct prune *p, struct dir *d, uint64_t hash, const char *source, struct ptcp_err *e);
/* Examines up to `entries` entries. 1: more remain; 0: done; PTCP_EIO if there are more than `max` entries to remove
 * (in a dry run after listing `max` of them), before the first removal. A directory that cannot be examined, or is on
 * another file system than the one added, stays, and all in it. */
int prune_step(struct prune *p, unsigned entries, struct ptcp_err *e);
/* Before all deletion: the next calls of prune_step() empty the directory `name`, which has the name of a file or link
 * to be received in an added directory, or below. All but devices is removed, or nothing, if something would stay by
 * the rules above, or if that makes more than `max` entries together with those of earlier directories (`careful`:
 * PRUNE_FEW). False: not below an added directory, or no memory. No I/O. */
bool prune_make_way(struct prune *p, struct dir *parent, const char *name);
/* After the last of these steps, or instead of further ones. */
void prune_made_way(struct prune *p);
uint64_t prune_removed(const struct prune *p);
uint64_t prune_failed(const struct prune *p);

#endif
