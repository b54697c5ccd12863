#include "server/relay_room.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/units.h"

/* Connections of one session at this relay; or a connection without a session. */
struct relay_session {
	struct list in_list;
	uint64_t id;              /* 0: none */
	unsigned n_control, n_data;
	bool controlled;          /* has had a control connection, which may come back */
};

struct relay_client {
	struct list in_list, sessions;
	unsigned places;
	struct mono waits_until;  /* a session of the client was refused, and may ask again until then */
	char name[];
};

void relay_room_init(struct relay_room *r)
{
	*r = (struct relay_room){ .places = 0 };
	list_init(&r->clients);
}

static void client_free(struct relay_client *c)
{
	list_remove(&c->in_list);
	free(c);
}

static void forget_waiting(struct relay_room *r, struct mono now)
{
	struct relay_client *c;

	LIST_EACH(&r->clients, c, struct relay_client, in_list)
		if (list_empty(&c->sessions) && c->waits_until.ns <= now.ns)
			client_free(c);
}

void relay_room_fini(struct relay_room *r) { forget_waiting(r, MONO_NEVER); }

static struct relay_client *client_of(struct relay_room *r, const char *name)
{
	struct relay_client *c;

	LIST_EACH(&r->clients, c, struct relay_client, in_list)
		if (strcmp(c->name, name) == 0)
			return c;
	if ((c = calloc(1, sizeof *c + strlen(name) + 1)) == NULL)
		return NULL;
	strcpy(c->name, name);
	list_init(&c->sessions);
	list_append(&r->clients, &c->in_list);
	return c;
}

/* A new one has no connections. */
static struct relay_session *session_of(struct relay_client *c, uint64_t id)
{
	struct relay_session *s;

	LIST_EACH(&c->sessions, s, struct relay_session, in_list)
		if (id != 0 && s->id == id)
			return s;
	if ((s = calloc(1, sizeof *s)) == NULL)
		return NULL;
	s->id = id;
	list_append(&c->sessions, &s->in_list);
	return s;
}

static unsigned places_of(const struct relay_session *s)
{
	unsigned kept = s->controlled ? (s->n_control == 0) + (s->n_data == 0) : 0;

	return s->n_control + s->n_data > 0 ? s->n_control + s->n_data + kept : 0;
}

static unsigned client_limit(const struct relay_limits *l)
{
	unsigned half = (l->places + 1) / 2;

	return half > RELAY_SESSION_PLACES ? half : RELAY_SESSION_PLACES;
}

/* Places that further data connections leave to sessions that wait: a client's own, or all. Who is at its own limit
 * waits for its own sessions only. */
static unsigned kept_for_waiting(const struct relay_room *r, const struct relay_client *of,
    const struct relay_limits *l, struct mono now)
{
	const struct relay_client *c;
	unsigned n = 0;

	LIST_EACH(&r->clients, c, struct relay_client, in_list)
		if (c->waits_until.ns > now.ns &&
		    (of != NULL ? c == of : c->places + RELAY_SESSION_PLACES <= client_limit(l)))
			n += RELAY_SESSION_PLACES;
	return n;
}

static int refuse(const struct relay_limits *l, bool control, bool client, struct ptcp_err *e)
{
	unsigned n = client ? client_limit(l) : l->places;
	char limit[40] = "ulimit -n";

	if (l->places == l->max) /* else descriptors are short */
		snprintf(limit, sizeof limit, "%s--max-relayed %u", client ? "half of " : "", l->max);
	return err_set(e, PTCP_EBUSY, "too busy: no room for another %s among %u relayed connection%s%s (the limit is "
	    "%s there; try again later, or wait longer with --wait)", control ? "session" : "stream", n, plural(n),
	    client ? " of this client" : "", limit);
}

static int check(const struct relay_room *r, const struct relay_client *c, unsigned more, bool control,
    const struct relay_limits *l, struct mono now, struct ptcp_err *e)
{
	unsigned own = control ? 0 : kept_for_waiting(r, c, l, now),
	    all = control ? 0 : kept_for_waiting(r, NULL, l, now);

	if (more == 0) /* the place is kept for the session */
		return 0;
	if (c->places + more + own > client_limit(l))
		return refuse(l, control, true, e);
	return r->places + more + all > l->places ? refuse(l, control, false, e) : 0;
}

static void add(struct relay_room *r, struct relay_client *c, struct relay_session *s, bool control, unsigned n)
{
	unsigned before = places_of(s), more;

	*(control ? &s->n_control : &s->n_data) += n;
	s->controlled = s->controlled || control;
	more = places_of(s) - before;
	c->places += more;
	r->places += more;
}

static void drop_unused(struct relay_client *c, struct relay_session *s)
{
	if (s != NULL && s->n_control + s->n_data == 0) {
		list_remove(&s->in_list);
		free(s);
	}
	if (list_empty(&c->sessions) && c->waits_until.ns == 0)
		client_free(c);
}

int relay_room_enter(struct relay_room *r, struct relay_place *p, const char *client, uint64_t session, bool control,
    const struct relay_limits *l, struct mono now, struct ptcp_err *e)
{
	struct relay_session *s, then;
	struct relay_client *c;
	int code;

	forget_waiting(r, now);
	if ((c = client_of(r, client)) == NULL)
		return err_nomem(e);
	if ((s = session_of(c, session)) == NULL) {
		drop_unused(c, NULL);
		return err_nomem(e);
	}
	then = *s;
	*(control ? &then.n_control : &then.n_data) += 1;
	then.controlled = then.controlled || control;
	code = check(r, c, places_of(&then) - places_of(s), control, l, now, e);
	if (control)
		c->waits_until = code == 0 ? (struct mono){ 0 } : mono_add_ns(now, RELAY_WAIT_NS);
	if (code < 0) {
		drop_unused(c, s);
		return code;
	}
	add(r, c, s, control, 1);
	*p = (struct relay_place){ c, s, control };
	return 0;
}

void relay_room_leave(struct relay_room *r, struct relay_place *p)
{
	if (p->client == NULL)
		return;
	add(r, p->client, p->session, p->control, -1u);
	drop_unused(p->client, p->session);
	*p = (struct relay_place){ 0 };
}
