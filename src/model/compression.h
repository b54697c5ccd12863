/* Level of compression with which most data arrives per second. The path takes some bytes per second, a thread
 * compresses at some speed, the data shrinks by some factor; all three are measured while data is sent. Speeds and
 * savings of different levels have the ratios of a table. */
#ifndef MODEL_COMPRESSION_H
#define MODEL_COMPRESSION_H

#include <stdbool.h>

enum { COMPRESSION_FASTEST = 1 }; /* level of zstd */

struct compression {
	int level;           /* level of zstd; 0: none */
	double path_bytes_s; /* bytes per second that the path takes; 0: unknown */
	double pack_s;       /* seconds that a thread compresses a byte for, by the fastest level */
	double ratio;        /* bytes of data for a byte that is sent, by the fastest level */
	unsigned unfull;     /* samples in a row that the path was not full with compression, */
	unsigned patience;   /* until so many: one sample without compression then shows what the path takes */
};

/* What was measured for some tenths of a second, at c->level. */
struct compression_sample {
	double took_s;
	double data_bytes, packed_bytes; /* bytes of blocks, and as they were laid out to be sent; without a level: of
	                                    those that were tried by the fastest level; 0: none */
	double pack_s;                   /* time of compression, sum of the threads */
	double sent_bytes;               /* bytes that the path has accepted */
	bool full;                       /* the path, or a rate limit, made most data wait */
	unsigned threads;                /* number of threads that can compress at once */
};

void compression_init(struct compression *c);
/* Before anything is measured. A path with an RTT of a millisecond or more is taken for slower than a processor; 0: the
 * RTT is unknown. */
void compression_begin(struct compression *c, double rtt_s);
void compression_add(struct compression *c, const struct compression_sample *v);

#endif
