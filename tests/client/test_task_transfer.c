/* Sources and destination of a transfer: which the client takes, what OPEN gets of them, and which it refuses. */
#include "fixture.h"

#define A "ptcp://127.0.0.1:1/"
#define B "ptcp://127.0.0.1:2/"

static const struct cf_files sends = { true, { "a" }, A "there" };
static const struct cf_files receives = { false, { A "a" }, "here" };
static const struct cf_files between = { true, { A "a" }, B "b" };

/* The next path that OPEN holds is `path` with these flags. */
static void next(struct span *rest, uint8_t flags, const char *path)
{
	char text[WIRE_PATH_MAX + 1];
	uint8_t found = 0;
	struct span s;

	assert_true(wire_path_next(rest, &found, &s));
	assert_string_equal(span_copy(text, s), path);
	assert_int_equal(found, flags);
}

static struct span open_paths(const struct ptcp_task *t)
{
	return (struct span){ t->files.open_paths, t->files.open_paths_bytes };
}

static void local_sources(void **state)
{
	const struct ptcp_transfer_opts o = cf_opts();
	const struct cf_files f = { true, { "a", "b/", "a", "./a:b", "a" }, "ptcp://[::1]:7/x%20y" };
	struct ptcp_task *t = cf_accepted(&o, &f);
	struct span rest = open_paths(t);

	(void)state;
	assert_true(t->files.sends);
	assert_int_equal(t->files.n_local, 3); /* each once, in the order given */
	assert_string_equal(t->files.local[0], "a");
	assert_string_equal(t->files.local[1], "b/");
	assert_string_equal(t->files.local[2], "./a:b");
	assert_false(t->target.ssh);
	assert_string_equal(t->target.host, "::1");
	assert_int_equal(t->target.port, 7);
	assert_string_equal(t->known_as, "[::1]:7");
	assert_int_equal(t->files.n_open_paths, 1);
	next(&rest, 0, "/x y");
	assert_int_equal(rest.n, 0);
	ptcp_task_free(t);
}

static void remote_sources(void **state)
{
	const struct ptcp_transfer_opts o = cf_opts();
	const struct cf_files f = { false, { "u@h:a", "u@h:b/", "u@h:a" }, "here" };
	struct ptcp_task *t = cf_accepted(&o, &f);
	struct span rest = open_paths(t);

	(void)state;
	assert_false(t->files.sends);
	assert_true(t->target.ssh);
	assert_string_equal(t->known_as, "u@h");
	assert_int_equal(t->files.n_local, 1);
	assert_string_equal(t->files.local[0], "here");
	assert_int_equal(t->files.n_remote, 2);
	assert_int_equal(t->files.n_open_paths, 2);
	next(&rest, 0, "a");
	next(&rest, WIRE_PATH_CONTENTS, "b/");
	assert_int_equal(rest.n, 0);
	ptcp_task_free(t);
}

/* The caller may change the names as soon as the task exists. */
static void names_are_copies(void **state)
{
	const struct ptcp_transfer_opts o = cf_opts();
	char source[] = "source";
	const struct cf_files f = { true, { source }, A };
	struct ptcp_task *t = cf_accepted(&o, &f);

	(void)state;
	memset(source, 'x', sizeof source - 1);
	assert_string_equal(t->files.local[0], "source");
	ptcp_task_free(t);
}

static void wrong_sides(void **state)
{
	const struct ptcp_transfer_opts o = cf_opts();
	struct ptcp_task *t = NULL;
	struct ptcp_err e;

	(void)state;
	cf_refused(&o, &(struct cf_files){ true, { NULL }, A }, PTCP_EUSAGE, "no source");
	cf_refused(&o, &(struct cf_files){ true, { "a" }, "b" }, PTCP_EUSAGE, "b: not remote");
	cf_refused(&o, &(struct cf_files){ true, { "a" }, "" }, PTCP_EUSAGE, "\"\": not remote");
	cf_refused(&o, &(struct cf_files){ true, { "" }, A }, PTCP_EUSAGE, "an empty path");
	cf_refused(&o, &(struct cf_files){ true, { "a", A }, A }, PTCP_EUSAGE, "one side must be local");
	cf_refused(&o, &(struct cf_files){ false, { "a" }, "b" }, PTCP_EUSAGE, "a: not remote");
	cf_refused(&o, &(struct cf_files){ false, { A "a" }, B }, PTCP_EUSAGE, "one side must be local");
	cf_refused(&o, &(struct cf_files){ false, { A "a" }, "" }, PTCP_EUSAGE, "an empty path");
	cf_refused(&o, &(struct cf_files){ false, { A "a", B "b" }, "here" }, PTCP_ENOTYET, "sources on several hosts");
	cf_refused(&o, &(struct cf_files){ true, { A "a", "b" }, B }, PTCP_EUSAGE, "b: not remote");
	cf_refused(&o, &(struct cf_files){ true, { A "a" }, "ptcp://" }, PTCP_EUSAGE, "ptcp://");
	/* Also without a place for the sentence. */
	assert_int_equal(ptcp_send_new(&t, &o, NULL, 0, A, NULL), PTCP_EUSAGE);
	assert_int_equal(ptcp_send_new(&t, &o, (const char *const[]){ "a" }, 1, "b", NULL), PTCP_EUSAGE);
	assert_null(t);
	assert_int_equal(ptcp_recv_new(&t, &o, NULL, 0, "here", &e), PTCP_EUSAGE);
}

static void too_many_paths(void **state)
{
	static char name[WIRE_PATHS_MAX + 1][sizeof A + 8], path[sizeof A + WIRE_PATH_MAX + 1];
	static const char *all[WIRE_PATHS_MAX + 1];
	const struct ptcp_transfer_opts o = cf_opts();
	struct ptcp_task *t;
	struct ptcp_err e;
	size_t i;

	(void)state;
	for (i = 0; i <= WIRE_PATHS_MAX; i++) {
		snprintf(name[i], sizeof name[i], A "%zu", i);
		all[i] = name[i];
	}
	assert_int_equal(ptcp_recv_new(&t, &o, all, WIRE_PATHS_MAX, "here", &e), 0);
	assert_int_equal(t->files.n_open_paths, WIRE_PATHS_MAX);
	ptcp_task_free(t);
	assert_int_equal(ptcp_recv_new(&t, &o, all, WIRE_PATHS_MAX + 1, "here", &e), PTCP_EUSAGE);
	cf_says(&e, "too many or too long remote paths");
	/* A path that OPEN has no room for. */
	memset(path, 'x', sizeof path - 1);
	memcpy(path, A, sizeof A - 1);
	cf_refused(&o, &(struct cf_files){ true, { "a" }, path }, PTCP_EUSAGE, "");
}

/* ---- Between two other hosts ---- */

static void delegated(void **state)
{
	struct ptcp_transfer_opts o = cf_opts();
	const struct cf_files f = { true, { A "a/", A "b" }, B "c" };
	struct ptcp_task *t;
	struct span rest;

	(void)state;
	o.detach = true;
	o.rate = "8Mbit/s";
	t = cf_accepted(&o, &f);
	assert_non_null(t->remote_job);
	assert_int_equal(t->target.port, 1); /* the sender carries out the job */
	assert_int_equal(t->files.n_local, 0);
	assert_int_equal(t->files.n_remote, 2);
	rest = open_paths(t);
	next(&rest, WIRE_PATH_CONTENTS, "/a/");
	next(&rest, 0, "/b");
	assert_int_equal(rest.n, 0);
	ptcp_task_free(t);
}

static void not_between_hosts(void **state)
{
	static const char *const via[] = { "127.0.0.1:3" }, *const list[] = { "x" };
	struct ptcp_transfer_opts o = cf_opts();

	(void)state;
	ptcp_task_free(cf_accepted(&o, &between));
	cf_refused(&o, &(struct cf_files){ true, { "u@h:a" }, B }, PTCP_ENOTYET, "through ssh");
	cf_refused(&o, &(struct cf_files){ true, { A "a" }, "h:b" }, PTCP_ENOTYET, "through ssh");
	o.remove_sources = true;
	cf_refused(&o, &between, PTCP_EUSAGE, "--remove-source-files: not between");
	o = cf_opts();
	o.direct_io = true;
	cf_refused(&o, &between, PTCP_EUSAGE, "--direct: not between");
	o = cf_opts();
	o.delete_extra = true;
	cf_refused(&o, &between, PTCP_EUSAGE, "--delete: not between");
	o = cf_opts();
	o.dest_is_file = true;
	cf_refused(&o, &between, PTCP_EUSAGE, "dest_is_file: not between");
	o = cf_opts();
	o.paths = via;
	o.n_paths = 1;
	cf_refused(&o, &between, PTCP_EUSAGE, "--via: not between");
	o = cf_opts();
	o.files = list;
	o.n_files = 1;
	cf_refused(&o, &between, PTCP_EUSAGE, "--files-from: not between");
	o = cf_opts();
	o.rate = "08:00-18:00=8Mbit/s,else=0";
	cf_refused(&o, &between, PTCP_EUSAGE, "--rate: no timetable between");
	ptcp_task_free(cf_accepted(&o, &sends));
	o = cf_opts();
	o.detach = true;
	cf_refused(&o, &sends, PTCP_EUSAGE, "--detach: only for transfers between");
	cf_refused(&o, &receives, PTCP_EUSAGE, "--detach: only for transfers between");
}

/* ---- Options of files ---- */

static void single_file(void **state)
{
	struct ptcp_transfer_opts o = cf_opts();

	(void)state;
	o.dest_is_file = true;
	ptcp_task_free(cf_accepted(&o, &sends));
	ptcp_task_free(cf_accepted(&o, &(struct cf_files){ true, { "a", "a" }, A }));
	cf_refused(&o, &(struct cf_files){ true, { "a", "b" }, A }, PTCP_EUSAGE, "dest_is_file: several sources");
}

static void selections(void **state)
{
	static const char *const list[] = { "b/c", "a" }, *const bad[] = { "a", "../b" };
	struct ptcp_transfer_opts o = cf_opts();
	struct ptcp_task *t;
	struct span rest;

	(void)state;
	o.files = list;
	o.n_files = 2;
	t = cf_accepted(&o, &receives); /* the content of the directory, not the directory */
	rest = open_paths(t);
	next(&rest, WIRE_PATH_CONTENTS, "/a");
	assert_non_null(t->files.selection);
	assert_null(t->o.files); /* the caller's memory */
	ptcp_task_free(t);
	cf_refused(&o, &(struct cf_files){ true, { "a", "b" }, A }, PTCP_EUSAGE, "--files-from: needs one source");
	o.delete_extra = true;
	cf_refused(&o, &sends, PTCP_EUSAGE, "--delete: not with --files-from");
	o.delete_extra = false;
	o.files = bad;
	cf_refused(&o, &sends, PTCP_EUSAGE, "--files-from: ../b");
}

/* A remote sender learns the list by SELECT frames, which are limited; a local sender walks its own files. */
static void long_selections(void **state)
{
	enum { N = 1030, EACH = 4091 };
	static char name[N][EACH + 1];
	static const char *list[N];
	struct ptcp_transfer_opts o = cf_opts();
	size_t i, k;

	(void)state;
	for (i = 0; i < N; i++) {
		for (k = 0; k < EACH; k++)
			name[i][k] = k % 250 == 249 ? '/' : 'x';
		snprintf(name[i], 8, "%06zu", i);
		name[i][6] = 'x';
		list[i] = name[i];
	}
	o.files = list;
	o.n_files = N;
	cf_refused(&o, &receives, PTCP_EUSAGE, "--files-from: more than 4 MiB of paths");
	ptcp_task_free(cf_accepted(&o, &sends));
	o.n_files = 1020;
	ptcp_task_free(cf_accepted(&o, &receives));
}

/* OPEN holds rules for the end that needs them: a sender there, or a receiver there that deletes. */
static void rules(void **state)
{
	static const struct ptcp_rule two[] = { { .include = true, .pattern = "*.c" }, { .pattern = "*" } };
	struct ptcp_transfer_opts o = cf_opts();
	struct ptcp_task *t;
	struct span rest;

	(void)state;
	o.rules = two;
	o.n_rules = 2;
	t = cf_accepted(&o, &receives);
	rest = open_paths(t);
	next(&rest, 0, "/a");
	next(&rest, WIRE_PATH_RULE, "+ *.c");
	next(&rest, WIRE_PATH_RULE, "- *");
	assert_int_equal(rest.n, 0);
	assert_non_null(t->files.filter);
	ptcp_task_free(t);
	t = cf_accepted(&o, &sends);
	assert_int_equal(t->files.n_open_paths, 1);
	assert_non_null(t->files.filter);
	ptcp_task_free(t);
	o.delete_extra = true;
	t = cf_accepted(&o, &sends);
	assert_int_equal(t->files.n_open_paths, 3);
	ptcp_task_free(t);
	ptcp_task_free(cf_accepted(&o, &receives));
}

/* The refusal names the option and the pattern. */
static void malformed_rules(void **state)
{
	static char name[1002];
	static const char *const bad[] = { "", "/", "[", "a[b", "[z-a]", "a*\\", "[[:digits:]]", name };
	struct ptcp_rule rule;
	struct ptcp_transfer_opts o = cf_opts();
	char text[32];
	size_t i;

	(void)state;
	memset(name, '0', sizeof name - 1);
	o.rules = &rule;
	o.n_rules = 1;
	for (i = 0; i < 2 * sizeof bad / sizeof *bad; i++) {
		rule = (struct ptcp_rule){ .include = i % 2 == 0, .pattern = bad[i / 2] };
		snprintf(text, sizeof text, "--%s '%.8s", rule.include ? "include" : "exclude",
		    strchr(rule.pattern, '\\') != NULL ? "a" : rule.pattern);
		cf_refused(&o, &sends, PTCP_EUSAGE, text);
		cf_refused(&o, &receives, PTCP_EUSAGE, text);
	}
	rule = (struct ptcp_rule){ .filter = "excluded x" };
	cf_refused(&o, &sends, PTCP_EUSAGE, "--filter: 'excluded x': unknown rule");
	rule = (struct ptcp_rule){ .filter = ". x" };
	cf_refused(&o, &receives, PTCP_EUSAGE, "--filter: '. x': only the command reads files");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(local_sources),
		cmocka_unit_test(remote_sources),
		cmocka_unit_test(names_are_copies),
		cmocka_unit_test(wrong_sides),
		cmocka_unit_test(too_many_paths),
		cmocka_unit_test(delegated),
		cmocka_unit_test(not_between_hosts),
		cmocka_unit_test(single_file),
		cmocka_unit_test(selections),
		cmocka_unit_test(long_selections),
		cmocka_unit_test(rules),
		cmocka_unit_test(malformed_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
