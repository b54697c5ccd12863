#include "conn/start_args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

#define SSH_OURS_MAX 16   /* arguments behind the words of --ssh, */
#define LAUNCH_OURS_MAX 3 /* words of the launch command, */
#define MOVER_OURS_MAX 5  /* words of --movers */

static void start_args_add(struct start_args *a, const char *word)
{
	a->at[a->n++] = (char *)(uintptr_t)word; /* the child does not write to argv */
}

/* Appends the words of `text` at *to, {host} expanded; `what` names the option in errors. */
static int add_words(struct start_args *a, char **to, unsigned max, const char *what, const char *text,
    const char *host, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES], *scratch = malloc(strlen(text) + 2), *at = scratch, *word;
	const char *p = text;
	bool ok = true, room = true;

	if (scratch == NULL)
		return err_nomem(e);
	while (ok && room && (word = text_next_word(&p, &at, &ok)) != NULL) {
		room = a->n < max && text_substitute(*to, (size_t)(a->text + sizeof a->text - *to),
		    word, "{host}", host);
		if (room) {
			start_args_add(a, *to);
			*to += strlen(*to) + 1;
		}
	}
	free(scratch);
	if (!room)
		return err_set(e, PTCP_EUSAGE, "%s: more than %u words or %zu bytes (put it into a script)", what, max,
		    sizeof a->text);
	return ok ? 0 : err_set(e, PTCP_EUSAGE, "%s '%s': a quote is left open (close it)", what,
	    text_escape(shown, sizeof shown, text));
}

int ssh_args(struct start_args *out, const char *command, const struct remote *t, const struct sock_opts *so,
    const char *remote, struct ptcp_err *e)
{
	char *to = out->text;
	int r;

	out->n = 0;
	if (command != NULL && (r = add_words(out, &to, START_ARGS_MAX - SSH_OURS_MAX, "--ssh", command,
	    "{host}", e)) < 0)
		return r;
	if (out->n == 0)
		start_args_add(out, "ssh");
	if (remote == NULL)
		start_args_add(out, "-G");
	/* Settings of the user's configuration for the host that would break a program's use of ssh. */
	start_args_add(out, "-T");
	start_args_add(out, "-oRemoteCommand=none");
	start_args_add(out, "-oClearAllForwardings=yes");
	start_args_add(out, "-oPermitLocalCommand=no");
	if (remote != NULL && so->timeout_ns > 0) {
		snprintf(out->connect_timeout, sizeof out->connect_timeout, "-oConnectTimeout=%llu",
		    (unsigned long long)((so->timeout_ns + NS_PER_S - 1) / NS_PER_S));
		start_args_add(out, out->connect_timeout);
	}
	if (so->family != 0)
		start_args_add(out, so->family == 4 ? "-4" : "-6");
	if (t->port != 0) {
		snprintf(out->port, sizeof out->port, "%u", t->port);
		start_args_add(out, "-p");
		start_args_add(out, out->port);
	}
	if (t->user[0] != '\0') {
		start_args_add(out, "-l");
		start_args_add(out, t->user);
	}
	start_args_add(out, t->host);
	if (remote != NULL)
		start_args_add(out, remote);
	out->at[out->n] = NULL;
	return 0;
}

int launch_args(struct start_args *out, const char *command, const char *host, const char *ptcp, struct ptcp_err *e)
{
	const unsigned max = START_ARGS_MAX - LAUNCH_OURS_MAX;
	char shown[TEXT_NAME_BYTES], *to = out->text;
	int r;

	out->n = 0;
	if (host[0] == '-')
		return err_set(e, PTCP_EUSAGE, "launch: the host '%s' would be taken for an option (give its address)",
		    text_escape(shown, sizeof shown, host));
	if ((r = add_words(out, &to, max, "launch", command, host, e)) < 0)
		return r;
	if (out->n == 0)
		return err_set(e, PTCP_EUSAGE, "launch: no command (give one, such as ssh {host})");
	if ((r = add_words(out, &to, max, "--remote-ptcp", ptcp != NULL ? ptcp : "ptcp", host, e)) < 0)
		return r;
	start_args_add(out, "serve");
	start_args_add(out, "--ephemeral");
	out->at[out->n] = NULL;
	return 0;
}

int mover_args(struct start_args *out, const char *command, const char *host, const char *ptcp, const char *file,
    struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES], *to = out->text;
	int r;

	out->n = 0;
	if (host != NULL && (host[0] == '-' || host[0] == '\0'))
		return err_set(e, PTCP_EUSAGE, "--mover-hosts: '%s' would be taken for an option (give its address)",
		    text_escape(shown, sizeof shown, host));
	if ((r = add_words(out, &to, START_ARGS_MAX - MOVER_OURS_MAX, "--movers", command,
	    host != NULL ? host : "{host}", e)) < 0)
		return r;
	start_args_add(out, ptcp != NULL ? ptcp : "ptcp");
	start_args_add(out, "mover");
	start_args_add(out, "--join");
	start_args_add(out, file);
	out->at[out->n] = NULL;
	return 0;
}
