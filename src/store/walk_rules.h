/* Rules that leave files out of a walk: those of a filter, and of the files in directories that its dir-merge rules
 * name. */
#ifndef STORE_WALK_RULES_H
#define STORE_WALK_RULES_H

#include "core/filter.h"
#include "core/memory_budget.h"
#include "fs/dir.h"

struct walk_rules {
	struct memory_account *memory;
	const struct filter *filter; /* NULL: includes all */
	struct dir *base;            /* see walk_judge(); a reference, or NULL */
	const char *base_path;
	struct filter_scope **outer; /* rules of files from there to the added directory */
	size_t n_outer;
	bool own;                    /* the user of this process named the directory of the transfer */
	struct dir *root;            /* root of the transfer, a reference; NULL: unknown yet */
	struct filter_scope **upper; /* rules of files in the directories above it */
	size_t n_upper;
	char *path;                  /* path of the latest entry, behind the directories above the transfer */
	size_t path_cap, top;        /* length of the latter with '/' */
};
/* Directory of a walk. */
struct level_rules {
	size_t above;                     /* length of its path and '/' */
	struct filter_scope *own;         /* rules of its files, the caller's; NULL: none */
	const struct filter_scope *scope; /* these, or those of directories above */
};

void walk_rules_fini(struct walk_rules *w);
/* The walk enters d, the latest entry, below `up`; `added`: its content was added. Reads the files that d has: links,
 * files above 256 KiB, unreadable files and malformed lines are errors, as the names to leave out are unknown. I/O
 * threads. */
int walk_rules_enter(struct walk_rules *w, struct level_rules *l, const struct level_rules *up, struct dir *d,
    bool added, struct ptcp_err *why);
/* 1: the rules leave `name` in d out of the walk (in NULL: an added entry); 0; negative if the rules are unknown.
 * With a base, the walk reports all names, and left_out[] tells whether the rules leave `name` out, and out of a
 * directory that is being removed. */
int walk_rules_judge(struct walk_rules *w, const struct level_rules *in, struct dir *d, const char *name, bool is_dir,
    bool left_out[2], struct ptcp_err *why);

#endif
