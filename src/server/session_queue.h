/* The admitted sessions of a server, and the queue of the sessions that wait for room: first come, first served
 * within a client, round robin among clients. Fair queueing: a session's turn is the present virtual time, or one
 * unit after the client's previous turn, whichever is later. An admission advances the virtual time by one unit,
 * divided by the number of waiting clients, so that newcomers do not starve the others.
 *
 * Pure: no sockets, no clock. Control thread. */
#ifndef SERVER_SESSION_QUEUE_H
#define SERVER_SESSION_QUEUE_H

#include <ptcp/err.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/list.h"

struct queue_client;

/* Of a session; zeroed before queue_enter() and after queue_leave(). */
struct queue_entry {
	struct list in_list;         /* waiting */
	struct queue_client *client; /* NULL: not in the queue */
	enum { QUEUE_OPENING, QUEUE_WAITING, QUEUE_ADMITTED } state;
	uint64_t turn;               /* once waiting */
};

struct session_queue {
	struct list clients, waiting; /* waiting: by turn */
	unsigned n_admitted, n_waiting; /* n_waiting includes sessions before OPEN */
	uint64_t now;                /* virtual time */
};

struct queue_limits {
	unsigned sessions, client_sessions; /* admitted: of the server, of one client */
	unsigned waiting, client_waiting;   /* the same */
};

void queue_init(struct session_queue *q);

/* PTCP_EBUSY: too many sessions wait. */
int queue_check_room(struct session_queue *q, const char *client, const struct queue_limits *l, struct ptcp_err *e);
/* A session of the client, before OPEN; as queue_check_room(), or PTCP_ENOMEM. */
int queue_enter(struct session_queue *q, struct queue_entry *s, const char *client, const struct queue_limits *l,
    struct ptcp_err *e);
/* OPEN has arrived. */
void queue_wait(struct session_queue *q, struct queue_entry *s);
/* The next session to admit; NULL: none waits, or the limits permit no further session. */
struct queue_entry *queue_next(const struct session_queue *q, const struct queue_limits *l);
void queue_admit(struct session_queue *q, struct queue_entry *s);
/* From any state; harmless when the entry is not in the queue. */
void queue_leave(struct session_queue *q, struct queue_entry *s, const struct queue_limits *l);

/* Number of sessions that will be admitted before this one, if none ends and none arrives. */
unsigned queue_ahead(const struct session_queue *q, const struct queue_entry *s, const struct queue_limits *l);
/* Why the session waits, as an error for its client: the limit that it has reached; else descriptors are short. */
int queue_reason(const struct session_queue *q, const struct queue_entry *s, const struct queue_limits *l,
    struct ptcp_err *e);

#endif
