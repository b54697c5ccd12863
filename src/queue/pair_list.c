#include "queue/pair_list.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "core/err.h"
#include "core/text.h"

/* A command line holds a batch. */
enum { BATCH_PAIRS = 1000, BATCH_BYTES = 96 << 10 };

const char *pair_host(char out[PAIR_HOST_BYTES], const char *operand)
{
	const char *p = strstr(operand, "://"), *slash = strchr(operand, '/'), *end;
	size_t n = 0;

	if (p != NULL && p + 1 == slash) {
		p += 3;
		n = strcspn(p, "/");
	} else {
		p = operand;
		end = p[0] == '[' || strstr(p, "@[") != NULL ? strstr(p, "]:") : strchr(p, ':');
		if (end != NULL && (slash == NULL || end < slash))
			n = (size_t)(end - p) + (*end == ']');
	}
	snprintf(out, PAIR_HOST_BYTES, "%.*s", (int)(n < PAIR_HOST_BYTES ? n : PAIR_HOST_BYTES - 1), p);
	return out;
}

/* Where the last component begins; NULL: a directory's content, or no name. */
static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path;

	return text_is_contents(path) || *base == '\0' || strstr(path, "://") + 2 == slash ? NULL : base;
}

/* Length of the directory of a destination that keeps the name of the source; 0: the names differ, or the name of the
 * source is unknown. */
static size_t directory_bytes(const char *source, const char *dest)
{
	const char *from = base_of(source), *slash = strrchr(dest, '/');
	size_t n = strlen(dest);

	if (from == NULL || slash == NULL || strchr(from, '%') != NULL)
		return 0;
	if (slash[1] == '\0')
		return n;
	return base_of(dest) != NULL && strcmp(from, base_of(dest)) == 0 ? (size_t)(slash - dest) + 1 : 0;
}

/* file:///PATH, as in lists of other programs, is a path. */
static int operand_of(char *word, const char *path, uint64_t at, struct ptcp_err *e)
{
	char *from = strncasecmp(word, "file://localhost/", 17) == 0 ? word + 16 : word + 7;

	if (strncasecmp(word, "file://", 7) != 0)
		return 0;
	if (*from != '/' || !text_percent_decode(word, strlen(word) + 1, from))
		return err_set(e, PTCP_ECONFIG,
		    "%s: the line at byte %llu: not a local path (write file:///PATH, or the "
		    "path)", path, (unsigned long long)at);
	return 0;
}

/* Splits a line into two operands within `words`, of twice its size. 0: nothing is on it. */
static int split(char *line, char *words, char *pair[2], const char *path, uint64_t at, struct ptcp_err *e)
{
	const char *text = line;
	char *to = words;
	bool ok = true;
	int n = 0, r;

	line[strcspn(line, "\r\n")] = '\0';
	if (line[strspn(line, " \t")] == '#')
		return 0;
	while (n < 2 && (pair[n] = text_next_word(&text, &to, &ok)) != NULL)
		n++;
	if (n == 0 && ok)
		return 0;
	if (n < 2 || !ok || text_next_word(&text, &to, &ok) != NULL)
		return err_set(e, PTCP_ECONFIG,
		    "%s: the line at byte %llu: not a source and a destination (quote paths "
		    "with blanks)", path, (unsigned long long)at);
	r = operand_of(pair[0], path, at, e);
	return r == 0 && (r = operand_of(pair[1], path, at, e)) == 0 ? 1 : r;
}

struct batching {
	struct pair_batch *b;
	char host[PAIR_HOST_BYTES]; /* the host of all sources */
	void *names;
	size_t bytes;
	bool full;
	const char *directory;
};

static int compare(const void *a, const void *b) { return strcmp(a, b); }

/* Whether a further pair belongs to the batch. */
static bool fits(struct batching *g, char *const pair[2], size_t dir)
{
	char host[PAIR_HOST_BYTES];
	const struct pair_batch *b = g->b;

	return !g->full && dir > 0 && b->n < BATCH_PAIRS && g->bytes + strlen(pair[0]) < BATCH_BYTES &&
	    strlen(b->destination) == dir && strncmp(b->destination, pair[1], dir) == 0 &&
	    strcmp(g->host, pair_host(host, pair[0])) == 0 && tfind(base_of(pair[0]), &g->names, compare) == NULL;
}

static bool is_missing(const struct batching *g, const char *source)
{
	char host[PAIR_HOST_BYTES], path[PATH_MAX];
	struct stat st;

	return pair_host(host, source)[0] == '\0' && snprintf(path, sizeof path, "%s%s%s", source[0] == '/' ? "" :
	    g->directory, source[0] == '/' ? "" : "/", source) < PATH_MAX && lstat(path, &st) != 0 && errno == ENOENT;
}

/* 1: added; 0: for the next batch. */
static int add(struct batching *g, char *const pair[2], bool alone, struct ptcp_err *e)
{
	bool missing = alone && is_missing(g, pair[0]);
	size_t dir = alone && !missing ? 0 : directory_bytes(pair[0], pair[1]);
	struct pair_batch *b = g->b;
	int r;

	if (b->n > 0 && (missing != b->missing || !fits(g, pair, dir)))
		return 0;
	b->missing = missing;
	if (b->n == 0) {
		pair_host(g->host, pair[0]);
		g->full = dir == 0;
		if ((b->destination = dir > 0 ? strndup(pair[1], dir) : strdup(pair[1])) == NULL)
			return err_nomem(e);
	}
	if ((r = queue_texts_add(&b->sources, pair[0], e)) < 0)
		return r;
	if (dir > 0 && tsearch(base_of(b->sources.of[b->sources.n - 1]), &g->names, compare) == NULL)
		return err_nomem(e);
	g->bytes += strlen(pair[0]) + 1;
	b->n++;
	return 1;
}

static int read_lines(struct batching *g, FILE *f, const char *path, uint64_t alone_until, struct ptcp_err *e)
{
	uint64_t at = g->b->begin;
	char *line = NULL, *words = NULL, *pair[2] = { NULL, NULL };
	size_t room = 0;
	ssize_t n;
	int r = 0;

	while (r >= 0 && (n = getline(&line, &room, f)) >= 0) {
		free(words);
		if (strlen(line) != (size_t)n)
			r = err_set(e, PTCP_ECONFIG, "%s: the line at byte %llu: has a NUL byte (remove it)", path,
			    (unsigned long long)at);
		else if ((words = malloc(2 * (size_t)n + 4)) == NULL)
			r = err_nomem(e);
		else if ((r = split(line, words, pair, path, at, e)) > 0 &&
		    (r = add(g, pair, at < alone_until, e)) == 0)
			break;
		if (r >= 0)
			g->b->end = at += (uint64_t)n;
	}
	if (r < 0 && g->b->n > 0)
		r = 0; /* first the pairs before the faulty line */
	if (r >= 0 && ferror(f))
		r = err_sys(e, PTCP_EIO, "%s: cannot read", path);
	free(words);
	free(line);
	return r < 0 ? r : 0;
}

static void keep(void *name) { (void)name; }

int pair_batch_read(struct pair_batch *b, const char *path, const char *directory, uint64_t position,
    uint64_t alone_until, struct ptcp_err *e)
{
	struct batching g = { .b = b, .directory = directory };
	FILE *f = fopen(path, "re");
	int r;

	*b = (struct pair_batch){ .begin = position, .end = position };
	if (f == NULL)
		return err_sys(e, PTCP_EIO, "%s: cannot read the list of pairs", path);
	if (fseeko(f, (off_t)position, SEEK_SET) != 0)
		r = err_sys(e, PTCP_EIO, "%s: cannot read at byte %llu", path, (unsigned long long)position);
	else
		r = read_lines(&g, f, path, alone_until, e);
	tdestroy(g.names, keep);
	fclose(f);
	if (r < 0)
		pair_batch_fini(b);
	return r;
}

static bool is_plain(char c) { return isalnum((unsigned char)c) || strchr("/._-+,=@:~", c) != NULL; }

static bool are_plain(const char *text)
{
	while (*text != '\0' && is_plain(*text))
		text++;
	return *text == '\0';
}

static void write_local(FILE *f, const char *directory, const char *path)
{
	const char *part[] = { path[0] == '/' ? "" : directory, path[0] == '/' ? "" : "/", path }, *p;
	bool plain = are_plain(part[0]) && are_plain(path);
	size_t i;

	if (!plain)
		fputs("file://", f);
	for (i = 0; i < sizeof part / sizeof *part; i++)
		for (p = part[i]; *p != '\0'; p++)
			if (plain || is_plain(*p))
				putc(*p, f);
			else
				fprintf(f, "%%%02X", (unsigned char)*p);
}

static void write_operand(FILE *f, const char *text, const char *directory)
{
	char host[PAIR_HOST_BYTES];

	if (pair_host(host, text)[0] == '\0') {
		write_local(f, directory, text);
		return;
	}
	for (; *text != '\0'; text++) {
		if (strchr(" \t\"'\\#", *text) != NULL)
			putc('\\', f);
		putc(*text, f);
	}
}

void pair_write(FILE *f, const char *source, const char *dest, const char *directory)
{
	write_operand(f, source, directory);
	putc(' ', f);
	write_operand(f, dest, directory);
	putc('\n', f);
}

void pair_batch_fini(struct pair_batch *b)
{
	queue_texts_fini(&b->sources);
	free(b->destination);
	*b = (struct pair_batch){ .n = 0 };
}
