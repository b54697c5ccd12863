/* ptcp overlay make: a skeleton of an overlay file for given hosts, completed by queries of their servers. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/client_opts.h"
#include "cli/process.h"
#include "cli/show/json.h"
#include "cli/show/terminal.h"
#include "cli/skeleton/skeleton.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"
#include "input/lists.h"

struct overlay_args {
	struct client_opts connect; /* first */
	const char *from;
	bool no_query;
};

#define AT(member) offsetof(struct overlay_args, member)

static const struct opt overlay_options[] = {
	{ "from", 0, "FILE", "read further hosts from FILE, one per line (- for the standard input)",
	    opt_text, AT(from), 0, 0 },
	{ "no-query", 0, NULL, "do not query the servers", opt_true, AT(no_query), 0, 0 },
	{ .name = NULL },
};

/* ---- Hosts ---- */

static int add_file(struct skeleton *s, const char *file, struct ptcp_err *e)
{
	struct path_list l = { .n = 0 };
	char shown[TEXT_NAME_BYTES];
	size_t i, n;
	int r;

	if ((r = path_list_read(&l, file, false, e)) < 0)
		err_while(e, r, "--from: %s", text_escape(shown, sizeof shown, file));
	for (i = 0; r == 0 && i < l.n; i++) {
		for (n = strlen(l.path[i]); n > 0 && (l.path[i][n - 1] == ' ' || l.path[i][n - 1] == '\t');)
			l.path[i][--n] = '\0';
		if (n > 0)
			r = skeleton_add(s, l.path[i], e);
	}
	path_list_fini(&l);
	return r;
}

static int add_hosts(struct skeleton *s, const struct overlay_args *a, char **operands, size_t n, struct ptcp_err *e)
{
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && i < n; i++)
		r = skeleton_add(s, operands[i], e);
	if (r == 0 && a->from != NULL)
		r = add_file(s, a->from, e);
	if (r == 0 && s->n < 2)
		r = err_set(e, PTCP_EUSAGE, "overlay make: needs a destination and at least one other host");
	return r < 0 ? r : skeleton_name(s, e);
}

/* ---- Output ---- */

static int print_json(const struct skeleton *s, struct ptcp_err *e)
{
	json_t *hosts = json_array();
	size_t i;

	for (i = 0; i < s->n; i++) {
		const struct skeleton_host *h = &s->host[i];
		const char *why = h->failed.code != 0 ? h->failed.msg : h->closed.code != 0 ? h->closed.msg : NULL;

		json_array_append_new(hosts, json_pack("{s:s, s:s, s:o, s:o, s:b, s:o}", "name", h->name,
		    "address", h->address,
		    "path", skeleton_is_source(s, i) ? json_text(skeleton_path(h)) : json_null(), "data_bytes",
		    h->counted ? json_count(h->bytes) : json_null(), "relay", h->relay, "error",
		    why != NULL ? json_text(why) : json_null()));
	}
	return json_result(json_pack("{s:s, s:o}", "destination", s->host[0].name, "hosts", json_whole(hosts, s->n)),
	    e);
}

static int print_yaml(const struct skeleton *s, struct ptcp_err *e)
{
	char *text;
	int r = skeleton_text(&text, s, e);

	if (r < 0)
		return r;
	fputs(text, stdout);
	free(text);
	return 0;
}

/* Prefixes the address of the host, unless the sentence names the host. */
static void warn(const struct skeleton_host *h, const char *why)
{
	bool named = strstr(why, h->address) != NULL;

	terminal_line("ptcp: warning: %s%s%s", named ? "" : h->address, named ? "" : ": ", why);
}

/* Warns of each failure; PTCP_EPARTIAL, or the first failure if all hosts have failed. */
static int outcome(const struct skeleton *s, struct ptcp_err *e)
{
	const struct skeleton_host *first = NULL;
	size_t i, failed = 0, silent = 0;

	for (i = 1; i < s->n; i++) {
		const struct skeleton_host *h = &s->host[i];

		if (h->failed.code != 0)
			warn(h, h->failed.msg);
		if (h->closed.code != 0)
			warn(h, h->closed.msg);
		if (first == NULL && h->failed.code != 0)
			first = h;
		silent += h->failed.code != 0;
		failed += h->failed.code != 0 || h->closed.code != 0;
	}
	if (failed == 0)
		return 0;
	if (silent == s->n - 1) {
		*e = first->failed;
		return err_while(e, e->code, "overlay make: all hosts need attention, the first: %s", first->name);
	}
	return err_set(e, PTCP_EPARTIAL,
	    "overlay make: %zu of %zu hosts need%s attention (see the warnings, also in the overlay)",
	    failed, s->n, singular(failed));
}

/* ---- The command ---- */

static int make(struct overlay_args *a, char **operands, size_t n, struct ptcp_err *e)
{
	struct skeleton s = { .n = 0 };
	int r = add_hosts(&s, a, operands, n, e);

	process_catch(EXIT_INTERRUPTED, INTERRUPTED_TWICE);
	if (r == 0 && !a->no_query)
		r = skeleton_ask(&s, &a->connect.transfer, log_opts_status(&a->connect.log), e);
	if (r == 0)
		r = a->connect.log.json ? print_json(&s, e) : print_yaml(&s, e);
	if (r == 0)
		r = outcome(&s, e);
	skeleton_fini(&s);
	return r;
}

static int run_overlay(const struct command *c, int argc, char **argv)
{
	struct ptcp_err e = { .code = 0 };
	char shown[TEXT_NAME_BYTES];
	struct overlay_args a;
	int n, r;

	memset(&a, 0, sizeof a);
	if ((r = connect_parse(&a.connect, c, argc, argv, &n, NULL, &e)) == 0)
		r = strcmp(argv[0], "make") == 0 ? make(&a, argv + 1, (size_t)n - 1, &e) :
		    err_set(&e, PTCP_EUSAGE, "overlay %s: no such action (make)",
		    text_escape(shown, sizeof shown, argv[0]));
	client_opts_fini(&a.connect);
	return command_end(c, r, &e);
}

static const struct opt_group tables[] = { GROUP_OWN(overlay_options), GROUP_CONNECTION, GROUP_LOG, GROUP_END };

const struct command command_overlay = { "overlay", "make [options] DEST [HOST[:PORT][/PATH][=relay]...]",
	"write a skeleton of an overlay file", run_overlay, tables, 1, INT_MAX, "needs an action: make" };
