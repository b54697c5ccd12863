/* Small files share a job of an I/O thread when compared: handing over a job takes longer than reading a small file.
 * A large file ends its job, for other work to run between two steps. */
#ifndef SESSION_JOB_SIZE_H
#define SESSION_JOB_SIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/parameters.h"

struct job_size {
	unsigned files;
	uint64_t bytes;
};

static inline bool job_full(const struct job_size *s)
{
	return s->files >= COMPARISON_JOB_FILES || s->bytes >= COMPARISON_JOB_BYTES;
}

static inline void job_add(struct job_size *s, uint64_t file_bytes)
{
	s->files++;
	s->bytes += file_bytes < COMPARISON_JOB_BYTES ? file_bytes : COMPARISON_JOB_BYTES;
}

#endif
