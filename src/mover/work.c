#include "mover/work_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/units.h"
#include "net/identity.h"

#define TIMEOUT_NS (8 * NS_PER_S)   /* of a silent engine: the mover ends */
#define CONNECT_NS (4 * NS_PER_S)   /* for each address of the engine */
#define LATE_NS (5 * NS_PER_S)      /* that a shared file system may show new files late */
#define TRAFFIC_NS (100 * NS_PER_MS)

void work_end(struct work *w, const struct ptcp_err *why)
{
	if (w->over)
		return;
	w->over = true;
	if (why != NULL) {
		w->why = *why;
		w->result = why->code;
	}
	atomic_store(&w->targets.over, true);
	work_stop_streams(w);
	work_step_ended(w);
}

void work_step_ended(struct work *w)
{
	if (w->over && w->n_streams == 0 && w->n_io == 0)
		loop_stop(w->loop);
}

/* ---- Frames of the engine ---- */

static int on_source(struct work *w, const struct wire_source *f, struct ptcp_err *e)
{
	return work_files_add(&w->files, f, e);
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

#define CASE(X, x, handler) \
	case WIRE_##X: { \
		struct wire_##x d; \
		int r = wire_##x##_decode(&d, f->payload, e); \
		return r < 0 ? r : handler(w, &d, e); \
	}

static int on_frame(void *arg, const struct frame *f, struct ptcp_err *e)
{
	struct work *w = arg;

	if (w->over)
		return 0;
	switch (f->type) {
	CASE(STREAM, stream, work_on_stream)
	CASE(SOURCE, source, on_source)
	CASE(SEND, send, work_on_send)
	CASE(FORGET, forget, on_forget)
	CASE(TARGET, target, work_on_target)
	CASE(CLOSE, close, work_on_close)
	CASE(CHECK, check, work_on_check)
	CASE(STOP, stop, work_on_stop)
	CASE(PACE, pace, work_on_pace)
	CASE(END, end, on_end)
	default:
		return err_set(e, PTCP_EPROTO, "unexpected %s frame of an engine", wire_type_name(f->type));
	}
}

static void on_link_lost(void *arg, const struct ptcp_err *why)
{
	struct work *w = arg;
	struct ptcp_err named = *why;

	err_while(&named, named.code, "the engine at %s", w->invitation.address[w->address]);
	work_end(w, &named);
}

static const struct mover_link_ops link_ops = { on_frame, on_link_lost };

/* ---- Joining ---- */

static void join(struct work *w);

static int write_join(void *arg, struct chan *c, struct ptcp_err *e)
{
	const struct work *w = arg;
	struct wire_join f = { .stream = 0 };
	uint8_t exporter[32], frame[WIRE_JOIN_MAX_BYTES];
	int r;

	memcpy(f.session, w->invitation.run, sizeof f.session);
	if ((r = chan_export(c, exporter, e)) == 0)
		r = tls_join_mac(f.mac, w->invitation.key, exporter, f.session, f.stream);
	explicit_bzero(exporter, sizeof exporter);
	if (r == 0)
		chan_write(c, frame, wire_join_encode(frame, &f));
	return r;
}

static void on_timer(void *arg)
{
	struct work *w = arg;

	work_report_traffic(w);
	timer_set(w->timer, mono_add_ns(mono_now(), TRAFFIC_NS));
}

static void joined(struct work *w, struct chan *c)
{
	char host[WIRE_HOST_MAX + 1] = "";
	struct ptcp_err why;

	if (mover_link_new(&w->link, w->loop, c, TIMEOUT_NS, &link_ops, w, &why) < 0) {
		work_end(w, &why);
		return;
	}
	if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0')
		strcpy(host, "unknown");
	OUTBOX_PUT(mover_link_out(w->link), mover, MOVER, (&(struct wire_mover){ { (const uint8_t *)host, strlen(host) } }));
	log_at(&w->host.log, LOG_INFO, "mover", "event=joined engine=%s", w->invitation.address[w->address]);
	on_timer(w);
}

static void on_connected(void *arg, const struct connect_result *r)
{
	struct work *w = arg;
	struct ptcp_err why = r->why;

	w->connect = NULL;
	if (r->chan != NULL) {
		joined(w, r->chan);
	} else if (r->cause != CONNECT_REFUSED && r->cause != CONNECT_IDENTITY && w->address + 1 < w->invitation.n_addresses) {
		log_at(&w->host.log, LOG_INFO, "mover", "event=join-failed why=\"%s\"", why.msg);
		w->address++;
		join(w);
	} else {
		work_end(w, &why);
	}
}

static void join(struct work *w)
{
	char host[SOCK_HOST_BYTES];
	struct connect_opts o = { .context = &w->host, .host = host, .timeout_ns = CONNECT_NS,
		.sock = { .timeout_ns = TIMEOUT_NS }, .alpn = ALPN_MOVER, .answer = WIRE_JOINED, .first = write_join,
		.fingerprint = w->invitation.engine, .hint = "has its transfer ended?", .done = on_connected, .arg = w };
	struct ptcp_err why;

	if (sock_split(w->invitation.address[w->address], host, &o.port, 0, &why) < 0 ||
	    connect_start(&w->connect, &o, &why) < 0)
		work_end(w, &why);
}

/* ---- Start and end ---- */

static int confine(struct work *w, struct ptcp_err *e)
{
	struct ptcp_mover_needs needs = { .roots = (const char *const *)w->invitation.root, .n_roots = w->invitation.n_roots,
		.writes = w->invitation.writes };

	return w->o->confine != NULL ? w->o->confine(w->o->arg, &needs, e) : 0;
}

/* Threads inherit the restrictions of this one, hence confine() comes before them. */
static int start(struct work *w, struct ptcp_err *e)
{
	const unsigned ciphers = 1u << PTCP_CIPHER_AES128GCM | 1u << PTCP_CIPHER_AES256GCM | 1u << PTCP_CIPHER_CHACHA20;
	int r;

	context_log(&w->host, w->o->log, w->o->arg, w->o->log_level);
	if ((r = invitation_read(&w->invitation, w->o->join, LATE_NS, e)) < 0 ||
	    (r = work_files_open(&w->files, &w->invitation, LATE_NS, e)) < 0 || (r = confine(w, e)) < 0 ||
	    (r = identity_new(&w->host.identity, e)) < 0 || (r = loop_new(&w->loop, e)) < 0 ||
	    (r = context_init(&w->host, w->loop, "/", CONTEXT_WORKERS_MAX, ciphers, 0, e)) < 0)
		return r;
	return timer_new(&w->timer, w->loop, on_timer, w, e);
}

static void finish(struct work *w)
{
	connect_cancel(w->connect);
	mover_link_free(w->link);
	timer_free(w->timer);
	if (w->loop != NULL)
		context_fini(&w->host);
	loop_free(w->loop);
	work_targets_fini(&w->targets);
	work_files_fini(&w->files);
	invitation_fini(&w->invitation);
}

int mover_work(const struct ptcp_mover_opts *o, struct ptcp_err *e)
{
	struct work *w = calloc(1, sizeof *w);
	int r;

	if (w == NULL)
		return err_nomem(e);
	w->o = o;
	list_init(&w->streams);
	work_targets_init(&w->targets);
	if ((r = start(w, e)) == 0) {
		join(w);
		loop_run(w->loop);
		if ((r = w->result) < 0 && e != NULL)
			*e = w->why;
	}
	finish(w);
	free(w);
	return r;
}
