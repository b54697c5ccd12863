/* The digest of a source: file_digest_next(). */
#include "core/bitmap.h"
#include "store/source.h"

struct digest_reader {
	const struct file_digest *sum;
	struct source *source;
};

static int read_block(void *arg, void *buf, uint32_t n, uint64_t off, struct ptcp_err *e)
{
	const struct digest_reader *d = arg;

	if (d->sum->holes != NULL && bitmap_has(d->sum->holes, d->sum->next))
		return 1;
	return source_read(d->source, buf, n, off, true, e);
}

int file_digest_next(struct file_digest *sum, struct source *s, struct ptcp_err *e)
{
	int r = file_digest_step(sum, source_size_bytes(s), read_block, &(struct digest_reader){ sum, s }, e);

	return r == 0 ? source_check(s, e) : r;
}
