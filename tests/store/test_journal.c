/* against: links, state */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/journal.h"
#include "store/part.h"

static int at;
static const uint8_t version[16] = "sixteen bytes...";
static const struct journal_key key = { "big file", 1000000, { 1234567890, 987654321 }, version,
	262144, NULL };

static int setup(void **state)
{
	if (fx_tree_setup(state) != 0)
		return -1;
	at = dir_fd(fx_root, NULL);
	return at >= 0 ? 0 : -1;
}

static int teardown(void **state)
{
	dir_fd_done(fx_root);
	return fx_tree_teardown(state);
}

#define journal_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static const char *path(void)
{
	static char name[PART_NAME_BYTES];

	return part_name(name, key.name, PART_JOURNAL_SUFFIX);
}

static void put(const uint8_t *p, size_t n)
{
	fx_write(path(), p, n);
	assert_int_equal(chmod(fx_path(path()), 0600), 0);
}

/* A journal of three records, the last one for the first block again. */
static size_t sample(uint8_t out[400])
{
	struct journal j = { .fd = -1 };

	journal_create(&j, fx_root, at, &key);
	assert_true(j.fd >= 0);
	journal_append(&j, &fx_sys, 0, 0x1111);
	journal_append(&j, &fx_sys, 3, 0x0123456789abcdef);
	journal_append(&j, &fx_sys, 0, 0x2222);
	journal_close(&j, &fx_sys);
	return (size_t)fx_read(path(), out, 400);
}

static enum journal_state look(int *n, struct journal_record of[JOURNAL_READ])
{
	struct journal j = { .fd = -1 };
	enum journal_state state = journal_open(&j, fx_root, at, &key);

	*n = 0;
	if (state == JOURNAL_MATCHES || state == JOURNAL_OTHER)
		*n = journal_read(&j, &fx_sys, 0, JOURNAL_READ, of);
	else
		assert_int_equal(j.fd, -1);
	journal_close(&j, &fx_sys);
	return state;
}

/* These bytes lie on disks: another layout needs another format number. */
static void golden(void **state)
{
	static const char want[] =
	    "707463702d6a6e6c" "00000001" "00040000" "00000000000f4240" "00000000499602d2" "3ade68b1"
	    "00000008" "7369787465656e2062797465732e2e2e" "6269672066696c65";
	static const char tail[] =
	    "b9d9b97daa7553d5" "00000000" "0000000000001111" "2e7e7e805b571deb"
	    "00000003" "0123456789abcdef" "46b7914a32aea0a8"
	    "00000000" "0000000000002222" "3dafd9b2377c10f6";
	char hex[801];
	uint8_t raw[400];
	struct stat st;
	size_t n = sample(raw), i;

	(void)state;
	assert_int_equal(n, JOURNAL_HEADER_BYTES + 3 * JOURNAL_RECORD_BYTES);
	for (i = 0; i < n; i++)
		snprintf(hex + 2 * i, 3, "%02x", raw[i]);
	assert_memory_equal(hex, want, strlen(want));
	for (i = 64; i < 312; i++)
		assert_int_equal(raw[i], 0);
	assert_string_equal(hex + 2 * 312, tail);
	assert_int_equal(stat(fx_path(path()), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

static void round_trip(void **state)
{
	struct journal_record of[JOURNAL_READ];
	uint8_t raw[400];
	int n;

	(void)state;
	assert_int_equal(look(&n, of), JOURNAL_NONE);
	sample(raw);
	assert_int_equal(look(&n, of), JOURNAL_MATCHES);
	assert_int_equal(n, 3);
	assert_int_equal(of[0].block, 0);
	assert_int_equal(of[0].hash, 0x1111);
	assert_int_equal(of[1].block, 3);
	assert_int_equal(of[1].hash, 0x0123456789abcdef);
	assert_int_equal(of[2].block, 0);
	assert_int_equal(of[2].hash, 0x2222);
	assert_int_equal(of[2].slot, 2);
}

/* What is believed of a sound prefix is what it says, and nothing of what is cut. */
static void truncated(void **state)
{
	struct journal_record of[JOURNAL_READ];
	uint8_t raw[400];
	size_t n = sample(raw), i;
	int got;

	(void)state;
	for (i = 0; i < n; i++) {
		put(raw, i);
		if (i < JOURNAL_HEADER_BYTES) {
			assert_int_equal(look(&got, of), JOURNAL_DAMAGED);
		} else {
			assert_int_equal(look(&got, of), JOURNAL_MATCHES);
			assert_int_equal(got, (i - JOURNAL_HEADER_BYTES) / JOURNAL_RECORD_BYTES);
		}
	}
}

static void flipped(void **state)
{
	struct journal_record of[JOURNAL_READ];
	uint8_t raw[400];
	size_t n = sample(raw), i;
	int got, k;

	(void)state;
	for (i = 0; i < n * 8; i++) {
		raw[i / 8] ^= (uint8_t)(1 << i % 8);
		put(raw, n);
		if (i / 8 < JOURNAL_HEADER_BYTES) {
			assert_int_equal(look(&got, of), JOURNAL_DAMAGED);
		} else { /* that record alone is lost */
			assert_int_equal(look(&got, of), JOURNAL_MATCHES);
			assert_int_equal(got, 2);
			for (k = 0; k < got; k++)
				assert_true(of[k].slot != (i / 8 - JOURNAL_HEADER_BYTES) / JOURNAL_RECORD_BYTES);
		}
		raw[i / 8] ^= (uint8_t)(1 << i % 8);
	}
}

/* Sound, but not of this file as it is now. */
static void others(void **state)
{
	struct journal_record of[JOURNAL_READ];
	struct journal j = { .fd = -1 };
	struct journal_key other;
	uint8_t raw[400];
	int i, n;

	(void)state;
	for (i = 0; i < 6; i++) {
		other = key;
		switch (i) {
		case 0: other.size_bytes++; break;
		case 1: other.mtime.tv_sec--; break;
		case 2: other.mtime.tv_nsec++; break;
		case 3: other.version = (const uint8_t *)"another version."; break;
		case 4: other.block_bytes *= 2; break;
		case 5: other.name = "another file"; break;
		}
		journal_create(&j, fx_root, at, &other);
		journal_append(&j, &fx_sys, 1, 1);
		journal_close(&j, &fx_sys);
		if (i == 5) {
			char from[PART_NAME_BYTES];

			part_name(from, other.name, PART_JOURNAL_SUFFIX);
			assert_int_equal(rename(fx_path(from), fx_path(path())), 0);
		}
		assert_int_equal(look(&n, of), i == 5 ? JOURNAL_DAMAGED : i == 4 ? JOURNAL_CHANGED : JOURNAL_OTHER);
		assert_int_equal(n, i < 4);
	}
	/* One of another version is of several versions from then on, also for the version that it had. */
	other = key;
	other.version = (const uint8_t *)"another version.";
	journal_create(&j, fx_root, at, &other);
	journal_close(&j, &fx_sys);
	assert_int_equal(look(&n, of), JOURNAL_OTHER);
	assert_int_equal(journal_open(&j, fx_root, at, &other), JOURNAL_OTHER);
	journal_close(&j, &fx_sys);
	journal_create(&j, fx_root, at, &other);
	journal_close(&j, &fx_sys);
	fx_fail_always(FX_pwrite, EIO);
	assert_int_equal(look(&n, of), JOURNAL_CHANGED);
	fx_heal();
	/* The records of another's header fail their checks. */
	sample(raw);
	other = key;
	other.block_bytes *= 2;
	journal_create(&j, fx_root, at, &other);
	assert_int_equal(pwrite(j.fd, raw + JOURNAL_HEADER_BYTES, 60, JOURNAL_HEADER_BYTES), 60);
	assert_int_equal(journal_read(&j, &fx_sys, 0, 3, of), 0);
	journal_close(&j, &fx_sys);
}

/* It is trusted no more than a part is. */
static void planted(void **state)
{
	struct journal_record of[JOURNAL_READ];
	struct journal j = { .fd = -1 };
	uint8_t raw[400];
	size_t n = sample(raw);
	int got, i;

	(void)state;
	assert_int_equal(chmod(fx_path(path()), 0644), 0);
	assert_int_equal(look(&got, of), JOURNAL_DAMAGED);
	assert_int_equal(chmod(fx_path(path()), 0644), 0);
	fx_fail_always(FX_fchmod, EPERM); /* a file system with fixed modes */
	assert_int_equal(look(&got, of), JOURNAL_MATCHES);
	fx_fail_always(FX_fchmod, EIO);
	assert_int_equal(look(&got, of), JOURNAL_DAMAGED);
	fx_heal();
	assert_int_equal(chmod(fx_path(path()), 0600), 0);
	assert_int_equal(link(fx_path(path()), fx_path("second")), 0);
	assert_int_equal(look(&got, of), JOURNAL_DAMAGED);
	for (i = 0; i < 2; i++) { /* and makes way */
		journal_create(&j, fx_root, at, &key);
		assert_true(j.fd >= 0);
		journal_close(&j, &fx_sys);
		assert_int_equal(fx_read("second", NULL, 0), n);
		if (i == 0) {
			assert_int_equal(remove(fx_path(path())), 0);
			assert_int_equal(symlink("second", fx_path(path())), 0);
			assert_int_equal(look(&got, of), JOURNAL_DAMAGED);
		}
	}
	assert_int_equal(remove(fx_path(path())), 0);
	assert_int_equal(mkfifo(fx_path(path()), 0600), 0);
	assert_int_equal(look(&got, of), JOURNAL_DAMAGED);
	assert_int_equal(remove(fx_path(path())), 0);
	if (fx_is_root()) {
		put(raw, n);
		assert_int_equal(chown(fx_path(path()), 12345, 12345), 0);
		assert_int_equal(look(&got, of), JOURNAL_DAMAGED);
		assert_int_equal(remove(fx_path(path())), 0);
	}
	/* A directory cannot make way: there is no journal then. */
	fx_mkdir(path());
	assert_int_equal(look(&got, of), JOURNAL_DAMAGED);
	j.fd = -1;
	journal_create(&j, fx_root, at, &key);
	assert_int_equal(j.fd, -1);
	journal_append(&j, &fx_sys, 0, 0);
	assert_true(fx_exists(path()));
}

/* The same block again and again does not fill the disk. */
static void bounded(void **state)
{
	struct journal_record of[JOURNAL_READ];
	struct journal j = { .fd = -1 };
	uint64_t most = 4 * 4 + 4096;
	struct stat st;
	int i, n;

	(void)state;
	journal_create(&j, fx_root, at, &key);
	for (i = 0; i < 10000; i++)
		journal_append(&j, &fx_sys, 1, 1);
	journal_close(&j, &fx_sys);
	assert_int_equal(stat(fx_path(path()), &st), 0);
	assert_int_equal(st.st_size, JOURNAL_HEADER_BYTES + most * JOURNAL_RECORD_BYTES);
	assert_int_equal(look(&n, of), JOURNAL_MATCHES);
	assert_int_equal(truncate(fx_path(path()), st.st_size + 1), 0);
	assert_int_equal(look(&n, of), JOURNAL_DAMAGED);
}

/* Torn by a full disk: the others stand. And one that is replaced meanwhile is not removed. */
static void torn(void **state)
{
	struct journal_record of[JOURNAL_READ];
	struct journal j = { .fd = -1 };
	int n;

	(void)state;
	journal_create(&j, fx_root, at, &key);
	journal_append(&j, &fx_sys, 0, 1);
	fx_short_io(7);
	fx_fail_nth(2, ENOSPC);
	journal_append(&j, &fx_sys, 1, 2);
	fx_heal();
	journal_append(&j, &fx_sys, 2, 3);
	fx_fail_nth(1, ENOSPC);
	journal_append(&j, &fx_sys, 3, 4);
	assert_int_equal(look(&n, of), JOURNAL_MATCHES);
	assert_int_equal(n, 2);
	assert_int_equal(of[1].block, 2);
	journal_cut(&j, &fx_sys, 1);
	assert_int_equal(look(&n, of), JOURNAL_MATCHES);
	assert_int_equal(n, 1);
	assert_int_equal(rename(fx_path(path()), fx_path("away")), 0);
	fx_text(path(), "another's");
	journal_remove(&j, fx_root, at, key.name);
	assert_int_equal(j.fd, -1);
	fx_holds(path(), "another's");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		journal_test(golden), journal_test(round_trip), journal_test(truncated),
		journal_test(flipped), journal_test(others), journal_test(planted),
		journal_test(bounded), journal_test(torn),
	};
	return cmocka_run_group_tests_name("store/journal", tests, NULL, NULL);
}
