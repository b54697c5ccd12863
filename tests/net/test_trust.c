/* against: access */
#include "net/trust/trust.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "certified.h"
#include "fixture.h"
#include "net/trust/revoked.h"
#include "patience.h"

static const char A[] = "SHA256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaA";
static const char B[] = "SHA256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbB";
static const char C[] = "SHA256:ccccccccccccccccccccccccccccccccccccccccccC";

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

static unsigned complaints;
static struct ptcp_err why;

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
	return authorized_find(nf_dir, &(struct trust_peer){ .fingerprint = fingerprint }, out, &why, &log);
}

static void put(const char *fingerprint, bool read_only, bool no_relay, const char *root,
    const char *name, int want)
{
	struct ptcp_permission p = { .size = sizeof p, .fingerprint = fingerprint, .read_only = read_only,
		.no_relay = no_relay, .root = root, .name = name };
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
	snprintf(text, sizeof text, "\xef\xbb\xbf%s\n\xef\xbb\xbf%s\n", A, B); /* byte order marks, as of two files */
	nf_write("authorized_clients", text, 0600);
	assert_int_equal(find(A, &a), 1);
	assert_int_equal(find(B, &a), 1);
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
}

/* Nobody waits for the other end of a FIFO; the time limit ends a test that does. */
static void no_regular_files(void **state)
{
	struct authorization a;

	(void)state;
	alarm(patience_s(10));
	assert_int_equal(mkfifo(nf_path("authorized_clients"), 0600), 0);
	assert_int_equal(find(A, &a), PTCP_ECONFIG);
	assert_int_equal(complaints, 1);
	put(A, false, false, NULL, NULL, PTCP_ECONFIG);
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
	assert_false(trust_changed(nf_dir, "authorized_clients", &s)); /* none, and still none */
	put(A, false, false, NULL, NULL, 0);
	assert_true(trust_changed(nf_dir, "authorized_clients", &s));
	assert_false(trust_changed(nf_dir, "authorized_clients", &s));
	put(A, true, false, NULL, NULL, 1);
	assert_true(trust_changed(nf_dir, "authorized_clients", &s));
	nf_sleep_ms(20); /* what the clock of the file system may lag behind */
	nf_write("authorized_clients", nf_read("authorized_clients"), 0600); /* in place, of the same length */
	assert_true(trust_changed(nf_dir, "authorized_clients", &s));
	nf_sleep_ms(20);
	assert_int_equal(chmod(nf_path("authorized_clients"), 0666), 0);
	assert_true(trust_changed(nf_dir, "authorized_clients", &s));
	assert_int_equal(unlink(nf_path("authorized_clients")), 0);
	assert_true(trust_changed(nf_dir, "authorized_clients", &s));
	assert_false(trust_changed(nf_dir, "authorized_clients", &s));
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

/* Whatever stands before, between and after the words of a line: a client whose line counts can be removed. */
static void each_line_that_counts_can_be_removed(void **state)
{
	static const char *const around[] = { "", " ", "\t", "\r", "\v", "\f", "\n", "\xef\xbb\xbf",
		"\xef\xbb\xbf\r ", "#", "$", "\x01", "$\r", "\n\xef\xbb\xbf" };
	enum { N = sizeof around / sizeof *around };
	struct authorization a;
	char text[400], *p;
	size_t i, n;
	int counted;

	(void)state;
	for (i = 0; i < (size_t)N * N * 2; i++) {
		n = (size_t)snprintf(text, sizeof text, "%s%s%s%s%s", around[i % N], A, around[i / N % N],
		    i < (size_t)N * N ? "read-only" : "", i % 2 ? "\n" : "");
		while ((p = memchr(text, '$', n)) != NULL)
			*p = '\0';
		write_bytes("authorized_clients", text, n);
		counted = find(A, &a) > 0;
		assert_int_equal(authorized_set(nf_dir, A, NULL, NULL) > 0 || !counted, 1);
		assert_int_equal(find(A, &a) > 0, 0);
	}
}

/* Whatever stands before the line of a client: it counts, or not, also after lines of others were written and
 * removed. */
static void lines_of_others_count_as_before(void **state)
{
	static const char *const before[] = { "", " ", "#", "\xef\xbb\xbf", "\xef\xbb\xbf\xef\xbb\xbf",
		"\xef\xbb\xbf #", "\xef\xbb\xbf \xef\xbb\xbf", "\xef\xbb", "x\xef\xbb\xbf" };
	enum { N = sizeof before / sizeof *before };
	struct authorization a;
	char text[400];
	unsigned i;
	int counted;

	(void)state;
	for (i = 0; i < N * N * 2; i++) {
		snprintf(text, sizeof text, "%s%s\n%s%s read-only\n", before[i % N], i < N * N ? A : "",
		    before[i / N % N], B);
		nf_write("authorized_clients", text, 0600);
		counted = find(B, &a);
		put(A, false, false, NULL, NULL, find(A, &a));
		assert_int_equal(find(B, &a), counted);
		assert_int_equal(authorized_set(nf_dir, A, NULL, NULL), 1);
		assert_int_equal(find(B, &a), counted);
	}
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
	struct trust_peer peer = { .fingerprint = A };
	struct authorization a;
	struct ptcp_err e;
	unsigned i;

	for (i = 0; i < 2000; i++)
		w->failed |= authorized_find(nf_dir, &peer, &a, &e, NULL) != 1;
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

/* ---- Certificates ---- */

static struct identity ca, other_ca, client;

static int find_at(const char *fingerprint, const struct certificates *c, uint64_t at_s, struct authorization *out)
{
	struct log log = { complain, NULL, LOG_DEBUG };
	struct trust_peer peer = { fingerprint, c->bytes, c->n, at_s };

	complaints = 0;
	return authorized_find(nf_dir, &peer, out, &why, &log);
}

static int find_by(const struct certificates *c, struct authorization *out)
{
	return find_at(client.fingerprint, c, 150, out);
}

static void trust_authority(const struct identity *id, const char *options)
{
	char text[400];

	snprintf(text, sizeof text, "@cert-authority %s %s\n", id->fingerprint, options);
	nf_write("authorized_clients", text, 0600);
}

static void by_certificate(void **state)
{
	struct certificates c = { .n = 0 };
	struct authorization a;

	(void)state;
	trust_authority(&ca, "root=/srv name=site");
	certified(&c, &(struct certificate){ .kind = CERTIFICATE_CLIENT, .name = "alice", .root = "groups/a" }, &client,
	    &ca);
	assert_int_equal(find_by(&c, &a), 1);
	assert_string_equal(a.root, "/srv");
	assert_string_equal(a.below, "groups/a");
	assert_string_equal(a.name, "alice");
	assert_true(!a.read_only && !a.no_relay);
	assert_int_equal(a.proof.n, c.n);
	assert_int_equal(a.proof.at_s, 150);
	assert_int_equal(find(client.fingerprint, &a), 0); /* without the certificate */
	assert_int_equal(find_at(A, &c, 150, &a), 0);      /* with that of another key */
	assert_int_equal(why.code, 0);
	assert_int_equal(find(ca.fingerprint, &a), 0);     /* the authority itself is no client */
	put(client.fingerprint, true, false, NULL, "pinned", 0);
	assert_int_equal(find_by(&c, &a), 1); /* a line of its own decides */
	assert_string_equal(a.name, "pinned");
	assert_true(a.read_only && a.below[0] == '\0' && a.proof.n == 0);
}

/* Each right needs both: the line of the authority, and the certificate. */
/* Of two quotas the smaller; none is no limit. */
static void the_smaller_quota(void)
{
	static const struct { const char *line; uint64_t cert, both; } cases[] = { { "", 0, 0 },
		{ "quota=9kB", 0, 9000 },
		{ "", 5000, 5000 }, { "quota=9kB", 5000, 5000 }, { "quota=9kB", 10000, 9000 } };
	struct authorization a;
	size_t i;

	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct certificates c = { .n = 0 };

		trust_authority(&ca, cases[i].line);
		certified(&c, &(struct certificate){ .kind = CERTIFICATE_CLIENT, .name = "x",
		    .quota_bytes = cases[i].cert }, &client, &ca);
		assert_int_equal(find_by(&c, &a), 1);
		assert_int_equal(a.quota_bytes, cases[i].both);
	}
}

static void never_more_than_the_authority(void **state)
{
	unsigned line, cert;

	(void)state;
	the_smaller_quota();
	for (line = 0; line < 4; line++)
		for (cert = 0; cert < 4; cert++) {
			struct certificates c = { .n = 0 };
			struct authorization a;
			char options[64];

			snprintf(options, sizeof options, "%s %s", line & 1 ? "read-only" : "",
			    line & 2 ? "no-relay" : "");
			trust_authority(&ca, options);
			certified(&c, &(struct certificate){ .kind = CERTIFICATE_CLIENT, .name = "x",
			    .read_only = (cert & 1) != 0,
				.no_relay = (cert & 2) != 0 }, &client, &ca);
			assert_int_equal(find_by(&c, &a), 1);
			assert_int_equal(a.read_only, ((line | cert) & 1) != 0);
			assert_int_equal(a.no_relay, ((line | cert) & 2) != 0);
		}
}

static void forged(void **state)
{
	struct certificates c = { .n = 0 }, bad;
	struct authorization a;
	size_t i;

	(void)state;
	trust_authority(&ca, "");
	certified(&c, &(struct certificate){ .kind = CERTIFICATE_CLIENT, .name = "alice", .root = "a",
	    .read_only = true }, &client, &ca);
	assert_int_equal(find_by(&c, &a), 1);
	for (i = 0; i < c.n * 8; i++) {
		bad = c;
		bad.bytes[i / 8] ^= (uint8_t)(1u << i % 8);
		assert_int_equal(find_by(&bad, &a), 0);
	}
	for (i = 0; i < c.n; i++) {
		bad = c;
		bad.n = i;
		assert_int_equal(find_by(&bad, &a), 0);
	}
	bad.n = 0;
	certified(&bad, &(struct certificate){ .kind = CERTIFICATE_CLIENT, .name = "alice" }, &client, &other_ca);
	memcpy(bad.bytes + 34, c.bytes + 34, IDENTITY_KEY_BYTES); /* claims to be of the trusted one */
	assert_int_equal(find_by(&bad, &a), 0);
	bad.n = 0;
	certified(&bad, &(struct certificate){ .kind = CERTIFICATE_SERVER, .name = "alice" }, &client, &ca);
	assert_int_equal(find_by(&bad, &a), 0); /* names a host */
}

/* A certified client signs for another: nobody trusts it to. */
static void a_chain_of_two(void **state)
{
	struct certificates c = { .n = 0 };
	struct authorization a;

	(void)state;
	trust_authority(&ca, "");
	certified(&c, &(struct certificate){ .kind = CERTIFICATE_CLIENT, .name = "between" }, &other_ca, &ca);
	certified(&c, &(struct certificate){ .kind = CERTIFICATE_CLIENT, .name = "alice" }, &client, &other_ca);
	assert_int_equal(find_by(&c, &a), 0);
}

static void at_the_wrong_time(void **state)
{
	struct certificates c = { .n = 0 };
	struct authorization a;

	(void)state;
	trust_authority(&ca, "");
	certified(&c, &(struct certificate){ .kind = CERTIFICATE_CLIENT, .name = "alice" }, &client, &ca);
	assert_int_equal(find_at(client.fingerprint, &c, 100, &a), 1);
	assert_int_equal(find_at(client.fingerprint, &c, 199, &a), 1);
	assert_int_equal(find_at(client.fingerprint, &c, 99, &a), 0);
	assert_string_equal(why.msg, "the certificate of alice is valid from 1970-01-01 00:01:40 UTC to 1970-01-01 "
	    "00:03:20 UTC, and this server's clock says 1970-01-01 00:01:39 UTC (check the clock, or have the "
	    "authority sign again)");
	assert_int_equal(find_at(client.fingerprint, &c, 200, &a), 0);
	assert_int_equal(why.code, PTCP_EREFUSED);
	assert_int_equal(find_at(client.fingerprint, &c, UINT64_MAX, &a), 0);
	certified(&c, &(struct certificate){ .kind = CERTIFICATE_CLIENT, .name = "alice", .until_s = 300 }, &client,
	    &ca);
	assert_int_equal(find_at(client.fingerprint, &c, 200, &a), 1); /* the second is valid */
	trust_authority(&other_ca, "");
	assert_int_equal(find_at(client.fingerprint, &c, 500, &a), 0);
	assert_int_equal(why.code, 0); /* to others, nothing is said about it */
}

static void revoked_certificates(void **state)
{
	struct certificates c = { .n = 0 };
	struct authorization a;

	(void)state;
	trust_authority(&ca, "");
	certified(&c, &(struct certificate){ .kind = CERTIFICATE_CLIENT, .name = "alice", .serial = 5 }, &client, &ca);
	assert_int_equal(revoked_set(nf_dir, NULL, 6, false, NULL), 0);
	assert_int_equal(find_by(&c, &a), 1);
	assert_int_equal(revoked_set(nf_dir, NULL, 5, false, NULL), 0);
	assert_int_equal(revoked_set(nf_dir, NULL, 5, false, NULL), 1);
	assert_int_equal(find_by(&c, &a), 0);
	assert_non_null(strstr(why.msg, "the certificate of alice is revoked"));
	assert_int_equal(revoked_set(nf_dir, NULL, 5, true, NULL), 1);
	assert_int_equal(find_by(&c, &a), 1);
	assert_int_equal(revoked_set(nf_dir, ca.fingerprint, 0, false, NULL), 0);
	assert_int_equal(find_by(&c, &a), 0);
	assert_int_equal(revoked_set(nf_dir, ca.fingerprint, 0, true, NULL), 1);
	assert_int_equal(revoked_set(nf_dir, client.fingerprint, 0, false, NULL), 0);
	assert_int_equal(find_by(&c, &a), 0);
	put(client.fingerprint, false, false, NULL, NULL, 0); /* to authorize is to revoke no longer */
	assert_int_equal(find_by(&c, &a), 1);
	assert_int_equal(revoked_set(nf_dir, client.fingerprint, 0, false, NULL), 0);
	assert_int_equal(find_by(&c, &a), 0); /* also with a line of its own */
}

/* A list of revoked keys that cannot be read, or understood, may have named anybody. */
static void damaged_revocations_admit_nobody(void **state)
{
	static const char *const bad[] = { "x", "SHA256:short", "0000000000000000", "00000000000000zz", "12345" };
	static const char D[] = "SHA256:dddddddddddddddddddddddddddddddddddddddddd4";
	struct authorization a;
	char text[200];
	size_t i;

	(void)state;
	put(A, false, false, NULL, NULL, 0);
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		snprintf(text, sizeof text, "# comment\n%s\n%s\n", D, bad[i]);
		nf_write("revoked", text, 0600);
		assert_int_equal(find(A, &a), PTCP_ECONFIG);
		assert_int_equal(complaints, 1);
		assert_int_equal(revoked_find(nf_dir, D, 0, NULL), PTCP_ECONFIG); /* found before the malformed line */
	}
	snprintf(text, sizeof text, "# comment\n%s  # why\n0000000000000001\n\n", D);
	nf_write("revoked", text, 0600);
	assert_int_equal(find(A, &a), 1);
	put(D, false, false, NULL, NULL, 0);
	assert_int_equal(find(D, &a), 1); /* authorized again */
	nf_write("revoked", text, 0600);
	assert_int_equal(find(D, &a), 0);
	assert_int_equal(chmod(nf_path("revoked"), 0666), 0);
	assert_int_equal(find(A, &a), PTCP_ECONFIG);
}

static void malformed_authorities(void **state)
{
	struct certificates c = { .n = 0 };
	struct authorization a;
	char text[400];

	(void)state;
	certified(&c, &(struct certificate){ .kind = CERTIFICATE_CLIENT, .name = "alice" }, &client, &ca);
	trust_authority(&ca, "readonly");
	assert_int_equal(find_by(&c, &a), 0);
	assert_int_equal(complaints, 1);
	snprintf(text, sizeof text, "@cert-authority\n@Cert-authority %s\n@cert-authority x%s\n",
	    ca.fingerprint, ca.fingerprint);
	nf_write("authorized_clients", text, 0600);
	assert_int_equal(find_by(&c, &a), 0);
}

static int setup_certified(void **state)
{
	return nf_setup(state) != 0 || identity_new(&ca, NULL) != 0 || identity_new(&other_ca, NULL) != 0 ||
	    identity_new(&client, NULL) != 0;
}

static int teardown_certified(void **state)
{
	identity_fini(&ca);
	identity_fini(&other_ca);
	identity_fini(&client);
	return nf_teardown(state);
}

#define certified_test(f) cmocka_unit_test_setup_teardown(f, setup_certified, teardown_certified)

int main(void)
{
	const struct CMUnitTest tests[] = {
		nf_test(nobody_at_first), nf_test(changes_are_seen),
		nf_test(permissions_round_trip), nf_test(longest_root), nf_test(revoked),
		nf_test(lines_with_a_nul), nf_test(each_line_that_counts_can_be_removed),
		nf_test(lines_of_others_count_as_before), nf_test(no_regular_files),
		nf_test(malformed_lines_admit_nobody),
		nf_test(a_list_that_others_write_admits_nobody),
		nf_test(what_cannot_be_read_admits_nobody), nf_test(an_unfinished_line_stays_whole),
		nf_test(many_write_authorized_clients), nf_test(replaced_at_once),
		certified_test(by_certificate), certified_test(never_more_than_the_authority), certified_test(forged),
		certified_test(a_chain_of_two), certified_test(at_the_wrong_time), certified_test(revoked_certificates),
		certified_test(malformed_authorities), nf_test(damaged_revocations_admit_nobody),
	};
	return cmocka_run_group_tests_name("net/trust", tests, NULL, NULL);
}
