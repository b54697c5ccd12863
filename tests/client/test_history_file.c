/* The file of the path history: kept, replaced, bounded, shared by processes.
 * against: state */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/history_file.h"
#include "patience.h"

static char dir[64], file[80];

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/ptcp-history.XXXXXX");
	if (mkdtemp(dir) == NULL)
		return -1;
	strcat(dir, "/a/b"); /* made when there is something to keep */
	snprintf(file, sizeof file, "%s/paths", dir);
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof command, "rm -rf %.*s", (int)strlen(dir) - 4, dir);
	return system(command);
}

static struct history_entry entry(const char *peer)
{
	struct history_entry h = { .key = { true, "", "cubic", "192.0.2.7" }, .when_s = time(NULL),
		.probe = { { 4, 40e6, 1e6 }, { 12, 60e6, 1e6 } }, .n_probes = 2 };

	strcpy(h.key.peer, peer);
	return h;
}

static int find(const char *peer, struct history_entry *out)
{
	struct history_entry h = entry(peer);

	return history_find(dir, &h.key, out, NULL);
}

static void kept_and_replaced(void **state)
{
	struct history_entry h = entry("a b\n"), out;
	struct stat st;

	(void)state;
	assert_int_equal(find("a b\n", &out), 0);
	assert_int_equal(history_put(dir, &h, NULL), 0);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(find("a b\n", &out), 1);
	assert_int_equal(out.n_probes, 2);
	assert_int_equal(find("b", &out), 0);
	h.key.congestion[0] = '\0'; /* any */
	assert_int_equal(history_find(dir, &h.key, &out, NULL), 1);
	h = entry("a b\n");
	h.n_probes = 1;
	assert_int_equal(history_put(dir, &h, NULL), 0);
	assert_int_equal(find("a b\n", &out), 1);
	assert_int_equal(out.n_probes, 1);
	h.n_probes = 0; /* gone */
	assert_int_equal(history_put(dir, &h, NULL), 0);
	assert_int_equal(find("a b\n", &out), 0);
}

static void among_garbage(void **state)
{
	struct history_entry h = entry("good"), out;
	unsigned i;
	FILE *f;

	(void)state;
	assert_int_equal(history_put(dir, &h, NULL), 0);
	assert_non_null(f = fopen(file, "a"));
	fputs("no entry\nsend x cubic y 1 network 0:0:0:0 1:1:1\n", f); /* and an old one */
	for (i = 0; i < 20000; i++)
		fputc(i % 7 == 0 ? '\0' : 'x', f);
	fputs(" send good cubic 192.0.2.7 1 1:1:1\n", f);
	fclose(f);
	h = entry("after");
	assert_int_equal(find("good", &out), 1);
	assert_int_equal(history_put(dir, &h, NULL), 0);
	assert_int_equal(find("good", &out), 1);
	assert_int_equal(find("after", &out), 1);
	assert_non_null(f = fopen(file, "r"));
	for (i = 0; fgetc(f) != EOF; i++)
		;
	fclose(f);
	assert_true(i < 300); /* the garbage is not kept */
}

static void bounded(void **state)
{
	struct history_entry h, out;
	char peer[16];
	unsigned i;

	(void)state;
	for (i = 0; i < HISTORY_ENTRIES_MAX + 20; i++) {
		snprintf(peer, sizeof peer, "peer-%u", i);
		h = entry(peer);
		assert_int_equal(history_put(dir, &h, NULL), 0);
	}
	assert_int_equal(find("peer-19", &out), 0);
	assert_int_equal(find("peer-20", &out), 1);
	assert_int_equal(find("peer-519", &out), 1);
}

static void several_at_once(void **state)
{
	struct history_entry h, out;
	char peer[16];
	unsigned i, k;
	int status;

	(void)state;
	for (k = 0; k < 4; k++) {
		if (fork() != 0)
			continue;
		for (i = 0; i < 20; i++) {
			snprintf(peer, sizeof peer, "peer-%u-%u", k, i);
			h = entry(peer);
			if (history_put(dir, &h, NULL) < 0)
				_exit(1);
		}
		_exit(0);
	}
	for (k = 0; k < 4; k++)
		assert_true(wait(&status) > 0 && status == 0);
	for (k = 0; k < 4; k++)
		for (i = 0; i < 20; i++) {
			snprintf(peer, sizeof peer, "peer-%u-%u", k, i);
			assert_int_equal(find(peer, &out), 1);
		}
}

static void what_cannot_be(void **state)
{
	struct history_entry h = entry("a"), out;
	struct ptcp_err e;

	(void)state;
	assert_int_equal(history_put("/dev/null/x", &h, &e), PTCP_ECONFIG);
	assert_int_equal(history_put("", &h, &e), PTCP_ECONFIG);
	assert_int_equal(history_put(dir, &h, NULL), 0);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(mkdir(file, 0700), 0);
	assert_true(find("a", &out) <= 0);
	assert_int_equal(history_put(dir, &h, &e), PTCP_ECONFIG);
}

/* By somebody else: it is not believed, nor waited for. */
static void planted(void **state)
{
	struct history_entry h = entry("a"), out;

	(void)state;
	assert_int_equal(history_put(dir, &h, NULL), 0);
	assert_int_equal(chmod(file, 0622), 0);
	assert_int_equal(find("a", &out), PTCP_ECONFIG);
	assert_int_equal(history_put(dir, &h, NULL), PTCP_ECONFIG);
	assert_int_equal(chmod(file, 0644), 0);
	assert_int_equal(find("a", &out), 1);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(mkfifo(file, 0600), 0);
	alarm(patience_s(5));
	assert_int_equal(find("a", &out), PTCP_ECONFIG);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(symlink("/dev/zero", file), 0);
	assert_int_equal(find("a", &out), PTCP_ECONFIG);
	alarm(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(kept_and_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(among_garbage, setup, teardown),
		cmocka_unit_test_setup_teardown(bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(several_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(what_cannot_be, setup, teardown),
		cmocka_unit_test_setup_teardown(planted, setup, teardown),
	};
	return cmocka_run_group_tests_name("client/history_file", tests, NULL, NULL);
}
