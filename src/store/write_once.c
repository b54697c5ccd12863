/* Files of clients that only add, and of transfers that only create: an existing name is refused, and never renamed
 * over. A complete file of the former remembers in an extended attribute which client added it, so that this client can
 * repeat a transfer that was cut. */
#include <errno.h>
#include <stdio.h> /* RENAME_NOREPLACE */
#include <string.h>
#include <unistd.h>

#include "fs/file_system.h"
#include "fs/fs_err.h"
#include "store/sink_impl.h"

static const char adder[] = "user.ptcp.added-by";

int sink_taken(const struct sink *s, struct ptcp_err *e)
{
	return fs_err_set(e, PTCP_EREFUSED, EEXIST, s->dir, s->name, s->owner != NULL ?
	    STORE_TAKEN_WHY : STORE_EXISTS_WHY);
}

void sink_mark_owner(const struct sink *s)
{
	if (s->owner != NULL) /* without effect where the file system has no attributes: the name is
	                         refused the next time */
		dir_sys(s->dir)->fsetxattr(s->part.fd, adder, s->owner, strlen(s->owner), 0);
}

/* Whether the open file was added by the owner of s. */
static bool is_owners(const struct sink *s, int fd)
{
	char by[128];
	ssize_t n = dir_sys(s->dir)->fgetxattr(fd, adder, by, sizeof by);

	return n > 0 && (size_t)n == strlen(s->owner) && memcmp(by, s->owner, (size_t)n) == 0;
}

bool sink_is_own(const struct sink *s, int at, const struct stat *st)
{
	const struct sys *sys = dir_sys(s->dir);
	bool done = false;
	struct stat now;
	int fd;

	if (!S_ISREG(st->st_mode) || (uint64_t)st->st_size != s->size_bytes ||
	    dir_excludes(s->dir, st->st_dev, st->st_ino) || (fd = sys->openat(at, s->name, SYS_READ_FLAGS, 0)) < 0)
		return false;
	if (sys->fstat(fd, &now) == 0 && now.st_dev == st->st_dev && now.st_ino == st->st_ino)
		done = is_owners(s, fd) && now.st_mtim.tv_sec == s->meta.mtime.tv_sec &&
		    now.st_mtim.tv_nsec == s->meta.mtime.tv_nsec;
	sys->close(&fd);
	return done;
}

int sink_name_new(const struct sink *s, int at, const char *part, const char *name, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(s->dir);

	if (sys->renameat2(at, part, at, name, RENAME_NOREPLACE) == 0)
		return 0;
	/* Some network file systems lack the flag; a link replaces nothing either. */
	if (fs_cannot(ABILITY_NO_REPLACE, errno) && sys->linkat(at, part, at, name, 0) == 0) {
		sys->unlinkat(at, part, 0);
		return 0;
	}
	return errno == EEXIST ? sink_taken(s, e) :
	    fs_err_sys(e, errno, s->dir, name, "cannot rename the part file to its final name");
}
