/* The paths of a transfer, side by side: what the user named, and what each has carried. */
#ifndef CONN_PATHS_H
#define CONN_PATHS_H

#include <ptcp/ptcp.h>

#include "conn/remote.h"
#include "conn/connect.h"

struct path {
	struct connect_hop relay[CONNECT_RELAYS_MAX];
	unsigned n_relays;            /* 0: directly */
	char *candidate;                    /* as it was named; "": directly */
	uint64_t hold_bytes;          /* that each of its relays may hold; 0: none does */
};

struct paths {
	unsigned n;                   /* at least 1 once parsed */
	struct path at[PTCP_PATHS_MAX];
	char host[SOCK_HOST_BYTES];   /* where they all lead */
	unsigned port;
	/* Of the n those in use; other candidates may take their places. */
	unsigned n_places;
	size_t place[PTCP_PATHS_MAX];
	bool chosen;                  /* from candidates, by the transfer */
	bool held;                    /* a relay of some path may hold something */
	uint8_t dealt[PTCP_STREAMS_MAX]; /* in which place a stream of that number is */
};

/* As ptcp_transfer_opts has them; none: directly. Streams are dealt in turn. PTCP_EUSAGE. */
int paths_parse(struct paths *p, const char *const *vias, size_t n, const struct remote *to, struct ptcp_err *e);
/* Of these, uses so many by chance; all are candidates. 1 <= places <= p->n. */
void paths_choose(struct paths *p, unsigned places, uint64_t seed);
/* Deals streams in proportion to shares of the places, after one for each path; however many streams there will be, the first so
 * many are dealt like that (D'Hondt). Shares are finite and not negative; NULL: all alike. */
void paths_deal(struct paths *p, const double *shares);
/* What the relays of each path may hold for it; NULL: nothing. */
void paths_hold(struct paths *p, const uint64_t *bytes);
/* The part of it that a stream's connection may have, where so many streams are in use. */
uint64_t paths_stream_hold(const struct paths *p, unsigned stream, unsigned streams);
void paths_fini(struct paths *p); /* zeroed is fine */
static inline unsigned paths_of_stream(const struct paths *p, unsigned stream)
{
	return (unsigned)p->place[p->dealt[stream]];
}
/* "A,B", or "direct", for sentences. */
const char *paths_name(const struct paths *p, unsigned i);

#endif
