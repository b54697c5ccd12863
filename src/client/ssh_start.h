/* Starts a server for a single transfer on a remote host, through ssh or a launch command, and connects: directly,
 * else from the server to this host, else through ssh. The server's fingerprint arrives through ssh: a wrong address
 * does no harm. Control thread. */
#ifndef CLIENT_SSH_START_H
#define CLIENT_SSH_START_H

#include "conn/remote.h"
#include "conn/ssh_hello.h"
#include "session/session.h"

struct ssh_start;

enum ssh_start_mode {
	SSH_START_DIRECT, /* this host connects */
	SSH_START_BACK,   /* the server connects, data connections included */
	SSH_START_PIPE    /* neither can: one channel, through ssh */
};

struct ssh_start_ops {
	/* A control connection to the started server, authenticated; taken, as is the spare data connection (NULL:
	 * none). `address`: connected to, or from. `label`: of a shared port, for all further connections; NULL: a port
	 * of its own. */
	void (*reached)(void *arg, enum ssh_start_mode mode, struct chan *c, struct connect *spare, const char *address,
	    const char *label);
	/* At most once, never after `reached`. */
	void (*failed)(void *arg, const struct ptcp_err *why);
	/* With `launch` or `routed`, instead of `reached`: the server's fingerprint, address and ports. Its process
	 * belongs to the ssh_start until ssh_start_free(). */
	void (*launched)(void *arg, const struct ssh_hello_answer *a);
	/* The session that inbound data connections join; or NULL. */
	struct session *(*session)(void *arg);
	/* As ptcp_install_fn, for o.target. */
	int (*install)(void *arg, const char **path, struct ptcp_err *e);
};

struct ssh_start_opts {
	struct context *context;          /* a context with both TLS contexts */
	const struct remote *target;   /* borrowed, as are these: */
	const char *ssh, *remote_ptcp; /* NULL: "ssh", "ptcp" */
	const char *launch;            /* command, as in ptcp_transfer_opts; NULL: ssh */
	bool routed;                   /* the caller connects, over paths with relays */
	unsigned remote_port;
	bool remote_port_or_any;
	bool direct_io;                /* files bypass the page cache, also on the remote host */
	bool job;                      /* through ssh's pipe, for a request on a job connection instead of a session */
	const enum ptcp_cipher *spare; /* ciphers of a spare connection, see connect_opts.spare */
	struct sock_opts sock;
	const struct ssh_start_ops *ops;
	void *arg;
};

int ssh_start_new(struct ssh_start **out, const struct ssh_start_opts *o, struct ptcp_err *e);
/* Ends the server, too. NULL is fine. */
void ssh_start_free(struct ssh_start *f);

#endif
