/* A bad relay that is asked to store: it does as a relay should, but for what it says it stores for its client. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hostile.h"

#define WAYS 32
#define GOOD_BYTES 100000u /* that it lets through on each way, as it should be */

/* From the client to the next hop, and back. */
struct way {
	int fd[2];
	bool holds;
	uint64_t bytes; /* from the client */
};

static struct way way[WAYS];
static unsigned n_ways;

static void give(int fd, const uint8_t *p, size_t n)
{
	ssize_t done;

	for (; n > 0 && (done = send(fd, p, n, MSG_NOSIGNAL)) > 0; p += done, n -= (size_t)done)
		;
}

/* Where the client wants to, until it has left TLS; false: it does not. */
static bool begin(struct way *w)
{
	struct peer *p = peer_may_accept(hostile_listener, ALPN_ROUTE);
	uint8_t out[WIRE_ROUTED_MAX_BYTES], first = 0x81;
	const struct frame *f;

	if (p == NULL)
		return false;
	if ((f = peer_frame(p))->type != WIRE_ROUTE) {
		peer_close(p);
		return false;
	}
	*w = (struct way){ .fd = { p->fd, peer_dial(get_u16(f->payload)) }, .holds = f->n > 3u + f->payload[2] };
	peer_try_send(p, out, wire_routed_encode(out));
	SSL_shutdown(p->ssl);
	if (peer_frame(p)->type == END_CLOSED) {
		give(w->fd[1], &first, 1);
		return true;
	}
	close(w->fd[0]); /* it is gone */
	close(w->fd[1]);
	return false;
}

/* "drops" what it says it stores, "repeats" it, or gives the bytes of one way to another ("mixes"). */
static void misuse(struct way *w, const char *how, const uint8_t *p, size_t n)
{
	unsigned i;

	if (strcmp(how, "repeats") == 0) {
		give(w->fd[1], p, n);
		give(w->fd[1], p, n);
	} else if (strcmp(how, "mixes") == 0) {
		for (i = 0; i < n_ways; i++)
			if (way[i].holds && &way[i] != w)
				give(way[i].fd[1], p, n);
	}
}

/* False: that side has ended. */
static bool move(struct way *w, unsigned from, const char *how)
{
	static uint8_t bytes[65536];
	ssize_t n = recv(w->fd[from], bytes, sizeof bytes, 0);

	if (n <= 0)
		return false;
	if (from == 0)
		w->bytes += (uint64_t)n;
	if (from == 0 && w->holds && w->bytes > GOOD_BYTES)
		misuse(w, how, bytes, (size_t)n);
	else
		give(w->fd[!from], bytes, (size_t)n);
	return true;
}

static void end(struct way *w)
{
	close(w->fd[0]);
	close(w->fd[1]);
	*w = way[--n_ways];
}

/* HOW, as above. Until nobody has been there for some seconds. */
static void keeps(unsigned port, char **arguments)
{
	struct pollfd in[2 * WAYS + 1];
	unsigned i;
	bool held = false;

	(void)port;
	for (;;) {
		in[2 * n_ways] = (struct pollfd){ .fd = n_ways < WAYS ? hostile_listener : -1, .events = POLLIN };
		for (i = 0; i < 2 * n_ways; i++)
			in[i] = (struct pollfd){ .fd = way[i / 2].fd[i % 2], .events = POLLIN };
		if (poll(in, 2 * n_ways + 1, n_ways > 0 ? 100000 : 5000) <= 0)
			break;
		if (in[2 * n_ways].revents != 0) {
			if (begin(&way[n_ways]))
				held |= way[n_ways++].holds;
			continue;
		}
		for (i = 2 * n_ways; i-- > 0; )
			if (in[i].revents != 0 && !move(&way[i / 2], i % 2, arguments[0])) {
				end(&way[i / 2]);
				break;
			}
	}
	if (!held)
		die("it was never asked to store");
}

const struct hostile hostile_keeper[] = { { "keeps", keeps }, { NULL, NULL } };
