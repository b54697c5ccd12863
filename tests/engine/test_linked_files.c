#include "engine/linked_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

/* More than buckets: ids with equal slots, and ids in one bucket. */
#define MANY 200000u

static uint64_t id_of(unsigned i) { return (uint64_t)(i + 1) << 16 | i % 7; }

static void finds(void **state)
{
	struct linked_files t = { 0 };
	const struct linked_file *f;
	char path[40];
	unsigned i;

	(void)state;
	assert_null(linked_files_find(&t, id_of(0)));
	for (i = 0; i < MANY; i += 2) {
		snprintf(path, sizeof path, "d/%u", i);
		assert_true(linked_files_add(&t, &(struct linked_file){ .id = id_of(i), .dev = i % 3, .ino = i + 5,
		    .size_bytes = i + 9 }, path));
	}
	for (i = 0; i < MANY; i++) {
		f = linked_files_find(&t, id_of(i));
		if (i % 2 != 0) {
			assert_null(f);
			continue;
		}
		assert_non_null(f);
		snprintf(path, sizeof path, "d/%u", i);
		assert_string_equal(f->path, path);
		assert_true(f->id == id_of(i) && f->dev == i % 3 && f->ino == i + 5 && f->size_bytes == i + 9);
	}
	assert_null(linked_files_find(&t, id_of(0) ^ 1)); /* the slot of another entry */
	linked_files_fini(&t);
	assert_null(linked_files_find(&t, id_of(0)));
	linked_files_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(finds) };

	return cmocka_run_group_tests_name("engine/linked_files", tests, NULL, NULL);
}
