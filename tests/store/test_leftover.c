#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/leftover.h"
#include "store/part.h"

#define STEM ".ptcp-0123456789abcdef"
#define OTHER ".ptcp-fedcba9876543210"

static struct leftover_totals totals;
static char listed[4000]; /* "PATH" or "PATH!" for one that cannot be removed, each with a space behind */

static void on_found(void *arg, const struct leftover *l)
{
	char path[DIR_PATH_RAW_BYTES];

	(void)arg;
	strcat(listed, dir_path_raw(l->dir, l->name, path, sizeof path));
	strcat(listed, l->why != NULL ? "! " : " ");
}

/* As `later_s` seconds from now. */
static void clean(double later_s, double older_s, bool dry_run)
{
	struct leftover_opts o = { .older_s = older_s, .dry_run = dry_run, .found = on_found };

	listed[0] = '\0';
	clock_gettime(CLOCK_REALTIME, &o.now);
	o.now.tv_sec += (time_t)later_s;
	assert_int_equal(leftovers_clean(fx_root, &o, &totals, NULL), 0);
}

static void old_ones_are_removed(void **state)
{
	(void)state;
	fx_mkdir("d");
	fx_text("d/file", "final");
	fx_text("d/" STEM ".part", "data");
	fx_text("d/" STEM ".journal", "journal");
	fx_text(OTHER ".journal", "alone");
	assert_int_equal(symlink("file", fx_path("d/" OTHER ".link")), 0);
	fx_text("d/" STEM ".party", "the user's");
	clean(100, 1000, false);
	assert_string_equal(listed, "");
	assert_int_equal(totals.recent, 4);
	clean(2000, 1000, true);
	assert_int_equal(totals.files, 4);
	assert_true(fx_exists("d/" STEM ".part"));
	clean(2000, 1000, false);
	assert_int_equal(totals.files, 4);
	assert_int_equal(totals.bytes, 4 + 7 + 5 + 4);
	assert_int_equal(totals.failed + totals.in_use + totals.recent, 0);
	assert_int_equal(fx_count("d"), 2);
	fx_holds("d/file", "final");
	fx_holds("d/" STEM ".party", "the user's");
	assert_false(fx_exists(OTHER ".journal"));
	clean(2000, 1000, false);
	assert_string_equal(listed, "");
}

/* The lock of a part protects the part, its journal, and the mark of its directory. */
static void locked_ones_are_retained(void **state)
{
	int fd;

	(void)state;
	fx_mkdir("d");
	fx_text("d/" STEM ".part", "data");
	fx_text("d/" STEM ".journal", "journal");
	fx_text("d/" OTHER ".part", "data");
	fx_text(STEM ".dir", "source");
	fd = open(fx_path("d/" STEM ".part"), O_RDWR);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	clean(1e6, 0, false);
	assert_string_equal(listed, "d/" OTHER ".part ");
	assert_int_equal(totals.in_use, 2);
	assert_true(fx_exists("d/" STEM ".part") && fx_exists("d/" STEM ".journal") && fx_exists(STEM ".dir"));
	close(fd);
	clean(1e6, 0, false);
	assert_int_equal(totals.files, 3);
	assert_int_equal(fx_count("d"), 0);
	assert_false(fx_exists(STEM ".dir"));
}

/* What has no lock may belong to a transfer that runs: a minute without changes is required. */
static void unlocked_ones_need_an_age(void **state)
{
	(void)state;
	fx_text(STEM ".journal", "alone");
	fx_text(OTHER ".part", "data");
	assert_int_equal(symlink("x", fx_path(OTHER ".link")), 0);
	clean(1, 0, false);
	assert_string_equal(listed, OTHER ".part ");
	assert_int_equal(totals.recent, 2);
	clean(LEFTOVER_UNLOCKED_S + 5, 0, false);
	assert_int_equal(totals.files, 2);
}

/* A journal may be older than its part, and the other way round: the newer one counts. */
static void part_and_journal_have_one_age(void **state)
{
	(void)state;
	fx_text(STEM ".journal", "journal");
	sleep(1);
	fx_text(STEM ".part", "data");
	clean(0, 0.9, false);
	assert_int_equal(totals.recent, 2);
	assert_true(fx_exists(STEM ".journal"));
}

/* The lock of the part covers the journal, in any order of the listing. */
static void journals_go_with_their_parts(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < 16; i++) {
		char part[PART_NAME_BYTES], journal[PART_NAME_BYTES];

		snprintf(part, sizeof part, ".ptcp-%016x.part", i);
		snprintf(journal, sizeof journal, ".ptcp-%016x.journal", i);
		fx_text(part, "data");
		fx_text(journal, "journal");
	}
	clean(1, 0, true);
	assert_int_equal(totals.files, 32);
	clean(1, 0, false);
	assert_int_equal(totals.files, 32);
	assert_int_equal(totals.recent, 0);
	assert_int_equal(fx_count("."), 0);
}

static void links_are_not_followed(void **state)
{
	(void)state;
	fx_mkdir("in");
	fx_mkdir("in/d");
	fx_mkdir("out");
	fx_text("out/" STEM ".part", "data");
	fx_text("out/precious", "data");
	assert_int_equal(symlink("../out", fx_path("in/d/away")), 0);
	assert_int_equal(symlink("../../out/precious", fx_path("in/d/" OTHER ".part")), 0);
	{
		struct leftover_opts o = { .found = on_found };
		struct dir *in = dir_child(fx_root, "in");

		listed[0] = '\0';
		clock_gettime(CLOCK_REALTIME, &o.now);
		o.now.tv_sec += 1000000;
		assert_int_equal(leftovers_clean(in, &o, &totals, NULL), 0);
		dir_unref(in);
	}
	assert_string_equal(listed, "in/d/" OTHER ".part! ");
	assert_int_equal(totals.failed, 1);
	fx_holds("out/" STEM ".part", "data");
	fx_holds("out/precious", "data");
	assert_true(fx_exists("in/d/" OTHER ".part"));
}

static void another_users_are_reported(void **state)
{
	(void)state;
	if (!fx_is_root())
		skip();
	fx_text(STEM ".part", "data");
	fx_text(STEM ".journal", "data");
	assert_int_equal(chown(fx_path(STEM ".part"), 12345, 12345), 0);
	assert_int_equal(chown(fx_path(STEM ".journal"), 12345, 12345), 0);
	clean(1e6, 0, false);
	assert_int_equal(totals.failed, 2);
	assert_int_equal(totals.files, 0);
	fx_holds(STEM ".part", "data");
}

static void failures_are_reported(void **state)
{
	(void)state;
	fx_text(STEM ".part", "data");
	fx_fail_always(FX_unlinkat, EROFS);
	clean(1e6, 0, false);
	fx_heal();
	assert_string_equal(listed, STEM ".part! ");
	assert_int_equal(totals.failed, 1);
	assert_true(fx_exists(STEM ".part"));
}

/* No descriptor is left behind, whichever call fails. */
static void every_call_may_fail(void **state)
{
	int nth, open_before = fx_open_fds(), failed;

	(void)state;
	fx_mkdir("d");
	fx_text("d/" STEM ".part", "data");
	fx_text("d/" STEM ".journal", "journal");
	fx_text(STEM ".dir", "source");
	for (nth = 1, failed = 1; failed; nth++) {
		struct leftover_opts o = { .found = on_found, .dry_run = true };

		listed[0] = '\0';
		clock_gettime(CLOCK_REALTIME, &o.now);
		o.now.tv_sec += 1000000;
		fx_fail_nth(nth, EIO);
		leftovers_clean(fx_root, &o, &totals, NULL);
		failed = fx_failed();
		fx_heal();
		assert_in_range(fx_open_fds(), 0, open_before + 4); /* directories stay open */
	}
	assert_true(nth > 8);
	assert_int_equal(totals.files, 3);
}

/* What a transfer tells of a directory: what it would not resume, there alone. */
static void counted(void **state)
{
	struct leftover_count c = { 0 };
	struct dir *d = dir_child(fx_root, "d");
	int fd;

	(void)state;
	fx_mkdir("d");
	fx_mkdir("d/e");
	fx_text("d/e/" STEM ".part", "below");
	leftovers_count(d, &c);
	assert_int_equal(c.files, 0);
	fx_text("d/" STEM ".part", "data");
	fx_text("d/" STEM ".journal", "journal");
	fx_text("d/" STEM ".dir", "a mark");
	fx_text("d/" OTHER ".part", "in use");
	fx_text("d/file", "final");
	fd = open(fx_path("d/" OTHER ".part"), O_RDWR);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	leftovers_count(d, &c);
	assert_int_equal(c.files, 2);
	assert_int_equal(c.bytes, 4 + 7);
	assert_true(c.age_s >= 0 && c.age_s < 60);
	close(fd);
	leftovers_count(d, &c);
	assert_int_equal(c.files, 2 + 3);
	assert_true(fx_exists("d/" STEM ".part"));
	dir_unref(d);
	d = dir_child(fx_root, "missing");
	leftovers_count(d, &c);
	assert_int_equal(c.files, 5);
	dir_unref(d);
}

/* In steps of one entry each, and given up after any of them. */
static void steps(void **state)
{
	struct leftover_opts o = { .found = on_found };
	int n, k, left, open_before = fx_open_fds();
	struct leftovers *l;

	(void)state;
	clock_gettime(CLOCK_REALTIME, &o.now);
	o.now.tv_sec += 1000000;
	fx_mkdir("d");
	for (k = 0; k < 4; k++) {
		listed[0] = '\0';
		fx_text("d/" STEM ".part", "data");
		fx_text("d/" OTHER ".part", "data");
		assert_int_equal(leftovers_new(&l, fx_root, &o, NULL), 0);
		for (n = 0, left = 1; n < k && left > 0; n++)
			assert_true((left = leftovers_step(l, 1, NULL)) >= 0);
		leftovers_free(l);
		assert_int_equal(fx_count("d"), k < 2 ? 2 : 3 - k);
		assert_in_range(fx_open_fds(), 0, open_before + 4);
	}
	assert_int_equal(leftovers_new(&l, fx_root, &o, NULL), 0);
	for (n = 1; (left = leftovers_step(l, 1, NULL)) > 0; n++)
		;
	assert_int_equal(left, 0);
	assert_int_equal(n, 3); /* d, the end of d, the end */
	assert_int_equal(leftovers_totals(l)->files, 0);
	leftovers_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fx_tree_test(old_ones_are_removed), fx_tree_test(locked_ones_are_retained),
		fx_tree_test(unlocked_ones_need_an_age), fx_tree_test(part_and_journal_have_one_age),
		fx_tree_test(journals_go_with_their_parts), fx_tree_test(links_are_not_followed),
		fx_tree_test(another_users_are_reported),
		fx_tree_test(failures_are_reported), fx_tree_test(every_call_may_fail), fx_tree_test(steps),
		fx_tree_test(counted),
	};

	return cmocka_run_group_tests_name("store/leftover", tests, NULL, NULL);
}
