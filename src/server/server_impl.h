/* Internals of a server. */
#ifndef SERVER_SERVER_IMPL_H
#define SERVER_SERVER_IMPL_H

#include <ptcp/ptcp.h>
#include <stdatomic.h>

#include "conn/inbound.h"
#include "core/list.h"
#include "net/listen.h"
#include "server/job.h"
#include "server/link_table.h"
#include "server/own_dirs.h"
#include "server/port_share.h"
#include "server/quota_table.h"
#include "server/relay.h"
#include "server/server_session.h"
#include "server/spare_memory.h"

struct ssh_server;

enum server_stop { SERVER_RUNS, SERVER_DRAINS, SERVER_STOPS };

struct ptcp_server {
	struct ptcp_server_opts o;
	char *config_dir, *root;
	char *storage_dir;              /* directory of spools of relayed connections; NULL: no storage */
	char **roots;                   /* permitted to a confined server, ended by NULL; NULL: any */
	struct timetable rate;
	struct loop *loop;
	struct context context;
	struct own_dirs own_dirs;       /* unused by an ephemeral server */
	struct quota_table *quotas;
	struct server_listener {
		struct listener *listener;      /* NULL once stopping */
		char address[SOCK_TEXT_BYTES];  /* lives as long as the handle */
		unsigned port;
	} at[PTCP_LISTEN_MAX];
	unsigned n_at;
	struct pending pending;
	struct timer *watch;            /* timer that watches the files of trust */
	struct trust_stamp trusted, revoked, certificates; /* stamps of the last check */
	struct memory_budget *memory;   /* memory of the sessions; NULL: no limit */
	struct spare_memory spare_memory;
	struct movers *movers;          /* movers that carry the streams of sessions; NULL: none */
	struct server_session_set sessions;
	struct relay_acl *next_hops;     /* NULL: none */
	struct relay relay;
	struct job_set jobs;
	struct link_table links;
	struct ssh_server *ssh;         /* start through SSH of an ephemeral server; else NULL */
	struct port_share *share;       /* NULL: the port is not shared */
	struct ptcp_err why;            /* reason of the end, unless its code is 0 */
	atomic_int stop;                /* enum server_stop */
	struct timer *drain;            /* timer until sessions are ended; NULL: not draining */
	bool stopping, ran, over;
};

/* ---- server.c ---- */

int server_listen(struct ptcp_server *s, const char *where, struct ptcp_err *e);
void server_unlisten(struct ptcp_server *s);
/* A session, job, relayed or inbound connection has ended: a stopping server ends with the last of these; `arg` is the
 * server. */
void server_try_end(void *arg);

/* ---- server_opts.c ---- */

/* Options of the user over the defaults, checked and parsed; `all` borrows strings. */
int server_check_opts(struct ptcp_server_opts *all, struct relay_acl **next_hops, struct timetable *rate,
    const struct ptcp_server_opts *o, struct ptcp_err *e);

/* ---- admit.c: inbound connections become sessions, streams, job connections, relayed connections ---- */

extern const struct inbound_ops server_inbound_ops;
/* A trust_admits_fn; `arg` is the server. */
bool server_admits(void *arg, const char *fingerprint, const struct trust_proof *proof, struct authorization *now);

/* Shares the port, if the options have a socket for that; before confinement. */
void server_share(struct ptcp_server *s);

/* ---- server_movers.c ---- */

int server_check_movers(const struct ptcp_server_opts *o, struct ptcp_err *e);
/* Starts the movers of the options, if any; before server_confine(), which forbids to run programs. */
int server_start_movers(struct ptcp_server *s, struct ptcp_err *e);

/* ---- confine_needs.c ---- */

/* Calls the `confine` of the options, if any, with the server's needs, and fills in s->roots; after
 * s->host.config_dir. */
int server_confine(struct ptcp_server *s, struct ptcp_err *e);
void server_forget_needs(struct ptcp_server *s);

/* ---- ssh_server.c: the ephemeral server of a session through ssh ---- */

int ssh_server_start(struct ptcp_server *s, struct ptcp_err *e);
void ssh_server_free(struct ssh_server *o); /* NULL is fine */
/* As job_set.gone: the client's only request is over. */
void ssh_server_job_gone(void *arg);
/* Whether the fingerprint is the client that started the server. */
bool ssh_server_admits(const struct ssh_server *o, const char *fingerprint);

#endif
