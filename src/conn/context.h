/* What the sessions of one handle share: loops and their threads, I/O threads, identity, log. */
#ifndef CONN_CONTEXT_H
#define CONN_CONTEXT_H

#include "conn/pacing.h"
#include "core/log.h"
#include "core/userdir.h"
#include "net/chan.h"
#include "store/io.h"
#include "store/owner.h"

#define CONTEXT_WORKERS_MAX 64

struct context {
	struct loop *control;             /* the handle's own, run by its own thread */
	struct loop *worker[CONTEXT_WORKERS_MAX];
	unsigned n_workers;
	struct io *io;
	struct owners *owners;            /* names of users and groups */
	struct identity identity;
	SSL_CTX *client, *server;         /* NULL where not asked for */
	struct log log;
	ptcp_log_fn *told;                /* who hears of it; or NULL */
	void *told_arg;
	struct pacing pacing;             /* no limit until pacing_start() */
	char config_dir[USERDIR_BYTES];
};

/* Before context_init(), on zeroed memory: what is logged, if fn is not NULL. */
void context_log(struct context *h, ptcp_log_fn *fn, void *arg, enum ptcp_log_level level);
/* `workers`: at most so many worker loops, and at most one a core. `server_ciphers` 0: only a
 * client. Log and identity may be there already; the identity is then not read. On failure nothing is left. */
int context_init(struct context *h, struct loop *control, const char *config, unsigned workers, unsigned client_ciphers,
    unsigned server_ciphers, struct ptcp_err *e);
/* Every session must be gone. Zeroed memory is fine. */
void context_fini(struct context *h);

#endif
