/* Files that a transfer has given names, or found up to date, and neither replaces nor removes. Two names of
 * the sources can be one at the destination: the contents of several directories, or names that differ only in what the
 * file system ignores, such as case or the normal form of Unicode. So files are compared, by device and inode; and
 * names without regard to case where the file system ignores case, since its inode numbers may be those of names (FUSE,
 * vfat).
 *
 * A file takes 16 bytes or less, twice that unless case counts, for up to `max` files and within the account. Beyond,
 * each file that exists counts as published: nothing is replaced any more, and new names are given still. One thread at
 * a time. */
#ifndef STORE_PUBLISHED_H
#define STORE_PUBLISHED_H

#include "core/name_set.h"
#include "fs/dir.h"

struct published { /* zeroed, with the account in both sets, and `max`: empty; where functions take
                      one, NULL means: none */
	struct name_set now;    /* files of this session, */
	struct name_set before; /* files of earlier sessions, whose sources may be gone */
	size_t max;
	uint64_t dev;           /* the file system that was examined last; 0: none */
	bool ignores_case;      /* the answer for that file system */
	bool full;
};

void published_fini(struct published *p);
/* Another session of the same transfer begins: a file of an earlier session may be up to date, but is not replaced. */
void published_next(struct published *p);

/* Learns from an existing entry of d, open as `at`, whether its file system ignores case, if the name tells and another
 * file system was examined last. All functions with a directory block on disk. */
void published_examine(struct published *p, const struct dir *d, int at, const char *name, uint64_t dev);
/* Remembers a file, link or directory that has the name. */
void published_add(struct published *p, const struct dir *d, int at, const char *name, uint64_t dev, uint64_t ino);
/* The same for the entry of that name, if there is one. */
void published_add_name(struct published *p, struct dir *d, const char *name);

/* Whether `st`, of `name` in the open directory `at`, is of a published file, and `name` its name, as far as can be
 * determined: the name may be another one of a file with several names. `before`: earlier sessions count, too. */
bool published_has(struct published *p, const struct dir *d, int at, const char *name,
    const struct stat *st, bool before);
/* Whether a name of a file with several names is published: the file's attributes belong to the source of this name. */
bool published_shares(const struct published *p, const struct stat *st);
/* In the order of inspection: whether the transfer may write into a file under this name, as no other name of it is
 * published, kept or written to. */
bool published_may_write(struct published *p, const struct dir *d, const char *name, uint64_t dev, uint64_t ino);
/* For a file with several names: whether it may be kept as it is under this name; then nothing is written into it under
 * another. */
bool published_may_keep(struct published *p, const struct dir *d, const char *name, uint64_t dev, uint64_t ino);
/* Whether this session may already write into the file under this name, for another source. */
bool published_writes(const struct published *p, const struct dir *d, const char *name, const struct stat *st);
/* PTCP_EREFUSED: the name is that of a published file. */
int published_refuse(const struct published *p, const struct dir *d, const char *name, struct ptcp_err *e);

/* At the sender: remembers a source that was removed. */
void published_add_source(struct published *p, const char *path);
/* Whether an earlier session has removed a source of that path, regardless of case: the receiver of a later session
 * must not replace the file. */
bool published_source_before(const struct published *p, const char *path);

#endif
