/* JOIN: the first frame on a connection that joins a session or a set of movers. Its MAC proves that the sender knows
 * the key, on this very TLS connection. Control thread. */
#ifndef CONN_JOIN_PROOF_H
#define CONN_JOIN_PROOF_H

#include "net/chan.h"
#include "wire/frame.h"

/* Writes JOIN for this number of a stream, after the handshake. */
int join_proof_write(struct chan *c, const uint8_t session[WIRE_SESSION_BYTES], const uint8_t key[32], unsigned stream,
    struct ptcp_err *e);
/* Whether the MAC of a received JOIN is that of the key, or, from another identity than `peer`, of the key that only
 * the two ends can make for a mover with that identity. NULL: the key serves every identity. */
bool join_proof_valid(struct chan *c, const struct wire_join *j, const uint8_t key[32], const char *peer);

#endif
