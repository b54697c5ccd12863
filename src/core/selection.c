#include "core/selection.h"

#include <stdlib.h>
#include <string.h>

#include "core/charged.h"
#include "core/text.h"

#define PATH_BYTES_MAX 4096

struct selection {
	struct memory_account *memory;
	bool all;              /* "." was added: other paths add nothing */
	char *text;            /* the paths, each with its NUL, in the order of selection_add() */
	size_t text_bytes, text_room;
	uint32_t *at;          /* their offsets in `text` */
	size_t n, room;
};

int selection_new(struct selection **out, struct memory_account *memory, struct ptcp_err *e)
{
	if ((*out = calloc(1, sizeof **out)) == NULL)
		return err_nomem(e);
	(*out)->memory = memory;
	return 0;
}

static void clear(struct selection *s)
{
	memory_free(s->memory, s->text, s->text_room);
	memory_free(s->memory, s->at, s->room * sizeof *s->at);
	*s = (struct selection){ .memory = s->memory };
}

void selection_free(struct selection *s)
{
	if (s == NULL)
		return;
	clear(s);
	free(s);
}

static int check_component(const char *name, size_t n, struct ptcp_err *e)
{
	if (n == 2 && memcmp(name, "..", 2) == 0)
		return err_set(e, PTCP_EUSAGE, "a path with .. (name entries below the source)");
	return text_name_ok(name, n) ? 0 :
	    err_set(e, PTCP_EUSAGE, "a name of more than 255 bytes, or with a NUL byte (separate paths by newlines, or "
	    "by NULs with -0)");
}

/* Writes the components of `path`, and a NUL, to `out`, which has room for n + 1 bytes. Sets their length. */
static int normalize(char *out, size_t *length, const char *path, size_t n, struct ptcp_err *e)
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
	*length = to;
	return 0;
}

/* Doubles *room, in elements of `size` bytes, or more, if there is no room for `need`. NULL: `p` stays. */
static void *grow(struct selection *s, void *p, size_t *room, size_t need, size_t size, struct ptcp_err *e)
{
	size_t more = need > 2 * *room ? need : 2 * *room;
	void *new;

	if (need <= *room)
		return p;
	if ((new = memory_realloc(s->memory, p, *room * size, more * size, e)) != NULL)
		*room = more;
	return new;
}

static int append(struct selection *s, const char *path, size_t n, struct ptcp_err *e)
{
	char *text = grow(s, s->text, &s->text_room, s->text_bytes + n + 1, 1, e);
	uint32_t *at;

	if (text == NULL)
		return PTCP_ENOMEM;
	s->text = text;
	if (s->text_bytes > UINT32_MAX)
		return err_set(e, PTCP_ERANGE, "more than 4 GiB of paths (name directories above them)");
	if ((at = grow(s, s->at, &s->room, s->n + 1, sizeof *at, e)) == NULL)
		return PTCP_ENOMEM;
	s->at = at;
	memcpy(text + s->text_bytes, path, n + 1);
	s->at[s->n++] = (uint32_t)s->text_bytes;
	s->text_bytes += n + 1;
	return 0;
}

int selection_add(struct selection *s, const char *path, size_t n, struct ptcp_err *e)
{
	char normal[PATH_BYTES_MAX + 1];
	size_t length;
	int r;

	if (n == 0)
		return err_set(e, PTCP_EUSAGE, "an empty path (remove it from the list)");
	if (n > PATH_BYTES_MAX)
		return err_set(e, PTCP_EUSAGE, "a path of more than %d bytes (name a directory above it)",
		    PATH_BYTES_MAX);
	if ((r = normalize(normal, &length, path, n, e)) < 0 || s->all)
		return r;
	if (length > 0)
		return append(s, normal, length, e);
	clear(s);
	s->all = true;
	return 0;
}

size_t selection_n(const struct selection *s) { return s->all ? 1 : s->n; }
size_t selection_bytes(const struct selection *s) { return s->all ? 1 : s->text_bytes; }
const char *selection_path(const struct selection *s, size_t i) { return s->all ? "" : s->text + s->at[i]; }

/* A directory's paths follow one another: '/' counts as less than any other byte of a name. */
static int compare(const void *x, const void *y, void *text)
{
	const unsigned char *a = (unsigned char *)text + *(const uint32_t *)x,
	    *b = (unsigned char *)text + *(const uint32_t *)y;

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

int selection_sort(struct selection *s, struct ptcp_err *e)
{
	uint64_t scratch = s->n * sizeof *s->at; /* max memory of qsort_r(3) */
	size_t i, n = 0;
	int r;

	if (s->n == 0)
		return 0;
	if ((r = memory_charge(s->memory, scratch, e)) < 0)
		return r;
	qsort_r(s->at, s->n, sizeof *s->at, compare, s->text);
	memory_release(s->memory, scratch);
	for (i = 0; i < s->n; i++)
		if (n == 0 || strcmp(s->text + s->at[n - 1], s->text + s->at[i]) != 0)
			s->at[n++] = s->at[i];
	s->n = n;
	return 0;
}

bool selection_begin(const struct selection *s, struct selection_part *all)
{
	*all = (struct selection_part){ .end = s->n };
	return !s->all;
}

int selection_next(const struct selection *s, struct selection_part *of, const char **name, size_t *n,
    struct selection_part *below, bool *whole)
{
	const char *path, *other;

	if (of->next == of->end)
		return 0;
	path = selection_path(s, of->next) + of->above;
	*name = path;
	*n = strcspn(path, "/");
	*whole = path[*n] == '\0';
	*below = (struct selection_part){ .next = of->next, .above = of->above + *n + 1 };
	do
		other = ++of->next < of->end ? selection_path(s, of->next) + of->above : NULL;
	while (other != NULL && strncmp(other, path, *n) == 0 && (other[*n] == '/' || other[*n] == '\0'));
	below->end = of->next;
	return 1;
}
