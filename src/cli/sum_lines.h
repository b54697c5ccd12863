/* Digests of files in JSON. */
#ifndef CLI_SUM_LINES_H
#define CLI_SUM_LINES_H

#include <ptcp/ptcp.h>

/* An object with the digits by name; to be released. */
struct json_t *sum_object(const struct ptcp_file_digest *digest, unsigned n);
/* A line of JSON. */
void sum_json(const struct ptcp_entry *entry);

#endif
