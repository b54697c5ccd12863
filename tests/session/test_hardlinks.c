#include "session/hardlinks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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
	unsigned i;

	(void)state;
	assert_null(hardlinks_find(&t, 1, 1));
	for (i = 0; i < MANY; i++) {
		assert_null(hardlinks_find(&t, i % 3, inode(i)));
		l = hardlinks_add(&t, i % 3, inode(i), NULL);
		assert_non_null(l);
		assert_true(!l->failed && l->id == 0);
		l->id = i;
		if (i == 0)
			first = l;
	}
	assert_ptr_equal(hardlinks_find(&t, 0, inode(0)), first);
	for (i = 0; i < MANY; i++) {
		l = hardlinks_find(&t, i % 3, inode(i));
		assert_non_null(l);
		assert_int_equal(l->id, i);
	}
	assert_null(hardlinks_find(&t, 3, inode(0)));
	hardlinks_fini(&t);
	assert_null(hardlinks_find(&t, 0, inode(0)));
	hardlinks_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds),
	};
	return cmocka_run_group_tests_name("session/hardlinks", tests, NULL, NULL);
}
