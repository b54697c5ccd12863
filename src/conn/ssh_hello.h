/* What both sides of a transfer through ssh say to each other before TLS, in lines (PROTOCOL.md, section
 * 12). Pure. */
#ifndef CONN_SSH_HELLO_H
#define CONN_SSH_HELLO_H

#include <ptcp/ptcp.h>
#include <stdbool.h>

#include "net/sock.h"

#define SSH_HELLO_VERSION 1
#define SSH_HELLO_WORD "ptcp-ssh"
#define SSH_HELLO_ERROR "ptcp-ssh-error" /* and a sentence, instead of an answer */
#define SSH_HELLO_ADDRESSES 8

/* The client: who it is, and the port to listen on there (0: any). */
struct ssh_hello_hello {
	char fingerprint[PTCP_FINGERPRINT_BYTES];
	unsigned port;
};
/* The server: who it is, and where it listens. */
struct ssh_hello_answer {
	char software[32];
	char fingerprint[PTCP_FINGERPRINT_BYTES];
	unsigned port;
	char address[SOCK_HOST_BYTES]; /* "": it does not know */
};
/* The client: where it listens, for the server to connect. */
struct ssh_hello_back {
	unsigned port, n;
	char address[SSH_HELLO_ADDRESSES][SOCK_HOST_BYTES];
};

/* Whether the line is meant to be one of a greeting; anything else is noise of a shell. */
bool ssh_hello_is_meant(const char *line);
/* PTCP_EPROTO for a line that is malformed, or of another version: the sentence then names both. */
int ssh_hello_hello_parse(struct ssh_hello_hello *out, const char *line, struct ptcp_err *e);
int ssh_hello_answer_parse(struct ssh_hello_answer *out, const char *line, struct ptcp_err *e);
/* "back PORT ADDRESS.."; what is no numeric address is left out. */
int ssh_hello_back_parse(struct ssh_hello_back *out, const char *line, struct ptcp_err *e);

/* A numeric address, perhaps with a scope. */
bool ssh_hello_address_ok(const char *text);

#endif
