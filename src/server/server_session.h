/* The sessions of a server, limited to the rights of their clients. Control thread. */
#ifndef SERVER_SERVER_SESSION_H
#define SERVER_SERVER_SESSION_H

#include "conn/grants.h"
#include "core/list.h"
#include "net/admission.h"
#include "net/trust/trust.h"
#include "server/session_queue.h"
#include "session/session.h"

struct server_session_set {
	struct list list;
	struct session_queue queue;
	struct timer *tick;               /* runs while sessions wait */
	unsigned n, n_run;                /* now; accepted so far */
	struct ptcp_server_stats past;    /* sums of ended sessions, and counters of events */
	bool ephemeral;                   /* a single session, of the same user, with any absolute path */
	struct context *context;
	const char *root;                 /* NULL: none */
	const char *const *roots;         /* the only roots to open; ended by NULL. NULL: any */
	const struct own_dirs *own_dirs;  /* beneath no root */
	struct quota_table *quotas;
	struct grants grants;
	struct memory_budget *memory;     /* NULL: no limit */
	struct movers *movers;            /* movers of the server; NULL: none */
	const struct ptcp_server_opts *o;
	void (*gone)(void *arg, struct peer_address *from); /* a session has ended */
	void *arg;
};

int server_session_set_init(struct server_session_set *t, struct context *context, const char *root,
    const struct ptcp_server_opts *o, void (*gone)(void *arg, struct peer_address *from), void *arg,
    struct ptcp_err *e);
void server_session_set_fini(struct server_session_set *t);
/* PTCP_EBUSY: too many sessions wait, in all or of this client. */
int server_session_check_room(struct server_session_set *t, const char *client, struct ptcp_err *e);
/* Admits waiting sessions for which there is room; to be called when a limit has changed. */
void server_session_admit_waiting(struct server_session_set *t);
/* The connection of a client. */
struct server_session_link {
	struct chan *control;
	const char *address;              /* address for logs; copied */
	struct peer_address *from;        /* admission record of the address; NULL: not counted */
	bool connects, one_channel;       /* values of session_opts */
	const char *host;                 /* destination of our data connections, if `connects`; copied */
	unsigned port;
	/* authorization of a session under a grant; copied */
	const struct wire_grant *grant;
	const char *issuer;
};
/* A session of the authorized client. Takes l->control, also on failure. Under a grant the client is the issuer, the
 * session is limited to the grant, and an older session under the same grant ends. */
int server_session_new(struct server_session_set *t, const struct server_session_link *l,
    const struct authorization *a, struct ptcp_err *e);
/* The running session with the id, or NULL. */
struct session *server_session_find(struct server_session_set *t, const uint8_t id[WIRE_SESSION_BYTES]);
enum ptcp_cipher server_session_cipher(struct server_session_set *t, const uint8_t id[WIRE_SESSION_BYTES]);
/* Adds the running sessions. */
void server_session_add_stats(struct server_session_set *t, struct ptcp_server_stats *st);
/* After a change of the authorized clients: ends sessions without permission. */
void server_session_reauthorize(struct server_session_set *t, trust_admits_fn *admits, void *arg);
void server_session_cancel_all(struct server_session_set *t, const struct ptcp_err *why);

#endif
