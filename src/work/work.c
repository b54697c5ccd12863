#include "work/work_impl.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conn/join_proof.h"
#include "core/units.h"
#include "net/identity.h"
#include "net/reach.h"

#define CONNECT_NS (4 * NS_PER_S)   /* limit for each address of the engine */
#define LEASE_NS (6 * NS_PER_S)     /* lease of writes, from the sending of the last returned PING on */
#define FIRST_LEASE_NS (4 * NS_PER_S) /* lease before an answer */
#define TRAFFIC_NS (100 * NS_PER_MS)
#define LOCAL_MAX 32                /* addresses of this host */

static void on_work_ended(struct msg *m)
{
	process_ended(CONTAINER_OF(m, struct work, ended));
}

void work_end(struct work *w, const struct ptcp_err *why)
{
	if (w->over)
		return;
	w->over = true;
	if (why != NULL) {
		w->why = *why;
		w->result = why->code;
	}
	atomic_store(&w->targets.lease.until_ns, 0); /* late files are not waited for */
	work_stop_streams(w);
	work_step_ended(w);
}

void work_step_ended(struct work *w)
{
	if (!w->over || w->n_streams > 0 || w->n_io > 0 || w->ended_posted)
		return;
	w->ended_posted = true;
	w->ended.run = on_work_ended;
	loop_post(w->loop, &w->ended); /* callers still use it */
}

/* ---- Frames of the engine ---- */

static int on_source(struct work *w, const struct wire_source *f, struct ptcp_err *e)
{
	return work_files_add(&w->files, f, work_direct_io(w), e);
}

static int on_forget(struct work *w, const struct wire_forget *f, struct ptcp_err *e)
{
	(void)e;
	work_files_forget(&w->files, f->id);
	return 0;
}

static int on_end(struct work *w, const struct wire_end *f, struct ptcp_err *e)
{
	(void)f;
	(void)e;
	work_end(w, NULL);
	return 0;
}

/* A malformed or late invitation harms its session only. */
static int on_invite(struct work *w, const struct wire_invite *f, struct ptcp_err *e)
{
	struct work_session *s = calloc(1, sizeof *s);
	struct work *made;
	struct ptcp_err why;

	if (s == NULL)
		return err_nomem(e);
	memcpy(s->id, f->session, sizeof s->id);
	memcpy(s->join, f->join, sizeof s->join);
	identity_digest_text(s->peer, f->peer);
	span_copy(s->near, f->near);
	span_copy(s->congestion, f->congestion);
	s->cipher = f->cipher;
	s->flags = f->flags & ~WIRE_STREAM_AHEAD;
	s->streams = f->streams;
	s->timeout_ns = f->timeout_ms * NS_PER_MS;
	if (work_new(&made, w->process, f->run, f->key, s, &why) < 0)
		log_at(&w->process->context.log, LOG_WARN, "mover", "event=session-failed why=\"%s\"", why.msg);
	return 0;
}

/* The engine gives the mover up LINK_TIMEOUT_NS after the receipt of a PING, at the earliest. `tick` is the time at
 * which this end sent the last PING that the engine has received; 0: none. */
static int on_ping(struct work *w, const struct wire_ping *f, struct ptcp_err *e)
{
	(void)e;
	if (f->tick + LEASE_NS > atomic_load(&w->targets.lease.until_ns))
		atomic_store(&w->targets.lease.until_ns, f->tick + LEASE_NS);
	return 0;
}

enum { WORKING, SERVING, OVER };
static const char *const state_names[] = { "WORKING", "SERVING", "OVER" };

#define IN(state) (1u << (state))
#define RULES(X) \
	X(PING, IN(WORKING) | IN(SERVING), 0, on_ping) \
	X(END, IN(WORKING) | IN(SERVING), 0, on_end) \
	X(INVITE, IN(SERVING), 0, on_invite) \
	X(STREAM, IN(WORKING), 0, work_on_stream) \
	X(PASS, IN(WORKING), 0, work_on_pass) \
	X(SOURCE, IN(WORKING), 0, on_source) \
	X(SEND, IN(WORKING), 0, work_on_send) \
	X(FORGET, IN(WORKING), 0, on_forget) \
	X(TARGET, IN(WORKING), 0, work_on_target) \
	X(CLOSE, IN(WORKING), 0, work_on_close) \
	X(CHECK, IN(WORKING), 0, work_on_check) \
	X(STOP, IN(WORKING), 0, work_on_stop) \
	X(PACE, IN(WORKING), 0, work_on_pace)

RULES(FRAME_TAKE)
static const struct frame_rule rules[] = { RULES(FRAME_RULE) };

static unsigned state_of(const void *work)
{
	const struct work *w = work;

	return w->over ? OVER : w->serves ? SERVING : WORKING;
}

static struct wire_ping ping_of(void *work, struct mono now)
{
	(void)work;
	return (struct wire_ping){ WIRE_IDLE, now.ns };
}

static const struct frame_table table = { FRAME_TABLE_RULES(rules), .state_names = state_names, .deaf = IN(OVER),
	.state = state_of, .limits = mover_link_limits, .ping = ping_of };

static void on_link_lost(void *arg, const struct ptcp_err *why)
{
	struct work *w = arg;
	struct ptcp_err named = *why;

	err_while(&named, named.code, "the engine at %s", w->process->invitation.address[w->process->address]);
	work_end(w, &named);
}

/* ---- Joining ---- */

static void join(struct work *w);

static int write_join(void *arg, struct chan *c, struct ptcp_err *e)
{
	const struct work *w = arg;

	return join_proof_write(c, w->run, w->key, 0, e);
}

static void on_work_timer(void *arg)
{
	struct work *w = arg;

	work_report_traffic(w);
	timer_set(w->timer, mono_add_ns(mono_now(), TRAFFIC_NS));
}

/* The address of this host nearest to the server's address towards the client. Of a client on the server's host that
 * address is a loopback address: then the address towards the engine serves. */
static void name_endpoint(const struct work *w, int link)
{
	char local[LOCAL_MAX][SOCK_HOST_BYTES], own[SOCK_HOST_BYTES];
	struct wire_endpoint f = { .port = (uint16_t)process_port(w->process) };
	struct sockaddr_storage sa;
	socklen_t n = sizeof sa;
	const char *host = own;
	unsigned count;

	if (getsockname(link, (struct sockaddr *)&sa, &n) != 0 ||
	    getnameinfo((struct sockaddr *)&sa, n, own, sizeof own, NULL, 0, NI_NUMERICHOST) != 0)
		strcpy(own, "127.0.0.1");
	if (!(reach_numeric(&sa, w->session->near) && reach_of((struct sockaddr *)&sa) == REACH_HOST) &&
	    (count = sock_local(local, LOCAL_MAX)) > 0)
		host = reach_nearest(local, count, w->session->near);
	f.host = (struct span){ (const uint8_t *)host, strlen(host) };
	identity_digest(f.peer, w->process->context.identity.fingerprint);
	OUTBOX_PUT(mover_link_out(w->link), endpoint, ENDPOINT, &f);
}

static void joined(struct work *w, struct chan *c)
{
	char host[WIRE_HOST_MAX + 1] = "";
	int fd = chan_fd(c);
	struct ptcp_err why;

	if (mover_link_new(&w->link, w->loop, c, &table, w, on_link_lost, &why) < 0) {
		work_end(w, &why);
		return;
	}
	if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0')
		strcpy(host, "unknown");
	OUTBOX_PUT(mover_link_out(w->link), mover, MOVER,
	    (&(struct wire_mover){ { (const uint8_t *)host, strlen(host) } }));
	atomic_store(&w->targets.lease.until_ns, mono_add_ns(mono_now(), FIRST_LEASE_NS).ns);
	if (w->session != NULL)
		name_endpoint(w, fd);
	log_at(&w->process->context.log, LOG_INFO, "mover", "event=joined engine=%s",
	    w->process->invitation.address[w->process->address]);
	on_work_timer(w);
}

static void on_connected(void *arg, const struct connect_result *r)
{
	struct work *w = arg;
	struct mover_process *p = w->process;
	struct ptcp_err why = r->why;

	w->connect = NULL;
	if (r->chan != NULL) {
		joined(w, r->chan);
	} else if (w == p->first && r->cause != CONNECT_REFUSED && r->cause != CONNECT_IDENTITY &&
	    p->address + 1 < p->invitation.n_addresses) {
		log_at(&p->context.log, LOG_INFO, "mover", "event=join-failed why=\"%s\"", why.msg);
		p->address++;
		join(w);
	} else {
		work_end(w, &why);
	}
}

static void join(struct work *w)
{
	struct mover_process *p = w->process;
	char host[SOCK_HOST_BYTES];
	struct connect_opts o = { .context = &p->context, .host = host, .timeout_ns = CONNECT_NS,
		.sock = { .timeout_ns = LINK_TIMEOUT_NS }, .alpn = ALPN_MOVER, .answer = WIRE_JOINED,
		.first = write_join,
		.fingerprint = p->invitation.engine, .hint = "has its transfer ended?",
		.done = on_connected, .arg = w };
	struct ptcp_err why;

	if (sock_split(p->invitation.address[p->address], host, &o.port, 0, &why) < 0 ||
	    connect_start(&w->connect, &o, &why) < 0)
		work_end(w, &why);
}

/* ---- Beginning and end ---- */

static int open_files(struct work *w, struct ptcp_err *e)
{
	struct mover_process *p = w->process;
	int r = 0;

	if (w->session != NULL)
		r = work_files_open(&w->files, &p->invitation, 0, e);
	else
		w->files = p->files;
	if (w->session == NULL)
		p->files = (struct work_files){ .n_roots = 0 };
	return r < 0 ? r : timer_new(&w->timer, w->loop, on_work_timer, w, e);
}

int work_new(struct work **out, struct mover_process *p, const uint8_t run[WIRE_SESSION_BYTES], const uint8_t key[32],
    struct work_session *session, struct ptcp_err *e)
{
	struct work *w = calloc(1, sizeof *w);
	int r;

	if (w == NULL) {
		free(session);
		return err_nomem(e);
	}
	w->process = p;
	w->loop = p->loop;
	w->session = session;
	w->serves = session == NULL && p->invitation.serves;
	w->receives = session != NULL ? (session->flags & WIRE_STREAM_RECEIVE) != 0 : p->invitation.writes;
	memcpy(w->run, run, sizeof w->run);
	memcpy(w->key, key, sizeof w->key);
	list_init(&w->streams);
	list_append(&p->works, &w->in_list);
	pacer_init(&w->pacer);
	work_targets_init(&w->targets);
	if ((r = open_files(w, e)) < 0) {
		work_free(w);
		return r;
	}
	join(w);
	*out = w;
	return 0;
}

void work_free(struct work *w)
{
	list_remove(&w->in_list);
	connect_cancel(w->connect);
	mover_link_free(w->link);
	timer_free(w->timer);
	work_targets_fini(&w->targets);
	work_files_fini(&w->files);
	explicit_bzero(w->key, sizeof w->key);
	if (w->session != NULL)
		explicit_bzero(w->session, sizeof *w->session);
	free(w->session);
	free(w);
}
