#include "net/trust/certificate.h"

#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "certified.h"
#include "fixture.h"

static struct identity ca, us;

static int setup(void **state)
{
	return nf_setup(state) != 0 || identity_new(&ca, NULL) != 0 || identity_load(&us, nf_dir, false, NULL) != 0;
}

static int teardown(void **state)
{
	identity_fini(&ca);
	identity_fini(&us);
	return nf_teardown(state);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void round_trip(void **state)
{
	struct certificates all = { .n = 0 };
	struct certificate c, d, longest = { .kind = CERTIFICATE_SERVER, .read_only = true, .write_once = true,
		.no_relay = true, .serial = UINT64_MAX, .from_s = 1, .until_s = UINT64_MAX };
	uint8_t key[IDENTITY_KEY_BYTES];
	size_t n;

	(void)state;
	memset(longest.name, 'n', sizeof longest.name - 1);
	memset(longest.root, 'r', sizeof longest.root - 1);
	certified(&all, &(struct certificate){ .kind = CERTIFICATE_CLIENT, .name = "a" }, &us, &ca);
	n = certificate_decode(&c, all.bytes, all.n);
	assert_int_equal(n, all.n);
	assert_true(certificate_is_signed(all.bytes, n));
	assert_int_equal(identity_key(key, &ca, NULL), 0);
	assert_memory_equal(c.issuer, key, sizeof key);
	assert_string_equal(c.subject, us.fingerprint);
	assert_true(c.kind == CERTIFICATE_CLIENT && !c.read_only && !c.no_relay && !c.write_once);
	certified(&all, &longest, &us, &ca);
	assert_int_equal(certificate_decode(&d, all.bytes + n, all.n - n), all.n - n);
	assert_true(all.n - n <= CERTIFICATE_MAX_BYTES);
	assert_true(certificate_is_signed(all.bytes + n, all.n - n));
	assert_string_equal(d.name, longest.name);
	assert_string_equal(d.root, longest.root);
	assert_true(d.read_only && d.no_relay && d.write_once && d.serial == UINT64_MAX && d.until_s == UINT64_MAX);
	assert_false(certificate_is_signed(all.bytes, all.n)); /* two */
}

/* No cut and no changed bit is taken for what the authority signed. */
static void damaged(void **state)
{
	struct certificates all = { .n = 0 }, bad;
	struct certificate c;
	size_t i;

	(void)state;
	certified(&all, &(struct certificate){ .kind = CERTIFICATE_CLIENT, .name = "alice", .root = "a/b" }, &us, &ca);
	for (i = 0; i < all.n; i++) {
		assert_int_equal(certificate_decode(&c, all.bytes, i), 0);
		assert_false(certificate_is_signed(all.bytes, i));
	}
	for (i = 0; i < all.n * 8; i++) {
		bad = all;
		bad.bytes[i / 8] ^= (uint8_t)(1u << i % 8);
		assert_false(certificate_is_signed(bad.bytes, bad.n));
	}
}

static void names_that_break_logs(void **state)
{
	static const char *const names[] = { "", "a b", "a\n", "a\x1b[0m", "\x80" };
	struct certificate c;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof names / sizeof *names; i++) {
		struct certificates all = { .n = 0 };
		struct certificate what = { .kind = CERTIFICATE_CLIENT };

		strcpy(what.name, names[i]);
		certified(&all, &what, &us, &ca);
		assert_int_equal(certificate_decode(&c, all.bytes, all.n), 0);
	}
}

static void lines(void **state)
{
	static const char *const bad[] = { "", "ptcp-certificate", "ptcp-certificate ", "ptcp-certificate AAAA",
		"ptcp-certificate ====", "ptcp-certificate A", "ssh-ed25519 AAAA",
		"ptcp-certificate \xff\xff\xff\xff" };
	struct certificates all = { .n = 0 };
	char line[CERTIFICATE_LINE_BYTES], text[2 * CERTIFICATE_LINE_BYTES];
	uint8_t out[CERTIFICATE_MAX_BYTES];
	size_t i, n;

	(void)state;
	for (i = 0; i < 3; i++) { /* all lengths of padding */
		struct certificate what = { .kind = CERTIFICATE_CLIENT };

		all.n = 0;
		memset(what.name, 'x', 1 + i);
		certified(&all, &what, &us, &ca);
		certificate_line(line, all.bytes, all.n);
		snprintf(text, sizeof text, "  %s \r\n", line);
		assert_int_equal(certificate_parse(out, &n, text, NULL), 0);
		assert_int_equal(n, all.n);
		assert_memory_equal(out, all.bytes, n);
	}
	for (i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(certificate_parse(out, &n, bad[i], NULL), PTCP_EUSAGE);
	memset(text, 'A', sizeof text);
	memcpy(text, "ptcp-certificate ", 17);
	text[sizeof text - 1] = '\0';
	assert_int_equal(certificate_parse(out, &n, text, NULL), PTCP_EUSAGE);
}

/* What the file has is in the certificate of TLS, whose key does not change. */
static void presented(void **state)
{
	struct certificates all = { .n = 0 }, got;
	struct identity id;
	struct stat st;
	unsigned i;

	(void)state;
	identity_presented(&got, us.cert);
	assert_int_equal(got.n, 0);
	for (i = 0; i < CERTIFICATES_MAX; i++) {
		struct certificates one = { .n = 0 };
		struct identity authority;

		assert_int_equal(identity_new(&authority, NULL), 0);
		certified(&one, &(struct certificate){ .kind = CERTIFICATE_CLIENT, .name = "a" }, &us, &authority);
		assert_int_equal(certificates_add(nf_dir, one.bytes, one.n, NULL), 0);
		assert_int_equal(certificates_add(nf_dir, one.bytes, one.n, NULL), 0); /* in its own place */
		memcpy(all.bytes + all.n, one.bytes, one.n);
		all.n += one.n;
		identity_fini(&authority);
	}
	assert_int_equal(stat(nf_path("certificates"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(identity_load(&id, nf_dir, false, NULL), 0);
	identity_presented(&got, id.cert);
	assert_int_equal(got.n, all.n);
	assert_memory_equal(got.bytes, all.bytes, all.n);
	assert_string_equal(id.fingerprint, us.fingerprint);
	assert_int_equal(X509_check_private_key(id.cert, us.key), 1);
	identity_fini(&id);
	all.n = 0;
	certified(&all, &(struct certificate){ .kind = CERTIFICATE_SERVER, .name = "a" }, &us, &ca);
	/* also of short ones at most four */
	assert_int_equal(certificates_add(nf_dir, all.bytes, all.n, NULL), PTCP_EUSAGE);
	assert_int_equal(certificates_add(nf_dir, all.bytes, 0, NULL), PTCP_EUSAGE);
}

static void damaged_files(void **state)
{
	struct certificates c;
	struct identity id;
	struct ptcp_err e;

	(void)state;
	assert_int_equal(certificates_load(&c, nf_dir, NULL), 0);
	assert_int_equal(c.n, 0);
	nf_write("certificates", "# none\n\n", 0600);
	assert_int_equal(certificates_load(&c, nf_dir, NULL), 0);
	nf_write("certificates", "\nptcp-certificate AAAA\n", 0600);
	assert_int_equal(certificates_load(&c, nf_dir, &e), PTCP_ECONFIG);
	assert_non_null(strstr(e.msg, "certificates, line 2: not a certificate"));
	assert_int_equal(identity_load(&id, nf_dir, false, NULL), PTCP_ECONFIG);
	nf_write("certificates", "", 0600);
	assert_int_equal(chmod(nf_path("certificates"), 0666), 0);
	assert_int_equal(certificates_load(&c, nf_dir, &e), PTCP_ECONFIG);
}

/* Certificates of so many authorities; with `longest`, of the maximum size. */
static void add_many(bool longest)
{
	unsigned i;
	int r = 0;

	for (i = 0; i < 20 && r == 0; i++) {
		struct certificate what = { .kind = CERTIFICATE_SERVER };
		struct certificates one = { .n = 0 };
		struct identity authority;

		assert_int_equal(identity_new(&authority, NULL), 0);
		memset(what.name, 'h', longest ? sizeof what.name - 1 : 1);
		memset(what.root, 'r', longest ? sizeof what.root - 1 : 0);
		certified(&one, &what, &us, &authority);
		r = certificates_add(nf_dir, one.bytes, one.n, NULL);
		identity_fini(&authority);
	}
	assert_int_equal(r, PTCP_EUSAGE);
	assert_int_equal(i, CERTIFICATES_MAX + 1);
}

static void too_many(void **state)
{
	struct certificates c, one = { .n = 0 };
	char text[6000] = "", line[CERTIFICATE_LINE_BYTES];
	struct ptcp_err e;
	unsigned i;

	(void)state;
	add_many(true);
	assert_int_equal(unlink(nf_path("certificates")), 0);
	add_many(false);
	assert_int_equal(certificates_load(&c, nf_dir, NULL), 0);
	certified(&one, &(struct certificate){ .kind = CERTIFICATE_CLIENT, .name = "a" }, &us, &ca);
	certificate_line(line, one.bytes, one.n);
	for (i = 0; i <= CERTIFICATES_MAX; i++) /* by hand */
		strcat(strcat(text, line), "\n");
	nf_write("certificates", text, 0600);
	assert_int_equal(certificates_load(&c, nf_dir, &e), PTCP_ECONFIG);
	assert_non_null(strstr(e.msg, "more than 4"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(round_trip), test(damaged), test(names_that_break_logs), test(lines), test(presented),
		test(damaged_files), test(too_many),
	};
	return cmocka_run_group_tests_name("net/certificate", tests, NULL, NULL);
}
