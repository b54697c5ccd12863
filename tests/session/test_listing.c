/* What a listed entry takes is the session's memory until the batch is offered. against: memory */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/charged.h"
#include "session/send_impl.h"

#define SESSION_BYTES (UINT64_C(1) << 20)
#define LEFT_BYTES (SESSION_BYTES - sizeof(struct send_side))
#define TARGET_BYTES 4095u

static struct memory_budget *budget;
static struct session s;

static int setup(void **state)
{
	(void)state;
	s = (struct session){ .running = false };
	assert_int_equal(memory_budget_new(&budget, 4 * SESSION_BYTES, NULL), 0);
	assert_int_equal(memory_account_new(&s.o.memory, budget, "client", NULL), 0);
	assert_non_null(s.send = memory_calloc(s.o.memory, sizeof *s.send, NULL));
	s.send->session = &s;
	list_init(&s.send->digest_queue);
	list_init(&s.send->linked_done);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	memory_account_free(s.o.memory);
	memory_budget_free(budget);
	return 0;
}

static void read_link(struct walk_entry *w)
{
	*w = (struct walk_entry){ .type = WALK_SYMLINK, .name = strdup("a link"),
	    .target = calloc(1, TARGET_BYTES + 1) };
	memset(w->target, 't', TARGET_BYTES);
}

static void targets(void **state)
{
	struct send_side *t = s.send;
	struct ptcp_err e;
	int r;

	(void)state;
	do {
		assert_true(t->n < LEFT_BYTES / TARGET_BYTES);
		read_link(&t->entry[t->n]);
	} while ((r = send_listed(t, &e)) > 0);
	assert_int_equal(r, PTCP_ENOMEM);
	assert_non_null(strstr(e.msg, "--max-memory"));
	assert_true(t->n > LEFT_BYTES / TARGET_BYTES / 2);
	send_free(&s);
	assert_int_equal(memory_budget_used(budget), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test_setup_teardown(targets, setup, teardown) };

	return cmocka_run_group_tests_name("session/listing", tests, NULL, NULL);
}
