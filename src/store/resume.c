/* Files of an earlier run: sink_inspect(), sink_refresh(). */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/bitmap.h"
#include "fs/fs_err.h"
#include "store/sink_impl.h"

#define ZEROS_BYTES 65536

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
	if (dir_sys(s->dir)->fdatasync(fd) == 0 || sys_cannot_sync(errno))
		return 0;
	return fs_err_sys(e, errno, s->dir, s->name, "cannot sync");
}

/* Clears the unclaimed blocks of [from, to). */
static int clear_range(struct sink *s, const uint64_t *claimed, uint64_t from, uint64_t to,
    struct ptcp_err *e)
{
	uint64_t bytes = s->opts.block_bytes, end;
	int r = 0;

	while (from < to && r == 0) {
		end = (from / bytes + 1) * bytes;
		if (bitmap_has(claimed, (uint32_t)(from / bytes))) {
			from = end;
			continue;
		}
		while (end < to && !bitmap_has(claimed, (uint32_t)(end / bytes)))
			end += bytes;
		end = end < to ? end : to;
		r = sink_punch(s, s->part.fd, from, end - from, e);
		from = end;
	}
	return r;
}

/* `end` is where the last claimed block ends. */
static int clear_unclaimed(struct sink *s, const uint64_t *claimed, uint64_t end, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(s->dir);
	off_t data, hole;
	uint64_t at;
	int r = 0;

	if (sys->ftruncate(s->part.fd, (off_t)end) != 0)
		return fs_err_sys(e, errno, s->dir, s->name, "cannot shorten the old part file");
	for (at = 0; at < end && r == 0; at = (uint64_t)hole) {
		if ((data = sys->lseek(s->part.fd, (off_t)at, SEEK_DATA)) < 0 && errno == ENXIO)
			break;
		if (data < 0) /* SEEK_DATA is not supported */
			data = (off_t)at;
		if ((hole = sys->lseek(s->part.fd, data, SEEK_HOLE)) <= data)
			hole = (off_t)end;
		r = clear_range(s, claimed, (uint64_t)data, (uint64_t)hole, e);
	}
	s->end_bytes = end;
	return r;
}

/* Reads the blocks claimed by the journal; *end is the end of the last one. */
static int read_claims(struct sink *s, struct sink_existing *out, uint64_t *end, struct ptcp_err *e)
{
	struct journal_record of[JOURNAL_READ];
	uint64_t slot, n = atomic_load(&s->journal.next), here;
	int got, i;

	if ((out->claimed = bitmap_new(s->journal.n_blocks)) == NULL)
		return err_nomem(e);
	for (slot = 0; slot < n; slot += JOURNAL_READ) {
		got = journal_read(&s->journal, dir_sys(s->dir), slot,
		    n - slot < JOURNAL_READ ? (unsigned)(n - slot) : JOURNAL_READ, of);
		for (i = 0; i < got; i++) {
			out->n_claimed += bitmap_add(out->claimed, of[i].block);
			here = (uint64_t)of[i].block * s->opts.block_bytes +
			    sink_block_length(s, of[i].block);
			*end = here > *end ? here : *end;
		}
	}
	return 0;
}

/* With part and journal open. */
static int resume(struct sink *s, struct sink_existing *out, struct ptcp_err *e)
{
	uint64_t end = 0;
	int r;

	if ((r = read_claims(s, out, &end, e)) < 0 || out->n_claimed == 0 ||
	    (r = clear_unclaimed(s, out->claimed, end, e)) < 0 ||
	    (s->opts.shared && (r = sink_flush_cleared(s, s->part.fd, e)) < 0) ||
	    (r = sink_begin_direct_alone(s, e)) < 0 || (r = sink_verify_begin(s, out->claimed, e)) < 0)
		return r;
	out->found = SINK_PART;
	return 0;
}

static int inspect_part(struct sink *s, int at, struct sink_existing *out, struct ptcp_err *e)
{
	const struct journal_key key = sink_key(s);
	enum journal_state state;
	int r;

	if ((r = sink_take_part(s, at, PART_RESUME, e)) < 0 || s->part.fd < 0)
		return r;
	quota_found(&s->hold, s->part.disk_bytes);
	if ((state = journal_open(&s->journal, s->dir, at, &key)) == JOURNAL_CHANGED)
		out->restart_why = "the source has changed since: restarting from scratch";
	else if (state == JOURNAL_DAMAGED)
		out->restart_why = "the journal is damaged: restarting from scratch";
	sink_number_part(s);
	if (state == JOURNAL_MATCHES)
		r = resume(s, out, e);
	if (out->found != SINK_PART) { /* the first write empties it */
		sink_close(s);
		free(out->claimed);
		out->claimed = NULL;
	}
	return r;
}

/* The earlier run was interrupted between renaming the file and removing the journal. Another transfer of the
 * file that begins just now may lose its journal, hence only the ability to resume. */
static void remove_stale_journal(struct sink *s, int at)
{
	const struct sys *sys = dir_sys(s->dir);
	char part[PART_NAME_BYTES], journal[PART_NAME_BYTES];
	struct stat st;

	part_name(part, s->key, PART_SUFFIX);
	part_name(journal, s->key, PART_JOURNAL_SUFFIX);
	if (sys->fstatat(at, journal, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    sys->fstatat(at, part, &st, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
		sys->unlinkat(at, journal, 0);
}

/* Whether a file system of coarser times stores `st` for the time of the source: to 100 ns (NTFS, SMB), 10 ms (exFAT), 1 s, or
 * 2 s (FAT). The digest decides later. */
static bool same_time(const struct timespec *st, const struct timespec *source)
{
	long ns = source->tv_nsec;

	if (st->tv_sec == source->tv_sec)
		return st->tv_nsec == ns || st->tv_nsec == ns - ns % 100 || st->tv_nsec == ns - ns % 10000000 || st->tv_nsec == 0;
	return st->tv_nsec == 0 && st->tv_sec % 2 == 0 && st->tv_sec == source->tv_sec - 1;
}

static bool seems_same(const struct sink *s, const struct stat *st)
{
	return (uint64_t)st->st_size == s->size_bytes && (s->opts.any_time || same_time(&st->st_mtim, &s->meta.mtime));
}

static int inspect_target(struct sink *s, int at, bool dry_run, struct sink_existing *out, struct ptcp_err *e)
{
	struct stat st;
	int r = 0;
	bool same;

	if (dir_sys(s->dir)->fstatat(at, s->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0 : fs_err_sys(e, errno, s->dir, s->name, NULL);
	if (dir_excludes(s->dir, st.st_dev, st.st_ino))
		return fs_err_set(e, PTCP_EREFUSED, EACCES, s->dir, s->name, EXCLUDED_WHY);
	if (!S_ISREG(st.st_mode))
		return 0;
	if (!dry_run && (uint64_t)st.st_size > s->opts.block_bytes)
		remove_stale_journal(s, at);
	same = s->opts.block_bytes != 0 && !s->opts.ignore_same && seems_same(s, &st);
	if (published_has(s->meta.published, s->dir, at, s->name, &st, !same))
		return published_refuse(s->meta.published, s->dir, s->name, e);
	if (same && (r = sink_same_begin(s, &st, e)) == 0)
		out->found = SINK_SAME;
	return r;
}

void sink_restart(struct sink *s)
{
	pthread_mutex_lock(&s->lock);
	sink_verify_end(s);
	sink_close(s);
	s->end_bytes = 0;
	pthread_mutex_unlock(&s->lock);
}

static void set_id(struct sink *s, const struct stat *st)
{
	atomic_store(&s->part_dev, st->st_dev);
	atomic_store(&s->part_ino, st->st_ino);
}

static bool later(struct timespec a, struct timespec b)
{
	return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

static bool stat_name(struct dir *parent, const char *name, struct stat *st)
{
	int at = dir_fd(parent, NULL);
	bool found;

	if (at < 0)
		return false;
	found = dir_sys(parent)->fstatat(at, name, st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    !dir_excludes(parent, st->st_dev, st->st_ino);
	dir_fd_done(parent);
	return found;
}

bool store_exists(struct dir *parent, const char *name)
{
	struct stat st;

	return stat_name(parent, name, &st) && !S_ISDIR(st.st_mode);
}

bool sink_keeps(struct sink *s, unsigned keep)
{
	struct stat st;

	if (keep == 0)
		return false;
	if (!stat_name(s->dir, s->name, &st))
		return (keep & SINK_KEEP_MISSING) != 0;
	if (S_ISDIR(st.st_mode))
		return false;
	if ((keep & SINK_KEEP_EXISTING) != 0)
		return true;
	return S_ISREG(st.st_mode) &&
	    (((keep & SINK_KEEP_NEWER) != 0 && later(st.st_mtim, s->meta.mtime)) ||
	    ((keep & SINK_KEEP_SAME_SIZE) != 0 && (uint64_t)st.st_size == s->size_bytes));
}

bool sink_seems_same(struct sink *s)
{
	struct stat st;
	bool same;
	int at;

	if ((at = dir_fd(s->dir, NULL)) < 0)
		return false;
	same = !s->opts.ignore_same && dir_sys(s->dir)->fstatat(at, s->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISREG(st.st_mode) && !dir_excludes(s->dir, st.st_dev, st.st_ino) && seems_same(s, &st);
	if (same)
		set_id(s, &st);
	dir_fd_done(s->dir);
	return same;
}

static bool needs_time(const struct sink *s, const struct stat *st)
{
	return s->opts.any_time && s->meta.set_mtime && (st->st_mtim.tv_sec != s->meta.mtime.tv_sec ||
	    st->st_mtim.tv_nsec != s->meta.mtime.tv_nsec);
}

/* 1: not permitted. */
static int set_time(const struct sink *s, int fd, const struct stat *st, struct ptcp_err *e)
{
	const struct timespec times[2] = { st->st_atim, s->meta.mtime };

	return dir_sys(s->dir)->futimens(fd, times) == 0 ? 0 : meta_time_failed(s->dir, s->name, e);
}

static bool refreshed(const struct sink *s, const struct stat *st)
{
	const struct meta *m = &s->meta;
	uint32_t uid, gid;

	if (needs_time(s, st) || m->xattrs != NULL ||
	    (m->set_mode && (st->st_mode & 07777) != owner_mode(m->mode, m->setid, true)))
		return false;
	if (m->owner == NULL)
		return true;
	owners_resolve(m->owners, m->owner, &uid, &gid);
	return st->st_uid == uid && st->st_gid == gid;
}

static int refresh_file(const struct sink *s, int fd, struct ptcp_err *e)
{
	const struct meta *m = &s->meta;
	bool owner_ok;
	int r = meta_set_owner(m, s->dir, s->name, fd, &owner_ok, e), refused = 0;
	mode_t mode;

	if (r < 0 || !m->set_mode)
		return r;
	mode = owner_mode(m->mode, m->setid, owner_ok);
	if (dir_sys(s->dir)->fchmod(fd, mode) != 0)
		refused = meta_mode_failed(s->dir, s->name, fd, mode, e);
	return refused < 0 ? refused : r | refused;
}

static int refresh_at(struct sink *s, int at, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(s->dir);
	struct stat st;
	int fd, r = 0, late;

	if (sys->fstatat(at, s->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return fs_err_sys(e, errno, s->dir, s->name, NULL);
	if (published_has(s->meta.published, s->dir, at, s->name, &st, false))
		return published_refuse(s->meta.published, s->dir, s->name, e);
	published_add(s->meta.published, s->dir, at, s->name, st.st_dev, st.st_ino);
	set_id(s, &st);
	if (refreshed(s, &st))
		return 0;
	if ((fd = sys->openat(at, s->name, SYS_READ_FLAGS, 0)) < 0)
		return fs_err_sys(e, errno, s->dir, s->name, NULL);
	if (sys->fstat(fd, &st) != 0)
		r = fs_err_sys(e, errno, s->dir, s->name, NULL);
	else if (dir_excludes(s->dir, st.st_dev, st.st_ino))
		r = fs_err_set(e, PTCP_EREFUSED, EACCES, s->dir, s->name, EXCLUDED_WHY);
	else if (S_ISREG(st.st_mode) && seems_same(s, &st)) {
		late = needs_time(s, &st) ? set_time(s, fd, &st, e) : 0;
		r = late < 0 ? late : refresh_file(s, fd, e);
		r = r < 0 ? r : r | late;
	}
	sys->close(&fd);
	return r;
}

int sink_refresh(struct sink *s, struct ptcp_err *e)
{
	int at, r;

	if ((at = dir_fd(s->dir, e)) < 0)
		return at;
	r = refresh_at(s, at, e);
	dir_fd_done(s->dir);
	return r;
}

static int inspect(struct sink *s, bool dry_run, struct sink_existing *out, struct ptcp_err *e)
{
	struct sink_existing seen = { .found = SINK_NOTHING };
	int at, r;

	if ((at = dir_fd(s->dir, e)) < 0)
		return at;
	pthread_mutex_lock(&s->lock);
	assert(s->state == SINK_OPEN && s->part.fd < 0);
	r = inspect_target(s, at, dry_run, &seen, e);
	if (r == 0 && !dry_run && seen.found == SINK_NOTHING && sink_has_journal(s))
		r = inspect_part(s, at, &seen, e);
	pthread_mutex_unlock(&s->lock);
	dir_fd_done(s->dir);
	if (r == 0)
		*out = seen;
	return r;
}

int sink_inspect(struct sink *s, struct sink_existing *out, struct ptcp_err *e) { return inspect(s, false, out, e); }
int sink_find_same(struct sink *s, struct sink_existing *out, struct ptcp_err *e) { return inspect(s, true, out, e); }
