/* Files of trust, line by line: known_hosts, authorized_clients, revoked, certificates. Refuses a file of another user
 * than the caller or root, and a file writable or replaceable by other users. Any thread. */
#ifndef NET_TRUST_LINES_H
#define NET_TRUST_LINES_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

#include "core/err.h"
#include "core/userdir.h"

#define TRUST_PATH_BYTES (USERDIR_BYTES + 64)

/* Replaces a NUL, since a NUL would end the line early and cut off restrictions of a client. */
#define TRUST_NUL_MARK '\1'

struct trust_lines {
	FILE *f;
	const char *name;
	char *line;
	size_t cap;
	unsigned n; /* number of the line */
};

/* The path of the file `name` of the configuration directory, `dir` as for userdir_config(). */
int trust_path(char out[TRUST_PATH_BYTES], const char *dir, const char *name, struct ptcp_err *e);
/* 1; 0: the file does not exist; PTCP_ECONFIG: it cannot be read or trusted. `name` is borrowed. */
int trust_lines_open(struct trust_lines *l, const char *dir, const char *name, struct ptcp_err *e);
/* The next line, whole, in l->line. */
bool trust_lines_raw(struct trust_lines *l);
/* The first word of the next line with any words, and the rest of the line. */
bool trust_lines_next(struct trust_lines *l, char **first, char **rest);
/* Whether a line of the file begins with the word; or PTCP_ECONFIG. */
int trust_lines_have(const char *dir, const char *name, const char *first, struct ptcp_err *e);
/* Splits off the next word of a line; NULL at the end, and at a comment. */
char *trust_word(char **line);
/* Returns r, or PTCP_ECONFIG if a part of the file could not be read. */
int trust_lines_close(struct trust_lines *l, int r, struct ptcp_err *e);

/* Atomically removes the lines beginning with the words of `what` or `also` (NULL: none) and appends `line` (NULL:
 * none), under a lock. Returns whether it removed a line, or PTCP_ECONFIG. */
int trust_lines_replace(const char *dir, const char *name, const char *what, const char *also, const char *line,
    struct ptcp_err *e);

/* Whether the last line lacks its newline, as after editing by hand. */
bool trust_ends_in_line(int fd);

/* Identifies a version of a file; zeroed: no file. */
struct trust_stamp {
	bool exists;
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec changed;
};
/* Whether the file was changed, created or removed since the last call. One stat(2). */
bool trust_changed(const char *dir, const char *name, struct trust_stamp *last);

#endif
