/* The inside of a server: server.c starts and stops it; the rest is by file below. */
#ifndef SERVER_SERVER_IMPL_H
#define SERVER_SERVER_IMPL_H

#include <ptcp/ptcp.h>
#include <stdatomic.h>

#include "conn/inbound.h"
#include "core/list.h"
#include "net/listen.h"
#include "server/job.h"
#include "server/link_table.h"
#include "server/relay.h"
#include "server/server_session.h"

struct ssh_server;

struct ptcp_server {
	struct ptcp_server_opts o;
	char *config_dir, *root;
	char *storage_dir;              /* of what is relayed; NULL: nothing is stored */
	char **roots;                   /* those that a confined one may open, ended by NULL; NULL: any */
	struct timetable rate;
	struct loop *loop;
	struct context host;
	struct place_listened {
		struct listener *listener;      /* NULL once stopping */
		char address[SOCK_TEXT_BYTES];  /* as long as the handle */
		unsigned port;
	} at[PTCP_LISTEN_MAX];
	unsigned n_at;
	struct pending pending;
	struct timer *watch;            /* of authorized_clients */
	struct trust_stamp trusted;     /* as it was */
	struct server_session_set sessions;
	struct relay_acl *nexthops;      /* NULL: none */
	struct relay relay;
	struct job_set jobs;
	struct link_table links;
	struct ssh_server *once;          /* NULL: a daemon */
	struct ptcp_err why;            /* what ended it, if its code is not 0 */
	atomic_bool stop;
	bool stopping, ran, over;
};

/* ---- listen.c ---- */

int server_listen(struct ptcp_server *s, const char *where, struct ptcp_err *e);
/* Everywhere that the options say. */
int server_listen_all(struct ptcp_server *s, const struct ptcp_server_opts *o, struct ptcp_err *e);
void server_listen_end(struct ptcp_server *s);

/* ---- server.c ---- */

/* PTCP_EUSAGE for numbers out of range. */
int server_check(const struct ptcp_server_opts *o, struct ptcp_err *e);
/* Where the options allow to relay to; NULL: nowhere. Looks names up. */
int server_nexthops(struct relay_acl **out, const struct ptcp_server_opts *o, struct ptcp_err *e);
/* Something of the server `arg` has gone: with the last of it, one that is stopping is over. */
void server_try_end(void *arg);

/* ---- dispatch.c: guests become sessions, streams, errands, routes ---- */

extern const struct inbound_ops server_inbound_ops;
/* Whether, and to what, this client is authorised; `arg` is the server. */
bool server_admits(void *arg, const char *fingerprint, struct authorization *a);

/* ---- confine_needs.c ---- */

/* Calls `confine`, if there is one, with what is needed from here on, and keeps that in s->roots; the host's
 * config_dir is known. */
int server_confine(struct ptcp_server *s, struct ptcp_err *e);
void server_forget_needs(struct ptcp_server *s);

/* ---- ssh_server.c: one session through ssh ---- */

int ssh_server_start(struct ptcp_server *s, struct ptcp_err *e);
void ssh_server_free(struct ssh_server *o); /* NULL is fine */
/* Is this who has started us? */
bool ssh_server_admits(const struct ssh_server *o, const char *fingerprint);

#endif
