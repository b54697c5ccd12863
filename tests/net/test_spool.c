/* The books of what is held: space is taken grain by grain from all who share it, given back behind the reader and on
 * the disk, and the ring closes. */
#include "fixture.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/spool.h"

#define GRAIN SPOOL_GRAIN

static struct spool *made(uint64_t most, struct spool_quota *room)
{
	struct spool *s;

	assert_int_equal(spool_new(&s, nf_dir, most, room, NULL), 0);
	return s;
}

/* Writes n bytes that say where they are in the order of all; fewer where there is no room. */
static uint64_t put(struct spool *s, uint64_t from, uint64_t n)
{
	static uint8_t p[GRAIN];
	uint64_t done = 0, i;
	size_t room;
	off_t at;

	while (done < n && (room = spool_room(s, &at)) > 0) {
		room = room < n - done ? room : (size_t)(n - done);
		for (i = 0; i < room; i++)
			p[i] = (uint8_t)((from + done + i) % 251);
		assert_int_equal(pwrite(spool_fd(s), p, room, at), room);
		spool_wrote(s, room);
		done += room;
	}
	return done;
}

static void get(struct spool *s, uint64_t from, uint64_t n)
{
	static uint8_t p[GRAIN];
	uint64_t done = 0, i;
	size_t len;
	off_t at;

	while (done < n) {
		assert_true((len = spool_oldest(s, &at)) > 0);
		len = len < sizeof p ? len : sizeof p;
		len = len < n - done ? len : (size_t)(n - done);
		assert_int_equal(pread(spool_fd(s), p, len, at), len);
		for (i = 0; i < len; i++)
			assert_int_equal(p[i], (from + done + i) % 251);
		assert_int_equal(spool_read(s, len), 0);
		done += len;
	}
}

static uint64_t on_disk(const struct spool *s)
{
	struct stat st;

	assert_int_equal(fstat(spool_fd(s), &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* Many times around, in pieces that divide nothing. */
static void around(void **state)
{
	struct spool_quota room = { .max_bytes = 4 * GRAIN };
	struct spool *s = made(4 * GRAIN, &room);
	uint64_t in = 0, out = 0, n;
	int i;

	(void)state;
	for (i = 0; i < 40; i++) {
		n = put(s, in, 1300007);
		in += n;
		assert_int_equal(spool_bytes(s), in - out);
		assert_true(room.used_bytes <= 4 * GRAIN && on_disk(s) <= 4 * GRAIN + 4096);
		n = in - out < 1100003 ? in - out : 1100003;
		get(s, out, n);
		out += n;
	}
	assert_true(in > 8 * GRAIN);
	get(s, out, in - out);
	assert_int_equal(spool_reset(s), 0);
	assert_int_equal(room.used_bytes, 0);
	assert_int_equal(on_disk(s), 0);
	assert_int_equal(put(s, 5, 10), 10); /* and from the beginning */
	get(s, 5, 10);
	spool_free(s);
	assert_int_equal(room.used_bytes, 0);
}

/* What is behind the reader is on no disk any more, though the ring has not closed. */
static void given_back(void **state)
{
	struct spool_quota room = { .max_bytes = 64 * GRAIN };
	struct spool *s = made(64 * GRAIN, &room);

	(void)state;
	assert_int_equal(put(s, 0, 10 * GRAIN), 10 * GRAIN);
	assert_int_equal(room.used_bytes, 10 * GRAIN);
	assert_true(on_disk(s) >= 10 * GRAIN);
	get(s, 0, 9 * GRAIN + 1);
	assert_int_equal(room.used_bytes, GRAIN);
	assert_true(on_disk(s) <= GRAIN + 4096);
	spool_free(s);
	assert_int_equal(room.used_bytes, 0);
}

/* One room in another: each counts, and whoever is refused has taken nothing. */
static void shared(void **state)
{
	struct spool_quota all = { .max_bytes = 5 * GRAIN };
	struct spool_quota mine = { .max_bytes = 3 * GRAIN, .parent = &all }, other = { .max_bytes = 3 * GRAIN,
		.parent = &all };
	struct spool *a = made(100 * GRAIN, &mine), *b = made(100 * GRAIN, &mine), *c = made(100 * GRAIN, &other);

	(void)state;
	assert_int_equal(put(a, 0, 2 * GRAIN), 2 * GRAIN);
	assert_int_equal(put(b, 0, 9 * GRAIN), GRAIN);
	assert_int_equal(put(c, 0, 9 * GRAIN), 2 * GRAIN);
	assert_true(mine.used_bytes == 3 * GRAIN && other.used_bytes == 2 * GRAIN && all.used_bytes == 5 * GRAIN);
	spool_free(a);
	assert_true(mine.used_bytes == GRAIN && all.used_bytes == 3 * GRAIN);
	assert_int_equal(put(c, 2 * GRAIN, 9 * GRAIN), GRAIN);
	spool_free(b);
	spool_free(c);
	assert_true(mine.used_bytes == 0 && other.used_bytes == 0 && all.used_bytes == 0);
}

/* Of any size that is asked for there is a grain at least, and never more than there is room. */
static void sizes(void **state)
{
	struct spool_quota room = { .max_bytes = 2 * GRAIN };
	struct spool *s = made(1, &room), *huge = made(UINT64_MAX, &room);

	(void)state;
	assert_int_equal(put(s, 0, 3 * GRAIN), GRAIN);
	assert_int_equal(put(huge, 0, 3 * GRAIN), GRAIN);
	spool_free(s);
	spool_free(huge);
}

static void places(void **state)
{
	struct ptcp_err e;
	struct spool *s;

	(void)state;
	if (spool_check(nf_dir, &e) != 0)
		fail_msg("%s", e.msg);
	assert_int_equal(spool_check("/proc/nonexistent", &e), PTCP_ECONFIG);
	assert_non_null(strstr(e.msg, "/proc/nonexistent"));
	assert_int_equal(spool_new(&s, "/proc/nonexistent", GRAIN, NULL, &e), PTCP_EIO);
	assert_int_equal(nf_count_files(), 0); /* none has a name */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		nf_test(around),
		nf_test(given_back),
		nf_test(shared),
		nf_test(sizes),
		nf_test(places),
	};

	return cmocka_run_group_tests_name("net/spool", tests, NULL, NULL);
}
