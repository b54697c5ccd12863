/* TLS 1.3 contexts, ciphers, and small cryptographic functions. Both ends present Ed25519 certificates; their
 * chains are not verified. The fingerprint identifies a peer; callers check it after every handshake. */
#ifndef NET_TLS_H
#define NET_TLS_H

#include "net/identity.h"

#define ALPN_CONTROL "ptcp/1"
#define ALPN_DATA "ptcp-data/1"
#define ALPN_ROUTE "ptcp-route/1"
#define ALPN_GRANT "ptcp-grant/1"
#define ALPN_JOB "ptcp-job/1"
#define ALPN_MOVER "ptcp-mover/1"

/* `ciphers`: bits 1 << PTCP_CIPHER_*; the TLS ciphers among them are offered or accepted in the order
 * aes128gcm, chacha20, aes256gcm. Without any: PTCP_ECONFIG. */
int tls_new(SSL_CTX **out, const struct identity *id, bool server, unsigned ciphers, struct ptcp_err *e);
/* The TLS name of a cipher; NULL for PTCP_CIPHER_NONE. */
const char *tls_suite(enum ptcp_cipher c);

/* Encryption speed of one core in bit/s, records of 16 KiB, measured for `seconds`; PTCP_EUSAGE for
 * PTCP_CIPHER_NONE. Any thread. */
int tls_cipher_speed(enum ptcp_cipher c, double seconds, double *bps, struct ptcp_err *e);

/* Copies the oldest error of OpenSSL's queue to `e`, empties the queue, returns `code`. */
int tls_error(struct ptcp_err *e, int code, const char *what);

/* 32 bytes of RFC 8446 exporter, label "EXPORTER-ptcp-join", no context. */
int tls_export(SSL *ssl, uint8_t out[32], struct ptcp_err *e);

/* HMAC-SHA256(key, exporter | session | be16(stream)). */
int tls_join_mac(uint8_t out[32], const uint8_t key[32], const uint8_t exporter[32],
    const uint8_t session[16], uint16_t stream);
/* The key in place of `key` for JOINs of a mover with that fingerprint: HMAC-SHA256(key, "ptcp mover v1" NUL | digest
 * of the fingerprint). Only an end of the session can make the key, which vouches for this identity and no other. */
int tls_mover_key(uint8_t out[32], const uint8_t key[32], const char *fingerprint);
/* The same with "ptcp server mover v1", for JOINs at a mover of the acceptor, which is the TLS server. */
int tls_server_mover_key(uint8_t out[32], const uint8_t key[32], const char *fingerprint);
/* A random key for a shared port, as text, and the label that belongs to the key: who knows the label, which
 * connections show in plaintext, cannot find the key. */
#define TLS_SHARE_KEY_BYTES 65
#define TLS_SHARE_LABEL_BYTES 33
int tls_share_key(char key[TLS_SHARE_KEY_BYTES], struct ptcp_err *e);
int tls_share_label(char label[TLS_SHARE_LABEL_BYTES], const char *key, struct ptcp_err *e);
/* In constant time. */
bool tls_mac_equal(const uint8_t a[32], const uint8_t b[32]);
/* SHA-256 in hexadecimal digits. Error: PTCP_ENOMEM. */
#define TLS_DIGEST_BYTES 65
int tls_digest(char out[TLS_DIGEST_BYTES], const void *data, size_t n, struct ptcp_err *e);
/* Random bytes for session names; reports failure. */
int tls_random(uint8_t *out, size_t n, struct ptcp_err *e);

#endif
