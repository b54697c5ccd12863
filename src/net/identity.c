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

#include "core/userdir.h"
#include "net/sign.h"

#define PREFIX "SHA256:"
#define BASE64_CHARS 43

static int ssl_error(struct ptcp_err *e, const char *what)
{
	unsigned long code = ERR_get_error();
	const char *why = ERR_reason_error_string(code);

	ERR_clear_error();
	return err_set(e, PTCP_ECONFIG, "%s: %s", what, why != NULL ? why : "OpenSSL failed");
}

int identity_fingerprint(char out[PTCP_FINGERPRINT_BYTES], X509 *cert, struct ptcp_err *e)
{
	unsigned char hash[32], *der = NULL;
	int n = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(cert), &der);

	if (n <= 0 || EVP_Digest(der, (size_t)n, hash, NULL, EVP_sha256(), NULL) != 1) {
		OPENSSL_free(der);
		return ssl_error(e, "could not hash a public key");
	}
	OPENSSL_free(der);
	sign_digest_text(out, hash);
	return 0;
}

bool identity_fingerprint_ok(const char *text)
{
	static const char base64[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	return strncmp(text, PREFIX, strlen(PREFIX)) == 0 &&
	    strspn(text + strlen(PREFIX), base64) == BASE64_CHARS &&
	    /* 43 characters have two bits more than a SHA-256, which are zero. */
	    strchr("AEIMQUYcgkosw048", text[strlen(PREFIX) + BASE64_CHARS - 1]) != NULL &&
	    text[strlen(PREFIX) + BASE64_CHARS] == '\0';
}

/* A certificate around the key; its fields mean nothing, peers pin the key. */
static X509 *self_signed(EVP_PKEY *key)
{
	X509 *x = X509_new();
	X509_NAME *name;

	if (x == NULL)
		return NULL;
	name = X509_get_subject_name(x);
	if (X509_set_version(x, 2) && ASN1_INTEGER_set(X509_get_serialNumber(x), 1) &&
	    ASN1_TIME_set_string(X509_getm_notBefore(x), "19700101000000Z") &&
	    ASN1_TIME_set_string(X509_getm_notAfter(x), "99991231235959Z") &&
	    X509_set_pubkey(x, key) &&
	    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"ptcp",
	    -1, -1, 0) &&
	    X509_set_issuer_name(x, name) && X509_sign(x, key, NULL))
		return x;
	X509_free(x);
	return NULL;
}

/* Private by permission and ownership? */
static int check_private(int fd, const char *path, struct ptcp_err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(e, PTCP_ECONFIG, "reading %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, PTCP_ECONFIG, "%s: not a regular file (move it away; ptcp key generate makes a new one)", path);
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return err_set(e, PTCP_ECONFIG, "%s: belongs to another user (chown it, or make "
		    "a new one)", path);
	if ((st.st_mode & 077) != 0)
		return err_set(e, PTCP_ECONFIG, "%s: others can read this key (chmod 600 it, and "
		    "make a new one if they may have)", path);
	return 0;
}

/* OpenSSL's own would ask the terminal. */
static int no_passphrase(char *buf, int n, int writing, void *arg)
{
	(void)buf;
	(void)n;
	(void)writing;
	(void)arg;
	return -1;
}

static int read_identity(struct identity *id, const char *path, struct ptcp_err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), r;
	char text[BUFSIZ];
	FILE *f;

	if (fd < 0)
		return err_sys(e, PTCP_ECONFIG, "opening %s", path);
	if ((r = check_private(fd, path, e)) < 0) {
		close(fd);
		return r;
	}
	if ((f = fdopen(fd, "r")) == NULL) {
		close(fd);
		return err_nomem(e);
	}
	setbuf(f, text); /* in ours, to be wiped: the key is in it */
	id->key = PEM_read_PrivateKey(f, NULL, no_passphrase, NULL);
	id->cert = PEM_read_X509(f, NULL, no_passphrase, NULL);
	fclose(f);
	explicit_bzero(text, sizeof text);
	if (id->key == NULL || id->cert == NULL || !EVP_PKEY_is_a(id->key, "ED25519") ||
	    X509_check_private_key(id->cert, id->key) != 1) {
		ERR_clear_error();
		return err_set(e, PTCP_ECONFIG, "%s: not an identity of ptcp, or damaged (restore "
		    "it, or remove it and run ptcp key generate)", path);
	}
	return identity_fingerprint(id->fingerprint, id->cert, e);
}

static int write_all(int fd, EVP_PKEY *key, X509 *cert)
{
	FILE *f = fdopen(fd, "w");
	char text[BUFSIZ];
	int ok;

	if (f == NULL) {
		close(fd);
		return -1;
	}
	setbuf(f, text);
	errno = EIO; /* what OpenSSL cannot do has none */
	ok = PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL) && PEM_write_X509(f, cert) &&
	    fflush(f) == 0 && fsync(fd) == 0;
	ok = fclose(f) == 0 && ok;
	explicit_bzero(text, sizeof text);
	return ok ? 0 : -1;
}

/* Written beside and linked, so that two first uses at once agree on one key. */
static int make_identity(const char *dir, const char *path, bool *existed, struct ptcp_err *e)
{
	char temp[USERDIR_BYTES + 64];
	EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	X509 *cert = key != NULL ? self_signed(key) : NULL;
	int fd, r = 0;

	if (cert == NULL) {
		EVP_PKEY_free(key);
		return ssl_error(e, "could not make a key");
	}
	snprintf(temp, sizeof temp, "%s.XXXXXX", path);
	if ((r = userdir_make(dir, e)) < 0)
		goto out;
	if ((fd = mkostemp(temp, O_CLOEXEC)) < 0) {
		r = err_sys(e, PTCP_ECONFIG, "making a key in %s", dir);
		goto out;
	}
	if (write_all(fd, key, cert) < 0)
		r = err_sys(e, PTCP_ECONFIG, "writing %s", path);
	else if (link(temp, path) < 0) {
		*existed = errno == EEXIST;
		if (!*existed)
			r = err_sys(e, PTCP_ECONFIG, "making %s", path);
	}
	unlink(temp);
out:
	X509_free(cert);
	EVP_PKEY_free(key);
	return r;
}

/* What root made in a directory of somebody else's, that one's daemon could not read. */
static int check_owner(const char *dir, struct ptcp_err *e)
{
	struct stat st;

	if (geteuid() != 0 || stat(dir, &st) < 0 || st.st_uid == 0)
		return 0;
	return err_set(e, PTCP_ECONFIG, "%s: belongs to the user %u (run this as that user, by runuser or su, or set "
	    "XDG_CONFIG_HOME to a place of root's)", dir, (unsigned)st.st_uid);
}

int identity_load(struct identity *out, const char *dir, bool only_new, struct ptcp_err *e)
{
	char where[USERDIR_BYTES], path[USERDIR_BYTES + 32];
	struct identity id = { 0 };
	bool there, existed = false;
	int r;

	if ((r = userdir_config(where, dir, e)) < 0 || (r = check_owner(where, e)) < 0)
		return r;
	snprintf(path, sizeof path, "%s/identity.pem", where);
	there = access(path, F_OK) == 0;
	if (!there && (r = make_identity(where, path, &existed, e)) < 0)
		return r;
	if (only_new && (there || existed))
		return err_set(e, PTCP_EUSAGE, "%s: there is an identity already (remove it first "
		    "if it is to be replaced; those who trust it must be told)", path);
	if ((r = read_identity(&id, path, e)) < 0) {
		identity_fini(&id);
		return r;
	}
	*out = id;
	return 0;
}

int identity_new(struct identity *out, struct ptcp_err *e)
{
	struct identity id = { .key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519") };
	int r = 0;

	id.cert = id.key != NULL ? self_signed(id.key) : NULL;
	if (id.cert == NULL)
		r = ssl_error(e, "could not make a key");
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
