/* The door of a server: which connections may wait there until they have said who they are, so that strangers
 * can neither keep clients out nor take more of the host than a bounded part. After sshd's MaxStartups and
 * PerSourcePenalties; but in a crowd who has the most there goes, not who comes.
 *
 * Pure: addresses and `now` come in. One thread. */
#ifndef NET_ADMISSION_H
#define NET_ADMISSION_H

#include <stdbool.h>

#include "core/clock.h"
#include "core/err.h"

/* A connection costs its source 1/64 s, one that ended badly 8 times that; a source may be so far in
 * debt, which passes with time: 64 a second, and 1,024 at once. */
#define ADMISSION_COST_NS UINT64_C(15625000)
#define ADMISSION_BAD_COST_NS (7 * ADMISSION_COST_NS)
#define ADMISSION_CREDIT_NS (1024 * ADMISSION_COST_NS)

struct admission;
/* Where connections come from: an IPv4 address, the first half of an IPv6 address. Valid as long as
 * something of it waits or runs. */
struct source;

/* So many may wait in all, not counting those from where sessions come: these have room of their own, for
 * `streams` a session and as many again. `sessions`: there are no more at a time. */
int admission_new(struct admission **out, unsigned waiting, unsigned sessions, unsigned streams, struct ptcp_err *e);
void admission_free(struct admission *d); /* NULL is fine */

/* A connection from `address` ("1.2.3.4:5", "[v6]:5", or a word) waits from now on, until admission_leave().
 * NULL: it is to be closed at once, its source is in debt. A source with a session never is. */
struct source *admission_knock(struct admission *d, const char *address, struct mono now);
/* After it has come: the source of which the oldest that waits must go, or NULL. */
struct source *admission_crowded(struct admission *d, struct source *newcomer);

enum admission_end {
	ADMISSION_LOST, /* it went, or was late */
	ADMISSION_GOOD, /* a client's: costs nothing */
	ADMISSION_BAD   /* not of ptcp, or nobody whom we know */
};
void admission_leave(struct admission *d, struct source *s, enum admission_end how);

/* A session from there begins or ends. NULL is fine. */
void admission_session(struct admission *d, struct source *s, bool begins);

#endif
