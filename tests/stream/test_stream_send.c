/* What a sending stream makes of its jobs, and of what its peer sends: the test reads the frames from a connection. */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/byteorder.h"
#include "store/hash.h"

#define CHUNK WIRE_CHUNK_BYTES

static struct source *source;

/* The file of the test's content as a walk lists it. */
static struct source *listed(const char *name, size_t n)
{
	uint8_t *content = malloc(n);
	struct walk_entry e;
	struct source *s;
	struct walk *w;
	size_t i;

	for (i = 0; i < n; i++)
		content[i] = sf_byte(i);
	fx_write(name, content, n);
	free(content);
	assert_int_equal(walk_new(&w, NULL, NULL), 0);
	assert_int_equal(walk_add(w, fx_root, name, NULL), 0);
	assert_int_equal(walk_next(w, &e, NULL), 1);
	s = source_new(&e);
	walk_free(w);
	return s;
}

static int setup(void **state)
{
	source = NULL;
	return sf_setup(state);
}

static int teardown(void **state)
{
	sf_stop();
	source_unref(source);
	return sf_teardown(state);
}

#define send_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static struct stream_job *new_job(void)
{
	struct stream_job *job = stream_free_job(sf.stream);

	assert_non_null(job);
	job->job.n = 0;
	return job;
}

static void add(struct stream_job *job, struct source *s, uint32_t block, uint64_t offset, uint32_t n)
{
	unsigned i = job->job.n++;

	job->job.extent[i] = (struct snd_extent){ .id = SF_ID, .offset = offset, .block = block, .length = n };
	job->source[i] = source_ref(s);
}

static void read_all(void *p, size_t n) { assert_int_equal(recv(sf.peer, p, n, MSG_WAITALL), n); }

static uint32_t packed_bytes; /* of the latest frame */
static uint64_t omitted;      /* its pieces that were left out; these bytes are not examined */

/* The next frame; returns its status. */
static uint32_t expect_frame(uint64_t offset, uint32_t n)
{
	static uint8_t frame[WIRE_BLOCK_HEAD_BYTES + CHUNK];
	uint8_t tail[WIRE_BLOCK_END_BYTES], *data = frame + WIRE_BLOCK_HEAD_BYTES;
	struct wire_block_end end;
	struct wire_block b;
	uint32_t i;

	read_all(frame, WIRE_BLOCK_HEAD_BYTES);
	assert_int_equal(wire_block_decode(&b, frame, NULL), 0);
	assert_int_equal(b.id, SF_ID);
	assert_int_equal(b.offset, offset);
	assert_int_equal(b.length_bytes, n);
	read_all(data, wire_block_data_bytes(&b));
	read_all(tail, sizeof tail);
	assert_int_equal(wire_block_end_decode(&end, tail, NULL), 0);
	if (end.status == WIRE_BLOCK_VOID)
		return end.status;
	packed_bytes = b.packed_bytes;
	omitted = b.patch ? get_u64(data + b.packed_bytes - WIRE_OMIT_BYTES) : 0;
	if (b.patch && b.packed_bytes - WIRE_OMIT_BYTES < wire_patch_bytes(n, omitted))
		assert_int_equal(packing_unpack(NULL, data, b.packed_bytes - WIRE_OMIT_BYTES, wire_patch_bytes(n,
		    omitted)), 0);
	if (b.patch) {
		wire_patch_spread(data, n, omitted);
		for (i = 0; i < n; i++)
			if (omitted >> i / WIRE_BLOCK_PIECE_BYTES & 1)
				data[i] = sf_byte(offset + i);
	} else if (b.packed_bytes > 0)
		assert_int_equal(packing_unpack(NULL, data, b.packed_bytes, n), 0);
	for (i = 0; i < n; i++)
		if (data[i] != sf_byte(offset + i))
			fail_msg("byte %u of the frame at %llu differs", i, (unsigned long long)offset);
	assert_int_equal(end.check, sf.o.verify ? hash_check(frame + WIRE_HEADER_BYTES, hash_content(data, n)) : 0);
	return end.status;
}

/* A job of several blocks: a frame for each, in order; then the terms for the digest of the file. */
static void a_job(void **state)
{
	const struct wire_grid g = { 3 * CHUNK, CHUNK };
	struct stream_job *job;
	struct digest term;
	unsigned i;

	(void)state;
	source = listed("from", 3 * CHUNK);
	sf_start();
	job = new_job();
	for (i = 0; i < 3; i++)
		add(job, source, i, (uint64_t)i * CHUNK, CHUNK);
	stream_send(sf.stream);
	for (i = 0; i < 3; i++)
		assert_int_equal(expect_frame((uint64_t)i * CHUNK, CHUNK), WIRE_BLOCK_GOOD);
	sf_wait(&sf.n_sent, 1);
	assert_int_equal(sf.sent.job.n, 3);
	for (i = 0; i < 3; i++) {
		term = sf_term(g, i);
		assert_false(sf.sent.failed[i]);
		assert_memory_equal(&sf.sent.term[i], &term, sizeof term);
	}
	assert_int_equal(stream_moved(sf.stream), 3 * (WIRE_BLOCK_HEAD_BYTES + CHUNK + WIRE_BLOCK_END_BYTES));
}

/* Without pieces that the receiver has; the hash, the term and the check are of the whole block. */
static void patches(void **state)
{
	static const uint64_t omit[] = { 1, UINT64_C(1) << 63, 0xff00ff, UINT64_MAX, UINT64_MAX - 2 };
	const struct wire_grid g = { CHUNK + 5000, CHUNK };
	struct stream_job *job;
	struct digest term;
	unsigned i, packs;

	(void)state;
	source = listed("from", g.size_bytes);
	assert_int_equal(packing_new(&sf.o.packing, 1, NULL, NULL), 0);
	for (packs = 0; packs < 2; packs++) {
		packing_set(sf.o.packing, packs);
		sf.n_sent = 0;
		sf_start();
		for (i = 0; i < 6; i++) {
			job = new_job();
			add(job, source, i == 5, i == 5 ? CHUNK : 0, i == 5 ? 5000 : CHUNK);
			job->job.extent[0].omit = i == 5 ? 2 : omit[i];
			stream_send(sf.stream);
			assert_int_equal(expect_frame(i == 5 ? CHUNK : 0, i == 5 ? 5000 : CHUNK), WIRE_BLOCK_GOOD);
			assert_true(omitted == (i == 5 ? 2 : omit[i]) && packed_bytes >= WIRE_OMIT_BYTES);
			sf_wait(&sf.n_sent, i + 1);
			term = sf_term(g, i == 5);
			assert_memory_equal(&sf.sent.term[0], &term, sizeof term);
		}
		sf_stop();
	}
	packing_free(sf.o.packing);
	sf.o.packing = NULL;
}

/* A block longer than a chunk has a frame for each chunk. */
static void a_large_block(void **state)
{
	const struct wire_grid g = { 3 * CHUNK + 100, 4 * CHUNK };
	struct digest term;

	(void)state;
	source = listed("from", g.size_bytes);
	sf_start();
	add(new_job(), source, 0, 0, 3 * CHUNK + 100);
	stream_send(sf.stream);
	expect_frame(0, CHUNK);
	expect_frame(CHUNK, CHUNK);
	expect_frame(2 * CHUNK, CHUNK);
	expect_frame(3 * CHUNK, 100);
	sf_wait(&sf.n_sent, 1);
	term = sf_term(g, 0);
	assert_memory_equal(&sf.sent.term[0], &term, sizeof term);
}

/* Compressed chunks, with and without verification: data is not sent from the file then. Hashes and terms are of the
 * data. */
static void compressed(void **state)
{
	const struct wire_grid g = { 2 * CHUNK + 1000, CHUNK };
	struct stream_job *job;
	struct digest term;
	unsigned i, verify;

	(void)state;
	source = listed("from", g.size_bytes);
	assert_int_equal(packing_new(&sf.o.packing, 1, NULL, NULL), 0);
	packing_set(sf.o.packing, 1);
	for (verify = 0; verify < 2; verify++) {
		sf.o.verify = verify;
		sf.n_sent = 0;
		sf_start();
		job = new_job();
		for (i = 0; i < 3; i++)
			add(job, source, i, (uint64_t)i * CHUNK, wire_grid_length(g, i));
		stream_send(sf.stream);
		for (i = 0; i < 3; i++) {
			assert_int_equal(expect_frame((uint64_t)i * CHUNK, wire_grid_length(g, i)), WIRE_BLOCK_GOOD);
			assert_in_range(packed_bytes, 1, wire_grid_length(g, i) / 2);
		}
		sf_wait(&sf.n_sent, 1);
		for (i = 0; i < 3 && verify; i++) {
			term = sf_term(g, i);
			assert_memory_equal(&sf.sent.term[i], &term, sizeof term);
		}
		sf_stop();
	}
	assert_int_equal(packing_counts(sf.o.packing).from_bytes, 2 * g.size_bytes);
	packing_free(sf.o.packing);
	sf.o.packing = NULL;
}

/* Without verification the data may go from the file to the socket, without a check and a term. */
static void unverified(void **state)
{
	(void)state;
	source = listed("from", 2 * CHUNK);
	sf.o.verify = false;
	sf_start();
	add(new_job(), source, 0, 0, 2 * CHUNK);
	stream_send(sf.stream);
	expect_frame(0, CHUNK);
	expect_frame(CHUNK, CHUNK);
	sf_wait(&sf.n_sent, 1);
	assert_int_equal(sf.sent.term[0].hi | sf.sent.term[0].lo, 0);
	assert_false(sf.sent.failed[0]);
}

/* A block that cannot be read leaves no frame; the rest of the job is sent. */
static void an_unreadable_file(void **state)
{
	struct source *gone = listed("gone", 1000);
	struct stream_job *job;

	(void)state;
	source = listed("from", 1000);
	assert_int_equal(unlink(fx_path("gone")), 0);
	sf_start();
	job = new_job();
	add(job, source, 0, 0, 400);
	add(job, gone, 0, 0, 1000);
	add(job, source, 0, 400, 600);
	stream_send(sf.stream);
	expect_frame(0, 400);
	expect_frame(400, 600);
	sf_wait(&sf.n_sent, 1);
	assert_false(sf.sent.failed[0] || sf.sent.failed[2]);
	assert_true(sf.sent.failed[1]);
	assert_true(sf.unread[1].code < 0 && sf.unread[1].msg[0] != '\0');
	assert_null(strstr(sf.unread[1].msg, "gone")); /* the report names the file */
	source_unref(gone);
}

/* Begins to send a block of three chunks, and cuts the file while the first chunk waits for a rate limit. */
static void shrink(void)
{
	static struct pacer p;
	char byte;

	pacer_init(&p);
	pacer_set(&p, 100000, mono_now());
	source = listed("from", 3 * CHUNK);
	sf.o.pacer = &p;
	sf_start();
	add(new_job(), source, 0, 0, 3 * CHUNK);
	stream_send(sf.stream);
	assert_int_equal(recv(sf.peer, &byte, 1, MSG_PEEK), 1);
	assert_int_equal(truncate(fx_path("from"), CHUNK / 2), 0);
	pacer_set(&p, 0, mono_now());
}

/* The receiver must ignore a block whose first chunk was sent. */
static void a_file_that_shrinks(void **state)
{
	(void)state;
	shrink();
	assert_int_equal(expect_frame(0, CHUNK), WIRE_BLOCK_GOOD);
	assert_int_equal(expect_frame(CHUNK, CHUNK), WIRE_BLOCK_VOID);
	sf_wait(&sf.n_sent, 1);
	assert_true(sf.sent.failed[0]);
	assert_true(sf.unread[0].code < 0);
}

/* The same of data that goes from the file to the socket: perhaps already the first chunk has no data. */
static void an_unverified_file_that_shrinks(void **state)
{
	(void)state;
	sf.o.verify = false;
	shrink();
	assert_true(expect_frame(0, CHUNK) == WIRE_BLOCK_VOID || expect_frame(CHUNK, CHUNK) == WIRE_BLOCK_VOID);
	sf_wait(&sf.n_sent, 1);
	assert_true(sf.sent.failed[0]);
}

/* Uncached data is read by I/O threads; the frames of all jobs keep their order. */
static void in_order(void **state)
{
	unsigned i, n = 0;

	(void)state;
	source = listed("from", 12 * CHUNK);
	sf_start();
	for (i = 0; i < 12; i++) {
		while (stream_free_job(sf.stream) == NULL) {
			expect_frame((uint64_t)n++ * CHUNK, CHUNK);
			loop_run_once(sf.control, false);
		}
		add(new_job(), source, i, (uint64_t)i * CHUNK, CHUNK);
		stream_send(sf.stream);
	}
	for (; n < 12; n++)
		expect_frame((uint64_t)n * CHUNK, CHUNK);
	sf_wait(&sf.n_sent, 12);
}

/* A stream has STREAM_JOBS jobs, and none after its stop. */
static void jobs(void **state)
{
	unsigned i;

	(void)state;
	source = listed("from", 100);
	sf_start();
	for (i = 0; i < STREAM_JOBS; i++) {
		add(new_job(), source, 0, 0, 100);
		stream_send(sf.stream);
	}
	assert_null(stream_free_job(sf.stream));
	sf_wait(&sf.n_sent, 1);
	assert_non_null(stream_free_job(sf.stream));
	stream_stop(sf.stream, false);
	assert_null(stream_free_job(sf.stream));
}

/* ---- What the peer sends ---- */

static void put_header(uint8_t type, size_t n)
{
	uint8_t frame[WIRE_HEADER_BYTES] = { type };

	frame[7] = (uint8_t)n;
	sf_put_raw(frame, sizeof frame);
}

static void unexpected_data(void **state)
{
	(void)state;
	sf_start();
	sf_put_raw("x", 1);
	sf_wait_lost(PTCP_EPROTO, "unexpected data on a sending stream");
}

/* A stream sends before JOINED has arrived; JOINED is accepted once. */
static void joined(void **state)
{
	(void)state;
	source = listed("from", 100);
	sf.o.joining = true;
	sf_start();
	add(new_job(), source, 0, 0, 100);
	stream_send(sf.stream);
	expect_frame(0, 100);
	put_header(WIRE_JOINED, 0);
	add(new_job(), source, 0, 0, 100);
	stream_send(sf.stream);
	expect_frame(0, 100);
	put_header(WIRE_JOINED, 0);
	sf_wait_lost(PTCP_EPROTO, "unexpected data on a sending stream");
	assert_int_equal(sf.n_lost, 1);
}

static void not_joined(void **state)
{
	(void)state;
	sf.o.joining = true;
	sf_start();
	put_header(WIRE_ERROR, 9);
	sf_wait_lost(PTCP_EREFUSED, "the peer refused the data connection");
	sf_stop();
	sf.n_lost = 0;
	sf_start();
	put_header(WIRE_PING, 0);
	sf_wait_lost(PTCP_EPROTO, "unexpected data on a sending stream");
	sf_stop();
	sf.n_lost = 0;
	sf_start();
	put_header(WIRE_JOINED, 1);
	sf_wait_lost(PTCP_EPROTO, "unexpected data on a sending stream");
}

/* Jobs of a lost connection are not returned as sent: the engine sends the blocks on another stream. */
static void the_peer_closes(void **state)
{
	(void)state;
	source = listed("from", 100);
	sf_start();
	shutdown(sf.peer, SHUT_RDWR);
	sf_wait_lost(PTCP_EPEER, "the peer closed the connection");
	add(new_job(), source, 0, 0, 100);
	stream_send(sf.stream);
	sf_stop();
	assert_int_equal(sf.n_sent, 0);
	assert_int_equal(sf.n_lost, 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		send_test(a_job), send_test(a_large_block), send_test(compressed), send_test(patches),
		send_test(unverified), send_test(an_unreadable_file),
		send_test(a_file_that_shrinks), send_test(an_unverified_file_that_shrinks), send_test(in_order),
		send_test(jobs), send_test(unexpected_data), send_test(joined), send_test(not_joined),
		send_test(the_peer_closes),
	};

	return cmocka_run_group_tests_name("stream/stream_send", tests, NULL, NULL);
}
