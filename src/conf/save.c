#include "conf/save.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/err.h"
#include "core/text.h"

static int write_all(int fd, const char *p, size_t n)
{
	ssize_t done;

	for (; n > 0; p += done, n -= (size_t)done)
		if ((done = write(fd, p, n)) < 0) {
			if (errno != EINTR)
				return -1;
			done = 0;
		}
	return 0;
}

int conf_save(const char *path, const char *text, size_t n, struct ptcp_err *e)
{
	char real[PATH_MAX], temp[PATH_MAX + 8], shown[TEXT_NAME_BYTES];
	struct stat st = { .st_mode = 0644 };
	int fd, r = 0;

	text_escape(shown, sizeof shown, path);
	if (realpath(path, real) == NULL) {
		if (errno != ENOENT || strlen(path) >= sizeof real)
			return err_sys(e, PTCP_EIO, "%s", shown);
		strcpy(real, path);
	} else if (stat(real, &st) < 0) {
		return err_sys(e, PTCP_EIO, "%s", shown);
	}
	snprintf(temp, sizeof temp, "%s.XXXXXX", real);
	if ((fd = mkstemp(temp)) < 0)
		return err_sys(e, PTCP_EIO, "%s: a new file beside it", shown);
	if (write_all(fd, text, n) < 0 || fchmod(fd, st.st_mode & 07777) < 0 || fsync(fd) < 0 ||
	    rename(temp, real) < 0) {
		r = err_sys(e, err_from_errno(errno), "%s: writing", shown);
		unlink(temp);
	}
	close(fd);
	return r;
}
