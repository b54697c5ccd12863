/* To be preloaded: DIES="CALL N" kills the process before its Nth call of that kind, one of those that work on files:
 * kill -9 at a chosen instant. With DIES=count the process tells on the standard error, when it ends, how many calls of
 * each kind it has made: "dies: CALL N". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum call { READ, CLONE, WRITE, PUNCH, TRUNCATE, SYNC, RENAME, UNLINK, CALLS };

static const char *const names[CALLS] = { "read", "clone", "write", "punch", "truncate", "sync", "rename", "unlink" };
static atomic_uint made[CALLS];
static int at_call = CALLS;
static unsigned at_number;

__attribute__((constructor)) static void begin(void)
{
	const char *dies = getenv("DIES");
	char name[16] = "";
	int i;

	if (dies == NULL || strcmp(program_invocation_short_name, "ptcp") != 0)
		return;
	if (sscanf(dies, "%15s %u", name, &at_number) < 2)
		return;
	for (i = 0; i < CALLS; i++)
		if (strcmp(names[i], name) == 0)
			at_call = i;
}

__attribute__((destructor)) static void end(void)
{
	const char *dies = getenv("DIES");
	int i;

	if (dies == NULL || strcmp(dies, "count") != 0 || strcmp(program_invocation_short_name, "ptcp") != 0)
		return;
	for (i = 0; i < CALLS; i++)
		fprintf(stderr, "dies: %s %u\n", names[i], atomic_load(&made[i]));
}

static void before(enum call c)
{
	if (atomic_fetch_add(&made[c], 1) + 1 == at_number && (int)c == at_call)
		kill(getpid(), SIGKILL);
}

#define REAL(name) __typeof__(&name) real; *(void **)&real = dlsym(RTLD_NEXT, #name)

static int is_file(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

ssize_t preadv2(int fd, const struct iovec *v, int n, off_t off, int flags)
{
	REAL(preadv2);
	if (is_file(fd))
		before(READ);
	return real(fd, v, n, off, flags);
}

ssize_t pwrite(int fd, const void *buf, size_t n, off_t off)
{
	REAL(pwrite);
	if (is_file(fd))
		before(WRITE);
	return real(fd, buf, n, off);
}

int fallocate(int fd, int mode, off_t off, off_t n)
{
	REAL(fallocate);
	before(PUNCH);
	return real(fd, mode, off, n);
}

int ftruncate(int fd, off_t n)
{
	REAL(ftruncate);
	before(TRUNCATE);
	return real(fd, n);
}

int ioctl(int fd, unsigned long request, ...)
{
	REAL(ioctl);
	void *argument;
	va_list ap;

	va_start(ap, request);
	argument = va_arg(ap, void *);
	va_end(ap);
	if (request == FICLONERANGE)
		before(CLONE);
	return real(fd, request, argument);
}

int fsync(int fd)
{
	REAL(fsync);
	before(SYNC);
	return real(fd);
}

int fdatasync(int fd)
{
	REAL(fdatasync);
	before(SYNC);
	return real(fd);
}

int syncfs(int fd)
{
	REAL(syncfs);
	before(SYNC);
	return real(fd);
}

int renameat(int from_at, const char *from, int to_at, const char *to)
{
	REAL(renameat);
	before(RENAME);
	return real(from_at, from, to_at, to);
}

int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
	REAL(renameat2);
	before(RENAME);
	return real(from_at, from, to_at, to, flags);
}

int unlinkat(int at, const char *path, int flags)
{
	REAL(unlinkat);
	before(UNLINK);
	return real(at, path, flags);
}
