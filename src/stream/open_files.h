/* Files that blocks may be written to: set by the control thread, looked up by the workers. A short lock, about 30 ns
 * a block: the peer chooses the ids, so a look-up must be exact, and a file must stay open during a write. */
#ifndef STREAM_OPEN_FILES_H
#define STREAM_OPEN_FILES_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/clock.h"
#include "store/sink.h"
#include "wire/block.h"

struct open_files {
	pthread_mutex_t lock;
	atomic_bool slow;    /* the last write took long: make the next one on an I/O thread */
	atomic_uint watched; /* number of writes to examine, after a long one */
	struct {
		uint64_t id; /* 0: free */
		struct sink *sink;
		struct wire_grid grid;
		/* control thread: written since the last sync, and time of the first such block */
		uint64_t unsynced_bytes;
		struct mono since;
	} slot[WIRE_SLOTS];
};

void open_files_init(struct open_files *t);
void open_files_fini(struct open_files *t);
void open_files_set(struct open_files *t, uint64_t id, struct sink *sink, struct wire_grid grid);
void open_files_clear(struct open_files *t, uint64_t id);
/* The sink of a frame's data (a reference for the caller) and the position of the data; NULL: no such file is open,
 * discard the data. *ok false: the frame does not fit the grid of the file, or the window of its pipe. Any thread. */
struct sink *open_files_find(struct open_files *t, const struct wire_block *b, struct wire_chunk *c, bool *ok);

/* Control thread: counts a written block. If the file, one with a journal, now has `bytes` unsynced bytes, or any for
 * `ns`, and `sync` is set, restarts the count and returns the sink (a reference for the caller); otherwise NULL. */
struct sink *open_files_wrote(struct open_files *t, uint64_t id, uint32_t block, bool sync, uint64_t bytes,
    uint64_t ns, struct mono now);
/* Control thread: the sink of an open file (a reference for the caller), and its grid unless NULL; NULL: not open. */
struct sink *open_files_get(struct open_files *t, uint64_t id, struct wire_grid *grid);
/* Control thread: true if the part with that inode belongs to an open file. */
bool open_files_contains(const struct open_files *t, uint64_t dev, uint64_t ino);

#endif
