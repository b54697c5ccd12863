/* Shared by the sessions of one handle: loops and their threads, I/O threads, identity, rate, log. */
#ifndef CONN_CONTEXT_H
#define CONN_CONTEXT_H

#include "core/list.h"
#include "core/log.h"
#include "core/pacer.h"
#include "core/timetable.h"
#include "core/userdir.h"
#include "fs/io.h"
#include "net/handshake.h"
#include "net/resolve.h"

#define CONTEXT_WORKERS_MAX 64

/* Rate limit of all streams together, in each direction. Control thread, except for the pacers. */
struct pacing {
	struct pacer out, in;     /* blocks sent and received */
	struct timetable table;
	struct timer *timer;      /* NULL: the rate is constant */
	uint64_t bps;             /* now; 0: no limit */
	bool loose;               /* `in` permits an eighth more */
};

/* Streams on worker loops, see stream/balance.h. */
struct balance {
	struct list streams;
	struct timer *timer;      /* NULL: not needed yet */
	struct mono at;           /* time of the last measurement, when idle_ns was read: */
	uint64_t idle_ns[CONTEXT_WORKERS_MAX];
	unsigned next;            /* worker for the next stream, among equals */
};

struct context {
	struct loop *control;             /* the handle's own, run by the caller's thread */
	struct loop *worker[CONTEXT_WORKERS_MAX];
	unsigned n_workers;
	struct balance balance;
	struct loop *handshakes;          /* NULL until needed */
	unsigned n_handshakes;            /* running */
	struct io *io;
	struct resolver *names;           /* resolver of the control loop */
	struct identity identity;
	SSL_CTX *client, *server;         /* NULL where not requested */
	struct log log;
	ptcp_log_fn *log_fn;              /* the caller's; or NULL */
	void *log_arg;
	struct pacing pacing;             /* no limit until pacing_set() */
	char config_dir[USERDIR_BYTES];
};

/* Before context_init(), on zeroed memory; `fn` may be NULL. */
void context_log(struct context *context, ptcp_log_fn *fn, void *arg, enum ptcp_log_level level);
/* PTCP_ECONFIG: the process's limit on descriptors permits no session with one stream; or not `fds` descriptors of
 * other work. */
int context_check_fds(unsigned fds, struct ptcp_err *e);
/* `workers`: maximum number of worker loops, at most one per core; fewer if descriptors are short.
 * `server_ciphers` 0: only a client. Log and identity may be set already; the identity is then not read. On failure
 * nothing is left. */
int context_init(struct context *context, struct loop *control, const char *config, unsigned workers,
    unsigned client_ciphers, unsigned server_ciphers, struct ptcp_err *e);
/* Presents the certificates of the configuration directory, which have changed, on new connections. Control thread. */
void context_renew_certificates(struct context *context);
/* Runs a handshake: the first ones on the control loop, those of many streams on a loop of their own. As
 * handshake_start(). Control thread. */
int context_handshake(struct context *context, struct handshake **out, SSL_CTX *tls, int *fd, const struct chan_opts *c,
    void (*done)(void *arg, struct chan *c, const struct ptcp_err *why), struct ptcp_err *e);
/* All sessions must have ended. Zeroed memory is fine. */
void context_fini(struct context *context);

/* Sets or changes the limit; on failure the previous limit remains. */
int pacing_set(struct pacing *p, const struct timetable *t, struct loop *control, struct ptcp_err *e);
/* For a receiver whose sender enforces the rate: blocks that were delayed in transit may catch up. */
void pacing_loosen(struct pacing *p);
/* Parses the option --rate; NULL: no limit. PTCP_EUSAGE with the option's name and text. */
int pacing_parse(struct timetable *t, const char *text, struct ptcp_err *e);

#endif
