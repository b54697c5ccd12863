/* Error messages, and the paths in them. */
#include "fs/fs_err.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/err.h"
#include "core/text.h"
#include "fs/dir_impl.h"

/* Bytes of a path in a message: leaves space for the reason. */
#define PATH_BYTES 300

/* The path of `name` (may be NULL) in d, cut in front with "../" where `cap` is too small. */
static const char *path(const struct dir *d, const char *name, char *out, size_t cap, bool escape)
{
	char escaped[4 * 255 + 1];
	size_t at = cap - 1, n, keep;
	bool last = true;

	assert(cap >= 16);
	out[at] = '\0';
	for (;; name = d->name, d = d->parent) {
		if (name != NULL) {
			keep = d->parent != NULL ? strlen("../") : 0;
			if (escape) /* a long last component is cut at its end */
				name = text_escape(escaped, last && cap - keep < sizeof escaped ? cap - keep : sizeof escaped, name);
			n = strlen(name);
			if (n + !last + keep > at) {
				memcpy(out + (at -= 3), "../", 3);
				break;
			}
			if (!last)
				out[--at] = '/';
			memcpy(out + (at -= n), name, n);
			last = false;
		}
		if (d->parent == NULL)
			break;
	}
	if (last)
		out[--at] = '.'; /* the root itself */
	return memmove(out, out + at, cap - at);
}

const char *dir_path_text(const struct dir *d, const char *name, char *out, size_t cap)
{
	return path(d, name, out, cap, true);
}

/* Without the first `skip` bytes of the root's path. */
static const char *path_behind(const struct dir *d, size_t skip, char *out, size_t cap)
{
	char below[DIR_PATH_TEXT_BYTES];
	size_t n;

	n = strlen(text_escape(out, cap, d->tree->path + skip));
	if (d->parent != NULL && n < cap)
		snprintf(out + n, cap - n, "%s%s", n == 0 || out[n - 1] == '/' ? "" : "/", dir_path_text(d, NULL, below, sizeof below));
	return out;
}

const char *dir_whole_path_text(const struct dir *d, char *out, size_t cap) { return path_behind(d, 0, out, cap); }

const char *dir_path_raw(const struct dir *d, const char *name, char *out, size_t cap)
{
	return path(d, name, out, cap, false);
}

const char *dir_root_path(const struct dir *d) { return d->tree->path; }

static const char *advice(int sys)
{
	switch (sys) {
	case ENOSPC:
		return " (make room, then run the same command again)";
	case EDQUOT:
		return " (make room within the quota, then run the same command again)";
	case EMFILE:
	case ENFILE:
		return " (raise the limit on open files, see ulimit -n)";
	case EACCES:
	case EPERM:
		return " (check owner and permissions)";
	case EROFS:
		return " (choose another directory or mount the file system writable)";
	case EIO:
		return " (check the disk and the kernel's log)";
	default:
		return "";
	}
}

int fs_err_sys(struct ptcp_err *e, int sys, const struct dir *d, const char *name, const char *what)
{
	int code = err_from_errno(sys);
	char text[PATH_BYTES];

	if (e == NULL)
		return code;
	err_set(e, code, "%s: %s%s%s%s", dir_path_text(d, name, text, sizeof text), what != NULL ? what : "",
	    what != NULL ? ": " : "", strerror(sys), advice(sys));
	e->sys = sys;
	return code;
}

int fs_err_set(struct ptcp_err *e, int code, int sys, const struct dir *d, const char *name,
    const char *why)
{
	char text[PATH_BYTES];

	if (e == NULL)
		return code;
	err_set(e, code, "%s: %s", dir_path_text(d, name, text, sizeof text), why);
	e->sys = sys;
	return code;
}

void fs_err_strip(struct ptcp_err *out, const struct ptcp_err *why, const char *path_text)
{
	size_t n = strlen(path_text);

	*out = *why;
	if (strncmp(why->msg, path_text, n) == 0 && strncmp(why->msg + n, ": ", 2) == 0)
		memmove(out->msg, why->msg + n + 2, strlen(why->msg + n + 2) + 1);
}

void fs_err_at(struct ptcp_err *out, const struct ptcp_err *why, const struct dir *d, const char *name, bool whole)
{
	char text[DIR_PATH_TEXT_BYTES], below[DIR_PATH_TEXT_BYTES + 1] = "/";

	if (d == NULL) {
		*out = *why;
		return;
	}
	fs_err_strip(out, why, dir_path_text(d, name, text, sizeof text));
	if (why->sys != EACCES && why->sys != EPERM && why->sys != EROFS && why->sys != ENOENT && why->sys != ENOTDIR)
		return;
	if (whole)
		dir_whole_path_text(d, below, sizeof below);
	else
		path_behind(d, d->tree->below, below + 1, sizeof below - 1);
	err_while(out, out->code, "in %s", below);
}
