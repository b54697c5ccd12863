/* The limit of an acceptor that measures: the time of a stream. The test plays the streams. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "session/session_impl.h"

static struct session s;
static struct stream *lost;
static struct ptcp_err why_lost;
static struct wire_open open_frame;

const struct wire_open *engine_open(const struct engine *e) { (void)e; return &open_frame; }
void engine_finish(struct engine *e) { (void)e; }
void engine_set_streams(struct engine *e, const struct wire_set_streams *f) { (void)e; (void)f; }
void stream_connect_stop(struct session *sess) { (void)sess; }
void stream_generate(struct stream *st, uint64_t bytes) { (void)st; (void)bytes; }
bool stream_generated(const struct stream *st, struct mono *from, struct mono *until) { (void)st; (void)from; (void)until; return false; }
unsigned stream_number(const struct stream *st) { (void)st; return 0; }
uint64_t stream_received(const struct stream *st, struct mono *from, struct mono *until) { (void)st; (void)from; (void)until; return 0; }
void stream_stop(struct stream *st, bool reset) { (void)st; (void)reset; }
void streams_carry(struct session *sess, const struct payload_ops *payload) { sess->payload = payload; }
void streams_tap(struct session *sess) { (void)sess; }
void streams_close(struct session *sess, bool reset) { (void)sess; (void)reset; }
void streams_await(struct session *sess, struct mono now) { (void)sess; (void)now; }
bool streams_tcpinfo(const struct session *sess, unsigned number, struct tcpinfo *out) { (void)sess; (void)number; (void)out; return false; }
void receive_blocks(struct session *sess, struct stream *st, struct stream_results *r) { (void)sess; (void)st; (void)r; }

void streams_lost(struct session *sess, struct stream *st, const struct ptcp_err *why)
{
	assert_ptr_equal(sess, &s);
	lost = st;
	why_lost = *why;
}

/* A stream has its time, which begins when it is connected. */
static void a_stream_has_its_time(void **state)
{
	const struct mono now = { UINT64_C(3600) * 1000000000 };
	struct ptcp_err e;

	(void)state;
	assert_int_equal(session_discard(&s, &e), 0);
	s.slot[2].stream = (struct stream *)&s;
	s.slot[2].since = (struct mono){ now.ns - PROBE_SESSION_STREAM_NS + 1 };
	probe_session_pump(&s, now);
	assert_null(lost);
	assert_int_equal(probe_session_deadline(&s).ns, now.ns + 1);
	s.slot[2].since.ns--;
	probe_session_pump(&s, now);
	assert_ptr_equal(lost, &s);
	assert_int_equal(why_lost.code, PTCP_EREFUSED);
	probe_session_free(&s);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(a_stream_has_its_time) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
