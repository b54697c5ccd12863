#include "conn/join_proof.h"

#include <string.h>

#include "net/tls.h"

static int mac_of(uint8_t mac[32], struct chan *c, const struct wire_join *j, const uint8_t key[32], struct ptcp_err *e)
{
	uint8_t exporter[32];
	int r;

	if ((r = chan_export(c, exporter, e)) == 0)
		r = tls_join_mac(mac, key, exporter, j->session, j->stream);
	explicit_bzero(exporter, sizeof exporter);
	return r;
}

int join_proof_write(struct chan *c, const uint8_t session[WIRE_SESSION_BYTES], const uint8_t key[32], unsigned stream,
    struct ptcp_err *e)
{
	struct wire_join f = { .stream = (uint16_t)stream };
	uint8_t frame[WIRE_JOIN_MAX_BYTES];
	int r;

	memcpy(f.session, session, sizeof f.session);
	if ((r = mac_of(f.mac, c, &f, key, e)) == 0)
		chan_write(c, frame, wire_join_encode(frame, &f));
	return r;
}

bool join_proof_valid(struct chan *c, const struct wire_join *j, const uint8_t key[32], const char *peer)
{
	bool own = peer == NULL || strcmp(chan_fingerprint(c), peer) == 0, valid;
	uint8_t mac[32], derived[32];

	valid = (own || tls_mover_key(derived, key, chan_fingerprint(c)) == 0) &&
	    mac_of(mac, c, j, own ? key : derived, NULL) == 0 && tls_mac_equal(mac, j->mac);
	explicit_bzero(derived, sizeof derived);
	explicit_bzero(mac, sizeof mac);
	return valid;
}
