/* Adaptation joined with a session: which of its numbers reach the adaptive parts of the engine, and what becomes of
 * their decisions. Both ends are real, over two direct paths; time is the test's. tests/engine has the cases of each
 * part. */
#include "fixture.h"

#include <stdatomic.h>
#include <unistd.h>

#include "core/units.h"

#define STREAMS 4          /* 0, 2 on path 0; 1, 3 on path 1 */
#define LARGE (64u << 20)
#define MBIT UINT64_C(1000000)

static struct paths paths;
static struct mono now;

/* ---- A session that stands still ---- */

static atomic_bool disk_blocks;

/* The receiver's disk. On the thread that writes. */
static void before(enum fx_call call)
{
	while (call == FX_pwrite && atomic_load(&disk_blocks))
		usleep(1000);
}

static int teardown(void **state)
{
	atomic_store(&disk_blocks, false);
	fx_before(NULL);
	return sf_teardown(state);
}

static void use_paths(unsigned n)
{
	unsigned i;

	paths = (struct paths){ .n = n, .n_places = 2, .port = listener_port(sf.listener) };
	strcpy(paths.host, "127.0.0.1");
	for (i = 0; i < 2; i++)
		paths.place[i] = i;
	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		paths.dealt[i] = (uint8_t)(i % 2);
	sf.starter.o.paths = &paths;
}

static struct session *starter(void) { return sf.starter.session; }
static struct session *acceptor(void) { return sf.acceptor.session; }

/* Before a sender has listed its sources it only notes how many streams it is to use. */
static bool listed(void) { return starter()->send == NULL || send_streams(starter()) > 0; }

static bool all_connected(void)
{
	return sf_both_run() && listed() && starter()->streams.n_connected == STREAMS &&
	    acceptor()->streams.n_connected == STREAMS;
}

static void begin(uint8_t role)
{
	fx_before(before);
	atomic_store(&disk_blocks, true);
	sf_file("a", LARGE / 4);
	sf_begin(role, STREAMS);
	sf_until(all_connected);
	now = mono_now();
}

static void slow_down(const char *rate)
{
	struct timetable t = { .n = 0 };

	assert_int_equal(pacing_parse(&t, rate, NULL), 0);
	assert_int_equal(pacing_set(&sf.starter.context.pacing, &t, sf.control, NULL), 0);
}

/* ---- Dead paths ---- */

static uint64_t moved(unsigned path)
{
	unsigned i;
	uint64_t n = 0;

	for (i = path; i < STREAMS; i += 2)
		n += starter()->slot[i].stream != NULL ? stream_moved(starter()->slot[i].stream) : 0;
	return n;
}

/* Seconds pass, in which the streams of path 1 make progress at each check, as those of path 0 do not; `dead`: not
 * because of the limit, of which the check learns nothing. */
static void pass(unsigned seconds, bool dead)
{
	uint64_t before_bytes;

	for (; seconds > 0; seconds--) {
		for (before_bytes = moved(1); moved(1) == before_bytes;)
			loop_run_once(sf.control, true);
		now = mono_add_ns(now, NS_PER_S);
		if (dead) {
			starter()->adapt.path_rates.applied[0] = 0;
			starter()->adapt.dead_path.excused[0] = (struct mono){ 0 };
		}
		adapt_dead_paths(starter(), now);
	}
}

static bool path_0_is_still(void)
{
	static uint64_t last;
	static struct mono since;
	uint64_t n = moved(0);

	if (n != last || since.ns == 0)
		since = mono_now();
	last = n;
	return mono_diff_ns(mono_now(), since) > NS_PER_S;
}

static void a_dead_path_loses_its_streams(void **state)
{
	unsigned i;
	uint32_t generation[STREAMS];

	(void)state;
	use_paths(2);
	slow_down("20Mbit/s");
	sf_file("a", LARGE);
	sf_begin(WIRE_ACCEPTOR_SENDS, STREAMS);
	sf_until(all_connected);
	session_set_path_rate(starter(), 0, PTCP_PATH_IDLE); /* no data, as on a path that is dead */
	sf_until(path_0_is_still);
	now = mono_now();
	pass(20, false);
	for (i = 0; i < STREAMS; i++)
		generation[i] = starter()->slot[i].generation;
	assert_int_equal(streams_on_path(starter(), 0), 2); /* idle on purpose: not dead */
	pass(8, true);
	for (i = 0; i < STREAMS; i++)
		assert_int_equal(starter()->slot[i].stream == NULL || starter()->slot[i].generation != generation[i],
		    i % 2 == 0);
	assert_non_null(strstr(starter()->streams.join_why.msg, "path direct: no progress"));
	assert_true(adapt_dead_paths_deadline(starter()).ns != MONO_NEVER.ns);
	assert_int_equal(adapt_dead_paths_deadline(acceptor()).ns, MONO_NEVER.ns); /* which connects no stream */
}

/* ---- Candidates ---- */

static bool replaced(void) { return sf.starter.n_paths > 0; }
static bool path_failed(void) { return sf.starter.n_path_failed > 0; }

/* The first of three candidates leads through a relay that is down: the third one takes its place. */
static void a_candidate_replaces_a_path(void **state)
{
	(void)state;
	use_paths(3);
	paths.chosen = true;
	paths.at[0] = (struct path){ .n_relays = 1, .candidate = (char *)"relay", .relay = { { "127.0.0.1", 1 } } };
	slow_down("20Mbit/s");
	sf_file("a", LARGE);
	sf_begin(WIRE_ACCEPTOR_RECEIVES, STREAMS);
	sf_until(path_failed);
	assert_int_equal(sf.starter.failed_path, 0);
	assert_true(starter()->adapt.selects_paths);
	sf_until(replaced);
	assert_int_equal(paths.place[0], 2);
	assert_non_null(strstr(sf.starter.paths, "direct in place of relay"));
	sf_until(all_connected);
	assert_int_equal(streams_on_path(starter(), 2), STREAMS / 2);
	starter()->adapt.selects_paths = false;
	assert_int_equal(adapt_paths_deadline(starter()).ns, MONO_NEVER.ns);
}

/* ---- Rates ---- */

static bool acceptor_has_the_rate(void)
{
	struct path_rates *r = &acceptor()->adapt.path_rates;
	unsigned share = path_rates_share(r, 1);

	return share > 0 && r->of[share - 1].bps == 20 * MBIT;
}

static bool acceptor_has_none(void) { return path_rates_share(&acceptor()->adapt.path_rates, 1) == 0; }

static void a_sender_sets_rates(void **state)
{
	(void)state;
	use_paths(2);
	begin(WIRE_ACCEPTOR_RECEIVES);
	assert_int_equal(adapt_rates_deadline(starter()).ns, MONO_NEVER.ns);
	session_set_path_rate(starter(), 1, 20 * MBIT);
	assert_int_equal(starter()->adapt.path_rates.applied[1], 20 * MBIT);
	assert_int_equal(starter()->adapt.path_rates.of[1].bps, 20 * MBIT);
	assert_int_equal(starter()->adapt.path_rates.applied[0], 0);
	assert_true(path_rates_limited(&starter()->adapt.path_rates));
	assert_int_equal(starter()->adapt.path_rates.reported.ns, 0); /* the sender knows */
	session_set_path_rate(starter(), 1, 0);
	assert_false(path_rates_limited(&starter()->adapt.path_rates));
	slow_down("1Mbit/s");
	assert_true(adapt_rates_deadline(starter()).ns != MONO_NEVER.ns);
	slow_down("0");
}

/* The sending acceptor enforces the limit; the receiver's own is an eighth above. */
static void a_receiver_requests_rates(void **state)
{
	(void)state;
	use_paths(2);
	begin(WIRE_ACCEPTOR_SENDS);
	session_set_path_rate(starter(), 1, 20 * MBIT);
	assert_int_equal(starter()->adapt.path_rates.of[1].bps, 22500000);
	assert_true(starter()->adapt.path_rates.reported.ns > 0);
	assert_true(sf.starter.context.pacing.loose);
	sf_until(acceptor_has_the_rate);
	assert_int_equal(path_rates_share(&acceptor()->adapt.path_rates, 0), 0);
	assert_int_equal(path_rates_share(&acceptor()->adapt.path_rates, 3),
	    path_rates_share(&acceptor()->adapt.path_rates, 1));
	session_set_path_rate(starter(), 1, 0);
	sf_until(acceptor_has_none);
	session_set_path_rate(acceptor(), 0, MBIT); /* an acceptor sets none */
	assert_int_equal(acceptor()->adapt.path_rates.applied[0], 0);
}

/* ---- Load ---- */

/* Seconds without any idle time: that of the real threads is short. */
static void work(unsigned seconds)
{
	while (seconds-- > 0) {
		now = mono_add_ns(now, NS_PER_S);
		adapt_load(starter(), now);
	}
}

static void the_host_is_the_bottleneck(void **state)
{
	(void)state;
	use_paths(2);
	begin(WIRE_ACCEPTOR_RECEIVES);
	now = mono_add_ns(now, NS_PER_S); /* the idle time until here */
	adapt_load(starter(), now);
	work(2);
	assert_int_equal(sf.starter.n_warnings, 0);
	assert_true(adapt_load_deadline(starter()).ns != MONO_NEVER.ns);
	work(10);
	assert_int_equal(sf.starter.n_warnings, 1);
	assert_non_null(strstr(sf.starter.warning, "this host's processor"));
	assert_true(adapt_load_deadline(starter()).ns < MONO_NEVER.ns); /* the load is of use for others */
}

/* A session that a limit of rates makes slow warns of nothing. */
static void slow_on_purpose(void **state)
{
	(void)state;
	use_paths(2);
	begin(WIRE_ACCEPTOR_RECEIVES);
	session_set_path_rate(starter(), 0, MBIT);
	work(20);
	session_set_path_rate(starter(), 0, 0);
	slow_down("1Mbit/s");
	work(20);
	assert_int_equal(sf.starter.n_warnings, 0);
	slow_down("0");
	work(8);
	assert_int_equal(sf.starter.n_warnings, 1);
}

static void one_path_has_no_warning(void **state)
{
	(void)state;
	begin(WIRE_ACCEPTOR_RECEIVES);
	work(20);
	assert_int_equal(sf.starter.n_warnings, 0);
	assert_true(adapt_load_deadline(starter()).ns < MONO_NEVER.ns);
}

static bool starter_has_a_report(void) { return starter()->adapt.host_load.peer_at.ns > 0; }

/* An acceptor reports a high load to the starter. */
static void reports_between_hosts(void **state)
{
	unsigned i;

	(void)state;
	use_paths(2);
	begin(WIRE_ACCEPTOR_RECEIVES);
	for (i = 0; i < 3; i++) {
		now = mono_add_ns(now, NS_PER_S);
		adapt_load(acceptor(), now);
	}
	sf_until(starter_has_a_report);
	assert_true(starter()->adapt.host_load.peer.busy_permille >= HOST_LOAD_FULL_PERMILLE ||
	    starter()->adapt.host_load.peer.disk_permille >= HOST_LOAD_FULL_PERMILLE);
	assert_int_equal(sf.acceptor.n_warnings, 0);
}

/* ---- Number of streams ---- */

static void starts_adapting(struct session *sess)
{
	const struct stream_count_opts o = { .budget_ratio = 0.1, .max_streams = 8 };

	sf_add_files(sess);
	assert_null(session_stream_control(sess));
	assert_int_equal(adapt_streams_deadline(sess).ns, MONO_NEVER.ns);
	session_adapt_streams(sess, &o);
}

static bool streams_there(void) { return sf_both_run() && starter()->streams.n_connected > 0 && listed(); }

static void the_number_of_streams(void **state)
{
	unsigned i;

	(void)state;
	sf.starts = starts_adapting;
	slow_down("20Mbit/s");
	sf_file("a", LARGE);
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 32);
	sf_until(streams_there);
	assert_true(starter()->streams.tapped);
	assert_int_equal(starter()->streams.n_active, session_stream_control(starter())->streams);
	for (i = 0; i < 200; i++) {
		now = adapt_streams_deadline(starter());
		adapt_streams(starter(), now);
		assert_in_range(starter()->streams.n_active, 1, 8);
		assert_int_equal(starter()->streams.n_active, session_stream_control(starter())->streams);
	}
	adapt_on_congestion(starter(), "reno");
	adapt_on_congestion(starter(), "bbr");
	assert_int_equal(session_stream_control(starter())->phase, STREAM_CONTROL_PROBING);
}

/* One stream for each of six movers at least; what fewer movers had is forgotten. */
static void the_number_of_movers(void **state)
{
	struct endpoints movers = { .n = 1 };
	struct session *sess;

	(void)state;
	sf.starts = starts_adapting;
	slow_down("20Mbit/s");
	sf_file("a", LARGE);
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 32);
	sf_until(streams_there);
	sess = starter();
	sess->striping.endpoints = &movers;
	adapt_to_movers(sess, mono_now());
	assert_int_equal(sess->adapt.n_movers, 1);
	movers.n = 6;
	adapt_to_movers(sess, mono_now());
	assert_int_equal(session_stream_control(sess)->streams, 6);
	assert_non_null(strstr(session_stream_control(sess)->reason, "6 movers"));
	adapt_to_movers(sess, mono_now());
	assert_int_equal(session_stream_control(sess)->streams, 6);
	movers.n = 40;
	adapt_to_movers(sess, mono_now()); /* more than streams */
	assert_int_equal(session_stream_control(sess)->streams, 32);
	sess->striping.endpoints = NULL;
}

static bool one_stream(void) { return starter()->streams.n_active == 1; }

/* No number of streams keeps the budget: one is used, and nothing is probed. */
static void one_stream_that_yields(void **state)
{
	struct session *sess;

	(void)state;
	sf.starts = starts_adapting;
	slow_down("20Mbit/s");
	sf_file("a", LARGE);
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 32);
	sf_until(streams_there);
	sess = starter();
	assert_non_null(session_stream_control(sess));
	sess->congestion.yields = true;
	adapt_on_congestion(sess, "vegas");
	sf_until(one_stream);
	assert_null(session_stream_control(sess));
	assert_true(adapt_streams_deadline(sess).ns == MONO_NEVER.ns);
}

/* ---- Together with other transfers ---- */

static struct { unsigned samples; struct stream_share next; } group;

static bool group_add(void *arg, struct stream_control *model, const struct stream_control_sample *x,
    struct stream_share *out)
{
	(void)arg;
	assert_int_equal(model->recorded, 0);
	assert_true(x->interval_s > 0);
	group.samples++;
	*out = group.next;
	return true;
}

static unsigned another_leads(void *arg, struct session *sess, const char *congestion)
{
	(void)arg; (void)sess;
	assert_true(congestion[0] != '\0');
	return 1;
}

static void starts_in_a_group(struct session *sess)
{
	const struct stream_count_opts o = { 0.1, 8, another_leads, NULL, { group_add, NULL, NULL } };

	sf_add_files(sess);
	session_adapt_streams(sess, &o);
}

/* One stream until the leader orders more; no BBR beside another transfer of the user, but the former congestion
 * control again. */
static void a_share_of_a_group(void **state)
{
	struct session *sess;

	(void)state;
	group.next = (struct stream_share){ .streams = 1, .settled = true, .transfers = 2, .reason = "ordered" };
	sf.starts = starts_in_a_group;
	slow_down("20Mbit/s");
	sf_file("a", LARGE);
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 32);
	sf_until(streams_there);
	sess = starter();
	assert_int_equal(sess->streams.n_active, 1);
	group.next.streams = 3;
	adapt_streams(sess, adapt_streams_deadline(sess));
	assert_true(group.samples > 0);
	assert_int_equal(sess->streams.n_active, 3);
	sess->congestion.judges = true;
	strcpy(sess->congestion.fair, sess->congestion.name);
	strcpy(sess->congestion.name, "bbr");
	group.next.transfers = 1;
	adapt_streams(sess, adapt_streams_deadline(sess));
	congestion_pump(sess, congestion_deadline(sess));
	assert_string_equal(sess->congestion.name, "bbr");
	group.next.transfers = 2;
	adapt_streams(sess, adapt_streams_deadline(sess));
	congestion_pump(sess, congestion_deadline(sess));
	assert_string_equal(sess->congestion.name, sess->congestion.fair);
	assert_true(sess->congestion.excluded);
}

/* A receiver does not know how many streams have something to send, a sender does once its sources are listed. */
static void few_requested(void **state)
{
	uint8_t role;

	(void)state;
	for (role = WIRE_ACCEPTOR_RECEIVES; role <= WIRE_ACCEPTOR_SENDS; role++) {
		begin(role);
		adapt_request(starter(), 3, "the test");
		assert_int_equal(starter()->streams.n_active, 3);
		assert_int_equal(starter()->adapt.requested.streams, 0);
		adapt_request(starter(), 7, "the test");
		assert_in_range(starter()->streams.n_active, STREAMS, 7);
		atomic_store(&disk_blocks, false);
		sf_finish();
		sf_again();
		unlink(fx_path("to/a"));
	}
}

#define test(f) cmocka_unit_test_setup_teardown(f, sf_setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		test(a_dead_path_loses_its_streams), test(a_candidate_replaces_a_path), test(a_sender_sets_rates),
		test(a_receiver_requests_rates),
		test(the_host_is_the_bottleneck), test(slow_on_purpose), test(one_path_has_no_warning),
		test(reports_between_hosts),
		test(the_number_of_streams), test(the_number_of_movers), test(one_stream_that_yields),
		test(a_share_of_a_group), test(few_requested),
	};

	return cmocka_run_group_tests_name("session/adapt", tests, NULL, NULL);
}
