/* Which files blocks may be written to right now: set by the control thread, looked up by the
 * workers. One short lock, some 30 ns a block: ids come from the peer, so a look-up must be sure of
 * what it finds, and a file must not go while it is written to. */
#ifndef LIB_INTAKE_H
#define LIB_INTAKE_H

#include <pthread.h>

#include "store/sink.h"
#include "wire/frame.h"

struct intake {
	pthread_mutex_t lock;
	struct {
		uint64_t id; /* 0: nothing */
		struct sink *sink;
		uint64_t size_bytes;
	} slot[WIRE_SLOTS];
};

void intake_init(struct intake *t);
void intake_fini(struct intake *t);
void intake_set(struct intake *t, uint64_t id, struct sink *sink, uint64_t size_bytes);
void intake_clear(struct intake *t, uint64_t id);
/* The sink a block is for, held for the caller, and the block's index; NULL when there is no such
 * file (any more): the block is to be dropped. *ok false: the block does not fit the file's grid. */
struct sink *intake_find(struct intake *t, const struct wire_block *b, uint32_t *index, bool *ok);

#endif
