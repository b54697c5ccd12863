#include "server/own_dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/err.h"
#include "core/fd.h"
#include "core/text.h"

int own_dirs_open(struct own_dirs *o, const char *config_dir, struct ptcp_err *e)
{
	unsigned i;

	o->fd[0] = o->fd[1] = -1;
	strcpy(o->path[0], config_dir);
	if (userdir_state(o->path[1], NULL, NULL) < 0)
		o->path[1][0] = '\0';
	else
		userdir_make(o->path[1], NULL);
	for (i = 0; i < 2; i++) {
		if (o->path[i][0] == '\0')
			continue;
		o->fd[i] = open(o->path[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (o->fd[i] < 0 && (i == 0 || (errno != ENOENT && errno != ENOTDIR && errno != EACCES)))
			return err_sys(e, PTCP_ECONFIG, "opening the directory %s", o->path[i]);
	}
	return 0;
}

void own_dirs_close(struct own_dirs *o)
{
	unsigned i;

	for (i = 0; i < 2; i++)
		if (o->path[i][0] != '\0')
			fd_close(&o->fd[i]);
}

int own_dirs_exclude(const struct own_dirs *o, struct tree *tree, struct ptcp_err *e)
{
	struct excluded *x;
	unsigned i;
	int r = excluded_new(&x, e);

	if (r < 0)
		return r;
	for (i = 0; i < 2 && r == 0; i++) {
		if (o->path[i][0] != '\0')
			r = excluded_add(x, o->path[i], e);
		if (o->path[i][0] != '\0' && r == 0 && o->fd[i] >= 0)
			r = excluded_add_open(x, o->fd[i], e);
	}
	if (r == 0)
		return tree_exclude(tree, x, e);
	excluded_free(x);
	return r;
}

static void warn_of_contents(const char *root, const char *config, const struct log *log)
{
	char shown[TEXT_NAME_BYTES], *top = realpath(root, NULL), *dir = realpath(config, NULL);
	size_t n = top != NULL ? strlen(top) : 0;

	if (n > 0 && dir != NULL && strncmp(dir, top, n) == 0 && (dir[n] == '/' || top[n - 1] == '/'))
		log_at(log, LOG_WARN, "server", "event=not-served dir=\"%s\" why=\"the server's own configuration lies "
		    "beneath the root\"", text_escape_quoted(shown, sizeof shown, dir));
	free(top);
	free(dir);
}

int own_dirs_check_root(const struct own_dirs *o, const char *root, const struct log *log, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	struct tree *tree;
	int r;

	if ((r = tree_open(&tree, root, &sys_real, e)) == 0) {
		r = own_dirs_exclude(o, tree, e);
		tree_unref(tree);
	}
	text_escape(shown, sizeof shown, root);
	if (r == PTCP_EREFUSED)
		return err_set(e, PTCP_ECONFIG, "--root %s: lies in the server's own configuration or state directory "
		    "(serve another directory)", shown);
	if (r < 0)
		return err_while(e, PTCP_ECONFIG, "--root %s", shown);
	warn_of_contents(root, o->path[0], log);
	return 0;
}
