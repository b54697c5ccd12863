/* Adaptation joined with a session: which of its numbers reach the adaptive parts of the engine, and what becomes of their
 * decisions. The test plays streams, hosts and the engine; tests/engine has the cases of each part. */
#include "session/session_impl.h"

#include "core/err.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STREAMS 4      /* 0, 2 on path 0; 1, 3 on path 1 */
#define WORKERS 2
#define MBIT UINT64_C(1000000)

struct stream { uint64_t moved; };
struct snd { uint64_t set_bps[PTCP_PATHS_MAX + 1]; bool carries[STREAMS]; };

static struct {
	struct session s;
	struct context host;
	struct paths paths;
	struct wire_open open;
	struct stream stream[STREAMS];
	struct snd snd;
	struct mono now;
	bool sends, spooled, on_disk;
	enum ptcp_activity activity;
	enum wire_busy busy;
	uint64_t idle_ns[WORKERS];
	unsigned lost, moved_places, n_warnings, n_paths_events, loosened, shared;
	char why[200];
	struct wire_rate rate;
	unsigned n_rates;
	struct wire_load load;
	unsigned n_loads, n_activated, activated, sendable;
	struct tcp_delta delta;
} fx;

/* ---- What surrounds it ---- */

struct snd *engine_snd(struct engine *e) { return e == NULL && fx.sends ? &fx.snd : NULL; }
struct rcv *engine_rcv(struct engine *e) { return e == NULL && !fx.sends ? (struct rcv *)&fx.snd : NULL; }
const struct wire_open *engine_open(const struct engine *e) { return e == NULL ? &fx.open : NULL; }
bool engine_spooled(const struct engine *e) { return e == NULL && fx.spooled; }
enum wire_busy engine_peer_busy(const struct engine *e) { return e == NULL ? fx.busy : WIRE_IDLE; }

void engine_set_rates(struct engine *e, const struct wire_rate *f)
{
	(void)e;
	fx.rate = *f;
	fx.n_rates++;
}

void engine_report_load(struct engine *e, const struct wire_load *f)
{
	(void)e;
	fx.load = *f;
	fx.n_loads++;
}

void snd_set_rate(struct snd *s, unsigned rate, uint64_t bps) { s->set_bps[rate] = bps; }
void engine_set_streams(struct engine *e, const struct wire_set_streams *f)
{
	(void)e;
	fx.activated = f->streams;
}

bool snd_stream_carries(const struct snd *s, unsigned i) { return s->carries[i]; }
struct mono snd_stream_acked(const struct snd *s, unsigned i) { return (struct mono){ s->carries[i] ? 0 : 1 }; }
uint64_t snd_stream_acked_bytes(const struct snd *s, unsigned i) { return s->carries[i]; }
uint64_t stream_moved(const struct stream *s) { return s->moved; }

void streams_lost(struct session *sess, struct stream *s, const struct ptcp_err *why)
{
	unsigned i = (unsigned)(s - fx.stream);

	assert_ptr_equal(sess->slot[i].stream, s);
	slot_disconnected(&sess->slot[i]);
	fx.lost |= 1u << i;
	strncpy(fx.why, why->msg, sizeof fx.why - 1);
}

void streams_activate(struct session *sess, unsigned streams, const char *why)
{
	assert_non_null(why);
	sess->streams.n_active = streams;
	fx.n_activated++;
}

bool striping_sets_streams(const struct session *sess) { return sess == &fx.s; }
unsigned movers_count(const struct movers *m) { return m != NULL; }
void streams_tap(struct session *sess) { sess->streams.tapped = true; }

unsigned send_streams(const struct session *sess)
{
	(void)sess;
	return fx.sendable;
}

unsigned streams_connected(const struct session *sess) { return sess->streams.n_active; }
void streams_share_rate(struct session *sess, unsigned i) { fx.shared |= sess->slot[i].stream != NULL ? 1u << i : 0; }

void stream_connect_move(struct session *sess, unsigned place)
{
	assert_ptr_equal(sess, &fx.s);
	fx.moved_places |= 1u << place;
}

/* Stream i uses path i % 2 from the start. */
unsigned stream_path(const struct stream *s) { return (unsigned)(s - fx.stream) % 2; }

bool streams_moves(const struct session *sess, unsigned i)
{
	return sess->slot[i].stream != NULL && stream_path(sess->slot[i].stream) != paths_of_stream(&fx.paths, i);
}

void tcp_stats_read(struct session *sess, struct tcp_stats *t, double elapsed_s, struct tcp_delta *out)
{
	assert_ptr_equal(t, &sess->tcp.stats);
	assert_true(sess == &fx.s && elapsed_s > 0);
	*out = fx.delta;
}

enum wire_busy session_busy(const struct session *sess) { return sess == &fx.s ? WIRE_IDLE : WIRE_READING; }
bool session_waits_for_disk(const struct session *sess) { return sess == &fx.s && fx.on_disk; }
const char *session_congestion(const struct session *sess) { return sess->congestion.name; }

struct ptcp_progress session_progress(const struct session *sess)
{
	assert_ptr_equal(sess, &fx.s);
	return (struct ptcp_progress){ .activity = fx.activity };
}

uint64_t loop_idle_ns(struct loop *l) { return fx.idle_ns[(uintptr_t)l - 1]; }
void pacing_loosen(struct pacing *p) { fx.loosened += p == &fx.host.pacing; }
const char *paths_name(const struct paths *p, unsigned i) { return p == &fx.paths && i == 0 ? "relay" : "direct"; }

int tls_random(uint8_t *p, size_t n, struct ptcp_err *e)
{
	(void)e;
	memset(p, 1, n);
	return 0;
}

int tcpinfo_read(struct tcpinfo *out, int fd)
{
	(void)out;
	return fd < 0 ? -1 : 0;
}

static void on_warning(void *arg, const char *path, const char *text)
{
	(void)arg;
	assert_null(path);
	strncpy(fx.why, text, sizeof fx.why - 1);
	fx.n_warnings++;
}

static void on_paths(void *arg, const char *why)
{
	assert_true(arg == NULL && why != NULL);
	fx.n_paths_events++;
	strncpy(fx.why, why, sizeof fx.why - 1);
}

/* The old path carries data while the new one connects, and is not mistaken for it. */
static bool moves_in_view(unsigned stream)
{
	return streams_moves(&fx.s, stream) && fx.s.adapt.path_select.model.measured[fx.paths.dealt[stream]] == 0;
}

static const struct session_ops ops = { .warning = on_warning, .paths = on_paths };

static void pump(struct session *sess)
{
	adapt_rates(sess, fx.now);
}

static int setup(void **state)
{
	uintptr_t i;

	(void)state;
	memset(&fx, 0, sizeof fx);
	fx.sendable = PTCP_STREAMS_MAX;
	fx.now = mono_now();
	fx.host.n_workers = WORKERS;
	for (i = 0; i < WORKERS; i++)
		fx.host.worker[i] = (struct loop *)(i + 1);
	fx.paths.n = fx.paths.n_places = 2;
	fx.paths.place[1] = 1;
	fx.s.o = (struct session_opts){ .host = &fx.host, .connects = true, .open = &fx.open, .paths = &fx.paths, .ops = &ops };
	fx.s.pump = pump;
	fx.s.running = true;
	fx.s.streams.n_granted = fx.s.streams.n_active = fx.s.streams.n_connected = STREAMS;
	path_rates_init(&fx.s.adapt.path_rates);
	for (i = 0; i < STREAMS; i++) {
		fx.paths.dealt[i] = i % 2;
		slot_init(&fx.s.slot[i], &fx.s, (unsigned)i, NULL);
		slot_connected(&fx.s.slot[i], &fx.stream[i], 0, fx.now);
	}
	return 0;
}

static void start(void)
{
	assert_int_equal(adapt_start(&fx.s, NULL), 0);
	fx.now = mono_now();
}

/* Seconds pass; the streams of the mask make progress. */
static void pass(double s, unsigned moving)
{
	struct mono end = mono_add_ns(fx.now, (uint64_t)(s * 1e9));
	unsigned i;

	while (fx.now.ns < end.ns) {
		fx.now = mono_add_ns(fx.now, NS_PER_S / 2);
		for (i = 0; i < STREAMS; i++)
			fx.stream[i].moved += moving >> i & 1;
		adapt_rates(&fx.s, fx.now);
		adapt_dead_paths(&fx.s, fx.now);
		adapt_paths(&fx.s, fx.now);
	}
}

/* ---- Paths ---- */

static void a_dead_path_loses_its_streams(void **state)
{
	(void)state;
	start();
	pass(2.5, 0xa);
	assert_int_equal(fx.lost, 0);
	pass(1, 0xa);
	assert_int_equal(fx.lost, 0x5);
	assert_non_null(strstr(fx.why, "path relay"));
	assert_int_not_equal(adapt_dead_paths_deadline(&fx.s).ns, MONO_NEVER.ns);
}

static void paths_that_cannot_be_dead(void **state)
{
	(void)state;
	fx.paths.at[0].spool_bytes = 1;
	start();
	pass(20, 0xa);
	fx.paths.at[0].spool_bytes = 0;
	session_set_path_rate(&fx.s, 0, PTCP_PATH_IDLE);
	pass(20, 0xa);
	session_set_path_rate(&fx.s, 0, 0); /* a changed limit restarts the time */
	pass(2.5, 0xa);
	assert_int_equal(fx.lost, 0);
	fx.s.o.connects = false; /* the peer opens the connections */
	start();
	pass(20, 0xa);
	assert_int_equal(fx.lost, 0);
	assert_int_equal(adapt_dead_paths_deadline(&fx.s).ns, MONO_NEVER.ns);
}

static void idle_streams_of_a_sender(void **state)
{
	(void)state;
	fx.sends = true;
	fx.snd.carries[1] = fx.snd.carries[3] = true;
	start();
	pass(20, 0xa);
	assert_int_equal(fx.lost, 0);
	fx.snd.carries[0] = fx.snd.carries[2] = true;
	pass(1, 0xa);
	assert_int_equal(fx.lost, 0x5);
}

static void a_candidate_replaces_a_path(void **state)
{
	(void)state;
	fx.paths.n = 3;
	fx.paths.chosen = true;
	start();
	slot_disconnected(&fx.s.slot[0]);
	slot_disconnected(&fx.s.slot[2]);
	pass(2, 0xa);
	assert_int_equal(fx.moved_places, 0);
	pass(1.5, 0xa);
	assert_int_equal(fx.moved_places, 1);
	assert_int_equal(fx.paths.place[0], 2);
	assert_int_equal(fx.n_paths_events, 1);
	assert_non_null(strstr(fx.why, "in place of relay"));
	slot_connected(&fx.s.slot[0], &fx.stream[0], 0, fx.now); /* still over path 0 */
	pass(1, 0xb);
	assert_true(moves_in_view(0));
	assert_true(fx.s.adapt.path_select.sample.settling[0]);
	fx.s.adapt.selects_paths = false;
	assert_int_equal(adapt_paths_deadline(&fx.s).ns, MONO_NEVER.ns);
}

/* ---- Rates ---- */

static void a_sender_sets_rates(void **state)
{
	(void)state;
	fx.sends = true;
	start();
	session_set_path_rate(&fx.s, 1, 20 * MBIT);
	assert_int_equal(fx.snd.set_bps[2], 20 * MBIT);
	assert_int_equal(fx.snd.set_bps[1], 0);
	assert_int_equal(fx.s.adapt.path_rates.of[1].bps, 20 * MBIT);
	assert_int_equal(fx.n_rates, 0);
	assert_int_equal(adapt_rates_deadline(&fx.s).ns, MONO_NEVER.ns);
	fx.host.pacing.in.bps = MBIT; /* of the other direction only */
	fx.s.send = (struct send_side *)1;
	assert_int_equal(adapt_rates_deadline(&fx.s).ns, MONO_NEVER.ns);
	fx.host.pacing.out.bps = MBIT;
	assert_int_equal(adapt_rates_deadline(&fx.s).ns, fx.now.ns + NS_PER_S / 4);
}

static void a_receiver_requests_rates(void **state)
{
	(void)state;
	start();
	session_set_path_rate(&fx.s, 1, 20 * MBIT);
	assert_int_equal(fx.n_rates, 1);
	assert_true(fx.rate.n == 1 && fx.rate.bps[0] == 20 * MBIT && fx.rate.m == 4);
	assert_memory_equal(fx.rate.of, ((uint8_t[]){ 0, 1, 0, 1 }), 4);
	assert_int_equal(fx.s.adapt.path_rates.of[1].bps, 22500000);
	assert_int_equal(fx.loosened, 1);
	fx.now = mono_add_ns(fx.now, NS_PER_S);
	session_set_path_rate(&fx.s, 1, 0);
	assert_int_equal(fx.n_rates, 2);
	assert_int_equal(fx.loosened, 1);
}

static void an_acceptor_sets_none(void **state)
{
	struct wire_rate f = { .n = 1, .m = 2, .bps = { 5 * MBIT }, .of = { 0, 1 } };

	(void)state;
	fx.s.o.open = NULL;
	fx.sends = true;
	start();
	session_set_path_rate(&fx.s, 0, MBIT);
	assert_int_equal(fx.snd.set_bps[1], 0);
	assert_int_equal(fx.n_rates, 0);
	adapt_on_rate(&fx.s, &f);
	assert_int_equal(fx.snd.set_bps[1], 5 * MBIT);
	assert_int_equal(fx.shared, 0xf);
}

/* ---- Load ---- */

/* Seconds without any idle time. */
static void work(unsigned seconds)
{
	while (seconds-- > 0) {
		fx.now = mono_add_ns(fx.now, NS_PER_S);
		adapt_load(&fx.s, fx.now);
	}
}

static void the_host_is_the_bottleneck(void **state)
{
	(void)state;
	start();
	work(3);
	assert_int_equal(fx.n_warnings, 0);
	work(10);
	assert_int_equal(fx.n_warnings, 1);
	assert_non_null(strstr(fx.why, "this host's processor"));
	assert_int_equal(adapt_load_deadline(&fx.s).ns, MONO_NEVER.ns);
}

static void slow_on_purpose(void **state)
{
	(void)state;
	start();
	fx.spooled = true;
	work(10);
	fx.spooled = false;
	fx.s.adapt.path_rates.requested[0] = MBIT;
	work(10);
	fx.s.adapt.path_rates.requested[0] = 0;
	fx.activity = PTCP_VERIFYING;
	work(10);
	fx.activity = PTCP_TRANSFERRING;
	fx.host.pacing.in.bps = MBIT;
	work(10);
	assert_int_equal(fx.n_warnings, 0);
	fx.host.pacing.in.bps = 0;
	work(4);
	assert_int_equal(fx.n_warnings, 1);
}

static void one_path_has_no_warning(void **state)
{
	(void)state;
	fx.paths.n = 1;
	start();
	work(10);
	assert_int_equal(fx.n_warnings, 0);
	assert_int_equal(adapt_load_deadline(&fx.s).ns, MONO_NEVER.ns);
}

static void reports_between_hosts(void **state)
{
	struct wire_load f = { 500, 990 };
	unsigned i;

	(void)state;
	start();
	for (i = 0; i < 4; i++) {
		fx.idle_ns[0] += NS_PER_S / 2;
		adapt_on_load(&fx.s, &f);
		fx.s.adapt.host_load.peer_at = fx.now; /* the test's time is ahead */
		work(1);
	}
	assert_non_null(strstr(fx.why, "the peer's disk"));
	fx.s.o.open = NULL;
	fx.s.o.paths = NULL;
	start();
	fx.on_disk = true;
	adapt_load(&fx.s, fx.now);
	fx.idle_ns[1] += NS_PER_S / 2;
	work(1);
	assert_int_equal(fx.n_loads, 1);
	assert_in_range(fx.load.disk_permille, 990, 1000);
	assert_int_equal(fx.n_warnings, 1);
}

/* ---- Number of streams ---- */

static void the_number_of_streams(void **state)
{
	struct stream_count_opts o = { .budget_ratio = 0.1, .max_streams = 8 };
	double s;

	(void)state;
	fx.sends = true;
	fx.s.o.paths = NULL;
	fx.s.streams.n_active = 0;
	fx.s.streams.n_granted = 32;
	assert_null(session_stream_control(&fx.s));
	assert_int_equal(adapt_streams_deadline(&fx.s).ns, MONO_NEVER.ns);
	start();
	session_adapt_streams(&fx.s, &o);
	assert_int_equal(fx.n_activated, 1);
	assert_true(fx.activated > 0 && fx.activated == fx.s.streams.n_active);
	assert_true(fx.s.streams.tapped);
	for (s = 0; s < 60; s += 0.1) {
		fx.delta = (struct tcp_delta){ .active_bytes = 1000000 * (uint64_t)fx.s.streams.n_active / (fx.s.streams.n_active + 4),
			.times = { 0.1, 0.1, 0, 0 } };
		fx.s.send = (struct send_side *)1;
		fx.now = adapt_streams_deadline(&fx.s);
		adapt_streams(&fx.s, fx.now);
		assert_int_equal(fx.activated, fx.s.streams.n_active);
		assert_in_range(fx.s.streams.n_active, 1, 8);
	}
	assert_true(fx.n_activated > 2);
	assert_true(session_stream_control(&fx.s)->answer > 0);
	adapt_on_congestion(&fx.s, "cubic"); /* the sender's */
	assert_true(session_stream_control(&fx.s)->answer > 0);
	fx.n_activated = 0;
	adapt_on_congestion(&fx.s, "bbr");
	assert_int_equal(session_stream_control(&fx.s)->phase, STREAM_CONTROL_PROBING);
	assert_int_equal(fx.n_activated, 1);
	adapt_on_congestion(&fx.s, "bbr");
	assert_int_equal(fx.n_activated, 1);
}

/* One stream for each of six movers at least; what fewer movers had is forgotten. */
static void the_number_of_movers(void **state)
{
	struct stream_count_opts o = { .budget_ratio = 0.1, .max_streams = 32 };
	struct endpoints movers = { .n = 0 };

	(void)state;
	fx.s.o.paths = NULL;
	fx.s.streams.n_active = 0;
	fx.s.streams.n_granted = 32;
	fx.s.striping.endpoints = &movers;
	start();
	session_adapt_streams(&fx.s, &o);
	assert_int_equal(fx.activated, 4);
	movers.n = 1;
	adapt_to_movers(&fx.s, fx.now);
	assert_int_equal(fx.n_activated, 1);
	movers.n = 6;
	adapt_to_movers(&fx.s, fx.now);
	assert_int_equal(fx.activated, 6);
	assert_non_null(strstr(session_stream_control(&fx.s)->reason, "6 movers"));
	movers.n = 6;
	adapt_to_movers(&fx.s, fx.now);
	assert_int_equal(fx.n_activated, 2);
	movers.n = 40;
	adapt_to_movers(&fx.s, fx.now); /* more than streams */
	assert_int_equal(fx.activated, 32);
}

#define test(f) cmocka_unit_test_setup(f, setup)

/* Streams that would have nothing to send are not requested, nor any before the first sources are listed; but each path
 * has one. */
static void few_requested(void **state)
{
	(void)state;
	fx.s.send = (struct send_side *)1;
	fx.sendable = 0;
	adapt_request(&fx.s, 8, "granted");
	adapt_requested(&fx.s, fx.now);
	assert_int_equal(fx.n_activated, 0);
	fx.sendable = 3;
	adapt_requested(&fx.s, fx.now);
	assert_int_equal(fx.activated, 3);
	adapt_requested(&fx.s, fx.now);
	assert_int_equal(fx.n_activated, 1);
	fx.sendable = 1;
	adapt_request(&fx.s, 8, "granted");
	assert_int_equal(fx.activated, 2);
	fx.sendable = 100;
	adapt_request(&fx.s, 8, "granted");
	assert_int_equal(fx.activated, 8);
	fx.s.send = NULL; /* a receiver does not know */
	fx.sendable = 0;
	adapt_request(&fx.s, 7, "granted");
	assert_int_equal(fx.activated, 7);
	fx.s.send = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(a_dead_path_loses_its_streams), test(paths_that_cannot_be_dead), test(idle_streams_of_a_sender),
		test(a_candidate_replaces_a_path), test(a_sender_sets_rates), test(a_receiver_requests_rates),
		test(an_acceptor_sets_none), test(the_host_is_the_bottleneck), test(slow_on_purpose),
		test(one_path_has_no_warning), test(reports_between_hosts), test(the_number_of_streams), test(the_number_of_movers),
		test(few_requested),
	};

	return cmocka_run_group_tests_name("session/adapt", tests, NULL, NULL);
}
