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
	const struct context *h = arg;

	h->log_fn(h->log_arg, (enum ptcp_log_level)level, component, msg);
}

void context_log(struct context *h, ptcp_log_fn *fn, void *arg, enum ptcp_log_level level)
{
	h->log_fn = fn;
	h->log_arg = arg;
	h->log = (struct log){ fn != NULL ? write_log : NULL, h, (enum log_level)level };
}

int context_check_fds(unsigned fds, struct ptcp_err *e)
{
	return fd_budget_check(LOOP_FDS + (fds > SESSION_MIN_FDS ? fds : SESSION_MIN_FDS), e);
}

int context_init(struct context *h, struct loop *control, const char *config, unsigned workers,
    unsigned client_ciphers, unsigned server_ciphers, struct ptcp_err *e)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	struct identity id = h->identity;
	unsigned i;
	int r;

	*h = (struct context){ .control = control, .log = h->log, .log_fn = h->log_fn, .log_arg = h->log_arg,
		.identity = id };
	list_init(&h->balance.streams);
	if (cores > 0 && workers > (unsigned)cores)
		workers = (unsigned)cores;
	if (workers > CONTEXT_WORKERS_MAX)
		workers = CONTEXT_WORKERS_MAX;
	while (workers > 1 && !fd_budget_fits(4 * workers * LOOP_FDS)) /* sessions need more */
		workers--;
	if ((r = userdir_config(h->config_dir, config, e)) < 0 ||
	    (id.key == NULL && (r = identity_load(&h->identity, h->config_dir, false, e)) < 0) ||
	    (client_ciphers != 0 && (r = tls_new(&h->client, &h->identity, false, client_ciphers, e)) < 0) ||
	    (server_ciphers != 0 && (r = tls_new(&h->server, &h->identity, true, server_ciphers, e)) < 0) ||
	    (r = resolver_new(&h->names, control, getaddrinfo, e)) < 0 ||
	    (r = io_new(&h->io, IO_THREADS, e)) < 0)
		goto out;
	for (i = 0; i < workers; i++) {
		if ((r = loop_new(&h->worker[i], e)) < 0)
			goto out;
		h->n_workers++;
		fd_budget_count(LOOP_FDS);
		if ((r = loop_start_thread(h->worker[i], e)) < 0)
			goto out;
	}
	return 0;
out:
	context_fini(h);
	return r;
}

void context_renew_certificates(struct context *h)
{
	struct certificates c;
	struct ptcp_err why;

	if (certificates_load(&c, h->config_dir, &why) < 0 || identity_present(&h->identity, &c, &why) < 0) {
		log_at(&h->log, LOG_ERROR, "trust", "event=certificates why=\"%s\"", why.msg);
		return;
	}
	if (h->client != NULL)
		SSL_CTX_use_certificate(h->client, h->identity.cert);
	if (h->server != NULL)
		SSL_CTX_use_certificate(h->server, h->identity.cert);
}

/* A worker would have blocks wait for handshakes, and handshakes for blocks. Where descriptors are few, sessions need
 * them more than this loop. */
static struct loop *handshake_loop(struct context *h)
{
	struct ptcp_err e;

	if (h->n_handshakes < HANDSHAKES_ON_CONTROL)
		return h->control;
	if (h->handshakes == NULL && fd_budget_fits(4 * (h->n_workers + 1) * LOOP_FDS) &&
	    loop_new(&h->handshakes, &e) == 0) {
		if (loop_start_thread(h->handshakes, &e) == 0) {
			fd_budget_count(LOOP_FDS);
		} else {
			loop_free(h->handshakes);
			h->handshakes = NULL;
		}
	}
	return h->handshakes != NULL ? h->handshakes : h->control;
}

int context_handshake(struct context *h, struct handshake **out, SSL_CTX *tls, int *fd, const struct chan_opts *c,
    void (*done)(void *arg, struct chan *c, const struct ptcp_err *why), struct ptcp_err *e)
{
	struct handshake_opts o = { .home = h->control, .worker = handshake_loop(h), .running = &h->n_handshakes,
		.done = done };

	return handshake_start(out, &o, tls, fd, c, e);
}

void context_fini(struct context *h)
{
	unsigned i;

	pacing_stop(&h->pacing);
	timer_free(h->balance.timer);
	h->balance.timer = NULL;
	io_free(h->io);
	resolver_free(h->names);
	for (i = 0; i < h->n_workers; i++) {
		loop_free(h->worker[i]);
		fd_budget_count(-LOOP_FDS);
	}
	if (h->handshakes != NULL) {
		loop_free(h->handshakes);
		fd_budget_count(-LOOP_FDS);
	}
	SSL_CTX_free(h->client);
	SSL_CTX_free(h->server);
	identity_fini(&h->identity);
	h->io = NULL;
	h->names = NULL;
	h->n_workers = 0;
	h->handshakes = NULL;
	h->client = h->server = NULL;
}
