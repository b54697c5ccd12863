#include "stream/packing.h"

#include <ptcp/ptcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "core/bitmap.h"
#include "core/charged.h"
#include "model/compression.h"
#include "model/parameters.h"
#include "wire/frame.h"

/* A compressor, used by one thread at a time. */
struct packer {
	struct packer *next;
	ZSTD_CCtx *zstd;
	uint64_t charged;     /* bytes charged for `zstd` */
	uint8_t out[WIRE_CHUNK_BYTES];
};

/* Since the last decision. */
struct interval {
	struct mono since;                      /* 0: none is running */
	uint64_t data_bytes, packed_bytes;      /* bytes of chunks before and after compression; with a level, also of
	                                           chunks that stay as they are */
	uint64_t pack_ns;                       /* time of compression, sum of the threads */
	bool sampled;                           /* without a level: a chunk was tried */
	uint64_t sent_bytes;
	unsigned n_sent, n_waited;              /* buffers that the channels have accepted; after waiting */
	uint64_t streams[PTCP_STREAMS_MAX / 64]; /* set of the streams that have sent, */
	unsigned n_streams;                     /* their number */
};

struct packing {
	struct memory_account *account;
	unsigned threads;
	atomic_int level;
	atomic_uint_fast64_t from_bytes, to_bytes;
	pthread_mutex_t lock;                   /* for all below */
	bool adapts, begun;
	struct packer *idle;
	struct interval now;
	struct compression choice;
	const void *file;                       /* file of the chunk tried last, which did not shrink: */
	unsigned skips, skips_left;             /* number of its chunks that are not tried */
};

int packing_new(struct packing **out, unsigned threads, struct memory_account *account, struct ptcp_err *e)
{
	struct packing *p = memory_calloc(account, sizeof *p, e);

	if (p == NULL)
		return PTCP_ENOMEM;
	p->account = account;
	p->threads = threads;
	compression_init(&p->choice);
	pthread_mutex_init(&p->lock, NULL);
	*out = p;
	return 0;
}

static void packer_free(struct packing *p, struct packer *c)
{
	ZSTD_freeCCtx(c->zstd);
	memory_release(p->account, c->charged);
	memory_free(p->account, c, sizeof *c);
}

void packing_free(struct packing *p)
{
	struct packer *c;

	if (p == NULL)
		return;
	while ((c = p->idle) != NULL) {
		p->idle = c->next;
		packer_free(p, c);
	}
	pthread_mutex_destroy(&p->lock);
	memory_free(p->account, p, sizeof *p);
}

void packing_set(struct packing *p, uint8_t compress)
{
	p->adapts = compress == WIRE_COMPRESS_AUTO;
	atomic_store(&p->level, p->adapts ? 0 : compress);
}

void packing_begin(struct packing *p, double rtt_s)
{
	pthread_mutex_lock(&p->lock);
	if (p->adapts && !p->begun) {
		compression_begin(&p->choice, rtt_s);
		atomic_store(&p->level, p->choice.level);
	}
	p->begun = true;
	pthread_mutex_unlock(&p->lock);
}

int packing_level(const struct packing *p)
{
	return p != NULL ? atomic_load_explicit(&p->level, memory_order_relaxed) : 0;
}

struct packing_counts packing_counts(const struct packing *p)
{
	if (p == NULL)
		return (struct packing_counts){ 0, 0 };
	return (struct packing_counts){ atomic_load(&p->from_bytes), atomic_load(&p->to_bytes) };
}

static void decide(struct packing *p, double took_s)
{
	const struct interval *v = &p->now;

	compression_add(&p->choice, &(struct compression_sample){ .took_s = took_s,
	    .data_bytes = (double)v->data_bytes, .packed_bytes = (double)v->packed_bytes,
	    .pack_s = (double)v->pack_ns / 1e9, .sent_bytes = (double)v->sent_bytes,
	    .full = 2 * v->n_waited >= v->n_sent,
	    .threads = v->n_streams < p->threads ? v->n_streams : p->threads });
	atomic_store(&p->level, p->choice.level);
}

void packing_sent(struct packing *p, unsigned number, uint64_t bytes, bool waited, struct mono now)
{
	struct interval *v;

	if (p == NULL || !p->adapts)
		return;
	v = &p->now;
	pthread_mutex_lock(&p->lock);
	if (v->since.ns == 0)
		v->since = now;
	v->sent_bytes += bytes;
	v->n_sent++;
	v->n_waited += waited;
	v->n_streams += bitmap_add(v->streams, number);
	if ((double)mono_diff_ns(now, v->since) >= COMPRESSION_SAMPLE_S * 1e9) {
		decide(p, (double)mono_diff_ns(now, v->since) / 1e9);
		*v = (struct interval){ .since = now };
	}
	pthread_mutex_unlock(&p->lock);
}

/* ---- Sender ---- */

/* Level to try the chunk by; 0: it stays as it is. Without a level, one large chunk of each interval is tried, to
 * measure the data and the processor. */
static int level_for(struct packing *p, const void *file, uint32_t n)
{
	int level = packing_level(p);

	if (level == 0) {
		if (!p->adapts || p->now.sampled || n < WIRE_CHUNK_BYTES)
			return 0;
		p->now.sampled = true;
		return COMPRESSION_FASTEST;
	}
	if (p->file != file || p->skips_left == 0)
		return level;
	p->skips_left--;
	p->now.data_bytes += n;
	p->now.packed_bytes += n;
	return 0;
}

/* An idle compressor, or a new one; NULL: no memory. */
static struct packer *take(struct packing *p)
{
	struct packer *c;
	struct ptcp_err why;

	pthread_mutex_lock(&p->lock);
	if ((c = p->idle) != NULL)
		p->idle = c->next;
	pthread_mutex_unlock(&p->lock);
	if (c != NULL || (c = memory_calloc(p->account, sizeof *c, &why)) == NULL)
		return c;
	if ((c->zstd = ZSTD_createCCtx()) != NULL)
		return c;
	packer_free(p, c);
	return NULL;
}

/* A compressor's memory grows with the levels it has seen. False: it is too much. */
static bool charge(struct packing *p, struct packer *c)
{
	uint64_t bytes = ZSTD_sizeof_CCtx(c->zstd);
	struct ptcp_err why;

	if (bytes <= c->charged)
		return true;
	if (memory_charge(p->account, bytes - c->charged, &why) < 0)
		return false;
	c->charged = bytes;
	return true;
}

/* Returns the compressor after a chunk. */
static void give(struct packing *p, struct packer *c, const void *file, uint32_t n, uint32_t packed, uint64_t ns)
{
	bool charged = charge(p, c);

	pthread_mutex_lock(&p->lock);
	p->now.data_bytes += n;
	p->now.packed_bytes += packed > 0 ? packed : n;
	p->now.pack_ns += ns;
	if (packed > 0)
		p->skips = 0;
	else if (p->file == file)
		p->skips = 2 * p->skips < COMPRESSION_SKIPS_MAX ? 2 * p->skips + 1 : COMPRESSION_SKIPS_MAX;
	else
		p->skips = 1;
	p->skips_left = p->skips;
	p->file = file;
	if (charged) {
		c->next = p->idle;
		p->idle = c;
	}
	pthread_mutex_unlock(&p->lock);
	if (!charged)
		packer_free(p, c);
}

uint32_t packing_pack(struct packing *p, const void *file, uint8_t *data, uint32_t n)
{
	struct packer *c;
	struct mono start;
	uint32_t packed;
	size_t r;
	int level;

	if (p == NULL || n < COMPRESSION_LEAST_BYTES || (packing_level(p) == 0 && !p->adapts))
		return 0;
	pthread_mutex_lock(&p->lock);
	level = level_for(p, file, n);
	pthread_mutex_unlock(&p->lock);
	if (level == 0 || (c = take(p)) == NULL)
		return 0;
	start = mono_now();
	r = ZSTD_compressCCtx(c->zstd, c->out, n - n / COMPRESSION_LEAST_PART, data, n, level);
	packed = ZSTD_isError(r) ? 0 : (uint32_t)r;
	if (packed > 0)
		memcpy(data, c->out, packed);
	give(p, c, file, n, packed, mono_diff_ns(mono_now(), start));
	if (packed > 0) {
		atomic_fetch_add(&p->from_bytes, n);
		atomic_fetch_add(&p->to_bytes, packed);
	}
	return packed;
}

/* ---- Receiver ---- */

/* Of a thread: a session cannot make the process have more of them. */
struct unpacker {
	ZSTD_DCtx *zstd;
	uint8_t in[WIRE_CHUNK_BYTES];
};

static pthread_key_t unpackers;
static bool has_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void unpacker_free(void *arg)
{
	struct unpacker *u = arg;

	ZSTD_freeDCtx(u->zstd);
	free(u);
}

static void make_key(void) { has_key = pthread_key_create(&unpackers, unpacker_free) == 0; }

static struct unpacker *unpacker(void)
{
	struct unpacker *u;

	pthread_once(&once, make_key);
	if (!has_key)
		return NULL;
	if ((u = pthread_getspecific(unpackers)) != NULL || (u = malloc(sizeof *u)) == NULL)
		return u;
	if ((u->zstd = ZSTD_createDCtx()) == NULL || pthread_setspecific(unpackers, u) != 0) {
		unpacker_free(u);
		return NULL;
	}
	return u;
}

int packing_unpack(struct packing *p, uint8_t *data, uint32_t packed, uint32_t n)
{
	struct unpacker *u;

	if (packed >= n || n > WIRE_CHUNK_BYTES)
		return PTCP_EVERIFY;
	if ((u = unpacker()) == NULL)
		return PTCP_ENOMEM;
	memcpy(u->in, data, packed);
	if (ZSTD_decompressDCtx(u->zstd, data, n, u->in, packed) != n)
		return PTCP_EVERIFY;
	if (p == NULL)
		return 0;
	atomic_fetch_add(&p->from_bytes, n);
	atomic_fetch_add(&p->to_bytes, packed);
	return 0;
}
