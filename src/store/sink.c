#include "store/sink_impl.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "fs/file_system.h"
#include "fs/fs_err.h"

#define PAGE_BYTES 4096

static _Atomic uint64_t openings;

struct sink *sink_new(struct dir *dir, const char *name, uint64_t size_bytes, const struct meta *m,
    const struct sink_opts *opts)
{
	const char *owner = opts != NULL ? opts->owner : NULL;
	size_t n = strlen(name), n_owner = owner != NULL ? strlen(owner) : 0;
	struct sink *s;

	assert(text_name_ok(name, n));
	assert(opts == NULL || opts->block_bytes > 0);
	if ((s = malloc(sizeof *s + 2 * (n + 1) + 2 * (n_owner + 1))) == NULL)
		return NULL;
	*s = (struct sink){ .dir = dir_ref(dir), .size_bytes = size_bytes,
		.final_bytes = size_bytes, .meta = *m,
		.part.fd = -1, .journal.fd = -1, .hold.q = dir_quota(dir) };
	if (opts != NULL)
		s->opts = *opts;
	atomic_init(&s->refs, 1);
	atomic_init(&s->part_opened, false);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->idle, NULL);
	memcpy(s->name, name, n + 1);
	s->key = s->name;
	if (owner != NULL) {
		s->owner = memcpy(s->name + n + 1, owner, n_owner + 1);
		s->key = s->owner + n_owner + 1;
		sprintf(s->name + n + 1 + n_owner + 1, "%s/%s", owner, name);
	}
	return s;
}

struct sink *sink_of_pipe(struct pipe_sink *pipe)
{
	struct sink *s = calloc(1, sizeof *s + 1);

	if (s == NULL)
		return NULL;
	s->pipe = pipe;
	s->part.fd = s->journal.fd = -1;
	atomic_init(&s->refs, 1);
	atomic_init(&s->part_opened, true);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->idle, NULL);
	return s;
}

struct sink *sink_ref(struct sink *s)
{
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
	return s;
}

void sink_close(struct sink *s)
{
	if (s->journal.fd >= 0)
		journal_close(&s->journal, dir_sys(s->dir));
	if (s->part.fd < 0)
		return;
	dir_sys(s->dir)->close(&s->part.fd);
}

void sink_remove_journal(struct sink *s, int at)
{
	if (s->journal.fd >= 0)
		journal_remove(&s->journal, s->dir, at, s->key);
}

static void end(struct sink *s, bool remove);

void sink_unref(struct sink *s)
{
	if (s == NULL || atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	sink_verify_end(s);
	sink_same_end(s);
	if (s->own != NULL) /* no run resumes the part */
		end(s, true);
	free(s->own);
	free(s->in_part);
	sink_close(s);
	quota_end(&s->hold, UINT64_MAX);
	dir_unref(s->dir);
	pthread_cond_destroy(&s->idle);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

void sink_err_at(struct ptcp_err *out, const struct ptcp_err *why, const struct sink *s, bool whole)
{
	fs_err_at(out, why, s->dir, s->name, whole);
}

const char *sink_path_text(const struct sink *s, char *out, size_t cap)
{
	if (s->pipe == NULL)
		return dir_path_text(s->dir, s->name, out, cap);
	snprintf(out, cap, "-");
	return out;
}

bool sink_admits(struct sink *s, uint32_t block) { return s->pipe == NULL || pipe_sink_admits(s->pipe, block); }

int sink_reserve(struct sink *s, struct ptcp_err *e)
{
	bool whole = !s->opts.sparse && !s->opts.unsized;
	int r;

	pthread_mutex_lock(&s->lock);
	r = quota_reserve(&s->hold, whole ? s->size_bytes : 0, whole, e);
	pthread_mutex_unlock(&s->lock);
	return r;
}

void sink_set_size(struct sink *s, uint64_t size_bytes)
{
	pthread_mutex_lock(&s->lock);
	s->final_bytes = size_bytes;
	pthread_mutex_unlock(&s->lock);
}

void sink_set_time(struct sink *s, struct timespec mtime)
{
	pthread_mutex_lock(&s->lock);
	s->meta.set_mtime = true;
	s->meta.mtime = mtime;
	pthread_mutex_unlock(&s->lock);
}

bool sink_has_journal(const struct sink *s)
{
	return s->opts.has_version && s->size_bytes > s->opts.block_bytes;
}

bool sink_is_open(const struct sink *s) { return atomic_load(&s->part_opened); }

/* sink_match() opens the existing file. */
unsigned sink_fds(const struct sink *s) { return 1 + sink_has_journal(s) +
	    (s->opts.delta || s->opts.renames != NULL || s->meta.references != NULL); }

struct journal_key sink_key(const struct sink *s)
{
	return (struct journal_key){ .name = s->name, .file = s->key, .size_bytes = s->size_bytes,
		.mtime = s->meta.mtime, .version = s->opts.version,
		.block_bytes = s->opts.block_bytes };
}

bool sink_part_id(struct sink *s, uint64_t *dev, uint64_t *ino)
{
	*ino = atomic_load(&s->part_ino);
	*dev = atomic_load(&s->part_dev);
	return *ino != 0;
}

/* In place: the time of the source must not stand on other content. */
static void disown_time(struct sink *s)
{
	struct stat st;

	if (dir_sys(s->dir)->fstat(s->part.fd, &st) == 0 && st.st_mtim.tv_sec == s->meta.mtime.tv_sec &&
	    st.st_mtim.tv_nsec == s->meta.mtime.tv_nsec)
		dir_sys(s->dir)->futimens(s->part.fd, NULL);
}

int sink_take_part(struct sink *s, int at, enum part_take take, struct ptcp_err *e)
{
	int r = s->in_place ? part_open_target(&s->part, s->dir, at, s->name, take != PART_RESUME, e) :
	    part_open(&s->part, s->dir, at, s->name, s->key, take, e);

	atomic_store(&s->part_dev, s->part.dev);
	atomic_store(&s->part_ino, s->part.ino); /* last: readers take it as proof of part_dev */
	if (r == 0)
		atomic_store(&s->part_opened, true);
	if (r == 0 && s->in_place)
		disown_time(s);
	return r;
}

bool sink_may_be_alone(const struct sink *s)
{
	return s->pipe == NULL && !s->in_place && s->join_ino == 0 && s->owner == NULL && !s->opts.match.set;
}

/* With s->lock held. */
static bool go_alone(struct sink *s)
{
	size_t cap = strlen(s->name) + 64;

	if (s->own != NULL || !sink_may_be_alone(s) || s->part.fd >= 0 || (s->own = malloc(cap)) == NULL)
		return false;
	snprintf(s->own, cap, "%lx.%llx.%llx/%s", (unsigned long)getpid(), (unsigned long long)mono_now().ns,
	    (unsigned long long)atomic_fetch_add(&openings, 1), s->name);
	s->key = s->own;
	return true;
}

bool sink_part_alone(struct sink *s)
{
	bool alone;

	pthread_mutex_lock(&s->lock);
	alone = go_alone(s) || s->own != NULL;
	pthread_mutex_unlock(&s->lock);
	return alone;
}

void sink_number_part(struct sink *s) { s->part_number = atomic_fetch_add(&openings, 1); }

#define ALWAYS_FITS_BYTES INT32_MAX /* no file system permits less */

/* Before its first byte: the kernel knows the largest offset of each file system. */
static int check_size(struct sink *s, int at, struct ptcp_err *e)
{
	char part[PART_NAME_BYTES];

	if (s->opts.unsized || s->size_bytes <= ALWAYS_FITS_BYTES ||
	    dir_sys(s->dir)->lseek(s->part.fd, (off_t)s->size_bytes, SEEK_SET) >= 0 || errno != EINVAL)
		return 0;
	dir_sys(s->dir)->unlinkat(at, part_name(part, s->key, PART_SUFFIX), 0);
	sink_close(s);
	return fs_err_set(e, PTCP_EIO, EFBIG, s->dir, s->name,
	    "larger than files of this file system can be (split it, or choose another destination)");
}

/* Opens the part that another host has made, after sink_join(). */
static int join_part(struct sink *s, int at, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(s->dir);
	struct stat st;
	int fd = sys->openat(at, s->name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);

	if (fd < 0)
		return fs_err_sys(e, errno, s->dir, s->name, NULL);
	if (sys->fstat(fd, &st) != 0) {
		fs_err_sys(e, errno, s->dir, s->name, NULL);
	} else if (!S_ISREG(st.st_mode) || st.st_nlink != 1 || (uint64_t)st.st_ino != s->join_ino) {
		fs_err_set(e, PTCP_EIO, ESTALE, s->dir, s->name, "not the part file that the other host has made");
	} else {
		s->part = (struct part){ .fd = fd, .dev = (uint64_t)st.st_dev, .ino = (uint64_t)st.st_ino };
		atomic_store(&s->part_dev, s->part.dev);
		sink_number_part(s);
		sink_begin_direct(s);
		atomic_store(&s->part_opened, true);
		return 0;
	}
	sys->close(&fd);
	return e->code;
}

/* After sink_inspect() without a part, a part belongs to a transfer at work. */
static int take_new_part(struct sink *s, int at, bool whole, struct ptcp_err *e)
{
	enum part_take take = whole ? PART_NEW : PART_EMPTY;
	struct ptcp_err why = { 0 };
	int r = sink_take_part(s, at, take, &why);

	if (r < 0 && why.sys == EWOULDBLOCK && s->inspected && go_alone(s))
		return sink_take_part(s, at, take, e);
	if (r < 0 && e != NULL)
		*e = why;
	return r;
}

int sink_open_part(struct sink *s, int at, bool whole, struct ptcp_err *e)
{
	struct journal_key key;
	char journal[PART_NAME_BYTES];
	int r;

	if (s->join_ino != 0)
		return join_part(s, at, e);
	if ((r = quota_store(&s->hold, 0, e)) < 0 || (r = take_new_part(s, at, whole, e)) < 0)
		return r;
	key = sink_key(s);
	if ((r = check_size(s, at, e)) < 0)
		return r;
	if (!quota_emptied(&s->hold))
		quota_give(s->hold.q, s->part.freed_bytes);
	if (sink_has_journal(s) && !s->in_place)
		journal_create(&s->journal, s->dir, at, &key);
	else if (s->part.existed) /* perhaps of a larger file with a journal */
		dir_sys(s->dir)->unlinkat(at, part_name(journal, s->key, PART_JOURNAL_SUFFIX), 0);
	sink_number_part(s);
	if ((r = sink_begin_direct_alone(s, e)) < 0)
		sink_close(s);
	return r;
}

int sink_owns_part_name(const struct sink *s, int at)
{
	char part[PART_NAME_BYTES];
	struct stat st;

	part_name(part, s->key, PART_SUFFIX);
	if (dir_sys(s->dir)->fstatat(at, part, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0 : -1;
	return (uint64_t)st.st_dev == s->part.dev && (uint64_t)st.st_ino == s->part.ino;
}

int sink_cut_rest(struct sink *s, struct ptcp_err *e)
{
	if (!s->in_place || s->part.size_bytes <= s->end_bytes)
		return 0;
	if (dir_sys(s->dir)->ftruncate(s->part.fd, (off_t)s->end_bytes) != 0)
		return fs_err_sys(e, errno, s->dir, s->name, "cannot shorten the file");
	s->part.size_bytes = s->end_bytes;
	return 0;
}

int sink_enter(struct sink *s, bool whole, int *fd, struct ptcp_err *e)
{
	int r = 0, at;

	pthread_mutex_lock(&s->lock);
	if (s->state == SINK_FAILED) {
		r = fs_err_sys(e, s->sync_errno, s->dir, s->name, "cannot sync");
	} else if (s->state != SINK_OPEN) {
		r = fs_err_set(e, PTCP_ECANCELED, 0, s->dir, s->name,
		    "written to after its completion or cancellation");
	} else if (s->part.fd < 0) {
		if ((at = dir_fd(s->dir, e)) < 0) {
			r = at;
		} else {
			r = sink_open_part(s, at, whole, e);
			dir_fd_done(s->dir);
		}
	}
	if (r == 0)
		r = sink_cut_rest(s, e);
	if (r == 0) {
		s->writers++;
		*fd = s->part.fd;
	}
	pthread_mutex_unlock(&s->lock);
	return r;
}

int sink_enter_open(struct sink *s)
{
	int fd = -1;

	pthread_mutex_lock(&s->lock);
	if (s->state == SINK_OPEN && (fd = s->part.fd) >= 0)
		s->writers++;
	pthread_mutex_unlock(&s->lock);
	return fd;
}

void sink_leave(struct sink *s, uint64_t end_bytes)
{
	pthread_mutex_lock(&s->lock);
	if (end_bytes > s->end_bytes)
		s->end_bytes = end_bytes;
	if (--s->writers == 0 && s->state != SINK_OPEN)
		pthread_cond_broadcast(&s->idle);
	pthread_mutex_unlock(&s->lock);
}

/* Right before a write. PTCP_ETIMEOUT: the lease has ended. */
static int check_lease(struct sink *s, struct ptcp_err *e)
{
	if (s->opts.lease == NULL || mono_now().ns < atomic_load(&s->opts.lease->until_ns))
		return 0;
	atomic_store(&s->opts.lease->refused, true);
	return fs_err_set(e, PTCP_ETIMEOUT, 0, s->dir, s->name, "not written: no response of the engine");
}

static int write_all(struct sink *s, int fd, const uint8_t *p, size_t n, uint64_t off, struct ptcp_err *e)
{
	int r = check_lease(s, e), sys;

	if (r < 0 || (r = quota_store(&s->hold, n, e)) < 0)
		return r;
	sys = sink_put(s, fd, p, n, off);
	return sys == 0 ? 0 : fs_err_sys(e, sys, s->dir, s->name, "cannot write");
}

static_assert(PAGE_BYTES % DIRECT_IO_BYTES == 0, "runs of pages are aligned");

/* Length of the run at the start of p of pages that are all zero, or all not zero. */
static size_t same_pages(const uint8_t *p, size_t n, bool *zero)
{
	size_t at, page;
	bool z;

	*zero = false;
	for (at = 0; at < n; at += page) {
		page = n - at < PAGE_BYTES ? n - at : PAGE_BYTES;
		z = p[at] == 0 && memcmp(p + at, p + at + 1, page - 1) == 0;
		if (at == 0)
			*zero = z;
		else if (z != *zero)
			break;
	}
	return at < n ? at : n;
}

/* *end: end of the last byte on disk. */
static int write_sparse(struct sink *s, int fd, const uint8_t *p, size_t n, uint64_t off,
    uint64_t *end, struct ptcp_err *e)
{
	size_t run;
	bool zero;
	int r = 0;

	*end = 0;
	for (; n > 0 && r == 0; p += run, n -= run, off += run) {
		run = same_pages(p, n, &zero);
		if (zero)
			continue;
		r = write_all(s, fd, p, run, off, e);
		*end = off + run;
	}
	return r;
}

/* `hash` NULL: no record for the journal. */
static int write_data(struct sink *s, const void *buf, size_t n, uint64_t off, const uint64_t *hash,
    struct ptcp_err *e)
{
	uint64_t end = off + n;
	int fd, r;

	assert(off <= s->size_bytes && n <= s->size_bytes - off);
	if ((r = sink_enter(s, off == 0 && n == s->size_bytes, &fd, e)) != 0)
		return r;
	if (s->opts.sparse)
		r = write_sparse(s, fd, buf, n, off, &end, e);
	else
		r = write_all(s, fd, buf, n, off, e);
	if (r == 0 && hash != NULL)
		journal_append(&s->journal, dir_sys(s->dir), (uint32_t)(off / s->opts.block_bytes), *hash);
	sink_leave(s, end);
	return r;
}

int sink_write(struct sink *s, const void *buf, size_t n, uint64_t off, uint64_t hash, struct ptcp_err *e)
{
	uint32_t block;

	if (s->pipe != NULL)
		return pipe_sink_put(s->pipe, buf, (uint32_t)n, off, true, hash, e);
	if (!sink_has_journal(s))
		return write_data(s, buf, n, off, NULL, e);
	block = (uint32_t)(off / s->opts.block_bytes);
	assert(off + n == (uint64_t)block * s->opts.block_bytes + sink_block_length(s, block));
	return write_data(s, buf, n, off, &hash, e);
}

int sink_write_chunk(struct sink *s, const void *buf, size_t n, uint64_t off, struct ptcp_err *e)
{
	if (s->pipe != NULL)
		return pipe_sink_put(s->pipe, buf, (uint32_t)n, off, false, 0, e);
	return write_data(s, buf, n, off, NULL, e);
}

void sink_stop_writers(struct sink *s, enum sink_state state)
{
	s->state = state;
	while (s->writers > 0)
		pthread_cond_wait(&s->idle, &s->lock);
}

int sink_fail_sync(struct sink *s, int sys, struct ptcp_err *e)
{
	s->sync_errno = sys;
	if (s->state == SINK_OPEN)
		s->state = SINK_FAILED;
	journal_cut(&s->journal, dir_sys(s->dir), s->durable);
	return fs_err_sys(e, sys, s->dir, s->name, "cannot sync");
}

/* Makes the names of part and journal durable, once. */
static int sync_names(struct sink *s, struct ptcp_err *e)
{
	int r;

	if (s->name_durable)
		return 0;
	dir_changed(s->dir);
	if ((r = dir_sync(s->dir, e)) == 0)
		s->name_durable = true;
	return r;
}

int sink_sync(struct sink *s, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(s->dir);
	uint64_t upto;
	int fd, r = 0, lost = 0;

	if ((fd = sink_enter_open(s)) < 0)
		return 0;
	upto = atomic_load(&s->journal.next);
	if (sys->fdatasync(fd) != 0 && !fs_cannot(ABILITY_SYNC, errno)) {
		lost = errno;
	} else {
		s->durable = upto;
		if (s->journal.fd >= 0)
			sys->fdatasync(s->journal.fd); /* errors do not matter: claims are verified */
		r = sync_names(s, e);
	}
	if (lost != 0) { /* the kernel reports the loss once: record it for a concurrent store_complete() */
		pthread_mutex_lock(&s->lock);
		s->sync_errno = lost;
		pthread_mutex_unlock(&s->lock);
	}
	sink_leave(s, 0);
	if (lost == 0)
		return r;
	pthread_mutex_lock(&s->lock);
	if (s->state == SINK_OPEN)
		sink_stop_writers(s, SINK_FAILED);
	r = sink_fail_sync(s, lost, e);
	pthread_mutex_unlock(&s->lock);
	return r;
}

/* With s->lock held: closes the part; `remove`: unlinks part and journal, unless the file is complete. */
static void end(struct sink *s, bool remove)
{
	uint64_t stored = UINT64_MAX; /* all of its space */
	char part[PART_NAME_BYTES];
	int at;

	if (remove && s->part.fd >= 0 && !s->named && (at = dir_fd(s->dir, NULL)) >= 0) {
		if (sink_owns_part_name(s, at) == 1) {
			if (dir_sys(s->dir)->unlinkat(at, part_name(part, s->key, PART_SUFFIX), 0) == 0)
				stored = 0;
			sink_remove_journal(s, at);
		}
		dir_fd_done(s->dir);
	}
	sink_close(s);
	quota_end(&s->hold, stored);
}

void sink_discard(struct sink *s)
{
	pthread_mutex_lock(&s->lock);
	sink_stop_writers(s, SINK_DONE);
	end(s, true);
	pthread_mutex_unlock(&s->lock);
}

void sink_keep(struct sink *s)
{
	pthread_mutex_lock(&s->lock);
	sink_stop_writers(s, SINK_DONE);
	end(s, s->journal.fd < 0 || atomic_load(&s->journal.next) == 0);
	pthread_mutex_unlock(&s->lock);
}

bool sink_discard_unopened(struct sink *s)
{
	bool unopened;

	if (pthread_mutex_trylock(&s->lock) != 0)
		return false; /* another thread is opening the part */
	if ((unopened = s->part.fd < 0 && s->writers == 0)) {
		s->state = SINK_DONE;
		quota_end(&s->hold, UINT64_MAX);
	}
	pthread_mutex_unlock(&s->lock);
	return unopened;
}
