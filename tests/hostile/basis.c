/* Senders that lie about the blocks of a file of which the server has an earlier version. */
#include <string.h>

#include "hostile.h"
#include "session.h"
#include "store/hash.h"
#include "wire/block.h"

#define GRID 262144u
#define BLOCKS 8u
#define SIZE (BLOCKS * GRID)

enum lie {
	INVENTED,  /* hashes of nothing: the file arrives all the same */
	OF_OLD,    /* hashes of the blocks of the old file, of zeros, but the digest of others */
	OF_PIECES, /* no block is there, but each piece is, of the old file */
	TOO_MANY, ELSEWHERE, TWICE
};

static struct block_sum zeros(uint32_t n)
{
	static const uint8_t data[GRID];
	struct block_hash h = { 0 };

	block_hash_add(&h, hash_content(data, n));
	return (struct block_sum){ .content = n == GRID ? block_hash_end(&h) : hash_content(data, n),
		.head = hash_head(data) };
}

/* HASHES of blocks or PIECES of a block, all the same or none like another. */
static void put_hashes(struct peer *p, bool pieces, uint32_t first, uint16_t n, struct block_sum sum, bool same)
{
	static uint8_t hashes[WIRE_HASH_BYTES * WIRE_HASHES_MAX], out[WIRE_HASHES_MAX_BYTES];
	struct wire_hashes f = { ID(0, 1), first, n, { hashes, (size_t)n * WIRE_HASH_BYTES } };
	uint16_t i;

	for (i = 0; i < n; i++) {
		wire_hash_encode(hashes + (size_t)i * WIRE_HASH_BYTES, sum);
		sum.content += !same;
	}
	peer_try_send(p, out, pieces ? wire_pieces_encode(out, &f) : wire_hashes_encode(out, &f));
}

/* False: the lie ends the session. */
static bool answer_match(struct session *s, enum lie lie, uint32_t first, uint32_t count)
{
	const struct block_sum none = { .content = 77, .head = hash_head((const uint8_t[HASH_HEAD_BYTES]){ 0 }) };

	switch (lie) {
	case TOO_MANY:
		put_hashes(s->control, false, first, (uint16_t)(count + 1), none, false);
		return false;
	case ELSEWHERE:
		put_hashes(s->control, false, first + 1, 1, none, false);
		return false;
	case TWICE:
		put_hashes(s->control, false, first, (uint16_t)count, none, false);
		put_hashes(s->control, false, first, (uint16_t)count, none, false);
		return false;
	default:
		put_hashes(s->control, false, first, (uint16_t)count, lie == OF_OLD ? zeros(GRID) : none,
		    lie == OF_OLD);
		return true;
	}
}

static void send_blocks(struct session *s, uint32_t first, uint32_t count)
{
	uint32_t i;

	for (i = first; i < first + count; i++)
		send_block(s->data, ID(0, 1), (uint64_t)i * GRID, GRID, true);
}

/* Answers what the server wants until it has all blocks; false: the session was ended. */
static bool transfer(struct session *s, enum lie lie)
{
	const struct block_sum none = { .content = 99, .head = hash_head((const uint8_t[HASH_HEAD_BYTES]){ 0 }) };
	uint32_t there = 0, first, count, i;
	const struct frame *f;

	while (there < BLOCKS) {
		f = peer_frame(s->control);
		first = f->n >= 12 ? get_u32(f->payload + 8) : 0;
		count = f->n >= 16 ? get_u32(f->payload + 12) : 0;
		switch (f->type) {
		case WIRE_MATCH:
			if (!answer_match(s, lie, first, count))
				return false;
			break;
		case WIRE_SPLIT:
			for (i = 0; i < count; i++)
				put_hashes(s->control, true, first + i, WIRE_PIECES_MAX, lie == OF_PIECES ?
				    zeros(HASH_PIECE_BYTES) : none, lie == OF_PIECES);
			break;
		case WIRE_HAVE:
			there += count;
			break;
		case WIRE_ACK:
			there++;
			break;
		case WIRE_NEED:
			send_blocks(s, first, count);
			break;
		case WIRE_PATCH:
			send_patch(s->data, ID(0, 1), (uint64_t)first * GRID, GRID, get_u64(f->payload + 12));
			break;
		default:
			die("%s came", frame_name(f->type));
		}
	}
	return true;
}

/* LIE: of enum lie, a number. The file "x" of zeros exists. */
static void lying_basis(unsigned port, char **arguments)
{
	enum lie lie = (enum lie)(arguments[0][0] - '0');
	struct session s = sending(port, "/");

	send_with_attrs(s.control, WIRE_FILE, ID(0, 1), SIZE, 0644, "\0\1\0\20ABCDEFGHIJKLMNOP", 20); /* a version */
	if (answer(&s, ID(0, 1)) != WIRE_SEND_PARTS)
		die("nothing is compared");
	if (!transfer(&s, lie)) {
		expect_error(s.control, 10);
		drop(&s);
		return;
	}
	send_file_end(s.control, ID(0, 1), SIZE);
	if (verdict(&s, ID(0, 1)) != (lie != OF_OLD))
		die("another verdict");
	finish(&s, lie != OF_OLD, lie == OF_OLD);
}

const struct hostile hostile_comparers[] = { { "lying-basis", lying_basis }, { NULL, NULL } };
