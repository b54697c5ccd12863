/* The ring of bytes spooled in one direction of a relayed connection: an unlinked file whose disk space
 * behind the reader is released. This module does the accounting; callers read and write through the
 * descriptor at the offsets they are given. One thread. */
#ifndef NET_SPOOL_H
#define NET_SPOOL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/err.h"

#define SPOOL_GRAIN (1u << 20) /* unit of allocation, bytes */

/* Disk space shared by several spools. Any thread; outlives its spools. */
struct spool_quota {
	atomic_uint_fast64_t used_bytes;
	uint64_t max_bytes;
	struct spool_quota *parent;  /* a quota that counts the same bytes; or NULL */
};

struct spool;

/* Checks by trial: creating a file in `dir`, releasing space of the file; PTCP_ECONFIG. */
int spool_check(const char *dir, struct ptcp_err *e);
/* A ring of at most `max_bytes`, in whole grains and at least one, within `quota`. Blocks on disk. PTCP_EIO. */
int spool_new(struct spool **out, const char *dir, uint64_t max_bytes, struct spool_quota *quota, struct ptcp_err *e);
void spool_free(struct spool *s); /* NULL is fine; releases all space */

int spool_fd(const struct spool *s);
uint64_t spool_bytes(const struct spool *s);
/* Allocates space: the number of bytes that may be written at *at; 0: full. */
size_t spool_room(struct spool *s, off_t *at);
void spool_wrote(struct spool *s, size_t n);
/* The number of oldest bytes that can be read at *at; 0: empty. */
size_t spool_oldest(const struct spool *s, off_t *at);
/* Drops the n oldest bytes. -1 with errno: their space could not be released. */
int spool_read(struct spool *s, size_t n);
/* Of an empty spool without pending writes: releases all space. -1 with errno, as above. */
int spool_reset(struct spool *s);

#endif
