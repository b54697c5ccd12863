/* Rules about what exists at the destination: one pure function says of each entry whether to receive it. Every place
 * that keeps, compares or replaces an existing entry asks this function. */
#ifndef STORE_RULES_H
#define STORE_RULES_H

#include <ptcp/err.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "core/open_bits.h"

enum rule { /* flags of OPEN */
	RULE_IGNORE_EXISTING = 1 << OPEN_BIT_IGNORE_EXISTING,
	RULE_EXCLUSIVE = 1 << OPEN_BIT_EXCLUSIVE,       /* a name that exists is refused */
	RULE_EXISTING = 1 << OPEN_BIT_EXISTING,         /* a missing name stays missing */
	RULE_UPDATE = 1 << OPEN_BIT_UPDATE,             /* a newer file stays */
	RULE_SIZE_ONLY = 1 << OPEN_BIT_SIZE_ONLY,       /* a file of the same size stays, and gets attributes */
	RULE_CHECKSUM = 1 << OPEN_BIT_CHECKSUM,         /* a file of the same size is compared, whatever its time */
	RULE_IGNORE_TIMES = 1 << OPEN_BIT_IGNORE_TIMES, /* nothing is compared, */
	RULE_NO_RESUME = 1 << OPEN_BIT_NO_RESUME,       /* no part of an earlier run is used */
	RULES_ABSENT_OR_KEPT = RULE_IGNORE_EXISTING | RULE_EXISTING | RULE_UPDATE | RULE_SIZE_ONLY,
	RULES_ALL = RULES_ABSENT_OR_KEPT | RULE_EXCLUSIVE | RULE_CHECKSUM | RULE_IGNORE_TIMES | RULE_NO_RESUME
};

struct store_rules {
	uint32_t flags;  /* flags, see enum rule */
	bool write_once; /* nothing that exists is replaced or compared */
	bool reads;      /* size and time prove nothing: every file that may be the same is compared */
	uint32_t window_s; /* times whose seconds differ by no more are equal; 0: by the nanosecond */
};

/* Whatever exists is replaced: nothing needs to be examined. */
static inline bool rules_ask_nothing(const struct store_rules *r)
{
	return (r->flags & (RULES_ABSENT_OR_KEPT | RULE_EXCLUSIVE | RULE_NO_RESUME)) == RULE_NO_RESUME &&
	    !r->write_once;
}

enum rules_type {
	RULES_NOTHING,
	RULES_FILE,
	RULES_SYMLINK,
	RULES_HARDLINK, /* offered only: a further name of a file of the transfer */
	RULES_DIR,
	RULES_SPECIAL   /* a device, FIFO or socket; exists only */
};

struct rules_entry {
	enum rules_type type;
	uint64_t size_bytes; /* a file's */
	struct timespec mtime;
	/* What exists is known to be the entry: a symbolic link to the same target, another name of the same file, or,
	 * with write_once, the file that this client has added. */
	bool same;
	/* Offered: the file system cannot store the time of the source, so an existing file's time says nothing. */
	bool timeless;
};

enum rules_answer {
	RULES_RECEIVE, /* the entry takes the place of what exists, if anything does */
	RULES_UNCHANGED, /* size and time are the source's: the file counts as the entry, and gets its attributes */
	RULES_COMPARE, /* as RULES_RECEIVE, unless both files have the same content */
	RULES_SAME,    /* what exists counts as the entry */
	RULES_KEEP,    /* what exists, or does not exist, stays as it is */
	RULES_REFUSE
};

/* Whether the times are equal by these rules. */
bool rules_same_time(const struct store_rules *r, struct timespec a, struct timespec b);

enum rules_answer rules_judge(const struct store_rules *r, const struct rules_entry *offered,
    const struct rules_entry *there);

/* A version of a file, the only one that a transfer replaces. */
struct store_match {
	bool set;            /* false: any */
	uint64_t size_bytes;
	struct timespec mtime;
};
/* "SIZE@SECONDS.NNNNNNNNN", with the time of change; the seconds may be negative. PTCP_EUSAGE. */
int store_match_parse(struct store_match *out, const char *text, struct ptcp_err *e);
/* Whether lstat() has found this version: a regular file. */
bool store_match_is(const struct store_match *m, const struct stat *st);

/* What lstat() has found. */
struct rules_entry rules_entry_of(const struct stat *st);

#endif
