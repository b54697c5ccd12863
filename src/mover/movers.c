#include "mover/movers_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conn/join_proof.h"
#include "core/err.h"
#include "core/fd.h"
#include "core/text.h"
#include "core/units.h"
#include "net/identity.h"

#define JOIN_NS (8 * NS_PER_S)      /* time from a connection to JOIN */
#define METER_NS NS_PER_S
#define PORT_FREE ":0"
#define SESSION_JOINS 64            /* joins of a mover of a server at once */

/* ---- Joining and leaving ---- */

static void notify(const struct movers *m, const char *text)
{
	log_at(m->o.log, LOG_INFO, "movers", "%s", text);
	m->o.notify(m->o.arg, text);
}

void movers_changed(const struct movers *m)
{
	if (m->changed != NULL)
		m->changed(m->changed_arg);
}

/* The limit of all streams together, divided again. */
static void pace(struct movers *m)
{
	uint64_t share[MOVERS_MAX], used[MOVERS_MAX];
	struct mover *v;
	unsigned n = 0;

	LIST_EACH(&m->movers, v, struct mover, in_list) {
		if (!v->joined)
			continue;
		used[n] = (uint64_t)v->rate_bps;
		share[n++] = v->share_bps;
	}
	deal_rate(share, used, n, m->rate_bps);
	n = 0;
	LIST_EACH(&m->movers, v, struct mover, in_list) {
		if (!v->joined)
			continue;
		if (v->share_bps != share[n])
			OUTBOX_PUT(mover_link_out(v->link), pace, PACE, (&(struct wire_pace){ share[n], { NULL, 0 } }));
		v->share_bps = share[n++];
	}
}

static void put_congestion(const struct movers *m, const struct mover *v)
{
	OUTBOX_PUT(mover_link_out(v->link), pace, PACE,
	    (&(struct wire_pace){ v->share_bps, { (const uint8_t *)m->congestion, strlen(m->congestion) } }));
}

/* The set with the listener. */
static struct movers *listening(struct movers *m) { return m->pool != NULL ? m->pool : m; }

static void mover_free(struct mover *v)
{
	unsigned i;

	if (v->set->pool != NULL)
		pool_count(v, true);
	for (i = 0; i < MOVER_HANDLES; i++)
		free(v->remote[i]); /* canceled */
	list_remove(&v->in_list);
	admission_session(listening(v->set)->pending.admission, v->from, false);
	mover_link_free(v->link);
	free(v->known);
	while (!list_empty(&v->closing)) {
		struct closing *c = CONTAINER_OF(v->closing.next, struct closing, in_list);

		list_remove(&c->in_list);
		free(c);
	}
	free(v);
}

static void on_link_lost(void *arg, const struct ptcp_err *why)
{
	struct mover *v = arg;
	struct movers *m = v->set;
	char text[sizeof why->msg + 100], host[TEXT_NAME_BYTES];
	struct ptcp_err named;

	text_escape(host, sizeof host, v->joined ? v->host : v->address);
	err_set(&named, PTCP_EPEER, "mover %s: lost: %s", host, why->msg);
	if (v->joined && --m->n == 0)
		m->none_since = mono_now();
	m->why = named;
	v->joined = false;
	if (m->pool != NULL)
		pool_left(v);
	list_remove(&v->in_list);
	list_init(&v->in_list);
	remote_end_all(v, &named);
	remote_targets_end(m, v);
	snprintf(text, sizeof text, "%s (%u left%s)", named.msg, m->n, m->n > 0 ? "; its blocks go to others" : "");
	mover_free(v);
	notify(m, text);
	movers_changed(m);
}

static int on_mover(struct mover *v, const struct wire_mover *f, struct ptcp_err *e)
{
	struct movers *m = v->set;
	char text[WIRE_HOST_MAX + 100];

	(void)e;
	span_copy(v->host, f->host);
	v->joined = true;
	m->n++;
	m->ever = true;
	snprintf(text, sizeof text, "mover %s: joined (%u now)", v->host, m->n);
	notify(m, text);
	pool_joined(v);
	pace(m);
	if (m->congestion[0] != '\0') /* INVITE did not name it yet */
		put_congestion(m, v);
	movers_changed(m);
	return 0;
}

static int on_ping(struct mover *v, const struct wire_ping *f, struct ptcp_err *e)
{
	(void)e;
	v->tick = f->tick;
	return 0;
}

enum { AWAIT_MOVER, JOINED };
static const char *const state_names[] = { "AWAIT_MOVER", "JOINED" };

#define IN(state) (1u << (state))
#define RULES(X) \
	X(PING, IN(AWAIT_MOVER) | IN(JOINED), 0, on_ping) \
	X(MOVER, IN(AWAIT_MOVER), 0, on_mover) \
	X(ENDPOINT, IN(JOINED), 0, pool_on_endpoint) \
	X(CONNECTED, IN(JOINED), 0, remote_on_connected) \
	X(ACCEPTED, IN(JOINED), 0, remote_on_accepted) \
	X(HOP, IN(JOINED), 0, remote_on_hop) \
	X(LOST, IN(JOINED), 0, remote_on_lost) \
	X(GONE, IN(JOINED), 0, remote_on_gone) \
	X(UNREAD, IN(JOINED), 0, remote_on_unread) \
	X(SENT, IN(JOINED), 0, remote_on_sent) \
	X(TRAFFIC, IN(JOINED), 0, remote_on_traffic) \
	X(WANT, IN(JOINED), 0, remote_on_want) \
	X(WROTE, IN(JOINED), 0, remote_on_wrote) \
	X(UNWRITTEN, IN(JOINED), 0, remote_on_unwritten) \
	X(CLOSED, IN(JOINED), 0, remote_on_closed)

RULES(FRAME_TAKE)
static const struct frame_rule rules[] = { RULES(FRAME_RULE) };

static unsigned state_of(const void *mover) { return ((const struct mover *)mover)->joined ? JOINED : AWAIT_MOVER; }

/* An engine returns the tick of the mover, whose lease it extends. */
static struct wire_ping ping_of(void *mover, struct mono now)
{
	(void)now;
	return (struct wire_ping){ WIRE_IDLE, ((struct mover *)mover)->tick };
}

const struct frame_table mover_table = { FRAME_TABLE_RULES(rules), .state_names = state_names, .state = state_of,
	.limits = mover_link_limits, .ping = ping_of };

static int mover_new(struct movers *m, struct chan *c, const struct inbound *g, struct ptcp_err *e)
{
	struct mover *v = calloc(1, sizeof *v);
	uint8_t joined[WIRE_HEADER_BYTES];
	int r;

	if (v == NULL || (v->known = calloc(WIRE_SLOTS, sizeof *v->known)) == NULL) {
		free(v);
		chan_free(c);
		return err_nomem(e);
	}
	v->set = m;
	v->id = ++m->last_id;
	snprintf(v->address, sizeof v->address, "%s", g->address);
	v->from = g->from;
	admission_session(listening(m)->pending.admission, v->from, true);
	strcpy(v->fingerprint, chan_fingerprint(c));
	list_init(&v->closing);
	list_append(&m->movers, &v->in_list);
	chan_write(c, joined, wire_joined_encode(joined));
	chan_flush(c);
	chan_detach(c);
	if ((r = mover_link_new(&v->link, m->o.control, c, &mover_table, v, on_link_lost, e)) < 0)
		mover_free(v);
	return r;
}

static unsigned all_links(const struct movers *m)
{
	const struct mover *v;
	unsigned n = 0;

	LIST_EACH(&m->movers, v, struct mover, in_list)
		n += v->link != NULL;
	return n;
}

/* The JOIN proves the key of the set on this very connection. */
static bool is_genuine(const struct movers *m, const struct inbound *g, const struct wire_join *j)
{
	return m != NULL && j->stream == 0 && join_proof_valid(g->chan, j, m->invitation.key, NULL) &&
	    (m->pool == NULL || pool_vouches(m->pool, chan_fingerprint(g->chan)));
}

static int on_join(void *arg, struct inbound *g, const struct wire_join *j, struct ptcp_err *e)
{
	struct movers *first = arg, *m = pool_find(first, j);

	if (!is_genuine(m, g, j)) {
		g->end = ADMISSION_BAD;
		inbound_log(g, m == NULL ? LOG_INFO : LOG_WARN, "mover-refused", "why=\"%s\"",
		    m == NULL ? "its session has ended" : "not the key of this invitation");
		return err_set(e, PTCP_EREFUSED, "no such invitation (movers join the transfer that invited them)");
	}
	if (all_links(m) >= MOVERS_MAX)
		return err_set(e, PTCP_EBUSY, "too many movers (at most %d)", MOVERS_MAX);
	return mover_new(m, inbound_take_chan(g), g, e);
}

static const struct inbound_ops inbound_ops = { .mover = on_join };

static void on_accepted(void *arg, int *fd, const char *address)
{
	pending_take(&((struct movers *)arg)->pending, fd, address, false);
}

/* ---- Once a second: rates ---- */

static void on_movers_timer(void *arg)
{
	struct movers *m = arg;
	struct mono now = mono_now();
	double s = (double)mono_diff_ns(now, m->metered) / 1e9;
	struct mover *v;

	LIST_EACH(&m->movers, v, struct mover, in_list) {
		if (m->pool != NULL)
			pool_count(v, false);
		v->rate_bps = s > 0 ? 8 * (double)(v->bytes - v->bytes_before) / s : 0;
		v->bytes_before = v->bytes;
	}
	m->metered = now;
	pace(m);
	timer_set(m->timer, mono_add_ns(now, METER_NS));
}

/* Sessions of a server divide its limit evenly. */
void movers_set_rate(struct movers *m, uint64_t bps)
{
	if (m->pool != NULL && bps > 0)
		bps = bps / m->pool->n_sessions + 1;
	if (m->rate_bps == bps)
		return;
	m->rate_bps = bps;
	pace(m);
}

void movers_set_congestion(struct movers *m, const char *name)
{
	const struct mover *v;

	if (strcmp(m->congestion, name) == 0)
		return;
	snprintf(m->congestion, sizeof m->congestion, "%s", name);
	LIST_EACH(&m->movers, v, struct mover, in_list)
		if (v->joined)
			put_congestion(m, v);
}

/* ---- Queries ---- */

unsigned movers_count(const struct movers *m) { return m->n; }

void movers_watch(struct movers *m, void (*fn)(void *arg), void *arg)
{
	m->changed = fn;
	m->changed_arg = arg;
}

bool movers_deal(const struct movers *m, uint32_t *place, unsigned n, const uint8_t *path)
{
	uint32_t id[MOVERS_MAX];
	const struct mover *v;
	unsigned k = 0;

	LIST_EACH(&m->movers, v, struct mover, in_list)
		if (v->joined)
			id[k++] = v->id;
	return deal_streams(place, n, path, id, k);
}

struct mover *movers_find(const struct movers *m, uint32_t id)
{
	struct mover *v;

	LIST_EACH(&m->movers, v, struct mover, in_list)
		if (v->joined && v->id == id)
			return v;
	return NULL;
}

void movers_forget(struct movers *m, uint64_t id)
{
	struct mover *v;

	LIST_EACH(&m->movers, v, struct mover, in_list)
		if (v->known[wire_slot(id)] == id) {
			v->known[wire_slot(id)] = 0;
			OUTBOX_PUT(mover_link_out(v->link), forget, FORGET, (&(struct wire_forget){ id }));
		}
}

void movers_stats(const struct movers *m, unsigned i, struct ptcp_mover_stats *out)
{
	const struct mover *v;

	*out = (struct ptcp_mover_stats){ .host = "" };
	LIST_EACH(&m->movers, v, struct mover, in_list)
		if (v->joined && i-- == 0)
			*out = (struct ptcp_mover_stats){ v->host, v->bytes, v->rate_bps,
			    v->n_streams + pool_streams(v) };
}

const char *movers_invitation(const struct movers *m) { return m->file != NULL ? m->file : "-"; }

/* ---- Making a set ---- */

static int copy_opts(struct movers *m, const struct movers_opts *o, struct ptcp_err *e)
{
	size_t i;

	if (o->n_roots == 0 || o->n_roots > INVITATION_ROOTS_MAX)
		return err_set(e, PTCP_EUSAGE,
		    "movers: more than %d sources in different directories (send their parent, or fewer)",
		    INVITATION_ROOTS_MAX);
	if ((o->file != NULL && (m->file = strdup(o->file)) == NULL) ||
	    (m->base = calloc(o->n_bases > 0 ? o->n_bases : 1, sizeof *m->base)) == NULL)
		return err_nomem(e);
	for (i = 0; i < o->n_bases; i++)
		if ((m->base[i].given = strdup(o->base[i].given)) == NULL ||
		    (m->base[i].absolute = strdup(o->base[i].absolute)) == NULL)
			return err_nomem(e);
	m->invitation.writes = o->writes;
	m->invitation.direct_io = o->direct_io;
	m->invitation.serves = o->serves;
	m->invitation.port = o->port;
	for (i = 0; i < o->n_roots; i++)
		if ((m->invitation.root[m->invitation.n_roots++] = strdup(o->root[i])) == NULL)
			return err_nomem(e);
	return 0;
}

/* All addresses of this host; loopback only without others. */
static void name_addresses(struct movers *m)
{
	char local[INVITATION_ADDRESSES_MAX][SOCK_HOST_BYTES];
	const char *own = listener_address(m->listener);
	struct invitation *v = &m->invitation;
	unsigned i, n = sock_local(local, INVITATION_ADDRESSES_MAX);

	if (strcmp(own, "::") != 0 && strcmp(own, "0.0.0.0") != 0) {
		snprintf(local[0], sizeof local[0], "%s", own);
		n = 1;
	} else if (n == 0) {
		strcpy(local[n++], "127.0.0.1");
	}
	for (i = 0; i < n; i++)
		sock_join(v->address[v->n_addresses++], sizeof v->address[0], local[i], listener_port(m->listener));
}

static int listen_on(struct movers *m, struct ptcp_err *e)
{
	int r = listener_new(&m->listener, m->o.control, m->o.listen != NULL ? m->o.listen : PORT_FREE, 0,
	    on_accepted, m, e);

	return r < 0 && m->o.listen != NULL ? err_while(e, r, "--movers-listen") : r;
}

static int listen_for_movers(struct movers *m, struct ptcp_err *e)
{
	struct pending_opts po = { .context = &m->context, .timeout_ns = JOIN_NS, .waiting = 2 * MOVERS_MAX,
		.sessions = MOVERS_MAX, .streams = m->o.serves ? SESSION_JOINS : 1, .ops = &inbound_ops, .arg = m };
	const unsigned ciphers = 1u << PTCP_CIPHER_AES128GCM | 1u << PTCP_CIPHER_AES256GCM | 1u << PTCP_CIPHER_CHACHA20;
	int r;

	m->context.control = m->o.control;
	m->context.log = *m->o.log;
	if ((r = identity_new(&m->context.identity, e)) < 0 ||
	    (r = tls_new(&m->context.server, &m->context.identity, true, ciphers, e)) < 0 ||
	    (r = pending_init(&m->pending, &po, e)) < 0 ||
	    (r = listen_on(m, e)) < 0 ||
	    (r = tls_random(m->invitation.run, sizeof m->invitation.run, e)) < 0 ||
	    (r = tls_random(m->invitation.key, sizeof m->invitation.key, e)) < 0)
		return r;
	strcpy(m->invitation.engine, m->context.identity.fingerprint);
	name_addresses(m);
	return 0;
}

struct movers *movers_bare(const struct movers_opts *o)
{
	struct movers *m = calloc(1, sizeof *m);

	if (m == NULL)
		return NULL;
	list_init(&m->movers);
	list_init(&m->launchers);
	list_init(&m->sessions);
	list_init(&m->in_pool);
	m->o = *o;
	m->none_since = m->metered = mono_now();
	return m;
}

int movers_meter(struct movers *m, struct ptcp_err *e)
{
	int r = timer_new(&m->timer, m->o.control, on_movers_timer, m, e);

	if (r == 0)
		timer_set(m->timer, mono_add_ns(mono_now(), METER_NS));
	return r;
}

int movers_new(struct movers **out, const struct movers_opts *o, struct ptcp_err *e)
{
	struct movers *m = movers_bare(o);
	char *file;
	int r;

	if (m == NULL)
		return err_nomem(e);
	if ((r = copy_opts(m, o, e)) < 0 || (r = movers_meter(m, e)) < 0 || (r = listen_for_movers(m, e)) < 0 ||
	    (r = invitation_text(&m->text, &m->invitation, e)) < 0) {
		free(m->file); /* not written yet */
		m->file = NULL;
		movers_free(m);
		return r;
	}
	file = m->file;
	m->file = NULL;
	if (file != NULL && (r = invitation_write(file, m->text, e)) < 0) {
		free(file);
		movers_free(m);
		return r;
	}
	m->file = file;
	m->file_fd = r;
	*out = m;
	return 0;
}

void movers_free(struct movers *m)
{
	size_t i;

	if (m == NULL)
		return;
	launchers_free(m);
	while (!list_empty(&m->movers)) {
		struct mover *v = CONTAINER_OF(m->movers.next, struct mover, in_list);

		OUTBOX_PUT(mover_link_out(v->link), end, END, (&(struct wire_end){ 0, 0 }));
		mover_free(v);
	}
	if (m->pool != NULL)
		m->pool->n_sessions--;
	list_remove(&m->in_pool);
	if (m->listener != NULL)
		pending_empty(&m->pending);
	listener_free(m->listener);
	pending_fini(&m->pending);
	explicit_bzero(m->session_key, sizeof m->session_key);
	timer_free(m->timer);
	context_fini(&m->context);
	if (m->file != NULL) {
		unlink(m->file);
		fd_close(&m->file_fd);
	}
	for (i = 0; m->base != NULL && i < m->o.n_bases; i++) {
		free(m->base[i].given);
		free(m->base[i].absolute);
	}
	free(m->base);
	free(m->into.given);
	free(m->into.absolute);
	if (m->text != NULL)
		explicit_bzero(m->text, strlen(m->text));
	free(m->text);
	free(m->file);
	invitation_fini(&m->invitation);
	free(m);
}
