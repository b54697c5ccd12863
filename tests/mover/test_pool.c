/* Endpoints that movers of a server name: where the clients of a session connect to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "mover/movers_impl.h"

static struct wire_endpoint named;
static unsigned n_named;

static void on_endpoint(void *arg, const struct wire_endpoint *f)
{
	(void)arg;
	named = *f;
	n_named++;
}

static void endpoints(void **state)
{
	static struct movers pool, set;
	static struct mover v;
	struct wire_endpoint f = { .id = 99, .port = 0 };
	struct ptcp_err e;

	(void)state;
	set.session.endpoint = on_endpoint;
	v.set = &set;
	v.id = 7;
	strcpy(v.fingerprint, "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
	memset(f.peer, 0xff, sizeof f.peer);
	f.port = 7811;
	assert_int_equal(pool_on_endpoint(&v, &f, &e), PTCP_EPROTO); /* of a transfer, which nobody connects to */
	set.pool = &pool;
	f.port = 0;
	assert_int_equal(pool_on_endpoint(&v, &f, &e), PTCP_EPROTO); /* nowhere */
	assert_int_equal(n_named, 0);
	f.port = 7811;
	assert_int_equal(pool_on_endpoint(&v, &f, &e), 0);
	assert_int_equal(n_named, 1);
	assert_int_equal(named.id, 7); /* the mover's own number and key, whatever it says */
	assert_int_equal(named.peer[0], 0);
	assert_int_equal(pool_on_endpoint(&v, &f, &e), PTCP_EPROTO); /* again */
	assert_int_equal(n_named, 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(endpoints) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
