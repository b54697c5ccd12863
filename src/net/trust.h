/* Whom we trust: known_hosts (daemons a client has accepted) and authorized_clients (clients a
 * daemon lets in). Read anew at each use, so that changes hold at once. Blocks on small files;
 * any thread. `dir` as in userdir_config(). What cannot be read or parsed admits nobody, nor does a file that is
 * not the user's or root's, or that others can write, or replace in its directory. */
#ifndef NET_TRUST_H
#define NET_TRUST_H

#include <ptcp/ptcp.h>

#include "core/err.h"
#include "core/log.h"

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

enum known { KNOWN_NOT, KNOWN_SAME, KNOWN_OTHER };

/* `host` is "NAME:PORT", "[V6]:PORT"; compared without case. KNOWN_OTHER: there are lines
 * for the host and none has this fingerprint. Negative PTCP_ECONFIG if the file cannot be read. */
int known_hosts_check(const char *dir, const char *host, const char *fingerprint, struct ptcp_err *e);
/* Whether there is just one fingerprint for the host; it then is in `fingerprint`. */
bool known_hosts_only(const char *dir, const char *host, char fingerprint[PTCP_FINGERPRINT_BYTES]);
/* Appends a line unless it is there; safe among several processes. */
int known_hosts_add(const char *dir, const char *host, const char *fingerprint, struct ptcp_err *e);

#define TRUST_NAME_BYTES 64
#define TRUST_ROOT_BYTES 4096

struct authorization {
	bool read_only, no_relay;
	char root[TRUST_ROOT_BYTES]; /* "" : the daemon's */
	char name[TRUST_NAME_BYTES]; /* "" : none */
};
/* Whether the identity may connect as of now, and then what it may: *a. */
typedef bool trust_admits_fn(void *arg, const char *fingerprint, struct authorization *a);

/* 1 and `out` filled, or 0: not authorised (also when its first line is malformed, or when the file
 * cannot be read or trusted; these are logged). */
int authorized_find(const char *dir, const char *fingerprint, struct authorization *out,
    const struct log *log);
/* How authorized_clients was when it was looked at last; zeroed: never. */
struct trust_stamp {
	bool there;
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec changed;
};
/* Whether it is another one, or gone, or there again since then. One stat(2). */
bool authorized_changed(const char *dir, struct trust_stamp *last);
/* Each client that authorized_find() would admit, also a second line of one. Nothing without a list that can be
 * read. */
void authorized_each(const char *dir, void (*each)(void *arg, const struct authorization *a), void *arg,
    const struct log *log);
/* Adds or replaces, removes (`p` NULL). 1: it was there, 0: it was not. */
int authorized_set(const char *dir, const char *fingerprint, const struct ptcp_permission *p,
    struct ptcp_err *e);

#endif
