#include "server/request_impl.h"

#include <stdlib.h>
#include <string.h>

#include "core/charged.h"
#include "core/err.h"
#include "fs/fd_budget.h"
#include "fs/quota.h"
#include "session/probe_session.h"
#include "stream/stream.h"

void request_fini(struct request *a)
{
	request_paths_free(a->memory, a->path, a->n_paths, a->path_room);
	request_search_free(a);
	tree_unref(a->tree);
	filter_free(a->filter);
	memory_free(a->memory, a->given, a->given_bytes);
	destination_fini(&a->place);
}

const char *request_path(const struct request *a, unsigned i) { return a->path[i].path; }

/* ---- The paths as given ---- */

static const char *next_given(const struct request *a, size_t *at, uint8_t *flags)
{
	const char *text;

	if (*at == a->given_bytes)
		return NULL;
	text = (const char *)a->given + *at + 1;
	*flags = a->given[*at];
	*at += strlen(text) + 2;
	return text;
}

const char *request_first(const struct request *a)
{
	const char *text;
	uint8_t flags;
	size_t at = 0;

	while ((text = next_given(a, &at, &flags)) != NULL)
		if (wire_path_is_place(flags))
			return text;
	return "";
}

/* Returns the end of the path. */
static size_t put_given(struct request *a, size_t at, uint8_t flags, struct span path)
{
	a->given[at] = flags;
	span_copy((char *)a->given + at + 1, path);
	a->n_given += wire_path_is_place(flags);
	return at + path.n + 2;
}

static int given_new(struct request *a, size_t bytes, struct ptcp_err *e)
{
	a->given_bytes = bytes;
	return (a->given = memory_realloc(a->memory, NULL, 0, bytes, e)) != NULL ? 0 : PTCP_ENOMEM;
}

/* `paths` as in OPEN and MANAGE. */
static int take_given(struct request *a, struct span paths, struct ptcp_err *e)
{
	struct span rest = paths, path;
	size_t bytes = 0, at = 0;
	uint8_t flags;
	int r;

	while (wire_path_next(&rest, &flags, &path))
		bytes += path.n + 2;
	if (bytes == 0)
		return 0;
	if ((r = given_new(a, bytes, e)) < 0)
		return r;
	while (wire_path_next(&paths, &flags, &path))
		at = put_given(a, at, flags, path);
	return 0;
}

static int take_rule(struct request *a, const char *line, struct ptcp_err *e)
{
	int r;

	if (a->filter == NULL && (r = filter_new(&a->filter, a->memory, e)) < 0)
		return r;
	return filter_add(a->filter, line, e);
}

int request_read(struct request *a, struct ptcp_err *e)
{
	const char *text;
	uint8_t flags;
	size_t at = 0;
	int r;

	if (a->n_given == 0)
		return 0;
	if ((a->path = memory_realloc(a->memory, NULL, 0, a->n_given * sizeof *a->path, e)) == NULL)
		return PTCP_ENOMEM;
	a->path_room = a->n_given;
	while ((text = next_given(a, &at, &flags)) != NULL) {
		if (wire_path_is_place(flags)) {
			if ((r = request_path_init(a, &a->path[a->n_paths], text, flags == WIRE_PATH_CONTENTS,
			    e)) < 0)
				return r;
			a->n_paths++;
		} else if (wire_path_is_rule(flags) && (r = take_rule(a, text, e)) < 0) {
			return r;
		}
	}
	return 0;
}

/* The only one of this kind, or NULL. */
static const char *find_given(const struct request *a, uint8_t kind)
{
	const char *text;
	uint8_t flags;
	size_t at = 0;

	while ((text = next_given(a, &at, &flags)) != NULL && flags != kind)
		;
	return text;
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
	return err_set(e, PTCP_EREFUSED, "%s: this client may only add files (have the server's administrator "
	    "authorize it without --write-once)", what);
}

static int check_rights(struct request *a, const struct wire_open *o, struct ptcp_err *e)
{
	int r;

	if (a->measures)
		return check_cipher(a, o, e);
	if ((r = check_root(a, e)) < 0)
		return r;
	if (o->role == WIRE_ACCEPTOR_RECEIVES && a->auth.read_only)
		return err_set(e, PTCP_EREFUSED, "sending: this client may only receive (have the server's "
		    "administrator authorize it without --read-only)");
	if (a->removes && a->auth.read_only)
		return err_set(e, PTCP_EREFUSED, "removing sources: this client may only receive (have the server's "
		    "administrator authorize it without --read-only)");
	if (a->auth.write_once && a->sends)
		return only_adds(e, "receiving");
	if (a->auth.write_once && (o->flags & WIRE_OPEN_DELETE) != 0)
		return only_adds(e, "deleting");
	if (a->selected && !a->sends)
		return err_set(e, PTCP_EPROTO, "OPEN frame with SELECTED for a receiver");
	return check_cipher(a, o, e);
}

/* The connections of a session have at most half of its memory: data in transit needs the rest. */
static unsigned streams_in_memory(const struct request *a)
{
	uint64_t n = memory_session_max(a->memory) / 2 / STREAM_BYTES;

	return n < PTCP_STREAMS_MAX ? (unsigned)n : PTCP_STREAMS_MAX;
}

static bool has_reference(const struct request *a)
{
	uint8_t flags;
	size_t at = 0;

	while (next_given(a, &at, &flags) != NULL)
		if (wire_path_is_reference(flags))
			return true;
	return false;
}

int request_take(struct request *a, const struct wire_open *o, struct ptcp_err *e)
{
	int r;

	a->sends = o->role == WIRE_ACCEPTOR_SENDS;
	a->generates = o->role == WIRE_ACCEPTOR_GENERATES;
	a->measures = a->generates || o->role == WIRE_ACCEPTOR_DISCARDS;
	a->flags = (int)o->flags;
	a->removes = a->sends && (o->flags & WIRE_OPEN_REMOVE_SOURCES) != 0;
	a->selected = (o->flags & WIRE_OPEN_SELECTED) != 0;
	a->reaches_movers = (o->flags & WIRE_OPEN_MOVERS) != 0;
	a->n_granted = o->streams < a->o->max_streams ? o->streams : a->o->max_streams;
	a->n_granted = a->n_granted < streams_in_memory(a) ? a->n_granted : streams_in_memory(a);
	a->n_granted = a->n_granted < fd_budget_connections() ? a->n_granted : fd_budget_connections();
	a->cipher = o->cipher;
	if ((r = check_rights(a, o, e)) < 0 || a->measures)
		return r;
	if ((o->flags & WIRE_OPEN_DRY_RUN) == 0)
		a->quota_need = !a->sends ? QUOTA_COUNT : a->removes ? QUOTA_ADJUST : QUOTA_NONE;
	if ((r = take_given(a, o->paths, e)) == 0 && a->selected &&
	    (a->n_given != 1 || (a->given[0] & WIRE_PATH_CONTENTS) == 0))
		return err_set(e, PTCP_EPROTO, "OPEN frame with SELECTED, not for the content of one directory");
	if (r == 0 && a->auth.write_once && has_reference(a))
		return only_adds(e, "comparing with older copies");
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
	if ((r = given_new(a, path.n + 2, e)) == 0)
		put_given(a, 0, WIRE_PATH_CONTENTS, path);
	return r;
}

int request_take_manage(struct request *a, const struct wire_manage *f, struct ptcp_err *e)
{
	bool modifies = f->op != WIRE_MANAGE_LIST && f->op != WIRE_MANAGE_COUNT && f->op != WIRE_SUM_OP;
	int r;

	if ((r = check_root(a, e)) < 0)
		return r;
	if (modifies && a->auth.read_only)
		return err_set(e, PTCP_EREFUSED, "changing files: this client may only receive (have the server's "
		    "administrator authorize it without --read-only)");
	if (a->auth.write_once)
		return only_adds(e, "work on files");
	a->manages = true;
	a->quota_need = f->op == WIRE_MANAGE_COUNT ? QUOTA_SHOW :
	    f->op == WIRE_MANAGE_MKDIR || f->op == WIRE_MANAGE_TOUCH ? QUOTA_COUNT :
	    modifies ? QUOTA_ADJUST : QUOTA_NONE;
	return take_given(a, f->paths, e);
}

int request_take_read(struct request *a, struct span path, struct ptcp_err *e)
{
	int r;

	if ((r = check_root(a, e)) < 0)
		return r;
	if (a->auth.write_once)
		return only_adds(e, "reading");
	a->manages = true;
	if ((r = given_new(a, path.n + 2, e)) == 0)
		put_given(a, 0, 0, path);
	return r;
}

int request_take_write(struct request *a, const struct wire_write *f, struct ptcp_err *e)
{
	int r;

	if ((r = check_root(a, e)) < 0)
		return r;
	if (a->auth.read_only)
		return err_set(e, PTCP_EREFUSED, "writing: this client may only receive (have the server's "
		    "administrator authorize it without --read-only)");
	if (a->auth.write_once && f->if_match.n > 0)
		return only_adds(e, "replacing");
	a->manages = true;
	a->quota_need = QUOTA_COUNT;
	if ((r = given_new(a, f->path.n + 2, e)) == 0)
		put_given(a, 0, 0, f->path);
	return r;
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

static int take_references(const struct request *a, struct session *sess, struct ptcp_err *e)
{
	struct session_reference of = { .own = a->own };
	uint8_t flags;
	size_t at = 0;
	int r = 0;

	while (r == 0 && (of.path = next_given(a, &at, &flags)) != NULL) {
		if (!wire_path_is_reference(flags))
			continue;
		of.kind = flags == WIRE_PATH_LINK_DEST ? REFERENCE_LINK :
		    flags == WIRE_PATH_COPY_DEST ? REFERENCE_COPY : REFERENCE_COMPARE;
		r = session_receive_reference(sess, &of, e);
	}
	return r;
}

int request_begin(struct request *a, struct session *sess, struct ptcp_err *e)
{
	unsigned i;
	int r = 0;

	if (a->measures)
		return a->generates ? session_generate(sess, e) : session_discard(sess, e);
	if (!a->sends) {
		if ((r = session_receive_into(sess, &a->place, e)) == 0)
			session_receive_filtered(sess, a->filter, a->own);
		if (r == 0)
			r = session_receive_backup(sess, (struct backup_opts){ .own = a->own,
			    .dir = find_given(a, WIRE_PATH_BACKUP_DIR), .suffix = find_given(a, WIRE_PATH_SUFFIX) }, e);
		if (r == 0)
			r = take_references(a, sess, e);
		if (r == 0 && find_given(a, WIRE_PATH_IF_MATCH) != NULL)
			r = session_receive_match(sess, find_given(a, WIRE_PATH_IF_MATCH), e);
		if (r == 0 && a->auth.write_once)
			session_receive_only_new(sess, a->client);
		return r;
	}
	if (a->filter != NULL)
		r = session_send_filtered(sess, a->filter, a->own, e);
	for (i = 0; i < a->n_paths && r == 0; i++) {
		struct request_path *s = &a->path[i];

		if (s->dir != NULL && (a->flags & (WIRE_OPEN_COPY_LINKS | WIRE_OPEN_COPY_UNSAFE_LINKS)) != 0)
			dir_follow(s->dir, a->own ? DIR_FOLLOW_ANYWHERE : DIR_FOLLOW_BENEATH);
		r = s->dir == NULL ? session_send_missing(sess, s->path, &s->why) :
		    session_send_from(sess, s->dir, s->name[0] != '\0' ? s->name : NULL, e);
	}
	return r;
}
