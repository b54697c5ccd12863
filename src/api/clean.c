/* Removal of what interrupted transfers have left behind. */
#include <ptcp/ptcp.h>
#include <string.h>
#include <time.h>

#include "conn/remote.h"
#include "core/err.h"
#include "core/opts.h"
#include "core/text.h"
#include "store/leftover.h"

#define OLDER_USUAL_S 86400.0

void ptcp_clean_opts_init(struct ptcp_clean_opts *o)
{
	*o = (struct ptcp_clean_opts){ .size = sizeof *o, .older_s = OLDER_USUAL_S };
}

void ptcp_clean_result_init(struct ptcp_clean_result *r)
{
	*r = (struct ptcp_clean_result){ .size = sizeof *r };
}

static bool on_found(void *arg, const struct leftover *l)
{
	const struct ptcp_clean_opts *o = arg;
	char path[DIR_PATH_RAW_BYTES];
	const struct ptcp_leftover shown = { .path = dir_path_raw(l->dir, l->name, path, sizeof path),
		.bytes = l->size_bytes, .age_s = l->age_s, .why = l->why };

	if (o->found != NULL)
		o->found(o->arg, &shown);
	return true;
}

static int check(const char *dir, const struct ptcp_clean_opts *o, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	struct remote ignored;
	int r;

	if (!(o->older_s >= 0))
		return err_set(e, PTCP_EUSAGE, "minimum age: must not be negative");
	if ((r = remote_parse(&ignored, dir, e)) > 0)
		return err_set(e, PTCP_ENOTYET, "%s: leftovers on other hosts: not available yet (run ptcp clean "
		    "DIRECTORY on that host)", text_escape(shown, sizeof shown, dir));
	return r;
}

int ptcp_clean(const char *dir, const struct ptcp_clean_opts *opts, struct ptcp_clean_result *result,
    struct ptcp_err *e)
{
	struct ptcp_clean_result all = { .size = result->size < sizeof all ? result->size : sizeof all };
	char shown[TEXT_NAME_BYTES];
	struct ptcp_clean_opts o;
	struct leftover_opts l;
	struct leftover_totals t;
	struct tree *tree;
	struct dir *top;
	int r;

	ptcp_clean_opts_init(&o);
	if ((r = opts_copy(&o, sizeof o, opts, "ptcp_clean_opts_init", e)) < 0 || (r = check(dir, &o, e)) < 0)
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
	memcpy(result, &all, all.size);
	if (t.failed == 0)
		return 0;
	return err_set(e, t.files > 0 ? PTCP_EPARTIAL : PTCP_EIO, "%s: %llu leftover%s could not be removed (see above)",
	    text_escape(shown, sizeof shown, dir), (unsigned long long)t.failed, t.failed == 1 ? "" : "s");
}
