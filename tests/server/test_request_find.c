/* Which files a request finds, and whether a path leaves the client's directory. */
#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/sender.h"
#include "fs/quota.h"
#include "server/request_impl.h"

static void expect_why(const char *text)
{
	if (strstr(vf.why.msg, text) == NULL)
		fail_msg("\"%s\" does not contain \"%s\"", vf.why.msg, text);
}

/* The paths of the found sources, as "a b!": "!" follows a source that cannot be sent. */
static void expect_sources(const char *expected)
{
	char got[1000] = "";
	unsigned i;

	for (i = 0; i < vf.request.n_paths; i++)
		snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s%s", i > 0 ? " " : "",
		    request_path(&vf.request, i), vf.request.path[i].dir == NULL ? "!" : "");
	assert_string_equal(got, expected);
}

static void make_files(void)
{
	fx_mkdir("root/a");
	fx_mkdir("root/b");
	fx_text("root/a/x", "1");
	fx_text("root/a/y", "1");
	fx_text("root/b/x", "1");
	fx_text("root/*", "1");
	fx_text("outside", "1");
	assert_int_equal(symlink(fx_path("outside"), fx_path("root/out")), 0);
	assert_int_equal(symlink("..", fx_path("root/up")), 0);
}

/* ---- Sources ---- */

static void patterns(void **state)
{
	(void)state;
	make_files();
	vf_path(0, "a/*");
	vf_path(0, "b/x*");
	assert_int_equal(vf_find(WIRE_ACCEPTOR_SENDS, 0), 0);
	expect_sources("a/x a/y b/x!"); /* two sources called x would replace each other */
	assert_int_equal(vf.request.path[2].why.code, PTCP_EUSAGE);
	assert_non_null(strstr(vf.request.path[2].why.msg, "same name"));
	assert_true(vf.request.expanded);
	vf_begin();
	vf_path(0, "*"); /* a file of that name exists */
	assert_int_equal(vf_find(WIRE_ACCEPTOR_SENDS, 0), 0);
	expect_sources("*");
	assert_false(vf.request.expanded);
	vf_begin();
	vf_path(0, "a/x");
	assert_int_equal(vf_find(WIRE_ACCEPTOR_SENDS, 0), 0);
	expect_sources("a/x");
	assert_false(vf.request.expanded);
}

/* A missing source is a failed file of the transfer, and so is a pattern without a match; the rest is sent. */
static void missing_sources(void **state)
{
	(void)state;
	make_files();
	vf_path(0, "nothing/at/all");
	vf_path(0, "z*");
	vf_path(0, "a/y");
	assert_int_equal(vf_find(WIRE_ACCEPTOR_SENDS, 0), 0);
	expect_sources("nothing/at/all! z*! a/y");
	assert_true(vf.request.path[0].why.code < 0 && vf.request.path[1].why.code < 0);
}

/* A FIFO, device or socket fails if it is named itself, also below a link, but not as a match of a pattern, or in a
 * directory. */
static void special_sources(void **state)
{
	static const char *const asked[] = { "a/fifo", "to_a/fifo", "a/f*", "a", "to_fifo" };
	static const char *const found[] = { "a/fifo!", "to_a/fifo!", "a/fifo", "a", "to_fifo" };
	unsigned i, literal;

	(void)state;
	make_files();
	assert_int_equal(mkfifo(fx_path("root/a/fifo"), 0600), 0);
	assert_int_equal(symlink("a", fx_path("root/to_a")), 0);
	assert_int_equal(symlink("a/fifo", fx_path("root/to_fifo")), 0);
	for (i = 0; i < sizeof asked / sizeof *asked; i++)
		for (literal = 0; literal < (i == 2 ? 1 : 2); literal++) {
			vf_path(0, asked[i]);
			vf.request.literal = literal;
			assert_int_equal(vf_find(WIRE_ACCEPTOR_SENDS, 0), 0);
			expect_sources(found[i]);
			if (i < 2) {
				assert_int_equal(vf.request.path[0].why.code, PTCP_EIO);
				assert_non_null(strstr(vf.request.path[0].why.msg, "a device, FIFO or socket"));
			}
			vf_begin();
		}
}

/* No path leaves the root: neither by dots nor by links, in a plain name or in a pattern. */
static void outside(void **state)
{
	static const char *const paths[] = { "../outside", "a/../../outside", "up/outside", "up/o*", "../o*", "up/" };
	char absolute[400], marked[410];
	unsigned i;

	(void)state;
	make_files();
	for (i = 0; i < sizeof paths / sizeof *paths; i++) {
		vf_begin();
		vf_path(0, paths[i]);
		assert_int_equal(vf_find(WIRE_ACCEPTOR_SENDS, 0), 0);
		snprintf(marked, sizeof marked, "%s!", paths[i]);
		expect_sources(marked);
	}
	vf_begin();
	snprintf(absolute, sizeof absolute, "%s", fx_path("outside"));
	vf_path(0, absolute);
	assert_int_equal(vf_find(WIRE_ACCEPTOR_SENDS, 0), 0);
	snprintf(marked, sizeof marked, "%s!", absolute);
	expect_sources(marked);
}

/* The client that is this user may send any file by its absolute path, and those of its home directory. */
static void own_paths(void **state)
{
	char path[400];

	(void)state;
	make_files();
	vf.request.own = true;
	snprintf(path, sizeof path, "%s", fx_path("outsid?"));
	vf_path(0, path);
	assert_int_equal(vf_find(WIRE_ACCEPTOR_SENDS, 0), 0);
	expect_sources(fx_path("outside"));
	assert_null(vf.request.tree);
	vf_begin();
	vf.request.own = true;
	vf_path(0, "~nosuchuser/x");
	assert_int_equal(vf_find(WIRE_ACCEPTOR_SENDS, 0), 0);
	expect_sources("~nosuchuser/x!");
}

/* Rules are no sources; the content of a directory has no name of its own. */
static void rules_and_contents(void **state)
{
	(void)state;
	make_files();
	vf_path(WIRE_PATH_RULE, "- *.tmp");
	vf_path(WIRE_PATH_CONTENTS, "a");
	vf_path(WIRE_PATH_RULE, "+ k*");
	assert_int_equal(vf_find(WIRE_ACCEPTOR_SENDS, 0), 0);
	expect_sources("a");
	assert_string_equal(vf.request.path[0].name, "");
	assert_non_null(vf.request.filter);
	assert_string_equal(request_first(&vf.request), "a");
}

/* A stream without anything to send costs a connection: a single file has one for each job. */
static void useful_streams(void **state)
{
	(void)state;
	make_files();
	fx_text("root/large", "");
	assert_int_equal(truncate(fx_path("root/large"), 3 * (off_t)SND_JOB_BYTES + 1), 0);
	vf_path(0, "large");
	assert_int_equal(vf_find(WIRE_ACCEPTOR_SENDS, 0), 0);
	assert_int_equal(vf.request.n_useful, 4);
	vf_begin();
	vf_path(0, "a/x");
	assert_int_equal(vf_find(WIRE_ACCEPTOR_SENDS, 0), 0);
	assert_int_equal(vf.request.n_useful, 1);
	vf_begin();
	vf_path(0, "a");
	assert_int_equal(vf_find(WIRE_ACCEPTOR_SENDS, 0), 0);
	assert_int_equal(vf.request.n_useful, PTCP_STREAMS_MAX);
	vf_begin();
	vf_path(0, "a/x");
	vf_path(0, "a/y");
	assert_int_equal(vf_find(WIRE_ACCEPTOR_SENDS, 0), 0);
	assert_int_equal(vf.request.n_useful, PTCP_STREAMS_MAX);
}

/* More names than one step examines, and more matches than a client has memory for. */
static void many_names(void **state)
{
	struct memory_account *account;
	struct memory_budget *budget;
	char name[32];
	unsigned i;

	(void)state;
	for (i = 0; i < 5000; i++) {
		snprintf(name, sizeof name, "root/f%u", i);
		fx_text(name, "");
	}
	vf_path(0, "f*9");
	assert_int_equal(vf_find(WIRE_ACCEPTOR_SENDS, 0), 0);
	assert_int_equal(vf.request.n_paths, 500);
	assert_int_equal(memory_budget_new(&budget, 4 << 20, NULL), 0);
	vf_begin();
	assert_int_equal(memory_account_new(&account, budget, "client", NULL), 0);
	vf.request.memory = account;
	vf_path(0, "f*");
	assert_int_equal(vf_find(WIRE_ACCEPTOR_SENDS, 0), PTCP_ENOMEM);
	expect_why("f*");
	request_fini(&vf.request);
	vf.request = (struct request){ .context = &vf.context };
	assert_int_equal(memory_budget_used(budget), 0);
	memory_account_free(account);
	memory_budget_free(budget);
}

/* ---- Destinations ---- */

static void destinations(void **state)
{
	(void)state;
	make_files();
	vf_path(0, "a");
	assert_int_equal(vf_find(WIRE_ACCEPTOR_RECEIVES, 0), 0);
	assert_string_equal(vf.request.place.rename, "");
	vf_begin();
	vf_path(0, "a/new");
	assert_int_equal(vf_find(WIRE_ACCEPTOR_RECEIVES, 0), 0);
	assert_string_equal(vf.request.place.rename, "new");
	vf_begin();
	vf_path(0, "missing/new");
	assert_true(vf_find(WIRE_ACCEPTOR_RECEIVES, 0) < 0);
	expect_why("destination missing/new");
	vf_begin();
	vf_path(0, "../new");
	assert_true(vf_find(WIRE_ACCEPTOR_RECEIVES, 0) < 0);
	assert_null(strstr(vf.why.msg, vf.root));
	vf_begin();
	vf_path(0, "up/new");
	assert_true(vf_find(WIRE_ACCEPTOR_RECEIVES, 0) < 0);
	assert_false(fx_exists("new"));
}

/* ---- Roots ---- */

/* The client learns no path of the server; the log has it. */
static void a_missing_root(void **state)
{
	(void)state;
	vf.request.root = fx_path("nowhere");
	vf_path(0, "x");
	assert_int_equal(vf_find(WIRE_ACCEPTOR_SENDS, 0), PTCP_EIO);
	expect_why("the root for this client cannot be opened");
	assert_null(strstr(vf.why.msg, "nowhere"));
	assert_true(vf_logged("event=no-root") && vf_logged(fx_path("nowhere")));
}

/* The directory of the client takes the place of the server's. */
static void the_root_of_the_client(void **state)
{
	(void)state;
	make_files();
	strcpy(vf.request.auth.root, fx_path("root/a"));
	vf_path(0, "y");
	vf_path(0, "b/x");
	assert_int_equal(vf_find(WIRE_ACCEPTOR_SENDS, 0), 0);
	expect_sources("y b/x!");
}

/* A confined server opens only the roots of its start. */
static void roots_of_a_confined_server(void **state)
{
	const char *const roots[] = { vf.root, NULL };
	const char *const none[] = { NULL };

	(void)state;
	make_files();
	vf.request.roots = roots;
	vf_path(0, "a/x");
	assert_int_equal(vf_find(WIRE_ACCEPTOR_SENDS, 0), 0);
	expect_sources("a/x");
	vf_begin();
	vf.request.roots = none;
	vf_path(0, "a/x");
	assert_int_equal(vf_find(WIRE_ACCEPTOR_SENDS, 0), PTCP_ECONFIG);
	expect_why("cannot be opened");
	assert_true(vf_logged("configured after the server had started"));
}

/* No root lies in the server's own directories, and none shows them. */
static void the_servers_own_directories(void **state)
{
	(void)state;
	make_files();
	vf.request.root = fx_path("config");
	vf_path(0, "x");
	assert_int_equal(vf_find(WIRE_ACCEPTOR_SENDS, 0), PTCP_EREFUSED);
	expect_why("lies in the server's own configuration or state directory");
	vf_begin();
	vf.request.root = fx_path("");
	vf_path(0, "config/identity");
	vf_path(0, "outside");
	assert_int_equal(vf_find(WIRE_ACCEPTOR_SENDS, 0), 0);
	expect_sources("config/identity! outside");
}

/* A client that may write gets its missing directory beneath the root; one that may only read does not. */
static void below(void **state)
{
	(void)state;
	make_files();
	strcpy(vf.request.auth.below, "clients/c");
	vf.request.auth.read_only = true;
	vf_path(0, "x");
	assert_int_equal(vf_find(WIRE_ACCEPTOR_SENDS, 0), PTCP_EIO);
	expect_why("cannot be opened");
	assert_false(fx_exists("root/clients"));
	vf_begin();
	strcpy(vf.request.auth.below, "clients/c");
	vf_path(0, "new");
	assert_int_equal(vf_find(WIRE_ACCEPTOR_RECEIVES, 0), 0);
	assert_true(fx_exists("root/clients/c"));
	vf_begin();
	strcpy(vf.request.auth.below, "clients/c");
	vf_path(0, "../../a/x");
	vf_path(0, "/a/x");
	assert_int_equal(vf_find(WIRE_ACCEPTOR_SENDS, 0), 0);
	expect_sources("../../a/x! /a/x!");
	vf_begin(); /* another client has put a link in place of the directory */
	assert_int_equal(symlink("../..", fx_path("root/clients/d")), 0);
	assert_int_equal(symlink("../../config", fx_path("root/clients/e")), 0);
	strcpy(vf.request.auth.below, "clients/d/outside");
	vf_path(0, "new");
	assert_true(vf_find(WIRE_ACCEPTOR_RECEIVES, 0) < 0);
	vf_begin();
	strcpy(vf.request.auth.below, "clients/e");
	vf_path(0, "new");
	assert_true(vf_find(WIRE_ACCEPTOR_RECEIVES, 0) < 0);
}

/* ---- Quotas ---- */

static void quotas(void **state)
{
	struct quota_table *table;
	uint64_t used, limit;

	(void)state;
	make_files();
	assert_int_equal(quota_table_new(&table, &vf.context.log, NULL), 0);
	vf.request.quotas = table;
	vf.request.auth.quota_bytes = 10 << 20;
	vf_path(0, "a");
	assert_int_equal(vf_find(WIRE_ACCEPTOR_RECEIVES, 0), 0); /* after the count */
	assert_true(tree_quota(vf.request.tree, &used, &limit));
	assert_int_equal(limit, 10 << 20);
	assert_true(used >= 8 * QUOTA_GRAIN);
	request_change_quota(&vf.request, 20 << 20);
	tree_quota(vf.request.tree, &used, &limit);
	assert_int_equal(limit, 20 << 20);
	request_change_quota(&vf.request, 0);
	tree_quota(vf.request.tree, &used, &limit);
	assert_true(limit > UINT64_C(1) << 60);
	vf_begin(); /* what changes nothing needs no count */
	vf.request.quotas = table;
	vf.request.auth.quota_bytes = 10 << 20;
	vf_path(0, "a");
	assert_int_equal(vf_find(WIRE_ACCEPTOR_SENDS, 0), 0);
	assert_false(tree_quota(vf.request.tree, &used, &limit));
	request_fini(&vf.request);
	vf.request = (struct request){ .context = &vf.context };
	quota_table_free(table);
}

/* A request of work on files finds its root only; the paths follow one by one. */
static void managed(void **state)
{
	const struct wire_manage list = { .op = WIRE_MANAGE_LIST, .n_paths = 1 };
	char name[DESTINATION_NAME_BYTES];
	struct wire_manage f = list;
	struct ptcp_err e;
	struct dir *d;

	(void)state;
	make_files();
	vf_path(0, "a/*");
	f.paths = vf_paths();
	assert_int_equal(request_take_manage(&vf.request, &f, &e), 0);
	assert_int_equal(vf_find_taken(), 0);
	assert_int_equal(vf.request.n_paths, 1);
	assert_string_equal(request_path(&vf.request, 0), "a/*");
	assert_int_equal(request_source(&vf.request, "a/x", false, &d, name, &e), 0);
	assert_string_equal(name, "x");
	dir_unref(d);
	assert_int_equal(request_source(&vf.request, "up/outside", false, &d, name, &e), PTCP_EREFUSED);
}

/* The directory to be cleaned is a name like any other, even if it looks like a pattern. */
static void cleaned(void **state)
{
	struct ptcp_err e;

	(void)state;
	make_files();
	fx_mkdir("root/[ab]");
	assert_int_equal(request_take_clean(&vf.request, (struct span){ (const uint8_t *)"[ab]", 4 }, &e), 0);
	assert_int_equal(vf_find_taken(), 0);
	assert_non_null(request_dir(&vf.request, &e));
	expect_sources("[ab]");
	vf_begin();
	assert_int_equal(request_take_clean(&vf.request, (struct span){ (const uint8_t *)"none", 4 }, &e), 0);
	assert_int_equal(vf_find_taken(), 0);
	assert_null(request_dir(&vf.request, &e));
	assert_int_equal(e.sys, ENOENT);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		vf_test(patterns), vf_test(missing_sources),
		vf_test(special_sources), vf_test(outside), vf_test(own_paths),
		vf_test(rules_and_contents),
		vf_test(useful_streams), vf_test(many_names), vf_test(destinations), vf_test(a_missing_root),
		vf_test(the_root_of_the_client), vf_test(roots_of_a_confined_server),
		vf_test(the_servers_own_directories),
		vf_test(below), vf_test(quotas), vf_test(managed), vf_test(cleaned),
	};

	return cmocka_run_group_tests_name("server/request_find", tests, NULL, NULL);
}
