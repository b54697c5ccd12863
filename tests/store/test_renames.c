/* Files that a missing file may have been: which are candidates, and in which order. */
#include "fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory_budget.h"
#include "store/renames.h"

static const struct timespec then = { 1000, 5 }, later = { 1000, 6 };

/* A file of n bytes, all of them `c`. */
static void file(const char *path, char c, size_t n, const struct timespec *mtime)
{
	const struct timespec times[2] = { *mtime, *mtime };
	char text[64];

	assert_true(n <= sizeof text);
	memset(text, c, n);
	fx_write(path, text, n);
	assert_int_equal(utimensat(AT_FDCWD, fx_path(path), times, 0), 0);
}

static struct renames *renames_below(struct memory_account *memory, uint64_t bytes, const char *dir)
{
	const struct renames_limits max = { .bytes = bytes, .entries = 4096 };
	struct renames *r = renames_new(memory, &max, NULL);
	struct dir *d = dir == NULL ? dir_ref(fx_root) : dir_child(fx_root, dir);

	assert_non_null(r);
	renames_add(r, d);
	dir_unref(d);
	return r;
}

/* The first bytes of the candidates, in order. */
static const char *candidates(struct renames *r, uint64_t size, const struct timespec *mtime, const char *name,
    bool large)
{
	static char text[RENAMES_FOUND + 1];
	struct renamed found[RENAMES_FOUND];
	unsigned n, i;
	int fd;

	while (renames_find(r, size, mtime, name, large, found, &n) > 0)
		;
	assert_true(n <= RENAMES_FOUND);
	for (i = 0; i < n; i++) {
		fd = renames_open(r, found[i]);
		assert_true(fd >= 0);
		assert_int_equal(read(fd, &text[i], 1), 1);
		assert_int_equal(close(fd), 0);
	}
	text[n] = '\0';
	return text;
}

/* Same time and name, same time, same name, and for large files the same size. */
static void likeliest_first(void **state)
{
	struct renames *r;

	(void)state;
	fx_mkdir("a");
	fx_mkdir("a/b");
	file("a/x", 's', 10, &then);
	file("a/b/x", 'n', 10, &later);
	file("a/other", 't', 10, &then);
	file("a/b/other", 'z', 10, &later);
	file("longer", 'l', 11, &then);
	file("empty", '-', 0, &then);
	r = renames_below(NULL, UINT64_MAX, NULL);
	assert_true(renames_may_have(r, 12)); /* not known yet */
	assert_string_equal(candidates(r, 10, &then, "x", false), "stn");
	assert_string_equal(candidates(r, 10, &then, "x", true), "stnz");
	assert_string_equal(candidates(r, 10, &later, "x", false), "nzs");
	assert_string_equal(candidates(r, 11, &later, "x", false), "");
	assert_string_equal(candidates(r, 11, &later, "x", true), "l");
	assert_string_equal(candidates(r, 11, &later, "longer", false), "l");
	assert_string_equal(candidates(r, 12, &then, "x", true), "");
	assert_true(renames_may_have(r, 10) && renames_may_have(r, 11));
	assert_false(renames_may_have(r, 12) || renames_may_have(r, 9));
	renames_free(r);
}

/* More files than a step examines, all of one size and time: the name finds each. */
static void many(void **state)
{
	struct renamed found[RENAMES_FOUND];
	struct renames *r;
	char name[32], is;
	unsigned i, n, steps = 1;

	(void)state;
	for (i = 0; i < 10000; i++) {
		snprintf(name, sizeof name, "file%u", i);
		file(name, (char)('a' + i % 26), 5, &then);
	}
	r = renames_below(NULL, UINT64_MAX, NULL);
	while (renames_find(r, 5, &then, "file17", false, found, &n) > 0)
		steps++;
	assert_true(steps > 2);
	for (i = 0; i < 10000; i += 111) {
		snprintf(name, sizeof name, "file%u", i);
		is = (char)('a' + i % 26);
		assert_int_equal(candidates(r, 5, &then, name, false)[0], is);
	}
	renames_free(r);
}

/* A directory that is added later, or does not exist; a file that is gone. */
static void directories(void **state)
{
	struct dir *b = dir_child(fx_root, "b"), *none = dir_child(fx_root, "none");
	struct renamed found[RENAMES_FOUND];
	struct renames *r;
	unsigned n;

	(void)state;
	fx_mkdir("a");
	fx_mkdir("b");
	file("a/x", 'a', 10, &then);
	file("b/x", 'b', 10, &then);
	r = renames_below(NULL, UINT64_MAX, "a");
	assert_string_equal(candidates(r, 10, &then, "y", false), "a");
	renames_add(r, none);
	assert_true(renames_may_have(r, 77));
	assert_string_equal(candidates(r, 10, &then, "y", false), "a");
	renames_add(r, b);
	assert_int_equal(strlen(candidates(r, 10, &then, "y", false)), 2);
	assert_int_equal(renames_find(r, 10, &then, "y", false, found, &n), 0);
	assert_int_equal(unlink(fx_path("a/x")) | unlink(fx_path("b/x")), 0);
	assert_int_equal(symlink("/etc/passwd", fx_path("a/x")), 0); /* is not followed */
	assert_true(renames_open(r, found[0]) < 0 && renames_open(r, found[1]) < 0);
	renames_free(r);
	dir_unref(b);
	dir_unref(none);
}

/* Directories that are added between searches, as a listing meets them: each file is found from then on. */
static void one_by_one(void **state)
{
	struct renames *r = NULL;
	char name[40];
	struct dir *d;
	unsigned i, k;

	(void)state;
	for (i = 0; i < 200; i++) {
		snprintf(name, sizeof name, "d%u", i);
		fx_mkdir(name);
		for (k = 0; k < i % 7; k++) {
			snprintf(name, sizeof name, "d%u/file%u.%u", i, i, k);
			file(name, (char)('a' + (i + k) % 26), 1 + i % 40, &then);
		}
		snprintf(name, sizeof name, "d%u", i);
		if (r == NULL) {
			r = renames_below(NULL, UINT64_MAX, name);
		} else {
			d = dir_child(fx_root, name);
			renames_add(r, d);
			dir_unref(d);
		}
		for (k = 0; k < i % 7; k++) {
			snprintf(name, sizeof name, "file%u.%u", i, k);
			assert_int_equal(candidates(r, 1 + i % 40, &then, name, false)[0], 'a' + (i + k) % 26);
			snprintf(name, sizeof name, "file%u.%u", i / 2, k);
			if (k < i / 2 % 7)
				assert_int_equal(candidates(r, 1 + i / 2 % 40, &then, name, false)[0],
				    'a' + (i / 2 + k) % 26);
		}
	}
	assert_false(renames_may_have(r, 41));
	renames_free(r);
}

/* Files for which there is no memory are not known; the account is empty in the end. */
static void without_memory(void **state)
{
	struct memory_budget *budget;
	struct memory_account *account;
	struct renames *r;
	unsigned i;
	char name[64];

	(void)state;
	for (i = 0; i < 3000; i++) {
		snprintf(name, sizeof name, "a-rather-long-name-of-a-file-%u", i);
		file(name, 'x', 5, &then);
	}
	assert_int_equal(memory_budget_new(&budget, 2 << 20, NULL), 0);
	assert_int_equal(memory_account_new(&account, budget, "client", NULL), 0);
	r = renames_below(account, 100000, NULL);
	assert_int_equal(strlen(candidates(r, 5, &then, "y", false)), RENAMES_FOUND);
	assert_true(memory_budget_used(budget) <= 110000);
	renames_free(r);
	assert_int_equal(memory_budget_used(budget), 0);
	memory_account_free(account);
	memory_budget_free(budget);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fx_tree_test(likeliest_first), fx_tree_test(many), fx_tree_test(one_by_one),
		fx_tree_test(directories),
		fx_tree_test(without_memory),
	};

	fx_in_memory();
	return cmocka_run_group_tests_name("store/renames", tests, NULL, NULL);
}
