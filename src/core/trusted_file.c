#include "core/trusted_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fd.h"

int trusted_file_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0) {
		if (S_ISREG(st.st_mode))
			return fd;
		errno = EINVAL;
	}
	fd_close(&fd);
	return -1;
}

/* Root owns the root directory, also in a user namespace in which root has no number. */
static bool is_trusted_owner(uid_t user)
{
	struct stat top;

	return user == geteuid() || user == 0 || (stat("/", &top) == 0 && user == top.st_uid);
}

/* Like sshd, trusts whoever manages the directories above the home. */
static bool is_home(const char *dir)
{
	const char *home = getenv("HOME");
	struct stat a, b;

	return home != NULL && stat(home, &a) == 0 && stat(dir, &b) == 0 && a.st_dev == b.st_dev &&
	    a.st_ino == b.st_ino && a.st_uid == geteuid();
}

/* Of `dir`, an absolute path without links, and the directories above. Others can replace nothing of ours in a
 * directory with the sticky bit. */
static const char *fault_of_directories(char *dir)
{
	bool direct = true;
	struct stat st;
	char *slash;

	for (;; direct = false) {
		if (lstat(dir, &st) < 0)
			return "its owner cannot be determined (check the file and its directory)";
		if ((st.st_mode & 022) != 0 && (st.st_mode & S_ISVTX) == 0)
			return direct ?
			    "others can write its directory (chmod 700 the directory and check the file's content)" :
			    "others can write a directory above (chmod go-w that directory and check the file's "
			    "content)";
		if (!is_trusted_owner(st.st_uid))
			return direct ? "its directory belongs to another user (move the file and check its content)" :
			    "a directory above belongs to another user (move the file and check its content)";
		if (is_home(dir) || (slash = strrchr(dir, '/')) == NULL || dir[1] == '\0')
			return NULL;
		slash[slash == dir] = '\0';
	}
}

const char *trusted_file_fault(int fd, const char *path)
{
	static const char unknown[] = "its owner cannot be determined (check the file and its directory)";
	char dir[PATH_MAX], named[PATH_MAX], real[PATH_MAX], *slash;
	struct stat st;
	const char *fault;

	if (fstat(fd, &st) < 0)
		return unknown;
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return "belongs to another user (chown the file and check its content)";
	if ((st.st_mode & 022) != 0)
		return "others can write it (chmod 600 the file and check its content)";
	if ((size_t)snprintf(dir, sizeof dir, "%s%s", strchr(path, '/') == NULL ? "./" : "", path) >= sizeof dir)
		return unknown;
	*(strrchr(dir, '/') + 1) = '\0';
	/* The file may have been replaced since it was opened, as files of trust are when they change: the directories
	 * count. */
	if (realpath(dir, named) == NULL || realpath(path, real) == NULL)
		return unknown;
	if ((fault = fault_of_directories(named)) != NULL)
		return fault;
	slash = strrchr(real, '/'); /* the file itself, if `path` is a link */
	slash[slash == real] = '\0';
	return fault_of_directories(real);
}
