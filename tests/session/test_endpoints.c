/* Movers of the acceptor, as a starter takes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/units.h"
#include "net/reach.h"
#include "session/endpoints.h"

static const struct mono start = { 1000 * NS_PER_S };

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
	assert_true(endpoints_deal(&e, place, 6, NULL, start));
	assert_true(place[0] == 1 && place[1] == 2 && place[4] == 1 && place[5] == 2);
	assert_string_equal(endpoints_find(&e, 2)->host, "2001:db8::2");
	assert_int_equal(endpoints_find(&e, 2)->port, 7812);
	assert_string_not_equal(endpoints_find(&e, 2)->fingerprint, endpoints_find(&e, 1)->fingerprint);
	assert_null(take(&e, at(2, "192.0.2.3", 7813), "192.0.2.9")); /* in place of the old one */
	assert_int_equal(e.n, 2);
	assert_int_equal(endpoints_find(&e, 2)->port, 7813);
	assert_null(take(&e, at(1, "", 0), "192.0.2.9"));
	assert_null(endpoints_find(&e, 1));
	assert_true(endpoints_deal(&e, place, 6, NULL, start));
	assert_true(place[0] == 2 && place[5] == 2);
	assert_null(take(&e, at(7, "", 0), "192.0.2.9")); /* none */
	assert_int_equal(e.n, 1);
}

static unsigned of(const uint32_t *place, unsigned n, uint32_t id)
{
	unsigned i, k = 0;

	for (i = 0; i < n; i++)
		k += place[i] == id;
	return k;
}

static struct mono after_s(double s) { return mono_add_ns(start, (uint64_t)(s * 1e9)); }

/* Streams of an endpoint that cannot be reached go to others; later one stream tries again, at longer and longer
 * intervals. */
static void unreached(void **state)
{
	static struct endpoints e;
	uint32_t place[8] = { 0 };
	unsigned i, number;
	double s;

	(void)state;
	for (i = 1; i <= 3; i++)
		assert_null(take(&e, at(i, "192.0.2.1", 7810 + i), "192.0.2.9"));
	endpoints_deal(&e, place, 8, NULL, start);
	assert_int_equal(of(place, 8, 2), 3);
	assert_int_equal(endpoints_deadline(&e).ns, MONO_NEVER.ns);
	assert_true(endpoints_failed(&e, 2, 1, start));
	assert_false(endpoints_failed(&e, 2, 4, start)); /* began earlier */
	assert_true(endpoints_deal(&e, place, 8, NULL, start));
	assert_true(of(place, 8, 1) == 4 && of(place, 8, 3) == 4);
	for (s = 5, i = 0; i < 6; i++) {
		assert_int_equal(endpoints_deadline(&e).ns, after_s(s).ns);
		assert_false(endpoints_deal(&e, place, 8, NULL, after_s(s - 0.001)));
		assert_true(endpoints_deal(&e, place, 8, NULL, after_s(s)));
		assert_int_equal(of(place, 8, 2), 1);
		assert_false(endpoints_deal(&e, place, 8, NULL, after_s(s))); /* the attempt goes on */
		assert_int_equal(endpoints_deadline(&e).ns, MONO_NEVER.ns);
		for (number = 0; place[number] != 2; number++)
			;
		assert_false(endpoints_failed(&e, 2, number, after_s(s)));
		assert_true(endpoints_deal(&e, place, 8, NULL, after_s(s)));
		assert_true(of(place, 8, 1) == 4 && of(place, 8, 3) == 4);
		s += 5 * (double)(2u << (i < 3 ? i : 3));
	}
	assert_true(endpoints_deal(&e, place, 8, NULL, after_s(s)));
	endpoints_reached(&e, 2);
	assert_true(endpoints_deal(&e, place, 8, NULL, after_s(s)));
	assert_true(of(place, 8, 2) >= 2);
}

/* None can be reached: all are tried by their streams. One stream alone tries no second endpoint. */
static void none_reached(void **state)
{
	static struct endpoints e;
	uint32_t place[4] = { 0 };

	(void)state;
	assert_null(take(&e, at(1, "192.0.2.1", 1), "192.0.2.9"));
	assert_null(take(&e, at(2, "192.0.2.1", 2), "192.0.2.9"));
	endpoints_deal(&e, place, 4, NULL, start);
	assert_true(endpoints_failed(&e, 1, 0, start));
	endpoints_deal(&e, place, 4, NULL, start);
	assert_int_equal(of(place, 4, 2), 4);
	endpoints_deal(&e, place, 4, NULL, after_s(5));
	assert_int_equal(of(place, 4, 1), 1);
	assert_true(endpoints_failed(&e, 2, 0, after_s(5)));
	endpoints_deal(&e, place, 4, NULL, after_s(5));
	assert_true(of(place, 4, 1) == 2 && of(place, 4, 2) == 2);
	endpoints_reached(&e, 1);
	endpoints_deal(&e, place, 4, NULL, after_s(6));
	assert_int_equal(of(place, 4, 1), 4);
	endpoints_deal(&e, place, 1, NULL, after_s(20));
	assert_int_equal(of(place, 1, 1), 1);
}

/* More endpoints to be tried than streams. */
static void many_unreached(void **state)
{
	static struct endpoints e;
	uint32_t place[3] = { 0 };
	unsigned i;

	(void)state;
	for (i = 1; i <= 9; i++)
		assert_null(take(&e, at(i, "192.0.2.1", i), "192.0.2.9"));
	for (i = 2; i <= 9; i++)
		assert_true(endpoints_failed(&e, i, 0, start));
	endpoints_deal(&e, place, 3, NULL, start);
	assert_int_equal(of(place, 3, 1), 3);
	endpoints_deal(&e, place, 3, NULL, after_s(5));
	assert_int_equal(of(place, 3, 1), 1);
	assert_true(of(place, 3, 2) == 1 && of(place, 3, 3) == 1);
	assert_null(take(&e, at(2, "", 0), "192.0.2.9")); /* leaves while it is tried */
	endpoints_deal(&e, place, 3, NULL, after_s(5));
	assert_int_equal(of(place, 3, 1), 1);
	assert_int_equal(of(place, 3, 3), 1);
}

static void ignored(void **state)
{
	static const struct { const char *host, *from; bool ok; } cases[] = {
		{ "localhost", "127.0.0.1", false }, { "data.example.org", "192.0.2.1", false },
		    { "0.0.0.0", "127.0.0.1", false },
		{ "::", "::1", false }, { "224.0.0.1", "192.0.2.1", false }, { "::ffff:0.0.0.0", "::1", false },
		{ "127.0.0.1", "127.0.0.1", true }, { "127.0.0.1", "10.0.0.1", false }, { "::1", "192.0.2.1", false },
		{ "::ffff:127.0.0.1", "192.0.2.1", false }, { "10.0.0.2", "127.0.0.1", true },
		    { "10.0.0.2", "10.0.0.1", true },
		{ "10.0.0.2", "192.0.2.1", false }, { "192.168.0.2", "2001:db8::1", false },
		    { "fd00::2", "10.0.0.1", true },
		{ "169.254.0.2", "10.0.0.1", false }, { "192.0.2.2", "10.0.0.1", true },
		    { "192.0.2.2", "2001:db8::1", true },
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
		{ "10.0.0.2", true, true }, { "127.0.0.1", true, true }, { "192.0.2.2", true, false },
		    { "0.0.0.0", false, false },
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
		cmocka_unit_test(come_and_go),
		cmocka_unit_test(unreached),
		cmocka_unit_test(none_reached),
		cmocka_unit_test(many_unreached), cmocka_unit_test(ignored), cmocka_unit_test(unknown),
		cmocka_unit_test(behind_relays), cmocka_unit_test(limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
