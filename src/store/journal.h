/* The journal of a part file: which of its blocks have been written, and their content hashes.
 *
 * ".ptcp-" + 16 hex digits + ".journal" beside the part, 0600, only for files of more than one
 * block whose source has a version. All integers are big-endian.
 *
 *   0    8    "ptcp-jnl"                  40   16   the source's version
 *   8    4    format, 1                   56   256  name, padded with zeros
 *   12   4    block length                312  8    check: XXH3_64 of the 312 bytes before
 *   16   8    size                        320  20   a record each:
 *   24   8    mtime, seconds                0   4   block
 *   32   4    mtime, nanoseconds            4   8   its content hash (store/hash.h)
 *   36   4    length of name               12   8   check: XXH3_64(header's check | block | hash)
 *
 * Records are appended by any thread, after their block was written; what is torn, damaged
 * or of another journal fails its check and is skipped, and of two records of a block the later one holds. What
 * a record says is a claim, for the part and the journal reach the disk in any order: a block
 * counts only once it was read back and hashed. A journal that cannot be written costs the
 * resumption, not the file. It belongs to who holds the lock of the part. */
#ifndef STORE_JOURNAL_H
#define STORE_JOURNAL_H

#include <stdatomic.h>
#include <time.h>

#include "store/dir.h"

#define JOURNAL_HEADER_BYTES 320
#define JOURNAL_RECORD_BYTES 20
#define JOURNAL_VERSION_BYTES 16

/* Whose journal it is. */
struct journal_key {
	const char *name;
	uint64_t size_bytes;
	struct timespec mtime;
	const uint8_t *version; /* JOURNAL_VERSION_BYTES */
	uint32_t block_bytes;
};

struct journal {
	int fd; /* -1: none */
	uint32_t n_blocks;
	uint64_t check; /* the header's */
	uint64_t dev, ino;
	_Atomic uint64_t next; /* records, good or bad, until now */
};

struct journal_record {
	uint32_t block;
	uint64_t hash, slot;
};

enum journal_state {
	JOURNAL_NONE,
	JOURNAL_MATCHES,
	JOURNAL_CHANGED, /* sound, but of another version of the source */
	JOURNAL_DAMAGED  /* or not one of ours, or not of this file, or of another format */
};

/* A new one, in d, which is open at `at`; what lies under its name makes way. Without luck
 * there is none. */
void journal_create(struct journal *j, const struct dir *d, int at, const struct journal_key *k);

/* What lies there. It is open only if it matches. */
enum journal_state journal_open(struct journal *j, const struct dir *d, int at,
    const struct journal_key *k);

/* The block is written. Any thread; nothing to do without a journal. */
void journal_append(struct journal *j, const struct sys *sys, uint32_t block, uint64_t hash);

/* The good ones of the records [slot, slot + n), n at most JOURNAL_READ, in their order. Returns
 * how many, or -1: they cannot be read. */
int journal_read(const struct journal *j, const struct sys *sys, uint64_t slot, unsigned n,
    struct journal_record *out);
#define JOURNAL_READ 256u

/* Forgets all records from `slot` on. With no writer at work. */
void journal_cut(struct journal *j, const struct sys *sys, uint64_t slot);

/* Closes it, or removes it too if it still is what has its name. */
void journal_close(struct journal *j, const struct sys *sys);
void journal_remove(struct journal *j, const struct dir *d, int at, const char *name);

#endif
