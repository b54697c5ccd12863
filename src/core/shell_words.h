/* Words of a command line, as a shell would take them apart that knows nothing but quotes. */
#ifndef CORE_SHELL_WORDS_H
#define CORE_SHELL_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* Takes the next word of *text out of its quotes (' or " or \ before a character), with a NUL behind it, to where *to
 * points, and moves both on; NULL when there is none. All words of a text need no more room than the text and two bytes.
 * *ok false: a quote is left open. */
char *shell_words_next(const char **text, char **to, bool *ok);

/* The text with `by` for each `mark` in it (not empty), and its NUL; what `by` holds is not looked at again. False where
 * `cap` is too small, with `out` undefined. */
bool shell_words_fill(char *out, size_t cap, const char *text, const char *mark, const char *by);

#endif
