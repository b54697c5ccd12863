#include "net/trust/trust.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/text.h"
#include "core/units.h"
#include "net/trust/certificate.h"
#include "net/trust/revoked.h"

static const char clients_file[] = "authorized_clients", authority_mark[] = "@cert-authority";

/* ---- Lines ---- */

/* Writes " KEY=VALUE" (s may be NULL), percent-encoding bytes that would break the line. */
static void write_value(FILE *f, const char *key, const char *s)
{
	if (s == NULL)
		return;
	fprintf(f, " %s=", key);
	for (; *s != '\0'; s++)
		fprintf(f, (unsigned char)*s <= ' ' || *s == '%' || *s == '#' || *s == 0x7f ? "%%%02X" : "%c",
		    (unsigned char)*s);
}

/* Parses the words after the fingerprint; false if a word is unknown. */
static bool parse_permission(char *rest, struct authorization *a)
{
	char *w;

	*a = (struct authorization){ 0 };
	if (strchr(rest, TRUST_NUL_MARK) != NULL)
		return false;
	while ((w = trust_word(&rest)) != NULL) {
		if (strcmp(w, "read-only") == 0)
			a->read_only = true;
		else if (strcmp(w, "write-once") == 0)
			a->write_once = true;
		else if (strcmp(w, "no-relay") == 0)
			a->no_relay = true;
		else if (strncmp(w, "root=/", 6) == 0) {
			if (!text_percent_decode(a->root, sizeof a->root, w + 5))
				return false;
		} else if (strncmp(w, "quota=", 6) == 0) {
			if (units_parse_size(w + 6, &a->quota_bytes) < 0 || a->quota_bytes == 0)
				return false;
		} else if (strncmp(w, "name=", 5) == 0) {
			if (!text_percent_decode(a->name, sizeof a->name, w + 5))
				return false;
		} else {
			return false;
		}
	}
	return true;
}

bool authorization_same_place(const struct authorization *a, const struct authorization *b)
{
	return strcmp(a->root, b->root) == 0 && strcmp(a->below, b->below) == 0;
}

/* ---- Finding ---- */

/* The rights of the certificate, none beyond those of the authority's line. */
static void restrict_by(struct authorization *a, const struct certificate *c)
{
	a->read_only |= c->read_only;
	a->no_relay |= c->no_relay;
	a->write_once |= c->write_once;
	if (c->quota_bytes > 0 && (a->quota_bytes == 0 || c->quota_bytes < a->quota_bytes))
		a->quota_bytes = c->quota_bytes;
	snprintf(a->below, sizeof a->below, "%s", c->root);
	snprintf(a->name, sizeof a->name, "%.*s", TRUST_NAME_BYTES - 1, c->name);
}

/* Whether the certificate is valid: 1, 0 with `why`, or negative. */
static int check_certificate(const char *dir, const char *authority, const struct trust_peer *peer,
    const struct certificate *c, struct ptcp_err *why)
{
	int r;

	if (certificate_check_time(c, peer->at_s, "this server's", why) < 0)
		return 0;
	if ((r = revoked_find(dir, authority, c->serial, why)) < 0)
		return r;
	if (r == 0)
		return 1;
	err_set(why, PTCP_EREFUSED, "the certificate of %.60s is revoked (ask the server's administrator)", c->name);
	return 0;
}

/* Whether the line of an authority admits the client, by a certificate. */
static int find_certificate(const char *dir, const char *authority, const struct trust_peer *peer,
    struct authorization *a, struct ptcp_err *why)
{
	const uint8_t *p = peer->certificates;
	char issuer[PTCP_FINGERPRINT_BYTES];
	struct certificate c;
	size_t n, left = peer->n;
	int r;

	for (; left > 0 && (n = certificate_decode(&c, p, left)) > 0; p += n, left -= n) {
		if (c.kind != CERTIFICATE_CLIENT || strcmp(c.subject, peer->fingerprint) != 0 ||
		    identity_key_fingerprint(issuer, c.issuer, NULL) < 0 || strcmp(issuer, authority) != 0 ||
		    !certificate_is_signed(p, n))
			continue;
		if ((r = check_certificate(dir, authority, peer, &c, why)) == 0)
			continue;
		if (r > 0) {
			restrict_by(a, &c);
			a->proof.n = n;
			memcpy(a->proof.certificate, p, n);
		}
		return r;
	}
	return 0;
}

static int find_line(const char *dir, struct trust_lines *l, const struct trust_peer *peer, struct authorization *a,
    struct ptcp_err *why, const struct log *log)
{
	char *rest, *first, *authority;
	struct authorization by;
	int admitted = 0, r;

	while (trust_lines_next(l, &first, &rest)) {
		if (strcmp(first, peer->fingerprint) == 0) {
			if (parse_permission(rest, a))
				return 1;
			log_at(log, LOG_ERROR, "trust", "authorized_clients: the line of %s is malformed: refused",
			    first);
			return 0;
		}
		if (admitted != 0 || peer->n == 0 || strcmp(first, authority_mark) != 0 ||
		    (authority = trust_word(&rest)) == NULL)
			continue;
		if (!parse_permission(rest, &by)) {
			log_at(log, LOG_ERROR, "trust",
			    "authorized_clients: line %u, of an authority, is malformed: ignored", l->n);
			continue;
		}
		if ((r = find_certificate(dir, authority, peer, &by, why)) != 0) {
			admitted = r;
			*a = by;
		}
	}
	return admitted;
}

int authorized_find(const char *dir, const struct trust_peer *peer, struct authorization *out, struct ptcp_err *why,
    const struct log *log)
{
	struct authorization a;
	struct ptcp_err e = { .code = 0 };
	struct trust_lines l;
	int found;

	why->code = 0;
	found = revoked_find(dir, peer->fingerprint, 0, &e);
	if (found > 0) {
		err_set(why, PTCP_EREFUSED, "the key %s is revoked (ask the server's administrator)",
		    peer->fingerprint);
		return 0;
	}
	if (found < 0 || (found = trust_lines_open(&l, dir, clients_file, &e)) < 0) {
		log_at(log, LOG_ERROR, "trust", "no client is admitted by authorized_clients: %s", e.msg);
		return found;
	}
	if (found == 0)
		return 0;
	found = trust_lines_close(&l, find_line(dir, &l, peer, &a, why, log), &e);
	if (found < 0)
		log_at(log, LOG_ERROR, "trust", "the client %s is not admitted: %s", peer->fingerprint,
		    e.code != 0 ? e.msg : why->msg);
	if (found > 0) {
		*out = a;
		out->proof.at_s = peer->at_s;
	}
	return found;
}

int authorized_each(const char *dir, void (*each)(void *arg, const char *fingerprint, bool authority,
    const struct authorization *a), void *arg, struct ptcp_err *e)
{
	struct authorization a;
	struct trust_lines l;
	char *rest, *first;
	bool authority;
	int r;

	if ((r = trust_lines_open(&l, dir, clients_file, e)) <= 0)
		return r;
	while (trust_lines_next(&l, &first, &rest)) {
		authority = strcmp(first, authority_mark) == 0;
		if (authority && (first = trust_word(&rest)) == NULL)
			continue;
		if (identity_fingerprint_ok(first) && parse_permission(rest, &a))
			each(arg, first, authority, &a);
	}
	return trust_lines_close(&l, 0, e);
}

int authorized_has_authority(const char *dir, struct ptcp_err *e)
{
	return trust_lines_have(dir, clients_file, authority_mark, e);
}

/* ---- Changing ---- */

static char *permission_line(const char *fingerprint, const struct ptcp_permission *p)
{
	char *line = NULL;
	size_t n;
	FILE *f = open_memstream(&line, &n);

	if (f == NULL)
		return NULL;
	fprintf(f, "%s%s%s", p->authority ? authority_mark : "", p->authority ? " " : "", fingerprint);
	if (p->read_only)
		fputs(" read-only", f);
	if (p->write_once)
		fputs(" write-once", f);
	if (p->no_relay)
		fputs(" no-relay", f);
	write_value(f, "root", p->root);
	if (p->quota_bytes > 0)
		fprintf(f, " quota=%llu", (unsigned long long)p->quota_bytes);
	write_value(f, "name", p->name);
	if (fclose(f) == 0)
		return line;
	free(line);
	return NULL;
}

int authorized_set(const char *dir, const char *fingerprint, const struct ptcp_permission *p,
    struct ptcp_err *e)
{
	char mark[sizeof authority_mark + PTCP_FINGERPRINT_BYTES], *line = NULL;
	int r;

	snprintf(mark, sizeof mark, "%s %s", authority_mark, fingerprint);
	if (p == NULL)
		return trust_lines_replace(dir, clients_file, fingerprint, mark, NULL, e);
	if ((r = revoked_set(dir, fingerprint, 0, true, e)) < 0)
		return r;
	if ((line = permission_line(fingerprint, p)) == NULL)
		return err_nomem(e);
	r = trust_lines_replace(dir, clients_file, p->authority ? mark : fingerprint, NULL, line, e);
	free(line);
	return r;
}

void ptcp_permission_init(struct ptcp_permission *p)
{
	*p = (struct ptcp_permission){ .size = sizeof *p };
}
