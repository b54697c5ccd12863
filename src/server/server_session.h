/* The sessions of a daemon: judged by what the client is authorised to, carried out by a party each.
 * Control thread. */
#ifndef SERVER_SERVER_SESSION_H
#define SERVER_SERVER_SESSION_H

#include "conn/grants.h"
#include "core/list.h"
#include "net/admission.h"
#include "net/trust.h"
#include "session/session.h"

struct server_session_set {
	struct list list;
	unsigned n, n_run;                /* now; those that have been agreed to so far */
	struct ptcp_server_stats past;    /* of those that have ended, and what is counted as it happens */
	bool one_time;                    /* one session in all, of who is this user: all paths are its own */
	struct context *host;
	const char *root;                 /* NULL: none */
	const char *const *roots;         /* no others are opened; ended by NULL. NULL: any may be */
	struct grants grants;
	const struct ptcp_server_opts *o;
	void (*gone)(void *arg, struct peer_address *from); /* one has ended */
	void *arg;
};

void server_session_set_init(struct server_session_set *t, struct context *host, const char *root,
    const struct ptcp_server_opts *o, void (*gone)(void *arg, struct peer_address *from), void *arg);
/* How a client is connected. */
struct server_session_link {
	struct chan *control;
	const char *address;              /* for logs; copied */
	struct peer_address *from;              /* where that is; NULL: nobody counts */
	bool connects, one_channel;       /* as session_opts has them */
	const char *host;                 /* where data connections go if we make them; copied */
	unsigned port;
	/* of who comes by virtue of a grant; copied */
	const struct wire_grant *grant;
	const char *issuer;
};
/* A session of the authorised client on this channel, which is taken, also on failure. With a grant the client is
 * its issuer, and it is for nothing else; another one by virtue of the same is ended. */
int server_session_new(struct server_session_set *t, const struct server_session_link *l, const struct authorization *a,
    struct ptcp_err *e);
/* The running session of that name, or NULL. */
struct session *server_session_find(struct server_session_set *t, const uint8_t id[WIRE_SESSION_BYTES]);
enum ptcp_cipher server_session_cipher(struct server_session_set *t, const uint8_t id[WIRE_SESSION_BYTES]);
/* Adds what those that run have done so far, and counts them. */
void server_session_add_stats(struct server_session_set *t, struct ptcp_server_stats *st);
/* How many sessions this client has. */
unsigned server_session_count(const struct server_session_set *t, const char *fingerprint);
/* Ends the sessions of clients who have lost the right to them. */
void server_session_judge_again(struct server_session_set *t, trust_admits_fn *admits, void *arg);
void server_session_cancel_all(struct server_session_set *t, const struct ptcp_err *why);

#endif
