#include "wire/grant.h"

#include <assert.h>

#include "wire/codec.h"

static const char prefix[] = "ptcp grant v1"; /* its NUL included */

static uint8_t *write_bytes(uint8_t *p, const uint8_t *bytes, size_t n)
{
	return write_span(p, (struct span){ bytes, n });
}

/* All but the signature. */
static uint8_t *write_fields(uint8_t *p, const struct wire_grant *g)
{
	assert(g->path.n <= WIRE_PATH_MAX);
	p = write_bytes(p, g->issuer, sizeof g->issuer);
	p = write_bytes(p, g->grantee, sizeof g->grantee);
	p = write_bytes(p, g->audience, sizeof g->audience);
	p = write_u8(p, g->mode);
	p = write_u64(p, g->expiry_s);
	p = write_bytes(p, g->nonce, sizeof g->nonce);
	p = write_u16(p, (uint16_t)g->path.n);
	return write_span(p, g->path);
}

size_t wire_grant_text(uint8_t *out, const struct wire_grant *g)
{
	uint8_t *p = write_bytes(out, (const uint8_t *)prefix, sizeof prefix);

	return (size_t)(write_fields(p, g) - out);
}

size_t wire_grant_encode(uint8_t *out, const struct wire_grant *g)
{
	uint8_t *p = write_fields(out + WIRE_HEADER_BYTES, g);

	p = write_bytes(p, g->signature, sizeof g->signature);
	return frame_finish(out, p, WIRE_GRANT);
}

static void take(uint8_t *out, struct reader *r, size_t n)
{
	const uint8_t *p = read_bytes(r, n);

	if (p != NULL)
		memcpy(out, p, n);
}

int wire_grant_decode(struct wire_grant *g, struct span in, struct ptcp_err *e)
{
	struct reader r = reader_of(in);
	struct wire_grant d = { 0 };
	bool ok;
	int err;

	take(d.issuer, &r, sizeof d.issuer);
	take(d.grantee, &r, sizeof d.grantee);
	take(d.audience, &r, sizeof d.audience);
	d.mode = read_u8(&r);
	d.expiry_s = read_u64(&r);
	take(d.nonce, &r, sizeof d.nonce);
	d.path = read_span(&r, read_u16(&r));
	take(d.signature, &r, sizeof d.signature);
	ok = d.mode >= WIRE_GRANT_READ && d.mode <= WIRE_GRANT_PROBE && d.path.n <= WIRE_PATH_MAX &&
	    (d.path.n == 0 || (d.mode != WIRE_GRANT_PROBE && memchr(d.path.p, '\0', d.path.n) == NULL));
	if ((err = frame_done(&r, ok, WIRE_GRANT, e)) < 0)
		return err;
	*g = d;
	return 0;
}
