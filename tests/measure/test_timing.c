/* Messages during which this host lacks processor time are repeated, unless the flow went on. The flow is one of a real
 * session; the test says when the host lacks processor time. */
#include "../session/fixture.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "core/processor.h"
#include "core/units.h"
#include "measure/prober.h"
#include "timed.h"

#define RATE_BPS 20e6
#define MESSAGES 6

static struct {
	struct prober *prober;
	unsigned starved, asked;     /* so many calls say so; calls */
} fx;

bool processor_is_starved(struct processor *p, double now_s)
{
	assert_true(p != NULL && now_s > 0);
	return fx.asked++ > 0 && fx.asked <= 1 + fx.starved;
}

static void starts(struct session *sess)
{
	fx.prober->ops->running(fx.prober, sess);
}

static void serves(struct session *sess)
{
	struct ptcp_err e;

	assert_int_equal(session_discard(sess, &e), 0);
}

static bool connected(void)
{
	return sf_both_gone() || (sf_both_run() && sf.starter.session->streams.n_connected == 1);
}

/* The kernel limits the rate: data to send is always there, as on a path that limits the flow. */
static void pace(void)
{
	const unsigned bytes = (unsigned)(RATE_BPS / 8);
	DIR *all = opendir("/proc/self/fd");
	struct dirent *d;

	while ((d = readdir(all)) != NULL)
		setsockopt(atoi(d->d_name), SOL_SOCKET, SO_MAX_PACING_RATE, &bytes, sizeof bytes);
	closedir(all);
}

/* This host limits the rate: there is nothing to send most of the time. */
static void hold(void)
{
	struct timetable t = { .n = 0 };
	char rate[30];

	snprintf(rate, sizeof rate, "%.0f", RATE_BPS);
	assert_int_equal(pacing_parse(&t, rate, NULL), 0);
	assert_int_equal(pacing_set(&sf.starter.context.pacing, &t, sf.control, NULL), 0);
}

/* Returns the number of messages. */
static size_t run(bool held, unsigned starved)
{
	struct ptcp_timing_opts o;
	double round_trip_s;
	size_t n;

	memset(&fx, 0, sizeof fx);
	fx.starved = starved;
	ptcp_timing_opts_init(&o);
	o.streams = 1;
	o.messages = MESSAGES;
	o.most_bytes = held ? 256 << 10 : 0; /* long ones: the kernel counts busy time in ticks of 4 ms */
	assert_int_equal(timing_new(&fx.prober, &o, NULL), 0);
	fx.prober->loop = sf.control;
	fx.prober->log = &sf.starter.context.log;
	sf.starts = starts;
	sf.serves = serves;
	sf.starter.o.linger_ns = 0;
	sf.open.flags = 0;
	sf.open.preserve = 0;
	if (held)
		hold();
	sf_begin(WIRE_ACCEPTOR_DISCARDS, 1);
	sf_until(connected);
	if (!held)
		pace();
	sf_finish();
	n = timing_messages(fx.prober, NULL, 0, &round_trip_s);
	fx.prober->ops->free(fx.prober);
	return n;
}

static void no_message_is_repeated(void **state)
{
	(void)state;
	assert_int_equal(run(true, 0), MESSAGES);
	assert_int_equal(fx.asked, 1 + MESSAGES);
}

static void messages_of_a_starved_host_are_repeated(void **state)
{
	(void)state;
	assert_int_equal(run(true, 3), MESSAGES);
	assert_int_equal(fx.asked, 1 + 3 + MESSAGES);
	sf_failed(&sf.starter, 0, "");
}

static void flow_of_a_starved_host_may_go_on(void **state)
{
	(void)state;
	assert_int_equal(run(false, 1000), MESSAGES);
	assert_int_equal(fx.asked, 1 + MESSAGES);
	sf_failed(&sf.starter, 0, "");
}

static void starved_host_does_not_measure(void **state)
{
	(void)state;
	assert_int_equal(run(true, 1000), 0);
	assert_int_equal(fx.asked, 1 + 2 * MESSAGES + 1);
	sf_failed(&sf.starter, PTCP_ETIMEOUT, "other processes use the processors");
}

#define timed(f) timed_test_setup_teardown(f, sf_setup, sf_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		timed(no_message_is_repeated), timed(messages_of_a_starved_host_are_repeated),
		timed(flow_of_a_starved_host_may_go_on), timed(starved_host_does_not_measure),
	};

	return cmocka_run_group_tests_name("measure/timing", tests, NULL, NULL);
}
