/* Which jobs a server accepts of whom, and which it remembers. The test plays the session with the third host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <time.h>

#include "conn/grants.h"
#include "core/err.h"
#include "fs/fd_budget.h"
#include "server/job_conn.h"
#include "server/job_impl.h"

static struct {
	struct context context;
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
void job_state(const struct job *r, struct wire_state *out) { (void)r; (void)out; }

int job_refuse_host(const struct job *r, struct ptcp_err *e)
{
	return err_set(e, PTCP_EREFUSED, "does not connect to %s", r->host);
}


static void on_gone(void *arg)
{
	(void)arg;
	fx.canceled = fx.begun;
}

static int setup(void **state)
{
	(void)state;
	return identity_new(&fx.context.identity, NULL) | identity_new(&fx.client, NULL) |
	    identity_new(&fx.third, NULL);
}

static int teardown(void **state)
{
	(void)state;
	job_set_fini(&fx.set);
	relay_acl_free(fx.set.next_hops);
	identity_fini(&fx.context.identity);
	identity_fini(&fx.client);
	identity_fini(&fx.third);
	return 0;
}

/* A grant of `issuer`, for this server at `audience`. */
static void granted(const struct identity *issuer, const char *audience, enum wire_grant_mode mode)
{
	const struct grant_terms terms = { fx.context.identity.fingerprint, audience, mode,
		mode == WIRE_GRANT_PROBE ? "" : "x" };
	size_t n;

	assert_int_equal(grant_make(fx.grant, &n, issuer, &terms, (uint64_t)time(NULL), NULL), 0);
	fx.q.grant_frame = (struct span){ fx.grant, n };
	assert_int_equal(wire_grant_decode(&fx.q.grant, (struct span){ fx.grant + WIRE_HEADER_BYTES,
	    n - WIRE_HEADER_BYTES }, NULL), 0);
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
	job_set_init(&fx.set, &fx.context, "/", &fx.opts, NULL, on_gone, NULL);
	assert_int_equal(relay_acl_add(&fx.set.next_hops, "192.0.2.1:7811", 7811, NULL), 0);
	fx.begun = fx.canceled = NULL;
	fx.q = (struct job_request){ .job = { .host = host, .port = 7811, .timeout_ms = 1000 } };
	fx.q.open = (struct wire_open){ .role = WIRE_ACCEPTOR_RECEIVES, .streams = 1, .n_paths = 1,
	    .cipher = PTCP_CIPHER_AES128GCM };
	fx.q.open.role = mode == WIRE_GRANT_WRITE ? WIRE_ACCEPTOR_SENDS :
	    mode == WIRE_GRANT_READ ? WIRE_ACCEPTOR_RECEIVES : WIRE_ACCEPTOR_DISCARDS;
	fx.q.open.paths = (struct span){ fx.paths, wire_path_encode(fx.paths, 0, path) };
	fx.q.messages = mode == WIRE_GRANT_PROBE ? 8 : 0;
	granted(&fx.client, fx.third.fingerprint, mode);
}

static int request(void)
{
	const struct job_client c = { .fingerprint = fx.client.fingerprint, .address = "192.0.2.9",
		.auth = &fx.rights };
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
	granted(&fx.client, fx.context.identity.fingerprint, WIRE_GRANT_WRITE);
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
	assert_int_equal(wire_grant_decode(&fx.q.grant, (struct span){ fx.grant + WIRE_HEADER_BYTES,
	    n - WIRE_HEADER_BYTES }, NULL), 0);
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

/* ---- What becomes of the request ---- */

/* The client cannot make the server wait longer than its administrator permits. */
static void limits_of_time(void **state)
{
	(void)state;
	begin(WIRE_GRANT_WRITE);
	fx.opts.timeout_s = 5;
	fx.opts.max_linger_s = 7;
	fx.q.job.timeout_ms = 4000;
	fx.q.job.linger_ms = 6000;
	permitted();
	assert_int_equal(fx.begun->sock.timeout_ns, 4 * NS_PER_S);
	assert_int_equal(fx.begun->linger_ns, 6 * NS_PER_S);
	begin(WIRE_GRANT_WRITE);
	fx.opts.timeout_s = 5;
	fx.opts.max_linger_s = 7;
	fx.q.job.timeout_ms = fx.q.job.linger_ms = 60000;
	permitted();
	assert_int_equal(fx.begun->sock.timeout_ns, 5 * NS_PER_S);
	assert_int_equal(fx.begun->linger_ns, 7 * NS_PER_S);
}

/* The third host gets the path of the grant, whatever the client's OPEN says, and the opposite role. */
static void request_to_the_third_host(void **state)
{
	struct span rest, path;
	uint8_t flags;

	(void)state;
	begin(WIRE_GRANT_WRITE);
	fx.q.open.flags = WIRE_OPEN_MOVERS | WIRE_OPEN_SPOOLED | WIRE_OPEN_INTO_DIR;
	permitted();
	assert_int_equal(fx.begun->open.role, WIRE_ACCEPTOR_RECEIVES);
	assert_int_equal(fx.begun->open.flags, WIRE_OPEN_INTO_DIR);
	assert_string_equal(fx.begun->from, "y");
	assert_string_equal(fx.begun->to, "x");
	assert_int_equal(fx.begun->open.n_paths, 1);
	rest = fx.begun->open.paths;
	assert_true(wire_path_next(&rest, &flags, &path));
	assert_true(path.n == 1 && path.p[0] == 'x' && flags == 0);
	begin(WIRE_GRANT_READ);
	fx.rights.read_only = false;
	fx.q.open.flags = WIRE_OPEN_CONTENTS | WIRE_OPEN_INTO_DIR;
	permitted();
	assert_int_equal(fx.begun->open.role, WIRE_ACCEPTOR_SENDS);
	assert_int_equal(fx.begun->open.flags, 0);
	assert_string_equal(fx.begun->from, "x");
	assert_string_equal(fx.begun->to, "y");
	rest = fx.begun->open.paths;
	assert_true(wire_path_next(&rest, &flags, &path));
	assert_int_equal(flags, WIRE_PATH_CONTENTS);
}

static int busy(const char *why)
{
	int r = request();

	if (r == PTCP_EBUSY && strstr(fx.e.msg, why) == NULL)
		fail_msg("\"%s\" does not contain \"%s\"", fx.e.msg, why);
	return r;
}

static void room(void **state)
{
	(void)state;
	begin(WIRE_GRANT_WRITE);
	fx.opts.max_sessions = 2;
	permitted();
	permitted();
	assert_int_equal(busy("the server runs 2 jobs, its limit"), PTCP_EBUSY);
	begin(WIRE_GRANT_WRITE);
	fx.opts.max_client_sessions = 1;
	permitted();
	assert_int_equal(busy("1 job for this client"), PTCP_EBUSY);
	job_leave(fx.begun);
	permitted();
}

/* A job ends with the client's connection; a detached job continues, and is remembered after its end. */
static void connections_that_end(void **state)
{
	struct job *r;
	uint64_t id;

	(void)state;
	begin(WIRE_GRANT_WRITE);
	permitted();
	assert_false(job_set_idle(&fx.set));
	job_leave(fx.begun);
	assert_non_null(fx.canceled);
	assert_true(job_set_idle(&fx.set));
	assert_null(job_find(&fx.set, fx.client.fingerprint, 0, NULL));
	begin(WIRE_GRANT_WRITE);
	fx.q.job.flags = WIRE_JOB_DETACH;
	permitted();
	r = fx.begun;
	id = r->id;
	assert_true(id != 0);
	job_leave(r);
	assert_null(fx.canceled);
	assert_false(job_is_over(r));
	job_over(r, NULL);
	assert_true(job_set_idle(&fx.set));
	assert_ptr_equal(job_find(&fx.set, fx.client.fingerprint, id, NULL), r);
	assert_ptr_equal(job_find(&fx.set, fx.client.fingerprint, 0, NULL), r);
	assert_null(job_find(&fx.set, fx.client.fingerprint, 0, r));
	assert_null(job_find(&fx.set, fx.client.fingerprint, id + 2, NULL));
	assert_null(job_find(&fx.set, fx.third.fingerprint, id, NULL)); /* not the client's */
	assert_true(job_is_over(r));
	job_cancel(r, &fx.e); /* no effect */
	assert_int_equal(r->why.code, 0);
}

/* A client cannot fill the server's memory with ended jobs: the oldest are forgotten. */
static void remembered_jobs(void **state)
{
	struct job *r = NULL;
	uint64_t first = 0;
	unsigned i, n = 0;

	(void)state;
	begin(WIRE_GRANT_WRITE);
	fx.q.job.flags = WIRE_JOB_DETACH;
	for (i = 0; i < 70; i++) {
		permitted();
		if (i == 0)
			first = fx.begun->id;
		job_over(fx.begun, NULL);
	}
	for (r = job_find(&fx.set, fx.client.fingerprint, 0, NULL); r != NULL;
	    r = job_find(&fx.set, fx.client.fingerprint, 0, r))
		n++;
	assert_int_equal(n, 64);
	assert_null(job_find(&fx.set, fx.client.fingerprint, first, NULL));
}

static void all_canceled(void **state)
{
	struct job *r;

	(void)state;
	begin(WIRE_GRANT_WRITE);
	fx.q.job.flags = WIRE_JOB_DETACH;
	permitted();
	r = fx.begun;
	permitted();
	err_set(&fx.e, PTCP_ECANCELED, "the server stops");
	job_set_cancel(&fx.set, &fx.e);
	assert_true(job_set_idle(&fx.set));
	assert_int_equal(r->why.code, PTCP_ECANCELED);
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
		cmocka_unit_test(limits_of_time),
		cmocka_unit_test(request_to_the_third_host),
		cmocka_unit_test(room),
		cmocka_unit_test(connections_that_end),
		cmocka_unit_test(remembered_jobs),
		cmocka_unit_test(all_canceled),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
