#include "net/resolve.h"

#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/thread.h"

#ifndef AI_IDN
#define AI_IDN 0 /* musl looks names up as they are */
#endif

/* Enough for modules of name services; only touched pages use memory. */
#define STACK_BYTES (512 * 1024)

struct resolve_client {
	struct list in_list;
	unsigned max, n_lookups, n_running;
	char name[];
};

struct lookup {
	struct list in_list;
	struct list requests; /* none: abandoned */
	struct resolve_client *client;
	struct resolver *resolver;
	bool waiting;
	char host[SOCK_HOST_BYTES];
	int family;
	struct resolve_answer answer; /* the thread's, until `over` is posted */
	struct msg over;
};

struct resolver {
	struct loop *loop;
	resolve_fn *fn;
	struct list lookups, clients; /* oldest first */
	unsigned n_running;
	pthread_mutex_t mutex;
	bool closed;                  /* under mutex: no thread may post to the loop */
	unsigned n_users;             /* under mutex: the owner and the running lookups; the last one frees all */
};

/* ---- Numbers ---- */

static int family_of(int family) { return family == 4 ? AF_INET : family == 6 ? AF_INET6 : AF_UNSPEC; }

bool resolve_number(struct resolve_answer *out, const char *host, int family)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST };

	*out = (struct resolve_answer){ 0 };
	if (getaddrinfo(host, NULL, &hints, &out->all) != 0)
		return false;
	if (family != 0 && out->all->ai_family != family_of(family)) {
		freeaddrinfo(out->all);
		*out = (struct resolve_answer){ .error = EAI_FAMILY };
	}
	return true;
}

const char *resolve_error_text(const struct resolve_answer *a)
{
	return a->error == EAI_SYSTEM ? strerror(a->sys) : gai_strerror(a->error);
}

/* ---- Clients ---- */

static struct resolve_client *client_of(struct resolver *r, const char *name)
{
	const char *key = name != NULL ? name : "";
	struct resolve_client *c;

	LIST_EACH(&r->clients, c, struct resolve_client, in_list)
		if (strcmp(c->name, key) == 0)
			return c;
	if ((c = calloc(1, sizeof *c + strlen(key) + 1)) == NULL)
		return NULL;
	strcpy(c->name, key);
	c->max = name != NULL ? RESOLVE_CLIENT_MAX : RESOLVE_OWN_MAX;
	list_append(&r->clients, &c->in_list);
	return c;
}

static void client_release(struct resolve_client *c)
{
	if (c->n_lookups > 0)
		return;
	list_remove(&c->in_list);
	free(c);
}

/* ---- Lookups ---- */

static struct lookup *lookup_new(struct resolver *r, struct resolve_client *c, const char *host, int family)
{
	struct lookup *u = calloc(1, sizeof *u);

	if (u == NULL)
		return NULL;
	list_init(&u->requests);
	u->resolver = r;
	u->client = c;
	u->waiting = true;
	snprintf(u->host, sizeof u->host, "%s", host);
	u->family = family;
	c->n_lookups++;
	list_append(&r->lookups, &u->in_list);
	return u;
}

static void lookup_free(struct lookup *u)
{
	list_remove(&u->in_list);
	u->client->n_lookups--;
	client_release(u->client);
	if (u->answer.all != NULL)
		freeaddrinfo(u->answer.all);
	free(u);
}

/* With the mutex, which it unlocks. */
static void user_gone(struct resolver *r)
{
	bool last = --r->n_users == 0;
	struct lookup *u;

	pthread_mutex_unlock(&r->mutex);
	if (!last)
		return;
	LIST_EACH(&r->lookups, u, struct lookup, in_list)
		lookup_free(u);
	pthread_mutex_destroy(&r->mutex);
	free(r);
}

/* Answers all requests. */
static void resolve_finish(struct lookup *u)
{
	struct resolve *q;

	list_remove(&u->in_list); /* requests from `done` start another lookup */
	while (!list_empty(&u->requests)) {
		q = CONTAINER_OF(u->requests.next, struct resolve, in_list);
		list_remove(&q->in_list);
		q->lookup = NULL;
		q->done(q, &u->answer);
	}
	lookup_free(u);
}

/* ---- Threads ---- */

static bool is_ascii(const char *text)
{
	while ((signed char)*text > 0)
		text++;
	return *text == '\0';
}

/* A name beyond ASCII is UTF-8 in any locale of the process. */
static int look_up(resolve_fn *fn, const char *host, struct addrinfo *hints, struct addrinfo **out)
{
	locale_t utf8 = (locale_t)0, old;
	int error, sys;

	if (!is_ascii(host) && (utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0)) != (locale_t)0)
		hints->ai_flags |= AI_IDN;
	old = utf8 != (locale_t)0 ? uselocale(utf8) : (locale_t)0;
	error = fn(host, NULL, hints, out);
	sys = errno;
	if (utf8 != (locale_t)0) {
		uselocale(old);
		freelocale(utf8);
	}
	errno = sys;
	return error;
}

static void *lookup_main(void *arg)
{
	struct lookup *u = arg;
	struct resolver *r = u->resolver;
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = family_of(u->family) };
	struct resolve_answer a = { 0 };

	a.error = look_up(r->fn, u->host, &hints, &a.all);
	a.sys = errno;
	if (a.error != 0)
		a.all = NULL;
	u->answer = a;
	pthread_mutex_lock(&r->mutex);
	if (r->closed) {
		user_gone(r);
	} else {
		loop_post(r->loop, &u->over);
		pthread_mutex_unlock(&r->mutex);
	}
	return NULL;
}

static void start_waiting(struct resolver *r);

static void on_over(struct msg *m)
{
	struct lookup *u = CONTAINER_OF(m, struct lookup, over);
	struct resolver *r = u->resolver;

	r->n_running--;
	u->client->n_running--;
	resolve_finish(u);
	if (!r->closed)
		start_waiting(r);
	pthread_mutex_lock(&r->mutex);
	user_gone(r);
}

static int lookup_run(struct lookup *u, struct ptcp_err *e)
{
	struct resolver *r = u->resolver;
	int err;

	u->waiting = false;
	u->over.run = on_over;
	pthread_mutex_lock(&r->mutex);
	if ((err = thread_start_detached(STACK_BYTES, lookup_main, u, e)) == 0)
		r->n_users++;
	pthread_mutex_unlock(&r->mutex);
	if (err == 0) {
		u->client->n_running++;
		r->n_running++;
	}
	return err;
}

/* The lookup to start, NULL: none. Of the clients with the fewest running lookups, the one that has waited
 * longest. */
static struct lookup *next_waiting(const struct resolver *r)
{
	struct lookup *u, *next = NULL;

	if (r->n_running >= RESOLVE_MAX)
		return NULL;
	LIST_EACH(&r->lookups, u, struct lookup, in_list)
		if (u->waiting && u->client->n_running < u->client->max &&
		    (next == NULL || u->client->n_running < next->client->n_running))
			next = u;
	return next;
}

static void start_waiting(struct resolver *r)
{
	struct lookup *u;
	struct ptcp_err why;

	while ((u = next_waiting(r)) != NULL)
		if (lookup_run(u, &why) < 0) {
			u->answer = (struct resolve_answer){ .error = EAI_SYSTEM, .sys = why.sys };
			resolve_finish(u);
		}
}

/* ---- Requests ---- */

/* An abandoned lookup may be stuck, and is not shared. */
static struct lookup *resolve_find(struct resolver *r, const struct resolve_client *c, const char *host, int family)
{
	struct lookup *u;

	LIST_EACH(&r->lookups, u, struct lookup, in_list)
		if (u->client == c && u->family == family && strcmp(u->host, host) == 0 && !list_empty(&u->requests))
			return u;
	return NULL;
}

int resolve_start(struct resolve *q, struct resolver *r, const char *client, const char *host, int family,
    void (*done)(struct resolve *q, const struct resolve_answer *a), struct ptcp_err *e)
{
	struct resolve_client *c = client_of(r, client);
	struct lookup *u;
	int err;

	if (c == NULL)
		return err_nomem(e);
	if ((u = resolve_find(r, c, host, family)) == NULL && (u = lookup_new(r, c, host, family)) == NULL) {
		client_release(c);
		return err_nomem(e);
	}
	/* No older lookup waits while this one may start. */
	if (u == next_waiting(r) && (err = lookup_run(u, e)) < 0) {
		lookup_free(u);
		return err;
	}
	q->lookup = u;
	q->done = done;
	list_append(&u->requests, &q->in_list);
	return 0;
}

void resolve_cancel(struct resolve *q)
{
	struct lookup *u = q->lookup;

	if (u == NULL)
		return;
	q->lookup = NULL;
	list_remove(&q->in_list);
	if (u->waiting && list_empty(&u->requests))
		lookup_free(u);
}

/* ---- Resolvers ---- */

int resolver_new(struct resolver **out, struct loop *l, resolve_fn *fn, struct ptcp_err *e)
{
	struct resolver *r = calloc(1, sizeof *r);

	if (r == NULL)
		return err_nomem(e);
	r->loop = l;
	r->fn = fn;
	list_init(&r->lookups);
	list_init(&r->clients);
	pthread_mutex_init(&r->mutex, NULL);
	r->n_users = 1;
	*out = r;
	return 0;
}

void resolver_free(struct resolver *r)
{
	if (r == NULL)
		return;
	pthread_mutex_lock(&r->mutex);
	r->closed = true;
	user_gone(r);
}
