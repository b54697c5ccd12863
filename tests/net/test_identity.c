#include "fixture.h"

#include <fcntl.h>
#include <inttypes.h>
#include <openssl/pem.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *load(bool only_new, int want)
{
	static char fingerprint[PTCP_FINGERPRINT_BYTES];
	struct identity id;
	struct ptcp_err e = { 0 };

	assert_int_equal(identity_load(&id, nf_dir, only_new, &e), want);
	assert_int_equal(e.code, want);
	if (want < 0) {
		assert_non_null(strstr(e.msg, "identity.pem"));
		return NULL;
	}
	strcpy(fingerprint, id.fingerprint);
	identity_fini(&id);
	identity_fini(&id); /* twice is fine */
	return fingerprint;
}

static void made_once(void **state)
{
	char first[PTCP_FINGERPRINT_BYTES];
	struct stat st;

	(void)state;
	strcpy(first, load(false, 0));
	assert_true(identity_fingerprint_ok(first));
	assert_int_equal(stat(nf_path("identity.pem"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_nlink, 1);
	assert_int_equal(nf_count_files(), 1); /* nothing temporary stays */
	assert_string_equal(load(false, 0), first);
	load(true, PTCP_EUSAGE);
	assert_string_equal(load(false, 0), first);
}

static void only_new_makes_it(void **state)
{
	(void)state;
	load(true, 0);
	load(true, PTCP_EUSAGE);
}

static void the_directory_is_made_private(void **state)
{
	char dir[sizeof nf_dir + 16];
	struct identity id;
	struct ptcp_err e;
	struct stat st;

	(void)state;
	snprintf(dir, sizeof dir, "%s/a/b", nf_dir);
	assert_int_equal(identity_load(&id, dir, false, &e), 0);
	identity_fini(&id);
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(identity_load(&id, "", false, &e), PTCP_ECONFIG);
	assert_int_equal(identity_load(&id, "/proc/none/here", false, &e), PTCP_ECONFIG);
}

/* ---- Two at once ---- */

#define RACERS 4

struct racer {
	pthread_barrier_t *start;
	char fingerprint[PTCP_FINGERPRINT_BYTES];
};

static void *race(void *arg)
{
	struct racer *r = arg;
	struct identity id;

	pthread_barrier_wait(r->start);
	if (identity_load(&id, nf_dir, false, NULL) == 0) {
		strcpy(r->fingerprint, id.fingerprint);
		identity_fini(&id);
	}
	return NULL;
}

static void threads_agree_on_one(void **state)
{
	pthread_barrier_t start;
	struct racer r[RACERS] = { { 0 } };
	pthread_t t[RACERS];
	int i, round;

	(void)state;
	for (round = 0; round < 10; round++) {
		pthread_barrier_init(&start, NULL, RACERS);
		for (i = 0; i < RACERS; i++) {
			r[i].start = &start;
			assert_int_equal(pthread_create(&t[i], NULL, race, &r[i]), 0);
		}
		for (i = 0; i < RACERS; i++)
			pthread_join(t[i], NULL);
		pthread_barrier_destroy(&start);
		assert_true(identity_fingerprint_ok(r[0].fingerprint));
		for (i = 1; i < RACERS; i++)
			assert_string_equal(r[i].fingerprint, r[0].fingerprint);
		assert_int_equal(nf_count_files(), 1);
		assert_int_equal(unlink(nf_path("identity.pem")), 0);
	}
}

static void processes_agree_on_one(void **state)
{
	char got[RACERS][PTCP_FINGERPRINT_BYTES] = { "" };
	int i, out[2], status;
	struct identity id;

	(void)state;
	assert_int_equal(pipe(out), 0);
	for (i = 0; i < RACERS; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0) {
			if (identity_load(&id, nf_dir, false, NULL) < 0 ||
			    write(out[1], id.fingerprint, sizeof got[0]) != sizeof got[0])
				_exit(1);
			_exit(0);
		}
	}
	for (i = 0; i < RACERS; i++) {
		assert_true(wait(&status) > 0);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		assert_int_equal(read(out[0], got[i], sizeof got[0]), sizeof got[0]);
		assert_string_equal(got[i], got[0]);
	}
	close(out[0]);
	close(out[1]);
	assert_string_equal(load(false, 0), got[0]);
}

/* ---- What stays in memory ---- */

#define VEIL 0x5a /* what is looked for must not lie about by itself */
#define WINDOW (1u << 16)

static uint8_t window[WINDOW + 64];

static bool is_veiled(const uint8_t *p, const uint8_t *veiled, size_t n)
{
	size_t i;

	for (i = 0; i < n && (p[i] ^ VEIL) == veiled[i]; i++)
		;
	return i == n;
}

/* How often it occurs in a piece of this process's memory. */
static unsigned in_range(int mem, uintptr_t from, uintptr_t to, const uint8_t *veiled, size_t n)
{
	unsigned found = 0;
	ssize_t got, i;

	for (; from < to; from += WINDOW) {
		size_t want = to - from < sizeof window ? to - from : sizeof window;

		if (from < (uintptr_t)window + sizeof window && from + want > (uintptr_t)window)
			continue;
		got = pread(mem, window, want, (off_t)from);
		for (i = 0; i + (ssize_t)n <= got && i < (ssize_t)WINDOW; i++)
			found += is_veiled(window + i, veiled, n);
	}
	return found;
}

/* And in all that it can write, but for the shadows of sanitizers. */
static unsigned in_memory(const uint8_t *veiled, size_t n)
{
	int mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	FILE *maps = fopen("/proc/self/maps", "re");
	uintptr_t from, to;
	unsigned found = 0;
	char line[512], mode[8];

	assert_true(mem >= 0 && maps != NULL);
	while (fgets(line, sizeof line, maps) != NULL)
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s", &from, &to, mode) == 3 && mode[1] == 'w' &&
		    to - from <= 1u << 28)
			found += in_range(mem, from, to, veiled, n);
	fclose(maps);
	close(mem);
	return found;
}

/* Of the file: the line that has the key, its end and what that stands for, veiled. */
static void veil_key(uint8_t text[32], uint8_t seed[24])
{
	uint8_t file[256], bytes[64];
	int fd = open(nf_path("identity.pem"), O_RDONLY | O_CLOEXEC);
	uint8_t *line, *end;
	size_t i;

	assert_true(read(fd, file, sizeof file) == sizeof file);
	close(fd);
	line = memchr(file, '\n', sizeof file);
	end = memchr(++line, '\n', 128);
	assert_true(EVP_DecodeBlock(bytes, line, (int)(end - line)) == 48);
	for (i = 0; i < 32; i++)
		text[i] = end[-32 + (int)i] ^ VEIL;
	for (i = 0; i < 24; i++)
		seed[i] = bytes[24 + i] ^ VEIL;
	explicit_bzero(file, sizeof file);
	explicit_bzero(bytes, sizeof bytes);
}

static void the_key_does_not_lie_about(void **state)
{
	uint8_t text[32], seed[24];
	struct identity id;

	(void)state;
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
	skip(); /* they keep what was freed, also what OpenSSL's decoder does not wipe */
#endif
	assert_int_equal(identity_load(&id, nf_dir, false, NULL), 0); /* which makes it */
	veil_key(text, seed);
	assert_int_equal(in_memory(text, sizeof text), 0);
	assert_true(in_memory(seed, sizeof seed) > 0); /* it is in use, and would be found */
	identity_fini(&id);
	assert_int_equal(in_memory(text, sizeof text), 0);
	assert_int_equal(in_memory(seed, sizeof seed), 0);
}

/* ---- What is refused ---- */

static void readable_by_others(void **state)
{
	static const unsigned modes[] = { 0640, 0604, 0620, 0602, 0610, 0601 };
	size_t i;

	(void)state;
	load(false, 0);
	for (i = 0; i < sizeof modes / sizeof *modes; i++) {
		assert_int_equal(chmod(nf_path("identity.pem"), modes[i]), 0);
		load(false, PTCP_ECONFIG);
	}
	assert_int_equal(chmod(nf_path("identity.pem"), 0400), 0);
	load(false, 0);
}

static void damaged(void **state)
{
	char whole[4096], other[4096];
	size_t n, i;

	(void)state;
	load(false, 0);
	strcpy(whole, nf_read("identity.pem"));
	n = strlen(whole);
	for (i = 0; i < n - 1; i += 7) { /* cut anywhere */
		memcpy(other, whole, i);
		other[i] = '\0';
		nf_write("identity.pem", other, 0600);
		load(false, PTCP_ECONFIG);
	}
	nf_write("identity.pem", "nonsense\n", 0600);
	load(false, PTCP_ECONFIG);
	assert_string_equal(nf_read("identity.pem"), "nonsense\n"); /* never overwritten */
	/* The key of one, the certificate of another */
	unlink(nf_path("identity.pem"));
	load(false, 0);
	strcpy(other, nf_read("identity.pem"));
	strcpy(strstr(other, "-----BEGIN CERT"), strstr(whole, "-----BEGIN CERT"));
	nf_write("identity.pem", other, 0600);
	load(false, PTCP_ECONFIG);
	nf_write("identity.pem", whole, 0600);
	load(false, 0);
	unlink(nf_path("identity.pem"));
	assert_int_equal(mkdir(nf_path("identity.pem"), 0700), 0);
	load(false, PTCP_ECONFIG);
	rmdir(nf_path("identity.pem"));
	assert_int_equal(symlink("nowhere/at/all", nf_path("identity.pem")), 0);
	load(false, PTCP_ECONFIG);
	unlink(nf_path("identity.pem"));
	assert_int_equal(mkfifo(nf_path("identity.pem"), 0600), 0);
	load(false, PTCP_ECONFIG); /* and does not wait for a writer */
}

/* OpenSSL would ask the terminal for the passphrase of an encrypted key. */
static void encrypted(void **state)
{
	EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	FILE *f = fopen(nf_path("identity.pem"), "w");

	(void)state;
	assert_non_null(f);
	assert_int_equal(PEM_write_PrivateKey(f, key, EVP_aes_128_cbc(), (const unsigned char *)"pass", 4,
	    NULL, NULL), 1);
	fclose(f);
	EVP_PKEY_free(key);
	chmod(nf_path("identity.pem"), 0600);
	load(false, PTCP_ECONFIG);
}

static void not_ed25519(void **state)
{
	EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
	X509 *x = X509_new();
	FILE *f = fopen(nf_path("identity.pem"), "w");

	(void)state;
	X509_set_pubkey(x, key);
	X509_gmtime_adj(X509_getm_notBefore(x), 0);
	X509_gmtime_adj(X509_getm_notAfter(x), 1000);
	assert_true(X509_sign(x, key, EVP_sha256()) > 0);
	PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL);
	PEM_write_X509(f, x);
	fclose(f);
	X509_free(x);
	EVP_PKEY_free(key);
	chmod(nf_path("identity.pem"), 0600);
	load(false, PTCP_ECONFIG);
}

static void form_of_a_fingerprint(void **state)
{
	static const char good[] = "SHA256:0123456789abcdefghijABCDEFGHIJ0123456789+/w";
	char bad[80];

	(void)state;
	assert_true(identity_fingerprint_ok(good));
	assert_false(identity_fingerprint_ok(""));
	assert_false(identity_fingerprint_ok("SHA256:"));
	snprintf(bad, sizeof bad, "%.*s", (int)strlen(good) - 1, good);
	assert_false(identity_fingerprint_ok(bad));
	snprintf(bad, sizeof bad, "%s=", good);
	assert_false(identity_fingerprint_ok(bad));
	snprintf(bad, sizeof bad, "%s ", good);
	assert_false(identity_fingerprint_ok(bad));
	snprintf(bad, sizeof bad, "sha256%s", good + 6);
	assert_false(identity_fingerprint_ok(bad));
	snprintf(bad, sizeof bad, "%s", good);
	bad[20] = '-';
	assert_false(identity_fingerprint_ok(bad));
	snprintf(bad, sizeof bad, "%s", good);
	bad[strlen(bad) - 1] = 'x'; /* 43 characters, but no SHA-256 ends so */
	assert_false(identity_fingerprint_ok(bad));
}

/* ---- Signatures ---- */

static const uint8_t text[] = "a text that is signed";

static struct identity an_identity(void)
{
	struct identity id;

	assert_int_equal(identity_new(&id, NULL), 0);
	return id;
}

static void signs(void **state)
{
	struct identity id = an_identity(), other = an_identity();
	uint8_t key[IDENTITY_KEY_BYTES], other_key[IDENTITY_KEY_BYTES], s[IDENTITY_SIGNATURE_BYTES], bent[sizeof text];
	size_t i;

	(void)state;
	assert_int_equal(identity_key(key, &id, NULL), 0);
	assert_int_equal(identity_key(other_key, &other, NULL), 0);
	assert_int_equal(identity_sign(s, &id, text, sizeof text, NULL), 0);
	assert_true(identity_verify(key, text, sizeof text, s));
	assert_false(identity_verify(other_key, text, sizeof text, s));
	assert_false(identity_verify(key, text, sizeof text - 1, s));
	for (i = 0; i < sizeof text * 8; i++) {
		memcpy(bent, text, sizeof text);
		bent[i / 8] ^= (uint8_t)(1 << i % 8);
		assert_false(identity_verify(key, bent, sizeof text, s));
	}
	for (i = 0; i < IDENTITY_SIGNATURE_BYTES * 8; i++) {
		s[i / 8] ^= (uint8_t)(1 << i % 8);
		assert_false(identity_verify(key, text, sizeof text, s));
		s[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	identity_fini(&id);
	identity_fini(&other);
}

/* RFC 8032, 7.1, test 2 */
static void as_the_rfc_has_it(void **state)
{
	static const uint8_t key[IDENTITY_KEY_BYTES] = {
		0x3d, 0x40, 0x17, 0xc3, 0xe8, 0x43, 0x89, 0x5a, 0x92, 0xb7, 0x0a, 0xa7, 0x4d, 0x1b, 0x7e, 0xbc,
		0x9c, 0x98, 0x2c, 0xcf, 0x2e, 0xc4, 0x96, 0x8c, 0xc0, 0xcd, 0x55, 0xf1, 0x2a, 0xf4, 0x66, 0x0c
	};
	static const uint8_t signature[IDENTITY_SIGNATURE_BYTES] = {
		0x92, 0xa0, 0x09, 0xa9, 0xf0, 0xd4, 0xca, 0xb8, 0x72, 0x0e, 0x82, 0x0b, 0x5f, 0x64, 0x25, 0x40,
		0xa2, 0xb2, 0x7b, 0x54, 0x16, 0x50, 0x3f, 0x8f, 0xb3, 0x76, 0x22, 0x23, 0xeb, 0xdb, 0x69, 0xda,
		0x08, 0x5a, 0xc1, 0xe4, 0x3e, 0x15, 0x99, 0x6e, 0x45, 0x8f, 0x36, 0x13, 0xd0, 0xf1, 0x1d, 0x8c,
		0x38, 0x7b, 0x2e, 0xae, 0xb4, 0x30, 0x2a, 0xee, 0xb0, 0x0d, 0x29, 0x16, 0x12, 0xbb, 0x0c, 0x00
	};

	(void)state;
	assert_true(identity_verify(key, (const uint8_t *)"\x72", 1, signature));
	assert_false(identity_verify(key, (const uint8_t *)"\x73", 1, signature));
}

static void keys_and_fingerprints(void **state)
{
	struct identity id = an_identity();
	uint8_t key[IDENTITY_KEY_BYTES], digest[32];
	char fingerprint[PTCP_FINGERPRINT_BYTES];
	unsigned i;

	(void)state;
	assert_int_equal(identity_key(key, &id, NULL), 0);
	assert_int_equal(identity_key_fingerprint(fingerprint, key, NULL), 0);
	assert_string_equal(fingerprint, id.fingerprint);
	identity_digest(digest, id.fingerprint);
	identity_digest_text(fingerprint, digest);
	assert_string_equal(fingerprint, id.fingerprint);
	for (i = 0; i < 256; i++) {
		memset(digest, (int)i, sizeof digest);
		identity_digest_text(fingerprint, digest);
		assert_true(identity_fingerprint_ok(fingerprint));
		memset(digest, 0x5a, sizeof digest);
		identity_digest(digest, fingerprint);
		assert_int_equal(digest[0], i);
		assert_int_equal(digest[31], i);
	}
	identity_fini(&id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		nf_test(made_once), nf_test(only_new_makes_it), nf_test(the_directory_is_made_private),
		nf_test(threads_agree_on_one), nf_test(processes_agree_on_one), nf_test(the_key_does_not_lie_about),
		nf_test(readable_by_others),
		nf_test(damaged), nf_test(encrypted), nf_test(not_ed25519), nf_test(form_of_a_fingerprint),
		cmocka_unit_test(signs),
		cmocka_unit_test(as_the_rfc_has_it),
		cmocka_unit_test(keys_and_fingerprints),
	};
	return cmocka_run_group_tests_name("net/identity", tests, NULL, NULL);
}
