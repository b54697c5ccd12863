#include "lib/served.h"

#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/text.h"
#include "lib/asked.h"
#include "lib/why.h"

struct served {
	struct list in_list;
	struct served_set *set;
	struct party *party;
	char address[SOCK_TEXT_BYTES];
	struct source *from;
	struct mono since;
	bool gone;
	unsigned failures;             /* that its files met, as far as they are logged */
	struct asked asked;
	char client[PTCP_FINGERPRINT_BYTES]; /* whose session it is */
	bool granted;                  /* by it, to the peer: */
	struct wire_grant grant;
	char *path;                    /* of the grant */
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

	if (s->asked.finding)
		return; /* when the I/O thread is done */
	asked_fini(&s->asked);
	free(s->path);
	party_free(s->party);
	list_remove(&s->in_list);
	set->n--;
	free(s);
	set->gone(set->arg, from);
}

static struct log *log_of(struct served *s) { return &s->set->host->log; }

/* ---- Judging what is asked for ---- */

static void on_found(struct asked *a, const struct ptcp_err *why)
{
	struct served *s = CONTAINER_OF(a, struct served, asked);

	if (s->gone)
		served_free(s);
	else if (why != NULL)
		party_cancel(s->party, why);
	else
		party_accept(s->party, a->streams, a->cipher);
}

/* Just what the grant says. */
static int check_grant(const struct served *s, const struct wire_open *o, struct ptcp_err *e)
{
	static const uint8_t role[] = { [WIRE_GRANT_READ] = WIRE_YOU_SEND, [WIRE_GRANT_WRITE] = WIRE_YOU_RECEIVE,
		[WIRE_GRANT_PROBE] = WIRE_YOU_DROP };
	struct span rest = o->paths, path;
	uint8_t flags;

	if (o->role != role[s->grant.mode])
		return err_set(e, PTCP_EREFUSED, "the grant: it is not for that (it lets a host %s)",
		    s->grant.mode == WIRE_GRANT_READ ? "read" : s->grant.mode == WIRE_GRANT_WRITE ? "write" : "measure");
	while (wire_path_next(&rest, &flags, &path))
		if ((flags & (WIRE_PATH_EXCLUDE | WIRE_PATH_INCLUDE)) == 0 && (path.n != s->grant.path.n ||
		    (path.n > 0 && memcmp(path.p, s->path, path.n) != 0)))
			return err_set(e, PTCP_EREFUSED, "the grant: it is for another path");
	return 0;
}

static int take(struct served *s, const struct wire_open *o, struct ptcp_err *e)
{
	int r;

	if (s->granted && (r = check_grant(s, o, e)) < 0)
		return r;
	if (s->set->one_time && s->set->n_run > 0)
		return err_set(e, PTCP_EREFUSED, "this server was for one session, which it has had (start another)");
	return asked_take(&s->asked, o, e);
}

static void on_open(void *arg, struct party *p, const struct wire_open *o)
{
	struct served *s = arg;
	char shown[TEXT_NAME_BYTES];
	struct ptcp_err why;

	s->party = p;
	if (take(s, o, &why) < 0) {
		log_at(log_of(s), LOG_WARN, "server", "event=refused from=%s client=%s why=\"%s\"", s->address,
		    s->client, why.msg);
		s->set->past.refused++;
		session_fail(party_session(p), &why);
		return;
	}
	log_at(log_of(s), LOG_INFO, "server", "event=open from=%s client=%s name=%s role=%s path=\"%s\" "
	    "streams=%u cipher=%s", s->address, s->client, s->asked.auth.name,
	    s->asked.floods ? "flood" : s->asked.measures ? "drop" : s->asked.sends ? "send" : "receive",
	    text_escape_quoted(shown, sizeof shown, asked_first(&s->asked)), s->asked.streams,
	    ptcp_cipher_name(s->asked.cipher));
	if (s->asked.measures)
		party_accept(p, s->asked.streams, s->asked.cipher);
	else
		asked_find(&s->asked, on_found);
}

/* ---- At work ---- */

static void on_running(void *arg, struct party *p)
{
	struct served *s = arg;
	struct ptcp_err why;

	s->set->n_run++;
	if (asked_begin(&s->asked, p, &why) < 0)
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
		    "end of the session counts them\"", s->client, LOGGED_FAILURES);
	else
		log_at(log_of(s), LOG_WARN, "server", "event=file-failed client=%s path=\"%s\" why=\"%s\"",
		    s->client, text_escape_quoted(shown, sizeof shown, path), why->msg);
}

static void on_warning(void *arg, const char *path, const char *text)
{
	struct served *s = arg;
	char shown[TEXT_NAME_BYTES];

	log_at(log_of(s), LOG_INFO, "server", "event=warning client=%s path=\"%s\" text=\"%s\"",
	    s->client, text_escape_quoted(shown, sizeof shown, path != NULL ? path : ""), text);
}

static void on_streams(void *arg, unsigned from, unsigned to, const char *why)
{
	struct served *s = arg;

	log_at(log_of(s), LOG_DEBUG, "server", "event=streams client=%s from=%u to=%u why=\"%s\"",
	    s->client, from, to, why);
}

static void count(const struct served *s, struct party *p, struct ptcp_server_stats *st)
{
	struct party_progress g = party_progress(p);

	if (s->asked.sends) {
		st->sent_bytes += g.wire_bytes;
		st->sent_files += g.files;
	} else {
		st->received_bytes += g.wire_bytes;
		st->received_files += g.files;
	}
	st->failed_files += g.failed;
	st->retransmits += party_retransmits(p);
}

void served_add_stats(struct served_set *t, struct ptcp_server_stats *st)
{
	struct list *l;

	for (l = t->list.next; l != &t->list; l = l->next) {
		struct served *s = CONTAINER_OF(l, struct served, in_list);

		if (s->gone || s->party == NULL)
			continue;
		count(s, s->party, st);
		st->sessions_now++;
		st->streams_now += party_progress(s->party).streams;
	}
}

static void on_gone(void *arg, struct party *p, const struct ptcp_err *why)
{
	struct served *s = arg;
	struct party_progress g = party_progress(p);

	s->party = p;
	log_at(log_of(s), why != NULL ? LOG_WARN : LOG_INFO, "server",
	    "event=end client=%s from=%s files=%llu bytes=%llu failed=%llu seconds=%.3f why=\"%s\"",
	    s->client, s->address, (unsigned long long)g.files, (unsigned long long)g.file_bytes,
	    (unsigned long long)g.failed, (double)mono_diff_ns(mono_now(), s->since) / 1e9,
	    why != NULL ? why->msg : "done");
	count(s, p, &s->set->past);
	s->set->past.sessions_failed += why != NULL;
	s->gone = true;
	if (s->granted && why == NULL)
		grants_spend(&s->set->grants, &s->grant);
	served_free(s);
}

/* A client that has lost its connection comes again: what its old session holds is its own. So a newer one ends an
 * older one, while an older one waits: what is in its way may be done in a moment. */
static bool on_contended(void *arg, struct party *p, uint64_t dev, uint64_t ino)
{
	struct served *s = arg, *other;
	bool older = true, waits = false;
	struct list *l;

	(void)p;
	for (l = s->set->list.next; l != &s->set->list; l = l->next) {
		other = CONTAINER_OF(l, struct served, in_list);
		older &= other != s;
		if (other == s || other->gone || other->party == NULL ||
		    strcmp(other->client, s->client) != 0)
			continue;
		waits |= party_over(other->party) || (!other->asked.sends && !other->asked.measures);
		if (!older || party_over(other->party) || !party_holds(other->party, dev, ino))
			continue;
		log_at(log_of(s), LOG_INFO, "server", "event=taken-over client=%s from=%s by=%s",
		    s->client, other->address, s->address);
		party_yield(other->party);
		return true;
	}
	return waits;
}

static const struct party_ops party_ops = {
	.open = on_open, .running = on_running, .file = on_file, .warning = on_warning,
	.streams = on_streams, .contended = on_contended, .gone = on_gone
};

/* One session at a time is what a grant is good for: the older one has lost its connection. */
static void end_granted(struct served_set *t, const struct wire_grant *g)
{
	struct list *l, *next;
	struct served *s;

	for (l = t->list.next; l != &t->list; l = next) {
		next = l->next;
		s = CONTAINER_OF(l, struct served, in_list);
		if (s->granted && !s->gone && memcmp(s->grant.nonce, g->nonce, sizeof g->nonce) == 0 &&
		    memcmp(s->grant.issuer, g->issuer, sizeof g->issuer) == 0)
			party_yield(s->party);
	}
}

static int take_grant(struct served *s, const struct served_link *l, struct ptcp_err *e)
{
	const struct wire_grant *g = l->grant;

	s->granted = true;
	s->grant = *g;
	if ((s->path = malloc(g->path.n + 1)) == NULL)
		return err_nomem(e);
	memcpy(s->path, g->path.n > 0 ? (const char *)g->path.p : "", g->path.n);
	s->path[g->path.n] = '\0';
	s->grant.path.p = (const uint8_t *)s->path;
	strcpy(s->client, l->issuer);
	end_granted(s->set, g);
	return 0;
}

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
	s->asked = (struct asked){ .host = t->host, .root = t->root, .roots = t->roots,
		.o = t->o, .own = t->one_time, .auth = *a };
	s->from = l->from;
	s->since = mono_now();
	strncpy(s->address, l->address, sizeof s->address - 1);
	strcpy(s->client, chan_fingerprint(l->control));
	o.arg = s;
	if (l->grant != NULL && (r = take_grant(s, l, e)) < 0) {
		chan_free(l->control);
		free(s);
		return r;
	}
	if ((r = party_new(&s->party, &o, e)) < 0) {
		free(s->path);
		free(s);
		return r;
	}
	list_append(&t->list, &s->in_list);
	t->n++;
	t->past.sessions++;
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
	return find(t, id)->asked.cipher;
}

unsigned served_count(const struct served_set *t, const char *fingerprint)
{
	const struct list *l;
	unsigned n = 0;

	for (l = t->list.next; l != &t->list; l = l->next) {
		const struct served *s = CONTAINER_OF(l, struct served, in_list);

		n += s->party != NULL && strcmp(s->client, fingerprint) == 0;
	}
	return n;
}

/* Whether what it does is still its client's to do. */
static bool may_go_on(const struct served *s, const struct authorization *now)
{
	return strcmp(now->root, s->asked.auth.root) == 0 &&
	    (s->asked.sends || s->asked.measures || !now->read_only || s->asked.auth.read_only);
}

void served_judge_again(struct served_set *t, trust_admits_fn *admits, void *arg)
{
	struct authorization now;
	struct ptcp_err why;
	struct list *l, *next;

	err_set(&why, PTCP_EREFUSED, "this client: not authorized there any more (ask the administrator)");
	for (l = t->list.next; l != &t->list; l = next) {
		struct served *s = CONTAINER_OF(l, struct served, in_list);

		next = l->next;
		if (s->party == NULL || party_over(s->party) ||
		    (admits(arg, s->client, &now) && may_go_on(s, &now)))
			continue;
		log_at(log_of(s), LOG_WARN, "server", "event=revoked from=%s client=%s", s->address, s->client);
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
