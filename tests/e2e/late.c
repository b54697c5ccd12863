/* To be preloaded: the host "late" of a shared file system, which shows the part files of other hosts LATE_S seconds
 * after the first look for one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int is_hidden(const char *name, int flags)
{
	static time_t first_s;
	const char *late_s = getenv("LATE_S");
	size_t n = strlen(name);
	struct timespec now;

	if ((flags & O_CREAT) != 0 || n < 5 || strcmp(name + n - 5, ".part") != 0 || late_s == NULL)
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (first_s == 0)
		first_s = now.tv_sec;
	return now.tv_sec - first_s < atoi(late_s);
}

int openat(int at, const char *name, int flags, ...)
{
	int (*real)(int, const char *, int, ...);
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (is_hidden(name, flags)) {
		errno = ENOENT;
		return -1;
	}
	*(void **)&real = dlsym(RTLD_NEXT, "openat");
	return real(at, name, flags, mode);
}

int gethostname(char *name, size_t cap)
{
	strncpy(name, "late", cap);
	return 0;
}
