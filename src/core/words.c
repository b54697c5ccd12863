#include "core/words.h"

#include <stddef.h>
#include <string.h>

char *words_next(const char **text, char **to, bool *ok)
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
