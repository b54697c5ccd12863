/* Two connected sockets made one: opaque bytes are moved both ways by splice(2), through a pipe each way,
 * without being looked at or copied; where it is allowed, what one side does not take yet is held in a file
 * meanwhile. Everything on the thread of the loop, but for what waits for a disk. */
#ifndef NET_SPLICE_H
#define NET_SPLICE_H

#include <stdint.h>

#include "core/err.h"
#include "net/loop.h"
#include "net/spool.h"

struct splice;

#define SPLICE_FDS 6      /* that one takes: both sockets, two pipes; */
#define SPLICE_HOLD_FDS 2 /* and two files, if it may hold */

/* Embedded by the splice: what may wait for a disk. `run` is called once, on another thread. */
struct splice_job {
	void (*run)(struct splice_job *job);
};

/* Leave to hold. Borrowed as long as the splice lives. */
struct splice_hold {
	const char *dir;             /* for the files */
	struct spool_room *room;     /* of both directions together; most_bytes is the size of either file */
	uint64_t idle_ns;            /* in place of the other, while something is held */
	void (*elsewhere)(void *arg, struct splice_job *job);
	void *arg;
};

struct splice_opts {
	int a, b;                        /* taken, also on failure */
	uint64_t idle_ns;
	const struct splice_hold *hold;  /* NULL: nothing is held */
	void (*ended)(void *arg, const struct ptcp_err *why);
	void *arg;
};

/* Nothing more is read from one while the other takes nothing, and no more can be held; the end of one direction is
 * carried on behind what is held, and the other goes on. `ended` comes once, from the loop: both directions
 * have ended (`why` NULL), one socket failed, what is held could not be (PTCP_EIO), or nothing has moved for idle_ns;
 * only splice_free() is left. */
int splice_new(struct splice **out, struct loop *l, const struct splice_opts *o, struct ptcp_err *e);
/* Closes both; what is held is lost. `gone` (NULL: nobody waits for it) comes from the loop, when nothing of it is
 * left on any thread. NULL is fine, and gone at once. */
void splice_free(struct splice *s, void (*gone)(void *arg), void *arg);
/* Moved, both ways; of these, what was held in between; what is held now. */
uint64_t splice_bytes(const struct splice *s);
uint64_t splice_stored_bytes(const struct splice *s);
uint64_t splice_held_bytes(const struct splice *s);

#endif
