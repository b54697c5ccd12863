/* Listing the entries to send: a depth-first walk, without following symbolic links below the start.
 * Directories are streamed: a million entries need little memory. One thread at a time; blocks on disk. */
#ifndef STORE_WALK_H
#define STORE_WALK_H

#include <stdint.h>
#include <time.h>

#include "core/filter.h"
#include "core/memory_budget.h"
#include "core/selection.h"
#include "fs/dir.h"
#include "store/manage.h"

enum walk_type {
	WALK_DIR,     /* followed by the content, then WALK_DIR_END */
	WALK_DIR_END,
	WALK_FILE,
	WALK_SYMLINK,
	WALK_SKIPPED, /* FIFO, socket, device, an unfinished file of ptcp, or an excluded directory; `why` explains */
	WALK_FAILED,  /* stat failed; or listing `dir` failed (name NULL, before WALK_DIR_END); `why` is the message */
};

/* Deeper directories are WALK_FAILED: each level takes a slot of the protocol, and where Landlock confines a server, the
 * kernel looks at all levels above whenever a file is opened. */
#define WALK_DEPTH_MAX 4100

struct walk_entry {
	enum walk_type type;
	int depth;        /* 0 for an added entry, and for the direct content of an added directory */
	struct dir *dir;  /* the parent directory (for WALK_DIR_END: itself) */
	char *name;       /* within dir; NULL for WALK_DIR_END and a failed listing */
	char *target;     /* target of WALK_SYMLINK, else NULL */
	uint8_t *content; /* content of a file whose size was unknown: source_find_size(); else NULL */
	char *why;        /* reason of WALK_SKIPPED and WALK_FAILED, else NULL */
	int code;         /* code of WALK_FAILED: PTCP_EREFUSED, PTCP_EVANISHED .. */
	int sys;          /* errno of WALK_FAILED, or 0 */
	uint64_t size_bytes, disk_bytes, dev, ino, nlink;
	bool sparse;      /* a file with less disk space than size: with holes, or compressed */
	uint32_t mode;    /* permission bits with setuid, setgid and sticky (07777) */
	uint32_t format;  /* S_IFMT bits; 0: stat failed */
	bool excluded;    /* WALK_SKIPPED: by tree_exclude() */
	bool followed;    /* what a link leads to, see walk_limit() */
	bool closed;      /* WALK_DIR: not entered, see walk_limit(); no WALK_DIR_END follows */
	bool left_out[2]; /* with walk_judge(): by the rules; in a directory that is being removed */
	uint32_t uid, gid;
	struct timespec mtime, ctime;
};

static inline struct manage_stamp walk_stamp(const struct walk_entry *w)
{
	return (struct manage_stamp){ w->dev, w->ino, w->nlink, w->size_bytes, w->mtime, w->ctime };
}

struct walk;

/* `memory`: account for what the walk keeps: streams of directories, and names of directories read whole; NULL: no limit. */
int walk_new(struct walk **out, struct memory_account *memory, struct ptcp_err *e);
void walk_free(struct walk *w);

/* Adds `name` in `dir`, or with name NULL the content of `dir`; listed in the order added. "." is `dir` itself: WALK_DIR,
 * without content and WALK_DIR_END, whatever the filter says, or nothing, if it cannot be examined. Keeps a reference to
 * dir. */
int walk_add(struct walk *w, struct dir *dir, const char *name, struct ptcp_err *e);

/* Skips entries that rules for senders leave out, of `f` and of files in the tree, and does not enter these directories.
 * Paths begin with the added name, to which the rules apply as well, or below an added directory's content. The listing of
 * a directory fails if a file of rules cannot be read. `own`: the user of this process named what was added, whose rules
 * may be in directories above the tree. Borrows f for w's lifetime; to be called before the first walk_next(). */
void walk_filter(struct walk *w, const struct filter *f, bool own);
/* Reports all entries of an added directory's content, and whether the rules for receivers leave them out. The directory
 * has the path `above` (may be empty) in rules, and lies in `base`, or below: files of rules are read from there on. */
void walk_judge(struct walk *w, const struct filter *f, bool own, struct dir *base, const char *above);

/* Limits the content of added directories to a selection, sorted: other entries are not examined; a selected path that
 * does not exist, or leads through something else than a directory, is WALK_FAILED. Borrows s for w's lifetime; to be
 * called before the first walk_next(). */
void walk_select(struct walk *w, const struct selection *s);

enum walk_links {
	WALK_LINKS_STAY,   /* WALK_SYMLINK */
	WALK_LINKS_UNSAFE, /* absolute links, and links that lead out of the added tree, are followed */
	WALK_LINKS_FOLLOW
};

struct walk_limits {
	uint32_t max_depth;   /* levels below an added entry, or of an added directory's content; 0: no limit */
	bool one_file_system; /* the added entry's, or that of the added directory */
	enum walk_links links; /* others than WALK_LINKS_STAY follow dir_follow() of the tree */
};
/* Directories at these limits are not entered. Of a link that is followed, the name, and the properties of what it leads
 * to, are reported; one that leads nowhere, out of the root, or to a directory that has it is WALK_FAILED. To be called before the first walk_next(). */
void walk_limit(struct walk *w, const struct walk_limits *l);

/* Directories below so many levels, at least 1, are WALK_FAILED from now on, since the receiver has no room for them. */
void walk_set_levels(struct walk *w, uint32_t levels);

/* Reports directories without entering them: WALK_DIR alone, without WALK_DIR_END. Added directories' content is listed
 * all the same. To be called before the first walk_next(). */
void walk_flat(struct walk *w);

/* Does not enter the WALK_DIR returned last: no WALK_DIR_END follows. */
void walk_skip(struct walk *w);

/* 1 with an entry in *out, to be released with walk_entry_fini(); 0 at the end; negative only without memory
 * (see memory_charge()). After a readdir error the walk reports WALK_FAILED and continues. Unfinished files of ptcp (part files and
 * journals, sink.h) are WALK_SKIPPED unless added by name. Files that vanish between listing and stat are not
 * reported. */
int walk_next(struct walk *w, struct walk_entry *out, struct ptcp_err *e);
void walk_entry_fini(struct walk_entry *e);
/* The mode to transfer, instead of the one found. */
void walk_entry_set_mode(struct walk_entry *e, uint32_t mode);
/* Gives a file its content, which is taken, and the size of it. */
void walk_entry_fill(struct walk_entry *e, uint8_t *content, uint64_t bytes);

/* Trees examined in steps, one after the other, so that an I/O thread does other work between two steps. */
struct walk_steps {
	/* Begins the next tree: sets the walk, or does what needs none. 1; 0: all trees are examined; or a negative PTCP_E*.
	 * NULL: the walk that is there is the only one. */
	int (*next)(void *arg, struct ptcp_err *e);
	/* An entry of the tree, which source_new() may take; 0 or a negative PTCP_E*. */
	int (*entry)(void *arg, struct walk_entry *w, struct ptcp_err *e);
	void (*end)(void *arg);        /* the tree is examined, the walk free; may be NULL */
	bool (*full)(const void *arg); /* the step has to end; NULL: never */
};
/* Examines up to `entries` entries and beginnings; *walk is NULL between two trees. 1: more remain; 0: done; or a negative
 * PTCP_E*. */
int walk_step(const struct walk_steps *s, struct walk **walk, unsigned entries, void *arg, struct ptcp_err *e);

#endif
