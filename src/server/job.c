/* Requests for jobs, ends of jobs, remembered jobs. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conn/grants.h"
#include "core/err.h"
#include "core/units.h"
#include "fs/fd_budget.h"
#include "net/identity.h"
#include "server/job_conn.h"
#include "server/job_impl.h"
#include "server/record.h"

#define REMEMBERED_MAX 64
#define REMEMBERED_NS (24 * 3600 * NS_PER_S)

void job_set_init(struct job_set *t, struct context *context, const char *root,
    const struct ptcp_server_opts *o, struct relay_acl *next_hops, void (*gone)(void *arg), void *arg)
{
	*t = (struct job_set){ .context = context, .root = root, .o = o, .next_hops = next_hops, .gone = gone,
	    .arg = arg };
	list_init(&t->jobs);
	list_init(&t->conns);
	list_init(&t->turns);
}

bool job_set_idle(const struct job_set *t)
{
	return t->n_running == 0 && t->n_conns == 0 && t->n_file_jobs == 0;
}

static void return_fds(struct job *r)
{
	fd_budget_count(-(int)r->fds);
	r->fds = 0;
}

static void job_free(struct job *r)
{
	return_fds(r);
	list_remove(&r->in_list);
	request_fini(&r->request);
	connect_cancel(r->connect);
	timer_free(r->timer);
	free(r->from);
	free(r->to);
	free(r->path);
	if (r->prober != NULL)
		r->prober->ops->free(r->prober);
	free(r->grant);
	memory_account_free(r->memory);
	free(r);
}

void job_set_fini(struct job_set *t)
{
	struct job *r;

	if (t->jobs.next == NULL)
		return; /* not initialized */
	LIST_EACH(&t->jobs, r, struct job, in_list)
		job_free(r);
}

/* ---- The end ---- */

static void forget_old(struct job_set *t)
{
	struct job *r;

	LIST_EACH(&t->jobs, r, struct job, in_list)
		if (r->over && (t->n_remembered > REMEMBERED_MAX ||
		    mono_diff_ns(mono_now(), r->ended) > REMEMBERED_NS)) {
			t->n_remembered--;
			job_free(r);
		}
}

/* Frees everything but what STATE reports. */
static void remember(struct job *r)
{
	return_fds(r);
	timer_free(r->timer);
	r->timer = NULL;
	request_fini(&r->request);
	memset(&r->request, 0, sizeof r->request);
	memory_account_admit(r->memory, false);
	r->set->n_remembered++;
}

static void record(const struct job *r, const struct ptcp_err *why)
{
	char third[SOCK_HOST_BYTES + 10];
	struct ptcp_server_record n = { .work = r->mode == WIRE_GRANT_PROBE ? "measure" : r->mode == WIRE_GRANT_READ ?
		"receive" : "send", .client = r->client, .name = r->request.auth.name, .address = r->address,
		.third = third, .path = r->mode == WIRE_GRANT_READ ? r->to : r->from, .files = r->last.files,
		.bytes = r->last.file_bytes, .failed = r->last.failed,
		.seconds = (double)mono_diff_ns(r->ended, r->requested) / 1e9, .why = "done" };

	sock_join(third, sizeof third, r->host, r->port);
	record_end(&r->set->context->log, r->set->o, &n, why);
}

void job_over(struct job *r, const struct ptcp_err *why)
{
	struct job_set *t = r->set;
	struct wire_end end;

	r->over = true;
	r->ended = mono_now();
	if (why != NULL)
		r->why = *why;
	job_report(r);
	record(r, why != NULL ? &r->why : NULL);
	end = (struct wire_end){ r->last.files, r->last.failed };
	if (r->conn != NULL)
		job_conn_over(r->conn, why != NULL ? &r->why : NULL, &end);
	r->conn = NULL;
	job_conns_report(t, r);
	t->n_running--;
	if (r->detached)
		remember(r);
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
	if (r->request.finding)
		r->why = *why; /* ends when the I/O thread is done */
	else
		job_over(r, why);
}

void job_leave(struct job *r)
{
	struct ptcp_err why;

	r->conn = NULL;
	err_set(&why, PTCP_ECANCELED, "transfer: interrupted, because its client has disconnected (repeat the command "
	    "to resume)");
	if (!r->detached)
		job_cancel(r, &why);
}

void job_set_cancel(struct job_set *t, const struct ptcp_err *why)
{
	struct job *r;

	job_conns_reauthorize(t, NULL, NULL);
	LIST_EACH(&t->jobs, r, struct job, in_list)
		job_cancel(r, why);
}

/* Whether the present rights of the client permit the job. */
static bool is_permitted(const struct job *r, const struct authorization *now)
{
	return !now->no_relay && now->write_once == r->request.auth.write_once &&
	    authorization_same_place(now, &r->request.auth) &&
	    (r->mode != WIRE_GRANT_READ || !now->read_only);
}

void job_set_reauthorize(struct job_set *t, trust_admits_fn *admits, void *arg)
{
	struct authorization now;
	struct ptcp_err why;
	struct job *r;

	job_conns_reauthorize(t, admits, arg);
	err_set(&why, PTCP_EREFUSED, "this client: no longer authorized for this job (ask the server's administrator)");
	LIST_EACH(&t->jobs, r, struct job, in_list)
		if (!r->over && !(admits(arg, r->client, &r->request.auth.proof, &now) && is_permitted(r, &now)))
			job_cancel(r, &why);
		else if (!r->over)
			request_change_quota(&r->request, now.quota_bytes);
}

/* ---- Requests ---- */

/* Number of running jobs of the client. */
static unsigned running(const struct job_set *t, const char *client)
{
	const struct job *r;
	unsigned n = 0;

	LIST_EACH(&t->jobs, r, struct job, in_list)
		n += !r->over && strcmp(r->client, client) == 0;
	return n;
}

static int check_room(const struct job_set *t, const char *client, struct ptcp_err *e)
{
	unsigned own = running(t, client);

	if (t->n_running >= t->o->max_sessions)
		return err_set(e, PTCP_EBUSY, "too busy: the server runs %u job%s, its limit (try again later)",
		    t->n_running, plural(t->n_running));
	if (own >= t->o->max_client_sessions)
		return err_set(e, PTCP_EBUSY, "too busy: the server runs %u job%s for this client, its limit (try "
		    "again when one has ended)", own, plural(own));
	return 0;
}

/* The client takes the place of the third host: the role of OPEN must match the grant. */
static int check_role(const struct job_request *q, struct ptcp_err *e)
{
	uint8_t there = wire_grant_role(q->grant.mode);
	uint8_t here = there == WIRE_ACCEPTOR_SENDS ? WIRE_ACCEPTOR_RECEIVES : there == WIRE_ACCEPTOR_RECEIVES ?
	    WIRE_ACCEPTOR_SENDS : there;

	if ((q->open.flags & WIRE_OPEN_UNGRANTED) != 0)
		return err_set(e, PTCP_EREFUSED, "the job: a delegated transfer must not remove files, nor list the "
		    "files to transfer (leave out --delete, --remove-source-files and --files-from)");
	if (q->open.role != here || (q->messages > 0) != (q->grant.mode == WIRE_GRANT_PROBE))
		return err_set(e, PTCP_EREFUSED, "the grant: does not permit this request");
	if (q->messages > 0 && (q->job.flags & WIRE_JOB_DETACH) != 0)
		return err_set(e, PTCP_EREFUSED, "measurement: cannot be detached");
	if (q->messages > 0 && q->job.rate_bps != 0)
		return err_set(e, PTCP_EREFUSED, "measurement: cannot have a rate limit");
	return 0;
}

static int check(struct job_set *t, const struct job_client *c, const struct job_request *q, const struct job *r,
    struct ptcp_err *e)
{
	const char *own = t->context->identity.fingerprint;
	char issuer[PTCP_FINGERPRINT_BYTES];
	int err;

	if ((err = check_room(t, c->fingerprint, e)) < 0)
		return err;
	if ((err = check_role(q, e)) < 0)
		return err;
	if (c->auth->no_relay)
		return err_set(e, PTCP_EREFUSED, "connecting to other hosts: not permitted to this client (have the "
		    "server's administrator authorize it without --no-relay)");
	if (!relay_acl_may_permit(t->next_hops, r->host, r->port))
		return job_refuse_host(r, e);
	if ((err = grant_issuer(issuer, &q->grant, e)) < 0)
		return err;
	if (strcmp(issuer, c->fingerprint) != 0 || !grant_is_for(&q->grant, own, r->audience))
		return err_set(e, PTCP_EREFUSED,
		    "the grant: not issued by this client to this server (repeat the command)");
	if (strcmp(r->audience, own) == 0)
		return err_set(e, PTCP_EREFUSED, "transfer: both hosts are the same (copy the files locally there)");
	return 0;
}

/* The session with the third host has the grant's path only. */
static int take_path(struct job *r, const struct job_request *q, struct ptcp_err *e)
{
	bool reads = r->mode == WIRE_GRANT_READ;
	uint8_t contents = reads && (q->open.flags & WIRE_OPEN_CONTENTS) != 0 ? WIRE_PATH_CONTENTS : 0;
	char there[WIRE_PATH_MAX + 1];

	span_copy(there, q->grant.path);
	if ((r->path = malloc(q->grant.path.n + 3)) == NULL ||
	    (r->from = strdup(reads ? there : request_first(&r->request))) == NULL ||
	    (r->to = strdup(reads ? request_first(&r->request) : there)) == NULL)
		return err_nomem(e);
	r->open = q->open;
	/* no relay; --relay-to permits the peer only */
	r->open.flags &= ~(uint32_t)(WIRE_OPEN_SPOOLED | WIRE_OPEN_MOVERS);
	r->open.role = reads ? WIRE_ACCEPTOR_SENDS : WIRE_ACCEPTOR_RECEIVES;
	r->open.streams = (uint16_t)r->request.n_granted;
	r->open.n_paths = 1;
	r->open.paths = (struct span){ r->path, wire_path_encode(r->path, contents, q->grant.path) };
	if (!reads)
		return 0;
	r->open.flags &= ~(uint32_t)(WIRE_OPEN_INTO_DIR | WIRE_OPEN_CONTENTS);
	if (geteuid() == 0) /* a client must not install programs with the rights of root */
		r->open.preserve &= (uint16_t)~(unsigned)WIRE_PRESERVE_SETID;
	return 0;
}

static int take_probe(struct job *r, const struct job_request *q, struct ptcp_err *e)
{
	struct ptcp_timing_opts t;
	int err;

	if (r->request.n_granted < q->open.streams)
		return err_set(e, PTCP_EREFUSED, "%u streams: the server allows at most %u (reduce --streams)",
		    q->open.streams, r->request.n_granted);
	ptcp_timing_opts_init(&t);
	t.streams = q->open.streams;
	t.messages = q->messages;
	if ((r->from = strdup("")) == NULL || (r->to = strdup("")) == NULL)
		return err_nomem(e);
	if ((err = timing_new(&r->prober, &t, e)) < 0)
		return err;
	r->prober->loop = r->set->context->control;
	r->prober->log = &r->set->context->log;
	r->open = q->open;
	return 0;
}

static int reserve_fds(struct job *r, struct ptcp_err *e)
{
	unsigned permitted = r->request.n_granted;

	r->request.n_granted = session_take_fds(&r->fds, permitted, r->mode == WIRE_GRANT_PROBE ? 2 : 1, false);
	if (r->request.n_granted == 0 || (r->mode == WIRE_GRANT_PROBE && r->request.n_granted < permitted))
		return err_set(e, PTCP_EBUSY,
		    "too busy: the other sessions need the server's descriptors (try again later)");
	return 0;
}

static int take(struct job *r, const struct job_client *c, const struct job_request *q, struct ptcp_err *e)
{
	uint64_t timeout_ns = q->job.timeout_ms * NS_PER_MS, max_ns = (uint64_t)(r->set->o->timeout_s * 1e9);
	uint64_t linger_ns = q->job.linger_ms * NS_PER_MS, max_linger_ns = (uint64_t)(r->set->o->max_linger_s * 1e9);
	int err;

	if ((r->grant = malloc(q->grant_frame.n)) == NULL)
		return err_nomem(e);
	r->grant_bytes = q->grant_frame.n;
	memcpy(r->grant, q->grant_frame.p, r->grant_bytes);
	span_copy(r->congestion, q->job.congestion);
	r->sock = (struct sock_opts){ .family = q->job.family, .timeout_ns = timeout_ns < max_ns ? timeout_ns : max_ns,
		.congestion = r->congestion[0] != '\0' && strcmp(r->congestion, "system") != 0 ? r->congestion : NULL };
	r->linger_ns = linger_ns < max_linger_ns ? linger_ns : max_linger_ns;
	r->mode = q->grant.mode;
	r->request = (struct request){ .context = r->set->context, .root = r->set->root,
		.roots = r->set->roots, .own_dirs = r->set->own_dirs, .quotas = r->set->quotas, .o = r->set->o,
		.auth = *c->auth, .client = r->client, .memory = r->memory };
	if ((err = request_take(&r->request, &q->open, e)) < 0 || (err = reserve_fds(r, e)) < 0)
		return err;
	return r->mode == WIRE_GRANT_PROBE ? take_probe(r, q, e) : take_path(r, q, e);
}

static int new_id(struct job *r, struct ptcp_err *e)
{
	uint8_t bytes[8];
	int err = tls_random(bytes, sizeof bytes, e);

	memcpy(&r->id, bytes, sizeof r->id);
	r->id |= 1; /* never 0 */
	return err;
}

/* The job with its paths, grant and messages. */
static uint64_t bytes_of(const struct job_request *q)
{
	return sizeof(struct job) + 3 * (WIRE_PATH_MAX + 3) + q->grant_frame.n + q->messages *
	    sizeof(struct ptcp_message);
}

int job_new(struct job **out, struct job_set *t, const struct job_client *c, const struct job_request *q,
    struct ptcp_err *e)
{
	struct job *r = calloc(1, sizeof *r);
	int err;

	if (r == NULL)
		return err_nomem(e);
	forget_old(t);
	list_init(&r->in_list);
	r->set = t;
	r->conn = c->conn;
	r->requested = mono_now();
	r->port = q->job.port;
	r->detached = (q->job.flags & WIRE_JOB_DETACH) != 0;
	r->report_files = (q->job.flags & WIRE_JOB_FILES) != 0;
	r->rate_bps = q->job.rate_bps;
	span_copy(r->host, q->job.host);
	strcpy(r->client, c->fingerprint);
	strncpy(r->address, c->address, sizeof r->address - 1);
	identity_digest_text(r->audience, q->grant.audience);
	if ((err = check(t, c, q, r, e)) < 0 || (err = memory_account_new(&r->memory, t->memory, r->client, e)) < 0 ||
	    (err = memory_charge(r->memory, bytes_of(q), e)) < 0 || (err = take(r, c, q, e)) < 0 ||
	    (err = new_id(r, e)) < 0 || (err = job_begin(r, e)) < 0) {
		job_free(r);
		return err;
	}
	log_at(&r->set->context->log, LOG_INFO, "server", "event=job from=%s client=%s kind=%s third=%s:%u streams=%u "
	    "detached=%d", r->address, r->client,
	    r->mode == WIRE_GRANT_PROBE ? "probe" : r->mode == WIRE_GRANT_READ ? "fetch" : "send", r->host, r->port,
	    r->request.n_granted, r->detached);
	list_append(&t->jobs, &r->in_list);
	t->n_running++;
	*out = r;
	return 0;
}

/* ---- Queries ---- */

bool job_is(const struct job *r, const char *client, uint64_t id)
{
	return r->id == id && strcmp(r->client, client) == 0;
}

struct job *job_find(struct job_set *t, const char *client, uint64_t id, struct job *after)
{
	struct list *l;
	struct job *r;

	if (after == NULL)
		forget_old(t); /* perhaps the first */
	for (l = after != NULL ? after->in_list.next : t->jobs.next; l != &t->jobs; l = l->next) {
		r = CONTAINER_OF(l, struct job, in_list);
		if (job_is(r, client, id != 0 ? id : r->id))
			return r;
	}
	return NULL;
}

bool job_is_over(const struct job *r) { return r->over; }
