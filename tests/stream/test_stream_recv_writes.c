/* How a receiving stream writes: order, slow and failing disks, parts that another session has locked. The system calls
 * of the files are the test's. */
#include "fixture.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "stream/stream_impl.h"

#define CHUNK WIRE_CHUNK_BYTES

static const struct wire_grid grid = { 8 * CHUNK, 2 * CHUNK };
static struct sink *sink;

/* A disk that holds each write until the test lets it pass. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool slow;
	unsigned waiting, most, passes;
} disk = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void before_call(enum fx_call call)
{
	if (call != FX_pwrite)
		return;
	pthread_mutex_lock(&disk.lock);
	if (++disk.waiting > disk.most)
		disk.most = disk.waiting;
	pthread_cond_broadcast(&disk.changed);
	while (disk.slow && disk.passes == 0)
		pthread_cond_wait(&disk.changed, &disk.lock);
	disk.passes -= disk.slow;
	disk.waiting--;
	pthread_cond_broadcast(&disk.changed);
	pthread_mutex_unlock(&disk.lock);
}

static void disk_set(bool slow, unsigned passes)
{
	pthread_mutex_lock(&disk.lock);
	disk.slow = slow;
	disk.passes = passes;
	pthread_cond_broadcast(&disk.changed);
	pthread_mutex_unlock(&disk.lock);
}

/* Waits until that number of writes are at the disk. */
static void disk_wait(unsigned waiting)
{
	pthread_mutex_lock(&disk.lock);
	while (disk.waiting < waiting || disk.passes > 0)
		pthread_cond_wait(&disk.changed, &disk.lock);
	pthread_mutex_unlock(&disk.lock);
}

static int setup(void **state)
{
	if (sf_setup(state) != 0)
		return -1;
	sf.o.files = &sf.files;
	sink = sf_sink("to", grid);
	open_files_set(&sf.files, SF_ID, sink, grid);
	disk.waiting = disk.most = 0;
	return 0;
}

static int teardown(void **state)
{
	disk_set(false, 0);
	sf_stop();
	fx_heal();
	open_files_clear(&sf.files, SF_ID);
	sink_discard(sink);
	sink_unref(sink);
	return sf_teardown(state);
}

#define write_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void chunk(unsigned i) { sf_put(SF_ID, (uint64_t)i * CHUNK, CHUNK); }

/* From now on writes are made by I/O threads, and wait there. The part is open. */
static void slow_disk(void)
{
	sf_start();
	chunk(0);
	chunk(1);
	sf_wait(&sf.n_results, 1);
	atomic_store(&sf.files.slow, true);
	fx_before(before_call);
	disk_set(true, 0);
}

static bool is_written(unsigned i)
{
	static uint8_t got[8 * CHUNK];
	char part[SINK_PART_BYTES];
	uint64_t at = (uint64_t)i * CHUNK;
	long n = fx_read(sink_part(sink, part), got, sizeof got);

	return n >= (long)(at + CHUNK) && got[at] == sf_byte(at) && got[at + CHUNK - 1] == sf_byte(at + CHUNK - 1);
}

/* The worker receives further chunks while I/O threads write, but at most STREAM_WRITES at once. */
static void several_writes_at_once(void **state)
{
	static const struct wire_grid singles = { 8 * CHUNK, CHUNK };
	unsigned i;

	(void)state;
	open_files_clear(&sf.files, SF_ID);
	sink_discard(sink);
	sink_unref(sink);
	sink = sf_sink("singles", singles);
	open_files_set(&sf.files, SF_ID, sink, singles);
	sf_start();
	chunk(0);
	sf_wait(&sf.n_results, 1);
	atomic_store(&sf.files.slow, true);
	fx_before(before_call);
	disk_set(true, 0);
	for (i = 1; i < 8; i++)
		chunk(i);
	disk_wait(STREAM_WRITES);
	assert_true(stream_on_disk(sf.stream));
	assert_int_equal(sf.n_results, 1);
	disk_set(false, 0);
	sf_wait(&sf.n_results, 8);
	assert_int_equal(disk.most, STREAM_WRITES);
	for (i = 1; i < 8; i++)
		assert_int_equal(sf.result[i].what, RCV_BLOCK_WRITTEN);
	for (i = 0; i < 8; i++)
		assert_true(is_written(i));
}

/* Waits until the worker has read so many chunks, with their frames, and decided about each; returns the number of
 * writes that I/O threads make. */
static unsigned all_read(unsigned chunks)
{
	while (stream_moved(sf.stream) < chunks * (uint64_t)(WIRE_BLOCK_HEAD_BYTES + CHUNK + WIRE_BLOCK_END_BYTES))
		sched_yield();
	stream_retransmits(sf.stream); /* a message to the worker, which runs after the present turn */
	while (atomic_load(&sf.stream->sampling))
		sched_yield();
	return atomic_load(&sf.stream->waits.on_disk);
}

/* The journal records a block with its last chunk, which is therefore written after the earlier chunks. */
static void the_last_chunk_comes_last(void **state)
{
	(void)state;
	slow_disk();
	chunk(2);
	chunk(3);
	disk_wait(1);
	assert_int_equal(all_read(4), 1);
	disk_set(true, 1);
	disk_wait(1);
	assert_true(is_written(2));
	assert_false(is_written(3));
	assert_int_equal(sf.n_results, 1);
	disk_set(false, 0);
	sf_wait(&sf.n_results, 2);
	assert_int_equal(disk.most, 1);
	assert_int_equal(sf.result[1].block, 1);
	assert_int_equal(sf.result[1].what, RCV_BLOCK_WRITTEN);
}

/* The write that opens the part may have to wait for its lock: no other begins before. */
static void the_first_write_is_alone(void **state)
{
	(void)state;
	sf_start();
	atomic_store(&sf.files.slow, true);
	fx_before(before_call);
	disk_set(true, 0);
	chunk(0);
	chunk(2);
	chunk(4);
	disk_wait(1);
	assert_int_equal(disk.most, 1);
	disk_set(false, 0);
	chunk(5);
	sf_wait(&sf.n_results, 1);
	assert_int_equal(sf.result[0].block, 2);
	assert_int_equal(sf.result[0].what, RCV_BLOCK_WRITTEN);
}

static void sleeps(enum fx_call call)
{
	const struct timespec ms = { 0, 5000000 };

	if (call == FX_pwrite)
		nanosleep(&ms, NULL);
}

/* Writes that wait for the disk move to I/O threads, and return to the worker once they are fast. */
static void slow_writes_are_detected(void **state)
{
	unsigned i;

	(void)state;
	sf_start();
	fx_before(sleeps);
	for (i = 0; i < 8; i++)
		chunk(i);
	sf_wait(&sf.n_results, 4);
	assert_true(atomic_load(&sf.files.slow));
	fx_before(NULL);
	while (atomic_load(&sf.files.slow)) {
		chunk(0);
		chunk(1);
		sf_wait(&sf.n_results, sf.n_results + 1);
	}
	assert_int_equal(sf.result[sf.n_results - 1].what, RCV_BLOCK_WRITTEN);
}

/* A block fails once, without the path of the root; its further chunks are discarded, and the next block is written. */
static void failed_writes(void **state)
{
	(void)state;
	sf_start();
	fx_fail_always(FX_pwrite, EIO);
	chunk(0);
	sf_wait(&sf.n_results, 1);
	fx_heal();
	chunk(1);
	chunk(2);
	chunk(3);
	sf_wait(&sf.n_results, 2);
	assert_int_equal(sf.result[0].block, 0);
	assert_int_equal(sf.result[0].what, RCV_BLOCK_FAILED);
	assert_int_equal(sf.result[0].why.code, PTCP_EIO);
	assert_int_equal(sf.result[0].why.sys, EIO);
	assert_null(strstr(sf.result[0].why.msg, fx_path("")));
	assert_int_equal(sf.result[1].block, 1);
	assert_int_equal(sf.result[1].what, RCV_BLOCK_WRITTEN);
}

/* A full disk ends the transfer: the sentence names the file. */
static void a_full_disk(void **state)
{
	(void)state;
	sf_start();
	fx_fail_always(FX_pwrite, ENOSPC);
	chunk(0);
	sf_wait(&sf.n_results, 1);
	assert_int_equal(sf.result[0].what, RCV_BLOCK_FAILED);
	assert_int_equal(sf.result[0].why.code, PTCP_ENOSPC);
	assert_non_null(strstr(sf.result[0].why.msg, "to"));
}

/* An earlier chunk fails on an I/O thread while the last chunk waits: that chunk is discarded. */
static void a_failure_while_the_last_chunk_waits(void **state)
{
	(void)state;
	slow_disk();
	chunk(2);
	chunk(3);
	disk_wait(1);
	assert_int_equal(all_read(4), 1);
	fx_fail_always(FX_pwrite, EIO);
	disk_set(false, 0);
	sf_wait(&sf.n_results, 2);
	assert_int_equal(sf.result[1].block, 1);
	assert_int_equal(sf.result[1].what, RCV_BLOCK_FAILED);
	fx_heal();
	chunk(4);
	chunk(5);
	sf_wait(&sf.n_results, 3);
	assert_int_equal(sf.result[2].block, 2);
	assert_int_equal(sf.result[2].what, RCV_BLOCK_WRITTEN);
	assert_false(is_written(3));
}

/* ---- Parts that another session has locked ---- */

static struct sink *locked(void)
{
	struct sink *other = sf_sink("to", grid);

	assert_int_equal(sink_open(other, NULL), 0);
	return other;
}

/* The other session will not release the part: after a second try the block fails. */
static void a_lock_of_another_client(void **state)
{
	struct sink *other = locked();

	(void)state;
	sf_start();
	chunk(0);
	sf_wait(&sf.n_results, 1);
	assert_int_equal(sf.n_locked, 1);
	assert_int_equal(sf.result[0].what, RCV_BLOCK_FAILED);
	assert_int_equal(sf.result[0].why.sys, EWOULDBLOCK);
	sink_discard(other);
	sink_unref(other);
}

/* The other session may release the part soon: the stream waits, and then writes all chunks. */
static void a_lock_that_yields(void **state)
{
	struct sink *other = locked();

	(void)state;
	sf.holder = PART_RELEASED;
	sf_start();
	chunk(0);
	chunk(1);
	sf_wait(&sf.n_locked, 1);
	assert_int_equal(sf.n_results, 0);
	sink_discard(other);
	sink_unref(other);
	sf_wait(&sf.n_results, 1);
	assert_int_equal(sf.result[0].what, RCV_BLOCK_WRITTEN);
	assert_true(is_written(0) && is_written(1));
}

/* The other session goes on: the stream writes into a part of its own, while the other one keeps the usual part. */
static void a_lock_of_one_that_lives(void **state)
{
	struct sink *other = locked();

	(void)state;
	sf.holder = PART_OF_LIVING;
	sf_start();
	chunk(0);
	chunk(1);
	sf_wait(&sf.n_results, 1);
	assert_int_equal(sf.result[0].what, RCV_BLOCK_WRITTEN);
	assert_int_equal(sf.n_locked, 1);
	assert_true(is_written(0) && is_written(1));
	assert_true(sink_is_open(other));
	sink_discard(other);
	sink_unref(other);
}

/* A stream that waits for a lock, or for the disk, ends without its write. */
static void stopped_while_waiting(void **state)
{
	struct sink *other = locked();

	(void)state;
	sf.holder = PART_RELEASED;
	sf_start();
	chunk(0);
	sf_wait(&sf.n_locked, 1);
	sf_stop();
	assert_int_equal(sf.n_results, 0);
	sink_discard(other);
	sink_unref(other);
	slow_disk();
	chunk(2);
	disk_wait(1);
	stream_stop(sf.stream, true);
	disk_set(false, 0);
	sf_wait(&sf.n_gone, 1);
	assert_true(is_written(2));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		write_test(several_writes_at_once), write_test(the_last_chunk_comes_last),
		write_test(the_first_write_is_alone), write_test(slow_writes_are_detected), write_test(failed_writes),
		write_test(a_full_disk), write_test(a_failure_while_the_last_chunk_waits),
		write_test(a_lock_of_another_client), write_test(a_lock_that_yields),
		write_test(a_lock_of_one_that_lives), write_test(stopped_while_waiting),
	};

	return cmocka_run_group_tests_name("stream/stream_recv_writes", tests, NULL, NULL);
}
