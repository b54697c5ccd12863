/* Somebody with write access below the root swaps a directory with a link to one
 * outside it, over and over, while files are received and sent there.
 * against: links */
#include "fixture.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/units.h"
#include "offer.h"
#include "store/sink.h"
#include "store/source.h"

#define FOR_NS (400 * NS_PER_MS)
#define SECRET "secret"

static struct tree *tree;
static struct dir *root;
static atomic_bool stop;
static const struct meta full = { .set_mode = true, .set_mtime = true, .mode = 0755,
	.mtime = { 1000, 1 } };

static void *swapper(void *arg)
{
	char real[500], evil[500];

	(void)arg;
	snprintf(real, sizeof real, "%s", fx_path("root/d"));
	snprintf(evil, sizeof evil, "%s", fx_path("root/evil"));
	while (!atomic_load(&stop))
		if (renameat2(AT_FDCWD, real, AT_FDCWD, evil, RENAME_EXCHANGE) != 0)
			return "cannot swap";
	return NULL;
}

static int setup(void **state)
{
	int i;

	if (fx_setup(state) != 0)
		return -1;
	fx_mkdir("root");
	fx_mkdir("root/d");
	fx_mkdir("root/d/s");
	fx_mkdir("outside");
	fx_mkdir("outside/s");
	fx_text("outside/f", SECRET);
	fx_text("outside/s/f", SECRET);
	fx_text("root/d/f", "public");
	fx_text("root/d/s/f", "public");
	i = symlink("../outside", fx_path("root/evil"));
	return i == 0 ? tree_open(&tree, fx_path("root"), &fx_sys, NULL) : -1;
}

static int teardown(void **state)
{
	dir_unref(root);
	tree_unref(tree);
	return fx_teardown(state);
}

/* A fresh node, so that the directory is opened anew: root/d or root/d/s. */
static struct dir *fresh(int deep)
{
	struct dir *d = dir_child(root, "d"), *s;

	if (!deep)
		return d;
	s = dir_child(d, "s");
	dir_unref(d);
	return s;
}

static int receive(struct dir *d, int i)
{
	char name[20];
	struct sink *s;
	int r;

	snprintf(name, sizeof name, "new%d", i % 10);
	s = sink_new(d, name, 4, &full, NULL);
	r = sink_write(s, "data", 4, 0, 0, NULL);
	if (r == 0)
		r = offer_commit(s, NULL);
	if (r != 0)
		sink_discard(s);
	sink_unref(s);
	return r;
}

static int entries(struct dir *d, int i)
{
	char name[20];

	snprintf(name, sizeof name, "dir%d", i % 10);
	if (store_mkdir(d, name, &full, NULL, NULL) != 0 ||
	    store_symlink(d, "link", "target", &full, NULL, NULL) != 0)
		return -1;
	return store_dir_finish(d, &full, NULL);
}

static int resolve(struct dir *d, int i)
{
	static const char *const ways[] = { "d", "d/s", "d/../d/s", "evil", "d/s/.." };
	struct dir *there;
	int r;

	(void)d;
	if (dir_resolve(&there, root, ways[i % 5], NULL) != 0)
		return -1;
	r = receive(there, i);
	dir_unref(there);
	return r;
}

static int send_it(struct dir *d, int i)
{
	char text[sizeof SECRET];
	struct walk_entry e;
	struct source *s;
	struct walk *w;
	int r;

	assert_int_equal(walk_new(&w, NULL, NULL), 0);
	if (i % 2)
		walk_add(w, d, "f", NULL);
	else
		walk_add(w, root, NULL, NULL);
	while ((r = walk_next(w, &e, NULL)) == 1 &&
	    !(e.type == WALK_FILE && strcmp(e.name, "f") == 0))
		walk_entry_fini(&e);
	walk_free(w);
	if (r != 1)
		return -1;
	assert_int_equal(e.size_bytes, 6);
	s = source_new(&e);
	r = source_read(s, text, 6, 0, true, NULL);
	if (r == 0)
		assert_memory_equal(text, "public", 6);
	source_unref(s);
	return r;
}

/* Runs `what` against the swapper. It must have worked sometimes and failed
 * sometimes (else nothing was raced), and outside all is as it was. */
static void race(int (*what)(struct dir *d, int i))
{
	struct mono start = mono_now();
	struct stat a, b, as, bs;
	int i, good = 0, bad = 0;
	struct dir *d;
	pthread_t t;
	void *why;

	assert_int_equal(stat(fx_path("outside"), &a), 0);
	assert_int_equal(stat(fx_path("outside/s"), &as), 0);
	root = tree_root(tree);
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&t, NULL, swapper, NULL), 0);
	for (i = 0; mono_diff_ns(mono_now(), start) < FOR_NS || ((good == 0 || bad == 0) &&
	     mono_diff_ns(mono_now(), start) < 30 * NS_PER_S); i++) {
		d = fresh(i / 2 % 2);
		if (what(d, i) == 0)
			good++;
		else
			bad++;
		dir_unref(d);
	}
	atomic_store(&stop, true);
	pthread_join(t, &why);
	assert_null(why);
	assert_true(good > 0 && bad > 0);
	assert_int_equal(fx_count("outside"), 2);
	assert_int_equal(fx_count("outside/s"), 1);
	fx_holds("outside/f", SECRET);
	assert_int_equal(stat(fx_path("outside"), &b), 0);
	assert_int_equal(stat(fx_path("outside/s"), &bs), 0);
	assert_int_equal(a.st_mode, b.st_mode);
	assert_int_equal(a.st_ctim.tv_nsec, b.st_ctim.tv_nsec); /* not even touched */
	assert_int_equal(as.st_mode, bs.st_mode);
	assert_int_equal(as.st_ctim.tv_nsec, bs.st_ctim.tv_nsec);
}

static void receiving(void **state) { (void)state; race(receive); }
static void making(void **state) { (void)state; race(entries); }
static void resolving(void **state) { (void)state; race(resolve); }
static void sending(void **state) { (void)state; race(send_it); }

static void resolving_plainly(void **state)
{
	(void)state;
	fx_fail_always(FX_openat2, ENOSYS);
	race(resolve);
}

/* A copy of a block that is written while the file is committed: what it touches, the times, must
 * be set after it. */
static atomic_int writing;

static void slow_write(enum fx_call call)
{
	struct timespec nap = { 0, 50000000 };

	if (call == FX_pwrite && atomic_load(&writing) == 1) {
		atomic_store(&writing, 2);
		nanosleep(&nap, NULL);
	}
}

static void *write_late(void *arg)
{
	return sink_write(arg, "again", 5, 0, 0, NULL) == 0 ? NULL : arg;
}

static void committing_beside_a_writer(void **state)
{
	struct meta m = { .set_mtime = true, .mtime = { 1000000000, 123 } };
	struct sink *s;
	struct ptcp_err e;
	struct stat st;
	pthread_t t;
	void *why;

	(void)state;
	root = tree_root(tree); /* ends with the test */
	s = sink_new(root, "late", 5, &m, NULL);
	assert_int_equal(sink_write(s, "again", 5, 0, 0, &e), 0);
	fx_before(slow_write);
	atomic_store(&writing, 1);
	assert_int_equal(pthread_create(&t, NULL, write_late, s), 0);
	while (atomic_load(&writing) != 2)
		;
	assert_int_equal(offer_commit(s, &e), 0);
	assert_int_equal(pthread_join(t, &why), 0);
	fx_before(NULL);
	assert_null(why);
	assert_int_equal(stat(fx_path("root/late"), &st), 0);
	assert_int_equal(st.st_mtim.tv_sec, 1000000000);
	assert_int_equal(st.st_mtim.tv_nsec, 123);
	sink_unref(s);
}

#define race_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		race_test(receiving), race_test(making), race_test(resolving),
		race_test(resolving_plainly), race_test(sending),
		race_test(committing_beside_a_writer),
	};
	return cmocka_run_group_tests_name("store/race", tests, NULL, NULL);
}
