/* The journal of a part file: the blocks written so far and their content hashes.
 *
 * ".ptcp-" + 16 hex digits + ".journal" beside the part, 0600, only for files of more than one block whose
 * source has a version. All integers are big-endian.
 *
 *   0    8    "ptcp-jnl"                  40   16   the source's version
 *   8    4    format, 1                   56   256  name, padded with zeros
 *   12   4    block length                312  8    check: XXH3_64 of the 312 bytes before
 *   16   8    size                        320  20   a record each:
 *   24   8    mtime, seconds                0   4   block
 *   32   4    mtime, nanoseconds            4   8   its content hash (store/hash.h)
 *   36   4    length of name               12   8   check: XXH3_64(c | block | hash)
 *
 * c is XXH3_64 of the first 312 bytes with zeros for size, mtime and version. A version of zeros is that of no source:
 * the records are of several versions.
 *
 * Threads append the record of a block after writing the block. Records that are torn, damaged or of another
 * journal fail the check and are skipped; of two records of a block the later counts. A record is only a
 * claim, since part and journal reach the disk in any order: a block counts after it was read back and
 * hashed. If the journal cannot be written, the file cannot be resumed, but still completes. The owner of the
 * part's lock owns the journal. */
#ifndef STORE_JOURNAL_H
#define STORE_JOURNAL_H

#include <stdatomic.h>
#include <time.h>

#include "fs/dir.h"

#define JOURNAL_HEADER_BYTES 320
#define JOURNAL_RECORD_BYTES 20
#define JOURNAL_VERSION_BYTES 16

/* The file that a journal belongs to. */
struct journal_key {
	const char *name;
	uint64_t size_bytes;
	struct timespec mtime;
	const uint8_t *version; /* JOURNAL_VERSION_BYTES */
	uint32_t block_bytes;
	const char *file; /* hashed for the name of the journal; NULL: `name` */
};

struct journal {
	int fd; /* -1: no journal */
	uint32_t n_blocks;
	uint64_t check; /* check of the header without size, mtime and version */
	uint64_t dev, ino;
	_Atomic uint64_t next; /* number of records, good or bad */
};

struct journal_record {
	uint32_t block;
	uint64_t hash, slot;
};

enum journal_state {
	JOURNAL_NONE,
	JOURNAL_MATCHES,
	JOURNAL_OTHER,   /* intact, of another version of the source, with blocks of the same length */
	JOURNAL_CHANGED, /* intact, but its blocks have another length */
	JOURNAL_DAMAGED  /* the journal is damaged, or has another owner, file or format */
};

/* Creates a journal in d, open at `at`, replacing an old one. On failure the journal stays closed. */
void journal_create(struct journal *j, const struct dir *d, int at, const struct journal_key *k);

/* Examines an existing journal; opens a matching one, and one of another version: the file says from then on that its
 * records are of several versions. */
enum journal_state journal_open(struct journal *j, const struct dir *d, int at, const struct journal_key *k);

/* Records a written block. Any thread; without effect on a closed journal. */
void journal_append(struct journal *j, const struct sys *sys, uint32_t block, uint64_t hash);

/* Reads the records [slot, slot + n), n at most JOURNAL_READ, and copies the good ones in order. Returns
 * their number, or -1 if reading fails. */
int journal_read(const struct journal *j, const struct sys *sys, uint64_t slot, unsigned n,
    struct journal_record *out);
#define JOURNAL_READ 256u

/* Drops all records from `slot` on. Only without writers. */
void journal_cut(struct journal *j, const struct sys *sys, uint64_t slot);

/* journal_remove() also unlinks the journal, unless another file has the name. */
void journal_close(struct journal *j, const struct sys *sys);
void journal_remove(struct journal *j, const struct dir *d, int at, const char *name);

#endif
