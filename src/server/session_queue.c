#include "server/session_queue.h"

#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/units.h"

#define TURN (UINT64_C(1) << 20) /* unit of virtual time */

/* A client with a session in any state. */
struct queue_client {
	struct list in_list;
	unsigned admitted, waiting;
	uint64_t next_turn;
	char name[];
};

void queue_init(struct session_queue *q)
{
	*q = (struct session_queue){ .now = 0 };
	list_init(&q->clients);
	list_init(&q->waiting);
}

static struct queue_client *find_client(struct session_queue *q, const char *name)
{
	struct queue_client *c;

	LIST_EACH(&q->clients, c, struct queue_client, in_list)
		if (strcmp(c->name, name) == 0)
			return c;
	return NULL;
}

static struct queue_client *new_client(struct session_queue *q, const char *name)
{
	struct queue_client *c = calloc(1, sizeof *c + strlen(name) + 1);

	if (c == NULL)
		return NULL;
	strcpy(c->name, name);
	list_append(&q->clients, &c->in_list);
	return c;
}

int queue_check_room(struct session_queue *q, const char *client, const struct queue_limits *l, struct ptcp_err *e)
{
	const struct queue_client *c = find_client(q, client);

	if (q->n_waiting >= l->waiting)
		return err_set(e, PTCP_EBUSY,
		    "too busy: %u session%s wait%s for the server, its limit (try again later)",
		    q->n_waiting, plural(q->n_waiting), singular(q->n_waiting));
	if (c != NULL && c->waiting >= l->client_waiting)
		return err_set(e, PTCP_EBUSY, "too busy: %u session%s of this client wait%s for the server, its limit "
		    "(try again later)", c->waiting, plural(c->waiting), singular(c->waiting));
	return 0;
}

int queue_enter(struct session_queue *q, struct queue_entry *s, const char *client, const struct queue_limits *l,
    struct ptcp_err *e)
{
	struct queue_client *c = find_client(q, client);
	int r;

	if ((r = queue_check_room(q, client, l, e)) < 0)
		return r;
	if (c == NULL && (c = new_client(q, client)) == NULL)
		return err_nomem(e);
	*s = (struct queue_entry){ .client = c, .state = QUEUE_OPENING };
	list_init(&s->in_list);
	c->waiting++;
	q->n_waiting++;
	return 0;
}

/* Behind the sessions of the same turn: these have arrived earlier. */
static void insert(struct session_queue *q, struct queue_entry *s)
{
	struct list *at = q->waiting.prev;

	s->turn = s->client->next_turn > q->now ? s->client->next_turn : q->now;
	s->client->next_turn = s->turn + TURN;
	while (at != &q->waiting && CONTAINER_OF(at, struct queue_entry, in_list)->turn > s->turn)
		at = at->prev;
	list_append(at->next, &s->in_list);
}

void queue_wait(struct session_queue *q, struct queue_entry *s)
{
	s->state = QUEUE_WAITING;
	insert(q, s);
}

struct queue_entry *queue_next(const struct session_queue *q, const struct queue_limits *l)
{
	struct queue_entry *s;

	if (q->n_admitted >= l->sessions)
		return NULL;
	LIST_EACH(&q->waiting, s, struct queue_entry, in_list)
		if (s->client->admitted < l->client_sessions)
			return s;
	return NULL;
}

static unsigned waiting_clients(const struct session_queue *q)
{
	const struct queue_client *c;
	unsigned n = 0;

	LIST_EACH(&q->clients, c, struct queue_client, in_list)
		n += c->waiting > 0;
	return n;
}

void queue_admit(struct session_queue *q, struct queue_entry *s)
{
	q->now += TURN / waiting_clients(q);
	if (s->turn > q->now)
		q->now = s->turn;
	list_remove(&s->in_list);
	s->state = QUEUE_ADMITTED;
	s->client->waiting--;
	s->client->admitted++;
	q->n_waiting--;
	q->n_admitted++;
}

/* The client was at its own limit: the turns that it missed are lost, else it would delay the others now. */
static void renew_turns(struct session_queue *q, struct queue_client *c)
{
	struct queue_entry *s;
	struct list own;

	list_init(&own);
	LIST_EACH(&q->waiting, s, struct queue_entry, in_list) {
		if (s->client != c)
			continue;
		if (list_empty(&own) && s->turn >= q->now)
			return;
		list_remove(&s->in_list);
		list_append(&own, &s->in_list);
	}
	c->next_turn = q->now;
	LIST_EACH(&own, s, struct queue_entry, in_list) {
		list_remove(&s->in_list);
		insert(q, s);
	}
}

void queue_leave(struct session_queue *q, struct queue_entry *s, const struct queue_limits *l)
{
	struct queue_client *c = s->client;

	if (c == NULL)
		return;
	list_remove(&s->in_list);
	s->client = NULL;
	if (s->state != QUEUE_ADMITTED) {
		c->waiting--;
		q->n_waiting--;
	} else {
		q->n_admitted--;
		if (c->admitted-- >= l->client_sessions)
			renew_turns(q, c);
	}
	if (c->admitted + c->waiting > 0)
		return;
	list_remove(&c->in_list);
	free(c);
}

unsigned queue_ahead(const struct session_queue *q, const struct queue_entry *s, const struct queue_limits *l)
{
	const struct queue_entry *other;
	unsigned n = 0;

	LIST_EACH(&q->waiting, other, struct queue_entry, in_list) {
		if (other == s)
			break;
		n += other->client == s->client || other->client->admitted < l->client_sessions;
	}
	return n;
}

int queue_reason(const struct session_queue *q, const struct queue_entry *s, const struct queue_limits *l,
    struct ptcp_err *e)
{
	if (q->n_admitted >= l->sessions)
		return err_set(e, PTCP_EBUSY, "too busy: the server has %u session%s, its limit (try again later, or "
		    "wait longer with --wait)", q->n_admitted, plural(q->n_admitted));
	if (s->client->admitted >= l->client_sessions)
		return err_set(e, PTCP_EBUSY, "too busy: this client has %u session%s, its limit (try again when one "
		    "has ended, or wait longer with --wait)", s->client->admitted, plural(s->client->admitted));
	return err_set(e, PTCP_EBUSY, "too busy: the other sessions need the server's descriptors (try again later, or "
	    "wait longer with --wait)");
}
