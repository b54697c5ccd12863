/* The inside of a server: server.c starts and stops it; the rest is by file below. */
#ifndef LIB_SERVER_IMPL_H
#define LIB_SERVER_IMPL_H

#include <ptcp/ptcp.h>
#include <stdatomic.h>

#include "core/list.h"
#include "lib/errand.h"
#include "lib/guest.h"
#include "lib/told.h"
#include "lib/relay.h"
#include "lib/served.h"
#include "net/listen.h"

struct one_time;

struct ptcp_server {
	struct ptcp_server_opts o;
	char *config_dir, *root;
	char *storage_dir;              /* of what is relayed; NULL: nothing is stored */
	char **roots;                   /* those that a confined one may open, ended by NULL; NULL: any */
	struct timetable rate;
	struct loop *loop;
	struct host host;
	struct place_listened {
		struct listener *listener;      /* NULL once stopping */
		char address[SOCK_TEXT_BYTES];  /* as long as the handle */
		unsigned port;
	} at[PTCP_LISTEN_MAX];
	unsigned n_at;
	struct lobby lobby;
	struct timer *watch;            /* of authorized_clients */
	struct trust_stamp trusted;     /* as it was */
	struct served_set sessions;
	struct nexthops *nexthops;      /* NULL: none */
	struct relay relay;
	struct errand_set errands;
	struct told told;
	struct one_time *once;          /* NULL: a daemon */
	struct ptcp_err why;            /* what ended it, if its code is not 0 */
	atomic_bool stop;
	bool stopping, ran, over;
};

/* ---- listening.c ---- */

int server_listen(struct ptcp_server *s, const char *where, struct ptcp_err *e);
/* Everywhere that the options say. */
int server_listen_all(struct ptcp_server *s, const struct ptcp_server_opts *o, struct ptcp_err *e);
void server_listen_end(struct ptcp_server *s);

/* ---- server.c ---- */

/* PTCP_EUSAGE for numbers out of range. */
int server_check(const struct ptcp_server_opts *o, struct ptcp_err *e);
/* Where the options allow to relay to; NULL: nowhere. Looks names up. */
int server_nexthops(struct nexthops **out, const struct ptcp_server_opts *o, struct ptcp_err *e);
/* Something of the server `arg` has gone: with the last of it, one that is stopping is over. */
void server_try_end(void *arg);

/* ---- server_guests.c: guests become sessions, streams, errands, routes ---- */

extern const struct guest_ops server_guest_ops;
/* Whether, and to what, this client is authorised; `arg` is the server. */
bool server_admits(void *arg, const char *fingerprint, struct authorization *a);

/* ---- needs.c ---- */

/* Calls `confine`, if there is one, with what is needed from here on, and keeps that in s->roots; the host's
 * config_dir is known. */
int server_confine(struct ptcp_server *s, struct ptcp_err *e);
void server_forget_needs(struct ptcp_server *s);

/* ---- one_time.c: one session through ssh ---- */

int one_time_start(struct ptcp_server *s, struct ptcp_err *e);
void one_time_free(struct one_time *o); /* NULL is fine */
/* Is this who has started us? */
bool one_time_admits(const struct one_time *o, const char *fingerprint);

#endif
