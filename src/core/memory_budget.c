#include "core/memory_budget.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"

struct client {
	struct list in_list;        /* place in the list of the budget, in the order of turns */
	struct list waiting;        /* accounts with waiting claims, in the order of turns */
	uint64_t charged, used;     /* sums of its sessions */
	unsigned sessions;
	atomic_bool blocked;        /* a claim waits for the client's limit */
	char name[];
};

struct memory_account {
	struct list in_list;        /* place in the list of the client's accounts */
	struct memory_budget *budget;
	struct client *client;
	struct list waiting;        /* claims */
	atomic_uint n_waiting;
	atomic_uint_fast64_t held;  /* bytes of claims */
	uint64_t kept;              /* bytes of memory_charge() */
	bool admitted;
};

struct memory_budget {
	pthread_mutex_t lock;
	struct list clients, holders;
	uint64_t max, charged, used;
	atomic_bool blocked;        /* a claim waits for the total */
};

/* An admitted session is charged for its guaranteed part even if the session does not use this part. */
static uint64_t charge(const struct memory_account *a, uint64_t held, uint64_t kept)
{
	return (a->admitted && held < MEMORY_SESSION_BYTES ? MEMORY_SESSION_BYTES : held) + kept;
}

static uint64_t charge_now(const struct memory_account *a) { return charge(a, atomic_load(&a->held), a->kept); }

/* The part of the total, or of a client's share, that claims may fill: charges, which cannot wait, have the rest. */
static uint64_t for_claims(uint64_t share) { return share - share / 4; }

/* Whether the limits permit `bytes` more. Sets the flag of the first limit that does not. Where a claim already waits
 * for a limit, further claims wait behind it, however small. */
static bool permitted(struct memory_account *a, uint64_t bytes)
{
	struct memory_budget *b = a->budget;
	struct client *k = a->client;
	uint64_t held = atomic_load(&a->held), more = charge(a, held + bytes, a->kept) - charge_now(a);

	if (more == 0)
		return true;
	if (held + a->kept + bytes > b->max / 4)
		return false;
	if (atomic_load(&k->blocked) || k->charged + more > for_claims(b->max / 2)) {
		atomic_store(&k->blocked, true);
		return false;
	}
	if (atomic_load(&b->blocked) || b->charged + more > for_claims(b->max)) {
		atomic_store(&b->blocked, true);
		return false;
	}
	return true;
}

static void set(struct memory_account *a, uint64_t held, uint64_t kept)
{
	uint64_t charged = charge(a, held, kept) - charge_now(a);
	uint64_t used = held + kept - (atomic_load(&a->held) + a->kept);

	a->budget->charged += charged;
	a->client->charged += charged;
	a->budget->used += used;
	a->client->used += used;
	atomic_store(&a->held, held);
	a->kept = kept;
}

static void set_held(struct memory_account *a, uint64_t held) { set(a, held, a->kept); }

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

/* The account's first claim has its turn; the account and its client become the last of their lists. */
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

/* ---- Charges ---- */

static unsigned long long mib(uint64_t bytes) { return bytes >> 20; }

/* A charge never waits: its memory returns at the end of the session only. */
static int check_charge(const struct memory_account *a, uint64_t bytes, struct ptcp_err *e)
{
	const struct memory_budget *b = a->budget;
	uint64_t of_client = a->client->charged + bytes;

	if (bytes > b->max || a->kept + bytes > b->max / 4)
		return err_set(e, PTCP_ENOMEM, "memory: this session would take more than its quarter of the server's "
		    "--max-memory, %llu MiB (request less at once, or have --max-memory raised)", mib(b->max / 4));
	if (of_client > b->max / 2)
		return err_set(e, PTCP_ENOMEM, "memory: the sessions of this client would take more than their half of "
		    "the server's --max-memory, %llu MiB (run fewer at once, or have --max-memory raised)",
		    mib(b->max / 2));
	if (b->charged + bytes > (of_client > b->max / 16 ? b->max - b->max / 8 : b->max))
		return err_set(e, PTCP_ENOMEM, "memory: other clients have taken the server's --max-memory, %llu MiB "
		    "(try again later, or have --max-memory raised)", mib(b->max));
	return 0;
}

int memory_charge(struct memory_account *a, uint64_t bytes, struct ptcp_err *e)
{
	int r;

	if (a == NULL)
		return 0;
	pthread_mutex_lock(&a->budget->lock);
	if ((r = check_charge(a, bytes, e)) == 0)
		set(a, atomic_load(&a->held), a->kept + bytes);
	pthread_mutex_unlock(&a->budget->lock);
	return r;
}

/* Whether the memory of the session may be what a claim waits for. */
static bool is_waited_for(const struct memory_account *a)
{
	return atomic_load(&a->n_waiting) > 0 || atomic_load(&a->client->blocked) || atomic_load(&a->budget->blocked);
}

void memory_release(struct memory_account *a, uint64_t bytes)
{
	if (a == NULL)
		return;
	pthread_mutex_lock(&a->budget->lock);
	assert(bytes <= a->kept);
	set(a, atomic_load(&a->held), a->kept - bytes);
	if (is_waited_for(a))
		serve(a->budget);
	pthread_mutex_unlock(&a->budget->lock);
}

uint64_t memory_session_max(const struct memory_account *a)
{
	uint64_t max = UINT64_MAX;

	if (a == NULL)
		return max;
	pthread_mutex_lock(&a->budget->lock);
	max = a->budget->max / 4;
	pthread_mutex_unlock(&a->budget->lock);
	return max;
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
	k->charged = k->used = 0;
	k->sessions = 0;
	atomic_init(&k->blocked, false);
	strcpy(k->name, name);
	list_init(&k->waiting);
	list_append(&b->clients, &k->in_list);
	return k;
}

int memory_account_new(struct memory_account **out, struct memory_budget *b, const char *client, struct ptcp_err *e)
{
	struct memory_account *a;

	*out = NULL;
	if (b == NULL)
		return 0;
	if ((a = malloc(sizeof *a)) == NULL)
		return err_nomem(e);
	pthread_mutex_lock(&b->lock);
	if ((a->client = client_named(b, client)) != NULL) {
		a->budget = b;
		atomic_init(&a->held, 0);
		a->kept = 0;
		a->admitted = false;
		atomic_init(&a->n_waiting, 0);
		list_init(&a->in_list);
		list_init(&a->waiting);
		a->client->sessions++;
	}
	pthread_mutex_unlock(&b->lock);
	if (a->client == NULL) {
		free(a);
		return err_nomem(e);
	}
	*out = a;
	return 0;
}

int memory_account_same(struct memory_account **out, const struct memory_account *a, struct ptcp_err *e)
{
	return memory_account_new(out, a != NULL ? a->budget : NULL, a != NULL ? a->client->name : NULL, e);
}

void memory_account_admit(struct memory_account *a, bool admitted)
{
	uint64_t before;

	if (a == NULL)
		return;
	pthread_mutex_lock(&a->budget->lock);
	before = charge_now(a);
	a->admitted = admitted;
	a->budget->charged += charge_now(a) - before;
	a->client->charged += charge_now(a) - before;
	pthread_mutex_unlock(&a->budget->lock);
}

void memory_account_free(struct memory_account *a)
{
	struct memory_budget *b;

	if (a == NULL)
		return;
	b = a->budget;
	pthread_mutex_lock(&b->lock);
	assert(atomic_load(&a->held) == 0 && list_empty(&a->waiting));
	b->charged -= charge_now(a);
	a->client->charged -= charge_now(a);
	b->used -= a->kept;
	a->client->used -= a->kept;
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

uint64_t memory_budget_used(struct memory_budget *b)
{
	uint64_t used;

	pthread_mutex_lock(&b->lock);
	used = b->used;
	pthread_mutex_unlock(&b->lock);
	return used;
}

struct used {
	uint64_t bytes;
	size_t name; /* offset in the text behind all records */
};

/* The records of all clients, and their names behind these; NULL without memory, or without clients. Under the lock. */
static struct used *copy_used(const struct memory_budget *b, size_t *n)
{
	const struct client *k;
	struct used *copy;
	size_t text = 0, i = 0;
	char *names;

	*n = 0;
	LIST_EACH(&b->clients, k, const struct client, in_list) {
		text += strlen(k->name) + 1;
		++*n;
	}
	if (*n == 0 || (copy = malloc(*n * sizeof *copy + text)) == NULL)
		return NULL;
	names = (char *)(copy + *n);
	text = 0;
	LIST_EACH(&b->clients, k, const struct client, in_list) {
		copy[i++] = (struct used){ k->used, text };
		strcpy(names + text, k->name);
		text += strlen(k->name) + 1;
	}
	return copy;
}

void memory_budget_each(struct memory_budget *b, void (*each)(void *arg, const char *client, uint64_t bytes), void *arg)
{
	struct used *copy;
	size_t n, i;

	pthread_mutex_lock(&b->lock);
	copy = copy_used(b, &n);
	pthread_mutex_unlock(&b->lock);
	for (i = 0; copy != NULL && i < n; i++)
		each(arg, (const char *)(copy + n) + copy[i].name, copy[i].bytes);
	free(copy);
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
