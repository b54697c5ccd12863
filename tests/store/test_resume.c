/* What an earlier run left, and what becomes of it.
 * against: links, state */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "offer.h"
#include "store/hash.h"
#include "store/part.h"

static const struct offer big = { "big", 20 * OFFER_BLOCK + 100, 1, false };
static const struct offer sparse = { "big", 20 * OFFER_BLOCK + 100, 1, true };

static mode_t mode_of(const char *below)
{
	struct stat st;

	assert_int_equal(lstat(fx_path(below), &st), 0);
	return st.st_mode & 07777;
}

static struct sink *with_meta(const struct meta *m)
{
	const struct sink_opts o = offer_opts(&big);

	return sink_new(fx_root, "big", 3, m, &o);
}

static bool seems_same(struct sink *s)
{
	struct sink_existing look;

	return sink_look(s, false, &look, NULL) == 0 && look.found == SINK_KEPT;
}

/* An existing complete file receives the attributes that it lacks, once. */
static void refreshed(void **state)
{
	static const struct timespec then[2] = { { 1000, 0 }, { 1000, 0 } };
	struct meta m = { .mode = 06751, .mtime = { 1000, 500 } };
	struct ptcp_err e;
	struct sink *s;
	int asked;

	(void)state;
	fx_text("big", "abc");
	for (asked = 0; asked < 3; asked++) {
		assert_int_equal(chmod(fx_path("big"), 0640), 0);
		assert_int_equal(utimensat(AT_FDCWD, fx_path("big"), then, 0), 0);
		m.set_mode = asked > 0;
		m.setid = asked > 1;
		s = with_meta(&m);
		assert_true(seems_same(s));
		fx_heal();
		assert_int_equal(sink_refresh(s, NULL), 0);
		assert_int_equal(mode_of("big"), asked == 0 ? 0640 : asked == 1 ? 0751 : 06751);
		assert_int_equal(fx_calls_of(FX_fchmod), asked > 0);
		assert_int_equal(sink_refresh(s, NULL), 0); /* once */
		assert_int_equal(fx_calls_of(FX_fchmod), asked > 0);
		sink_unref(s);
	}
	s = with_meta(&m);
	assert_int_equal(chmod(fx_path("big"), 0600), 0);
	fx_fail_always(FX_fchmod, EPERM); /* not ours */
	assert_int_equal(sink_refresh(s, &e), 1);
	assert_non_null(strstr(e.msg, "big: the mode is 0600 instead of 6751"));
	fx_fail_always(FX_fchmod, EIO);
	assert_int_equal(sink_refresh(s, &e), PTCP_EIO);
	fx_heal();
	fx_text("big", "another"); /* has come meanwhile */
	assert_false(seems_same(s));
	assert_int_equal(sink_refresh(s, NULL), 0);
	assert_int_equal(mode_of("big"), 0600);
	assert_int_equal(rename(fx_path("big"), fx_path("else")), 0);
	assert_int_equal(symlink("else", fx_path("big")), 0);
	assert_false(seems_same(s));
	assert_true(sink_refresh(s, &e) < 0);
	assert_int_equal(mode_of("else"), 0600);
	assert_int_equal(unlink(fx_path("big")), 0);
	assert_false(seems_same(s));
	assert_int_equal(fx_count(""), 1);
	sink_unref(s);
}

/* As for any file, what fails of it is told, and nothing stays open. */
static void refreshing_fails(void **state)
{
	const struct meta m = { .set_mode = true, .mode = 0751, .mtime = { 1000, 0 } };
	static const struct timespec then[2] = { { 1000, 0 }, { 1000, 0 } };
	struct sink *s = with_meta(&m);
	struct ptcp_err e;
	int n, r;

	(void)state;
	fx_text("big", "abc");
	for (n = 1;; n++) {
		assert_int_equal(chmod(fx_path("big"), 0600), 0);
		assert_int_equal(utimensat(AT_FDCWD, fx_path("big"), then, 0), 0);
		fx_heal();
		fx_fail_nth(n, EIO);
		r = sink_refresh(s, &e);
		if (fx_failed() == 0)
			break;
		assert_true(r == 0 || (r == PTCP_EIO && e.sys == EIO));
	}
	assert_int_equal(r, 0);
	assert_true(n > 4);
	sink_unref(s);
}

static const char *own(const char *suffix)
{
	static char name[2][PART_NAME_BYTES];
	static int turn;

	return part_name(name[++turn % 2], "big", suffix);
}

/* An earlier run that wrote blocks [from, to) of `o` and was killed. */
static void earlier(const struct offer *o, uint32_t from, uint32_t to)
{
	struct sink *s = offer_sink(fx_root, o);

	for (; from < to; from++)
		if (!offer_hole(o, from))
			assert_int_equal(offer_write(s, o, from, NULL), 0);
	sink_unref(s);
}

/* The rest of it; `want` blocks are found to be there. */
static void later(const struct offer *o, int want)
{
	struct sink *s = offer_sink(fx_root, o);
	bool have[OFFER_BLOCKS], same;

	assert_int_equal(offer_resume(s, o, have, &same, NULL), want);
	assert_false(same);
	assert_int_equal(offer_rest(s, o, have, NULL), 0);
	assert_int_equal(offer_commit(s, NULL), 0);
	sink_unref(s);
	offer_holds(o->name, o);
	assert_int_equal(fx_count(""), 1);
}

static const char *told(const struct offer *o, enum sink_found want)
{
	struct sink *s = offer_sink(fx_root, o);
	struct sink_existing look;

	assert_int_equal(sink_inspect(s, &look, NULL), 0);
	assert_int_equal(look.found, want);
	free(look.claimed);
	sink_unref(s);
	return look.restart_why;
}

static void goes_on(void **state)
{
	(void)state;
	assert_null(told(&big, SINK_NOTHING));
	assert_int_equal(fx_count(""), 0);
	earlier(&big, 3, 9);
	assert_null(told(&big, SINK_PART)); /* looking alone changes nothing */
	later(&big, 6);
	remove(fx_path("big"));
	/* Once more and once again; the last block is short. */
	earlier(&big, 15, 21);
	{
		struct sink *s = offer_sink(fx_root, &big);
		bool have[OFFER_BLOCKS], same;

		assert_int_equal(offer_resume(s, &big, have, &same, NULL), 6);
		assert_int_equal(offer_write(s, &big, 0, NULL), 0);
		sink_unref(s);
	}
	later(&big, 7);
}

/* More records than are read at a time, most of them of the same blocks. */
static void many_records(void **state)
{
	struct sink *s = offer_sink(fx_root, &big);
	int i;

	(void)state;
	for (i = 0; i < 1000; i++)
		assert_int_equal(offer_write(s, &big, (uint32_t)i * 7 % 11, NULL), 0);
	sink_unref(s);
	later(&big, 11);
}

/* The later of two records holds, however far apart they are. */
static void superseded(void **state)
{
	struct sink *s = offer_sink(fx_root, &big);
	uint8_t junk[OFFER_BLOCK] = "junk";
	int i;

	(void)state;
	assert_int_equal(sink_write(s, junk, OFFER_BLOCK, 0, hash_content(junk, OFFER_BLOCK), NULL), 0);
	for (i = 0; i < 600; i++)
		assert_int_equal(offer_write(s, &big, 5, NULL), 0);
	assert_int_equal(offer_write(s, &big, 0, NULL), 0);
	sink_unref(s);
	later(&big, 2);
}

static off_t allocated(const char *below)
{
	struct stat st;

	assert_int_equal(stat(fx_path(below), &st), 0);
	return st.st_blocks * 512;
}

/* A hole reads as zeros, whatever the part file held before, and occupies no blocks. */
static void holes(void **state)
{
	static uint8_t junk[OFFER_BLOCKS * OFFER_BLOCK];
	int fd, way;

	(void)state;
	fx_needs_linux();
	memset(junk, 'j', sizeof junk);
	for (way = 0; way < 3; way++) {
		earlier(&sparse, 3, 9);
		fd = open(fx_path(own(PART_SUFFIX)), O_RDWR | O_CLOEXEC);
		assert_int_equal(pwrite(fd, junk, 3 * OFFER_BLOCK, 0), 3 * OFFER_BLOCK);
		assert_int_equal(pwrite(fd, junk, OFFER_BLOCK, 4 * OFFER_BLOCK), OFFER_BLOCK);
		assert_int_equal(pwrite(fd, junk, 8 * OFFER_BLOCK, 9 * OFFER_BLOCK), 8 * OFFER_BLOCK);
		close(fd);
		if (way == 1) /* a file system without holes */
			fx_fail_always(FX_fallocate, EOPNOTSUPP);
		if (way == 2) /* a file system without SEEK_HOLE */
			fx_fail_always(FX_lseek, EINVAL);
		later(&sparse, 4);
		if (way != 1)
			assert_true(allocated("big") < (off_t)sparse.size_bytes / 2);
		fx_heal();
		assert_int_equal(remove(fx_path("big")), 0);
	}
	/* Not resumed, zeros are left out all the same. */
	later(&sparse, 0);
	assert_true(allocated("big") < (off_t)sparse.size_bytes / 2);
}

/* Claims that nobody wants leave nothing behind: where no block is written there are zeros. */
static void not_wanted(void **state)
{
	static uint8_t all[OFFER_BLOCKS * OFFER_BLOCK], first[OFFER_BLOCK];
	struct sink *s = offer_sink(fx_root, &big);
	struct sink_existing look;
	uint32_t length = offer_block(&big, 0, first), i;

	(void)state;
	earlier(&big, 3, 9);
	assert_int_equal(sink_inspect(s, &look, NULL), 0);
	assert_int_equal(look.found, SINK_PART);
	free(look.claimed);
	sink_restart(s);
	assert_int_equal(offer_write(s, &big, 0, NULL), 0);
	assert_int_equal(offer_commit(s, NULL), 0);
	sink_unref(s);
	assert_int_equal(fx_read("big", all, sizeof all), big.size_bytes);
	assert_memory_equal(all, first, length);
	for (i = length; i < big.size_bytes; i++)
		assert_int_equal(all[i], 0);
	assert_int_equal(fx_count(""), 1);
}

/* What the journal claims and the part does not hold is cleared and told. */
static void lies(void **state)
{
	bool have[OFFER_BLOCKS], same;
	uint8_t back[OFFER_BLOCK], zeros[OFFER_BLOCK] = { 0 };
	struct sink *s;
	int fd, way;

	(void)state;
	for (way = 0; way < 3; way++) {
		earlier(&big, 0, 21);
		fd = open(fx_path(own(PART_SUFFIX)), O_RDWR | O_CLOEXEC);
		if (way == 0) {
			assert_int_equal(pwrite(fd, "!", 1, 5 * OFFER_BLOCK + 77), 1);
			assert_int_equal(pwrite(fd, "!", 1, 6 * OFFER_BLOCK), 1);
		} else if (way == 1) {
			assert_int_equal(ftruncate(fd, 19 * OFFER_BLOCK), 0);
		} else {
			fx_short_io(1000);
		}
		s = offer_sink(fx_root, &big);
		assert_int_equal(offer_resume(s, &big, have, &same, NULL), way == 2 ? 21 : 19);
		if (way == 0) {
			assert_false(have[5] || have[6]);
			assert_int_equal(pread(fd, back, sizeof back, 5 * OFFER_BLOCK), sizeof back);
			assert_memory_equal(back, zeros, sizeof back);
		}
		close(fd);
		sink_unref(s);
		later(&big, way == 2 ? 21 : 19);
		fx_heal();
		assert_int_equal(remove(fx_path("big")), 0);
	}
}

/* A sector that cannot be read is sent again. */
static void unreadable(void **state)
{
	struct sink_run runs[SINK_RUNS];
	struct sink *s = offer_sink(fx_root, &big);
	struct sink_existing look;
	unsigned n;

	(void)state;
	earlier(&big, 0, 3);
	assert_int_equal(sink_inspect(s, &look, NULL), 0);
	free(look.claimed);
	fx_fail_nth(2, EIO); /* the journal, the first block */
	assert_int_equal(sink_verify_next(s, runs, &n, NULL), 0);
	assert_int_equal(n, 2);
	assert_false(runs[0].good);
	assert_int_equal(runs[0].n, 1);
	assert_true(runs[1].good);
	assert_int_equal(runs[1].n, 2);
	sink_unref(s);
}

static void restarts(void **state)
{
	struct offer other = big;
	uint8_t raw[2000];
	long n;

	(void)state;
	earlier(&big, 0, 9);
	other.version = 2;
	assert_string_equal(told(&other, SINK_NOTHING), "the source has changed since: restarting from scratch");
	later(&other, 0);
	assert_int_equal(remove(fx_path("big")), 0);
	earlier(&big, 0, 9);
	n = fx_read(own(PART_JOURNAL_SUFFIX), raw, sizeof raw);
	raw[20] ^= 1;
	assert_int_equal(truncate(fx_path(own(PART_JOURNAL_SUFFIX)), 0), 0);
	fx_write(own(PART_JOURNAL_SUFFIX), raw, (size_t)n);
	assert_string_equal(told(&big, SINK_NOTHING), "the journal is damaged: restarting from scratch");
	later(&big, 0);
	/* Neither one: no journal is kept, and what lies there goes. */
	assert_int_equal(remove(fx_path("big")), 0);
	earlier(&big, 0, 9);
	other.version = 0;
	assert_null(told(&other, SINK_NOTHING));
	later(&other, 0);
	/* A part without a journal. */
	assert_int_equal(remove(fx_path("big")), 0);
	earlier(&big, 0, 9);
	assert_int_equal(remove(fx_path(own(PART_JOURNAL_SUFFIX))), 0);
	assert_null(told(&big, SINK_NOTHING));
	later(&big, 0);
}

/* Killed between getting its mode and its name. */
static void final_mode(void **state)
{
	struct sink *s;
	struct stat st;

	(void)state;
	earlier(&big, 0, 9);
	assert_int_equal(chmod(fx_path(own(PART_SUFFIX)), 0444), 0);
	s = offer_sink(fx_root, &big);
	{
		struct sink_existing look;

		fx_fail_nth(2, EACCES); /* as it is for who is not root */
		if (!fx_is_root())
			fx_heal();
		assert_int_equal(sink_inspect(s, &look, NULL), 0);
		assert_int_equal(look.found, SINK_PART);
		free(look.claimed);
	}
	assert_int_equal(stat(fx_path(own(PART_SUFFIX)), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	sink_unref(s);
	later(&big, 9);
}

static void busy(void **state)
{
	struct sink *a = offer_sink(fx_root, &big), *b = offer_sink(fx_root, &big);
	uint64_t dev[2], ino[2];
	struct sink_existing look;
	struct ptcp_err e;

	(void)state;
	assert_false(sink_part_id(a, &dev[0], &ino[0]));
	assert_int_equal(offer_write(a, &big, 4, NULL), 0);
	assert_int_equal(sink_inspect(b, &look, &e), PTCP_EIO);
	assert_int_equal(e.sys, EWOULDBLOCK);
	assert_true(sink_part_id(a, &dev[0], &ino[0]));
	assert_true(sink_part_id(b, &dev[1], &ino[1]));
	assert_true(dev[0] == dev[1] && ino[0] == ino[1]);
	sink_unref(a); /* the old session has been ended */
	assert_int_equal(sink_inspect(b, &look, &e), 0);
	assert_int_equal(look.found, SINK_PART);
	assert_int_equal(look.n_claimed, 1);
	free(look.claimed);
	sink_unref(b);
}

static void planted_part(void **state)
{
	(void)state;
	earlier(&big, 0, 9);
	assert_int_equal(link(fx_path(own(PART_SUFFIX)), fx_path("second")), 0);
	assert_null(told(&big, SINK_NOTHING));
	assert_true(fx_exists("second"));
	assert_int_equal(remove(fx_path("second")), 0);
	if (fx_is_root()) {
		assert_int_equal(chown(fx_path(own(PART_SUFFIX)), 12345, 12345), 0);
		assert_null(told(&big, SINK_NOTHING));
	}
	later(&big, fx_is_root() ? 0 : 9);
}

/* Written, verified and completed at the same time. */
static struct { struct sink *s; atomic_int next; } shared;

static void *write_odd(void *arg)
{
	int i;

	(void)arg;
	while ((i = atomic_fetch_add(&shared.next, 2)) < 21)
		if (offer_write(shared.s, &big, (uint32_t)i, NULL) != 0)
			return "write failed";
	return NULL;
}

static void side_by_side(void **state)
{
	bool have[OFFER_BLOCKS], same;
	pthread_t t[2];
	struct sink *s;
	int round, i;
	void *bad;

	(void)state;
	for (round = 0; round < 50; round++) {
		s = offer_sink(fx_root, &big);
		for (i = 0; i < 21; i += 2)
			assert_int_equal(offer_write(s, &big, (uint32_t)i, NULL), 0);
		sink_unref(s);
		shared.s = offer_sink(fx_root, &big);
		atomic_store(&shared.next, 1);
		{
			struct sink_run runs[SINK_RUNS];
			struct sink_existing look;
			unsigned n;

			assert_int_equal(sink_inspect(shared.s, &look, NULL), 0);
			for (i = 0; i < 2; i++)
				assert_int_equal(pthread_create(&t[i], NULL, write_odd, NULL), 0);
			assert_int_equal(sink_verify_next(shared.s, runs, &n, NULL), 0);
			assert_int_equal(n, 11);
			for (i = 0; i < 11; i++)
				assert_true(runs[i].good);
			free(look.claimed);
		}
		assert_int_equal(sink_sync(shared.s, NULL), 0);
		for (i = 0; i < 2; i++) {
			pthread_join(t[i], &bad);
			assert_null(bad);
		}
		sink_keep(shared.s);
		sink_unref(shared.s);
		s = offer_sink(fx_root, &big);
		assert_int_equal(offer_resume(s, &big, have, &same, NULL), 21);
		assert_int_equal(offer_commit(s, NULL), 0);
		sink_unref(s);
		offer_holds("big", &big);
		assert_int_equal(remove(fx_path("big")), 0);
	}
}

static void same(void **state)
{
	const struct offer small = { "big", 100, 1, false }, empty = { "big", 0, 1, false };
	const struct offer *all[] = { &big, &sparse, &small, &empty };
	bool have[OFFER_BLOCKS], it_is;
	struct sink_existing look;
	struct digest sum;
	struct ptcp_err e;
	struct sink *s;
	size_t i;
	int fd;

	(void)state;
	for (i = 0; i < 4; i++) {
		later(all[i], 0);
		s = offer_sink(fx_root, all[i]);
		assert_int_equal(offer_resume(s, all[i], have, &it_is, NULL), 0);
		assert_true(it_is);
		sink_unref(s);
		assert_int_equal(fx_count(""), 1);
		assert_int_equal(remove(fx_path("big")), 0);
	}
	later(&big, 0);
	/* Same size and time, other content. */
	fd = open(fx_path("big"), O_RDWR | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "!", 1, 100000), 1);
	assert_int_equal(futimens(fd, (struct timespec[2]){ { 1001, 5 }, { 1001, 5 } }), 0);
	s = offer_sink(fx_root, &big);
	assert_int_equal(offer_resume(s, &big, have, &it_is, NULL), 0);
	assert_false(it_is);
	sink_unref(s);
	later(&big, 0);
	/* Changed or replaced while it is read. */
	for (i = 0; i < 2; i++) {
		s = offer_sink(fx_root, &big);
		assert_int_equal(sink_inspect(s, &look, NULL), 0);
		assert_int_equal(look.found, SINK_SAME);
		if (i == 0) {
			close(fd);
			fd = open(fx_path("big"), O_RDWR | O_CLOEXEC);
			assert_int_equal(pwrite(fd, "?", 1, 100000), 1);
		} else {
			assert_int_equal(remove(fx_path("big")), 0);
		}
		assert_int_equal(sink_same_next(s, &sum, &e), PTCP_ECHANGED);
		sink_unref(s);
		if (i == 0) {
			assert_int_equal(remove(fx_path("big")), 0);
			later(&big, 0);
		}
	}
	close(fd);
	/* Another time, another size, no file. */
	assert_int_equal(mkfifo(fx_path("big"), 0600), 0);
	assert_null(told(&big, SINK_NOTHING));
	assert_int_equal(remove(fx_path("big")), 0);
	fx_text("big", "old");
	assert_null(told(&big, SINK_NOTHING));
}

static const struct meta known = { .set_mode = true, .set_mtime = true, .mode = 0640, .mtime = { 1000, 5 } };

/* A file of the size and time of the source. */
static void make_known(void)
{
	static const struct timespec then[2] = { { 1000, 5 }, { 1000, 5 } };

	fx_text("big", "abc");
	assert_int_equal(utimensat(AT_FDCWD, fx_path("big"), then, 0), 0);
}

/* Size and time of the source suffice, unless a rule says otherwise: the file is examined once, and opened only if it
 * lacks an attribute. */
static void unchanged(void **state)
{
	struct sink_opts opts = { .block_bytes = OFFER_BLOCK, .has_version = true };
	struct sink_existing look;
	struct ptcp_err e;
	uint64_t dev, ino;
	struct sink *s;
	struct stat st;
	unsigned i;

	(void)state;
	make_known();
	for (i = 0; i < 4; i++) {
		/* without the mode; then the mode is refused, set, and there */
		assert_int_equal(chmod(fx_path("big"), i < 3 ? 0600 : 0640), 0);
		s = sink_new(fx_root, "big", 3, i == 0 ? &(struct meta){ .mtime = known.mtime } : &known, &opts);
		fx_heal();
		fx_fail_always(FX_fchmod, i == 1 ? EPERM : 0);
		assert_int_equal(sink_inspect(s, &look, &e), 0);
		assert_int_equal(look.found, SINK_UNCHANGED);
		assert_int_equal(look.lacking, i == 1);
		assert_int_equal(fx_calls_of(FX_fstatat), 1);
		assert_int_equal(fx_calls_of(FX_openat), i == 1 || i == 2);
		assert_int_equal(stat(fx_path("big"), &st), 0);
		assert_int_equal(st.st_mode & 0777, i < 2 ? 0600 : 0640);
		assert_true(sink_part_id(s, &dev, &ino) && ino == st.st_ino);
		sink_unref(s);
	}
	opts.rules.reads = true;
	s = sink_new(fx_root, "big", 3, &known, &opts);
	assert_int_equal(sink_inspect(s, &look, NULL), 0);
	assert_int_equal(look.found, SINK_SAME);
	sink_unref(s);
	/* A dry run changes nothing. */
	opts.rules.reads = false;
	assert_int_equal(chmod(fx_path("big"), 0600), 0);
	s = sink_new(fx_root, "big", 3, &known, &opts);
	assert_int_equal(sink_look(s, true, &look, NULL), 0);
	assert_int_equal(look.found, SINK_KEPT);
	sink_unref(s);
	assert_int_equal(stat(fx_path("big"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

/* Our own file that we may not read gets its attributes, too; one of another user does not. */
static void unreadable_one(void **state)
{
	const struct sink_opts opts = { .block_bytes = OFFER_BLOCK, .has_version = true };
	struct sink_existing look;
	struct ptcp_err e;
	struct sink *s;
	struct stat st;
	int i;

	(void)state;
	make_known();
	for (i = 0; i < 3; i++) {
		assert_int_equal(chmod(fx_path("big"), 0), 0);
		s = sink_new(fx_root, "big", 3, &known, &opts);
		fx_heal();
		if (i < 2)
			fx_fail_nth(2, EACCES); /* openat(), behind fstatat() */
		else
			fx_fail_always(FX_openat, EACCES);
		fx_fail_always(FX_fchmodat, i == 1 ? EPERM : 0);
		assert_int_equal(sink_inspect(s, &look, &e), i == 0 ? 0 : PTCP_EIO);
		assert_int_equal(fx_calls_of(FX_openat), i == 1 ? 1 : 2);
		fx_heal();
		assert_int_equal(stat(fx_path("big"), &st), 0);
		assert_int_equal(st.st_mode & 07777, i == 0 ? 0640 : 0);
		sink_unref(s);
	}
}

/* What is compared may be a hole of many terabytes: it is not read. */
static void same_hole(void **state)
{
	static const uint64_t size = UINT64_C(40000) * OFFER_BLOCK + 5;
	struct meta m = { .set_mtime = true, .mtime = { 1000, 0 } };
	struct sink_opts opts = { .block_bytes = OFFER_BLOCK, .has_version = true, .sparse = true,
		.rules.reads = true };
	struct digest want = { 0, 0 }, sum;
	static uint8_t block[OFFER_BLOCK];
	struct sink_existing look;
	struct sink *s;
	uint32_t i, n;
	int r;

	(void)state;
	for (i = 0; i <= 40000; i++) {
		n = i < 40000 ? OFFER_BLOCK : 5;
		memset(block, i == 20000 ? 'x' : 0, n);
		digest_add(&want, hash_term(i, n, hash_content(block, n)));
	}
	memset(block, 'x', sizeof block);
	s = sink_new(fx_root, "big", size, &m, &opts);
	assert_int_equal(sink_write(s, block, sizeof block, UINT64_C(20000) * OFFER_BLOCK,
	    hash_content(block, sizeof block), NULL), 0);
	assert_int_equal(offer_commit(s, NULL), 0);
	sink_unref(s);

	s = sink_new(fx_root, "big", size, &m, &opts);
	assert_int_equal(sink_inspect(s, &look, NULL), 0);
	assert_int_equal(look.found, SINK_SAME);
	fx_heal();
	while ((r = sink_same_next(s, &sum, NULL)) == 1)
		;
	assert_int_equal(r, 0);
	assert_int_equal(sum.hi, want.hi);
	assert_int_equal(sum.lo, want.lo);
	assert_in_range(fx_calls_of(FX_preadv2), 1, 2); /* a file system may round the data up */
	/* One that cannot tell is read. */
	sink_unref(s);
	s = sink_new(fx_root, "big", size, &m, &opts);
	assert_int_equal(sink_inspect(s, &look, NULL), 0);
	fx_heal();
	fx_fail_always(FX_lseek, EINVAL);
	while ((r = sink_same_next(s, &sum, NULL)) == 1)
		;
	assert_int_equal(r, 0);
	assert_int_equal(sum.hi, want.hi);
	assert_int_equal(fx_calls_of(FX_preadv2), 40001);
	sink_unref(s);
}

/* With any time: a file of the same size is compared, and gets the time of the source. */
static void any_time(void **state)
{
	static const struct timespec then[2] = { { 1000, 0 }, { 1000, 0 } };
	struct meta m = { .set_mtime = true, .mtime = { 2000, 7 } };
	struct sink_opts opts = { .block_bytes = OFFER_BLOCK, .rules.flags = RULE_CHECKSUM };
	struct sink_existing look;
	struct digest sum, want = { 0, 0 };
	struct ptcp_err e;
	struct sink *s;
	struct stat st;
	int dry_run;

	(void)state;
	digest_add(&want, hash_term(0, 3, hash_content("abc", 3)));
	for (dry_run = 0; dry_run < 2; dry_run++) {
		fx_text("big", "abc");
		assert_int_equal(utimensat(AT_FDCWD, fx_path("big"), then, 0), 0);
		s = sink_new(fx_root, "big", 3, &m, &opts);
		assert_int_equal(dry_run ? sink_look(s, true, &look, NULL) : sink_inspect(s, &look, NULL), 0);
		assert_int_equal(look.found, SINK_SAME);
		assert_int_equal(sink_same_next(s, &sum, NULL), 0);
		assert_true(digest_equal(sum, want));
		assert_int_equal(stat(fx_path("big"), &st), 0);
		assert_int_equal(st.st_mtim.tv_sec, 1000);
		if (!dry_run) {
			fx_fail_always(FX_futimens, EPERM);
			assert_int_equal(sink_refresh(s, &e), 1);
			fx_fail_always(FX_futimens, EIO);
			assert_int_equal(sink_refresh(s, &e), PTCP_EIO);
			fx_fail_always(FX_futimens, 0);
			assert_int_equal(sink_refresh(s, NULL), 0);
			assert_int_equal(stat(fx_path("big"), &st), 0);
			assert_true(st.st_mtim.tv_sec == 2000 && st.st_mtim.tv_nsec == 7);
		}
		sink_unref(s);
	}
	s = sink_new(fx_root, "big", 4, &m, &opts); /* of another size */
	assert_int_equal(sink_look(s, true, &look, NULL), 0);
	assert_int_equal(look.found, SINK_NOTHING);
	sink_unref(s);
}

/* A file system may store coarser times. */
static void coarse_times(void **state)
{
	static const struct { struct timespec source, target; bool same; } t[] = {
		{ { 1001, 123456789 }, { 1001, 123456789 }, true }, { { 1001, 123456789 }, { 1001, 123456788 }, false },
		{ { 1001, 123456789 }, { 1001, 123456700 }, true },  /* NTFS */
		{ { 1001, 123456789 }, { 1001, 123456600 }, false },
		    { { 1001, 123456789 }, { 1001, 123000000 }, false },
		{ { 1001, 123456789 }, { 1001, 120000000 }, true },  /* exFAT */
		{ { 1001, 123456789 }, { 1001, 0 }, true }, { { 1001, 123456789 }, { 1000, 0 }, true }, /* FAT */
		{ { 1001, 5 }, { 1000, 5 }, false }, { { 1000, 0 }, { 999, 0 }, false },
		    { { 1002, 0 }, { 1000, 0 }, false },
		{ { 1001, 0 }, { 1002, 0 }, false } };
	struct meta m = { 0 };
	struct sink *s;
	size_t i;

	(void)state;
	fx_text("big", "abc");
	for (i = 0; i < sizeof t / sizeof *t; i++) {
		m.mtime = t[i].source;
		assert_int_equal(utimensat(AT_FDCWD, fx_path("big"), (struct timespec[]){ t[i].target, t[i].target },
		    0), 0);
		s = with_meta(&m);
		if (seems_same(s) != t[i].same)
			fail_msg("case %zu", i);
		sink_unref(s);
	}
}

/* The end came between the renaming and the removal of the journal. */
static void dead_path_journal(void **state)
{
	uint8_t raw[2000];
	long n;

	(void)state;
	earlier(&big, 0, 21);
	n = fx_read(own(PART_JOURNAL_SUFFIX), raw, sizeof raw);
	later(&big, 21);
	fx_write(own(PART_JOURNAL_SUFFIX), raw, (size_t)n);
	assert_null(told(&big, SINK_SAME));
	assert_int_equal(fx_count(""), 1);
	/* Not looked at, it makes way. */
	fx_write(own(PART_JOURNAL_SUFFIX), raw, (size_t)n);
	{
		struct sink *s = offer_sink(fx_root, &big);
		bool none[OFFER_BLOCKS] = { false };

		assert_int_equal(offer_rest(s, &big, none, NULL), 0);
		assert_int_equal(offer_commit(s, NULL), 0);
		sink_unref(s);
	}
	assert_int_equal(fx_count(""), 1);
}

static void kept_or_not(void **state)
{
	struct offer unknown = big;
	struct sink *s;
	int i;

	(void)state;
	unknown.version = 0;
	for (i = 0; i < 4; i++) {
		s = offer_sink(fx_root, i == 2 ? &unknown : &big);
		if (i != 3)
			assert_int_equal(offer_write(s, &big, 7, NULL), 0);
		if (i == 0)
			sink_discard(s);
		else
			sink_keep(s);
		assert_int_equal(fx_open_files(), 0);
		assert_int_equal(fx_count(""), i == 1 ? 2 : 0);
		assert_int_equal(offer_write(s, &big, 8, NULL), PTCP_ECANCELED);
		sink_unref(s);
		if (i == 1) { /* what is found is kept, too, though nothing was added */
			s = offer_sink(fx_root, &big);
			{
				struct sink_existing look;

				assert_int_equal(sink_inspect(s, &look, NULL), 0);
				free(look.claimed);
			}
			assert_false(sink_discard_unopened(s));
			sink_keep(s);
			sink_unref(s);
			later(&big, 1);
			assert_int_equal(remove(fx_path("big")), 0);
		}
	}
}

/* No journal for one block, nor any call for one. */
static void small(void **state)
{
	const struct offer one = { "big", OFFER_BLOCK, 1, false };
	struct sink *s;
	int calls;

	(void)state;
	fx_needs_linux();
	s = offer_sink(fx_root, &one);
	assert_false(sink_has_journal(s));
	fx_heal();
	assert_int_equal(offer_write(s, &one, 0, NULL), 0);
	assert_int_equal(offer_commit(s, NULL), 0);
	calls = fx_calls();
	sink_unref(s);
	/* open lock stat write mode times, which file system, dup close, is it ours, rename close, is the root in its
	 * place */
	assert_int_equal(calls, 13);
	offer_holds("big", &one);
	/* The journal of what was a larger file goes when its part does. */
	earlier(&big, 0, 4);
	s = offer_sink(fx_root, &one);
	assert_int_equal(offer_write(s, &one, 0, NULL), 0);
	assert_int_equal(offer_commit(s, NULL), 0);
	sink_unref(s);
	assert_int_equal(fx_count(""), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fx_tree_test(goes_on),  fx_tree_test(many_records),
		fx_tree_test(superseded),
		fx_tree_test(holes), fx_tree_test(not_wanted), fx_tree_test(lies), fx_tree_test(unreadable),
		fx_tree_test(restarts), fx_tree_test(final_mode), fx_tree_test(busy),
		fx_tree_test(planted_part), fx_tree_test(side_by_side), fx_tree_test(same),
		fx_tree_test(unchanged), fx_tree_test(unreadable_one), fx_tree_test(same_hole),
		fx_tree_test(any_time), fx_tree_test(refreshed),
		fx_tree_test(coarse_times), fx_tree_test(refreshing_fails), fx_tree_test(dead_path_journal),
		fx_tree_test(kept_or_not), fx_tree_test(small),
	};
	return cmocka_run_group_tests_name("store/resume", tests, NULL, NULL);
}
