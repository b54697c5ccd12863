/* The file `revoked`: keys and certificates of clients and servers no longer accepted by this host, against all its
 * other files of trust. Read at each use. Any thread; `dir` as for userdir_config(). */
#ifndef NET_REVOKED_H
#define NET_REVOKED_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"

/* 1: the key (of a peer or an authority), or the certificate with this serial number (unless 0), is revoked; 0: not;
 * PTCP_ECONFIG: the file cannot be read or trusted, or has a malformed line, meant to revoke something. */
int revoked_find(const char *dir, const char *fingerprint, uint64_t serial, struct ptcp_err *e);
/* Adds the key, or with `fingerprint` NULL the serial number, or with `remove` removes it. Returns whether the file had
 * listed it, or PTCP_ECONFIG. */
int revoked_set(const char *dir, const char *fingerprint, uint64_t serial, bool remove, struct ptcp_err *e);
/* The text of a serial number, 16 hexadecimal digits, and the reverse. */
#define SERIAL_TEXT_BYTES 17
void serial_text(char out[SERIAL_TEXT_BYTES], uint64_t serial);
bool serial_parse(const char *text, uint64_t *serial);

#endif
