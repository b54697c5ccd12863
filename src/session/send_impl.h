/* Sending side of a session: send.c (listing, the streams' jobs), send_list.c (listed entries to the engine),
 * send_io.c (the engine's requests about sources). */
#ifndef SESSION_SEND_IMPL_H
#define SESSION_SEND_IMPL_H

#include "conn/io_call.h"
#include "core/text.h"
#include "fs/xattr.h"
#include "session/hardlinks.h"
#include "session/session_impl.h"
#include "store/owner.h"
#include "store/source.h"
#include "store/walk.h"

#define WALK_BATCH 256
/* An entry without extended attributes, at most. */
#define SEND_PLAIN_ENTRY_BYTES WIRE_ENTRY_BYTES(1024)

/* Memory of a listed entry besides its target and attributes: its name, and the reason why it or an attribute is not sent. */
#define LISTED_BYTES (TEXT_NAME_BYTES + sizeof(struct ptcp_err))

/* Cookie of an entry in the sending engine. */
struct send_entry {
	struct memory_account *memory; /* account charged with memory_bytes; NULL: no limit, or an input */
	uint64_t memory_bytes;
	uint64_t id;               /* once blocks of it were sent; else 0 */
	struct source *source;     /* the source of a file; NULL: the entry is no file, and the next two name it */
	struct dir *dir;           /* parent directory */
	char *name;                /* name in the parent directory */
	bool is_dir, is_name;      /* is_name: nothing but the name is offered */
	bool followed;             /* without source: a link of this name was followed */
	struct manage_stamp stamp; /* without source */
	struct send_sums *sums;    /* send_sums.c: digests of the file; NULL: not begun, or none are wanted */
	bool compared;             /* the receiver has a similar file, and requested the digest */
	struct list in_linked;     /* linked_done, or again */
	struct hardlink *hardlink; /* the inode is sent under the first of its names; NULL: it has a single name */
	/* Of a hard link: the id of its file or symbolic link; once the receiver has not linked the name, its own; and
	 * whether the file failed. Of an entry in place of a hard link: `retried`: a file had failed; `second`: two have,
	 * or one is complete. A `second` name is sent by itself: names that all fail are not offered without end. */
	struct { uint64_t file, id; bool failed, retried, second; } link;
};

/* Memory of an unfinished entry: the cookie, and the source with its name; without its content, if its size was unknown. */
#define SEND_ENTRY_BYTES (sizeof(struct send_entry) + TEXT_NAME_BYTES)

/* Lists the sources on an I/O thread and offers the entries to the engine, batch by batch. */
struct send_side {
	struct session *session;
	struct walk *walk;
	struct io_call call;        /* result of the last walk_next() */
	struct walk_entry entry[WALK_BATCH];
	struct owners *owners;      /* names of owners; NULL: the session does not preserve owners */
	struct owner owner[WALK_BATCH];
	unsigned xattr_kinds;       /* extended attributes to send */
	bool narrows;               /* modes without their ACLs */
	struct xattrs xattrs[WALK_BATCH];
	char *lacking[WALK_BATCH];  /* warning about an attribute that is not sent; or NULL */
	unsigned n, max;            /* number of entries in the batch, and its limit */
	uint64_t batch_bytes;       /* memory charged for the entries of the batch */
	unsigned offered;           /* entries of the batch that were offered */
	bool offering;              /* the batch is listed, but not yet all of it offered */
	bool listing, end;          /* an I/O thread lists; the list is complete */
	struct list again;          /* hard links to offer again; in_linked */
	struct send_entry *in_place_of[WALK_BATCH]; /* the link that an entry of the batch replaces; else NULL */
	struct selection *selection; /* paths of SELECT frames; NULL: none are expected */
	bool selecting, selected;   /* more are expected, before the listing; the listing uses them */
	uint64_t files, bytes;      /* listed */
	uint64_t sent_bytes;        /* bytes of blocks that the streams' channels have accepted, */
	uint64_t omitted_bytes;     /* bytes of the same blocks that the receiver had */
	uint64_t saved_bytes;       /* bytes saved by compression, a part of sent_bytes */
	bool removes;               /* sources that are durable at the receiver are removed */
	struct published *removed;  /* paths of removed sources, of the transfer; NULL: not remembered */
	struct list linked_done;    /* files with several names, removed last: the removal of one name changes the rest */
	unsigned n_checks, n_digests; /* send_io.c: jobs on I/O threads; the digests among them */
	struct list digest_queue;
	unsigned digests, n_sums;   /* digests for the user; send_sums.c: jobs on I/O threads */
	struct sums_expected expected; /* one of these digests; digest 0: none */
	struct list sums_queue;
	struct hardlinks hardlinks;
	struct pipe_source *pipe;   /* pipe.c: in place of a listing; borrowed; NULL: a listing */
	struct send_entry *piped;   /* entry of the pipe; NULL: not offered, or ended */
	uint64_t pipe_id;
	atomic_bool pipe_notified;  /* pipe_changed is posted */
	struct msg pipe_changed;
	uint8_t attrs[WIRE_CONTROL_MAX], packed[WIRE_CONTROL_MAX]; /* scratch, for the entry being offered */
};

/* On an I/O thread: adds optional attributes to the entry read last, and charges for it until the batch is offered. 1; or as
 * memory_charge(). */
int send_listed(struct send_side *t, struct ptcp_err *e);

/* Offers an entry of the batch to the engine, or reports why that is impossible; takes the name of the entry. */
void send_offer(struct session *sess, unsigned i);

/* Whether an entry of the batch may be offered before the peer has accepted the session. */
bool send_is_early(struct session *sess, unsigned i);

void send_entry_free(struct send_entry *o);
/* send_list.c: takes a batch of hard links that the receiver has not made, by their names, and returns the number of
 * links; on an I/O thread, finds what each of them is now: a file, a symbolic link, or WALK_FAILED. */
unsigned send_take_again(struct send_side *t);
void send_examine_again(struct walk_entry *e);
/* On an I/O thread: reads a file whose size may be unknown; a failure becomes that of the entry. Negative only without
 * memory. */
int send_find_size(struct walk_entry *w, struct ptcp_err *e);
/* send_remove.c: --remove-source-files. Takes an ended entry to remove it; false: the entry is to stay. */
bool send_remove(struct session *sess, struct send_entry *o, enum snd_fate fate);
/* Once all entries have ended: removes the files with several names. */
void send_remove_linked(struct session *sess);
void send_linked_free(struct send_side *t);

/* pipe.c: offers the input, and what is read of it. */
void send_pipe_pump(struct session *sess);
/* Whether the input is to blame for a delay. */
bool send_pipe_busy(const struct send_side *t);
/* No message of the pipe is pending; of a session that is over, none follows. */
bool send_pipe_idle(const struct session *sess);

/* Operations of the engine; see snd_ops. */
void send_again(void *arg, void *cookie, uint64_t id);
void send_release(void *arg, void *cookie, uint32_t block);
void send_check(void *arg, void *cookie, uint64_t id);
void send_map(void *arg, void *cookie, uint64_t id);
void send_compare(void *arg, void *cookie, uint64_t id);
void send_hash(void *arg, void *cookie, uint64_t id, uint32_t first, uint32_t count);
void send_pieces(void *arg, void *cookie, uint64_t id, uint32_t block);
void send_digest_queue_fini(struct send_side *t);

/* send_io.c: whether the source has changed, the rest of send_check(). */
void send_check_unchanged(struct session *sess, struct send_entry *o, uint64_t id);

/* send.c: reports an ended entry to the user, and frees it. `arg` is the session, `cookie` the entry; `why` NULL unless
 * SND_FAILED. */
void send_ended(void *arg, void *cookie, enum snd_fate fate, const struct ptcp_err *why);

/* ---- send_sums.c ---- */

/* A stream has a job with bytes of the file up to there. */
void send_sums_reached(struct session *sess, struct send_entry *o, uint64_t end_bytes);
/* send_check(): true if the answer follows the digests. */
bool send_sums_check(struct session *sess, struct send_entry *o, uint64_t id);
/* The file is complete at the receiver. True: send_ended() follows the digests. */
bool send_sums_end(struct session *sess, struct send_entry *o, enum snd_fate fate);
/* The sentence about an unexpected digest, or NULL. */
const struct ptcp_err *send_sums_unexpected(const struct send_entry *o);
/* The digits of all digests, or the reason for none; each may be NULL. */
const char *send_sums_hex(const struct send_entry *o);
const struct ptcp_err *send_sums_why(const struct send_entry *o);
void send_sums_free(struct send_entry *o);

#endif
