#include "cli/metrics/scrape.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/err.h"
#include "core/fd.h"
#include "core/text.h"
#include "core/units.h"

enum {
	PATIENCE_S = 5, /* for a whole request and its answer: a scraper sends one packet */
	REQUEST_BYTES = 4096, ADDRESS_BYTES = 72
};

struct scraper {
	int fd; /* -1: free */
	struct mono until;
	char request[REQUEST_BYTES];
	size_t n;       /* bytes of the request */
	char *answer;   /* NULL: the request is not complete */
	size_t bytes, sent;
};

struct scrape {
	int fd;
	char address[ADDRESS_BYTES];
	struct scraper of[SCRAPERS_MAX];
};

/* ---- Listening ---- */

/* Splits "ADDR:PORT" and "[V6]:PORT"; false: no port. */
static bool split(const char *address, char *host, size_t cap, const char **port)
{
	const char *colon = strrchr(address, ':');
	size_t n;

	if (colon == NULL || colon[1] == '\0')
		return false;
	*port = colon + 1;
	n = (size_t)(colon - address);
	if (n >= 2 && address[0] == '[' && colon[-1] == ']')
		address++, n -= 2;
	else if (memchr(address, ':', n) != NULL)
		return false;
	if (n >= cap)
		return false;
	memcpy(host, address, n);
	host[n] = '\0';
	return true;
}

static int open_socket(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV }, *ai;
	int on = 1, off = 0, fd, saved;

	if (host[0] == '\0')
		host = access("/proc/net/if_inet6", F_OK) == 0 ? "::" : "0.0.0.0";
	if (getaddrinfo(host, port, &hints, &ai) != 0) {
		errno = EINVAL;
		return -1;
	}
	if ((fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) >= 0) {
		if (ai->ai_family == AF_INET6) /* "::" accepts IPv4 as well */
			setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
		if (bind(fd, ai->ai_addr, ai->ai_addrlen) < 0 || listen(fd, SCRAPERS_MAX) < 0)
			fd_close(&fd);
	}
	saved = errno;
	freeaddrinfo(ai);
	errno = saved;
	return fd;
}

static void name(struct scrape *s)
{
	struct sockaddr_storage sa;
	socklen_t n = sizeof sa;
	char host[64] = "", port[8] = "";

	if (getsockname(s->fd, (struct sockaddr *)&sa, &n) == 0)
		getnameinfo((struct sockaddr *)&sa, n, host, sizeof host, port, sizeof port,
		    NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(s->address, sizeof s->address, strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host, port);
}

int scrape_new(struct scrape **out, const char *address, struct ptcp_err *e)
{
	struct scrape *s = calloc(1, sizeof *s);
	char host[ADDRESS_BYTES], shown[TEXT_NAME_BYTES];
	const char *port;
	unsigned i;

	if (s == NULL)
		return err_nomem(e);
	text_escape(shown, sizeof shown, address);
	if (!split(address, host, sizeof host, &port)) {
		free(s);
		return err_set(e, PTCP_EUSAGE, "--metrics-listen %s: not ADDR:PORT (such as 127.0.0.1:9711, or "
		    "[::1]:9711)", shown);
	}
	for (i = 0; i < SCRAPERS_MAX; i++)
		s->of[i].fd = -1;
	if ((s->fd = open_socket(host, port)) < 0) {
		free(s);
		return err_sys(e, PTCP_ECONFIG, "--metrics-listen %s (give a free port of an address of this "
		    "host)", shown);
	}
	name(s);
	*out = s;
	return 0;
}

const char *scrape_address(const struct scrape *s) { return s->address; }

/* ---- Connections ---- */

static void scraper_end(struct scraper *c)
{
	fd_close(&c->fd);
	free(c->answer);
	memset(c, 0, sizeof *c);
	c->fd = -1;
}

void scrape_free(struct scrape *s)
{
	unsigned i;

	if (s == NULL)
		return;
	for (i = 0; i < SCRAPERS_MAX; i++)
		scraper_end(&s->of[i]);
	fd_close(&s->fd);
	free(s);
}

unsigned scrape_polled(const struct scrape *s, struct pollfd *out)
{
	unsigned n = 0, i;

	if (s == NULL)
		return 0;
	out[n++] = (struct pollfd){ .fd = s->fd, .events = POLLIN };
	for (i = 0; i < SCRAPERS_MAX; i++)
		if (s->of[i].fd >= 0)
			out[n++] = (struct pollfd){ .fd = s->of[i].fd,
				.events = s->of[i].answer != NULL ? POLLOUT : POLLIN };
	return n;
}

static struct scraper *room(struct scrape *s)
{
	struct scraper *oldest = &s->of[0];
	unsigned i;

	for (i = 0; i < SCRAPERS_MAX; i++) {
		if (s->of[i].fd < 0)
			return &s->of[i];
		if (s->of[i].until.ns < oldest->until.ns)
			oldest = &s->of[i];
	}
	scraper_end(oldest);
	return oldest;
}

static void scrape_take(struct scrape *s)
{
	unsigned i;
	int fd;

	for (i = 0; i < SCRAPERS_MAX && (fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0; i++) {
		struct scraper *c = room(s);

		c->fd = fd;
		c->until = mono_add_ns(mono_now(), PATIENCE_S * NS_PER_S);
	}
}

/* ---- HTTP ---- */

/* The status line for a complete head of a request, without its end. */
static const char *status_of(const char *request, bool *head)
{
	size_t method = strcspn(request, " \r\n"), path;
	const char *at = request + method;

	*head = method == 4 && memcmp(request, "HEAD", 4) == 0;
	if (*at++ != ' ')
		return "400 Bad Request";
	path = strcspn(at, " ?\r\n");
	if (strncmp(at + strcspn(at, " \r\n"), " HTTP/1.", 8) != 0)
		return "400 Bad Request";
	if (!*head && (method != 3 || memcmp(request, "GET", 3) != 0))
		return "405 Method Not Allowed";
	return path == 8 && memcmp(at, "/metrics", 8) == 0 ? "200 OK" : "404 Not Found";
}

static void answer(struct scraper *c, const char *status, bool head, void (*print)(FILE *, void *), void *arg)
{
	char *body = NULL, *all = NULL;
	size_t n = 0, bytes = 0;
	FILE *f = open_memstream(&body, &n);

	if (f != NULL) {
		if (status[0] == '2')
			print(f, arg);
		else
			fprintf(f, "%s: ptcp has /metrics only\n", status);
		if (fclose(f) == 0 && (f = open_memstream(&all, &bytes)) != NULL) {
			fprintf(f, "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
			    "%sContent-Length: %zu\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
			    status,
			    strncmp(status, "405", 3) == 0 ? "Allow: GET, HEAD\r\n" : "", n);
			if (!head)
				fwrite(body, 1, n, f);
			if (fclose(f) == 0)
				c->answer = all, c->bytes = bytes, all = NULL;
		}
	}
	free(body);
	free(all);
	if (c->answer == NULL)
		scraper_end(c); /* no memory: the scraper comes again */
}

static void receive(struct scraper *c, void (*print)(FILE *, void *), void *arg)
{
	ssize_t n = recv(c->fd, c->request + c->n, sizeof c->request - 1 - c->n, 0);
	bool head = false;
	const char *status;

	if (n <= 0) {
		if (n == 0 || (errno != EAGAIN && errno != EINTR))
			scraper_end(c);
		return;
	}
	c->n += (size_t)n;
	c->request[c->n] = '\0';
	if (strlen(c->request) < c->n) {
		answer(c, "400 Bad Request", false, print, arg);
	} else if (strstr(c->request, "\r\n\r\n") != NULL || strstr(c->request, "\n\n") != NULL) {
		status = status_of(c->request, &head);
		answer(c, status, head, print, arg);
	} else if (c->n == sizeof c->request - 1) {
		answer(c, "431 Request Header Fields Too Large", false, print, arg);
	}
}

static void reply(struct scraper *c)
{
	ssize_t n = send(c->fd, c->answer + c->sent, c->bytes - c->sent, MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0 || (c->sent += (size_t)n) == c->bytes) {
		shutdown(c->fd, SHUT_WR);
		scraper_end(c);
	}
}

void scrape_step(struct scrape *s, const struct pollfd *polled, void (*print)(FILE *f, void *arg), void *arg)
{
	struct mono now = mono_now();
	unsigned i;

	if (s == NULL)
		return;
	if (polled->revents != 0)
		scrape_take(s);
	for (i = 0; i < SCRAPERS_MAX; i++) {
		struct scraper *c = &s->of[i];

		if (c->fd >= 0 && c->answer == NULL)
			receive(c, print, arg);
		if (c->fd >= 0 && c->answer != NULL)
			reply(c);
		if (c->fd >= 0 && now.ns >= c->until.ns)
			scraper_end(c);
	}
}
