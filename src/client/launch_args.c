#include "client/launch_args.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/text.h"

#define OURS_MAX 3 /* behind the words, with the end */

static void add(struct launch_args *a, const char *word)
{
	a->at[a->n++] = (char *)(uintptr_t)word; /* who takes argv does not write to it */
}

/* All words of a text, with {host} replaced, behind *to; `what` is what it is to who gave it. */
static int put_words(struct launch_args *a, char **to, const char *what, const char *text, const char *host,
    struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES], *scratch = malloc(strlen(text) + 2), *at = scratch, *word;
	const char *p = text;
	bool ok = true, room = true;

	if (scratch == NULL)
		return err_nomem(e);
	while (ok && room && (word = text_next_word(&p, &at, &ok)) != NULL) {
		room = a->n < LAUNCH_ARGS_MAX - OURS_MAX &&
		    text_substitute(*to, (size_t)(a->text + sizeof a->text - *to), word, "{host}", host);
		if (room) {
			add(a, *to);
			*to += strlen(*to) + 1;
		}
	}
	free(scratch);
	if (!room)
		return err_set(e, PTCP_EUSAGE, "%s: more than %d words or %zu bytes (put it into a script)", what,
		    LAUNCH_ARGS_MAX - OURS_MAX, sizeof a->text);
	return ok ? 0 : err_set(e, PTCP_EUSAGE, "%s '%s': a quote is left open (close it)", what,
	    text_escape(shown, sizeof shown, text));
}

int launch_args(struct launch_args *out, const char *command, const char *host, const char *ptcp, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES], *to = out->text;
	int r;

	out->n = 0;
	if (host[0] == '-')
		return err_set(e, PTCP_EUSAGE, "launch: the host '%s' would be taken for an option (give its address)",
		    text_escape(shown, sizeof shown, host));
	if ((r = put_words(out, &to, "launch", command, host, e)) < 0)
		return r;
	if (out->n == 0)
		return err_set(e, PTCP_EUSAGE, "launch: no command (give one, such as ssh {host})");
	if ((r = put_words(out, &to, "--remote-ptcp", ptcp != NULL ? ptcp : "ptcp", host, e)) < 0)
		return r;
	add(out, "serve");
	add(out, "--one-time");
	out->at[out->n] = NULL;
	return 0;
}
