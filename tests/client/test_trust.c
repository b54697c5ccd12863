/* Which hosts a client trusts, and about which hosts it asks its user. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "api/fixture.h"
#include "client/task_impl.h"

static struct ptcp_permission permission;
static const struct ptcp_published_link none[1];
static struct { unsigned asked; bool answer; } user;
static char other[PTCP_FINGERPRINT_BYTES]; /* of no host */

static int setup(void **state)
{
	struct ptcp_server_opts o;
	struct ptcp_err e;

	(void)state;
	ptcp_server_opts_init(&o);
	ptcp_permission_init(&permission);
	if (lf_make_dir() < 0 || lf_serve(&o, &permission) < 0)
		return -1;
	return ptcp_key_show(lf_path("other"), other, &e) < 0 || ptcp_server_set_links(lf_server, none, 0, &e) < 0 ? -1 : 0;
}

static bool ask(void *arg, const char *name, const char *fingerprint)
{
	(void)arg;
	assert_string_equal(name, lf_address);
	assert_string_equal(fingerprint, ptcp_server_fingerprint(lf_server));
	user.asked++;
	return user.answer;
}

/* known_hosts has this line for the server; NULL: there is no file. */
static void known_as(const char *fingerprint)
{
	FILE *f;

	remove(lf_path("client/known_hosts"));
	if (fingerprint == NULL)
		return;
	assert_non_null(f = fopen(lf_path("client/known_hosts"), "w"));
	fprintf(f, "%s %s\n", lf_address, fingerprint);
	fclose(f);
}

static void is_known_as(const char *fingerprint)
{
	char line[256] = "", want[256];
	FILE *f = fopen(lf_path("client/known_hosts"), "r");

	if (f != NULL) {
		assert_non_null(fgets(line, sizeof line, f));
		fclose(f);
	}
	snprintf(want, sizeof want, "%s %s\n", lf_address, fingerprint);
	assert_string_equal(line, fingerprint != NULL ? want : "");
}

/* Connects; the user's answer would be `answer`. `pin`: --fingerprint. */
static int connects(bool answer, const char *pin, struct ptcp_err *e)
{
	struct ptcp_transfer_opts o;
	struct ptcp_task *t;
	int r;

	lf_opts(&o);
	o.fingerprints = &pin;
	o.n_fingerprints = pin != NULL;
	o.trust = ask;
	user.asked = 0;
	user.answer = answer;
	assert_int_equal(ptcp_link_query_new(&t, &o, lf_address, e), 0);
	r = ptcp_task_run(t, e);
	ptcp_task_free(t);
	return r;
}

static void an_unknown_host(void **state)
{
	struct ptcp_err e;

	(void)state;
	known_as(NULL);
	assert_int_equal(connects(false, NULL, &e), PTCP_EREFUSED);
	assert_int_equal(user.asked, 1);
	assert_non_null(strstr(e.msg, "unknown host"));
	is_known_as(NULL);
	assert_int_equal(connects(true, NULL, &e), 0);
	assert_int_equal(user.asked, 1);
	is_known_as(ptcp_server_fingerprint(lf_server));
	assert_int_equal(connects(false, NULL, &e), 0); /* from now on it is known */
	assert_int_equal(user.asked, 0);
}

/* Not as on first contact: a user who is asked says yes. */
static void a_changed_key(void **state)
{
	struct ptcp_err e;

	(void)state;
	known_as(other);
	assert_int_equal(connects(true, NULL, &e), PTCP_EREFUSED);
	assert_int_equal(user.asked, 0);
	assert_non_null(strstr(e.msg, "known_hosts has another"));
	is_known_as(other);
}

/* What the user demands counts, whatever known_hosts has. */
static void a_pinned_key(void **state)
{
	const char *const own = ptcp_server_fingerprint(lf_server);
	char pin[256];
	struct ptcp_err e;

	(void)state;
	known_as(own);
	assert_int_equal(connects(true, other, &e), PTCP_EREFUSED);
	assert_int_equal(user.asked, 0);
	assert_non_null(strstr(e.msg, "--fingerprint"));
	snprintf(pin, sizeof pin, "%s=%s", lf_address, other);
	assert_int_equal(connects(true, pin, &e), PTCP_EREFUSED);
	snprintf(pin, sizeof pin, "192.0.2.1=%s", other); /* of another host: known_hosts counts */
	assert_int_equal(connects(true, pin, &e), 0);
	known_as(other);
	assert_int_equal(connects(true, own, &e), 0);
	assert_int_equal(user.asked, 0);
}

/* ---- Several hosts of a path ---- */

/* A task that trusts hosts with the fingerprint `other` by --fingerprint. */
static struct ptcp_task *trusting(void)
{
	static const char *const pins[] = { other };
	struct ptcp_task *t = calloc(1, sizeof *t);

	assert_non_null(t);
	memset(other, 'A', sizeof other - 1);
	memcpy(other, "SHA256:", 7);
	t->o.fingerprints = pins;
	t->o.n_fingerprints = 1;
	strcpy(t->host.config_dir, "/nowhere");
	return t;
}

static int trusts(struct ptcp_task *t, const char *host, bool relay, struct ptcp_err *e)
{
	struct connect_hop hop = { .port = 7811 };
	const struct connect_peer peer = { .fingerprint = other };

	strcpy(hop.host, host);
	return task_trust(t, &hop, relay, &peer, e);
}

/* One identity has one role: a relay must not pass for the host at the end, nor for another relay. */
static void roles(void **state)
{
	struct ptcp_task *t = trusting();
	struct ptcp_err e;

	(void)state;
	assert_int_equal(trusts(t, "relay", true, &e), 0);
	assert_int_equal(trusts(t, "RELAY", true, &e), 0); /* the same */
	assert_int_equal(trusts(t, "relay", false, &e), PTCP_EREFUSED);
	assert_int_equal(trusts(t, "host", false, &e), PTCP_EREFUSED);
	assert_non_null(strstr(e.msg, "has the identity of the relay relay:7811"));
	assert_int_equal(trusts(t, "second", true, &e), PTCP_EREFUSED);
	free(t);
	t = trusting();
	assert_int_equal(trusts(t, "host", false, &e), 0);
	assert_int_equal(trusts(t, "alias", false, &e), 0); /* the host under another name */
	assert_int_equal(trusts(t, "relay", true, &e), PTCP_EREFUSED);
	free(t);
}

/* The fingerprint of a started server came through ssh, and counts alone. */
static void a_started_server(void **state)
{
	struct ptcp_task *t = trusting();
	struct ptcp_err e;

	(void)state;
	strcpy(t->trust.launched, other);
	t->trust.launched[7] = 'B';
	assert_int_equal(trusts(t, "host", false, &e), PTCP_EREFUSED);
	assert_non_null(strstr(e.msg, "the server that ssh has started"));
	assert_int_equal(trusts(t, "relay", true, &e), 0); /* no part of it */
	free(t);
	t = trusting();
	strcpy(t->trust.launched, other);
	assert_int_equal(trusts(t, "host", false, &e), 0);
	free(t);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_unknown_host, setup, lf_teardown),
		cmocka_unit_test_setup_teardown(a_changed_key, setup, lf_teardown),
		cmocka_unit_test_setup_teardown(a_pinned_key, setup, lf_teardown),
		cmocka_unit_test(roles),
		cmocka_unit_test(a_started_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
