/* Commands that start movers: which are accepted, how they are started, and what the user learns when none joins. The
 * commands are those of a shell. */
#include "../net/fixture.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/err.h"
#include "mover/movers_impl.h"

#define WAIT_NS (5 * NS_PER_S)

static struct {
	struct loop *control;
	struct log log;
	struct movers *m;
	unsigned n_notices, n_changes;
	char notice[600], all[4000];
} fx;

static void on_notice(void *arg, const char *text)
{
	(void)arg;
	fx.n_notices++;
	snprintf(fx.notice, sizeof fx.notice, "%s", text);
	snprintf(fx.all + strlen(fx.all), sizeof fx.all - strlen(fx.all), "%s\n", text);
}

static void on_changed(void *arg)
{
	(void)arg;
	fx.n_changes++;
}

/* `file` NULL: the invitation is the command's standard input. */
static void begin(const char *file)
{
	char *root[] = { nf_dir };
	struct movers_opts o = { .log = &fx.log, .file = file, .listen = "127.0.0.1:0", .root = root, .n_roots = 1,
		.wait_ns = WAIT_NS, .notify = on_notice };
	struct ptcp_err e;

	memset(&fx, 0, sizeof fx);
	assert_int_equal(loop_new(&fx.control, NULL), 0);
	o.control = fx.control;
	if (movers_new(&fx.m, &o, &e) < 0)
		fail_msg("no movers: %s", e.msg);
	movers_watch(fx.m, on_changed, NULL);
}

static void end(void)
{
	movers_free(fx.m);
	loop_free(fx.control);
}

/* A shell runs the script; its words are passed to it, and {host} is its $0. */
static void start(const char *command, const char *const *hosts, size_t n_hosts)
{
	struct ptcp_err e;

	if (movers_start(fx.m, command, hosts, n_hosts, "ptcp", &e) < 0)
		fail_msg("not started: %s", e.msg);
}

static const char *script(const char *name, const char *text)
{
	nf_write(name, text, 0700);
	return nf_path(name);
}

static void until_ended(unsigned n)
{
	while (fx.n_changes < n)
		loop_run_once(fx.control, true);
}

static void fails(const char *text)
{
	struct ptcp_err e;

	assert_int_equal(movers_fault(fx.m, mono_now(), &e), PTCP_ECONNECT);
	if (strstr(e.msg, text) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", text, e.msg);
}

/* ---- Options ---- */

static void options(void **state)
{
	static const struct {
		const char *command, *file, *ptcp, *listen;
		size_t n_hosts;
		const char *why;       /* NULL: accepted */
	} cases[] = {
		{ NULL, NULL, NULL, NULL, 0, NULL },
		{ NULL, "f", NULL, NULL, 0, NULL },
		{ NULL, "f", NULL, ":7900", 0, NULL },
		{ "srun -N4", NULL, "/opt/ptcp", ":7900", 0, NULL },
		{ "ssh {host}", NULL, NULL, NULL, 2, NULL },
		{ "srun", "f", NULL, NULL, 0, NULL },
		{ NULL, NULL, "/opt/ptcp", NULL, 0, "--mover-ptcp: only with --movers" },
		{ NULL, NULL, NULL, ":7900", 0, "--movers-listen: without movers" },
		{ NULL, NULL, NULL, NULL, 2, "--mover-hosts: only with --movers" },
		{ NULL, "f", NULL, NULL, 2, "need the command" },
		{ NULL, "-", NULL, NULL, 0, "need the command" },
		{ " \t\n", NULL, NULL, NULL, 0, "the command is empty" },
		{ "ssh", NULL, NULL, NULL, 2, "has no {host}" },
		{ "ssh {host}", NULL, NULL, NULL, 0, "{host} without hosts" },
	};
	struct ptcp_err e;
	size_t i;
	int r;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		r = movers_check(cases[i].command, cases[i].n_hosts, cases[i].file, cases[i].ptcp, cases[i].listen, &e);
		assert_int_equal(r, cases[i].why != NULL ? PTCP_EUSAGE : 0);
		if (r < 0)
			assert_non_null(strstr(e.msg, cases[i].why));
	}
}

static void stripes(void **state)
{
	struct ptcp_err e;

	(void)state;
	assert_int_equal(movers_check_stripe(0, false, &e), 0);
	assert_int_equal(movers_check_stripe(4096, true, &e), 0);
	assert_int_equal(movers_check_stripe(1u << 30, true, &e), 0);
	assert_int_equal(movers_check_stripe(4096, false, &e), PTCP_EUSAGE);
	assert_int_equal(movers_check_stripe(4097, true, &e), PTCP_EUSAGE);
	assert_int_equal(movers_check_stripe((1u << 30) + 4096, true, &e), PTCP_EUSAGE);
}

/* ---- Commands ---- */

/* The command gets the words of a mover, and the invitation in a file or on standard input. */
static void the_words_of_a_mover(void **state)
{
	const char *file = nf_path("invitation");
	char expected[600];

	(void)state;
	begin(file);
	start(script("show", "#!/bin/sh\necho \"$*\"\ncat\n"), NULL, 0);
	until_ended(1);
	snprintf(expected, sizeof expected, "movers: ptcp mover --join %s\n", file);
	assert_string_equal(fx.all, expected);
	end();
	assert_int_not_equal(access(file, F_OK), 0); /* the set has removed its invitation */
}

static void the_invitation_on_standard_input(void **state)
{
	FILE *f;
	struct ptcp_err e;
	struct invitation v;

	(void)state;
	begin(NULL);
	assert_string_equal(movers_invitation(fx.m), "-");
	start(script("copy.sh", "#!/bin/sh\ncat >${0%/*}/copy\n"), NULL, 0);
	until_ended(1);
	f = fopen(nf_path("copy"), "r");
	assert_non_null(f);
	fclose(f);
	assert_int_equal(chmod(nf_path("copy"), 0600), 0);
	if (invitation_read(&v, nf_path("copy"), 0, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(v.n_roots, 1);
	assert_string_equal(v.root[0], nf_dir);
	invitation_fini(&v);
	end();
}

static void once_for_each_host(void **state)
{
	static const char *const hosts[] = { "one", "two", "three" };
	char command[400];

	(void)state;
	begin(nf_path("invitation"));
	snprintf(command, sizeof command, "%s {host}", script("show", "#!/bin/sh\necho \"at $1: $2 $3\"\n"));
	start(command, hosts, 3);
	until_ended(3);
	assert_non_null(strstr(fx.all, "movers: at one: ptcp mover\n"));
	assert_non_null(strstr(fx.all, "movers: at two: ptcp mover\n"));
	assert_non_null(strstr(fx.all, "movers: at three: ptcp mover\n"));
	end();
}

/* One cause on several hosts is shown once, and each host. */
static void one_cause(void **state)
{
	static const char *const hosts[] = { "one", "two", "three" };
	char command[400];
	const char *first;

	(void)state;
	begin(nf_path("invitation"));
	snprintf(command, sizeof command, "%s {host}", script("fails", "#!/bin/sh\necho no route; exit 7\n"));
	start(command, hosts, 3);
	until_ended(3);
	first = strstr(fx.all, "movers: no route\n");
	assert_non_null(first);
	assert_null(strstr(first + 1, "movers: no route\n"));
	assert_non_null(strstr(fx.all, "on one ended with status 7"));
	assert_non_null(strstr(fx.all, "on two ended with status 7"));
	assert_non_null(strstr(fx.all, "on three ended with status 7"));
	end();
}

/* Of several hosts: the user learns of the one that fails. */
static void a_host_that_fails(void **state)
{
	static const char *const hosts[] = { "good", "bad" };
	char command[400];

	(void)state;
	begin(nf_path("invitation"));
	snprintf(command, sizeof command, "%s {host}", script("pick",
	    "#!/bin/sh\n[ $1 = good ] || { echo no route; exit 7; }\n"));
	start(command, hosts, 2);
	until_ended(2);
	assert_non_null(strstr(fx.all, "the command that starts them on bad ended with status 7"));
	assert_non_null(strstr(fx.all, "movers: no route\n"));
	assert_null(strstr(fx.all, "on good"));
	end();
}

static void no_such_command(void **state)
{
	struct ptcp_err e;

	(void)state;
	begin(nf_path("invitation"));
	assert_int_equal(movers_start(fx.m, "/nowhere/srun", NULL, 0, NULL, &e), PTCP_EUSAGE);
	assert_int_equal(strncmp(e.msg, "--movers: ", 10), 0);
	assert_true(list_empty(&fx.m->launchers));
	end();
}

/* ---- No mover joins ---- */

/* A command that fails ends the wait at once, with its last line or signal. */
static void the_command_fails(void **state)
{
	static const struct { const char *text, *why; } cases[] = {
		{ "#!/bin/sh\necho first\necho last >&2\nexit 3\n", "ended with status 3: last" },
		{ "#!/bin/sh\nexit 4\n", "ended with status 4, without output" },
		{ "#!/bin/sh\nkill -9 $$\n", "was ended by signal 9" },
	};
	struct ptcp_err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin(nf_path("invitation"));
		assert_int_equal(movers_fault(fx.m, mono_now(), &e), 0);
		start(script("fail", cases[i].text), NULL, 0);
		until_ended(1);
		fails(cases[i].why);
		end();
	}
}

/* One that succeeds may have submitted a job: the wait has its limit. */
static void nobody_joins_in_time(void **state)
{
	struct ptcp_err e;
	struct mono late;

	(void)state;
	begin(nf_path("invitation"));
	late = movers_deadline(fx.m);
	assert_true(late.ns > mono_now().ns);
	assert_int_equal(movers_fault(fx.m, late, &e), PTCP_ECONNECT);
	assert_non_null(strstr(e.msg, "none has joined within 5 s (can they reach this host"));
	start(script("submit", "#!/bin/sh\necho Submitted batch job 17\n"), NULL, 0);
	until_ended(1);
	assert_int_equal(movers_fault(fx.m, mono_now(), &e), 0);
	assert_int_equal(movers_fault(fx.m, late, &e), PTCP_ECONNECT);
	assert_non_null(strstr(e.msg, "within 5 s; the command that starts them says: Submitted batch job 17"));
	end();
	begin(nf_path("invitation"));
	late = movers_deadline(fx.m);
	start(script("silent", "#!/bin/sh\n"), NULL, 0);
	until_ended(1);
	assert_int_equal(movers_fault(fx.m, late, &e), PTCP_ECONNECT);
	assert_non_null(strstr(e.msg, "has ended, without output"));
	end();
}

/* A set that ends takes its commands along. */
static void commands_end_with_the_set(void **state)
{
	pid_t pid;
	FILE *f;

	(void)state;
	begin(nf_path("invitation"));
	start(script("stay", "#!/bin/sh\necho $$ >${0%/*}/pid\necho ready\nexec sleep 1000\n"), NULL, 0);
	while (fx.n_notices == 0)
		loop_run_once(fx.control, true);
	assert_string_equal(fx.notice, "movers: ready");
	f = fopen(nf_path("pid"), "r");
	assert_int_equal(fscanf(f, "%d", &pid), 1);
	fclose(f);
	assert_int_equal(kill(pid, 0), 0);
	end();
	while (kill(pid, 0) == 0)
		nf_sleep_ms(5);
	assert_int_equal(errno, ESRCH);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(options), cmocka_unit_test(stripes), nf_test(the_words_of_a_mover),
		nf_test(the_invitation_on_standard_input), nf_test(once_for_each_host), nf_test(one_cause),
		    nf_test(a_host_that_fails),
		nf_test(no_such_command), nf_test(the_command_fails), nf_test(nobody_joins_in_time),
		nf_test(commands_end_with_the_set),
	};

	return cmocka_run_group_tests_name("mover/launch", tests, NULL, NULL);
}
