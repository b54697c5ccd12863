/* Abilities of file systems: the local ones of Linux keep all attributes of files; others are tried once, with hidden
 * files that are removed afterwards. */
#ifndef FS_FILE_SYSTEM_H
#define FS_FILE_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "fs/dir.h"

enum ability {
	ABILITY_MODES,
	ABILITY_OWNERS,
	ABILITY_XATTRS,
	ABILITY_ACLS,
	ABILITY_HARD_LINKS,
	ABILITY_SYMLINKS,
	ABILITY_TIMES,      /* exact times of 1960 to 2446 */
	ABILITY_CASE,       /* names of different case name different files */
	ABILITY_LOCKS,
	ABILITY_HOLES,
	ABILITY_SYNC,
	ABILITY_NO_REPLACE, /* renames with RENAME_NOREPLACE */
	ABILITIES
};

/* Whether the errno of a call that needs the ability means: the file system lacks the ability, or the attribute is not
 * ours to set. EROFS of a sync means lost data: we have just written to the file system, and ext4 reports EROFS after a
 * failure of its journal. */
bool fs_cannot(enum ability a, int sys);

enum { FILE_SYSTEM_TYPE_BYTES = 32, FILE_SYSTEM_TEXT_BYTES = 200 };

struct file_system {
	char type[FILE_SYSTEM_TYPE_BYTES]; /* as in /proc/mounts, "ext4"; "": unknown */
	bool local;          /* the file system keeps all attributes, and reports failed writes at once */
	bool tried;          /* the members below are known */
	uint32_t lacks;      /* bits 1 << enum ability */
	uint64_t time_ns;    /* times are multiples of it; 0: no time is kept */
	int64_t first_s, last_s; /* earlier and later times become these; INT64_MIN, INT64_MAX: 1960 to 2446 are kept */
	unsigned name_max;   /* longest name in bytes */
	char refused[16];    /* characters forbidden in names */
};

static inline bool file_system_lacks(const struct file_system *f, enum ability a)
{
	return (f->lacks >> a & 1) != 0;
}

/* Whether a file can have about that time. */
static inline bool file_system_stores(const struct file_system *f, struct timespec t)
{
	return f->time_ns > 0 && t.tv_sec >= f->first_s && t.tv_sec <= f->last_s;
}

/* Whether the file system stores the time of a source as `stored`. */
bool file_system_stores_as(const struct file_system *f, struct timespec source, struct timespec stored);

/* Tries all abilities in d. I/O threads. */
int file_system_try(struct dir *d, struct file_system *out, struct ptcp_err *e);

/* The file system of d, owned by the tree; NULL: d cannot be opened, or the tree has too many. I/O threads. */
const struct file_system *file_system_of(struct dir *d);
/* The same, tried now unless it was before; an ability counts as present if the trial is impossible. */
const struct file_system *file_system_tried(struct dir *d);

/* The same without I/O; NULL: not known. */
const struct file_system *file_system_known(const struct dir *d);
/* Whether the file system of d is known to lack the ability. */
bool file_system_known_lacks(const struct dir *d, enum ability a);

/* The tree of `to` learns the abilities of the same file system from the tree of `from`. Both directories were open. */
void file_system_share(const struct dir *from, struct dir *to);

/* "exfat: no modes, owners or hard links, times to 10 ms": the lacking ones of the abilities `of`. False: none. */
bool file_system_text(const struct file_system *f, uint32_t of, char out[FILE_SYSTEM_TEXT_BYTES]);

#endif
