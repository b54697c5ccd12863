/* Rate limits with real connections: a transfer over two paths, one of them through a relay, keeps to the limits of the
 * paths and of all together, follows changes, and ends although one path is idle. tests/engine/test_path_rates.c has
 * the cases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "api/fixture.h"
#include "timed.h"

#define FILE_BYTES (64u << 20)
#define STEADY_S 0.6   /* after a change: what is on its way, and who waits */
#define WINDOW_S 1.6
#define WITHIN 0.15
#define TRIES 3
#define STREAMS 4

static struct ptcp_server *relay;
static char relay_address[32], relay_fingerprint[PTCP_FINGERPRINT_BYTES];
static pthread_t relay_thread;

static void *run_relay(void *arg)
{
	(void)arg;
	assert_int_equal(ptcp_server_run(relay, NULL), 0);
	return NULL;
}

/* That client may have itself relayed to the other server. */
static int start_relay(void)
{
	static const char *to[] = { lf_address };
	char client[PTCP_FINGERPRINT_BYTES], at[256];
	struct ptcp_server_opts o;
	struct ptcp_permission p;
	struct ptcp_err e;

	strcpy(at, lf_path("relay"));
	ptcp_permission_init(&p);
	ptcp_server_opts_init(&o);
	o.config_dir = at;
	o.listen = "127.0.0.1:0";
	o.relay_to = to;
	o.n_relay_to = 1;
	p.fingerprint = client;
	if (ptcp_key_show(lf_path("client"), client, &e) < 0 || ptcp_authorize(at, &p, &e) < 0 ||
	    ptcp_server_new(&relay, &o, &e) < 0) {
		print_error("%s\n", e.msg);
		return -1;
	}
	strcpy(relay_fingerprint, ptcp_server_fingerprint(relay));
	snprintf(relay_address, sizeof relay_address, "127.0.0.1:%u", ptcp_server_port(relay));
	return pthread_create(&relay_thread, NULL, run_relay, NULL);
}

/* Of bytes that do not compress: a rate is that of the bytes on the wire. */
static int make_file(const char *name)
{
	uint64_t block[8192], x = 88172645463325252u;
	FILE *f = fopen(name, "w");
	size_t i, done;

	for (done = 0; f != NULL && done < FILE_BYTES; done += sizeof block) {
		for (i = 0; i < sizeof block / sizeof *block; i++) {
			x ^= x << 13; /* xorshift64 */
			x ^= x >> 7;
			x ^= x << 17;
			block[i] = x;
		}
		if (fwrite(block, sizeof block, 1, f) != 1)
			return -1;
	}
	return f != NULL ? fclose(f) : -1;
}

static int setup(void **state)
{
	struct ptcp_server_opts o;
	struct ptcp_permission p;

	(void)state;
	if (lf_make_dir() < 0 || mkdir(lf_path("root"), 0755) < 0 || make_file(lf_path("root/file")) < 0)
		return -1;
	ptcp_permission_init(&p);
	ptcp_server_opts_init(&o);
	o.root = lf_path("root");
	return lf_serve(&o, &p) < 0 ? -1 : start_relay();
}

static int teardown(void **state)
{
	ptcp_server_stop(relay);
	pthread_join(relay_thread, NULL);
	ptcp_server_free(relay);
	return lf_teardown(state);
}

/* ---- What the paths of a transfer have carried ---- */

struct observed {
	pthread_mutex_t lock;
	bool sends, started, over;
	uint64_t bytes[2];
	struct ptcp_task *t;
	pthread_t thread;
	int result;
	struct ptcp_err e;
};

static void on_event(void *arg, const struct ptcp_event *ev)
{
	struct observed *w = arg;
	size_t i;

	if (ev->type != PTCP_EVENT_START && ev->type != PTCP_EVENT_PROGRESS)
		return;
	pthread_mutex_lock(&w->lock);
	w->started = true;
	for (i = 0; i < ev->n_paths && i < 2; i++)
		w->bytes[i] = ev->paths[i].bytes;
	pthread_mutex_unlock(&w->lock);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void wait_s(double s)
{
	struct timespec t = { (time_t)s, (long)((s - (double)(time_t)s) * 1e9) };

	nanosleep(&t, NULL);
}

/* Bytes by path, and the moment: right behind a change of theirs, as they are told five times a second. */
static double look(struct observed *w, uint64_t bytes[2])
{
	uint64_t before[2];
	unsigned i;

	for (i = 0; i < 100; i++) {
		pthread_mutex_lock(&w->lock);
		memcpy(bytes, w->bytes, sizeof w->bytes);
		pthread_mutex_unlock(&w->lock);
		if (i > 0 && memcmp(bytes, before, sizeof before) != 0)
			break;
		memcpy(before, bytes, sizeof before);
		wait_s(0.005);
	}
	return now_s();
}

static void *run(void *arg)
{
	struct observed *w = arg;

	w->result = ptcp_task_run(w->t, &w->e);
	return NULL;
}

/* A transfer of the file over both paths, at these rates from the first. */
static void begin(struct observed *w, bool sends, uint64_t direct_bps, uint64_t relayed_bps)
{
	const char *paths[] = { "direct", relay_address }, *from, *to;
	const char *pins[] = { ptcp_server_fingerprint(lf_server), relay_fingerprint };
	char there[256];
	struct ptcp_transfer_opts o;
	struct ptcp_err e;
	int r;

	*w = (struct observed){ .sends = sends };
	pthread_mutex_init(&w->lock, NULL);
	lf_opts(&o);
	o.fingerprints = pins;
	o.n_fingerprints = 2;
	o.paths = paths;
	o.n_paths = 2;
	o.streams = STREAMS;
	o.no_resume = true;
	o.no_history = true;
	o.event = on_event;
	o.arg = w;
	snprintf(there, sizeof there, "ptcp://%s/%s", lf_address, sends ? "sent" : "file");
	from = sends ? lf_path("root/file") : there;
	to = sends ? there : lf_path("got");
	remove(sends ? lf_path("root/sent") : lf_path("got"));
	r = sends ? ptcp_send_new(&w->t, &o, &from, 1, to, &e) : ptcp_recv_new(&w->t, &o, &from, 1, to, &e);
	if (r < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(ptcp_transfer_set_path_rate(w->t, 0, direct_bps, NULL), 0);
	assert_int_equal(ptcp_transfer_set_path_rate(w->t, 1, relayed_bps, NULL), 0);
	assert_int_equal(pthread_create(&w->thread, NULL, run, w), 0);
}

static void end(struct observed *w)
{
	char command[600];

	pthread_join(w->thread, NULL);
	if (w->result != 0)
		fail_msg("%s", w->e.msg);
	snprintf(command, sizeof command, "cmp -s '%s' '%s'", lf_path("root/file"), w->sends ? lf_path("root/sent") :
	    lf_path("got"));
	assert_int_equal(system(command), 0);
	ptcp_task_free(w->t);
	pthread_mutex_destroy(&w->lock);
}

static void set(struct observed *w, uint64_t direct_bps, uint64_t relayed_bps)
{
	assert_int_equal(ptcp_transfer_set_path_rate(w->t, 0, direct_bps, NULL), 0);
	assert_int_equal(ptcp_transfer_set_path_rate(w->t, 1, relayed_bps, NULL), 0);
}

/* What both carry for a while, against what they should. */
static bool keeps(struct observed *w, double direct_bps, double relayed_bps)
{
	const double want[] = { direct_bps, relayed_bps };
	uint64_t before[2], after[2];
	double s, bps;
	bool ok = true;
	int i;

	wait_s(STEADY_S);
	s = look(w, before);
	wait_s(WINDOW_S);
	s = look(w, after) - s;
	for (i = 0; i < 2; i++) {
		bps = 8 * (double)(after[i] - before[i]) / s;
		print_message("path %d: %.2f of %.2f Mbit/s\n", i, bps / 1e6, want[i] / 1e6);
		ok &= bps >= (1 - WITHIN) * want[i] && bps <= (1 + WITHIN) * want[i];
	}
	return ok;
}

static void wait_for_start(struct observed *w)
{
	bool started = false;
	double until = now_s() + 30;

	while (!started && now_s() < until) {
		wait_s(0.01);
		pthread_mutex_lock(&w->lock);
		started = w->started;
		pthread_mutex_unlock(&w->lock);
	}
	assert_true(started);
}

/* An idle path carries nothing new, and the transfer ends without it. */
static bool idle_carries_nothing(struct observed *w)
{
	uint64_t before[2], after[2];

	wait_s(STEADY_S);
	look(w, before);
	wait_s(1);
	look(w, after);
	print_message("idle: %llu, the other %llu bytes in a second\n", (unsigned long long)(after[0] - before[0]),
	    (unsigned long long)(after[1] - before[1]));
	return after[0] == before[0] && after[1] > before[1];
}

static bool is_kept(bool sends)
{
	struct observed w;
	bool ok;

	begin(&w, sends, 40000000, 20000000);
	wait_for_start(&w);
	ok = keeps(&w, 40e6, 20e6);
	set(&w, PTCP_PATH_IDLE, 40000000);
	ok = idle_carries_nothing(&w) && ok;
	set(&w, PTCP_PATH_IDLE, 0);
	end(&w);
	return ok;
}

static void in_some_try(bool sends)
{
	int i;

	for (i = 0; i < TRIES; i++)
		if (is_kept(sends))
			return;
	fail_msg("not in %d tries", TRIES);
}

static void when_sending(void **state)
{
	(void)state;
	in_some_try(true);
}

static void when_receiving(void **state)
{
	(void)state;
	in_some_try(false);
}

/* What all paths carry together keeps to a limit that is set during the run, and speeds up once it is lifted. */
static bool all_keep(bool sends)
{
	uint64_t before[2], after[2];
	struct observed w;
	double s, bps;

	begin(&w, sends, 0, 0);
	assert_int_equal(ptcp_transfer_set_rate(w.t, "10Mbit/s", NULL), 0);
	wait_for_start(&w);
	assert_int_equal(ptcp_transfer_set_rate(w.t, "00:00-12:00=40Mbit/s,else=40Mbit/s", NULL), 0);
	wait_s(STEADY_S);
	s = look(&w, before);
	wait_s(WINDOW_S);
	s = look(&w, after) - s;
	bps = 8 * (double)(after[0] + after[1] - before[0] - before[1]) / s;
	print_message("%s: %.2f of 40 Mbit/s\n", sends ? "sent" : "received", bps / 1e6);
	s = now_s();
	assert_int_equal(ptcp_transfer_set_rate(w.t, NULL, NULL), 0);
	end(&w);
	s = now_s() - s; /* 10 s at the limit */
	print_message("the rest in %.2f s\n", s);
	return bps >= (1 - WITHIN) * 40e6 && bps <= (1 + WITHIN) * 40e6 && s < 5;
}

static void all_together(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < TRIES; i++)
		if (all_keep(true) && all_keep(false))
			return;
	fail_msg("not in %d tries", TRIES);
}

static void usage_errors(void **state)
{
	const char *from = lf_path("root/file");
	struct ptcp_transfer_opts o;
	struct ptcp_task *t;
	struct ptcp_err e;

	(void)state;
	lf_opts(&o);
	assert_int_equal(ptcp_send_new(&t, &o, &from, 1, "ptcp://127.0.0.1:1/x", &e), 0);
	assert_int_equal(ptcp_transfer_set_path_rate(t, 0, 0, &e), 0);
	assert_int_equal(ptcp_transfer_set_path_rate(t, 0, PTCP_PATH_IDLE, &e), 0);
	assert_int_equal(ptcp_transfer_set_path_rate(t, 1, 0, &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_transfer_set_path_rate(t, 0, 9999, &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_transfer_set_rate(t, "1Gbit/s", &e), 0);
	assert_int_equal(ptcp_transfer_set_rate(t, "fast", &e), PTCP_EUSAGE);
	assert_non_null(strstr(e.msg, "fast"));
	assert_int_equal(ptcp_transfer_set_impact(t, 100, &e), 0);
	assert_int_equal(ptcp_transfer_set_impact(t, 0, &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_transfer_set_impact(t, 100.1, &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_transfer_set_impact(t, NAN, &e), PTCP_EUSAGE);
	ptcp_task_free(t);
	o.streams = 4;
	assert_int_equal(ptcp_send_new(&t, &o, &from, 1, "ptcp://127.0.0.1:1/x", &e), 0);
	assert_int_equal(ptcp_transfer_set_impact(t, 5, &e), PTCP_EUSAGE);
	assert_non_null(strstr(e.msg, "does not choose the number of streams"));
	ptcp_task_free(t);
	o.streams = 0;
	assert_int_equal(ptcp_status_new(&t, &o, "127.0.0.1:1", false, &e), 0);
	assert_int_equal(ptcp_transfer_set_path_rate(t, 0, 0, &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_transfer_set_rate(t, NULL, &e), PTCP_EUSAGE);
	ptcp_task_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		timed_test(when_sending),
		timed_test(when_receiving),
		timed_test(all_together),
		cmocka_unit_test(usage_errors),
	};

	return cmocka_run_group_tests_name("api/rates", tests, setup, teardown);
}
