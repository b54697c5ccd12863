/* The label of a shared port in a TLS ClientHello (PROTOCOL.md, section 12). Pure: reads bytes that a stranger chose,
 * and keeps nothing. */
#ifndef CONN_CLIENT_HELLO_H
#define CONN_CLIENT_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLIENT_HELLO_MAX_BYTES 4096 /* examined; a longer ClientHello has no label */
#define CLIENT_HELLO_LABEL_BYTES 33 /* 32 hexadecimal digits and NUL */

enum client_hello {
	CLIENT_HELLO_PLAIN, /* no label, or no ClientHello */
	CLIENT_HELLO_LABEL,
	CLIENT_HELLO_MORE   /* call again with `need` bytes */
};

/* The first n bytes of a connection; a leading number of relays (PROTOCOL.md, section 15) is skipped. Sets `label` with
 * CLIENT_HELLO_LABEL, and *need with CLIENT_HELLO_MORE: more than n, at most CLIENT_HELLO_MAX_BYTES. A ClientHello in
 * several records, or with a server name of another form than a label, has no label. */
enum client_hello client_hello_read(char label[CLIENT_HELLO_LABEL_BYTES], size_t *need, const uint8_t *p, size_t n);

bool client_hello_label_ok(const char *text);

#endif
