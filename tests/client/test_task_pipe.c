/* Standard input as the source of a transfer, and standard output as its destination. */
#include "fixture.h"

#include <fcntl.h>
#include <unistd.h>

static int in, out;

/* A pipe: `in` for an input, `out` for an output. */
static int setup(void **state)
{
	int p[2];

	(void)state;
	if (pipe(p) != 0)
		return -1;
	in = p[0];
	out = p[1];
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return close(in) | close(out);
}

static struct ptcp_transfer_opts opts(int fd)
{
	struct ptcp_transfer_opts o = cf_opts();

	o.pipe.fd = fd;
	return o;
}

static const struct cf_files input = { true, { "-" }, CF_NO_HOST "file" };
static const struct cf_files output = { false, { CF_NO_HOST "file" }, "-" };

/* The file is a new one: an input has no attributes that the other end could preserve. */
static void an_input(void **state)
{
	struct ptcp_transfer_opts o = opts(in);
	struct ptcp_task *t;

	(void)state;
	o.preserve.owner = o.preserve.xattr = o.preserve.setid = o.partial = true;
	t = cf_accepted(&o, &input);
	assert_non_null(t->files.input);
	assert_null(t->files.output);
	assert_false(t->o.preserve.times || t->o.preserve.mode || t->o.preserve.owner || t->o.preserve.xattr ||
	    t->o.preserve.setid);
	assert_int_equal(task_open_flags(t) & (WIRE_OPEN_FILE | WIRE_OPEN_PARTIAL), WIRE_OPEN_FILE | WIRE_OPEN_PARTIAL);
	ptcp_task_free(t);
}

/* Only an input can leave the beginning of a file. */
static void no_beginning_of_files(void **state)
{
	struct ptcp_transfer_opts o = opts(-1);
	struct ptcp_task *t;

	(void)state;
	o.partial = true;
	t = cf_accepted(&o, &(struct cf_files){ true, { "file" }, CF_NO_HOST });
	assert_int_equal(task_open_flags(t) & (WIRE_OPEN_FILE | WIRE_OPEN_PARTIAL), 0);
	ptcp_task_free(t);
}

static void an_output(void **state)
{
	const struct ptcp_transfer_opts o = opts(out);
	struct ptcp_task *t = cf_accepted(&o, &output);

	(void)state;
	assert_null(t->files.input);
	assert_non_null(t->files.output);
	assert_true(t->o.preserve.times);
	ptcp_task_free(t);
}

/* Without a descriptor, or not as a whole operand, "-" is the name of a file. */
static void a_file_of_that_name(void **state)
{
	static const struct cf_files named[] = { { true, { "./-" }, CF_NO_HOST "file" },
		{ true, { "file" }, CF_NO_HOST "-" }, { false, { CF_NO_HOST "-" }, "here" } };
	struct ptcp_transfer_opts o = opts(-1);
	struct ptcp_task *t = cf_accepted(&o, &input);
	size_t i;

	(void)state;
	assert_null(t->files.input);
	ptcp_task_free(t);
	o.pipe.fd = in;
	for (i = 0; i < sizeof named / sizeof *named; i++) {
		t = cf_accepted(&o, &named[i]);
		assert_null(t->files.input);
		assert_null(t->files.output);
		ptcp_task_free(t);
	}
}

static void one_file_only(void **state)
{
	static const char *const unnamed[] = { CF_NO_HOST, CF_NO_HOST "dir/", CF_NO_HOST "new/", CF_NO_HOST "." };
	const struct ptcp_transfer_opts i = opts(in), o = opts(out);
	size_t k;

	(void)state;
	cf_refused(&i, &(struct cf_files){ true, { "file", "-" }, CF_NO_HOST "file" }, PTCP_EUSAGE, "only source");
	for (k = 0; k < sizeof unnamed / sizeof *unnamed; k++)
		cf_refused(&i, &(struct cf_files){ true, { "-" }, unnamed[k] }, PTCP_EUSAGE,
		    "standard input has no name");
	cf_refused(&o, &(struct cf_files){ false, { CF_NO_HOST "a", CF_NO_HOST "b" }, "-" }, PTCP_EUSAGE,
	    "only one file");
}

/* Each option that is about many files, or about a file that exists. */
static void meaningless_options(void **state)
{
	static const struct ptcp_rule rule = { .pattern = "*" };
	static const char *const list[] = { "x" };
	const struct ptcp_transfer_opts i = opts(in), o = opts(out);
	struct ptcp_transfer_opts x;

	(void)state;
#define REFUSED(option, ...) \
	x = i, __VA_ARGS__, cf_refused(&x, &input, PTCP_EUSAGE, option ": not with standard input"); \
	x = o, __VA_ARGS__, cf_refused(&x, &output, PTCP_EUSAGE, option ": not with standard output")
	REFUSED("--dry-run", x.dry_run = true);
	REFUSED("--delete", x.delete_extra = true);
	REFUSED("--remove-source-files", x.remove_sources = true);
	REFUSED("--checksum", x.checksum = true);
	REFUSED("--size-only", x.size_only = true);
	REFUSED("--update", x.update = true);
	REFUSED("--files-from", x.files = list, x.n_files = 1);
	REFUSED("--exclude or --include", x.rules = &rule, x.n_rules = 1);
#undef REFUSED
	x = o;
	x.ignore_existing = true; /* of the local file, which does not exist; a remote file may */
	cf_refused(&x, &output, PTCP_EUSAGE, "--ignore-existing: not with standard output");
	x = i;
	x.ignore_existing = true;
	ptcp_task_free(cf_accepted(&x, &input));
}

/* The kernel's refusal names the stream. */
static void a_descriptor_that_cannot_be(void **state)
{
	const int closed = fcntl(in, F_DUPFD, 900);
	struct ptcp_transfer_opts o = opts(closed);
	struct ptcp_task *t = NULL;
	struct ptcp_err e;

	(void)state;
	close(closed);
	assert_true(cf_new(&t, &o, &input, &e) < 0);
	cf_says(&e, "standard input");
	assert_true(cf_new(&t, &o, &output, &e) < 0);
	cf_says(&e, "standard output");
	assert_null(t);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		test(an_input),
		test(no_beginning_of_files),
		test(an_output),
		test(a_file_of_that_name),
		test(one_file_only),
		test(meaningless_options),
		test(a_descriptor_that_cannot_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
