/* Budget for all memory that clients can make a server take: a limit in total, for each client (half of the total) and
 * for each session (a quarter). An account belongs to a session, or to a request of its client; allocating modules get
 * the account at their creation. Two kinds of memory are taken from the budget:
 *
 * - Data in transit, by claims. A claim takes memory at once or waits in turn: clients in rotation, the sessions of a
 *   client in rotation, the claims of a session in order. A waiting claim holds no memory, so claims cannot deadlock.
 * - Everything that a session keeps (lists, names, bitmaps, frames, connections), by charges. A charge never waits:
 *   beyond a limit it is refused with a sentence for the client, which ends the session or the request.
 *
 * Each admitted session is guaranteed MEMORY_SESSION_BYTES for claims, so that no session waits for ever; the session
 * holds this part of the total from its admission. Claims beyond that part leave the last quarter of the total, and of
 * a client's half, to charges: streams that are full shut out no new session. The last eighth of the total is closed to
 * charges of clients that have more than a sixteenth: two clients cannot shut out a third.
 *
 * Any thread, except where stated. */
#ifndef CORE_MEMORY_BUDGET_H
#define CORE_MEMORY_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"
#include "core/err.h"
#include "core/list.h"

#define MEMORY_SESSION_BYTES (UINT64_C(640) << 10)
#define MEMORY_STALL_NS (10 * UINT64_C(1000000000))

struct memory_budget;
struct memory_account; /* NULL means no limit, where functions take an account */

/* Embedded by the user, initialized by memory_claim_init(). */
struct memory_claim {
	struct memory_account *account;   /* NULL: no limit */
	/* Both are called under the budget's lock, on any thread, and may only post a message. */
	void (*granted)(struct memory_claim *c); /* the wait is over: the claim holds its memory */
	/* Others wait, and *moved has not changed for MEMORY_STALL_NS; or NULL. */
	void (*stalled)(struct memory_claim *c);
	const atomic_uint_fast64_t *moved; /* counter of the user's progress */
	/* the budget's */
	struct list in_list;               /* member of holders, or of the session's waiting claims */
	uint64_t bytes;                    /* held, or waited for */
	bool waiting;
	uint64_t seen;                     /* value of *moved, */
	struct mono since;                 /* time since which it is the same; 0: not checked */
};

int memory_budget_new(struct memory_budget **out, uint64_t max_bytes, struct ptcp_err *e);
void memory_budget_free(struct memory_budget *b); /* no account is left; NULL is fine */
/* Changes the total; claims that hold more keep it. */
void memory_budget_set(struct memory_budget *b, uint64_t max_bytes);
/* Memory in use, by claims and charges. */
uint64_t memory_budget_used(struct memory_budget *b);
/* The same by client, in no order: for all clients, or without memory for none. */
void memory_budget_each(struct memory_budget *b, void (*each)(void *arg, const char *client, uint64_t bytes),
    void *arg);
/* To be called about once a second: reports stalled holders while others wait for their memory. */
void memory_budget_check(struct memory_budget *b, struct mono now);

/* An account of this client. `b` NULL: makes none. */
int memory_account_new(struct memory_account **out, struct memory_budget *b, const char *client, struct ptcp_err *e);
/* Another account of the client of `a`, which may outlive `a`; NULL: makes none. */
int memory_account_same(struct memory_account **out, const struct memory_account *a, struct ptcp_err *e);
/* Whether the session is admitted, and has its guaranteed part; not at first. */
void memory_account_admit(struct memory_account *a, bool admitted);
/* Without claims. Releases all charges. */
void memory_account_free(struct memory_account *a);

/* ---- Charges ---- */

/* PTCP_ENOMEM with a sentence for the client: the limit, and what to do. */
int memory_charge(struct memory_account *a, uint64_t bytes, struct ptcp_err *e);
void memory_release(struct memory_account *a, uint64_t bytes);
/* The limit of one session; UINT64_MAX without an account. */
uint64_t memory_session_max(const struct memory_account *a);

/* ---- Claims ---- */

void memory_claim_init(struct memory_claim *c, struct memory_account *a);
/* Takes memory; the claim must be empty. False: the claim waits for its turn, and `granted` follows. */
bool memory_take(struct memory_claim *c, uint64_t bytes);
/* Takes more for a holder, without waiting. False: too little is free, or others wait. */
bool memory_grow(struct memory_claim *c, uint64_t bytes);
void memory_shrink(struct memory_claim *c, uint64_t bytes);
/* Gives all back, or ends the wait and returns true: `granted` does not follow. An empty claim is fine. */
bool memory_give(struct memory_claim *c);
/* Whether other claims wait for memory of this holder: between two pieces of work, a user gives its memory back and
 * takes memory again in turn. */
bool memory_wanted(const struct memory_claim *c);

#endif
