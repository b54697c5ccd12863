/* What is held of one direction until the next hop takes it: a file without a name, used as a ring; the disk space
 * behind the reader is given back. This keeps the books; who writes and reads does it by the descriptor, at the
 * places it is told. One thread. */
#ifndef NET_SPOOL_H
#define NET_SPOOL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/err.h"

#define SPOOL_GRAIN (1u << 20) /* space is taken and given back in pieces of so many bytes */

/* Space that several share. Any thread; outlives what takes of it. */
struct spool_room {
	atomic_uint_fast64_t taken_bytes;
	uint64_t most_bytes;
	struct spool_room *in;       /* where it counts as well; or NULL */
};

struct spool;

/* Whether files can be made in `dir`, and space in them be given back; PTCP_ECONFIG. */
int spool_check(const char *dir, struct ptcp_err *e);
/* Of at most so many bytes, in whole grains and at least one, and of what `room` has. Waits for the disk. PTCP_EIO. */
int spool_new(struct spool **out, const char *dir, uint64_t most_bytes, struct spool_room *room, struct ptcp_err *e);
void spool_free(struct spool *s); /* NULL is fine; all space is given back */

int spool_fd(const struct spool *s);
uint64_t spool_bytes(const struct spool *s);
/* How many bytes may be written, and where; 0: there is no room now. Takes space for them. */
size_t spool_room(struct spool *s, off_t *at);
void spool_wrote(struct spool *s, size_t n);
/* How many of the oldest can be read, and where; 0: there are none. */
size_t spool_oldest(const struct spool *s, off_t *at);
/* These are not needed any more. -1 with errno: their space cannot be given back. */
int spool_read(struct spool *s, size_t n);
/* Once it is empty, and nothing is being written: gives back what is left of its space. -1 likewise. */
int spool_rest(struct spool *s);

#endif
