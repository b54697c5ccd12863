#include "server/request.h"

#include <stdlib.h>
#include <string.h>

#include "conn/remote.h"
#include "core/err.h"
#include "core/text.h"
#include "session/probe_session.h"
#include "store/fd_budget.h"

/* A source, or the destination. */
struct request_path {
	struct dir *dir;               /* of a source; NULL: missing, see `why` */
	char name[DESTINATION_NAME_BYTES];
	char *path;                    /* as written by the client */
	bool contents;
	struct ptcp_err why;
};

void request_fini(struct request *a)
{
	unsigned i;

	for (i = 0; i < a->n_paths; i++) {
		dir_unref(a->path[i].dir);
		free(a->path[i].path);
	}
	free(a->path);
	filter_free(a->filter);
	destination_fini(&a->place);
}

const char *request_first(const struct request *a)
{
	return a->n_paths > 0 ? a->path[0].path : "";
}

/* ---- On an I/O thread: paths below the client's root ---- */

static int find_places(struct request *a, struct tree *tree, struct ptcp_err *e)
{
	char own[HOME_PATH_BYTES];
	const char *path;
	unsigned i;
	int r = 0;

	for (i = 0; i < a->n_paths; i++) {
		struct request_path *p = &a->path[i];

		path = tree == NULL ? own : p->path;
		if (tree == NULL && (r = home_path(own, p->path, e)) < 0)
			return r;
		if (!a->sends)
			return destination_target(&a->place, tree, path, a->flags, e);
		if (destination_source(tree, path, p->contents, &p->dir, p->name, &p->why) < 0)
			p->dir = NULL; /* a failed file */
	}
	return 0;
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
	if ((r = tree_open(out, root, &sys_real, e)) == 0 && (r = own_dirs_exclude(a->own_dirs, *out, e)) < 0)
		tree_unref(*out);
	return r;
}

static int look_up(struct request *a, struct ptcp_err *e)
{
	const char *root = a->auth.root[0] != '\0' ? a->auth.root : a->root;
	char shown[TEXT_NAME_BYTES];
	struct tree *tree;
	int r;

	if (a->own)
		return find_places(a, NULL, e);
	if ((r = open_root(a, root, &tree, e)) < 0) {
		/* The client must not learn the path. */
		log_at(&a->host->log, LOG_ERROR, "server", "event=no-root root=\"%s\" why=\"%s\"",
		    text_escape_quoted(shown, sizeof shown, root), e->msg);
		return err_set(e, r, r == PTCP_EREFUSED ? "the root for this client lies in the server's own configuration or state "
		    "directory (tell the server's administrator)" :
		    "the root for this client cannot be opened (tell the server's administrator)");
	}
	r = find_places(a, tree, e);
	tree_unref(tree);
	return r;
}

static void on_found(struct msg *m)
{
	struct request *a = CONTAINER_OF(m, struct request, msg);
	char shown[TEXT_NAME_BYTES];

	a->finding = false;
	if (a->result < 0)
		err_while(&a->why, a->result, a->sends ? "%s" : "destination %s", text_escape(shown, sizeof shown, request_first(a)));
	a->found(a, a->result < 0 ? &a->why : NULL);
}

static void find(struct io_job *io)
{
	struct request *a = CONTAINER_OF(io, struct request, io);

	a->result = look_up(a, &a->why);
	a->msg.run = on_found;
	loop_post(a->host->control, &a->msg);
}

void request_find(struct request *a, void (*found)(struct request *a, const struct ptcp_err *why))
{
	a->found = found;
	a->finding = true;
	a->io.run = find;
	io_submit(a->host->io, &a->io);
}

/* ---- Rights ---- */

static int check_cipher(struct request *a, const struct wire_open *o, struct ptcp_err *e)
{
	unsigned allowed = a->own ? ~0u : a->o->ciphers;

	if (o->cipher >= PTCP_CIPHERS || (allowed & 1u << o->cipher) == 0)
		return err_set(e, PTCP_EREFUSED, "cipher %s: the server does not allow it (see its --cipher)",
		    o->cipher < PTCP_CIPHERS ? ptcp_cipher_name(o->cipher) : "requested");
	return 0;
}

static int check_root(const struct request *a, struct ptcp_err *e)
{
	if (!a->own && a->auth.root[0] == '\0' && a->root == NULL)
		return err_set(e, PTCP_EREFUSED, "files: none are served (have the server started with --root)");
	return 0;
}

static int check_rights(struct request *a, const struct wire_open *o, struct ptcp_err *e)
{
	int r;

	if (a->measures)
		return check_cipher(a, o, e);
	if ((r = check_root(a, e)) < 0)
		return r;
	if (o->role == WIRE_ACCEPTOR_RECEIVES && a->auth.read_only)
		return err_set(e, PTCP_EREFUSED, "sending: this client may only receive (have the server's administrator authorize "
		    "it without --read-only)");
	if (o->role == WIRE_ACCEPTOR_RECEIVES && o->n_paths != 1)
		return err_set(e, PTCP_EPROTO, "OPEN frame without exactly one destination");
	return check_cipher(a, o, e);
}

static int take_rule(struct request *a, bool include, const char *pattern, struct ptcp_err *e)
{
	int r;

	if (a->filter == NULL && (r = filter_new(&a->filter, e)) < 0)
		return r;
	return filter_add(a->filter, include, pattern, e);
}

static int take_places(struct request *a, const struct wire_open *o, struct ptcp_err *e)
{
	struct span rest = o->paths, path;
	uint8_t flags;

	if ((a->path = calloc(o->n_paths, sizeof *a->path)) == NULL)
		return err_nomem(e);
	while (a->n_paths < o->n_paths && wire_path_next(&rest, &flags, &path)) {
		char *text = malloc(path.n + 1);
		int r;

		if (text == NULL)
			return err_nomem(e);
		span_copy(text, path);
		if ((flags & (WIRE_PATH_EXCLUDE | WIRE_PATH_INCLUDE)) == 0) {
			a->path[a->n_paths].path = text;
			a->path[a->n_paths++].contents = (flags & WIRE_PATH_CONTENTS) != 0;
			continue;
		}
		r = take_rule(a, (flags & WIRE_PATH_INCLUDE) != 0, text, e);
		free(text);
		if (r < 0)
			return r;
	}
	return 0;
}

int request_take(struct request *a, const struct wire_open *o, struct ptcp_err *e)
{
	int r;

	a->sends = o->role == WIRE_ACCEPTOR_SENDS;
	a->generates = o->role == WIRE_ACCEPTOR_GENERATES;
	a->measures = a->generates || o->role == WIRE_ACCEPTOR_DISCARDS;
	a->flags = ((o->flags & WIRE_OPEN_INTO_DIR) ? DESTINATION_INTO_DIR : 0) |
	    ((o->flags & WIRE_OPEN_CONTENTS) ? DESTINATION_CONTENTS : 0) |
	    ((o->flags & WIRE_OPEN_DRY_RUN) ? DESTINATION_DRY_RUN : 0) |
	    ((o->flags & WIRE_OPEN_MKPATH) ? DESTINATION_MKPATH : 0);
	a->n_granted = o->streams < a->o->max_streams ? o->streams : a->o->max_streams;
	a->n_granted = a->n_granted < fd_budget_connections() ? a->n_granted : fd_budget_connections();
	a->cipher = o->cipher;
	if ((r = check_rights(a, o, e)) < 0 || a->measures)
		return r;
	return take_places(a, o, e);
}

int request_take_clean(struct request *a, struct span path, struct ptcp_err *e)
{
	int r;

	if ((r = check_root(a, e)) < 0)
		return r;
	if (a->auth.read_only)
		return err_set(e, PTCP_EREFUSED, "removing leftovers: this client may only receive (have the server's "
		    "administrator authorize it without --read-only)");
	a->sends = true;
	if ((a->path = calloc(1, sizeof *a->path)) == NULL || (a->path->path = malloc(path.n + 1)) == NULL)
		return err_nomem(e);
	span_copy(a->path->path, path);
	a->path->contents = true;
	a->n_paths = 1;
	return 0;
}

struct dir *request_dir(const struct request *a, struct ptcp_err *why)
{
	if (a->path->dir == NULL)
		*why = a->path->why;
	return a->path->dir;
}

int request_begin(struct request *a, struct session *sess, struct ptcp_err *e)
{
	unsigned i;
	int r = 0;

	if (a->measures)
		return a->generates ? session_generate(sess, e) : session_discard(sess, e);
	if (!a->sends)
		return session_receive_into(sess, &a->place, e);
	if (a->filter != NULL)
		r = session_send_filtered(sess, a->filter, e);
	for (i = 0; i < a->n_paths && r == 0; i++) {
		struct request_path *s = &a->path[i];

		r = s->dir == NULL ? session_send_missing(sess, s->path, &s->why) :
		    session_send_from(sess, s->dir, s->name[0] != '\0' ? s->name : NULL, e);
	}
	return r;
}
