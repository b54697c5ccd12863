/* Clients that never say who they are, or are nobody: half-open, slow and endless connections, floods, and other
 * kinds of TLS. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/units.h"
#include "hostile.h"

static const uint8_t half_hello[] = { 0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3 };

/* 200 connections that say nothing, or half a ClientHello, until our stdin ends. */
static void half_open(unsigned port, char **arguments)
{
	int fds[200], i;
	char byte;

	(void)arguments;
	for (i = 0; i < 200; i++) {
		fds[i] = peer_dial(port);
		if (i % 2 == 0 && send(fds[i], half_hello, sizeof half_hello, MSG_NOSIGNAL) < 0)
			die("cannot send");
	}
	puts("open");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	for (i = 0; i < 200; i++)
		close(fds[i]);
}

/* A byte of the handshake every 200 ms: it ends all the same, after ten seconds, which PTCP_TEST_PATIENCE
 * multiplies. */
static void slow_handshake(unsigned port, char **arguments)
{
	int fd = peer_dial(port);
	const char *factor = getenv("PTCP_TEST_PATIENCE");
	time_t limit_s = 10 * (factor != NULL ? atoi(factor) : 1) + 5, start = time(NULL);
	char byte;
	size_t i;

	(void)arguments;
	for (i = 0; time(NULL) - start < limit_s; i++) {
		if (send(fd, i < sizeof half_hello ? (const void *)(half_hello + i) : "x", 1, MSG_NOSIGNAL) < 0 ||
		    recv(fd, &byte, 1, MSG_DONTWAIT) == 0)
			return;
		poll(NULL, 0, 200);
	}
	die("a handshake may take for ever");
}

/* ---- A flood ---- */

/* From that address of loopback; -1 if it is not taken. */
static int dial_from(unsigned port, uint32_t address)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)port) }, from = to;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	from.sin_addr.s_addr = htonl(address);
	from.sin_port = 0;
	if (bind(fd, (struct sockaddr *)&from, sizeof from) == 0 &&
	    connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
		return fd;
	close(fd);
	return -1;
}

/* Says nothing, half a ClientHello, garbage, or shakes hands as nobody who is known. */
static void begin(int fd, unsigned kind)
{
	struct timeval patience = { 0, 200000 };
	SSL *ssl;

	if (kind == 1)
		send(fd, half_hello, sizeof half_hello, MSG_NOSIGNAL);
	if (kind == 2)
		send(fd, "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL);
	if (kind != 3)
		return;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	ssl = SSL_new(client_tls);
	SSL_set_fd(ssl, fd);
	SSL_set_alpn_protos(ssl, (const uint8_t *)"\6ptcp/1", 7);
	SSL_connect(ssl);
	ERR_clear_error();
	SSL_free(ssl);
}

static bool is_over(void)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	char byte;

	return poll(&in, 1, 0) > 0 && read(0, &byte, 1) <= 0;
}

/* Of the i-th of a flood. */
static uint32_t address_of(const char *whence, unsigned i)
{
	return strcmp(whence, "many") == 0 ? 0x7f010000u + i % 60000 :
	    strcmp(whence, "one") == 0 ? 0x7f020304u : INADDR_LOOPBACK;
}

/* ARGUMENTS: HELD RATE many|one|same (as the client). So many connections stay open, the oldest is closed for each new
 * one, so many new ones come a second, until our stdin ends. Then prints how many came in all. */
static void flood(unsigned port, char **arguments)
{
	unsigned held = (unsigned)atoi(arguments[0]), rate = (unsigned)atoi(arguments[1]), i, made = 0;
	bool told = false;
	int *fds = malloc(held * sizeof *fds);
	struct mono start = { 0 };

	for (i = 0; i < held; i++)
		fds[i] = -1;
	for (i = 0;; i++) {
		if (i >= held && !told) {
			puts("open");
			fflush(stdout);
			told = true;
			start = mono_now();
		}
		/* First as fast as can be, then so many a second. */
		while (told && mono_diff_ns(mono_now(), start) < (uint64_t)(i - held) * NS_PER_S / rate)
			poll(NULL, 0, 2);
		if (told && i % 16 == 0 && is_over())
			break;
		if (fds[i % held] >= 0)
			close(fds[i % held]);
		if ((fds[i % held] = dial_from(port, address_of(arguments[2], i))) < 0)
			continue;
		made++;
		begin(fds[i % held], told ? i % 4 : i % 2);
	}
	printf("%u\n", made);
}

/* ---- Other kinds of TLS ---- */

static SSL_CTX *client_without_identity(void)
{
	SSL_CTX *c = SSL_CTX_new(TLS_client_method());

	SSL_CTX_set_verify(c, SSL_VERIFY_NONE, NULL);
	return c;
}

/* Whether the server answers anything after the handshake but an alert and the end. */
static bool is_let_in(unsigned port, SSL_CTX *tls, const char *alpn)
{
	SSL *ssl = SSL_new(tls);
	int fd = peer_dial(port);
	uint8_t name[32], byte;
	bool in;

	name[0] = (uint8_t)strlen(alpn);
	memcpy(name + 1, alpn, strlen(alpn));
	SSL_set_fd(ssl, fd);
	if (name[0] > 0)
		SSL_set_alpn_protos(ssl, name, name[0] + 1u);
	in = SSL_connect(ssl) == 1 && SSL_read(ssl, &byte, 1) == 1;
	ERR_clear_error();
	SSL_free(ssl);
	close(fd);
	SSL_CTX_free(tls);
	return in;
}

static SSL_CTX *with_key(const char *type)
{
	SSL_CTX *c = client_without_identity();
	EVP_PKEY *key = strcmp(type, "RSA") == 0 ? EVP_PKEY_Q_keygen(NULL, NULL, type, (size_t)2048) :
	    EVP_PKEY_Q_keygen(NULL, NULL, type, "P-256");
	X509 *x = X509_new();

	ASN1_TIME_set_string(X509_getm_notBefore(x), "19700101000000Z");
	ASN1_TIME_set_string(X509_getm_notAfter(x), "99991231235959Z");
	X509_set_pubkey(x, key);
	X509_sign(x, key, EVP_sha256());
	if (SSL_CTX_use_certificate(c, x) != 1 || SSL_CTX_use_PrivateKey(c, key) != 1)
		die("no %s identity", type);
	X509_free(x);
	EVP_PKEY_free(key);
	return c;
}

/* Older TLS, no identity, one of another kind, no ALPN, somebody else's certificate: nothing is said to them. */
static void other_tls(unsigned port, char **arguments)
{
	SSL_CTX *old, *own;

	(void)arguments;
	old = client_without_identity();
	SSL_CTX_set_max_proto_version(old, TLS1_2_VERSION);
	SSL_CTX_use_certificate(old, self.cert);
	SSL_CTX_use_PrivateKey(old, self.key);
	if (is_let_in(port, old, ALPN_CONTROL))
		die("TLS 1.2 is accepted");
	if (is_let_in(port, client_without_identity(), ALPN_CONTROL))
		die("nobody is let in");
	if (is_let_in(port, with_key("RSA"), ALPN_CONTROL) || is_let_in(port, with_key("EC"), ALPN_CONTROL))
		die("another kind of key is let in");
	own = client_without_identity();
	SSL_CTX_use_certificate(own, self.cert);
	SSL_CTX_use_PrivateKey(own, self.key);
	if (is_let_in(port, own, ""))
		die("no ALPN is accepted");
	if (!is_let_in(port, (SSL_CTX_up_ref(client_tls), client_tls), ALPN_CONTROL))
		die("the good one is not let in");
}

static int no_ticket(SSL *ssl, SSL_SESSION *s)
{
	(void)ssl;
	(void)s;
	die("the server sent a ticket");
}

/* It gives out nothing to resume with, so that nothing is replayed; what we make up is not taken. */
static void tickets(unsigned port, char **arguments)
{
	SSL_SESSION *kept;
	struct peer *p;
	SSL *ssl;
	int fd;

	(void)arguments;
	SSL_CTX_set_session_cache_mode(client_tls, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(client_tls, no_ticket);
	if ((p = peer_connect(port, ALPN_CONTROL)) == NULL)
		die("no handshake");
	send_hello(p);
	expect(p, WIRE_HELLO);
	kept = SSL_get1_session(p->ssl);
	if (SSL_SESSION_has_ticket(kept) || SSL_SESSION_get_max_early_data(kept) > 0)
		die("the session can be resumed");
	peer_close(p);
	ssl = SSL_new(client_tls);
	fd = peer_dial(port);
	SSL_set_fd(ssl, fd);
	SSL_set_alpn_protos(ssl, (const uint8_t *)"\6ptcp/1", 7);
	SSL_set_session(ssl, kept);
	if (SSL_connect(ssl) == 1 && SSL_session_reused(ssl))
		die("a session was resumed");
}

/* Whether the server answers a JOIN to a session that does not exist; false: it closes the connection unread. */
static bool is_answered(unsigned port)
{
	struct wire_join f = { .session = { 1 }, .stream = 1 };
	uint8_t out[WIRE_JOIN_MAX_BYTES], in[WIRE_HEADER_BYTES];
	int fd = dial_from(port, 0x7f030405u), on = 1;
	SSL *ssl = SSL_new(client_tls);
	bool answered;

	if (fd < 0)
		die("no connection");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	SSL_set_fd(ssl, fd);
	SSL_set_alpn_protos(ssl, (const uint8_t *)"\13" ALPN_DATA, 12);
	answered = SSL_connect(ssl) == 1 && SSL_write(ssl, out, (int)wire_join_encode(out, &f)) > 0 &&
	    SSL_read(ssl, in, sizeof in) == sizeof in;
	ERR_clear_error();
	SSL_free(ssl);
	close(fd);
	return answered;
}

/* Data connections to a session that does not exist, of nobody who is known. Prints the number of answered ones, and
 * the seconds until the address was shut out. */
static void join_flood(unsigned port, char **arguments)
{
	struct mono start = mono_now();
	unsigned n = 0;

	(void)arguments;
	while (n < 400 && is_answered(port))
		n++;
	printf("%u %u\n", n, (unsigned)(mono_diff_ns(mono_now(), start) / NS_PER_S));
}

const struct hostile hostile_strangers[] = {
	{ "half-open", half_open }, { "slow-handshake", slow_handshake }, { "flood", flood },
	{ "other-tls", other_tls }, { "tickets", tickets }, { "join-flood", join_flood }, { NULL, NULL }
};
