#include "server/server_session_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/text.h"
#include "fs/fs_err.h"
#include "mover/movers.h"
#include "server/record.h"

int server_session_set_init(struct server_session_set *t, struct context *context, const char *root,
    const struct ptcp_server_opts *o, void (*gone)(void *arg, struct peer_address *from), void *arg,
    struct ptcp_err *e)
{
	*t = (struct server_session_set){ .context = context, .root = root, .o = o, .gone = gone, .arg = arg };
	list_init(&t->list);
	queue_init(&t->queue);
	return timer_new(&t->tick, context->control, server_session_tick, t, e);
}

void server_session_set_fini(struct server_session_set *t)
{
	timer_free(t->tick);
	grants_fini(&t->grants);
}

static void server_session_free(struct server_session *s)
{
	struct server_session_set *set = s->set;
	struct peer_address *from = s->from;

	if (s->request.finding)
		return; /* on_found() calls again */
	session_free(s->session); /* borrows the filter */
	request_fini(&s->request);
	free(s->path);
	server_session_leave(s);
	memory_account_free(s->memory);
	list_remove(&s->in_list);
	set->n--;
	free(s);
	server_session_admit_waiting(set);
	set->gone(set->arg, from);
}

static struct log *log_of(struct server_session *s) { return &s->set->context->log; }

/* ---- Requests ---- */

/* Without movers now, or for a root that they do not have, this host carries the streams. */
static bool uses_movers(const struct server_session *s)
{
	struct movers *m = s->set->movers;
	const char *root = s->request.auth.root[0] != '\0' ? s->request.auth.root : s->set->root;

	return m != NULL && s->request.reaches_movers && movers_count(m) > 0 && root != NULL && movers_cover(m, root);
}

static void on_found(struct request *a, const struct ptcp_err *why)
{
	struct server_session *s = CONTAINER_OF(a, struct server_session, request);

	if (s->gone) {
		server_session_free(s);
		return;
	}
	if (why != NULL) {
		session_cancel(s->session, why);
		return;
	}
	if (uses_movers(s))
		session_use_movers(s->session, s->set->movers);
	session_accept(s->session, a->n_granted < a->n_useful ? a->n_granted : a->n_useful, a->cipher, a->expanded);
}

static int check_grant(const struct server_session *s, const struct wire_open *o, struct ptcp_err *e)
{
	struct span rest = o->paths, path;
	uint8_t flags;

	if (o->role != wire_grant_role(s->grant.mode))
		return err_set(e, PTCP_EREFUSED, "the grant: does not permit this session (only: %s)",
		    s->grant.mode == WIRE_GRANT_READ ? "read" : s->grant.mode == WIRE_GRANT_WRITE ? "write" : "measure");
	if ((o->flags & WIRE_OPEN_UNGRANTED) != 0)
		return err_set(e, PTCP_EREFUSED, "the grant: does not permit to remove files, or to select some");
	while (wire_path_next(&rest, &flags, &path))
		if (!wire_path_is_rule(flags) && (path.n != s->grant.path.n ||
		    (path.n > 0 && memcmp(path.p, s->path, path.n) != 0)))
			return err_set(e, PTCP_EREFUSED, "the grant: permits another path");
	return 0;
}

static int take(struct server_session *s, const struct wire_open *o, struct ptcp_err *e)
{
	int r;

	if (s->granted && (r = check_grant(s, o, e)) < 0)
		return r;
	if (s->set->ephemeral && s->set->n_run > 0)
		return err_set(e, PTCP_EREFUSED, "session: this server was started for one session only (start another server)");
	return request_take(&s->request, o, e);
}

void server_session_refuse(struct server_session *s, const struct ptcp_err *why)
{
	log_at(log_of(s), LOG_WARN, "server", "event=refused from=%s client=%s why=\"%s\"", s->address, s->client,
	    why->msg);
	s->set->past.refused++;
	session_cancel(s->session, why);
}

/* Whether both sessions receive from the same client into the same place. */
static bool is_same_upload(const struct server_session *a, const struct server_session *b)
{
	return !a->request.sends && !b->request.sends && !a->request.measures && strcmp(a->client, b->client) == 0 &&
	    authorization_same_place(&a->request.auth, &b->request.auth) &&
	    strcmp(request_first(&a->request), request_first(&b->request)) == 0;
}

/* What a killed client has sent still arrives in its session, and with a quota the client's next run would reserve the
 * same space: it ends that session. True: wait for its end. */
static bool waits_for_abandoned(struct server_session *s)
{
	struct server_session *other;
	bool waits = false;

	if (s->request.auth.quota_bytes == 0)
		return false;
	LIST_EACH(&s->set->list, other, struct server_session, in_list) {
		if (other == s || other->gone || other->session == NULL || !is_same_upload(other, s))
			continue;
		if (session_is_abandoned(other->session)) {
			log_at(log_of(s), LOG_INFO, "server", "event=taken-over client=%s from=%s by=%s",
			    s->client, other->address, s->address);
			other->superseded = true;
			session_yield(other->session);
		}
		waits |= other->superseded;
	}
	return waits;
}

static void find_paths(struct server_session *s)
{
	if (!(s->waits = waits_for_abandoned(s)))
		request_find(&s->request, on_found);
}

void server_session_admit(struct server_session *s)
{
	char shown[TEXT_NAME_BYTES];

	memory_account_admit(s->memory, true);
	log_at(log_of(s), LOG_INFO, "server", "event=open from=%s client=%s name=%s role=%s path=\"%s\" "
	    "streams=%u cipher=%s", s->address, s->client, s->request.auth.name,
	    s->request.generates ? "generate" : s->request.measures ? "discard" : s->request.sends ? "send" : "receive",
	    text_escape_quoted(shown, sizeof shown, request_first(&s->request)), s->request.n_granted,
	    ptcp_cipher_name(s->request.cipher));
	if (s->request.measures)
		session_accept(s->session, s->request.n_granted, s->request.cipher, false);
	else
		find_paths(s);
}

static void on_open(void *arg, struct session *sess, const struct wire_open *o)
{
	struct server_session *s = arg;
	struct ptcp_err why;

	s->session = sess;
	if (take(s, o, &why) < 0) {
		server_session_refuse(s, &why);
		return;
	}
	s->opened = true;
	server_session_wait(s, o->wait_ms);
}

/* ---- Running sessions ---- */

static void on_running(void *arg, struct session *sess)
{
	struct server_session *s = arg;
	struct ptcp_err why;

	s->set->n_run++;
	if (request_begin(&s->request, sess, &why) < 0)
		engine_fail(session_engine(sess), &why);
}

static void on_warning(void *arg, const char *path, const char *text)
{
	struct server_session *s = arg;
	char shown[TEXT_NAME_BYTES], quoted[2048];

	log_at(log_of(s), LOG_INFO, "server", "event=warning client=%s path=\"%s\" text=\"%s\"",
	    s->client, text_escape_quoted(shown, sizeof shown, path != NULL ? path : ""),
	    text_escape_quoted(quoted, sizeof quoted, text));
}

static void on_file(void *arg, const struct session_file *f)
{
	struct server_session *s = arg;
	char shown[TEXT_NAME_BYTES];

	if (f->status == PTCP_FILE_VANISHED)
		on_warning(s, f->path, f->why->msg);
	if (f->status != PTCP_FILE_FAILED || s->failures > LOGGED_FAILURES)
		return;
	if (s->failures++ == LOGGED_FAILURES)
		log_at(log_of(s), LOG_WARN, "server", "event=files-failed client=%s why=\"more than %u have failed; event=end "
		    "counts all\"", s->client, LOGGED_FAILURES);
	else
		log_at(log_of(s), LOG_WARN, "server", "event=file-failed client=%s path=\"%s\" why=\"%s\"",
		    s->client, text_escape_quoted(shown, sizeof shown, f->path), f->why->msg);
}

static void on_leftovers(void *arg, const struct wire_leftovers *f)
{
	struct server_session *s = arg;

	log_at(log_of(s), LOG_INFO, "server", "event=leftovers client=%s files=%llu bytes=%llu", s->client,
	    (unsigned long long)f->files, (unsigned long long)f->bytes);
}

static void on_streams(void *arg, unsigned from, unsigned to, const char *why)
{
	struct server_session *s = arg;

	log_at(log_of(s), LOG_DEBUG, "server", "event=streams client=%s from=%u to=%u why=\"%s\"",
	    s->client, from, to, why);
}

static void count(const struct server_session *s, struct session *sess, struct ptcp_server_stats *st)
{
	struct ptcp_progress g = session_progress(sess);

	if (s->request.sends) {
		st->sent_bytes += g.wire_bytes;
		st->sent_files += g.files;
	} else {
		st->received_bytes += g.wire_bytes;
		st->received_files += g.files;
	}
	st->failed_files += g.failed;
	st->retransmits += session_retransmits(sess);
}

void server_session_add_stats(struct server_session_set *t, struct ptcp_server_stats *st)
{
	struct server_session *s;

	LIST_EACH(&t->list, s, struct server_session, in_list) {
		if (s->gone || s->session == NULL)
			continue;
		count(s, s->session, st);
		st->waiting_now += s->place.state == QUEUE_WAITING;
		st->sessions_now += s->place.state == QUEUE_ADMITTED;
		st->streams_now += session_progress(s->session).streams;
	}
}

static void find_waiting(struct server_session_set *t)
{
	struct server_session *s;

	LIST_EACH(&t->list, s, struct server_session, in_list)
		if (s->waits && !s->gone && !session_over(s->session))
			find_paths(s);
}

static void record(const struct server_session *s, const struct ptcp_progress *g, const struct ptcp_err *why)
{
	const struct request *q = &s->request;
	struct ptcp_server_record r = { .work = !s->opened ? "none" : q->measures || q->generates ? "measure" :
		q->sends ? "send" : "receive", .client = s->client, .name = q->auth.name, .address = s->address,
		.third = "", .path = request_first(q), .files = g->files, .bytes = g->file_bytes, .failed = g->failed,
		.seconds = (double)mono_diff_ns(mono_now(), s->since) / 1e9, .why = "done" };

	record_end(&s->set->context->log, s->set->o, &r, why);
}

static void on_gone(void *arg, struct session *sess, const struct ptcp_err *why)
{
	struct server_session *s = arg;
	struct ptcp_progress g = session_progress(sess);

	s->session = sess;
	record(s, &g, why);
	count(s, sess, &s->set->past);
	s->set->past.sessions_failed += why != NULL;
	s->set->past.quota_ends += why != NULL && why->sys == EDQUOT && !why->from_peer;
	s->gone = true;
	if (s->granted && why == NULL)
		grants_spend(&s->set->grants, &s->grant);
	if (s->superseded)
		find_waiting(s->set);
	server_session_free(s);
}

/* Data of a killed client, and the end of the connection, arrive within `sure_ns`. A client that is silent for `silence_ns`
 * is taken for dead. */
static const uint64_t sure_ns = NS_PER_S, silence_ns = 4 * NS_PER_S;

/* Time of the client's last sign of life. */
static struct mono last_sign(struct server_session *s, struct mono now)
{
	uint64_t bytes = session_moved_bytes(s->session);
	struct mono input = engine_last_input(session_engine(s->session));

	if (bytes > s->moved_bytes && s->moved_bytes > 0)
		s->lived_at = now;
	s->moved_bytes = bytes;
	return input.ns > s->lived_at.ns ? input : s->lived_at;
}

/* The holder `s` of a part since `since`. */
static enum part_holder holder_of(struct server_session *s, struct mono since, bool alone)
{
	struct mono now = mono_now(), sign = last_sign(s, now);
	uint64_t held_ns = mono_diff_ns(now, since);

	if (session_is_abandoned(s->session) || !alone)
		return PART_OF_OTHERS;
	if (held_ns > sure_ns && sign.ns > mono_add_ns(since, sure_ns).ns)
		return PART_OF_LIVING;
	return held_ns < silence_ns ? PART_RELEASED : PART_OF_OTHERS;
}

/* A client with a lost connection starts a new session while the old session still locks part files. A newer session
 * ends an older session of the same, dead client, and an older session waits, because the newer session may end soon.
 * While both runs live, each session receives the file, and the last to complete gives the name. */
static enum part_holder on_contended(void *arg, struct session *sess, uint64_t dev, uint64_t ino, struct mono since,
    bool alone)
{
	struct server_session *s = arg, *other;
	bool older = true, waits = false;
	enum part_holder holder;

	(void)sess;
	s->lived_at = mono_now(); /* two sessions may wait for each other without data */
	LIST_EACH(&s->set->list, other, struct server_session, in_list) {
		older &= other != s;
		if (other == s || other->gone || other->session == NULL ||
		    strcmp(other->client, s->client) != 0)
			continue;
		waits |= session_over(other->session) || (!other->request.sends && !other->request.measures);
		if (session_over(other->session) || !session_has_locked(other->session, dev, ino))
			continue;
		holder = holder_of(other, since, alone);
		if (holder != PART_OF_OTHERS || !older)
			return holder != PART_OF_OTHERS ? holder : PART_RELEASED;
		log_at(log_of(s), LOG_INFO, "server", "event=taken-over client=%s from=%s by=%s",
		    s->client, other->address, s->address);
		session_yield(other->session);
		return PART_RELEASED;
	}
	return waits ? PART_RELEASED : PART_OF_OTHERS;
}

static const struct session_ops session_ops = {
	.open = on_open, .running = on_running, .file = on_file, .warning = on_warning, .leftovers = on_leftovers,
	.streams = on_streams, .contended = on_contended, .gone = on_gone
};

/* A grant permits a single session at a time: an older session has lost the connection. */
static void end_granted(struct server_session_set *t, const struct wire_grant *g)
{
	struct server_session *s;

	LIST_EACH(&t->list, s, struct server_session, in_list)
		if (s->granted && !s->gone && memcmp(s->grant.nonce, g->nonce, sizeof g->nonce) == 0 &&
		    memcmp(s->grant.issuer, g->issuer, sizeof g->issuer) == 0)
			session_yield(s->session);
}

static int take_grant(struct server_session *s, const struct server_session_link *l, struct ptcp_err *e)
{
	const struct wire_grant *g = l->grant;

	s->granted = true;
	s->grant = *g;
	if ((s->path = malloc(g->path.n + 1)) == NULL)
		return err_nomem(e);
	s->grant.path.p = (const uint8_t *)span_copy(s->path, g->path);
	s->grant.certificates = (struct span){ NULL, 0 };
	strcpy(s->client, l->issuer);
	end_granted(s->set, g);
	return 0;
}

int server_session_new(struct server_session_set *t, const struct server_session_link *l,
    const struct authorization *a, struct ptcp_err *e)
{
	struct session_opts o = {
		.context = t->context, .connects = l->connects, .one_channel = l->one_channel,
		.address = l->host != NULL ? l->host : "", .port = l->port,
		.max_streams = (uint16_t)t->o->max_streams,
		.timeout_ns = (uint64_t)(t->o->timeout_s * 1e9), .linger_ns = (uint64_t)(t->o->max_linger_s * 1e9),
		.direct_io = t->o->direct_io,
		.stripe = (uint32_t)(t->o->stripe_bytes / WIRE_STRIPE_BYTES), .ops = &session_ops
	};
	struct server_session *s = calloc(1, sizeof *s);
	struct queue_limits limit = server_session_limits(t);
	struct chan *control = l->control;
	int r;

	if (s == NULL) {
		chan_free(control);
		return err_nomem(e);
	}
	o.sock.timeout_ns = o.timeout_ns;
	s->set = t;
	s->request = (struct request){ .context = t->context, .root = t->root, .roots = t->roots,
		.own_dirs = t->own_dirs, .quotas = t->quotas, .o = t->o, .own = t->ephemeral, .auth = *a, .client = s->client };
	s->from = l->from;
	s->since = mono_now();
	strncpy(s->address, l->address, sizeof s->address - 1);
	strcpy(s->client, chan_fingerprint(control));
	o.arg = s;
	if ((l->grant != NULL && (r = take_grant(s, l, e)) < 0) ||
	    (r = queue_enter(&t->queue, &s->place, s->client, &limit, e)) < 0 ||
	    (r = memory_account_new(&s->memory, t->memory, s->client, e)) < 0 ||
	    (r = memory_charge(s->memory, sizeof *s + (l->grant != NULL ? l->grant->path.n + 1 : 0), e)) < 0)
		goto out;
	s->request.memory = s->memory;
	o.control = control;
	control = NULL; /* session_new() takes it */
	o.memory = s->memory;
	if ((r = session_new(&s->session, &o, e)) < 0)
		goto out;
	list_append(&t->list, &s->in_list);
	t->n++;
	t->past.sessions++;
	return 0;
out:
	chan_free(control);
	queue_leave(&t->queue, &s->place, &limit);
	memory_account_free(s->memory);
	free(s->path);
	free(s);
	return r;
}

static struct server_session *find(struct server_session_set *t, const uint8_t *id)
{
	struct server_session *s;

	LIST_EACH(&t->list, s, struct server_session, in_list)
		if (!s->gone && s->session != NULL && memcmp(session_id(s->session), id, WIRE_SESSION_BYTES) == 0)
			return s;
	return NULL;
}

struct session *server_session_find(struct server_session_set *t, const uint8_t id[WIRE_SESSION_BYTES])
{
	struct server_session *s = find(t, id);

	return s != NULL ? s->session : NULL;
}

enum ptcp_cipher server_session_cipher(struct server_session_set *t, const uint8_t id[WIRE_SESSION_BYTES])
{
	return find(t, id)->request.cipher;
}

/* Whether the present rights of the client permit the session. */
static bool is_permitted(const struct server_session *s, const struct authorization *now)
{
	return now->write_once == s->request.auth.write_once && authorization_same_place(now, &s->request.auth) &&
	    ((s->request.sends && !s->request.removes) || s->request.measures || !now->read_only || s->request.auth.read_only);
}

void server_session_reauthorize(struct server_session_set *t, trust_admits_fn *admits, void *arg)
{
	struct authorization now;
	struct server_session *s;
	struct ptcp_err why;

	err_set(&why, PTCP_EREFUSED, "this client: no longer authorized (ask the server's administrator)");
	LIST_EACH(&t->list, s, struct server_session, in_list) {
		if (s->session == NULL || session_over(s->session))
			continue;
		if (admits(arg, s->client, &s->request.auth.proof, &now) && is_permitted(s, &now)) {
			request_change_quota(&s->request, now.quota_bytes);
			continue;
		}
		log_at(log_of(s), LOG_WARN, "server", "event=revoked from=%s client=%s", s->address, s->client);
		session_cancel(s->session, &why);
	}
}

void server_session_cancel_all(struct server_session_set *t, const struct ptcp_err *why)
{
	struct server_session *s;

	LIST_EACH(&t->list, s, struct server_session, in_list)
		session_cancel(s->session, why);
}
