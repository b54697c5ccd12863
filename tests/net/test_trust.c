#include "net/trust.h"

#include "fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char A[] = "SHA256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaA";
static const char B[] = "SHA256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbB";
static const char C[] = "SHA256:ccccccccccccccccccccccccccccccccccccccccccC";

/* ---- known_hosts ---- */

static int known(const char *host, const char *fingerprint)
{
	return known_hosts_check(nf_dir, host, fingerprint, NULL);
}

static void hosts_are_known(void **state)
{
	(void)state;
	assert_int_equal(known("a:1", A), HOST_UNKNOWN); /* no file */
	assert_int_equal(known_hosts_add(nf_dir, "a:1", A, NULL), 0);
	assert_int_equal(known("a:1", A), HOST_MATCHES);
	assert_int_equal(known("A:1", A), HOST_MATCHES);
	assert_int_equal(known("a:1", B), HOST_DIFFERS);
	assert_int_equal(known("a:2", A), HOST_UNKNOWN);
	assert_int_equal(known("a", A), HOST_UNKNOWN);
	assert_int_equal(known("a:11", A), HOST_UNKNOWN);
	assert_int_equal(known_hosts_add(nf_dir, "[2001:DB8::1]:1", B, NULL), 0);
	assert_int_equal(known("[2001:db8::1]:1", B), HOST_MATCHES);
	assert_int_equal(known("[2001:db8::2]:1", B), HOST_UNKNOWN);
	assert_int_equal(known_hosts_add(nf_dir, "a:1", C, NULL), 0); /* several lines: any of them */
	assert_int_equal(known("a:1", A), HOST_MATCHES);
	assert_int_equal(known("a:1", C), HOST_MATCHES);
	assert_int_equal(known("a:1", B), HOST_DIFFERS);
}

static void garbage_is_not_trusted(void **state)
{
	char text[1000];

	(void)state;
	snprintf(text, sizeof text, "\n# comment\n#a:1 %s\n   \na:1\n%s\nb:1 %sx\n\tc:1\t%s  # mine\r\n"
	    "d:1 sha256:x\n\x01\xff\n", A, A, A, B);
	nf_write("known_hosts", text, 0600);
	assert_int_equal(known("a:1", A), HOST_UNKNOWN);
	assert_int_equal(known("b:1", A), HOST_DIFFERS); /* a line that is not this fingerprint: no */
	assert_int_equal(known("c:1", B), HOST_MATCHES);
	assert_int_equal(known("d:1", A), HOST_DIFFERS);
	assert_int_equal(known("#a:1", A), HOST_UNKNOWN);
	unlink(nf_path("known_hosts"));
	assert_int_equal(mkdir(nf_path("known_hosts"), 0700), 0);
	assert_int_equal(known("a:1", A), PTCP_ECONFIG);
	assert_int_equal(known_hosts_add(nf_dir, "a:1", A, NULL), PTCP_ECONFIG);
}

static void added_to_an_unfinished_line(void **state)
{
	char text[200];

	(void)state;
	snprintf(text, sizeof text, "a:1 %s", A);
	nf_write("known_hosts", text, 0600);
	assert_int_equal(known("a:1", A), HOST_MATCHES);
	assert_int_equal(known_hosts_add(nf_dir, "b:1", B, NULL), 0);
	assert_int_equal(known("a:1", A), HOST_MATCHES);
	assert_int_equal(known("b:1", B), HOST_MATCHES);
}

static void hosts_that_no_line_holds(void **state)
{
	char host[700];

	(void)state;
	snprintf(host, sizeof host, "x\nvictim:1 %s", B);
	assert_int_equal(known_hosts_add(nf_dir, host, A, NULL), PTCP_ECONFIG);
	assert_int_equal(known_hosts_add(nf_dir, "a b", A, NULL), PTCP_ECONFIG);
	assert_int_equal(known_hosts_add(nf_dir, "", A, NULL), PTCP_ECONFIG);
	assert_int_equal(known_hosts_add(nf_dir, "#a:1", A, NULL), PTCP_ECONFIG);
	memset(host, 'h', sizeof host - 1);
	host[sizeof host - 1] = '\0';
	assert_int_equal(known_hosts_add(nf_dir, host, A, NULL), PTCP_ECONFIG);
	assert_int_equal(known("victim:1", B), HOST_UNKNOWN);
}

#define WRITERS 4
#define LINES 50

struct writer {
	unsigned n;
	int failed;
};

static void name_of(char out[PTCP_FINGERPRINT_BYTES], unsigned writer, unsigned i)
{
	snprintf(out, PTCP_FINGERPRINT_BYTES, "SHA256:%02u%041u", writer, i);
}

static void *add_hosts(void *arg)
{
	struct writer *w = arg;
	char host[32], fp[PTCP_FINGERPRINT_BYTES];
	unsigned i;

	for (i = 0; i < LINES; i++) {
		snprintf(host, sizeof host, "h%u.%u:1", w->n, i);
		name_of(fp, w->n, i);
		w->failed |= known_hosts_add(nf_dir, host, fp, NULL);
	}
	return NULL;
}

static void *add_clients(void *arg)
{
	struct writer *w = arg;
	char fp[PTCP_FINGERPRINT_BYTES];
	struct ptcp_permission p = { .size = sizeof p, .fingerprint = fp };
	unsigned i;

	for (i = 0; i < LINES / 2; i++) {
		name_of(fp, w->n, i);
		w->failed |= authorized_set(nf_dir, fp, &p, NULL);
	}
	return NULL;
}

static void run_writers(void *(*fn)(void *))
{
	struct writer w[WRITERS];
	pthread_t t[WRITERS];
	unsigned i;

	for (i = 0; i < WRITERS; i++) {
		w[i] = (struct writer){ i, 0 };
		assert_int_equal(pthread_create(&t[i], NULL, fn, &w[i]), 0);
	}
	for (i = 0; i < WRITERS; i++) {
		pthread_join(t[i], NULL);
		assert_int_equal(w[i].failed, 0);
	}
}

static void many_write_known_hosts(void **state)
{
	char host[32], fp[PTCP_FINGERPRINT_BYTES];
	unsigned i, k;

	(void)state;
	run_writers(add_hosts);
	for (i = 0; i < WRITERS; i++)
		for (k = 0; k < LINES; k++) {
			snprintf(host, sizeof host, "h%u.%u:1", i, k);
			name_of(fp, i, k);
			assert_int_equal(known(host, fp), HOST_MATCHES);
		}
}

/* First connections of many processes to one host, and of each to one of its own: every line once, and whole. */
static void many_processes_meet_a_host(void **state)
{
	char host[32], fp[PTCP_FINGERPRINT_BYTES];
	unsigned i, lines = 0;
	const char *p;
	int status;

	(void)state;
	for (i = 0; i < 2 * WRITERS; i++) {
		if (fork() > 0)
			continue;
		snprintf(host, sizeof host, "own%u:1", i);
		name_of(fp, i, 0);
		_exit(known_hosts_check(nf_dir, "same:1", A, NULL) < 0 ||
		    known_hosts_add(nf_dir, "same:1", A, NULL) != 0 ||
		    known_hosts_add(nf_dir, host, fp, NULL) != 0);
	}
	for (i = 0; i < 2 * WRITERS; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	for (i = 0; i < 2 * WRITERS; i++) {
		snprintf(host, sizeof host, "own%u:1", i);
		name_of(fp, i, 0);
		assert_int_equal(known(host, fp), HOST_MATCHES);
	}
	assert_int_equal(known("same:1", A), HOST_MATCHES);
	for (p = nf_read("known_hosts"); (p = strchr(p, '\n')) != NULL; p++)
		lines++;
	assert_int_equal(lines, 2 * WRITERS + 1);
}

static void hosts_that_others_wrote_are_not_trusted(void **state)
{
	static const unsigned bad[] = { 0620, 0602, 0666, 0660 }, good[] = { 0600, 0644, 0400 };
	struct ptcp_err e;
	size_t i;

	(void)state;
	assert_int_equal(known_hosts_add(nf_dir, "a:1", A, NULL), 0);
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(chmod(nf_path("known_hosts"), bad[i]), 0);
		assert_int_equal(known_hosts_check(nf_dir, "a:1", A, &e), PTCP_ECONFIG);
		assert_non_null(strstr(e.msg, "known_hosts: others can write it (chmod 600"));
		assert_int_equal(known_hosts_add(nf_dir, "b:1", B, NULL), PTCP_ECONFIG);
	}
	for (i = 0; i < sizeof good / sizeof *good; i++) {
		assert_int_equal(chmod(nf_path("known_hosts"), good[i]), 0);
		assert_int_equal(known("a:1", A), HOST_MATCHES);
	}
	assert_int_equal(chmod(nf_dir, 0777), 0);
	assert_int_equal(known("a:1", A), PTCP_ECONFIG);
	assert_int_equal(chmod(nf_dir, 01777), 0); /* there nobody replaces what is another's */
	assert_int_equal(known("a:1", A), HOST_MATCHES);
	assert_int_equal(chmod(nf_dir, 0700), 0);
	if (geteuid() != 0)
		return; /* only root can make it another's */
	assert_int_equal(chown(nf_path("known_hosts"), 12345, 12345), 0);
	assert_int_equal(known_hosts_check(nf_dir, "a:1", A, &e), PTCP_ECONFIG);
	assert_non_null(strstr(e.msg, "belongs to another user"));
}

/* ---- authorized_clients ---- */

static unsigned complaints;

static void complain(void *arg, enum log_level level, const char *component, const char *msg)
{
	(void)arg;
	(void)component;
	if (level == LOG_ERROR && strstr(msg, "authorized_clients") != NULL)
		complaints++;
}

static int find(const char *fingerprint, struct authorization *out)
{
	struct log log = { complain, NULL, LOG_DEBUG };

	complaints = 0;
	return authorized_find(nf_dir, fingerprint, out, &log);
}

static void put(const char *fingerprint, bool read_only, bool no_relay, const char *root,
    const char *name, int want)
{
	struct ptcp_permission p = { sizeof p, fingerprint, read_only, no_relay, root, name };
	struct ptcp_err e;

	assert_int_equal(authorized_set(nf_dir, fingerprint, &p, &e), want);
}

static void nobody_at_first(void **state)
{
	struct authorization a;

	(void)state;
	assert_int_equal(find(A, &a), 0);
	assert_int_equal(complaints, 0);
	nf_write("authorized_clients", "", 0600);
	assert_int_equal(find(A, &a), 0);
	assert_int_equal(find("", &a), 0);
}

static void permissions_round_trip(void **state)
{
	static const char odd[] = "/a b/%41#\n\t\x7f\xc3\xbc=\\\"'";
	struct authorization a;

	(void)state;
	put(A, false, false, NULL, NULL, 0);
	put(B, true, true, odd, "bert", 0);
	assert_int_equal(find(A, &a), 1);
	assert_true(!a.read_only && !a.no_relay && a.root[0] == '\0' && a.name[0] == '\0');
	assert_int_equal(find(B, &a), 1);
	assert_true(a.read_only && a.no_relay);
	assert_string_equal(a.root, odd);
	assert_string_equal(a.name, "bert");
	put(B, false, false, "/%", NULL, 1); /* replaced, not added */
	assert_int_equal(find(B, &a), 1);
	assert_true(!a.read_only && !a.no_relay && a.name[0] == '\0');
	assert_string_equal(a.root, "/%");
	assert_int_equal(find(C, &a), 0);
}

static void longest_root(void **state)
{
	char *root = malloc(TRUST_ROOT_BYTES);
	struct authorization *a = malloc(sizeof *a);

	(void)state;
	memset(root, ' ', TRUST_ROOT_BYTES);
	root[0] = '/';
	root[TRUST_ROOT_BYTES - 1] = '\0';
	put(A, false, false, root, NULL, 0);
	assert_int_equal(find(A, a), 1);
	assert_string_equal(a->root, root);
	free(root);
	free(a);
}

static void revoked(void **state)
{
	struct authorization a;
	char text[200];

	(void)state;
	snprintf(text, sizeof text, "# who may\n  %s name=x\n%s\n", A, B); /* indented by hand */
	nf_write("authorized_clients", text, 0600);
	assert_int_equal(find(A, &a), 1);
	assert_int_equal(authorized_set(nf_dir, A, NULL, NULL), 1);
	assert_int_equal(find(A, &a), 0);
	assert_int_equal(find(B, &a), 1);
	assert_int_equal(authorized_set(nf_dir, A, NULL, NULL), 0);
	snprintf(text, sizeof text, "# who may\n%s\n", B);
	assert_string_equal(nf_read("authorized_clients"), text);
}

/* Every line but the last is malformed in its own way: whoever it names stays outside. */
static void malformed_lines_admit_nobody(void **state)
{
	static const char *const bad[] = { "readonly", "read-only,", "root=relative", "root=", "root=/%",
		"root=/%0", "root=/%zz", "root=/%00", "name=%", "READ-ONLY", "root=/x y", "x=1", "\x01",
		"name=0123456789012345678901234567890123456789012345678901234567890123" };
	struct authorization a;
	char text[400], long_root[TRUST_ROOT_BYTES + 200];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		memset(&a, 7, sizeof a);
		snprintf(text, sizeof text, "%s read-only %s\n%s\n%s\n", A, bad[i], A, B);
		nf_write("authorized_clients", text, 0600);
		assert_int_equal(find(A, &a), 0); /* the second line does not heal the first */
		assert_int_equal(complaints, 1);
		assert_int_equal(*(char *)&a, 7); /* untouched */
		assert_int_equal(find(B, &a), 1);
	}
	memset(long_root, 'x', sizeof long_root);
	memcpy(long_root, A, strlen(A));
	memcpy(long_root + strlen(A), " root=/", 7);
	strcpy(long_root + sizeof long_root - 2, "\n");
	nf_write("authorized_clients", long_root, 0600);
	assert_int_equal(find(A, &a), 0);
	snprintf(text, sizeof text, "%sx\nx%s\n#%s\n%.40s\n", A, A, A, A);
	nf_write("authorized_clients", text, 0600);
	assert_int_equal(find(A, &a), 0);
}

static void write_bytes(const char *name, const char *text, size_t n)
{
	FILE *f = fopen(nf_path(name), "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(nf_path(name), 0600), 0);
}

/* A NUL ends no line: the restrictions that follow it count, or the line is refused. */
static void lines_with_a_nul(void **state)
{
	static const char *const after[] = { "$ read-only", " $ read-only", " name=x$ read-only", " name=x$", "$",
		" read-only $", " # $", " root=/$a" };
	struct authorization a;
	char text[400], *p;
	size_t i, n;

	(void)state;
	for (i = 0; i < sizeof after / sizeof *after; i++) {
		n = (size_t)snprintf(text, sizeof text, "%s%s\n%s\n", A, after[i], B);
		if ((p = memchr(text, '$', n)) != NULL)
			*p = '\0';
		write_bytes("authorized_clients", text, n);
		if (find(A, &a) != 0)
			fail_msg("%s", after[i]);
		assert_int_equal(find(B, &a), 1);
	}
	n = (size_t)snprintf(text, sizeof text, "a:1$ %s\nb:1 %s$x\n", A, A);
	*(char *)memchr(text, '$', n) = '\0';
	*(char *)memchr(text, '$', n) = '\0';
	write_bytes("known_hosts", text, n);
	assert_int_equal(known("a:1", A), HOST_UNKNOWN);
	assert_int_equal(known("b:1", A), HOST_DIFFERS);
}

/* Nobody waits for the other end of a FIFO; the time limit ends a test that does. */
static void no_regular_files(void **state)
{
	char fp[PTCP_FINGERPRINT_BYTES];
	struct authorization a;
	struct ptcp_err e;

	(void)state;
	alarm(10);
	assert_int_equal(mkfifo(nf_path("authorized_clients"), 0600), 0);
	assert_int_equal(find(A, &a), PTCP_ECONFIG);
	assert_int_equal(complaints, 1);
	put(A, false, false, NULL, NULL, PTCP_ECONFIG);
	assert_int_equal(mkfifo(nf_path("known_hosts"), 0600), 0);
	assert_int_equal(known_hosts_check(nf_dir, "a:1", A, &e), PTCP_ECONFIG);
	assert_non_null(strstr(e.msg, "known_hosts: not a regular file"));
	assert_false(known_hosts_single(nf_dir, "a:1", fp));
	assert_int_equal(known_hosts_add(nf_dir, "a:1", A, NULL), PTCP_ECONFIG);
	alarm(0);
}

static void a_list_that_others_write_admits_nobody(void **state)
{
	static const unsigned bad[] = { 0620, 0602, 0666, 0660 }, good[] = { 0600, 0644, 0400 };
	struct authorization a;
	size_t i;

	(void)state;
	put(A, false, false, NULL, NULL, 0);
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(chmod(nf_path("authorized_clients"), bad[i]), 0);
		assert_int_equal(find(A, &a), PTCP_ECONFIG);
		assert_int_equal(complaints, 1);
	}
	for (i = 0; i < sizeof good / sizeof *good; i++) {
		assert_int_equal(chmod(nf_path("authorized_clients"), good[i]), 0);
		assert_int_equal(find(A, &a), 1);
	}
	assert_int_equal(chmod(nf_dir, 0770), 0);
	assert_int_equal(find(A, &a), PTCP_ECONFIG);
	assert_int_equal(chmod(nf_dir, 0700), 0);
	if (geteuid() != 0)
		return;
	assert_int_equal(chown(nf_path("authorized_clients"), 12345, 12345), 0);
	assert_int_equal(find(A, &a), PTCP_ECONFIG);
	assert_int_equal(complaints, 1);
}

static void changes_are_seen(void **state)
{
	struct trust_stamp s = { .exists = false };

	(void)state;
	assert_false(authorized_changed(nf_dir, &s)); /* none, and still none */
	put(A, false, false, NULL, NULL, 0);
	assert_true(authorized_changed(nf_dir, &s));
	assert_false(authorized_changed(nf_dir, &s));
	put(A, true, false, NULL, NULL, 1);
	assert_true(authorized_changed(nf_dir, &s));
	nf_sleep_ms(20); /* what the clock of the file system may lag behind */
	nf_write("authorized_clients", nf_read("authorized_clients"), 0600); /* in place, of the same length */
	assert_true(authorized_changed(nf_dir, &s));
	nf_sleep_ms(20);
	assert_int_equal(chmod(nf_path("authorized_clients"), 0666), 0);
	assert_true(authorized_changed(nf_dir, &s));
	assert_int_equal(unlink(nf_path("authorized_clients")), 0);
	assert_true(authorized_changed(nf_dir, &s));
	assert_false(authorized_changed(nf_dir, &s));
}

static void what_cannot_be_read_admits_nobody(void **state)
{
	struct rlimit old, none;
	struct authorization a;
	int r;

	(void)state;
	assert_int_equal(mkdir(nf_path("authorized_clients"), 0700), 0);
	assert_int_equal(find(A, &a), PTCP_ECONFIG);
	put(A, false, false, NULL, NULL, PTCP_ECONFIG);
	assert_int_equal(rmdir(nf_path("authorized_clients")), 0);
	assert_int_equal(nf_count_files(), 1); /* the lock; nothing temporary stays */
	assert_int_equal(symlink("authorized_clients", nf_path("authorized_clients")), 0);
	assert_int_equal(find(A, &a), PTCP_ECONFIG);
	assert_int_equal(complaints, 1);
	assert_int_equal(unlink(nf_path("authorized_clients")), 0);
	put(A, false, false, NULL, NULL, 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = (struct rlimit){ 0, old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	r = find(A, &a);
	setrlimit(RLIMIT_NOFILE, &old);
	assert_true(r < 0); /* which is not to be taken for "not authorized" */
	assert_int_equal(complaints, 1);
	assert_int_equal(find(A, &a), 1);
}

static void an_unfinished_line_stays_whole(void **state)
{
	struct authorization a;
	char text[200];

	(void)state;
	snprintf(text, sizeof text, "%s read-only", A);
	nf_write("authorized_clients", text, 0600);
	put(B, false, false, NULL, NULL, 0);
	assert_int_equal(find(A, &a), 1);
	assert_true(a.read_only);
	assert_int_equal(find(B, &a), 1);
}

static void many_write_authorized_clients(void **state)
{
	struct authorization a;
	char fp[PTCP_FINGERPRINT_BYTES];
	unsigned i, k;

	(void)state;
	run_writers(add_clients);
	for (i = 0; i < WRITERS; i++)
		for (k = 0; k < LINES / 2; k++) {
			name_of(fp, i, k);
			assert_int_equal(find(fp, &a), 1);
		}
	assert_int_equal(nf_count_files(), 2); /* it and its lock */
}

/* A reader sees the old list or the new one, at any time. */
static void *read_always(void *arg)
{
	struct writer *w = arg;
	struct authorization a;
	unsigned i;

	for (i = 0; i < 2000; i++)
		w->failed |= authorized_find(nf_dir, A, &a, NULL) != 1;
	return NULL;
}

static void replaced_at_once(void **state)
{
	struct writer w = { 0, 0 };
	unsigned i;
	pthread_t t;

	(void)state;
	put(A, false, false, NULL, NULL, 0);
	assert_int_equal(pthread_create(&t, NULL, read_always, &w), 0);
	for (i = 0; i < 50; i++) {
		put(A, i % 2 == 0, false, NULL, NULL, 1);
		put(B, false, false, NULL, NULL, i == 0 ? 0 : 1);
	}
	pthread_join(t, NULL);
	assert_int_equal(w.failed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		nf_test(hosts_are_known), nf_test(garbage_is_not_trusted), nf_test(added_to_an_unfinished_line),
		nf_test(hosts_that_no_line_holds), nf_test(many_write_known_hosts), nf_test(nobody_at_first),
		nf_test(many_processes_meet_a_host), nf_test(hosts_that_others_wrote_are_not_trusted),
		nf_test(changes_are_seen),
		nf_test(permissions_round_trip), nf_test(longest_root), nf_test(revoked),
		nf_test(lines_with_a_nul), nf_test(no_regular_files), nf_test(malformed_lines_admit_nobody), nf_test(a_list_that_others_write_admits_nobody),
		nf_test(what_cannot_be_read_admits_nobody), nf_test(an_unfinished_line_stays_whole),
		nf_test(many_write_authorized_clients), nf_test(replaced_at_once),
	};
	return cmocka_run_group_tests_name("net/trust", tests, NULL, NULL);
}
