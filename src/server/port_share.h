/* The port of a service, shared with the ephemeral servers that ssh has started on this host as other users. Each
 * registers through a Unix socket and gets a label; the service passes the connections with that label to it, by
 * descriptor (PROTOCOL.md, section 12). Control thread.
 *
 * A message on the socket (SOCK_SEQPACKET) is text of at most 255 bytes, without a NUL:
 *
 *   ephemeral server   ptcp-share 1 KEY            within two seconds, and nothing else: 64 random hexadecimal digits
 *   service            ptcp-share 1 PORT           registered
 *   service            ptcp-share-error SENTENCE   refused, also if KEY is registered; the service closes the socket
 *   service            connection                  with one descriptor (SCM_RIGHTS)
 *
 * The label is the first 16 bytes of the SHA-256 of "ptcp share v1", a zero byte, and KEY as text: only the process
 * that made KEY can register the label, also after a restart of the service, whereas everyone on the path sees the
 * label. The registration ends with the socket; passed connections continue. When the service ends the socket, the
 * ephemeral server registers again with the same KEY, once per second. */
#ifndef SERVER_PORT_SHARE_H
#define SERVER_PORT_SHARE_H

#include "conn/inbound.h"
#include "core/local_sock.h"
#include "net/tls.h"

/* ---- port_share_text.c: the messages; no sockets ---- */

#define PORT_SHARE_VERSION 1
#define PORT_SHARE_WORD "ptcp-share"
#define PORT_SHARE_ERROR "ptcp-share-error" /* followed by a sentence */
#define PORT_SHARE_CONNECTION "connection"  /* message with a descriptor */

void port_share_register_text(char out[LOCAL_SOCK_TEXT_BYTES], const char *key);
/* The key, within the text; NULL: not a registration of this version. */
const char *port_share_register_parse(const char *text);
void port_share_answer_text(char out[LOCAL_SOCK_TEXT_BYTES], unsigned port);
void port_share_error_text(char out[LOCAL_SOCK_TEXT_BYTES], const char *why);
/* PTCP_EREFUSED: the text is an error, whose sentence `e` gets; PTCP_EPROTO. */
int port_share_answer_parse(unsigned *port, const char *text, struct ptcp_err *e);

/* ---- port_share.c: the service ---- */

#define PORT_SHARE_PASSED_MAX 8        /* connections that a process has not taken yet */
#define PORT_SHARE_USER_PASSED_MAX 64  /* limit of connections that all processes of one user have not taken yet */

struct port_share;
struct port_share_opts {
	struct loop *loop;
	const struct log *log;
	const char *path;           /* path of the socket; copied */
	unsigned port;              /* port to announce */
	unsigned max_user;          /* registrations of one user */
	unsigned max;               /* registrations in all, of which one user may have half */
	void (*changed)(void *arg, unsigned labels); /* number of labels */
	void (*again)(void *arg);   /* called after INBOUND_LEND_BUSY, when another try makes sense */
	void *arg;
};

/* PTCP_ECONFIG: the socket is unavailable. */
int port_share_new(struct port_share **out, const struct port_share_opts *o, struct ptcp_err *e);
/* Fills in the registrations; NULL is fine. */
void port_share_stats(const struct port_share *s, struct ptcp_server_stats *st);
void port_share_set_max_user(struct port_share *s, unsigned max_user);
/* As inbound_ops.lend. */
enum inbound_lend port_share_lend(struct port_share *s, const char *label, int fd);
/* Ends all registrations; passed connections remain. NULL is fine. */
void port_share_free(struct port_share *s);

#endif
