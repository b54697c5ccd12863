/* known_hosts: the servers accepted by a client, by fingerprint, or by the certificate of an authority:
 *
 *   HOST:PORT FINGERPRINT
 *   @cert-authority PATTERN[,PATTERN..] FINGERPRINT
 *
 * Read at each use. Blocks on small files; any thread; `dir` as for userdir_config(). Refuses a file of another user
 * than the caller or root, and a file writable or replaceable by other users. */
#ifndef NET_KNOWN_HOSTS_H
#define NET_KNOWN_HOSTS_H

#include "net/identity.h"

enum known_host { HOST_UNKNOWN, HOST_MATCHES, HOST_DIFFERS };

/* `host` is "NAME:PORT" or "[V6]:PORT", compared without case. HOST_DIFFERS: known_hosts lists the host, with other
 * fingerprints only. HOST_UNKNOWN: e->msg says why a certificate of an authority in known_hosts does not count, or is
 * empty. PTCP_EREFUSED: the key is revoked, or the host is not listed and its certificate, by an authority trusted for
 * the host, is not valid now. PTCP_ECONFIG: a file cannot be read, or the line of an authority is malformed. */
int known_hosts_check(const char *dir, const char *host, const char *fingerprint, const struct certificates *c,
    uint64_t now_s, struct ptcp_err *e);
/* PTCP_EREFUSED: the key is revoked, which no pin overrules. PTCP_ECONFIG: the file cannot be read. */
int known_hosts_check_revoked(const char *dir, const char *host, const char *fingerprint, struct ptcp_err *e);
/* Whether known_hosts lists exactly one fingerprint for the host, and copies it. */
bool known_hosts_single(const char *dir, const char *host, char fingerprint[PTCP_FINGERPRINT_BYTES]);
/* Whether each of the patterns, separated by commas, can match a host: no port, no brackets around an address. The
 * patterns are those of glob.h with dots as separators: `*` and `?` match no dot, `**` matches any number of labels. */
bool known_hosts_patterns_ok(const char *patterns);
/* Whether a line of an authority is there; PTCP_ECONFIG: the file cannot be read. */
int known_hosts_has_authority(const char *dir, struct ptcp_err *e);
/* Appends a line unless the file contains it; safe among several processes. */
int known_hosts_add(const char *dir, const char *host, const char *fingerprint, struct ptcp_err *e);
/* Removes the lines of the host, or with `authority` those of the patterns, and adds a line (fingerprint NULL: none).
 * Returns whether the file had listed it; PTCP_EUSAGE: malformed; PTCP_EREFUSED: the key is revoked. */
int known_hosts_set(const char *dir, const char *host, bool authority, const char *fingerprint, struct ptcp_err *e);

#endif
