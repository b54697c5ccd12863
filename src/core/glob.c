#include "core/glob.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"

#define WORDS_MAX (GLOB_PATTERN_MAX / 64 + 1)

/* A pattern is a sequence of tokens; position i stands before token i. A set of positions takes `words` words. Bytes
 * that match the same tokens are of one kind, and share a mask: few patterns tell more than a dozen kinds apart. */
struct glob {
	bool anchored, dirs_only, name_only;
	uint16_t n;      /* tokens; position n: all matched */
	uint16_t itself; /* for "x/" and three stars: the position after x; else n */
	uint16_t words, kinds;
	uint8_t kind[256]; /* kind of each byte */
	uint64_t bits[]; /* masks: stars, deep stars, and for each kind the tokens that match its bytes */
};

enum { STARS, DEEP, KINDS };

static const uint64_t *masked(const struct glob *g, unsigned which)
{
	return g->bits + which * g->words;
}

static bool has(const uint64_t *set, size_t at) { return (set[at / 64] >> (at % 64) & 1) != 0; }

/* ---- Parsing: with a mask for each byte ---- */

enum { ANY = 2 /* tokens that match any byte except '/' */, BYTES, MASKS = BYTES + 256 };

struct glob_parse {
	bool anchored, dirs_only;
	bool wild; /* has *, ? or [ */
	size_t n, itself, words;
	uint64_t bits[MASKS * WORDS_MAX];
};

static uint64_t *mask(struct glob_parse *g, unsigned which) { return g->bits + which * g->words; }

static void put(struct glob_parse *g, unsigned which)
{
	mask(g, which)[g->n / 64] |= UINT64_C(1) << (g->n % 64);
}

/* Each parser below starts at p and returns its end, or NULL with the reason. */

/* One character, possibly escaped by a backslash. */
static const char *parse_char(const struct glob_parse *g, const char *p, const char *end, unsigned char *c,
    const char **why)
{
	if (*p == '\\' && g->wild && ++p == end) {
		*why = "ends with a backslash (double it to mean one)";
		return NULL;
	}
	*c = (unsigned char)*p;
	return p + 1;
}

/* Whether c, of ASCII, is in a class such as [:digit:] in any locale. */
static bool is_in(unsigned c, const char *class, size_t n)
{
	const bool upper = c >= 'A' && c <= 'Z', lower = c >= 'a' && c <= 'z', digit = c >= '0' && c <= '9';
	const bool graph = c > ' ' && c < 127, alnum = upper || lower || digit;
	const struct { const char *name; bool is; } of[] = {
		{ "alnum", alnum }, { "alpha", upper || lower }, { "blank", c == ' ' || c == '\t' },
		{ "cntrl", c < ' ' || c == 127 }, { "digit", digit }, { "graph", graph }, { "lower", lower },
		{ "print", graph || c == ' ' }, { "punct", graph && !alnum },
		{ "space", c == ' ' || (c >= '\t' && c <= '\r') },
		{ "upper", upper }, { "xdigit", digit || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') },
	};

	for (size_t i = 0; i < sizeof of / sizeof *of; i++)
		if (strlen(of[i].name) == n && memcmp(of[i].name, class, n) == 0)
			return of[i].is;
	return false;
}

/* [:NAME:]; returns its end, or p. */
static const char *parse_named(const char *p, const char *end, bool in[256])
{
	const char *name = p + 2, *colon;
	bool known = false;

	if (end - p < 5 || p[0] != '[' || p[1] != ':' || (colon = memchr(name, ':', (size_t)(end - name))) == NULL ||
	    end - colon < 2 || colon[1] != ']')
		return p;
	for (unsigned c = 0; c < 128; c++)
		if (is_in(c, name, (size_t)(colon - name)))
			known = in[c] = true;
	return known ? colon + 2 : p;
}

/* One member of a class or a range of them. */
static const char *parse_member(const struct glob_parse *g, const char *p, const char *end, bool in[256],
    const char **why)
{
	const char *named = parse_named(p, end, in);
	unsigned char low, high;

	if (named != p)
		return named;
	if (*p == '[' && end - p > 1 && p[1] == ':') {
		*why = "an unknown class of characters (write one such as [:digit:])";
		return NULL;
	}
	if ((p = parse_char(g, p, end, &low, why)) == NULL)
		return NULL;
	high = low;
	if (end - p > 1 && p[0] == '-' && p[1] != ']' && (p = parse_char(g, p + 1, end, &high, why)) == NULL)
		return NULL;
	if (high < low) {
		*why = "a range that ends before it begins (swap its ends)";
		return NULL;
	}
	for (unsigned c = low; c <= high; c++)
		in[c] = true;
	return p;
}

/* The content of a class and its ']'. */
static const char *parse_class(struct glob_parse *g, const char *p, const char *end, const char **why)
{
	bool in[256] = { false };
	bool negated = p < end && (*p == '!' || *p == '^');
	const char *first = p + negated;

	for (p = first; p < end && (*p != ']' || p == first);)
		if ((p = parse_member(g, p, end, in, why)) == NULL)
			return NULL;
	if (p == end) {
		*why = "a [ without its ] (write \\[ to mean the character)";
		return NULL;
	}
	for (unsigned c = 0; c < 256; c++)
		if (in[c] != negated && c != '/')
			put(g, BYTES + c);
	g->n++;
	return p + 1;
}

static const char *parse_stars(struct glob_parse *g, const char *p, const char *end)
{
	const char *from = p;

	while (p < end && *p == '*')
		p++;
	put(g, STARS);
	if (p - from > 1)
		put(g, DEEP);
	g->n++;
	return p;
}

static const char *parse_token(struct glob_parse *g, const char *p, const char *end, const char **why)
{
	unsigned char c;

	if (*p == '*')
		return parse_stars(g, p, end);
	if (*p == '[')
		return parse_class(g, p + 1, end, why);
	if (*p == '?') {
		put(g, ANY);
		g->n++;
		return p + 1;
	}
	if ((p = parse_char(g, p, end, &c, why)) == NULL)
		return NULL;
	put(g, BYTES + c);
	g->n++;
	return p;
}

static const char *parse(struct glob_parse *g, const char *p, const char *end)
{
	const char *why = NULL;
	bool three;

	if ((g->anchored = p < end && *p == '/'))
		p++;
	while (!g->anchored && end - p > 3 && memcmp(p, "**/", 3) == 0)
		p += 3;
	while (p < end && end[-1] == '/') {
		g->dirs_only = true;
		end--;
	}
	if (p == end)
		return "an empty pattern (write * for every name)";
	three = !g->dirs_only && end - p > 4 && memcmp(end - 4, "/***", 4) == 0;
	g->itself = SIZE_MAX;
	while (p < end) {
		if (three && p == end - 4)
			g->itself = g->n;
		if ((p = parse_token(g, p, end, &why)) == NULL)
			return why;
	}
	if (g->itself == SIZE_MAX)
		g->itself = g->n;
	return NULL;
}

/* ---- Compact form ---- */

static uint64_t hash_of(const uint64_t *set, size_t words)
{
	uint64_t h = 0;

	for (size_t w = 0; w < words; w++)
		h = (h ^ set[w]) * UINT64_C(0x9e3779b97f4a7c15) ^ h >> 29;
	return h;
}

/* Finds the kinds of bytes: kind[] of each, and an example of each kind. Returns their number. */
static unsigned find_kinds(struct glob_parse *g, uint8_t kind[256], uint8_t example[256])
{
	const size_t bytes = g->words * sizeof *g->bits;
	uint64_t hash[256], h;
	unsigned n = 0, k;

	for (unsigned c = 0; c < 256; c++) {
		for (size_t w = 0; w < g->words && c != '/'; w++)
			mask(g, BYTES + c)[w] |= mask(g, ANY)[w];
		h = hash_of(mask(g, BYTES + c), g->words);
		for (k = 0; k < n; k++)
			if (hash[k] == h && memcmp(mask(g, BYTES + example[k]), mask(g, BYTES + c), bytes) == 0)
				break;
		if (k == n) {
			hash[n] = h;
			example[n++] = (uint8_t)c;
		}
		kind[c] = (uint8_t)k;
	}
	return n;
}

/* Whether the pattern applies to whole paths rather than to the last component: it contains a '/' or "**". */
static bool is_path(const struct glob *g)
{
	const uint64_t *slashes = masked(g, KINDS + g->kind['/']), *deep = masked(g, DEEP);

	for (size_t w = 0; w < g->words; w++)
		if (slashes[w] != 0 || deep[w] != 0)
			return true;
	return false;
}

static size_t bytes_of(size_t kinds, size_t words)
{
	return sizeof(struct glob) + (KINDS + kinds) * words * sizeof(uint64_t);
}

static struct glob *compact(struct glob_parse *g)
{
	uint8_t kind[256], example[256];
	unsigned n = find_kinds(g, kind, example), k;
	struct glob *c = malloc(bytes_of(n, g->words));

	if (c == NULL)
		return NULL;
	*c = (struct glob){ .anchored = g->anchored, .dirs_only = g->dirs_only, .n = (uint16_t)g->n,
		.itself = (uint16_t)g->itself, .words = (uint16_t)g->words, .kinds = (uint16_t)n };
	memcpy(c->kind, kind, sizeof kind);
	memcpy(c->bits, mask(g, STARS), KINDS * g->words * sizeof *g->bits);
	for (k = 0; k < n; k++)
		memcpy(c->bits + (KINDS + k) * g->words, mask(g, BYTES + example[k]), g->words * sizeof *g->bits);
	c->name_only = !c->anchored && !is_path(c);
	return c;
}

int glob_new(struct glob **out, const char *pattern, struct ptcp_err *e)
{
	size_t n = strlen(pattern), words = n / 64 + 1;
	struct glob_parse g;
	const char *why;

	if (n > GLOB_PATTERN_MAX)
		return err_set(e, PTCP_EUSAGE, "longer than %d bytes (use wildcards)", GLOB_PATTERN_MAX);
	g.dirs_only = false;
	g.wild = strpbrk(pattern, "*?[") != NULL;
	g.n = 0;
	g.words = words;
	memset(g.bits, 0, MASKS * words * sizeof *g.bits);
	if ((why = parse(&g, pattern, pattern + n)) != NULL)
		return err_set(e, PTCP_EUSAGE, "%s", why);
	return (*out = compact(&g)) != NULL ? 0 : err_nomem(e);
}

bool glob_is_anchored(const struct glob *g) { return g->anchored; }

size_t glob_bytes(const struct glob *g) { return bytes_of(g->kinds, g->words); }

void glob_free(struct glob *g) { free(g); }

/* Moves the positions in `at` over the byte c; `begin` adds the first position. */
static void step(const struct glob *g, uint64_t *at, unsigned char c, bool begin)
{
	const uint64_t *takes = masked(g, KINDS + g->kind[c]), *stars = masked(g, STARS);
	const uint64_t *stays = c == '/' ? masked(g, DEEP) : stars;
	uint64_t moved, skipped, from_below = begin, over = 0;

	for (size_t w = 0; w < g->words; w++) {
		moved = at[w] & takes[w];
		at[w] = moved << 1 | from_below | (at[w] & stays[w]);
		from_below = moved >> 63;
		/* A star may match the empty string; the parser leaves no two stars in a row. */
		skipped = at[w] & stars[w];
		at[w] |= skipped << 1 | over;
		over = skipped >> 63;
	}
}

bool glob_match(const struct glob *g, const char *path, bool is_dir)
{
	uint64_t at[WORDS_MAX] = { 0 };
	const char *slash = g->name_only ? strrchr(path, '/') : NULL;

	if (g->dirs_only && !is_dir)
		return false;
	step(g, at, '/', true);
	for (const char *p = slash != NULL ? slash + 1 : path; *p != '\0'; p++)
		step(g, at, (unsigned char)*p, *p == '/' && !g->anchored);
	return has(at, g->n) || (is_dir && has(at, g->itself));
}
