#include "core/memory_budget.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"

struct client {
	struct list in_list;        /* of the budget, in the order of turns */
	struct list waiting;        /* accounts with waiting claims, in the order of turns */
	uint64_t charged;           /* sum of its sessions */
	unsigned sessions;
	atomic_bool blocked;        /* a claim waits for the client's limit */
	char name[];
};

struct memory_account {
	struct list in_list;        /* of the client */
	struct memory_budget *budget;
	struct client *client;
	struct list waiting;        /* claims */
	atomic_uint n_waiting;
	atomic_uint_fast64_t held;
};

struct memory_budget {
	pthread_mutex_t lock;
	struct list clients, holders;
	uint64_t max, charged, held;
	atomic_bool blocked;        /* a claim waits for the total */
};

/* A session is charged for its guaranteed part even if it does not use it. */
static uint64_t charge(uint64_t held) { return held > MEMORY_SESSION_BYTES ? held : MEMORY_SESSION_BYTES; }

/* Increase of the charge by `bytes` more: 0 within the guaranteed part. */
static uint64_t charge_increase(const struct memory_account *a, uint64_t bytes)
{
	uint64_t held = atomic_load(&a->held);

	return charge(held + bytes) - charge(held);
}

/* Whether the limits permit `bytes` more. Sets the flag of the first limit that does not. Where a claim already waits
 * for a limit, further claims wait behind it, however small. */
static bool permitted(struct memory_account *a, uint64_t bytes)
{
	struct memory_budget *b = a->budget;
	struct client *k = a->client;
	uint64_t more = charge_increase(a, bytes);

	if (more == 0)
		return true;
	if (atomic_load(&a->held) + bytes > b->max / 4)
		return false;
	if (atomic_load(&k->blocked) || k->charged + more > b->max / 2) {
		atomic_store(&k->blocked, true);
		return false;
	}
	if (atomic_load(&b->blocked) || b->charged + more > b->max) {
		atomic_store(&b->blocked, true);
		return false;
	}
	return true;
}

static void set_held(struct memory_account *a, uint64_t held)
{
	uint64_t was = atomic_load(&a->held);

	a->budget->held += held - was;
	a->budget->charged += charge(held) - charge(was);
	a->client->charged += charge(held) - charge(was);
	atomic_store(&a->held, held);
}

static void hold(struct memory_claim *c)
{
	struct memory_account *a = c->account;

	set_held(a, atomic_load(&a->held) + c->bytes);
	c->waiting = false;
	c->since.ns = 0;
	list_append(&a->budget->holders, &c->in_list);
}

/* ---- Turns ---- */

static void end_wait(struct memory_claim *c)
{
	struct memory_account *a = c->account;

	list_remove(&c->in_list);
	if (atomic_fetch_sub(&a->n_waiting, 1) == 1)
		list_remove(&a->in_list);
}

/* The account's first claim has its turn; account and client are the last of their lists then. */
static void grant(struct memory_account *a)
{
	struct memory_claim *c = CONTAINER_OF(a->waiting.next, struct memory_claim, in_list);

	list_remove(&a->in_list);
	list_append(&a->client->waiting, &a->in_list);
	list_remove(&a->client->in_list);
	list_append(&a->budget->clients, &a->client->in_list);
	end_wait(c);
	hold(c);
	c->granted(c);
}

/* Returns true after a grant, which changes the order. */
static bool grant_next(struct memory_budget *b)
{
	struct memory_account *a;
	struct client *k;

	atomic_store(&b->blocked, false);
	LIST_EACH(&b->clients, k, struct client, in_list) {
		atomic_store(&k->blocked, false);
		for (struct list *at = k->waiting.next; at != &k->waiting; at = at->next) {
			a = CONTAINER_OF(at, struct memory_account, in_list);
			if (permitted(a, CONTAINER_OF(a->waiting.next, struct memory_claim, in_list)->bytes)) {
				grant(a);
				return true;
			}
		}
	}
	return false;
}

static void serve(struct memory_budget *b)
{
	while (grant_next(b))
		;
}

/* ---- Claims ---- */

void memory_claim_init(struct memory_claim *c, struct memory_account *a)
{
	c->account = a;
	c->bytes = 0;
	c->waiting = false;
	list_init(&c->in_list);
}

bool memory_take(struct memory_claim *c, uint64_t bytes)
{
	struct memory_account *a = c->account;
	bool held;

	assert(c->bytes == 0);
	if (a == NULL)
		return true;
	pthread_mutex_lock(&a->budget->lock);
	c->bytes = bytes;
	if ((held = list_empty(&a->waiting) && permitted(a, bytes))) {
		hold(c);
	} else {
		c->waiting = true;
		list_append(&a->waiting, &c->in_list);
		if (atomic_fetch_add(&a->n_waiting, 1) == 0)
			list_append(&a->client->waiting, &a->in_list);
	}
	pthread_mutex_unlock(&a->budget->lock);
	return held;
}

bool memory_grow(struct memory_claim *c, uint64_t bytes)
{
	struct memory_account *a = c->account;
	bool held;

	if (a == NULL)
		return true;
	pthread_mutex_lock(&a->budget->lock);
	held = list_empty(&a->waiting) && !atomic_load(&a->client->blocked) && !atomic_load(&a->budget->blocked) &&
	    permitted(a, bytes);
	if (held) {
		set_held(a, atomic_load(&a->held) + bytes);
		c->bytes += bytes;
	} else {
		serve(a->budget); /* clears the flags of permitted(): nothing waits for these bytes */
	}
	pthread_mutex_unlock(&a->budget->lock);
	return held;
}

void memory_shrink(struct memory_claim *c, uint64_t bytes)
{
	struct memory_account *a = c->account;

	if (a == NULL)
		return;
	pthread_mutex_lock(&a->budget->lock);
	assert(bytes <= c->bytes);
	set_held(a, atomic_load(&a->held) - bytes);
	c->bytes -= bytes;
	serve(a->budget);
	pthread_mutex_unlock(&a->budget->lock);
}

bool memory_give(struct memory_claim *c)
{
	struct memory_account *a = c->account;
	bool waited;

	if (a == NULL)
		return false;
	pthread_mutex_lock(&a->budget->lock);
	if ((waited = c->waiting)) {
		end_wait(c);
	} else if (c->bytes > 0) {
		list_remove(&c->in_list);
		set_held(a, atomic_load(&a->held) - c->bytes);
	}
	c->waiting = false;
	c->bytes = 0;
	serve(a->budget);
	pthread_mutex_unlock(&a->budget->lock);
	return waited;
}

bool memory_wanted(const struct memory_claim *c)
{
	const struct memory_account *a = c->account;

	return a != NULL && (atomic_load(&a->n_waiting) > 0 || (atomic_load(&a->held) > MEMORY_SESSION_BYTES &&
	    (atomic_load(&a->client->blocked) || atomic_load(&a->budget->blocked))));
}

/* ---- Accounts ---- */

/* Made if there is none; NULL without memory. */
static struct client *client_named(struct memory_budget *b, const char *name)
{
	struct client *k;

	LIST_EACH(&b->clients, k, struct client, in_list)
		if (strcmp(k->name, name) == 0)
			return k;
	if ((k = malloc(sizeof *k + strlen(name) + 1)) == NULL)
		return NULL;
	k->charged = 0;
	k->sessions = 0;
	atomic_init(&k->blocked, false);
	strcpy(k->name, name);
	list_init(&k->waiting);
	list_append(&b->clients, &k->in_list);
	return k;
}

int memory_account_new(struct memory_account **out, struct memory_budget *b, const char *client, struct ptcp_err *e)
{
	struct memory_account *a = malloc(sizeof *a);

	if (a == NULL)
		return err_nomem(e);
	pthread_mutex_lock(&b->lock);
	if ((a->client = client_named(b, client)) != NULL) {
		a->budget = b;
		atomic_init(&a->held, 0);
		atomic_init(&a->n_waiting, 0);
		list_init(&a->in_list);
		list_init(&a->waiting);
		a->client->sessions++;
		a->client->charged += charge(0);
		b->charged += charge(0);
	}
	pthread_mutex_unlock(&b->lock);
	if (a->client == NULL) {
		free(a);
		return err_nomem(e);
	}
	*out = a;
	return 0;
}

void memory_account_free(struct memory_account *a)
{
	struct memory_budget *b;

	if (a == NULL)
		return;
	b = a->budget;
	pthread_mutex_lock(&b->lock);
	assert(atomic_load(&a->held) == 0 && list_empty(&a->waiting));
	b->charged -= charge(0);
	a->client->charged -= charge(0);
	if (--a->client->sessions == 0) {
		list_remove(&a->client->in_list);
		free(a->client);
	}
	serve(b);
	pthread_mutex_unlock(&b->lock);
	free(a);
}

/* ---- The budget ---- */

int memory_budget_new(struct memory_budget **out, uint64_t max_bytes, struct ptcp_err *e)
{
	struct memory_budget *b = calloc(1, sizeof *b);

	if (b == NULL)
		return err_nomem(e);
	pthread_mutex_init(&b->lock, NULL);
	list_init(&b->clients);
	list_init(&b->holders);
	b->max = max_bytes;
	*out = b;
	return 0;
}

void memory_budget_free(struct memory_budget *b)
{
	if (b == NULL)
		return;
	assert(list_empty(&b->clients));
	pthread_mutex_destroy(&b->lock);
	free(b);
}

void memory_budget_set(struct memory_budget *b, uint64_t max_bytes)
{
	pthread_mutex_lock(&b->lock);
	b->max = max_bytes;
	serve(b);
	pthread_mutex_unlock(&b->lock);
}

uint64_t memory_budget_held(struct memory_budget *b)
{
	uint64_t held;

	pthread_mutex_lock(&b->lock);
	held = b->held;
	pthread_mutex_unlock(&b->lock);
	return held;
}

static void check(struct memory_claim *c, struct mono now)
{
	uint64_t moved = c->moved != NULL ? atomic_load(c->moved) : 0;

	if (c->since.ns == 0 || moved != c->seen) {
		c->seen = moved;
		c->since = now;
	} else if (c->stalled != NULL && mono_diff_ns(now, c->since) >= MEMORY_STALL_NS && memory_wanted(c)) {
		c->since = now;
		c->stalled(c);
	}
}

void memory_budget_check(struct memory_budget *b, struct mono now)
{
	struct memory_claim *c;

	pthread_mutex_lock(&b->lock);
	LIST_EACH(&b->holders, c, struct memory_claim, in_list)
		check(c, now);
	pthread_mutex_unlock(&b->lock);
}
