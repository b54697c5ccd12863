/* ptcp cat: files of other hosts, or ranges of their bytes, on standard output. */
#include <limits.h>
#include <ptcp/ptcp.h>
#include <stdio.h>
#include <string.h>

#include "cli/client_opts.h"
#include "cli/process.h"
#include "cli/read_parts.h"
#include "cli/show/json.h"
#include "core/err.h"

struct cat_args {
	struct client_opts connect; /* first */
	struct byte_ranges parts;
};

static int set_range(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct ptcp_err why;

	return parts_parse(&((struct cat_args *)args)->parts, text, &why) < 0 ?
	    opt_reject(o, text, e, "%s", why.msg) : 0;
}

static const struct opt cat_options[] = {
	{ "range", 0, "FIRST-LAST|-NUMBER", "only these bytes of each file, the first one is 0; or its last NUMBER",
	    set_range, 0, 0, 0 },
	{ .name = NULL },
};

/* A failure does not keep the other files away. */
static int cat_all(struct cat_args *a, char **urls, size_t n, uint64_t *bytes, struct ptcp_err *e)
{
	bool json = a->connect.log.json;
	size_t i, failed = 0;
	int r = 0;

	for (i = 0; i < n; i++) {
		if ((r = parts_read(&a->connect.transfer, urls[i], &a->parts, json ? NULL : stdout, bytes, e)) == 0)
			continue;
		if (r == PTCP_ECANCELED || r == PTCP_EUSAGE || n == 1 || ferror(stdout))
			return r;
		failed++;
		exit_fail(e);
	}
	if (failed == 0)
		return 0;
	return err_set(e, failed < n ? PTCP_EPARTIAL : PTCP_EIO, "files: %zu of %zu failed (see above)", failed, n);
}

static int run_cat(const struct command *c, int argc, char **argv)
{
	struct ptcp_err e = { .code = 0 };
	struct cat_args a;
	uint64_t bytes = 0;
	int r, n = 0;

	memset(&a, 0, sizeof a);
	if ((r = connect_parse(&a.connect, c, argc, argv, &n, NULL, &e)) == 0) {
		connect_show_streams(&a.connect);
		r = cat_all(&a, argv, (size_t)n, &bytes, &e);
	}
	if (r != OPTIONS_HELP && a.connect.log.json)
		json_line(json_end(r, &e, json_pack("{s:o}", "bytes", json_count(bytes))));
	parts_fini(&a.parts);
	client_opts_fini(&a.connect);
	return command_end(c, r, &e);
}

static const struct opt_group cat_tables[] = { GROUP_OWN(cat_options), GROUP_CONNECTION, GROUP_SSH, GROUP_LOG,
	GROUP_END };

const struct command command_cat = { "cat", "[options] URL...", "print files of a remote host, or parts of them",
	run_cat, cat_tables, 1, INT_MAX, "needs a file on another host" };
