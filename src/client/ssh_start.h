/* The other side of a transfer through ssh, or another command that gets there, from here: started there, asked who and where it is, and
 * connected to: directly, else from there to here, else through ssh itself. Who it is, is known from
 * ssh; so a wrong address does no harm. Control thread. */
#ifndef CLIENT_SSH_START_H
#define CLIENT_SSH_START_H

#include "conn/remote.h"
#include "session/session.h"

struct ssh_start;

enum ssh_start_way {
	SSH_START_DIRECT, /* we connect */
	SSH_START_BACK,   /* it does, data connections too */
	SSH_START_PIPE    /* nobody can: one channel, through ssh */
};

struct ssh_start_ops {
	/* A control connection, TLS done, to who ssh has brought us to; taken. `address`: as reached, or
	 * whence. */
	void (*reached)(void *arg, enum ssh_start_way way, struct chan *c, const char *address);
	/* Once at most, and never after `reached`. */
	void (*failed)(void *arg, const struct ptcp_err *why);
	/* With `launch`, instead of `reached`: it is there, listens at that port, and shows that fingerprint. Its process
	 * is ours until ssh_start_free(). */
	void (*launched)(void *arg, unsigned port, const char *fingerprint);
	/* The party at work, for data connections that come; or NULL. */
	struct session *(*session)(void *arg);
};

struct ssh_start_opts {
	struct context *host;             /* with both contexts of TLS */
	const struct remote *target;   /* borrowed, as are these: */
	const char *ssh, *remote_ptcp; /* NULL: "ssh", "ptcp" */
	const char *launch;            /* the command that starts it, as ptcp_transfer_opts has it; NULL: ssh does */
	unsigned remote_port;
	struct sock_opts sock;
	const struct ssh_start_ops *ops;
	void *arg;
};

int ssh_start_new(struct ssh_start **out, const struct ssh_start_opts *o, struct ptcp_err *e);
/* Ends it, and the other side with it. NULL is fine. */
void ssh_start_free(struct ssh_start *f);

#endif
