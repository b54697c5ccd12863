/* Listing what is to be sent: a depth-first walk that never follows symbolic
 * links below its start and holds one directory stream a level, so a directory of
 * a million entries is streamed. Used by one thread at a time; blocks on disk. */
#ifndef STORE_WALK_H
#define STORE_WALK_H

#include <stdint.h>
#include <time.h>

#include "core/glob.h"
#include "store/dir.h"

enum walk_type {
	WALK_DIR,     /* its content follows, then its WALK_DIR_END */
	WALK_DIR_END,
	WALK_FILE,
	WALK_SYMLINK,
	WALK_SKIPPED, /* FIFO, socket, device, or what ptcp itself is receiving; `why` says so */
	WALK_FAILED,  /* could not be stat'ed, or (then dir is itself, name NULL, and
		       * this comes before its WALK_DIR_END) not be listed to its end;
		       * `why` is the sentence */
};

#define WALK_DEPTH_MAX 2000 /* deeper directories are WALK_FAILED */

struct walk_entry {
	enum walk_type type;
	int depth;        /* 0 for what was added, or directly in "contents of" */
	struct dir *dir;  /* the directory it is in (for WALK_DIR_END: itself) */
	char *name;       /* within dir; NULL for WALK_DIR_END and a failed listing */
	char *target;     /* of WALK_SYMLINK, else NULL */
	char *why;        /* of WALK_SKIPPED and WALK_FAILED, else NULL */
	uint64_t size_bytes, dev, ino, nlink;
	bool sparse;      /* a file with less on disk than its size: has holes, or is compressed */
	uint32_t mode;    /* permission bits with setuid, setgid and sticky (07777) */
	uint32_t uid, gid;
	struct timespec mtime, ctime;
};

struct walk;

int walk_new(struct walk **out, struct ptcp_err *e);
void walk_free(struct walk *w);

/* Adds `name` in `dir`, or with name NULL the contents of `dir`; they are walked
 * in the order they were added. Holds dir. */
int walk_add(struct walk *w, struct dir *dir, const char *name, struct ptcp_err *e);

/* What `f` does not keep is not listed, whatever it is, and such a directory is not entered. Paths
 * begin with what was added by name, which is subject to the rules itself, or below "the contents
 * of". Borrows f as long as w lives; set before the first walk_next(). */
void walk_filter(struct walk *w, const struct filter *f);

/* 1 with an entry (in *out, whatever that held), which the caller ends with
 * walk_entry_fini(); 0 when all has been listed; negative only without memory. What
 * a readdir error cuts short is reported as WALK_FAILED and the walk goes on. Files
 * that ptcp itself is receiving (part files and journals, see sink.h) are WALK_SKIPPED, unless
 * added by name. What vanishes between listing and stat is not listed. */
int walk_next(struct walk *w, struct walk_entry *out, struct ptcp_err *e);
void walk_entry_fini(struct walk_entry *e);

#endif
