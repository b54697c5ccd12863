/* What bad servers do well, up to the point where they are bad: the session of the ptcp that connects. What does not
 * go as it must ends the program. */
#ifndef TESTS_HOSTILE_SERVED_H
#define TESTS_HOSTILE_SERVED_H

#include "peer.h"

struct server_session {
	struct peer *control, *data;
	uint8_t role;
	uint16_t streams;  /* asked for */
	uint32_t flags;    /* of OPEN */
};

/* Who connects does so by virtue of a grant. */
extern bool server_session_by_grant;

/* Up to HELLO on both sides, with that WIRE_ABLE_* of ours (0: none); its OPEN is read; OPENED; the first data
 * connection is made and has joined. */
struct server_session server_session_hello(void);
struct server_session server_session_greet(struct peer *control); /* the same, of who has connected */
void server_session_read_open(struct server_session *s);
/* Flags of the next OPENED. */
extern uint8_t server_session_flags;
void server_session_agree(struct server_session *s, unsigned streams, unsigned cipher);
struct server_session server_session_opened(void);
struct server_session server_session_joined(void);
struct peer *server_session_join(void);

/* A file of one block from the first to the last frame; false: refused. */
bool server_session_file(struct server_session *s, uint64_t id, uint64_t parent, const char *name);

/* Waits until the client closes; leaves it as it is. */
void server_session_end(struct server_session *s);
void server_session_drop(struct server_session *s);

#endif
