/* ptcp verify: files of this host or of another against a list of digests. */
#include <errno.h>
#include <ptcp/ptcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/client_opts.h"
#include "cli/process.h"
#include "cli/show/json.h"
#include "cli/show/terminal.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"
#include "input/manifest.h"

enum { REQUEST_FILES = 256, REQUEST_BYTES = 32 << 10 }; /* limits of a request: a frame has 64 KiB */

struct verify_args {
	struct client_opts connect; /* first */
	unsigned digests;           /* digest of lines without its name; 0: by the number of digits */
	struct manifest list;
	struct ptcp_manage_opts opts;
	size_t first;               /* entry of the first URL of the request */
	size_t n_requested;         /* number of URLs of the request */
	bool *seen;                 /* whether an entry has its answer */
	uint64_t ok, differ, missing, failed;
};

#define OPT_AT(member) offsetof(struct verify_args, member)

static int set_kind(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct verify_args *a = args;
	struct ptcp_err why;

	return ptcp_digests_parse(&a->digests, text, &why) < 0 ||
	    ptcp_digest_name((enum ptcp_digest)a->digests) == NULL ?
	    opt_reject(o, text, e, "not one digest (ptcp verify --help lists them)") : 0;
}

static const struct opt verify_options[] = {
	{ "algorithm", 'a', "sha256|sha512|sha1|md5|blake2b|adler32|crc32c|xxh3",
	    "digest of lines without its name", set_kind, 0, 0, 0 },
	{ .name = NULL },
};

/* ---- Answers ---- */

static void tell(struct verify_args *a, const struct manifest_entry *x, const char *status, const char *why, int sys)
{
	bool ok = strcmp(status, "ok") == 0;
	char *shown = malloc(4 * strlen(x->name) + 8);

	if (a->connect.log.json)
		json_line(json_pack("{s:s, s:o, s:s, s:s, s:o, s:o}", "event", "file", "path", json_text(x->name),
		    "status", status, "digest", ptcp_digest_name(x->kind), "error", json_text(why), "cause",
		    json_cause(sys)));
	else if (shown != NULL && (!ok || !a->connect.log.quiet))
		printf("%s: %s%s%s\n", text_escape(shown, 4 * strlen(x->name) + 8, x->name),
		    ok ? "OK" : strcmp(status, "differs") == 0 ? "FAILED" : strcmp(status, "missing") == 0 ? "MISSING" :
		    "UNREAD", why != NULL ? ": " : "", why != NULL ? why : "");
	free(shown);
}

static void answer(struct verify_args *a, size_t i, const struct ptcp_entry *entry)
{
	const struct manifest_entry *x = &a->list.entry[i];
	bool gone = entry->code != 0 && entry->sys == ENOENT;

	if (a->seen[i])
		return;
	a->seen[i] = true;
	if (entry->code != 0) {
		*(gone ? &a->missing : &a->failed) += 1;
		tell(a, x, gone ? "missing" : "unread", gone ? NULL : entry->why, entry->sys);
	} else if (entry->n_digests == 1 && strcmp(entry->digest[0].hex, x->hex) == 0) {
		a->ok++;
		tell(a, x, "ok", NULL, 0);
	} else {
		a->differ++;
		tell(a, x, "differs", NULL, 0);
	}
}

static void on_entry(void *arg, const struct ptcp_entry *entry)
{
	struct verify_args *a = arg;

	if (entry->url < a->n_requested) /* else a match: the server took a missing name for a pattern */
		answer(a, a->first + entry->url, entry);
}

/* Names without an answer. */
static void answer_rest(struct verify_args *a)
{
	static const struct ptcp_entry none = { .code = PTCP_EIO, .sys = ENOENT };
	size_t i;

	for (i = a->first; i < a->first + a->n_requested; i++)
		answer(a, i, &none);
}

/* ---- Requests ---- */

/* `name` below the URL or directory `base`; to be freed. */
static char *name_below(const char *base, const char *name)
{
	bool coded = strncmp(base, "ptcp://", 7) == 0 || strncmp(base, "ssh://", 6) == 0;
	size_t n = strlen(base);
	char *out = malloc(n + 3 * strlen(name) + 2), *to;

	if (out == NULL)
		return NULL;
	to = out + sprintf(out, "%s%s", base, n > 0 && base[n - 1] != '/' && base[n - 1] != ':' ? "/" : "");
	if (coded)
		text_percent_encode(to, name);
	else
		strcpy(to, name);
	return out;
}

static int verify_there(struct verify_args *a, char **urls, struct ptcp_err *e)
{
	struct ptcp_task *t = NULL;
	int r;

	if ((r = ptcp_manage_new(&t, &a->connect.transfer, PTCP_SUM, (const char *const *)urls, a->n_requested,
	    &a->opts, e)) < 0)
		return r;
	r = connect_run(t, e);
	ptcp_task_free(t);
	return r == PTCP_EPARTIAL || (r < 0 && e->code == PTCP_EIO) ? 0 : r; /* the answers tell */
}

/* Entries with the digest of the first, as many as a request takes. */
static int verify_some(struct verify_args *a, const char *base, struct ptcp_err *e)
{
	const struct manifest_entry *x = a->list.entry;
	char *url[REQUEST_FILES];
	size_t bytes = 0, i;
	int r = 0;

	a->opts.digests = x[a->first].kind;
	for (a->n_requested = 0; a->first + a->n_requested < a->list.n && a->n_requested < REQUEST_FILES &&
	    x[a->first + a->n_requested].kind == x[a->first].kind && (a->n_requested == 0 || bytes < REQUEST_BYTES);) {
		if ((url[a->n_requested] = name_below(base, x[a->first + a->n_requested].name)) == NULL) {
			r = err_nomem(e);
			break;
		}
		bytes += strlen(url[a->n_requested++]);
		if (!ptcp_is_remote(base))
			break;
	}
	if (r == 0 && ptcp_is_remote(base))
		r = verify_there(a, url, e);
	else if (r == 0 && ptcp_sum(url[0], &a->opts, NULL, e) == PTCP_ENOMEM)
		r = e->code;
	for (i = 0; i < a->n_requested; i++)
		free(url[i]);
	if (r == 0)
		answer_rest(a);
	return r;
}

static int verify_all(struct verify_args *a, const char *list, const char *base, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	uint64_t bad;
	int r;

	if ((r = manifest_read(&a->list, list, (enum ptcp_digest)a->digests, e)) < 0)
		return r;
	if ((a->seen = calloc(a->list.n, sizeof *a->seen)) == NULL)
		return err_nomem(e);
	for (; r == 0 && a->first < a->list.n; a->first += a->n_requested)
		r = verify_some(a, base, e);
	if (r < 0)
		return r;
	if (a->list.malformed > 0)
		terminal_line("ptcp: warning: %s: %zu line%s without a digest (passed over)",
		    text_escape(shown, sizeof shown, list), a->list.malformed, plural(a->list.malformed));
	if ((bad = a->differ + a->missing + a->failed) == 0)
		return 0;
	text_escape(shown, sizeof shown, list);
	return err_set(e, PTCP_EVERIFY, "%s: of %zu digest%s %llu differ%s, %llu file%s missing, and %llu could "
	    "not be read (transfer these files again)", shown, a->list.n, plural(a->list.n),
	    (unsigned long long)a->differ, singular(a->differ), (unsigned long long)a->missing,
	    a->missing == 1 ? " is" : "s are", (unsigned long long)a->failed);
}

static int run_verify(const struct command *c, int argc, char **argv)
{
	struct ptcp_err e = { .code = 0 };
	struct verify_args a;
	int r, n = 0;

	memset(&a, 0, sizeof a);
	ptcp_manage_opts_init(&a.opts);
	a.opts.entry = on_entry;
	a.opts.arg = &a;
	if ((r = connect_parse(&a.connect, c, argc, argv, &n, NULL, &e)) == 0) {
		connect_show_streams(&a.connect);
		r = verify_all(&a, argv[0], n > 1 ? argv[1] : ".", &e);
	}
	if (r != OPTIONS_HELP && a.connect.log.json)
		json_line(json_end(r, &e, json_pack("{s:o, s:o, s:o, s:o, s:o}", "ok_files", json_count(a.ok), "differ",
		    json_count(a.differ), "missing", json_count(a.missing), "unread", json_count(a.failed),
		    "other_lines", json_count(a.list.malformed))));
	manifest_fini(&a.list);
	free(a.seen);
	client_opts_fini(&a.connect);
	return command_end(c, r, &e);
}

static const struct opt_group verify_tables[] = { GROUP_OWN(verify_options), GROUP_CONNECTION, GROUP_SSH, GROUP_LOG,
	GROUP_END };

const struct command command_verify = { "verify", "[options] MANIFEST [URL|DIR]",
	"compare files with a list of their digests, where they are", run_verify, verify_tables, 1, 2,
	"needs a list of digests" };
