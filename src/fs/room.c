#include "fs/room.h"

#include <errno.h>
#include <unistd.h>

#include "core/err.h"
#include "core/units.h"
#include "fs/dir_impl.h"

/* The blocks that a file system reserves are there for root. A size of 0 is no limit, or unknown. */
static void read_numbers(struct room *out, const struct statfs *fs)
{
	const uint64_t unit = fs->f_frsize > 0 ? (uint64_t)fs->f_frsize : (uint64_t)fs->f_bsize;
	const uint64_t blocks = geteuid() == 0 ? fs->f_bfree : fs->f_bavail;

	if (fs->f_blocks > 0 && (unit == 0 || blocks <= UINT64_MAX / unit))
		out->free_bytes = blocks * unit;
	if (fs->f_files > 0)
		out->free_entries = fs->f_ffree;
}

void room_look(struct room *out, struct dir *d)
{
	struct ptcp_err why = { 0 };
	struct statfs fs;
	int at = -1;

	*out = (struct room){ .free_bytes = ROOM_UNKNOWN, .free_entries = ROOM_UNKNOWN };
	while (d != NULL && (at = dir_fd(d, &why)) < 0 && why.sys == ENOENT)
		d = d->parent;
	if (d == NULL || at < 0)
		return;
	out->dev = dir_dev(d);
	if (dir_sys(d)->fstatfs(at, &fs) == 0)
		read_numbers(out, &fs);
	if (dir_sys(d)->faccessat(at, ".", W_OK | X_OK, AT_EACCESS) != 0 &&
	    (errno == EACCES || errno == EROFS || errno == EPERM))
		out->no_names = errno;
	dir_fd_done(d);
}

uint64_t room_dev(struct dir *d)
{
	uint64_t dev = 0;

	for (; d != NULL && dev == 0; d = d->parent)
		dev = dir_dev(d);
	return dev;
}

int room_check(const struct room *r, uint64_t bytes, uint64_t entries, bool at_least, struct ptcp_err *e)
{
	const char *least = at_least ? "at least " : "";
	char need[UNITS_TEXT_BYTES], left[UNITS_TEXT_BYTES];

	if (bytes > r->free_bytes)
		return err_set(e, PTCP_ENOSPC, "will not fit: needs %s%s, and %s are free (free space there, or try "
		    "with --no-preflight)", least, units_size_text(need, bytes), units_size_text(left, r->free_bytes));
	if (entries > r->free_entries)
		return err_set(e, PTCP_ENOSPC, "will not fit: needs %s%llu inodes, for files, directories and links, "
		    "and %llu are free (free space there, or try with --no-preflight)", least,
		    (unsigned long long)entries,
		    (unsigned long long)r->free_entries);
	return 0;
}
