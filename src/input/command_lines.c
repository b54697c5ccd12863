#include "input/command_lines.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/err.h"

/* ---- Reading ---- */

/* False after a signal. */
static bool wait_for_input(const struct command_lines *r)
{
	struct pollfd in = { .fd = r->fd, .events = POLLIN };

	while (!r->stopping())
		if (poll(&in, 1, 100) > 0)
			return true;
	return false;
}

static int fill(struct command_lines *r, struct ptcp_err *e)
{
	ssize_t n;

	memmove(r->buf, r->buf + r->start, r->end - r->start);
	r->end -= r->start;
	r->start = 0;
	if (r->end == LINE_MAX_BYTES)
		return err_set(e, PTCP_EUSAGE, "line %lu: above %d bytes (write a shorter one)", r->number,
		    LINE_MAX_BYTES);
	if (!wait_for_input(r)) {
		r->ended = true;
		r->end = 0;
		return 0;
	}
	if ((n = read(r->fd, r->buf + r->end, LINE_MAX_BYTES - r->end)) < 0 && errno != EINTR)
		return err_sys(e, PTCP_EIO, "cannot read the commands");
	r->ended = n == 0;
	r->end += n > 0 ? (size_t)n : 0;
	return 0;
}

char *line_next(struct command_lines *r, struct ptcp_err *e)
{
	char *line, *end;

	if (r->buf == NULL && (r->buf = malloc(LINE_MAX_BYTES + 1)) == NULL) {
		err_nomem(e);
		return NULL;
	}
	r->number++;
	while ((end = memchr(r->buf + r->start, '\n', r->end - r->start)) == NULL && !r->ended)
		if (fill(r, e) < 0)
			return NULL;
	line = r->buf + r->start;
	if (end == NULL && r->start == r->end)
		return NULL;
	if (end == NULL)
		end = r->buf + r->end; /* without a newline */
	*end = '\0';
	r->start = (size_t)(end - r->buf) < r->end ? (size_t)(end - r->buf) + 1 : r->end;
	if (strlen(line) == (size_t)(end - line))
		return line;
	err_set(e, PTCP_EUSAGE, "line %lu: contains a NUL byte (write text)", r->number);
	return NULL;
}

void command_lines_fini(struct command_lines *r)
{
	free(r->buf);
	r->buf = NULL;
}

/* ---- Words ---- */

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/* A character that stands for itself, and a wildcard of the line. */
static char *put_plain(char *to, char c)
{
	if (strchr("*?[\\", c) != NULL)
		*to++ = '\\';
	*to++ = c;
	return to;
}

/* Writes the word at *at to `to`; NULL: a quotation mark is missing. */
static char *take_word(const char **at, char *to)
{
	const char *p = *at;
	char quote = '\0';

	for (; *p != '\0' && (quote != '\0' || !is_blank(*p)); p++) {
		if (*p == quote)
			quote = '\0';
		else if (quote == '\0' && (*p == '"' || *p == '\''))
			quote = *p;
		else if (*p == '\\' && p[1] != '\0' && quote != '\'')
			to = put_plain(to, *++p);
		else
			to = quote != '\0' ? put_plain(to, *p) : (*to = *p, to + 1);
	}
	*at = p;
	*to = '\0';
	return quote == '\0' ? to + 1 : NULL;
}

int line_split(struct line_words *out, const char *line, struct ptcp_err *e)
{
	size_t bytes = strlen(line);
	char *to;

	*out = (struct line_words){ 0 };
	while (is_blank(*line) || *line == '-' || *line == '@') { /* @: sftp does not print the line, as we never do */
		out->may_fail |= *line == '-';
		line++;
	}
	to = out->text = malloc(2 * bytes + 2);
	out->word = calloc(bytes / 2 + 2, sizeof *out->word);
	if (out->text == NULL || out->word == NULL)
		return err_nomem(e);
	while (*line != '\0' && (out->n > 0 || *line != '#')) {
		out->word[out->n++] = to;
		if ((to = take_word(&line, to)) == NULL)
			return err_set(e, PTCP_EUSAGE, "a quotation mark is missing (write \\\" for a mark in a name)");
		while (is_blank(*line))
			line++;
	}
	return 0;
}

void line_words_fini(struct line_words *w)
{
	free(w->word);
	free(w->text);
	*w = (struct line_words){ 0 };
}

static bool is_wildcard(char c) { return c == '*' || c == '?' || c == '['; }

char *line_pattern(const char *word)
{
	bool wild = false, quoted = false;
	char *out = malloc(3 * strlen(word) + 1), *to = out;
	const char *p;

	if (out == NULL)
		return NULL;
	for (p = word; *p != '\0'; p += p[0] == '\\' && p[1] != '\0' ? 2 : 1) {
		wild |= is_wildcard(p[0]);
		quoted |= p[0] == '\\' && is_wildcard(p[1]);
	}
	for (p = word; *p != '\0'; p++) {
		if (wild || *p != '\\' || p[1] == '\0')
			*to++ = *p;
		else if (is_wildcard(*++p))
			to += sprintf(to, "[%c]", *p);
		else
			to += sprintf(to, quoted ? "\\%c" : "%c", *p);
	}
	*to = '\0';
	return out;
}

void line_plain(char *word)
{
	char *to = word;

	for (; *word != '\0'; word++) {
		if (*word == '\\' && word[1] != '\0')
			word++;
		*to++ = *word;
	}
	*to = '\0';
}
