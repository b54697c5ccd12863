/* To be preloaded: what the process does to a name "fails-NUMBER-.." fails with that errno: to examine, open, make,
 * rename, link and remove it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char mark[] = "fails-";

/* Whether the last component of the path is such a name; sets errno. */
static int fails(const char *path)
{
	const char *name = path != NULL ? strrchr(path, '/') : NULL;

	name = name != NULL ? name + 1 : path;
	if (name == NULL || strncmp(name, mark, sizeof mark - 1) != 0)
		return 0;
	errno = atoi(name + sizeof mark - 1);
	return 1;
}

#define REAL(name) __typeof__(&name) real; *(void **)&real = dlsym(RTLD_NEXT, #name)

int openat(int at, const char *path, int flags, ...)
{
	REAL(openat);
	mode_t mode = 0;
	va_list ap;

	if ((flags & O_CREAT) != 0) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	return fails(path) ? -1 : real(at, path, flags, mode);
}

/* openat2 has no function of its own. */
long syscall(long number, ...)
{
	REAL(syscall);
	long a[6];
	va_list ap;
	int i;

	va_start(ap, number);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	return number == SYS_openat2 && fails((const char *)a[1]) ? -1 : real(number, a[0], a[1], a[2], a[3], a[4],
	    a[5]);
}

int fstatat(int at, const char *restrict path, struct stat *restrict st, int flags)
{
	REAL(fstatat);

	return fails(path) ? -1 : real(at, path, st, flags);
}

int mkdirat(int at, const char *path, mode_t mode)
{
	REAL(mkdirat);

	return fails(path) ? -1 : real(at, path, mode);
}

int renameat(int from_at, const char *from, int to_at, const char *to)
{
	REAL(renameat);

	return fails(from) || fails(to) ? -1 : real(from_at, from, to_at, to);
}

int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
	REAL(renameat2);

	return fails(from) || fails(to) ? -1 : real(from_at, from, to_at, to, flags);
}

int linkat(int from_at, const char *from, int to_at, const char *to, int flags)
{
	REAL(linkat);

	return fails(from) || fails(to) ? -1 : real(from_at, from, to_at, to, flags);
}

int symlinkat(const char *target, int at, const char *path)
{
	REAL(symlinkat);

	return fails(path) ? -1 : real(target, at, path);
}

int unlinkat(int at, const char *path, int flags)
{
	REAL(unlinkat);

	return fails(path) ? -1 : real(at, path, flags);
}
