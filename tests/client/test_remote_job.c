/* Requests to remote hosts, as the server's end decodes them: jobs between two hosts, whose grant it checks; queries;
 * and the work on files. The answers, as the client reports them. */
#include "fixture.h"

#include <math.h>
#include <time.h>
#include <unistd.h>

#include "client/remote_job_impl.h"
#include "conn/grants.h"

#define A "ptcp://127.0.0.1:1/"
#define B "ptcp://127.0.0.1:2/"
#define FP_A "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define FP_B "SHA256:BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA"

static struct cf_events events;
static struct ptcp_transfer_opts opts;
static struct ptcp_task *t;

static int setup(void **state)
{
	(void)state;
	opts = cf_opts();
	cf_record(&opts, &events);
	t = NULL;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (t != NULL)
		identity_fini(&t->context.identity);
	ptcp_task_free(t);
	return 0;
}

static struct span span_of(const char *text) { return (struct span){ (const uint8_t *)text, strlen(text) }; }

/* ---- The server's end ---- */

static struct {
	unsigned type;                  /* of the request, as job_frames passes it; 0: none */
	union job_frame f;
	char issuer[PTCP_FINGERPRINT_BYTES];
	bool for_both;                  /* the grant names the doer and the third host */
	char grant_path[WIRE_PATH_MAX + 1], paths[512], host[WIRE_HOST_MAX + 1], congestion[64],
	    path[WIRE_PATH_MAX + 1];
	struct ptcp_err e;
} got;

/* The paths of OPEN or MANAGE as "FLAGS:PATH FLAGS:PATH". */
static void list_paths(struct span paths)
{
	char text[WIRE_PATH_MAX + 1];
	struct span path;
	uint8_t flags;
	size_t n = 0;

	while (wire_path_next(&paths, &flags, &path))
		n += (size_t)snprintf(got.paths + n, sizeof got.paths - n, "%s%u:%s", n > 0 ? " " : "", flags,
		    span_copy(text, path));
}

static int on_request(void *arg, unsigned type, const union job_frame *f, struct ptcp_err *e)
{
	const struct job_request *q = &f->request;

	(void)arg;
	got.type = type;
	got.f = *f;
	if (type == WIRE_MANAGE)
		list_paths(f->manage.paths);
	if (type == WIRE_CLEAN)
		span_copy(got.path, f->clean.path);
	if (type != WIRE_OPEN && type != WIRE_PROBE)
		return 0;
	list_paths(q->open.paths);
	span_copy(got.host, q->job.host);
	span_copy(got.congestion, q->job.congestion);
	span_copy(got.grant_path, q->grant.path);
	got.for_both = grant_is_for(&q->grant, t->fingerprint, t->remote_job->audience);
	return grant_issuer(got.issuer, &q->grant, e);
}

/* The server decodes the request, byte by byte. */
static void requests(void)
{
	struct job_frames server = { .frame = on_request };
	struct buf *b = &t->remote_job->frames.conn.out.b;
	const struct mono now = mono_now();
	struct ptcp_err e;
	size_t i, n;
	int r = 0;

	if (remote_job_put(t, &e) < 0)
		fail_msg("%s", e.msg);
	memset(&got, 0, sizeof got);
	job_frames_await(&server, now);
	n = buf_len(b);
	for (i = 0; i < n && r == 0; i++)
		if ((r = job_frames_input(&server, buf_head(b) + i, 1, now, &e)) < 0)
			fail_msg("refused: %s", e.msg);
	buf_consume(b, n);
	job_frames_fini(&server);
	assert_int_not_equal(got.type, 0);
}

/* ---- Jobs ---- */

/* The job's task, connected to the first host, with both identities. */
static void job(const char *const *source, size_t n, const char *dest)
{
	struct ptcp_err e;

	if (ptcp_send_new(&t, &opts, source, n, dest, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(identity_new(&t->context.identity, &e), 0);
	strcpy(t->fingerprint, FP_A);
	strcpy(t->remote_job->audience, FP_B);
}
#define JOB(dest, ...) job((const char *const[]){ __VA_ARGS__ }, sizeof (const char *[]){ \
	__VA_ARGS__ } / sizeof (char *), dest)

static void sends(void **state)
{
	const struct job_request *q = &got.f.request;

	(void)state;
	opts.detach = true;
	opts.rate = "8Mbit/s";
	opts.timeout_s = 7;
	opts.retry_for_s = 11;
	opts.family = 4;
	opts.cipher = PTCP_CIPHER_CHACHA20;
	JOB(B "to", A "from");
	requests();
	assert_int_equal(got.type, WIRE_OPEN);
	assert_int_equal(q->job.flags, WIRE_JOB_DETACH);
	assert_int_equal(q->job.family, 4);
	assert_int_equal(q->job.port, 2);
	assert_string_equal(got.host, "127.0.0.1");
	assert_int_equal(q->job.timeout_ms, 7000);
	assert_int_equal(q->job.linger_ms, 11000);
	assert_int_equal(q->job.rate_bps, 8000000);
	assert_int_equal(q->open.role, WIRE_ACCEPTOR_SENDS);
	assert_int_equal(q->open.cipher, PTCP_CIPHER_CHACHA20);
	assert_int_equal(q->open.flags & (WIRE_OPEN_INTO_DIR | WIRE_OPEN_CONTENTS), 0);
	assert_string_equal(got.paths, "0:/from");
	assert_int_equal(q->messages, 0);
	/* The grant of this client: for the sender, at the receiver, to write there, for minutes. */
	assert_int_equal(q->grant.mode, WIRE_GRANT_WRITE);
	assert_string_equal(got.grant_path, "/to");
	assert_true(got.for_both);
	assert_string_equal(got.issuer, t->context.identity.fingerprint);
	assert_true(q->grant.expiry_s > (uint64_t)time(NULL) &&
	    q->grant.expiry_s <= (uint64_t)time(NULL) + GRANT_LIFE_S);
}

/* Flags that a transfer by this host would determine by its own operands. */
static void destination_flags(void **state)
{
	static const struct { const char *source[2], *dest; uint32_t flags; } all[] = {
		{ { A "a" }, B "b", 0 }, { { A "a/" }, B "b", WIRE_OPEN_CONTENTS },
		    { { A "a" }, B "b/", WIRE_OPEN_INTO_DIR },
		{ { A "a/", A "b" }, B "c", WIRE_OPEN_INTO_DIR }, { { A "*.c" }, B "c", WIRE_OPEN_INTO_DIR },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof all / sizeof *all; i++) {
		job(all[i].source, all[i].source[1] != NULL ? 2 : 1, all[i].dest);
		requests();
		assert_int_equal(got.f.request.open.flags & (WIRE_OPEN_INTO_DIR | WIRE_OPEN_CONTENTS), all[i].flags);
		teardown(NULL);
		t = NULL;
	}
}

static void number_of_streams(void **state)
{
	(void)state;
	JOB(B "to", A "from");
	requests();
	assert_int_equal(got.f.request.open.streams, ADVICE_START);
	t->o.streams = 9;
	requests();
	assert_int_equal(got.f.request.open.streams, 9);
	t->o.streams = 0;
	t->o.impact_percent = 0;
	requests();
	assert_int_equal(got.f.request.open.streams, 1);
	assert_int_equal(got.f.request.open.congestion, WIRE_CC_YIELD);
	assert_string_equal(got.congestion, ""); /* no name that a kernel knows */
}

static void the_same_host(void **state)
{
	struct ptcp_err e;

	(void)state;
	JOB(B "to", A "from");
	strcpy(t->fingerprint, FP_B);
	assert_int_equal(remote_job_put(t, &e), PTCP_EUSAGE);
	cf_says(&e, "both hosts are the same, " FP_B " (copy the files locally there)");
	t->remote_job->mode = WIRE_GRANT_PROBE;
	assert_int_equal(remote_job_put(t, &e), PTCP_EUSAGE);
	cf_says(&e, "give each its own address");
}

/* ---- Which host first ---- */

/* With a known identity of the receiver, its host need not be connected to. */
static void aims(void **state)
{
	static const char *const pins[] = { "127.0.0.1:2=" FP_B };

	(void)state;
	JOB(B "to", A "from");
	strcpy(t->context.config_dir, "/nowhere");
	t->remote_job->audience[0] = '\0';
	remote_job_aim(t);
	assert_string_equal(t->known_as, "127.0.0.1:2");
	assert_string_equal(t->remote_job->audience, "");
	strcpy(t->remote_job->audience, FP_B);
	remote_job_aim(t);
	assert_string_equal(t->known_as, "127.0.0.1:1");
	teardown(NULL);
	opts.fingerprints = pins;
	opts.n_fingerprints = 1;
	JOB(B "to", A "from");
	t->remote_job->audience[0] = '\0';
	remote_job_aim(t);
	assert_string_equal(t->known_as, "127.0.0.1:1");
	assert_string_equal(t->remote_job->audience, FP_B);
}

/* ---- The receiver fetches ---- */

static struct ptcp_err error(int code)
{
	struct ptcp_err e;

	err_set(&e, code, "the sender's");
	return e;
}

static bool can_reverse(int code)
{
	const struct ptcp_err e = error(code);

	return remote_job_can_reverse(t, &e);
}

/* Only before anything has begun, if the sender could not connect or may not, and a single grant suffices. */
static void when_to_reverse(void **state)
{
	(void)state;
	JOB(B "to", A "from");
	assert_true(can_reverse(PTCP_ECONNECT));
	assert_true(can_reverse(PTCP_EREFUSED));
	assert_false(can_reverse(PTCP_EPEER));
	assert_false(can_reverse(PTCP_EUSAGE));
	t->report.announced = true;
	assert_false(can_reverse(PTCP_ECONNECT));
	t->report.announced = false;
	t->remote_job->mode = WIRE_GRANT_READ; /* already */
	assert_false(can_reverse(PTCP_ECONNECT));
	t->remote_job->mode = WIRE_GRANT_PROBE;
	assert_false(can_reverse(PTCP_ECONNECT));
	teardown(NULL);
	JOB(B "to", A "a", A "b"); /* a grant has one path */
	assert_false(can_reverse(PTCP_ECONNECT));
}

static void reversed(void **state)
{
	const struct job_request *q = &got.f.request;
	const struct ptcp_err refused = error(PTCP_EREFUSED), later = error(PTCP_ETIMEOUT),
	    canceled = error(PTCP_ECANCELED);

	(void)state;
	JOB(B "to", A "from/");
	strcpy(t->context.config_dir, "/nowhere");
	t->remote_job->first = refused;
	t->remote_job->reversing = true;
	remote_job_reverse(t);
	assert_false(t->remote_job->reversing);
	assert_string_equal(t->known_as, "127.0.0.1:2"); /* which carries out the job now */
	strcpy(t->fingerprint, FP_B);
	assert_string_equal(t->remote_job->audience, FP_A);
	requests();
	assert_int_equal(q->grant.mode, WIRE_GRANT_READ);
	assert_string_equal(got.grant_path, "/from/");
	assert_true(got.for_both);
	assert_int_equal(q->job.port, 1);
	assert_int_equal(q->open.role, WIRE_ACCEPTOR_RECEIVES);
	assert_string_equal(got.paths, "0:/to");
	assert_int_equal(q->open.flags & (WIRE_OPEN_INTO_DIR | WIRE_OPEN_CONTENTS), WIRE_OPEN_CONTENTS);
	/* If that fails as well, the user learns why the sender refused. */
	assert_int_equal(remote_job_cause(t, &later)->code, PTCP_EREFUSED);
	assert_int_equal(remote_job_cause(t, &canceled)->code, PTCP_ECANCELED);
	t->report.announced = true;
	assert_int_equal(remote_job_cause(t, &later)->code, PTCP_ETIMEOUT);
}

/* ---- A measurement between two hosts ---- */

static void timing(void **state)
{
	const struct job_request *q = &got.f.request;
	const struct wire_sample one = { 1000, 500000000, 20000000 }, two = { 2000, 700000000, 0 };
	struct ptcp_message message[4];
	struct ptcp_timing_opts m;
	struct ptcp_err e;
	double rtt;

	(void)state;
	ptcp_timing_opts_init(&m);
	m.streams = 3;
	m.messages = 5;
	opts.congestion = "bbr";
	opts.rate = "8Mbit/s";
	assert_int_equal(ptcp_timing_between_new(&t, &opts, "u@h", "127.0.0.1:2", &m, &e), PTCP_ENOTYET);
	assert_int_equal(ptcp_timing_between_new(&t, &opts, "127.0.0.1:1", "u@h", &m, &e), PTCP_ENOTYET);
	assert_int_equal(ptcp_timing_between_new(&t, &opts, "127.0.0.1:1", "127.0.0.1:2", &m, &e), 0);
	assert_int_equal(identity_new(&t->context.identity, &e), 0);
	strcpy(t->fingerprint, FP_A);
	strcpy(t->remote_job->audience, FP_B);
	requests();
	assert_int_equal(got.type, WIRE_PROBE);
	assert_int_equal(q->messages, 5);
	assert_int_equal(q->open.streams, 3);
	assert_int_equal(q->job.rate_bps, 0); /* the path, and not the limit, is measured */
	assert_string_equal(got.congestion, "bbr");
	assert_int_equal(q->grant.mode, WIRE_GRANT_PROBE);
	assert_string_equal(got.grant_path, "");
	assert_int_equal(ptcp_timing_messages(t, message, 4, &rtt), 0);
	assert_true(isnan(rtt));
	t->remote_job->frames.n_samples = 1;
	remote_job_sampled(t->remote_job, &one);
	assert_int_equal(ptcp_timing_messages(t, message, 4, &rtt), 1);
	assert_true(rtt == 0.02);
	t->remote_job->frames.n_samples = 2;
	remote_job_sampled(t->remote_job, &two);
	assert_int_equal(ptcp_timing_messages(t, message, 4, &rtt), 2);
	assert_true(isnan(rtt) && message[0].bytes == 1000 && message[1].bytes == 2000 && message[1].delay_s == 0.7);
	memset(message, 0, sizeof message);
	assert_int_equal(ptcp_timing_messages(t, message, 1, &rtt), 2);
	assert_int_equal(message[1].bytes, 0);
}

/* ---- Queries of jobs ---- */

static void status(void **state)
{
	static const char *const bad[] = { "x@127.0.0.1:1", "0123456789abcde@127.0.0.1:1",
		"0123456789ABCDEF@127.0.0.1:1", "0123456789abcdef0@127.0.0.1:1", "@127.0.0.1:1" };
	struct ptcp_err e;
	size_t i;

	(void)state;
	assert_int_equal(ptcp_status_new(&t, &opts, "0123456789abcdef@127.0.0.1:1", true, &e), 0);
	requests();
	assert_int_equal(got.type, WIRE_STATUS);
	assert_true(got.f.status.id == UINT64_C(0x0123456789abcdef));
	assert_int_equal(got.f.status.cancel, 1);
	assert_string_equal(t->known_as, "127.0.0.1:1");
	ptcp_task_free(t);
	assert_int_equal(ptcp_status_new(&t, &opts, "127.0.0.1:1", false, &e), 0);
	requests();
	assert_true(got.f.status.id == 0 && got.f.status.cancel == 0);
	ptcp_task_free(t);
	t = NULL;
	assert_int_equal(ptcp_status_new(&t, &opts, "127.0.0.1:1", true, &e), PTCP_EUSAGE); /* not all jobs */
	cf_says(&e, "give its name");
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(ptcp_status_new(&t, &opts, bad[i], false, &e), PTCP_EUSAGE);
		cf_says(&e, "not the name of a transfer");
	}
	assert_null(t);
}

static struct { struct ptcp_status s; char name[128], peer[64], source[64], dest[64], error[256]; } shown;

static void on_status(void *arg, const struct ptcp_event *ev)
{
	const struct ptcp_status *s = ev->left;

	(void)arg;
	assert_int_equal(ev->type, PTCP_EVENT_STATUS);
	shown.s = *s;
	snprintf(shown.name, sizeof shown.name, "%s", s->name);
	snprintf(shown.peer, sizeof shown.peer, "%s", s->peer);
	snprintf(shown.source, sizeof shown.source, "%s", s->source);
	snprintf(shown.dest, sizeof shown.dest, "%s", s->dest);
	snprintf(shown.error, sizeof shown.error, "%s", s->error != NULL ? s->error : "");
}

static void states(void **state)
{
	struct wire_state f = { .id = 0xab, .kind = WIRE_STATE_RUNNING, .mode = WIRE_GRANT_WRITE,
		.port = 7, .age_ms = 1500,
		.took_ms = 250, .host = span_of("::1"), .from = span_of("/a"), .to = span_of("/b") };
	struct ptcp_err e;

	(void)state;
	assert_int_equal(ptcp_status_new(&t, &opts, "127.0.0.1:1", false, &e), 0);
	events.then = on_status;
	remote_job_state(t, &f);
	assert_string_equal(shown.name, "00000000000000ab@127.0.0.1:1");
	assert_string_equal(shown.peer, "[::1]:7");
	assert_string_equal(shown.source, "/a");
	assert_string_equal(shown.dest, "/b");
	assert_int_equal(shown.s.state, PTCP_STATE_RUNNING);
	assert_true(shown.s.age_s == 1.5 && shown.s.seconds == 0.25 && !shown.s.fetched && shown.s.error == NULL);
	f.kind = WIRE_STATE_OVER;
	f.mode = WIRE_GRANT_READ;
	remote_job_state(t, &f);
	assert_int_equal(shown.s.state, PTCP_STATE_DONE);
	assert_true(shown.s.fetched);
	f.progress.failed = 1; /* in order, but for a file */
	f.progress.files = 2;
	remote_job_state(t, &f);
	assert_int_equal(shown.s.state, PTCP_STATE_FAILED);
	assert_int_equal(shown.s.code, PTCP_EPARTIAL);
	f.why.code = -PTCP_ECANCELED;
	f.why.text = span_of("by \033the user");
	remote_job_state(t, &f);
	assert_int_equal(shown.s.code, PTCP_ECANCELED);
	assert_null(strchr(shown.error, '\033'));
	assert_string_equal(ptcp_state_name(PTCP_STATE_RUNNING), "running");
	assert_string_equal(ptcp_state_name(PTCP_STATE_DONE), "done");
	assert_string_equal(ptcp_state_name(PTCP_STATE_FAILED), "failed");
}

/* The outcome of a transfer by its counts. */
static void outcomes(void **state)
{
	struct ptcp_progress g = { .files = 3 };
	const struct ptcp_err why = error(PTCP_EPEER);
	struct ptcp_err e;

	(void)state;
	assert_false(task_failed(&e, &g, NULL));
	assert_true(task_failed(&e, &g, &why));
	assert_int_equal(e.code, PTCP_EPEER);
	g.failed = 1;
	assert_true(task_failed(&e, &g, NULL));
	assert_int_equal(e.code, PTCP_EPARTIAL);
	cf_says(&e, "1 file failed");
	g.files = 0;
	g.failed = 2;
	assert_true(task_failed(&e, &g, NULL));
	assert_int_equal(e.code, PTCP_EIO);
	cf_says(&e, "all sources failed");
	g.others = 1; /* a directory or link */
	assert_true(task_failed(&e, &g, NULL));
	assert_int_equal(e.code, PTCP_EPARTIAL);
	cf_says(&e, "2 files failed");
}

/* ---- Links ---- */

static void links(void **state)
{
	struct wire_link f = { .rate_bps = 8, .rate_error_bps = WIRE_LINK_NOT_KNOWN, .delay_ns = 2000000000,
		.delay_error_ns = 500000000, .age_ms = 1500, .messages = 2, .streams = 3, .port = 7,
		.host = span_of("h"), .text = span_of("\033") };
	struct ptcp_published_link l;
	struct ptcp_err e;
	unsigned i;

	(void)state;
	assert_int_equal(ptcp_link_query_new(&t, &opts, "u@h", &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_link_query_new(&t, &opts, "127.0.0.1:1", &e), 0);
	requests();
	assert_int_equal(got.type, WIRE_LINKS);
	assert_int_equal(ptcp_link_query_links(t, NULL, 0), 0);
	for (i = 1; i <= PTCP_PUBLISHED_LINKS_MAX; i++)
		assert_int_equal(remote_job_link(t->remote_job, &f, &e), 0);
	assert_int_equal(ptcp_link_query_links(t, &l, 1), PTCP_PUBLISHED_LINKS_MAX);
	assert_string_equal(l.to, "h:7");
	assert_null(strchr(l.why, '\033'));
	assert_true(l.rate_bps == 8 && isnan(l.rate_error_bps) && l.delay_s == 2 &&
	    l.delay_error_s == 0.5 && l.age_s == 1.5);
	assert_int_equal(remote_job_link(t->remote_job, &f, &e), PTCP_EPROTO); /* a server that does not end */
	assert_int_equal(ptcp_link_query_links(t, NULL, 0), PTCP_PUBLISHED_LINKS_MAX);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		test(sends),
		test(destination_flags),
		test(number_of_streams),
		test(the_same_host),
		test(aims),
		test(when_to_reverse),
		test(reversed),
		test(timing),
		test(status),
		test(states),
		test(outcomes),
		test(links),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
