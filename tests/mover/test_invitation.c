/* Invitations of movers: text, and the file that holds it.
 * against: secrets */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mover/invitation.h"

static char root_a[] = "/lustre/run7", root_b[] = "/lustre/a b\xff";

static struct invitation some(void)
{
	struct invitation v = { .engine = "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", .n_addresses = 2,
		.address = { "192.0.2.1:4711", "[2001:db8::1]:4711" }, .root = { root_a, root_b }, .n_roots = 2 };
	unsigned i;

	for (i = 0; i < 32; i++)
		v.key[i] = (uint8_t)(i * 7);
	for (i = 0; i < 16; i++)
		v.run[i] = (uint8_t)(0xf0 + i);
	return v;
}

static void there_and_back(void **state)
{
	struct invitation v = some(), d;
	char *text;

	(void)state;
	assert_int_equal(invitation_text(&text, &v, NULL), 0);
	assert_int_equal(invitation_parse(&d, text, strlen(text), NULL), 0);
	assert_memory_equal(d.key, v.key, sizeof v.key);
	assert_memory_equal(d.run, v.run, sizeof v.run);
	assert_string_equal(d.engine, v.engine);
	assert_int_equal(d.n_addresses, 2);
	assert_string_equal(d.address[1], v.address[1]);
	assert_int_equal(d.n_roots, 2);
	assert_string_equal(d.root[1], v.root[1]);
	assert_false(d.writes);
	invitation_fini(&d);
	free(text);
	v.writes = true; /* of a receiving side */
	assert_int_equal(invitation_text(&text, &v, NULL), 0);
	assert_int_equal(invitation_parse(&d, text, strlen(text), NULL), 0);
	assert_true(d.writes && !d.direct_io);
	assert_string_equal(d.root[1], v.root[1]);
	invitation_fini(&d);
	memcpy(strstr(text, "into "), "root", 4); /* both */
	assert_int_equal(invitation_parse(&d, text, strlen(text), NULL), PTCP_EUSAGE);
	free(text);
	v.serves = true; /* of a server */
	v.port = 7811;
	v.direct_io = true;
	assert_int_equal(invitation_text(&text, &v, NULL), 0);
	assert_int_equal(invitation_parse(&d, text, strlen(text), NULL), 0);
	assert_true(d.serves && d.writes);
	assert_int_equal(d.port, 7811);
	assert_true(d.direct_io);
	invitation_fini(&d);
	memcpy(strstr(text, "port "), "sort", 4); /* none */
	assert_int_equal(invitation_parse(&d, text, strlen(text), NULL), PTCP_EUSAGE);
	memcpy(strstr(text, "sort 7"), "port 9", 6);
	assert_int_equal(invitation_parse(&d, text, strlen(text), NULL), 0);
	invitation_fini(&d);
	memcpy(strstr(text, "port 9811"), "port 9x11", 9);
	assert_int_equal(invitation_parse(&d, text, strlen(text), NULL), PTCP_EUSAGE);
	free(text);
	v.serves = false;
	v.root[0] = root_b + 0;
	root_b[3] = '\n'; /* a path that would begin another line */
	assert_int_equal(invitation_text(&text, &v, NULL), PTCP_EUSAGE);
	root_b[3] = 's';
}

/* Every line is needed once, and no other line is accepted. */
static void malformed(void **state)
{
	static const char *const bad[] = { "", "ptcp-movers 2\n", "ptcp-movers 1\nrun 00\n", "ptcp-movers 1\nkey zz\n",
		"ptcp-movers 1\nroot relative\n", "ptcp-movers 1\naddress nowhere\n", "ptcp-movers 1\nexec /bin/sh\n",
		"ptcp-movers 1\nengine SHA256:short\n" };
	struct invitation v = some(), d;
	char *text, twice[8192], cut[8192], *line, *next;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(invitation_parse(&d, bad[i], strlen(bad[i]), NULL), PTCP_EUSAGE);
	assert_int_equal(invitation_text(&text, &v, NULL), 0);
	for (i = 1; i < strlen(text); i++) /* as another host may see a file that is being written */
		assert_int_equal(invitation_parse(&d, text, i, NULL), PTCP_EUSAGE);
	/* run, key and engine: missing, and twice */
	for (i = 0, line = strchr(text, '\n') + 1; i < 3; i++, line = next) {
		next = strchr(line, '\n') + 1;
		snprintf(cut, sizeof cut, "%.*s%s", (int)(line - text), text, next);
		assert_int_equal(invitation_parse(&d, cut, strlen(cut), NULL), PTCP_EUSAGE);
		snprintf(twice, sizeof twice, "%.*s%.*s%s", (int)(next - text), text, (int)(next - line), line, next);
		assert_int_equal(invitation_parse(&d, twice, strlen(twice), NULL), PTCP_EUSAGE);
	}
	text[20] = '\0'; /* a NUL */
	assert_int_equal(invitation_parse(&d, text, 200, NULL), PTCP_EUSAGE);
	free(text);
}

static void files(void **state)
{
	struct invitation v = some(), d;
	char dir[] = "/tmp/ptcp-invitation.XXXXXX", path[64], link[64], none[64], *text;
	struct ptcp_err e;
	struct stat st;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/i", dir);
	snprintf(link, sizeof link, "%s/l", dir);
	assert_int_equal(invitation_text(&text, &v, NULL), 0);
	umask(0);
	assert_true((fd = invitation_write(path, text, &e)) >= 0);
	close(fd);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(invitation_read(&d, path, 0, &e), 0);
	invitation_fini(&d);
	/* An existing file, or a link in its place, is not overwritten. */
	assert_int_equal(invitation_write(path, text, &e), PTCP_ECONFIG);
	snprintf(none, sizeof none, "%s/none", dir);
	assert_int_equal(symlink(none, link), 0);
	assert_int_equal(invitation_write(link, text, &e), PTCP_ECONFIG);
	assert_int_equal(access(none, F_OK), -1);
	/* Others could have read the key. */
	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(invitation_read(&d, path, 0, &e), PTCP_EUSAGE);
	assert_non_null(strstr(e.msg, "chmod 600"));
	unlink(path);
	assert_int_equal(invitation_read(&d, path, 0, &e), PTCP_EUSAGE);
	assert_int_equal(mkfifo(path, 0600), 0); /* does not wait for a writer */
	assert_int_equal(invitation_read(&d, path, 0, &e), PTCP_EUSAGE);
	unlink(path);
	unlink(link);
	rmdir(dir);
	free(text);
}

/* A server replaces the invitation of its predecessor, of no running server, and no other file. */
static void replaced(void **state)
{
	struct invitation v = some();
	char dir[] = "/tmp/ptcp-invitation.XXXXXX", path[64], *text;
	struct ptcp_err e;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/i", dir);
	assert_int_equal(invitation_remove_own(path, &e), 0);
	assert_true((fd = invitation_write(path, "notes", &e)) >= 0);
	close(fd);
	assert_int_equal(invitation_remove_own(path, &e), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(invitation_text(&text, &v, NULL), 0);
	assert_true((fd = invitation_write(path, text, &e)) >= 0);
	assert_int_equal(invitation_remove_own(path, &e), PTCP_ECONFIG);
	assert_non_null(strstr(e.msg, "running process"));
	close(fd);
	assert_int_equal(invitation_remove_own(path, &e), 0);
	assert_int_equal(access(path, F_OK), -1);
	rmdir(dir);
	free(text);
}

/* The lock of an invitation ends with its process. */
static void stale(void **state)
{
	static const char *const kept[] = { "1", "empty", "link", "dir" };
	char dir[] = "/tmp/ptcp-invitation.XXXXXX", name[5][PATH_MAX], killed[PATH_MAX], new[PATH_MAX];
	struct ptcp_err e;
	int fd, i;

	(void)state;
	assert_non_null(mkdtemp(dir));
	for (i = 0; i < 4; i++)
		invitation_path(name[i], dir, kept[i]);
	snprintf(name[4], sizeof name[4], "%s/movers-another.host-1", dir);
	invitation_path(killed, dir, "2");
	assert_true((fd = invitation_write(killed, "text", &e)) >= 0);
	close(fd);
	assert_true((fd = invitation_write(name[4], "of another host", &e)) >= 0);
	close(fd);
	assert_true((fd = open(name[1], O_WRONLY | O_CREAT, 0600)) >= 0);
	close(fd);
	assert_int_equal(symlink(name[4], name[2]), 0);
	assert_int_equal(mkdir(name[3], 0700), 0);
	assert_true((fd = invitation_write(name[0], "text", &e)) >= 0);
	invitation_path(new, dir, "3");
	assert_int_equal(access(killed, F_OK), -1);
	assert_int_equal(access(new, F_OK), -1);
	for (i = 0; i < 5; i++)
		assert_int_equal(access(name[i], F_OK), 0);
	close(fd);
	for (i = 0; i < 5; i++)
		remove(name[i]);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_and_back), cmocka_unit_test(malformed), cmocka_unit_test(files),
		cmocka_unit_test(replaced), cmocka_unit_test(stale),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
