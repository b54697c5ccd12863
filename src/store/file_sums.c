#include "store/file_sums.h"

#include <stdlib.h>

enum { BUFFER_BYTES = 256 << 10 }; /* stays in the cache for the second digest */

struct file_sums {
	unsigned digests;
	struct memory_account *memory;
	struct source *source;
	struct sums *sums;
	uint64_t at, left;
	uint8_t buffer[BUFFER_BYTES];
};

static void forget(struct file_sums *f)
{
	source_unref(f->source);
	f->source = NULL;
	sums_free(f->sums);
	f->sums = NULL;
}

int file_sums_new(struct file_sums **out, unsigned digests, struct memory_account *memory, struct ptcp_err *e)
{
	struct file_sums *f;
	int r;

	if ((r = memory_charge(memory, sizeof *f, e)) < 0)
		return r;
	if ((f = malloc(sizeof *f)) == NULL) {
		memory_release(memory, sizeof *f);
		return err_nomem(e);
	}
	f->digests = digests;
	f->memory = memory;
	f->source = NULL;
	f->sums = NULL;
	if ((r = sums_new(&f->sums, digests, e)) < 0) { /* tells of a digest that OpenSSL does not offer */
		file_sums_free(f);
		return r;
	}
	*out = f;
	return 0;
}

void file_sums_free(struct file_sums *f)
{
	if (f == NULL)
		return;
	forget(f);
	memory_release(f->memory, sizeof *f);
	free(f);
}

int file_sums_begin(struct file_sums *f, struct source *s, uint64_t from, uint64_t n, struct ptcp_err *e)
{
	int r;

	forget(f);
	if ((r = sums_new(&f->sums, f->digests, e)) < 0)
		return r;
	f->source = source_ref(s);
	f->at = from;
	f->left = n;
	return 0;
}

int file_sums_step(struct file_sums *f, uint64_t *room, struct ptcp_err *e)
{
	uint64_t n;
	int r = 0;

	while (f->left > 0 && *room > 0) {
		n = f->left < BUFFER_BYTES ? f->left : BUFFER_BYTES;
		n = n < *room ? n : *room;
		if ((r = source_read(f->source, f->buffer, (size_t)n, f->at, true, e)) < 0)
			return r;
		sums_add(f->sums, f->buffer, (size_t)n);
		f->at += n;
		f->left -= n;
		*room -= n;
	}
	if (f->left > 0)
		return 1;
	return (r = source_check(f->source, e)) < 0 ? r : 0;
}

size_t file_sums_end(struct file_sums *f, uint8_t out[SUMS_BYTES_MAX])
{
	size_t n = sums_end(f->sums, out);

	forget(f);
	return n;
}

struct source *file_sums_source(const struct file_sums *f) { return f->source; }
