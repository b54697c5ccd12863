/* Requests of an engine that no engine makes: streams, jobs and answers that a mover refuses. The test plays connections
 * and streams. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/byteorder.h"
#include "work/work_impl.h"

static struct {
	struct mover_process process;
	struct work w;
	struct outbox out;
	struct connect_opts connecting; /* of the last connection */
	struct stream_opts attached;
	struct stream_job job;
	bool busy;                      /* all jobs of the stream are in use */
	unsigned sent, passed, checked, stopped;
	struct wire_stream stream;
	struct ptcp_err e;
} fx;

struct outbox *mover_link_out(struct mover_link *k) { (void)k; return &fx.out; }
void work_end(struct work *w, const struct ptcp_err *why) { (void)w; (void)why; }
void work_step_ended(struct work *w) { (void)w; }

int connect_start(struct connect **out, const struct connect_opts *o, struct ptcp_err *e)
{
	(void)e;
	fx.connecting = *o;
	*out = (struct connect *)&fx;
	return 0;
}

void connect_cancel(struct connect *c) { (void)c; }
void connect_pass(struct connect *c, const uint8_t *grant, size_t n) { (void)c; (void)grant; (void)n; fx.passed++; }

int chan_fd(const struct chan *c) { (void)c; return -1; }
void chan_free(struct chan *c) { (void)c; }
const char *chan_fingerprint(const struct chan *c) { (void)c; return ""; }
int chan_export(struct chan *c, uint8_t out[32], struct ptcp_err *e) { (void)c; (void)out; (void)e; return 0; }
size_t chan_write(struct chan *c, const void *p, size_t n) { (void)c; (void)p; return n; }

int stream_new(struct stream **out, const struct stream_opts *o, struct ptcp_err *e)
{
	(void)e;
	fx.attached = *o;
	*out = (struct stream *)&fx;
	return 0;
}

void stream_free(struct stream *s) { (void)s; }
struct stream_job *stream_free_job(struct stream *s) { (void)s; return fx.busy ? NULL : &fx.job; }
void stream_send(struct stream *s) { (void)s; fx.sent++; }
bool stream_on_disk(const struct stream *s) { (void)s; return false; }
uint64_t stream_moved(const struct stream *s) { (void)s; return 0; }
void stream_check(struct stream *s, uint64_t silent_ns, bool unacked) { (void)s; (void)silent_ns; (void)unacked; fx.checked++; }
const struct mtu_lost *stream_lost(const struct stream *s) { (void)s; return NULL; }
void stream_known(struct stream *s) { (void)s; }

void stream_stop(struct stream *s, bool reset)
{
	(void)reset;
	fx.stopped++;
	fx.attached.ops->gone(fx.attached.arg, s);
}

/* ---- Requests ---- */

static struct span text(const char *s) { return (struct span){ (const uint8_t *)s, strlen(s) }; }

static char top[] = "/tmp/ptcp-work-streams.XXXXXX";

static int set_up(void **state)
{
	char path[64];
	FILE *f;

	(void)state;
	if (mkdtemp(top) == NULL)
		return -1;
	snprintf(path, sizeof path, "%s/a", top);
	if ((f = fopen(path, "w")) == NULL)
		return -1;
	fputs("inside", f);
	return fclose(f);
}

static int tear_down(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", top);
	return system(command);
}

/* A mover of a transfer, which sends the files of one directory. */
static void begin(void)
{
	struct invitation v = { .root = { top }, .n_roots = 1 };

	memset(&fx, 0, sizeof fx);
	list_init(&fx.w.streams);
	fx.w.process = &fx.process;
	work_targets_init(&fx.w.targets);
	assert_int_equal(work_files_open(&fx.w.files, &v, 0, NULL), 0);
	fx.stream = (struct wire_stream){ .handle = 7, .cipher = PTCP_CIPHER_AES128GCM, .port = 7811, .host = text("192.0.2.1") };
}

static void end(void)
{
	unsigned i;

	for (i = 0; i < fx.job.job.n; i++)
		source_unref(fx.job.source[i]);
	work_stop_streams(&fx.w);
	work_files_fini(&fx.w.files);
	work_targets_fini(&fx.w.targets);
	buf_fini(&fx.out.b);
}

static int stream(void) { return work_on_stream(&fx.w, &fx.stream, &fx.e); }

/* The stream is connected. */
static void connected(void)
{
	const struct connect_result r = { .chan = (struct chan *)&fx };

	assert_int_equal(stream(), 0);
	fx.connecting.done(fx.connecting.arg, &r);
}

static void streams(void **state)
{
	struct work_session session = { .streams = 1 };

	(void)state;
	begin();
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
	end();
}

static void relays(void **state)
{
	(void)state;
	begin();
	fx.stream.relays = text("192.0.2.2:1,192.0.2.2:1,192.0.2.2:1,192.0.2.2:1,192.0.2.2:1,192.0.2.2:1,192.0.2.2:1,192.0.2.2:1,"
	    "192.0.2.2:1,192.0.2.2:1,192.0.2.2:1,192.0.2.2:1,192.0.2.2:1,192.0.2.2:1,192.0.2.2:1,192.0.2.2:1,192.0.2.2:1");
	assert_int_equal(stream(), PTCP_EPROTO);
	fx.stream.relays = text("192.0.2.2");
	assert_int_equal(stream(), PTCP_EPROTO);
	fx.stream.relays = text("192.0.2.2:0");
	assert_int_equal(stream(), PTCP_EPROTO);
	assert_int_equal(fx.w.n_streams, 0);
	assert_int_equal(work_on_pass(&fx.w, &(struct wire_pass){ .handle = 7 }, &fx.e), PTCP_EPROTO);
	fx.stream.relays = text("");
	assert_int_equal(stream(), 0);
	assert_int_equal(work_on_pass(&fx.w, &(struct wire_pass){ .handle = 7 }, &fx.e), PTCP_EPROTO); /* it has no relay */
	assert_int_equal(fx.passed, 0);
	fx.stream.handle = 8;
	fx.stream.relays = text("192.0.2.2:1");
	assert_int_equal(stream(), 0);
	assert_int_equal(work_on_pass(&fx.w, &(struct wire_pass){ .handle = 8 }, &fx.e), 0);
	assert_int_equal(fx.passed, 1);
	end();
}

static void unknown_streams(void **state)
{
	(void)state;
	begin();
	connected();
	assert_int_equal(work_on_send(&fx.w, &(struct wire_send){ .handle = 8 }, &fx.e), PTCP_EPROTO);
	assert_int_equal(work_on_check(&fx.w, &(struct wire_check){ .handle = 8 }, &fx.e), PTCP_EPROTO);
	assert_int_equal(work_on_stop(&fx.w, &(struct wire_stop){ .handle = 8 }, &fx.e), PTCP_EPROTO);
	assert_int_equal(fx.sent + fx.checked + fx.stopped, 0);
	assert_int_equal(work_on_check(&fx.w, &(struct wire_check){ .handle = 7 }, &fx.e), 0);
	assert_int_equal(fx.checked, 1);
	end();
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
	struct wire_source source = { .id = id, .size_bytes = 6, .path = text("a") };

	(void)state;
	begin();
	connected();
	assert_int_equal(job(id, 0, 0, 6), PTCP_EPROTO); /* of no file */
	assert_int_equal(work_files_add(&fx.w.files, &source, NULL, &fx.e), 0);
	assert_int_equal(job(id + 1, 0, 0, 6), PTCP_EPROTO);
	assert_int_equal(job(id, 0, 0, 5), PTCP_EPROTO);
	assert_int_equal(job(id, 1, 0, 6), PTCP_EPROTO);
	assert_int_equal(job(id, 0, 1, 6), PTCP_EPROTO);
	fx.busy = true;
	assert_int_equal(job(id, 0, 0, 6), PTCP_EPROTO);
	fx.busy = false;
	fx.w.receives = true;
	assert_int_equal(job(id, 0, 0, 6), PTCP_EPROTO);
	fx.w.receives = false;
	assert_int_equal(fx.sent, 0);
	assert_int_equal(job(id, 0, 0, 6), 0);
	assert_int_equal(fx.sent, 1);
	end();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams), cmocka_unit_test(relays), cmocka_unit_test(unknown_streams), cmocka_unit_test(jobs),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
