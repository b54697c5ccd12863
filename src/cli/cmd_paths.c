/* ptcp paths: the quickest paths between two hosts of an overlay, and how to divide the bytes. */
#include <stdio.h>

#include "cli/overlay_names.h"
#include "cli/show/json.h"
#include "cli/show/terminal.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

struct paths_args {
	const char *from, *to;
	uint64_t bytes;
	unsigned max_paths;
	bool json;
};

#define AT(member) offsetof(struct paths_args, member)

static const struct opt paths_options[] = {
	{ "from", 0, "HOST", "source host", opt_text, AT(from), 0, 0 },
	{ "to", 0, "HOST", "destination host", opt_text, AT(to), 0, 0 },
	{ "size", 0, "SIZE", "size of the data", opt_bytes, AT(bytes), 1, 1e18 },
	{ "most", 'm', "N", "maximum number of paths, 1 to 64 (default: 2)", opt_unsigned, AT(max_paths), 1,
	    PTCP_QUICKEST_MAX },
	{ "json", 0, NULL, "print a JSON object on standard output", opt_true, AT(json), 0, 0 },
	{ .name = NULL },
};

static void print_text(const struct ptcp_overlay *o, const struct ptcp_paths *p, uint64_t bytes)
{
	char b[UNITS_TEXT_BYTES], c[UNITS_TEXT_BYTES];
	size_t i, k, n = ptcp_paths_count(p);
	struct ptcp_quickest path;

	printf("%s over %zu path%s in %s\n\n", units_size_text(b, bytes), n, plural(n),
	    units_time_text(c, ptcp_paths_finish_s(p)));
	printf("%14s %7s %12s %9s  %s\n", "bytes", "share", "rate", "delay", "via");
	for (i = 0; i < n; i++) {
		ptcp_paths_get(p, i, &path);
		printf("%14llu %5.1f %% %12s %6.4g ms  ", (unsigned long long)path.bytes,
		    100 * (double)path.bytes / (double)bytes, units_rate_text(b, path.rate_bps), 1e3 * path.delay_s);
		for (k = 0; k < path.n_relays; k++)
			printf("%s%s", k > 0 ? "," : "", host_name(o, path.relays[k]));
		printf("%s\n", path.n_relays == 0 ? "direct" : "");
	}
}

static json_t *path_json(const struct ptcp_overlay *o, const struct ptcp_quickest *p)
{
	json_t *candidate = json_array();
	size_t i;

	for (i = 0; i < p->n_relays; i++)
		json_array_append_new(candidate, json_string(host_name(o, p->relays[i])));
	return json_pack("{s:o, s:f, s:f, s:o}", "via", json_whole(candidate, p->n_relays), "rate_bps", p->rate_bps,
	    "delay_s", p->delay_s, "bytes", json_count(p->bytes));
}

static int print_json(const struct ptcp_overlay *o, const struct ptcp_paths *p, struct ptcp_err *e)
{
	json_t *list = json_array(), *object;
	struct ptcp_quickest path;
	size_t i;

	for (i = 0; i < ptcp_paths_count(p); i++) {
		ptcp_paths_get(p, i, &path);
		json_array_append_new(list, path_json(o, &path));
	}
	object = json_pack("{s:o, s:f}", "paths", json_whole(list, ptcp_paths_count(p)), "finish_s",
	    ptcp_paths_finish_s(p));
	return json_result(object, e);
}

static int find_host(const struct ptcp_overlay *o, const char *option, const char *name,
    const char *file, int *host, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES], in[TEXT_NAME_BYTES];

	if ((*host = ptcp_overlay_find_host(o, name)) >= 0)
		return 0;
	return err_set(e, PTCP_EUSAGE, "--%s '%s': no such host in %s (name one of its hosts)", option,
	    text_escape(shown, sizeof shown, name), text_escape(in, sizeof in, file));
}

static void warn_unknown(const struct ptcp_overlay *o)
{
	struct ptcp_overlay_link l;
	size_t i, n = 0;

	for (i = 0; i < ptcp_overlay_links(o); i++) {
		ptcp_overlay_link(o, i, &l);
		n += l.rate_bps == PTCP_UNKNOWN;
	}
	if (n > 0)
		terminal_line("ptcp: warning: %zu of %zu links %s ignored (ptcp links measures rates)",
		    n, ptcp_overlay_links(o), n == 1 ? "has no rate and was" : "have no rate and were");
}

static int find(const struct paths_args *a, const struct ptcp_overlay *o, const char *file,
    struct ptcp_paths **p, struct ptcp_err *e)
{
	int from, to, r;

	if ((r = find_host(o, "from", a->from, file, &from, e)) < 0 ||
	    (r = find_host(o, "to", a->to, file, &to, e)) < 0)
		return r;
	if (from == to)
		return err_set(e, PTCP_EUSAGE, "--to %s: the same host as --from (name a different host)", a->to);
	return ptcp_paths_find(p, o, from, to, a->bytes, a->max_paths, e);
}

static int find_and_print(const struct paths_args *a, const char *file, struct ptcp_err *e)
{
	struct ptcp_overlay *o = NULL;
	struct ptcp_paths *p = NULL;
	int r;

	if ((r = ptcp_overlay_load(&o, file, e)) < 0)
		return r;
	if ((r = find(a, o, file, &p, e)) == 0) {
		warn_unknown(o);
		if (a->json)
			r = print_json(o, p, e);
		else
			print_text(o, p, a->bytes);
	}
	ptcp_paths_free(p);
	ptcp_overlay_free(o);
	return r;
}

static int run_paths(const struct command *c, int argc, char **argv)
{
	struct paths_args a = { .max_paths = 2 };
	struct ptcp_err e = { .code = 0 };
	int r;

	r = options_parse(c, argc, argv, &a, NULL, NULL, &e);
	if (r == 0 && (a.from == NULL || a.to == NULL || a.bytes == 0))
		r = err_set(&e, PTCP_EUSAGE, "%s: needs --from, --to and --size (ptcp %s --help)", c->name, c->name);
	if (r == 0)
		r = find_and_print(&a, argv[0], &e);
	return command_end(c, r, &e);
}

static const struct opt_group tables[] = { GROUP_OWN(paths_options), GROUP_END };

const struct command command_paths = { "paths", "[options] --from A --to B --size SIZE OVERLAY.yaml",
	"find the quickest paths between two hosts, and the share of each path", run_paths, tables, 1, 1,
	"needs one overlay file" };
