/* Internals of a server's sessions, for server_session.c (requests, running sessions) and session_wait.c (sessions
 * that wait for room). */
#ifndef SERVER_SERVER_SESSION_IMPL_H
#define SERVER_SERVER_SESSION_IMPL_H

#include "server/request.h"
#include "server/server_session.h"

struct server_session {
	struct list in_list;
	struct server_session_set *set;
	struct session *session;
	struct memory_account *memory; /* NULL: no limit */
	char address[SOCK_TEXT_BYTES];
	struct peer_address *from;
	struct mono since;
	struct queue_entry place;
	struct mono wait_until;        /* time until which the session waits for room */
	struct mono reported_at;       /* time of the last WAITING */
	unsigned reported_ahead;       /* position in the last WAITING */
	bool opened;                   /* the request is permitted */
	bool gone;
	uint64_t moved_bytes;          /* at the last question of a waiting session */
	struct mono lived_at;          /* time of the last question after new data, or by this session */
	bool superseded;               /* a newer run of the client waits for the end of this session */
	bool waits;                    /* this session waits for the end of such a session, before request_find() */
	unsigned failures;             /* number of failed files that are logged */
	struct request request;
	char client[PTCP_FINGERPRINT_BYTES]; /* identity of the client, or of the issuer of the grant */
	bool granted;                  /* the peer acts under the grant: */
	struct wire_grant grant;
	char *path;                    /* path of the grant */
};

/* ---- server_session.c ---- */

void server_session_refuse(struct server_session *s, const struct ptcp_err *why);
/* There is room for request.n_granted streams. */
void server_session_admit(struct server_session *s);

/* ---- session_wait.c ---- */

struct queue_limits server_session_limits(const struct server_session_set *t);
/* Of set->tick, once a second while sessions wait. */
void server_session_tick(void *arg);
/* The request is permitted: admits the session now, or within wait_ms, or refuses it. */
void server_session_wait(struct server_session *s, uint32_t wait_ms);
void server_session_leave(struct server_session *s);

#endif
