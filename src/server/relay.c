#include "server/relay.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conn/connect.h"
#include "conn/inbound.h"
#include "core/err.h"
#include "core/fd.h"
#include "core/units.h"
#include "fs/fd_budget.h"
#include "net/dial.h"

#define CONNECT_NS (10 * NS_PER_S)
#define IDLE_NS (600 * NS_PER_S)
/* Of connections with storage: longer than an end waits for the peer (ENGINE_BUSY_TIMEOUTS). */
#define SPOOL_IDLE_NS (4 * 3600 * NS_PER_S)

/* A client with connections that have storage. */
struct storage_client {
	struct list in_list;
	char *fingerprint;
	unsigned n; /* connections */
	struct spool_quota quota;
};

/* Storage of one connection. */
struct storage {
	struct storage_client *client;
	struct spool_quota quota;
	struct splice_spool splice;
};

/*   control thread            worker
 *   start ------------------>  splice_new()
 *   on_over() <-------------   both directions have ended
 *   stop ------------------->  splice_free()
 *   on_gone() <-------------   on_splice_gone(), the last message */
struct relayed {
	struct list in_list;
	struct relay *relay;
	struct inbound *inbound; /* inbound connection until relay_begin() */
	struct dial *dial;
	int fd[2];               /* the client's, the next hop's */
	char client[PTCP_FINGERPRINT_BYTES], from[SOCK_TEXT_BYTES];
	struct trust_proof proof; /* proof of the client */
	char host[SOCK_HOST_BYTES];
	unsigned port;
	struct loop *worker;
	struct splice *splice;
	struct storage *storage; /* NULL: none */
	struct relay_place place;
	struct memory_account *memory; /* account of the client; NULL: no limit */
	struct admission *admission;
	struct peer_address *peer;
	struct msg start, over, stop, gone;
	bool moving, stopping;
	struct ptcp_err why;     /* code 0: both directions have ended */
	uint64_t bytes, stored_bytes, dropped_bytes; /* totals at the end */
};

/* ---- Storage ---- */

void relay_set_storage(struct relay *r, uint64_t max_bytes, const char *dir, struct io *io)
{
	r->storage.all.max_bytes = max_bytes;
	r->storage.dir = dir;
	r->storage.io = io;
}

uint64_t relay_stored_bytes(const struct relay *r) { return atomic_load(&r->storage.all.used_bytes); }

static struct storage_client *storage_client_of(struct relay *r, const char *fingerprint)
{
	struct storage_client *c;

	LIST_EACH(&r->storage.clients, c, struct storage_client, in_list)
		if (strcmp(c->fingerprint, fingerprint) == 0)
			return c;
	if ((c = calloc(1, sizeof *c)) == NULL || (c->fingerprint = strdup(fingerprint)) == NULL) {
		free(c);
		return NULL;
	}
	c->quota = (struct spool_quota){ .max_bytes = r->storage.all.max_bytes / 2, .parent = &r->storage.all };
	list_append(&r->storage.clients, &c->in_list);
	return c;
}

struct disk_work {
	struct io_job io;
	struct splice_job *job;
};

static void on_disk(struct io_job *io)
{
	struct splice_job *job = CONTAINER_OF(io, struct disk_work, io)->job;

	free(CONTAINER_OF(io, struct disk_work, io));
	job->run(job);
}

/* Runs the job on a thread of the store; without memory at once, so that the loop waits for the disk. */
static void run_on_disk(void *arg, struct splice_job *job)
{
	struct disk_work *w = malloc(sizeof *w);

	if (w == NULL) {
		job->run(job);
		return;
	}
	w->job = job;
	w->io.run = on_disk;
	io_submit(arg, &w->io);
}

/* NULL: none requested, or no quota or memory. */
static struct storage *storage_new(struct relay *r, const char *fingerprint, uint64_t bytes)
{
	struct storage_client *c;
	struct storage *st;

	if (bytes == 0 || r->storage.all.max_bytes == 0 || (st = calloc(1, sizeof *st)) == NULL)
		return NULL;
	if ((c = storage_client_of(r, fingerprint)) == NULL) {
		free(st);
		return NULL;
	}
	c->n++;
	st->client = c;
	st->quota = (struct spool_quota){ .max_bytes = bytes < c->quota.max_bytes ? bytes : c->quota.max_bytes,
		.parent = &c->quota };
	if (st->quota.max_bytes < SPOOL_GRAIN)
		st->quota.max_bytes = SPOOL_GRAIN;
	st->splice = (struct splice_spool){ .dir = r->storage.dir, .quota = &st->quota, .idle_ns = SPOOL_IDLE_NS,
		.submit = run_on_disk, .arg = r->storage.io };
	return st;
}

static void storage_free(struct storage *st)
{
	struct storage_client *c;

	if (st == NULL)
		return;
	c = st->client;
	free(st);
	if (--c->n > 0)
		return;
	list_remove(&c->in_list);
	free(c->fingerprint);
	free(c);
}

/* ---- Room ---- */

static unsigned connection_fds(bool stores) { return stores ? SPLICE_FDS + SPLICE_SPOOL_FDS : SPLICE_FDS; }

unsigned relay_min_fds(bool stores) { return RELAY_SESSION_PLACES * connection_fds(stores); }

static unsigned fds_each(const struct relay *r) { return connection_fds(r->storage.all.max_bytes > 0); }

/* Relayed connections have half of the descriptors. */
static struct relay_limits limits(const struct relay *r)
{
	unsigned share = 2 * fd_budget_connections() / fds_each(r),
	    left = r->room.places + fd_budget_left() / fds_each(r);
	unsigned files = share < left ? share : left;

	return (struct relay_limits){ .places = r->max < files ? r->max : files, .max = r->max };
}

/* Kept places have descriptors, too. */
static void count_fds(const struct relay *r, unsigned places_before)
{
	fd_budget_count((int)fds_each(r) * ((int)r->room.places - (int)places_before));
}

static int enter(struct relay *r, struct relay_place *p, const char *client, const struct wire_route *f,
    struct ptcp_err *e)
{
	struct relay_limits l = limits(r);
	unsigned before = r->room.places;
	int code = relay_room_enter(&r->room, p, client, f->session, f->control != 0, &l, mono_now(), e);

	count_fds(r, before);
	return code;
}

static void leave(struct relay *r, struct relay_place *p)
{
	unsigned before = r->room.places;

	relay_room_leave(&r->room, p);
	count_fds(r, before);
}

/* ---- Connections ---- */

static void relayed_free(struct relayed *d)
{
	struct relay *r = d->relay;
	unsigned i;

	dial_cancel(d->dial);
	for (i = 0; i < 2; i++)
		fd_close(&d->fd[i]);
	list_remove(&d->in_list);
	r->n--;
	leave(r, &d->place);
	admission_session(d->admission, d->peer, false);
	storage_free(d->storage);
	memory_account_free(d->memory);
	free(d);
	r->gone(r->arg);
}

void relay_forget(struct relayed *d)
{
	d->inbound = NULL;
	relayed_free(d);
}

void relay_init(struct relay *r, struct context *context, struct relay_acl *to, unsigned max, uint64_t timeout_ns,
    void (*gone)(void *arg), void *arg)
{
	*r = (struct relay){ .context = context, .to = to, .max = max, .timeout_ns = timeout_ns, .gone = gone,
	    .arg = arg };
	list_init(&r->list);
	list_init(&r->storage.clients);
	relay_room_init(&r->room);
}

void relay_fini(struct relay *r)
{
	if (r->context != NULL)
		relay_room_fini(&r->room);
}

static void on_gone(struct msg *m)
{
	struct relayed *d = CONTAINER_OF(m, struct relayed, gone);

	log_at(&d->relay->context->log, d->why.code == PTCP_EIO ? LOG_ERROR : LOG_INFO, "relay", "event=end client=%s "
	    "from=%s to=%s:%u bytes=%llu stored_bytes=%llu dropped_bytes=%llu why=\"%s\"", d->client, d->from,
	    d->host, d->port,
	    (unsigned long long)d->bytes, (unsigned long long)d->stored_bytes, (unsigned long long)d->dropped_bytes,
	    d->why.code != 0 ? d->why.msg : "done");
	relayed_free(d);
}

static void on_splice_gone(void *arg)
{
	struct relayed *d = arg;

	d->gone.run = on_gone;
	loop_post(d->relay->context->control, &d->gone);
}

static void on_stop(struct msg *m)
{
	struct relayed *d = CONTAINER_OF(m, struct relayed, stop);

	if (d->splice != NULL) {
		d->bytes = splice_bytes(d->splice);
		d->stored_bytes = splice_total_spooled_bytes(d->splice);
		d->dropped_bytes = splice_spooled_bytes(d->splice);
	}
	splice_free(d->splice, on_splice_gone, d);
}

static void stop(struct relayed *d)
{
	if (d->stopping)
		return;
	d->stopping = true;
	d->stop.run = on_stop;
	loop_post(d->worker, &d->stop);
}

static void on_over(struct msg *m) { stop(CONTAINER_OF(m, struct relayed, over)); }

/* On the worker. */
static void on_ended(void *arg, const struct ptcp_err *why)
{
	struct relayed *d = arg;

	if (why != NULL)
		d->why = *why;
	d->over.run = on_over;
	loop_post(d->relay->context->control, &d->over);
}

static void on_start(struct msg *m)
{
	struct relayed *d = CONTAINER_OF(m, struct relayed, start);
	const struct splice_opts o = { .idle_ns = IDLE_NS,
		.spool = d->storage != NULL ? &d->storage->splice : NULL,
		.ended = on_ended, .arg = d };
	struct ptcp_err why;

	if (splice_new(&d->splice, d->worker, d->fd, &o, &why) < 0)
		on_ended(d, &why);
}

void relay_begin(struct relayed *d)
{
	struct context *context = d->relay->context;
	struct inbound *g = d->inbound;
	struct chan *c = inbound_take_chan(g);

	d->inbound = NULL;
	g->relayed = NULL;
	d->fd[0] = chan_take_fd(c);
	chan_free(c);
	if (d->fd[0] < 0) { /* the connection has failed */
		relayed_free(d);
		return;
	}
	if (d->storage != NULL) {
		sock_no_user_timeout(d->fd[0]);
		sock_no_user_timeout(d->fd[1]);
	}
	d->moving = true;
	d->worker = context->worker[d->relay->n % context->n_workers];
	d->start.run = on_start;
	loop_post(d->worker, &d->start);
}

void relay_stop(struct relay *r)
{
	struct relayed *d;

	LIST_EACH(&r->list, d, struct relayed, in_list)
		if (d->moving)
			stop(d);
}

void relay_reauthorize(struct relay *r, trust_admits_fn *admits, void *arg)
{
	struct authorization now;
	struct relayed *d;

	LIST_EACH(&r->list, d, struct relayed, in_list) {
		if (admits(arg, d->client, &d->proof, &now) && !now.no_relay)
			continue;
		log_at(&r->context->log, LOG_WARN, "relay", "event=revoked client=%s from=%s to=%s:%u",
		    d->client, d->from, d->host, d->port);
		if (d->moving)
			stop(d);
		else
			inbound_free(d->inbound); /* calls relay_forget() */
	}
}

/* ---- Requests ---- */

static bool permits(void *arg, const struct addrinfo *all, const struct sockaddr *sa)
{
	const struct relayed *d = arg;

	return relay_acl_permit(d->relay->to, d->host, d->port, all, sa);
}

/* The answer must not describe forbidden addresses. */
static void refuse(struct relayed *d, const struct ptcp_err *cause)
{
	struct inbound *g = d->inbound;
	struct ptcp_err why = *cause;

	log_at(&d->relay->context->log, LOG_WARN, "relay", "event=refused client=%s from=%s to=%s:%u why=\"%s\"",
	    d->client, d->from, d->host, d->port, cause->msg);
	if (cause->code == PTCP_EREFUSED)
		err_set(&why, PTCP_EREFUSED, "connecting to %s:%u: not permitted on this relay (its administrator "
		    "lists next hops with --relay-to; special addresses must be listed explicitly)", d->host, d->port);
	g->relayed = NULL;
	relayed_free(d);
	inbound_refuse(g, &why);
}

static void on_dialled(void *arg, int *fd, const char *address, const struct ptcp_err *why)
{
	struct relayed *d = arg;
	struct sock_opts so = { .timeout_ns = d->relay->timeout_ns };
	struct ptcp_err e;

	d->dial = NULL;
	if (*fd < 0) {
		refuse(d, why);
		return;
	}
	sock_tune(*fd, &so, &e);
	chan_send_hops(*fd, chan_hops(d->inbound->chan) + 1); /* a failure shows when bytes move */
	d->fd[1] = fd_take(fd);
	log_at(&d->relay->context->log, LOG_INFO, "relay", "event=begin client=%s from=%s to=%s:%u address=%s",
	    d->client, d->from, d->host, d->port, address);
	inbound_routed(d->inbound);
}

static int check(const struct relay *r, const struct chan *c, struct ptcp_err *e)
{
	if (r->to == NULL)
		return err_set(e, PTCP_EREFUSED,
		    "this host is no relay (its administrator permits next hops with --relay-to)");
	/* A client must not build a loop of relays. */
	if (chan_hops(c) >= CONNECT_RELAYS_MAX)
		return err_set(e, PTCP_EREFUSED, "the connection has passed %u relays, at most %u are permitted (give "
		    "fewer with --via)", chan_hops(c), CONNECT_RELAYS_MAX);
	return 0;
}

static void dial_next_hop(struct relayed *d)
{
	const struct dial_opts o = { .names = d->relay->context->names, .client = d->client,
		.host = d->host, .port = d->port,
		.sock = { .timeout_ns = CONNECT_NS }, .permits = permits, .done = on_dialled, .arg = d };
	struct ptcp_err why;

	if (!relay_acl_may_permit(d->relay->to, d->host, d->port))
		err_set(&why, PTCP_EREFUSED, "no entry of --relay-to permits the host and port");
	else if (dial_start(&d->dial, d->relay->context->control, &o, &why) == 0)
		return;
	refuse(d, &why);
}

/* The splice, and with storage the buffers of what returns from the disk. A client that meets a limit tries again
 * later. */
static int relay_charge(struct memory_account **out, struct relay *r, const char *client, bool stores,
    struct ptcp_err *e)
{
	uint64_t bytes = 2 * sizeof(struct relayed) + (stores ? 2 * SPLICE_SPOOL_OUT_BYTES : 0);
	int code;

	if ((code = memory_account_new(out, r->memory, client, e)) < 0 || (code = memory_charge(*out, bytes, e)) == 0)
		return code;
	memory_account_free(*out);
	e->code = PTCP_EBUSY;
	return code;
}

static struct relayed *relayed_new(struct relay *r, const char *client, bool stores, struct ptcp_err *e)
{
	struct memory_account *memory;
	struct relayed *d;

	if (relay_charge(&memory, r, client, stores, e) < 0)
		return NULL;
	if ((d = calloc(1, sizeof *d)) == NULL) {
		memory_account_free(memory);
		err_nomem(e);
		return NULL;
	}
	d->relay = r;
	d->memory = memory;
	return d;
}

int relay_request(struct relay *r, struct inbound *g, const struct wire_route *f, const char *client,
    const struct trust_proof *proof, struct ptcp_err *e)
{
	bool stores = f->spool_bytes > 0 && r->storage.all.max_bytes > 0;
	struct relay_place place = { 0 };
	struct relayed *d;

	if (check(r, g->chan, e) < 0 || enter(r, &place, client, f, e) < 0) {
		inbound_log(g, LOG_WARN, "relay-refused", "client=%s why=\"%s\"", client, e->msg);
		return PTCP_EREFUSED;
	}
	if ((d = relayed_new(r, client, stores, e)) == NULL) {
		inbound_log(g, LOG_WARN, "relay-refused", "client=%s why=\"%s\"", client, e->msg);
		leave(r, &place);
		return e->code;
	}
	d->place = place;
	d->admission = g->pending->admission;
	d->peer = g->from;
	admission_session(d->admission, d->peer, true); /* its streams follow from the same address */
	d->inbound = g;
	d->fd[0] = d->fd[1] = -1;
	strcpy(d->client, client);
	d->proof = *proof;
	strcpy(d->from, g->address);
	memcpy(d->host, f->host.p, f->host.n);
	d->port = f->port;
	list_append(&r->list, &d->in_list);
	r->n++;
	d->storage = storage_new(r, d->client, f->spool_bytes);
	g->relayed = d;
	dial_next_hop(d);
	return 0;
}
