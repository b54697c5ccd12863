/* Which hosts a client trusts, and about which hosts it asks its user. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/fixture.h"
#include "client/task_impl.h"
#include "net/certified.h"

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
	return ptcp_key_show(lf_path("other"), other, &e) < 0 || ptcp_server_set_links(lf_server, none, 0,
	    &e) < 0 ? -1 : 0;
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
	strcpy(t->context.config_dir, "/nowhere");
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

/* ---- Which identity counts for a host ---- */

/* A task with the configuration directory of the client of the fixture. */
static struct ptcp_task *with_known_hosts(const char *text)
{
	struct ptcp_task *t = calloc(1, sizeof *t);
	FILE *f = fopen(lf_path("client/known_hosts"), "w");

	assert_non_null(t);
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	snprintf(t->context.config_dir, sizeof t->context.config_dir, "%s", lf_path("client"));
	return t;
}

/* The host at HOST:7811 presents this fingerprint and certificates. */
static int presents(struct ptcp_task *t, const char *host, const char *fingerprint, const struct certificates *c,
    struct ptcp_err *e)
{
	struct connect_peer peer = { .fingerprint = fingerprint };
	struct connect_hop hop = { .port = 7811 };

	if (c != NULL)
		peer.certificates = *c;
	strcpy(hop.host, host);
	t->trust.n_accepted = 0;
	t->trust.unknown = false;
	return task_trust(t, &hop, false, &peer, e);
}

/* A certificate by an authority of known_hosts stands for a line; not after its time, nor for another name. */
static void a_certified_host(void **state)
{
	const uint64_t now = (uint64_t)time(NULL);
	struct certificate what = { .kind = CERTIFICATE_SERVER, .name = "*.site.org", .from_s = now - 100,
		.until_s = now + 100 };
	struct certificates good = { .n = 0 }, late = { .n = 0 };
	struct identity ca, server;
	struct ptcp_task *t;
	struct ptcp_err e;
	char line[256];

	(void)state;
	assert_int_equal(identity_new(&ca, &e), 0);
	assert_int_equal(identity_new(&server, &e), 0);
	certified(&good, &what, &server, &ca);
	what.until_s = now - 50;
	certified(&late, &what, &server, &ca);
	snprintf(line, sizeof line, "@cert-authority *.site.org %s\n", ca.fingerprint);
	t = with_known_hosts(line);
	assert_int_equal(presents(t, "dtn.site.org", server.fingerprint, &good, &e), 0);
	assert_int_equal(presents(t, "dtn.site.org", server.fingerprint, &late, &e), PTCP_EREFUSED);
	assert_false(t->trust.unknown); /* the user is not asked to overrule the authority */
	assert_int_equal(presents(t, "dtn.other.org", server.fingerprint, &good, &e), PTCP_EREFUSED);
	assert_true(t->trust.unknown);
	assert_int_equal(presents(t, "dtn.site.org", server.fingerprint, NULL, &e), PTCP_EREFUSED);
	assert_true(t->trust.unknown);
	identity_fini(&ca);
	identity_fini(&server);
	free(t);
}

/* A revoked key is refused whatever else speaks for it. */
static void a_revoked_key(void **state)
{
	const char *const own = ptcp_server_fingerprint(lf_server), *pins[] = { own };
	struct ptcp_task *t = with_known_hosts("");
	struct ptcp_err e;
	FILE *f;

	(void)state;
	t->o.fingerprints = pins;
	t->o.n_fingerprints = 1;
	assert_int_equal(presents(t, "host", own, NULL, &e), 0);
	assert_non_null(f = fopen(lf_path("client/revoked"), "w"));
	fprintf(f, "%s\n", own);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(presents(t, "host", own, NULL, &e), PTCP_EREFUSED);
	assert_non_null(strstr(e.msg, "is revoked"));
	assert_int_equal(remove(lf_path("client/revoked")), 0);
	free(t);
}

/* The question comes before the session runs: later nobody waits for an answer. */
static void asked_in_time(void **state)
{
	const char *const own = ptcp_server_fingerprint(lf_server);
	struct ptcp_task *t = with_known_hosts("");
	struct ptcp_err e;

	(void)state;
	assert_int_equal(presents(t, "host", own, NULL, &e), PTCP_EREFUSED);
	assert_true(t->trust.unknown);
	assert_string_equal(t->trust.name, "host:7811");
	assert_string_equal(t->trust.fingerprint, own);
	t->session = (struct session *)t;
	assert_int_equal(presents(t, "host", own, NULL, &e), PTCP_EREFUSED);
	assert_false(t->trust.unknown);
	free(t);
}

/* A pin for one host and port, without case; a pin without a host is for all. */
static void pins_of_hosts(void **state)
{
	static const struct { const char *host; bool applies; } all[] = { { "", true }, { "host=", true },
		{ "HOST:7811=", true },
		{ "host:7812=", false }, { "hos=", false }, { "[::1]:7811=", false } };
	const char *const own = ptcp_server_fingerprint(lf_server);
	struct ptcp_task *t = with_known_hosts("");
	char pin[PTCP_FINGERPRINT_BYTES + 32];
	const char *const pins[] = { pin };
	struct ptcp_err e;
	size_t i;

	(void)state;
	t->o.fingerprints = pins;
	t->o.n_fingerprints = 1;
	for (i = 0; i < sizeof all / sizeof *all; i++) {
		snprintf(pin, sizeof pin, "%s%s", all[i].host, own);
		assert_int_equal(presents(t, "host", own, NULL, &e), all[i].applies ? 0 : PTCP_EREFUSED);
		snprintf(pin, sizeof pin, "%s%s", all[i].host, other);
		assert_int_equal(presents(t, "host", own, NULL, &e), PTCP_EREFUSED);
		assert_int_equal(strstr(e.msg, "not the one given with --fingerprint") != NULL, all[i].applies);
	}
	free(t);
}

/* For a job between two hosts: the fingerprint of the third one, if this client can tell it without a connection. */
static void known_in_advance(void **state)
{
	const char *const own = ptcp_server_fingerprint(lf_server);
	char line[256], one[256], two[256], found[PTCP_FINGERPRINT_BYTES];
	const char *pins[] = { one, two };
	struct ptcp_task *t;

	(void)state;
	snprintf(line, sizeof line, "host:7811 %s\n", other);
	t = with_known_hosts(line);
	strcpy(t->target.host, "host");
	t->target.port = 7811;
	strcpy(t->known_as, "host:7811");
	t->o.fingerprints = pins;
	assert_true(task_knows_host(t, found));
	assert_string_equal(found, other);
	t->o.n_fingerprints = 1;
	snprintf(one, sizeof one, "host=%s", own); /* a pin overrules known_hosts */
	assert_true(task_knows_host(t, found));
	assert_string_equal(found, own);
	t->o.n_fingerprints = 2;
	snprintf(two, sizeof two, "elsewhere=%s", other);
	assert_true(task_knows_host(t, found));
	assert_string_equal(found, own);
	snprintf(two, sizeof two, "host:7811=%s", own); /* the same twice */
	assert_true(task_knows_host(t, found));
	snprintf(two, sizeof two, "host:7811=%s", other); /* only the host can tell which */
	assert_false(task_knows_host(t, found));
	t->o.n_fingerprints = 1;
	strcpy(one, own); /* for any host */
	assert_false(task_knows_host(t, found));
	t->o.n_fingerprints = 0;
	strcpy(t->known_as, "elsewhere:7811");
	assert_false(task_knows_host(t, found));
	free(t);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_unknown_host, setup, lf_teardown),
		cmocka_unit_test_setup_teardown(a_changed_key, setup, lf_teardown),
		cmocka_unit_test_setup_teardown(a_pinned_key, setup, lf_teardown),
		cmocka_unit_test_setup_teardown(a_certified_host, setup, lf_teardown),
		cmocka_unit_test_setup_teardown(a_revoked_key, setup, lf_teardown),
		cmocka_unit_test_setup_teardown(asked_in_time, setup, lf_teardown),
		cmocka_unit_test_setup_teardown(pins_of_hosts, setup, lf_teardown),
		cmocka_unit_test_setup_teardown(known_in_advance, setup, lf_teardown),
		cmocka_unit_test(roles),
		cmocka_unit_test(a_started_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
