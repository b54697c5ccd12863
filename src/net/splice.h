/* Connects two sockets: splice(2) moves opaque bytes in both directions, through a pipe per direction, without
 * copying. With a spool, bytes that the next hop does not take yet are stored in a file. Everything on the
 * thread of the loop, except waiting for the disk. */
#ifndef NET_SPLICE_H
#define NET_SPLICE_H

#include <stdint.h>

#include "core/err.h"
#include "net/loop.h"
#include "net/spool.h"

struct splice;

#define SPLICE_FDS 6       /* descriptors of a splice: two sockets, two pipes */
#define SPLICE_SPOOL_OUT_BYTES (256u << 10) /* buffer of each direction for what returns from the disk */
#define SPLICE_SPOOL_FDS 2 /* descriptors of the two files of a spool */

/* Embedded by the splice: disk I/O that may block. `run` is called once, on another thread. */
struct splice_job {
	void (*run)(struct splice_job *job);
};

/* Permission to spool. Borrowed as long as the splice lives. */
struct splice_spool {
	const char *dir;             /* directory of the files */
	struct spool_quota *quota;   /* quota of both directions together; max_bytes is also the size of each file */
	uint64_t idle_ns;            /* replaces splice_opts.idle_ns while bytes are spooled */
	void (*submit)(void *arg, struct splice_job *job);
	void *arg;
};

struct splice_opts {
	uint64_t idle_ns;
	const struct splice_spool *spool;  /* NULL: no spooling */
	void (*ended)(void *arg, const struct ptcp_err *why);
	void *arg;
};

/* A socket is not read while its peer takes no bytes and the spool is full. The end of one direction is
 * forwarded after its spooled bytes; the other direction continues. `ended` is called once, from the loop:
 * both directions have ended (`why` NULL), a socket failed, spooling failed (PTCP_EIO), or no byte moved for
 * idle_ns. Only splice_free() is allowed then. */
int splice_new(struct splice **out, struct loop *l, int fd[2], const struct splice_opts *o, struct ptcp_err *e);
/* Closes both sockets and discards spooled bytes. `gone` (may be NULL) is called from the loop when no thread
 * uses the splice any more; for a NULL splice at once. */
void splice_free(struct splice *s, void (*gone)(void *arg), void *arg);
/* Bytes forwarded in both directions; bytes spooled in total; bytes spooled now. */
uint64_t splice_bytes(const struct splice *s);
uint64_t splice_total_spooled_bytes(const struct splice *s);
uint64_t splice_spooled_bytes(const struct splice *s);

#endif
