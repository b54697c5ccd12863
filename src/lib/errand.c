#include "lib/errand.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/err.h"
#include "core/text.h"
#include "core/units.h"
#include "lib/asked.h"
#include "lib/caller.h"
#include "lib/grants.h"
#include "net/dial.h"
#include "net/sign.h"
#include "store/fds.h"

#define TELL_NS (200 * NS_PER_MS)
#define KEPT_MOST 64
#define KEPT_NS (24 * 3600 * NS_PER_S)

struct errand {
	struct list in_list;
	struct errand_set *set;
	struct caller *caller;         /* NULL: gone */
	uint64_t id;
	char client[PTCP_FINGERPRINT_BYTES], address[SOCK_TEXT_BYTES];
	bool detached, files;          /* as asked for */
	char host[WIRE_HOST_MAX + 1], congestion[WIRE_CONGESTION_MAX + 1];
	unsigned port;
	struct sock_opts sock;
	struct wire_open open;         /* for the third host; `path` is its only one */
	uint8_t *path;
	size_t path_bytes;
	uint8_t *grant;                /* the frame */
	size_t grant_bytes;
	char audience[PTCP_FINGERPRINT_BYTES];
	struct asked asked;
	unsigned failures;             /* of its files */
	char *from;                    /* the first of its sources */
	struct dial *dial;
	struct chan *chan;
	char peer[SOCK_TEXT_BYTES];
	struct party *party;
	struct timer *timer;
	struct mono asked_at, deadline, began, ended;
	bool over;
	struct party_progress last;
	struct ptcp_err why;           /* if its code is not 0 */
};

void errand_set_init(struct errand_set *t, struct host *host, const char *root,
    const struct ptcp_server_opts *o, const struct nexthops *nexthops, void (*gone)(void *arg), void *arg)
{
	*t = (struct errand_set){ .host = host, .root = root, .o = o, .nexthops = nexthops, .gone = gone, .arg = arg };
	list_init(&t->errands);
	list_init(&t->callers);
}

bool errand_set_idle(const struct errand_set *t)
{
	return t->n_running == 0 && t->n_callers == 0;
}

static void errand_free(struct errand *r)
{
	list_remove(&r->in_list);
	asked_fini(&r->asked);
	chan_free(r->chan);
	timer_free(r->timer);
	free(r->from);
	free(r->path);
	free(r->grant);
	free(r);
}

void errand_set_fini(struct errand_set *t)
{
	struct list *l, *next;

	for (l = t->errands.next; l != NULL && l != &t->errands; l = next) {
		next = l->next;
		errand_free(CONTAINER_OF(l, struct errand, in_list));
	}
}

static struct log *log_of(struct errand *r) { return &r->set->host->log; }

/* ---- Telling ---- */

static void progress_of(const struct errand *r, struct wire_progress *out)
{
	const struct party_progress *g = &r->last;

	*out = (struct wire_progress){
		.bytes = g->bytes, .total_bytes = g->total_bytes, .files = g->files, .total_files = g->total_files,
		.failed = g->failed, .wire_bytes = g->wire_bytes, .resumed_bytes = g->resumed_bytes,
		.file_bytes = g->file_bytes, .streams = (uint16_t)g->streams,
		.streams_most = (uint16_t)g->streams_most, .total_known = g->total_known,
		.activity = g->activity == PTCP_SYNCING ? WIRE_SYNCING :
		    g->activity == PTCP_VERIFYING ? WIRE_VERIFYING : WIRE_IDLE
	};
}

static void tell_progress(struct errand *r)
{
	struct wire_progress f;

	if (r->party != NULL)
		r->last = party_progress(r->party);
	if (r->caller == NULL)
		return;
	progress_of(r, &f);
	OUTBOX_PUT(caller_outbox(r->caller), progress, PROGRESS, &f);
	caller_flush(r->caller);
}

static struct span cut(const char *text, size_t most)
{
	return (struct span){ (const uint8_t *)text, text != NULL ? strnlen(text, most) : 0 };
}

static void tell_event(struct errand *r, struct wire_event *f, const char *path, const char *text)
{
	f->path = cut(path, WIRE_PATH_MAX);
	f->text = cut(text, WIRE_TEXT_MAX);
	if (r->caller == NULL)
		return;
	OUTBOX_PUT(caller_outbox(r->caller), event, EVENT, f);
	caller_flush(r->caller);
}

/* ---- The end ---- */

static void forget_old(struct errand_set *t)
{
	struct list *l, *next;
	struct errand *r;

	for (l = t->errands.next; l != &t->errands; l = next) {
		next = l->next;
		r = CONTAINER_OF(l, struct errand, in_list);
		if (r->over && (t->n_kept > KEPT_MOST || mono_diff_ns(mono_now(), r->ended) > KEPT_NS)) {
			t->n_kept--;
			errand_free(r);
		}
	}
}

/* It is done with all but what is told of it later. */
static void keep(struct errand *r)
{
	timer_free(r->timer);
	r->timer = NULL;
	chan_free(r->chan);
	r->chan = NULL;
	asked_fini(&r->asked);
	memset(&r->asked, 0, sizeof r->asked);
	r->set->n_kept++;
}

/* `why` NULL: done. Frees it unless it is to be remembered. */
static void over(struct errand *r, const struct ptcp_err *why)
{
	struct errand_set *t = r->set;
	struct wire_end end;

	r->over = true;
	r->ended = mono_now();
	if (why != NULL)
		r->why = *why;
	tell_progress(r);
	log_at(log_of(r), why != NULL ? LOG_WARN : LOG_INFO, "server",
	    "event=errand-end client=%s files=%llu bytes=%llu failed=%llu seconds=%.3f why=\"%s\"", r->client,
	    (unsigned long long)r->last.files, (unsigned long long)r->last.file_bytes,
	    (unsigned long long)r->last.failed, (double)mono_diff_ns(r->ended, r->asked_at) / 1e9,
	    why != NULL ? r->why.msg : "done");
	end = (struct wire_end){ r->last.files, r->last.failed };
	if (r->caller != NULL)
		caller_over(r->caller, why != NULL ? &r->why : NULL, &end);
	r->caller = NULL;
	callers_tell(t, r);
	t->n_running--;
	if (r->detached)
		keep(r);
	else
		errand_free(r);
	t->gone(t->arg);
}

void errand_cancel(struct errand *r, const struct ptcp_err *why)
{
	if (r->over)
		return;
	if (r->party != NULL) {
		party_cancel(r->party, why);
		return;
	}
	dial_cancel(r->dial);
	r->dial = NULL;
	chan_free(r->chan);
	r->chan = NULL;
	if (r->asked.finding)
		r->why = *why; /* over when the I/O thread is done */
	else
		over(r, why);
}

void errand_leave(struct errand *r)
{
	struct ptcp_err why;

	r->caller = NULL;
	err_set(&why, PTCP_ECANCELED, "transfer: interrupted, as who has asked for it has gone (the same command goes on "
	    "from here)");
	if (!r->detached)
		errand_cancel(r, &why);
}

void errand_set_cancel(struct errand_set *t, const struct ptcp_err *why)
{
	struct list *l, *next;

	callers_end(t);
	for (l = t->errands.next; l != &t->errands; l = next) {
		next = l->next;
		errand_cancel(CONTAINER_OF(l, struct errand, in_list), why);
	}
}

void errand_judge_again(struct errand_set *t,
    bool (*admits)(void *arg, const char *fingerprint, struct authorization *a), void *arg)
{
	struct authorization now;
	struct list *l, *next;
	struct ptcp_err why;
	struct errand *r;

	callers_judge_again(t, admits, arg);
	err_set(&why, PTCP_EREFUSED, "this client: may not have that done there any more (ask the administrator)");
	for (l = t->errands.next; l != &t->errands; l = next) {
		next = l->next;
		r = CONTAINER_OF(l, struct errand, in_list);
		if (!r->over && !(admits(arg, r->client, &now) && !now.no_relay &&
		    strcmp(now.root, r->asked.auth.root) == 0))
			errand_cancel(r, &why);
	}
}

/* ---- The session with the third host ---- */

static void on_running(void *arg, struct party *p)
{
	struct errand *r = arg;
	struct wire_started f = { .id = r->id, .peer = cut(r->peer, WIRE_HOST_MAX) };
	struct ptcp_err why;

	r->party = p;
	r->began = mono_now();
	if (r->caller != NULL) {
		OUTBOX_PUT(caller_outbox(r->caller), started, STARTED, &f);
		caller_flush(r->caller);
	}
	if (asked_begin(&r->asked, p, &why) < 0)
		session_fail(party_session(p), &why);
}

static void on_file(void *arg, const char *path, enum ptcp_file_status status, const struct ptcp_err *why)
{
	struct errand *r = arg;
	struct wire_event f = { .kind = status == PTCP_FILE_DONE ? WIRE_EVENT_DONE :
	    status == PTCP_FILE_SKIPPED ? WIRE_EVENT_SKIPPED : WIRE_EVENT_FAILED };
	char shown[TEXT_NAME_BYTES];

	if (status == PTCP_FILE_FAILED && r->failures++ < LOGGED_FAILURES) /* the end counts them all */
		log_at(log_of(r), LOG_WARN, "server", "event=file-failed client=%s path=\"%s\" why=\"%s\"", r->client,
		    text_escape_quoted(shown, sizeof shown, path), why->msg);
	if (status != PTCP_FILE_FAILED && !r->files)
		return;
	if (why != NULL)
		f.code = (uint16_t)-why->code;
	tell_event(r, &f, path, why != NULL ? why->msg : NULL);
}

static void on_warning(void *arg, const char *path, const char *text)
{
	struct wire_event f = { .kind = WIRE_EVENT_WARNING };

	tell_event(arg, &f, path, text);
}

static void on_streams(void *arg, unsigned from, unsigned to, const char *why)
{
	struct wire_event f = { .kind = WIRE_EVENT_STREAMS, .from = (uint16_t)from, .to = (uint16_t)to };

	tell_event(arg, &f, NULL, why);
}

static void on_gone(void *arg, struct party *p, const struct ptcp_err *why)
{
	struct errand *r = arg;
	struct ptcp_err copy;

	if (why != NULL)
		copy = *why; /* it goes with the party */
	r->last = party_progress(p);
	party_free(p);
	r->party = NULL;
	over(r, why != NULL ? &copy : NULL);
}

static const struct party_ops party_ops = {
	.running = on_running, .file = on_file, .warning = on_warning, .streams = on_streams, .gone = on_gone
};

static int start_party(struct errand *r, struct ptcp_err *e)
{
	char address[SOCK_HOST_BYTES];
	struct party_opts o = {
		.host = r->set->host, .control = r->chan, .connects = true, .address = address, .sock = r->sock,
		.open = &r->open, .max_streams = PTCP_STREAMS_MAX, .timeout_ns = r->sock.timeout_ns,
		.ops = &party_ops, .arg = r
	};
	int err;

	if ((err = sock_split(r->peer, address, &o.port, r->port, e)) < 0)
		return err;
	r->chan = NULL;
	return party_new(&r->party, &o, e);
}

/* ---- The way to it ---- */

static void on_opened(void *arg)
{
	struct errand *r = arg;
	struct ptcp_err why;

	if (strcmp(chan_fingerprint(r->chan), r->audience) != 0) {
		err_set(&why, PTCP_EREFUSED, "%s:%u: the host's fingerprint is %s there, not %s as the grant says (somebody may "
		    "be in between; if its key was replaced, tell the client)", r->host, r->port,
		    chan_fingerprint(r->chan), r->audience);
		over(r, &why);
		return;
	}
	r->deadline = MONO_NEVER;
	chan_write(r->chan, r->grant, r->grant_bytes);
	if (start_party(r, &why) < 0)
		over(r, &why);
}

static void on_nothing(void *arg)
{
	(void)arg;
}

static void on_closed(void *arg, const struct ptcp_err *cause)
{
	struct errand *r = arg;
	struct ptcp_err why;

	err_set(&why, PTCP_ECONNECT, "connecting from there to %s:%u: %s (is it a ptcp daemon, of this version?)", r->host,
	    r->port, cause != NULL ? cause->msg : "it closed the connection");
	over(r, &why);
}

static const struct chan_ops chan_ops = { on_opened, on_nothing, on_nothing, on_closed };

static int not_there(const struct errand *r, struct ptcp_err *e)
{
	char where[SOCK_HOST_BYTES + 10];

	sock_join(where, sizeof where, r->host, r->port);
	return err_set(e, PTCP_EREFUSED, "connecting to %s for a client: that daemon does not (have its administrator start "
	    "it with --relay-to %s)", where, where);
}

static void on_dialled(void *arg, int fd, const char *address, const struct ptcp_err *cause)
{
	struct errand *r = arg;
	struct chan_opts o = { .fd = fd, .alpn = ALPN_GRANT, .ops = &chan_ops, .arg = r };
	struct ptcp_err why;

	r->dial = NULL;
	if (fd < 0) {
		why = *cause;
		if (why.code == PTCP_EREFUSED)
			not_there(r, &why);
		over(r, &why);
		return;
	}
	strcpy(r->peer, address);
	r->deadline = mono_add_ns(mono_now(), r->sock.timeout_ns);
	if (chan_new(&r->chan, r->set->host->control, r->set->host->client, &o, &why) < 0)
		over(r, &why);
}

static bool permits(void *arg, const struct sockaddr *sa)
{
	const struct errand *r = arg;

	return nexthops_permit(r->set->nexthops, r->host, r->port, sa);
}

static void on_found(struct asked *a, const struct ptcp_err *cause)
{
	struct errand *r = CONTAINER_OF(a, struct errand, asked);
	struct ptcp_err why;

	if (r->why.code != 0)
		cause = &r->why; /* cancelled meanwhile */
	if (cause != NULL) {
		why = *cause;
		over(r, &why);
	} else if (dial_start(&r->dial, r->set->host->control, r->host, r->port, &r->sock, on_dialled, r, &why) < 0) {
		over(r, &why);
	} else {
		dial_only(r->dial, permits, r);
	}
}

static void on_timer(void *arg)
{
	struct errand *r = arg;
	struct mono now = mono_now();
	struct ptcp_err why;

	if (r->party == NULL && r->chan != NULL && now.ns >= r->deadline.ns) {
		err_set(&why, PTCP_ECONNECT, "connecting from there to %s:%u: no TLS handshake within %.3g s (is it a ptcp "
		    "daemon?)", r->host, r->port, (double)r->sock.timeout_ns / 1e9);
		over(r, &why);
		return;
	}
	timer_set(r->timer, mono_add_ns(now, TELL_NS));
	tell_progress(r);
}

/* ---- Taking one on ---- */

static void copy(char *out, struct span s)
{
	memcpy(out, s.n > 0 ? (const char *)s.p : "", s.n);
	out[s.n] = '\0';
}

/* Under way, of this client. */
static unsigned running(const struct errand_set *t, const char *client)
{
	const struct list *l;
	unsigned n = 0;

	for (l = t->errands.next; l != &t->errands; l = l->next) {
		const struct errand *r = CONTAINER_OF(l, struct errand, in_list);

		n += !r->over && strcmp(r->client, client) == 0;
	}
	return n;
}

static int check_room(const struct errand_set *t, const char *client, struct ptcp_err *e)
{
	unsigned own = running(t, client);

	if (t->n_running >= t->o->max_sessions)
		return err_set(e, PTCP_EREFUSED, "too busy: the server does %u errands, its limit (try again later)",
		    t->n_running);
	if (own >= t->o->max_client_sessions)
		return err_set(e, PTCP_EREFUSED, "too busy: the server does %u errands for this client, its limit (try again "
		    "when one has ended)", own);
	return 0;
}

/* May it be asked for at all? */
static int check(struct errand_set *t, const struct errand_order *o, const struct errand *r, struct ptcp_err *e)
{
	const char *own = t->host->identity.fingerprint;
	char issuer[PTCP_FINGERPRINT_BYTES];
	int err;

	if ((err = check_room(t, o->client, e)) < 0)
		return err;
	if (o->open.role != WIRE_YOU_SEND || o->grant.mode != WIRE_GRANT_WRITE)
		return err_set(e, PTCP_EREFUSED, "an errand: only sending from here is one");
	if (t->nexthops == NULL)
		return not_there(r, e);
	if (o->auth->no_relay)
		return err_set(e, PTCP_EREFUSED, "connecting elsewhere for this client: not allowed there (have its "
		    "administrator authorize it without --no-relay)");
	if ((err = grant_issuer(issuer, &o->grant, e)) < 0)
		return err;
	if (strcmp(issuer, o->client) != 0 || !grant_is_for(&o->grant, own, r->audience))
		return err_set(e, PTCP_EREFUSED, "the grant: it is not from this client to this host (ask for the transfer again)");
	if (strcmp(r->audience, own) == 0)
		return err_set(e, PTCP_EREFUSED, "both hosts are the same one (copy there by other means)");
	return 0;
}

static int take(struct errand *r, const struct errand_order *o, struct ptcp_err *e)
{
	uint64_t timeout_ns = o->errand.timeout_ms * NS_PER_MS, most_ns = (uint64_t)(r->set->o->timeout_s * 1e9);
	int err;

	if ((r->grant = malloc(o->grant_frame.n)) == NULL || (r->path = malloc(o->grant.path.n + 3)) == NULL)
		return err_nomem(e);
	r->grant_bytes = o->grant_frame.n;
	memcpy(r->grant, o->grant_frame.p, r->grant_bytes);
	r->path_bytes = wire_path_encode(r->path, 0, o->grant.path);
	copy(r->congestion, o->errand.congestion);
	r->sock = (struct sock_opts){ o->errand.family, timeout_ns < most_ns ? timeout_ns : most_ns,
		r->congestion[0] != '\0' ? r->congestion : NULL };
	r->asked = (struct asked){ .host = r->set->host, .root = r->set->root,
		.roots = r->set->roots, .o = r->set->o, .auth = *o->auth };
	if ((err = asked_take(&r->asked, &o->open, e)) < 0)
		return err;
	if ((r->from = strdup(asked_first(&r->asked))) == NULL)
		return err_nomem(e);
	r->open = o->open;
	r->open.role = WIRE_YOU_RECEIVE;
	r->open.streams = (uint16_t)r->asked.streams;
	r->open.n_paths = 1;
	r->open.paths = (struct span){ r->path, r->path_bytes };
	return 0;
}

static int new_id(struct errand *r, struct ptcp_err *e)
{
	uint8_t bytes[8];
	int err = tls_random(bytes, sizeof bytes, e);

	memcpy(&r->id, bytes, sizeof r->id);
	r->id |= 1; /* never 0 */
	return err;
}

int errand_new(struct errand **out, struct errand_set *t, const struct errand_order *o, struct ptcp_err *e)
{
	struct errand *r = calloc(1, sizeof *r);
	int err;

	if (r == NULL)
		return err_nomem(e);
	forget_old(t);
	list_init(&r->in_list);
	r->set = t;
	r->caller = o->caller;
	r->asked_at = mono_now();
	r->deadline = MONO_NEVER;
	r->port = o->errand.port;
	r->detached = (o->errand.flags & WIRE_ERRAND_DETACH) != 0;
	r->files = (o->errand.flags & WIRE_ERRAND_FILES) != 0;
	copy(r->host, o->errand.host);
	strcpy(r->client, o->client);
	strncpy(r->address, o->address, sizeof r->address - 1);
	sign_digest_text(r->audience, o->grant.audience);
	if ((err = check(t, o, r, e)) < 0 || (err = take(r, o, e)) < 0 || (err = new_id(r, e)) < 0 ||
	    (err = timer_new(&r->timer, t->host->control, on_timer, r, e)) < 0) {
		errand_free(r);
		return err;
	}
	log_at(log_of(r), LOG_INFO, "server", "event=errand from=%s client=%s to=%s:%u streams=%u detached=%d", r->address,
	    r->client, r->host, r->port, r->asked.streams, r->detached);
	list_append(&t->errands, &r->in_list);
	t->n_running++;
	timer_set(r->timer, mono_add_ns(mono_now(), TELL_NS));
	asked_find(&r->asked, on_found);
	*out = r;
	return 0;
}

/* ---- Asking for it later ---- */

bool errand_is(const struct errand *r, const char *client, uint64_t id)
{
	return r->id == id && strcmp(r->client, client) == 0;
}

struct errand *errand_find(struct errand_set *t, const char *client, uint64_t id, struct errand *after)
{
	struct list *l = after != NULL ? after->in_list.next : t->errands.next;
	struct errand *r;

	if (after == NULL)
		forget_old(t);
	for (; l != &t->errands; l = l->next) {
		r = CONTAINER_OF(l, struct errand, in_list);
		if (errand_is(r, client, id != 0 ? id : r->id))
			return r;
	}
	return NULL;
}

bool errand_is_over(const struct errand *r) { return r->over; }

void errand_state(const struct errand *r, struct wire_state *out)
{
	struct mono now = mono_now(), until = r->over ? r->ended : now;

	*out = (struct wire_state){
		.id = r->id, .kind = r->over ? WIRE_STATE_OVER : WIRE_STATE_RUNNING, .code = (uint16_t)-r->why.code,
		.port = (uint16_t)r->port, .age_ms = mono_diff_ns(now, r->asked_at) / NS_PER_MS,
		.took_ms = mono_diff_ns(until, r->asked_at) / NS_PER_MS, .host = cut(r->host, WIRE_HOST_MAX),
		.from = cut(r->from, WIRE_PATH_MAX), .to = { r->path + 3, r->path_bytes - 3 },
		.text = cut(r->why.msg, WIRE_TEXT_MAX)
	};
	progress_of(r, &out->progress);
}
