#include "net/dial.h"

#include <errno.h>
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

#define ATTEMPTS_MAX 16
#define STAGGER_NS (250 * NS_PER_MS)

struct attempt {
	uv_poll_t poll;
	struct dial *dial;
	int fd;
	char address[SOCK_TEXT_BYTES];
};

union address {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

struct dial {
	struct loop *loop;
	struct dial_opts o;
	char host[SOCK_HOST_BYTES];
	struct resolve resolve;
	bool over;
	union address order[ATTEMPTS_MAX];
	unsigned n_order, next, n_open, n_closing;
	struct attempt *open[ATTEMPTS_MAX];
	struct timer *timer;
	struct mono deadline, next_at;
	struct ptcp_err why;
};

static void dial_release(struct dial *d)
{
	if (d->over && d->n_closing == 0)
		free(d);
}

static void on_attempt_closed(uv_handle_t *h)
{
	struct attempt *a = h->data;
	struct dial *d = a->dial;

	free(a);
	d->n_closing--;
	dial_release(d);
}

/* Stops polling, and closes the socket unless taken. */
static void attempt_end(struct attempt *a)
{
	struct dial *d = a->dial;
	unsigned i;

	for (i = 0; i < d->n_open; i++)
		if (d->open[i] == a)
			d->open[i] = d->open[--d->n_open];
	uv_poll_stop(&a->poll);
	fd_close(&a->fd);
	d->n_closing++;
	uv_close((uv_handle_t *)&a->poll, on_attempt_closed);
}

static void dial_end(struct dial *d)
{
	resolve_cancel(&d->resolve);
	while (d->n_open > 0)
		attempt_end(d->open[0]);
	timer_free(d->timer);
	d->timer = NULL;
	d->over = true;
}

/* Takes the socket; -1: failed. */
static void dial_done(struct dial *d, int *fd, const char *address)
{
	char reached[SOCK_TEXT_BYTES] = "";
	struct ptcp_err e;

	if (address != NULL)
		memcpy(reached, address, sizeof reached);
	dial_end(d);
	if (*fd >= 0 && sock_tune(*fd, &d->o.sock, &e) < 0) {
		fd_close(fd);
		d->why = e;
	}
	d->o.done(d->o.arg, fd, reached, *fd >= 0 ? NULL : &d->why);
	dial_release(d);
}

static void dial_failed(struct dial *d)
{
	int none = -1;

	dial_done(d, &none, NULL);
}

void dial_cancel(struct dial *d)
{
	if (d == NULL)
		return;
	dial_end(d);
	dial_release(d);
}

static void dial_next(struct dial *d);

static socklen_t address_bytes(const union address *a)
{
	return a->sa.sa_family == AF_INET ? sizeof a->v4 : sizeof a->v6;
}

static const char *advice(int sys)
{
	switch (sys) {
	case ECONNREFUSED: return " (is a ptcp server running there, on that port?)";
	case ENETUNREACH:
	case EHOSTUNREACH: return " (check the address and the network)";
	case EADDRNOTAVAIL: return " (connect from an address that this host has)";
	case EINVAL: return " (a link-local address needs the name of its interface, as in fe80::1%eth0)";
	default: return "";
	}
}

static void attempt_failed(struct dial *d, const char *address, int sys)
{
	char where[SOCK_HOST_BYTES + 10];
	bool named;

	sock_join(where, sizeof where, d->host, d->o.port);
	named = strcmp(where, address) != 0;
	err_set(&d->why, PTCP_ECONNECT, "connecting to %s%s%s%s: %s%s", where, named ? " (" : "", named ? address : "",
	    named ? ")" : "", strerror(sys), advice(sys));
	d->why.sys = sys;
	d->next_at = mono_now();
}

static void on_connect(uv_poll_t *h, int status, int events)
{
	struct attempt *a = h->data;
	struct dial *d = a->dial;
	socklen_t n = sizeof(int);
	int sys = 0;

	(void)events;
	getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &sys, &n);
	if (status < 0 && sys == 0)
		sys = -status;
	if (sys == 0) {
		int fd = fd_take(&a->fd);
		char address[SOCK_TEXT_BYTES];

		memcpy(address, a->address, sizeof address);
		attempt_end(a);
		dial_done(d, &fd, address);
		return;
	}
	attempt_failed(d, a->address, sys);
	attempt_end(a);
	dial_next(d);
}

/* Returns 0 or an errno. */
static int attempt_start(struct dial *d, const union address *to, char address[SOCK_TEXT_BYTES])
{
	struct attempt *a;
	int fd, sys;

	sock_address_text(address, &to->sa, address_bytes(to));
	fd = socket(to->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno;
	if (d->o.sock.local != NULL && (sys = sock_leave_from(fd, d->o.sock.local)) != 0) {
		fd_close(&fd);
		return sys;
	}
	if (d->o.sock.dscp != SOCK_DSCP_DF) /* the SYN tells the server */
		sock_mark(fd, d->o.sock.dscp);
	if (d->o.sock.segment_bytes > 0) /* before the SYN, which tells the peer */
		setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &d->o.sock.segment_bytes, sizeof d->o.sock.segment_bytes);
	if (connect(fd, &to->sa, address_bytes(to)) < 0 && errno != EINPROGRESS) {
		fd_close(&fd);
		return errno;
	}
	if ((a = calloc(1, sizeof *a)) == NULL || uv_poll_init(loop_uv(d->loop), &a->poll, fd) < 0) {
		free(a);
		fd_close(&fd);
		return ENOMEM;
	}
	a->poll.data = a;
	a->dial = d;
	a->fd = fd;
	memcpy(a->address, address, sizeof a->address);
	d->open[d->n_open++] = a;
	uv_poll_start(&a->poll, UV_WRITABLE, on_connect);
	return 0;
}

static void time_out(struct dial *d)
{
	char where[SOCK_HOST_BYTES + 10], shown[TEXT_NAME_BYTES];
	double timeout_s = (double)d->o.sock.timeout_ns / 1e9;

	sock_join(where, sizeof where, d->host, d->o.port);
	if (d->resolve.lookup != NULL)
		err_set(&d->why, PTCP_ECONNECT, "resolving %s: no answer for %.3g s (check the name servers)",
		    text_escape(shown, sizeof shown, d->host), timeout_s);
	else
		err_set(&d->why, PTCP_ECONNECT, "connecting to %s: no response for %.3g s (is the host up, and does a "
		    "firewall let port %u through?)", where, timeout_s, d->o.port);
	dial_failed(d);
}

/* Starts the attempts that are due. */
static void start_due(struct dial *d)
{
	struct mono now = mono_now();
	char address[SOCK_TEXT_BYTES];
	int sys;

	while (d->next < d->n_order && now.ns >= d->next_at.ns) {
		d->next_at = mono_add_ns(now, STAGGER_NS);
		if ((sys = attempt_start(d, &d->order[d->next++], address)) != 0)
			attempt_failed(d, address, sys);
	}
}

static bool all_failed(const struct dial *d) { return d->n_open == 0 && d->next == d->n_order; }

static void set_timer(struct dial *d)
{
	timer_set(d->timer, d->next < d->n_order && d->next_at.ns < d->deadline.ns ? d->next_at : d->deadline);
}

/* Continues, or ends the dial at its deadline or when all attempts have failed. */
static void dial_next(struct dial *d)
{
	if (mono_now().ns >= d->deadline.ns) {
		time_out(d);
		return;
	}
	start_due(d);
	if (all_failed(d))
		dial_failed(d);
	else
		set_timer(d);
}

static void on_dial_timer(void *arg) { dial_next(arg); }

/* ---- Addresses ---- */

static bool permitted(const struct dial *d, const struct addrinfo *all, const struct addrinfo *ai)
{
	return d->o.permits == NULL || d->o.permits(d->o.arg, all, ai->ai_addr);
}

static void add_address(struct dial *d, const struct addrinfo *ai)
{
	union address *a = &d->order[d->n_order++];

	memcpy(a, ai->ai_addr, ai->ai_addrlen < sizeof *a ? ai->ai_addrlen : sizeof *a);
	if (a->sa.sa_family == AF_INET)
		a->v4.sin_port = htons((uint16_t)d->o.port);
	else
		a->v6.sin6_port = htons((uint16_t)d->o.port);
}

/* The two families alternate, starting with the resolver's first choice (RFC 8305, 4). */
static void sort_addresses(struct dial *d, const struct addrinfo *all)
{
	const struct addrinfo *next[2] = { all, all }, *a;
	int family = all->ai_family, i;

	for (i = 0; d->n_order < ATTEMPTS_MAX && (next[0] != NULL || next[1] != NULL); i = !i) {
		for (a = next[i]; a != NULL && ((a->ai_family == family) == i || !permitted(d, all, a)); a = a->ai_next)
			;
		next[i] = a != NULL ? a->ai_next : NULL;
		if (a != NULL)
			add_address(d, a);
	}
}

/* Without addresses to try, the dial has failed. */
static void take_answer(struct dial *d, const struct resolve_answer *a)
{
	char shown[TEXT_NAME_BYTES];

	text_escape(shown, sizeof shown, d->host);
	if (a->error != 0 && d->o.sock.family != 0)
		err_set(&d->why, PTCP_ECONNECT, "resolving %s: no IPv%d address: %s (leave out -%d, or check the name)",
		    shown, d->o.sock.family, resolve_error_text(a), d->o.sock.family);
	else if (a->error != 0)
		err_set(&d->why, PTCP_ECONNECT, "resolving %s: %s (check the name)", shown, resolve_error_text(a));
	else
		sort_addresses(d, a->all);
	if (a->error == 0 && d->n_order == 0)
		err_set(&d->why, PTCP_EREFUSED, "connecting to %s: its addresses are not permitted", shown);
}

static void on_resolved(struct resolve *q, const struct resolve_answer *a)
{
	struct dial *d = CONTAINER_OF(q, struct dial, resolve);

	take_answer(d, a);
	dial_next(d);
}

/* A number is connected to at once; a failure is reported from the loop. */
static int dial_begin(struct dial *d, struct ptcp_err *e)
{
	struct resolve_answer a;
	char shown[TEXT_NAME_BYTES];

	if (resolve_number(&a, d->host, d->o.sock.family)) {
		take_answer(d, &a);
		if (a.all != NULL)
			freeaddrinfo(a.all);
		start_due(d);
		if (all_failed(d))
			timer_set(d->timer, mono_now());
		else
			set_timer(d);
		return 0;
	}
	if (d->o.names == NULL)
		return err_set(e, PTCP_ECONNECT, "resolving %s: not a numeric address",
		    text_escape(shown, sizeof shown, d->host));
	timer_set(d->timer, d->deadline);
	return resolve_start(&d->resolve, d->o.names, d->o.client, d->host, d->o.sock.family, on_resolved, e);
}

int dial_start(struct dial **out, struct loop *l, const struct dial_opts *o, struct ptcp_err *e)
{
	struct dial *d = calloc(1, sizeof *d);
	int r;

	if (d == NULL)
		return err_nomem(e);
	d->loop = l;
	d->o = *o;
	snprintf(d->host, sizeof d->host, "%s", o->host);
	d->deadline = mono_add_ns(mono_now(), o->sock.timeout_ns);
	if ((r = timer_new(&d->timer, l, on_dial_timer, d, e)) < 0) {
		free(d);
		return r;
	}
	if ((r = dial_begin(d, e)) < 0) {
		timer_free(d->timer);
		free(d);
		return r;
	}
	*out = d;
	return 0;
}
