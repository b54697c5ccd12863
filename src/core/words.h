/* Words of a command line, as a shell would take them apart that knows nothing but quotes. */
#ifndef CORE_WORDS_H
#define CORE_WORDS_H

#include <stdbool.h>

/* Takes the next word of *text out of its quotes (' or " or \ before a character), with a NUL behind it, to where *to
 * points, and moves both on; NULL when there is none. All words of a text need no more room than the text and two bytes.
 * *ok false: a quote is left open. */
char *words_next(const char **text, char **to, bool *ok);

#endif
