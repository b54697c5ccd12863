/* No client reaches the server's own directories, wherever they are moved. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct log quiet = { .level = LOG_DEBUG };

static void on_log(void *arg, enum log_level level, const char *component, const char *text)
{
	(void)arg;
	(void)level;
	(void)component;
	snprintf(vf.log, sizeof vf.log, "%s", text);
}

static int exclude(const char *root)
{
	struct tree *t;
	int r;

	assert_int_equal(tree_open(&t, root, &sys_real, NULL), 0);
	r = own_dirs_exclude(&vf.own_dirs, t, NULL);
	tree_unref(t);
	return r;
}

/* The directory `path` of a tree of everything; 0, or the code. */
static int reach(const char *path)
{
	struct tree *t;
	struct dir *top, *d = NULL;
	int r;

	assert_int_equal(tree_open(&t, fx_path(""), &sys_real, NULL), 0);
	assert_int_equal(own_dirs_exclude(&vf.own_dirs, t, NULL), 0);
	top = tree_root(t);
	r = dir_resolve(&d, top, path, NULL);
	dir_unref(d);
	dir_unref(top);
	tree_unref(t);
	return r;
}

static void roots(void **state)
{
	(void)state;
	assert_true(fx_exists("state/ptcp")); /* made at the start */
	fx_mkdir("config/below");
	assert_int_equal(exclude(fx_path("config")), PTCP_EREFUSED);
	assert_int_equal(exclude(fx_path("config/below")), PTCP_EREFUSED);
	assert_int_equal(exclude(fx_path("state/ptcp")), PTCP_EREFUSED);
	assert_int_equal(exclude(fx_path("root")), 0);
	assert_int_equal(exclude(fx_path("")), 0);
}

static void paths_of_clients(void **state)
{
	(void)state;
	fx_mkdir("config/below");
	assert_int_equal(reach("root"), 0);
	assert_int_equal(reach("state"), 0);
	assert_int_equal(reach("config"), PTCP_EREFUSED);
	assert_int_equal(reach("config/below"), PTCP_EREFUSED);
	assert_int_equal(reach("state/ptcp"), PTCP_EREFUSED);
	assert_int_equal(symlink("../config", fx_path("root/link")), 0);
	assert_int_equal(reach("root/link"), PTCP_EREFUSED);
	assert_int_equal(reach("root/link/below"), PTCP_EREFUSED);
}

/* The directories of the start stay excluded under a new name, and what takes their name is excluded, too. */
static void moved(void **state)
{
	(void)state;
	assert_int_equal(rename(fx_path("config"), fx_path("root/taken")), 0);
	fx_mkdir("config");
	assert_int_equal(reach("root/taken"), PTCP_EREFUSED);
	assert_int_equal(reach("config"), PTCP_EREFUSED);
	assert_int_equal(exclude(fx_path("root/taken")), PTCP_EREFUSED);
}

/* A state directory that cannot be made is none; a configuration directory must exist. */
static void without(void **state)
{
	struct own_dirs o;
	struct ptcp_err e;

	(void)state;
	fx_text("file", "");
	setenv("XDG_STATE_HOME", fx_path("file"), 1);
	assert_int_equal(own_dirs_open(&o, fx_path("config"), &e), 0);
	assert_int_equal(o.fd[1], -1);
	own_dirs_close(&o);
	assert_int_equal(own_dirs_open(&o, fx_path("none"), &e), PTCP_ECONFIG);
	assert_non_null(strstr(e.msg, "opening the directory"));
	own_dirs_close(&o);
}

static void the_root_of_the_server(void **state)
{
	struct ptcp_err e;

	(void)state;
	quiet.write = on_log;
	assert_int_equal(own_dirs_check_root(&vf.own_dirs, fx_path("root"), &quiet, &e), 0);
	assert_false(vf_logged("event=not-served"));
	assert_int_equal(own_dirs_check_root(&vf.own_dirs, fx_path(""), &quiet, &e), 0);
	assert_true(vf_logged("event=not-served") && vf_logged("/config\""));
	assert_int_equal(own_dirs_check_root(&vf.own_dirs, fx_path("config"), &quiet, &e), PTCP_ECONFIG);
	assert_non_null(strstr(e.msg, "own configuration or state directory"));
	assert_int_equal(own_dirs_check_root(&vf.own_dirs, fx_path("none"), &quiet, &e), PTCP_ECONFIG);
	assert_non_null(strstr(e.msg, "--root"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		vf_test(roots), vf_test(paths_of_clients), vf_test(moved), vf_test(without),
		vf_test(the_root_of_the_server),
	};

	return cmocka_run_group_tests_name("server/own_dirs", tests, NULL, NULL);
}
