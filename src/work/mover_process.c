/* The process of a mover: start, confinement, connections of clients, end. */
#include <stdlib.h>
#include <string.h>

#include "conn/join_proof.h"
#include "core/err.h"
#include "core/units.h"
#include "mover/movers.h"
#include "work/work_impl.h"

#define LATE_NS (5 * NS_PER_S)      /* delay of new files on a shared file system */
#define CLIENT_NS (8 * NS_PER_S)    /* limit of the socket of a silent client, before the session's limit applies */
#define WAITING_MAX 256             /* connections of clients that have not joined */

/* ---- Connections of clients ---- */

static struct work *mover_process_find(const struct mover_process *p, const uint8_t session[WIRE_SESSION_BYTES])
{
	struct work *w;

	LIST_EACH(&p->works, w, struct work, in_list)
		if (w->session != NULL && !w->over && w->link != NULL &&
		    memcmp(w->session->id, session, WIRE_SESSION_BYTES) == 0)
			return w;
	return NULL;
}

static int on_join(void *arg, struct inbound *g, const struct wire_join *j, bool *plaintext, struct ptcp_err *e)
{
	const struct work *w = mover_process_find(arg, j->session);

	/* The client joins with the key of this mover. */
	if (w != NULL && j->stream < w->session->streams &&
	    join_proof_valid(g->chan, j, w->session->join, w->session->peer)) {
		*plaintext = w->session->cipher == PTCP_CIPHER_NONE;
		return 0;
	}
	g->end = ADMISSION_BAD;
	inbound_log(g, LOG_WARN, "join-refused", "client=%s", chan_fingerprint(g->chan));
	return err_set(e, PTCP_EREFUSED, "no such session or stream");
}

static void on_stream(void *arg, struct chan *c, const struct wire_join *j)
{
	struct work *w = mover_process_find(arg, j->session);

	if (w != NULL)
		work_accept(w, c, j->stream);
	else
		chan_free(c); /* the session has ended */
}

static const struct inbound_ops inbound_ops = { .join = on_join, .stream = on_stream };

static void on_accepted(void *arg, int *fd, const char *address)
{
	struct mover_process *p = arg;

	pending_take(&p->pending, fd, address, false);
}

unsigned process_port(const struct mover_process *p) { return listener_port(p->listener); }

static int listen_for_clients(struct mover_process *p, struct ptcp_err *e)
{
	char where[16];
	int r;

	snprintf(where, sizeof where, ":%u", p->invitation.port);
	r = listener_new(&p->listener, p->loop, where, 0, on_accepted, p, e);
	return r < 0 ? err_while(e, r, "mover") : 0;
}

/* ---- Start and end ---- */

static int confine(struct mover_process *p, struct ptcp_err *e)
{
	struct ptcp_mover_needs needs = { .roots = (const char *const *)p->invitation.root,
		.n_roots = p->invitation.n_roots, .writes = p->invitation.writes };

	return p->o->confine != NULL ? p->o->confine(p->o->arg, &needs, e) : 0;
}

/* Threads inherit the restrictions of this one, hence confine() comes before them, and after the listener. */
static int mover_process_start(struct mover_process *p, struct ptcp_err *e)
{
	const unsigned ciphers = 1u << PTCP_CIPHER_AES128GCM | 1u << PTCP_CIPHER_AES256GCM | 1u << PTCP_CIPHER_CHACHA20;
	const struct pending_opts pending = { .context = &p->context, .timeout_ns = CLIENT_NS, .waiting = WAITING_MAX,
		.sessions = MOVERS_MAX, .streams = PTCP_STREAMS_MAX, .ops = &inbound_ops, .arg = p };
	int r;

	context_log(&p->context, p->o->log, p->o->arg, p->o->log_level);
	if ((r = invitation_read(&p->invitation, p->o->join, LATE_NS, e)) < 0 || (r = loop_new(&p->loop, e)) < 0 ||
	    (p->invitation.serves && (r = listen_for_clients(p, e)) < 0) ||
	    (r = work_files_open(&p->files, &p->invitation, LATE_NS, e)) < 0 ||
	    (r = confine(p, e)) < 0 || (r = identity_new(&p->context.identity, e)) < 0 ||
	    (r = context_init(&p->context, p->loop, "/", CONTEXT_WORKERS_MAX, ciphers,
	    p->invitation.serves ? ciphers : 0, e)) < 0 || (r = pending_init(&p->pending, &pending, e)) < 0)
		return r;
	return work_new(&p->first, p, p->invitation.run, p->invitation.key, NULL, e);
}

void process_ended(struct work *w)
{
	struct mover_process *p = w->process;
	struct work *other;

	if (w == p->first) {
		p->first = NULL;
		p->over = true;
		p->result = w->result;
		p->why = w->why;
		listener_free(p->listener);
		p->listener = NULL;
		LIST_EACH(&p->works, other, struct work, in_list)
			work_end(other, NULL);
	}
	work_free(w);
	if (p->over && list_empty(&p->works))
		loop_stop(p->loop);
}

static void mover_process_finish(struct mover_process *p)
{
	if (p->pending.admission != NULL)
		pending_empty(&p->pending);
	listener_free(p->listener);
	pending_fini(&p->pending);
	work_files_fini(&p->files);
	if (p->loop != NULL)
		context_fini(&p->context);
	loop_free(p->loop);
	invitation_fini(&p->invitation);
}

int mover_work(const struct ptcp_mover_opts *o, struct ptcp_err *e)
{
	struct mover_process p = { .o = o };
	int r;

	list_init(&p.works);
	if ((r = mover_process_start(&p, e)) == 0) {
		loop_run(p.loop);
		if ((r = p.result) < 0 && e != NULL)
			*e = p.why;
	}
	mover_process_finish(&p);
	return r;
}
