/* Remedies for options and commands that do not exist: the spelling of ptcp for a habit from scp, rsync, rclone or
 * bbcp, else the nearest known word. Pure. */
#ifndef CLI_SUGGEST_H
#define CLI_SUGGEST_H

#include <stddef.h>

struct suggest {
	const char *text; /* the unknown word, n bytes */
	size_t n;
	const char *best; /* the nearest word offered so far, or NULL */
	unsigned distance;
};

/* `text` must outlive *s. */
void suggest_init(struct suggest *s, const char *text, size_t n);
/* A known word, which must outlive *s. Words too different from the text are not taken: an edit is an inserted, deleted
 * or replaced character or a swap of two; a third of the text, at least one character, may differ. A text of three or
 * more characters also stands for the words that it begins. */
void suggest_offer(struct suggest *s, const char *word);

/* The remedy for an option of other programs: a long option of n bytes, or, with `letter` not 0, a short one; NULL for
 * an unknown habit. */
const char *suggest_option(const char *name, size_t n, char letter);
/* The remedy for a command of other programs, or NULL. */
const char *suggest_command(const char *name);

#endif
