#include "fixture.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/fd.h"
#include "patience.h"
#include "store/hash.h"

struct sf sf;

/* ---- Reports ---- */

static void on_sent(void *arg, struct stream *s, struct stream_job *job)
{
	unsigned i;

	(void)arg;
	assert_ptr_equal(s, sf.stream);
	sf.sent = *job;
	for (i = 0; i < job->job.n; i++)
		sf.unread[i] = job->why[i] != NULL ? *job->why[i] : (struct ptcp_err){ 0 };
	sf.n_sent++;
}

static void on_idle(void *arg, struct stream *s)
{
	(void)arg;
	(void)s;
}

static void on_received(void *arg, struct stream *s, struct stream_results *r)
{
	unsigned i;

	(void)arg;
	assert_ptr_equal(s, sf.stream);
	assert_in_range(r->n, 1, STREAM_RESULTS);
	for (i = 0; i < r->n; i++) {
		assert_in_range(sf.n_results, 0, SF_RESULTS - 1);
		sf.result[sf.n_results].id = r->of[i].id;
		sf.result[sf.n_results].block = r->of[i].block;
		sf.result[sf.n_results].what = r->of[i].what;
		sf.result[sf.n_results].omitted_bytes = r->of[i].omitted_bytes;
		sf.result[sf.n_results].hash = r->of[i].hash;
		sf.result[sf.n_results].term = r->of[i].term;
		if (r->of[i].why != NULL)
			sf.result[sf.n_results].why = *r->of[i].why;
		free(r->of[i].why);
		sf.n_results++;
	}
}

static enum part_holder on_locked(void *arg, uint64_t dev, uint64_t ino, struct mono since, bool alone)
{
	(void)arg;
	(void)dev;
	(void)ino;
	(void)since;
	(void)alone;
	sf.n_locked++;
	return sf.holder;
}

static void on_lost(void *arg, struct stream *s, const struct ptcp_err *why)
{
	(void)arg;
	assert_ptr_equal(s, sf.stream);
	sf.lost = *why;
	sf.n_lost++;
}

static void on_gone(void *arg, struct stream *s)
{
	(void)arg;
	stream_free(s);
	sf.stream = NULL;
	sf.n_gone++;
}

static const struct stream_ops ops = { .sent = on_sent, .idle = on_idle, .received = on_received, .locked = on_locked,
	.lost = on_lost, .gone = on_gone };

/* ---- The context ---- */

int sf_setup(void **state)
{
	struct loop *l;

	if (loop_new(&l, NULL) < 0) /* libuv's first loop opens descriptors that stay */
		return -1;
	loop_free(l);
	if (fx_tree_setup(state) != 0)
		return -1;
	alarm(patience_s(20));
	memset(&sf, 0, sizeof sf);
	sf.peer = -1;
	open_files_init(&sf.files);
	if (loop_new(&sf.control, NULL) < 0 || context_init(&sf.context, sf.control, fx_path("config"),
	    2, 0, 0, NULL) < 0)
		return -1;
	sf.o = (struct stream_opts){ .context = &sf.context, .verify = true, .only_stream = true, .ops = &ops };
	return 0;
}

int sf_teardown(void **state)
{
	sf_stop();
	context_fini(&sf.context);
	loop_free(sf.control);
	open_files_fini(&sf.files);
	alarm(0);
	return fx_tree_teardown(state);
}

void sf_wait(const unsigned *count, unsigned n)
{
	while (*count < n)
		loop_run_once(sf.control, true);
}

void sf_wait_lost(int code, const char *text)
{
	sf_wait(&sf.n_lost, 1);
	if (sf.lost.code != code || strstr(sf.lost.msg, text) == NULL)
		fail_msg("%d \"%s\" is not %d \"%s\"", sf.lost.code, sf.lost.msg, code, text);
}

static void connect_pair(int fd[2])
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof sa;
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(s, (struct sockaddr *)&sa, n), 0);
	assert_int_equal(listen(s, 1), 0);
	assert_int_equal(getsockname(s, (struct sockaddr *)&sa, &n), 0);
	fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd[0], (struct sockaddr *)&sa, n), 0);
	fd[1] = accept4(s, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	assert_true(fd[1] >= 0);
	fd_close(&s);
}

void sf_start(void)
{
	static const struct chan_ops none = { 0 };
	const struct chan_opts c = { .ops = &none };
	int fd[2];

	connect_pair(fd);
	sf.peer = fd[0];
	assert_int_equal(chan_new(&sf.o.chan, NULL, NULL, &fd[1], &c, NULL), 0);
	assert_int_equal(stream_new(&sf.stream, &sf.o, NULL), 0);
}

void sf_stop(void)
{
	if (sf.stream != NULL) {
		stream_stop(sf.stream, false);
		sf_wait(&sf.n_gone, 1);
	}
	sf.n_gone = 0;
	fd_close(&sf.peer);
}

/* ---- Files and frames ---- */

uint8_t sf_byte(uint64_t i) { return (uint8_t)(i * 7 + i / 251 + (i >> 16)); }

struct sink *sf_sink(const char *name, struct wire_grid g)
{
	const struct meta m = { 0 };
	const struct sink_opts o = { .block_bytes = g.block_bytes, .has_version = true };
	struct sink *s = sink_new(fx_root, name, g.size_bytes, &m, &o);

	assert_non_null(s);
	return s;
}

void sf_put_raw(const void *p, size_t n)
{
	size_t done = 0;
	ssize_t r;

	while (done < n) {
		r = send(sf.peer, (const uint8_t *)p + done, n - done, MSG_NOSIGNAL);
		assert_true(r > 0);
		done += (size_t)r;
	}
}

static void fill(uint8_t *p, uint64_t offset, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		p[i] = sf_byte(offset + i);
}

void sf_put_end(uint64_t id, uint64_t offset, uint32_t n, uint32_t status, uint64_t check_xor)
{
	static uint8_t frame[WIRE_BLOCK_HEAD_BYTES + WIRE_CHUNK_BYTES + WIRE_BLOCK_END_BYTES];
	const struct wire_block b = { id, offset, n, 0, false };
	struct wire_block_end end = { .status = status };

	assert_in_range(n, 1, WIRE_CHUNK_BYTES);
	wire_block_encode(frame, &b);
	fill(frame + WIRE_BLOCK_HEAD_BYTES, offset, n);
	end.check = hash_check(frame + WIRE_HEADER_BYTES, hash_content(frame + WIRE_BLOCK_HEAD_BYTES, n)) ^ check_xor;
	wire_block_end_encode(frame + WIRE_BLOCK_HEAD_BYTES + n, &end);
	sf_put_raw(frame, WIRE_BLOCK_HEAD_BYTES + n + WIRE_BLOCK_END_BYTES);
}

void sf_put(uint64_t id, uint64_t offset, uint32_t n) { sf_put_end(id, offset, n, WIRE_BLOCK_GOOD, 0); }

uint64_t sf_block_hash(uint64_t offset, uint32_t n)
{
	static uint8_t chunk[HASH_CHUNK_BYTES];
	struct block_hash h = { 0 };
	uint32_t at, part;

	for (at = 0; at < n; at += part) {
		part = n - at < sizeof chunk ? n - at : sizeof chunk;
		fill(chunk, offset + at, part);
		block_hash_add(&h, hash_content(chunk, part));
	}
	return block_hash_end(&h);
}

struct digest sf_term(struct wire_grid g, uint32_t block)
{
	uint32_t n = wire_grid_length(g, block);

	return hash_term(block, n, sf_block_hash((uint64_t)block * g.block_bytes, n));
}
