/* Certificates: keys of authorities, signing, certificates of the local host. */
#include <ptcp/ptcp.h>
#include <string.h>

#include "core/err.h"
#include "core/opts.h"
#include "core/text.h"
#include "net/tls.h"
#include "net/trust/certificate.h"
#include "net/trust/known_hosts.h"
#include "net/trust/revoked.h"

_Static_assert(CERTIFICATE_LINE_BYTES <= PTCP_CERTIFICATE_BYTES, "a line fits");

void ptcp_certificate_init(struct ptcp_certificate *c) { *c = (struct ptcp_certificate){ .size = sizeof *c }; }

int ptcp_authority_generate(const char *path, char fingerprint[PTCP_FINGERPRINT_BYTES], struct ptcp_err *e)
{
	struct identity id;
	int r;

	if ((r = identity_file(&id, path, true, e)) < 0)
		return r;
	strcpy(fingerprint, id.fingerprint);
	identity_fini(&id);
	return 0;
}

int ptcp_authority_show(const char *path, char fingerprint[PTCP_FINGERPRINT_BYTES], struct ptcp_err *e)
{
	struct identity id;
	int r;

	if ((r = identity_file(&id, path, false, e)) < 0)
		return r;
	strcpy(fingerprint, id.fingerprint);
	identity_fini(&id);
	return 0;
}

/* ---- Signing ---- */

/* Relative, without "..": links made by other clients must not change the meaning of the path. */
static bool root_ok(const char *s)
{
	const char *p;

	if (s[0] == '/' || s[0] == '\0' || strlen(s) >= CERTIFICATE_TEXT_BYTES)
		return false;
	for (p = s; (p = strstr(p, "..")) != NULL; p += 2)
		if ((p == s || p[-1] == '/') && (p[2] == '\0' || p[2] == '/'))
			return false;
	return true;
}

static int authority_check(const struct ptcp_certificate *c, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];

	if (c->fingerprint == NULL || !identity_fingerprint_ok(c->fingerprint))
		return err_set(e, PTCP_EUSAGE, "%s: not a fingerprint (SHA256: and 43 characters; ptcp key show prints "
		    "the fingerprint of a host)", text_escape(shown, sizeof shown,
		    c->fingerprint != NULL ? c->fingerprint : ""));
	if ((c->name == NULL) == (c->hosts == NULL))
		return err_set(e, PTCP_EUSAGE,
		    "a certificate has the name of a client (--name), or the hosts of a server (--hosts)");
	if (c->name != NULL && (!text_is_word(c->name) || strlen(c->name) >= CERTIFICATE_NAME_BYTES))
		return err_set(e, PTCP_EUSAGE, "--name %s: must be a single word of at most %d printable characters",
		    text_escape(shown, sizeof shown, c->name), CERTIFICATE_NAME_BYTES - 1);
	if (c->hosts != NULL && (!text_is_word(c->hosts) || strlen(c->hosts) >= CERTIFICATE_TEXT_BYTES ||
	    !known_hosts_patterns_ok(c->hosts)))
		return err_set(e, PTCP_EUSAGE, "--hosts %s: not names, addresses or patterns of hosts, separated by "
		    "commas, without ports, brackets around addresses, or a ! in front, of up to %d characters (such "
		    "as *.site.org,192.0.2.7)", text_escape(shown, sizeof shown, c->hosts), CERTIFICATE_TEXT_BYTES - 1);
	if (c->read_only && c->write_once)
		return err_set(e, PTCP_EUSAGE, "--read-only and --write-once: nothing would be permitted (choose one)");
	if (c->hosts != NULL && (c->read_only || c->write_once || c->no_relay || c->root != NULL || c->quota_bytes > 0))
		return err_set(e, PTCP_EUSAGE, "the certificate of a server gives no permissions (leave out --root, "
		    "--quota, --read-only, --write-once and --no-relay, or give --name in place of --hosts)");
	if (c->root != NULL && !root_ok(c->root))
		return err_set(e, PTCP_EUSAGE, "--root %s: not a relative path (the root is beneath the one that each "
		    "server gives to the authority)", text_escape(shown, sizeof shown, c->root));
	if (c->from_s < 0 || c->until_s <= c->from_s)
		return err_set(e, PTCP_EUSAGE, "a certificate must end after it begins");
	return 0;
}

int ptcp_certificate_sign(const char *key_path, const struct ptcp_certificate *o, char line[PTCP_CERTIFICATE_BYTES],
    struct ptcp_err *e)
{
	uint8_t bytes[CERTIFICATE_MAX_BYTES], serial[8];
	struct ptcp_certificate all;
	struct certificate c;
	struct identity ca;
	size_t n;
	int r;

	ptcp_certificate_init(&all);
	if ((r = opts_copy(&all, sizeof all, o, "ptcp_certificate_init", e)) < 0 ||
	    (r = authority_check(&all, e)) < 0 || (r = tls_random(serial, sizeof serial, e)) < 0)
		return r;
	c = (struct certificate){ .kind = all.hosts != NULL ? CERTIFICATE_SERVER : CERTIFICATE_CLIENT,
		.read_only = all.read_only, .no_relay = all.no_relay, .write_once = all.write_once,
		.quota_bytes = all.quota_bytes, .from_s = (uint64_t)all.from_s, .until_s = (uint64_t)all.until_s };
	memcpy(&c.serial, serial, sizeof serial);
	c.serial |= c.serial == 0;
	strcpy(c.subject, all.fingerprint);
	strcpy(c.name, all.hosts != NULL ? all.hosts : all.name);
	strcpy(c.root, all.root != NULL ? all.root : "");
	if ((r = identity_file(&ca, key_path, false, e)) < 0)
		return r;
	if ((r = certificate_sign(bytes, &n, &c, &ca, e)) == 0)
		certificate_line(line, bytes, n);
	identity_fini(&ca);
	return r;
}

/* ---- Certificates of the local host ---- */

static int check_signature(const uint8_t *bytes, size_t n, struct ptcp_err *e)
{
	return certificate_is_signed(bytes, n) ? 0 : err_set(e, PTCP_EUSAGE,
	    "the certificate: invalid signature, damaged or forged (copy the line again)");
}

int ptcp_certificate_install(const char *config_dir, const char *line, struct ptcp_err *e)
{
	uint8_t bytes[CERTIFICATE_MAX_BYTES];
	struct certificate c;
	struct identity id;
	size_t n;
	int r;

	if ((r = certificate_parse(bytes, &n, line, e)) < 0 || (r = identity_load(&id, config_dir, false, e)) < 0)
		return r;
	certificate_decode(&c, bytes, n);
	if (strcmp(c.subject, id.fingerprint) != 0)
		r = err_set(e, PTCP_EUSAGE, "the certificate is for the key %s, and this host has %s (have the "
		    "authority sign for this host, as its user)", c.subject, id.fingerprint);
	else if ((r = check_signature(bytes, n, e)) == 0)
		r = certificates_add(config_dir, bytes, n, e);
	identity_fini(&id);
	return r;
}

static void list_one(const struct certificate *c, ptcp_certificate_fn *each, void *arg)
{
	char issuer[PTCP_FINGERPRINT_BYTES];
	struct ptcp_certificate out;
	bool server = c->kind == CERTIFICATE_SERVER;

	if (identity_key_fingerprint(issuer, c->issuer, NULL) < 0)
		return;
	ptcp_certificate_init(&out);
	out.fingerprint = c->subject;
	out.authority = issuer;
	out.name = server ? NULL : c->name;
	out.hosts = server ? c->name : NULL;
	out.root = c->root[0] != '\0' ? c->root : NULL;
	out.read_only = c->read_only;
	out.no_relay = c->no_relay;
	out.write_once = c->write_once;
	out.quota_bytes = c->quota_bytes;
	out.from_s = c->from_s <= INT64_MAX ? (int64_t)c->from_s : INT64_MAX;
	out.until_s = c->until_s <= INT64_MAX ? (int64_t)c->until_s : INT64_MAX;
	serial_text(out.serial, c->serial);
	each(arg, &out);
}

int ptcp_certificate_read(const char *line, ptcp_certificate_fn *each, void *arg, struct ptcp_err *e)
{
	uint8_t bytes[CERTIFICATE_MAX_BYTES];
	struct certificate c;
	size_t n;
	int r;

	if ((r = certificate_parse(bytes, &n, line, e)) < 0 || (r = check_signature(bytes, n, e)) < 0)
		return r;
	certificate_decode(&c, bytes, n);
	list_one(&c, each, arg);
	return 0;
}

int ptcp_certificates_each(const char *config_dir, ptcp_certificate_fn *each, void *arg, struct ptcp_err *e)
{
	const struct certificates *all;
	struct identity id;
	struct certificate c;
	size_t at, n;
	int r;

	if ((r = identity_load(&id, config_dir, false, e)) < 0)
		return r;
	all = &id.certificates;
	for (at = 0; at < all->n && (n = certificate_decode(&c, all->bytes + at, all->n - at)) > 0; at += n)
		list_one(&c, each, arg);
	identity_fini(&id);
	return 0;
}

int ptcp_certificate_revoke(const char *config_dir, const char *serial, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	struct identity id;
	uint64_t number;
	int r;

	if (!serial_parse(serial, &number))
		return err_set(e, PTCP_EUSAGE, "%s: not the serial number of a certificate (16 hexadecimal digits)",
		    text_escape(shown, sizeof shown, serial));
	if ((r = identity_load(&id, config_dir, false, e)) < 0) /* creates the directory */
		return r;
	identity_fini(&id);
	r = revoked_set(config_dir, NULL, number, false, e);
	return r < 0 ? r : 0;
}
