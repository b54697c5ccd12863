/* Files below some directories, listed by size, time and name, in search of the earlier name of a file missing at the
 * destination. The content decides, see sink_match().
 *
 * The list is made in steps, at the first search. A file takes 72 bytes and its name; without memory the list remains
 * incomplete. */
#ifndef STORE_RENAMES_H
#define STORE_RENAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "core/memory_budget.h"
#include "fs/dir.h"

struct renames;

enum { RENAMES_FOUND = 4 }; /* maximum number of candidates */

struct renamed { /* a candidate, for renames_open() */
	uint32_t dir, name;
};

struct renames_limits {
	uint64_t bytes;   /* memory of the list */
	unsigned entries; /* entries examined in a step: other work on the I/O threads comes between two steps */
};

/* NULL: without memory. */
struct renames *renames_new(struct memory_account *memory, const struct renames_limits *max, struct ptcp_err *e);
void renames_free(struct renames *r);

/* Adds the content of the directory, on one file system; the directory need not exist. Any thread. */
void renames_add(struct renames *r, struct dir *d);

/* False: the list is complete, without a file of this size. Any thread, no I/O. */
bool renames_may_have(struct renames *r, uint64_t size_bytes);

/* Fills `out` with files of this size, the likeliest first: with the same time and name, then with either, and with
 * `large` any others (a few blocks tell a different content). 1: the list is incomplete, call this again. I/O threads,
 * one at a time. */
int renames_find(struct renames *r, uint64_t size_bytes, const struct timespec *mtime, const char *name, bool large,
    struct renamed out[RENAMES_FOUND], unsigned *n);

/* Opens the file for reading; -1 with errno. Any thread. */
int renames_open(struct renames *r, struct renamed file);

#endif
