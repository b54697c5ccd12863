/* What bad clients do well, up to the point where they are bad: sessions and streams of a running server. What
 * does not go as it must ends the program. */
#ifndef TESTS_HOSTILE_SESSION_H
#define TESTS_HOSTILE_SESSION_H

#include "peer.h"

struct session {
	unsigned port;
	struct peer *control, *data;
	uint8_t id[16], key[32];
	unsigned granted; /* streams */
};

/* Sends OPEN for that path, with 2 streams. */
void ask(struct peer *p, uint8_t role, const char *path, size_t n, uint32_t flags);
/* A control connection, and a data connection that has yet to join. */
struct peer *control(unsigned port);
struct peer *data(unsigned port);
/* A session up to OPENED; with flags of OPEN; with a stream that has joined. */
struct session opened(unsigned port, uint8_t role, const char *path);
void take_opened(struct session *s); /* expects OPENED */
void send_streams(struct peer *p, unsigned streams, uint64_t bytes); /* SET_STREAMS */
struct session opened_with(unsigned port, uint8_t role, const char *path, uint32_t flags);
/* The acceptor receives, and preserves these attributes (enum wire_preserve). */
struct session opened_preserving(unsigned port, const char *path, uint16_t preserve);
struct session sending(unsigned port, const char *path);

struct wire_join join_frame(const struct session *s, struct peer *p, unsigned number);
void send_join(struct peer *p, const struct wire_join *f);
struct peer *join(const struct session *s, unsigned number);
/* Answered by ERROR 5 and always the same text. */
void expect_no_join(struct peer *p, const char *what);

/* The verdict of ANSWER; 0: FAIL. */
unsigned answer(struct session *s, uint64_t id);
/* DONE (true) or FAIL of the entry; ACKs on the way are skipped. */
bool verdict(struct session *s, uint64_t id);
/* A file of one block from the first to the last frame; false: refused. */
bool file(struct session *s, uint64_t id, uint64_t parent, const char *name);

/* An entry "x", a link to "y" if it is no file, with these attributes as they are. */
void send_with_attrs(struct peer *p, uint8_t type, uint64_t id, uint64_t size, uint32_t mode, const char *attrs,
    size_t n);

/* Ends it well; leaves it as it is. */
void finish(struct session *s, unsigned files, unsigned failed);
void drop(struct session *s);

#endif
