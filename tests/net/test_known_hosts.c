#include "net/trust/known_hosts.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "certified.h"
#include "fixture.h"
#include "net/trust/revoked.h"
#include "patience.h"

static const char A[] = "SHA256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaA";
static const char B[] = "SHA256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbB";
static const char C[] = "SHA256:ccccccccccccccccccccccccccccccccccccccccccC";

static int known(const char *host, const char *fingerprint)
{
	return known_hosts_check(nf_dir, host, fingerprint, NULL, 0, NULL);
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

#define LONG_BYTES 2000

/* Lines in which A, B and C behind a blank stand for fingerprints. */
static const char *long_form(char out[LONG_BYTES], const char *text)
{
	size_t n = 0;

	for (out[0] = '\0'; *text != '\0'; text++)
		if (n > 0 && (out[n - 1] == ' ' || out[n - 1] == '\t') && *text >= 'A' && *text <= 'C')
			n += (size_t)snprintf(out + n, LONG_BYTES - n, "%s", *text == 'A' ? A : *text == 'B' ? B : C);
		else
			n += (size_t)snprintf(out + n, LONG_BYTES - n, "%c", *text);
	return out;
}

/* The file after each change, and what the change has found. */
static void set_by_command(void **state)
{
	static const struct {
		const char *before, *host;
		bool authority;
		const char *fingerprint; /* NULL: forgotten */
		int r;
		const char *after;
	} table[] = {
		{ "", "a:1", false, A, 0, "a:1 A\n" },
		{ "a:1 A\n", "a:1", false, B, 1, "a:1 B\n" },
		{ "# c\nA:1 A\nb:1 C\n  a:1\tB # old\n", "a:1", false, C, 1, "# c\nb:1 C\na:1 C\n" },
		{ "a:1 A\na:11 A\nb:1 A", "a:1", false, NULL, 1, "a:11 A\nb:1 A\n" },
		{ "a:1 A\n", "b:1", false, NULL, 0, "a:1 A\n" },
		{ "a:1 A\n", "*.x", true, A, 0, "a:1 A\n@cert-authority *.x A\n" },
		{ "@cert-authority *.x A\n@cert-authority *.y A\n", "*.x", true, B, 1,
		    "@cert-authority *.y A\n@cert-authority *.x B\n" },
		{ "@cert-authority *.x,b A\n@cert-authority *.X A\na:1 A\n", "*.x", true, NULL, 1,
		    "@cert-authority *.x,b A\na:1 A\n" },
		{ "a:1 A\n", "a:1", true, A, PTCP_EUSAGE, "a:1 A\n" }, /* patterns have no ports */
		{ "a:1 A\n", "a b", false, A, PTCP_EUSAGE, "a:1 A\n" },
		{ "a:1 A\n", "@cert-authority", false, A, PTCP_EUSAGE, "a:1 A\n" },
		{ "a:1 A\n", "#a", false, NULL, PTCP_EUSAGE, "a:1 A\n" },
		{ "a:1 A\n", "", true, A, PTCP_EUSAGE, "a:1 A\n" },
		{ "a:1 A\n", "#a", true, A, PTCP_EUSAGE, "a:1 A\n" }, /* would begin a comment */
		{ "a:1 A\n", "*.x", false, B, PTCP_EUSAGE, "a:1 A\n" },
		{ "*.x A\n", "*.x", false, NULL, 1, "" },
		{ "a:1 B\n", "a:1", false, A, PTCP_EREFUSED, "a:1 B\n" }, /* the last: A is revoked */
	};
	char text[LONG_BYTES], got[LONG_BYTES] = "";
	size_t i;
	FILE *f;

	(void)state;
	for (i = 0; i < sizeof table / sizeof *table; i++) {
		if (table[i].r == PTCP_EREFUSED)
			assert_int_equal(revoked_set(nf_dir, A, 0, false, NULL), 0);
		nf_write("known_hosts", long_form(text, table[i].before), 0600);
		assert_int_equal(known_hosts_set(nf_dir, table[i].host, table[i].authority, table[i].fingerprint, NULL),
		    table[i].r);
		assert_non_null(f = fopen(nf_path("known_hosts"), "r"));
		got[fread(got, 1, sizeof got - 1, f)] = '\0';
		fclose(f);
		assert_string_equal(got, long_form(text, table[i].after));
	}
}

/* A line that a command has written does not keep the file from being read, and a command removes it. */
static void set_lines_are_read(void **state)
{
	static const char *const others[] = { "x\ny", "\033[1m", "\xff", "a,#b", "a,", "[::1]", "::1" };
	const size_t n_ascii = 128, n = n_ascii + sizeof others / sizeof *others;
	char letter[2] = "";
	struct ptcp_err e;
	size_t i, k;

	(void)state;
	nf_write("known_hosts", "", 0600);
	for (i = 0; i < 2 * n; i++) {
		bool authority = i >= n;
		const char *host = i % n < n_ascii ? letter : others[i % n - n_ascii];

		letter[0] = (char)(i % n);
		e.code = 0;
		if (known_hosts_set(nf_dir, host, authority, A, &e) == 0) {
			assert_int_equal(known("victim:1", B), HOST_UNKNOWN);
			assert_int_equal(known_hosts_set(nf_dir, host, authority, NULL, NULL), 1);
		}
		for (k = 0; e.code != 0 && e.msg[k] != '\0'; k++)
			assert_true((unsigned char)e.msg[k] >= ' ' && (unsigned char)e.msg[k] < 0x7f);
	}
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
		_exit(known_hosts_check(nf_dir, "same:1", A, NULL, 0, NULL) < 0 ||
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
		assert_int_equal(known_hosts_check(nf_dir, "a:1", A, NULL, 0, &e), PTCP_ECONFIG);
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
	assert_int_equal(known_hosts_check(nf_dir, "a:1", A, NULL, 0, &e), PTCP_ECONFIG);
	assert_non_null(strstr(e.msg, "belongs to another user"));
}

static void lines_with_a_nul(void **state)
{
	char text[400];
	FILE *f;
	int n;

	(void)state;
	n = snprintf(text, sizeof text, "a:1$ %s\nb:1 %s$x\n", A, A);
	*(char *)memchr(text, '$', (size_t)n) = '\0';
	*(char *)memchr(text, '$', (size_t)n) = '\0';
	assert_non_null(f = fopen(nf_path("known_hosts"), "w"));
	assert_int_equal(fwrite(text, 1, (size_t)n, f), n);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(nf_path("known_hosts"), 0600), 0);
	assert_int_equal(known("a:1", A), HOST_UNKNOWN);
	assert_int_equal(known("b:1", A), HOST_DIFFERS);
}

/* Nobody waits for the other end of a FIFO; the time limit ends a test that does. */
static void no_regular_file(void **state)
{
	char fp[PTCP_FINGERPRINT_BYTES];
	struct ptcp_err e;

	(void)state;
	alarm(patience_s(10));
	assert_int_equal(mkfifo(nf_path("known_hosts"), 0600), 0);
	assert_int_equal(known_hosts_check(nf_dir, "a:1", A, NULL, 0, &e), PTCP_ECONFIG);
	assert_non_null(strstr(e.msg, "known_hosts: not a regular file"));
	assert_false(known_hosts_single(nf_dir, "a:1", fp));
	assert_int_equal(known_hosts_add(nf_dir, "a:1", A, NULL), PTCP_ECONFIG);
	alarm(0);
}

/* ---- Certificates ---- */

static struct identity ca, server;

static int by_certificate(const char *host, struct certificates *c, uint64_t now_s, struct ptcp_err *e)
{
	return known_hosts_check(nf_dir, host, server.fingerprint, c, now_s, e);
}

static void trust_authority(const char *patterns)
{
	char text[400];

	snprintf(text, sizeof text, "@cert-authority %s %s\n", patterns, ca.fingerprint);
	nf_write("known_hosts", text, 0600);
}

static void hosts_by_certificate(void **state)
{
	struct certificates c = { .n = 0 };

	(void)state;
	trust_authority("*.site.org,10.0.0.?,[0-9]x");
	certified(&c, &(struct certificate){ .kind = CERTIFICATE_SERVER, .name = "DTN*.site.org,10.0.0.7" }, &server,
	    &ca);
	assert_int_equal(by_certificate("dtn1.site.org:7811", &c, 150, NULL), HOST_MATCHES);
	assert_int_equal(by_certificate("DTN2.Site.ORG:1", &c, 150, NULL), HOST_MATCHES);
	assert_int_equal(by_certificate("10.0.0.7:7811", &c, 150, NULL), HOST_MATCHES);
	assert_int_equal(by_certificate("10.0.0.8:7811", &c, 150, NULL), HOST_UNKNOWN); /* not in the certificate */
	assert_int_equal(by_certificate("dtn1.other.org:7811", &c, 150, NULL), HOST_UNKNOWN);
	assert_int_equal(by_certificate("dtn1.site.org.evil.net:7811", &c, 150, NULL), HOST_UNKNOWN);
	/* another key */
	assert_int_equal(known_hosts_check(nf_dir, "dtn1.site.org:7811", A, &c, 150, NULL), HOST_UNKNOWN);
	trust_authority("10.**"); /* not trusted for the names any more */
	assert_int_equal(by_certificate("dtn1.site.org:7811", &c, 150, NULL), HOST_UNKNOWN);
	assert_int_equal(by_certificate("10.0.0.7:7811", &c, 150, NULL), HOST_MATCHES);
	c.bytes[c.n - 1] ^= 1;
	assert_int_equal(by_certificate("10.0.0.7:7811", &c, 150, NULL), HOST_UNKNOWN);
	c.n = 0;
	assert_int_equal(by_certificate("10.0.0.7:7811", &c, 150, NULL), HOST_UNKNOWN);
}

static bool certificate_matches(const char *pattern, const char *host)
{
	struct certificate one = { .kind = CERTIFICATE_SERVER };
	struct certificates c = { .n = 0 };

	snprintf(one.name, sizeof one.name, "%s", pattern);
	certified(&c, &one, &server, &ca);
	trust_authority("**");
	if (by_certificate(host, &c, 150, NULL) != HOST_MATCHES)
		return false;
	trust_authority(pattern); /* the same rule */
	return by_certificate(host, &c, 150, NULL) == HOST_MATCHES;
}

/* RFC 6125, section 6.4.3: an asterisk matches one label. */
static void asterisks_match_one_label(void **state)
{
	static const struct { const char *pattern, *host; bool matches; } row[] = {
		{ "*.site.org", "a.site.org:7811", true }, { "*.site.org", "a.b.site.org:7811", false },
		{ "*.site.org", "site.org:7811", false }, { "*", "dtn1:7811", true }, { "*", "a.site.org:7811", false },
		{ "dtn*.site.org", "dtn1.evil.site.org:7811", false }, { "?.site.org", "..site.org:7811", false },
		{ "site.org", "a.site.org:7811", false }, { "**.site.org", "a.b.site.org:7811", true },
		{ "**.site.org", "a.site.org:7811", true }, { "**.site.org", "site.org:7811", false },
		{ "**.site.org", "asite.org:7811", false }, { "**", "a.b.c:7811", true },
		    { "10.*.0.7", "10.0.0.7:7811", true },
		{ "10.*", "10.0.0.7:7811", false }, { "10.*.*.*", "10.0.0.7:7811", true },
		{ "2001:db8::*", "[2001:db8::1:2]:7811", true }, { "a*.org", "a/b.org:7811", false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof row / sizeof *row; i++)
		if (certificate_matches(row[i].pattern, row[i].host) != row[i].matches)
			fail_msg("%s and %s: %s", row[i].pattern, row[i].host, row[i].matches ? "no match" : "a match");
}

/* The reason why a certificate does not count. */
static void reasons(void **state)
{
	struct certificates c = { .n = 0 };
	struct ptcp_err e = { .code = 0 };

	(void)state;
	trust_authority("*.site.org");
	certified(&c, &(struct certificate){ .kind = CERTIFICATE_SERVER, .name = "dtn*.site.org" }, &server, &ca);
	assert_int_equal(by_certificate("login.site.org:7811", &c, 150, &e), HOST_UNKNOWN);
	assert_string_equal(e.msg, "its certificate is for dtn*.site.org only");
	assert_int_equal(by_certificate("10.0.0.7:7811", &c, 150, &e), HOST_UNKNOWN);
	assert_string_equal(e.msg, "known_hosts trusts the authority of its certificate for *.site.org only");
	assert_int_equal(known_hosts_check(nf_dir, "login.site.org:7811", A, &c, 150, &e), HOST_UNKNOWN);
	assert_string_equal(e.msg, ""); /* of another key */
	nf_write("known_hosts", "", 0600);
	assert_int_equal(by_certificate("login.site.org:7811", &c, 150, &e), HOST_UNKNOWN);
	assert_string_equal(e.msg, "");
}

static void malformed_authorities(void **state)
{
	static const char *const bad[] = { "@cert-authority", "@cert-authority *.x", "@cert-authority *.x SHA256:x",
		"@cert-authority a:7811 %s", "@cert-authority a,,b %s", "@cert-authority a, %s",
		"@cert-authority !a %s",
		"@cert-authority [::1] %s", "@cert-authority [::1]:7811 %s", "@cert-authority a/b %s",
		"@cert-authority [a %s", "@cert-authorities a %s" };
	char text[400], line[300];
	struct ptcp_err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		snprintf(line, sizeof line, bad[i], A);
		snprintf(text, sizeof text, "a:1 %s\n%s # x\n", A, line);
		nf_write("known_hosts", text, 0600);
		if (known_hosts_check(nf_dir, "a:1", A, NULL, 0, &e) != PTCP_ECONFIG)
			fail_msg("%s: accepted", line);
		assert_non_null(strstr(e.msg, "known_hosts, line 2: "));
	}
	snprintf(text, sizeof text, "@cert-authority *.x,10.0.0.?,2001:db8::*,[a-c]d,[!a]b %s\na:1 %s\n", A, B);
	nf_write("known_hosts", text, 0600);
	assert_int_equal(known("a:1", B), HOST_MATCHES);
}

static void client_certificates_name_no_host(void **state)
{
	struct certificates c = { .n = 0 };

	(void)state;
	trust_authority("*");
	certified(&c, &(struct certificate){ .kind = CERTIFICATE_CLIENT, .name = "alice" }, &server, &ca);
	assert_int_equal(by_certificate("alice:7811", &c, 150, NULL), HOST_UNKNOWN);
}

static void expired_hosts(void **state)
{
	struct certificates c = { .n = 0 };
	struct ptcp_err e;
	char text[400];

	(void)state;
	trust_authority("*");
	certified(&c, &(struct certificate){ .kind = CERTIFICATE_SERVER, .name = "a" }, &server, &ca);
	assert_int_equal(by_certificate("a:1", &c, 99, &e), PTCP_EREFUSED);
	assert_non_null(strstr(e.msg, "a:1: the certificate of a is valid from 1970-01-01 00:01:40 UTC"));
	assert_int_equal(by_certificate("a:1", &c, 200, &e), PTCP_EREFUSED);
	assert_non_null(strstr(e.msg, "this host's clock says"));
	assert_non_null(strstr(e.msg, "check the clock"));
	certified(&c, &(struct certificate){ .kind = CERTIFICATE_SERVER, .name = "a", .until_s = 300 }, &server, &ca);
	assert_int_equal(by_certificate("a:1", &c, 200, &e), HOST_MATCHES); /* signed again */
	snprintf(text, sizeof text, "@cert-authority * %s\na:1 %s\n", ca.fingerprint, server.fingerprint);
	nf_write("known_hosts", text, 0600);
	assert_int_equal(by_certificate("a:1", &c, 500, &e), HOST_MATCHES); /* pinned */
}

static void revoked_hosts(void **state)
{
	struct certificates c = { .n = 0 };
	struct ptcp_err e;

	(void)state;
	trust_authority("*");
	certified(&c, &(struct certificate){ .kind = CERTIFICATE_SERVER, .name = "a", .serial = 77 }, &server, &ca);
	assert_int_equal(by_certificate("a:1", &c, 150, &e), HOST_MATCHES);
	assert_int_equal(revoked_set(nf_dir, NULL, 77, false, NULL), 0);
	assert_int_equal(by_certificate("a:1", &c, 150, &e), PTCP_EREFUSED);
	assert_int_equal(revoked_set(nf_dir, NULL, 77, true, NULL), 1);
	assert_int_equal(by_certificate("a:1", &c, 150, &e), HOST_MATCHES);
	assert_int_equal(revoked_set(nf_dir, ca.fingerprint, 0, false, NULL), 0);
	assert_int_equal(by_certificate("a:1", &c, 150, &e), PTCP_EREFUSED);
	assert_int_equal(revoked_set(nf_dir, ca.fingerprint, 0, true, NULL), 1);
	assert_int_equal(known_hosts_add(nf_dir, "a:1", server.fingerprint, NULL), 0);
	assert_int_equal(revoked_set(nf_dir, server.fingerprint, 0, false, NULL), 0);
	assert_int_equal(by_certificate("a:1", &c, 150, &e), PTCP_EREFUSED); /* also a pinned one */
	nf_write("revoked", "nonsense\n", 0600);
	assert_int_equal(by_certificate("a:1", &c, 150, &e), PTCP_ECONFIG);
}

static int setup_certified(void **state)
{
	return nf_setup(state) != 0 || identity_new(&ca, NULL) != 0 || identity_new(&server, NULL) != 0;
}

static int teardown_certified(void **state)
{
	identity_fini(&ca);
	identity_fini(&server);
	return nf_teardown(state);
}

#define certified_test(f) cmocka_unit_test_setup_teardown(f, setup_certified, teardown_certified)

int main(void)
{
	const struct CMUnitTest tests[] = {
		nf_test(hosts_are_known), nf_test(garbage_is_not_trusted), nf_test(added_to_an_unfinished_line),
		nf_test(set_by_command), nf_test(set_lines_are_read), nf_test(hosts_that_no_line_holds),
		nf_test(many_write_known_hosts), nf_test(many_processes_meet_a_host),
		nf_test(hosts_that_others_wrote_are_not_trusted), nf_test(lines_with_a_nul), nf_test(no_regular_file),
		certified_test(hosts_by_certificate), certified_test(asterisks_match_one_label),
		certified_test(reasons), nf_test(malformed_authorities),
		certified_test(client_certificates_name_no_host),
		certified_test(expired_hosts), certified_test(revoked_hosts),
	};
	return cmocka_run_group_tests_name("net/known_hosts", tests, NULL, NULL);
}
