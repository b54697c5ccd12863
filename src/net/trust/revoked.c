#include "net/trust/revoked.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/identity.h"
#include "net/trust/trust_lines.h"

void serial_text(char out[SERIAL_TEXT_BYTES], uint64_t serial)
{
	snprintf(out, SERIAL_TEXT_BYTES, "%016" PRIx64, serial);
}

bool serial_parse(const char *text, uint64_t *serial)
{
	if (strlen(text) != SERIAL_TEXT_BYTES - 1 || strspn(text, "0123456789abcdef") != SERIAL_TEXT_BYTES - 1)
		return false;
	*serial = strtoull(text, NULL, 16);
	return *serial != 0;
}

int revoked_find(const char *dir, const char *fingerprint, uint64_t serial, struct ptcp_err *e)
{
	struct trust_lines l;
	char *first, *rest;
	uint64_t number;
	int r;

	if ((r = trust_lines_open(&l, dir, "revoked", e)) <= 0)
		return r;
	r = 0;
	/* To the end even after a match: the order of the lines does not decide whether a malformed one is told. */
	while (r >= 0 && trust_lines_next(&l, &first, &rest)) {
		if (identity_fingerprint_ok(first))
			r |= strcmp(first, fingerprint) == 0;
		else if (serial_parse(first, &number))
			r |= serial != 0 && number == serial;
		else
			r = err_set(e, PTCP_ECONFIG, "revoked, line %u: neither a fingerprint nor the serial number of "
			    "a certificate (correct it: nobody is trusted until then)", l.n);
	}
	return trust_lines_close(&l, r, e);
}

int revoked_set(const char *dir, const char *fingerprint, uint64_t serial, bool remove, struct ptcp_err *e)
{
	char path[TRUST_PATH_BYTES], number[SERIAL_TEXT_BYTES];
	const char *what = fingerprint != NULL ? fingerprint : number;
	int r;

	serial_text(number, serial);
	if ((r = trust_path(path, dir, "revoked", e)) < 0)
		return r;
	if (remove && access(path, F_OK) < 0 && errno == ENOENT)
		return 0;
	return trust_lines_replace(dir, "revoked", what, NULL, remove ? NULL : what, e);
}
