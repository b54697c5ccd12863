/* Lines of ptcp batch, written as for sftp. */
#ifndef INPUT_COMMAND_LINES_H
#define INPUT_COMMAND_LINES_H

#include <ptcp/err.h>
#include <stdbool.h>
#include <stddef.h>

#define LINE_MAX_BYTES 65536

/* Reads lines from a descriptor, which it borrows. */
struct command_lines {
	int fd;
	bool (*stopping)(void); /* whether a signal has ended the program */
	unsigned long number;   /* number of the last line, from 1 on */
	char *buf;
	size_t start, end;      /* bytes read beyond the last line */
	bool ended;
};

/* Returns the next line without its newline, valid until the next call; NULL at the end of input and after a signal,
 * with *e untouched, or with a negative PTCP_E* in e->code: reading failed, or a line has a NUL byte or more than
 * LINE_MAX_BYTES. */
char *line_next(struct command_lines *r, struct ptcp_err *e);
void command_lines_fini(struct command_lines *r);

/* The words of a line, which blanks separate. Quotation marks of both kinds join words, and a backslash quotes the next
 * character. Each word is a pattern, in which a backslash precedes quoted wildcards. */
struct line_words {
	char **word; /* ended by NULL */
	size_t n;    /* 0: an empty line, or a comment behind # */
	char *text;    /* memory of the words */
	bool may_fail; /* the line begins with - */
};
/* PTCP_EUSAGE: a quotation mark is missing. Call line_words_fini() after any result. */
int line_split(struct line_words *out, const char *line, struct ptcp_err *e);
void line_words_fini(struct line_words *w);

/* Translates a word for a server, which takes backslashes in a name without wildcards as they are. The caller frees the
 * result; NULL: no memory. */
char *line_pattern(const char *word);
/* Removes the backslashes of quoted characters, in place. */
void line_plain(char *word);

#endif
