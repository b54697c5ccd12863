/* What each entry of a walk is. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/text.h"
#include "store/store_err.h"
#include "store/walk_impl.h"

void walk_entry_fini(struct walk_entry *e)
{
	dir_unref(e->dir);
	free(e->name);
	free(e->target);
	free(e->why);
	*e = (struct walk_entry){ 0 };
}

static int read_target(struct walk_entry *out, int at, struct ptcp_err *why)
{
	const struct sys *sys = dir_sys(out->dir);
	char target[PATH_MAX + 1];
	ssize_t n = sys->readlinkat(at, out->name, target, sizeof target);

	if (n < 0)
		return store_err_sys(why, errno, out->dir, out->name, "cannot read the link");
	if ((size_t)n == sizeof target)
		return store_err_sys(why, ENAMETOOLONG, out->dir, out->name, "cannot read the link");
	if ((out->target = strndup(target, (size_t)n)) == NULL)
		return err_nomem(why);
	return 0;
}

static const char *special(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFIFO: return "a FIFO: not sent";
	case S_IFSOCK: return "a socket: not sent";
	case S_IFCHR: return "a character device: not sent";
	case S_IFBLK: return "a block device: not sent";
	default: return "of an unknown type: not sent";
	}
}

int walk_skip(struct walk_entry *out, const char *text, struct ptcp_err *why)
{
	store_err_why(why, 0, 0, out->dir, out->name, text);
	out->type = WALK_SKIPPED;
	free(out->target);
	out->target = NULL;
	return (out->why = strdup(why->msg)) != NULL ? 0 : err_nomem(why);
}

/* Fills what stat tells into out, which has dir, name and depth. */
static int classify(struct walk_entry *out, int at, const struct stat *st, struct ptcp_err *why)
{
	out->size_bytes = (uint64_t)st->st_size;
	out->dev = (uint64_t)st->st_dev;
	out->ino = (uint64_t)st->st_ino;
	out->nlink = (uint64_t)st->st_nlink;
	out->mode = st->st_mode & 07777;
	out->uid = st->st_uid;
	out->gid = st->st_gid;
	out->mtime = st->st_mtim;
	out->ctime = st->st_ctim;
	if (S_ISREG(st->st_mode)) {
		out->type = WALK_FILE;
		out->sparse = (uint64_t)st->st_blocks < out->size_bytes / 512;
		return 0;
	}
	if (S_ISLNK(st->st_mode)) {
		out->type = WALK_SYMLINK;
		return read_target(out, at, why);
	}
	if (!S_ISDIR(st->st_mode))
		return walk_skip(out, special(st->st_mode), why);
	out->type = WALK_DIR;
	if (out->depth > WALK_DEPTH_MAX)
		return store_err_why(why, PTCP_EIO, 0, out->dir, out->name, "too many directories deep");
	return 0;
}

int walk_look(struct walk_entry *out, struct ptcp_err *why)
{
	struct stat st;
	int at, r;

	if (!text_name_ok(out->name, strlen(out->name))) /* over 255 bytes: some file systems */
		return store_err_why(why, PTCP_EIO, ENAMETOOLONG, out->dir, out->name, "a name that cannot be sent");
	if ((at = dir_fd(out->dir, why)) < 0)
		return at;
	if (dir_sys(out->dir)->fstatat(at, out->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		r = classify(out, at, &st, why);
	else
		r = store_err_sys(why, errno, out->dir, out->name, "cannot examine it");
	dir_fd_done(out->dir);
	return r;
}
