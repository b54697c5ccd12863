#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type;
	return ftw->level > 0 ? remove(path) : 0;
}

void scratch_empty(void)
{
	MUST(nftw(scratch(), remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
}

static void leave(void)
{
	scratch_empty();
	rmdir(dir);
}

const char *scratch(void)
{
	const char *in = access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
	unsigned i = 0;

	if (dir[0] == '\0') {
		do
			snprintf(dir, sizeof dir, "%s/ptcp-fuzz-%u", in, i++);
		while (mkdir(dir, 0700) != 0 && errno == EEXIST);
		MUST(access(dir, W_OK) == 0);
		atexit(leave);
	}
	return dir;
}

const char *scratch_path(const char *name)
{
	static char path[sizeof dir + 256];

	snprintf(path, sizeof path, "%s/%s", scratch(), name);
	return path;
}

void scratch_write(const char *name, struct input content)
{
	int fd = open(scratch_path(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	MUST(fd >= 0 && write(fd, content.p, content.n) == (ssize_t)content.n);
	close(fd);
}
