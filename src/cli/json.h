/* What all JSON output shares. ASCII only: other characters are \u escapes, so that no name
 * can do anything to a terminal, a log or a reader in another encoding. */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <jansson.h>
#include <stdint.h>

/* One object, one line on stdout, flushed. Takes the object. NULL is what jansson gives
 * without memory: then, or when writing fails, the line is lost and -1 returned. */
int json_line(json_t *object);

/* An integer; what JSON readers cannot hold is the largest they can. */
json_t *json_count(uint64_t v);

/* `list` if it has so many members; else memory has failed: the list is freed and NULL
 * returned, so that no part of a list passes for the whole. */
json_t *json_whole(json_t *list, size_t members);

/* A rate in bit/s, whole; seconds to the microsecond, null for less than 0, which means not known. */
json_t *json_rate(double bps);
json_t *json_seconds(double s);
/* A text as it is; escaped where it is not UTF-8; null for NULL. */
json_t *json_text(const char *s);

#endif
