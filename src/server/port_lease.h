/* An ephemeral server's part in sharing a port (server/port_share.h): registers with the service of the host, and takes
 * the connections that the service passes on. After a restart of the service it registers again, with the same label.
 * Control thread. */
#ifndef SERVER_PORT_LEASE_H
#define SERVER_PORT_LEASE_H

#include "core/log.h"
#include "net/loop.h"
#include "net/sock.h"

struct port_lease;
struct port_lease_opts {
	struct loop *loop;
	const struct log *log;
	const char *path;   /* path of the service's socket; copied */
	/* A connection, which is taken. */
	void (*connection)(void *arg, int *fd, const char *address);
	void *arg;
};

/* Registers, and waits for the answer for a second at most. Passes no connection before port_lease_release().
 * PTCP_ECONNECT without a service, PTCP_EREFUSED, PTCP_EPROTO. */
int port_lease_new(struct port_lease **out, const struct port_lease_opts *o, struct ptcp_err *e);
void port_lease_release(struct port_lease *p);
/* The port and its label, 32 hexadecimal digits. */
unsigned port_lease_port(const struct port_lease *p);
const char *port_lease_label(const struct port_lease *p);
void port_lease_free(struct port_lease *p); /* NULL is fine */

#endif
