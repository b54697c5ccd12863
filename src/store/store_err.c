#include "store/store_err.h"

#include <errno.h>
#include <string.h>

/* Room for the reason must be left in the sentence. */
#define PATH_BYTES 300

static const char *advice(int sys)
{
	switch (sys) {
	case ENOSPC:
		return " (make room, then run the same command again)";
	case EDQUOT:
		return " (make room within the quota, then run the same command again)";
	case EMFILE:
	case ENFILE:
		return " (raise the limit on open files, see ulimit -n)";
	case EACCES:
	case EPERM:
		return " (check owner and permissions)";
	case EROFS:
		return " (choose another place or mount it writable)";
	case EIO:
		return " (check the disk and the kernel's log)";
	default:
		return "";
	}
}

int store_err_sys(struct ptcp_err *e, int sys, const struct dir *d, const char *name, const char *what)
{
	int code = err_from_errno(sys);
	char path[PATH_BYTES];

	if (e == NULL)
		return code;
	err_set(e, code, "%s: %s: %s%s", dir_path_text(d, name, path, sizeof path), what,
	    strerror(sys), advice(sys));
	e->sys = sys;
	return code;
}

int store_err_why(struct ptcp_err *e, int code, int sys, const struct dir *d, const char *name,
    const char *why)
{
	char path[PATH_BYTES];

	if (e == NULL)
		return code;
	err_set(e, code, "%s: %s", dir_path_text(d, name, path, sizeof path), why);
	e->sys = sys;
	return code;
}

int store_err_unless_replaceable(struct ptcp_err *e, int at, const struct dir *d, const char *name)
{
	struct stat st;

	if (dir_sys(d)->fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0 : store_err_sys(e, errno, d, name, "cannot look what has its name");
	if (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode))
		return 0;
	if (S_ISDIR(st.st_mode))
		return store_err_why(e, PTCP_EIO, EISDIR, d, name, "a directory has this name (move it away)");
	return store_err_why(e, PTCP_EIO, EEXIST, d, name,
	    "a device, FIFO or socket has this name and is not replaced (move it away)");
}
