#include "core/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/fd.h"

#define SUFFIX ".XXXXXX"

static void discard(struct atomic_file *n)
{
	int sys = errno;

	if (n->temp != NULL)
		unlink(n->temp);
	free(n->temp);
	errno = sys;
}

bool atomic_file_begin(struct atomic_file *n, const char *path)
{
	size_t len = strlen(path);
	int fd;

	*n = (struct atomic_file){ .path = path, .temp = malloc(len + sizeof SUFFIX) };
	if (n->temp == NULL)
		return false;
	memcpy(n->temp, path, len);
	memcpy(n->temp + len, SUFFIX, sizeof SUFFIX);
	if ((fd = mkostemp(n->temp, O_CLOEXEC)) < 0) {
		free(n->temp);
		return false;
	}
	if ((n->f = fd_file(&fd, "w")) != NULL)
		return true;
	discard(n);
	return false;
}

bool atomic_file_end(struct atomic_file *n, bool keep, bool sync)
{
	bool good;

	if (keep)
		errno = EIO; /* ferror() keeps no errno */
	good = fflush(n->f) == 0 && !ferror(n->f) && (!keep || !sync || fsync(fileno(n->f)) == 0);
	good = fclose(n->f) == 0 && good;
	if (keep && good && rename(n->temp, n->path) == 0) {
		free(n->temp);
		return !sync || atomic_file_sync_name(n->path);
	}
	discard(n);
	return !keep;
}

bool atomic_file_sync_name(const char *path)
{
	const char *end = strrchr(path, '/');
	char *dir = end != NULL ? strndup(path, (size_t)(end - path) + 1) : strdup(".");
	int fd, sys = 0;

	if (dir == NULL)
		return false;
	if ((fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
		sys = errno != EACCES ? errno : 0;
	} else {
		if (fsync(fd) < 0 && errno != EINVAL && errno != EOPNOTSUPP)
			sys = errno;
		fd_close(&fd);
	}
	free(dir);
	errno = sys;
	return sys == 0;
}
