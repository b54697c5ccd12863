#include "client/ssh_args.h"

#include <stdio.h>
#include <string.h>

#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

/* Room for ours behind the words. */
#define OURS_MAX 16

static void add(struct ssh_args *a, const char *word)
{
	a->at[a->n++] = (char *)(uintptr_t)word; /* who takes argv does not write to it */
}

int ssh_args(struct ssh_args *out, const char *command, const struct remote *t, const struct sock_opts *so,
    const char *remote, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES], *to = out->text, *word;
	const char *p = command != NULL ? command : "";
	bool ok = true;

	out->n = 0;
	if (strlen(p) >= sizeof out->text - 1)
		return err_set(e, PTCP_EUSAGE, "--ssh: longer than %zu bytes (put options into ~/.ssh/config)",
		    sizeof out->text - 2);
	while (ok && (word = text_next_word(&p, &to, &ok)) != NULL) {
		if (out->n == SSH_ARGS_MAX - OURS_MAX)
			return err_set(e, PTCP_EUSAGE, "--ssh: more than %d words (put options into ~/.ssh/config)",
			    SSH_ARGS_MAX - OURS_MAX);
		add(out, word);
	}
	if (!ok)
		return err_set(e, PTCP_EUSAGE, "--ssh %s: a quote is left open (close it)",
		    text_escape(shown, sizeof shown, command));
	if (out->n == 0)
		add(out, "ssh");
	if (remote == NULL)
		add(out, "-G");
	/* What the user's configuration may have for the host that would be in the way of a program. */
	add(out, "-T");
	add(out, "-oRemoteCommand=none");
	add(out, "-oClearAllForwardings=yes");
	add(out, "-oPermitLocalCommand=no");
	if (remote != NULL && so->timeout_ns > 0) {
		snprintf(out->patience, sizeof out->patience, "-oConnectTimeout=%llu",
		    (unsigned long long)((so->timeout_ns + NS_PER_S - 1) / NS_PER_S));
		add(out, out->patience);
	}
	if (so->family != 0)
		add(out, so->family == 4 ? "-4" : "-6");
	if (t->port != 0) {
		snprintf(out->port, sizeof out->port, "%u", t->port);
		add(out, "-p");
		add(out, out->port);
	}
	if (t->user[0] != '\0') {
		add(out, "-l");
		add(out, t->user);
	}
	add(out, t->host);
	if (remote != NULL)
		add(out, remote);
	out->at[out->n] = NULL;
	return 0;
}
