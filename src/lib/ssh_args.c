#include "lib/ssh_args.h"

#include <stdio.h>
#include <string.h>

#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

/* Room for ours behind the words. */
#define OURS_MAX 16

/* Takes the next word of *p out of quotes, behind *to; NULL when there is none. *ok false: a quote is
 * left open. */
static char *next_word(const char **p, char **to, bool *ok)
{
	const char *s = *p + strspn(*p, " \t\n");
	char *word = *to, *w = word, quote = '\0';

	if (*s == '\0')
		return NULL;
	for (; *s != '\0' && (quote != '\0' || strchr(" \t\n", *s) == NULL); s++) {
		if (*s == quote)
			quote = '\0';
		else if (quote == '\0' && (*s == '\'' || *s == '"'))
			quote = *s;
		else if (*s == '\\' && quote != '\'' && s[1] != '\0')
			*w++ = *++s;
		else
			*w++ = *s;
	}
	*ok = quote == '\0';
	*w++ = '\0';
	*p = s;
	*to = w;
	return word;
}

static void add(struct ssh_args *a, const char *word)
{
	a->at[a->n++] = (char *)(uintptr_t)word; /* who takes argv does not write to it */
}

int ssh_args(struct ssh_args *out, const char *command, const struct target *t, const struct sock_opts *so,
    const char *remote, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES], *to = out->text, *word;
	const char *p = command != NULL ? command : "";
	bool ok = true;

	out->n = 0;
	if (strlen(p) >= sizeof out->text - 1)
		return err_set(e, PTCP_EUSAGE, "--ssh: too long");
	while (ok && (word = next_word(&p, &to, &ok)) != NULL) {
		if (out->n == SSH_ARGS_MAX - OURS_MAX)
			return err_set(e, PTCP_EUSAGE, "--ssh: too many words");
		add(out, word);
	}
	if (!ok)
		return err_set(e, PTCP_EUSAGE, "--ssh %s: a quote is left open",
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
