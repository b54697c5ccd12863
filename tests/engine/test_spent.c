/* Where the time goes: each cause alone is the only one named, the whole interval is divided, whatever the facts. */
#include "engine/spent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

static const struct row {
	const char *name;
	struct spent_sample x;
	enum ptcp_spent of_sender, of_receiver; /* the main cause, as each end says */
	double ratio;
} rows[] = {
	{ "the path", { 1, { .1, .1 }, { .1, .1 }, 1, 0, 0, true, false, false }, PTCP_SPENT_PATH, PTCP_SPENT_PATH, 1 },
	{ "a small window", { 1, { 0, 0 }, { .05, .05 }, 1, .9, 0, true, false, false }, PTCP_SPENT_WINDOW,
	    PTCP_SPENT_WINDOW, .8 },
	{ "a small buffer", { 1, { 0, 0 }, { 0, 0 }, 1, 0, .7, true, false, false }, PTCP_SPENT_BUFFER,
	    PTCP_SPENT_BUFFER, .7 },
	{ "the sender's disk", { 1, { .9, .1 }, { .2, .1 }, .1, 0, 0, true, false, false }, PTCP_SPENT_OUR_DISK,
	    PTCP_SPENT_PEER_DISK, .9 },
	{ "the sender's processor", { 1, { .1, .9 }, { .2, .1 }, .1, 0, 0, true, false, false },
	    PTCP_SPENT_OUR_PROCESSOR, PTCP_SPENT_PEER_PROCESSOR, .8 },
	{ "the receiver's disk", { 1, { .3, .1 }, { .95, .1 }, 1, .9, 0, true, false, false }, PTCP_SPENT_PEER_DISK,
	    PTCP_SPENT_OUR_DISK, .9 },
	{ "the receiver's processor", { 1, { .3, .1 }, { .05, .95 }, 1, .9, 0, true, false, false },
	    PTCP_SPENT_PEER_PROCESSOR, PTCP_SPENT_OUR_PROCESSOR, .85 },
	{ "syncing small files", { 1, { .05, .1 }, { .9, .1 }, .05, 0, 0, true, false, false },
	    PTCP_SPENT_PEER_DISK, PTCP_SPENT_OUR_DISK, .8 },
	{ "round trips", { 1, { .1, .1 }, { .1, .1 }, .1, 0, 0, true, false, false }, PTCP_SPENT_IDLE, PTCP_SPENT_IDLE,
	    .6 },
	{ "a limit", { 1, { .9, .1 }, { .9, .1 }, 1, .5, 0, true, true, false }, PTCP_SPENT_LIMIT,
	    PTCP_SPENT_LIMIT, 1 },
	{ "verification", { 1, { .9, .5 }, { .9, .5 }, 0, 0, 0, true, false, true }, PTCP_SPENT_VERIFYING,
	    PTCP_SPENT_VERIFYING, 1 },
	{ "a disk of unknown connections", { 1, { .9, .5 }, { 0, 0 }, 0, 0, 0, false, false, false },
	    PTCP_SPENT_OUR_DISK, PTCP_SPENT_PEER_DISK, .9 },
	{ "unknown connections", { 1, { 0, 0 }, { 0, 0 }, 0, 0, 0, false, false, false }, PTCP_SPENT_PATH,
	    PTCP_SPENT_PATH, 1 },
};

static double sum(const struct spent *t)
{
	double s = 0;
	unsigned i;

	for (i = 0; i < PTCP_SPENT_CAUSES; i++) {
		assert_true(t->s[i] >= 0);
		s += t->s[i];
	}
	return s;
}

static void named(const struct row *r, bool sends, enum ptcp_spent cause)
{
	struct spent t = { { 0 } };
	unsigned i;

	spent_add(&t, &r->x, sends);
	assert_true(fabs(sum(&t) - 1) < 1e-9);
	if (t.s[cause] < r->ratio - 1e-9)
		fail_msg("%s: %.2f instead of %.2f", r->name, t.s[cause], r->ratio);
	for (i = 0; i < PTCP_SPENT_CAUSES; i++)
		if (i != (unsigned)cause && t.s[i] >= t.s[cause])
			fail_msg("%s: cause %u is larger", r->name, i);
}

static void each_cause(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof rows / sizeof *rows; i++) {
		named(&rows[i], true, rows[i].of_sender);
		named(&rows[i], false, rows[i].of_receiver);
	}
}

static double part(void) { return rand() % 1300 / 1000.0 - 0.1; } /* clocks of two hosts: also below 0 and above 1 */

static void nothing_is_lost(void **state)
{
	unsigned i;

	(void)state;
	srand(1);
	for (i = 0; i < 20000; i++) {
		struct spent t = { { 0 } };
		struct spent_sample x = { 0.25 + i % 7, { part(), part() }, { part(), part() }, part(), part(), part(),
			rand() % 4 > 0, rand() % 8 == 0, rand() % 8 == 0 };

		spent_add(&t, &x, i % 2 == 0);
		assert_true(fabs(sum(&t) - x.seconds) < 1e-9);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(each_cause), cmocka_unit_test(nothing_is_lost) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
