/* Which jobs a server accepts of whom. The test plays the session with the third host, and the client's connection. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "conn/grants.h"
#include "core/err.h"
#include "fs/fd_budget.h"
#include "server/job_conn.h"
#include "server/job_impl.h"

static struct {
	struct context host;
	struct identity client, third;
	struct ptcp_server_opts opts;
	struct authorization rights, now; /* now: after a change of the authorized clients */
	bool admitted;
	struct job_set set;
	uint8_t grant[WIRE_GRANT_MAX_BYTES], paths[64];
	struct job_request q;
	struct job *begun, *canceled;
	struct ptcp_err e;
} fx;

int job_begin(struct job *r, struct ptcp_err *e)
{
	(void)e;
	fx.begun = r;
	return 0;
}

void job_report(struct job *r) { (void)r; }

int job_refuse_host(const struct job *r, struct ptcp_err *e)
{
	return err_set(e, PTCP_EREFUSED, "does not connect to %s", r->host);
}

void job_conns_report(struct job_set *t, const struct job *r) { (void)t; (void)r; }
void job_conns_reauthorize(struct job_set *t, trust_admits_fn *admits, void *arg) { (void)t; (void)admits; (void)arg; }
void job_conn_over(struct job_conn *c, const struct ptcp_err *why, const struct wire_end *end) { (void)c; (void)why; (void)end; }

static void on_gone(void *arg)
{
	(void)arg;
	fx.canceled = fx.begun;
}

static int setup(void **state)
{
	(void)state;
	return identity_new(&fx.host.identity, NULL) | identity_new(&fx.client, NULL) | identity_new(&fx.third, NULL);
}

static int teardown(void **state)
{
	(void)state;
	job_set_fini(&fx.set);
	relay_acl_free(fx.set.next_hops);
	identity_fini(&fx.host.identity);
	identity_fini(&fx.client);
	identity_fini(&fx.third);
	return 0;
}

/* A grant of `issuer`, for this server at `audience`. */
static void granted(const struct identity *issuer, const char *audience, enum wire_grant_mode mode)
{
	const struct grant_terms terms = { fx.host.identity.fingerprint, audience, mode, mode == WIRE_GRANT_PROBE ? "" : "x" };
	size_t n;

	assert_int_equal(grant_make(fx.grant, &n, issuer, &terms, (uint64_t)time(NULL), NULL), 0);
	fx.q.grant_frame = (struct span){ fx.grant, n };
	assert_int_equal(wire_grant_decode(&fx.q.grant, (struct span){ fx.grant + WIRE_HEADER_BYTES, n - WIRE_HEADER_BYTES }, NULL), 0);
}

/* A request that is permitted: this server sends to the third host, or measures the path to it. */
static void begin(enum wire_grant_mode mode)
{
	static const struct span host = { (const uint8_t *)"192.0.2.1", 9 }, path = { (const uint8_t *)"y", 1 };

	job_set_fini(&fx.set);
	relay_acl_free(fx.set.next_hops);
	ptcp_server_opts_init(&fx.opts);
	fx.opts.ciphers = 1u << PTCP_CIPHER_AES128GCM;
	fx.rights = (struct authorization){ .read_only = true };
	job_set_init(&fx.set, &fx.host, "/", &fx.opts, NULL, on_gone, NULL);
	assert_int_equal(relay_acl_add(&fx.set.next_hops, "192.0.2.1:7811", 7811, NULL), 0);
	fx.begun = fx.canceled = NULL;
	fx.q = (struct job_request){ .job = { .host = host, .port = 7811, .timeout_ms = 1000 } };
	fx.q.open = (struct wire_open){ .role = WIRE_ACCEPTOR_RECEIVES, .streams = 1, .n_paths = 1, .cipher = PTCP_CIPHER_AES128GCM };
	fx.q.open.role = mode == WIRE_GRANT_WRITE ? WIRE_ACCEPTOR_SENDS : mode == WIRE_GRANT_READ ? WIRE_ACCEPTOR_RECEIVES :
	    WIRE_ACCEPTOR_DISCARDS;
	fx.q.open.paths = (struct span){ fx.paths, wire_path_encode(fx.paths, 0, path) };
	fx.q.messages = mode == WIRE_GRANT_PROBE ? 8 : 0;
	granted(&fx.client, fx.third.fingerprint, mode);
}

static int request(void)
{
	const struct job_client c = { .fingerprint = fx.client.fingerprint, .address = "192.0.2.9", .auth = &fx.rights };
	struct job *r;

	memset(&fx.e, 0, sizeof fx.e);
	return job_new(&r, &fx.set, &c, &fx.q, &fx.e);
}

static void permitted(void)
{
	if (request() != 0)
		fail_msg("refused: %s", fx.e.msg);
	assert_non_null(fx.begun);
}

static void refused(const char *why)
{
	assert_int_equal(request(), PTCP_EREFUSED);
	assert_null(fx.begun);
	if (strstr(fx.e.msg, why) == NULL)
		fail_msg("\"%s\" does not contain \"%s\"", fx.e.msg, why);
}

static void accepted(void **state)
{
	(void)state;
	begin(WIRE_GRANT_WRITE);
	permitted();
	begin(WIRE_GRANT_PROBE);
	permitted();
	begin(WIRE_GRANT_READ);
	fx.rights.read_only = false;
	permitted();
}

/* A grant permits no removal: neither at the third host, nor of the sources here by a client who may only read. */
static void removals(void **state)
{
	static const uint32_t flags[] = { WIRE_OPEN_REMOVE_SOURCES, WIRE_OPEN_DELETE, WIRE_OPEN_SELECTED };
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof flags / sizeof *flags; i++) {
		begin(WIRE_GRANT_WRITE);
		fx.rights.read_only = false; /* else the rights refuse the first */
		fx.q.open.flags = flags[i];
		refused("remove files");
	}
}

static void other_requests_than_granted(void **state)
{
	uint8_t role;

	(void)state;
	begin(WIRE_GRANT_WRITE);
	fx.q.open.role = WIRE_ACCEPTOR_RECEIVES;
	refused("does not permit this request");
	begin(WIRE_GRANT_READ);
	fx.q.open.role = WIRE_ACCEPTOR_SENDS;
	refused("does not permit this request");
	begin(WIRE_GRANT_PROBE);
	fx.q.messages = 0;
	refused("does not permit this request");
	begin(WIRE_GRANT_WRITE);
	fx.q.messages = 8;
	refused("does not permit this request");
	for (role = WIRE_ACCEPTOR_RECEIVES; role <= WIRE_ACCEPTOR_GENERATES; role++) {
		begin(WIRE_GRANT_WRITE);
		granted(&fx.client, fx.third.fingerprint, WIRE_GRANT_RELAY);
		fx.q.open.role = role;
		refused("does not permit this request");
	}
}

static void measurements(void **state)
{
	(void)state;
	begin(WIRE_GRANT_PROBE);
	fx.q.job.flags = WIRE_JOB_DETACH;
	refused("cannot be detached");
	begin(WIRE_GRANT_PROBE);
	fx.q.job.rate_bps = WIRE_JOB_MIN_BPS;
	refused("cannot have a rate limit");
	begin(WIRE_GRANT_PROBE);
	fx.opts.max_streams = 2;
	fx.q.open.streams = 3;
	refused("at most 2");
	fx.q.open.streams = 2;
	permitted();
}

static void third_hosts(void **state)
{
	(void)state;
	begin(WIRE_GRANT_WRITE);
	relay_acl_free(fx.set.next_hops);
	fx.set.next_hops = NULL;
	refused("does not connect to 192.0.2.1");
	begin(WIRE_GRANT_WRITE);
	fx.q.job.port = 22;
	refused("does not connect to 192.0.2.1");
	begin(WIRE_GRANT_WRITE);
	fx.rights.no_relay = true;
	refused("not permitted to this client");
}

static void grants_of_others(void **state)
{
	(void)state;
	begin(WIRE_GRANT_WRITE);
	granted(&fx.third, fx.third.fingerprint, WIRE_GRANT_WRITE);
	refused("not issued by this client");
	begin(WIRE_GRANT_WRITE);
	granted(&fx.client, fx.host.identity.fingerprint, WIRE_GRANT_WRITE);
	refused("both hosts are the same");
}

/* The grant is genuine, and for another server: one that this client has used there. */
static void grants_for_others(void **state)
{
	struct grant_terms terms = { fx.third.fingerprint, fx.third.fingerprint, WIRE_GRANT_WRITE, "x" };
	size_t n;

	(void)state;
	begin(WIRE_GRANT_WRITE);
	assert_int_equal(grant_make(fx.grant, &n, &fx.client, &terms, (uint64_t)time(NULL), NULL), 0);
	assert_int_equal(wire_grant_decode(&fx.q.grant, (struct span){ fx.grant + WIRE_HEADER_BYTES, n - WIRE_HEADER_BYTES }, NULL), 0);
	refused("not issued by this client to this server");
}

static bool admits(void *arg, const char *fingerprint, const struct trust_proof *proof, struct authorization *out)
{
	(void)arg; (void)fingerprint; (void)proof;
	*out = fx.now;
	return fx.admitted;
}

static bool goes_on(enum wire_grant_mode mode, bool admitted, struct authorization now)
{
	begin(mode);
	fx.rights.read_only = false;
	permitted();
	fx.now = now;
	fx.admitted = admitted;
	job_set_reauthorize(&fx.set, admits, NULL);
	return fx.canceled == NULL;
}

/* A job ends when the client loses a right that the job needs. */
static void rights_that_change(void **state)
{
	(void)state;
	assert_true(goes_on(WIRE_GRANT_WRITE, true, (struct authorization){ 0 }));
	assert_true(goes_on(WIRE_GRANT_WRITE, true, (struct authorization){ .read_only = true }));
	assert_false(goes_on(WIRE_GRANT_READ, true, (struct authorization){ .read_only = true }));
	assert_false(goes_on(WIRE_GRANT_WRITE, false, (struct authorization){ 0 }));
	assert_false(goes_on(WIRE_GRANT_WRITE, true, (struct authorization){ .no_relay = true }));
	assert_false(goes_on(WIRE_GRANT_WRITE, true, (struct authorization){ .write_once = true }));
	assert_false(goes_on(WIRE_GRANT_WRITE, true, (struct authorization){ .root = "/elsewhere" }));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepted),
		cmocka_unit_test(removals),
		cmocka_unit_test(other_requests_than_granted),
		cmocka_unit_test(measurements),
		cmocka_unit_test(third_hosts),
		cmocka_unit_test(grants_of_others),
		cmocka_unit_test(grants_for_others),
		cmocka_unit_test(rights_that_change),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
