#include "player_lines.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool add(struct buf *b, const void *bytes, size_t n)
{
	uint8_t *room = n > 0 ? buf_reserve(b, n, NULL) : NULL;

	if (room == NULL)
		return n == 0;
	memcpy(room, bytes, n);
	buf_added(b, n);
	return true;
}

static bool add_hex(struct buf *b, const char *hex)
{
	uint8_t bytes[TAPE_LINE_BYTES];
	size_t n = 0, digits = strspn(hex, "0123456789abcdef");
	unsigned byte;

	if (digits == 0 || digits % 2 != 0 || digits / 2 > sizeof bytes || hex[digits] != '\0')
		return false;
	for (; n < digits / 2; n++) {
		sscanf(hex + 2 * n, "%2x", &byte);
		bytes[n] = (uint8_t)byte;
	}
	return add(b, bytes, n);
}

static bool read_numbers(uint64_t u[TAPE_NUMBERS], const char *text)
{
	unsigned i;
	char *end;

	for (i = 0; i < TAPE_NUMBERS; i++, text = end + 1) {
		u[i] = strtoull(text, &end, 10);
		if (end == text || *end != ',')
			return end != text && *end == '\0';
	}
	return false;
}

static bool read_why(struct player_line *l, const char *text)
{
	unsigned n;

	if (sscanf(text, "%d,%u", &l->why.code, &n) != 2 || l->why.code >= 0 || l->why.code < INT16_MIN ||
	    n >= sizeof l->why.msg)
		return false;
	memset(l->why.msg, 'x', n);
	return l->has_why = true;
}

static bool read_member(struct player_line *l, const char *text)
{
	if (strncmp(text, "at=", 3) == 0)
		return sscanf(text + 3, "%" SCNu64, &l->at.ns) == 1;
	if (strncmp(text, "u=", 2) == 0)
		return read_numbers(l->u, text + 2);
	if (strncmp(text, "why=", 4) == 0)
		return read_why(l, text + 4);
	return strncmp(text, "digest=", 7) == 0 && (l->has_digest =
	    sscanf(text + 7, "%" SCNx64 ",%" SCNx64, &l->digest.hi, &l->digest.lo) == 2);
}

static bool read_kind(struct player_line *l, const char *word)
{
	static const char *const kinds[] = { "new", "call", "op", "ret", "set" };
	unsigned i;

	for (i = 0; word != NULL && i < sizeof kinds / sizeof *kinds; i++)
		if (strcmp(word, kinds[i]) == 0) {
			l->kind = (enum player_line_kind)i;
			return true;
		}
	return false;
}

/* `text`: behind the number of the engine. */
static bool read_words(struct player_line *l, char *text)
{
	char *word;

	if (!read_kind(l, strsep(&text, " ")) ||
	    (l->kind == LINE_CALL && ((word = strsep(&text, " ")) == NULL || sscanf(word, "%u", &l->depth) != 1)) ||
	    (word = strsep(&text, " ")) == NULL || strlen(word) >= sizeof l->name)
		return false;
	strcpy(l->name, word);
	while ((word = strsep(&text, " ")) != NULL)
		if (!read_member(l, word))
			return false;
	return true;
}

static bool read_line(struct player_lines *all, char *text, unsigned long number)
{
	struct player_line l = { .number = number }, *more;
	size_t cap = all->cap > 0 ? 2 * all->cap : 1024;

	if (strncmp(text, "data ", 5) == 0)
		return add_hex(&all->data, text + 5);
	if (all->n > 0)
		l.at = all->at[all->n - 1].at;
	if (!read_words(&l, text))
		return false;
	if (all->n == all->cap) {
		if ((more = realloc(all->at, cap * sizeof *more)) == NULL)
			return false;
		all->at = more;
		all->cap = cap;
	}
	if (l.kind == LINE_CALL && strcmp(l.name, "input") == 0) {
		if (!add(&all->in, buf_head(&all->data), buf_len(&all->data)))
			return false;
		buf_consume(&all->data, buf_len(&all->data));
	} else {
		l.data = all->data;
		all->data = BUF_INIT;
	}
	all->at[all->n++] = l;
	return true;
}

/* The record lacks a frame that never became complete: another one that is longer than all that came of it. */
static bool add_incomplete(struct player_lines *l)
{
	static uint8_t frame[WIRE_ENTRY_MAX_BYTES - 1];

	wire_header_encode(frame, &(struct wire_header){ WIRE_ENTRY, WIRE_CRITICAL, WIRE_CONTROL_MAX });
	return add(&l->in, frame, sizeof frame);
}

unsigned long player_lines_read(struct player_lines *l, FILE *log, unsigned engine)
{
	unsigned long number = 0, bad = 0;
	char *text = NULL, *at;
	unsigned n;
	bool whole;
	int skip;
	size_t cap = 0;

	while (bad == 0 && getline(&text, &cap, log) > 0) {
		number++;
		whole = strchr(text, '\n') != NULL;
		text[strcspn(text, "\r\n")] = '\0';
		if ((at = strstr(text, "tape: ")) == NULL || sscanf(at, "tape: %u %n", &n, &skip) != 1)
			continue;
		if (engine == 0)
			engine = n;
		if (n == engine && (!whole || !read_line(l, at + skip, number)))
			bad = number;
	}
	free(text);
	return add_incomplete(l) ? bad : number;
}

void player_lines_free(struct player_lines *l)
{
	while (l->n > 0)
		buf_fini(&l->at[--l->n].data);
	free(l->at);
	buf_fini(&l->data);
	buf_fini(&l->in);
}
