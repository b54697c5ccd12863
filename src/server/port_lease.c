#include "server/port_lease.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/err.h"
#include "core/fd.h"
#include "core/units.h"
#include "net/watch.h"
#include "server/port_share.h"

#define ANSWER_MS 1000
#define AGAIN_NS NS_PER_S

struct port_lease {
	struct port_lease_opts o;
	char *path;
	int fd;                 /* -1: the service is gone */
	struct watch *watch;    /* watch of fd */
	struct timer *again;    /* timer until the next attempt to register */
	bool released, answered;
	unsigned port;
	char key[TLS_SHARE_KEY_BYTES], label[TLS_SHARE_LABEL_BYTES];
};

static void leave(struct port_lease *p)
{
	watch_free(p->watch);
	p->watch = NULL;
	fd_close(&p->fd);
	p->answered = false;
}

static int take_answer(struct port_lease *p, const char *text, struct ptcp_err *e)
{
	int r = port_share_answer_parse(&p->port, text, e);

	p->answered = r == 0;
	return r;
}

/* Takes the connection. */
static void take_connection(struct port_lease *p, int *fd)
{
	struct sockaddr_storage sa;
	socklen_t n = sizeof sa;
	char address[SOCK_TEXT_BYTES];

	if (getpeername(*fd, (struct sockaddr *)&sa, &n) < 0) {
		fd_close(fd); /* lost already */
		return;
	}
	sock_address_text(address, (struct sockaddr *)&sa, n);
	p->o.connection(p->o.arg, fd, address);
}

static void on_message(void *arg)
{
	struct port_lease *p = arg;
	char text[LOCAL_SOCK_TEXT_BYTES];
	struct ptcp_err why;
	int fd, r = local_sock_receive(p->fd, text, sizeof text, &fd);

	if (r < 0)
		return;
	if (r == 0)
		err_set(&why, PTCP_EPEER, "the service has ended");
	else if (!p->answered)
		r = take_answer(p, text, &why) == 0;
	if (fd >= 0 && r > 0)
		take_connection(p, &fd);
	fd_close(&fd);
	if (r > 0)
		return;
	log_at(p->o.log, LOG_INFO, "share", "event=lost why=\"%s\"", why.msg);
	leave(p);
	timer_set(p->again, mono_add_ns(mono_now(), AGAIN_NS));
}

static int join(struct port_lease *p, unsigned wait_ms, struct ptcp_err *e)
{
	char text[LOCAL_SOCK_TEXT_BYTES];
	int r;

	if ((r = local_sock_connect(&p->fd, p->path, wait_ms, e)) < 0 ||
	    (r = watch_new(&p->watch, p->o.loop, p->fd, on_message, p, e)) < 0)
		return r;
	port_share_register_text(text, p->key);
	return local_sock_send(p->fd, text, -1) ? 0 : err_sys(e, PTCP_ECONNECT, "the service");
}

static void on_again(void *arg)
{
	struct port_lease *p = arg;
	struct ptcp_err e;

	if (join(p, 0, &e) < 0) {
		leave(p);
		timer_set(p->again, mono_add_ns(mono_now(), AGAIN_NS));
	}
}

/* The client is told of the port in the first line, so the answer is worth a short wait. */
static int await_answer(struct port_lease *p, struct ptcp_err *e)
{
	struct pollfd ready = { .fd = p->fd, .events = POLLIN };
	char text[LOCAL_SOCK_TEXT_BYTES];
	int fd, r;

	if (poll(&ready, 1, ANSWER_MS) <= 0)
		return err_set(e, PTCP_ECONNECT, "no answer within %d ms", ANSWER_MS);
	r = local_sock_receive(p->fd, text, sizeof text, &fd);
	fd_close(&fd);
	return r > 0 ? take_answer(p, text, e) : err_set(e, PTCP_ECONNECT, "closed without an answer");
}

int port_lease_new(struct port_lease **out, const struct port_lease_opts *o, struct ptcp_err *e)
{
	struct port_lease *p = calloc(1, sizeof *p);
	int r;

	if (p == NULL)
		return err_nomem(e);
	p->o = *o;
	p->fd = -1;
	if ((p->path = strdup(o->path)) == NULL)
		r = err_nomem(e);
	else if ((r = timer_new(&p->again, o->loop, on_again, p, e)) == 0 && (r = tls_share_key(p->key, e)) == 0 &&
	    (r = tls_share_label(p->label, p->key, e)) == 0 && (r = join(p, ANSWER_MS, e)) == 0)
		r = await_answer(p, e);
	if (r < 0) {
		port_lease_free(p);
		return r;
	}
	watch_hold(p->watch, true);
	*out = p;
	return 0;
}

void port_lease_release(struct port_lease *p)
{
	if (p->released || p->watch == NULL)
		return;
	p->released = true;
	watch_hold(p->watch, false);
}

unsigned port_lease_port(const struct port_lease *p) { return p->port; }
const char *port_lease_label(const struct port_lease *p) { return p->label; }

void port_lease_free(struct port_lease *p)
{
	if (p == NULL)
		return;
	leave(p);
	timer_free(p->again);
	explicit_bzero(p->key, sizeof p->key);
	free(p->path);
	free(p);
}
