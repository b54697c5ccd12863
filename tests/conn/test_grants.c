/* Who may use a grant, where, until when and how often.
 * against: arithmetic, memory, splicing */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "conn/grants.h"
#include "core/err.h"
#include "net/identity.h"

#define NOW UINT64_C(1700000000)

static struct identity issuer, grantee, audience, stranger;
static uint8_t frame[WIRE_GRANT_MAX_BYTES];

static int setup(void **state)
{
	(void)state;
	return identity_new(&issuer, NULL) | identity_new(&grantee, NULL) | identity_new(&audience, NULL) |
	    identity_new(&stranger, NULL);
}

static int teardown(void **state)
{
	(void)state;
	identity_fini(&issuer);
	identity_fini(&grantee);
	identity_fini(&audience);
	identity_fini(&stranger);
	return 0;
}

/* Points into `frame`. */
static struct wire_grant made(void)
{
	const struct grant_terms terms = { grantee.fingerprint, audience.fingerprint, WIRE_GRANT_WRITE, "in/run7" };
	struct wire_grant g;
	size_t n;

	assert_int_equal(grant_make(frame, &n, &issuer, &terms, NOW, NULL), 0);
	assert_int_equal(wire_grant_decode(&g, (struct span){ frame + WIRE_HEADER_BYTES, n - WIRE_HEADER_BYTES }, NULL),
	    0);
	return g;
}

static void sign(struct wire_grant *g, const struct identity *id)
{
	uint8_t text[WIRE_GRANT_TEXT_MAX_BYTES];

	assert_int_equal(identity_sign(g->signature, id, text, wire_grant_text(text, g), NULL), 0);
}

static void what_it_says(void **state)
{
	char by[PTCP_FINGERPRINT_BYTES];
	struct wire_grant g = made(), again = made();

	(void)state;
	assert_int_equal(grant_issuer(by, &g, NULL), 0);
	assert_string_equal(by, issuer.fingerprint);
	assert_true(grant_is_for(&g, grantee.fingerprint, audience.fingerprint));
	assert_false(grant_is_for(&g, audience.fingerprint, grantee.fingerprint));
	assert_int_equal(g.mode, WIRE_GRANT_WRITE);
	assert_int_equal(g.expiry_s, NOW + GRANT_LIFE_S);
	assert_int_equal(g.path.n, 7);
	assert_memory_equal(g.path.p, "in/run7", 7);
	assert_memory_not_equal(g.nonce, again.nonce, sizeof g.nonce);
}

/* Every bit of it is signed. */
static void forged(void **state)
{
	char by[PTCP_FINGERPRINT_BYTES];
	struct wire_grant g = made(), bent;
	struct ptcp_err e;
	size_t i, n = 189 + 7;
	unsigned decoded = 0;

	(void)state;
	for (i = 0; i < n * 8; i++) {
		frame[WIRE_HEADER_BYTES + i / 8] ^= (uint8_t)(1 << i % 8);
		if (wire_grant_decode(&bent, (struct span){ frame + WIRE_HEADER_BYTES, n }, NULL) == 0) {
			decoded++;
			assert_int_equal(grant_issuer(by, &bent, &e), PTCP_EREFUSED);
			assert_non_null(strstr(e.msg, "forged"));
		}
		frame[WIRE_HEADER_BYTES + i / 8] ^= (uint8_t)(1 << i % 8);
	}
	assert_true(decoded > 1500); /* most are well-formed */
	/* One who signs with his own key what another is said to have given. */
	sign(&g, &stranger);
	assert_int_equal(grant_issuer(by, &g, &e), PTCP_EREFUSED);
	/* The same text without the prefix. */
	assert_int_equal(identity_sign(g.signature, &issuer, frame + WIRE_HEADER_BYTES, n - 64, NULL), 0);
	assert_int_equal(grant_issuer(by, &g, &e), PTCP_EREFUSED);
	sign(&g, &issuer);
	assert_int_equal(grant_issuer(by, &g, NULL), 0);
}

static void refused(struct grants *t, const struct wire_grant *g, const char *own, const char *peer, uint64_t now_s,
    const char *why)
{
	struct ptcp_err e = { .code = 0 };

	assert_int_equal(grants_take(t, g, own, peer, now_s, &e), PTCP_EREFUSED);
	if (strstr(e.msg, why) == NULL)
		fail_msg("%s: %s", why, e.msg);
}

static void for_whom_and_when(void **state)
{
	struct grants t = { 0 };
	struct wire_grant g = made();
	const char *own = audience.fingerprint, *peer = grantee.fingerprint;

	(void)state;
	refused(&t, &g, stranger.fingerprint, peer, NOW, "another server than this");
	refused(&t, &g, own, stranger.fingerprint, NOW, "another client than this");
	refused(&t, &g, own, issuer.fingerprint, NOW, "another client than this");
	refused(&t, &g, own, peer, NOW + GRANT_LIFE_S, "expired");
	refused(&t, &g, own, peer, NOW + GRANT_LIFE_S - GRANT_LIFE_MAX_S - 1, "more than a day");
	assert_int_equal(t.n, 0); /* what is refused is not remembered */
	assert_int_equal(grants_take(&t, &g, own, peer, NOW + GRANT_LIFE_S - 1, NULL), 0);
	grants_fini(&t);
	t = (struct grants){ 0 };
	assert_int_equal(grants_take(&t, &g, own, peer, NOW + GRANT_LIFE_S - GRANT_LIFE_MAX_S, NULL), 0);
	grants_fini(&t);
}

/* What the issuer's clock, or a lie, can make of it; at an audience whose clock may be anywhere itself. */
static void by_any_clock(void **state)
{
	static const struct { uint64_t expiry_s, now_s; const char *why; } of[] = {
		{ 0, NOW, "expired" }, { 1, NOW, "expired" }, { NOW, NOW, "expired" },
		    { NOW - 3 * 3600, NOW, "expired" },
		{ NOW + 3 * 3600, NOW, NULL }, { NOW + 86400, NOW, NULL }, { NOW + 86401, NOW, "more than a day" },
		{ UINT64_C(1) << 63, NOW, "more than a day" }, { UINT64_MAX, NOW, "more than a day" },
		{ UINT64_MAX, 0, "more than a day" }, { UINT64_MAX, UINT64_MAX, "expired" },
		    { NOW, UINT64_MAX, "expired" },
		{ 5, UINT64_MAX - 5, "expired" }, { UINT64_MAX, UINT64_MAX - 900, NULL }, { 900, 0, NULL },
	};
	const char *own = audience.fingerprint, *peer = grantee.fingerprint;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof of / sizeof *of; i++) {
		struct grants t = { 0 };
		struct wire_grant g = made();

		g.expiry_s = of[i].expiry_s;
		if (of[i].why != NULL)
			refused(&t, &g, own, peer, of[i].now_s, of[i].why);
		else
			assert_int_equal(grants_take(&t, &g, own, peer, of[i].now_s, NULL), 0);
		grants_fini(&t);
	}
}

/* A mover's grant for a relay is for nothing else, and no other grant for a relay. */
static void relays(void **state)
{
	const char *own = audience.fingerprint, *peer = grantee.fingerprint;
	struct grant_terms terms = { grantee.fingerprint, audience.fingerprint, WIRE_GRANT_RELAY, "" };
	struct grants t = { 0 };
	struct wire_grant g = made();
	struct ptcp_err e;
	char hop[GRANT_HOP_BYTES], by[PTCP_FINGERPRINT_BYTES];
	size_t n;
	unsigned i;

	(void)state;
	grant_hop(hop, "2001:db8::1", 7811);
	assert_string_equal(hop, "2001:db8::1:7811");
	assert_int_equal(grant_relays(&g, own, peer, "in/run7", NOW, &e), PTCP_EREFUSED);
	assert_non_null(strstr(e.msg, "not for relaying"));
	terms.path = hop;
	assert_int_equal(grant_make(frame, &n, &issuer, &terms, NOW, NULL), 0);
	assert_int_equal(wire_grant_decode(&g, (struct span){ frame + WIRE_HEADER_BYTES, n - WIRE_HEADER_BYTES }, NULL),
	    0);
	assert_int_equal(grant_issuer(by, &g, NULL), 0);
	assert_string_equal(by, issuer.fingerprint);
	for (i = 0; i < 3; i++) /* of each connection */
		assert_int_equal(grant_relays(&g, own, peer, hop, NOW, NULL), 0);
	refused(&t, &g, own, peer, NOW, "relaying only");
	assert_int_equal(t.n, 0);
	assert_int_equal(grant_relays(&g, own, peer, "2001:db8::1:781", NOW, &e), PTCP_EREFUSED);
	assert_int_equal(grant_relays(&g, own, peer, "2001:db8::1:78111", NOW, &e), PTCP_EREFUSED);
	assert_int_equal(grant_relays(&g, own, peer, "2001:db8::2:7811", NOW, &e), PTCP_EREFUSED);
	assert_non_null(strstr(e.msg, "another next hop"));
	assert_int_equal(grant_relays(&g, stranger.fingerprint, peer, hop, NOW, &e), PTCP_EREFUSED);
	assert_non_null(strstr(e.msg, "another server"));
	assert_int_equal(grant_relays(&g, own, stranger.fingerprint, hop, NOW, &e), PTCP_EREFUSED);
	assert_non_null(strstr(e.msg, "another client"));
	assert_int_equal(grant_relays(&g, own, peer, hop, NOW + GRANT_LIFE_S - 1, &e), 0);
	assert_int_equal(grant_relays(&g, own, peer, hop, NOW + GRANT_LIFE_S, &e), PTCP_EREFUSED);
	assert_non_null(strstr(e.msg, "expired"));
}

static void how_often(void **state)
{
	struct grants t = { 0 };
	struct wire_grant g = made(), other = made();
	const char *own = audience.fingerprint, *peer = grantee.fingerprint;

	(void)state;
	assert_int_equal(grants_take(&t, &g, own, peer, NOW, NULL), 0);
	assert_int_equal(grants_take(&t, &g, own, peer, NOW + 1, NULL), 0); /* it was cut off */
	assert_int_equal(t.n, 1);
	grants_spend(&t, &g);
	refused(&t, &g, own, peer, NOW + 2, "used before");
	assert_int_equal(grants_take(&t, &other, own, peer, NOW + 2, NULL), 0);
	/* The same nonce by another issuer is another one. */
	other = g;
	assert_int_equal(identity_key(other.issuer, &stranger, NULL), 0);
	assert_int_equal(grants_take(&t, &other, own, peer, NOW + 2, NULL), 0);
	refused(&t, &g, own, peer, NOW + GRANT_LIFE_S - 1, "used before");
	refused(&t, &g, own, peer, NOW + GRANT_LIFE_S, "expired");
	grants_fini(&t);
}

/* What has been seen is not forgotten for want of room: then nothing new is taken. */
static void many(void **state)
{
	struct grants t = { 0 };
	struct wire_grant g = made(), first = g;
	const char *own = audience.fingerprint, *peer = grantee.fingerprint;
	unsigned i;

	(void)state;
	for (i = 0; i < 4096; i++) {
		g.issuer[0] = (uint8_t)(i >> 10); /* one has a quarter at most */
		g.nonce[0] = (uint8_t)i;
		g.nonce[1] = (uint8_t)(i >> 8);
		assert_int_equal(grants_take(&t, &g, own, peer, NOW, NULL), 0);
		if (i == 0) {
			first = g;
			grants_spend(&t, &first);
		}
	}
	g.nonce[2] ^= 1;
	refused(&t, &g, own, peer, NOW, "too busy");
	g.issuer[0]++; /* which has none */
	refused(&t, &g, own, peer, NOW, "too busy");
	refused(&t, &first, own, peer, NOW, "used before");
	g.expiry_s = NOW + GRANT_LIFE_S + 1;
	assert_int_equal(grants_take(&t, &g, own, peer, NOW + GRANT_LIFE_S, NULL), 0); /* all others have expired */
	assert_int_equal(t.n, 1);
	grants_fini(&t);
}

/* Who gives very many leaves room for others. */
static void of_one(void **state)
{
	struct grants t = { 0 };
	struct wire_grant g = made(), other = g;
	const char *own = audience.fingerprint, *peer = grantee.fingerprint;
	unsigned i;

	(void)state;
	for (i = 0; i < 1024; i++) {
		g.nonce[0] = (uint8_t)i;
		g.nonce[1] = (uint8_t)(i >> 8);
		assert_int_equal(grants_take(&t, &g, own, peer, NOW, NULL), 0);
	}
	assert_int_equal(grants_take(&t, &g, own, peer, NOW, NULL), 0); /* it is known */
	g.nonce[2] ^= 1;
	refused(&t, &g, own, peer, NOW, "too busy");
	other.issuer[0] ^= 1;
	assert_int_equal(grants_take(&t, &other, own, peer, NOW, NULL), 0);
	grants_fini(&t);
}

/* The issuer is charged until the grant expires. */
static void memory(void **state)
{
	struct grants t = { 0 };
	struct wire_grant g = made();
	const char *own = audience.fingerprint, *peer = grantee.fingerprint;
	struct ptcp_err e;
	unsigned i;
	int r;

	(void)state;
	assert_int_equal(memory_budget_new(&t.memory, 16 << 10, NULL), 0);
	for (i = 0; i < 1024; i++) {
		g.nonce[0] = (uint8_t)i;
		g.nonce[1] = (uint8_t)(i >> 8);
		if ((r = grants_take(&t, &g, own, peer, NOW, &e)) < 0)
			break;
	}
	assert_int_equal(r, PTCP_ENOMEM);
	assert_non_null(strstr(e.msg, "--max-memory"));
	assert_in_range(t.n, 10, 200);
	assert_true(memory_budget_used(t.memory) > 6 << 10);
	g.expiry_s = NOW + GRANT_LIFE_S + 1;
	assert_int_equal(grants_take(&t, &g, own, peer, NOW + GRANT_LIFE_S, NULL), 0);
	assert_int_equal(t.n, 1);
	grants_fini(&t);
	assert_int_equal(memory_budget_used(t.memory), 0);
	memory_budget_free(t.memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_it_says),
		cmocka_unit_test(memory),
		cmocka_unit_test(forged),
		cmocka_unit_test(for_whom_and_when),
		cmocka_unit_test(by_any_clock),
		cmocka_unit_test(relays), cmocka_unit_test(how_often),
		cmocka_unit_test(many),
		cmocka_unit_test(of_one),
	};

	return cmocka_run_group_tests_name("conn/grants", tests, setup, teardown);
}
