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

int main(void)
{
	const struct CMUnitTest tests[] = {
		nf_test(made_once), nf_test(only_new_makes_it), nf_test(the_directory_is_made_private),
		nf_test(threads_agree_on_one), nf_test(processes_agree_on_one), nf_test(the_key_does_not_lie_about), nf_test(readable_by_others),
		nf_test(damaged), nf_test(encrypted), nf_test(not_ed25519), nf_test(form_of_a_fingerprint),
	};
	return cmocka_run_group_tests_name("net/identity", tests, NULL, NULL);
}
