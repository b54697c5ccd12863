/* Files of another host, or ranges of their bytes, written to a stream. */
#ifndef CLI_READ_PARTS_H
#define CLI_READ_PARTS_H

#include <ptcp/ptcp.h>
#include <stdio.h>

/* Ranges of bytes as a user writes them; zeros: the whole file. */
struct byte_ranges {
	struct ptcp_range *range; /* on the heap */
	size_t n;
};

/* "0-499,1000-,-20": the first 500 bytes, those from 1000 on, the last 20. A sentence without the text on failure. */
int parts_parse(struct byte_ranges *out, const char *text, struct ptcp_err *e);
void parts_fini(struct byte_ranges *p); /* zeros are fine */

/* Writes the ranges of the file at `url`, one after the other, to `to`, and adds their bytes to *bytes. `to` NULL:
 * prints events "data" of JSON. */
int parts_read(const struct ptcp_transfer_opts *o, const char *url, const struct byte_ranges *p, FILE *to,
    uint64_t *bytes, struct ptcp_err *e);
/* The same to a new file at `path`, or in the directory `path` under the last name of the URL, that appears once it is
 * complete; "-": standard output. */
int parts_read_to(const struct ptcp_transfer_opts *o, const char *url, const struct byte_ranges *p, const char *path,
    uint64_t *bytes, struct ptcp_err *e);

#endif
