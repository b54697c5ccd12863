/* Frames of a mover about streams, jobs and files that the engine has not given to it, or in another state than the
 * stream has: the engine refuses each. The streams are real ones; the test plays the link. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/byteorder.h"
#include "mover/movers_impl.h"

#define HANDLE 7
#define ID (UINT64_C(1) << 16 | 3) /* of the file in slot 3 */

static struct {
	struct movers set;
	struct mover m;
	struct remote_stream *r;          /* the stream HANDLE */
	uint64_t known[WIRE_SLOTS];
	struct outbox out;
	unsigned accepted, connected, ended, gone, done, delivered, wanted;
	struct ptcp_err e;
} fx;

struct outbox *mover_link_out(struct mover_link *k) { (void)k; return &fx.out; }
void mover_link_lose(struct mover_link *k, const struct ptcp_err *why) { (void)k; (void)why; }
struct mover *movers_find(const struct movers *set, uint32_t id) { (void)set; (void)id; return &fx.m; }

/* ---- The owner of the stream ---- */

static void on_sent(void *arg, struct stream *s, struct stream_job *job)
{
	assert_true(arg == &fx && s != NULL && job->job.n == 2);
	fx.done++;
}

static void on_idle(void *arg, struct stream *s) { assert_true(arg == &fx && s != NULL); }

/* Takes the reasons, as the session does. */
static void on_received(void *arg, struct stream *s, struct stream_results *r)
{
	unsigned i;

	assert_true(arg == &fx && s != NULL);
	for (i = 0; i < r->n; i++)
		free(r->of[i].why);
	fx.delivered += r->n;
}

static void on_lost(void *arg, struct stream *s, const struct ptcp_err *why)
{
	assert_true(arg == &fx && s != NULL && why->code < 0);
	fx.ended++;
}

static void on_gone(void *arg, struct stream *s)
{
	assert_ptr_equal(arg, &fx);
	fx.gone++;
	stream_free(s);
}

static const struct stream_ops stream_ops = { .sent = on_sent, .idle = on_idle,
	.received = on_received, .lost = on_lost, .gone = on_gone };

static void on_done(void *arg, struct remote_stream *r, const struct connect_result *result)
{
	(void)arg;
	assert_true((r == NULL) == (result != NULL));
	fx.connected += r != NULL;
	fx.ended += r == NULL;
}

static void on_accepted(void *arg, unsigned number, struct remote_stream *r)
{
	(void)arg; (void)number; (void)r;
	fx.accepted++;
}

static void on_wanted(void *arg, uint32_t mover, uint64_t id)
{
	(void)arg; (void)mover; (void)id;
	fx.wanted++;
}

static void on_closed(void *arg, uint64_t id) { (void)arg; (void)id; }
static const struct movers_target_ops targets = { .wanted = on_wanted, .closed = on_closed };

static int end(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < MOVER_HANDLES; i++)
		if (fx.m.remote[i] != NULL && fx.m.remote[i]->stream != NULL)
			stream_free(fx.m.remote[i]->stream); /* with its remote stream */
		else
			free(fx.m.remote[i]);
	buf_fini(&fx.out.b);
	memset(&fx, 0, sizeof fx);
	return 0;
}

/* A real stream, with one job of two blocks. */
static void attach(void)
{
	static struct context context;
	const struct stream_opts o = { .context = &context, .kind = &remote_stream_kind, .remote = fx.r,
		.ops = &stream_ops, .arg = &fx };
	struct stream_job *job;
	unsigned i;

	assert_int_equal(stream_new(&fx.r->stream, &o, &fx.e), 0);
	fx.m.n_streams++;
	job = stream_free_job(fx.r->stream);
	job->job.n = 2;
	for (i = 0; i < 2; i++)
		job->job.extent[i] = (struct snd_extent){ .id = ID, .block = i, .length = 10 };
	stream_send(fx.r->stream);
	assert_true(buf_len(&fx.out.b) > 0); /* SEND */
}

/* The mover has one stream, in this state, and one file. */
static void begin(int state)
{
	end(NULL);
	fx.m.set = &fx.set;
	fx.m.known = fx.known;
	fx.known[3] = ID;
	list_init(&fx.m.closing);
	list_init(&fx.set.movers);
	list_append(&fx.set.movers, &fx.m.in_list);
	fx.set.target_ops = &targets;
	fx.set.session.streams = 4;
	fx.set.session.accepted = on_accepted;
	assert_non_null(fx.r = calloc(1, sizeof *fx.r));
	fx.r->mover = &fx.m;
	fx.r->handle = HANDLE;
	fx.r->state = state;
	fx.r->done = on_done;
	fx.r->n_relays = 1;
	fx.m.remote[HANDLE] = fx.r;
	if (state == REMOTE_STREAM || state == REMOTE_STOPPING)
		attach();
}

/* FRAME(x, {..}): the frame that the mover sends. */
#define FRAME(x, ...) (memset(&fx.e, 0, sizeof fx.e), remote_on_##x(&fx.m, (&(struct wire_##x)__VA_ARGS__), &fx.e))

static const int all[] = { REMOTE_CONNECTING, REMOTE_CONNECTED, REMOTE_STREAM, REMOTE_STOPPING, REMOTE_ORPHAN };

#define IN_STATES(states, call) \
	do { \
		unsigned i_; \
		for (i_ = 0; i_ < sizeof all / sizeof *all; i_++) { \
			begin(all[i_]); \
			if (((states) & 1u << all[i_]) != 0) \
				assert_int_equal((call), 0); \
			else \
				assert_int_equal((call), PTCP_EPROTO); \
		} \
	} while (0)
#define ON(state) (1u << REMOTE_##state)

static void connections(void **state)
{
	(void)state;
	IN_STATES(ON(CONNECTING) | ON(ORPHAN), FRAME(connected, { HANDLE }));
	IN_STATES(ON(STOPPING) | ON(ORPHAN), FRAME(gone, { HANDLE }));
	begin(REMOTE_CONNECTING);
	assert_int_equal(FRAME(connected, { HANDLE }), 0);
	assert_int_equal(fx.connected, 1);
	assert_int_equal(FRAME(connected, { HANDLE }), PTCP_EPROTO);
	assert_int_equal(fx.connected, 1);
}

static void of_no_stream(void **state)
{
	static const uint8_t terms[2 * WIRE_TERM_BYTES];
	const uint32_t other[] = { HANDLE + 1, HANDLE + MOVER_HANDLES }; /* the second in the same place */
	unsigned i;

	(void)state;
	for (i = 0; i < 2; i++) {
		begin(REMOTE_STREAM);
		assert_int_equal(FRAME(connected, { other[i] }), PTCP_EPROTO);
		assert_int_equal(FRAME(gone, { other[i] }), PTCP_EPROTO);
		assert_int_equal(FRAME(lost, { .handle = other[i], .why.code = 5 }), PTCP_EPROTO);
		assert_int_equal(FRAME(traffic, { .handle = other[i] }), PTCP_EPROTO);
		assert_int_equal(FRAME(want, { other[i], ID }), PTCP_EPROTO);
		assert_int_equal(FRAME(unread, { .handle = other[i], .why.code = 5 }), PTCP_EPROTO);
		assert_int_equal(FRAME(sent, { other[i], 2, { terms, sizeof terms } }), PTCP_EPROTO);
		assert_int_equal(FRAME(unwritten, { .handle = other[i], .id = ID, .why.code = 5 }), PTCP_EPROTO);
		assert_int_equal(fx.ended + fx.gone + fx.done + fx.delivered + fx.wanted, 0);
		assert_int_equal(stream_moved(fx.r->stream), 0);
	}
}

/* Only movers of a server accept streams: those of the session, each handle once. */
static void accepts(void **state)
{
	(void)state;
	begin(REMOTE_STREAM);
	assert_int_equal(FRAME(accepted, { .handle = HANDLE + 1, .number = 3 }), PTCP_EPROTO); /* it does not listen */
	fx.m.listens = true;
	assert_int_equal(FRAME(accepted, { .handle = HANDLE + 1, .number = 4 }), PTCP_EPROTO);
	assert_int_equal(FRAME(accepted, { .handle = HANDLE, .number = 3 }), PTCP_EPROTO);
	assert_int_equal(fx.accepted, 0);
	assert_int_equal(FRAME(accepted, { .handle = HANDLE + 1, .number = 3 }), 0);
	assert_int_equal(fx.accepted, 1);
}

/* A connection fails for a cause that exists, at a relay that it has. */
static void losses(void **state)
{
	(void)state;
	begin(REMOTE_CONNECTING);
	assert_int_equal(FRAME(lost, { .handle = HANDLE, .why.code = 5, .cause = CONNECT_RELAY + 1 }), PTCP_EPROTO);
	assert_int_equal(FRAME(lost, { .handle = HANDLE, .why.code = 5, .cause = CONNECT_RELAY, .hop = 2 }),
	    PTCP_EPROTO);
	assert_int_equal(fx.ended, 0);
	assert_int_equal(FRAME(lost, { .handle = HANDLE, .why.code = 5, .cause = CONNECT_RELAY, .hop = 1 }), 0);
	assert_int_equal(fx.ended, 1);
	begin(REMOTE_STREAM);
	assert_int_equal(FRAME(lost, { .handle = HANDLE, .why.code = 5 }), 0);
	assert_int_equal(fx.ended, 1);
}

static void jobs(void **state)
{
	static const uint8_t terms[3 * WIRE_TERM_BYTES];

	(void)state;
	IN_STATES(ON(STREAM) | ON(STOPPING) | ON(ORPHAN), FRAME(sent, { HANDLE, 2, { terms, 2 * WIRE_TERM_BYTES } }));
	begin(REMOTE_STREAM);
	assert_int_equal(FRAME(sent, { HANDLE, 1, { terms, WIRE_TERM_BYTES } }), PTCP_EPROTO);
	assert_int_equal(FRAME(sent, { HANDLE, 3, { terms, 3 * WIRE_TERM_BYTES } }), PTCP_EPROTO);
	assert_int_equal(FRAME(unread, { .handle = HANDLE, .extent = 2, .why.code = 5 }), PTCP_EPROTO);
	assert_int_equal(FRAME(unread, { .handle = HANDLE, .extent = 1, .why.code = 5 }), 0);
	assert_int_equal(FRAME(unread, { .handle = HANDLE, .extent = 1, .why.code = 5 }), PTCP_EPROTO); /* again */
	assert_int_equal(fx.done, 0);
	assert_int_equal(FRAME(sent, { HANDLE, 2, { terms, 2 * WIRE_TERM_BYTES } }), 0);
	assert_int_equal(fx.done, 1);
	assert_int_equal(FRAME(sent, { HANDLE, 2, { terms, 2 * WIRE_TERM_BYTES } }), PTCP_EPROTO); /* no job is left */
}

/* What the mover reports of its kernel is the stream's, one report late. */
static void traffic(void **state)
{
	struct tcpinfo t;

	(void)state;
	begin(REMOTE_STREAM);
	assert_false(stream_tcpinfo(fx.r->stream, &t));
	assert_int_equal(FRAME(traffic, { .handle = HANDLE, .moved_bytes = 700, .retransmits = 3, .rtt_us = 20000,
	    .on_disk = 1 }), 0);
	assert_int_equal(stream_moved(fx.r->stream), 700);
	assert_int_equal(stream_retransmits(fx.r->stream), 3);
	assert_true(stream_on_disk(fx.r->stream));
	assert_true(stream_tcpinfo(fx.r->stream, &t));
	assert_true(t.rtt_s > 0.019 && t.rtt_s < 0.021);
	assert_int_equal(FRAME(traffic, { .handle = HANDLE, .moved_bytes = 900 }), 0);
	assert_int_equal(stream_moved(fx.r->stream), 900);
	assert_false(stream_on_disk(fx.r->stream));
	begin(REMOTE_CONNECTING); /* it has no stream yet */
	assert_int_equal(FRAME(traffic, { .handle = HANDLE, .moved_bytes = 700 }), 0);
}

/* A mover that is lost: its streams end, and are gone at once; connections in progress fail. */
static void the_end_of_a_mover(void **state)
{
	const struct ptcp_err why = { .code = PTCP_EPEER, .msg = "lost" };
	const struct {
		int state;
		unsigned ended, gone;
	} cases[] = { { REMOTE_CONNECTING, 1, 0 }, { REMOTE_CONNECTED, 0, 0 }, { REMOTE_STREAM, 1, 1 },
		{ REMOTE_STOPPING, 0, 1 },
		{ REMOTE_ORPHAN, 0, 0 } };
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin(cases[i].state);
		remote_end_all(&fx.m, &why);
		assert_int_equal(fx.ended, cases[i].ended);
		assert_int_equal(fx.gone, cases[i].gone);
		assert_null(fx.m.remote[HANDLE]);
	}
}

/* A block that the mover reports as written. */
static int wrote(uint64_t id, uint8_t what)
{
	uint8_t item[WIRE_WRITTEN_BYTES] = { 0 };

	put_u64(item, id);
	item[20] = what;
	return FRAME(wrote, { HANDLE, 1, { item, sizeof item } });
}

static void results(void **state)
{
	(void)state;
	IN_STATES(ON(STREAM) | ON(STOPPING) | ON(ORPHAN), wrote(ID, WIRE_WRITTEN_GOOD));
	IN_STATES(ON(STREAM) | ON(STOPPING) | ON(ORPHAN), FRAME(unwritten, { .handle = HANDLE, .id = ID,
	    .why.code = 5 }));
	IN_STATES(ON(CONNECTED) | ON(STREAM) | ON(STOPPING) | ON(ORPHAN), FRAME(want, { HANDLE, ID }));
	begin(REMOTE_STREAM);
	assert_int_equal(wrote(ID, WIRE_WRITTEN_CORRUPT + 1), PTCP_EPROTO);
	/* another file in its slot */
	assert_int_equal(wrote(ID + (UINT64_C(1) << 16), WIRE_WRITTEN_GOOD), PTCP_EPROTO);
	assert_int_equal(wrote(ID + 1, WIRE_WRITTEN_GOOD), PTCP_EPROTO);
	assert_int_equal(wrote(0, WIRE_WRITTEN_GOOD), PTCP_EPROTO); /* what the other slots have: no file */
	assert_int_equal(fx.delivered, 0);
	assert_int_equal(wrote(ID, WIRE_WRITTEN_CORRUPT), 0);
	assert_int_equal(fx.delivered, 1);
	assert_true(movers_close(&fx.set, ID)); /* results may be on their way until CLOSED */
	assert_int_equal(wrote(ID, WIRE_WRITTEN_GOOD), 0);
	assert_int_equal(FRAME(closed, { ID }), 0);
	assert_int_equal(wrote(ID, WIRE_WRITTEN_GOOD), PTCP_EPROTO);
	fx.set.target_ops = NULL; /* a session that sends */
	fx.known[3] = ID;
	assert_int_equal(wrote(ID, WIRE_WRITTEN_GOOD), PTCP_EPROTO);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(connections, end),
		cmocka_unit_test_teardown(of_no_stream, end),
		cmocka_unit_test_teardown(accepts, end),
		cmocka_unit_test_teardown(losses, end),
		cmocka_unit_test_teardown(jobs, end),
		cmocka_unit_test_teardown(traffic, end),
		cmocka_unit_test_teardown(the_end_of_a_mover, end),
		cmocka_unit_test_teardown(results, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
