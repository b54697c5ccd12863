#include "session/hardlinks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MANY 5000u

/* Inodes that differ in all bits; several devices share inodes. */
static uint64_t inode(unsigned i)
{
	return (i / 3 + 1) * UINT64_C(0x100000001b3);
}

static void finds(void **state)
{
	struct hardlinks t = { 0 };
	struct hardlink *l, *first;
	char path[40];
	unsigned i;

	(void)state;
	assert_null(hardlinks_find(&t, 1, 1));
	for (i = 0; i < MANY; i++) {
		assert_null(hardlinks_find(&t, i % 3, inode(i)));
		l = hardlinks_add(&t, i % 3, inode(i));
		assert_non_null(l);
		assert_true(l->path == NULL && !l->failed);
		snprintf(path, sizeof path, "d/%u", i);
		assert_true(hardlinks_set_path(&t, l, path));
		if (i == 0)
			first = l;
	}
	assert_ptr_equal(hardlinks_find(&t, 0, inode(0)), first);
	for (i = 0; i < MANY; i++) {
		l = hardlinks_find(&t, i % 3, inode(i));
		assert_non_null(l);
		snprintf(path, sizeof path, "d/%u", i);
		assert_string_equal(l->path, path);
	}
	assert_null(hardlinks_find(&t, 3, inode(0)));
	hardlinks_fini(&t);
	assert_null(hardlinks_find(&t, 0, inode(0)));
	hardlinks_fini(&t);
}

/* The first name failed: the file is sent under the next name. */
static void replaces(void **state)
{
	struct hardlinks t = { 0 };
	struct hardlink *l = hardlinks_add(&t, 1, 2);
	uint64_t bytes = t.bytes;

	(void)state;
	assert_true(hardlinks_set_path(&t, l, "a long path"));
	assert_true(hardlinks_set_path(&t, l, "short"));
	assert_string_equal(hardlinks_find(&t, 1, 2)->path, "short");
	assert_int_equal(t.bytes, bytes + sizeof "short");
	hardlinks_fini(&t);
}

/* Beyond the limit nothing is added, and present entries stay. */
static void limited(void **state)
{
	static char path[4096];
	struct hardlinks t = { 0 };
	struct hardlink *l, *last = NULL;
	uint64_t n;

	(void)state;
	memset(path, 'x', sizeof path - 1);
	for (n = 0; (l = hardlinks_add(&t, 1, n)) != NULL && hardlinks_set_path(&t, l, path); n++)
		last = l;
	assert_true(t.bytes <= HARDLINKS_MAX_BYTES && t.bytes > HARDLINKS_MAX_BYTES - 2 * sizeof path);
	if (l != NULL)
		assert_null(l->path);
	assert_string_equal(hardlinks_find(&t, 1, n - 1)->path, path);
	assert_true(hardlinks_set_path(&t, last, "now there is room"));
	while (hardlinks_add(&t, 2, n++) != NULL)
		;
	assert_true(t.bytes <= HARDLINKS_MAX_BYTES);
	assert_string_equal(last->path, "now there is room");
	hardlinks_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds), cmocka_unit_test(replaces), cmocka_unit_test(limited),
	};
	return cmocka_run_group_tests_name("session/hardlinks", tests, NULL, NULL);
}
