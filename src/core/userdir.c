#include "core/userdir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/err.h"
#include "core/fd.h"

enum { LOCK_MS = 1000, FILE_LOCK_MS = 10000 }; /* a stopped process must not block all others */

static int userdir_find(char out[USERDIR_BYTES], const char *dir, const char *variable, const char *below_home,
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
	return userdir_find(out, dir, "XDG_CONFIG_HOME", ".config", "configuration", e);
}

int userdir_state(char out[USERDIR_BYTES], const char *dir, struct ptcp_err *e)
{
	return userdir_find(out, dir, "XDG_STATE_HOME", ".local/state", "path history", e);
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

static bool is_ours(const char *dir)
{
	struct stat st;

	return stat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

/* Appends `parent`/ptcp; returns the new number of directories. */
static unsigned add_runtime(char out[USERDIR_RUNTIME][USERDIR_RUNTIME_BYTES], unsigned n, const char *parent)
{
	unsigned i;

	if (parent == NULL || parent[0] != '/' || !is_ours(parent) ||
	    snprintf(out[n], USERDIR_RUNTIME_BYTES, "%s/ptcp", parent) >= USERDIR_RUNTIME_BYTES)
		return n;
	for (i = 0; i < n; i++)
		if (strcmp(out[i], out[n]) == 0)
			return n;
	return n + 1;
}

unsigned userdir_runtime(char out[USERDIR_RUNTIME][USERDIR_RUNTIME_BYTES])
{
	unsigned n = add_runtime(out, 0, getenv("XDG_RUNTIME_DIR"));
	char of_login[32], state[USERDIR_BYTES];

	snprintf(of_login, sizeof of_login, "/run/user/%u", (unsigned)geteuid());
	n = add_runtime(out, n, of_login);
	snprintf(out[n++], USERDIR_RUNTIME_BYTES, "/tmp/ptcp-%u", (unsigned)geteuid());
	if (userdir_state(state, NULL, NULL) == 0 &&
	    snprintf(out[n], USERDIR_RUNTIME_BYTES, "%s/run", state) < USERDIR_RUNTIME_BYTES)
		n++;
	return n;
}

int userdir_private(const char *dir, bool make, struct ptcp_err *e)
{
	struct stat st;
	int fd, r;

	if (make && (r = userdir_make(dir, e)) < 0)
		return r;
	if ((fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
		return err_sys(e, PTCP_ECONFIG, "the directory %s", dir);
	/* An own directory without write access of others, made with another umask, holds no files of theirs. */
	if (fstat(fd, &st) < 0)
		st = (struct stat){ .st_uid = (uid_t)-1 };
	if (st.st_uid == geteuid() && (st.st_mode & 077) != 0 && (st.st_mode & 022) == 0 &&
	    fchmod(fd, 0700) == 0)
		st.st_mode &= ~(mode_t)077;
	if (st.st_uid != geteuid() || (st.st_mode & 077) != 0)
		r = err_set(e, PTCP_ECONFIG,
		    "the directory %s: belongs to another user, or other users have access (remove it)", dir);
	else if (!fd_lock(fd, LOCK_MS))
		r = err_sys(e, PTCP_ECONFIG, "locking the directory %s", dir);
	else if (fstat(fd, &st) == 0 && st.st_nlink == 0) /* the process that held the lock has removed the directory */
		r = make ? userdir_private(dir, make, e) : err_set(e, PTCP_ECONFIG, "the directory %s: removed", dir);
	else
		return fd;
	fd_close(&fd);
	return r;
}

void userdir_private_remove(const char *dir)
{
	int fd = userdir_private(dir, false, NULL);

	if (fd < 0)
		return;
	rmdir(dir);
	fd_close(&fd);
}

int userdir_lock(const char *path, struct ptcp_err *e)
{
	char lock[PATH_MAX];
	int fd, r;

	snprintf(lock, sizeof lock, "%s.lock", path);
	fd = open(lock, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600); /* not blocking on a FIFO */
	if (fd >= 0 && fd_lock(fd, FILE_LOCK_MS))
		return fd;
	r = err_sys(e, PTCP_ECONFIG, "locking %s", lock);
	fd_close(&fd);
	return r;
}

FILE *userdir_read(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 022) == 0)
		return fd_file(&fd, "r");
	errno = EPERM;
	fd_close(&fd);
	return NULL;
}
