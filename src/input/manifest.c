#include "input/manifest.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "core/err.h"
#include "core/sorted.h"
#include "core/text.h"

#define X(NAME, name, bit, bytes) { PTCP_##NAME, name, 2 * (bytes) },
static const struct manifest_kind {
	enum ptcp_digest kind;
	const char *name;
	size_t digits;
} kinds[] = { PTCP_DIGESTS(X) };
#undef X
#define N_KINDS (sizeof kinds / sizeof *kinds)

/* The first digest in the table of so many digits: sha512 rather than blake2b, adler32 rather than crc32c. 0: none. */
static enum ptcp_digest kind_of(size_t digits)
{
	size_t i;

	for (i = 0; i < N_KINDS; i++)
		if (kinds[i].digits == digits)
			return kinds[i].kind;
	return 0;
}

static const struct manifest_kind *kind_row(enum ptcp_digest d)
{
	size_t i;

	for (i = 0; i < N_KINDS && kinds[i].kind != d; i++)
		;
	return i < N_KINDS ? &kinds[i] : NULL;
}

static const struct manifest_kind *kind_named(const char *name, size_t n)
{
	size_t i;

	for (i = 0; i < N_KINDS; i++)
		if (strlen(kinds[i].name) == n && strncasecmp(kinds[i].name, name, n) == 0)
			return &kinds[i];
	return NULL;
}

static size_t digits_at(const char *s) { return strspn(s, "0123456789abcdefABCDEF"); }

/* In place; false: another character behind a backslash. */
static bool unescape(char *name)
{
	char *to = name;

	for (; *name != '\0'; name++) {
		if (*name != '\\') {
			*to++ = *name;
			continue;
		}
		name++;
		if (*name != 'n' && *name != 'r' && *name != '\\')
			return false;
		*to++ = *name == 'n' ? '\n' : *name == 'r' ? '\r' : '\\';
	}
	*to = '\0';
	return true;
}

/* One entry from a line without its end, which is changed; false: not such a line. The result borrows from the line. */
static bool take_line(char *line, enum ptcp_digest kind, struct manifest_entry *out)
{
	bool escaped = line[0] == '\\';
	const struct manifest_kind *row;
	char *at, *open, *close;
	size_t n;

	line += escaped;
	n = digits_at(line);
	if (n > 0 && line[n] == ' ' && (line[n + 1] == ' ' || line[n + 1] == '*') && line[n + 2] != '\0' &&
	    (row = kind_row(kind != 0 ? kind : kind_of(n))) != NULL && row->digits == n) {
		*out = (struct manifest_entry){ line + n + 2, row->kind, line };
		line[n] = '\0';
	} else {
		if ((open = strstr(line, " (")) == NULL || (row = kind_named(line, (size_t)(open - line))) == NULL)
			return false;
		for (close = NULL, at = open; (at = strstr(at, ") = ")) != NULL; at++)
			close = at;
		if (close == NULL || close == open + 2 || digits_at(close + 4) != row->digits ||
		    close[4 + row->digits] != '\0')
			return false;
		*out = (struct manifest_entry){ open + 2, row->kind, close + 4 };
		*close = '\0';
	}
	return !escaped || unescape(out->name);
}

static int add_entry(struct manifest *m, const struct manifest_entry *x, struct ptcp_err *e)
{
	size_t cap = m->cap > 0 ? 2 * m->cap : 64;
	struct manifest_entry *more = m->entry, *to;
	char *at;

	if (m->n == m->cap && (more = realloc(more, cap * sizeof *more)) == NULL)
		return err_nomem(e);
	if (m->n == m->cap)
		m->cap = cap;
	m->entry = more;
	to = &m->entry[m->n];
	*to = (struct manifest_entry){ strdup(x->name), x->kind, strdup(x->hex) };
	if (to->name == NULL || to->hex == NULL) {
		free(to->name);
		free(to->hex);
		return err_nomem(e);
	}
	for (at = to->hex; *at != '\0'; at++)
		*at = (char)tolower((unsigned char)*at);
	m->n++;
	return 0;
}

static int read_lines(struct manifest *m, FILE *f, enum ptcp_digest kind, struct ptcp_err *e)
{
	struct manifest_entry x;
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = getline(&line, &room, f)) >= 0) {
		if (n > 0 && line[n - 1] == '\n')
			line[--n] = '\0';
		if (n > 0 && line[n - 1] == '\r') /* the end of a line; names have escapes instead */
			line[--n] = '\0';
		if (n == 0 || line[0] == '#')
			continue;
		if (strlen(line) == (size_t)n && take_line(line, kind, &x))
			r = add_entry(m, &x, e);
		else
			m->malformed++;
	}
	free(line);
	return r;
}

int manifest_read(struct manifest *out, const char *path, enum ptcp_digest kind, struct ptcp_err *e)
{
	bool input = text_is_stdio(path);
	FILE *f = input ? stdin : fopen(path, "re");
	char shown[TEXT_NAME_BYTES];
	int r;

	*out = (struct manifest){ .entry = NULL };
	text_escape(shown, sizeof shown, path);
	if (f == NULL)
		return err_because(e, PTCP_EIO, errno, "%s: %s", shown, strerror(errno));
	r = read_lines(out, f, kind, e);
	if (r == 0 && ferror(f))
		r = err_because(e, PTCP_EIO, errno, "%s: %s", shown, strerror(errno));
	if (!input)
		fclose(f);
	if (r == 0 && out->n == 0)
		r = err_set(e, PTCP_EIO, "%s: no digests in it (name a list such as sha256sum or ptcp sum prints)",
		    shown);
	if (r < 0)
		manifest_fini(out);
	return r;
}

void manifest_fini(struct manifest *m)
{
	while (m->n > 0) {
		free(m->entry[--m->n].name);
		free(m->entry[m->n].hex);
	}
	free(m->entry);
	*m = (struct manifest){ .entry = NULL };
}

/* ---- A list that is brought up to date ---- */

/* ---- Lines ---- */

static void print_path(FILE *to, const char *path)
{
	if (strcmp(path, "-") == 0)
		fputs("./", to); /* sha256sum --check would read standard input */
	for (; *path != '\0'; path++)
		if (*path == '\n' || *path == '\r' || *path == '\\')
			fprintf(to, "\\%c", *path == '\n' ? 'n' : *path == '\r' ? 'r' : '\\');
		else
			putc(*path, to);
}

/* The name of a digest in such a line: that of coreutils. */
static const char *tag_of(enum ptcp_digest d, char out[16])
{
	const char *name = ptcp_digest_name(d);
	size_t i;

	for (i = 0; name[i] != '\0' && i < 15; i++)
		out[i] = (char)toupper((unsigned char)name[i]);
	out[i] = '\0';
	return d == PTCP_BLAKE2B ? "BLAKE2b" : out;
}

void manifest_print_digests(FILE *to, const char *path, const struct ptcp_file_digest *digest, unsigned n)
{
	const char *escaped = strpbrk(path, "\n\r\\") != NULL ? "\\" : "";
	char tag[16];
	unsigned i;

	for (i = 0; i < n; i++)
		if (n == 1) {
			fprintf(to, "%s%s  ", escaped, digest[i].hex);
			print_path(to, path);
			putc('\n', to);
		} else {
			fprintf(to, "%s%s (", escaped, tag_of(digest[i].kind, tag));
			print_path(to, path);
			fprintf(to, ") = %s\n", digest[i].hex);
		}
}

/* manifest_print_digests() writes "./-" for "-", and sha256sum ./NAME writes what it is given. */
static const char *bare_name(const struct manifest_entry *x)
{
	return strncmp(x->name, "./", 2) == 0 ? x->name + 2 : x->name;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(bare_name(a), bare_name(b));
}

int manifest_present(struct manifest *out, const char *path, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	struct ptcp_err why;
	struct stat st;

	*out = (struct manifest){ .entry = NULL };
	text_escape(shown, sizeof shown, path);
	if (text_is_stdio(path))
		return err_set(e, PTCP_EUSAGE,
		    "--manifest -: the list cannot go to standard output (--digest prints digests there)");
	if (lstat(path, &st) != 0)
		return errno == ENOENT ? 0 : err_because(e, PTCP_EUSAGE, errno,
		    "--manifest %s: %s (name another file)", shown, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(e, PTCP_EUSAGE,
		    "--manifest %s: no regular file, and is not replaced (name another file)", shown);
	if (st.st_size == 0)
		return 0;
	if (manifest_read(out, path, 0, &why) < 0 || out->malformed > 0) {
		manifest_fini(out);
		return err_set(e, PTCP_EUSAGE,
		    "--manifest %s: has other content than digests, and is not replaced (name another file)", shown);
	}
	sort_array(out->entry, out->n, sizeof *out->entry, by_name);
	return 0;
}

bool manifest_has(struct manifest *m, const char *name, bool drops)
{
	struct manifest_entry key = { .name = (char *)(uintptr_t)name }, *found, *end = m->entry + m->n;

	found = m->n > 0 ? bsearch(&key, m->entry, m->n, sizeof key, by_name) : NULL;
	if (found == NULL)
		return false;
	while (found > m->entry && by_name(found - 1, &key) == 0)
		found--;
	for (; drops && found < end && by_name(found, &key) == 0; found++)
		found->kind = 0;
	return true;
}

void manifest_print(FILE *to, const struct manifest *m)
{
	struct ptcp_file_digest digest[N_KINDS];
	size_t i, k;
	unsigned n;

	for (i = 0; i < m->n; i = k) {
		for (k = i, n = 0; k < m->n && by_name(&m->entry[i], &m->entry[k]) == 0; k++)
			if (m->entry[k].kind != 0 && n < N_KINDS)
				digest[n++] = (struct ptcp_file_digest){ m->entry[k].kind, m->entry[k].hex };
		manifest_print_digests(to, m->entry[i].name, digest, n);
	}
}
