/* A peer that can be made to misbehave: blocking connections under TLS, frames as they are on the
 * wire. What does not go as it must ends the program with a sentence. */
#ifndef TESTS_HOSTILE_PEER_H
#define TESTS_HOSTILE_PEER_H

#include "core/byteorder.h"
#include "net/tls.h"
#include "patience.h"
#include "wire/frame.h"

struct peer {
	int fd;
	SSL *ssl;
	bool may_end; /* the other end has seen enough at some time: what is sent later is lost */
};

#define ERROR_TEXT_AT 5 /* offset of the text of an ERROR */

struct frame {
	int type; /* END_*, or a WIRE_* */
	uint8_t payload[70000];
	size_t n;
};

/* Instead of a frame: closed in good order, cut, nothing for TIMEOUT_S. */
enum { END_CLOSED = -1, END_CUT = -2, END_SILENT = -3 };
#define TIMEOUT_S patience_s(5)

_Noreturn void die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

extern struct identity self;
extern SSL_CTX *client_tls, *server_tls;
void peer_init(const char *config_dir);

int peer_dial(unsigned port);
/* NULL when the handshake fails. */
struct peer *peer_connect(unsigned port, const char *alpn);
struct peer *peer_over(int fd, const char *alpn); /* that is connected; taken */
struct peer *peer_accept(int listener, const char *alpn);
struct peer *peer_may_accept(int listener, const char *alpn); /* NULL: it is gone, or wants another ALPN */
/* Leaves TLS behind ROUTED: TLS anew, with who is behind the relay. NULL as above; takes `p`. */
struct peer *peer_beyond(struct peer *p, const char *alpn);
void peer_close(struct peer *p);
/* So long nothing may come before it counts as silence, in seconds of a quiet machine. */
void peer_patience(struct peer *p, unsigned s);
/* One second, also on a slow machine: for silence during which the other end loses patience as well. */
void peer_short_patience(struct peer *p);

void peer_send(struct peer *p, const void *bytes, size_t n);
/* False once the other end has closed. */
bool peer_try_send(struct peer *p, const void *bytes, size_t n);
void peer_send_raw(struct peer *p, uint8_t type, uint8_t flags, const void *payload, uint32_t n);
/* The next frame that is no PING, in memory that lasts until the next call. */
const struct frame *peer_frame(struct peer *p); /* without SET_STREAMS and TCP_REPORT, which come in every session */
const struct frame *peer_any_frame(struct peer *p); /* with them */
const char *frame_name(int type);

/* Expectations. */
const struct frame *expect(struct peer *p, int type);
/* An ERROR of this code, and then the end. Frames before it are skipped. */
void expect_error(struct peer *p, unsigned code);
/* The end of the connection, without more than a TLS alert. */
void expect_end(struct peer *p);

/* ---- Frames ---- */

void send_hello(struct peer *p);
void send_hello_lingering(struct peer *p, unsigned linger_ms);
void send_error(struct peer *p, unsigned code, const char *text);
void send_ping(struct peer *p);
void send_entry(struct peer *p, uint8_t type, uint64_t id, uint64_t parent, const void *name, size_t n,
    uint64_t size, const char *target);
#define ID(slot, count) ((uint64_t)(count) << 16 | (slot))
/* A block of the test's own content; `good`: with the right check. The other end may close meanwhile. */
void send_block(struct peer *p, uint64_t id, uint64_t offset, uint32_t n, bool good);
/* The same in the compressed form of the first form_n bytes, with the check of all n. `damage` changes a byte. */
/* Claims that the receiver has the pieces in `omit`. */
void send_patch(struct peer *p, uint64_t id, uint64_t offset, uint32_t n, uint64_t omit);
void send_packed(struct peer *p, uint64_t id, uint64_t offset, uint32_t n, uint32_t form_n, uint8_t damage);
void send_file_end(struct peer *p, uint64_t id, uint64_t size);
void send_dir_end(struct peer *p, uint64_t id);
void send_end(struct peer *p, uint64_t files, uint64_t failed);

#endif
