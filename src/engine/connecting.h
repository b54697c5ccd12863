/* Decisions about the attempts to connect data streams: how long one may take, whether blocks follow JOIN at once, who
 * is to blame for a failure, and how long a session waits without any stream. Pure. */
#ifndef ENGINE_CONNECTING_H
#define ENGINE_CONNECTING_H

#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"

#define CONNECTING_PATH_NS (5 * NS_PER_S)       /* limit for an attempt, where other paths or addresses exist */
#define CONNECTING_ONLY_PATH_NS (10 * NS_PER_S) /* else */
#define CONNECTING_ENDPOINT_NS (4 * NS_PER_S)   /* for the first attempt to reach one of several
                                                   movers of the acceptor: two repeated SYNs */
#define CONNECTING_SLOW_NS (20 * NS_PER_S)      /* pause after an attempt that a slow host has not answered in time */

/* The attempt, as the session knows it. */
struct connecting {
	bool starter;               /* this end reports failed paths to its user */
	bool control;               /* a successor of the control connection */
	bool by_mover;              /* a mover of this end makes the connection */
	/* the path */
	unsigned n_paths;           /* paths of the session; 0: direct, without a choice */
	unsigned n_relays;          /* relays of this path */
	bool path_reported;         /* its failure is known to the user */
	unsigned path_streams;      /* connected over it */
	/* the address */
	bool has_name, by_name;     /* the peer has a name beside its address; the attempt resolves it */
	bool slow;                  /* the attempt before had a connection, but no answer in time */
	/* the mover of the acceptor at the other end */
	bool to_endpoint;           /* else the acceptor itself */
	unsigned n_endpoints, endpoint_failures;
	unsigned retries;           /* failures of this stream since its last success */
};

/* Limit of the attempt; timeout_ns: of the session. */
uint64_t connecting_patience_ns(const struct connecting *c, uint64_t timeout_ns);

/* Whether blocks follow JOIN at once, of a stream that sends files encrypted. A JOIN that is refused costs the blocks,
 * so the next attempt waits for JOINED. */
bool connecting_sends_ahead(const struct connecting *c);

struct connecting_failure {
	bool slow;                  /* a connection, but no answer in time */
	bool refused;
	unsigned hop;               /* place on the path, from 0 */
};

enum connecting_blame { CONNECTING_NOBODY, CONNECTING_PATH, CONNECTING_ENDPOINT };

/* Who is to blame, once the user must know or streams must go elsewhere. A path without any stream is reported once.
 * The failure of the only path ends the session, with the reason; but a relay that refuses movers serves the control
 * connection, so that the session would end without progress. */
enum connecting_blame connecting_blame(const struct connecting *c, const struct connecting_failure *f);
/* The attempt cannot be made at all. */
bool connecting_blames_path(const struct connecting *c, const struct connecting_failure *f);

/* How long a session waits without any stream: a session that had streams as long as for the control connection
 * (linger_ns). `awaits_movers`: it had none, and connects to movers of the acceptor, which a firewall may hide. */
uint64_t connecting_none_ns(bool awaits_movers, bool ever_connected, uint64_t linger_ns, uint64_t timeout_ns);

#endif
