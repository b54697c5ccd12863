/* Budget for the memory of data in transit: a limit in total, for each client (half of the total) and for each
 * session (a quarter). A claim takes memory at once or waits in turn: clients in rotation, the sessions of a client
 * in rotation, the claims of a session in order. Each session is guaranteed MEMORY_SESSION_BYTES, so that no session
 * waits for another for ever; sessions hold that part of the total from their beginning. A waiting claim holds
 * nothing, so claims cannot deadlock.
 *
 * Pure accounting: allocates no data, reads no clock. Any thread, except where stated. */
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
struct memory_account; /* of a session */

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
	struct mono since;                 /* and the time since which it is the same; 0: not checked */
};

int memory_budget_new(struct memory_budget **out, uint64_t max_bytes, struct ptcp_err *e);
void memory_budget_free(struct memory_budget *b); /* without accounts; NULL is fine */
/* Changes the total; claims that hold more keep it. */
void memory_budget_set(struct memory_budget *b, uint64_t max_bytes);
/* Memory held now, in bytes. */
uint64_t memory_budget_held(struct memory_budget *b);
/* To be called about once a second: reports stalled holders while others wait for their memory. */
void memory_budget_check(struct memory_budget *b, struct mono now);

/* An account of a session of this client. */
int memory_account_new(struct memory_account **out, struct memory_budget *b, const char *client, struct ptcp_err *e);
void memory_account_free(struct memory_account *a); /* without claims; NULL is fine */

void memory_claim_init(struct memory_claim *c, struct memory_account *a);
/* Takes memory; the claim must be empty. False: the claim waits for its turn, and `granted` follows. */
bool memory_take(struct memory_claim *c, uint64_t bytes);
/* Takes more for a holder, without waiting. False: too little is free, or others wait. */
bool memory_grow(struct memory_claim *c, uint64_t bytes);
void memory_shrink(struct memory_claim *c, uint64_t bytes);
/* Gives all back, or ends the wait and returns true: `granted` does not follow. An empty claim is fine. */
bool memory_give(struct memory_claim *c);
/* Whether others wait for memory that this holder has: between two pieces of work, a user gives its memory back and
 * takes it again in turn. */
bool memory_wanted(const struct memory_claim *c);

#endif
