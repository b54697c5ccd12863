#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/list.h"

struct item {
	int n;
	struct list node;
};

static void holds(const struct list *head, const int *want, size_t count)
{
	const struct list *l;
	size_t i = 0;

	for (l = head->next; l != head; l = l->next, i++) {
		assert_true(i < count);
		assert_int_equal(CONTAINER_OF(l, struct item, node)->n, want[i]);
		assert_ptr_equal(l->next->prev, l);
		assert_ptr_equal(l->prev->next, l);
	}
	assert_int_equal(i, count);
	assert_int_equal(list_empty(head), count == 0);
}

static void order(void **state)
{
	struct item a = { .n = 1 }, b = { .n = 2 }, c = { .n = 3 };
	struct list head;

	(void)state;
	list_init(&head);
	holds(&head, NULL, 0);
	list_append(&head, &a.node);
	list_append(&head, &b.node);
	list_append(&head, &c.node);
	holds(&head, (int[]){ 1, 2, 3 }, 3);
	list_remove(&b.node);
	holds(&head, (int[]){ 1, 3 }, 2);
	list_remove(&b.node); /* harmless */
	holds(&head, (int[]){ 1, 3 }, 2);
	list_append(&head, &b.node);
	list_remove(&a.node);
	holds(&head, (int[]){ 3, 2 }, 2);
	list_remove(&c.node);
	list_remove(&b.node);
	holds(&head, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(order) };
	return cmocka_run_group_tests_name("core/list", tests, NULL, NULL);
}
