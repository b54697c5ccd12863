/* A transfer's sources, destination and rules. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/remote_job_impl.h"
#include "core/err.h"
#include "core/text.h"
#include "sums/sums.h"

/* With --delete-excluded, rules without a side are the sender's. */
static int parse_rule(struct filter_rule *out, const struct ptcp_task *t, const struct ptcp_rule *rule,
    struct ptcp_err *e)
{
	int r = 0;

	*out = (struct filter_rule){ .kind = rule->include ? FILTER_INCLUDE : FILTER_EXCLUDE, .text = rule->pattern };
	if (rule->filter != NULL && (r = filter_rule_parse(out, rule->filter, NULL, e)) < 0)
		return r;
	if (t->o.older.delete_excluded && out->kind == FILTER_DIR_MERGE)
		out->hides = true;
	else if (t->o.older.delete_excluded && out->sides == 0 && out->kind != FILTER_CLEAR)
		out->sides = FILTER_SENDER;
	return 0;
}

static int take_rule(struct ptcp_task *t, const struct ptcp_rule *rule, struct ptcp_err *e)
{
	char line[WIRE_PATH_MAX + 1];
	struct filter_rule parsed;
	int r;

	if ((r = parse_rule(&parsed, t, rule, e)) < 0)
		return r;
	filter_rule_text(line, sizeof line, &parsed);
	if ((r = filter_add(t->files.filter, line, e)) < 0)
		return r;
	return t->files.sends && !t->o.delete_extra ? 0 : task_add_path(t, WIRE_PATH_RULE, line, e);
}

/* A remote sender, and a remote receiver that deletes, get the rules in OPEN, behind the paths. */
static int take_rules(struct ptcp_task *t, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	const struct ptcp_rule *rule;
	size_t i;
	int r = 0;

	if (t->o.n_rules > 0 && (r = filter_new(&t->files.filter, NULL, e)) < 0)
		return r;
	for (i = 0; i < t->o.n_rules && r >= 0; i++) {
		rule = &t->o.rules[i];
		if ((r = take_rule(t, rule, e)) < 0 && rule->filter != NULL)
			err_while(e, r, "--filter");
		else if (r < 0)
			err_while(e, r, "--%s '%s'", rule->include ? "include" : "exclude",
			    text_escape(shown, sizeof shown, rule->pattern));
	}
	return r;
}

/* A remote sender gets the selection in SELECT frames. */
static int take_selection(struct ptcp_task *t, size_t n_srcs, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	size_t i;
	int r;

	if (t->o.files == NULL)
		return 0;
	if (n_srcs != 1)
		return err_set(e, PTCP_EUSAGE, "--files-from: needs one source, the directory of the listed files "
		    "(name one directory)");
	if ((r = selection_new(&t->files.selection, NULL, e)) < 0)
		return r;
	for (i = 0; i < t->o.n_files; i++)
		if ((r = selection_add(t->files.selection, t->o.files[i], strlen(t->o.files[i]), e)) < 0)
			return err_while(e, r, "--files-from: %s", text_escape(shown, sizeof shown, t->o.files[i]));
	t->o.files = NULL; /* the caller's */
	return selection_sort(t->files.selection, e);
}

static int check_options(const struct ptcp_task *t, struct ptcp_err *e)
{
	if (t->o.remove_sources && t->remote_job != NULL)
		return err_set(e, PTCP_EUSAGE, "--remove-source-files: not between two other hosts (leave it out)");
	if (t->o.direct_io && t->remote_job != NULL)
		return err_set(e, PTCP_EUSAGE,
		    "--direct: not between two other hosts (start their servers with --direct)");
	if ((t->o.copy_links || t->o.copy_unsafe_links) && t->o.remove_sources)
		return err_set(e, PTCP_EUSAGE,
		    "--remove-source-files: not with --copy-links, whose sources may be in use elsewhere "
		    "(leave one out)");
	if ((t->o.copy_links || t->o.copy_unsafe_links) && t->o.mover.command != NULL)
		return err_set(e, PTCP_ENOTYET, "--movers: with --copy-links: not available yet (leave one out)");
	if (!t->o.delete_extra)
		return 0;
	if (t->remote_job != NULL)
		return err_set(e, PTCP_EUSAGE, "--delete: not between two other hosts (leave it out)");
	if (t->files.selection != NULL)
		return err_set(e, PTCP_EUSAGE,
		    "--delete: not with --files-from, which names no whole directory (leave one out)");
	return 0;
}

/* --digest. A dry run sends nothing. */
static int take_digests(struct ptcp_task *t, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	unsigned digests;

	if (t->o.wire.digest == NULL)
		return 0;
	if ((digests = sums_named(t->o.wire.digest)) == 0)
		return err_set(e, PTCP_EUSAGE, "--digest %s: not a digest, or not several separated by commas (the "
		    "manual lists them)", text_escape(shown, sizeof shown, t->o.wire.digest));
	if (!t->files.sends || t->remote_job != NULL || t->o.pipe.fd >= 0)
		return err_set(e, PTCP_ENOTYET, "--digest: only of files that this host sends, not available yet "
		    "otherwise (ptcp sum prints digests)");
	t->files.digests = t->o.dry_run ? 0 : digests;
	return 0;
}

/* After take_digests(). A file of several blocks would be in place before its digest is known. */
static int take_expected(struct ptcp_task *t, const char *const *srcs, size_t n_srcs, struct ptcp_err *e)
{
	const char *digest = t->o.wire.expect;
	char shown[TEXT_NAME_BYTES];
	struct stat st;

	if (digest == NULL)
		return 0;
	if (!sums_expected_parse(&t->files.expected, digest))
		return err_set(e, PTCP_EUSAGE, "expect: '%s' is no digest with its name (write sha256: and all digits)",
		    text_escape(shown, sizeof shown, digest));
	if (!t->files.sends || t->remote_job != NULL || t->o.pipe.fd >= 0 ||
	    t->o.mover.command != NULL || t->o.mover.file != NULL)
		return err_set(e, PTCP_ENOTYET, "expect: only of a file that this host reads and sends, not available "
		    "yet otherwise (ptcp verify compares files with digests)");
	if (t->o.wire.inplace)
		return err_set(e, PTCP_EUSAGE, "expect: not with inplace, which changes the file before its digest is "
		    "known (leave one out)");
	if (n_srcs != 1 || (stat(srcs[0], &st) == 0 && !S_ISREG(st.st_mode)))
		return err_set(e, PTCP_EUSAGE, "expect: needs one source, a file (name one)");
	if (!t->o.dry_run)
		t->files.digests |= t->files.expected.digest;
	return 0;
}

static int check_dest(const struct ptcp_task *t, size_t n_srcs, struct ptcp_err *e)
{
	if (t->o.dest_is_file && t->remote_job != NULL)
		return err_set(e, PTCP_EUSAGE, "dest_is_file: not between two other hosts (leave it out)");
	if (t->o.dest_is_file && n_srcs != 1)
		return err_set(e, PTCP_EUSAGE, "dest_is_file: several sources (name one file)");
	return 0;
}

/* A path takes one byte more. */
static int check_selection(const struct ptcp_task *t, struct ptcp_err *e)
{
	if (t->files.selection == NULL)
		return 0;
	if (t->remote_job != NULL)
		return err_set(e, PTCP_EUSAGE, "--files-from: not between two other hosts (leave it out)");
	if (!t->files.sends && selection_bytes(t->files.selection) + 1 > WIRE_SELECT_MAX_PATHS_BYTES)
		return err_set(e, PTCP_EUSAGE,
		    "--files-from: more than 4 MiB of paths for a remote sender (split the list)");
	return 0;
}

static int remote(struct remote *out, const char *text, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	int r = remote_parse(out, text, e);

	return r != 0 ? r : err_set(e, PTCP_EUSAGE, "%s: not remote (write [USER@]HOST:PATH or ptcp://HOST/PATH)",
	    text[0] != '\0' ? text_escape(shown, sizeof shown, text) : "\"\"");
}

static int local(const char *text, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	struct remote ignored;
	int r = remote_parse(&ignored, text, e);

	if (r > 0)
		return err_set(e, PTCP_EUSAGE, "%s: one side must be local (between two servers: ptcp send "
		    "ptcp://A/PATH ptcp://B/PATH)", text_escape(shown, sizeof shown, text));
	if (r == 0 && text[0] == '\0')
		return err_set(e, PTCP_EUSAGE, "\"\": an empty path (name a file or directory)");
	return r;
}

static int take_remote_sources(struct ptcp_task *t, const char *const *srcs, size_t n, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	struct remote each;
	size_t i;
	int r;

	for (i = 0; i < n; i++) {
		if ((r = remote(&each, srcs[i], e)) < 0)
			return r;
		if (i == 0)
			t->target = each;
		else if (!remote_same_host(&each, &t->target))
			return err_set(e, PTCP_ENOTYET, "%s: sources on several hosts: not available yet (run "
			    "one ptcp recv for each)", text_escape(shown, sizeof shown, srcs[i]));
		if ((r = task_add_path(t, t->files.selection != NULL ||
		    remote_is_contents(&each) ? WIRE_PATH_CONTENTS : 0, each.path, e)) < 0)
			return r;
	}
	return 0;
}

static int take_local_sources(struct ptcp_task *t, const char *const *srcs, size_t n,
    const char *dest, struct ptcp_err *e)
{
	size_t i;
	int r;

	for (i = 0; i < n; i++)
		if ((r = local(srcs[i], e)) < 0)
			return r;
	if ((r = remote(&t->target, dest, e)) < 0)
		return r;
	return task_add_path(t, 0, t->target.path, e);
}

/* From one server to another; paths as if this host received. */
static int take_delegated(struct ptcp_task *t, const char *const *srcs, size_t n, const char *dest,
    struct ptcp_err *e)
{
	struct remote to;
	int r;

	if ((r = remote(&to, dest, e)) < 0 || (r = take_remote_sources(t, srcs, n, e)) < 0)
		return r;
	if (t->target.ssh || to.ssh)
		return err_set(e, PTCP_ENOTYET, "between two remote hosts: through ssh: not available yet (both must "
		    "be servers: ptcp://HOST/PATH)");
	if (t->o.n_paths > 0)
		return err_set(e, PTCP_EUSAGE, "--via: not between two other hosts (leave it out)");
	if (t->o.limits.deadline != NULL)
		return err_set(e, PTCP_EUSAGE, "--deadline: not between two other hosts, whose streams this host does "
		    "not adapt (run the transfer on one of them)");
	if (timetable_varies(&t->rate))
		return err_set(e, PTCP_EUSAGE, "--rate: no timetable between two other hosts, whose clocks may differ "
		    "(give one rate)");
	return remote_job_new(t, &to, e);
}

static int take_paths(struct ptcp_task *t, const char *const *srcs, size_t n, const char *dest, struct ptcp_err *e)
{
	int r;

	if (t->files.sends && ptcp_is_remote(srcs[0]) && ptcp_is_remote(dest)) {
		t->files.sends = false;
		t->files.n_local = 0;
		t->files.n_remote = n;
		return take_delegated(t, srcs, n, dest, e);
	}
	if (t->o.detach)
		return err_set(e, PTCP_EUSAGE, "--detach: only for transfers between two other hosts (leave it out)");
	t->files.n_local = t->files.sends ? n : 1;
	t->files.n_remote = t->files.sends ? 1 : n;
	if (t->files.sends)
		return take_local_sources(t, srcs, n, dest, e);
	return (r = local(dest, e)) < 0 ? r : take_remote_sources(t, srcs, n, e);
}

/* The sources, each once although named twice; on the heap. */
static const char *const *unique(const char *const *srcs, size_t n, size_t *left)
{
	const char **list = calloc(n, sizeof *list);
	size_t i, k;

	*left = 0;
	for (i = 0; list != NULL && i < n; i++) {
		for (k = 0; k < *left && strcmp(list[k], srcs[i]) != 0; k++)
			;
		if (k == *left)
			list[(*left)++] = srcs[i];
	}
	return list;
}

static int make(struct ptcp_task *t, bool sends, const char *const *srcs, size_t n_srcs, const char *dest,
    struct ptcp_err *e)
{
	int r;

	t->files.sends = sends;
	if ((r = take_selection(t, n_srcs, e)) < 0 || (r = take_paths(t, srcs, n_srcs, dest, e)) < 0 ||
	    (r = task_take_pipe(t, srcs, n_srcs, dest, e)) < 0 ||
	    (r = take_rules(t, e)) < 0 || (r = check_selection(t, e)) < 0 ||
	    (r = limits_take(t, e)) < 0 || (r = stop_take(t, e)) < 0 ||
	    (r = deadline_take(t, e)) < 0 || (r = mapping_take(t, e)) < 0 ||
	    (r = older_take(t, e)) < 0 || (r = take_digests(t, e)) < 0 ||
	    (r = take_expected(t, srcs, n_srcs, e)) < 0 || (r = check_options(t, e)) < 0 ||
	    (r = check_dest(t, n_srcs, e)) < 0 ||
	    (r = striping_check(t, e)) < 0)
		return r;
	if ((t->files.local = task_copy_list(sends ? srcs : &dest, t->files.n_local)) == NULL)
		return err_nomem(e);
	return task_name_target(t, e);
}

static int transfer_new(struct ptcp_task **out, bool sends, const struct ptcp_transfer_opts *o,
    const char *const *srcs, size_t n_srcs, const char *dest, struct ptcp_err *e)
{
	const char *const *once;
	struct ptcp_task *t;
	struct ptcp_err scratch;
	int r;

	if (e == NULL)
		e = &scratch;
	if (n_srcs == 0)
		return err_set(e, PTCP_EUSAGE, "no source (name a file or directory)");
	if ((r = task_new(&t, o, e)) < 0)
		return r;
	if ((once = unique(srcs, n_srcs, &n_srcs)) == NULL)
		r = err_nomem(e);
	else
		r = make(t, sends, once, n_srcs, dest, e);
	free((void *)(uintptr_t)once);
	return task_made(out, t, r);
}

int ptcp_send_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o,
    const char *const *srcs, size_t n_srcs, const char *dest, struct ptcp_err *e)
{
	return transfer_new(out, true, o, srcs, n_srcs, dest, e);
}

int ptcp_recv_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o,
    const char *const *srcs, size_t n_srcs, const char *dest, struct ptcp_err *e)
{
	return transfer_new(out, false, o, srcs, n_srcs, dest, e);
}
