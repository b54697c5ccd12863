/* libFuzzer target: the engine in every state, with the peer and the owner as a script has them. The first
 * bytes say which side of what session it is and how far it is begun properly; then each move is a byte
 * and what it needs: bytes of the peer's, a frame of it about an entry there is, a move of the owner's
 * (owner.h), or time. What the engine says must be frames that its peer decodes. */
#include "../wire/recode.h"
#include "core/err.h"
#include "core/units.h"
#include "owner.h"
#include "wire/attrs.h"

#define MOVES_MAX 3000
#define TIMEOUT_NS (12 * NS_PER_S)

enum { STARTER = 1, PEER_SENDS = 2, VERIFY = 4, DRY_RUN = 8, ONE_CHANNEL = 16, BEGUN = 32, MEASURES = 64, FEW = 128 };

static const uint8_t a_path[] = { 0, 0, 1, 'p' };

/* ---- The peer ---- */

static void input(struct owner *c, const uint8_t *p, size_t n)
{
	uint8_t *exact = malloc(n + (n == 0)); /* so that a sanitizer sees a byte too many */

	MUST(exact != NULL);
	if (n > 0)
		memcpy(exact, p, n);
	engine_input(c->s, exact, n, c->now);
	free(exact);
}

#define PUT(c, x, ...) \
	do { \
		static uint8_t put_[WIRE_ENTRY_BYTES(64)]; \
		input((c), put_, wire_##x##_encode(put_, __VA_ARGS__)); \
	} while (0)

static void put_raw(struct owner *c)
{
	struct input part = take_bytes(&c->in, take_byte(&c->in));

	input(c, part.p, part.n);
}

/* Appends a frame with a valid header and a payload of fuzzed bytes. */
static void put_framed(struct owner *c)
{
	struct wire_header h = { .type = take_byte(&c->in) % 40 };
	struct input part = take_bytes(&c->in, take_byte(&c->in));
	uint8_t header[WIRE_HEADER_BYTES];

	h.length = (uint32_t)part.n;
	wire_header_encode(header, &h);
	input(c, header, sizeof header);
	input(c, part.p, part.n);
}

static void put_entry(struct owner *c)
{
	uint8_t what = take_byte(&c->in), where = take_byte(&c->in), size = take_byte(&c->in);
	struct item *parent = owner_item(c, where >> 2), *of = owner_item(c, size >> 2);
	struct wire_attrs a = { .sparse = (what & 8) != 0 };
	struct wire_entry f = { .type = what % 5 + 1u, .mode = 0644, .name = { (const uint8_t *)"n", 1 } };
	uint8_t attrs[32];

	f.id = (uint64_t)++c->entries << 16 | where;
	f.parent = where & 1 && parent != NULL ? parent->id : 0;
	if (f.type == WIRE_DIR_END) {
		f.id = parent != NULL ? parent->id : f.id;
		f.parent = 0;
		f.name.n = 0;
	}
	a.linked = wire_may_be_linked((uint8_t)f.type) && (what & 16) != 0;
	if (f.type == WIRE_FILE)
		f.size_bytes = (uint64_t)(size & 15) << (size >> 4) * 3;
	else
		a.sparse = false;
	if (f.type == WIRE_SYMLINK)
		f.target = (struct span){ (const uint8_t *)"t", 1 };
	if (f.type == WIRE_HARDLINK)
		a.link_id = of != NULL ? of->id : 1 << 16;
	if (a.sparse || a.linked || a.link_id != 0)
		f.attrs = (struct span){ attrs, wire_attrs_encode(attrs, &a) };
	c->next_prep = take_byte(&c->in);
	PUT(c, entry, &f);
}

static void put_end(struct owner *c, uint8_t more)
{
	struct wire_end f = { engine_files(c->s) + (more & 1), engine_failed(c->s) + (more >> 1 & 1) };

	PUT(c, end, &f);
}

/* The hashes of pieces, or a request for a block without some. */
static void put_pieces(struct owner *c, const struct wire_blocks *b)
{
	static const uint8_t hash[WIRE_HASH_BYTES * WIRE_PIECES_MAX];
	struct wire_hashes pieces = { .id = b->id, .first = b->first,
	    .n = (uint16_t)(1 + (b->count - 1) % WIRE_PIECES_MAX) };
	struct wire_patch patch = { .id = b->id, .block = b->first, .omit = b->count };

	pieces.hashes = (struct span){ hash, pieces.n * WIRE_HASH_BYTES };
	if (take_byte(&c->in) & 1)
		PUT(c, pieces, &pieces);
	else
		PUT(c, patch, &patch);
}

/* A request for hashes, or hashes. */
static void put_match(struct owner *c, uint8_t type, const struct wire_blocks *b)
{
	static const uint8_t hash[WIRE_HASH_BYTES * 16];
	struct wire_hashes f = { .id = b->id, .first = b->first, .n = (uint16_t)(b->count < 16 ? b->count : 16) };

	f.hashes = (struct span){ hash, f.n * WIRE_HASH_BYTES };
	switch (type % 4) {
	case 0: PUT(c, hashes, &f); break;
	case 1: PUT(c, match, b); break;
	case 2: PUT(c, split, b); break;
	default: put_pieces(c, b); break;
	}
}

/* A frame about an entry that there is, or about none. */
static void put_about(struct owner *c)
{
	uint8_t type = take_byte(&c->in), how = take_byte(&c->in);
	const struct item *it = owner_item(c, take_byte(&c->in));
	uint64_t id = it != NULL ? it->id : (uint64_t)how << 16;
	struct wire_blocks b = { .id = id, .first = how & 15, .count = (how >> 4) + 1u };
	struct span text = { (const uint8_t *)"no", 2 };

	if (how == 0xff && it != NULL)
		b = (struct wire_blocks){ .id = id, .first = 0, .count = it->n_blocks };
	b.digest.lo = how;
	if (type >= 0xf0) {
		put_match(c, type, &b);
		return;
	}
	switch (type % 12) {
	case 0: PUT(c, answer, (&(struct wire_answer){ id, how % 4 + 1u })); break;
	case 1: PUT(c, need, &b); break;
	case 2: PUT(c, have, &b); break;
	case 3: PUT(c, ack, (&(struct wire_ack){ id, how })); break;
	case 4: PUT(c, done, (&(struct wire_done){ id })); break;
	case 5: PUT(c, fail, (&(struct wire_fail){ id, { how % 20, 0, text } })); break;
	case 6: PUT(c, file_end, (&(struct wire_file_end){ id, it != NULL && how & 1 ? it->sum : b.digest })); break;
	case 7: PUT(c, hole, &b); break;
	case 8: PUT(c, totals, (&(struct wire_totals){ how, how, how & 1 })); break;
	case 9: put_end(c, how); break;
	case 10: PUT(c, warning, (&(struct wire_warning){ how % 2 + 1u, text, { 3, (uint8_t)how, text } })); break;
	default: PUT(c, ping, (&(struct wire_ping){ how % 5, 1 }));
	}
}

/* ---- The session ---- */

static void accept(struct owner *c)
{
	struct ptcp_err e;

	if (!c->judging)
		return;
	c->judging = false;
	if (take_byte(&c->in) == 0xff) {
		err_set(&e, PTCP_EREFUSED, "the script says so");
		engine_fail(c->s, &e);
		return;
	}
	c->opened.cipher = engine_open(c->s)->cipher;
	c->opened.streams = c->asked_streams < 3 ? c->asked_streams : 3;
	engine_accept(c->s, &c->opened, c->now);
}

static void begin(struct owner *c, unsigned kind)
{
	bool acceptor_sends = ((kind & PEER_SENDS) != 0) == ((kind & STARTER) != 0);
	struct wire_open open = { .role = kind & MEASURES ? WIRE_ACCEPTOR_DISCARDS :
		acceptor_sends ? WIRE_ACCEPTOR_SENDS : WIRE_ACCEPTOR_RECEIVES,
		.streams = 3, .wait_ms = kind & VERIFY ? 1000 : 0, .n_paths = kind & MEASURES ? 0 : 1,
		.paths = { a_path, kind & MEASURES ? 0 : sizeof a_path },
		.flags = (kind & VERIFY ? WIRE_OPEN_VERIFY : 0u) | (kind & DRY_RUN ? WIRE_OPEN_DRY_RUN : 0u) };
	struct engine_opts o = { .starter = (kind & STARTER) != 0, .one_channel = (kind & ONE_CHANNEL) != 0,
		.software = "fuzz", .timeout_ns = TIMEOUT_NS,
		.max_entries = kind & FEW ? WIRE_EARLY_ENTRIES : WIRE_SLOTS,
		.max_streams = OWNER_STREAMS, .ops = &owner_ops, .arg = c };
	struct wire_hello h = { .version_min = 1, .version_max = 1, .timeout_ms = 9000, .quiet_ms = 9000,
		.max_entries = kind & FEW ? WIRE_EARLY_ENTRIES : WIRE_SLOTS, .max_streams = OWNER_STREAMS,
		.n_abilities = 1, .abilities = { WIRE_ABLE_ONE_CHANNEL } };

	if (kind & MEASURES)
		open.flags = 0;
	c->verify = (kind & VERIFY) != 0;
	c->dry_run = (kind & DRY_RUN) != 0;
	c->asked_streams = open.streams;
	c->opened.session[0] = 1;
	MUST(engine_new(&c->s, &o, o.starter ? &open : NULL, c->now, NULL) == 0);
	if ((kind & BEGUN) == 0)
		return;
	PUT(c, hello, &h);
	c->opened.streams = 3;
	if (o.starter) {
		PUT(c, opened, &c->opened);
	} else {
		PUT(c, open, &open);
		accept(c);
	}
	MUST(engine_over(c->s) || (kind & MEASURES) != 0 ||
	    (engine_snd(c->s) != NULL) != (engine_rcv(c->s) != NULL));
}

/* What the engine has said, whole frames, of which each must be one that decodes. */
static void hear(struct owner *c)
{
	static uint8_t out[RECODE_MAX_BYTES];
	struct buf *b = &engine_outbox(c->s)->b;
	struct wire_header h;
	size_t n;

	while (buf_len(b) > 0) {
		MUST(buf_len(b) >= WIRE_HEADER_BYTES && wire_header_decode(&h, buf_head(b), NULL) == 0);
		MUST(buf_len(b) - WIRE_HEADER_BYTES >= h.length);
		MUST(recode(buf_head(b), WIRE_HEADER_BYTES + h.length, out, &n, NULL) == 0);
		buf_consume(b, WIRE_HEADER_BYTES + h.length);
	}
}

static void pass_time(struct owner *c)
{
	static const uint64_t ns[] = { 0, NS_PER_MS, 300 * NS_PER_MS, 2 * NS_PER_S, 5 * NS_PER_S, 13 * NS_PER_S };
	uint8_t how = take_byte(&c->in);

	c->busy = (how >> 4) % 5;
	c->paced = how >> 7;
	c->now.ns += ns[how % 6];
	engine_tick(c->s, c->now);
}

static void say(struct owner *c)
{
	struct ptcp_err e;
	uint8_t how = take_byte(&c->in);

	err_set(&e, PTCP_EIO, "the script says so");
	switch (how % 5) {
	case 0: engine_closed(c->s, &e); break;
	case 1: engine_finish(c->s); break;
	case 2: engine_progress(c->s, c->now); break;
	case 3: engine_fail(c->s, &e); break;
	default:
		if (engine_snd(c->s) != NULL)
			engine_warn(c->s, WIRE_WARNING_FAILED, "a", &e);
	}
}

static void move(struct owner *c)
{
	switch (take_byte(&c->in) % 16) {
	case 0: put_raw(c); break;
	case 1: put_framed(c); break;
	case 2: case 3: put_about(c); break;
	case 4: put_entry(c); break;
	case 5: pass_time(c); break;
	case 6: owner_offer(c); break;
	case 7: owner_leave(c); break;
	case 8: owner_listed(c); break;
	case 9: owner_stream(c); break;
	case 10: owner_take(c); break;
	case 11: owner_read(c); break;
	case 12: owner_answer_sending(c); break;
	case 13: owner_answer_receiving(c); break;
	case 14: owner_block(c); break;
	default:
		if (c->judging)
			accept(c);
		else
			say(c);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct owner *c = calloc(1, sizeof *c);
	unsigned moves;

	MUST(c != NULL);
	c->in = (struct input){ data, n };
	c->now.ns = NS_PER_S;
	begin(c, take_byte(&c->in));
	for (moves = 0; moves < MOVES_MAX && c->in.n > 0 && !engine_over(c->s); moves++) {
		move(c);
		hear(c);
		MUST(engine_over(c->s) || engine_deadline(c->s).ns != MONO_NEVER.ns);
	}
	MUST(engine_over(c->s) == c->ended);
	engine_drop(c->s);
	owner_check_end(c);
	engine_free(c->s);
	free(c);
	return 0;
}
