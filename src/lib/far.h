/* The other side of a transfer through ssh, or another command that gets there, from here: started there, asked who and where it is, and
 * connected to: directly, else from there to here, else through ssh itself. Who it is, is known from
 * ssh; so a wrong address does no harm. Control thread. */
#ifndef LIB_FAR_H
#define LIB_FAR_H

#include "lib/party.h"
#include "lib/target.h"

struct far;

enum far_way {
	FAR_DIRECT, /* we connect */
	FAR_BACK,   /* it does, data connections too */
	FAR_PIPE    /* nobody can: one channel, through ssh */
};

struct far_ops {
	/* A control connection, TLS done, to who ssh has brought us to; taken. `address`: as reached, or
	 * whence. */
	void (*reached)(void *arg, enum far_way way, struct chan *c, const char *address);
	/* Once at most, and never after `reached`. */
	void (*failed)(void *arg, const struct ptcp_err *why);
	/* With `launch`, instead of `reached`: it is there, listens at that port, and shows that fingerprint. Its process
	 * is ours until far_free(). */
	void (*launched)(void *arg, unsigned port, const char *fingerprint);
	/* The party at work, for data connections that come; or NULL. */
	struct party *(*party)(void *arg);
};

struct far_opts {
	struct host *host;             /* with both contexts of TLS */
	const struct target *target;   /* borrowed, as are these: */
	const char *ssh, *remote_ptcp; /* NULL: "ssh", "ptcp" */
	const char *launch;            /* the command that starts it, as ptcp_transfer_opts has it; NULL: ssh does */
	unsigned remote_port;
	struct sock_opts sock;
	const struct far_ops *ops;
	void *arg;
};

int far_new(struct far **out, const struct far_opts *o, struct ptcp_err *e);
/* Ends it, and the other side with it. NULL is fine. */
void far_free(struct far *f);

#endif
