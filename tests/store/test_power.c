/* The power is cut at random instants while a tree is received, and comes back. POWER_SEED=n
 * runs that seed alone, POWER_RUNS=n other than 1,000 seeds.
 * against: failure */
#include "fixture.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "offer.h"
#include "power.h"

#define RUNS 1000
#define GROUP 20u
#define CALLS 400 /* about as many as there are: a cut after the last one is one, too */

/* d/e/ and f/ are made; some files were there, with other content. */
enum { D, E, F, DIRS };
#define BLOCKS(n) ((n) * OFFER_BLOCK)

static const struct file { struct offer o; int dir; const char *path; bool was_there; } files[] = {
	{ { "a", BLOCKS(5) + 1, 1, false }, D, "d/a", false },
	{ { "b", BLOCKS(7), 1, true }, D, "d/b", true },
	{ { "c", 100, 1, false }, D, "d/c", true },
	{ { "empty", 0, 1, false }, D, "d/empty", false },
	{ { "g", BLOCKS(1), 1, false }, E, "d/e/g", false },
	{ { "h", BLOCKS(9) + 4097, 1, false }, E, "d/e/h", true },
	{ { "i", BLOCKS(3), 0, false }, E, "d/e/i", false }, /* no version, no journal */
	{ { "j", BLOCKS(2), 1, false }, E, "d/e/j", true },
	{ { "k", BLOCKS(4) + 5000, 1, true }, F, "f/k", false },
	{ { "l", 1, 1, false }, F, "f/l", false },
	{ { "m", 2, 1, false }, F, "f/m", false },
	{ { "n", 3, 1, false }, F, "f/n", false },
	{ { "o", 4, 1, false }, F, "f/o", false },
	{ { "p", BLOCKS(12), 1, false }, F, "f/p", false },
};
#define FILES (sizeof files / sizeof *files)

static struct { bool file[FILES], link; } reported;
static uint64_t resumed, kept, seed;

/* The content that was there. */
static struct offer old(const struct file *f)
{
	struct offer o = f->o;

	o.version = 77;
	return o;
}

static int wipe_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type;
	return ftw->level == 0 ? 0 : remove(path);
}

static void wipe(const char *below)
{
	assert_int_equal(nftw(fx_path(below), wipe_one, 64, FTW_DEPTH | FTW_PHYS), 0);
}

static const char *in(const char *disk, const char *path)
{
	static char text[300];

	snprintf(text, sizeof text, "%s/%s", disk, path);
	return text;
}

static void put_old(const char *disk)
{
	static uint8_t whole[OFFER_BLOCKS * OFFER_BLOCK];
	struct offer o;
	uint32_t i;
	size_t k;

	fx_mkdir(in(disk, "d"));
	fx_mkdir(in(disk, "d/e"));
	for (k = 0; k < FILES; k++) {
		if (!files[k].was_there)
			continue;
		o = old(&files[k]);
		for (i = 0; i < offer_blocks(&o); i++)
			offer_block(&o, i, whole + i * OFFER_BLOCK);
		fx_write(in(disk, files[k].path), whole, (size_t)o.size_bytes);
	}
}

/* Never a wrong byte under a final name, and what was reported is there. */
static void check(const char *disk)
{
	static uint8_t back[OFFER_BLOCKS * OFFER_BLOCK];
	struct offer o;
	bool is_new;
	size_t k;
	long n;

	for (k = 0; k < FILES; k++) {
		n = fx_read(in(disk, files[k].path), back, sizeof back);
		is_new = n >= 0 && offer_is(&files[k].o, back, (size_t)n);
		o = old(&files[k]);
		if (!is_new && n >= 0)
			assert_true(files[k].was_there && offer_is(&o, back, (size_t)n));
		if (n < 0)
			assert_false(files[k].was_there);
		if (reported.file[k])
			assert_true(is_new);
	}
	if (reported.link)
		assert_true(fx_exists(in(disk, "f/link")));
}

/* Looks and writes in turns; true if all of it is written (or was there: *same). */
static bool write_file(struct sink *s, const struct offer *o, bool *same)
{
	bool have[OFFER_BLOCKS];
	uint32_t i, n = offer_blocks(o), start;
	int r;

	if ((r = offer_resume(s, o, have, same, NULL)) < 0 || *same)
		return r >= 0;
	resumed += (unsigned)r;
	start = n > 0 ? power_random(n) : 0;
	for (i = 0; i < n; i++) {
		uint32_t block = (start + i * 5) % n; /* no n is a multiple of 5 but one */

		block = n % 5 == 0 ? (start + i) % n : block;
		if (!have[block] && !offer_hole(o, block) && offer_write(s, o, block, NULL) != 0)
			return false;
		if (power_random(6) == 0 && sink_sync(s, NULL) != 0)
			return false;
	}
	return true;
}

/* A group of files and perhaps the link. False: the power is off. */
static bool receive_group(struct dir *dirs[DIRS], const size_t *order, unsigned n, bool link,
    enum store_sync sync)
{
	struct store_item of[GROUP + 1] = { 0 };
	size_t file[GROUP];
	unsigned i, m = 0;
	struct sink *s;
	bool same, ok = true;

	for (i = 0; i < n && ok; i++) {
		s = offer_sink(dirs[files[order[i]].dir], &files[order[i]].o);
		ok = write_file(s, &files[order[i]].o, &same);
		if (ok && !same) {
			file[m] = order[i];
			of[m++].sink = s;
		} else {
			kept += ok;
			sink_unref(s);
		}
	}
	if (ok && link && store_symlink(dirs[F], "link", "target", &(struct meta){ 0 }, NULL, NULL) == 0)
		of[m].dir = dirs[F];
	if (ok)
		store_complete(of, m + (of[m].dir != NULL), sync);
	for (i = 0; i < m; i++) {
		if (ok && of[i].result == 0)
			reported.file[file[i]] = true;
		sink_unref(of[i].sink);
	}
	if (ok && of[m].dir != NULL && of[m].result == 0)
		reported.link = true;
	return !power_is_off();
}

static bool make_dirs(struct dir *root, struct dir *dirs[DIRS])
{
	dirs[D] = dir_child(root, "d");
	dirs[E] = dir_child(dirs[D], "e");
	dirs[F] = dir_child(root, "f");
	return store_mkdir(root, "d", NULL, NULL, NULL) == 0 &&
	    store_mkdir(dirs[D], "e", NULL, NULL, NULL) == 0 &&
	    store_mkdir(root, "f", NULL, NULL, NULL) == 0;
}

/* Receives all in groups of random sizes, in random order, until the power is off. */
static void receive(const char *disk, const struct sys *sys)
{
	enum store_sync sync = power_random(4) == 0 ? STORE_SYNC_FILE : STORE_SYNC_GROUP;
	struct dir *root, *dirs[DIRS];
	size_t order[FILES], i, n, k, swap;
	struct tree *t;
	bool on;

	assert_int_equal(tree_open(&t, fx_path(disk), sys, NULL), 0);
	root = tree_root(t);
	for (i = 0; i < FILES; i++)
		order[i] = i;
	for (i = FILES - 1; i > 0; i--) {
		k = power_random((uint32_t)i + 1);
		swap = order[i];
		order[i] = order[k];
		order[k] = swap;
	}
	on = make_dirs(root, dirs);
	for (i = 0; i < FILES && on; i += n) {
		n = 1 + power_random(14);
		n = n < FILES - i ? n : FILES - i;
		on = receive_group(dirs, order + i, (unsigned)n, i == 0, sync);
	}
	for (i = 0; i < DIRS; i++)
		dir_unref(dirs[i]);
	dir_unref(root);
	tree_unref(t);
}

static void all_is_there(const char *disk)
{
	size_t k;

	for (k = 0; k < FILES; k++)
		offer_holds(in(disk, files[k].path), &files[k].o);
	assert_int_equal(fx_count(in(disk, "")), 2);
	assert_int_equal(fx_count(in(disk, "d")), 5);
	assert_int_equal(fx_count(in(disk, "d/e")), 4);
	assert_int_equal(fx_count(in(disk, "f")), 7);
}

/* One or two cuts, then a run to the end. */
static void run(void)
{
	static const char *const disks[] = { "disk0", "disk1" };
	unsigned cut, cuts = 1 + seed % 2, now = 0;

	memset(&reported, 0, sizeof reported);
	put_old(disks[0]);
	for (cut = 0; cut < cuts; cut++, now ^= 1) {
		power_on(fx_path(disks[now]), seed * 2 + cut, CALLS);
		receive(disks[now], &power_sys);
		power_cut(fx_path(disks[now ^ 1]));
		wipe(disks[now]);
		check(disks[now ^ 1]);
	}
	receive(disks[now], seed % 50 == 0 ? &sys_real : &fx_sys);
	check(disks[now]);
	all_is_there(disks[now]);
	wipe(disks[now]);
}

static void cuts(void **state)
{
	const char *one = getenv("POWER_SEED"), *runs = getenv("POWER_RUNS");
	uint64_t end;

	(void)state;
	seed = one != NULL ? strtoull(one, NULL, 10) : 1;
	end = one != NULL ? seed + 1 : seed + (runs != NULL ? strtoull(runs, NULL, 10) : RUNS);
	fx_mkdir("disk0");
	fx_mkdir("disk1");
	for (; seed < end; seed++)
		run();
	printf("# %llu blocks taken up again, %llu files found complete\n",
	    (unsigned long long)resumed, (unsigned long long)kept);
	if (one == NULL)
		assert_true(resumed > 0 && kept > 0);
}

static int teardown(void **state)
{
	printf("# the last was POWER_SEED=%llu\n", (unsigned long long)seed);
	return fx_teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test_setup_teardown(cuts, fx_setup, teardown) };

	fx_in_memory();
	return cmocka_run_group_tests_name("store/power", tests, NULL, NULL);
}
