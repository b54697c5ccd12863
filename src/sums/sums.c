#include "sums/sums.h"

#include <ctype.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/text.h"
#include "sums/checksums.h"

enum {
#define X(NAME, name, bit, bytes) SUM_##NAME = (bit),
	PTCP_DIGESTS(X)
#undef X
#define X(NAME, name, bit, bytes) +1
	SUMS_N = 0 PTCP_DIGESTS(X)
#undef X
};

/* State of one algorithm: a context of OpenSSL, one of xxhash, or a number. */
union sum {
	EVP_MD_CTX *evp;
	XXH3_state_t *xxh;
	uint32_t number;
};

struct sums {
	unsigned digests;
	union sum of[SUMS_N];
};

/* ---- The kinds of algorithms ---- */

struct sum_kind {
	const char *name;
	size_t bytes;
	const EVP_MD *(*evp)(void); /* OpenSSL's; NULL: another library's */
	int (*begin)(const struct sum_kind *k, union sum *s, struct ptcp_err *e);
	void (*add)(union sum *s, const void *p, size_t n);
	void (*end)(union sum *s, uint8_t *out);
	void (*release)(union sum *s); /* NULL: nothing */
};

static int evp_begin(const struct sum_kind *k, union sum *s, struct ptcp_err *e)
{
	if ((s->evp = EVP_MD_CTX_new()) == NULL)
		return err_nomem(e);
	if (EVP_DigestInit_ex(s->evp, k->evp(), NULL) == 1)
		return 0;
	return err_set(e, PTCP_EUSAGE, "%s: the OpenSSL of this host does not offer it (choose another digest)",
	    k->name);
}

static void evp_add(union sum *s, const void *p, size_t n) { EVP_DigestUpdate(s->evp, p, n); }
static void evp_end(union sum *s, uint8_t *out) { EVP_DigestFinal_ex(s->evp, out, NULL); }
static void evp_release(union sum *s) { EVP_MD_CTX_free(s->evp); }

static int xxh_begin(const struct sum_kind *k, union sum *s, struct ptcp_err *e)
{
	(void)k;
	if ((s->xxh = XXH3_createState()) == NULL)
		return err_nomem(e);
	XXH3_64bits_reset(s->xxh);
	return 0;
}

static void put_number(uint8_t *out, uint64_t n, unsigned bytes)
{
	while (bytes-- > 0)
		*out++ = (uint8_t)(n >> 8 * bytes);
}

static void xxh_add(union sum *s, const void *p, size_t n) { XXH3_64bits_update(s->xxh, p, n); }
static void xxh_end(union sum *s, uint8_t *out) { put_number(out, XXH3_64bits_digest(s->xxh), 8); }
static void xxh_release(union sum *s) { XXH3_freeState(s->xxh); }

static int crc_begin(const struct sum_kind *k, union sum *s, struct ptcp_err *e)
{
	(void)k;
	(void)e;
	s->number = 0;
	return 0;
}

static int adler_begin(const struct sum_kind *k, union sum *s, struct ptcp_err *e)
{
	(void)k;
	(void)e;
	s->number = 1;
	return 0;
}

static void crc_add(union sum *s, const void *p, size_t n) { s->number = crc32c_add(s->number, p, n); }
static void adler_add(union sum *s, const void *p, size_t n) { s->number = adler32_add(s->number, p, n); }
static void number_end(union sum *s, uint8_t *out) { put_number(out, s->number, 4); }

#define OF_OPENSSL(name) name, evp_begin, evp_add, evp_end, evp_release
#define SUM_KIND_SHA256  OF_OPENSSL(EVP_sha256)
#define SUM_KIND_SHA512  OF_OPENSSL(EVP_sha512)
#define SUM_KIND_SHA1    OF_OPENSSL(EVP_sha1)
#define SUM_KIND_MD5     OF_OPENSSL(EVP_md5)
#define SUM_KIND_BLAKE2B OF_OPENSSL(EVP_blake2b512)
#define SUM_KIND_ADLER32 NULL, adler_begin, adler_add, number_end, NULL
#define SUM_KIND_CRC32C  NULL, crc_begin, crc_add, number_end, NULL
#define SUM_KIND_XXH3    NULL, xxh_begin, xxh_add, xxh_end, xxh_release

static const struct sum_kind kinds[] = {
#define X(NAME, name, bit, bytes) [SUM_##NAME] = { name, bytes, SUM_KIND_##NAME },
	PTCP_DIGESTS(X)
#undef X
};

/* ---- Several at a time ---- */

#define EACH_SUM(digests, i) for (unsigned i = 0; i < SUMS_N; i++) if (((digests) & 1u << i) != 0)

size_t sums_bytes(unsigned digests)
{
	size_t n = 0;

	EACH_SUM(digests, i)
		n += kinds[i].bytes;
	return n;
}

static unsigned sum_named(const char *name, size_t n)
{
	unsigned i;

	for (i = 0; i < SUMS_N; i++)
		if (strlen(kinds[i].name) == n && memcmp(kinds[i].name, name, n) == 0)
			return 1u << i;
	return 0;
}

unsigned sums_named(const char *names)
{
	unsigned all = 0, one;
	size_t n;

	do {
		n = strcspn(names, ",");
		one = sum_named(names, n);
		all |= one;
		names += n;
	} while (one != 0 && *names++ != '\0');
	return one != 0 ? all : 0;
}

int sums_new(struct sums **out, unsigned digests, struct ptcp_err *e)
{
	struct sums *s = calloc(1, sizeof *s);
	int r = 0;

	if (s == NULL)
		return err_nomem(e);
	EACH_SUM(digests, i)
		if (r == 0) {
			s->digests |= 1u << i;
			r = kinds[i].begin(&kinds[i], &s->of[i], e);
		}
	if (r < 0)
		sums_free(s);
	else
		*out = s;
	return r;
}

void sums_free(struct sums *s)
{
	if (s == NULL)
		return;
	EACH_SUM(s->digests, i)
		if (kinds[i].release != NULL)
			kinds[i].release(&s->of[i]);
	free(s);
}

void sums_add(struct sums *s, const void *p, size_t n)
{
	EACH_SUM(s->digests, i)
		kinds[i].add(&s->of[i], p, n);
}

size_t sums_end(struct sums *s, uint8_t out[SUMS_BYTES_MAX])
{
	size_t n = 0;

	EACH_SUM(s->digests, i) {
		kinds[i].end(&s->of[i], out + n);
		n += kinds[i].bytes;
	}
	return n;
}

/* ---- Expected digests ---- */

bool sums_expected_parse(struct sums_expected *out, const char *text)
{
	const char *colon = strchr(text, ':');
	char name[16];
	size_t n, i;

	*out = (struct sums_expected){ 0 };
	if (colon == NULL || (size_t)(colon - text) >= sizeof name)
		return false;
	memcpy(name, text, (size_t)(colon - text));
	name[colon - text] = '\0';
	out->digest = sums_named(name);
	n = 2 * sums_bytes(out->digest);
	if (out->digest == 0 || strchr(name, ',') != NULL || strlen(colon + 1) != n ||
	    strspn(colon + 1, "0123456789abcdefABCDEF") != n)
		return false;
	for (i = 0; i < n; i++)
		out->hex[i] = (char)tolower((unsigned char)colon[1 + i]);
	return true;
}

int sums_expected_check(const struct sums_expected *x, unsigned digests, const char *hex, struct ptcp_err *e)
{
	size_t n = strlen(x->hex), before = 2 * sums_bytes(digests & (x->digest - 1));

	if (x->digest == 0 || memcmp(hex + before, x->hex, n) == 0)
		return 0;
	EACH_SUM(x->digest, i)
		err_set(e, PTCP_EVERIFY, "the %s is %.*s, and another was expected (name the file that has it)",
		    kinds[i].name, (int)n, hex + before);
	return PTCP_EVERIFY;
}

int sums_expected_check_data(const struct sums_expected *x, const void *p, size_t n, struct ptcp_err *e)
{
	uint8_t value[SUMS_BYTES_MAX];
	char hex[2 * SUMS_BYTES_MAX + 1];
	struct sums *s;
	int r;

	if ((r = sums_new(&s, x->digest, e)) < 0)
		return r;
	sums_add(s, p, n);
	text_hex(hex, value, sums_end(s, value));
	sums_free(s);
	return sums_expected_check(x, x->digest, hex, e);
}
