/* Movers of the acceptor, as a starter takes them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "net/reach.h"
#include "session/endpoints.h"

static struct wire_endpoint at(uint32_t id, const char *host, unsigned port)
{
	struct wire_endpoint f = { .id = id, .port = (uint16_t)port, .host = { (const uint8_t *)host, strlen(host) } };

	memset(f.peer, (int)id, sizeof f.peer);
	return f;
}

static const char *take(struct endpoints *e, struct wire_endpoint f, const char *from)
{
	struct sockaddr_storage sa;

	assert_true(reach_numeric(&sa, from));
	return endpoints_take(e, &f, (struct sockaddr *)&sa, false);
}

static void come_and_go(void **state)
{
	static struct endpoints e;
	uint32_t place[6] = { 0 };

	(void)state;
	assert_null(take(&e, at(1, "192.0.2.1", 7811), "192.0.2.9"));
	assert_null(take(&e, at(2, "2001:db8::2", 7812), "192.0.2.9"));
	assert_true(endpoints_deal(&e, place, 6, NULL));
	assert_true(place[0] == 1 && place[1] == 2 && place[4] == 1 && place[5] == 2);
	assert_string_equal(endpoints_find(&e, 2)->host, "2001:db8::2");
	assert_int_equal(endpoints_find(&e, 2)->port, 7812);
	assert_string_not_equal(endpoints_find(&e, 2)->fingerprint, endpoints_find(&e, 1)->fingerprint);
	assert_null(take(&e, at(2, "192.0.2.3", 7813), "192.0.2.9")); /* in place of the old one */
	assert_int_equal(e.n, 2);
	assert_int_equal(endpoints_find(&e, 2)->port, 7813);
	assert_null(take(&e, at(1, "", 0), "192.0.2.9"));
	assert_null(endpoints_find(&e, 1));
	assert_true(endpoints_deal(&e, place, 6, NULL));
	assert_true(place[0] == 2 && place[5] == 2);
	assert_null(take(&e, at(7, "", 0), "192.0.2.9")); /* none */
	assert_int_equal(e.n, 1);
}

static void ignored(void **state)
{
	static const struct { const char *host, *from; bool ok; } cases[] = {
		{ "localhost", "127.0.0.1", false }, { "data.example.org", "192.0.2.1", false }, { "0.0.0.0", "127.0.0.1", false },
		{ "::", "::1", false }, { "224.0.0.1", "192.0.2.1", false }, { "::ffff:0.0.0.0", "::1", false },
		{ "127.0.0.1", "127.0.0.1", true }, { "127.0.0.1", "10.0.0.1", false }, { "::1", "192.0.2.1", false },
		{ "::ffff:127.0.0.1", "192.0.2.1", false }, { "10.0.0.2", "127.0.0.1", true }, { "10.0.0.2", "10.0.0.1", true },
		{ "10.0.0.2", "192.0.2.1", false }, { "192.168.0.2", "2001:db8::1", false }, { "fd00::2", "10.0.0.1", true },
		{ "169.254.0.2", "10.0.0.1", false }, { "192.0.2.2", "10.0.0.1", true }, { "192.0.2.2", "2001:db8::1", true },
	};
	static struct endpoints e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		if ((take(&e, at(1, cases[i].host, 1), cases[i].from) == NULL) != cases[i].ok)
			fail_msg("%s from %s", cases[i].host, cases[i].from);
		assert_int_equal(e.n, cases[i].ok);
	}
}

/* The address of the acceptor is not known: only public ones. */
static void unknown(void **state)
{
	static struct endpoints e;
	const struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct wire_endpoint f = at(1, "10.0.0.1", 1);

	(void)state;
	assert_non_null(endpoints_take(&e, &f, &none, false));
	f = at(1, "192.0.2.1", 1);
	assert_null(endpoints_take(&e, &f, &none, false));
}

/* Through relays: their operators permit the addresses. */
static void behind_relays(void **state)
{
	static const struct { const char *host; bool ok, only; } cases[] = {
		{ "10.0.0.2", true, true }, { "127.0.0.1", true, true }, { "192.0.2.2", true, false }, { "0.0.0.0", false, false },
		{ "224.0.0.1", false, false }, { "localhost", false, false },
	};
	const struct sockaddr none = { .sa_family = AF_UNSPEC };
	static struct endpoints e;
	struct wire_endpoint f;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		f = at(1, cases[i].host, 1);
		if ((endpoints_take(&e, &f, &none, true) == NULL) != cases[i].ok)
			fail_msg("%s", cases[i].host);
		if (cases[i].ok)
			assert_int_equal(endpoints_find(&e, 1)->relays_only, cases[i].only);
	}
}

static void limits(void **state)
{
	static struct endpoints e;
	uint32_t id;

	(void)state;
	assert_non_null(take(&e, at(0, "192.0.2.1", 1), "192.0.2.1"));
	for (id = 1; id <= ENDPOINTS_MAX; id++)
		assert_null(take(&e, at(id, "192.0.2.1", 1), "192.0.2.1"));
	assert_non_null(take(&e, at(id, "192.0.2.1", 1), "192.0.2.1"));
	assert_null(take(&e, at(5, "192.0.2.1", 2), "192.0.2.1"));
	assert_int_equal(e.n, ENDPOINTS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(come_and_go), cmocka_unit_test(ignored), cmocka_unit_test(unknown), cmocka_unit_test(behind_relays),
		cmocka_unit_test(limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
