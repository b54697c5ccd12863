/* Command lines of other programs: ptcp rsync and ptcp scp take the options of rsync and scp, and run ptcp send, recv
 * or ls with options of the same effect. An option without an equal is refused by a sentence, never ignored. The
 * tables are also the hints for users who type such an option to ptcp send. */
#ifndef CLI_HABIT_HABIT_H
#define CLI_HABIT_HABIT_H

#include <limits.h>

#include "cli/options.h"

/* Attributes to preserve. */
enum {
	HABIT_TIMES = 1, HABIT_MODE = 2, HABIT_LINKS = 4, HABIT_USER = 8, HABIT_GROUP = 16, HABIT_XATTR = 32,
	HABIT_ACL = 64, HABIT_SETID = 128,
};

/* A command line, as far as translated. */
struct habit {
	const char *name;    /* "rsync" */
	const char *const *arg; /* options for ptcp, owned */
	size_t n;
	unsigned preserved;  /* HABIT_TIMES .. */
	bool recursive, lists, quiet, shows, deletes, mkpath;
	char ssh[1024];      /* scp, sftp: the command with its options; "": ssh */
};

/* Appends an option, formatted. */
int habit_add(struct habit *p, struct ptcp_err *e, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Setters of rows; `args` is a struct habit. The help of a row is a hint, "" for an option of ptcp with the same name.
 * opt_ignore() is for an option without which the result is the same. This is for the same option: */
int habit_same(void *args, const struct opt *o, const char *text, struct ptcp_err *e);
/* The option at the start of the hint. */
int habit_as(void *args, const struct opt *o, const char *text, struct ptcp_err *e);
/* No option of ptcp has the effect. */
int habit_refuse(void *args, const struct opt *o, const char *text, struct ptcp_err *e);
/* Preserve, or do not preserve, the attributes o->at. */
int habit_keep(void *args, const struct opt *o, const char *text, struct ptcp_err *e);
int habit_drop(void *args, const struct opt *o, const char *text, struct ptcp_err *e);

/* Appends an option of ssh to the command that --ssh gets. */
int habit_ssh(void *args, const struct opt *o, const char *text, struct ptcp_err *e);
int habit_ssh_batch(void *args, const struct opt *o, const char *text, struct ptcp_err *e);

/* Appends --preserve. */
int habit_add_preserved(struct habit *p, struct ptcp_err *e);

/* The direction. PTCP_EUSAGE for operands between which no command of ptcp copies. */
enum habit_way { HABIT_SENDS, HABIT_RECEIVES };
int habit_way(const struct habit *p, char **operand, int n, enum habit_way *way, struct ptcp_err *e);

/* Runs `c` with the options and the operands; returns the exit status. */
int habit_run(struct habit *p, const struct command *c, char **operand, int n);

/* The options of scp and rsync, as groups of hints. */
extern const struct opt scp_options[], rsync_preserving[], rsync_selecting[], rsync_replacing[], rsync_carrying[],
    rsync_showing[];
#define GROUPS_OF_HINTS \
	GROUP_HINTS(scp_options), GROUP_HINTS(rsync_preserving), GROUP_HINTS(rsync_selecting), \
	GROUP_HINTS(rsync_replacing), GROUP_HINTS(rsync_carrying), GROUP_HINTS(rsync_showing)

#endif
