/* Work on files of another host, and leftovers there: the requests that are refused, the entries as the user's callback
 * gets them, and the outcome. */
#include <errno.h>

#include "client/file_digests.h"
#include "client/manage_task.h"
#include "client/remote_job_impl.h"
#include "fixture.h"

static struct ptcp_task *t;
static struct ptcp_manage_opts opts;
static struct ptcp_transfer_opts connection;

/* Entries, one per line: "TYPE PATH BYTES [-> TARGET] [CODE: WHY]". */
static char shown[4096];

static void on_entry(void *arg, const struct ptcp_entry *e)
{
	size_t n = strlen(shown);

	(void)arg;
	n += (size_t)snprintf(shown + n, sizeof shown - n, "%d %s %llu", (int)e->type, e->path,
	    (unsigned long long)e->bytes);
	if (e->target != NULL)
		n += (size_t)snprintf(shown + n, sizeof shown - n, " -> %s", e->target);
	if (e->code != 0)
		n += (size_t)snprintf(shown + n, sizeof shown - n, " %d: %s", e->code, e->why);
	snprintf(shown + n, sizeof shown - n, "\n");
}

static int setup(void **state)
{
	(void)state;
	ptcp_transfer_opts_init(&connection);
	ptcp_manage_opts_init(&opts);
	opts.entry = on_entry;
	shown[0] = '\0';
	t = NULL;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ptcp_task_free(t);
	return 0;
}

static struct span span_of(const char *text) { return (struct span){ (const uint8_t *)text, strlen(text) }; }

/* ---- Requests ---- */

static void refused(enum ptcp_manage_op op, const char *const *urls, size_t n, const char *text)
{
	struct ptcp_err e;

	assert_int_equal(ptcp_manage_new(&t, &connection, op, urls, n, &opts, &e), PTCP_EUSAGE);
	cf_says(&e, text);
	assert_null(t);
}
#define REFUSED(op, text, ...) \
	refused(op, (const char *const[]){ __VA_ARGS__ }, sizeof (const char *[]){ __VA_ARGS__ } / sizeof (char *), \
	    text)

static void accepted(enum ptcp_manage_op op, const char *const *urls, size_t n)
{
	struct ptcp_err e;

	ptcp_task_free(t);
	if (ptcp_manage_new(&t, &connection, op, urls, n, &opts, &e) < 0)
		fail_msg("%s", e.msg);
}
#define ACCEPTED(op, ...) \
	accepted(op, (const char *const[]){ __VA_ARGS__ }, sizeof (const char *[]){ __VA_ARGS__ } / sizeof (char *))
#define U CF_NO_HOST

static void urls(void **state)
{
	const char *one = U "a";

	(void)state;
	REFUSED(PTCP_LIST, "a: not on another host", "a");
	REFUSED(PTCP_LIST, "'': not on another host", "");
	REFUSED(PTCP_LIST, "on another host than the first", U "a", "ptcp://127.0.0.1:2/a");
	REFUSED(PTCP_LIST, "on another host than the first", "h:a", "u@h:a");
	REFUSED(PTCP_LIST, "ptcp://", "ptcp://");
	refused(PTCP_LIST, &one, 0, "without its URLs");
	REFUSED(PTCP_RENAME, "without its URLs", U "a");
	REFUSED(PTCP_RENAME, "without its URLs", U "a", U "b", U "c");
	REFUSED((enum ptcp_manage_op)(PTCP_TOUCH + 1), "an operation", U "a", U "b");
	REFUSED((enum ptcp_manage_op)(PTCP_LIST - 1), "an operation", U "a", U "b");
	ACCEPTED(PTCP_RENAME, U "a", U "b");
	assert_string_equal(t->known_as, "127.0.0.1:1");
	ACCEPTED(PTCP_REMOVE, "u@h:a", "u@h:b", "u@h:c");
	assert_int_equal(t->files.n_open_paths, 3);
}

/* Each option belongs to some operations only. */
static void options(void **state)
{
	static const enum ptcp_manage_op ops[] = { PTCP_LIST, PTCP_COUNT, PTCP_MKDIR, PTCP_REMOVE, PTCP_RENAME,
		PTCP_SUM, PTCP_RMDIR, PTCP_TOUCH };
	size_t i;
	bool *option[6] = { &opts.recursive, &opts.hidden, &opts.itself, &opts.parents, &opts.replace, &opts.literal };
	static const unsigned permitted[6] = { 1u << PTCP_LIST | 1u << PTCP_REMOVE | 1u << PTCP_SUM, 1u << PTCP_LIST,
		1u << PTCP_LIST, 1u << PTCP_MKDIR, 1u << PTCP_RENAME,
		1u << PTCP_LIST | 1u << PTCP_COUNT | 1u << PTCP_REMOVE };
	unsigned k;

	(void)state;
	for (k = 0; k < 6; k++) {
		*option[k] = true;
		for (i = 0; i < sizeof ops / sizeof *ops; i++)
			if ((permitted[k] >> ops[i] & 1) != 0)
				ACCEPTED(ops[i], U "a", U "b");
		ptcp_task_free(t);
		t = NULL;
		for (i = 0; i < sizeof ops / sizeof *ops; i++)
			if ((permitted[k] >> ops[i] & 1) == 0)
				REFUSED(ops[i], "an option of another operation", U "a", U "b");
		*option[k] = false;
	}
	opts.digests = PTCP_MD5;
	REFUSED(PTCP_LIST, "an option of another operation", U "a");
	opts.digests = PTCP_DIGESTS_ALL + 1;
	REFUSED(PTCP_SUM, "an option of another operation", U "a");
	opts.digests = 0;
	opts.end = 1;
	REFUSED(PTCP_COUNT, "an option of another operation", U "a");
	ACCEPTED(PTCP_SUM, U "a");
	assert_int_equal(t->remote_job->manage.digests, PTCP_SHA256);
	ptcp_task_free(t);
	t = NULL;
	opts.size = 0;
	REFUSED(PTCP_LIST, "ptcp_manage_opts_init", U "a");
}

/* ---- Entries ---- */

static void lists(uint8_t type, const char *path, uint64_t bytes)
{
	const struct wire_listed f = { .type = type, .bytes = bytes, .path = span_of(path),
		.target = span_of("target") };
	struct ptcp_err e;

	assert_int_equal(remote_job_listed(t, &f, &e), 0);
}

static void failure(const char *path, int code, uint8_t cause, const char *text)
{
	const struct wire_listed f = { .type = WIRE_LISTED_FILE, .path = span_of(path),
		.why = { (uint16_t)-code, cause, span_of(text) } };
	struct ptcp_err e;

	assert_int_equal(remote_job_listed(t, &f, &e), 0);
}

/* The digests of a file, one after the other, and answers with other digits. */
static void sums(void **state)
{
	static const struct { unsigned digests; const char *hex; int r; } rows[] = {
		{ PTCP_ADLER32, "0123abcd", 0 }, { PTCP_ADLER32, "0123abc", PTCP_EPROTO },
		{ PTCP_ADLER32, "0123ABCD", PTCP_EPROTO }, { PTCP_ADLER32, "", PTCP_EPROTO },
		{ PTCP_ADLER32 | PTCP_CRC32C, "0123abcd89abcdef", 0 }, { PTCP_ADLER32 | PTCP_XXH3, "0123abcd89abcdef",
		    PTCP_EPROTO },
	};
	struct ptcp_entry entry = { .path = "f" };
	struct file_digests m;
	struct ptcp_err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct wire_listed f = { .type = WIRE_LISTED_FILE, .path = span_of("/f"),
			.target = span_of(rows[i].hex) };

		opts.digests = rows[i].digests;
		ACCEPTED(PTCP_SUM, U "a");
		assert_int_equal(remote_job_listed(t, &f, &e), rows[i].r);
		f.type = WIRE_LISTED_DIR;
		assert_int_equal(remote_job_listed(t, &f, &e), PTCP_EPROTO);
	}
	assert_true(file_digests(&m, PTCP_ADLER32 | PTCP_CRC32C, "0123abcd89abcdef", &entry));
	assert_int_equal(entry.n_digests, 2);
	assert_true(entry.digest[0].kind == PTCP_ADLER32 && entry.digest[1].kind == PTCP_CRC32C);
	assert_string_equal(entry.digest[0].hex, "0123abcd");
	assert_string_equal(entry.digest[1].hex, "89abcdef");
}

static void shows(const char *text)
{
	assert_string_equal(shown, text);
	shown[0] = '\0';
}

/* Of one directory, the user knows the beginning of each path; of several URLs, or a pattern, it says which. */
static void paths(void **state)
{
	char line[64];

	(void)state;
	snprintf(line, sizeof line, "%d f 5\n", PTCP_ENTRY_FILE);
	ACCEPTED(PTCP_LIST, U "d");
	lists(WIRE_LISTED_FILE, "/d/f", 5);
	shows(line);
	ACCEPTED(PTCP_LIST, U "d//");
	lists(WIRE_LISTED_FILE, "/d/f", 5);
	shows(line);
	ACCEPTED(PTCP_LIST, "h:.");
	lists(WIRE_LISTED_FILE, "f", 5);
	shows(line);
	ACCEPTED(PTCP_LIST, "h:");
	lists(WIRE_LISTED_FILE, "f", 5);
	shows(line);
	snprintf(line, sizeof line, "%d d/f 5\n", PTCP_ENTRY_FILE);
	ACCEPTED(PTCP_LIST, "h:d", "h:e");
	lists(WIRE_LISTED_FILE, "d/f", 5);
	shows(line);
	ACCEPTED(PTCP_LIST, "h:*");
	lists(WIRE_LISTED_FILE, "d/f", 5);
	shows(line);
	ACCEPTED(PTCP_COUNT, "h:d");
	lists(WIRE_LISTED_FILE, "d/f", 5);
	shows(line);
	snprintf(line, sizeof line, "%d d 5\n", PTCP_ENTRY_FILE); /* the URL names a file */
	ACCEPTED(PTCP_LIST, "h:d");
	lists(WIRE_LISTED_FILE, "d", 5);
	shows(line);
	snprintf(line, sizeof line, "%d l 0 -> target\n", PTCP_ENTRY_SYMLINK);
	lists(WIRE_LISTED_SYMLINK, "d/l", 0);
	shows(line);
	opts.entry = NULL; /* nobody listens */
	ACCEPTED(PTCP_LIST, "h:d");
	lists(WIRE_LISTED_FILE, "d/f", 5);
	shows("");
}

/* ---- The outcome ---- */

static int managed(uint64_t entries, uint64_t failed, bool final)
{
	const struct wire_managed f = { .entries = entries, .bytes = 10, .disk_bytes = 20, .failed = failed,
		.quota_bytes = 40, .quota_used_bytes = 30, .final = final };

	remote_job_managed(t, &f);
	assert_int_equal(t->over, final);
	return t->result;
}

static void totals(void **state)
{
	struct ptcp_manage_result r;

	(void)state;
	ACCEPTED(PTCP_COUNT, U "d");
	ptcp_manage_result_init(&r);
	ptcp_manage_totals(t, &r);
	assert_int_equal(r.entries, 0);
	managed(3, 0, false);
	ptcp_manage_totals(t, &r);
	assert_true(r.size == sizeof r && r.entries == 3 && r.bytes == 10 && r.disk_bytes == 20 && r.failed == 0 &&
	    r.quota_bytes == 40 && r.quota_used_bytes == 30);
	assert_int_equal(managed(4, 0, true), 0);
	ptcp_manage_totals(t, &r);
	assert_int_equal(r.entries, 4);
}

/* Each failure is reported. The only failure of the only path is the error of the task. */
static void one_failure(void **state)
{
	(void)state;
	ACCEPTED(PTCP_REMOVE, "h:x");
	failure("x", PTCP_EREFUSED, 0, "\033 no");
	assert_non_null(strstr(shown, "x 0 -5"));
	assert_int_equal(managed(0, 1, true), PTCP_EREFUSED);
	assert_int_equal(t->why.sys, EACCES); /* that of the code */
	assert_true(t->why.from_peer);
	cf_says(&t->why, "x: ");
	cf_says(&t->why, " no");
	assert_null(strchr(t->why.msg, '\033'));
	ACCEPTED(PTCP_RENAME, "h:x", "h:y");
	failure("", PTCP_EIO, 1, "no");
	assert_int_equal(managed(0, 1, true), PTCP_EIO);
	assert_int_equal(t->why.sys, ENOENT);
	cf_says(&t->why, ".: ");
	shown[0] = '\0';
}

/* Of several paths, or after some success, the task says how many failures there were, and has the cause that they
 * share. */
static void more_failures(void **state)
{
	(void)state;
	ACCEPTED(PTCP_REMOVE, "h:x", "h:y");
	failure("x", PTCP_EIO, 1, "no");
	assert_non_null(strstr(shown, "x 0 -"));
	failure("y", PTCP_EIO, 3, "neither");
	assert_non_null(strstr(shown, ": neither\n"));
	assert_int_equal(managed(0, 2, true), PTCP_EIO);
	assert_int_equal(t->why.sys, 0);
	cf_says(&t->why, "h: 2 failures (see above)");
	shown[0] = '\0';
	ACCEPTED(PTCP_LIST, "h:x");
	failure("x/a", PTCP_EIO, 2, "no");
	failure("x/b", PTCP_EIO, 2, "no");
	assert_int_equal(managed(5, 2, true), PTCP_EPARTIAL);
	assert_int_equal(t->why.sys, EACCES);
	cf_says(&t->why, "h: 2 failures (see above)");
	assert_non_null(strstr(shown, "x/a 0 ")); /* with its whole path */
	shown[0] = '\0';
	ACCEPTED(PTCP_REMOVE, "h:x", "h:y");
	failure("x", PTCP_EIO, UINT8_MAX, "no"); /* a cause that this version does not know */
	assert_int_equal(managed(0, 1, true), PTCP_EIO);
	assert_int_equal(t->why.sys, 0);
	assert_non_null(strstr(shown, ": no\n"));
}

static void same_host(void **state)
{
	static const char *const all[] = { U "a", U "b", "ptcp://127.0.0.1:2/c", U "d" },
		*const local[] = { "a", U "b" }, *const ssh[] = { "u@h:a", "u@h:b", "h:c" };

	(void)state;
	assert_int_equal(ptcp_same_host(all, 4), 2);
	assert_int_equal(ptcp_same_host(all, 1), 1);
	assert_int_equal(ptcp_same_host(all, 0), 0);
	assert_int_equal(ptcp_same_host(local, 2), 1);
	assert_int_equal(ptcp_same_host(ssh, 3), 2);
}

/* ---- Leftovers ---- */

static struct { unsigned n; char path[64], why[64]; uint64_t bytes; double age_s; } left;

static void on_found(void *arg, const struct ptcp_leftover *l)
{
	(void)arg;
	left.n++;
	snprintf(left.path, sizeof left.path, "%s", l->path);
	snprintf(left.why, sizeof left.why, "%s", l->why != NULL ? l->why : "");
	left.bytes = l->bytes;
	left.age_s = l->age_s;
}

static void cleaning_options(void **state)
{
	static const double good[] = { 0, 1, 1e12 }, bad[] = { -1, 1e13, __builtin_nan("") };
	struct ptcp_clean_opts o, out;
	char path[sizeof U + WIRE_PATH_MAX + 1];
	struct ptcp_err e;
	size_t i;

	(void)state;
	ptcp_clean_opts_init(&o);
	assert_int_equal(clean_take_opts(&out, &o, &e), 0);
	assert_true(out.older_s == 86400 && !out.dry_run);
	for (i = 0; i < 3; i++) {
		o.older_s = good[i];
		assert_int_equal(clean_take_opts(&out, &o, &e), 0);
		o.older_s = bad[i];
		assert_int_equal(clean_take_opts(&out, &o, &e), PTCP_EUSAGE);
		cf_says(&e, "older_s: ");
	}
	o.older_s = 5;
	assert_int_equal(ptcp_clean_new(&t, &connection, "dir", &o, &e), PTCP_EUSAGE);
	cf_says(&e, "dir: not on another host");
	memset(path, 'x', sizeof path - 1);
	memcpy(path, U, sizeof U - 1);
	path[sizeof path - 1] = '\0';
	assert_int_equal(ptcp_clean_new(&t, &connection, path, &o, &e), PTCP_EUSAGE);
	o.size = 0;
	assert_int_equal(ptcp_clean_new(&t, &connection, U "dir", &o, &e), PTCP_EUSAGE);
	assert_null(t);
	assert_true(ptcp_is_remote(U "dir") && ptcp_is_remote("h:dir") && !ptcp_is_remote("dir") &&
	    !ptcp_is_remote("ptcp://"));
}

static void cleaning(void **state)
{
	const struct wire_leftover gone = { .bytes = 7, .age_ms = 1500, .path = span_of("a/b") };
	const struct wire_leftover stays = { .bytes = 7, .path = span_of("c"), .why = { 13, 3,
	    span_of("\033 denied") } };
	struct wire_cleaned f = { .files = 3, .bytes = 30, .in_use = 1, .recent = 2 };
	struct ptcp_clean_result r;
	struct ptcp_clean_opts o;
	struct ptcp_err e;

	(void)state;
	ptcp_clean_opts_init(&o);
	o.found = on_found;
	memset(&left, 0, sizeof left);
	assert_int_equal(ptcp_clean_new(&t, &connection, U "dir", &o, &e), 0);
	remote_job_leftover(t, &gone);
	assert_string_equal(left.path, "a/b");
	assert_string_equal(left.why, "");
	assert_true(left.n == 1 && left.bytes == 7 && left.age_s == 1.5);
	remote_job_leftover(t, &stays);
	assert_non_null(strstr(left.why, " denied"));
	assert_null(strchr(left.why, '\033'));
	t->remote_job->frames.n_listed = 2;
	remote_job_cleaned(t, &f);
	assert_false(t->over); /* so far */
	f.failed = 1;
	f.final = 1;
	remote_job_cleaned(t, &f);
	assert_true(t->over);
	assert_int_equal(t->result, PTCP_EPARTIAL);
	cf_says(&t->why, "127.0.0.1:1: 1 leftover could not be removed (see above)");
	ptcp_clean_result_init(&r);
	ptcp_clean_totals(t, &r);
	assert_true(r.files == 3 && r.bytes == 30 && r.in_use == 1 && r.recent == 2 && r.failed == 1);
	assert_int_equal(r.unlisted, 2); /* of 3 removed and 1 failed, 2 were listed */
}

static void cleaning_outcomes(void **state)
{
	struct ptcp_clean_result r = { .files = 9 };
	struct ptcp_err e;

	(void)state;
	assert_int_equal(clean_outcome("d", &r, &e), 0);
	r.failed = 2;
	assert_int_equal(clean_outcome("d", &r, &e), PTCP_EPARTIAL);
	cf_says(&e, "d: 2 leftovers could not");
	r.files = 0;
	assert_int_equal(clean_outcome("d", &r, &e), PTCP_EIO);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		test(urls),
		test(options),
		test(paths),
		test(sums),
		test(totals),
		test(one_failure),
		test(more_failures),
		test(same_host),
		test(cleaning_options),
		test(cleaning),
		test(cleaning_outcomes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
