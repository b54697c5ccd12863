/* Clients that request the removal of leftovers as they should not, and servers that report nonsense about it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hostile.h"
#include "wire/jobs.h"

static struct span text(const char *s) { return (struct span){ (const uint8_t *)s, strlen(s) }; }

/* ---- Clients ---- */

static struct peer *asks(unsigned port, const char *path)
{
	struct wire_clean f = { .path = text(path) };
	struct peer *p = peer_connect(port, ALPN_JOB);
	uint8_t out[WIRE_CLEAN_MAX_BYTES];

	if (p == NULL)
		die("no handshake");
	peer_send(p, out, wire_clean_encode(out, &f));
	return p;
}

/* CODE PATH: is refused. */
static void cleans(unsigned port, char **arguments)
{
	struct peer *p = asks(port, arguments[1]);

	expect_error(p, (unsigned)atoi(arguments[0]));
	peer_close(p);
}

/* Malformed requests, answers as requests, bytes behind a request, many requests that nobody waits for. */
static void cleans_badly(unsigned port, char **arguments)
{
	static const uint8_t bad[][14] = {
		{ 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, '/' },      /* a flag that is none */
		{ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, '/' },      /* a path that is not there */
		{ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, '\0' },     /* a NUL */
	};
	struct wire_cleaned t = { .final = 1 };
	uint8_t out[WIRE_CLEANED_MAX_BYTES];
	struct peer *p;
	size_t i;

	(void)arguments;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		if ((p = peer_connect(port, ALPN_JOB)) == NULL)
			die("no handshake");
		peer_send_raw(p, WIRE_CLEAN, WIRE_CRITICAL, bad[i], 12);
		expect_error(p, 10);
		peer_close(p);
	}
	if ((p = peer_connect(port, ALPN_JOB)) == NULL)
		die("no handshake");
	peer_send(p, out, wire_cleaned_encode(out, &t));
	expect_error(p, 10);
	peer_close(p);
	for (i = 0; i < 100; i++) {
		p = asks(port, "/");
		if (i % 2 == 0) /* the same is said once more, or it is gone at once */
			peer_send_raw(p, WIRE_CLEAN, WIRE_CRITICAL, bad[2], 12);
		peer_close(p);
	}
}

const struct hostile hostile_cleaners[] = {
	{ "cleans", cleans }, { "cleans-badly", cleans_badly }, { NULL, NULL }
};

/* ---- Servers ---- */

static void put_leftover(struct peer *p, const char *path, const char *why)
{
	struct wire_leftover f = { .bytes = UINT64_MAX, .age_ms = UINT64_MAX, .path = text(path),
		.why = { why[0] != '\0' ? 13 : 0, 0, text(why) } };
	uint8_t out[WIRE_LEFTOVER_MAX_BYTES];

	peer_try_send(p, out, wire_leftover_encode(out, &f));
}

static void put_cleaned(struct peer *p, uint64_t files, uint64_t failed, uint8_t final)
{
	struct wire_cleaned f = { .files = files, .bytes = UINT64_MAX, .failed = failed, .final = final };
	uint8_t out[WIRE_CLEANED_MAX_BYTES];

	peer_try_send(p, out, wire_cleaned_encode(out, &f));
}

/* HOW */
static void lying_cleaning(unsigned port, char **arguments)
{
	struct peer *p = peer_accept(hostile_listener, ALPN_JOB);
	const char *how = arguments[0];
	uint8_t byte;
	unsigned i;

	(void)port;
	expect(p, WIRE_CLEAN);
	if (strcmp(how, "endless") == 0) {
		for (i = 0; i < 20000; i++)
			put_leftover(p, "x", "");
	} else if (strcmp(how, "terminal") == 0) {
		put_leftover(p, "\033[31mred\nptcp: all is well", "");
		put_leftover(p, "b", "\033[31mred\nptcp: all is well");
		put_cleaned(p, 1, 1, 1);
	} else if (strcmp(how, "uncounted") == 0) {
		put_leftover(p, "x", "");
		put_cleaned(p, 0, 0, 1);
	} else if (strcmp(how, "overflow") == 0) {
		put_cleaned(p, UINT64_MAX, 2, 1);
	} else if (strcmp(how, "cut") == 0) {
		put_leftover(p, "x", "");
		put_cleaned(p, 1, 0, 0);
	} else {
		die("no way %s", how);
	}
	SSL_shutdown(p->ssl);
	while (read(p->fd, &byte, 1) > 0)
		;
}

const struct hostile hostile_cleaning[] = { { "lying-cleaning", lying_cleaning }, { NULL, NULL } };
