#include "core/text.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Length of the valid, printable UTF-8 character at p, or 0. C1 controls and
 * the bidirectional overrides count as not printable. */
static size_t printable(const unsigned char *p)
{
	uint32_t c;
	size_t n, i;

	if (p[0] < 0x80)
		return p[0] >= 0x20 && p[0] != 0x7f && p[0] != '\\' ? 1 : 0;
	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		n = 2;
	else if ((p[0] & 0xf0) == 0xe0)
		n = 3;
	else if (p[0] >= 0xf0 && p[0] <= 0xf4)
		n = 4;
	else
		return 0;
	c = p[0] & (0xffu >> (n + 1));
	for (i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if ((n == 3 && c < 0x800) || (n == 4 && (c < 0x10000 || c > 0x10ffff)))
		return 0;
	if (c < 0xa0 || (c >= 0xd800 && c <= 0xdfff) ||
	    (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	    (c >= 0x2066 && c <= 0x2069) || c == 0xfeff)
		return 0;
	return n;
}

static const char *escape(char *out, size_t cap, const char *name, bool quoted)
{
	const unsigned char *p = (const unsigned char *)name;
	size_t used = 0, cut = 0, n; /* cut: the last end of a character with space for ".." */
	char one[8];

	while (*p != '\0') {
		if ((n = printable(p)) > 0 && !(quoted && *p == '"')) {
			memcpy(one, p, n);
			p += n;
		} else if (*p == '\\') {
			memcpy(one, "\\\\", n = 2);
			p++;
		} else {
			n = (size_t)snprintf(one, sizeof one, "\\%03o", *p++);
		}
		if (used + n + 1 > cap) {
			memcpy(out + cut, "..", 2);
			used = cut + 2;
			break;
		}
		memcpy(out + used, one, n);
		used += n;
		if (used + 3 <= cap)
			cut = used;
	}
	out[used] = '\0';
	return out;
}

const char *text_escape(char *out, size_t cap, const char *name)
{
	return escape(out, cap, name, false);
}

const char *text_escape_quoted(char *out, size_t cap, const char *name)
{
	return escape(out, cap, name, true);
}

bool text_is_word(const char *text)
{
	const char *p;

	for (p = text; *p > ' ' && *p < 0x7f; p++)
		;
	return p > text && *p == '\0';
}

bool text_is_stdio(const char *path) { return strcmp(path, "-") == 0; }

bool text_is_contents(const char *path)
{
	const char *last = strrchr(path, '/');

	last = last != NULL ? last + 1 : path;
	return last[0] == '\0' || strcmp(last, ".") == 0 || strcmp(last, "..") == 0;
}

bool text_name_ok(const char *name, size_t n)
{
	if (n == 0 || n > 255)
		return false;
	if (memchr(name, '/', n) != NULL || memchr(name, '\0', n) != NULL)
		return false;
	return !(name[0] == '.' && (n == 1 || (n == 2 && name[1] == '.')));
}

static int hex(char c)
{
	return isdigit((unsigned char)c) ? c - '0' :
	    isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : -1;
}

bool text_percent_decode(char *out, size_t cap, const char *text)
{
	size_t n = 0;

	for (; *text != '\0'; text++) {
		if (n + 1 >= cap)
			return false;
		if (*text != '%') {
			out[n++] = *text;
			continue;
		}
		if (hex(text[1]) < 0 || hex(text[2]) < 0 || (text[1] == '0' && text[2] == '0'))
			return false;
		out[n++] = (char)(hex(text[1]) << 4 | hex(text[2]));
		text += 2;
	}
	out[n] = '\0';
	return true;
}
char *text_next_word(const char **text, char **to, bool *ok)
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
	if (n >= (size_t)(end - *to)) /* the NUL needs a byte, too */
		return false;
	*to = mempcpy(*to, bytes, n);
	return true;
}

bool text_substitute(char *out, size_t cap, const char *text, const char *mark, const char *by)
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
