#include "server/spare_memory.h"

#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "core/memory_budget.h"

#define PEAK_MIN_BYTES (MEMORY_SESSION_BYTES * 4) /* less is not worth the page faults of the next use */

static void return_memory(struct io_job *job)
{
	struct spare_memory *m = CONTAINER_OF(job, struct spare_memory, job);

#ifdef __GLIBC__ /* musl returns free memory by itself */
	malloc_trim(0);
#endif
	atomic_store(&m->returning, false);
}

void spare_memory_check(struct spare_memory *m, uint64_t used_bytes, struct io *io)
{
	if (used_bytes > m->peak_bytes)
		m->peak_bytes = used_bytes;
	if (m->peak_bytes < PEAK_MIN_BYTES || used_bytes > m->peak_bytes / 2)
		m->low = false;
	else if (!m->low)
		m->low = true;
	else if (!atomic_exchange(&m->returning, true)) {
		m->peak_bytes = used_bytes;
		m->low = false;
		m->job.run = return_memory;
		io_submit(io, &m->job);
	}
}
