/* Relays as an engine names them to its movers, and what it answers about streams that have none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "mover/movers_impl.h"

static void names(void **state)
{
	const struct connect_hop relay[] = { { "relay.example.org", 7811 }, { "2001:db8::1", 1 },
		{ "192.0.2.1", 65535 } };
	char text[WIRE_RELAYS_MAX + 1];
	struct span s;

	(void)state;
	s = remote_relays(text, relay, 3);
	assert_string_equal(text, "relay.example.org:7811,[2001:db8::1]:1,192.0.2.1:65535");
	assert_int_equal(s.n, strlen(text));
	assert_int_equal(remote_relays(text, relay, 0).n, 0);
}

/* As many and as long as there may be. */
static void longest(void **state)
{
	struct connect_hop relay[CONNECT_RELAYS_MAX];
	char text[WIRE_RELAYS_MAX + 1];
	unsigned i;

	(void)state;
	for (i = 0; i < CONNECT_RELAYS_MAX; i++) {
		memset(relay[i].host, 'a', WIRE_HOST_MAX);
		relay[i].host[0] = i % 2 == 0 ? ':' : 'a'; /* in brackets */
		relay[i].host[WIRE_HOST_MAX] = '\0';
		relay[i].port = 65535;
	}
	assert_in_range(remote_relays(text, relay, CONNECT_RELAYS_MAX).n, WIRE_RELAYS_MAX - CONNECT_RELAYS_MAX - 1,
	    WIRE_RELAYS_MAX);
}

static int trusts(void *arg, const struct connect_hop *hop, bool relay, const struct connect_peer *peer,
    struct ptcp_err *e)
{
	(void)arg, (void)hop, (void)relay, (void)peer, (void)e;
	fail(); /* nobody is asked */
	return 0;
}

/* Neither a judgement nor a grant. */
static void not_asked_for(void **state)
{
	static const struct connect_hop relay[2] = { { "a", 1 }, { "b", 1 } };
	static struct remote_stream r = { .handle = 7, .relay = relay, .n_relays = 2, .check = trusts };
	static struct mover m = { .remote = { [7] = &r } };
	struct wire_hop f = { .handle = 7 };
	struct ptcp_err e;

	(void)state;
	f.handle = 8;
	assert_int_equal(remote_on_hop(&m, &f, &e), PTCP_EPROTO);
	f.handle = 7;
	f.hop = 1; /* before the first */
	assert_int_equal(remote_on_hop(&m, &f, &e), PTCP_EPROTO);
	r.n_passed = 1;
	f.hop = 0; /* again */
	assert_int_equal(remote_on_hop(&m, &f, &e), PTCP_EPROTO);
	r.n_passed = f.hop = 2;
	assert_int_equal(remote_on_hop(&m, &f, &e), PTCP_EPROTO);
	r.n_passed = f.hop = 0;
	r.state = REMOTE_STREAM;
	assert_int_equal(remote_on_hop(&m, &f, &e), PTCP_EPROTO);
	r.state = REMOTE_ORPHAN; /* STOP is on its way */
	assert_int_equal(remote_on_hop(&m, &f, &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names), cmocka_unit_test(longest), cmocka_unit_test(not_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
