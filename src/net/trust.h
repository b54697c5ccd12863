/* Trust files: known_hosts (servers accepted by a client) and authorized_clients (clients admitted by a
 * server). Read at each use, so that changes take effect at once. Blocks on small files; any thread. `dir` as
 * for userdir_config(). Unreadable or malformed entries admit nobody, as does a file that is not owned by the
 * user or root, or that other users can write or replace. */
#ifndef NET_TRUST_H
#define NET_TRUST_H

#include <ptcp/ptcp.h>

#include "core/err.h"
#include "core/log.h"

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

enum known_host { HOST_UNKNOWN, HOST_MATCHES, HOST_DIFFERS };

/* `host` is "NAME:PORT" or "[V6]:PORT", compared without case. HOST_DIFFERS: known_hosts lists the host, but
 * not with this fingerprint. PTCP_ECONFIG if the file cannot be read. */
int known_hosts_check(const char *dir, const char *host, const char *fingerprint, struct ptcp_err *e);
/* Whether known_hosts lists exactly one fingerprint for the host, and copies it. */
bool known_hosts_single(const char *dir, const char *host, char fingerprint[PTCP_FINGERPRINT_BYTES]);
/* Appends a line unless the file contains it; safe among several processes. */
int known_hosts_add(const char *dir, const char *host, const char *fingerprint, struct ptcp_err *e);

#define TRUST_NAME_BYTES 64
#define TRUST_ROOT_BYTES 4096

struct authorization {
	bool read_only, no_relay;
	char root[TRUST_ROOT_BYTES]; /* "": the server's root */
	char name[TRUST_NAME_BYTES]; /* "": none */
};
/* Whether the identity may connect now; if so fills *a. */
typedef bool trust_admits_fn(void *arg, const char *fingerprint, struct authorization *a);

/* 1 and `out` filled; 0: not authorized, also when its first line is malformed, which is logged; negative: the file
 * cannot be read or trusted, which is logged. */
int authorized_find(const char *dir, const char *fingerprint, struct authorization *out,
    const struct log *log);
/* Identifies a version of authorized_clients; zeroed: none. */
struct trust_stamp {
	bool exists;
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec changed;
};
/* Whether the file was changed, created or removed since the last call. One stat(2). */
bool authorized_changed(const char *dir, struct trust_stamp *last);
/* Calls `each` for every well-formed line, in the order of the file. PTCP_ECONFIG: the file cannot be read or trusted,
 * or a part of it could not be read. */
int authorized_each(const char *dir, void (*each)(void *arg, const char *fingerprint, const struct authorization *a),
    void *arg, struct ptcp_err *e);
/* Adds or replaces a client, or removes it (`p` NULL). Returns whether the file had listed it, or
 * PTCP_ECONFIG. */
int authorized_set(const char *dir, const char *fingerprint, const struct ptcp_permission *p,
    struct ptcp_err *e);

#endif
