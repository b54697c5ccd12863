#include "net/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/atomic_file.h"
#include "core/fd.h"
#include "core/userdir.h"
#include "net/tls.h"
#include "net/trust/certificate.h"

#define PREFIX "SHA256:"
#define BASE64_CHARS 43

/* "SHA256:.." of a key's SubjectPublicKeyInfo in DER, of n bytes, which is freed. */
static int key_fingerprint(char out[PTCP_FINGERPRINT_BYTES], unsigned char *der, int n, int code, struct ptcp_err *e)
{
	unsigned char hash[32];
	bool ok = n > 0 && EVP_Digest(der, (size_t)n, hash, NULL, EVP_sha256(), NULL) == 1;

	OPENSSL_free(der);
	if (!ok)
		return tls_error(e, code, "hashing a public key");
	identity_digest_text(out, hash);
	return 0;
}

int identity_fingerprint(char out[PTCP_FINGERPRINT_BYTES], X509 *cert, struct ptcp_err *e)
{
	unsigned char *der = NULL;
	int n = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(cert), &der);

	return key_fingerprint(out, der, n, PTCP_ECONFIG, e);
}

static EVP_PKEY *public_key(const uint8_t key[IDENTITY_KEY_BYTES])
{
	return EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key, IDENTITY_KEY_BYTES);
}

int identity_key_fingerprint(char out[PTCP_FINGERPRINT_BYTES], const uint8_t key[IDENTITY_KEY_BYTES],
    struct ptcp_err *e)
{
	EVP_PKEY *k = public_key(key);
	unsigned char *der = NULL;
	int n = k != NULL ? i2d_PUBKEY(k, &der) : 0;

	EVP_PKEY_free(k);
	return key_fingerprint(out, der, n, PTCP_EPROTO, e);
}

void identity_digest(uint8_t out[32], const char *fingerprint)
{
	unsigned char text[44], bytes[33];

	memcpy(text, fingerprint + strlen(PREFIX), BASE64_CHARS);
	text[BASE64_CHARS] = '=';
	EVP_DecodeBlock(bytes, text, sizeof text);
	memcpy(out, bytes, 32);
}

void identity_digest_text(char out[PTCP_FINGERPRINT_BYTES], const uint8_t digest[32])
{
	unsigned char text[48];

	EVP_EncodeBlock(text, digest, 32); /* 44 characters, the last is '=' */
	snprintf(out, PTCP_FINGERPRINT_BYTES, PREFIX "%.43s", text);
}

bool identity_fingerprint_ok(const char *text)
{
	static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	return strncmp(text, PREFIX, strlen(PREFIX)) == 0 &&
	    strspn(text + strlen(PREFIX), base64) == BASE64_CHARS &&
	    /* 43 characters have two bits more than a SHA-256; both are zero. */
	    strchr("AEIMQUYcgkosw048", text[strlen(PREFIX) + BASE64_CHARS - 1]) != NULL &&
	    text[strlen(PREFIX) + BASE64_CHARS] == '\0';
}

/* The extension with the certificates of authorities: an arc of a UUID, which needs no registration. */
#define CERTIFICATES_OID "2.25.287168112331603299343543187337533932535"

static bool add_certificates(X509 *x, const struct certificates *c)
{
	ASN1_OBJECT *oid = OBJ_txt2obj(CERTIFICATES_OID, 1);
	ASN1_OCTET_STRING *value = ASN1_OCTET_STRING_new();
	X509_EXTENSION *ext = NULL;
	bool ok = oid != NULL && value != NULL && ASN1_OCTET_STRING_set(value, c->bytes, (int)c->n) == 1 &&
	    (ext = X509_EXTENSION_create_by_OBJ(NULL, oid, 0, value)) != NULL && X509_add_ext(x, ext, -1) == 1;

	X509_EXTENSION_free(ext);
	ASN1_OCTET_STRING_free(value);
	ASN1_OBJECT_free(oid);
	return ok;
}

void identity_presented(struct certificates *out, const X509 *cert)
{
	ASN1_OBJECT *oid = OBJ_txt2obj(CERTIFICATES_OID, 1);
	int at = oid != NULL ? X509_get_ext_by_OBJ(cert, oid, -1) : -1;
	const ASN1_OCTET_STRING *value = at >= 0 ? X509_EXTENSION_get_data(X509_get_ext(cert, at)) : NULL;
	int n = value != NULL ? ASN1_STRING_length(value) : 0;

	ASN1_OBJECT_free(oid);
	ERR_clear_error();
	out->n = 0;
	if (n <= 0 || (size_t)n > sizeof out->bytes)
		return;
	out->n = (size_t)n;
	memcpy(out->bytes, ASN1_STRING_get0_data(value), out->n);
}

/* An X.509 certificate for the key. Peers pin the key, or examine the certificates of authorities, and ignore all other
 * fields. */
static X509 *self_signed(EVP_PKEY *key, const struct certificates *c)
{
	X509 *x = X509_new();
	X509_NAME *name;

	if (x == NULL)
		return NULL;
	name = X509_get_subject_name(x);
	if ((c->n == 0 || add_certificates(x, c)) &&
	    X509_set_version(x, 2) && ASN1_INTEGER_set(X509_get_serialNumber(x), 1) &&
	    ASN1_TIME_set_string(X509_getm_notBefore(x), "19700101000000Z") &&
	    ASN1_TIME_set_string(X509_getm_notAfter(x), "99991231235959Z") && X509_set_pubkey(x, key) &&
	    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"ptcp", -1, -1, 0) &&
	    X509_set_issuer_name(x, name) && X509_sign(x, key, NULL))
		return x;
	X509_free(x);
	return NULL;
}

/* What to do about a file that is no key. */
#define OF_HOST "restore the file, or move it away and run ptcp key generate"
#define OF_AUTHORITY "name the key file of the authority, which ptcp key generate --ca FILE creates"

/* Refuses a file owned or readable by other users. */
static int check_private(int fd, const char *path, const char *remedy, struct ptcp_err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(e, PTCP_ECONFIG, "reading %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, PTCP_ECONFIG, "%s: not a regular file (%s)", path, remedy);
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return err_set(e, PTCP_ECONFIG, "%s: belongs to another user (chown it, or generate a new key)", path);
	if ((st.st_mode & 077) != 0)
		return err_set(e, PTCP_ECONFIG, "%s: other users can read this key (chmod 600 it, and generate a new "
		    "key if they may have)", path);
	return 0;
}

/* OpenSSL's default would ask on the terminal. */
static int no_passphrase(char *buf, int n, int writing, void *arg)
{
	(void)buf;
	(void)n;
	(void)writing;
	(void)arg;
	return -1;
}

static int read_identity(struct identity *id, const char *path, const char *remedy, struct ptcp_err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), r;
	char text[BUFSIZ];
	FILE *f;

	if (fd < 0)
		return err_sys(e, PTCP_ECONFIG, "opening %s", path);
	if ((r = check_private(fd, path, remedy, e)) < 0) {
		fd_close(&fd);
		return r;
	}
	if ((f = fd_file(&fd, "r")) == NULL)
		return err_nomem(e);
	setbuf(f, text); /* a buffer that we can wipe: it contains the key */
	id->key = PEM_read_PrivateKey(f, NULL, no_passphrase, NULL);
	id->cert = PEM_read_X509(f, NULL, no_passphrase, NULL);
	fclose(f);
	explicit_bzero(text, sizeof text);
	if (id->key == NULL || id->cert == NULL || !EVP_PKEY_is_a(id->key, "ED25519") ||
	    X509_check_private_key(id->cert, id->key) != 1) {
		ERR_clear_error();
		return err_set(e, PTCP_ECONFIG, "%s: not a key of ptcp, or damaged (%s)", path, remedy);
	}
	return identity_fingerprint(id->fingerprint, id->cert, e);
}

/* Takes the descriptor. */
static int write_all(int *fd, EVP_PKEY *key, X509 *cert)
{
	FILE *f = fd_file(fd, "w");
	char text[BUFSIZ];
	int ok;

	if (f == NULL)
		return -1;
	setbuf(f, text);
	errno = EIO; /* OpenSSL sets no errno */
	ok = PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL) && PEM_write_X509(f, cert) &&
	    fflush(f) == 0 && fsync(fileno(f)) == 0;
	ok = fclose(f) == 0 && ok;
	explicit_bzero(text, sizeof text);
	return ok ? 0 : -1;
}

/* Writes a temporary file and links `path` to the file: concurrent first uses agree on one key. */
static int make_identity(const char *dir, const char *path, bool *existed, struct ptcp_err *e)
{
	char temp[USERDIR_BYTES + 64];
	struct identity id;
	int fd, r;

	if ((dir != NULL && (r = userdir_make(dir, e)) < 0) || (r = identity_new(&id, e)) < 0)
		return r;
	snprintf(temp, sizeof temp, "%s.XXXXXX", path);
	if ((fd = mkostemp(temp, O_CLOEXEC)) < 0) {
		r = err_sys(e, PTCP_ECONFIG, "creating %s", path);
	} else {
		if (write_all(&fd, id.key, id.cert) < 0)
			r = err_sys(e, PTCP_ECONFIG, "writing %s", path);
		else if (link(temp, path) < 0 && !(*existed = errno == EEXIST))
			r = err_sys(e, PTCP_ECONFIG, "creating %s", path);
		unlink(temp);
		if (r == 0 && !atomic_file_sync_name(path)) /* peers pin the key: it must survive a power cut */
			r = err_sys(e, PTCP_ECONFIG, "writing %s", path);
	}
	identity_fini(&id);
	return r;
}

/* Refuses to create root-owned files in another user's directory: the user's server could not read them. */
static int check_owner(const char *dir, struct ptcp_err *e)
{
	struct stat st;

	if (geteuid() != 0 || stat(dir, &st) < 0 || st.st_uid == 0)
		return 0;
	return err_set(e, PTCP_ECONFIG, "%s: belongs to the user %u (run ptcp as that user, with runuser or su, or set "
	    "XDG_CONFIG_HOME to a directory of root)", dir, (unsigned)st.st_uid);
}

int identity_load(struct identity *out, const char *dir, bool only_new, struct ptcp_err *e)
{
	char where[USERDIR_BYTES], path[USERDIR_BYTES + 32];
	struct identity id = { 0 };
	struct certificates c;
	bool found, existed = false;
	int r;

	if ((r = userdir_config(where, dir, e)) < 0 || (r = check_owner(where, e)) < 0)
		return r;
	snprintf(path, sizeof path, "%s/identity.pem", where);
	found = access(path, F_OK) == 0;
	if (!found && (r = make_identity(where, path, &existed, e)) < 0)
		return r;
	if (only_new && (found || existed))
		return err_set(e, PTCP_EUSAGE, "%s: an identity exists already (to replace it, remove the file first; "
		    "all hosts that trust it must be told the new fingerprint)", path);
	if ((r = read_identity(&id, path, OF_HOST, e)) < 0 || (r = certificates_load(&c, where, e)) < 0 ||
	    (r = identity_present(&id, &c, e)) < 0) {
		identity_fini(&id);
		return r;
	}
	*out = id;
	return 0;
}

int identity_file(struct identity *out, const char *path, bool create, struct ptcp_err *e)
{
	struct identity id = { 0 };
	bool existed = false;
	int r;

	if (create && (r = make_identity(NULL, path, &existed, e)) < 0)
		return r;
	if (existed)
		return err_set(e, PTCP_EUSAGE, "%s: exists already (a key is never replaced; give another name)", path);
	if ((r = read_identity(&id, path, OF_AUTHORITY, e)) < 0) {
		identity_fini(&id);
		return r;
	}
	*out = id;
	return 0;
}

int identity_present(struct identity *id, const struct certificates *c, struct ptcp_err *e)
{
	X509 *cert;

	if (c->n == 0 && id->certificates.n == 0)
		return 0;
	if ((cert = self_signed(id->key, c)) == NULL)
		return tls_error(e, PTCP_ENOMEM, "adding certificates to the identity");
	X509_free(id->cert);
	id->cert = cert;
	id->certificates = *c;
	return 0;
}

int identity_new(struct identity *out, struct ptcp_err *e)
{
	struct identity id = { .key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519") };
	int r = 0;

	id.cert = id.key != NULL ? self_signed(id.key, &id.certificates) : NULL;
	if (id.cert == NULL)
		r = tls_error(e, PTCP_ECONFIG, "generating a key");
	else
		r = identity_fingerprint(id.fingerprint, id.cert, e);
	if (r < 0)
		identity_fini(&id);
	else
		*out = id;
	return r;
}

void identity_fini(struct identity *id)
{
	EVP_PKEY_free(id->key);
	X509_free(id->cert);
	*id = (struct identity){ 0 };
}

/* ---- Signatures ---- */

int identity_sign(uint8_t out[IDENTITY_SIGNATURE_BYTES], const struct identity *id, const uint8_t *text, size_t n,
    struct ptcp_err *e)
{
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	size_t got = IDENTITY_SIGNATURE_BYTES;
	bool ok = c != NULL && EVP_DigestSignInit(c, NULL, NULL, NULL, id->key) == 1 &&
	    EVP_DigestSign(c, out, &got, text, n) == 1 && got == IDENTITY_SIGNATURE_BYTES;

	EVP_MD_CTX_free(c);
	return ok ? 0 : tls_error(e, PTCP_ECONFIG, "signing with the identity");
}

bool identity_verify(const uint8_t key[IDENTITY_KEY_BYTES], const uint8_t *text, size_t n,
    const uint8_t signature[IDENTITY_SIGNATURE_BYTES])
{
	EVP_PKEY *k = public_key(key);
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	bool ok = k != NULL && c != NULL && EVP_DigestVerifyInit(c, NULL, NULL, NULL, k) == 1 &&
	    EVP_DigestVerify(c, signature, IDENTITY_SIGNATURE_BYTES, text, n) == 1;

	EVP_MD_CTX_free(c);
	EVP_PKEY_free(k);
	ERR_clear_error();
	return ok;
}

int identity_key(uint8_t out[IDENTITY_KEY_BYTES], const struct identity *id, struct ptcp_err *e)
{
	size_t n = IDENTITY_KEY_BYTES;

	if (EVP_PKEY_get_raw_public_key(id->key, out, &n) != 1 || n != IDENTITY_KEY_BYTES)
		return tls_error(e, PTCP_ECONFIG, "reading the public key of the identity");
	return 0;
}
