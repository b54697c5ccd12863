/* Grants: a grant of an authorized client permits another host a single session at a server (PROTOCOL.md, section
 * 13), or a mover connections through a relay (section 14). Control thread. */
#ifndef CONN_GRANTS_H
#define CONN_GRANTS_H

#include "core/memory_budget.h"
#include "net/identity.h"
#include "wire/grant.h"

#define GRANT_LIFE_S 900        /* life of the grants that this host makes */
#define GRANT_LIFE_MAX_S 86400 /* max life of the grants that this host accepts */

/* Members are borrowed. */
struct grant_terms {
	const char *grantee, *audience; /* fingerprints */
	enum wire_grant_mode mode;
	const char *path;               /* "" for a measurement; of a next hop, see grant_hop() */
};

/* Encodes a grant signed by `issuer`, which expires GRANT_LIFE_S after `now_s`. */
int grant_make(uint8_t out[WIRE_GRANT_MAX_BYTES], size_t *n, const struct identity *issuer,
    const struct grant_terms *terms, uint64_t now_s, struct ptcp_err *e);
/* The issuer's fingerprint; PTCP_EREFUSED: the signature is invalid. */
int grant_issuer(char out[PTCP_FINGERPRINT_BYTES], const struct wire_grant *g, struct ptcp_err *e);
/* Whether grantee and audience of the grant have these fingerprints. */
bool grant_is_for(const struct wire_grant *g, const char *grantee, const char *audience);

#define GRANT_HOP_BYTES (WIRE_HOST_MAX + 7)
/* The path of a grant that permits connections through a relay to this next hop. */
void grant_hop(char out[GRANT_HOP_BYTES], const char *host, unsigned port);
/* At the relay `own`: whether `peer` may use a grant with verified signature now, to connect to the next hop.
 * PTCP_EREFUSED with the reason. Unlike a session's, such a grant permits any number of connections. */
int grant_relays(const struct wire_grant *g, const char *own, const char *peer, const char *hop, uint64_t now_s,
    struct ptcp_err *e);

/* Received grants, remembered until they expire. */
struct grants {
	struct memory_budget *memory; /* the issuers are charged; NULL: no limit */
	struct grant_use *used;
	size_t n;
};

/* At the audience, `own`: whether `peer` may use a grant with verified signature now, for the first time or after an
 * interrupted session. PTCP_EREFUSED with the reason. */
int grants_take(struct grants *t, const struct wire_grant *g, const char *own, const char *peer, uint64_t now_s,
    struct ptcp_err *e);
/* After a completed session: refuses the grant from now on. */
void grants_spend(struct grants *t, const struct wire_grant *g);
void grants_fini(struct grants *t);

#endif
