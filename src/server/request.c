#include "server/request_impl.h"

#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "session/probe_session.h"
#include "fs/fd_budget.h"
#include "fs/quota.h"

void request_fini(struct request *a)
{
	request_paths_free(a->path, a->n_paths);
	request_search_free(a->search);
	tree_unref(a->tree);
	filter_free(a->filter);
	destination_fini(&a->place);
}

const char *request_path(const struct request *a, unsigned i) { return a->path[i].path; }

const char *request_first(const struct request *a)
{
	return a->n_paths > 0 ? a->path[0].path : "";
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
		return err_set(e, PTCP_EREFUSED, "files: nothing is served (start the server with --root DIR)");
	return 0;
}

static int only_adds(struct ptcp_err *e, const char *what)
{
	return err_set(e, PTCP_EREFUSED, "%s: this client may only add files (have the server's administrator authorize it without "
	    "--write-once)", what);
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
	if (a->removes && a->auth.read_only)
		return err_set(e, PTCP_EREFUSED, "removing sources: this client may only receive (have the server's administrator "
		    "authorize it without --read-only)");
	if (a->auth.write_once && a->sends)
		return only_adds(e, "receiving");
	if (a->auth.write_once && (o->flags & WIRE_OPEN_DELETE) != 0)
		return only_adds(e, "deleting");
	if (a->selected && !a->sends)
		return err_set(e, PTCP_EPROTO, "OPEN frame with SELECTED for a receiver");
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
	    ((o->flags & WIRE_OPEN_MKPATH) ? DESTINATION_MKPATH : 0) |
	    ((o->flags & WIRE_OPEN_FILE) ? DESTINATION_FILE : 0);
	a->removes = a->sends && (o->flags & WIRE_OPEN_REMOVE_SOURCES) != 0;
	a->selected = (o->flags & WIRE_OPEN_SELECTED) != 0;
	a->reaches_movers = (o->flags & WIRE_OPEN_MOVERS) != 0;
	a->n_granted = o->streams < a->o->max_streams ? o->streams : a->o->max_streams;
	a->n_granted = a->n_granted < fd_budget_connections() ? a->n_granted : fd_budget_connections();
	a->cipher = o->cipher;
	if ((r = check_rights(a, o, e)) < 0 || a->measures)
		return r;
	if ((o->flags & WIRE_OPEN_DRY_RUN) == 0)
		a->quota_need = !a->sends ? QUOTA_COUNT : a->removes ? QUOTA_ADJUST : QUOTA_NONE;
	if ((r = take_places(a, o, e)) == 0 && a->selected && (a->n_paths != 1 || !a->path->contents))
		return err_set(e, PTCP_EPROTO, "OPEN frame with SELECTED, not for the content of one directory");
	return r;
}

int request_take_clean(struct request *a, struct span path, struct ptcp_err *e)
{
	int r;

	if ((r = check_root(a, e)) < 0)
		return r;
	if (a->auth.read_only)
		return err_set(e, PTCP_EREFUSED, "removing leftovers: this client may only receive (have the server's "
		    "administrator authorize it without --read-only)");
	if (a->auth.write_once)
		return only_adds(e, "removing leftovers");
	a->sends = a->literal = true;
	a->quota_need = QUOTA_ADJUST;
	if ((a->path = calloc(1, sizeof *a->path)) == NULL || (a->path->path = malloc(path.n + 1)) == NULL)
		return err_nomem(e);
	span_copy(a->path->path, path);
	a->path->contents = true;
	a->n_paths = 1;
	return 0;
}

int request_take_manage(struct request *a, const struct wire_manage *f, struct ptcp_err *e)
{
	bool modifies = f->op != WIRE_MANAGE_LIST && f->op != WIRE_MANAGE_COUNT;
	struct span rest = f->paths, path;
	uint8_t flags;
	int r;

	if ((r = check_root(a, e)) < 0)
		return r;
	if (modifies && a->auth.read_only)
		return err_set(e, PTCP_EREFUSED, "changing files: this client may only receive (have the server's "
		    "administrator authorize it without --read-only)");
	if (a->auth.write_once)
		return only_adds(e, "work on files");
	a->manages = true;
	a->quota_need = f->op == WIRE_MANAGE_COUNT || f->op == WIRE_MANAGE_MKDIR ? QUOTA_COUNT :
	    modifies ? QUOTA_ADJUST : QUOTA_NONE;
	if ((a->path = calloc(f->n_paths, sizeof *a->path)) == NULL)
		return err_nomem(e);
	while (a->n_paths < f->n_paths && wire_path_next(&rest, &flags, &path)) {
		if ((a->path[a->n_paths].path = malloc(path.n + 1)) == NULL)
			return err_nomem(e);
		span_copy(a->path[a->n_paths++].path, path);
	}
	return 0;
}

void request_change_quota(struct request *a, uint64_t bytes)
{
	if (!a->finding && a->tree != NULL)
		tree_change_quota(a->tree, bytes > 0 ? bytes : UINT64_MAX);
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
	if (!a->sends) {
		if ((r = session_receive_into(sess, &a->place, e)) == 0)
			session_receive_filtered(sess, a->filter);
		if (r == 0 && a->auth.write_once)
			session_receive_only_new(sess, a->client);
		return r;
	}
	if (a->filter != NULL)
		r = session_send_filtered(sess, a->filter, e);
	for (i = 0; i < a->n_paths && r == 0; i++) {
		struct request_path *s = &a->path[i];

		r = s->dir == NULL ? session_send_missing(sess, s->path, &s->why) :
		    session_send_from(sess, s->dir, s->name[0] != '\0' ? s->name : NULL, e);
	}
	return r;
}
