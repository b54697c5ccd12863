/* Digests that users ask for (sums/sums.h), of files read from front to back, one after the other, in steps between
 * which the caller may stop. One thread at a time; blocks on disk. */
#ifndef STORE_FILE_SUMS_H
#define STORE_FILE_SUMS_H

#include "core/memory_budget.h"
#include "store/source.h"
#include "sums/sums.h"

enum { FILE_SUMS_STEP_BYTES = 4 << 20 }; /* a few ms for a digest */

struct file_sums;

/* `memory`: account for the buffer; NULL: no limit. PTCP_EUSAGE as sums_new(). */
int file_sums_new(struct file_sums **out, unsigned digests, struct memory_account *memory, struct ptcp_err *e);
void file_sums_free(struct file_sums *f); /* NULL is fine */
/* Begins with n bytes at `from`, as many as the file has; refers to the source. Forgets the file before. */
int file_sums_begin(struct file_sums *f, struct source *s, uint64_t from, uint64_t n, struct ptcp_err *e);
/* Reads up to *room bytes, and lowers *room by their number. 1: more are left; 0: file_sums_end() has the digests, of
 * bytes of one version of the file; or fails as source_read(). */
int file_sums_step(struct file_sums *f, uint64_t *room, struct ptcp_err *e);
/* Once after the last step: sums_end(). */
size_t file_sums_end(struct file_sums *f, uint8_t out[SUMS_BYTES_MAX]);
/* The file; NULL: none is begun. */
struct source *file_sums_source(const struct file_sums *f);

#endif
