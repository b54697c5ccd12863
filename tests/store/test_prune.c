/* Removal of what the source of a transfer does not have. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/hash.h"
#include "store/manage.h"

#define PART ".ptcp-0123456789abcdef.part"

static struct name_set names;
static struct ptcp_err why;
static char said[4000];

static int setup(void **state)
{
	said[0] = '\0';
	return fx_tree_setup(state);
}

static int teardown(void **state)
{
	name_set_fini(&names);
	return fx_tree_teardown(state);
}

/* The source has the path; a directory ends with a slash. Returns its hash. */
static uint64_t has(const char *path)
{
	char copy[300], *name, *save = NULL;
	uint64_t h = 0;

	snprintf(copy, sizeof copy, "%s", path);
	for (name = strtok_r(copy, "/", &save); name != NULL; name = strtok_r(NULL, "/", &save))
		h = hash_name(h, name);
	assert_int_equal(name_set_add(&names, h, NULL), 0);
	if (path[strlen(path) - 1] == '/')
		assert_int_equal(name_set_add(&names, prune_dir_hash(h), NULL), 0);
	return h;
}

static void on_entry(void *arg, const char *path, const struct ptcp_err *e)
{
	(void)arg;
	snprintf(said + strlen(said), sizeof said - strlen(said), "%s%s ", e != NULL ? "!" : "", path);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* The words of `said`, sorted. */
static const char *sorted(void)
{
	static char out[4000];
	char copy[4000], *word[100], *save = NULL, *w;
	size_t n = 0, i;

	strcpy(copy, said);
	for (w = strtok_r(copy, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save))
		word[n++] = w;
	qsort(word, n, sizeof *word, by_name);
	out[0] = '\0';
	for (i = 0; i < n; i++)
		sprintf(out + strlen(out), "%s%s", i > 0 ? " " : "", word[i]);
	return out;
}

static const struct prune_opts usual = { .names = &names, .links = true, .max = 1000, .entry = on_entry };

static int run_at(struct prune_opts o, struct dir *d, uint64_t hash, const char *source,
    uint64_t *removed, unsigned step)
{
	struct prune *p;
	int r;

	assert_int_equal(prune_new(&p, &o, NULL), 0);
	if (d != NULL)
		assert_int_equal(prune_add(p, d, hash, source, NULL), 0);
	while ((r = prune_step(p, step, &why)) > 0)
		;
	*removed = prune_removed(p);
	prune_free(p);
	return r;
}

static void tree(void)
{
	fx_mkdir("a");
	fx_mkdir("a/old");
	fx_text("a/old/1", "");
	fx_text("a/old/2", "");
	fx_text("a/new", "");
	fx_text("a/gone", "");
	fx_mkdir("b");
	fx_text("b/x", "");
	assert_int_equal(symlink("a", fx_path("link")), 0);
	has("a/");
	has("a/new");
}

static void removes_what_the_source_lacks(void **state)
{
	uint64_t n;
	unsigned step;

	(void)state;
	for (step = 1; step < 100; step += 98) {
		said[0] = '\0';
		tree();
		assert_int_equal(run_at(usual, fx_root, 0, "", &n, step), 0);
		assert_int_equal(n, 7);
		assert_string_equal(sorted(), "a/gone a/old a/old/1 a/old/2 b b/x link");
		assert_int_equal(fx_count("."), 1);
		assert_int_equal(fx_count("a"), 1);
		assert_int_equal(unlink(fx_path("a/new")), 0);
		assert_int_equal(rmdir(fx_path("a")), 0);
	}
	said[0] = '\0';
	assert_int_equal(run_at(usual, fx_root, 0, "", &n, 10), 0); /* nothing is left to do */
	assert_true(n == 0 && said[0] == '\0');
	assert_int_equal(run_at(usual, NULL, 0, "", &n, 10), 0);
}

/* Only beneath the directories that were received. */
static void only_received_directories(void **state)
{
	struct dir *a = dir_child(fx_root, "a"), *none = dir_child(fx_root, "none");
	uint64_t n;

	(void)state;
	tree();
	assert_int_equal(run_at(usual, a, has("a/"), "a", &n, 10), 0);
	assert_string_equal(sorted(), "a/gone a/old a/old/1 a/old/2");
	assert_int_equal(fx_count("b"), 1);
	assert_int_equal(run_at(usual, none, has("none/"), "none", &n, 10), 0);
	assert_int_equal(n, 0);
	dir_unref(a);
	dir_unref(none);
}

static void at_most_so_many(void **state)
{
	struct prune_opts o = usual;
	uint64_t n;

	(void)state;
	tree();
	for (o.max = 0; o.max < 7; o.max++) {
		assert_int_equal(run_at(o, fx_root, 0, "", &n, 3), PTCP_EIO);
		assert_non_null(strstr(why.msg, "--max-delete"));
		assert_true(n == 0 && said[0] == '\0');
	}
	o.dry_run = true;
	o.max = 3;
	assert_int_equal(run_at(o, fx_root, 0, "", &n, 3), PTCP_EIO);
	assert_int_equal(n, 3);
	o.max = 7;
	said[0] = '\0';
	assert_int_equal(run_at(o, fx_root, 0, "", &n, 3), 0);
	assert_string_equal(sorted(), "a/gone a/old a/old/1 a/old/2 b b/x link");
	assert_int_equal(fx_count("a/old"), 2);
	o.dry_run = false;
	assert_int_equal(run_at(o, fx_root, 0, "", &n, 3), 0);
	assert_int_equal(n, 7);
}

/* What lies deeper is left out of the transfer, and so are the directories that contain it. */
static void deeper_entries_stay(void **state)
{
	struct prune_opts o = usual;
	uint64_t n;

	(void)state;
	tree();
	o.max_depth = 2;
	assert_int_equal(run_at(o, fx_root, 0, "", &n, 3), 0);
	assert_string_equal(sorted(), "a/gone b b/x link");
	assert_int_equal(fx_count("a/old"), 2);
	said[0] = '\0';
	o.max_depth = 3;
	assert_int_equal(run_at(o, fx_root, 0, "", &n, 3), 0);
	assert_string_equal(sorted(), "a/old a/old/1 a/old/2");
}

/* Excluded paths, special files, unfinished files, links that are not transferred; and the directories that have
 * them. */
static void what_is_kept(void **state)
{
	struct prune_opts o = usual;
	struct filter *f;
	uint64_t n;

	(void)state;
	tree();
	fx_text("a/old/keep.o", "");
	fx_mkdir("fifos");
	assert_int_equal(mkfifo(fx_path("fifos/fifo"), 0600), 0);
	fx_mkdir("parts");
	fx_text("parts/" PART, "");
	fx_mkdir("excluded");
	fx_text("excluded/x", "");
	assert_int_equal(filter_new(&f, NULL, NULL), 0);
	assert_int_equal(filter_add_pattern(f, false, "*.o", NULL), 0);
	assert_int_equal(filter_add_pattern(f, false, "/src/excluded/", NULL), 0);
	o.filter = f;
	o.links = false;
	o.dry_run = true;
	assert_int_equal(run_at(o, fx_root, 0, "src", &n, 10), 0);
	assert_string_equal(sorted(), "a/gone a/old/1 a/old/2 b b/x");
	o.dry_run = false;
	said[0] = '\0';
	assert_int_equal(run_at(o, fx_root, 0, "src", &n, 10), 0);
	assert_string_equal(sorted(), "a/gone a/old/1 a/old/2 b b/x");
	assert_int_equal(fx_count("a/old"), 1);
	assert_int_equal(fx_count("fifos"), 1);
	assert_int_equal(fx_count("parts"), 1);
	assert_int_equal(fx_count("excluded"), 1);
	assert_int_equal(unlink(fx_path("link")), 0);
	filter_free(f);
}

/* A directory in place of a file of the source is no directory that was received. */
static void a_directory_for_a_file(void **state)
{
	uint64_t n;

	(void)state;
	fx_mkdir("a");
	fx_text("a/x", "");
	has("a");
	assert_int_equal(run_at(usual, fx_root, 0, "", &n, 10), 0);
	assert_int_equal(n, 0);
	assert_int_equal(fx_count("a"), 1);
}

/* An entry that cannot be removed, and a directory that cannot be read, are reported, the others go. */
static void failures(void **state)
{
	uint64_t n;
	struct prune_opts o = usual;
	struct prune *p;
	int r;

	(void)state;
	tree();
	fx_fail_always(FX_unlinkat, EACCES);
	assert_int_equal(prune_new(&p, &o, NULL), 0);
	assert_int_equal(prune_add(p, fx_root, 0, "", NULL), 0);
	while ((r = prune_step(p, 10, &why)) > 0)
		;
	assert_int_equal(r, 0);
	assert_int_equal(prune_removed(p), 0);
	assert_int_equal(prune_failed(p), 5); /* directories that are not empty are not tried */
	assert_string_equal(sorted(), "!a/gone !a/old/1 !a/old/2 !b/x !link");
	prune_free(p);
	fx_fail_always(FX_unlinkat, 0);
	fx_fail_always(FX_fdopendir, EACCES);
	said[0] = '\0';
	assert_int_equal(prune_new(&p, &o, NULL), 0);
	assert_int_equal(prune_add(p, fx_root, 0, "", NULL), 0);
	while ((r = prune_step(p, 10, &why)) > 0)
		;
	assert_true(r == 0 && prune_removed(p) == 0 && prune_failed(p) == 1 && said[0] == '!');
	prune_free(p);
	fx_fail_always(FX_fdopendir, 0);
	assert_int_equal(run_at(usual, fx_root, 0, "", &n, 10), 0);
	assert_int_equal(n, 7);
	assert_int_equal(fx_count("."), 1);
}

/* In a directory that is not known whole, only what is in directories below that are. */
static void closed_directories(void **state)
{
	uint64_t n;

	(void)state;
	tree();
	fx_mkdir("a/c");
	fx_text("a/c/x", "");
	has("a/c/");
	assert_int_equal(name_set_add(&names, prune_closed_hash(has("a/")), NULL), 0);
	assert_int_equal(run_at(usual, fx_root, 0, "", &n, 10), 0);
	assert_string_equal(sorted(), "a/c/x b b/x link");
	assert_int_equal(fx_count("a/old"), 2);
	assert_int_equal(name_set_add(&names, prune_closed_hash(0), NULL), 0);
	fx_text("y", "");
	said[0] = '\0';
	assert_int_equal(run_at(usual, fx_root, 0, "", &n, 10), 0);
	assert_true(n == 0 && said[0] == '\0');
}

/* Where nothing is removed, a directory need not be listed: it may have the mode of one that the sender cannot list. */
static void closed_directories_unlisted(void **state)
{
	struct prune *p;
	int closed, r;

	(void)state;
	tree();
	for (closed = 0; closed < 2; closed++) {
		if (closed)
			assert_int_equal(name_set_add(&names, prune_closed_hash(0), NULL), 0);
		fx_fail_always(FX_fdopendir, EACCES);
		assert_int_equal(prune_new(&p, &usual, NULL), 0);
		assert_int_equal(prune_add(p, fx_root, 0, "", NULL), 0);
		while ((r = prune_step(p, 10, &why)) > 0)
			;
		assert_int_equal(r, 0);
		assert_int_equal(prune_failed(p), !closed);
		assert_int_equal(said[0] == '\0', closed);
		prune_free(p);
		fx_fail_always(FX_fdopendir, 0);
		said[0] = '\0';
	}
}

static struct stat status(const char *name)
{
	struct stat st;

	assert_int_equal(stat(fx_path(name), &st), 0);
	return st;
}

/* Directories keep their times; those of this user without permission to write get it meanwhile, also if the work
 * stops. */
static void attributes_of_directories(void **state)
{
	static const struct timespec then[2] = { { 1000, 5 }, { 1000, 5 } };
	struct prune_opts o = usual;
	struct prune *p;
	unsigned i, steps;
	int kept;

	(void)state;
	for (kept = 0; kept < 2; kept++)
		for (steps = 1; steps < 30; steps++) {
			tree();
			o.times = kept;
			assert_int_equal(chmod(fx_path("a"), 0555), 0);
			assert_int_equal(utimensat(AT_FDCWD, fx_path("a"), then, 0), 0);
			assert_int_equal(utimensat(AT_FDCWD, fx_path("."), then, 0), 0);
			assert_int_equal(prune_new(&p, &o, NULL), 0);
			assert_int_equal(prune_add(p, fx_root, 0, "", NULL), 0);
			for (i = 0; i < steps && prune_step(p, 1, &why) > 0; i++)
				;
			prune_free(p);
			assert_int_equal(status("a").st_mode & 07777, 0555);
			if (kept)
				assert_true(status("a").st_mtim.tv_sec == 1000 && status(".").st_mtim.tv_nsec == 5);
			if (i == steps)
				assert_int_equal(run_at(o, fx_root, 0, "", &(uint64_t){ 0 }, 10), 0);
			assert_int_equal(fx_count("a"), 1);
			assert_true(kept || status("a").st_mtim.tv_sec > 1000);
			assert_int_equal(chmod(fx_path("a"), 0755), 0);
			assert_int_equal(unlink(fx_path("a/new")), 0);
			assert_int_equal(rmdir(fx_path("a")), 0);
		}
}

/* With the default limit: nothing goes for an empty source, nor, of many, more than the source has. */
static void careful(void **state)
{
	uint64_t has_entries = 0, n;
	struct prune_opts o = usual;
	char name[20];
	int i;

	(void)state;
	o.careful = true;
	o.source_entries = &has_entries;
	assert_int_equal(run_at(o, fx_root, 0, "", &n, 10), 0); /* nothing to delete */
	fx_text("x", "");
	assert_int_equal(run_at(o, fx_root, 0, "", &n, 10), PTCP_EIO);
	assert_true(n == 0 && strstr(why.msg, "the source is empty") != NULL &&
	    strstr(why.msg, "--max-delete 1)") != NULL);
	for (i = 0; i < PRUNE_FEW; i++) {
		sprintf(name, "f%d", i);
		fx_text(name, "");
	}
	has_entries = PRUNE_FEW;
	assert_int_equal(run_at(o, fx_root, 0, "", &n, 10), PTCP_EIO);
	assert_true(n == 0 && strstr(why.msg, "101 files and directories to delete, more than the source has") != NULL);
	o.dry_run = true;
	assert_int_equal(run_at(o, fx_root, 0, "", &n, 10), PTCP_EIO);
	o.dry_run = false;
	assert_int_equal(unlink(fx_path("x")), 0);
	has_entries = 1;
	assert_int_equal(run_at(o, fx_root, 0, "", &n, 10), 0); /* few */
	assert_int_equal(n, PRUNE_FEW);
	for (i = 0; i <= PRUNE_FEW; i++) {
		sprintf(name, "f%d", i);
		fx_text(name, "");
	}
	has_entries = PRUNE_FEW + 1;
	assert_int_equal(run_at(o, fx_root, 0, "", &n, 10), 0);
	assert_int_equal(n, PRUNE_FEW + 1);
}

/* Stopped anywhere, another run completes the deletion, and what the source has stays. */
static void stopped_anywhere(void **state)
{
	unsigned steps, i;
	struct prune *p;
	uint64_t n;

	(void)state;
	for (steps = 0; steps < 30; steps++) {
		said[0] = '\0';
		tree();
		assert_int_equal(prune_new(&p, &usual, NULL), 0);
		assert_int_equal(prune_add(p, fx_root, 0, "", NULL), 0);
		for (i = 0; i < steps; i++)
			assert_true(prune_step(p, 1, &why) >= 0);
		prune_free(p);
		assert_int_equal(run_at(usual, fx_root, 0, "", &n, 10), 0);
		assert_string_equal(sorted(), "a/gone a/old a/old/1 a/old/2 b b/x link");
		assert_int_equal(fx_count("a"), 1);
		assert_int_equal(unlink(fx_path("a/new")), 0);
		assert_int_equal(rmdir(fx_path("a")), 0);
	}
}

/* ---- Directories that make way ---- */

static void way(void)
{
	fx_mkdir("d");
	fx_text("d/1", "");
	fx_mkdir("d/sub");
	fx_text("d/sub/2", "");
	assert_int_equal(symlink("..", fx_path("d/sub/link")), 0);
	assert_int_equal(mkfifo(fx_path("d/fifo"), 0600), 0);
	fx_text("extra", "");
	has("d");
}

static int make_way(struct prune *p, const char *name, unsigned step)
{
	int r;

	assert_true(prune_make_way(p, fx_root, name));
	while ((r = prune_step(p, step, &why)) > 0)
		;
	prune_made_way(p);
	return r;
}

/* Whatever its types, also those that the transfer does not bring. Then deletion continues with what the source
 * lacks. */
static void a_directory_makes_way(void **state)
{
	struct prune_opts o = usual;
	struct prune *p;
	unsigned step;
	int r;

	(void)state;
	o.links = false;
	for (step = 1; step < 100; step += 98) {
		said[0] = '\0';
		way();
		assert_int_equal(prune_new(&p, &o, NULL), 0);
		assert_int_equal(prune_add(p, fx_root, 0, "", NULL), 0);
		assert_int_equal(make_way(p, "d", step), 0);
		assert_string_equal(sorted(), "d/1 d/fifo d/sub d/sub/2 d/sub/link");
		assert_int_equal(fx_count("d"), 0);
		assert_int_equal(make_way(p, "d", step), 0);
		assert_int_equal(make_way(p, "none", step), 0);
		assert_int_equal(rmdir(fx_path("d")), 0);
		while ((r = prune_step(p, step, &why)) > 0)
			;
		assert_int_equal(r, 0);
		assert_string_equal(sorted(), "d/1 d/fifo d/sub d/sub/2 d/sub/link extra");
		assert_int_equal(prune_removed(p), 6);
		prune_free(p);
	}
}

/* Only as a whole: what stays in it by any rule keeps all. */
static void a_directory_stays(void **state)
{
	static const char *const reason[] = { "with entries that --delete retains",
		"with entries that --delete retains",
		"with entries that --delete retains", "more than 4 files and directories to delete",
		"with entries that --delete retains" };
	struct dir *d = dir_child(fx_root, "d");
	struct published published = { .max = 10 };
	struct prune_opts o;
	struct filter *f;
	struct prune *p;
	unsigned i;

	(void)state;
	assert_int_equal(filter_new(&f, NULL, NULL), 0);
	assert_int_equal(filter_add_pattern(f, false, "/src/d/sub/2", NULL), 0);
	way();
	published_add_name(&published, d, "1");
	for (i = 0; i < sizeof reason / sizeof *reason; i++) {
		o = usual;
		o.filter = i == 0 ? f : NULL;
		o.published = i == 1 ? &published : NULL;
		if (i == 2)
			fx_text("d/sub/" PART, "");
		if (i == 3)
			o.max = 4;
		fx_fail_always(FX_fdopendir, i == 4 ? EACCES : 0);
		assert_int_equal(prune_new(&p, &o, NULL), 0);
		assert_int_equal(prune_add(p, fx_root, 0, "src", NULL), 0);
		assert_int_equal(make_way(p, "d", 10), PTCP_EIO);
		assert_non_null(strstr(why.msg, reason[i]));
		assert_int_equal(prune_removed(p) + prune_failed(p), 0);
		prune_free(p);
		fx_fail_always(FX_fdopendir, 0);
		if (i == 2)
			assert_int_equal(unlink(fx_path("d/sub/" PART)), 0);
		assert_int_equal(fx_count("d") + fx_count("d/sub"), 5);
	}
	published_fini(&published);
	filter_free(f);
	dir_unref(d);
}

/* Not below a directory that was received: nothing makes way. */
static void no_received_directory(void **state)
{
	struct dir *a = dir_child(fx_root, "a"), *b = dir_child(a, "b");
	struct prune *p;

	(void)state;
	assert_int_equal(prune_new(&p, &usual, NULL), 0);
	assert_false(prune_make_way(p, b, "x"));
	assert_int_equal(prune_add(p, a, 1, "a", NULL), 0);
	assert_false(prune_make_way(p, fx_root, "x"));
	assert_true(prune_make_way(p, b, "x"));
	prune_made_way(p);
	prune_free(p);
	dir_unref(b);
	dir_unref(a);
}

/* The limit counts what has made way, in all deletions. With the default limit few make way, as nobody knows yet how
 * many entries the source has. */
static void limits_of_ways(void **state)
{
	uint64_t has_entries = 1000;
	struct prune_opts o = usual;
	struct prune *p;
	char name[20];
	int i, r;

	(void)state;
	o.max = 6;
	way();
	fx_text("extra2", "");
	assert_int_equal(prune_new(&p, &o, NULL), 0);
	assert_int_equal(prune_add(p, fx_root, 0, "", NULL), 0);
	assert_int_equal(make_way(p, "d", 3), 0);
	while ((r = prune_step(p, 3, &why)) > 0)
		;
	assert_int_equal(r, PTCP_EIO);
	assert_int_equal(prune_removed(p), 5);
	assert_true(fx_exists("extra") && fx_exists("extra2"));
	prune_free(p);
	o.max = 1000;
	o.careful = true;
	o.source_entries = &has_entries;
	for (i = 0; i <= PRUNE_FEW; i++) {
		sprintf(name, "d/f%d", i);
		fx_text(name, "");
	}
	assert_int_equal(prune_new(&p, &o, NULL), 0);
	assert_int_equal(prune_add(p, fx_root, 0, "", NULL), 0);
	assert_int_equal(make_way(p, "d", 3), PTCP_EIO);
	assert_non_null(strstr(why.msg,
	    "more than 100 files and directories to delete: none is deleted (raise --max-delete"));
	assert_int_equal(unlink(fx_path("d/f0")), 0);
	assert_int_equal(make_way(p, "d", 3), 0);
	assert_int_equal(prune_removed(p), PRUNE_FEW);
	prune_free(p);
}

/* A dry run lists what would make way. */
static void ways_in_a_dry_run(void **state)
{
	struct prune_opts o = usual;
	uint64_t n;

	(void)state;
	way();
	has("extra");
	o.dry_run = o.lists_ways = true;
	assert_int_equal(unlink(fx_path("d/fifo")), 0);
	assert_int_equal(run_at(o, fx_root, 0, "", &n, 10), 0);
	assert_string_equal(sorted(), "d d/1 d/sub d/sub/2 d/sub/link");
	assert_int_equal(fx_count("d"), 2);
}

static void sets(void **state)
{
	struct name_set s = { 0 };
	char name[20];
	int i;

	(void)state;
	assert_false(name_set_has(&s, 5));
	for (i = 0; i < 50000; i++) {
		sprintf(name, "%d", i);
		assert_int_equal(name_set_add(&s, hash_name(7, name), NULL), 0);
	}
	assert_int_equal(s.n, 50000);
	for (i = 0; i < 100000; i++) {
		sprintf(name, "%d", i);
		assert_true(name_set_has(&s, hash_name(7, name)) == (i < 50000));
		assert_false(name_set_has(&s, hash_name(8, name)));
	}
	name_set_fini(&s);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(removes_what_the_source_lacks), T(only_received_directories), T(at_most_so_many),
		T(deeper_entries_stay), T(what_is_kept), T(a_directory_for_a_file), T(failures),
		T(stopped_anywhere), T(sets), T(closed_directories), T(closed_directories_unlisted),
		T(attributes_of_directories), T(careful), T(a_directory_makes_way), T(a_directory_stays),
		T(no_received_directory), T(limits_of_ways), T(ways_in_a_dry_run),
	};
	return cmocka_run_group_tests_name("store/prune", tests, NULL, NULL);
}
