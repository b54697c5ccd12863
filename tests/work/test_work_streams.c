/* Requests of an engine: streams, jobs and answers that no engine makes, which a mover refuses, and those that it
 * carries out. The other end of the streams accepts the session's key, and no relayed connection. The test plays the
 * link to the engine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conn/join_proof.h"
#include "core/byteorder.h"
#include "core/units.h"
#include "patience.h"
#include "store/fixture.h"
#include "work/work_impl.h"

#define LIMIT_S 60
#define CIPHERS (1u << PTCP_CIPHER_AES128GCM)

static struct {
	struct loop *loop;
	struct context peer;       /* the other end */
	struct pending pending;
	struct listener *listener;
	struct chan *joined;       /* its end of the stream */
	struct mover_process process;
	struct work w;
	struct outbox out;         /* frames for the engine */
	struct wire_stream stream; /* the next request */
	struct ptcp_err e;
} fx;

struct outbox *mover_link_out(struct mover_link *k) { (void)k; return &fx.out; }
void work_end(struct work *w, const struct ptcp_err *why) { (void)w; (void)why; }
void work_step_ended(struct work *w) { (void)w; }

/* ---- The other end ---- */

static int on_join(void *arg, struct inbound *g, const struct wire_join *j, bool *plaintext, struct ptcp_err *e)
{
	(void)arg;
	*plaintext = false;
	assert_memory_equal(j->session, fx.stream.session, sizeof j->session);
	assert_int_equal(j->stream, fx.stream.number);
	return join_proof_valid(g->chan, j, fx.stream.key, NULL) ? 0 : err_set(e, PTCP_EREFUSED, "another key");
}

static void on_stream(void *arg, struct chan *c, const struct wire_join *j)
{
	(void)arg;
	(void)j;
	assert_null(fx.joined);
	chan_detach(c);
	fx.joined = c;
}

static const struct inbound_ops inbound_ops = { .join = on_join, .stream = on_stream };

static void on_accepted(void *arg, int *fd, const char *address)
{
	(void)arg;
	pending_take(&fx.pending, fd, address, false);
}

static void until(bool (*holds)(void))
{
	while (!holds())
		loop_run_once(fx.loop, true);
}

/* ---- The mover ---- */

static struct span text(const char *s) { return (struct span){ (const uint8_t *)s, strlen(s) }; }

/* Of a transfer: it sends the files of one directory. */
static int set_up(void **state)
{
	struct pending_opts o = { .context = &fx.peer, .timeout_ns = LIMIT_S * NS_PER_S, .waiting = 64,
		.sessions = 4, .streams = 64, .ops = &inbound_ops };
	struct invitation v = { .n_roots = 1 };
	struct loop *first;

	if (loop_new(&first, NULL) < 0) /* libuv's first loop opens descriptors that stay */
		return -1;
	loop_free(first);
	memset(&fx, 0, sizeof fx);
	if (fx_setup(state) != 0)
		return -1;
	alarm(patience_s(LIMIT_S));
	fx_mkdir("mover");
	fx_mkdir("peer");
	fx_mkdir("from");
	fx_text("from/a", "inside");
	v.root[0] = (char *)fx_path("from");
	list_init(&fx.w.streams);
	fx.w.process = &fx.process;
	work_targets_init(&fx.w.targets);
	if (work_files_open(&fx.w.files, &v, 0, NULL) < 0 || loop_new(&fx.loop, NULL) < 0 ||
	    context_init(&fx.process.context, fx.loop, fx_path("mover"), 1, CIPHERS, 0, NULL) < 0 ||
	    context_init(&fx.peer, fx.loop, fx_path("peer"), 1, 0, CIPHERS, NULL) < 0 ||
	    pending_init(&fx.pending, &o, NULL) < 0 ||
	    listener_new(&fx.listener, fx.loop, "127.0.0.1:0", 0, on_accepted, NULL, NULL) < 0)
		return -1;
	fx.stream = (struct wire_stream){ .handle = 7, .number = 3, .cipher = PTCP_CIPHER_AES128GCM,
	    .connect_ms = 1000 * LIMIT_S,
		.timeout_ms = 1000 * LIMIT_S, .port = (uint16_t)listener_port(fx.listener),
		.host = text("127.0.0.1"), .key = "key", .session = "session" };
	identity_digest(fx.stream.peer, fx.peer.identity.fingerprint);
	return 0;
}

static bool no_streams(void) { return fx.w.n_streams == 0; }

static int tear_down(void **state)
{
	work_stop_streams(&fx.w);
	until(no_streams);
	chan_free(fx.joined);
	pending_empty(&fx.pending);
	pending_fini(&fx.pending);
	listener_free(fx.listener);
	work_files_fini(&fx.w.files);
	work_targets_fini(&fx.w.targets);
	context_fini(&fx.process.context);
	context_fini(&fx.peer);
	buf_fini(&fx.out.b);
	loop_free(fx.loop);
	alarm(0);
	return fx_teardown(state);
}

/* Whether the mover has written such a frame; its content. */
static bool written(enum wire_type type, struct span *out)
{
	const uint8_t *p = buf_head(&fx.out.b), *end = p + buf_len(&fx.out.b);
	struct wire_header h;

	for (; p < end; p += WIRE_HEADER_BYTES + h.length) {
		assert_int_equal(wire_header_decode(&h, p, &fx.e), 0);
		if (h.type == type && out != NULL)
			*out = (struct span){ p + WIRE_HEADER_BYTES, h.length };
		if (h.type == type)
			return true;
	}
	return false;
}

static bool is_connected(void) { return written(WIRE_CONNECTED, NULL) || written(WIRE_LOST, NULL); }
static bool is_asked(void) { return written(WIRE_HOP, NULL) || written(WIRE_LOST, NULL); }
static bool is_joined(void) { return fx.joined != NULL; }
static bool is_lost(void) { return written(WIRE_LOST, NULL); }
static bool is_gone(void) { return written(WIRE_GONE, NULL); }
static bool is_sent(void) { return written(WIRE_SENT, NULL) || written(WIRE_LOST, NULL); }

static int stream(void) { return work_on_stream(&fx.w, &fx.stream, &fx.e); }

static void connected(void)
{
	assert_int_equal(stream(), 0);
	until(is_connected);
	assert_true(written(WIRE_CONNECTED, NULL));
	until(is_joined);
}

/* ---- Requests ---- */

static void streams(void **state)
{
	struct work_session session = { .streams = 1 };

	(void)state;
	fx.stream.cipher = PTCP_CIPHER_NONE + 1;
	assert_int_equal(stream(), PTCP_EPROTO);
	fx.stream.cipher = PTCP_CIPHER_NONE;
	fx.stream.flags = WIRE_STREAM_AHEAD; /* data before JOINED, unencrypted */
	assert_int_equal(stream(), PTCP_EPROTO);
	fx.stream.cipher = PTCP_CIPHER_AES128GCM;
	fx.stream.flags = WIRE_STREAM_RECEIVE;
	assert_int_equal(stream(), PTCP_EPROTO);
	fx.stream.flags = 0;
	fx.w.receives = true;
	assert_int_equal(stream(), PTCP_EPROTO);
	fx.w.receives = false;
	fx.w.session = &session; /* its streams are accepted */
	assert_int_equal(stream(), PTCP_EPROTO);
	fx.w.session = NULL;
	assert_int_equal(fx.w.n_streams, 0);
	assert_int_equal(stream(), 0);
	assert_int_equal(stream(), PTCP_EPROTO); /* the same handle */
	assert_int_equal(fx.w.n_streams, 1);
	for (fx.stream.handle = 8; fx.w.n_streams < 4 * PTCP_STREAMS_MAX; fx.stream.handle++)
		assert_int_equal(stream(), 0);
	assert_int_equal(stream(), PTCP_EPROTO); /* one too many */
}

/* The engine decides whether the relay is trusted; the test's is none. */
static void relays(void **state)
{
	char many[WIRE_RELAYS_MAX] = "192.0.2.2:1", relay[40];
	unsigned i;

	(void)state;
	for (i = 0; i < CONNECT_RELAYS_MAX; i++)
		strcat(many, ",192.0.2.2:1");
	fx.stream.relays = text(many);
	assert_int_equal(stream(), PTCP_EPROTO);
	fx.stream.relays = text("192.0.2.2");
	assert_int_equal(stream(), PTCP_EPROTO);
	fx.stream.relays = text("192.0.2.2:0");
	assert_int_equal(stream(), PTCP_EPROTO);
	assert_int_equal(fx.w.n_streams, 0);
	assert_int_equal(work_on_pass(&fx.w, &(struct wire_pass){ .handle = 7 }, &fx.e), PTCP_EPROTO);
	fx.stream.relays = text("");
	assert_int_equal(stream(), 0);
	/* it has no relay */
	assert_int_equal(work_on_pass(&fx.w, &(struct wire_pass){ .handle = 7 }, &fx.e), PTCP_EPROTO);
	fx.stream.handle = 8;
	snprintf(relay, sizeof relay, "127.0.0.1:%u", listener_port(fx.listener));
	fx.stream.relays = text(relay);
	assert_int_equal(stream(), 0);
	until(is_asked);
	assert_true(written(WIRE_HOP, NULL));
	assert_int_equal(work_on_pass(&fx.w, &(struct wire_pass){ .handle = 8 }, &fx.e), 0);
	until(is_lost);
	/* the engine does not know yet */
	assert_int_equal(work_on_pass(&fx.w, &(struct wire_pass){ .handle = 8 }, &fx.e), 0);
}

static void unknown_streams(void **state)
{
	(void)state;
	connected();
	assert_int_equal(work_on_send(&fx.w, &(struct wire_send){ .handle = 8 }, &fx.e), PTCP_EPROTO);
	assert_int_equal(work_on_check(&fx.w, &(struct wire_check){ .handle = 8 }, &fx.e), PTCP_EPROTO);
	assert_int_equal(work_on_stop(&fx.w, &(struct wire_stop){ .handle = 8 }, &fx.e), PTCP_EPROTO);
	assert_int_equal(work_on_check(&fx.w, &(struct wire_check){ .handle = 7, .silent_ns = LIMIT_S * NS_PER_S },
	    &fx.e), 0);
	assert_int_equal(work_on_stop(&fx.w, &(struct wire_stop){ .handle = 7 }, &fx.e), 0);
	until(is_gone);
	assert_false(written(WIRE_LOST, NULL));
	assert_int_equal(fx.w.n_streams, 0);
}

/* A peer that may not be silent at all is lost, as soon as the clock of the kernel says so. */
static void silent_streams(void **state)
{
	(void)state;
	connected();
	while (!is_lost()) {
		assert_int_equal(work_on_check(&fx.w, &(struct wire_check){ .handle = 7 }, &fx.e), 0);
		loop_run_once(fx.loop, false);
	}
	assert_int_equal(work_on_stop(&fx.w, &(struct wire_stop){ .handle = 7 }, &fx.e), 0);
	until(is_gone);
}

/* A job with one block. */
static int job(uint64_t id, uint64_t offset, uint32_t block, uint32_t length)
{
	uint8_t extent[WIRE_EXTENT_BYTES];

	put_u64(extent, id);
	put_u64(extent + 8, offset);
	put_u32(extent + 16, block);
	put_u32(extent + 20, length);
	return work_on_send(&fx.w, &(struct wire_send){ 7, 1, { extent, sizeof extent } }, &fx.e);
}

static void jobs(void **state)
{
	const uint64_t id = UINT64_C(1) << 16 | 3;
	struct wire_source source = { .id = id, .path = text("a") };
	struct wire_sent f;
	struct span content;
	struct stat st;
	unsigned i;

	(void)state;
	assert_int_equal(stat(fx_path("from/a"), &st), 0);
	source.size_bytes = (uint64_t)st.st_size;
	source.ino = st.st_ino;
	source.mtime_s = st.st_mtim.tv_sec;
	source.mtime_ns = (uint32_t)st.st_mtim.tv_nsec;
	source.ctime_s = st.st_ctim.tv_sec;
	source.ctime_ns = (uint32_t)st.st_ctim.tv_nsec;
	connected();
	assert_int_equal(job(id, 0, 0, 6), PTCP_EPROTO); /* of no file */
	assert_int_equal(work_files_add(&fx.w.files, &source, NULL, &fx.e), 0);
	assert_int_equal(job(id + 1, 0, 0, 6), PTCP_EPROTO);
	assert_int_equal(job(id, 0, 0, 5), PTCP_EPROTO);
	assert_int_equal(job(id, 1, 0, 6), PTCP_EPROTO);
	assert_int_equal(job(id, 0, 1, 6), PTCP_EPROTO);
	fx.w.receives = true;
	assert_int_equal(job(id, 0, 0, 6), PTCP_EPROTO);
	fx.w.receives = false;
	for (i = 0; i < STREAM_JOBS; i++)
		assert_int_equal(job(id, 0, 0, 6), 0);
	assert_int_equal(job(id, 0, 0, 6), PTCP_EPROTO); /* one too many */
	until(is_sent);
	assert_true(written(WIRE_SENT, &content));
	assert_int_equal(wire_sent_decode(&f, content, &fx.e), 0);
	assert_int_equal(f.handle, 7);
	assert_int_equal(f.n, 1);
	assert_false(written(WIRE_UNREAD, NULL));
	assert_int_equal(job(id, 0, 0, 6), 0);
}

#define test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		test(streams), test(relays), test(unknown_streams), test(silent_streams),
		test(jobs),
	};

	return cmocka_run_group_tests_name("work/work_streams", tests, NULL, NULL);
}
