/* The paths of a request, below the client's root: on an I/O thread, in steps, since patterns may examine many
 * names. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "conn/remote.h"
#include "core/charged.h"
#include "core/err.h"
#include "core/sorted.h"
#include "core/text.h"
#include "engine/sender.h"
#include "server/request_impl.h"
#include "store/expand.h"

enum { STEP_DONE, STEP_MORE, STEP_WAITS /* STEP_WAITS until the job is submitted again */ };

#define STEP_NAMES 4096 /* other clients' work on the I/O threads comes between two steps */

/* The sources found so far. */
struct request_search {
	unsigned next;          /* path of the request */
	struct expand *expand;  /* expansion of that path; NULL: not begun */
	struct tree *near;      /* with `own`: the directory before the pattern's first wildcard, */
	size_t near_bytes;      /* length of `near` in each match */
	struct request_path *found;
	unsigned n_found, room;
};

int request_path_init(struct request *a, struct request_path *p, const char *path, bool contents, struct ptcp_err *e)
{
	size_t n = strlen(path) + 1;

	*p = (struct request_path){ .contents = contents };
	if ((p->path = memory_realloc(a->memory, NULL, 0, n, e)) == NULL)
		return PTCP_ENOMEM;
	memcpy(p->path, path, n);
	return 0;
}

void request_paths_free(struct memory_account *memory, struct request_path *path, unsigned n, unsigned room)
{
	while (n > 0) {
		dir_unref(path[--n].dir);
		memory_free(memory, path[n].path, strlen(path[n].path) + 1);
	}
	memory_free(memory, path, room * sizeof *path);
}

static void end_pattern(struct request_search *s)
{
	expand_free(s->expand);
	s->expand = NULL;
	tree_unref(s->near);
	s->near = NULL;
}

void request_search_free(struct request *a)
{
	struct request_search *s = a->search;

	if (s == NULL)
		return;
	end_pattern(s);
	request_paths_free(a->memory, s->found, s->n_found, s->room);
	memory_free(a->memory, s, sizeof *s);
	a->search = NULL;
}

/* ---- Roots ---- */

/* The client's directory beneath the root, where other clients may write and may have put links: no path leaves the
 * root. A client that may write gets a missing directory created. */
static int move_below(const struct request *a, struct tree **root, struct ptcp_err *e)
{
	const int flags = DESTINATION_INTO_DIR | DESTINATION_MKPATH;
	struct destination at = { 0 };
	struct dir *top = tree_root(*root);
	struct tree *t = NULL;
	int r;

	r = a->auth.read_only ? dir_resolve(&at.base, top, a->auth.below, e) :
	    destination_target(&at, *root, a->auth.below, flags, e);
	if (r == 0 && (r = tree_below(&t, at.base, e)) == 0) {
		tree_unref(*root);
		*root = t;
	}
	destination_fini(&at);
	dir_unref(top);
	return r < 0 ? PTCP_EIO : 0; /* PTCP_EREFUSED: a root in the server's own directories */
}

/* A confined server cannot open a root configured later; the sentence must not blame permissions. */
static int open_root(const struct request *a, const char *root, struct tree **out, struct ptcp_err *e)
{
	const char *const *at = a->roots;
	int r;

	while (at != NULL && *at != NULL && strcmp(*at, root) != 0)
		at++;
	if (at != NULL && *at == NULL)
		return err_set(e, PTCP_ECONFIG, "configured after the server had started (restart the server)");
	if ((r = tree_open(out, root, &sys_real, e)) < 0)
		return r;
	if ((r = own_dirs_exclude(a->own_dirs, *out, e)) == 0 && (a->auth.below[0] == '\0' ||
	    ((r = move_below(a, out, e)) == 0 && (r = own_dirs_exclude(a->own_dirs, *out, e)) == 0)))
		return 0;
	tree_unref(*out);
	return r;
}

static int use_root(struct request *a, struct ptcp_err *e)
{
	const char *root = a->auth.root[0] != '\0' ? a->auth.root : a->root;
	char shown[TEXT_NAME_BYTES];
	struct ptcp_err why;
	int r;

	if ((r = open_root(a, root, &a->tree, &why)) == 0)
		return 0;
	a->tree = NULL;
	/* The client must not learn the path. */
	log_at(&a->context->log, LOG_ERROR, "server", "event=no-root root=\"%s\" why=\"%s\"",
	    text_escape_quoted(shown, sizeof shown, root), why.msg);
	return err_set(e, r, r == PTCP_EREFUSED ? "the root for this client lies in the server's own configuration or "
	    "state directory (tell the server's administrator)" :
	    "the root for this client cannot be opened (tell the server's administrator)");
}

/* STEP_MORE: the paths are next; STEP_DONE: none are to be found. */
static int begin(struct request *a, struct ptcp_err *e)
{
	int r;

	if (!a->own && a->tree == NULL && (r = use_root(a, e)) < 0)
		return r;
	if (!a->own && (r = quota_table_apply(a->quotas, a->context->io, a->tree, a->auth.quota_bytes, a->quota_need,
	    a->memory, &a->io, e)) != 0)
		return r < 0 ? r : STEP_WAITS;
	if (a->path == NULL && (r = request_read(a, e)) < 0)
		return r;
	if (a->manages)
		return STEP_DONE;
	if ((a->search = memory_realloc(a->memory, NULL, 0, sizeof *a->search, e)) == NULL)
		return PTCP_ENOMEM;
	*a->search = (struct request_search){ 0 };
	return STEP_MORE;
}

/* ---- Sources ---- */

int request_source(const struct request *a, const char *path, bool contents, struct dir **dir,
    char name[DESTINATION_NAME_BYTES], struct ptcp_err *e)
{
	char own[HOME_PATH_BYTES];
	int r;

	if (!a->own)
		return destination_source(a->tree, path, contents, dir, name, e);
	return (r = home_path(own, path, e)) < 0 ? r : destination_source(NULL, own, contents, dir, name, e);
}

/* A source with a copy of `path`, for the next path of the request. */
static struct request_path *add_found(struct request *a, const char *path, struct ptcp_err *e)
{
	struct request_search *s = a->search;
	unsigned room = s->room > 0 ? 2 * s->room : 1;
	struct request_path *p;

	if (s->n_found == s->room) {
		if ((p = memory_realloc(a->memory, s->found, s->room * sizeof *p, room * sizeof *p, e)) == NULL)
			return NULL;
		s->found = p;
		s->room = room;
	}
	p = &s->found[s->n_found];
	if (request_path_init(a, p, path, a->path[s->next].contents, e) < 0)
		return NULL;
	s->n_found++;
	return p;
}

/* Of a device, FIFO or socket nothing can be sent: a match of a pattern is skipped, as in a directory, and a source
 * that the user names has failed. */
static void check_named(struct request_path *p)
{
	struct dir *d = p->dir;
	struct stat st;
	int at;

	if (d == NULL || p->name[0] == '\0' || (at = dir_fd(d, NULL)) < 0)
		return;
	if (dir_sys(d)->fstatat(at, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode) &&
	    !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode)) {
		err_set(&p->why, PTCP_EIO, "a device, FIFO or socket (name a file, directory or link)");
		p->dir = NULL;
	}
	dir_fd_done(d);
	if (p->dir == NULL)
		dir_unref(d);
}

/* A missing source is a failed file. */
static int add_source(struct request *a, const char *path, bool named, struct ptcp_err *e)
{
	const struct request_search *s = a->search;
	struct request_path *p = add_found(a, path, e);

	if (p == NULL)
		return PTCP_ENOMEM;
	/* A link may lead out of `near`: then the source gets a tree of its own. */
	if ((s->near == NULL || destination_source(s->near, p->path + s->near_bytes, p->contents, &p->dir,
	    p->name, NULL) < 0) && request_source(a, p->path, p->contents, &p->dir, p->name, &p->why) < 0)
		p->dir = NULL;
	if (named)
		check_named(p);
	return 0;
}

int request_open(void *arg, const char *path, struct dir **out, struct ptcp_err *e)
{
	char name[DESTINATION_NAME_BYTES];

	return request_source(arg, path, true, out, name, e);
}

/* Every tree takes a descriptor: the matches of a pattern share one. */
static void open_near(struct request *a, const char *pattern)
{
	struct request_search *s = a->search;
	char above[WIRE_PATH_MAX + 1], own[HOME_PATH_BYTES];
	size_t n = strcspn(pattern, "*?[\\");

	while (n > 0 && pattern[n - 1] != '/')
		n--;
	memcpy(above, pattern, n);
	above[n] = '\0';
	s->near_bytes = n;
	if (home_path(own, above, NULL) == 0 && tree_open(&s->near, own, &sys_real, NULL) < 0)
		s->near = NULL;
}

/* All matches of a pattern, or the failure. */
static int add_matches(struct request *a, const struct ptcp_err *why, struct ptcp_err *e)
{
	struct request_search *s = a->search;
	struct request_path *p;
	size_t i;
	int r = 0;

	if (why != NULL) {
		if ((p = add_found(a, a->path[s->next].path, e)) == NULL)
			return PTCP_ENOMEM;
		p->why = *why;
		return 0;
	}
	if (a->own && expand_is_pattern(s->expand))
		open_near(a, a->path[s->next].path);
	a->expanded |= expand_is_pattern(s->expand);
	for (i = 0; i < expand_n(s->expand) && r == 0; i++)
		r = add_source(a, expand_path(s->expand, i), !expand_is_pattern(s->expand), e);
	return r;
}

/* A stream that would have nothing to send costs a connection and a handshake. */
static void limit_streams(struct request *a)
{
	const struct request_path *p = a->search->found;
	struct stat st;
	int at;

	if (a->search->n_found != 1 || p->dir == NULL || p->name[0] == '\0' || (at = dir_fd(p->dir, NULL)) < 0)
		return;
	if (dir_sys(p->dir)->fstatat(at, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	    (uint64_t)st.st_size / SND_JOB_BYTES + 1 < a->n_useful)
		a->n_useful = (unsigned)(st.st_size / SND_JOB_BYTES) + 1;
	dir_fd_done(p->dir);
}

/* 1: more remain; 0: all are found. */
static int find_sources(struct request *a, struct ptcp_err *e)
{
	struct request_search *s = a->search;
	struct ptcp_err why;
	int r;

	for (; s->next < a->n_paths; s->next++) {
		if (a->literal) {
			if ((r = add_source(a, a->path[s->next].path, true, e)) < 0)
				return r;
			continue;
		}
		if (s->expand == NULL && (r = expand_new(&s->expand, a->path[s->next].path, request_open, a,
		    a->memory, e)) < 0)
			return r;
		if ((r = expand_step(s->expand, STEP_NAMES, &why)) > 0)
			return 1;
		if (r == PTCP_ENOMEM && why.sys == 0)
			return err_set(e, r, "%s", why.msg);
		if ((r = add_matches(a, r < 0 ? &why : NULL, e)) < 0)
			return r;
		end_pattern(s);
	}
	limit_streams(a);
	return 0;
}

/* ---- Names of sources ---- */

static int compare(const void *x, const void *y)
{
	const struct request_path *a = *(struct request_path *const *)x, *b = *(struct request_path *const *)y;
	int r = strcmp(a->name, b->name);

	return r != 0 ? r : (a > b) - (a < b);
}

/* Only the first source of a name is sent: they would replace each other. */
static int refuse_duplicates(struct request *a, struct ptcp_err *e)
{
	struct request_search *s = a->search;
	const size_t bytes = (s->n_found + 1) * sizeof(struct request_path *);
	struct request_path **sorted = memory_realloc(a->memory, NULL, 0, bytes, e);
	const struct request_path *kept = NULL;
	unsigned i;

	if (sorted == NULL)
		return PTCP_ENOMEM;
	for (i = 0; i < s->n_found; i++)
		sorted[i] = &s->found[i];
	sort_array(sorted, s->n_found, sizeof *sorted, compare);
	for (i = 0; i < s->n_found; i++) {
		if (sorted[i]->dir == NULL || sorted[i]->name[0] == '\0')
			continue;
		if (kept == NULL || strcmp(sorted[i]->name, kept->name) != 0) {
			kept = sorted[i];
			continue;
		}
		dir_unref(sorted[i]->dir);
		sorted[i]->dir = NULL;
		err_set(&sorted[i]->why, PTCP_EUSAGE, "another source has the same name (receive it separately, to "
		    "another directory)");
	}
	memory_free(a->memory, sorted, bytes);
	return 0;
}

/* ---- Steps ---- */

int request_target(const struct request *a, const char *path, int flags, struct destination *out, struct ptcp_err *e)
{
	char own[HOME_PATH_BYTES];
	int r;

	if (a->own && (r = home_path(own, path, e)) < 0)
		return r;
	return destination_target(out, a->tree, a->own ? own : path, flags, e);
}

static int step(struct request *a, struct ptcp_err *e)
{
	int r;

	if (a->search == NULL && (r = begin(a, e)) != STEP_MORE)
		return r;
	if (!a->sends)
		return request_target(a, request_first(a), a->flags, &a->place, e);
	if ((r = find_sources(a, e)) != 0)
		return r;
	return refuse_duplicates(a, e);
}

static void on_found(struct msg *m)
{
	struct request *a = CONTAINER_OF(m, struct request, msg);
	char shown[TEXT_NAME_BYTES];

	a->finding = false;
	if (a->result < 0)
		err_while(&a->why, a->result, a->sends ? "%s" : "destination %s",
		    text_escape(shown, sizeof shown, request_first(a)));
	else if (a->sends && a->search != NULL) {
		request_paths_free(a->memory, a->path, a->n_paths, a->path_room);
		a->path = a->search->found;
		a->n_paths = a->search->n_found;
		a->path_room = a->search->room;
		a->search->found = NULL;
		a->search->n_found = a->search->room = 0;
	}
	a->found(a, a->result < 0 ? &a->why : NULL);
}

static void find(struct io_job *io)
{
	struct request *a = CONTAINER_OF(io, struct request, io);

	int r = step(a, &a->why);

	if (r == STEP_WAITS)
		return; /* perhaps already continued by another thread */
	if ((a->result = r) > 0) {
		io_submit(a->context->io, &a->io);
		return;
	}
	a->msg.run = on_found;
	loop_post(a->context->control, &a->msg);
}

void request_find(struct request *a, void (*found)(struct request *a, const struct ptcp_err *why))
{
	a->found = found;
	a->finding = true;
	a->n_useful = PTCP_STREAMS_MAX;
	a->io.run = find;
	io_submit(a->context->io, &a->io);
}
