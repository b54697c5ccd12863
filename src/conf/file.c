#include "conf/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/atomic_file.h"
#include "core/err.h"
#include "core/text.h"

static int unreadable(const char *shown, struct ptcp_err *e)
{
	int sys = errno, r;

	r = err_set(e, PTCP_EIO, "%s: %s (name a file that can be read)", shown, strerror(sys));
	if (e != NULL)
		e->sys = sys;
	return r;
}

static int read_all(int fd, char *buf, size_t max, size_t *n, const char *shown, struct ptcp_err *e)
{
	ssize_t got;

	for (*n = 0; *n < max; *n += (size_t)got) {
		got = read(fd, buf + *n, max - *n);
		if (got < 0 && errno == EINTR)
			got = 0;
		else if (got < 0)
			return unreadable(shown, e);
		else if (got == 0)
			break;
	}
	return 0;
}

int conf_read_file(char **out, size_t *n, const char *path, const char *shown, struct ptcp_err *e)
{
	/* One byte more than allowed, so that a file that is too long is seen. */
	const size_t max = CONF_FILE_MAX_BYTES + 1;
	char *buf = NULL;
	struct stat st;
	int fd, r;

	/* O_NONBLOCK: a FIFO must not hang us. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return unreadable(shown, e);
	if (fstat(fd, &st) < 0)
		r = unreadable(shown, e);
	else if (S_ISDIR(st.st_mode))
		r = err_set(e, PTCP_EIO, "%s: is a directory (a file was expected)", shown);
	else if ((buf = malloc(max)) == NULL)
		r = err_nomem(e);
	else
		r = read_all(fd, buf, max, n, shown, e);
	close(fd);
	if (r < 0)
		free(buf);
	else
		*out = buf;
	return r;
}

int conf_save(const char *path, const char *text, size_t n, struct ptcp_err *e)
{
	char real[PATH_MAX], shown[TEXT_NAME_BYTES];
	struct stat st = { .st_mode = 0644 };
	struct atomic_file f;
	bool good;

	text_escape(shown, sizeof shown, path);
	if (realpath(path, real) == NULL) {
		if (errno != ENOENT || strlen(path) >= sizeof real)
			return err_sys(e, PTCP_EIO, "%s", shown);
		strcpy(real, path);
	} else if (stat(real, &st) < 0) {
		return err_sys(e, PTCP_EIO, "%s", shown);
	}
	if (!atomic_file_begin(&f, real))
		return err_sys(e, PTCP_EIO, "%s: a new file beside it", shown);
	good = fwrite(text, 1, n, f.f) == n && fchmod(fileno(f.f), st.st_mode & 07777) == 0;
	if (!atomic_file_end(&f, good, true) || !good)
		return err_sys(e, err_from_errno(errno), "%s: writing", shown);
	return 0;
}
