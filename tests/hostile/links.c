/* Daemons that tell nonsense of their links, and clients that ask for what is known of links as they should not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hostile.h"
#include "wire/jobs.h"

/* ---- Daemons ---- */

static size_t link_frame(uint8_t *out, const char *host, unsigned port, const char *text)
{
	struct wire_link f = { .rate_bps = 1000000000, .delay_ns = 1000000, .messages = 4, .streams = 4,
		.port = (uint16_t)port, .host = { (const uint8_t *)host, strlen(host) },
		.text = { (const uint8_t *)text, strlen(text) } };

	return wire_link_encode(out, &f);
}

/* Link after link, all of them there may be, and then those that there may not. */
static void without_end(struct peer *p, unsigned pause_us)
{
	uint8_t out[WIRE_LINK_MAX_BYTES];
	char host[40];
	unsigned i;

	for (i = 0; i < 10000000; i++) {
		snprintf(host, sizeof host, "h%u.example", i);
		if (!peer_try_send(p, out, link_frame(out, host, 1, "")))
			return;
		usleep(pause_us);
	}
	die("it listens for ever");
}

/* An otherwise good link to "127.0.0.1:PORT" with these 8 bytes at that place. */
static void with_number(struct peer *p, unsigned port, size_t at, uint64_t number)
{
	uint8_t out[WIRE_LINK_MAX_BYTES];
	size_t n = link_frame(out, "127.0.0.1", port, "");

	put_u64(out + WIRE_HEADER_BYTES + at, number);
	peer_send(p, out, n);
}

static void tell(struct peer *p, const char *how, unsigned port)
{
	uint8_t out[WIRE_LINK_MAX_BYTES];
	struct frame state = { .n = 115 };

	if (strcmp(how, "negative") == 0)
		with_number(p, port, 0, UINT64_MAX);
	else if (strcmp(how, "nan") == 0)
		with_number(p, port, 0, UINT64_C(0x7ff8000000000000));
	else if (strcmp(how, "huge") == 0)
		with_number(p, port, 0, UINT64_C(1000000000000000000));
	else if (strcmp(how, "negative-error") == 0)
		with_number(p, port, 8, UINT64_MAX - 1);
	else if (strcmp(how, "slow") == 0)
		with_number(p, port, 16, UINT64_C(1) << 62);
	else if (strcmp(how, "aeons") == 0)
		with_number(p, port, 32, UINT64_MAX);
	else if (strcmp(how, "endless") == 0)
		without_end(p, 0);
	else if (strcmp(how, "dribbling") == 0)
		without_end(p, 200000);
	else if (strcmp(how, "strangers") == 0)
		peer_send(p, out, link_frame(out, "..", 1, "../../etc"));
	else if (strcmp(how, "state") == 0)
		peer_send_raw(p, WIRE_STATE, WIRE_CRITICAL, state.payload, (uint32_t)state.n);
	else if (strcmp(how, "error") == 0)
		send_error(p, 5, "go \033[31maway\nptcp: all is well");
	else if (strcmp(how, "cut") == 0)
		peer_send(p, out, link_frame(out, "127.0.0.1", port, ""));
	else
		die("no way %s", how);
}

/* HOW PORT of the host where its link ends. Only who is cut says that all was told that was. */
static void lying_links(unsigned port, char **arguments)
{
	struct peer *p = peer_accept(hostile_listener, ALPN_JOB);
	uint8_t byte;

	(void)port;
	expect(p, WIRE_LINKS);
	tell(p, arguments[0], (unsigned)atoi(arguments[1]));
	if (strcmp(arguments[0], "cut") == 0) {
		shutdown(p->fd, SHUT_RDWR);
		return;
	}
	SSL_shutdown(p->ssl);
	while (read(p->fd, &byte, 1) > 0)
		;
}

/* ---- Clients ---- */

static struct peer *connected(unsigned port)
{
	struct peer *p = peer_connect(port, ALPN_JOB);

	if (p == NULL)
		die("no handshake");
	return p;
}

static void send_links(struct peer *p)
{
	uint8_t out[WIRE_LINKS_MAX_BYTES];

	peer_send(p, out, wire_links_encode(out));
}

/* CODE: asks, and is refused. */
static void asks_links(unsigned port, char **arguments)
{
	struct peer *p = connected(port);

	send_links(p);
	expect_error(p, (unsigned)atoi(arguments[0]));
	peer_close(p);
}

/* Asks badly: with more than there is to say, for what is only answered, again and again. */
static void asks_badly(unsigned port, char **arguments)
{
	struct peer *p = connected(port);
	uint8_t out[WIRE_LINK_MAX_BYTES];
	const struct frame *f;
	unsigned i;

	(void)arguments;
	peer_send_raw(p, WIRE_LINKS, WIRE_CRITICAL, "x", 1);
	expect_error(p, 10);
	peer_close(p);
	p = connected(port);
	peer_send(p, out, link_frame(out, "127.0.0.1", 1, ""));
	expect_error(p, 10);
	peer_close(p);
	for (i = 0; i < 200; i++) {
		p = connected(port);
		send_links(p);
		peer_try_send(p, out, wire_links_encode(out));
		f = peer_frame(p); /* the second query is an error, unless it came after the answer */
		if (f->type != WIRE_LINK && f->type != WIRE_ERROR)
			die("%s came", frame_name(f->type));
		peer_close(p);
	}
}

const struct hostile hostile_lying[] = { { "lying-links", lying_links }, { NULL, NULL } };
const struct hostile hostile_askers[] = {
	{ "asks-links", asks_links }, { "asks-badly", asks_badly }, { NULL, NULL }
};
