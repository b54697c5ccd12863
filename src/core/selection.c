#include "core/selection.h"

#include <stdlib.h>
#include <string.h>

#include "core/sorted.h"
#include "core/text.h"

#define PATH_BYTES_MAX 4096

struct selection {
	char **path;
	size_t n, cap, bytes;
};

int selection_new(struct selection **out, struct ptcp_err *e)
{
	return (*out = calloc(1, sizeof **out)) != NULL ? 0 : err_nomem(e);
}

void selection_free(struct selection *s)
{
	if (s == NULL)
		return;
	while (s->n > 0)
		free(s->path[--s->n]);
	free(s->path);
	free(s);
}

static int check_component(const char *name, size_t n, struct ptcp_err *e)
{
	if (n == 2 && memcmp(name, "..", 2) == 0)
		return err_set(e, PTCP_EUSAGE, "a path with .. (name entries below the source)");
	return text_name_ok(name, n) ? 0 :
	    err_set(e, PTCP_EUSAGE, "a name of more than 255 bytes, or with a NUL byte (separate paths by newlines, or by NULs "
	    "with -0)");
}

/* Appends the components of `path` to `out`, which has room for n + 1 bytes. */
static int normalize(char *out, const char *path, size_t n, struct ptcp_err *e)
{
	size_t at = 0, len, to = 0;
	int r;

	for (; at < n; at += len + 1) {
		const char *slash = memchr(path + at, '/', n - at);

		len = slash != NULL ? (size_t)(slash - path) - at : n - at;
		if (len == 0 || (len == 1 && path[at] == '.'))
			continue;
		if ((r = check_component(path + at, len, e)) < 0)
			return r;
		if (to > 0)
			out[to++] = '/';
		memcpy(out + to, path + at, len);
		to += len;
	}
	out[to] = '\0';
	return 0;
}

int selection_add(struct selection *s, const char *path, size_t n, struct ptcp_err *e)
{
	char **more, *copy;
	int r;

	if (n == 0)
		return err_set(e, PTCP_EUSAGE, "an empty path (remove it from the list)");
	if (n > PATH_BYTES_MAX)
		return err_set(e, PTCP_EUSAGE, "a path of more than %d bytes (name a directory above it)", PATH_BYTES_MAX);
	if (s->n == s->cap) {
		if ((more = realloc(s->path, (s->cap > 0 ? 2 * s->cap : 64) * sizeof *more)) == NULL)
			return err_nomem(e);
		s->path = more;
		s->cap = s->cap > 0 ? 2 * s->cap : 64;
	}
	if ((copy = malloc(n + 1)) == NULL)
		return err_nomem(e);
	if ((r = normalize(copy, path, n, e)) < 0) {
		free(copy);
		return r;
	}
	s->path[s->n++] = copy;
	s->bytes += strlen(copy) + 1;
	return 0;
}

size_t selection_n(const struct selection *s) { return s->n; }
size_t selection_bytes(const struct selection *s) { return s->bytes; }
const char *selection_path(const struct selection *s, size_t i) { return s->path[i]; }

/* A directory's paths follow one another: '/' counts as less than any other byte of a name. */
static int compare(const void *x, const void *y)
{
	const unsigned char *a = *(unsigned char *const *)x, *b = *(unsigned char *const *)y;

	while (*a != '\0' && *a == *b) {
		a++;
		b++;
	}
	if (*a == *b)
		return 0;
	if (*a == '\0' || *b == '\0')
		return *a == '\0' ? -1 : 1;
	if (*a == '/' || *b == '/')
		return *a == '/' ? -1 : 1;
	return *a < *b ? -1 : 1;
}

void selection_sort(struct selection *s)
{
	size_t i, n = 0;

	if (s->n == 0)
		return;
	sort_array(s->path, s->n, sizeof *s->path, compare);
	for (i = 0; i < s->n; i++) {
		if (n > 0 && strcmp(s->path[n - 1], s->path[i]) == 0) {
			s->bytes -= strlen(s->path[i]) + 1;
			free(s->path[i]);
		} else {
			s->path[n++] = s->path[i];
		}
	}
	s->n = n;
}

bool selection_begin(const struct selection *s, struct selection_part *all)
{
	*all = (struct selection_part){ .end = s->n };
	return s->n == 0 || s->path[0][0] != '\0';
}

int selection_next(const struct selection *s, struct selection_part *of, const char **name, size_t *n,
    struct selection_part *below, bool *whole)
{
	const char *path, *other;

	if (of->next == of->end)
		return 0;
	path = s->path[of->next] + of->above;
	*name = path;
	*n = strcspn(path, "/");
	*whole = path[*n] == '\0';
	*below = (struct selection_part){ .next = of->next, .above = of->above + *n + 1 };
	do
		other = ++of->next < of->end ? s->path[of->next] + of->above : NULL;
	while (other != NULL && strncmp(other, path, *n) == 0 && (other[*n] == '/' || other[*n] == '\0'));
	below->end = of->next;
	return 1;
}
