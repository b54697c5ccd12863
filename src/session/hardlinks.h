/* Files with several names: the first is sent as a file, the others as links to the first. Control thread. */
#ifndef SESSION_HARDLINKS_H
#define SESSION_HARDLINKS_H

#include <stdbool.h>
#include <stdint.h>

struct hardlink {
	struct hardlink *next;
	uint64_t dev, ino;
	uint64_t id;          /* the engine's, of the name sent as a file */
	bool failed;          /* that name failed; the next is sent as a file */
	char *path;           /* of that name, at the destination */
};

#define HARDLINKS_MAX_BYTES (32u << 20) /* beyond this limit, all names are sent as files */

struct hardlinks {
	struct hardlink **bucket;
	uint64_t bytes;
};

void hardlinks_fini(struct hardlinks *t); /* zeroed is fine */
struct hardlink *hardlinks_find(const struct hardlinks *t, uint64_t dev, uint64_t ino);
/* Adds a file that hardlinks_find() did not find; NULL: limit reached or out of memory. */
struct hardlink *hardlinks_add(struct hardlinks *t, uint64_t dev, uint64_t ino);
/* False: limit reached or out of memory. */
bool hardlinks_set_path(struct hardlinks *t, struct hardlink *l, const char *path);

#endif
