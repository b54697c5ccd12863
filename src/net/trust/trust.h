/* authorized_clients: the clients admitted by a server, by fingerprint, or by the certificate of an authority:
 *
 *   FINGERPRINT [read-only | write-once] [no-relay] [root=DIR] [quota=SIZE] [name=NAME]
 *   @cert-authority FINGERPRINT [the same: the most that its certificates permit]
 *
 * Read at each use, so that changes take effect at once. Blocks on small files; any thread. `dir` as for
 * userdir_config(). Unreadable or malformed entries admit nobody; the same holds for a file of another user than the
 * caller or root, and a file writable or replaceable by other users. */
#ifndef NET_TRUST_H
#define NET_TRUST_H

#include <ptcp/ptcp.h>

#include "core/log.h"
#include "net/identity.h"
#include "net/trust/trust_lines.h"

#define TRUST_NAME_BYTES 64
#define TRUST_ROOT_BYTES 4096
#define TRUST_BELOW_BYTES 256

/* How a client was admitted. */
struct trust_proof {
	uint64_t at_s; /* time of the examination of its certificate, perhaps expired since */
	size_t n;      /* size of the certificate; 0: the client has a line of its own */
	uint8_t certificate[CERTIFICATE_MAX_BYTES];
};

struct authorization {
	bool read_only, no_relay;
	bool write_once; /* the client may add files, and nothing else */
	char root[TRUST_ROOT_BYTES];  /* "": the server's root */
	char below[TRUST_BELOW_BYTES]; /* directory of the client beneath the root, where other
	                                  clients may write; "": the root itself */
	char name[TRUST_NAME_BYTES];  /* "": none */
	uint64_t quota_bytes;         /* quota of the client's directory; 0: no limit */
	struct trust_proof proof;
};
/* Whether both give the client the same directory. */
bool authorization_same_place(const struct authorization *a, const struct authorization *b);

/* A client to be admitted. */
struct trust_peer {
	const char *fingerprint;
	const uint8_t *certificates; /* n bytes */
	size_t n;
	uint64_t at_s;               /* time of the required validity */
};

/* Whether the client may still be connected, by the proof of its admission; if so fills *now, possibly the owner of the
 * proof. */
typedef bool trust_admits_fn(void *arg, const char *fingerprint, const struct trust_proof *proof,
    struct authorization *now);

/* 1 and `out` filled; 0: not authorized, also when its first line is malformed, which is logged; negative: a file
 * cannot be read or trusted, which is logged. With 0, why->code is 0, or `why` explains the refusal of a key, or of the
 * certificate of a trusted authority. */
int authorized_find(const char *dir, const struct trust_peer *peer, struct authorization *out, struct ptcp_err *why,
    const struct log *log);
/* Calls `each` for every well-formed line, in the order of the file; `authority`: a line of an authority. PTCP_ECONFIG:
 * the file cannot be read or trusted, or a part of it could not be read. */
int authorized_each(const char *dir, void (*each)(void *arg, const char *fingerprint, bool authority,
    const struct authorization *a), void *arg, struct ptcp_err *e);
/* Whether a line of an authority is there; PTCP_ECONFIG as above. */
int authorized_has_authority(const char *dir, struct ptcp_err *e);
/* Adds or replaces a client or authority (and no longer revokes its key), or removes both (`p` NULL). Returns whether
 * the file had listed it, or PTCP_ECONFIG. */
int authorized_set(const char *dir, const char *fingerprint, const struct ptcp_permission *p,
    struct ptcp_err *e);

#endif
