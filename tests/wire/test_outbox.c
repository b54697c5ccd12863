/* Reasons on the wire: codes, causes and sentences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "wire/outbox.h"

static const struct {
	int sys;
	unsigned number;
	const char *name;
} causes[] = {
#define X(name, number) { name, number, #name },
	PTCP_CAUSES(X)
#undef X
};
#define N_CAUSES (sizeof causes / sizeof *causes)

/* What the peer makes of the reason. */
static struct ptcp_err sent(const struct ptcp_err *why)
{
	const struct wire_why w = outbox_why(why);
	struct ptcp_err got;

	memset(&got, 0x55, sizeof got);
	outbox_reason(&got, &w);
	return got;
}

static void every_cause_arrives(void **state)
{
	struct ptcp_err why, got;
	size_t i, j;

	(void)state;
	for (i = 0; i < N_CAUSES; i++) {
		assert_in_range(causes[i].number, 1, UINT8_MAX);
		for (j = 0; j < i; j++)
			assert_true(causes[i].sys != causes[j].sys && causes[i].number != causes[j].number);
		assert_string_equal(ptcp_cause_name(causes[i].sys), causes[i].name);
		err_set(&why, PTCP_EIO, "it failed");
		why.sys = causes[i].sys;
		assert_int_equal(outbox_why(&why).cause, causes[i].number);
		got = sent(&why);
		assert_int_equal(got.sys, causes[i].sys);
		assert_true(got.from_peer);
		assert_string_equal(got.msg, "it failed");
	}
}

/* Another errno has no number, and a number of a later version no errno. */
static void unknown_causes_are_none(void **state)
{
	struct wire_why w = { -PTCP_EIO, 0, { NULL, 0 } };
	struct ptcp_err why;
	unsigned number, known = 0;
	int sys, named = 0;

	(void)state;
	for (number = 0; number <= UINT8_MAX; number++) {
		w.cause = (uint8_t)number;
		outbox_reason(&why, &w);
		known += why.sys != 0;
	}
	assert_int_equal(known, N_CAUSES);
	for (sys = -1; sys < 4096; sys++)
		named += ptcp_cause_name(sys) != NULL;
	assert_int_equal(named, N_CAUSES);
	err_set(&why, PTCP_EIO, "x");
	why.sys = 4095;
	assert_int_equal(outbox_why(&why).cause, 0);
}

/* Without an errno, some codes stand for one; an errno says more. */
static void codes_that_have_a_cause(void **state)
{
	static const struct { int code, sys; } of[] = { { PTCP_ENOMEM, ENOMEM }, { PTCP_EREFUSED, EACCES },
		{ PTCP_ETIMEOUT, ETIMEDOUT }, { PTCP_ENOSPC, ENOSPC }, { PTCP_EVANISHED, ENOENT } };
	struct ptcp_err why;
	size_t i;
	int code, sys;

	(void)state;
	for (code = PTCP_ENOMEM; code >= PTCP_EPARENT; code--) {
		for (sys = 0, i = 0; i < sizeof of / sizeof *of; i++)
			sys = of[i].code == code ? of[i].sys : sys;
		err_set(&why, code, "x");
		assert_int_equal(err_cause(&why), sys);
		assert_int_equal(sent(&why).sys, sys);
		why.sys = EDQUOT;
		assert_int_equal(sent(&why).sys, EDQUOT);
	}
}

/* err_set() forgets the peer, a context does not. */
static void who_has_failed(void **state)
{
	struct ptcp_err why, got;

	(void)state;
	err_set(&why, PTCP_EIO, "x");
	assert_false(why.from_peer);
	got = sent(&why);
	err_while(&got, got.code, "host");
	assert_true(got.from_peer);
	err_set(&got, PTCP_EIO, "y");
	assert_false(got.from_peer || got.sys != 0);
	got.from_peer = true;
	errno = EROFS;
	err_sys(&got, PTCP_EIO, "y");
	assert_true(!got.from_peer && got.sys == EROFS);
}

/* PROTOCOL.md has "1 ENOENT" and so on, and no other number behind a name of errno. */
static void documented(void **state)
{
	static char text[1u << 20];
	FILE *f = fopen("PROTOCOL.md", "r"); /* tests run at the top of the tree */
	char pair[40], *at;
	size_t i, n;

	(void)state;
	assert_non_null(f);
	n = fread(text, 1, sizeof text - 1, f);
	fclose(f);
	assert_in_range(n, 1000, sizeof text - 2);
	for (at = text; (at = strchr(at, '\n')) != NULL;)
		*at = ' ';
	at = strstr(text, "Causes have the names of errno");
	assert_non_null(at);
	for (i = 0; i < N_CAUSES; i++) {
		snprintf(pair, sizeof pair, " %u %s%s", causes[i].number, causes[i].name, i + 1 < N_CAUSES ? "," : ".");
		at = strstr(at, pair);
		if (at == NULL)
			fail_msg("PROTOCOL.md lacks \"%s\", or has it elsewhere", pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_cause_arrives),
		cmocka_unit_test(unknown_causes_are_none),
		cmocka_unit_test(codes_that_have_a_cause),
		cmocka_unit_test(who_has_failed),
		cmocka_unit_test(documented),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
