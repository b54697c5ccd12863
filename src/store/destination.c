#include "store/destination.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "store/sink.h"

/* The path in two: what is above the last component ("" for nothing, "/" for the root), and that. */
static int split(const char *path, char **above, char name[DESTINATION_NAME_BYTES], struct ptcp_err *e)
{
	size_t n = strlen(path), start;

	while (n > 0 && path[n - 1] == '/')
		n--;
	for (start = n; start > 0 && path[start - 1] != '/'; start--)
		;
	if (!text_name_ok(path + start, n - start))
		return err_set(e, PTCP_EUSAGE, "not the name of a file or directory (end it with one)");
	memcpy(name, path + start, n - start);
	name[n - start] = '\0';
	if ((*above = malloc(start + 1)) == NULL)
		return err_nomem(e);
	memcpy(*above, path, start);
	(*above)[start] = '\0';
	return 0;
}

/* An existing directory. */
static int open_dir(struct tree *root, const char *path, struct dir **out, struct ptcp_err *e)
{
	struct tree *t;
	struct dir *top;
	int r;

	if (root == NULL) {
		if ((r = tree_open(&t, path[0] != '\0' ? path : ".", &sys_real, e)) < 0)
			return r;
		*out = tree_root(t);
		tree_unref(t);
		return 0;
	}
	top = tree_root(root);
	r = dir_resolve(out, top, path, e);
	dir_unref(top);
	return r;
}

bool destination_is_contents(const char *path)
{
	const char *last = strrchr(path, '/');

	last = last != NULL ? last + 1 : path;
	return last[0] == '\0' || strcmp(last, ".") == 0 || strcmp(last, "..") == 0;
}

/* What is at `path` is a directory already; is it one that an interrupted transfer began? */
static int look_for_mark(struct destination *out, struct tree *root, const char *path, struct ptcp_err *e)
{
	char *above = NULL;
	int r;

	if ((r = split(path, &above, out->name, e)) == 0 &&
	    (r = open_dir(root, above, &out->above, e)) == 0 &&
	    !dir_mark_marked(out->above, out->name, out->source)) {
		dir_unref(out->above);
		out->above = NULL;
	}
	free(above);
	return r == PTCP_ENOMEM ? r : 0; /* what cannot be looked for is not there */
}

/* Nothing is at `path`, or nothing that is a directory. */
static int place_anew(struct destination *out, struct tree *root, const char *path, bool into, bool dry_run,
    struct ptcp_err *e)
{
	char name[DESTINATION_NAME_BYTES], *above = NULL;
	struct dir *parent = NULL;
	int r;

	if ((r = split(path, &above, name, e)) < 0 || (r = open_dir(root, above, &parent, e)) < 0)
		goto out;
	if (!into) {
		strcpy(out->rename, name);
		out->base = dir_ref(parent);
		goto out;
	}
	if (!dry_run && (r = store_mkdir(parent, name, NULL, NULL, e)) < 0)
		goto out;
	out->missing = dry_run;
	if ((out->base = dir_child(parent, name)) == NULL)
		r = err_nomem(e);
out:
	dir_unref(parent);
	free(above);
	return r;
}

int destination_target(struct destination *out, struct tree *root, const char *path, int flags, struct ptcp_err *e)
{
	bool into = (flags & (PLACE_INTO_DIR | PLACE_CONTENTS)) != 0 || destination_is_contents(path);
	int r;

	*out = (struct destination){ 0 };
	if ((r = open_dir(root, path, &out->base, e)) == 0)
		r = into ? 0 : look_for_mark(out, root, path, e);
	/* Something that is no directory (a link out of the root is not one for us) will be replaced. */
	else if (e->sys == ENOENT ||
	    (!into && (e->sys == ENOTDIR || e->sys == EXDEV || e->sys == ELOOP)))
		r = place_anew(out, root, path, into, (flags & PLACE_DRY_RUN) != 0, e);
	if (r < 0)
		destination_fini(out);
	return r;
}

void destination_fini(struct destination *p)
{
	dir_unref(p->base);
	dir_unref(p->above);
	*p = (struct destination){ 0 };
}

int destination_source(struct tree *root, const char *path, bool contents, struct dir **dir,
    char name[DESTINATION_NAME_BYTES], struct ptcp_err *e)
{
	char *above = NULL;
	int r;

	if (contents || destination_is_contents(path)) {
		name[0] = '\0';
		return open_dir(root, path, dir, e);
	}
	if ((r = split(path, &above, name, e)) == 0)
		r = open_dir(root, above, dir, e);
	free(above);
	return r;
}
