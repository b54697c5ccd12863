/* The tables of other programs' options, beside the options of ptcp. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "cli/habit/habit.h"

static const struct command *const peers[] = { &command_rsync, &command_scp, &command_sftp };

/* Calls `one` for each row. */
static unsigned each(void (*one)(const struct opt *o))
{
	const struct opt_group *g;
	const struct opt *o;
	unsigned n = 0;
	size_t i;

	for (i = 0; i < sizeof peers / sizeof *peers; i++)
		for (g = peers[i]->options; g->options != NULL; g++)
			for (o = g->options; o->name != NULL; o++, n++)
				one(o);
	return n;
}

/* The option exists in send and recv, with a value or without as here. */
static void is_known(const char *name, bool value)
{
	const struct opt *of[] = { options_find(&command_send, name), options_find(&command_recv, name) };
	size_t i;

	for (i = 0; i < 2; i++) {
		if (of[i] == NULL || (of[i]->value != NULL) != value)
			print_error("--%s is no option of ptcp, or differs in having a value\n", name);
		assert_non_null(of[i]);
		assert_int_equal(of[i]->value != NULL, value);
	}
}

static void leads_to_options(const struct opt *o)
{
	char name[64];

	if (o->set == habit_same)
		is_known(o->name, o->value != NULL);
	if (o->set != habit_as)
		return;
	assert_int_equal(sscanf(o->help, "--%63[a-z-]", name), 1);
	is_known(name, o->value != NULL || strchr(o->help, '=') != NULL);
}

/* What ptcp can do is not refused, unless the hint says what the difference is. */
static void is_refused_rightly(const struct opt *o)
{
	if (o->set != habit_refuse)
		return;
	assert_true(strlen(o->help) > 5);
	if (*o->name == '\0' || options_find(&command_send, o->name) == NULL)
		return;
	if (strncmp(o->help, "ptcp send has the option, and ", 30) != 0)
		print_error("--%s is an option of ptcp\n", o->name);
	assert_int_equal(strncmp(o->help, "ptcp send has the option, and ", 30), 0);
}

/* No option stands in a table twice: the second would never be found. */
static void is_first(const struct opt *o)
{
	if (*o->name != '\0')
		assert_true(options_find(peers[0], o->name) == o || options_find(peers[1], o->name) == o ||
		    options_find(peers[2], o->name) == o);
}

static void rows(void **state)
{
	(void)state;
	assert_true(each(leads_to_options) > 150);
	each(is_refused_rightly);
	each(is_first);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(rows) };

	return cmocka_run_group_tests_name("cli/habit", tests, NULL, NULL);
}
