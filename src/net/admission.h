/* Limits on unauthenticated connections of a server, per peer address and in all, so that strangers can
 * neither keep clients out nor use more than a bounded part of the host. After sshd's MaxStartups and
 * PerSourcePenalties; but above the limit the server closes a connection of the address with most of them,
 * not the newest connection.
 *
 * Pure: addresses and `now` come in. One thread. */
#ifndef NET_ADMISSION_H
#define NET_ADMISSION_H

#include <stdbool.h>

#include "core/clock.h"
#include "core/err.h"

/* Token bucket per address: a connection costs 1/64 s, a rejected one 8/64 s; an address may owe up to
 * ADMISSION_CREDIT_NS. So 64 connections/s and a burst of 1,024. */
#define ADMISSION_COST_NS UINT64_C(15625000)
#define ADMISSION_BAD_COST_NS (7 * ADMISSION_COST_NS)
#define ADMISSION_CREDIT_NS (1024 * ADMISSION_COST_NS)

/* The environment variable PTCP_TEST_PATIENCE multiplies the limits of time of unauthenticated connections, for tests
 * under valgrind or with sanitizers: by a whole number from 1 to ADMISSION_PATIENCE_MAX; by 1 for any other text, and
 * for none. Peers and other local users do not set the environment of a server, and a program with further rights than
 * its user ignores the variable. */
#define ADMISSION_PATIENCE "PTCP_TEST_PATIENCE"
enum { ADMISSION_PATIENCE_MAX = 60 };

unsigned admission_patience_parse(const char *text); /* NULL: 1 */
unsigned admission_patience(void);                   /* any thread */
/* A limit of `ns`, multiplied. */
static inline uint64_t admission_limit_ns(uint64_t ns) { return ns * admission_patience(); }

struct admission;
/* An IPv4 address, or the first half of an IPv6 address. Valid while the address has a waiting connection or a
 * session. */
struct peer_address;

/* `waiting`: limit on unauthenticated connections in all, except from addresses with sessions, which may have
 * `streams` per session and as many again. `sessions`: maximum number of sessions. */
int admission_new(struct admission **out, unsigned waiting, unsigned sessions, unsigned streams, struct ptcp_err *e);
void admission_free(struct admission *d); /* NULL is fine */

/* Counts a new connection from `address` ("1.2.3.4:5", "[v6]:5", or a word) as waiting until
 * admission_leave(). NULL: close the connection at once, the address exceeds the limit on new connections.
 * Addresses with a session never do. */
struct peer_address *admission_begin(struct admission *d, const char *address, struct mono now);
/* After admission_begin(): the address whose oldest waiting connection must be closed, or NULL. */
struct peer_address *admission_excess(struct admission *d, struct peer_address *newcomer);

enum admission_end {
	ADMISSION_LOST, /* closed by the peer or timed out */
	ADMISSION_GOOD, /* an authorized client: free */
	ADMISSION_BAD   /* the connection was not ptcp, or not authorized */
};
void admission_leave(struct admission *d, struct peer_address *s, enum admission_end how);

/* A connection that comes beside a session of its address may end as ADMISSION_GOOD unless it is bad: a client gives up
 * the streams that it no longer needs. */
bool admission_has_session(const struct peer_address *s);

/* A session from `s` begins or ends. NULL is fine. */
void admission_session(struct admission *d, struct peer_address *s, bool begins);

#endif
