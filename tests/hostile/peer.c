#include "peer.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zstd.h>

#include "store/hash.h"
#include "wire/block.h"

struct identity self;
SSL_CTX *client_tls, *server_tls;

void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

void peer_init(const char *config_dir)
{
	struct ptcp_err e;

	if (identity_load(&self, config_dir, false, &e) < 0 || tls_new(&client_tls, &self, false, 7, &e) < 0 ||
	    tls_new(&server_tls, &self, true, 7, &e) < 0)
		die("%s", e.msg);
}

static void patience(int fd, unsigned s)
{
	struct timeval t = { s, 0 };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
}

void peer_patience(struct peer *p, unsigned s)
{
	patience(p->fd, patience_s(s));
}

void peer_short_patience(struct peer *p) { patience(p->fd, 1); }

int peer_dial(unsigned port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof sa) < 0)
		die("connecting: %s", strerror(errno));
	patience(fd, TIMEOUT_S);
	return fd;
}

static struct peer *start(int fd, SSL_CTX *tls, const char *alpn)
{
	struct peer *p = calloc(1, sizeof *p);
	uint8_t text[64];
	size_t n = strlen(alpn);
	int r, on = 1;

	/* Without it, each second small frame waits 40 ms for the acknowledgment of the first. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	p->fd = fd;
	p->ssl = SSL_new(tls);
	SSL_set_fd(p->ssl, fd);
	text[0] = (uint8_t)n;
	memcpy(text + 1, alpn, n);
	if (tls == client_tls)
		SSL_set_alpn_protos(p->ssl, text, (unsigned)n + 1);
	r = tls == client_tls ? SSL_connect(p->ssl) : SSL_accept(p->ssl);
	ERR_clear_error();
	if (r == 1)
		return p;
	peer_close(p);
	return NULL;
}

struct peer *peer_connect(unsigned port, const char *alpn)
{
	return peer_over(peer_dial(port), alpn);
}

struct peer *peer_over(int fd, const char *alpn)
{
	return start(fd, client_tls, alpn);
}

struct peer *peer_may_accept(int listener, const char *alpn)
{
	int fd = accept(listener, NULL, NULL);
	const unsigned char *got;
	struct peer *p;
	unsigned n;

	if (fd < 0)
		die("nobody connects");
	patience(fd, TIMEOUT_S);
	if ((p = start(fd, server_tls, alpn)) == NULL)
		return NULL;
	SSL_get0_alpn_selected(p->ssl, &got, &n);
	if (n == strlen(alpn) && memcmp(got, alpn, n) == 0)
		return p;
	peer_close(p);
	return NULL;
}

struct peer *peer_accept(int listener, const char *alpn)
{
	struct peer *p = peer_may_accept(listener, alpn);

	if (p == NULL)
		die("no handshake, or another ALPN");
	return p;
}

struct peer *peer_beyond(struct peer *p, const char *alpn)
{
	int fd = p->fd;

	SSL_shutdown(p->ssl);
	if (peer_frame(p)->type != END_CLOSED)
		die("the relay does not leave TLS");
	SSL_free(p->ssl);
	free(p);
	return peer_over(fd, alpn);
}

void peer_close(struct peer *p)
{
	if (p == NULL)
		return;
	SSL_free(p->ssl);
	close(p->fd);
	free(p);
}

bool peer_try_send(struct peer *p, const void *bytes, size_t n)
{
	const uint8_t *b = bytes;
	size_t done;

	for (; n > 0; b += done, n -= done) { /* a record at a time */
		ERR_clear_error();
		if (SSL_write_ex(p->ssl, b, n, &done) != 1)
			return false;
	}
	return true;
}

void peer_send(struct peer *p, const void *bytes, size_t n)
{
	if (!peer_try_send(p, bytes, n) && !p->may_end)
		die("closed while we send");
}

void peer_send_raw(struct peer *p, uint8_t type, uint8_t flags, const void *payload, uint32_t n)
{
	uint8_t head[8] = { type, flags, 0, 0 };

	put_u32(head + 4, n);
	peer_send(p, head, sizeof head);
	if (payload != NULL)
		peer_send(p, payload, n);
}

/* 1, or END_*. */
static int take(struct peer *p, uint8_t *to, size_t n)
{
	size_t got;
	int r;

	while (n > 0) {
		ERR_clear_error();
		errno = 0;
		if (SSL_read_ex(p->ssl, to, n, &got) != 1) {
			r = SSL_get_error(p->ssl, 0);
			return r == SSL_ERROR_ZERO_RETURN ? END_CLOSED :
			    r == SSL_ERROR_WANT_READ || errno == EAGAIN ? END_SILENT : END_CUT;
		}
		to += got;
		n -= got;
	}
	return 1;
}

const struct frame *peer_frame(struct peer *p)
{
	const struct frame *f;

	do
		f = peer_any_frame(p);
	while (f->type == WIRE_SET_STREAMS || f->type == WIRE_TCP_REPORT);
	return f;
}

const struct frame *peer_any_frame(struct peer *p)
{
	static struct frame f;
	uint8_t head[8];

	do {
		f.n = 0;
		if ((f.type = take(p, head, sizeof head)) < 0)
			return &f;
		f.type = head[0];
		f.n = get_u32(head + 4);
		if (f.n > sizeof f.payload)
			die("a frame of %zu bytes", f.n);
		if (f.n > 0 && take(p, f.payload, f.n) < 0)
			die("an unfinished frame");
	} while (f.type == WIRE_PING);
	return &f;
}

const char *frame_name(int type)
{
	return type == END_CLOSED ? "the end" : type == END_CUT ? "a cut" : type == END_SILENT ? "silence" :
	    wire_type_name((unsigned)type);
}

const struct frame *expect(struct peer *p, int type)
{
	const struct frame *f = peer_frame(p);

	if (f->type == WIRE_ERROR && type != WIRE_ERROR)
		die("%s expected, an ERROR came: %u %.*s", frame_name(type), get_u16(f->payload),
		    (int)f->n - ERROR_TEXT_AT, (const char *)f->payload + ERROR_TEXT_AT);
	if (f->type != type)
		die("%s expected, %s came", frame_name(type), frame_name(f->type));
	return f;
}

void expect_error(struct peer *p, unsigned code)
{
	const struct frame *f;

	do
		f = peer_frame(p);
	while (f->type >= 0 && f->type != WIRE_ERROR);
	if (f->type != WIRE_ERROR)
		die("ERROR %u expected, %s came", code, frame_name(f->type));
	if (get_u16(f->payload) != code)
		die("ERROR %u expected, ERROR %u came: %.*s", code, get_u16(f->payload), (int)f->n - ERROR_TEXT_AT,
		    (const char *)f->payload + ERROR_TEXT_AT);
	f = peer_frame(p);
	if (f->type != END_CLOSED)
		die("the end expected after ERROR, %s came", frame_name(f->type));
}

void expect_end(struct peer *p)
{
	const struct frame *f = peer_frame(p);

	if (f->type != END_CLOSED && f->type != END_CUT)
		die("the end expected, %s came", frame_name(f->type));
}

/* ---- Frames ---- */

void send_hello(struct peer *p)
{
	send_hello_lingering(p, 0);
}

void send_hello_lingering(struct peer *p, unsigned linger_ms)
{
	struct wire_hello h = { .version_min = 1, .version_max = 1, .timeout_ms = 10000, .quiet_ms = 30000,
		.max_entries = 1000, .max_streams = 16, .linger_ms = linger_ms,
		.software = { (const uint8_t *)"hostile\033[31m", 12 } };
	uint8_t out[WIRE_HELLO_MAX_BYTES];

	peer_send(p, out, wire_hello_encode(out, &h));
}

void send_error(struct peer *p, unsigned code, const char *text)
{
	struct wire_error f = { { (uint16_t)code, 0, { (const uint8_t *)text, strlen(text) } } };
	uint8_t out[WIRE_ERROR_MAX_BYTES];

	peer_send(p, out, wire_error_encode(out, &f));
}

void send_ping(struct peer *p)
{
	static uint64_t tick;
	struct wire_ping f = { 0, ++tick };
	uint8_t out[WIRE_PING_MAX_BYTES];

	peer_try_send(p, out, wire_ping_encode(out, &f));
}

void send_entry(struct peer *p, uint8_t type, uint64_t id, uint64_t parent, const void *name, size_t n,
    uint64_t size, const char *target)
{
	struct wire_entry f = { .type = type, .id = id, .parent = parent, .size_bytes = size, .mode = 0755,
		.mtime_s = 1000000000, .name = { name, n },
		.target = { (const uint8_t *)target, target != NULL ? strlen(target) : 0 } };
	uint8_t out[WIRE_ENTRY_BYTES(0)];

	peer_send(p, out, wire_entry_encode(out, &f));
}

static uint8_t *content(uint64_t offset, uint32_t n)
{
	static uint8_t data[WIRE_BLOCK_MAX];
	uint32_t i;

	for (i = 0; i < n; i++)
		data[i] = (uint8_t)((offset + i) * 31 >> 3);
	return data;
}

void send_block(struct peer *p, uint64_t id, uint64_t offset, uint32_t n, bool good)
{
	static uint8_t out[WIRE_BLOCK_HEAD_BYTES + WIRE_CHUNK_BYTES + WIRE_BLOCK_END_BYTES];
	struct wire_block b = { id, offset, n, 0, false };
	struct wire_block_end end = { WIRE_BLOCK_GOOD, 0 };

	wire_block_encode(out, &b);
	memcpy(out + WIRE_BLOCK_HEAD_BYTES, content(offset, n), n);
	end.check = hash_check(out + WIRE_HEADER_BYTES, hash_content(content(offset, n), n)) ^ !good;
	wire_block_end_encode(out + WIRE_BLOCK_HEAD_BYTES + n, &end);
	peer_try_send(p, out, WIRE_BLOCK_HEAD_BYTES + n + WIRE_BLOCK_END_BYTES);
}

void send_patch(struct peer *p, uint64_t id, uint64_t offset, uint32_t n, uint64_t omit)
{
	static uint8_t out[WIRE_BLOCK_HEAD_BYTES + WIRE_CHUNK_BYTES + WIRE_BLOCK_END_BYTES];
	uint8_t *form = out + WIRE_BLOCK_HEAD_BYTES;
	struct wire_block b = { .id = id, .offset = offset, .length_bytes = n, .patch = true };
	struct wire_block_end end = { WIRE_BLOCK_GOOD, 0 };

	memcpy(form, content(offset, n), n);
	b.packed_bytes = omit == 0 ? 0 : wire_patch_gather(form, n, omit);
	put_u64(form + b.packed_bytes, omit);
	b.packed_bytes += WIRE_OMIT_BYTES;
	wire_block_encode(out, &b);
	end.check = hash_check(out + WIRE_HEADER_BYTES, hash_content(content(offset, n), n));
	wire_block_end_encode(form + b.packed_bytes, &end);
	peer_try_send(p, out, WIRE_BLOCK_HEAD_BYTES + b.packed_bytes + WIRE_BLOCK_END_BYTES);
}

void send_packed(struct peer *p, uint64_t id, uint64_t offset, uint32_t n, uint32_t form_n, uint8_t damage)
{
	static uint8_t out[WIRE_BLOCK_HEAD_BYTES + WIRE_CHUNK_BYTES + WIRE_BLOCK_END_BYTES];
	uint8_t *form = out + WIRE_BLOCK_HEAD_BYTES;
	size_t packed = ZSTD_compress(form, n - 1, content(offset, form_n), form_n, 9);
	struct wire_block b = { id, offset, n, (uint32_t)packed, false };
	struct wire_block_end end = { WIRE_BLOCK_GOOD, 0 };

	if (ZSTD_isError(packed))
		die("the test's content does not shrink");
	form[packed / 2] ^= damage;
	wire_block_encode(out, &b);
	end.check = hash_check(out + WIRE_HEADER_BYTES, hash_content(content(offset, n), n));
	wire_block_end_encode(form + packed, &end);
	peer_try_send(p, out, WIRE_BLOCK_HEAD_BYTES + packed + WIRE_BLOCK_END_BYTES);
}

void send_file_end(struct peer *p, uint64_t id, uint64_t size)
{
	struct wire_file_end f = { .id = id };
	uint32_t i, n, grid = wire_grid_bytes(size);
	uint8_t out[WIRE_FILE_END_MAX_BYTES];

	for (i = 0; (n = wire_grid_length(wire_grid_of(size), i)) > 0; i++)
		digest_add(&f.digest, hash_term(i, n, hash_content(content((uint64_t)i * grid, n), n)));
	peer_send(p, out, wire_file_end_encode(out, &f));
}

void send_dir_end(struct peer *p, uint64_t id)
{
	send_entry(p, WIRE_DIR_END, id, 0, "", 0, 0, NULL);
}

void send_end(struct peer *p, uint64_t files, uint64_t failed)
{
	struct wire_totals t = { files, 0, 1 };
	struct wire_end f = { files, failed };
	uint8_t out[64];

	peer_send(p, out, wire_totals_encode(out, &t));
	peer_send(p, out, wire_end_encode(out, &f));
}
