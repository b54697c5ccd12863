/* What is asked of a daemon to be done elsewhere: taken on or not, ended, remembered. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conn/grants.h"
#include "core/err.h"
#include "core/units.h"
#include "net/identity.h"
#include "server/job_conn.h"
#include "server/job_impl.h"

#define KEPT_MOST 64
#define KEPT_NS (24 * 3600 * NS_PER_S)

void job_set_init(struct job_set *t, struct context *host, const char *root,
    const struct ptcp_server_opts *o, const struct relay_acl *nexthops, void (*gone)(void *arg), void *arg)
{
	*t = (struct job_set){ .host = host, .root = root, .o = o, .nexthops = nexthops, .gone = gone,
	    .arg = arg };
	list_init(&t->errands);
	list_init(&t->callers);
}

bool job_set_idle(const struct job_set *t)
{
	return t->n_running == 0 && t->n_callers == 0;
}

static void job_free(struct job *r)
{
	list_remove(&r->in_list);
	request_fini(&r->asked);
	connect_cancel(r->connect);
	timer_free(r->timer);
	free(r->from);
	free(r->to);
	free(r->path);
	if (r->prober != NULL)
		r->prober->ops->free(r->prober);
	free(r->grant);
	free(r);
}

void job_set_fini(struct job_set *t)
{
	struct list *l, *next;

	for (l = t->errands.next; l != NULL && l != &t->errands; l = next) {
		next = l->next;
		job_free(CONTAINER_OF(l, struct job, in_list));
	}
}

/* ---- The end ---- */

static void forget_old(struct job_set *t)
{
	struct list *l, *next;
	struct job *r;

	for (l = t->errands.next; l != &t->errands; l = next) {
		next = l->next;
		r = CONTAINER_OF(l, struct job, in_list);
		if (r->over && (t->n_kept > KEPT_MOST || mono_diff_ns(mono_now(), r->ended) > KEPT_NS)) {
			t->n_kept--;
			job_free(r);
		}
	}
}

/* It is done with all but what is told of it later. */
static void keep(struct job *r)
{
	timer_free(r->timer);
	r->timer = NULL;
	request_fini(&r->asked);
	memset(&r->asked, 0, sizeof r->asked);
	r->set->n_kept++;
}

void job_over(struct job *r, const struct ptcp_err *why)
{
	struct job_set *t = r->set;
	struct wire_end end;

	r->over = true;
	r->ended = mono_now();
	if (why != NULL)
		r->why = *why;
	job_tell(r);
	log_at(&r->set->host->log, why != NULL ? LOG_WARN : LOG_INFO, "server",
	    "event=errand-end client=%s files=%llu bytes=%llu failed=%llu seconds=%.3f why=\"%s\"", r->client,
	    (unsigned long long)r->last.files, (unsigned long long)r->last.file_bytes,
	    (unsigned long long)r->last.failed, (double)mono_diff_ns(r->ended, r->asked_at) / 1e9,
	    why != NULL ? r->why.msg : "done");
	end = (struct wire_end){ r->last.files, r->last.failed };
	if (r->caller != NULL)
		job_conn_over(r->caller, why != NULL ? &r->why : NULL, &end);
	r->caller = NULL;
	job_conns_tell(t, r);
	t->n_running--;
	if (r->detached)
		keep(r);
	else
		job_free(r);
	t->gone(t->arg);
}

void job_cancel(struct job *r, const struct ptcp_err *why)
{
	if (r->over)
		return;
	if (r->session != NULL) {
		session_cancel(r->session, why);
		return;
	}
	connect_cancel(r->connect);
	r->connect = NULL;
	if (r->asked.finding)
		r->why = *why; /* over when the I/O thread is done */
	else
		job_over(r, why);
}

void job_leave(struct job *r)
{
	struct ptcp_err why;

	r->caller = NULL;
	err_set(&why, PTCP_ECANCELED, "transfer: interrupted, as who has asked for it has gone (the same command goes on "
	    "from here)");
	if (!r->detached)
		job_cancel(r, &why);
}

void job_set_cancel(struct job_set *t, const struct ptcp_err *why)
{
	struct list *l, *next;

	job_conns_end(t);
	for (l = t->errands.next; l != &t->errands; l = next) {
		next = l->next;
		job_cancel(CONTAINER_OF(l, struct job, in_list), why);
	}
}

/* Whether it is still its client's to have done. */
static bool may_go_on(const struct job *r, const struct authorization *now)
{
	return !now->no_relay && strcmp(now->root, r->asked.auth.root) == 0 &&
	    (r->mode != WIRE_GRANT_READ || !now->read_only);
}

void job_judge_again(struct job_set *t, trust_admits_fn *admits, void *arg)
{
	struct authorization now;
	struct list *l, *next;
	struct ptcp_err why;
	struct job *r;

	job_conns_judge_again(t, admits, arg);
	err_set(&why, PTCP_EREFUSED, "this client: may not have that done there any more (ask the administrator)");
	for (l = t->errands.next; l != &t->errands; l = next) {
		next = l->next;
		r = CONTAINER_OF(l, struct job, in_list);
		if (!r->over && !(admits(arg, r->client, &now) && may_go_on(r, &now)))
			job_cancel(r, &why);
	}
}

/* ---- Taking one on ---- */

static void copy(char *out, struct span s)
{
	memcpy(out, s.n > 0 ? (const char *)s.p : "", s.n);
	out[s.n] = '\0';
}

/* Under way, of this client. */
static unsigned running(const struct job_set *t, const char *client)
{
	const struct list *l;
	unsigned n = 0;

	for (l = t->errands.next; l != &t->errands; l = l->next) {
		const struct job *r = CONTAINER_OF(l, struct job, in_list);

		n += !r->over && strcmp(r->client, client) == 0;
	}
	return n;
}

static int check_room(const struct job_set *t, const char *client, struct ptcp_err *e)
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

/* The client is to us what the third host will be. */
static int check_role(const struct job_order *o, struct ptcp_err *e)
{
	static const uint8_t role[] = { [WIRE_GRANT_READ] = WIRE_ACCEPTOR_RECEIVES, [WIRE_GRANT_WRITE] = WIRE_ACCEPTOR_SENDS,
		[WIRE_GRANT_PROBE] = WIRE_ACCEPTOR_DISCARDS };

	if (o->open.role != role[o->grant.mode] || (o->messages > 0) != (o->grant.mode == WIRE_GRANT_PROBE))
		return err_set(e, PTCP_EREFUSED, "an errand: what is asked for is not what the grant is for");
	if (o->messages > 0 && (o->job.flags & WIRE_JOB_DETACH) != 0)
		return err_set(e, PTCP_EREFUSED, "an errand: a measurement is for who waits for it");
	if (o->messages > 0 && o->job.rate_bps != 0)
		return err_set(e, PTCP_EREFUSED, "an errand: a measurement keeps to no rate");
	return 0;
}

/* May it be asked for at all? */
static int check(struct job_set *t, const struct job_order *o, const struct job *r, struct ptcp_err *e)
{
	const char *own = t->host->identity.fingerprint;
	char issuer[PTCP_FINGERPRINT_BYTES];
	int err;

	if ((err = check_room(t, o->client, e)) < 0)
		return err;
	if ((err = check_role(o, e)) < 0)
		return err;
	if (t->nexthops == NULL)
		return job_not_there(r, e);
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

/* Of the session with the third host: the grant's path, and no other. */
static int take_path(struct job *r, const struct job_order *o, struct ptcp_err *e)
{
	bool reads = r->mode == WIRE_GRANT_READ;
	uint8_t contents = reads && (o->open.flags & WIRE_OPEN_CONTENTS) != 0 ? WIRE_PATH_CONTENTS : 0;
	char there[WIRE_PATH_MAX + 1];

	copy(there, o->grant.path);
	if ((r->path = malloc(o->grant.path.n + 3)) == NULL ||
	    (r->from = strdup(reads ? there : request_first(&r->asked))) == NULL ||
	    (r->to = strdup(reads ? request_first(&r->asked) : there)) == NULL)
		return err_nomem(e);
	r->open = o->open;
	r->open.flags &= ~(uint32_t)WIRE_OPEN_SPOOLED; /* no relay is on the way */
	r->open.role = reads ? WIRE_ACCEPTOR_SENDS : WIRE_ACCEPTOR_RECEIVES;
	r->open.streams = (uint16_t)r->asked.streams;
	r->open.n_paths = 1;
	r->open.paths = (struct span){ r->path, wire_path_encode(r->path, contents, o->grant.path) };
	if (!reads)
		return 0;
	r->open.flags &= ~(uint32_t)(WIRE_OPEN_INTO_DIR | WIRE_OPEN_CONTENTS);
	if (geteuid() == 0) /* they would be whatever a client likes to run as root */
		r->open.flags &= ~(uint32_t)WIRE_OPEN_SETID;
	return 0;
}

static int take_probe(struct job *r, const struct job_order *o, struct ptcp_err *e)
{
	struct ptcp_timing_opts t;
	int err;

	if (r->asked.streams < o->open.streams)
		return err_set(e, PTCP_EREFUSED, "%u streams: that daemon uses no more than %u (give --streams with fewer)",
		    o->open.streams, r->asked.streams);
	ptcp_timing_opts_init(&t);
	t.streams = o->open.streams;
	t.messages = o->messages;
	if ((r->from = strdup("")) == NULL || (r->to = strdup("")) == NULL)
		return err_nomem(e);
	if ((err = timing_new(&r->prober, &t, e)) < 0)
		return err;
	r->prober->loop = r->set->host->control;
	r->prober->log = &r->set->host->log;
	r->open = o->open;
	return 0;
}

static int take(struct job *r, const struct job_order *o, struct ptcp_err *e)
{
	uint64_t timeout_ns = o->job.timeout_ms * NS_PER_MS, most_ns = (uint64_t)(r->set->o->timeout_s * 1e9);
	int err;

	if ((r->grant = malloc(o->grant_frame.n)) == NULL)
		return err_nomem(e);
	r->grant_bytes = o->grant_frame.n;
	memcpy(r->grant, o->grant_frame.p, r->grant_bytes);
	copy(r->congestion, o->job.congestion);
	r->sock = (struct sock_opts){ o->job.family, timeout_ns < most_ns ? timeout_ns : most_ns,
		r->congestion[0] != '\0' ? r->congestion : NULL };
	r->mode = o->grant.mode;
	r->asked = (struct request){ .host = r->set->host, .root = r->set->root,
		.roots = r->set->roots, .o = r->set->o, .auth = *o->auth };
	if ((err = request_take(&r->asked, &o->open, e)) < 0)
		return err;
	return r->mode == WIRE_GRANT_PROBE ? take_probe(r, o, e) : take_path(r, o, e);
}

static int new_id(struct job *r, struct ptcp_err *e)
{
	uint8_t bytes[8];
	int err = tls_random(bytes, sizeof bytes, e);

	memcpy(&r->id, bytes, sizeof r->id);
	r->id |= 1; /* never 0 */
	return err;
}

int job_new(struct job **out, struct job_set *t, const struct job_order *o, struct ptcp_err *e)
{
	struct job *r = calloc(1, sizeof *r);
	int err;

	if (r == NULL)
		return err_nomem(e);
	forget_old(t);
	list_init(&r->in_list);
	r->set = t;
	r->caller = o->caller;
	r->asked_at = mono_now();
	r->port = o->job.port;
	r->detached = (o->job.flags & WIRE_JOB_DETACH) != 0;
	r->files = (o->job.flags & WIRE_JOB_FILES) != 0;
	r->rate_bps = o->job.rate_bps;
	copy(r->host, o->job.host);
	strcpy(r->client, o->client);
	strncpy(r->address, o->address, sizeof r->address - 1);
	identity_digest_text(r->audience, o->grant.audience);
	if ((err = check(t, o, r, e)) < 0 || (err = take(r, o, e)) < 0 || (err = new_id(r, e)) < 0 ||
	    (err = job_begin(r, e)) < 0) {
		job_free(r);
		return err;
	}
	log_at(&r->set->host->log, LOG_INFO, "server", "event=errand from=%s client=%s what=%s with=%s:%u streams=%u detached=%d",
	    r->address, r->client, r->mode == WIRE_GRANT_PROBE ? "probe" : r->mode == WIRE_GRANT_READ ? "fetch" : "send",
	    r->host, r->port, r->asked.streams, r->detached);
	list_append(&t->errands, &r->in_list);
	t->n_running++;
	*out = r;
	return 0;
}

/* ---- Asking for it later ---- */

bool job_is(const struct job *r, const char *client, uint64_t id)
{
	return r->id == id && strcmp(r->client, client) == 0;
}

struct job *job_find(struct job_set *t, const char *client, uint64_t id, struct job *after)
{
	struct list *l = after != NULL ? after->in_list.next : t->errands.next;
	struct job *r;

	if (after == NULL)
		forget_old(t);
	for (; l != &t->errands; l = l->next) {
		r = CONTAINER_OF(l, struct job, in_list);
		if (job_is(r, client, id != 0 ? id : r->id))
			return r;
	}
	return NULL;
}

bool job_is_over(const struct job *r) { return r->over; }
