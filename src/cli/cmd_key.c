#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ptcp/ptcp.h>

#include "cli/command.h"
#include "cli/options.h"
#include "core/err.h"
#include "core/text.h"

struct key_args {
	bool read_only, no_relay;
	const char *root, *name;
};

static const struct opt own_options[] = {
	{ "read-only", 0, NULL, "authorize: it may receive, not send", opt_true,
	    offsetof(struct key_args, read_only) },
	{ "no-relay", 0, NULL, "authorize: it may not use this host as a relay", opt_true,
	    offsetof(struct key_args, no_relay) },
	{ "root", 0, "DIR", "authorize: a root of its own, instead of the daemon's", opt_text,
	    offsetof(struct key_args, root) },
	{ "name", 0, "NAME", "authorize: one word for the log", opt_text,
	    offsetof(struct key_args, name) },
	{ .name = NULL },
};

const struct opt *const key_options[] = { own_options, NULL };

/* dir as seen from the current directory. It need not exist yet, so no realpath(). */
static int absolute(const char *dir, char **out, struct ptcp_err *e)
{
	char *cwd;
	int n;

	if (dir[0] == '\0')
		return err_set(e, PTCP_EUSAGE, "--root '': not a directory (name one)");
	if (dir[0] == '/')
		return (*out = strdup(dir)) != NULL ? 0 : err_nomem(e);
	if ((cwd = getcwd(NULL, 0)) == NULL)
		return err_sys(e, PTCP_EUSAGE, "--root: no current directory (give a whole path)");
	n = asprintf(out, "%s/%s", strcmp(cwd, "/") == 0 ? "" : cwd,
	    strncmp(dir, "./", 2) == 0 ? dir + 2 : strcmp(dir, ".") == 0 ? "" : dir);
	free(cwd);
	return n >= 0 ? 0 : err_nomem(e);
}

static int key_show(const struct key_args *a, const char *fingerprint, struct ptcp_err *e)
{
	char own[PTCP_FINGERPRINT_BYTES];
	int r;

	(void)a;
	(void)fingerprint;
	if ((r = ptcp_key_show(NULL, own, e)) == 0)
		puts(own);
	return r;
}

static int key_generate(const struct key_args *a, const char *fingerprint, struct ptcp_err *e)
{
	char own[PTCP_FINGERPRINT_BYTES];
	int r;

	(void)a;
	(void)fingerprint;
	if ((r = ptcp_key_generate(NULL, own, e)) == 0)
		puts(own);
	return r;
}

static int key_authorize(const struct key_args *a, const char *fingerprint, struct ptcp_err *e)
{
	struct ptcp_permission p;
	char *root = NULL;
	int r;

	if (a->root != NULL && (r = absolute(a->root, &root, e)) < 0)
		return r;
	ptcp_permission_init(&p);
	p.fingerprint = fingerprint;
	p.read_only = a->read_only;
	p.no_relay = a->no_relay;
	p.root = root;
	p.name = a->name;
	r = ptcp_authorize(NULL, &p, e);
	free(root);
	return r;
}

static int key_revoke(const struct key_args *a, const char *fingerprint, struct ptcp_err *e)
{
	(void)a;
	return ptcp_revoke(NULL, fingerprint, e);
}

static const struct action {
	const char *name;
	bool fingerprint; /* takes one */
	bool permissions; /* takes the options */
	int (*run)(const struct key_args *a, const char *fingerprint, struct ptcp_err *e);
} actions[] = {
	{ "show", false, false, key_show },
	{ "generate", false, false, key_generate },
	{ "authorize", true, true, key_authorize },
	{ "revoke", true, false, key_revoke },
};

static int run(const struct key_args *a, int n, char **operands, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	const struct action *act = actions, *end = actions + sizeof actions / sizeof *actions;

	if (n == 0)
		return err_set(e, PTCP_EUSAGE, "key: what to do with it is missing "
		    "(show, generate, authorize or revoke)");
	while (act < end && strcmp(act->name, operands[0]) != 0)
		act++;
	if (act == end)
		return err_set(e, PTCP_EUSAGE, "key %s: no such action (show, generate, authorize or revoke)",
		    text_escape(shown, sizeof shown, operands[0]));
	if (act->fingerprint && n != 2)
		return err_set(e, PTCP_EUSAGE, "key %s: needs one fingerprint "
		    "(SHA256:.., as 'ptcp key show' prints it on the client)", act->name);
	if (!act->fingerprint && n != 1)
		return err_set(e, PTCP_EUSAGE, "key %s: takes nothing more (leave '%s' out)", act->name,
		    text_escape(shown, sizeof shown, operands[1]));
	if (!act->permissions && (a->read_only || a->no_relay || a->root != NULL || a->name != NULL))
		return err_set(e, PTCP_EUSAGE, "key %s: takes no options (they belong to key authorize)",
		    act->name);
	return act->run(a, n == 2 ? operands[1] : NULL, e);
}

int cmd_key(const struct command *c, int argc, char **argv)
{
	struct ptcp_err e = { .code = 0 };
	struct key_args a;
	int n = 0, r;

	memset(&a, 0, sizeof a);
	r = options_parse(c, argc, argv, &a, &n, &e);
	if (r == 0)
		r = run(&a, n, argv, &e);
	return command_end(c, r, &e);
}
