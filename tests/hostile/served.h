/* What bad servers do well, up to the point where they are bad: the session of the ptcp that connects. What does not
 * go as it must ends the program. */
#ifndef TESTS_HOSTILE_SERVED_H
#define TESTS_HOSTILE_SERVED_H

#include "peer.h"

struct served {
	struct peer *control, *data;
	uint8_t role;
	uint16_t streams;  /* asked for */
	uint32_t flags;    /* of OPEN */
};

/* Who connects does so by virtue of a grant. */
extern bool served_by_grant;

/* Up to HELLO on both sides, with that WIRE_ABLE_* of ours (0: none); its OPEN is read; OPENED; the first data connection is made and has joined. */
struct served served_hello(unsigned ability);
struct served served_greet(struct peer *control, unsigned ability); /* the same, of who has connected */
void served_read_open(struct served *s);
void served_agree(struct served *s, unsigned streams, unsigned cipher);
struct served served_opened(void);
struct served served_joined(void);
struct peer *served_join(void);

/* A file of one block from the first to the last frame; false: refused. */
bool served_file(struct served *s, uint64_t id, uint64_t parent, const char *name);

/* Waits until the client closes; leaves it as it is. */
void served_end(struct served *s);
void served_drop(struct served *s);

#endif
