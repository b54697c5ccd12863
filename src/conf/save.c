#include "conf/save.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/err.h"
#include "core/newfile.h"
#include "core/text.h"

int conf_save(const char *path, const char *text, size_t n, struct ptcp_err *e)
{
	char real[PATH_MAX], shown[TEXT_NAME_BYTES];
	struct stat st = { .st_mode = 0644 };
	struct newfile f;
	bool good;

	text_escape(shown, sizeof shown, path);
	if (realpath(path, real) == NULL) {
		if (errno != ENOENT || strlen(path) >= sizeof real)
			return err_sys(e, PTCP_EIO, "%s", shown);
		strcpy(real, path);
	} else if (stat(real, &st) < 0) {
		return err_sys(e, PTCP_EIO, "%s", shown);
	}
	if (!newfile_begin(&f, real))
		return err_sys(e, PTCP_EIO, "%s: a new file beside it", shown);
	good = fwrite(text, 1, n, f.f) == n && fchmod(fileno(f.f), st.st_mode & 07777) == 0;
	if (!newfile_end(&f, good, true) || !good)
		return err_sys(e, err_from_errno(errno), "%s: writing", shown);
	return 0;
}
