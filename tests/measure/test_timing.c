/* Messages during which this host lacks processor time are repeated, unless the flow went on. The session is played: its
 * flow has a constant rate. */
#include "measure/prober.h"

#include "core/processor.h"
#include "net/fixture.h"

#define RATE_BPS 100e6
#define MESSAGES 6
#define RTT_S 0.001

static struct {
	struct loop *loop;
	struct prober *prober;
	const struct probe_session_ops *ops;
	struct mono began;
	bool window_limited, over;
	unsigned starved, asked;     /* so many calls say so; calls */
	struct ptcp_err why;
} fx;

static struct session *const some = (struct session *)&fx;

bool processor_is_starved(struct processor *p, double now_s)
{
	assert_true(p != NULL && now_s > 0);
	return fx.asked++ > 0 && fx.asked <= 1 + fx.starved;
}

int session_probe(struct session *sess, const struct probe_session_ops *ops, void *arg, struct ptcp_err *e)
{
	assert_true(sess == some && arg == fx.prober && e != NULL);
	fx.ops = ops;
	return 0;
}

unsigned probe_session_granted(const struct session *sess) { return sess == some; }
uint64_t probe_session_timeout_ns(const struct session *sess) { return sess == some ? 10 * NS_PER_S : 0; }

void probe_session_level(struct session *sess, unsigned streams, uint64_t stream_bytes)
{
	assert_true(sess == some && streams == 1 && stream_bytes == UINT64_MAX);
	fx.began = mono_now();
	fx.ops->started(fx.prober);
}

bool probe_session_tcpinfo(const struct session *sess, unsigned number, struct tcpinfo *out)
{
	double s = (double)mono_diff_ns(mono_now(), fx.began) / 1e9;

	assert_true(sess == some && number == 0);
	*out = (struct tcpinfo){ .acked_bytes = (uint64_t)(s * RATE_BPS / 8), .rtt_s = 2 * RTT_S, .min_rtt_s = RTT_S, .busy_s = s,
		.window_s = fx.window_limited ? s : 0 };
	return true;
}

bool probe_session_reported(const struct session *sess, struct limit_times *times, uint64_t *retransmits)
{
	return sess != some || times == NULL || retransmits == NULL;
}

void probe_session_clear(struct session *sess)
{
	assert_true(sess == some);
	fx.ops->cleared(fx.prober);
}

void probe_session_finish(struct session *sess) { fx.over = sess == some; }

void session_cancel(struct session *sess, const struct ptcp_err *why)
{
	fx.over = sess == some;
	fx.why = *why;
}

/* Returns the number of messages. */
static size_t run(bool window_limited, unsigned starved)
{
	static const struct log log;
	struct ptcp_timing_opts o;
	double round_trip_s;
	size_t n;

	memset(&fx, 0, sizeof fx);
	fx.window_limited = window_limited;
	fx.starved = starved;
	ptcp_timing_opts_init(&o);
	o.streams = 1;
	o.messages = MESSAGES;
	o.most_bytes = 256 << 10;
	assert_int_equal(loop_new(&fx.loop, NULL), 0);
	assert_int_equal(timing_new(&fx.prober, &o, NULL), 0);
	fx.prober->loop = fx.loop;
	fx.prober->log = &log;
	fx.prober->ops->running(fx.prober, some);
	assert_true(nf_run_until(fx.loop, &fx.over, 30000));
	n = timing_messages(fx.prober, NULL, 0, &round_trip_s);
	fx.prober->ops->free(fx.prober);
	loop_free(fx.loop);
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
	assert_int_equal(fx.why.code, 0);
}

static void flow_of_a_starved_host_may_go_on(void **state)
{
	(void)state;
	assert_int_equal(run(false, 1000), MESSAGES);
	assert_int_equal(fx.asked, 1 + MESSAGES);
}

static void starved_host_does_not_measure(void **state)
{
	(void)state;
	assert_int_equal(run(true, 1000), 0);
	assert_int_equal(fx.asked, 1 + 2 * MESSAGES + 1);
	assert_int_equal(fx.why.code, PTCP_ETIMEOUT);
	assert_non_null(strstr(fx.why.msg, "other processes use the processors"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		nf_timed_test(no_message_is_repeated),
		nf_timed_test(messages_of_a_starved_host_are_repeated),
		nf_timed_test(flow_of_a_starved_host_may_go_on),
		nf_timed_test(starved_host_does_not_measure),
	};

	return cmocka_run_group_tests_name("measure/timing", tests, NULL, NULL);
}
