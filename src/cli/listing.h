/* One line per file, "ACTION BYTES PATH", on standard output: as the files finish, or sorted by path at the end. */
#ifndef CLI_LISTING_H
#define CLI_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct listing_line {
	const char *action; /* static */
	uint64_t bytes;
	char *path;
};

struct listing {
	struct listing_line *line;
	size_t n, room;
};

/* Prints a line. `path` is raw; `bytes` of UINT64_MAX is shown as -. */
void listing_print(const char *action, uint64_t bytes, const char *path);
/* The same later, by listing_end(); without memory at once. */
void listing_add(struct listing *l, const char *action, uint64_t bytes, const char *path);
/* Prints the lines in the order of their paths' bytes, and empties the listing. */
void listing_end(struct listing *l);

#endif
