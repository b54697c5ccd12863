/* Files that have several names: the first is sent, the others are links to it. Control thread. */
#ifndef SESSION_HARDLINKS_H
#define SESSION_HARDLINKS_H

#include <stdbool.h>
#include <stdint.h>

/* What is remembered of one such file. */
struct link {
	struct link *next;
	uint64_t dev, ino;
	uint64_t id;          /* the engine's, of the name it is sent under */
	bool failed;          /* that one has; the next is sent */
	char *path;           /* and its path at the destination */
};

#define LINKS_MAX_BYTES (32u << 20) /* beyond, other names are sent as files */

struct hardlinks {
	struct link **bucket;
	uint64_t n, n_buckets, bytes;
};

void hardlinks_fini(struct hardlinks *t); /* zeroed is fine */

/* The file, or NULL. */
struct link *hardlinks_find(const struct hardlinks *t, uint64_t dev, uint64_t ino);
/* Remembers one that is not there; NULL: no room or memory, it will not be found. */
struct link *hardlinks_add(struct hardlinks *t, uint64_t dev, uint64_t ino);
/* Sets where it is sent to; false without room or memory. */
bool hardlinks_set_path(struct hardlinks *t, struct link *l, const char *path);

#endif
