/* ptcp ls, stat, du, mkdir, rmdir, rm and mv: files and directories of another host. */
#include <limits.h>
#include <ptcp/ptcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/client_opts.h"
#include "cli/process.h"
#include "cli/show/json.h"
#include "cli/show/terminal.h"
#include "core/err.h"
#include "core/sorted.h"
#include "core/text.h"
#include "core/units.h"

struct files_args {
	struct client_opts connect; /* first */
	struct ptcp_manage_opts opts;
	bool detailed;
	bool described; /* ptcp stat */
	struct ptcp_entry *listed; /* collected until all are known and sorted; strings on the heap */
	size_t n_listed, cap_listed;
	bool no_memory;
	char failed[TEXT_NAME_BYTES + 520]; /* the last line about a failed path, without "ptcp: " */
};

#define OPT_AT(member) offsetof(struct files_args, opts.member)

static const struct opt ls_options[] = {
	{ "long", 'l', NULL, "print mode, size and time as well", opt_true, offsetof(struct files_args, detailed), 0,
	    0 },
	OPT_ROWS(PTCP_OPTIONS_LS)
	{ .name = NULL },
};

static const struct opt mkdir_options[] = { OPT_ROWS(PTCP_OPTIONS_MKDIR) { .name = NULL } };
static const struct opt rm_options[] = { OPT_ROWS(PTCP_OPTIONS_RM) { .name = NULL } };
static const struct opt mv_options[] = { OPT_ROWS(PTCP_OPTIONS_MV) { .name = NULL } };

/* ---- Entries ---- */

static const char *type_name(enum ptcp_entry_type t)
{
	static const char *const names[] = { "unknown", "file", "directory", "symlink", "fifo", "socket",
		"character-device", "block-device" };

	return (size_t)t < sizeof names / sizeof *names ? names[t] : names[0];
}

static void on_failed(struct files_args *a, const struct ptcp_entry *e)
{
	const char *path = e->path[0] != '\0' ? e->path : ".";
	char shown[TEXT_NAME_BYTES];

	if (a->connect.log.json)
		json_line(json_pack("{s:s, s:o, s:o, s:o}", "event", "failed", "path", json_text(e->path), "error",
		    json_text(e->why), "cause", json_cause(e->sys)));
	terminal_failed(NULL, path, e->why);
	snprintf(a->failed, sizeof a->failed, "%s: %s", text_escape(shown, sizeof shown, path), e->why);
}

static void on_listed(struct files_args *a, const struct ptcp_entry *e)
{
	size_t cap = a->cap_listed > 0 ? 2 * a->cap_listed : 64;
	struct ptcp_entry *more = a->listed, *l;
	char *path, *target = NULL;

	if (a->n_listed == a->cap_listed && (more = realloc(more, cap * sizeof *more)) != NULL) {
		a->listed = more;
		a->cap_listed = cap;
	}
	path = strdup(e->path);
	if (e->target != NULL)
		target = strdup(e->target);
	if (more == NULL || path == NULL || (e->target != NULL && target == NULL)) {
		a->no_memory = true;
		free(path);
		free(target);
		return;
	}
	l = &a->listed[a->n_listed++];
	*l = *e;
	l->path = path;
	l->target = target;
}

static void on_counted(const struct files_args *a, const struct ptcp_entry *e)
{
	char path[2 * TEXT_NAME_BYTES], size[UNITS_TEXT_BYTES];

	if (a->connect.log.json)
		json_line(json_pack("{s:s, s:o, s:o, s:o, s:o}", "event", "usage", "path", json_text(e->path), "bytes",
		    json_count(e->bytes), "disk_bytes", json_count(e->disk_bytes), "entries", json_count(e->entries)));
	else
		printf("%9s  %s\n", units_size_text(size, e->bytes), text_escape(path, sizeof path, e->path));
}

static void on_entry(void *arg, const struct ptcp_entry *e)
{
	struct files_args *a = arg;

	if (e->code != 0)
		on_failed(a, e);
	else if (e->entries > 0)
		on_counted(a, e);
	else
		on_listed(a, e);
}

/* ---- Listing ---- */

/* The content of a directory follows the directory: '/' sorts before all other characters. */
static int compare(const void *x, const void *y)
{
	const unsigned char *a = (const unsigned char *)((const struct ptcp_entry *)x)->path;
	const unsigned char *b = (const unsigned char *)((const struct ptcp_entry *)y)->path;

	while (*a == *b && *a != '\0')
		a++, b++;
	return (*a == '/' ? 1 : *a == '\0' ? 0 : *a + 1) - (*b == '/' ? 1 : *b == '\0' ? 0 : *b + 1);
}

/* As ls -l: "drwxr-xr-x". */
static const char *mode_text(char out[11], const struct ptcp_entry *e)
{
	static const char types[] = "?-dlpscb";
	static const char letters[] = "rwxrwxrwx";
	int i;

	out[0] = (size_t)e->type < sizeof types - 1 ? types[e->type] : '?';
	for (i = 0; i < 9; i++)
		out[1 + i] = (e->mode >> (8 - i) & 1) != 0 ? letters[i] : '-';
	if ((e->mode & 04000) != 0)
		out[3] = out[3] == 'x' ? 's' : 'S';
	if ((e->mode & 02000) != 0)
		out[6] = out[6] == 'x' ? 's' : 'S';
	if ((e->mode & 01000) != 0)
		out[9] = out[9] == 'x' ? 't' : 'T';
	out[10] = '\0';
	return out;
}

static void print_name(const char *raw, const char *end)
{
	size_t cap = 4 * strlen(raw) + 8;
	char *shown = malloc(cap);

	if (shown != NULL)
		printf("%s%s", text_escape(shown, cap, raw), end);
	free(shown);
}

static void print_detailed(const struct ptcp_entry *e, int width)
{
	time_t t = (time_t)e->mtime_s;
	char mode[11], when[40] = "?";
	struct tm tm;

	if (localtime_r(&t, &tm) != NULL)
		strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &tm);
	printf("%s  %*llu  %s  ", mode_text(mode, e), width, (unsigned long long)e->bytes, when);
	print_name(e->path, e->target != NULL ? " -> " : "\n");
	if (e->target != NULL)
		print_name(e->target, "\n");
}

/* As --if-match takes it. */
static const char *version_text(char out[64], const struct ptcp_entry *e)
{
	snprintf(out, 64, "%llu@%lld.%09u", (unsigned long long)e->bytes, (long long)e->mtime_s, e->mtime_ns);
	return out;
}

static void print_json_entry(const struct ptcp_entry *e)
{
	bool file = e->type == PTCP_ENTRY_FILE;
	char mode[8], version[64];

	snprintf(mode, sizeof mode, "%04o", e->mode & 07777);
	json_line(json_pack("{s:s, s:o, s:s, s:s, s:o, s:f, s:o, s:o}", "event", "entry", "path", json_text(e->path),
	    "type", type_name(e->type), "mode", mode, "bytes", json_count(e->bytes), "mtime_s",
	    (double)e->mtime_s + e->mtime_ns / 1e9, "target", json_text(e->target), "version",
	    file ? json_text(version_text(version, e)) : json_null()));
}

static void print_described(const struct ptcp_entry *e)
{
	char version[64];

	print_detailed(e, 1);
	if (e->type == PTCP_ENTRY_FILE)
		printf("version %s\n", version_text(version, e));
}

static void print_listed(struct files_args *a)
{
	unsigned long long max = 0;
	size_t i;
	int width;

	sort_array(a->listed, a->n_listed, sizeof *a->listed, compare);
	for (i = 0; i < a->n_listed; i++)
		max = a->listed[i].bytes > max ? a->listed[i].bytes : max;
	width = snprintf(NULL, 0, "%llu", max);
	for (i = 0; i < a->n_listed; i++) {
		const struct ptcp_entry *e = &a->listed[i];

		if (a->connect.log.json)
			print_json_entry(e);
		else if (a->described)
			print_described(e);
		else if (a->detailed)
			print_detailed(e, width);
		else
			print_name(e->path, "\n");
	}
}

static void forget_listed(struct files_args *a)
{
	while (a->n_listed > 0) {
		const struct ptcp_entry *e = &a->listed[--a->n_listed];

		free((char *)(uintptr_t)e->path);
		free((char *)(uintptr_t)e->target);
	}
	free(a->listed);
	a->listed = NULL;
	a->cap_listed = 0;
}

/* ---- Runs ---- */

static int run_host(struct files_args *a, enum ptcp_manage_op op, char **urls, size_t n,
    struct ptcp_manage_result *sum, struct ptcp_err *e)
{
	struct ptcp_manage_result one;
	struct ptcp_task *t = NULL;
	int r;

	if ((r = ptcp_manage_new(&t, &a->connect.transfer, op, (const char *const *)urls, n, &a->opts, e)) < 0)
		return r;
	ptcp_manage_result_init(&one);
	r = connect_run(t, e);
	ptcp_manage_totals(t, &one);
	ptcp_task_free(t);
	sum->entries += one.entries;
	sum->bytes += one.bytes;
	sum->disk_bytes += one.disk_bytes;
	sum->failed += one.failed;
	sum->quota_bytes = one.quota_bytes;
	sum->quota_used_bytes = one.quota_used_bytes;
	if (r == 0 && a->no_memory)
		r = err_nomem(e);
	print_listed(a);
	forget_listed(a);
	return r;
}

/* The only path fails with the same sentence, which is not to be printed twice. */
static int fail(const struct files_args *a, const struct ptcp_err *e)
{
	return strcmp(exit_sentence(e), a->failed) != 0 ? (int)exit_fail(e) : (int)exit_status(e->code);
}

/* Host by host. After a failure the work on the other hosts goes on. */
static int run_hosts(struct files_args *a, enum ptcp_manage_op op, char **urls, size_t n,
    struct ptcp_manage_result *sum, struct ptcp_err *e)
{
	size_t i, of_host, failed = 0;
	int r = 0;

	for (i = 0; i < n && r != PTCP_ECANCELED; i += of_host) {
		of_host = op == PTCP_RENAME ? n : ptcp_same_host((const char *const *)urls + i, n - i);
		r = run_host(a, op, urls + i, of_host, sum, e);
		if (r == 0 || of_host == n || r == PTCP_ECANCELED)
			continue;
		failed++;
		fail(a, e);
	}
	if (r == PTCP_ECANCELED || failed == 0)
		return r;
	return err_set(e, sum->entries > 0 ? PTCP_EPARTIAL : PTCP_EIO, "%zu host%s failed (see above)", failed,
	    plural(failed));
}

static void print_end(const struct ptcp_manage_result *sum, int code, const struct ptcp_err *e)
{
	bool quota = sum->quota_bytes > 0;

	json_line(json_end(code, e, json_pack("{s:o, s:o, s:o, s:o, s:o}", "entries",
	    json_count(sum->entries), "bytes", json_count(sum->bytes), "failed", json_count(sum->failed), "quota_bytes",
	    quota ? json_count(sum->quota_bytes) : json_null(), "quota_used_bytes",
	    quota ? json_count(sum->quota_used_bytes) : json_null())));
}

/* Of the last host. */
static void print_quota(const struct files_args *a, const struct ptcp_manage_result *sum)
{
	char used[UNITS_TEXT_BYTES], all[UNITS_TEXT_BYTES], left[UNITS_TEXT_BYTES];
	uint64_t quota = sum->quota_bytes;

	if (quota == 0 || a->connect.log.quiet || a->connect.log.json)
		return;
	fprintf(stderr, "quota: %s of %s are used, %s are left\n", units_size_text(used, sum->quota_used_bytes),
	    units_size_text(all, quota), units_size_text(left,
	    quota > sum->quota_used_bytes ? quota - sum->quota_used_bytes : 0));
}

static int run(const struct command *c, enum ptcp_manage_op op, bool described, int argc, char **argv)
{
	struct ptcp_manage_result sum;
	struct ptcp_err e = { .code = 0 };
	struct files_args a;
	int r, n = 0;

	memset(&a, 0, sizeof a);
	ptcp_manage_opts_init(&a.opts);
	ptcp_manage_result_init(&sum);
	a.opts.entry = on_entry;
	a.opts.arg = &a;
	a.described = a.opts.itself = a.opts.literal = described;
	if ((r = connect_parse(&a.connect, c, argc, argv, &n, NULL, &e)) == 0) {
		connect_show_streams(&a.connect);
		r = run_hosts(&a, op, argv, (size_t)n, &sum, &e);
	}
	if (r != OPTIONS_HELP && a.connect.log.json)
		print_end(&sum, r, &e);
	if (r != OPTIONS_HELP)
		print_quota(&a, &sum);
	client_opts_fini(&a.connect);
	return r < 0 ? fail(&a, &e) : command_end(c, r, &e);
}

static int run_ls(const struct command *c, int argc, char **argv) { return run(c, PTCP_LIST, false, argc, argv); }
static int run_du(const struct command *c, int argc, char **argv) { return run(c, PTCP_COUNT, false, argc, argv); }
static int run_mkdir(const struct command *c, int argc, char **argv) { return run(c, PTCP_MKDIR, false, argc, argv); }
static int run_rmdir(const struct command *c, int argc, char **argv)
{
	return run(c, PTCP_RMDIR, false, argc, argv);
}

static int run_stat(const struct command *c, int argc, char **argv)
{
	return run(c, PTCP_LIST, true, argc, argv);
}

static int run_rm(const struct command *c, int argc, char **argv) { return run(c, PTCP_REMOVE, false, argc, argv); }
static int run_mv(const struct command *c, int argc, char **argv) { return run(c, PTCP_RENAME, false, argc, argv); }

#define COMMON GROUP_CONNECTION, GROUP_SSH, GROUP_LOG, GROUP_END
static const struct opt_group ls_tables[] = { GROUP_OWN(ls_options), COMMON };
static const struct opt_group du_tables[] = { COMMON };
static const struct opt_group mkdir_tables[] = { GROUP_OWN(mkdir_options), COMMON };
static const struct opt_group rm_tables[] = { GROUP_OWN(rm_options), COMMON };
static const struct opt_group mv_tables[] = { GROUP_OWN(mv_options), COMMON };

const struct command command_ls = { "ls", "[options] URL...", "list files and directories of a remote host", run_ls,
	ls_tables, 1, INT_MAX, "needs a file or directory on another host" };
const struct command command_du = { "du", "[options] URL...", "print the sizes of directories of a remote host", run_du,
	du_tables, 1, INT_MAX, "needs a file or directory on another host" };
const struct command command_mkdir = { "mkdir", "[options] URL...", "make directories on a remote host", run_mkdir,
	mkdir_tables, 1, INT_MAX, "needs a directory on another host" };
const struct command command_rmdir = { "rmdir", "[options] URL...", "remove empty directories of a remote host",
	run_rmdir, du_tables, 1, INT_MAX, "needs a directory on another host" };
const struct command command_stat = { "stat", "[options] URL", "describe a file or directory of a remote host",
	run_stat, du_tables, 1, 1, "needs a file or directory on another host" };
const struct command command_rm = { "rm", "[options] URL...", "remove files and directories of a remote host", run_rm,
	rm_tables, 1, INT_MAX, "needs a file or directory on another host" };
const struct command command_mv = { "mv", "[options] URL URL", "rename a file or directory on a remote host", run_mv,
	mv_tables, 2, 2, "needs two names on another host" };
