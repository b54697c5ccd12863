/* Existing files at the receiving end: --delete-excluded, --backup, --backup-dir and --suffix, and --inplace. */
#include <string.h>

#include "client/task_impl.h"
#include "core/err.h"

/* NULL: none. */
static const char *suffix_of(const struct ptcp_older *o)
{
	return o->suffix != NULL ? o->suffix : o->backup_dir == NULL ? "~" : NULL;
}

static bool is_wanted(const struct ptcp_older *o) { return o->backup || o->backup_dir != NULL; }

static int check(const struct ptcp_older *o, struct ptcp_err *e)
{
	if (!is_wanted(o))
		return err_set(e, PTCP_EUSAGE, "--suffix: without --backup (add it)");
	if (o->suffix != NULL && (strchr(o->suffix, '/') != NULL || (o->suffix[0] == '\0' && o->backup_dir == NULL)))
		return err_set(e, PTCP_EUSAGE,
		    "--suffix: empty without --backup-dir, or with a slash (give one such as .bak)");
	if (o->backup_dir != NULL && o->backup_dir[0] == '\0')
		return err_set(e, PTCP_EUSAGE, "--backup-dir: empty (name a directory)");
	return 0;
}

/* An interrupted file in place has the time of the last write, and perhaps the size of the source. */
static int check_in_place(const struct ptcp_transfer_opts *o, struct ptcp_err *e)
{
	const char *rule = o->update ? "--update" : o->size_only ? "--size-only" :
	    o->older.modify_window_s > 0 ? "--modify-window" : NULL;

	if (is_wanted(&o->older))
		return err_set(e, PTCP_ENOTYET, "--backup: with --inplace: not available yet (leave one of them out)");
	if (rule != NULL)
		return err_set(e, PTCP_EUSAGE, "%s: with --inplace, interrupted files would count as complete (leave "
		    "one of them out)", rule);
	return 0;
}

int older_take(struct ptcp_task *t, struct ptcp_err *e)
{
	const struct ptcp_older *o = &t->o.older;
	const char *suffix = suffix_of(o);
	int r;

	if (t->o.wire.inplace && (r = check_in_place(&t->o, e)) < 0)
		return r;
	if (o->delete_excluded && !t->o.delete_extra)
		return err_set(e, PTCP_EUSAGE, "--delete-excluded: without --delete (add it)");
	if (!is_wanted(o) && o->suffix == NULL)
		return 0;
	if (t->remote_job != NULL)
		return err_set(e, PTCP_ENOTYET, "--backup: between two other hosts: not available yet (leave it out)");
	if ((r = check(o, e)) < 0)
		return r;
	t->files.backup = (struct backup_opts){ .dir = o->backup_dir, .suffix = suffix, .own = true };
	if (!t->files.sends)
		return 0;
	if (o->backup_dir != NULL && (r = task_add_path(t, WIRE_PATH_BACKUP_DIR, o->backup_dir, e)) < 0)
		return r;
	return suffix != NULL && suffix[0] != '\0' ? task_add_path(t, WIRE_PATH_SUFFIX, suffix, e) : 0;
}
