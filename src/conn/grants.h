/* Grants: by them who is authorised at a host lets another do one thing there, once (PROTOCOL.md,
 * section 13). Control thread. */
#ifndef CONN_GRANTS_H
#define CONN_GRANTS_H

#include "net/identity.h"
#include "wire/grant.h"

#define GRANT_LIFE_S 900        /* of those we make */
#define GRANT_LIFE_MOST_S 86400 /* of those we take */

/* Who may do what, and where; all borrowed. */
struct grant_terms {
	const char *grantee, *audience; /* fingerprints */
	enum wire_grant_mode mode;
	const char *path;               /* "" to measure */
};

/* Encodes one into `out`, signed by `issuer`, that ends GRANT_LIFE_S after `now_s`. */
int grant_make(uint8_t out[WIRE_GRANT_MAX_BYTES], size_t *n, const struct identity *issuer,
    const struct grant_terms *terms, uint64_t now_s, struct ptcp_err *e);
/* The fingerprint of who has signed it; PTCP_EREFUSED when that is not who it says. */
int grant_issuer(char out[PTCP_FINGERPRINT_BYTES], const struct wire_grant *g, struct ptcp_err *e);
/* Whether it lets `grantee` do something at `audience`, fingerprints. */
bool grant_is_for(const struct wire_grant *g, const char *grantee, const char *audience);

/* Those that have come, until they expire. */
struct grants {
	struct grant_seen *seen;
	size_t n;
};

/* At the audience, `own`: whether `peer` may use it now, for the first time or again after a session that was cut
 * off; PTCP_EREFUSED with the reason. That it is signed has been seen to. */
int grants_take(struct grants *t, const struct wire_grant *g, const char *own, const char *peer, uint64_t now_s,
    struct ptcp_err *e);
/* What it was for has been done: it is good for nothing more. */
void grants_spend(struct grants *t, const struct wire_grant *g);
void grants_fini(struct grants *t);

#endif
