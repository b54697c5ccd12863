#include "core/shell_words.h"

#include <string.h>

char *shell_words_next(const char **text, char **to, bool *ok)
{
	const char *s = *text + strspn(*text, " \t\n");
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
	*text = s;
	*to = w;
	return word;
}

static bool put(char **to, char *end, const char *bytes, size_t n)
{
	if (n >= (size_t)(end - *to)) /* its NUL, too */
		return false;
	*to = mempcpy(*to, bytes, n);
	return true;
}

bool shell_words_fill(char *out, size_t cap, const char *text, const char *mark, const char *by)
{
	char *to = out, *end = out + cap;
	const char *hit;

	for (; (hit = strstr(text, mark)) != NULL; text = hit + strlen(mark))
		if (!put(&to, end, text, (size_t)(hit - text)) || !put(&to, end, by, strlen(by)))
			return false;
	if (!put(&to, end, text, strlen(text)))
		return false;
	*to = '\0';
	return true;
}
