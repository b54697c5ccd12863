/* Reading back what an earlier run left: sink_verify_next(), sink_same_next(). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/bitmap.h"
#include "store/file_digest.h"
#include "store/hash.h"
#include "store/sink_impl.h"
#include "store/store_err.h"

/* The journal is read from its end, so that the first record seen of a block is the one that
 * holds; sorted by block within a batch, as the disk likes it. */
struct verifying {
	uint64_t slot; /* records from here on have been read */
	struct journal_record of[JOURNAL_READ];
	unsigned n, at;
	uint32_t rest; /* after the last record: blocks below are done */
	uint8_t *buf;  /* one block */
	uint64_t untold[]; /* claimed and not told yet */
};

struct comparing {
	struct stat there;
	int fd;
	struct file_digest sum;
	uint64_t data; /* from sum.next on to here there is none */
	uint8_t *buf;
};

int sink_verify_begin(struct sink *s, const uint64_t *claimed, struct ptcp_err *e)
{
	size_t bytes = (size_t)bitmap_bytes(s->journal.n_blocks);
	struct verifying *v = calloc(1, sizeof *v + bytes);

	if (v == NULL || (v->buf = malloc(s->opts.block_bytes)) == NULL) {
		free(v);
		return err_nomem(e);
	}
	memcpy(v->untold, claimed, bytes);
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

/* 1 when all n bytes are there, 0 when not, -1 with errno. */
static int read_back(const struct sys *sys, int fd, uint8_t *buf, size_t n, uint64_t off)
{
	struct iovec v = { buf, n };
	ssize_t got;

	while (v.iov_len > 0) {
		got = sys->preadv2(fd, &v, 1, (off_t)off, 0);
		if (got == 0 || (got < 0 && errno != EINTR))
			return (int)got;
		if (got > 0) {
			v.iov_base = (char *)v.iov_base + got;
			v.iov_len -= (size_t)got;
			off += (uint64_t)got;
		}
	}
	return 1;
}

/* By block, the latest record of it first. */
static int by_block(const void *a, const void *b)
{
	const struct journal_record *x = a, *y = b;

	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	return x->slot > y->slot ? -1 : x->slot < y->slot;
}

/* The batch before the last one read; what cannot be read any more is left to the rest. */
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
	qsort(v->of, v->n, sizeof v->of[0], by_block);
	return true;
}

/* The next block to read back, with its record or, when that has vanished meanwhile, without. */
static bool next_block(struct sink *s, struct verifying *v, uint32_t *block,
    const struct journal_record **record)
{
	do
		for (; v->at < v->n; v->at++) {
			*record = &v->of[v->at];
			*block = (*record)->block;
			if (bitmap_has(v->untold, *block))
				return true;
		}
	while (next_batch(s, v));
	*record = NULL;
	for (; v->rest < s->journal.n_blocks; v->rest++)
		if (bitmap_has(v->untold, *block = v->rest))
			return true;
	return false;
}

/* Appends the block to the last run, or begins another: there is room. */
static void add_run(struct sink_run *runs, unsigned *n, uint32_t block, bool good,
    const struct digest *term)
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

/* Is the block what its record says? What cannot be read is sent again. If not, it is cleared. */
static int check_block(struct sink *s, int fd, uint32_t block, const struct journal_record *record,
    bool *good, struct digest *term, struct ptcp_err *e)
{
	struct verifying *v = s->verifying;
	uint64_t off = (uint64_t)block * s->opts.block_bytes, hash;
	uint32_t n = sink_block_length(s, block);

	*good = false;
	if (record != NULL && read_back(dir_sys(s->dir), fd, v->buf, n, off) == 1) {
		hash = hash_content(v->buf, n);
		*good = hash == record->hash;
		*term = hash_term(block, n, hash);
	}
	return *good ? 0 : sink_punch(s, fd, off, n, e);
}

static int verify_some(struct sink *s, int fd, struct sink_run *runs, unsigned *n,
    struct ptcp_err *e)
{
	struct verifying *v = s->verifying;
	const struct journal_record *record;
	struct digest term;
	uint64_t bytes = 0;
	uint32_t block;
	bool good;
	int r;

	while (next_block(s, v, &block, &record)) {
		if (bytes >= FILE_DIGEST_STEP_BYTES || *n == SINK_RUNS)
			return 1;
		if ((r = check_block(s, fd, block, record, &good, &term, e)) < 0)
			return r;
		v->untold[block / 64] &= ~(UINT64_C(1) << block % 64);
		add_run(runs, n, block, good, &term);
		bytes += sink_block_length(s, block);
	}
	return 0;
}

int sink_verify_next(struct sink *s, struct sink_run runs[SINK_RUNS], unsigned *n,
    struct ptcp_err *e)
{
	int fd, r;

	*n = 0;
	if (s->verifying == NULL)
		return 0;
	if ((fd = sink_hold(s)) < 0)
		return s->sick != 0 ? store_err_sys(e, s->sick, s->dir, s->name, "cannot make its data durable") :
		    store_err_why(e, PTCP_ECANCELED, 0, s->dir, s->name, "read back after it was complete or given up");
	r = verify_some(s, fd, runs, n, e);
	sink_leave(s, 0);
	if (r == 0)
		sink_verify_end(s);
	return r;
}

int sink_same_begin(struct sink *s, const struct stat *there, struct ptcp_err *e)
{
	struct comparing *c = calloc(1, sizeof *c);

	if (c == NULL)
		return err_nomem(e);
	c->there = *there;
	c->fd = -1;
	file_digest_init(&c->sum, s->opts.block_bytes, NULL);
	s->comparing = c;
	return 0;
}

void sink_same_end(struct sink *s)
{
	if (s->comparing == NULL)
		return;
	if (s->comparing->fd >= 0)
		dir_sys(s->dir)->close(s->comparing->fd);
	free(s->comparing->buf);
	free(s->comparing);
	s->comparing = NULL;
}

static int changed(const struct sink *s, struct ptcp_err *e)
{
	return store_err_why(e, PTCP_ECHANGED, 0, s->dir, s->name,
	    "changed while it was compared (run the same command again)");
}

static int check_same(const struct sink *s, const struct stat *st, struct ptcp_err *e)
{
	const struct stat *was = &s->comparing->there;

	if (S_ISREG(st->st_mode) && st->st_dev == was->st_dev && st->st_ino == was->st_ino &&
	    st->st_size == was->st_size && st->st_mtim.tv_sec == was->st_mtim.tv_sec &&
	    st->st_mtim.tv_nsec == was->st_mtim.tv_nsec && st->st_ctim.tv_sec == was->st_ctim.tv_sec &&
	    st->st_ctim.tv_nsec == was->st_ctim.tv_nsec)
		return 0;
	return changed(s, e);
}

/* Many files may wait to be compared: only those that are need a buffer. */
static int open_same(struct sink *s, int at, struct ptcp_err *e)
{
	uint64_t n = s->size_bytes < s->opts.block_bytes ? s->size_bytes : s->opts.block_bytes;
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
	const struct sys *sys = dir_sys(s->dir);
	struct comparing *c = s->comparing;
	struct stat st;

	if ((c->buf = malloc(n > 0 ? (size_t)n : 1)) == NULL)
		return err_nomem(e);
	if ((c->fd = sys->openat(at, s->name, flags, 0)) < 0)
		return errno == ENOENT || errno == ELOOP || errno == ENXIO ? changed(s, e) :
		    store_err_sys(e, errno, s->dir, s->name, "cannot open it");
	if (sys->fstat(c->fd, &st) != 0)
		return store_err_sys(e, errno, s->dir, s->name, "cannot examine it");
	return check_same(s, &st, e);
}

/* Is the block at `off` a hole? A file as long as what it has on disk has none. */
static bool in_hole(struct sink *s, uint64_t off, uint32_t n)
{
	struct comparing *c = s->comparing;
	off_t data;

	if ((uint64_t)c->there.st_blocks * 512 >= s->size_bytes)
		return false;
	if (off >= c->data) {
		data = dir_sys(s->dir)->lseek(c->fd, (off_t)off, SEEK_DATA);
		c->data = data >= 0 ? (uint64_t)data : errno == ENXIO ? s->size_bytes : off;
	}
	return off + n <= c->data;
}

/* 1: there is more, 0: all is read. */
static int compare_some(struct sink *s, struct ptcp_err *e)
{
	struct comparing *c = s->comparing;
	uint64_t off = (uint64_t)c->sum.next * s->opts.block_bytes, read = 0, content;
	uint32_t n, blocks = 0;
	int r;

	for (; off < s->size_bytes && read < FILE_DIGEST_STEP_BYTES && blocks < FILE_DIGEST_STEP_BLOCKS; off += n, blocks++) {
		n = sink_block_length(s, c->sum.next);
		if (in_hole(s, off, n)) {
			content = file_digest_zeros(&c->sum, c->buf, n);
		} else if ((r = read_back(dir_sys(s->dir), c->fd, c->buf, n, off)) > 0) {
			content = hash_content(c->buf, n);
			read += n;
		} else {
			return r == 0 ? changed(s, e) :
			    store_err_sys(e, errno, s->dir, s->name, "cannot read");
		}
		digest_add(&c->sum.digest, hash_term(c->sum.next++, n, content));
	}
	return off < s->size_bytes;
}

/* By the name: it is that file that would be left in place. */
static int end_same(struct sink *s, int at, struct digest *sum, struct ptcp_err *e)
{
	struct stat st;
	int r;

	if (dir_sys(s->dir)->fstatat(at, s->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? changed(s, e) :
		    store_err_sys(e, errno, s->dir, s->name, "cannot examine it");
	if ((r = check_same(s, &st, e)) == 0)
		*sum = s->comparing->sum.digest;
	return r;
}

int sink_same_next(struct sink *s, struct digest *sum, struct ptcp_err *e)
{
	int at, r = 0;

	if (s->comparing == NULL)
		return store_err_why(e, PTCP_EUSAGE, 0, s->dir, s->name, "nothing to compare it with");
	if ((at = dir_fd(s->dir, e)) < 0)
		return at;
	if (s->comparing->fd < 0)
		r = open_same(s, at, e);
	if (r == 0)
		r = compare_some(s, e);
	if (r == 0)
		r = end_same(s, at, sum, e);
	dir_fd_done(s->dir);
	if (r <= 0)
		sink_same_end(s);
	return r;
}
