/* Changes of single names: ptcp mkdir, rmdir, touch and mv. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/text.h"
#include "fs/fs_err.h"
#include "server/managing_impl.h"
#include "store/manage.h"

/* "a/b//" to "a/b"; to be freed. */
static char *without_slashes(const char *path)
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	return strndup(path, n);
}

int managing_find_name(struct managing *m, const char *path, struct dir **dir, char name[DESTINATION_NAME_BYTES],
    struct ptcp_err *e)
{
	char *plain = without_slashes(path);
	int r;

	if (plain == NULL)
		return err_nomem(e);
	if (text_is_contents(plain) || (m->job.request.own && plain[0] == '~' && strchr(plain, '/') == NULL))
		r = err_set(e, PTCP_EREFUSED, "not the name of a file or directory (end it with one)");
	else
		r = request_source(&m->job.request, plain, false, dir, name, e);
	free(plain);
	return r;
}

static int make_one(struct managing *m, const char *path, bool existing, struct ptcp_err *e)
{
	char name[DESTINATION_NAME_BYTES], text[DIR_PATH_TEXT_BYTES];
	struct ptcp_err why;
	struct dir *d;
	int r;

	if ((r = managing_find_name(m, path, &d, name, e)) < 0)
		return r;
	if ((r = manage_mkdir(d, name, existing, &why)) < 0)
		fs_err_strip(e, &why, dir_path_text(d, name, text, sizeof text));
	else
		r = dir_sync(d, e);
	dir_unref(d);
	return r;
}

static bool is_directory(struct managing *m, const char *path, struct ptcp_err *e)
{
	char name[DESTINATION_NAME_BYTES];
	struct dir *d = NULL;
	bool found = request_source(&m->job.request, path, true, &d, name, e) == 0;

	dir_unref(d);
	return found;
}

/* Makes the missing directories of the path, from the first on. */
static int make_parents(struct managing *m, char *path, struct ptcp_err *e)
{
	size_t i, n = strlen(path);
	char end;
	int r = 0;

	for (i = 1; i <= n && r == 0; i++) {
		if ((path[i] != '/' && path[i] != '\0') || path[i - 1] == '/')
			continue;
		end = path[i];
		path[i] = '\0';
		if (!is_directory(m, path, e))
			r = e->sys == ENOENT ? make_one(m, path, true, e) : e->code;
		path[i] = end;
	}
	return r;
}

/* RMDIR or TOUCH. */
static int change_one(struct managing *m, const char *path, struct ptcp_err *e)
{
	char name[DESTINATION_NAME_BYTES], text[DIR_PATH_TEXT_BYTES];
	struct ptcp_err why;
	struct dir *d;
	int r;

	if ((r = managing_find_name(m, path, &d, name, e)) < 0)
		return r;
	r = m->op == WIRE_MANAGE_RMDIR ? manage_remove_dir(d, name, &why) : manage_touch(d, name, &why);
	if (r < 0)
		fs_err_strip(e, &why, dir_path_text(d, name, text, sizeof text));
	else
		r = dir_sync(d, e);
	dir_unref(d);
	return r;
}

static int make(struct managing *m, const char *path, struct ptcp_err *e)
{
	char *plain;
	int r;

	if ((m->flags & WIRE_MANAGE_PARENTS) == 0)
		return make_one(m, path, false, e);
	if ((plain = without_slashes(path)) == NULL)
		return err_nomem(e);
	r = make_parents(m, plain, e);
	free(plain);
	return r;
}

/* Into an existing directory, or to the new name. */
static int find_target(struct managing *m, const char *to, const char *name, struct dir **dir,
    char new_name[DESTINATION_NAME_BYTES], struct ptcp_err *e)
{
	int r = request_source(&m->job.request, to, true, dir, new_name, e);

	strcpy(new_name, name);
	if (r == 0 || text_is_contents(to) || (e->sys != ENOENT && e->sys != ENOTDIR))
		return r;
	return request_source(&m->job.request, to, false, dir, new_name, e);
}

static int rename_path(struct managing *m, const char *from, const char *to, struct ptcp_err *e)
{
	char name[DESTINATION_NAME_BYTES], new_name[DESTINATION_NAME_BYTES], text[DIR_PATH_TEXT_BYTES];
	struct dir *d = NULL, *dest = NULL;
	struct ptcp_err why;
	int r;

	if ((r = managing_find_name(m, from, &d, name, e)) < 0)
		return r;
	if ((r = find_target(m, to, name, &dest, new_name, &why)) < 0) {
		*e = why;
		err_while(e, r, "to %s", text_escape(text, sizeof text, to));
	} else if ((r = manage_rename(d, name, dest, new_name, (m->flags & WIRE_MANAGE_REPLACE) != 0, &why)) < 0) {
		fs_err_strip(e, &why, dir_path_text(d, name, text, sizeof text));
	} else if ((r = dir_sync(dest, e)) == 0) {
		r = dir_sync(d, e);
	}
	dir_unref(d);
	dir_unref(dest);
	return r;
}

int managing_change(struct managing *m, const char **path, struct ptcp_err *e)
{
	const struct request *a = &m->job.request;
	int r;

	*path = request_path(a, m->next);
	if (m->op == WIRE_MANAGE_RENAME) {
		r = rename_path(m, *path, request_path(a, 1), e);
		m->next = a->n_paths;
	} else {
		r = (m->op == WIRE_MANAGE_MKDIR ? make : change_one)(m, *path, e);
		m->next++;
	}
	return r;
}
