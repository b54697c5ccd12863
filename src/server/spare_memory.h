/* Memory that clients have released, returned to the system: malloc(3) keeps freed memory for later, so a server that
 * was once flooded would stay large. Control thread. */
#ifndef SERVER_SPARE_MEMORY_H
#define SERVER_SPARE_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/list.h"
#include "fs/io.h"

struct spare_memory { /* zeroed: nothing was in use */
	uint64_t peak_bytes;  /* peak of the use, since memory was last returned */
	bool low;             /* the latest call found at most half of the peak in use */
	atomic_bool returning;
	struct io_job job;
};

/* To be called regularly with the memory in use. After two calls that find at most half of the peak in use, an I/O
 * thread returns the rest: this takes milliseconds, in which threads that allocate may wait. `m` outlives the
 * threads. */
void spare_memory_check(struct spare_memory *m, uint64_t used_bytes, struct io *io);

#endif
