/* To be preloaded: directories below the folder $NOCASE ignore case, as far as ptcp can tell: a name in another case is
 * that of the existing entry. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define REAL(f) ((__typeof__(&f))real(#f))

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

static int is_below(int at)
{
	const char *top = getenv("NOCASE");
	char link[40], path[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof link, "/proc/self/fd/%d", at);
	n = at >= 0 && top != NULL ? readlink(link, path, sizeof path - 1) : -1;
	if (n < 0)
		return 0;
	path[n] = '\0';
	return strncmp(path, top, strlen(top)) == 0;
}

/* The entry's own name, or `name`. */
static const char *own(int at, const char *name, char out[NAME_MAX + 1])
{
	struct dirent *e;
	int fd;
	DIR *d;

	if (strchr(name, '/') != NULL || name[0] == '\0' || strcmp(name, ".") == 0 ||
	    strcmp(name, "..") == 0 || !is_below(at) ||
	    (fd = REAL(openat)(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return name;
	if ((d = fdopendir(fd)) == NULL) {
		close(fd);
		return name;
	}
	while ((e = readdir(d)) != NULL)
		if (strcasecmp(e->d_name, name) == 0)
			name = strcpy(out, e->d_name);
	closedir(d);
	return name;
}

#define OWN(at, name) own(at, name, (char[NAME_MAX + 1]){ 0 })

int openat(int at, const char *name, int flags, ...)
{
	va_list more;
	mode_t mode;

	va_start(more, flags);
	mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
	va_end(more);
	return REAL(openat)(at, OWN(at, name), flags, mode);
}

int fstatat(int at, const char *restrict name, struct stat *restrict st, int flags)
{
	return REAL(fstatat)(at, OWN(at, name), st, flags);
}

int mkdirat(int at, const char *name, mode_t mode) { return REAL(mkdirat)(at, OWN(at, name), mode); }
int unlinkat(int at, const char *name, int flags) { return REAL(unlinkat)(at, OWN(at, name), flags); }
int symlinkat(const char *to, int at, const char *name) { return REAL(symlinkat)(to, at, OWN(at, name)); }

ssize_t readlinkat(int at, const char *restrict name, char *restrict out, size_t n)
{
	return REAL(readlinkat)(at, OWN(at, name), out, n);
}

int linkat(int from, const char *old, int to, const char *new, int flags)
{
	return REAL(linkat)(from, OWN(from, old), to, OWN(to, new), flags);
}

int renameat(int from, const char *old, int to, const char *new)
{
	return REAL(renameat)(from, OWN(from, old), to, OWN(to, new));
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
	return REAL(renameat2)(from, OWN(from, old), to, OWN(to, new), flags);
}
