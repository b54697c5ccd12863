#include "store/expand.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/filter.h"
#include "core/glob.h"
#include "core/sorted.h"
#include "core/text.h"
#include "store/destination.h"
#include "store/part.h"
#include "store/walk.h"

/* A list of paths. */
struct texts {
	char **at;
	size_t n, cap, bytes;
};

/* A directory to be listed next: its path, and the rest of the pattern. */
struct expand_pending {
	char *path;
	const char *rest; /* rest of x->pattern, from the start of a component */
};

/* Of a path in a list: its places in arrays that grow, and the share of malloc(3). */
#define TEXT_EXTRA_BYTES (sizeof(struct expand_pending) * 4)

struct expand {
	expand_open_fn *open;
	void *arg;
	struct memory_account *memory;
	uint64_t charged;       /* charge for the texts of `found` and `pending` */
	char *pattern;          /* without slashes at the end */
	bool begun, is_pattern, dirs_only;
	struct texts found;
	struct expand_pending *pending;
	size_t n_pending, cap_pending, pending_bytes;
	unsigned long names;
	/* the directory being listed */
	struct expand_pending current;
	struct dir *base;
	struct walk *walk;      /* NULL: none is */
	struct filter *visible;
	struct glob *glob;
	const char *next;       /* the pattern behind the component; NULL: the last one */
};

bool expand_has_wildcard(const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '\\' && text[1] != '\0')
			text++;
		else if (strchr("*?[", *text) != NULL)
			return true;
	}
	return false;
}

bool expand_can_match(const char *pattern, const char *name)
{
	const char *last = strrchr(pattern, '/');
	struct glob *g;
	bool can;

	last = last != NULL ? last + 1 : pattern;
	if (!expand_has_wildcard(pattern) || (name[0] == '.' && last[0] != '.') || glob_new(&g, last, NULL) < 0)
		return false;
	can = glob_match(g, name, true);
	glob_free(g);
	return can;
}

int expand_new(struct expand **out, const char *path, expand_open_fn *open, void *arg, struct memory_account *memory,
    struct ptcp_err *e)
{
	struct expand *x = calloc(1, sizeof *x);

	if (x == NULL || (x->pattern = strdup(path)) == NULL) {
		free(x);
		return err_nomem(e);
	}
	x->open = open;
	x->arg = arg;
	x->memory = memory;
	*out = x;
	return 0;
}

static void end_listing(void *arg)
{
	struct expand *x = arg;

	walk_free(x->walk);
	x->walk = NULL;
	glob_free(x->glob);
	x->glob = NULL;
	dir_unref(x->base);
	x->base = NULL;
	free(x->current.path);
	x->current.path = NULL;
}

void expand_free(struct expand *x)
{
	if (x == NULL)
		return;
	end_listing(x);
	filter_free(x->visible);
	while (x->found.n > 0)
		free(x->found.at[--x->found.n]);
	free(x->found.at);
	while (x->n_pending > 0)
		free(x->pending[--x->n_pending].path);
	free(x->pending);
	free(x->pattern);
	memory_release(x->memory, x->charged);
	free(x);
}

size_t expand_n(const struct expand *x) { return x->found.n; }
const char *expand_path(const struct expand *x, size_t i) { return x->found.at[i]; }
bool expand_is_pattern(const struct expand *x) { return x->is_pattern; }

/* ---- Lists ---- */

static int beyond(struct ptcp_err *e)
{
	return err_because(e, PTCP_EIO, E2BIG, "the pattern matches more than %d paths, or examines more than %d "
	    "names (use a narrower pattern, or the directory with --include and --exclude)", EXPAND_MATCHES_MAX,
	    EXPAND_NAMES_MAX);
}

/* Charges the account for all texts, after one more was added. */
static int charge(struct expand *x, struct ptcp_err *e)
{
	uint64_t bytes = x->found.bytes + x->pending_bytes + TEXT_EXTRA_BYTES * (x->found.n + x->n_pending);
	int r = 0;

	if (bytes > x->charged && (r = memory_charge(x->memory, bytes - x->charged, e)) == 0)
		x->charged = bytes;
	return r;
}

/* Takes `text`, which may be NULL: no memory. */
static int add_found(struct expand *x, char *text, struct ptcp_err *e)
{
	size_t cap = x->found.cap > 0 ? 2 * x->found.cap : 16;
	char **more = x->found.at;

	if (text != NULL && x->found.n == x->found.cap && (more = realloc(more, cap * sizeof *more)) != NULL) {
		x->found.at = more;
		x->found.cap = cap;
	}
	if (text == NULL || more == NULL) {
		free(text);
		return err_nomem(e);
	}
	x->found.at[x->found.n++] = text;
	x->found.bytes += strlen(text) + 1;
	return x->found.n > EXPAND_MATCHES_MAX || x->found.bytes + x->pending_bytes > EXPAND_BYTES_MAX ? beyond(e) :
	    charge(x, e);
}

static int add_pending(struct expand *x, char *path, const char *rest, struct ptcp_err *e)
{
	size_t cap = x->cap_pending > 0 ? 2 * x->cap_pending : 16;
	struct expand_pending *more = x->pending;

	if (path != NULL && x->n_pending == x->cap_pending && (more = realloc(more, cap * sizeof *more)) != NULL) {
		x->pending = more;
		x->cap_pending = cap;
	}
	if (path == NULL || more == NULL) {
		free(path);
		return err_nomem(e);
	}
	x->pending[x->n_pending++] = (struct expand_pending){ path, rest };
	x->pending_bytes += strlen(path) + 1;
	return x->found.bytes + x->pending_bytes > EXPAND_BYTES_MAX ? beyond(e) : charge(x, e);
}

/* "above/name", or with `above` "" or ending in a slash "name" behind it; of the name's first n bytes. */
static char *join(const char *above, const char *name, size_t n)
{
	size_t a = strlen(above);
	bool slash = a > 0 && above[a - 1] != '/';
	char *out = malloc(a + slash + n + 1);

	if (out == NULL)
		return NULL;
	memcpy(out, above, a);
	if (slash)
		out[a] = '/';
	memcpy(out + a + slash, name, n);
	out[a + slash + n] = '\0';
	return out;
}

/* ---- Components ---- */

static size_t component(const char *p) { return strcspn(p, "/"); }

static bool is_deep(const char *p, size_t n)
{
	size_t i;

	for (i = 0; i + 1 < n; i++)
		if (p[i] == '*' && p[i + 1] == '*')
			return true;
	return false;
}

static bool part_has_wildcard(const char *p, size_t n)
{
	char text[GLOB_PATTERN_MAX + 1];

	if (n >= sizeof text)
		return false;
	memcpy(text, p, n);
	text[n] = '\0';
	return expand_has_wildcard(text);
}

/* Removes the backslashes before characters. */
static void unescape(char *text)
{
	char *out = text;

	for (; *text != '\0'; text++) {
		if (*text == '\\' && text[1] != '\0')
			text++;
		*out++ = *text;
	}
	*out = '\0';
}

/* Whether `path` exists, without following a link in the last component; as a directory, if it ends in a slash. */
static bool exists(struct expand *x, const char *path, bool as_dir)
{
	char name[DESTINATION_NAME_BYTES], *above;
	const char *slash;
	struct dir *d = NULL;
	struct stat st;
	bool found = false;
	int at;

	if (as_dir) {
		found = x->open(x->arg, path, &d, NULL) == 0;
		dir_unref(d);
		return found;
	}
	slash = strrchr(path, '/');
	if (!text_name_ok(slash != NULL ? slash + 1 : path, strlen(slash != NULL ? slash + 1 : path)))
		return exists(x, path, true); /* ".." */
	strcpy(name, slash != NULL ? slash + 1 : path);
	if ((above = strndup(path, slash != NULL ? (size_t)(slash - path) + 1 : 0)) == NULL)
		return false;
	if (x->open(x->arg, above, &d, NULL) == 0 && (at = dir_fd(d, NULL)) >= 0) {
		found = dir_sys(d)->fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    !dir_excludes(d, st.st_dev, st.st_ino);
		dir_fd_done(d);
	}
	dir_unref(d);
	free(above);
	return found;
}

/* ---- Listing a directory ---- */

/* Continues at `path`, with `rest` of the pattern: takes the components without wildcards, then the path is found, or
 * its listing is pending. Takes `path`. */
static int advance(struct expand *x, char *path, const char *rest, struct ptcp_err *e)
{
	char *longer, *last;
	size_t n;

	while (path != NULL && rest != NULL && *rest != '\0' && !part_has_wildcard(rest, n = component(rest))) {
		if ((longer = join(path, rest, n)) != NULL) {
			last = longer + strlen(longer) - n;
			unescape(last);
		}
		free(path);
		path = longer;
		rest += n;
		rest += strspn(rest, "/");
	}
	if (path == NULL)
		return err_nomem(e);
	if (rest != NULL && *rest != '\0')
		return add_pending(x, path, rest, e);
	if (!exists(x, path, x->dirs_only)) {
		free(path);
		return 0;
	}
	longer = x->dirs_only ? join(path, "", 0) : path;
	if (longer != path)
		free(path);
	return add_found(x, longer, e);
}

/* From the listed directory on, except that a leading "**" and '/' match any depth, as in glob_new(). */
static int begin_glob(struct expand *x, const char *rest, size_t n, struct ptcp_err *e)
{
	char *part = join(strncmp(rest, "**/", 3) == 0 ? "" : "/", rest, n);
	int r = part != NULL ? glob_new(&x->glob, part, e) : err_nomem(e);

	free(part);
	return r;
}

static int compare(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static int finish(struct expand *x, struct ptcp_err *e)
{
	if (x->found.n == 0)
		return err_because(e, PTCP_EIO, ENOENT, "no name matches the pattern");
	sort_array(x->found.at, x->found.n, sizeof *x->found.at, compare);
	return 0;
}

/* Lists nothing if the directory cannot be opened: nothing matches there. */
static int next_listing(void *arg, struct ptcp_err *e)
{
	struct expand *x = arg;
	struct expand_pending *p = &x->current;
	size_t n;
	bool deep;
	int r;

	if (x->n_pending == 0)
		return finish(x, e);
	*p = x->pending[--x->n_pending];
	x->pending_bytes -= strlen(p->path) + 1;
	n = component(p->rest);
	deep = is_deep(p->rest, n);
	x->next = p->rest + n + strspn(p->rest + n, "/");
	if (deep || *x->next == '\0')
		x->next = NULL;
	if (x->open(x->arg, p->path, &x->base, NULL) < 0) {
		end_listing(x);
		return 1;
	}
	if ((r = begin_glob(x, p->rest, deep ? strlen(p->rest) : n, e)) < 0 ||
	    (r = walk_new(&x->walk, x->memory, e)) < 0)
		return r;
	if (!deep)
		walk_flat(x->walk);
	if (p->rest[0] != '.' && (!deep || strstr(p->rest, "/.") == NULL))
		walk_filter(x->walk, x->visible, false);
	return (r = walk_add(x->walk, x->base, NULL, e)) < 0 ? r : 1;
}

static bool is_candidate(const struct expand *x, const struct walk_entry *w)
{
	return w->name != NULL && w->format != 0 && !w->excluded && !part_is_own_name(w->name) &&
	    ((x->next == NULL && !x->dirs_only) || S_ISDIR(w->format) || S_ISLNK(w->format));
}

static int on_entry(void *arg, struct walk_entry *w, struct ptcp_err *e)
{
	struct expand *x = arg;
	char *below, *path;
	int r = 0;

	if (++x->names > EXPAND_NAMES_MAX)
		return beyond(e);
	if (!is_candidate(x, w))
		return 0;
	if ((below = dir_path_below(w->dir, x->base, w->name)) == NULL)
		return err_nomem(e);
	if (glob_match(x->glob, below, true)) {
		path = join(x->current.path, below, strlen(below));
		r = x->next == NULL && !x->dirs_only ? add_found(x, path, e) : advance(x, path, x->next, e);
	}
	free(below);
	return r;
}

/* ---- Steps ---- */

/* Splits the pattern into what precedes the first wildcard, and the rest. */
static int begin(struct expand *x, struct ptcp_err *e)
{
	size_t n = strlen(x->pattern), start;
	struct glob *g;
	int r;

	x->begun = true;
	if (!expand_has_wildcard(x->pattern) || exists(x, x->pattern, n > 0 && x->pattern[n - 1] == '/'))
		return add_found(x, strdup(x->pattern), e);
	if (glob_new(&g, x->pattern, NULL) < 0) /* a bracket that is none, as in a shell */
		return add_found(x, strdup(x->pattern), e);
	glob_free(g);
	x->is_pattern = true;
	if ((r = filter_new(&x->visible, NULL, e)) < 0 || (r = filter_add_pattern(x->visible, false, ".*", e)) < 0)
		return r;
	for (; n > 0 && x->pattern[n - 1] == '/'; n--)
		x->dirs_only = true;
	x->pattern[n] = '\0';
	start = strspn(x->pattern, "/");
	return advance(x, strndup(x->pattern, start > 0 ? 1 : 0), x->pattern + start, e);
}

int expand_step(struct expand *x, unsigned names, struct ptcp_err *e)
{
	static const struct walk_steps steps = { .next = next_listing, .entry = on_entry, .end = end_listing };
	int r;

	if (!x->begun && (r = begin(x, e)) < 0)
		return r;
	return walk_step(&steps, &x->walk, names, x, e);
}
