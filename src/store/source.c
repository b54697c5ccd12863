#include "store/source.h"

#include <assert.h>
#include <errno.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/bitmap.h"
#include "core/buf.h"
#include "core/byteorder.h"
#include "fs/fd_budget.h"
#include "fs/fs_err.h"
#include "store/hash.h"

struct source {
	struct pipe_source *pipe; /* NULL: a file */
	struct walk_entry entry;
	bool may_grow;       /* its first bytes may be sent, as many as were listed */
	atomic_bool grew;    /* they were */
	const struct sums_expected *expected; /* NULL: any content */
	atomic_uint refs;
	atomic_int reading; /* an enum reading */
	struct direct_io *direct_io; /* direct I/O of the transfer; NULL: the page cache is used, */
	atomic_bool not_direct;      /* the file system lacks direct I/O */
	/* Taken twice a block, about 20 ns each, by files of several blocks: prevents reads from a closed
	 * descriptor. */
	pthread_mutex_t lock;
	int fd; /* -1 when closed */
	unsigned readers;
	bool close; /* the last reader closes it */
};

/* How to read without blocking on disk; cached per file system as its hint, for the next small file. */
enum reading {
	READING_NOWAIT, /* by RWF_NOWAIT: tried first, hence 0 */
	READING_MEMORY, /* no RWF_NOWAIT, but the file system is in memory: read normally */
	READING_WAITS,  /* no RWF_NOWAIT: I/O threads only */
};

struct source *source_new(struct walk_entry *take)
{
	struct source *s = malloc(sizeof *s);

	assert(take->type == WALK_FILE);
	if (s == NULL)
		return NULL;
	*s = (struct source){ .entry = *take, .fd = -1 };
	*take = (struct walk_entry){ 0 };
	atomic_init(&s->refs, 1);
	atomic_init(&s->reading, (int)dir_fs_hint(s->entry.dir, s->entry.dev));
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

struct source *source_of_pipe(struct pipe_source *pipe)
{
	struct source *s = malloc(sizeof *s);

	if (s == NULL)
		return NULL;
	*s = (struct source){ .pipe = pipe, .fd = -1 };
	atomic_init(&s->refs, 1);
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

void source_use_direct_io(struct source *s, struct direct_io *t)
{
	if (s->pipe == NULL && s->entry.content == NULL && s->entry.size_bytes > DIRECT_IO_FILE_BYTES)
		s->direct_io = t;
}

void source_expect(struct source *s, const struct sums_expected *x) { s->expected = x; }

void source_permit_growth(struct source *s) { s->may_grow = true; }
bool source_has_grown(const struct source *s) { return atomic_load(&s->grew); }

bool source_is_direct(const struct source *s)
{
	return s->direct_io != NULL && !atomic_load_explicit(&s->not_direct, memory_order_relaxed);
}

static void refuse_direct(struct source *s)
{
	atomic_store(&s->not_direct, true);
	direct_io_refuse(s->direct_io, s->entry.dir, s->entry.name);
}

struct source *source_ref(struct source *s)
{
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
	return s;
}

static void close_file(struct source *s)
{
	if (s->fd < 0)
		return;
	dir_sys(s->entry.dir)->close(&s->fd);
	fd_budget_give(1);
}

void source_unref(struct source *s)
{
	if (s == NULL || atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	close_file(s);
	walk_entry_fini(&s->entry);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

uint64_t source_size_bytes(const struct source *s)
{
	return s->pipe != NULL ? pipe_source_state(s->pipe, NULL).size_bytes : s->entry.size_bytes;
}

const struct walk_entry *source_entry(const struct source *s) { return s->pipe == NULL ? &s->entry : NULL; }

bool source_sparse(const struct source *s) { return s->entry.sparse; }

void source_version_of(const struct manage_stamp *file, uint8_t out[SOURCE_VERSION_BYTES])
{
	uint8_t times[32];
	struct digest d;

	put_u64(times, (uint64_t)file->mtime.tv_sec);
	put_u64(times + 8, (uint64_t)file->mtime.tv_nsec);
	put_u64(times + 16, (uint64_t)file->ctime.tv_sec);
	put_u64(times + 24, (uint64_t)file->ctime.tv_nsec);
	d = hash_term(file->ino, file->size_bytes, hash_content(times, sizeof times));
	put_u64(out, d.hi);
	put_u64(out + 8, d.lo);
}

void source_version(const struct source *s, uint8_t out[SOURCE_VERSION_BYTES])
{
	const struct manage_stamp file = walk_stamp(&s->entry);

	source_version_of(&file, out);
}

const char *source_path_text(const struct source *s, char *out, size_t cap)
{
	if (s->pipe != NULL) {
		snprintf(out, cap, "-");
		return out;
	}
	return dir_path_text(s->entry.dir, s->entry.name, out, cap);
}

const char *source_path_raw(const struct source *s, char *out, size_t cap)
{
	if (s->pipe != NULL)
		return source_path_text(s, out, cap);
	return dir_path_raw(s->entry.dir, s->entry.name, out, cap);
}

int source_changed(const struct source *s, struct ptcp_err *e)
{
	return fs_err_set(e, PTCP_ECHANGED, 0, s->entry.dir, s->entry.name,
	    "changed while it was being sent (send it again when no program writes to it)");
}

static int vanished(const struct source *s, struct ptcp_err *e)
{
	return fs_err_set(e, PTCP_EVANISHED, ENOENT, s->entry.dir, s->entry.name, "vanished before it was sent");
}

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* 0; or SOURCE_GREW. */
static int compare(const struct source *s, const struct stat *st, struct ptcp_err *e)
{
	if (!S_ISREG(st->st_mode) || (s->entry.dev != SOURCE_ANY_DEV && (uint64_t)st->st_dev != s->entry.dev) ||
	    (uint64_t)st->st_ino != s->entry.ino)
		return source_changed(s, e);
	if (s->may_grow && (uint64_t)st->st_size > s->entry.size_bytes)
		return SOURCE_GREW;
	return (uint64_t)st->st_size == s->entry.size_bytes && same_time(st->st_mtim, s->entry.mtime) &&
	    same_time(st->st_ctim, s->entry.ctime) ? 0 : source_changed(s, e);
}

/* ESTALE: another host has removed it from a network file system. */
static bool is_gone(int err) { return err == ENOENT || err == ESTALE; }

/* The directory of the file cannot be opened; it may have vanished with the file. */
static int lost_directory(const struct source *s, const struct ptcp_err *why, struct ptcp_err *e)
{
	if (is_gone(why->sys))
		return vanished(s, e);
	if (e != NULL)
		*e = *why;
	return why->code;
}

/* Compares by name. */
static int check_name(const struct source *s, struct ptcp_err *e)
{
	struct ptcp_err why;
	struct stat st;
	int at, r;

	if ((at = dir_fd(s->entry.dir, &why)) < 0)
		return lost_directory(s, &why, e);
	r = dir_sys(s->entry.dir)->fstatat(at, s->entry.name, &st, AT_SYMLINK_NOFOLLOW);
	if (r == 0 && S_ISLNK(st.st_mode) && s->entry.followed)
		r = dir_stat_target(s->entry.dir, at, s->entry.name, &st);
	if (r == 0)
		r = compare(s, &st, e);
	else if (is_gone(errno))
		r = vanished(s, e);
	else
		r = fs_err_sys(e, errno, s->entry.dir, s->entry.name, NULL);
	dir_fd_done(s->entry.dir);
	return r;
}

static int examine(const struct source *s, int fd, struct ptcp_err *e)
{
	struct stat st;

	if (dir_sys(s->entry.dir)->fstat(fd, &st) != 0)
		return fs_err_sys(e, errno, s->entry.dir, s->entry.name, NULL);
	return st.st_nlink == 0 ? check_name(s, e) : compare(s, &st, e);
}

/* Opens the file; another file than the listed one is PTCP_ECHANGED, none PTCP_EVANISHED. */
static int open_file(struct source *s, bool wait, int *out, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(s->entry.dir);
	int at, fd, saved, r;
	struct ptcp_err why;

	if (!wait) {
		if ((r = dir_fd_cached(s->entry.dir, &at, e)) != 0)
			return r;
		fd = dir_open_name(s->entry.dir, at, s->entry.name, SYS_READ_FLAGS, true);
	} else {
		if ((at = dir_fd(s->entry.dir, &why)) < 0)
			return lost_directory(s, &why, e);
		fd = dir_open_name(s->entry.dir, at, s->entry.name, SYS_READ_FLAGS, false);
	}
	saved = errno;
	dir_fd_done(s->entry.dir);
	if (fd < 0 && !wait && saved == EAGAIN)
		return STORE_AGAIN;
	if (fd < 0 && is_gone(saved))
		return vanished(s, e);
	if (fd < 0 && (saved == ELOOP || saved == ENXIO))
		return source_changed(s, e);
	if (fd < 0)
		return fs_err_sys(e, saved, s->entry.dir, s->entry.name, NULL);
	if ((r = examine(s, fd, e)) < 0) {
		sys->close(&fd);
		return r;
	}
	if (source_is_direct(s) && !direct_io_begin(sys, fd))
		refuse_direct(s);
	*out = fd;
	return 0;
}

/* The file system has no RWF_NOWAIT, as tmpfs. */
static void without_nowait(struct source *s, int fd)
{
	enum reading reading = READING_WAITS;
	struct statfs st;

	if (dir_sys(s->entry.dir)->fstatfs(fd, &st) == 0 && (st.f_type == TMPFS_MAGIC || st.f_type == RAMFS_MAGIC))
		reading = READING_MEMORY;
	atomic_store(&s->reading, (int)reading);
	dir_set_fs_hint(s->entry.dir, s->entry.dev, reading);
}

static int read_all(struct source *s, int fd, void *buf, size_t n, uint64_t off, bool wait,
    struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(s->entry.dir);
	struct iovec v = { buf, n };
	int reading;
	ssize_t got;

	while (v.iov_len > 0) {
		reading = atomic_load_explicit(&s->reading, memory_order_relaxed);
		if (!wait && reading == READING_WAITS)
			return STORE_AGAIN;
		got = sys->preadv2(fd, &v, 1, (off_t)off,
		    !wait && reading == READING_NOWAIT ? RWF_NOWAIT : 0);
		if (got > 0) {
			v.iov_base = (char *)v.iov_base + got;
			v.iov_len -= (size_t)got;
			off += (uint64_t)got;
		} else if (got == 0) {
			return source_changed(s, e);
		} else if (!wait && errno == EAGAIN) {
			return STORE_AGAIN;
		} else if (!wait && reading == READING_NOWAIT &&
		    (errno == EOPNOTSUPP || errno == EINVAL || errno == ENOSYS)) {
			without_nowait(s, fd);
		} else if (errno != EINTR) {
			return fs_err_sys(e, errno, s->entry.dir, s->entry.name, "cannot read");
		}
	}
	return 0;
}

/* STORE_AGAIN: the file system refuses: O_DIRECT is cleared. */
static int read_direct(struct source *s, int fd, void *buf, size_t n, uint64_t off, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(s->entry.dir);
	ssize_t got = direct_io_read(sys, fd, buf, n, off);

	if (got >= 0)
		return (size_t)got == n ? 0 : source_changed(s, e);
	if (!direct_io_is_refusal(errno))
		return fs_err_sys(e, errno, s->entry.dir, s->entry.name, "cannot read");
	direct_io_end(sys, fd);
	refuse_direct(s);
	return STORE_AGAIN;
}

/* A file that grows may be rewritten as well: whatever is equal when read again was the content in between. */
static int read_again(struct source *s, int fd, const void *buf, size_t n, bool wait, struct ptcp_err *e)
{
	uint8_t again[16384];
	size_t at, step;
	int r = 0;

	for (at = 0; at < n && r == 0; at += step) {
		step = n - at < sizeof again ? n - at : sizeof again;
		if ((r = read_all(s, fd, again, step, at, wait, e)) == 0 && memcmp(again, (const uint8_t *)buf + at, step) != 0)
			r = source_changed(s, e);
	}
	if (r == 0)
		atomic_store(&s->grew, true);
	return r;
}

/* For a file of one block: no other thread needs its descriptor. */
static int read_whole(struct source *s, void *buf, size_t n, bool wait, struct ptcp_err *e)
{
	int fd, r;

	if ((r = open_file(s, wait, &fd, e)) != 0)
		return r;
	if (n > 0 && (r = read_all(s, fd, buf, n, 0, wait, e)) == 0 && (r = examine(s, fd, e)) == SOURCE_GREW)
		r = read_again(s, fd, buf, n, wait, e);
	dir_sys(s->entry.dir)->close(&fd);
	return r;
}

/* A descriptor for reading, until leave(). Opened without the lock: callers without `wait` must not wait for
 * callers with `wait`; of two concurrent openings one is closed. Stays open for the next reader, within the
 * budget. */
static int enter(struct source *s, bool wait, int *fd, struct ptcp_err *e)
{
	int mine = -1, r;

	pthread_mutex_lock(&s->lock);
	if (s->fd < 0) {
		pthread_mutex_unlock(&s->lock);
		if ((r = open_file(s, wait, &mine, e)) != 0)
			return r;
		pthread_mutex_lock(&s->lock);
		if (s->fd < 0 && fd_budget_take(1)) {
			s->fd = mine;
			mine = -1;
		}
	}
	if (s->fd < 0) {
		*fd = mine;
		mine = -1;
	} else {
		s->close = false;
		s->readers++;
		*fd = s->fd;
	}
	pthread_mutex_unlock(&s->lock);
	dir_sys(s->entry.dir)->close(&mine);
	return 0;
}

/* Of enter(): the shared descriptor, or a descriptor of its own, which is closed. */
static void leave(struct source *s, int *fd)
{
	pthread_mutex_lock(&s->lock);
	if (*fd != s->fd)
		dir_sys(s->entry.dir)->close(fd);
	else if (--s->readers == 0 && s->close)
		close_file(s);
	pthread_mutex_unlock(&s->lock);
}

static int read_content(struct source *s, void *buf, size_t n, uint64_t off, bool wait, struct ptcp_err *e)
{
	int fd, r;

	assert(off <= s->entry.size_bytes && n <= s->entry.size_bytes - off);
	if (s->entry.content != NULL) {
		memcpy(buf, s->entry.content + off, n);
		return 0;
	}
	if (off == 0 && n == s->entry.size_bytes)
		return read_whole(s, buf, n, wait, e);
	if (!wait && source_is_direct(s))
		return STORE_AGAIN;
	if ((r = enter(s, wait, &fd, e)) != 0)
		return r;
	if (!source_is_direct(s) || (r = read_direct(s, fd, buf, n, off, e)) == STORE_AGAIN)
		r = read_all(s, fd, buf, n, off, wait, e);
	leave(s, &fd);
	return r;
}

int source_read(struct source *s, void *buf, size_t n, uint64_t off, bool wait, struct ptcp_err *e)
{
	int r;

	if (s->pipe != NULL)
		return pipe_source_read(s->pipe, buf, (uint32_t)n, off, e);
	if ((r = read_content(s, buf, n, off, wait, e)) != 0 || s->expected == NULL || n < s->entry.size_bytes)
		return r;
	return sums_expected_check_data(s->expected, buf, n, e);
}

/* cachestat() counts pages that are still being read, in ascending order: hence the probe of the last byte. Tmpfs has no
 * RWF_NOWAIT, and needs neither. */
static bool in_memory(struct source *s, int fd, size_t n, uint64_t off)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), first = off / page, last = (off + n - 1) / page;
	const struct sys *sys = dir_sys(s->entry.dir);
	uint64_t pages;
	char byte;

	return read_all(s, fd, &byte, 1, off + n - 1, false, NULL) == 0 &&
	    (atomic_load_explicit(&s->reading, memory_order_relaxed) == READING_MEMORY ||
	    (sys->cachestat(fd, off, n, &pages) == 0 && pages == last - first + 1));
}

bool source_in_memory(struct source *s, size_t n, uint64_t off)
{
	bool cached;
	int fd;

	if (s->pipe != NULL || s->entry.content != NULL || source_is_direct(s) || n == s->entry.size_bytes ||
	    enter(s, false, &fd, NULL) != 0)
		return false;
	cached = in_memory(s, fd, n, off);
	leave(s, &fd);
	return cached;
}

ssize_t source_send(struct source *s, int sock, size_t n, uint64_t off)
{
	off_t at = (off_t)off;
	ssize_t sent;
	int fd;

	if (enter(s, false, &fd, NULL) != 0)
		return -1;
	if (!in_memory(s, fd, n, off)) {
		sent = -1;
	} else {
		do
			sent = dir_sys(s->entry.dir)->sendfile(sock, fd, &at, n);
		while (sent < 0 && errno == EINTR);
		if (sent == 0)
			sent = -1; /* the file has become shorter */
		else if (sent < 0 && errno == EAGAIN)
			sent = 0;
	}
	leave(s, &fd);
	return sent;
}

/* The first data (SEEK_HOLE: the first hole) at or after off; the file's size if none. Negative on failure. */
static off_t seek(const struct source *s, int fd, uint64_t off, int whence, struct ptcp_err *e)
{
	off_t at = dir_sys(s->entry.dir)->lseek(fd, (off_t)off, whence);

	if (at >= 0)
		return (uint64_t)at < s->entry.size_bytes ? at : (off_t)s->entry.size_bytes;
	if (errno == ENXIO)
		return (off_t)s->entry.size_bytes;
	if (errno == EINVAL || errno == EOPNOTSUPP) /* not supported: all counts as data */
		return whence == SEEK_DATA ? (off_t)off : (off_t)s->entry.size_bytes;
	return fs_err_sys(e, errno, s->entry.dir, s->entry.name, "cannot find its holes");
}

static int map(const struct source *s, int fd, uint32_t block_bytes, uint64_t *holes, struct ptcp_err *e)
{
	uint64_t size = s->entry.size_bytes, off = 0; /* start of the next block to classify */
	off_t at;

	while (off < size) {
		if ((at = seek(s, fd, off, SEEK_DATA, e)) < 0)
			return (int)at;
		for (; off < size && ((uint64_t)at == size || off + block_bytes <= (uint64_t)at); off += block_bytes)
			bitmap_add(holes, (uint32_t)(off / block_bytes));
		off += block_bytes; /* a block with data, whose holes do not matter */
		if (off >= size)
			break;
		if ((at = seek(s, fd, off, SEEK_HOLE, e)) < 0)
			return (int)at;
		off = ((uint64_t)at + block_bytes - 1) / block_bytes * block_bytes;
	}
	return 0;
}

int source_map(struct source *s, uint32_t block_bytes, uint64_t *holes, struct ptcp_err *e)
{
	int fd, r;

	if ((r = enter(s, true, &fd, e)) != 0)
		return r;
	if ((r = map(s, fd, block_bytes, holes, e)) == 0)
		r = examine(s, fd, e);
	leave(s, &fd);
	return r < 0 ? r : 0;
}

int source_check(struct source *s, struct ptcp_err *e)
{
	bool open;
	int r = 0;

	if (s->pipe != NULL)
		return pipe_source_check(s->pipe, e);
	if (s->entry.content != NULL)
		return 0;
	pthread_mutex_lock(&s->lock);
	if ((open = s->fd >= 0)) {
		r = examine(s, s->fd, e);
		s->close = true;
		if (s->readers == 0)
			close_file(s);
	}
	pthread_mutex_unlock(&s->lock);
	return open ? r : check_name(s, e);
}

int source_remove(struct source *s, struct ptcp_err *e)
{
	const struct manage_stamp was = walk_stamp(&s->entry);

	return manage_remove_unchanged(s->entry.dir, s->entry.name, &was, e);
}

/* ---- Files whose size the file system does not know ---- */

bool source_lacks_size(const struct walk_entry *w)
{
	return w->type == WALK_FILE && w->disk_bytes == 0 && w->size_bytes <= (uint64_t)sysconf(_SC_PAGESIZE);
}

static int read_to_end(const struct source *s, int fd, struct buf *all, struct ptcp_err *e)
{
	ssize_t got = (ssize_t)HASH_CHUNK_BYTES;
	uint8_t *p;

	while (got == (ssize_t)HASH_CHUNK_BYTES) {
		if (buf_len(all) > (size_t)SOURCE_CONTENT_MAX)
			return fs_err_set(e, PTCP_EIO, EFBIG, s->entry.dir, s->entry.name,
			    "larger than 4 MiB, and the file system does not know its size (send it by: ptcp send - DESTINATION <FILE)");
		if ((p = buf_reserve(all, HASH_CHUNK_BYTES, e)) == NULL)
			return PTCP_ENOMEM;
		if ((got = sys_read_all(dir_sys(s->entry.dir), fd, p, HASH_CHUNK_BYTES, buf_len(all))) < 0)
			return fs_err_sys(e, errno, s->entry.dir, s->entry.name, "cannot read");
		buf_added(all, (size_t)got);
	}
	return 0;
}

/* A file that has changed since it was listed is left to the later checks. */
int source_find_size(struct walk_entry *w, struct ptcp_err *e)
{
	struct source s = { .entry = *w, .may_grow = true };
	struct buf all = BUF_INIT;
	int fd, r = open_file(&s, true, &fd, e);

	if (r < 0)
		return r == PTCP_ECHANGED ? 0 : r;
	if ((r = read_to_end(&s, fd, &all, e)) == 0 && buf_len(&all) != w->size_bytes && examine(&s, fd, NULL) == 0) {
		walk_entry_fill(w, all.data, buf_len(&all)); /* nothing was consumed */
		all = BUF_INIT;
	}
	buf_fini(&all);
	dir_sys(w->dir)->close(&fd);
	return r;
}

bool source_linked(const struct source *s) { return s->entry.nlink > 1; }

/* ---- The digest ---- */

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

int file_digest_until(struct file_digest *sum, struct source *s, uint32_t end, struct ptcp_err *e)
{
	uint64_t size = source_size_bytes(s), end_bytes = (uint64_t)end * sum->block_bytes;

	return file_digest_step(sum, end_bytes < size ? end_bytes : size, read_block, &(struct digest_reader){ sum, s }, e);
}

int file_digest_next(struct file_digest *sum, struct source *s, struct ptcp_err *e)
{
	int r = file_digest_until(sum, s, UINT32_MAX, e);

	if (r != 0)
		return r;
	if ((r = source_check(s, e)) == SOURCE_GREW)
		atomic_store(&s->grew, true);
	return r < 0 ? r : 0;
}
