/* Names of any bytes, shown safely. */
#ifndef CORE_TEXT_H
#define CORE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* `name` with control bytes, DEL, backslash and bytes that are not valid UTF-8
 * written as \ooo or \\, cut with ".." where `cap` (at least 8) is too small.
 * Returns `out`. Never lets a name reach a terminal, log or line raw. */
const char *text_escape(char *out, size_t cap, const char *name);

#define TEXT_NAME_BYTES 320

/* The same for a value between double quotes, as logs have it: '"' is escaped, too. */
const char *text_escape_quoted(char *out, size_t cap, const char *name);

/* One component of a path as a peer may name it: 1 to 255 bytes, no '/' and no
 * NUL among its n bytes, neither "." nor "..". */
bool text_name_ok(const char *name, size_t n);

/* Decodes %XX; false for a malformed escape, %00, or what does not fit into `cap` with its NUL. `out`
 * is then undefined. */
bool text_unpercent(char *out, size_t cap, const char *text);

#endif
