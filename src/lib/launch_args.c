#include "lib/launch_args.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/text.h"
#include "core/words.h"

#define OURS_MAX 3 /* behind the words, with the end */

static void add(struct launch_args *a, const char *word)
{
	a->at[a->n++] = (char *)(uintptr_t)word; /* who takes argv does not write to it */
}

/* Copies a word behind *to, with {host} replaced; false: no room. */
static bool put(struct launch_args *a, char **to, const char *word, const char *host)
{
	static const char mark[] = "{host}";
	const char *end = a->text + sizeof a->text, *hit;
	size_t n;

	add(a, *to);
	while ((hit = strstr(word, mark)) != NULL) {
		n = (size_t)(hit - word);
		if (n + strlen(host) >= (size_t)(end - *to))
			return false;
		memcpy(*to, word, n);
		strcpy(*to + n, host);
		*to += n + strlen(host);
		word = hit + strlen(mark);
	}
	if (strlen(word) >= (size_t)(end - *to))
		return false;
	*to = stpcpy(*to, word) + 1;
	return true;
}

/* All words of a text. */
static int put_words(struct launch_args *a, char **to, const char *text, const char *host, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES], *scratch = malloc(strlen(text) + 2), *at = scratch, *word;
	const char *p = text;
	bool ok = true, room = true;

	if (scratch == NULL)
		return err_nomem(e);
	while (ok && room && (word = words_next(&p, &at, &ok)) != NULL)
		room = a->n < LAUNCH_ARGS_MAX - OURS_MAX && put(a, to, word, host);
	free(scratch);
	if (!room)
		return err_set(e, PTCP_EUSAGE, "launch: too long");
	return ok ? 0 : err_set(e, PTCP_EUSAGE, "launch '%s': a quote is left open",
	    text_escape(shown, sizeof shown, text));
}

int launch_args(struct launch_args *out, const char *command, const char *host, const char *ptcp, struct ptcp_err *e)
{
	char *to = out->text;
	int r;

	out->n = 0;
	if (host[0] == '-')
		return err_set(e, PTCP_EUSAGE, "launch: a host's name begins with -");
	if ((r = put_words(out, &to, command, host, e)) < 0)
		return r;
	if (out->n == 0)
		return err_set(e, PTCP_EUSAGE, "launch: no command");
	if ((r = put_words(out, &to, ptcp != NULL ? ptcp : "ptcp", host, e)) < 0)
		return r;
	add(out, "serve");
	add(out, "--one-time");
	out->at[out->n] = NULL;
	return 0;
}
