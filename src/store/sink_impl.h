/* What the files that make up a sink share; see sink.h. */
#ifndef STORE_SINK_IMPL_H
#define STORE_SINK_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/journal.h"
#include "store/part.h"
#include "store/sink.h"

enum sink_state {
	SINK_OPEN, /* may be written to; part.fd may still be -1 */
	SINK_SICK, /* data was lost when it was synced: no more writes, no final name */
	SINK_DONE, /* completed or discarded, or about to be: no more writes */
};

struct verifying;
struct comparing;

struct sink {
	struct dir *dir;
	uint64_t size_bytes;
	struct meta meta;
	struct sink_opts opts;
	atomic_uint refs;
	/* Taken twice a block, some 20 ns each against the microseconds of the write:
	 * it makes sure that nobody writes to a descriptor that another has closed. */
	pthread_mutex_t lock;
	enum sink_state state;
	int sick; /* the errno */
	struct part part;
	/* Its, for who must not wait for the lock, which is held during I/O. */
	_Atomic uint64_t part_dev, part_ino;
	uint64_t opened;    /* which of the parts of this process it was, by time */
	struct journal journal;
	uint64_t durable;   /* records whose blocks are */
	bool named;         /* has its final name */
	bool name_durable;  /* the part's */
	unsigned writers;
	pthread_cond_t idle; /* writers is 0 */
	uint64_t end_bytes; /* the furthest byte written */
	struct verifying *verifying;
	struct comparing *comparing;
	char name[];
};

/* The journal's key; borrows from s. */
struct journal_key sink_key(const struct sink *s);

/* Counts the descriptors in s->part and s->journal. */
void sink_opened(struct sink *s);

/* With s->lock held, and the directory open at `at`: part_open(). */
int sink_take_part(struct sink *s, int at, enum part_take take, struct ptcp_err *e);
/* With s->lock held, and the directory open at `at`: the part, emptied. `whole`: one write is all. */
int sink_open_part(struct sink *s, int at, bool whole, struct ptcp_err *e);
/* Whether the part's name, in the directory that is open at `at`, is still that of our open part: else
 * somebody who knows nothing of locks has removed or replaced it. 1 or 0, or -1 with errno. */
int sink_has_name(const struct sink *s, int at);
/* Closes the part; the journal too, but for its name. */
void sink_close(struct sink *s);
/* Removes the journal, in the directory that is open at `at`. */
void sink_forget_journal(struct sink *s, int at);

/* The descriptor of the part, that stays open until sink_leave(); -1 if there is none. */
int sink_hold(struct sink *s);
/* One that wrote up to there (0: nothing) is done. */
void sink_leave(struct sink *s, uint64_t end_bytes);

/* With s->lock held: what is being written gets done (a copy of a block may come late, and would
 * change the times that are about to be set), and nothing follows. */
void sink_stop_writers(struct sink *s, enum sink_state state);

/* With s->lock held and no writers: syncing failed with this errno. The kernel may have dropped
 * what it could not write and yet show it to who reads it back: what was not durable before is
 * forgotten. Returns a PTCP_E*. */
int sink_sicken(struct sink *s, int sys, struct ptcp_err *e);

/* Of a file with blocks: */
uint32_t sink_block_length(const struct sink *s, uint32_t block);
/* Makes [off, off + n) read as zeros, by a hole if the file system has holes. */
int sink_punch(struct sink *s, int fd, uint64_t off, uint64_t n, struct ptcp_err *e);

/* Extended attributes and owner, before mode and times. *as_asked: the owner is, if one was to be set. 1: an
 * attribute was left out, that `e` names. */
int meta_set_owner(const struct meta *m, const struct dir *d, const char *name, int fd, bool *as_asked,
    struct ptcp_err *e);

/* Begin what sink_verify_next() and sink_same_next() go on with; the first takes `claimed`
 * (a copy of the caller's). */
int sink_verify_begin(struct sink *s, const uint64_t *claimed, struct ptcp_err *e);
int sink_same_begin(struct sink *s, const struct stat *there, struct ptcp_err *e);
void sink_verify_end(struct sink *s);
void sink_same_end(struct sink *s);

#endif
