/* What the sessions of one handle share: loops and their threads, I/O threads, identity, log. */
#ifndef LIB_HOST_H
#define LIB_HOST_H

#include "core/log.h"
#include "core/userdir.h"
#include "lib/pacing.h"
#include "net/chan.h"
#include "store/io.h"
#include "store/owner.h"

#define HOST_WORKERS_MAX 64

struct host {
	struct loop *control;             /* the handle's own, run by its own thread */
	struct loop *worker[HOST_WORKERS_MAX];
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

/* Before host_init(), on zeroed memory: what is logged, if fn is not NULL. */
void host_log(struct host *h, ptcp_log_fn *fn, void *arg, enum ptcp_log_level level);
/* `workers`: at most so many worker loops, and at most one a core. `server_ciphers` 0: only a
 * client. Log and identity may be there already; the identity is then not read. On failure nothing is left. */
int host_init(struct host *h, struct loop *control, const char *config, unsigned workers, unsigned client_ciphers,
    unsigned server_ciphers, struct ptcp_err *e);
/* Every session must be gone. Zeroed memory is fine. */
void host_fini(struct host *h);

#endif
