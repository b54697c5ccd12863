/* Lines of digests, as sha256sum(1) writes and reads them. */
#ifndef CLI_SUM_LINES_H
#define CLI_SUM_LINES_H

#include <ptcp/ptcp.h>
#include <stdio.h>

/* One digest: "DIGITS  PATH"; several: a line "SHA256 (PATH) = DIGITS" for each. A backslash before the line says that
 * the path has some in place of a line feed, a carriage return, and itself. */
void sum_print(FILE *to, const char *path, const struct ptcp_file_digest *digest, unsigned n);
/* An object with the digits by name; to be released. */
struct json_t *sum_object(const struct ptcp_file_digest *digest, unsigned n);
/* A line of JSON. */
void sum_json(const struct ptcp_entry *entry);

#endif
