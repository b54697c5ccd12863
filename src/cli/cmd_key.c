/* ptcp key: identity of this host, and authorized clients. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ptcp/ptcp.h>

#include "cli/show/json.h"
#include "cli/options.h"
#include "core/err.h"
#include "core/text.h"

struct key_opts {
	struct ptcp_permission permission;
	bool json;
};

#define AT(member) (offsetof(struct key_opts, permission) + offsetof(struct ptcp_permission, member))

static const struct opt key_options[] = {
	{ "read-only", 0, NULL, "authorize: permit receiving only", opt_true, AT(read_only), 0, 0 },
	{ "no-relay", 0, NULL, "authorize: forbid the client to use this host as a relay", opt_true, AT(no_relay), 0, 0 },
	{ "root", 0, "DIR", "authorize: root directory of the client, instead of the server's", opt_text, AT(root), 0, 0 },
	{ "name", 0, "NAME", "authorize: name of the client in the log, one word", opt_text, AT(name), 0, 0 },
	{ "json", 0, NULL, "list: print one JSON object per line", opt_true, offsetof(struct key_opts, json), 0, 0 },
	{ .name = NULL },
};

/* Makes `dir` absolute; not by realpath(), since the directory may not exist yet. */
static int absolute(const char *dir, char **out, struct ptcp_err *e)
{
	char *cwd;
	int n;

	if (dir[0] == '\0')
		return err_set(e, PTCP_EUSAGE, "--root '': not a directory (name a directory)");
	if (dir[0] == '/')
		return (*out = strdup(dir)) != NULL ? 0 : err_nomem(e);
	if ((cwd = getcwd(NULL, 0)) == NULL)
		return err_sys(e, PTCP_EUSAGE, "--root: no current directory (give an absolute path)");
	n = asprintf(out, "%s/%s", strcmp(cwd, "/") == 0 ? "" : cwd,
	    strncmp(dir, "./", 2) == 0 ? dir + 2 : strcmp(dir, ".") == 0 ? "" : dir);
	free(cwd);
	return n >= 0 ? 0 : err_nomem(e);
}

static int authorize_client(struct ptcp_permission *p, struct ptcp_err *e)
{
	char *root = NULL;
	int r;

	if (p->root != NULL && (r = absolute(p->root, &root, e)) < 0)
		return r;
	p->root = root;
	r = ptcp_authorize(NULL, p, e);
	free(root);
	return r;
}

static void print_client(void *arg, const struct ptcp_permission *p)
{
	const struct key_opts *o = arg;
	char root[TEXT_NAME_BYTES], name[TEXT_NAME_BYTES];

	if (o->json)
		json_line(json_pack("{s:s, s:o, s:b, s:b, s:o}", "fingerprint", p->fingerprint, "name",
		    p->name != NULL ? json_text(p->name) : json_null(), "read_only", p->read_only, "relay", !p->no_relay,
		    "root", p->root != NULL ? json_text(p->root) : json_null()));
	else
		printf("%s  %-10s  %-8s  %-12s  %s\n", p->fingerprint, p->read_only ? "read-only" : "read-write",
		    p->no_relay ? "no-relay" : "relay", text_escape(name, sizeof name, p->name != NULL ? p->name : "-"),
		    text_escape(root, sizeof root, p->root != NULL ? p->root : "-"));
}

enum action { SHOW, GENERATE, LIST, AUTHORIZE, REVOKE, N_ACTIONS };

static int run_action(enum action action, struct key_opts *o, struct ptcp_err *e)
{
	struct ptcp_permission *p = &o->permission;
	char fingerprint[PTCP_FINGERPRINT_BYTES];
	int r;

	if (action == LIST)
		return ptcp_authorized_each(NULL, print_client, o, e);
	if (action == AUTHORIZE)
		return authorize_client(p, e);
	if (action == REVOKE)
		return ptcp_revoke(NULL, p->fingerprint, e);
	r = action == SHOW ? ptcp_key_show(NULL, fingerprint, e) : ptcp_key_generate(NULL, fingerprint, e);
	if (r == 0)
		puts(fingerprint);
	return r;
}

static int check_and_run(struct key_opts *o, int n, char **operands, struct ptcp_err *e)
{
	static const char *const names[] = { "show", "generate", "list", "authorize", "revoke" };
	struct ptcp_permission *p = &o->permission;
	char shown[TEXT_NAME_BYTES];
	struct suggest near;
	enum action action = SHOW;

	while (action < N_ACTIONS && strcmp(names[action], operands[0]) != 0)
		action++;
	if (action == N_ACTIONS) {
		suggest_init(&near, operands[0], strlen(operands[0]));
		for (action = SHOW; action < N_ACTIONS; action++)
			suggest_offer(&near, names[action]);
		return err_set(e, PTCP_EUSAGE, "key %s: no such action (%s%s%s)", text_escape(shown, sizeof shown, operands[0]),
		    near.best != NULL ? "did you mean " : "show, generate, list, authorize or revoke",
		    near.best != NULL ? near.best : "", near.best != NULL ? "?" : "");
	}
	if (action >= AUTHORIZE && n != 2)
		return err_set(e, PTCP_EUSAGE, "key %s: needs one fingerprint "
		    "(SHA256:.., as 'ptcp key show' prints it on the client)", names[action]);
	if (action < AUTHORIZE && n != 1)
		return err_set(e, PTCP_EUSAGE, "key %s: takes no further operand (leave '%s' out)", names[action],
		    text_escape(shown, sizeof shown, operands[1]));
	if (action != AUTHORIZE && (p->read_only || p->no_relay || p->root != NULL || p->name != NULL))
		return err_set(e, PTCP_EUSAGE, "key %s: takes no options (they belong to key authorize)", names[action]);
	if (action != LIST && o->json)
		return err_set(e, PTCP_EUSAGE, "key %s: takes no --json (it belongs to key list)", names[action]);
	p->fingerprint = n == 2 ? operands[1] : NULL;
	return run_action(action, o, e);
}

static int run_key(const struct command *c, int argc, char **argv)
{
	struct ptcp_err e = { .code = 0 };
	struct key_opts o = { .json = false };
	int n, r;

	ptcp_permission_init(&o.permission);
	if ((r = options_parse(c, argc, argv, &o, &n, NULL, &e)) == 0)
		r = check_and_run(&o, n, argv, &e);
	return command_end(c, r, &e);
}

static const struct opt *const tables[] = { key_options, NULL };

const struct command command_key = { "key", "show | generate | list | authorize FINGERPRINT [options] | revoke FINGERPRINT",
	"manage the identity of this host and authorized clients", run_key, tables, 1, INT_MAX,
	"needs an action: show, generate, list, authorize or revoke" };
