/* Verifying the files of an earlier run: sink_verify_next(), sink_same_next(). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/bitmap.h"
#include "core/sorted.h"
#include "fs/file_system.h"
#include "fs/fs_err.h"
#include "store/hash.h"
#include "store/sink_impl.h"

#define ZEROS_BYTES 65536

/* ---- Blocks ---- */

uint32_t sink_block_length(const struct sink *s, uint32_t block)
{
	uint64_t left = s->size_bytes - (uint64_t)block * s->opts.block_bytes;

	return left < s->opts.block_bytes ? (uint32_t)left : s->opts.block_bytes;
}

/* For file systems without holes. */
static int write_zeros(struct sink *s, int fd, uint64_t off, uint64_t n, struct ptcp_err *e)
{
	static const uint8_t zeros[ZEROS_BYTES];
	size_t step;
	int sys;

	for (; n > 0; n -= step, off += step) {
		step = n < sizeof zeros ? (size_t)n : sizeof zeros;
		if ((sys = sink_put(s, fd, zeros, step, off)) != 0)
			return fs_err_sys(e, sys, s->dir, s->name, "cannot clear the old part file");
	}
	return 0;
}

int sink_punch(struct sink *s, int fd, uint64_t off, uint64_t n, struct ptcp_err *e)
{
	int r;

	do
		r = dir_sys(s->dir)->fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		    (off_t)off, (off_t)n);
	while (r != 0 && errno == EINTR);
	return r == 0 ? 0 : write_zeros(s, fd, off, n, e);
}

int sink_flush_cleared(struct sink *s, int fd, struct ptcp_err *e)
{
	if (dir_sys(s->dir)->fdatasync(fd) == 0 || fs_cannot(ABILITY_SYNC, errno))
		return 0;
	return fs_err_sys(e, errno, s->dir, s->name, "cannot sync");
}

/* ---- Verifying ---- */

/* The journal is read in batches from the end: the first record found of a block is the valid one. A batch is
 * sorted by block, for sequential reads. */
struct verifying {
	uint64_t slot; /* records from here on were read */
	struct journal_record of[JOURNAL_READ];
	unsigned n, at;
	uint32_t rest; /* after all records: blocks below were reported */
	uint8_t *buf;  /* one chunk of a block */
	uint64_t pending[]; /* claimed and not reported yet */
};

struct comparing {
	struct stat found;
	int fd;
	struct file_digest sum;
	uint64_t data; /* no data from sum.next up to here */
};

int sink_verify_begin(struct sink *s, const uint64_t *claimed, struct ptcp_err *e)
{
	size_t bytes = (size_t)bitmap_bytes(s->journal.n_blocks);
	struct verifying *v = calloc(1, sizeof *v + bytes);

	if (v == NULL || (v->buf = direct_io_memory(HASH_CHUNK_BYTES)) == NULL) {
		free(v);
		return err_nomem(e);
	}
	memcpy(v->pending, claimed, bytes);
	v->slot = atomic_load(&s->journal.next);
	s->verifying = v;
	return 0;
}

void sink_verify_end(struct sink *s)
{
	if (s->verifying == NULL)
		return;
	free(s->verifying->buf);
	free(s->verifying);
	s->verifying = NULL;
}

/* By block, then the latest record first. */
static int by_block(const void *a, const void *b)
{
	const struct journal_record *x = a, *y = b;

	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	return x->slot > y->slot ? -1 : x->slot < y->slot;
}

/* Reads the batch before the current one; blocks of unreadable records are handled as `rest`. */
static bool next_batch(struct sink *s, struct verifying *v)
{
	unsigned n;
	int got;

	if (v->slot == 0)
		return false;
	n = v->slot < JOURNAL_READ ? (unsigned)v->slot : JOURNAL_READ;
	v->slot -= n;
	got = journal_read(&s->journal, dir_sys(s->dir), v->slot, n, v->of);
	v->n = got > 0 ? (unsigned)got : 0;
	v->at = 0;
	sort_array(v->of, v->n, sizeof v->of[0], by_block);
	return true;
}

/* The next block to read back, with its record, or without if the record became unreadable. */
static bool next_block(struct sink *s, struct verifying *v, uint32_t *block,
    const struct journal_record **record)
{
	do
		for (; v->at < v->n; v->at++) {
			*record = &v->of[v->at];
			*block = (*record)->block;
			if (bitmap_has(v->pending, *block))
				return true;
		}
	while (next_batch(s, v));
	*record = NULL;
	for (; v->rest < s->journal.n_blocks; v->rest++)
		if (bitmap_has(v->pending, *block = v->rest))
			return true;
	return false;
}

void sink_add_run(struct sink_run *runs, unsigned *n, uint32_t block, bool good, const struct digest *term)
{
	struct sink_run *last = *n > 0 ? &runs[*n - 1] : NULL;

	if (last == NULL || last->good != good || block != last->first + last->n) {
		last = &runs[(*n)++];
		*last = (struct sink_run){ .first = block, .good = good };
	}
	last->n++;
	if (good)
		digest_add(&last->sum, *term);
}

/* False: the block cannot be read. */
static bool hash_block(struct sink *s, int fd, uint64_t off, uint32_t n, uint64_t *hash)
{
	struct verifying *v = s->verifying;
	struct block_hash h = { 0 };
	uint32_t at, chunk;

	for (at = 0; at < n; at += chunk) {
		chunk = n - at < HASH_CHUNK_BYTES ? n - at : HASH_CHUNK_BYTES;
		if (sink_get(s, fd, v->buf, chunk, off + at) != (ssize_t)chunk)
			return false;
		block_hash_add(&h, hash_content(v->buf, chunk));
	}
	*hash = block_hash_end(&h);
	return true;
}

/* Compares the block with its record, and clears the block if it differs or cannot be read. */
static int check_block(struct sink *s, int fd, uint32_t block, const struct journal_record *record,
    bool *good, struct digest *term, struct ptcp_err *e)
{
	uint64_t off = (uint64_t)block * s->opts.block_bytes, hash;
	uint32_t n = sink_block_length(s, block);

	*good = false;
	if (record != NULL && hash_block(s, fd, off, n, &hash)) {
		*good = hash == record->hash;
		*term = hash_term(block, n, hash);
	}
	return *good ? 0 : sink_punch(s, fd, off, n, e);
}

static int verify_some(struct sink *s, int fd, struct sink_run *runs, unsigned *n, struct ptcp_err *e)
{
	struct verifying *v = s->verifying;
	const struct journal_record *record;
	struct digest term;
	uint64_t bytes = 0;
	uint32_t block;
	bool good, cleared = false;
	int r;

	while (next_block(s, v, &block, &record)) {
		if (bytes >= FILE_DIGEST_STEP_BYTES || *n == SINK_RUNS)
			return cleared && (r = sink_flush_cleared(s, fd, e)) < 0 ? r : 1;
		if ((r = check_block(s, fd, block, record, &good, &term, e)) < 0)
			return r;
		v->pending[block / 64] &= ~(UINT64_C(1) << block % 64);
		sink_add_run(runs, n, block, good, &term);
		cleared |= !good && s->opts.shared;
		bytes += sink_block_length(s, block);
	}
	return cleared ? sink_flush_cleared(s, fd, e) : 0;
}

int sink_verify_next(struct sink *s, struct sink_run runs[SINK_RUNS], unsigned *n, struct ptcp_err *e)
{
	int fd, r;

	*n = 0;
	if (s->verifying == NULL)
		return 0;
	if ((fd = sink_enter_open(s)) < 0)
		return s->sync_errno != 0 ? fs_err_sys(e, s->sync_errno, s->dir, s->name, "cannot sync") :
		    fs_err_set(e, PTCP_ECANCELED, 0, s->dir, s->name, "read back after its completion or cancellation");
	r = verify_some(s, fd, runs, n, e);
	sink_leave(s, 0);
	if (r == 0)
		sink_verify_end(s);
	return r;
}

int sink_same_begin(struct sink *s, const struct stat *found, struct ptcp_err *e)
{
	struct comparing *c = calloc(1, sizeof *c);

	if (c == NULL)
		return err_nomem(e);
	c->found = *found;
	c->fd = -1;
	c->sum.block_bytes = s->opts.block_bytes;
	s->comparing = c;
	return 0;
}

void sink_same_end(struct sink *s)
{
	if (s->comparing == NULL)
		return;
	dir_sys(s->dir)->close(&s->comparing->fd);
	free(s->comparing);
	s->comparing = NULL;
}

static int changed(const struct sink *s, struct ptcp_err *e)
{
	return fs_err_set(e, PTCP_ECHANGED, 0, s->dir, s->name,
	    "changed while it was being compared (run the same command again)");
}

static int check_same(const struct sink *s, const struct stat *st, struct ptcp_err *e)
{
	const struct stat *was = &s->comparing->found;

	if (S_ISREG(st->st_mode) && st->st_dev == was->st_dev && st->st_ino == was->st_ino &&
	    st->st_size == was->st_size && st->st_mtim.tv_sec == was->st_mtim.tv_sec &&
	    st->st_mtim.tv_nsec == was->st_mtim.tv_nsec && st->st_ctim.tv_sec == was->st_ctim.tv_sec &&
	    st->st_ctim.tv_nsec == was->st_ctim.tv_nsec)
		return 0;
	return changed(s, e);
}

static int open_same(struct sink *s, int at, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(s->dir);
	struct comparing *c = s->comparing;
	struct stat st;

	if ((c->fd = sys->openat(at, s->name, SYS_READ_FLAGS, 0)) < 0)
		return errno == ENOENT || errno == ELOOP || errno == ENXIO ? changed(s, e) :
		    fs_err_sys(e, errno, s->dir, s->name, NULL);
	if (sys->fstat(c->fd, &st) != 0)
		return fs_err_sys(e, errno, s->dir, s->name, NULL);
	if (sink_is_direct(s) && !direct_io_begin(sys, c->fd))
		sink_refuse_direct(s);
	return check_same(s, &st, e);
}

/* Whether the block at `off` is a hole. A file with as much disk space as size has no holes. */
static bool in_hole(struct sink *s, uint64_t off, uint32_t n)
{
	struct comparing *c = s->comparing;
	off_t data;

	if ((uint64_t)c->found.st_blocks * 512 >= s->size_bytes)
		return false;
	if (off >= c->data) {
		data = dir_sys(s->dir)->lseek(c->fd, (off_t)off, SEEK_DATA);
		c->data = data >= 0 ? (uint64_t)data : errno == ENXIO ? s->size_bytes : off;
	}
	return off + n <= c->data;
}

static int read_block(void *arg, void *buf, uint32_t n, uint64_t off, struct ptcp_err *e)
{
	struct sink *s = arg;
	ssize_t got;

	if (in_hole(s, off, n))
		return 1;
	if ((got = sink_get(s, s->comparing->fd, buf, n, off)) == (ssize_t)n)
		return 0;
	return got < 0 ? fs_err_sys(e, errno, s->dir, s->name, "cannot read") : changed(s, e);
}

/* By name: the file with the target's name now is the one to stay in place. */
static int end_same(struct sink *s, int at, struct digest *sum, struct ptcp_err *e)
{
	struct stat st;
	int r;

	if (dir_sys(s->dir)->fstatat(at, s->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? changed(s, e) : fs_err_sys(e, errno, s->dir, s->name, NULL);
	if ((r = check_same(s, &st, e)) == 0)
		*sum = s->comparing->sum.digest;
	return r;
}

int sink_same_next(struct sink *s, struct digest *sum, struct ptcp_err *e)
{
	int at, r = 0;

	if (s->comparing == NULL)
		return fs_err_set(e, PTCP_EUSAGE, 0, s->dir, s->name, "no existing file to compare with");
	if ((at = dir_fd(s->dir, e)) < 0)
		return at;
	if (s->comparing->fd < 0)
		r = open_same(s, at, e);
	if (r == 0)
		r = file_digest_step(&s->comparing->sum, s->size_bytes, read_block, s, e);
	if (r == 0)
		r = end_same(s, at, sum, e);
	dir_fd_done(s->dir);
	if (r <= 0)
		sink_same_end(s);
	return r;
}
