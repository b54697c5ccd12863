#include "core/userdir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/err.h"

static int find(char out[USERDIR_BYTES], const char *dir, const char *variable, const char *below_home,
    const char *what, struct ptcp_err *e)
{
	const char *xdg = getenv(variable), *home = getenv("HOME");
	int n;

	if (dir != NULL)
		n = snprintf(out, USERDIR_BYTES, "%s", dir);
	else if (xdg != NULL && xdg[0] == '/')
		n = snprintf(out, USERDIR_BYTES, "%s/ptcp", xdg);
	else if (home != NULL && home[0] == '/')
		n = snprintf(out, USERDIR_BYTES, "%s/%s/ptcp", home, below_home);
	else
		return err_set(e, PTCP_ECONFIG, "no directory for the %s: neither %s nor HOME is set (set one of them)",
		    what, variable);
	if (n == 0)
		return err_set(e, PTCP_ECONFIG, "the directory of the %s: empty path (name a directory)", what);
	if (n >= USERDIR_BYTES)
		return err_set(e, PTCP_ECONFIG, "the directory of the %s: path too long (name a shorter path)", what);
	return 0;
}

int userdir_config(char out[USERDIR_BYTES], const char *dir, struct ptcp_err *e)
{
	return find(out, dir, "XDG_CONFIG_HOME", ".config", "configuration", e);
}

int userdir_state(char out[USERDIR_BYTES], const char *dir, struct ptcp_err *e)
{
	return find(out, dir, "XDG_STATE_HOME", ".local/state", "path history", e);
}

int userdir_make(const char *dir, struct ptcp_err *e)
{
	char part[USERDIR_BYTES];
	size_t i;

	snprintf(part, sizeof part, "%s", dir);
	for (i = 1; ; i++) {
		char c = part[i];

		if (c != '/' && c != '\0')
			continue;
		part[i] = '\0';
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return err_sys(e, PTCP_ECONFIG, "creating the directory %s", part);
		part[i] = c;
		if (c == '\0')
			return 0;
	}
}

int userdir_lock(const char *path, struct ptcp_err *e)
{
	char lock[PATH_MAX];
	int fd, r;

	snprintf(lock, sizeof lock, "%s.lock", path);
	fd = open(lock, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600); /* not blocking on a FIFO */
	if (fd >= 0 && flock(fd, LOCK_EX) == 0)
		return fd;
	r = err_sys(e, PTCP_ECONFIG, "locking %s", lock);
	if (fd >= 0)
		close(fd);
	return r;
}

FILE *userdir_read(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	FILE *f;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 022) == 0) {
		if ((f = fdopen(fd, "r")) != NULL)
			return f;
	} else {
		errno = EPERM;
	}
	close(fd);
	return NULL;
}
