#include "conn/context.h"

#include <time.h>
#include <unistd.h>

#include "core/err.h"
#include "core/text.h"
#include "fs/fd_budget.h"
#include "net/trust/certificate.h"

#define IO_THREADS 64 /* operations on disks at once: a disk with latency needs some for each stream */
#define LOOP_FDS 4 /* libuv's */
#define HANDSHAKES_ON_CONTROL 2u /* handshakes of a control connection and the first stream: these need no thread */
#define PACING_NS NS_PER_S
/* Of a session with one stream, whose connection is duplicated for TCP_INFO, that receives a file with a journal. */
#define SESSION_MIN_FDS 7u

/* ---- The rate ---- */

static void apply(struct pacing *p)
{
	struct mono now = mono_now();

	p->bps = timetable_bps(&p->table, timetable_second(time(NULL)));
	pacer_set(&p->out, p->bps, now);
	pacer_set(&p->in, p->loose ? pacer_loose_bps(p->bps) : p->bps, now);
}

/* Every second, rather than when the next range begins: the clock may be set, and may skip or repeat an hour. */
static void on_pacing_timer(void *arg)
{
	struct pacing *p = arg;

	apply(p);
	timer_set(p->timer, mono_add_ns(mono_now(), PACING_NS));
}

int pacing_set(struct pacing *p, const struct timetable *t, struct loop *control, struct ptcp_err *e)
{
	struct timer *timer = NULL;
	int r;

	if (timetable_varies(t)) {
		if ((r = timer_new(&timer, control, on_pacing_timer, p, e)) < 0)
			return r;
		timer_set(timer, mono_add_ns(mono_now(), PACING_NS));
	}
	timer_free(p->timer);
	p->timer = timer;
	p->table = *t;
	apply(p);
	return 0;
}

void pacing_loosen(struct pacing *p)
{
	p->loose = true;
	apply(p);
}

/* Zeroed memory is fine. */
static void pacing_stop(struct pacing *p)
{
	timer_free(p->timer);
	p->timer = NULL;
	p->loose = false;
}

int pacing_parse(struct timetable *t, const char *text, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	struct ptcp_err why;

	*t = (struct timetable){ .n = 0 };
	if (text == NULL || timetable_parse(t, text, &why) == 0)
		return 0;
	return err_set(e, why.code, "--rate %s: %s", text_escape(shown, sizeof shown, text), why.msg);
}

/* ---- Everything ---- */

static void write_log(void *arg, enum log_level level, const char *component, const char *msg)
{
	const struct context *context = arg;

	context->log_fn(context->log_arg, (enum ptcp_log_level)level, component, msg);
}

void context_log(struct context *context, ptcp_log_fn *fn, void *arg, enum ptcp_log_level level)
{
	context->log_fn = fn;
	context->log_arg = arg;
	context->log = (struct log){ fn != NULL ? write_log : NULL, context, (enum log_level)level };
}

int context_check_fds(unsigned fds, struct ptcp_err *e)
{
	return fd_budget_check(LOOP_FDS + (fds > SESSION_MIN_FDS ? fds : SESSION_MIN_FDS), e);
}

int context_init(struct context *context, struct loop *control, const char *config, unsigned workers,
    unsigned client_ciphers, unsigned server_ciphers, struct ptcp_err *e)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	struct identity id = context->identity;
	unsigned i;
	int r;

	*context = (struct context){ .control = control, .log = context->log, .log_fn = context->log_fn,
	    .log_arg = context->log_arg,
		.identity = id };
	list_init(&context->balance.streams);
	if (cores > 0 && workers > (unsigned)cores)
		workers = (unsigned)cores;
	if (workers > CONTEXT_WORKERS_MAX)
		workers = CONTEXT_WORKERS_MAX;
	while (workers > 1 && !fd_budget_fits(4 * workers * LOOP_FDS)) /* sessions need more */
		workers--;
	if ((r = userdir_config(context->config_dir, config, e)) < 0 ||
	    (id.key == NULL && (r = identity_load(&context->identity, context->config_dir, false, e)) < 0) ||
	    (client_ciphers != 0 && (r = tls_new(&context->client, &context->identity, false,
	    client_ciphers, e)) < 0) ||
	    (server_ciphers != 0 && (r = tls_new(&context->server, &context->identity, true, server_ciphers, e)) < 0) ||
	    (r = resolver_new(&context->names, control, getaddrinfo, e)) < 0 ||
	    (r = io_new(&context->io, IO_THREADS, e)) < 0)
		goto out;
	for (i = 0; i < workers; i++) {
		if ((r = loop_new(&context->worker[i], e)) < 0)
			goto out;
		context->n_workers++;
		fd_budget_count(LOOP_FDS);
		if ((r = loop_start_thread(context->worker[i], e)) < 0)
			goto out;
	}
	return 0;
out:
	context_fini(context);
	return r;
}

void context_renew_certificates(struct context *context)
{
	struct certificates c;
	struct ptcp_err why;

	if (certificates_load(&c, context->config_dir, &why) < 0 ||
	    identity_present(&context->identity, &c, &why) < 0) {
		log_at(&context->log, LOG_ERROR, "trust", "event=certificates why=\"%s\"", why.msg);
		return;
	}
	if (context->client != NULL)
		SSL_CTX_use_certificate(context->client, context->identity.cert);
	if (context->server != NULL)
		SSL_CTX_use_certificate(context->server, context->identity.cert);
}

/* A worker would have blocks wait for handshakes, and handshakes for blocks. Where descriptors are few, sessions need
 * them more than this loop. */
static struct loop *handshake_loop(struct context *context)
{
	struct ptcp_err e;

	if (context->n_handshakes < HANDSHAKES_ON_CONTROL)
		return context->control;
	if (context->handshakes == NULL && fd_budget_fits(4 * (context->n_workers + 1) * LOOP_FDS) &&
	    loop_new(&context->handshakes, &e) == 0) {
		if (loop_start_thread(context->handshakes, &e) == 0) {
			fd_budget_count(LOOP_FDS);
		} else {
			loop_free(context->handshakes);
			context->handshakes = NULL;
		}
	}
	return context->handshakes != NULL ? context->handshakes : context->control;
}

int context_handshake(struct context *context, struct handshake **out, SSL_CTX *tls, int *fd, const struct chan_opts *c,
    void (*done)(void *arg, struct chan *c, const struct ptcp_err *why), struct ptcp_err *e)
{
	struct handshake_opts o = { .home = context->control, .worker = handshake_loop(context),
		.running = &context->n_handshakes, .done = done };

	return handshake_start(out, &o, tls, fd, c, e);
}

void context_fini(struct context *context)
{
	unsigned i;

	pacing_stop(&context->pacing);
	timer_free(context->balance.timer);
	context->balance.timer = NULL;
	io_free(context->io);
	resolver_free(context->names);
	for (i = 0; i < context->n_workers; i++) {
		loop_free(context->worker[i]);
		fd_budget_count(-LOOP_FDS);
	}
	if (context->handshakes != NULL) {
		loop_free(context->handshakes);
		fd_budget_count(-LOOP_FDS);
	}
	SSL_CTX_free(context->client);
	SSL_CTX_free(context->server);
	identity_fini(&context->identity);
	context->io = NULL;
	context->names = NULL;
	context->n_workers = 0;
	context->handshakes = NULL;
	context->client = context->server = NULL;
}
