/* Which files blocks may be written to right now: set by the control thread, looked up by the
 * workers. One short lock, some 30 ns a block: ids come from the peer, so a look-up must be sure of
 * what it finds, and a file must not go while it is written to. */
#ifndef SESSION_OPEN_FILES_H
#define SESSION_OPEN_FILES_H

#include <pthread.h>

#include "core/clock.h"
#include "store/sink.h"
#include "wire/frame.h"

struct open_files {
	pthread_mutex_t lock;
	struct {
		uint64_t id; /* 0: nothing */
		struct sink *sink;
		uint64_t size_bytes;
		/* control thread: written since it was last made durable, and since when */
		uint64_t unsynced_bytes;
		struct mono since;
	} slot[WIRE_SLOTS];
};

void open_files_init(struct open_files *t);
void open_files_fini(struct open_files *t);
void open_files_set(struct open_files *t, uint64_t id, struct sink *sink, uint64_t size_bytes);
/* A block was written. Control thread. */
void open_files_wrote(struct open_files *t, uint64_t id, uint32_t block, struct mono now);
/* A file that was just written to: its sink, held for the caller, if it is time to make durable what so many
 * bytes or that much time brought, which counts from now anew; else NULL. Control thread. */
struct sink *open_files_due(struct open_files *t, uint64_t id, uint64_t bytes, uint64_t ns, struct mono now);
void open_files_clear(struct open_files *t, uint64_t id);
/* The sink a block is for, held for the caller, and the block's index; NULL when there is no such
 * file (any more): the block is to be dropped. *ok false: the block does not fit the file's grid. */
struct sink *open_files_find(struct open_files *t, const struct wire_block *b, uint32_t *index, bool *ok);

/* Whether one of the files is received into that part. Control thread. */
bool open_files_holds(const struct open_files *t, uint64_t dev, uint64_t ino);

#endif
