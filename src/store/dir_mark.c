#include "store/dir_mark.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "store/part.h"
#include "store/store_err.h"

static int write_mark(struct dir *parent, int at, const char *mark, const char *source, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(parent);
	size_t n = strlen(source);
	ssize_t w;
	int fd, r = 0;

	/* What is there is nobody's any more, or another transfer of the same name is at work and its
	 * files will say so. */
	if (sys->unlinkat(at, mark, 0) != 0 && errno != ENOENT)
		return store_err_sys(e, errno, parent, mark, "cannot remove an old mark");
	fd = sys->openat(at, mark, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return store_err_sys(e, errno, parent, mark, "cannot create the mark of an unfinished directory");
	if ((w = sys->pwrite(fd, source, n, 0)) != (ssize_t)n)
		r = store_err_sys(e, w < 0 ? errno : ENOSPC, parent, mark, "cannot write");
	/* Empty it would be none, after a power cut. */
	if (r == 0 && sys->fsync(fd) != 0 && !sys_cannot_sync(errno))
		r = store_err_sys(e, errno, parent, mark, "cannot sync");
	if (sys->close(fd) != 0 && r == 0)
		r = store_err_sys(e, errno, parent, mark, "cannot write");
	if (r < 0)
		sys->unlinkat(at, mark, 0);
	return r;
}

int dir_mark_mark(struct dir *parent, const char *name, const char *source, struct ptcp_err *e)
{
	char mark[PART_NAME_BYTES];
	int at, r;

	if ((at = dir_fd(parent, e)) < 0)
		return at;
	r = write_mark(parent, at, part_name(mark, name, PART_DIR_SUFFIX), source, e);
	dir_fd_done(parent);
	return r;
}

static bool read_mark(const struct sys *sys, int fd, char source[DIR_MARK_SOURCE_BYTES])
{
	struct iovec v = { source, DIR_MARK_SOURCE_BYTES };
	struct stat st;
	ssize_t n;

	if (sys->fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    (n = sys->preadv2(fd, &v, 1, 0, 0)) <= 0 || n == DIR_MARK_SOURCE_BYTES)
		return false;
	source[n] = '\0';
	return text_name_ok(source, (size_t)n);
}

bool dir_mark_marked(struct dir *parent, const char *name, char source[DIR_MARK_SOURCE_BYTES])
{
	const struct sys *sys = dir_sys(parent);
	char mark[PART_NAME_BYTES];
	struct stat st;
	bool found = false;
	int at, fd;

	if ((at = dir_fd(parent, NULL)) < 0)
		return false;
	part_name(mark, name, PART_DIR_SUFFIX);
	fd = sys->openat(at, mark, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0);
	if (fd >= 0) {
		/* A link under that name would not have been made by us, and is not entered. */
		found = read_mark(sys, fd, source) &&
		    sys->fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
		sys->close(fd);
	}
	dir_fd_done(parent);
	return found;
}

void dir_mark_unmark(struct dir *parent, const char *name)
{
	char mark[PART_NAME_BYTES];
	int at;

	if ((at = dir_fd(parent, NULL)) < 0)
		return;
	dir_sys(parent)->unlinkat(at, part_name(mark, name, PART_DIR_SUFFIX), 0);
	dir_fd_done(parent);
}
