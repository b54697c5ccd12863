/* What both sides of a transfer through ssh say to each other before TLS, in lines (PROTOCOL.md, section
 * 12). Pure. */
#ifndef LIB_GREET_H
#define LIB_GREET_H

#include <ptcp/ptcp.h>
#include <stdbool.h>

#include "net/sock.h"

#define GREET_VERSION 1
#define GREET_WORD "ptcp-ssh"
#define GREET_ERROR "ptcp-ssh-error" /* and a sentence, instead of an answer */
#define GREET_ADDRESSES 8

/* The client: who it is, and the port to listen on there (0: any). */
struct greet_hello {
	char fingerprint[PTCP_FINGERPRINT_BYTES];
	unsigned port;
};
/* The server: who it is, and where it listens. */
struct greet_answer {
	char software[32];
	char fingerprint[PTCP_FINGERPRINT_BYTES];
	unsigned port;
	char address[SOCK_HOST_BYTES]; /* "": it does not know */
};
/* The client: where it listens, for the server to connect. */
struct greet_back {
	unsigned port, n;
	char address[GREET_ADDRESSES][SOCK_HOST_BYTES];
};

/* Whether the line is meant to be one of a greeting; anything else is noise of a shell. */
bool greet_is_meant(const char *line);
/* PTCP_EPROTO for a line that is malformed, or of another version: the sentence then names both. */
int greet_hello_parse(struct greet_hello *out, const char *line, struct ptcp_err *e);
int greet_answer_parse(struct greet_answer *out, const char *line, struct ptcp_err *e);
/* "back PORT ADDRESS.."; what is no numeric address is left out. */
int greet_back_parse(struct greet_back *out, const char *line, struct ptcp_err *e);

/* A numeric address, perhaps with a scope. */
bool greet_address_ok(const char *text);

#endif
