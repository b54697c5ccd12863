/* ptcp clean: what interrupted transfers have left behind. */
#include <ptcp/ptcp.h>
#include <stdio.h>
#include <string.h>

#include "cli/client_opts.h"
#include "cli/process.h"
#include "cli/show/json.h"
#include "cli/show/terminal.h"
#include "core/text.h"
#include "core/units.h"

struct clean_args {
	struct client_opts connect; /* first */
	struct ptcp_clean_opts opts;
};

#define OPT_AT(member) offsetof(struct clean_args, opts.member)

static const struct opt clean_options[] = { OPT_ROWS(PTCP_OPTIONS_CLEAN) { .name = NULL } };

static void on_found(void *arg, const struct ptcp_leftover *l)
{
	const struct clean_args *a = arg;
	char path[2 * TEXT_NAME_BYTES], size[UNITS_TEXT_BYTES], age[UNITS_TEXT_BYTES];

	text_escape(path, sizeof path, l->path);
	if (a->connect.log.json)
		json_line(json_pack("{s:s, s:o, s:s, s:o, s:o, s:o, s:o}", "event", "leftover", "path",
		    json_text(l->path), "status", l->why != NULL ? "failed" : a->opts.dry_run ? "found" : "removed",
		    "bytes",
		    json_count(l->bytes), "age_s", json_seconds(l->age_s), "error", json_text(l->why), "cause",
		    json_cause(l->sys)));
	else if (l->why == NULL && !a->connect.log.quiet)
		printf("%s  %s  %s\n", path, units_size_text(size, l->bytes), units_time_text(age, l->age_s));
	if (l->why != NULL)
		terminal_line("ptcp: %s: %s", path, l->why);
}

static void print_json(const struct ptcp_clean_result *r, int code, const struct ptcp_err *e)
{
	json_line(json_end(code, e, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "files", json_count(r->files), "bytes",
	    json_count(r->bytes), "in_use", json_count(r->in_use), "recent",
	    json_count(r->recent), "failed", json_count(r->failed), "unlisted", json_count(r->unlisted))));
}

static void print_end(const struct clean_args *a, const struct ptcp_clean_result *r, int code,
    const struct ptcp_err *e)
{
	char size[UNITS_TEXT_BYTES];

	if (a->connect.log.json) {
		print_json(r, code, e);
		return;
	}
	if (r->unlisted > 0 && !a->connect.log.quiet)
		terminal_line("%llu more, not listed", (unsigned long long)r->unlisted);
	if (code == 0 && !a->connect.log.quiet)
		terminal_line("%s %llu leftover%s, %s; retained %llu in use, %llu too recent",
		    a->opts.dry_run ? "found" : "removed", (unsigned long long)r->files, plural(r->files),
		    units_size_text(size, r->bytes), (unsigned long long)r->in_use, (unsigned long long)r->recent);
}

static int clean_local(const char *dir, const struct ptcp_clean_opts *o, struct ptcp_clean_result *result,
    struct ptcp_err *e)
{
	static char line[] = "ptcp: clean: interrupted (run the same command again)\n";
	int r;

	process_catch(EXIT_INTERRUPTED, line);
	process_set_stop(process_end, line); /* each removal is whole */
	r = ptcp_clean(dir, o, result, e);
	process_set_stop(NULL, NULL);
	return r;
}

static int clean_remote(struct clean_args *a, const char *url, struct ptcp_clean_result *result, struct ptcp_err *e)
{
	struct ptcp_task *t = NULL;
	int r;

	connect_show_streams(&a->connect);
	if ((r = ptcp_clean_new(&t, &a->connect.transfer, url, &a->opts, e)) < 0)
		return r;
	r = connect_run(t, e);
	ptcp_clean_totals(t, result);
	ptcp_task_free(t);
	return r;
}

static int run_clean(const struct command *c, int argc, char **argv)
{
	struct ptcp_err e = { .code = 0 };
	struct ptcp_clean_result result;
	struct clean_args a;
	int r;

	memset(&a, 0, sizeof a);
	ptcp_clean_opts_init(&a.opts);
	ptcp_clean_result_init(&result);
	a.opts.found = on_found;
	a.opts.arg = &a;
	if ((r = connect_parse(&a.connect, c, argc, argv, NULL, NULL, &e)) == 0)
		r = ptcp_is_remote(argv[0]) ? clean_remote(&a, argv[0], &result, &e) :
		    clean_local(argv[0], &a.opts, &result, &e);
	if (r != OPTIONS_HELP)
		print_end(&a, &result, r, &e);
	client_opts_fini(&a.connect);
	return command_end(c, r, &e);
}

static const struct opt_group tables[] = { GROUP_OWN(clean_options), GROUP_CONNECTION, GROUP_SSH,
	GROUP_LOG, GROUP_END };

const struct command command_clean = { "clean", "[options] DIRECTORY | URL",
	"remove what interrupted transfers have left behind", run_clean, tables, 1, 1,
	"needs one directory, here or on another host" };
