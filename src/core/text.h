/* Text: escaping of names, words of a command line. Any thread. */
#ifndef CORE_TEXT_H
#define CORE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies `name` with control bytes, DEL, backslash and invalid UTF-8 written as \ooo or \\, cut with ".."
 * where `cap` (at least 8) is too small. Returns `out`. Every name shown on a terminal, in a log or in a line
 * passes through here. */
const char *text_escape(char *out, size_t cap, const char *name);

#define TEXT_NAME_BYTES 320

/* As text_escape(), for a value between double quotes (logs): '"' is escaped as well. */
const char *text_escape_quoted(char *out, size_t cap, const char *name);

/* Whether the text is one word of printable ASCII characters. */
bool text_is_word(const char *text);
/* Whether an operand stands for standard input or output. */
bool text_is_stdio(const char *path);
/* Whether a path, as written, means the content of a directory: it ends with "/", ".", or "..". */
bool text_is_contents(const char *path);
/* Whether the n bytes are one path component: 1 to 255 bytes without '/' or NUL, neither "." nor "..". */
bool text_name_ok(const char *name, size_t n);

/* Copies `text` with letters of the Latin, Greek, Cyrillic and Armenian scripts in one case, for comparisons as file
 * systems make them that ignore case; other bytes stay. No NUL is written. Returns the length, at most that of
 * `text`. */
size_t text_fold(char *out, const char *text);

/* Writes n bytes as 2n hexadecimal digits, in lower case, and a NUL. */
void text_hex(char *out, const uint8_t *p, size_t n);

/* Decodes %XX. False, with `out` undefined, for a malformed escape, %00, or a result longer than `cap` with
 * its NUL. */
bool text_percent_decode(char *out, size_t cap, const char *text);

/* Writes `text`, a NUL behind it, with %XX for all bytes but letters, digits and "/._-~"; `out` has 3 times its length
 * and one byte. Returns the end. */
char *text_percent_encode(char *out, const char *text);

/* Splits a command line into words; of the shell's syntax only quotes (', ", and \ before a character) are
 * known. Copies the next word of *text, unquoted and with a NUL, to *to and advances both; NULL at the end.
 * All words of a text fit into its length plus two bytes. *ok false: an unclosed quote. */
char *text_next_word(const char **text, char **to, bool *ok);

/* Copies `text` with every `mark` (not empty) replaced by `by`, which is not expanded again. False, with `out`
 * undefined, where `cap` is too small. */
bool text_substitute(char *out, size_t cap, const char *text, const char *mark, const char *by);

#endif
