/* Receiver: the place of each file or symbolic link of the session to which hard links may follow. A hard link names
 * its file by id only, so a sender reaches no other file of this host. Control thread. */
#ifndef ENGINE_LINKED_FILES_H
#define ENGINE_LINKED_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"

struct linked_file {
	struct linked_file *next;
	uint64_t id;       /* the engine's */
	bool is_symlink;
	uint64_t dev, ino, size_bytes;
	char path[];       /* below the destination */
};

/* The engine limits the number of records (WIRE_LINKED_MAX_BYTES). */
struct linked_files { /* zeroed, with the arena's account: empty */
	struct linked_file **bucket;
	struct arena records;
};

void linked_files_fini(struct linked_files *t);
/* NULL: no such file. */
const struct linked_file *linked_files_find(const struct linked_files *t, uint64_t id);
/* Adds a copy. Ids are unique in a session. False: out of memory. */
bool linked_files_add(struct linked_files *t, const struct linked_file *f, const char *path);

#endif
