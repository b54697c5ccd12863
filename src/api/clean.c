/* Removes leftovers of interrupted transfers from a local directory. */
#include <ptcp/ptcp.h>
#include <string.h>
#include <time.h>

#include "client/manage_task.h"
#include "conn/remote.h"
#include "core/err.h"
#include "core/opts.h"
#include "core/text.h"
#include "store/leftover.h"

static void on_found(void *arg, const struct leftover *l)
{
	const struct ptcp_clean_opts *o = arg;
	char path[DIR_PATH_RAW_BYTES];
	const struct ptcp_leftover shown = { .path = dir_path_raw(l->dir, l->name, path, sizeof path),
		.bytes = l->size_bytes, .age_s = l->age_s, .why = l->why, .sys = l->why != NULL ? l->sys : 0 };

	if (o->found != NULL)
		o->found(o->arg, &shown);
}

/* A directory of another host, or a malformed URL. */
static int clean_check(const char *dir, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	struct remote ignored;
	int r = remote_parse(&ignored, dir, e);

	return r <= 0 ? r : err_set(e, PTCP_EUSAGE, "%s: on another host (use ptcp_clean_new())",
	    text_escape(shown, sizeof shown, dir));
}

int ptcp_clean(const char *dir, const struct ptcp_clean_opts *opts, struct ptcp_clean_result *result,
    struct ptcp_err *e)
{
	struct ptcp_clean_result all = { 0 };
	struct ptcp_clean_opts o;
	struct leftover_opts l;
	struct leftover_totals t;
	struct tree *tree;
	struct dir *top;
	int r;

	if ((r = clean_take_opts(&o, opts, e)) < 0 || (r = clean_check(dir, e)) < 0)
		return r;
	if ((r = tree_open(&tree, dir, &sys_real, e)) < 0)
		return r;
	top = tree_root(tree);
	l = (struct leftover_opts){ .older_s = o.older_s, .dry_run = o.dry_run, .found = on_found, .arg = &o };
	clock_gettime(CLOCK_REALTIME, &l.now);
	r = leftovers_clean(top, &l, &t, e);
	dir_unref(top);
	tree_unref(tree);
	if (r < 0)
		return r;
	all.files = t.files;
	all.bytes = t.bytes;
	all.in_use = t.in_use;
	all.recent = t.recent;
	all.failed = t.failed;
	results_copy(result, &all, sizeof all);
	return clean_outcome(dir, &all, e);
}
