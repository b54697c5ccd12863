/* Files whose data is on this host: sink_copy_in(). */
#include <errno.h>
#include <unistd.h>

#include "fs/fs_err.h"
#include "store/sink_impl.h"

/* Copies [from, to) at the same place. 0, or an errno. */
static int copy_range(const struct sys *sys, int fd, int from, off_t off, off_t end)
{
	ssize_t n;

	if (sys->lseek(fd, off, SEEK_SET) < 0)
		return errno;
	while (off < end) {
		size_t most = end - off > 1 << 30 ? 1 << 30 : (size_t)(end - off);

		if ((n = sys->sendfile(fd, from, &off, most)) == 0)
			return ESTALE; /* shorter than before */
		if (n < 0 && errno != EINTR)
			return errno;
	}
	return 0;
}

/* Shares the data where the file system can, and leaves holes. 0, or an errno. */
static int copy_data(const struct sys *sys, int fd, int from, off_t size)
{
	off_t off = 0, data;
	int r = 0;

	if (size == 0 || sys->clonerange(fd, from, 0, (uint64_t)size) == 0)
		return 0;
	while (r == 0 && off < size) {
		if ((data = sys->lseek(from, off, SEEK_DATA)) < 0 && errno == ENXIO)
			break;
		if (data < 0) /* the file system knows no holes */
			return copy_range(sys, fd, from, off, size);
		if ((off = sys->lseek(from, data, SEEK_HOLE)) < 0)
			return errno;
		r = copy_range(sys, fd, from, data, off < size ? off : size);
	}
	return r;
}

static bool is_unchanged(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	    a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	    a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static int fill(struct sink *s, int from, const struct stat *st, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(s->dir);
	uint64_t bytes = (uint64_t)st->st_blocks * 512;
	struct stat now;
	int r, failed;

	if ((r = quota_store(&s->hold, bytes < s->size_bytes ? bytes : s->size_bytes, e)) < 0)
		return r;
	/* With holes at the end the copy is shorter. */
	failed = sys->ftruncate(s->part.fd, st->st_size) != 0 ? errno : copy_data(sys, s->part.fd, from, st->st_size);
	if (failed != 0)
		return fs_err_sys(e, failed, s->dir, s->name, "cannot copy the data of the older file");
	if (sys->fstat(from, &now) != 0 || !is_unchanged(st, &now))
		return fs_err_set(e, PTCP_ECHANGED, ESTALE, s->dir, s->name,
		    "the older copy of the file changes (run the same command again)");
	return 0;
}

static void drop(struct sink *s, int at)
{
	char part[PART_NAME_BYTES];

	if (sink_owns_part_name(s, at) == 1)
		dir_sys(s->dir)->unlinkat(at, part_name(part, s->key, PART_SUFFIX), 0);
	sink_remove_journal(s, at);
	sink_close(s);
	quota_end(&s->hold, 0);
}

int sink_copy_in(struct sink *s, int at, int from, struct ptcp_err *e)
{
	struct direct_io *direct = s->opts.direct_io;
	struct stat st;
	int r;

	if (dir_sys(s->dir)->fstat(from, &st) != 0)
		return fs_err_sys(e, errno, s->dir, s->name, NULL);
	s->opts.direct_io = NULL; /* the kernel copies by the page cache */
	if ((r = sink_open_part(s, at, true, e)) == 0 && (r = fill(s, from, &st, e)) < 0)
		drop(s, at);
	if (r < 0)
		s->opts.direct_io = direct;
	return r;
}
