#include "core/trusted_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int trusted_file_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), sys = EINVAL;
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		sys = errno;
	else if (S_ISREG(st.st_mode))
		return fd;
	close(fd);
	errno = sys;
	return -1;
}

static int stat_directory(struct stat *st, const char *path)
{
	const char *end = strrchr(path, '/');
	char dir[PATH_MAX];

	if (end == NULL)
		return stat(".", st);
	snprintf(dir, sizeof dir, "%.*s", (int)(end - path) + 1, path);
	return stat(dir, st);
}

const char *trusted_file_fault(int fd, const char *path)
{
	struct stat st, above;

	if (fstat(fd, &st) < 0 || stat_directory(&above, path) < 0)
		return "its owner cannot be determined (check the file and its directory)";
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return "belongs to another user (chown the file and check its content)";
	if ((st.st_mode & 022) != 0)
		return "others can write it (chmod 600 the file and check its content)";
	if ((above.st_mode & 022) != 0 && (above.st_mode & S_ISVTX) == 0)
		return "others can write its directory (chmod 700 the directory and check the file's content)";
	return NULL;
}
