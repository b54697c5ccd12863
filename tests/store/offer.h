/* Files as a sender offers them, with content that is known, and how they are received. */
#ifndef TESTS_STORE_OFFER_H
#define TESTS_STORE_OFFER_H

#include "fixture.h"
#include "store/sink.h"

#define OFFER_BLOCK 8192u
#define OFFER_BLOCKS 64u /* at most */

struct offer {
	const char *name;
	uint64_t size_bytes;
	uint8_t version; /* decides the content; 0: the source has no version */
	bool sparse;     /* every third block is a hole, and so is a page of the others */
};

/* As sink_opts.direct_io; NULL until a test sets it. */
extern struct direct_io *offer_direct_io;

/* What offer_sink() gives a sink for options: what exists is read, whatever its time. */
struct sink_opts offer_opts(const struct offer *o);
struct sink *offer_sink(struct dir *d, const struct offer *o);
uint32_t offer_blocks(const struct offer *o);
/* A hole is not sent. */
bool offer_hole(const struct offer *o, uint32_t block);
/* Its length; the content in buf. */
uint32_t offer_block(const struct offer *o, uint32_t block, uint8_t buf[OFFER_BLOCK]);
struct digest offer_digest(const struct offer *o);

/* All is written: completes the file alone, without syncing. */
int offer_commit(struct sink *s, struct ptcp_err *e);

int offer_write(struct sink *s, const struct offer *o, uint32_t block, struct ptcp_err *e);

/* Looks, verifies or compares. have[i]: block i is there. *same: the target is complete. Returns
 * how many blocks are there, or a negative PTCP_E*. */
int offer_resume(struct sink *s, const struct offer *o, bool have[OFFER_BLOCKS], bool *same,
    struct ptcp_err *e);
/* Writes the blocks that are not there. */
int offer_rest(struct sink *s, const struct offer *o, const bool have[OFFER_BLOCKS],
    struct ptcp_err *e);

/* Whether the n bytes at p are the file's content. */
bool offer_is(const struct offer *o, const uint8_t *p, size_t n);
/* Asserts that the file below the fixture's directory is that. */
void offer_holds(const char *below, const struct offer *o);

#endif
