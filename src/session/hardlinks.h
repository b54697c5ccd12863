/* Sender: files and symbolic links with several names; further names are sent as hard links to the first. Control
 * thread. */
#ifndef SESSION_HARDLINKS_H
#define SESSION_HARDLINKS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"

struct hardlink {
	struct hardlink *next;
	uint64_t dev, ino;
	uint64_t id;          /* the engine's, of the first name */
	bool failed;          /* the first name failed; another name takes its place */
	uint64_t failed_id;   /* the engine's, of the name that failed last; 0: none */
};

/* snd_may_link() limits the number of records. */
struct hardlinks { /* zeroed, with the arena's account: empty */
	struct hardlink **bucket;
	struct arena records;
};

void hardlinks_fini(struct hardlinks *t);
struct hardlink *hardlinks_find(const struct hardlinks *t, uint64_t dev, uint64_t ino);
/* Adds an inode that hardlinks_find() did not find; NULL: see memory_charge(). */
struct hardlink *hardlinks_add(struct hardlinks *t, uint64_t dev, uint64_t ino, struct ptcp_err *e);

#endif
