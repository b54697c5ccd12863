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

/* Of the letters of two bytes in UTF-8, and of those of Vietnamese. */
static unsigned fold(unsigned c)
{
	if ((c >= 0xe0 && c <= 0xfe && c != 0xf7) || (c >= 0x3b1 && c <= 0x3cb && c != 0x3c2) ||
	    (c >= 0x430 && c <= 0x44f))
		return c - 0x20;
	if (c >= 0x450 && c <= 0x45f)
		return c - 0x50;
	if (c >= 0x561 && c <= 0x586)
		return c - 0x30;
	if ((c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e)) /* capitals are odd */
		return c % 2 == 0 ? c - 1 : c;
	if ((c >= 0x100 && c <= 0x137 && c != 0x130 && c != 0x131) || (c >= 0x14a && c <= 0x177) ||
	    (c >= 0x460 && c <= 0x481) ||
	    (c >= 0x48a && c <= 0x4bf) || (c >= 0x4d0 && c <= 0x52f) || (c >= 0x1e00 && c <= 0x1e95) ||
	    (c >= 0x1ea0 && c <= 0x1eff))
		return c & ~1u;
	return c;
}

size_t text_fold(char *out, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	char *at = out;
	unsigned c;

	for (; *p != '\0'; p++) {
		if ((p[0] & 0xe0) == 0xc0 && (p[1] & 0xc0) == 0x80) {
			c = fold((p[0] & 0x1fu) << 6 | (p[1] & 0x3fu));
			*at++ = (char)(0xc0 | c >> 6);
			*at++ = (char)(0x80 | (c & 0x3f));
			p++;
		} else if (p[0] == 0xe1 && (p[1] & 0xc0) == 0x80 && (p[2] & 0xc0) == 0x80) {
			c = fold(0x1000u | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu));
			*at++ = (char)0xe1;
			*at++ = (char)(0x80 | (c >> 6 & 0x3f));
			*at++ = (char)(0x80 | (c & 0x3f));
			p += 2;
		} else {
			*at++ = (char)(*p >= 'A' && *p <= 'Z' ? *p + ('a' - 'A') : *p);
		}
	}
	return (size_t)(at - out);
}

void text_hex(char *out, const uint8_t *p, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	size_t i;

	for (i = 0; i < n; i++) {
		out[2 * i] = digits[p[i] >> 4];
		out[2 * i + 1] = digits[p[i] & 15];
	}
	out[2 * n] = '\0';
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

char *text_percent_encode(char *out, const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-~";

	for (; *text != '\0'; text++)
		if (strchr(plain, *text) != NULL)
			*out++ = *text;
		else
			out += sprintf(out, "%%%02X", (unsigned)(unsigned char)*text);
	*out = '\0';
	return out;
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
