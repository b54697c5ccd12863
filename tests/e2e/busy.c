/* To be preloaded: a tree in use by other programs. Each time it is opened to be read, hence after it was listed, a
 * file or directory whose name ends with .gone is removed, a file whose name ends with .grows gets a line more, and one
 * of .shrinks loses its second half; .turns grows, and the second time its first byte is another. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char line[] = "one line more\n";

static int open_at(int at, const char *name, int flags, mode_t mode)
{
	return (int)syscall(SYS_openat, at, name, flags, mode);
}

static int ends(const char *name, const char *with)
{
	size_t n = strlen(name), m = strlen(with);

	return n >= m && strcmp(name + n - m, with) == 0;
}

/* A failure shows in the test. */
static void write_to(int at, const char *name, int flags, const char *text, size_t n)
{
	int fd = open_at(at, name, O_WRONLY | O_CLOEXEC | flags, 0);

	if (fd >= 0 && write(fd, text, n) < 0)
		unlinkat(at, name, 0);
	close(fd);
}

static void shrink(int at, const char *name)
{
	int fd = open_at(at, name, O_WRONLY | O_CLOEXEC, 0);
	struct stat st;

	if (fstat(fd, &st) != 0 || ftruncate(fd, st.st_size / 2) != 0)
		unlinkat(at, name, 0);
	close(fd);
}

static void use(int at, const char *name, int flags)
{
	static atomic_uint turns;

	if ((flags & O_ACCMODE) != O_RDONLY || (flags & O_PATH) != 0)
		return;
	if (ends(name, ".gone") && unlinkat(at, name, 0) != 0)
		unlinkat(at, name, AT_REMOVEDIR);
	if (ends(name, ".grows") || ends(name, ".turns"))
		write_to(at, name, O_APPEND, line, sizeof line - 1);
	if (ends(name, ".turns") && atomic_fetch_add(&turns, 1) > 0)
		write_to(at, name, 0, line, 1);
	if (ends(name, ".shrinks"))
		shrink(at, name);
}

int openat(int at, const char *name, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if ((flags & (O_CREAT | O_TMPFILE)) != 0)
		mode = va_arg(ap, mode_t);
	va_end(ap);
	use(at, name, flags);
	return open_at(at, name, flags, mode);
}

int openat64(int at, const char *name, int flags, ...) __attribute__((alias("openat")));

/* Nothing is open without waiting for the disk: the call above is used. */
long syscall(long number, ...)
{
	long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall"), a[6];
	va_list ap;
	int i;

	va_start(ap, number);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (number == SYS_openat2) {
		errno = ENOSYS;
		return -1;
	}
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
