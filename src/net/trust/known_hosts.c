#include "net/trust/known_hosts.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/glob.h"
#include "core/text.h"
#include "net/trust/certificate.h"
#include "net/trust/revoked.h"
#include "net/trust/trust_lines.h"

#define HOST_TEXT_BYTES 300

/* ---- Certificates ---- */

/* The host of "HOST:PORT" or "[V6]:PORT", in lower case. */
static bool host_part(char out[HOST_TEXT_BYTES], const char *where)
{
	const char *colon = strrchr(where, ':');
	size_t i, n = colon != NULL ? (size_t)(colon - where) : strlen(where);

	if (n > 1 && where[0] == '[' && where[n - 1] == ']') {
		where++;
		n -= 2;
	}
	if (n == 0 || n >= HOST_TEXT_BYTES)
		return false;
	for (i = 0; i < n; i++)
		out[i] = (char)tolower((unsigned char)where[i]);
	out[n] = '\0';
	return true;
}

/* `patterns`: separated by commas, of the shell. */
static bool matches(const char *patterns, const char *host)
{
	char one[HOST_TEXT_BYTES];
	bool found = false;
	size_t n, i;

	for (; *patterns != '\0' && !found; patterns += n + (patterns[n] == ',')) {
		struct glob *g;

		n = strcspn(patterns, ",");
		if (n == 0 || n >= sizeof one)
			continue;
		for (i = 0; i < n; i++)
			one[i] = (char)tolower((unsigned char)patterns[i]);
		one[n] = '\0';
		if (strchr(one, '/') != NULL || glob_new(&g, one, NULL) < 0)
			continue;
		found = glob_match(g, host, false);
		glob_free(g);
	}
	return found;
}

/* Whether the authority, trusted for the host, has signed the host's certificate. */
static int check_certificates(const char *dir, const char *authority, const char *host, const char *fingerprint,
    const struct certificates *all, uint64_t now_s, struct ptcp_err *why)
{
	char issuer[PTCP_FINGERPRINT_BYTES];
	int found = HOST_UNKNOWN, r;
	struct certificate c;
	size_t at, n;

	for (at = 0; found != HOST_MATCHES && at < all->n && (n = certificate_decode(&c, all->bytes + at, all->n - at)) > 0; at += n) {
		if (c.kind != CERTIFICATE_SERVER || strcmp(c.subject, fingerprint) != 0 || !matches(c.name, host) ||
		    identity_key_fingerprint(issuer, c.issuer, NULL) < 0 || strcmp(issuer, authority) != 0 ||
		    !certificate_is_signed(all->bytes + at, n))
			continue;
		if ((r = certificate_check_time(&c, now_s, "this host's", why)) == 0 &&
		    (r = revoked_find(dir, authority, c.serial, why)) > 0)
			r = err_set(why, PTCP_EREFUSED, "the certificate of %s is revoked (see the file revoked)", host);
		found = r < 0 ? r : HOST_MATCHES;
	}
	return found;
}

/* ---- Lookups ---- */

/* A line of an authority: HOST_MATCHES, HOST_UNKNOWN, or negative. */
static int check_authority(const char *dir, char *rest, const char *host, const char *fingerprint,
    const struct certificates *c, uint64_t now_s, struct ptcp_err *why)
{
	char *patterns = trust_word(&rest), *authority = trust_word(&rest), name[HOST_TEXT_BYTES];

	if (c == NULL || patterns == NULL || authority == NULL || !host_part(name, host) || !matches(patterns, name))
		return HOST_UNKNOWN;
	return check_certificates(dir, authority, name, fingerprint, c, now_s, why);
}

int known_hosts_check_revoked(const char *dir, const char *host, const char *fingerprint, struct ptcp_err *e)
{
	int r = revoked_find(dir, fingerprint, 0, e);

	if (r > 0)
		r = err_set(e, PTCP_EREFUSED, "%s: the key %s is revoked (see the file revoked)", host, fingerprint);
	return r;
}

int known_hosts_check(const char *dir, const char *host, const char *fingerprint, const struct certificates *c,
    uint64_t now_s, struct ptcp_err *e)
{
	struct ptcp_err why = { .code = 0 };
	int found = HOST_UNKNOWN, r;
	struct trust_lines l;
	char *rest, *name, *fp;

	if ((r = known_hosts_check_revoked(dir, host, fingerprint, e)) < 0)
		return r;
	if ((r = trust_lines_open(&l, dir, "known_hosts", e)) <= 0)
		return r < 0 ? r : HOST_UNKNOWN;
	while (found != HOST_MATCHES && trust_lines_next(&l, &name, &rest)) {
		if (strcmp(name, "@cert-authority") == 0) {
			if ((r = check_authority(dir, rest, host, fingerprint, c, now_s, &why)) == HOST_MATCHES)
				found = HOST_MATCHES;
		} else if (strcasecmp(name, host) == 0 && (fp = trust_word(&rest)) != NULL) {
			found = strcmp(fp, fingerprint) == 0 ? HOST_MATCHES : HOST_DIFFERS;
		}
	}
	if (found == HOST_UNKNOWN && why.code != 0)
		found = err_set(e, why.code, "%s: %s", host, why.msg);
	return trust_lines_close(&l, found, e);
}

bool known_hosts_single(const char *dir, const char *host, char fingerprint[PTCP_FINGERPRINT_BYTES])
{
	char *rest, *name, *fp;
	struct trust_lines l;
	unsigned n = 0;

	if (trust_lines_open(&l, dir, "known_hosts", NULL) <= 0)
		return false;
	while (trust_lines_next(&l, &name, &rest)) {
		if ((fp = trust_word(&rest)) == NULL || strcasecmp(name, host) != 0 || !identity_fingerprint_ok(fp) ||
		    (n > 0 && strcmp(fp, fingerprint) == 0))
			continue;
		strcpy(fingerprint, fp);
		n++;
	}
	trust_lines_close(&l, 0, NULL);
	return n == 1;
}

int known_hosts_has_authority(const char *dir, struct ptcp_err *e)
{
	return trust_lines_have(dir, "known_hosts", "@cert-authority", e);
}

/* ---- Adding ---- */

/* Whether a line of known_hosts can hold the name. */
static bool host_ok(const char *host)
{
	return text_is_word(host) && host[0] != '#' && host[0] != '@';
}

static int append_host(const char *path, const char *host, const char *fingerprint, struct ptcp_err *e)
{
	char line[512];
	int fd, n, r = 0;

	fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);
	if (fd < 0)
		return err_sys(e, PTCP_ECONFIG, "writing %s", path);
	n = snprintf(line, sizeof line, "%s%s %s\n", trust_ends_in_line(fd) ? "\n" : "", host, fingerprint);
	errno = EIO; /* for a partial write */
	if (n >= (int)sizeof line)
		r = err_set(e, PTCP_ECONFIG, "the name of the host is too long for known_hosts (use its address)");
	else if (write(fd, line, (size_t)n) != n) /* a single write keeps lines whole even for programs without the lock */
		r = err_sys(e, PTCP_ECONFIG, "writing %s", path);
	close(fd);
	return r;
}

int known_hosts_add(const char *dir, const char *host, const char *fingerprint, struct ptcp_err *e)
{
	char path[TRUST_PATH_BYTES];
	int lock, r;

	if ((r = trust_path(path, dir, "known_hosts", e)) < 0)
		return r;
	if (!host_ok(host))
		return err_set(e, PTCP_ECONFIG, "the name of the host cannot be written to known_hosts (use its address)");
	if ((lock = userdir_lock(path, e)) < 0)
		return lock;
	r = known_hosts_check(dir, host, fingerprint, NULL, 0, e);
	if (r == HOST_MATCHES)
		r = 0;
	else if (r >= 0)
		r = append_host(path, host, fingerprint, e);
	close(lock);
	return r;
}
