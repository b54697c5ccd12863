/* Relays on the way of a mover's data connection: the engine judges their identities, as it knows the user's hosts, and
 * gives the mover a grant of the user for each: relays do not know the mover. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "conn/grants.h"
#include "core/err.h"
#include "mover/movers_impl.h"
#include "wire/outbox.h"

struct span remote_relays(char out[WIRE_RELAYS_MAX + 1], const struct connect_hop *relay, unsigned n)
{
	char hop[SOCK_HOST_BYTES + 10];
	size_t used = 0;
	unsigned i;

	out[0] = '\0';
	for (i = 0; i < n; i++) {
		sock_join(hop, sizeof hop, relay[i].host, relay[i].port);
		used += (size_t)snprintf(out + used, WIRE_RELAYS_MAX + 1 - used, "%s%s", i > 0 ? "," : "", hop);
	}
	return (struct span){ (const uint8_t *)out, used };
}

static int make_grant(uint8_t out[WIRE_GRANT_MAX_BYTES], size_t *n, const struct remote_stream *r, const char *relay,
    struct ptcp_err *e)
{
	const struct connect_hop *next = r->n_passed + 1 < r->n_relays ? &r->relay[r->n_passed + 1] : &r->to;
	struct grant_terms terms = { .grantee = r->mover->fingerprint, .audience = relay, .mode = WIRE_GRANT_RELAY };
	char hop[GRANT_HOP_BYTES];

	grant_hop(hop, next->host, next->port);
	terms.path = hop;
	return grant_make(out, n, r->issuer, &terms, (uint64_t)time(NULL), e);
}

/* In order, and once each: a mover gets no more grants than its stream has relays. */
int remote_on_hop(struct mover *m, const struct wire_hop *f, struct ptcp_err *e)
{
	struct remote_stream *r = remote_find(m, f->handle);
	char fingerprint[PTCP_FINGERPRINT_BYTES];
	struct connect_peer peer = { .fingerprint = fingerprint, .certificates = { .n = f->certificates.n } };
	struct connect_result result = { .cause = CONNECT_IDENTITY, .hop = f->hop };
	uint8_t grant[WIRE_GRANT_MAX_BYTES];
	size_t n;

	if (r != NULL && r->state == REMOTE_ORPHAN)
		return 0; /* STOP is on its way */
	if (r == NULL || r->state != REMOTE_CONNECTING || f->hop != r->n_passed || f->hop >= r->n_relays)
		return remote_no_such(e);
	identity_digest_text(fingerprint, f->peer);
	memcpy(peer.certificates.bytes, f->certificates.p, f->certificates.n);
	if (r->check(r->arg, &r->relay[f->hop], true, &peer, &result.why) < 0 ||
	    make_grant(grant, &n, r, fingerprint, &result.why) < 0) {
		remote_fail(r, &result);
		return 0;
	}
	r->n_passed++;
	OUTBOX_PUT(mover_link_out(m->link), pass, PASS, (&(struct wire_pass){ r->handle, { grant, n } }));
	return 0;
}
