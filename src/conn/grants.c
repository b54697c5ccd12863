#include "conn/grants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "net/identity.h"
#include "net/tls.h"

_Static_assert(WIRE_CERTIFICATES_MAX == CERTIFICATES_MAX_BYTES, "a grant carries what its issuer presents");

#define GRANTS_MAX 4096
#define ISSUER_MAX (GRANTS_MAX / 4) /* limit of one issuer */

struct grant_use {
	uint8_t issuer[WIRE_KEY_BYTES], nonce[WIRE_NONCE_BYTES];
	uint64_t expiry_s;
	bool spent;
	struct memory_account *memory; /* account of the issuer; NULL: no limit */
};

int grant_make(uint8_t out[WIRE_GRANT_MAX_BYTES], size_t *n, const struct identity *issuer,
    const struct grant_terms *terms, uint64_t now_s, struct ptcp_err *e)
{
	struct wire_grant g = { .mode = (uint8_t)terms->mode, .expiry_s = now_s + GRANT_LIFE_S,
		.path = { (const uint8_t *)terms->path, strlen(terms->path) },
		.certificates = { issuer->certificates.bytes, issuer->certificates.n } };
	uint8_t text[WIRE_GRANT_TEXT_MAX_BYTES];
	int r;

	identity_digest(g.grantee, terms->grantee);
	identity_digest(g.audience, terms->audience);
	if ((r = identity_key(g.issuer, issuer, e)) < 0 || (r = tls_random(g.nonce, sizeof g.nonce, e)) < 0 ||
	    (r = identity_sign(g.signature, issuer, text, wire_grant_text(text, &g), e)) < 0)
		return r;
	*n = wire_grant_encode(out, &g);
	return 0;
}

int grant_issuer(char out[PTCP_FINGERPRINT_BYTES], const struct wire_grant *g, struct ptcp_err *e)
{
	uint8_t text[WIRE_GRANT_TEXT_MAX_BYTES];

	if (!identity_verify(g->issuer, text, wire_grant_text(text, g), g->signature))
		return err_set(e, PTCP_EREFUSED, "the grant: invalid signature, forged or damaged (repeat the "
		    "command)");
	return identity_key_fingerprint(out, g->issuer, e);
}

static bool is(const uint8_t digest[WIRE_DIGEST_BYTES], const char *fingerprint)
{
	char text[PTCP_FINGERPRINT_BYTES];

	identity_digest_text(text, digest);
	return strcmp(text, fingerprint) == 0;
}

bool grant_is_for(const struct wire_grant *g, const char *grantee, const char *audience)
{
	return is(g->grantee, grantee) && is(g->audience, audience);
}

static void forget_expired(struct grants *t, uint64_t now_s)
{
	size_t i;

	for (i = 0; i < t->n; )
		if (t->used[i].expiry_s <= now_s) {
			memory_account_free(t->used[i].memory);
			t->used[i] = t->used[--t->n];
		} else {
			i++;
		}
}

static struct grant_use *grants_find(struct grants *t, const struct wire_grant *g)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		if (memcmp(t->used[i].nonce, g->nonce, sizeof g->nonce) == 0 &&
		    memcmp(t->used[i].issuer, g->issuer, sizeof g->issuer) == 0)
			return &t->used[i];
	return NULL;
}

static size_t count(const struct grants *t, const struct wire_grant *g)
{
	size_t i, n = 0;

	for (i = 0; i < t->n; i++)
		n += memcmp(t->used[i].issuer, g->issuer, sizeof g->issuer) == 0;
	return n;
}

static int grants_check(const struct wire_grant *g, const char *own, const char *peer, uint64_t now_s,
    struct ptcp_err *e)
{
	if (!is(g->audience, own))
		return err_set(e, PTCP_EREFUSED, "the grant: issued for another server than this (repeat the command)");
	if (!is(g->grantee, peer))
		return err_set(e, PTCP_EREFUSED, "the grant: issued for another client than this (repeat the command)");
	if (g->expiry_s <= now_s)
		return err_set(e, PTCP_EREFUSED, "the grant: expired (repeat the command; if the grant is new, "
		    "compare the hosts' clocks)");
	if (g->expiry_s - now_s > GRANT_LIFE_MAX_S)
		return err_set(e, PTCP_EREFUSED, "the grant: valid for more than a day (compare the hosts' clocks)");
	return 0;
}

void grant_hop(char out[GRANT_HOP_BYTES], const char *host, unsigned port)
{
	snprintf(out, GRANT_HOP_BYTES, "%.*s:%u", WIRE_HOST_MAX, host, port & 0xffff);
}

int grant_relays(const struct wire_grant *g, const char *own, const char *peer, const char *hop, uint64_t now_s,
    struct ptcp_err *e)
{
	if (g->mode != WIRE_GRANT_RELAY)
		return err_set(e, PTCP_EREFUSED, "the grant: not for relaying (repeat the command)");
	if (g->path.n != strlen(hop) || memcmp(g->path.p, hop, g->path.n) != 0)
		return err_set(e, PTCP_EREFUSED, "the grant: for another next hop than %s (repeat the command)", hop);
	return grants_check(g, own, peer, now_s, e);
}

static int grants_charge(struct memory_account **out, struct memory_budget *b, const struct wire_grant *g,
    struct ptcp_err *e)
{
	char issuer[PTCP_FINGERPRINT_BYTES];
	int r;

	if ((r = identity_key_fingerprint(issuer, g->issuer, e)) < 0 || (r = memory_account_new(out, b, issuer, e)) < 0)
		return r;
	if ((r = memory_charge(*out, sizeof(struct grant_use), e)) < 0)
		memory_account_free(*out);
	return r;
}

int grants_take(struct grants *t, const struct wire_grant *g, const char *own, const char *peer, uint64_t now_s,
    struct ptcp_err *e)
{
	struct grant_use *s;
	int r;

	if (g->mode == WIRE_GRANT_RELAY)
		return err_set(e, PTCP_EREFUSED, "the grant: for relaying only (repeat the command)");
	if ((r = grants_check(g, own, peer, now_s, e)) < 0)
		return r;
	forget_expired(t, now_s);
	if ((s = grants_find(t, g)) != NULL)
		return !s->spent ? 0 : err_set(e, PTCP_EREFUSED, "the grant: used before (repeat the command)");
	if (t->n == GRANTS_MAX || count(t, g) >= ISSUER_MAX)
		return err_set(e, PTCP_EREFUSED, "too busy: too many grants in use (try again later)");
	if (t->used == NULL && (t->used = calloc(GRANTS_MAX, sizeof *t->used)) == NULL)
		return err_nomem(e);
	s = &t->used[t->n];
	if ((r = grants_charge(&s->memory, t->memory, g, e)) < 0)
		return r;
	t->n++;
	memcpy(s->issuer, g->issuer, sizeof s->issuer);
	memcpy(s->nonce, g->nonce, sizeof s->nonce);
	s->expiry_s = g->expiry_s;
	s->spent = false;
	return 0;
}

void grants_spend(struct grants *t, const struct wire_grant *g)
{
	struct grant_use *s = grants_find(t, g);

	if (s != NULL)
		s->spent = true; /* else expired */
}

void grants_fini(struct grants *t)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		memory_account_free(t->used[i].memory);
	free(t->used);
}
