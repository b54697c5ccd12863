#include "server/relay.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conn/inbound.h"
#include "conn/connect.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"
#include "net/dial.h"
#include "net/splice.h"
#include "store/fd_budget.h"

#define CONNECT_NS (10 * NS_PER_S)
#define IDLE_NS (600 * NS_PER_S)

/* On its way, then at work:
 *
 *   control thread            worker
 *   start ------------------>  splice_new()
 *   on_over() <-------------   it has ended
 *   stop ------------------->  splice_free()
 *   on_gone() <-------------   on_splice_gone(), the last word */
struct relayed {
	struct list in_list;
	struct relay *relay;
	struct inbound *inbound;     /* until its socket is ours */
	struct dial *dial;
	int fd[2];               /* the client's, the next hop's */
	char client[PTCP_FINGERPRINT_BYTES], from[SOCK_TEXT_BYTES];
	char host[SOCK_HOST_BYTES];
	unsigned port;
	struct loop *worker;
	struct splice *splice;
	struct hold *hold;       /* NULL: nothing may be stored */
	struct msg start, over, stop, gone;
	bool moving, stopping;
	struct ptcp_err why;     /* code 0: both directions have ended */
	uint64_t bytes, stored_bytes, held_bytes; /* at the end */
};

static void relayed_free(struct relayed *d)
{
	struct relay *r = d->relay;
	unsigned i;

	dial_cancel(d->dial);
	for (i = 0; i < 2; i++)
		if (d->fd[i] >= 0)
			close(d->fd[i]);
	list_remove(&d->in_list);
	r->n--;
	fd_budget_count(d->hold != NULL ? -(SPLICE_FDS + SPLICE_SPOOL_FDS) : -SPLICE_FDS);
	relay_storage_give(d->hold);
	free(d);
	r->gone(r->arg);
}

void relay_forget(struct relayed *d)
{
	d->inbound = NULL;
	relayed_free(d);
}

void relay_init(struct relay *r, struct context *host, const struct relay_acl *to, unsigned most, uint64_t timeout_ns,
    void (*gone)(void *arg), void *arg)
{
	*r = (struct relay){ .host = host, .to = to, .most = most, .timeout_ns = timeout_ns, .gone = gone,
	    .arg = arg };
	list_init(&r->list);
	relay_storage_init(&r->holding, 0, NULL, NULL);
}

/* ---- At work ---- */

static void on_gone(struct msg *m)
{
	struct relayed *d = CONTAINER_OF(m, struct relayed, gone);

	log_at(&d->relay->host->log, d->why.code == PTCP_EIO ? LOG_ERROR : LOG_INFO, "relay", "event=end client=%s from=%s "
	    "to=%s:%u bytes=%llu stored_bytes=%llu dropped_bytes=%llu why=\"%s\"", d->client, d->from, d->host, d->port,
	    (unsigned long long)d->bytes, (unsigned long long)d->stored_bytes, (unsigned long long)d->held_bytes,
	    d->why.code != 0 ? d->why.msg : "done");
	relayed_free(d);
}

static void on_splice_gone(void *arg)
{
	struct relayed *d = arg;

	d->gone.run = on_gone;
	loop_post(d->relay->host->control, &d->gone);
}

static void on_stop(struct msg *m)
{
	struct relayed *d = CONTAINER_OF(m, struct relayed, stop);

	if (d->splice != NULL) {
		d->bytes = splice_bytes(d->splice);
		d->stored_bytes = splice_total_spooled_bytes(d->splice);
		d->held_bytes = splice_spooled_bytes(d->splice);
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

static void on_over(struct msg *m)
{
	stop(CONTAINER_OF(m, struct relayed, over));
}

/* On the worker. */
static void on_ended(void *arg, const struct ptcp_err *why)
{
	struct relayed *d = arg;

	if (why != NULL)
		d->why = *why;
	d->over.run = on_over;
	loop_post(d->relay->host->control, &d->over);
}

static void on_start(struct msg *m)
{
	struct relayed *d = CONTAINER_OF(m, struct relayed, start);
	const struct splice_opts o = { .a = d->fd[0], .b = d->fd[1], .idle_ns = IDLE_NS, .spool = relay_storage_of(d->hold),
		.ended = on_ended, .arg = d };
	struct ptcp_err why;

	d->fd[0] = d->fd[1] = -1;
	if (splice_new(&d->splice, d->worker, &o, &why) < 0)
		on_ended(d, &why);
}

void relay_begin(struct relayed *d)
{
	struct context *h = d->relay->host;
	struct inbound *g = d->inbound;
	struct chan *c = inbound_take_chan(g);

	d->inbound = NULL;
	g->relayed = NULL;
	d->fd[0] = chan_take_fd(c);
	chan_free(c);
	if (d->fd[0] < 0) { /* it has failed meanwhile */
		relayed_free(d);
		return;
	}
	if (d->hold != NULL) {
		sock_no_user_timeout(d->fd[0]);
		sock_no_user_timeout(d->fd[1]);
	}
	d->moving = true;
	d->worker = h->worker[d->relay->n % h->n_workers];
	d->start.run = on_start;
	loop_post(d->worker, &d->start);
}

void relay_stop(struct relay *r)
{
	struct list *l;

	for (l = r->list.next; l != &r->list; l = l->next)
		if (CONTAINER_OF(l, struct relayed, in_list)->moving)
			stop(CONTAINER_OF(l, struct relayed, in_list));
}

void relay_judge_again(struct relay *r, trust_admits_fn *admits, void *arg)
{
	struct authorization now;
	struct list *l, *next;

	for (l = r->list.next; l != &r->list; l = next) {
		struct relayed *d = CONTAINER_OF(l, struct relayed, in_list);

		next = l->next;
		if (admits(arg, d->client, &now) && !now.no_relay)
			continue;
		log_at(&r->host->log, LOG_WARN, "relay", "event=revoked client=%s from=%s to=%s:%u", d->client, d->from,
		    d->host, d->port);
		if (d->moving)
			stop(d);
		else
			inbound_free(d->inbound); /* and with it `d` */
	}
}

/* ---- Asked ---- */

static bool permits(void *arg, const struct sockaddr *sa)
{
	const struct relayed *d = arg;

	return relay_acl_permit(d->relay->to, d->host, d->port, sa);
}

/* What the client hears tells it nothing of addresses that it may not reach. */
static void refuse(struct relayed *d, const struct ptcp_err *cause)
{
	struct inbound *g = d->inbound;
	struct ptcp_err why = *cause;

	log_at(&d->relay->host->log, LOG_WARN, "relay", "event=refused client=%s from=%s to=%s:%u why=\"%s\"", d->client,
	    d->from, d->host, d->port, cause->msg);
	if (cause->code == PTCP_EREFUSED)
		err_set(&why, PTCP_EREFUSED, "going on to %s:%u: not allowed there (its administrator lists next hops with "
		    "--relay-to; special addresses must be listed themselves)", d->host, d->port);
	g->relayed = NULL;
	relayed_free(d);
	inbound_refuse(g, &why);
}

static void on_dialled(void *arg, int fd, const char *address, const struct ptcp_err *why)
{
	struct relayed *d = arg;
	struct sock_opts so = { 0, d->relay->timeout_ns, NULL };
	struct ptcp_err e;

	d->dial = NULL;
	if (fd < 0) {
		refuse(d, why);
		return;
	}
	sock_tune(fd, &so, &e);
	chan_send_hops(fd, chan_hops(d->inbound->chan) + 1); /* where it is cut, moving bytes will notice */
	d->fd[1] = fd;
	log_at(&d->relay->host->log, LOG_INFO, "relay", "event=begin client=%s from=%s to=%s:%u address=%s", d->client,
	    d->from, d->host, d->port, address);
	inbound_routed(d->inbound);
}

/* How many this client has. */
static unsigned held(const struct relay *r, const char *client)
{
	const struct list *l;
	unsigned n = 0;

	for (l = r->list.next; l != &r->list; l = l->next)
		n += strcmp(CONTAINER_OF(l, struct relayed, in_list)->client, client) == 0;
	return n;
}

static int check(const struct relay *r, const struct chan *c, struct ptcp_err *e)
{
	const char *client = chan_fingerprint(c);
	unsigned files = 2 * fd_budget_connections() / SPLICE_FDS, most = r->most < files ? r->most : files;

	if (r->to == NULL)
		return err_set(e, PTCP_EREFUSED, "it relays nothing (its administrator names next hops with --relay-to)");
	if (r->n >= most || held(r, client) >= (most + 1) / 2)
		return err_set(e, PTCP_EREFUSED, "too busy: it relays %u connections, its limit is %u, and half of that for "
		    "one client (use fewer streams, or try again later)", r->n, most);
	/* Between relays that list each other a client could have its bytes go round and round. */
	if (chan_hops(c) >= CONNECT_RELAYS_MAX)
		return err_set(e, PTCP_EREFUSED, "it came through %u relays already, and more than %u carry nothing (give "
		    "fewer with --via)", chan_hops(c), CONNECT_RELAYS_MAX);
	return 0;
}

void relay_ask(struct relay *r, struct inbound *g, const struct wire_route *f)
{
	const struct sock_opts so = { 0, CONNECT_NS, NULL };
	struct relayed *d;
	struct ptcp_err why;

	if (check(r, g->chan, &why) < 0 ||
	    ((d = calloc(1, sizeof *d)) == NULL && err_nomem(&why))) {
		log_at(&r->host->log, LOG_WARN, "relay", "event=refused client=%s from=%s why=\"%s\"",
		    chan_fingerprint(g->chan), g->address, why.msg);
		inbound_refuse(g, &why);
		return;
	}
	d->relay = r;
	d->inbound = g;
	d->fd[0] = d->fd[1] = -1;
	strcpy(d->client, chan_fingerprint(g->chan));
	strcpy(d->from, g->address);
	memcpy(d->host, f->host.p, f->host.n);
	d->port = f->port;
	list_append(&r->list, &d->in_list);
	r->n++;
	d->hold = relay_storage_take(&r->holding, d->client, f->hold_bytes);
	fd_budget_count(d->hold != NULL ? SPLICE_FDS + SPLICE_SPOOL_FDS : SPLICE_FDS);
	g->relayed = d;
	if (dial_start(&d->dial, r->host->control, d->host, d->port, &so, on_dialled, d, &why) < 0)
		refuse(d, &why);
	else
		dial_filter(d->dial, permits, d);
}
