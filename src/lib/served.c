#include "lib/served.h"

#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/filter.h"
#include "core/text.h"
#include "core/units.h"
#include "lib/home.h"
#include "lib/probing.h"
#include "lib/why.h"
#include "store/fds.h"
#include "store/place.h"

/* Failed files that are logged one by one: a client must not fill the log. */
#define LOGGED_FAILURES 1000u

/* A path of the client's. */
struct asked {
	struct dir *dir;               /* of a source; NULL: `why` */
	char name[PLACE_NAME_BYTES];
	char *path;                    /* as the client wrote it */
	bool contents;
	struct ptcp_err why;
};

struct served {
	struct list in_list;
	struct served_set *set;
	struct party *party;
	struct authorization auth;
	char address[SOCK_TEXT_BYTES];
	struct source *from;
	struct mono since;
	/* what it asked for; looked up on an I/O thread */
	bool judging, gone;
	bool sends;                    /* we do */
	bool drops;                    /* it only measures */
	unsigned failures;             /* that its files met, as far as they are logged */
	int flags;
	unsigned streams;
	enum ptcp_cipher cipher;
	struct asked *asked;
	unsigned n_asked;
	struct filter *filter;         /* of what we send; NULL: no rules */
	struct place place;            /* where we receive */
	struct ptcp_err why;
	int result;
	struct io_job io;
	struct msg msg;
};

void served_set_init(struct served_set *t, struct host *host, const char *root,
    const struct ptcp_server_opts *o, void (*gone)(void *arg, struct source *from), void *arg)
{
	*t = (struct served_set){ .host = host, .root = root, .o = o, .gone = gone, .arg = arg };
	list_init(&t->list);
}

static void served_free(struct served *s)
{
	struct served_set *set = s->set;
	struct source *from = s->from;
	unsigned i;

	if (s->judging)
		return; /* when the I/O thread is done */
	for (i = 0; i < s->n_asked; i++) {
		dir_unref(s->asked[i].dir);
		free(s->asked[i].path);
	}
	free(s->asked);
	filter_free(s->filter);
	place_fini(&s->place);
	party_free(s->party);
	list_remove(&s->in_list);
	set->n--;
	free(s);
	set->gone(set->arg, from);
}

static struct log *log_of(struct served *s) { return &s->set->host->log; }

/* ---- Judging what is asked for ---- */

static int find_places(struct served *s, struct tree *tree, struct ptcp_err *e)
{
	char own[HOME_PATH_BYTES];
	const char *path;
	unsigned i;
	int r = 0;

	for (i = 0; i < s->n_asked; i++) {
		struct asked *a = &s->asked[i];

		path = tree == NULL ? own : a->path;
		if (tree == NULL && (r = home_path(own, a->path, e)) < 0)
			return r;
		if (!s->sends)
			return place_target(&s->place, tree, path, s->flags, e);
		if (place_source(tree, path, a->contents, &a->dir, a->name, &a->why) < 0)
			a->dir = NULL; /* that one is a failed file */
	}
	return 0;
}

/* A server that has confined itself cannot reach a root that came later, and should not look as if that were
 * for want of permission. */
static int open_root(const struct served *s, const char *root, struct tree **out, struct ptcp_err *e)
{
	const char *const *at = s->set->roots;

	while (at != NULL && *at != NULL && strcmp(*at, root) != 0)
		at++;
	if (at != NULL && *at == NULL)
		return err_set(e, PTCP_ECONFIG, "it was given to the client after the server had started (restart it)");
	return tree_open(out, root, &sys_real, e);
}

/* On an I/O thread: find the places beneath the client's root. */
static int look_up(struct served *s, struct ptcp_err *e)
{
	const char *root = s->auth.root[0] != '\0' ? s->auth.root : s->set->root;
	char shown[TEXT_NAME_BYTES];
	struct tree *tree;
	int r;

	if (s->set->one_time)
		return find_places(s, NULL, e);
	if ((r = open_root(s, root, &tree, e)) < 0) {
		/* Where it is, is not for the client to know. */
		log_at(&s->set->host->log, LOG_ERROR, "server", "event=no-root root=\"%s\" why=\"%s\"",
		    text_escape_quoted(shown, sizeof shown, root), e->msg);
		return err_set(e, r, "the root for this client cannot be opened (tell the server's "
		    "administrator)");
	}
	r = find_places(s, tree, e);
	tree_unref(tree);
	return r;
}

static void on_judged(struct msg *m)
{
	struct served *s = CONTAINER_OF(m, struct served, msg);
	char shown[TEXT_NAME_BYTES];

	s->judging = false;
	if (s->gone) {
		served_free(s);
	} else if (s->result < 0) {
		err_while(&s->why, s->result, "destination %s",
		    text_escape(shown, sizeof shown, s->asked[0].path));
		party_cancel(s->party, &s->why);
	} else {
		party_accept(s->party, s->streams, s->cipher);
	}
}

static void judge(struct io_job *io)
{
	struct served *s = CONTAINER_OF(io, struct served, io);

	s->result = look_up(s, &s->why);
	s->msg.run = on_judged;
	loop_post(s->set->host->control, &s->msg);
}

static int check_cipher(struct served *s, const struct wire_open *o, struct ptcp_err *e)
{
	unsigned allowed = s->set->one_time ? ~0u : s->set->o->ciphers; /* what a user asks of itself */

	if (o->cipher >= PTCP_CIPHERS || (allowed & 1u << o->cipher) == 0)
		return err_set(e, PTCP_EREFUSED, "cipher %s: the server does not allow it (see its --cipher)",
		    o->cipher < PTCP_CIPHERS ? ptcp_cipher_name(o->cipher) : "asked for");
	return 0;
}

static int check_rights(struct served *s, const struct wire_open *o, struct ptcp_err *e)
{
	if (s->set->one_time && s->set->n_run > 0)
		return err_set(e, PTCP_EREFUSED, "this server was for one session, which it has had (start another)");
	if (s->drops)
		return check_cipher(s, o, e);
	if (!s->set->one_time && s->auth.root[0] == '\0' && s->set->root == NULL)
		return err_set(e, PTCP_EREFUSED, "no files are served: the server was started without --root (start it with one)");
	if (o->role == WIRE_YOU_RECEIVE && s->auth.read_only)
		return err_set(e, PTCP_EREFUSED, "sending there: this client may only read (have its administrator "
		    "authorize it without --read-only)");
	if (o->role == WIRE_YOU_RECEIVE && o->n_paths != 1)
		return err_set(e, PTCP_EPROTO, "one destination is needed");
	return check_cipher(s, o, e);
}

static int take_rule(struct served *s, bool include, const char *pattern, struct ptcp_err *e)
{
	int r;

	if (s->filter == NULL && (r = filter_new(&s->filter, e)) < 0)
		return r;
	return filter_add(s->filter, include, pattern, e);
}

static int take_places(struct served *s, const struct wire_open *o, struct ptcp_err *e)
{
	struct span rest = o->paths, path;
	uint8_t flags;

	if ((s->asked = calloc(o->n_paths, sizeof *s->asked)) == NULL)
		return err_nomem(e);
	while (s->n_asked < o->n_paths && wire_path_next(&rest, &flags, &path)) {
		char *text = malloc(path.n + 1);
		int r;

		if (text == NULL)
			return err_nomem(e);
		memcpy(text, path.n > 0 ? (const char *)path.p : "", path.n);
		text[path.n] = '\0';
		if ((flags & (WIRE_PATH_EXCLUDE | WIRE_PATH_INCLUDE)) == 0) {
			s->asked[s->n_asked].path = text;
			s->asked[s->n_asked++].contents = (flags & WIRE_PATH_CONTENTS) != 0;
			continue;
		}
		r = take_rule(s, (flags & WIRE_PATH_INCLUDE) != 0, text, e);
		free(text);
		if (r < 0)
			return r;
	}
	return 0;
}

static void on_open(void *arg, struct party *p, const struct wire_open *o)
{
	struct served *s = arg;
	char shown[TEXT_NAME_BYTES];
	struct ptcp_err why;

	s->party = p;
	s->sends = o->role == WIRE_YOU_SEND;
	s->drops = o->role == WIRE_YOU_DROP;
	s->flags = ((o->flags & WIRE_OPEN_INTO_DIR) ? PLACE_INTO_DIR : 0) |
	    ((o->flags & WIRE_OPEN_CONTENTS) ? PLACE_CONTENTS : 0) |
	    ((o->flags & WIRE_OPEN_DRY_RUN) ? PLACE_DRY_RUN : 0);
	s->streams = o->streams < s->set->o->max_streams ? o->streams : s->set->o->max_streams;
	s->streams = s->streams < fds_connections() ? s->streams : fds_connections();
	s->cipher = o->cipher;
	if (check_rights(s, o, &why) < 0 || (!s->drops && take_places(s, o, &why) < 0)) {
		log_at(log_of(s), LOG_WARN, "server", "event=refused from=%s client=%s why=\"%s\"", s->address,
		    party_fingerprint(p), why.msg);
		session_fail(party_session(p), &why);
		return;
	}
	log_at(log_of(s), LOG_INFO, "server", "event=open from=%s client=%s name=%s role=%s path=\"%s\" "
	    "streams=%u cipher=%s", s->address, party_fingerprint(p), s->auth.name,
	    s->drops ? "drop" : s->sends ? "send" : "receive",
	    text_escape_quoted(shown, sizeof shown, s->drops ? "" : s->asked[0].path), s->streams,
	    ptcp_cipher_name(s->cipher));
	if (s->drops) {
		party_accept(p, s->streams, s->cipher);
		return;
	}
	s->judging = true;
	s->io.run = judge;
	io_submit(s->set->host->io, &s->io);
}

/* ---- At work ---- */

static int start_work(struct served *s, struct party *p, struct ptcp_err *e)
{
	unsigned i;
	int r = 0;

	if (s->drops)
		return party_drop(p, e);
	if (!s->sends)
		return party_receive_into(p, &s->place, e);
	if (s->filter != NULL)
		r = party_send_filtered(p, s->filter, e);
	for (i = 0; i < s->n_asked && r == 0; i++) {
		struct asked *a = &s->asked[i];

		r = a->dir == NULL ? party_send_missing(p, a->path, &a->why) :
		    party_send_from(p, a->dir, a->name[0] != '\0' ? a->name : NULL, e);
	}
	return r;
}

static void on_running(void *arg, struct party *p)
{
	struct served *s = arg;
	struct ptcp_err why;

	s->set->n_run++;
	if (start_work(s, p, &why) < 0)
		session_fail(party_session(p), &why);
}

static void on_file(void *arg, const char *path, enum ptcp_file_status status,
    const struct ptcp_err *why)
{
	struct served *s = arg;
	char shown[TEXT_NAME_BYTES];

	if (status != PTCP_FILE_FAILED || s->failures > LOGGED_FAILURES)
		return;
	if (s->failures++ == LOGGED_FAILURES)
		log_at(log_of(s), LOG_WARN, "server", "event=files-failed client=%s why=\"more than %u have failed: the "
		    "end of the session counts them\"", party_fingerprint(s->party), LOGGED_FAILURES);
	else
		log_at(log_of(s), LOG_WARN, "server", "event=file-failed client=%s path=\"%s\" why=\"%s\"",
		    party_fingerprint(s->party), text_escape_quoted(shown, sizeof shown, path), why->msg);
}

static void on_warning(void *arg, const char *path, const char *text)
{
	struct served *s = arg;
	char shown[TEXT_NAME_BYTES];

	log_at(log_of(s), LOG_INFO, "server", "event=warning client=%s path=\"%s\" text=\"%s\"",
	    party_fingerprint(s->party), text_escape_quoted(shown, sizeof shown, path != NULL ? path : ""), text);
}

static void on_streams(void *arg, unsigned from, unsigned to, const char *why)
{
	struct served *s = arg;

	log_at(log_of(s), LOG_DEBUG, "server", "event=streams client=%s from=%u to=%u why=\"%s\"",
	    party_fingerprint(s->party), from, to, why);
}

static void on_gone(void *arg, struct party *p, const struct ptcp_err *why)
{
	struct served *s = arg;
	struct party_progress g = party_progress(p);

	s->party = p;
	log_at(log_of(s), why != NULL ? LOG_WARN : LOG_INFO, "server",
	    "event=end client=%s from=%s files=%llu bytes=%llu failed=%llu seconds=%.3f why=\"%s\"",
	    party_fingerprint(p), s->address, (unsigned long long)g.files, (unsigned long long)g.file_bytes,
	    (unsigned long long)g.failed, (double)mono_diff_ns(mono_now(), s->since) / 1e9,
	    why != NULL ? why->msg : "done");
	s->gone = true;
	served_free(s);
}

/* A client that has lost its connection comes again: what its old session holds is its own. */
static bool on_contended(void *arg, struct party *p, uint64_t dev, uint64_t ino)
{
	struct served *s = arg, *other;
	bool ending = false;
	struct list *l;

	for (l = s->set->list.next; l != &s->set->list; l = l->next) {
		other = CONTAINER_OF(l, struct served, in_list);
		if (other == s || other->gone || other->party == NULL ||
		    strcmp(party_fingerprint(other->party), party_fingerprint(p)) != 0)
			continue;
		ending |= party_over(other->party);
		if (party_over(other->party) || !party_holds(other->party, dev, ino))
			continue;
		log_at(log_of(s), LOG_INFO, "server", "event=taken-over client=%s from=%s by=%s",
		    party_fingerprint(p), other->address, s->address);
		party_yield(other->party);
		return true;
	}
	return ending;
}

static const struct party_ops party_ops = {
	.open = on_open, .running = on_running, .file = on_file, .warning = on_warning,
	.streams = on_streams, .contended = on_contended, .gone = on_gone
};

int served_new(struct served_set *t, const struct served_link *l, const struct authorization *a,
    struct ptcp_err *e)
{
	struct party_opts o = {
		.host = t->host, .control = l->control, .connects = l->connects, .one_channel = l->one_channel,
		.address = l->host != NULL ? l->host : "", .port = l->port,
		.max_streams = (uint16_t)t->o->max_streams,
		.timeout_ns = (uint64_t)(t->o->timeout_s * 1e9), .ops = &party_ops
	};
	struct served *s = calloc(1, sizeof *s);
	int r;

	if (s == NULL) {
		chan_free(l->control);
		return err_nomem(e);
	}
	o.sock.timeout_ns = o.timeout_ns;
	s->set = t;
	s->auth = *a;
	s->from = l->from;
	s->since = mono_now();
	strncpy(s->address, l->address, sizeof s->address - 1);
	o.arg = s;
	if ((r = party_new(&s->party, &o, e)) < 0) {
		free(s);
		return r;
	}
	list_append(&t->list, &s->in_list);
	t->n++;
	return 0;
}

static struct served *find(struct served_set *t, const uint8_t *id)
{
	struct list *l;
	struct served *s;

	for (l = t->list.next; l != &t->list; l = l->next) {
		s = CONTAINER_OF(l, struct served, in_list);
		if (!s->gone && s->party != NULL && memcmp(party_id(s->party), id, WIRE_SESSION_BYTES) == 0)
			return s;
	}
	return NULL;
}

struct party *served_find(struct served_set *t, const uint8_t id[WIRE_SESSION_BYTES])
{
	struct served *s = find(t, id);

	return s != NULL ? s->party : NULL;
}

enum ptcp_cipher served_cipher(struct served_set *t, const uint8_t id[WIRE_SESSION_BYTES])
{
	return find(t, id)->cipher;
}

unsigned served_count(const struct served_set *t, const char *fingerprint)
{
	const struct list *l;
	unsigned n = 0;

	for (l = t->list.next; l != &t->list; l = l->next) {
		const struct served *s = CONTAINER_OF(l, struct served, in_list);

		n += s->party != NULL && strcmp(party_fingerprint(s->party), fingerprint) == 0;
	}
	return n;
}

/* Whether what it does is still its client's to do. */
static bool may_go_on(const struct served *s, const struct authorization *now)
{
	return strcmp(now->root, s->auth.root) == 0 &&
	    (s->sends || s->drops || !now->read_only || s->auth.read_only);
}

void served_judge_again(struct served_set *t,
    bool (*admits)(void *arg, const char *fingerprint, struct authorization *a), void *arg)
{
	struct authorization now;
	struct ptcp_err why;
	struct list *l, *next;

	err_set(&why, PTCP_EREFUSED, "this client: not authorized there any more (ask the administrator)");
	for (l = t->list.next; l != &t->list; l = next) {
		struct served *s = CONTAINER_OF(l, struct served, in_list);

		next = l->next;
		if (s->party == NULL || party_over(s->party) ||
		    (admits(arg, party_fingerprint(s->party), &now) && may_go_on(s, &now)))
			continue;
		log_at(log_of(s), LOG_WARN, "server", "event=revoked from=%s client=%s", s->address,
		    party_fingerprint(s->party));
		party_cancel(s->party, &why);
	}
}

void served_cancel_all(struct served_set *t, const struct ptcp_err *why)
{
	struct list *l, *next;

	for (l = t->list.next; l != &t->list; l = next) {
		next = l->next;
		party_cancel(CONTAINER_OF(l, struct served, in_list)->party, why);
	}
}
