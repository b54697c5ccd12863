/* ptcp sum: digests of files of this host and of others, where the files are. */
#include <limits.h>
#include <ptcp/ptcp.h>
#include <stdio.h>
#include <string.h>

#include "cli/client_opts.h"
#include "cli/process.h"
#include "cli/read_parts.h"
#include "cli/show/json.h"
#include "cli/show/terminal.h"
#include "cli/sum_lines.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"
#include "input/manifest.h"

struct sum_args {
	struct client_opts connect; /* first */
	struct ptcp_manage_opts opts;
	char failed[TEXT_NAME_BYTES + 520]; /* the last line about a failed path, without "ptcp: " */
};

#define OPT_AT(member) offsetof(struct sum_args, opts.member)

static int set_digests(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct ptcp_err why;

	return ptcp_digests_parse(&((struct sum_args *)args)->opts.digests, text, &why) < 0 ?
	    opt_reject(o, text, e, "not a digest, or not several separated by commas (ptcp sum --help "
	    "lists them)") : 0;
}

static int set_range(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct ptcp_manage_opts *m = &((struct sum_args *)args)->opts;
	struct byte_ranges parts = { NULL, 0 };
	struct ptcp_err why;
	int r = parts_parse(&parts, text, &why);

	if (r < 0)
		r = opt_reject(o, text, e, "%s", why.msg);
	else if (parts.n != 1)
		r = opt_reject(o, text, e, "several ranges (digests are those of one range)");
	else if (parts.range[0].start == 0 && parts.range[0].end == 0)
		r = opt_reject(o, text, e, "no bytes (name at least one)");
	if (r == 0) {
		m->start = parts.range[0].start;
		m->end = parts.range[0].end;
	}
	parts_fini(&parts);
	return r;
}

static const struct opt sum_options[] = {
	{ "algorithm", 'a', "sha256|sha512|sha1|md5|blake2b|adler32|crc32c|xxh3,..",
	    "digests to compute (default: sha256)", set_digests, 0, 0, 0 },
	OPT_ROWS(PTCP_OPTIONS_SUM)
	{ "range", 0, "FIRST-LAST|-NUMBER",
	    "only of these bytes of each file, the first one is 0; or of its last NUMBER", set_range, 0, 0, 0 },
	{ .name = NULL },
};

static void on_entry(void *arg, const struct ptcp_entry *entry)
{
	struct sum_args *a = arg;
	char shown[TEXT_NAME_BYTES];

	if (entry->code == 0 && a->connect.log.json) {
		sum_json(entry);
	} else if (entry->code == 0) {
		manifest_print_digests(stdout, entry->path, entry->digest, entry->n_digests);
	} else {
		if (a->connect.log.json)
			json_line(json_pack("{s:s, s:o, s:o, s:o}", "event", "failed", "path", json_text(entry->path),
			    "error", json_text(entry->why), "cause", json_cause(entry->sys)));
		terminal_failed(NULL, entry->path, entry->why);
		text_escape(shown, sizeof shown, entry->path);
		snprintf(a->failed, sizeof a->failed, "%s: %s", shown, entry->why);
	}
}

static int run_remote(struct sum_args *a, char **urls, size_t n, struct ptcp_manage_result *one, struct ptcp_err *e)
{
	struct ptcp_task *t;
	int r;

	if ((r = ptcp_manage_new(&t, &a->connect.transfer, PTCP_SUM, (const char *const *)urls, n, &a->opts, e)) < 0)
		return r;
	r = connect_run(t, e);
	ptcp_manage_totals(t, one);
	ptcp_task_free(t);
	return r;
}

/* The only path fails with the same sentence, which is not to be printed twice. */
static int sum_fail(const struct sum_args *a, const struct ptcp_err *e)
{
	return strcmp(exit_sentence(e), a->failed) != 0 ? (int)exit_fail(e) : (int)exit_status(e->code);
}

/* Files of one host after the other; a failure does not keep the rest away. */
static int sum_all(struct sum_args *a, char **paths, size_t n, struct ptcp_manage_result *sum, struct ptcp_err *e)
{
	struct ptcp_manage_result one;
	size_t i, of_host, failed = 0;
	int r = 0;

	for (i = 0; i < n && r != PTCP_ECANCELED; i += of_host) {
		ptcp_manage_result_init(&one);
		of_host = ptcp_is_remote(paths[i]) ? ptcp_same_host((const char *const *)paths + i, n - i) : 1;
		r = ptcp_is_remote(paths[i]) ? run_remote(a, paths + i, of_host, &one, e) :
		    ptcp_sum(paths[i], &a->opts, &one, e);
		sum->entries += one.entries;
		sum->bytes += one.bytes;
		sum->failed += one.failed;
		if (r == 0 || of_host == n || r == PTCP_ECANCELED || r == PTCP_EUSAGE)
			continue;
		failed++;
		sum_fail(a, e);
	}
	if (r == PTCP_ECANCELED || r == PTCP_EUSAGE || failed == 0)
		return r;
	return err_set(e, sum->entries > 0 ? PTCP_EPARTIAL : PTCP_EIO, "digests: those of %llu path%s are missing "
	    "(see above)", (unsigned long long)sum->failed, plural(sum->failed));
}

static int run_sum(const struct command *c, int argc, char **argv)
{
	struct ptcp_manage_result sum;
	struct ptcp_err e = { .code = 0 };
	struct sum_args a;
	int r, n = 0;

	memset(&a, 0, sizeof a);
	ptcp_manage_opts_init(&a.opts);
	ptcp_manage_result_init(&sum);
	a.opts.entry = on_entry;
	a.opts.arg = &a;
	if ((r = connect_parse(&a.connect, c, argc, argv, &n, NULL, &e)) == 0) {
		connect_show_streams(&a.connect);
		r = sum_all(&a, argv, (size_t)n, &sum, &e);
	}
	if (r != OPTIONS_HELP && a.connect.log.json)
		json_line(json_end(r, &e, json_pack("{s:o, s:o, s:o}", "files", json_count(sum.entries), "bytes",
		    json_count(sum.bytes), "failed", json_count(sum.failed))));
	client_opts_fini(&a.connect);
	return r < 0 ? sum_fail(&a, &e) : command_end(c, r, &e);
}

static const struct opt_group sum_tables[] = { GROUP_OWN(sum_options), GROUP_CONNECTION, GROUP_SSH, GROUP_LOG,
	GROUP_END };

const struct command command_sum = { "sum", "[options] URL|FILE...", "print digests of files, computed where they are",
	run_sum, sum_tables, 1, INT_MAX, "needs a file" };
