/* The lines that client and server exchange through ssh before TLS (PROTOCOL.md, section 12). Pure. */
#ifndef CONN_SSH_HELLO_H
#define CONN_SSH_HELLO_H

#include <ptcp/ptcp.h>
#include <stdbool.h>

#include "conn/client_hello.h"
#include "net/sock.h"

#define SSH_HELLO_VERSION 1
#define SSH_HELLO_WORD "ptcp-ssh"
#define SSH_HELLO_ERROR "ptcp-ssh-error" /* followed by a sentence, instead of an answer */
#define SSH_HELLO_ADDRESSES 8

#define SSH_HELLO_OR_ANY "or-any"
#define SSH_HELLO_DIRECT "direct"
#define SSH_HELLO_FINAL "final"
#define SSH_HELLO_SHARE "share"

/* From the client: `port` to listen on there, 0: any. */
struct ssh_hello_hello {
	char fingerprint[PTCP_FINGERPRINT_BYTES];
	unsigned port;
	bool or_any; /* any free port will do if `port` is taken */
	bool direct_io; /* files of the server bypass the page cache */
};
/* From the server: identity and address. */
struct ssh_hello_answer {
	char software[32];
	char fingerprint[PTCP_FINGERPRINT_BYTES];
	unsigned port;
	char address[SOCK_HOST_BYTES]; /* "": unknown */
	bool final;  /* sent after the client's line */
	unsigned share_port; /* port of a service that passes connections with the label to the server; 0: none */
	char label[CLIENT_HELLO_LABEL_BYTES];
};
/* From the client: addresses for the server to connect to. */
struct ssh_hello_back {
	unsigned port, n;
	char address[SSH_HELLO_ADDRESSES][SOCK_HOST_BYTES];
};

/* Whether the line is a greeting, of any version; other lines are a login shell's. */
bool ssh_hello_is_greeting(const char *line);
/* PTCP_EPROTO for a malformed line, or another version (both are named). */
int ssh_hello_hello_parse(struct ssh_hello_hello *out, const char *line, struct ptcp_err *e);
int ssh_hello_answer_parse(struct ssh_hello_answer *out, const char *line, struct ptcp_err *e);
/* "back PORT ADDRESS.."; only numeric addresses are kept. */
int ssh_hello_back_parse(struct ssh_hello_back *out, const char *line, struct ptcp_err *e);

/* Whether it is a numeric address, for IPv6 perhaps with a scope. */
bool ssh_hello_address_ok(const char *text);

#endif
