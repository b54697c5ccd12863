/* The parallel paths of a transfer, and the path of each stream. */
#ifndef SESSION_PATHS_H
#define SESSION_PATHS_H

#include <ptcp/ptcp.h>

#include "conn/connect.h"
#include "conn/remote.h"

struct path {
	struct connect_hop relay[CONNECT_RELAYS_MAX];
	unsigned n_relays;            /* 0: direct */
	char *candidate;              /* the user's text; "": direct */
	uint64_t spool_bytes;          /* bytes that each relay may spool; 0: no spooling */
};

struct paths {
	unsigned n;                   /* number of paths, at least 1 once parsed */
	struct path at[PTCP_PATHS_MAX];
	char host[SOCK_HOST_BYTES];   /* host of the target */
	unsigned port;
	/* The paths in use; candidates may replace them. */
	unsigned n_places;
	size_t place[PTCP_PATHS_MAX];
	double prior_bps[PTCP_PATHS_MAX]; /* bandwidth known in advance; 0: unknown */
	bool chosen;                  /* n_places of n candidates, by the transfer */
	bool spools;                  /* a relay of some path may spool */
	uint8_t dealt[PTCP_STREAMS_MAX]; /* place of each stream, by number */
};

/* `names` as ptcp_transfer_opts.paths; none: direct. Deals streams in turn. PTCP_EUSAGE. */
int paths_parse(struct paths *p, const char *const *names, size_t n, const struct remote *to, struct ptcp_err *e);
/* Uses `places` paths, drawn in proportion to prior_bps (NULL: unknown; unknown ones as their mean); all n are
 * candidates. 1 <= places <= p->n. PTCP_EUSAGE: a negative or infinite bandwidth. */
int paths_choose(struct paths *p, unsigned places, const double *prior_bps, uint64_t seed, struct ptcp_err *e);
/* Deals streams in proportion to the places' shares, after one stream for each path, by D'Hondt's method: for any
 * number of streams the first are dealt in proportion. Shares are finite and not negative; NULL: equal. */
void paths_deal(struct paths *p, const double *shares);
/* Bytes that each relay of a path may spool; NULL: none. */
void paths_spool(struct paths *p, const uint64_t *bytes);
/* One stream's part of the path's spool, with `streams` in use. */
uint64_t paths_stream_spool_bytes(const struct paths *p, unsigned stream, unsigned streams);
void paths_fini(struct paths *p); /* zeroed is fine */
static inline unsigned paths_of_stream(const struct paths *p, unsigned stream)
{
	return (unsigned)p->place[p->dealt[stream]];
}
/* In sentences: "A,B", or "direct". */
const char *paths_name(const struct paths *p, unsigned i);

#endif
