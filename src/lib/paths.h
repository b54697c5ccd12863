/* The paths of a transfer, side by side: what the user named, and what each has carried. */
#ifndef LIB_PATHS_H
#define LIB_PATHS_H

#include <ptcp/ptcp.h>

#include "lib/target.h"
#include "lib/way.h"

struct path {
	struct way_hop relay[WAY_RELAYS_MAX];
	unsigned n_relays;            /* 0: directly */
	char *via;                    /* as it was named; "": directly */
};

struct paths {
	unsigned n;                   /* at least 1 once parsed */
	struct path at[PTCP_PATHS_MAX];
	char host[SOCK_HOST_BYTES];   /* where they all lead */
	unsigned port;
};

/* As ptcp_transfer_opts has them; none: directly. PTCP_EUSAGE. */
int paths_parse(struct paths *p, const char *const *vias, size_t n, const struct target *to, struct ptcp_err *e);
void paths_fini(struct paths *p); /* zeroed is fine */
/* Which one a stream of this number takes: they are dealt in turn. */
static inline unsigned paths_of_stream(const struct paths *p, unsigned stream) { return stream % p->n; }
/* "A,B", or "direct", for sentences. */
const char *paths_name(const struct paths *p, unsigned i);

#endif
