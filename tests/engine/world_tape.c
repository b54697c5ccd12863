/* Recordings of sessions, and sides that run with a recording in place of their peer. */
#include "core/err.h"
#include "store/hash.h"
#include "wire/block.h"
#include "world_impl.h"

#define BLOCK_LINE_BYTES (WIRE_BLOCK_HEAD_BYTES + WIRE_BLOCK_END_BYTES)

/* Of a block without chunks: its content, from which all hashes follow, takes no room in a recording. */
static uint64_t content_hash(const struct node *n, uint32_t version, uint32_t block)
{
	static uint8_t content[HASH_CHUNK_BYTES];
	uint32_t length = wire_grid_length(wire_grid_of(n->size_bytes), block), i;
	struct rng r = { (uint64_t)version << 48 | (uint64_t)n->index << 24 | block };

	assert_true(length > 0 && length <= sizeof content);
	for (i = 0; i < length; i++)
		content[i] = (uint8_t)(i % 256 == 0 ? world_random(&r) : content[i - 1] * 5u + 1);
	return hash_content(content, length);
}

struct digest tape_term(const struct node *n, uint32_t version, uint32_t block)
{
	return hash_term(block, wire_grid_length(wire_grid_of(n->size_bytes), block), content_hash(n, version, block));
}

/* ---- Recording ---- */

static void put_line(FILE *tape, const char *kind, const uint8_t *p, size_t n)
{
	size_t i;

	fprintf(tape, "%s ", kind);
	for (i = 0; i < n; i++)
		fprintf(tape, "%02x", p[i]);
	fputc('\n', tape);
}

void tape_control(struct world *w, unsigned to, const uint8_t *p, size_t n)
{
	if (w->tape != NULL)
		put_line(w->tape, to == 1 ? "sender" : "receiver", p, n);
}

void tape_block(struct world *w, const struct node *n, uint64_t id, uint32_t block)
{
	struct wire_block head = { .id = id, .offset = (uint64_t)block * wire_grid_bytes(n->size_bytes),
		.length_bytes = wire_grid_length(wire_grid_of(n->size_bytes), block) };
	struct wire_block_end end = { WIRE_BLOCK_GOOD, 0 };
	uint8_t line[BLOCK_LINE_BYTES];

	if (w->tape == NULL)
		return;
	wire_block_encode(line, &head);
	end.check = hash_check(line + WIRE_HEADER_BYTES, content_hash(n, n->version, block));
	wire_block_end_encode(line + WIRE_BLOCK_HEAD_BYTES, &end);
	put_line(w->tape, "block", line, sizeof line);
}

/* ---- Replaying ---- */

static void replay_block(struct world *w, const uint8_t *p)
{
	struct event ev = { .kind = EV_ARRIVED };
	struct wire_block head;
	struct wire_block_end end;
	uint32_t i;

	assert_int_equal(wire_block_decode(&head, p, NULL), 0);
	assert_int_equal(wire_block_end_decode(&end, p + WIRE_BLOCK_HEAD_BYTES, NULL), 0);
	for (i = 0; i < w->n_nodes; i++)
		if (w->node[i]->prepared && w->node[i]->id == head.id)
			ev.node = w->node[i];
	check_that(ev.node != NULL, "a block of entry %llu, which is none", (unsigned long long)head.id);
	ev.id = head.id;
	ev.block = (uint32_t)(head.offset / wire_grid_bytes(ev.node->size_bytes));
	check_that(head.length_bytes == wire_grid_length(wire_grid_of(ev.node->size_bytes), ev.block),
	    "block %u of %u has another length", ev.block, ev.node->index);
	check_that(end.status == WIRE_BLOCK_GOOD && end.check == hash_check(p + WIRE_HEADER_BYTES,
	    content_hash(ev.node, ev.node->version, ev.block)),
	    "block %u of %u has another hash", ev.block, ev.node->index);
	store_block(w, &ev);
}

/* The digits of a line, decoded in place; their number of bytes. */
static size_t from_digits(char *digits, uint8_t **out)
{
	size_t n;
	unsigned byte;

	*out = (uint8_t *)digits;
	for (n = 0; sscanf(digits + 2 * n, "%2x", &byte) == 1; n++)
		(*out)[n] = (uint8_t)byte;
	return n;
}

void world_replay(struct world *w, unsigned side, FILE *recording)
{
	const char *peer = side == 1 ? "sender " : "receiver ";
	size_t cap = 0, n, skip = strlen(peer);
	char *line = NULL;
	uint8_t *p;
	uint32_t i;

	for (i = 0; i < w->n_nodes && side == 1; i++)
		if (w->node[i]->type == WIRE_FILE) {
			w->files++;
			w->bytes += w->node[i]->size_bytes;
		}
	world_settle(w, side);
	while (!w->side[side].over && getline(&line, &cap, recording) > 0) {
		if (strncmp(line, peer, skip) == 0) {
			n = from_digits(line + skip, &p);
			engine_input(w->side[side].engine, p, n, world_now(w));
		} else if (side == 1 && strncmp(line, "block ", 6) == 0) {
			assert_int_equal(from_digits(line + 6, &p), BLOCK_LINE_BYTES);
			replay_block(w, p);
		}
		world_settle(w, side);
	}
	free(line);
}
