#include "net/trust/certificate.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/atomic_file.h"
#include "core/byteorder.h"
#include "core/err.h"
#include "core/fd.h"
#include "core/text.h"
#include "core/userdir.h"
#include "net/trust/trust_lines.h"

/* The signed text: a prefix of no other text signed by ptcp, then the certificate without signature. */
static const char purpose[] = "ptcp certificate v1"; /* signed with its NUL */
static const char marker[] = "ptcp-certificate";

enum { READ_ONLY = 1, NO_RELAY = 2, WRITE_ONCE = 4, FLAGS = READ_ONLY | NO_RELAY | WRITE_ONCE };
/* Offsets of the fields of fixed size; the name follows, then the root, each behind a byte with its length. */
enum { AT_KIND, AT_FLAGS, AT_SERIAL, AT_FROM = AT_SERIAL + 8, AT_UNTIL = AT_FROM + 8,
	AT_QUOTA = AT_UNTIL + 8, AT_ISSUER = AT_QUOTA + 8, AT_SUBJECT = AT_ISSUER + 32, AT_NAME = AT_SUBJECT + 32 };

_Static_assert(AT_NAME + 2 * CERTIFICATE_TEXT_BYTES + IDENTITY_SIGNATURE_BYTES <= CERTIFICATE_MAX_BYTES, "room");

static size_t put_text(uint8_t *p, const char *text)
{
	size_t n = strlen(text);

	p[0] = (uint8_t)n;
	memcpy(p + 1, text, n);
	return 1 + n;
}

static size_t put(uint8_t *p, const struct certificate *c)
{
	size_t n = AT_NAME;

	p[AT_KIND] = (uint8_t)c->kind;
	p[AT_FLAGS] = (uint8_t)((c->read_only ? READ_ONLY : 0) | (c->no_relay ? NO_RELAY : 0) |
	    (c->write_once ? WRITE_ONCE : 0));
	put_u64(p + AT_SERIAL, c->serial);
	put_u64(p + AT_FROM, c->from_s);
	put_u64(p + AT_UNTIL, c->until_s);
	put_u64(p + AT_QUOTA, c->quota_bytes);
	memcpy(p + AT_ISSUER, c->issuer, sizeof c->issuer);
	identity_digest(p + AT_SUBJECT, c->subject);
	n += put_text(p + n, c->name);
	n += put_text(p + n, c->root);
	return n;
}

static size_t signed_text(uint8_t out[sizeof purpose + CERTIFICATE_MAX_BYTES], const uint8_t *p, size_t n)
{
	memcpy(out, purpose, sizeof purpose);
	memcpy(out + sizeof purpose, p, n);
	return sizeof purpose + n;
}

int certificate_sign(uint8_t out[CERTIFICATE_MAX_BYTES], size_t *n, struct certificate *c, const struct identity *ca,
    struct ptcp_err *e)
{
	uint8_t text[sizeof purpose + CERTIFICATE_MAX_BYTES];
	size_t body;
	int r;

	if ((r = identity_key(c->issuer, ca, e)) < 0)
		return r;
	body = put(out, c);
	*n = body + IDENTITY_SIGNATURE_BYTES;
	return identity_sign(out + body, ca, text, signed_text(text, out, body), e);
}

/* A text without NUL; returns its bytes with the length, or 0. */
static size_t get_text(char *to, const uint8_t *p, size_t n)
{
	if (n == 0 || p[0] > n - 1 || memchr(p + 1, '\0', p[0]) != NULL)
		return 0;
	memcpy(to, p + 1, p[0]);
	to[p[0]] = '\0';
	return 1u + p[0];
}

size_t certificate_decode(struct certificate *c, const uint8_t *p, size_t n)
{
	size_t at = AT_NAME, got;

	if (n < AT_NAME || (p[AT_KIND] != CERTIFICATE_CLIENT && p[AT_KIND] != CERTIFICATE_SERVER) ||
	    (p[AT_FLAGS] & ~FLAGS) != 0)
		return 0;
	*c = (struct certificate){ .kind = p[AT_KIND], .read_only = (p[AT_FLAGS] & READ_ONLY) != 0,
		.no_relay = (p[AT_FLAGS] & NO_RELAY) != 0, .write_once = (p[AT_FLAGS] & WRITE_ONCE) != 0,
		.serial = get_u64(p + AT_SERIAL), .from_s = get_u64(p + AT_FROM), .until_s = get_u64(p + AT_UNTIL),
		.quota_bytes = get_u64(p + AT_QUOTA) };
	memcpy(c->issuer, p + AT_ISSUER, sizeof c->issuer);
	identity_digest_text(c->subject, p + AT_SUBJECT);
	if ((got = get_text(c->name, p + at, n - at)) == 0 || !text_is_word(c->name)) /* a name stands in logs */
		return 0;
	at += got;
	if ((got = get_text(c->root, p + at, n - at)) == 0)
		return 0;
	at += got;
	return n - at >= IDENTITY_SIGNATURE_BYTES ? at + IDENTITY_SIGNATURE_BYTES : 0;
}

bool certificate_is_signed(const uint8_t *p, size_t n)
{
	uint8_t text[sizeof purpose + CERTIFICATE_MAX_BYTES];
	size_t body = n - IDENTITY_SIGNATURE_BYTES;
	struct certificate c;

	return n > IDENTITY_SIGNATURE_BYTES && n <= CERTIFICATE_MAX_BYTES && certificate_decode(&c, p, n) == n &&
	    identity_verify(c.issuer, text, signed_text(text, p, body), p + body);
}

/* ---- Time ---- */

static const char *certificate_time_text(char out[CERTIFICATE_TIME_BYTES], uint64_t s)
{
	time_t t = (time_t)s;
	struct tm tm;

	if (s > (uint64_t)INT64_MAX || gmtime_r(&t, &tm) == NULL ||
	    strftime(out, CERTIFICATE_TIME_BYTES, "%Y-%m-%d %H:%M:%S UTC", &tm) == 0)
		strcpy(out, "the end of time");
	return out;
}

int certificate_check_time(const struct certificate *c, uint64_t now_s, const char *clock, struct ptcp_err *e)
{
	char from[CERTIFICATE_TIME_BYTES], until[CERTIFICATE_TIME_BYTES], now[CERTIFICATE_TIME_BYTES];

	if (now_s >= c->from_s && now_s < c->until_s)
		return 0;
	certificate_time_text(from, c->from_s);
	certificate_time_text(until, c->until_s);
	certificate_time_text(now, now_s);
	return err_set(e, PTCP_EREFUSED, "the certificate of %.*s is valid from %s to %s, and %s clock says %s (check "
	    "the clock, or have the authority sign again)", 60, c->name, from, until, clock, now);
}

/* ---- Lines of text ---- */

void certificate_line(char out[CERTIFICATE_LINE_BYTES], const uint8_t *p, size_t n)
{
	int at = sprintf(out, "%s ", marker);

	EVP_EncodeBlock((unsigned char *)out + at, p, (int)n);
}

int certificate_parse(uint8_t out[CERTIFICATE_MAX_BYTES], size_t *n, const char *line, struct ptcp_err *e)
{
	uint8_t bytes[CERTIFICATE_LINE_BYTES];
	struct certificate c;
	size_t text;
	int got = -1;

	line += strspn(line, " \t\r\n");
	if (strncmp(line, marker, sizeof marker - 1) == 0 && line[sizeof marker - 1] == ' ') {
		line += sizeof marker;
		text = strcspn(line, " \t\r\n");
		if (text > 0 && text % 4 == 0 && text <= (CERTIFICATE_MAX_BYTES + 2) / 3 * 4) {
			got = EVP_DecodeBlock(bytes, (const unsigned char *)line, (int)text);
			got -= line[text - 1] != '=' ? 0 : line[text - 2] != '=' ? 1 : 2;
		}
	}
	if (got <= 0 || certificate_decode(&c, bytes, (size_t)got) != (size_t)got || got > CERTIFICATE_MAX_BYTES)
		return err_set(e, PTCP_EUSAGE, "not a certificate (a line that begins with ptcp-certificate, as ptcp "
		    "key sign prints it)");
	memcpy(out, bytes, (size_t)got);
	*n = (size_t)got;
	return 0;
}

/* ---- The file of this host's certificates ---- */

static void append(struct certificates *all, const uint8_t *p, size_t n)
{
	memcpy(all->bytes + all->n, p, n);
	all->n += n;
}

int certificates_load(struct certificates *out, const char *dir, struct ptcp_err *e)
{
	uint8_t one[CERTIFICATE_MAX_BYTES];
	struct trust_lines l;
	struct ptcp_err why;
	unsigned count = 0;
	size_t n;
	int r;

	out->n = 0;
	if ((r = trust_lines_open(&l, dir, "certificates", e)) <= 0)
		return r;
	while (r >= 0 && trust_lines_raw(&l)) {
		if (l.line[strspn(l.line, " \t\r\n")] == '\0' || l.line[0] == '#')
			continue;
		if (certificate_parse(one, &n, l.line, &why) < 0)
			r = err_set(e, PTCP_ECONFIG, "certificates, line %u: %s", l.n, why.msg);
		else if (count++ == CERTIFICATES_MAX)
			r = err_set(e, PTCP_ECONFIG, "certificates: more than %d (remove lines)", CERTIFICATES_MAX);
		else
			append(out, one, n);
	}
	return trust_lines_close(&l, r < 0 ? r : 0, e);
}

static int write_lines(const char *path, const struct certificates *all, struct ptcp_err *e)
{
	char line[CERTIFICATE_LINE_BYTES];
	struct atomic_file f;
	struct certificate c;
	size_t at, n;

	if (!atomic_file_begin(&f, path))
		return err_sys(e, PTCP_ECONFIG, "writing %s", path);
	for (at = 0; at < all->n && (n = certificate_decode(&c, all->bytes + at, all->n - at)) > 0; at += n) {
		certificate_line(line, all->bytes + at, n);
		fprintf(f.f, "%s\n", line);
	}
	return atomic_file_end(&f, true, true) ? 0 : err_sys(e, PTCP_ECONFIG, "writing %s", path);
}

int certificates_add(const char *dir, const uint8_t *p, size_t n, struct ptcp_err *e)
{
	char path[TRUST_PATH_BYTES];
	struct certificates old, all = { .n = 0 };
	struct certificate new, c;
	unsigned count = 0;
	size_t at, got;
	int lock, r;

	if (n == 0 || certificate_decode(&new, p, n) != n)
		return err_set(e, PTCP_EUSAGE, "not a certificate");
	if ((r = trust_path(path, dir, "certificates", e)) < 0 || (lock = r = userdir_lock(path, e)) < 0)
		return r;
	if ((r = certificates_load(&old, dir, e)) == 0) {
		for (at = 0; at < old.n && (got = certificate_decode(&c, old.bytes + at, old.n - at)) > 0; at += got)
			if (c.kind != new.kind || memcmp(c.issuer, new.issuer, sizeof c.issuer) != 0) {
				append(&all, old.bytes + at, got);
				count++;
			}
		if (count == CERTIFICATES_MAX)
			r = err_set(e, PTCP_EUSAGE, "certificates: no room for more than %d (remove lines of %s)",
			    CERTIFICATES_MAX, path);
		else
			append(&all, p, n);
	}
	r = r < 0 ? r : write_lines(path, &all, e);
	fd_close(&lock);
	return r;
}
