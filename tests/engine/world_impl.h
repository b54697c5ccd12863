/* The inside of a world, for world.c (events, control, walk), world_lines.c (streams) and
 * world_store.c (what receives). */
#ifndef TESTS_XFER_WORLD_IMPL_H
#define TESTS_XFER_WORLD_IMPL_H

#include <stdlib.h>
#include <string.h>

#include "world.h"

enum event_kind {
	EV_CONTROL, EV_ACCEPT, EV_LISTED, EV_CHECKED, EV_READ, EV_SENT, EV_NEWS, EV_ARRIVED,
	EV_WRITTEN, EV_PREPARED, EV_COMMITTED, EV_HASHED, EV_VERIFIED, EV_COMPARED, EV_MAPPED,
	EV_MATCH_HASHED, EV_MATCH_ASK, EV_MATCH_FOUND, EV_MATCH_PIECES, EV_MATCH_SPLIT, EV_AGAIN, EV_GROWS,
	    EV_UP, EV_DIES, EV_STALLS, EV_CUT
};

struct event {
	uint64_t at, order;
	enum event_kind kind;
	unsigned side, line, epoch;
	uint64_t id;
	uint32_t block;
	struct node *node;
	struct digest term;
	enum rcv_block_result what;
	struct snd_job *job;
	uint8_t *bytes;
	size_t n;
};

struct step {
	struct node *node;
	bool leave;
};

/* Memory of the world's own, zeroed when new; test_torture.c does not let it fail. */
void *world_alloc(void *old, size_t n);
extern volatile unsigned world_allocating;

/* In `after_ns`; the event is the world's. */
struct event *world_soon(struct world *w, enum event_kind kind, uint64_t after_ns);
/* How long an operation of a store takes. */
uint64_t world_store_ns(struct world *w);
/* A hard link that the receiver did not make is a symbolic link, for want of something better. */
void world_offer_again(struct world *w, struct node *n, uint64_t id);
bool world_unlucky(struct world *w, unsigned one_in);
/* Of a block of that version; and of all of them. */
struct digest world_term(const struct world *w, const struct node *n, uint32_t version, uint32_t block);
struct digest world_sum(const struct world *w, const struct node *n, uint32_t version);
bool world_is_hole(const struct node *n, uint32_t block);
void event_free(struct event *ev);
void world_start(struct world *w);
/* Its part is no more. */
void store_lose_part(struct node *n);
/* The part becomes the file. */
void store_name(struct node *n);

/* That side alone, until it waits for its peer; its own frames are lost. */
void world_settle(struct world *w, unsigned side);

/* world_tape.c */
struct digest tape_term(const struct node *n, uint32_t version, uint32_t block);
void tape_control(struct world *w, unsigned to, const uint8_t *p, size_t n);
void tape_block(struct world *w, const struct node *n, uint64_t id, uint32_t block);

/* world_lines.c */
void lines_start(struct world *w);
void lines_feed(struct world *w);
void line_lost(struct world *w, unsigned line);
void lines_event(struct world *w, struct event *ev);
extern const struct snd_ops world_snd_ops;

/* world_match.c */
void match_on_hash(void *arg, void *cookie, uint64_t id, uint32_t first, uint32_t count);
void match_on_pieces(void *arg, void *cookie, uint64_t id, uint32_t block);
void match_on_pieces_of(void *arg, uint64_t id, void *cookie, uint32_t block, struct span hashes);
/* Whether the receiver has these pieces of the block. */
bool match_wants(const struct node *n, uint32_t block, uint64_t omit);
void match_on_hashes(void *arg, uint64_t id, void *cookie, uint32_t first, struct span hashes);
/* The file is accepted, and has a part without anything in it. */
void match_begin(struct world *w, struct node *n);
void match_event(struct world *w, struct event *ev);

/* world_store.c */
void store_event(struct world *w, struct event *ev);
/* A block of an entry: written, spoilt on the way, or it cannot be. */
void store_block(struct world *w, const struct event *ev);
extern const struct rcv_ops world_rcv_ops;

#endif
