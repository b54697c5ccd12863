/* Existing files at the receiving end: --delete-excluded, backups, --inplace, --if-match, and older copies of files. */
#include <string.h>

#include "client/task_impl.h"
#include "core/err.h"
#include "store/reference.h"
#include "store/rules.h"

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

static int take_match(struct ptcp_task *t, struct ptcp_err *e)
{
	const char *version = t->o.older.if_match;
	struct store_match ignored;
	int r;

	if (t->remote_job != NULL)
		return err_set(e, PTCP_ENOTYET, "--if-match: between two other hosts: not available yet (leave "
		    "it out)");
	if ((t->files.sends ? t->files.n_local : t->files.n_remote) != 1)
		return err_set(e, PTCP_EUSAGE, "--if-match: needs one source, a file (name one)");
	if (t->o.older.exclusive || t->o.wire.inplace || t->o.delete_extra ||
	    t->o.older.n_link_dest + t->o.older.n_compare_dest + t->o.older.n_copy_dest > 0)
		return err_set(e, PTCP_EUSAGE, "--if-match: neither with --exclusive, --inplace, --delete nor older "
		    "copies (leave one of them out)");
	if ((r = store_match_parse(&ignored, version, e)) < 0)
		return err_while(e, r, "--if-match");
	t->o.dest_is_file = true;
	return t->files.sends ? task_add_path(t, WIRE_PATH_IF_MATCH, version, e) : 0;
}

static int take_backup(struct ptcp_task *t, struct ptcp_err *e)
{
	const struct ptcp_older *o = &t->o.older;
	const char *suffix = suffix_of(o);
	int r;

	if (o->if_match != NULL && (r = take_match(t, e)) < 0)
		return r;
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

/* ---- Older copies ---- */

static const char *const reference_options[] = { "--link-dest", "--compare-dest", "--copy-dest" };
static const uint8_t reference_paths[] = { WIRE_PATH_LINK_DEST, WIRE_PATH_COMPARE_DEST, WIRE_PATH_COPY_DEST };

/* Fills t->files.references. */
static int find_references(struct ptcp_task *t, struct ptcp_err *e)
{
	const struct ptcp_older *o = &t->o.older;
	const struct task_references of[] = { { REFERENCE_LINK, o->link_dest, o->n_link_dest },
		{ REFERENCE_COMPARE, o->compare_dest, o->n_compare_dest },
		{ REFERENCE_COPY, o->copy_dest, o->n_copy_dest } };
	struct task_references *found = &t->files.references;
	size_t i;

	for (i = 0; i < sizeof of / sizeof *of; i++) {
		if (of[i].n == 0)
			continue;
		if (found->n > 0)
			return err_set(e, PTCP_EUSAGE, "%s: not with %s (leave one of them out)",
			    reference_options[found->kind], reference_options[of[i].kind]);
		*found = of[i];
	}
	return 0;
}

static int check_references(const struct ptcp_task *t, struct ptcp_err *e)
{
	const struct task_references *f = &t->files.references;
	const char *name = reference_options[f->kind];

	if (t->o.remove_sources)
		return err_set(e, PTCP_EUSAGE, "%s: not with --remove-source-files, which needs each file at the "
		    "destination (leave one of them out)", name);
	if (t->o.wire.inplace)
		return err_set(e, PTCP_EUSAGE, "%s: not with --inplace, which would change older copies (leave one of "
		    "them out)", name);
	if (t->o.checksum && f->kind != REFERENCE_LINK)
		return err_set(e, PTCP_ENOTYET, "%s: with --checksum: not available yet (leave one of them out)", name);
	if (t->remote_job != NULL)
		return err_set(e, PTCP_ENOTYET, "%s: between two other hosts: not available yet (leave it out)", name);
	return f->n <= REFERENCES_MAX ? 0 :
	    err_set(e, PTCP_EUSAGE, "%s: more than %u directories (name fewer)", name, REFERENCES_MAX);
}

static int take_references(struct ptcp_task *t, struct ptcp_err *e)
{
	const struct task_references *f = &t->files.references;
	int r = find_references(t, e);
	size_t i;

	if (r < 0 || f->n == 0 || (r = check_references(t, e)) < 0)
		return r;
	for (i = 0; i < f->n && r == 0; i++) {
		if (f->dir[i][0] == '\0')
			return err_set(e, PTCP_EUSAGE, "%s: empty (name a directory)", reference_options[f->kind]);
		if (t->files.sends)
			r = task_add_path(t, reference_paths[f->kind], f->dir[i], e);
	}
	return r;
}

int older_take(struct ptcp_task *t, struct ptcp_err *e)
{
	int r = take_backup(t, e);

	return r < 0 ? r : take_references(t, e);
}
