#include "core/bitmap.h"
#include "core/err.h"
#include "owner.h"
#include "wire/attrs.h"
#include "wire/block.h"

static const uint64_t sizes[] = { 0, 1, 1000, 256 << 10, (256 << 10) + 1, 1 << 20, 20 << 20, 100 << 20,
	1 << 30, UINT64_C(1) << 38, WIRE_FILE_MAX };
#define N_SIZES (sizeof sizes / sizeof *sizes)

static struct ptcp_err why_not(void)
{
	struct ptcp_err e;

	err_set(&e, PTCP_EIO, "the script says so");
	return e;
}

struct item *owner_item(struct owner *c, uint8_t which)
{
	struct item *it = &c->item[which % OWNER_ITEMS];

	return it->used ? it : NULL;
}

static struct item *new_item(struct owner *c)
{
	unsigned i;

	for (i = 0; i < OWNER_ITEMS; i++)
		if (!c->item[i].used) {
			c->item[i].used = true;
			return &c->item[i];
		}
	return NULL;
}

static void tell(struct item *it)
{
	MUST(it->used && !it->told);
	it->told = true;
	if (it->parent != NULL) {
		MUST(it->parent->children > 0);
		it->parent->children--;
	}
}

/* ---- What the session tells ---- */

static void on_open(void *arg, const struct wire_open *f)
{
	struct owner *c = arg;
	struct span rest = f->paths, path;
	uint8_t flags;
	unsigned n = 0;

	MUST(!c->judging && !c->ended);
	while (wire_path_next(&rest, &flags, &path))
		n++;
	MUST(n == f->n_paths);
	c->judging = true;
	c->verify = (f->flags & WIRE_OPEN_VERIFY) != 0;
	c->dry_run = (f->flags & WIRE_OPEN_DRY_RUN) != 0;
	c->asked_streams = f->streams;
}

static void on_running(void *arg, const struct wire_opened *f)
{
	struct owner *c = arg;

	MUST(!c->ended && f->streams <= c->asked_streams);
	MUST(engine_snd(c->s) == NULL || engine_rcv(c->s) == NULL);
}

static void on_note(void *arg, const struct wire_warning *n)
{
	MUST(!((struct owner *)arg)->ended);
	MUST(n->path.n == 0 || memchr(n->path.p, 0, n->path.n) == NULL);
}

static enum wire_busy on_busy(void *arg) { return ((struct owner *)arg)->busy; }
static bool on_paced(void *arg) { return ((struct owner *)arg)->paced; }

static void on_ended(void *arg, const struct ptcp_err *why)
{
	struct owner *c = arg;

	MUST(!c->ended);
	MUST(why == NULL || (why->code < 0 && why->msg[0] != '\0'));
	c->ended = true;
}

/* ---- What a sender is asked ---- */

static void owe(struct item *it, uint64_t id, enum owed what)
{
	MUST(it->used && !it->told && (it->owed & what) == 0);
	it->id = id;
	it->owed |= what;
}

static void on_snd_ended(void *arg, void *cookie, enum snd_fate fate, const struct ptcp_err *why)
{
	(void)arg;
	MUST((fate == SND_FAILED) == (why != NULL));
	tell(cookie);
}

static void on_check(void *arg, void *cookie, uint64_t id)
{
	(void)arg;
	owe(cookie, id, OWE_CHECK);
}

static void on_compare(void *arg, void *cookie, uint64_t id)
{
	MUST(((struct owner *)arg)->verify);
	owe(cookie, id, OWE_COMPARE);
}

static void on_hash(void *arg, void *cookie, uint64_t id, uint32_t first, uint32_t count)
{
	struct item *it = cookie;

	(void)arg;
	owe(it, id, OWE_HASHES);
	MUST(count > 0 && count <= WIRE_HASHES_MAX && first < it->n_blocks && count <= it->n_blocks - first);
	MUST(first >= it->hash_first + it->hash_count); /* none twice */
	it->hash_first = first;
	it->hash_count = count;
}

static void on_pieces(void *arg, void *cookie, uint64_t id, uint32_t block)
{
	struct item *it = cookie;

	(void)arg;
	owe(it, id, OWE_PIECES);
	MUST(block < it->n_blocks && block >= it->piece_end);
	it->piece_block = block;
	it->piece_end = block + 1;
}

static void on_map(void *arg, void *cookie, uint64_t id)
{
	struct item *it = cookie;

	(void)arg;
	MUST(it->sparse && !it->mapped);
	owe(it, id, OWE_MAP);
}

static void on_stalled(void *arg, unsigned stream)
{
	struct owner *c = arg;

	MUST(stream < OWNER_STREAMS && c->up[stream]);
}

static void on_release(void *arg, void *cookie, uint32_t block)
{
	(void)arg;
	(void)cookie;
	(void)block;
	MUST(false); /* it offers no file of unknown size */
}

static void on_again(void *arg, void *cookie, uint64_t id)
{
	(void)arg;
	MUST(((struct item *)cookie)->type == WIRE_HARDLINK);
	owe(cookie, id, OWE_LINK);
}

static const struct snd_ops snd_ops = { on_snd_ended, on_check, on_compare, on_hash, on_pieces, on_map, on_stalled,
	on_release, on_again };

/* ---- What a receiver is asked ---- */

/* Some of the blocks of a file that is small enough. */
static uint64_t *claim(struct item *it, uint8_t pattern)
{
	uint64_t *claimed = bitmap_new(it->n_blocks);
	uint32_t i;

	MUST(claimed != NULL);
	for (i = 0; i < it->n_blocks && i < OWNER_BLOCKS; i++)
		if (pattern >> (i % 8) & 1)
			bitmap_add(claimed, i), bitmap_add(it->claimed, i);
	return claimed;
}

/* A verdict of the script's that may be given of that entry. */
static enum rcv_prep verdict(const struct owner *c, struct item *it, uint8_t how, bool again,
    uint64_t **claimed)
{
	*claimed = NULL;
	if (how % 8 == 0)
		return RCV_REFUSE;
	if (it->type == WIRE_DIR || it->unsized)
		return RCV_ACCEPT;
	if (how % 8 == 1)
		return RCV_UP_TO_DATE;
	if (it->type == WIRE_FILE && how % 8 == 2 && c->verify && !again) {
		it->owed |= OWE_HASH;
		return RCV_COMPARE;
	}
	if (it->type == WIRE_FILE && how % 8 == 3 && it->n_blocks > 0) {
		*claimed = claim(it, (uint8_t)(how ^ how >> 3));
		return RCV_PARTS;
	}
	return RCV_ACCEPT;
}

static enum rcv_prep on_prepare(void *arg, uint64_t id, const struct wire_entry *f, void *parent,
    void **cookie, uint64_t **claimed, struct ptcp_err *e)
{
	struct owner *c = arg;
	struct item *it = new_item(c), *above = parent;
	uint8_t how = c->next_prep;
	struct wire_attrs a;

	*e = why_not();
	*cookie = it;
	if (it == NULL) /* too many to follow */
		return RCV_REFUSE;
	MUST((f->parent == 0) == (above == NULL));
	if (above != NULL) {
		MUST(above->used && !above->told && !above->committing && above->type == WIRE_DIR &&
		    above->id == f->parent);
		above->children++;
	}
	it->id = id;
	it->type = f->type;
	it->size_bytes = f->size_bytes;
	MUST(wire_attrs_decode(&a, f, NULL) == 0);
	it->unsized = a.unsized;
	it->n_blocks = wire_grid_blocks(a.unsized ? wire_grid_unsized(WIRE_UNSIZED_MAX) : wire_grid_of(f->size_bytes));
	it->parent = above;
	if (how & 0x80) {
		it->owed |= OWE_PREPARE;
		return RCV_LATER;
	}
	return verdict(c, it, how, false, claimed);
}

static void on_differs(void *arg, uint64_t id, void *cookie)
{
	(void)arg;
	owe(cookie, id, OWE_AGAIN);
}

static void on_same(void *arg, uint64_t id, void *cookie)
{
	(void)arg;
	owe(cookie, id, OWE_SAME);
}

static void on_accepted(void *arg, uint64_t id, void *cookie, uint64_t size_bytes, bool parts)
{
	struct item *it = cookie;

	MUST(!((struct owner *)arg)->dry_run);
	MUST(it->type == WIRE_FILE && it->id == id && it->size_bytes == size_bytes && !it->accepted && !it->told);
	it->accepted = true;
	if (parts)
		it->owed |= OWE_VERIFY;
	else
		memset(it->claimed, 0, sizeof it->claimed);
}

static void add_written(struct item *it, uint32_t first, uint32_t count)
{
	uint32_t i;

	MUST(first < it->n_blocks && count <= it->n_blocks - first);
	for (i = first; i < first + count && i < OWNER_BLOCKS; i++)
		MUST(bitmap_add(it->written, i));
	it->n_written += count;
	MUST(it->n_written <= it->n_blocks);
}

static void on_hole(void *arg, uint64_t id, void *cookie, uint32_t first, uint32_t count)
{
	struct item *it = cookie;

	(void)arg;
	MUST(it->id == id && it->accepted && !it->committing && !it->told);
	add_written(it, first, count);
}

static void on_hashes(void *arg, uint64_t id, void *cookie, uint32_t first, struct span hashes)
{
	struct item *it = cookie;
	uint32_t n = (uint32_t)(hashes.n / WIRE_HASH_BYTES);

	(void)arg;
	MUST(it->id == id && it->accepted && !it->committing && !it->told && first < it->match_next);
	MUST(n > 0 && n <= it->match_open[0]);
	it->match_open[0] -= n;
	if (it->match_open[0] == 0) {
		it->match_open[0] = it->match_open[1];
		it->match_open[1] = 0;
	}
}

static void on_pieces_of(void *arg, uint64_t id, void *cookie, uint32_t block, struct span hashes)
{
	struct item *it = cookie;

	(void)arg;
	MUST(it->id == id && it->accepted && !it->committing && !it->told && block < it->split_next);
	MUST(hashes.n == wire_pieces(wire_grid_length(wire_grid_of(it->size_bytes), block)) * WIRE_HASH_BYTES);
	MUST(it->split_open-- > 0);
}

static void on_commit(void *arg, uint64_t id, void *cookie, const struct wire_entry *end)
{
	struct item *it = cookie;

	MUST(!((struct owner *)arg)->dry_run);
	MUST(it->id == id && !it->told && !it->committing && it->children == 0);
	MUST((end != NULL) == (it->type == WIRE_DIR));
	if (it->type == WIRE_FILE && it->n_blocks <= OWNER_BLOCKS)
		MUST(it->accepted && it->n_written == it->n_blocks);
	it->committing = true;
	it->owed |= OWE_COMMIT;
}

static void on_rcv_ended(void *arg, uint64_t id, void *cookie, bool skipped, const struct ptcp_err *why)
{
	struct item *it = cookie;

	(void)arg;
	if (it == NULL) /* see on_prepare() */
		return;
	MUST(it->id == id && !(skipped && why != NULL));
	tell(it);
}

static void on_totals(void *arg, uint64_t files, uint64_t bytes, bool final)
{
	(void)files;
	(void)bytes;
	(void)final;
	MUST(!((struct owner *)arg)->ended);
}

static void on_sized(void *arg, uint64_t id, void *cookie, uint64_t size_bytes)
{
	struct item *it = cookie;

	(void)arg;
	MUST(it->id == id && it->unsized && it->accepted && !it->committing && !it->told &&
	    size_bytes <= WIRE_UNSIZED_MAX);
	MUST(it->n_blocks == wire_grid_blocks(wire_grid_unsized(WIRE_UNSIZED_MAX)) || size_bytes == WIRE_UNSIZED_MAX);
	it->n_blocks = wire_grid_blocks(wire_grid_unsized(size_bytes));
	MUST(it->n_written <= it->n_blocks);
}

static void on_beginning(void *arg, uint64_t id, void *cookie, uint64_t bytes)
{
	const struct item *it = cookie;

	(void)arg;
	MUST(it->id == id && it->unsized && !it->told && bytes <= (uint64_t)it->n_written * WIRE_CHUNK_BYTES);
}

static void on_incomplete(void *arg, void *cookie, bool failed)
{
	const struct item *it = cookie;

	(void)arg;
	(void)failed;
	MUST(it == NULL || (it->type == WIRE_DIR && !it->told && !it->committing));
}

static const struct rcv_ops rcv_ops = { on_prepare, on_differs, on_accepted, on_hole, on_hashes, on_pieces_of,
    on_commit,
	on_rcv_ended, on_totals, on_same, on_sized, on_beginning, on_incomplete };

static int on_heard(void *arg, uint64_t bytes, struct ptcp_err *e)
{
	MUST(!((struct owner *)arg)->ended);
	(void)bytes;
	(void)e;
	return 0;
}

static void on_use(void *arg, const struct wire_set_streams *u)
{
	(void)u;
	MUST(!((struct owner *)arg)->ended);
}

static void on_seen(void *arg, const struct wire_tcp_report *f)
{
	MUST(!((struct owner *)arg)->ended);
	MUST(f->congestion.n <= WIRE_CONGESTION_MAX);
}

static void on_load(void *arg, const struct wire_load *f)
{
	MUST(!((struct owner *)arg)->ended);
	MUST(f->busy_permille <= 1000 && f->disk_permille <= 1000);
}

static void on_leftovers(void *arg, const struct wire_leftovers *f)
{
	MUST(!((struct owner *)arg)->ended);
	MUST(f->files > 0);
}

static void on_waiting(void *arg, uint32_t ahead)
{
	(void)ahead;
	MUST(!((struct owner *)arg)->ended);
}

/* Whatever it says, the engine takes it. */
static void on_rate(void *arg, const struct wire_rate *f)
{
	struct owner *c = arg;
	unsigned i;

	MUST(!c->ended && engine_snd(c->s) != NULL);
	MUST(f->n <= WIRE_RATES_MAX && f->m <= WIRE_RATE_STREAMS_MAX);
	for (i = 0; i < f->n; i++)
		snd_set_rate(engine_snd(c->s), i + 1, f->bps[i]);
	for (i = 0; i < f->m; i++)
		snd_share(engine_snd(c->s), i, f->of[i]);
}

static void on_endpoint(void *arg, const struct wire_endpoint *f)
{
	(void)arg;
	(void)f;
}

static void on_deleted(void *arg, const struct wire_deleted *f)
{
	struct owner *c = arg;

	MUST(!c->ended && (engine_open(c->s)->flags & WIRE_OPEN_DELETE) != 0 && f->path.n > 0);
}

static int on_select(void *arg, const struct wire_select *f, struct ptcp_err *e)
{
	struct owner *c = arg;
	unsigned i;
	size_t at = 0;

	MUST(!c->ended && (engine_open(c->s)->flags & WIRE_OPEN_SELECTED) != 0);
	for (i = 0; i < f->n_paths; i++)
		at += strlen((const char *)f->paths.p + at) + 1;
	MUST(at == f->paths.n);
	return f->n_paths == 7 ? err_set(e, PTCP_EPROTO, "seven") : 0;
}

const struct engine_ops owner_ops = { .open = on_open, .running = on_running, .warning = on_note,
	.control_ack = on_heard,
	.busy = on_busy, .paced = on_paced, .ended = on_ended, .snd = &snd_ops, .rcv = &rcv_ops, .set_streams = on_use,
	.tcp_report = on_seen, .rate = on_rate, .select = on_select, .deleted = on_deleted, .endpoint = on_endpoint,
	.load = on_load, .waiting = on_waiting, .leftovers = on_leftovers };

/* ---- Moves of a sender's owner ---- */

static struct span link_attrs(uint8_t out[16], uint64_t id)
{
	struct wire_attrs a = { .link_id = id };

	return (struct span){ out, wire_attrs_encode(out, &a) };
}

void owner_offer(struct owner *c)
{
	static const uint8_t sparse[] = { 0, WIRE_ATTR_SPARSE, 0, 0 };
	struct snd *snd = engine_snd(c->s);
	uint8_t what = take_byte(&c->in), attrs[16];
	struct wire_entry f = { .type = what % 4 + 1u, .name = { (const uint8_t *)"n", 1 } };
	struct item *it, *of = owner_item(c, what >> 2);

	if (snd == NULL || c->listed || snd_room(snd) == 0 || (it = new_item(c)) == NULL)
		return;
	if (f.type == WIRE_DIR_END) {
		f.type = WIRE_FILE;
		f.attrs = (struct span){ sparse, sizeof sparse };
		it->sparse = true;
	}
	if (f.type == WIRE_SYMLINK) {
		f.target = f.name;
		if (of != NULL && of != it && wire_may_be_linked((uint8_t)of->type) && of->id != 0 && !of->told) {
			f.target.n = 0;
			f.type = WIRE_HARDLINK;
			f.attrs = link_attrs(attrs, of->id);
		}
	}
	if (f.type == WIRE_FILE)
		f.size_bytes = sizes[(what >> 2) % N_SIZES];
	it->type = f.type;
	it->n_blocks = wire_grid_blocks(wire_grid_of(f.size_bytes));
	it->size_bytes = f.size_bytes;
	it->id = snd_offer(snd, &f, it);
}

void owner_leave(struct owner *c)
{
	struct snd *snd = engine_snd(c->s);

	if (snd != NULL && snd_depth(snd) > 0)
		snd_leave(snd);
}

/* The listing is complete once every directory has been left, and then nothing is offered any more. */
void owner_listed(struct owner *c)
{
	struct snd *snd = engine_snd(c->s);

	if (snd == NULL || c->listed)
		return;
	c->listed = snd_depth(snd) == 0;
	snd_listed(snd, take_byte(&c->in), 7, c->listed);
}

void owner_stream(struct owner *c)
{
	unsigned stream = take_byte(&c->in) % OWNER_STREAMS, i, n = 0;
	struct snd *snd = engine_snd(c->s);

	if (snd == NULL)
		return;
	if (!c->up[stream]) {
		snd_stream_up(snd, stream, c->now);
	} else {
		snd_stream_lost(snd, stream);
		for (i = 0; i < c->n_reads; i++) /* no word of these will come */
			if (c->read[i].stream != stream)
				c->read[n++] = c->read[i];
		c->n_reads = n;
	}
	c->up[stream] = !c->up[stream];
}

void owner_take(struct owner *c)
{
	unsigned stream = take_byte(&c->in) % OWNER_STREAMS, i;
	struct snd *snd = engine_snd(c->s);
	struct snd_job job;
	uint64_t bytes = 0;

	if (snd == NULL || !c->up[stream] || c->n_reads + SND_JOB_EXTENTS > OWNER_READS ||
	    !snd_take(snd, stream, c->now, &job))
		return;
	MUST(job.n > 0 && job.n <= SND_JOB_EXTENTS);
	for (i = 0; i < job.n; i++) {
		const struct snd_extent *x = &job.extent[i];
		const struct item *it = x->cookie;

		MUST(it->used && !it->told && it->id == x->id && it->type == WIRE_FILE);
		MUST(!it->sparse || it->mapped);
		MUST(x->length == wire_grid_length(wire_grid_of(it->size_bytes), x->block) && x->length > 0);
		MUST(x->offset == (uint64_t)x->block * wire_grid_bytes(it->size_bytes));
		bytes += x->length;
		c->read[c->n_reads].stream = stream;
		c->read[c->n_reads++].extent = *x;
	}
	MUST(job.n == 1 || bytes <= SND_JOB_BYTES);
}

void owner_read(struct owner *c)
{
	uint8_t which = take_byte(&c->in);
	struct snd *snd = engine_snd(c->s);
	struct ptcp_err e = why_not();
	struct snd_extent x;
	unsigned i, stream;

	if (snd == NULL || c->n_reads == 0)
		return;
	i = (which >> 1) % c->n_reads;
	x = c->read[i].extent;
	stream = c->read[i].stream;
	c->read[i] = c->read[--c->n_reads];
	snd_read(snd, stream, x.id, x.block, (struct digest){ 0, x.block + 1 }, which & 1 ? &e : NULL, c->now);
}

/* By the script, every eighth time in vain. */
static const struct ptcp_err *perhaps(uint8_t how, const struct ptcp_err *e)
{
	return how % 8 == 7 ? e : NULL;
}

static bool pay(struct item *it, enum owed what)
{
	bool owes = (it->owed & what) != 0;

	it->owed &= ~(unsigned)what;
	return owes;
}

static void answer_map(struct snd *snd, struct item *it, uint8_t how, const struct ptcp_err *why)
{
	uint64_t *holes = why == NULL && how & 0x10 ? bitmap_new(it->n_blocks) : NULL;
	uint32_t i;

	if (holes != NULL)
		for (i = 0; i < it->n_blocks && i < OWNER_BLOCKS; i++)
			if (how >> 5 & 1u << i % 3)
				bitmap_add(holes, i);
	it->mapped = true;
	snd_mapped(snd, it->id, holes, why);
}

/* All of them, or some and then the rest. */
static void answer_hashes(struct snd *snd, struct item *it, uint8_t how, const struct ptcp_err *why)
{
	static const struct block_sum hash[WIRE_HASHES_MAX];
	uint64_t id = it->id;
	uint32_t n = it->hash_count, some = how & 0x10 ? n / 2 : 0;

	if (why == NULL && some > 0)
		snd_hashed(snd, id, hash, some, NULL);
	snd_hashed(snd, id, hash, n - some, why);
}

static void answer_pieces(struct snd *snd, struct item *it, const struct ptcp_err *why)
{
	static const struct block_sum sum[WIRE_PIECES_MAX];

	snd_pieces(snd, it->id, sum, wire_pieces(wire_grid_length(wire_grid_of(it->size_bytes), it->piece_block)), why);
}

/* As a file, or not at all. */
static void answer_again(struct snd *snd, struct item *it, uint8_t how)
{
	struct wire_entry f = { .type = WIRE_FILE, .name = { (const uint8_t *)"n", 1 },
		.size_bytes = sizes[how % N_SIZES] };

	if (how & 0x80) {
		snd_give_up(snd, it->id);
		return;
	}
	it->type = WIRE_FILE;
	it->n_blocks = wire_grid_blocks(wire_grid_of(f.size_bytes));
	it->size_bytes = f.size_bytes;
	it->id = snd_offer_again(snd, it->id, &f, it);
}

void owner_answer_sending(struct owner *c)
{
	struct item *it = owner_item(c, take_byte(&c->in));
	struct snd *snd = engine_snd(c->s);
	uint8_t how = take_byte(&c->in);
	struct ptcp_err e = why_not();

	if (snd == NULL || it == NULL)
		return;
	if (pay(it, OWE_MAP))
		answer_map(snd, it, how, perhaps(how, &e));
	else if (pay(it, OWE_COMPARE))
		snd_compared(snd, it->id, (struct digest){ 0, how }, perhaps(how, &e));
	else if (pay(it, OWE_HASHES))
		answer_hashes(snd, it, how, perhaps(how, &e));
	else if (pay(it, OWE_PIECES))
		answer_pieces(snd, it, perhaps(how, &e));
	else if (!it->told && pay(it, OWE_LINK))
		answer_again(snd, it, how);
	else if (pay(it, OWE_CHECK))
		snd_checked(snd, it->id, perhaps(how, &e));
}

/* ---- Moves of a receiver's owner ---- */

static void answer_prepare(struct owner *c, struct rcv *rcv, struct item *it, uint8_t how, bool again)
{
	struct ptcp_err e = why_not();
	uint64_t *claimed;
	enum rcv_prep v;

	if (it->told) { /* failed meanwhile: what is said of it is ignored */
		rcv_prepared(rcv, it->id, RCV_ACCEPT, NULL, NULL);
		return;
	}
	v = verdict(c, it, how, again, &claimed);
	rcv_prepared(rcv, it->id, v, claimed, v == RCV_REFUSE ? &e : NULL);
}

/* A run of what is claimed has been read. */
static void answer_verify(struct rcv *rcv, struct item *it, uint8_t how)
{
	uint32_t end = it->n_blocks < OWNER_BLOCKS ? it->n_blocks : OWNER_BLOCKS;
	uint32_t first = bitmap_next(it->claimed, true, 0, end), count = 0;
	struct digest sum = { 0, 0 };
	struct ptcp_err e = why_not();

	if (it->told || it->committing || first == end)
		return;
	it->owed |= OWE_VERIFY; /* there may be more */
	if (how == 0xff) {
		rcv_broken(rcv, it->id, &e);
		return;
	}
	while (first + count < end && bitmap_has(it->claimed, first + count) && count <= how % 4) {
		digest_add(&sum, (struct digest){ 0, first + count + 1 });
		count++;
	}
	bitmap_set(it->claimed, false, first, first + count);
	if ((how & 0x30) == 0x20 && count == 1) {
		rcv_patch(rcv, it->id, first, how & 1);
		return;
	}
	if (how & 0x10) {
		add_written(it, first, count);
		digest_add(&it->sum, sum);
	}
	rcv_verified(rcv, it->id, first, count, (how & 0x10) != 0, sum);
}

/* Of the next blocks, whether or not they are claimed. */
static void ask_hashes(struct rcv *rcv, struct item *it, uint8_t how)
{
	uint32_t left = it->n_blocks - it->match_next, n = how % 8 + 1;

	if (it->told || it->committing || left == 0)
		return;
	n = n < left ? n : left;
	if (how & 0x40 && it->split_next <= it->match_next && it->n_blocks <= OWNER_BLOCKS) {
		if (rcv_split(rcv, it->id, it->match_next, n)) {
			it->split_next = it->match_next + n;
			it->split_open += n;
		}
		return;
	}
	it->match_open[it->match_open[0] > 0] = n;
	rcv_match(rcv, it->id, it->match_next, n);
	it->match_next += n;
}

void owner_answer_receiving(struct owner *c)
{
	struct item *it = owner_item(c, take_byte(&c->in));
	struct rcv *rcv = engine_rcv(c->s);
	uint8_t how = take_byte(&c->in);
	struct ptcp_err e = why_not();

	if (rcv == NULL || it == NULL)
		return;
	if (pay(it, OWE_PREPARE))
		answer_prepare(c, rcv, it, how, false);
	else if (pay(it, OWE_AGAIN))
		answer_prepare(c, rcv, it, how, true);
	else if (pay(it, OWE_SAME))
		rcv_prepared(rcv, it->id, how % 8 == 7 ? RCV_REFUSE : RCV_UP_TO_DATE, NULL, perhaps(how, &e));
	else if (pay(it, OWE_HASH))
		rcv_compared(rcv, it->id, (struct digest){ 0, how }, perhaps(how, &e));
	else if (pay(it, OWE_COMMIT))
		rcv_committed(rcv, it->id, perhaps(how, &e));
	else if ((it->owed & OWE_VERIFY) != 0 && (how & 0xe0) == 0x60 && it->match_open[1] == 0)
		ask_hashes(rcv, it, how);
	else if (pay(it, OWE_VERIFY))
		answer_verify(rcv, it, how);
}

/* A block of the peer's came on a stream. As intake has it, it is reported in any state of its entry, also
 * when it is here already, but what is claimed and not asked for is not written. */
void owner_block(struct owner *c)
{
	struct item *it = owner_item(c, take_byte(&c->in));
	uint32_t block = take_byte(&c->in);
	uint8_t how = take_byte(&c->in);
	struct rcv *rcv = engine_rcv(c->s);
	struct digest term = { 0, block + 1 };
	struct rcv_stats before;
	struct ptcp_err e = why_not();

	if (rcv == NULL || it == NULL || it->type != WIRE_FILE)
		return;
	before = rcv_stats(rcv);
	/* Counted first: the last block may commit the file. */
	if (how % 8 < 6 && !it->told && block < it->n_blocks && block < OWNER_BLOCKS && it->accepted &&
	    !it->committing && !bitmap_has(it->written, block) && !bitmap_has(it->claimed, block)) {
		add_written(it, block, 1);
		digest_add(&it->sum, term);
		rcv_block(rcv, it->id, block, RCV_BLOCK_WRITTEN, term, NULL);
		if (rcv_stats(rcv).done.bytes == before.done.bytes) { /* not wanted yet, so not there */
			bitmap_set(it->written, false, block, block + 1);
			it->n_written--;
			it->sum.lo -= term.lo;
		}
		return;
	}
	rcv_block(rcv, it->id, block, how % 8 == 6 ? RCV_BLOCK_BAD : RCV_BLOCK_FAILED, term, &e);
	MUST(rcv_stats(rcv).done.bytes == before.done.bytes);
}

void owner_check_end(const struct owner *c)
{
	unsigned i;

	for (i = 0; i < OWNER_ITEMS; i++)
		MUST(!c->item[i].used || c->item[i].told);
}
