#include "net/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/fd.h"
#include "core/text.h"
#include "core/units.h"
#include "net/loop_uv.h"

#define REST_NS (50 * NS_PER_MS)

struct listener {
	uv_poll_t poll;
	struct timer *rest; /* pause while descriptors are short */
	int fd, reserve;    /* reserve: a spare descriptor, given up to accept and close a connection */
	char address[SOCK_HOST_BYTES];
	unsigned port;
	void (*accepted)(void *, int *, const char *);
	void *arg;
};

static int open_listener(const char *host, unsigned port, int *out, struct ptcp_err *e)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV | AI_NUMERICHOST }, *ai;
	char service[12], shown[TEXT_NAME_BYTES];
	int on = 1, off = 0, fd, r, saved;

	snprintf(service, sizeof service, "%u", port);
	text_escape(shown, sizeof shown, host);
	if (host[0] == '\0' || strcmp(host, "*") == 0)
		host = access("/proc/net/if_inet6", F_OK) == 0 ? "::" : "0.0.0.0";
	if ((r = getaddrinfo(host, service, &hints, &ai)) != 0)
		return err_set(e, PTCP_ECONFIG, "listening on %s: %s (give a numeric address of this "
		    "host)", shown, gai_strerror(r));
	fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (ai->ai_family == AF_INET6) /* "::" accepts IPv4 as well */
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
	if (fd >= 0 && (bind(fd, ai->ai_addr, ai->ai_addrlen) < 0 || listen(fd, 1024) < 0))
		fd_close(&fd);
	saved = errno;
	freeaddrinfo(ai);
	if (fd < 0) {
		errno = saved;
		return err_sys(e, PTCP_ECONFIG, "listening on port %u of %s", port,
		    shown[0] != '\0' ? shown : "every address");
	}
	*out = fd;
	return 0;
}

static int name_listener(struct listener *ls, struct ptcp_err *e)
{
	struct sockaddr_storage sa;
	char text[SOCK_TEXT_BYTES];
	socklen_t n = sizeof sa;

	if (getsockname(ls->fd, (struct sockaddr *)&sa, &n) < 0)
		return err_sys(e, PTCP_ECONFIG, "listening");
	sock_address_text(text, (struct sockaddr *)&sa, n);
	if ((sa.ss_family != AF_INET && sa.ss_family != AF_INET6) ||
	    sock_split(text, ls->address, &ls->port, 0, NULL) < 0)
		return err_set(e, PTCP_ECONFIG,
		    "descriptor %d: not an IPv4 or IPv6 socket (pass a listening TCP socket)", ls->fd);
	return 0;
}

static void on_incoming(uv_poll_t *h, int status, int events);

static void on_rested(void *arg)
{
	struct listener *ls = arg;

	uv_poll_start(&ls->poll, UV_READABLE, on_incoming);
}

void listener_rest(struct listener *ls)
{
	uv_poll_stop(&ls->poll);
	timer_set(ls->rest, mono_add_ns(mono_now(), REST_NS));
}

void listener_hold(struct listener *ls, bool hold)
{
	if (hold)
		uv_poll_stop(&ls->poll);
	else
		uv_poll_start(&ls->poll, UV_READABLE, on_incoming);
}

/* Out of descriptors: closes a new connection by means of the reserve. If another thread has taken the freed
 * descriptor, polling pauses: otherwise the pending connection would wake the loop without end. */
static void turn_away(struct listener *ls)
{
	int fd;

	fd_close(&ls->reserve);
	if ((fd = accept4(ls->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		fd_close(&fd);
	if ((ls->reserve = fcntl(ls->fd, F_DUPFD_CLOEXEC, 0)) < 0)
		listener_rest(ls);
}

/* At most 16 connections a turn: a flood must not delay the sessions on the loop. */
static void on_incoming(uv_poll_t *h, int status, int events)
{
	struct listener *ls = h->data;
	struct sockaddr_storage sa;
	char address[SOCK_TEXT_BYTES];
	socklen_t n;
	int i, fd;

	(void)status;
	(void)events;
	for (i = 0; i < 16 && uv_is_active((uv_handle_t *)h); i++) {
		n = sizeof sa;
		fd = accept4(ls->fd, (struct sockaddr *)&sa, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			sock_address_text(address, (struct sockaddr *)&sa, n);
			ls->accepted(ls->arg, &fd, address);
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
			turn_away(ls);
		} else {
			return;
		}
	}
}

int listener_take(struct listener **out, struct loop *l, int *fd,
    void (*accepted)(void *arg, int *fd, const char *address), void *arg, struct ptcp_err *e)
{
	struct listener *ls = calloc(1, sizeof *ls);
	int listens = 0, r;
	socklen_t n = sizeof listens;

	if (ls == NULL) {
		fd_close(fd);
		return err_nomem(e);
	}
	ls->fd = fd_take(fd);
	if (getsockopt(ls->fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) < 0 || !listens) {
		r = err_set(e, PTCP_ECONFIG, "descriptor %d: not a socket that listens (pass a listening socket)",
		    ls->fd);
		goto out;
	}
	/* A blocking socket would halt the loop. */
	fcntl(ls->fd, F_SETFL, fcntl(ls->fd, F_GETFL) | O_NONBLOCK);
	fcntl(ls->fd, F_SETFD, FD_CLOEXEC);
	sock_keep_marks(ls->fd);
	if ((r = name_listener(ls, e)) < 0 || (r = timer_new(&ls->rest, l, on_rested, ls, e)) < 0)
		goto out;
	if ((r = uv_poll_init(loop_uv(l), &ls->poll, ls->fd)) < 0) {
		r = err_set(e, PTCP_ECONFIG, "listening: %s", uv_strerror(r));
		goto out;
	}
	ls->reserve = fcntl(ls->fd, F_DUPFD_CLOEXEC, 0);
	ls->poll.data = ls;
	ls->accepted = accepted;
	ls->arg = arg;
	uv_poll_start(&ls->poll, UV_READABLE, on_incoming);
	*out = ls;
	return 0;
out:
	timer_free(ls->rest);
	fd_close(&ls->fd);
	free(ls);
	return r;
}

int listener_new(struct listener **out, struct loop *l, const char *where, unsigned default_port,
    void (*accepted)(void *arg, int *fd, const char *address), void *arg, struct ptcp_err *e)
{
	char host[SOCK_HOST_BYTES] = "";
	unsigned port = default_port;
	int fd = -1, r;

	if (where != NULL && where[0] == '\0')
		return err_set(e, PTCP_EUSAGE,
		    "--listen \"\": no address (omit the option to listen on every address)");
	if (where != NULL && strspn(where, "0123456789") == strlen(where))
		port = strlen(where) <= 5 ? (unsigned)atoi(where) : 65536; /* a port alone */
	else if (where != NULL && (r = sock_split(where, host, &port, default_port, e)) < 0)
		return r;
	if (port > 65535)
		return err_set(e, PTCP_EUSAGE, "%s: not a port (0 to 65535)", where);
	if ((r = open_listener(host, port, &fd, e)) < 0)
		return r;
	return listener_take(out, l, &fd, accepted, arg, e);
}

static void on_listener_closed(uv_handle_t *h) { free(h->data); }

void listener_free(struct listener *ls)
{
	if (ls == NULL)
		return;
	uv_poll_stop(&ls->poll);
	timer_free(ls->rest);
	fd_close(&ls->fd);
	fd_close(&ls->reserve);
	uv_close((uv_handle_t *)&ls->poll, on_listener_closed);
}

const char *listener_address(const struct listener *ls) { return ls->address; }
unsigned listener_port(const struct listener *ls) { return ls->port; }
