#include "net/dial.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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

struct dial {
	struct loop *loop;
	struct sock_opts o;
	char host[SOCK_HOST_BYTES];
	unsigned port;
	void (*done)(void *, int, const char *, const struct ptcp_err *);
	void *arg;
	bool (*permits)(void *, const struct sockaddr *); /* NULL: every address */
	void *permits_arg;
	uv_getaddrinfo_t dns;
	bool resolving, over;
	struct addrinfo *answer, *order[ATTEMPTS_MAX];
	unsigned n_order, next, n_open, n_closing;
	struct attempt *open[ATTEMPTS_MAX];
	struct timer *timer;
	struct mono deadline, next_at;
	struct ptcp_err why;
};

static void dial_release(struct dial *d)
{
	if (!d->over || d->resolving || d->n_closing > 0)
		return;
	if (d->answer != NULL)
		uv_freeaddrinfo(d->answer);
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

/* Stops polling; closes the socket unless `keep`. */
static void attempt_end(struct attempt *a, bool keep)
{
	struct dial *d = a->dial;
	unsigned i;

	for (i = 0; i < d->n_open; i++)
		if (d->open[i] == a)
			d->open[i] = d->open[--d->n_open];
	uv_poll_stop(&a->poll);
	if (!keep)
		close(a->fd);
	d->n_closing++;
	uv_close((uv_handle_t *)&a->poll, on_attempt_closed);
}

static void dial_end(struct dial *d)
{
	while (d->n_open > 0)
		attempt_end(d->open[0], false);
	timer_free(d->timer);
	d->timer = NULL;
	d->over = true;
}

static void dial_done(struct dial *d, int fd, const char *address)
{
	char reached[SOCK_TEXT_BYTES] = "";
	struct ptcp_err e;

	if (address != NULL)
		memcpy(reached, address, sizeof reached);
	dial_end(d);
	if (fd >= 0 && sock_tune(fd, &d->o, &e) < 0) {
		close(fd);
		fd = -1;
		d->why = e;
	}
	d->done(d->arg, fd, reached, fd >= 0 ? NULL : &d->why);
	dial_release(d);
}

void dial_cancel(struct dial *d)
{
	if (d == NULL)
		return;
	if (d->resolving)
		uv_cancel((uv_req_t *)&d->dns);
	dial_end(d);
	dial_release(d);
}

static void dial_next(struct dial *d);

static void attempt_failed(struct dial *d, const char *address, int sys)
{
	char where[SOCK_HOST_BYTES + 10];
	bool named;

	sock_join(where, sizeof where, d->host, d->port);
	named = strcmp(where, address) != 0;
	err_set(&d->why, PTCP_ECONNECT, "connecting to %s%s%s%s: %s%s", where, named ? " (" : "", named ? address : "",
	    named ? ")" : "", strerror(sys), sys == ECONNREFUSED ? " (is a ptcp server running there, on that port?)" :
	    sys == ENETUNREACH || sys == EHOSTUNREACH ? " (check the address and the network)" : "");
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
		int fd = a->fd;
		char address[SOCK_TEXT_BYTES];

		memcpy(address, a->address, sizeof address);
		attempt_end(a, true);
		dial_done(d, fd, address);
		return;
	}
	attempt_failed(d, a->address, sys);
	attempt_end(a, false);
	dial_next(d);
}

/* Returns 0 or an errno. */
static int attempt_start(struct dial *d, const struct addrinfo *ai, char address[SOCK_TEXT_BYTES])
{
	struct attempt *a;
	int fd;

	sock_address_text(address, ai->ai_addr, ai->ai_addrlen);
	fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno;
	if (connect(fd, ai->ai_addr, ai->ai_addrlen) < 0 && errno != EINPROGRESS) {
		int sys = errno;

		close(fd);
		return sys;
	}
	if ((a = calloc(1, sizeof *a)) == NULL || uv_poll_init(loop_uv(d->loop), &a->poll, fd) < 0) {
		free(a);
		close(fd);
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

/* Starts the attempts that are due and sets the timer; ends the dial at its deadline or when all attempts
 * have failed. */
static void dial_next(struct dial *d)
{
	struct mono now = mono_now();
	char address[SOCK_TEXT_BYTES], where[SOCK_HOST_BYTES + 10];
	int sys;

	if (now.ns >= d->deadline.ns) {
		sock_join(where, sizeof where, d->host, d->port);
		err_set(&d->why, PTCP_ECONNECT, "connecting to %s: no response for %.3g s (is the host up, and does a "
		    "firewall let port %u through?)", where, (double)d->o.timeout_ns / 1e9, d->port);
		dial_done(d, -1, NULL);
		return;
	}
	while (d->next < d->n_order && now.ns >= d->next_at.ns) {
		d->next_at = mono_add_ns(now, STAGGER_NS);
		if ((sys = attempt_start(d, d->order[d->next++], address)) != 0)
			attempt_failed(d, address, sys);
	}
	if (d->n_open == 0 && d->next == d->n_order) {
		dial_done(d, -1, NULL);
		return;
	}
	timer_set(d->timer, d->next < d->n_order && d->next_at.ns < d->deadline.ns ? d->next_at :
	    d->deadline);
}

static void on_dial_timer(void *arg) { dial_next(arg); }

static bool permitted(const struct dial *d, const struct addrinfo *ai)
{
	return d->permits == NULL || d->permits(d->permits_arg, ai->ai_addr);
}

/* The two families alternate, starting with the resolver's first choice (RFC 8305, 4). */
static void sort_addresses(struct dial *d)
{
	struct addrinfo *next[2] = { d->answer, d->answer }, *a;
	int family = d->answer->ai_family, i;

	for (i = 0; d->n_order < ATTEMPTS_MAX && (next[0] != NULL || next[1] != NULL); i = !i) {
		for (a = next[i]; a != NULL && ((a->ai_family == family) == i || !permitted(d, a)); a = a->ai_next)
			;
		next[i] = a != NULL ? a->ai_next : NULL;
		if (a != NULL)
			d->order[d->n_order++] = a;
	}
}

static void on_resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *res)
{
	struct dial *d = req->data;
	char shown[TEXT_NAME_BYTES];

	d->resolving = false;
	d->answer = res;
	if (d->over) {
		dial_release(d);
		return;
	}
	if (status < 0 || res == NULL) {
		err_set(&d->why, PTCP_ECONNECT, "resolving %s: %s (check the name)",
		    text_escape(shown, sizeof shown, d->host), status < 0 ? uv_strerror(status) : "no addresses");
		dial_done(d, -1, NULL);
		return;
	}
	sort_addresses(d);
	if (d->n_order == 0) {
		err_set(&d->why, PTCP_EREFUSED, "connecting to %s: its addresses are not permitted",
		    text_escape(shown, sizeof shown, d->host));
		dial_done(d, -1, NULL);
		return;
	}
	dial_next(d);
}

void dial_filter(struct dial *d, bool (*permits)(void *arg, const struct sockaddr *sa), void *arg)
{
	d->permits = permits;
	d->permits_arg = arg;
}

int dial_start(struct dial **out, struct loop *l, const char *host, unsigned port, const struct sock_opts *o,
    void (*done)(void *arg, int fd, const char *address, const struct ptcp_err *why), void *arg,
    struct ptcp_err *e)
{
	struct dial *d = calloc(1, sizeof *d);
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	char service[12], shown[TEXT_NAME_BYTES];
	int r;

	if (d == NULL)
		return err_nomem(e);
	d->loop = l;
	d->o = *o;
	d->port = port;
	d->done = done;
	d->arg = arg;
	d->deadline = mono_add_ns(mono_now(), o->timeout_ns);
	snprintf(d->host, sizeof d->host, "%s", host);
	snprintf(service, sizeof service, "%u", port);
	hints.ai_family = o->family == 4 ? AF_INET : o->family == 6 ? AF_INET6 : AF_UNSPEC;
	if ((r = timer_new(&d->timer, l, on_dial_timer, d, e)) < 0) {
		free(d);
		return r;
	}
	d->dns.data = d;
	if ((r = uv_getaddrinfo(loop_uv(l), &d->dns, on_resolved, d->host, service, &hints)) < 0) {
		timer_free(d->timer);
		free(d);
		return err_set(e, PTCP_ECONNECT, "resolving %s: %s",
		    text_escape(shown, sizeof shown, host), uv_strerror(r));
	}
	d->resolving = true;
	timer_set(d->timer, d->deadline);
	*out = d;
	return 0;
}
