#include "net/trust/known_hosts.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/fd.h"
#include "core/glob.h"
#include "core/text.h"
#include "net/trust/certificate.h"
#include "net/trust/revoked.h"
#include "net/trust/trust_lines.h"

#define HOST_TEXT_BYTES 300

static const char marker[] = "@cert-authority";

#define HOST_LINE_BYTES (HOST_TEXT_BYTES + sizeof marker)

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

/* Turns the labels of a name into the components of a path, so that `*` in a pattern of labels matches none of the dots
 * (RFC 6125, section 6.4.3). The asterisk may here be a part of any label. */
static void labels_to_path(char *name)
{
	for (; (name = strchr(name, '.')) != NULL; name++)
		*name = '/';
}

/* Parses the first pattern of a list separated by commas, in lower case. NULL: malformed. */
static struct glob *first_pattern(const char *patterns)
{
	size_t i, n = strcspn(patterns, ",");
	char one[HOST_TEXT_BYTES + 1];
	struct glob *g;

	if (n == 0 || n >= HOST_TEXT_BYTES || memchr(patterns, '/', n) != NULL)
		return NULL;
	one[0] = '/'; /* the pattern applies to the whole name */
	for (i = 0; i < n; i++)
		one[1 + i] = (char)tolower((unsigned char)patterns[i]);
	one[1 + n] = '\0';
	labels_to_path(one);
	return glob_new(&g, one, NULL) < 0 ? NULL : g;
}

/* `patterns`: separated by commas, of the shell. */
static bool matches(const char *patterns, const char *host)
{
	char labels[HOST_TEXT_BYTES];
	bool found = false;

	if (strchr(host, '/') != NULL)
		return false;
	snprintf(labels, sizeof labels, "%s", host);
	labels_to_path(labels);
	while (*patterns != '\0' && !found) {
		struct glob *g = first_pattern(patterns);

		found = g != NULL && glob_match(g, labels, false);
		glob_free(g);
		patterns += strcspn(patterns, ",");
		patterns += *patterns == ',';
	}
	return found;
}

bool known_hosts_patterns_ok(const char *patterns)
{
	const char *colon, *end;
	struct glob *g;

	do {
		end = patterns + strcspn(patterns, ",");
		/* a port follows, unless there is a second one */
		colon = memchr(patterns, ':', (size_t)(end - patterns));
		if (patterns[0] == '!' || patterns[0] == '#' || (colon != NULL && (patterns[0] == '[' ||
		    memchr(colon + 1, ':', (size_t)(end - colon - 1)) == NULL)) ||
		    (g = first_pattern(patterns)) == NULL)
			return false;
		glob_free(g);
		patterns = end + 1;
	} while (*end == ',');
	return true;
}

/* A host that presents certificates. */
struct host_lookup {
	const char *dir, *fingerprint;
	char host[HOST_TEXT_BYTES]; /* "": malformed */
	const struct certificates *all; /* NULL: none are looked at */
	uint64_t now_s;
	struct ptcp_err why;        /* code 0: `msg` is a reason why a certificate does not count, or empty */
};

/* Whether the authority, trusted for hosts of these patterns, has signed a certificate of the host. */
static int check_certificates(struct host_lookup *u, const char *patterns, const char *authority)
{
	char issuer[PTCP_FINGERPRINT_BYTES];
	int found = HOST_UNKNOWN, r;
	struct certificate c;
	struct ptcp_err why;
	size_t at, n;

	for (at = 0; found != HOST_MATCHES && at < u->all->n &&
	    (n = certificate_decode(&c, u->all->bytes + at, u->all->n - at)) > 0; at += n) {
		if (c.kind != CERTIFICATE_SERVER || strcmp(c.subject, u->fingerprint) != 0 ||
		    identity_key_fingerprint(issuer, c.issuer, NULL) < 0 || strcmp(issuer, authority) != 0 ||
		    !certificate_is_signed(u->all->bytes + at, n))
			continue;
		if (!matches(patterns, u->host))
			r = err_set(&why, 0, "known_hosts trusts the authority of its certificate for %.100s only",
			    patterns);
		else if (!matches(c.name, u->host))
			r = err_set(&why, 0, "its certificate is for %.100s only", c.name);
		else if ((r = certificate_check_time(&c, u->now_s, "this host's", &why)) == 0 &&
		    (r = revoked_find(u->dir, authority, c.serial, &why)) > 0)
			r = err_set(&why, PTCP_EREFUSED, "the certificate of %s is revoked (see the file revoked)",
			    u->host);
		else if (r == 0)
			found = HOST_MATCHES;
		if (found != HOST_MATCHES && u->why.code == 0)
			u->why = why;
	}
	return found;
}

/* ---- Lookups ---- */

/* A line of an authority: HOST_MATCHES, HOST_UNKNOWN, or PTCP_ECONFIG. */
static int check_authority(struct host_lookup *u, const char *first, char *rest, unsigned line, struct ptcp_err *e)
{
	char *patterns = trust_word(&rest), *authority = trust_word(&rest);

	if (strcmp(first, marker) != 0 || patterns == NULL || authority == NULL ||
	    !known_hosts_patterns_ok(patterns) || !identity_fingerprint_ok(authority))
		return err_set(e, PTCP_ECONFIG, "known_hosts, line %u: not @cert-authority, host patterns without "
		    "ports, and a fingerprint (correct the line: no host is trusted until then)", line);
	return u->all == NULL || u->host[0] == '\0' ? HOST_UNKNOWN : check_certificates(u, patterns, authority);
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
	struct host_lookup u = { .dir = dir, .fingerprint = fingerprint, .all = c, .now_s = now_s };
	int found = HOST_UNKNOWN, r;
	struct trust_lines l;
	char *rest, *name, *fp;

	if (e != NULL)
		e->msg[0] = '\0';
	if ((r = known_hosts_check_revoked(dir, host, fingerprint, e)) < 0)
		return r;
	if ((r = trust_lines_open(&l, dir, "known_hosts", e)) <= 0)
		return r < 0 ? r : HOST_UNKNOWN;
	if (!host_part(u.host, host))
		u.host[0] = '\0';
	/* To the end even after a match: the order of the lines does not decide whether a malformed one is told. */
	for (r = 0; r >= 0 && trust_lines_next(&l, &name, &rest);) {
		if (name[0] == '@')
			r = check_authority(&u, name, rest, l.n, e);
		else if (strcasecmp(name, host) == 0 && (fp = trust_word(&rest)) != NULL)
			r = strcmp(fp, fingerprint) == 0 ? HOST_MATCHES : HOST_DIFFERS;
		else
			continue;
		if (r < 0 || r == HOST_MATCHES || (r == HOST_DIFFERS && found == HOST_UNKNOWN))
			found = r;
	}
	if (found == HOST_UNKNOWN && u.why.code != 0)
		found = err_set(e, u.why.code, "%s: %s", host, u.why.msg);
	else if (found == HOST_UNKNOWN && e != NULL)
		*e = u.why;
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
	return trust_lines_have(dir, "known_hosts", marker, e);
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
	errno = EIO; /* a partial write sets no errno */
	if (n >= (int)sizeof line)
		r = err_set(e, PTCP_ECONFIG, "the name of the host is too long for known_hosts (use its address)");
	else if (write(fd, line, (size_t)n) != n) /* a single write keeps lines whole even for
	                                             programs without the lock */
		r = err_sys(e, PTCP_ECONFIG, "writing %s", path);
	fd_close(&fd);
	return r;
}

int known_hosts_add(const char *dir, const char *host, const char *fingerprint, struct ptcp_err *e)
{
	char path[TRUST_PATH_BYTES];
	int lock, r;

	if ((r = trust_path(path, dir, "known_hosts", e)) < 0)
		return r;
	if (!host_ok(host))
		return err_set(e, PTCP_ECONFIG,
		    "the name of the host cannot be written to known_hosts (use its address)");
	if ((lock = userdir_lock(path, e)) < 0)
		return lock;
	r = known_hosts_check(dir, host, fingerprint, NULL, 0, e);
	if (r == HOST_MATCHES)
		r = 0;
	else if (r >= 0)
		r = append_host(path, host, fingerprint, e);
	fd_close(&lock);
	return r;
}

/* ---- Replacing ---- */

/* The first words of a line of the host, as they are written there, or of an authority for exactly these patterns. */
static int find_line(const char *dir, const char *host, bool authority, char out[HOST_LINE_BYTES], struct ptcp_err *e)
{
	char *rest, *name, *patterns;
	struct trust_lines l;
	int r;

	if ((r = trust_lines_open(&l, dir, "known_hosts", e)) <= 0)
		return r;
	for (r = 0; r == 0 && trust_lines_next(&l, &name, &rest);) {
		patterns = authority && strcmp(name, marker) == 0 ? trust_word(&rest) : NULL;
		if (authority ? patterns != NULL && strcasecmp(patterns, host) == 0 : strcasecmp(name, host) == 0)
			r = snprintf(out, HOST_LINE_BYTES, "%s%s%s", authority ? marker : "", authority ? " " : "",
			    authority ? patterns : name) < (int)HOST_LINE_BYTES ? 1 :
			    err_set(e, PTCP_ECONFIG, "known_hosts, line %u: too long (remove it with an editor)", l.n);
	}
	return trust_lines_close(&l, r, e);
}

static int forget_host(const char *dir, const char *host, bool authority, struct ptcp_err *e)
{
	char words[HOST_LINE_BYTES];
	int r, found = 0;

	while ((r = find_line(dir, host, authority, words, e)) > 0 &&
	    (r = trust_lines_replace(dir, "known_hosts", words, NULL, NULL, e)) > 0)
		found = 1;
	return r < 0 ? r : found;
}

int known_hosts_set(const char *dir, const char *host, bool authority, const char *fingerprint, struct ptcp_err *e)
{
	char line[HOST_LINE_BYTES + PTCP_FINGERPRINT_BYTES + sizeof marker + 2], shown[TEXT_NAME_BYTES];
	int r, found;

	if (authority ? !text_is_word(host) || !known_hosts_patterns_ok(host) : !host_ok(host))
		return err_set(e, PTCP_EUSAGE, authority ?
		    "%.200s: not host names, addresses or patterns, by commas, without ports (such as *.site.org)" :
		    "%.200s: not a host that known_hosts can list (use its address)",
		    text_escape(shown, sizeof shown, host));
	if (!authority && fingerprint != NULL && strpbrk(host, "*?,") != NULL)
		return err_set(e, PTCP_EUSAGE, "%.200s: one fingerprint for several hosts (name one host, or the "
		    "fingerprint of an authority)", text_escape(shown, sizeof shown, host));
	if (strlen(host) >= HOST_LINE_BYTES - sizeof marker)
		return err_set(e, PTCP_EUSAGE, "the name of the host is too long for known_hosts (use its address)");
	if (fingerprint != NULL && (r = known_hosts_check_revoked(dir, host, fingerprint, e)) < 0)
		return r;
	if ((found = forget_host(dir, host, authority, e)) < 0 || fingerprint == NULL)
		return found;
	snprintf(line, sizeof line, "%s%s%s %s", authority ? marker : "", authority ? " " : "", host, fingerprint);
	r = trust_lines_replace(dir, "known_hosts", line, NULL, line, e);
	return r < 0 ? r : found;
}
