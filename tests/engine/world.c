#include "world_impl.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>

#include "core/bitmap.h"
#include "core/byteorder.h"
#include "core/err.h"
#include "wire/attrs.h"
#include "wire/block.h"

#define EVENTS_MAX 20000000u

/* splitmix64 */
uint64_t world_random(struct rng *r)
{
	uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

uint32_t rng_below(struct rng *r, uint32_t n) { return (uint32_t)(world_random(r) >> 32) % n; }
bool rng_one_in(struct rng *r, uint32_t n) { return rng_below(r, n) == 0; }

void plan_init(struct plan *p, uint64_t seed)
{
	*p = (struct plan){ .seed = seed, .verify = true, .lines = 4, .jobs = 2,
		.timeout_ns = 10 * NS_PER_S, .max_entries = WIRE_SLOTS,
		.control_latency_ns = 5 * NS_PER_MS, .store_ns = 2 * NS_PER_MS, .list_batch = 32,
		.fault_ns = NS_PER_S };
}

volatile unsigned world_allocating; /* volatile: to a compiler, calloc() reads nothing of ours */

void *world_alloc(void *old, size_t n)
{
	void *p;

	world_allocating++;
	p = old != NULL ? realloc(old, n) : calloc(1, n);
	world_allocating--;
	assert_non_null(p);
	return p;
}

struct mono world_now(const struct world *w) { return (struct mono){ w->now_ns }; }

bool world_unlucky(struct world *w, unsigned one_in)
{
	return one_in > 0 && rng_one_in(&w->rng, one_in);
}

uint64_t world_store_ns(struct world *w)
{
	if (w->plan.slow_store_ns > 0 && rng_one_in(&w->rng, 200))
		return w->plan.slow_store_ns;
	return world_random(&w->rng) % (w->plan.store_ns + 1);
}

struct digest world_term(const struct world *w, const struct node *n, uint32_t version, uint32_t block)
{
	struct rng r = { ((uint64_t)n->index << 32 | block) ^ (uint64_t)version << 56 };
	struct digest d = { 0, 0 };

	if (w->plan.hashed)
		return tape_term(n, version, block);
	if (w->plan.verify) {
		d.hi = world_random(&r);
		d.lo = world_random(&r);
	}
	return d;
}

struct digest world_sum(const struct world *w, const struct node *n, uint32_t version)
{
	struct digest sum = { 0, 0 };
	uint32_t i;

	for (i = 0; i < n->n_blocks; i++)
		digest_add(&sum, world_term(w, n, version, i));
	return sum;
}

bool world_is_hole(const struct node *n, uint32_t block)
{
	return n->holes != NULL && bitmap_has(n->holes, block);
}

/* ---- Events: a heap, the earliest first, equal ones in the order they were made ---- */

static bool earlier(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

struct event *world_soon(struct world *w, enum event_kind kind, uint64_t after_ns)
{
	struct event *ev = world_alloc(NULL, sizeof *ev);
	size_t i = w->n_heap++, up;

	if (w->n_heap > w->cap_heap) {
		w->cap_heap = w->cap_heap * 2 + 64;
		w->heap = world_alloc(w->heap, w->cap_heap * sizeof *w->heap);
	}
	ev->kind = kind;
	ev->at = w->now_ns + after_ns;
	ev->order = w->n_events++;
	for (; i > 0 && earlier(ev, w->heap[up = (i - 1) / 2]); i = up)
		w->heap[i] = w->heap[up];
	return w->heap[i] = ev;
}

static struct event *pop(struct world *w)
{
	struct event *top = w->heap[0], *last = w->heap[--w->n_heap];
	size_t i = 0, down;

	while ((down = 2 * i + 1) < w->n_heap) {
		if (down + 1 < w->n_heap && earlier(w->heap[down + 1], w->heap[down]))
			down++;
		if (!earlier(w->heap[down], last))
			break;
		w->heap[i] = w->heap[down];
		i = down;
	}
	w->heap[i] = last;
	return top;
}

void event_free(struct event *ev)
{
	free(ev->bytes);
	free(ev->job);
	free(ev);
}

/* ---- The tree and its walk ---- */

static void add_step(struct world *w, struct node *n, bool leave)
{
	if (w->n_steps == w->cap_steps) {
		w->cap_steps = w->cap_steps * 2 + 64;
		w->step = world_alloc(w->step, w->cap_steps * sizeof *w->step);
	}
	w->step[w->n_steps++] = (struct step){ n, leave };
}

/* The directory that what is added now would be in. */
static struct node *inside(const struct world *w)
{
	struct node *n;

	if (w->n_steps == 0)
		return NULL;
	n = w->step[w->n_steps - 1].node;
	return w->step[w->n_steps - 1].leave || n->type != WIRE_DIR ? n->parent : n;
}

/* Runs of holes and of data; or nothing but holes. */
static void make_holes(struct world *w, struct node *n)
{
	uint32_t i = 0, end, longest = 1 + rng_below(&w->rng, 2 * n->n_blocks);
	bool hole = rng_one_in(&w->rng, 2);

	n->holes = world_alloc(NULL, bitmap_bytes(n->n_blocks));
	for (; i < n->n_blocks; i = end, hole = !hole) {
		end = i + 1 + rng_below(&w->rng, longest);
		end = end < n->n_blocks ? end : n->n_blocks;
		bitmap_set(n->holes, hole, i, end);
	}
}

/* A third of its blocks has changed, in runs. */
static void make_old(struct world *w, struct node *n)
{
	uint32_t at = 0, end;

	n->old = world_alloc(NULL, bitmap_bytes(n->n_blocks) + 8);
	for (; at < n->n_blocks; at = end + 1 + rng_below(&w->rng, 8)) {
		end = at + 1 + rng_below(&w->rng, 16);
		bitmap_set(n->old, true, at, end < n->n_blocks ? end : n->n_blocks);
	}
}

struct node *world_add(struct world *w, uint8_t type, uint64_t size_bytes)
{
	struct node *n = world_alloc(NULL, sizeof *n);
	uint32_t blocks = wire_grid_blocks(wire_grid_of(size_bytes));

	if (w->n_nodes == w->cap_nodes) {
		w->cap_nodes = w->cap_nodes * 2 + 64;
		w->node = world_alloc(w->node, w->cap_nodes * sizeof *w->node);
	}
	n->index = w->n_nodes;
	n->type = type;
	n->size_bytes = size_bytes;
	n->n_blocks = blocks;
	n->parent = inside(w);
	n->read_fails_at = n->write_fails_at = NO_BLOCK;
	w->node[w->n_nodes++] = n;
	add_step(w, n, false);
	n->refused = world_unlucky(w, w->plan.refuse);
	n->commit_fails = world_unlucky(w, w->plan.commit_fails);
	n->have_it = type != WIRE_DIR && world_unlucky(w, w->plan.have_it);
	n->version = 1;
	if (type != WIRE_FILE)
		return n;
	/* Its bitmap has room for the largest; above 256 GiB the grid of a file of known size is another. */
	n->unsized = w->n_unsized < 3 && size_bytes < UINT64_C(1) << 38 && world_unlucky(w, w->plan.unsized);
	w->n_unsized += n->unsized;
	if (world_unlucky(w, w->plan.exists))
		n->here = rng_one_in(&w->rng, 2) ? 1 : 100;
	if (blocks > 0 && !n->unsized && world_unlucky(w, w->plan.sparse))
		make_holes(w, n);
	if (blocks > 1 && !n->unsized && world_unlucky(w, w->plan.olds))
		make_old(w, n);
	n->changed = world_unlucky(w, w->plan.changes);
	n->spoilt = world_unlucky(w, w->plan.spoils) && w->plan.verify && blocks > 1 && n->holes == NULL &&
	    n->old == NULL;
	if (blocks > 0 && world_unlucky(w, w->plan.read_fails))
		n->read_fails_at = rng_below(&w->rng, blocks);
	if (blocks > 0 && world_unlucky(w, w->plan.write_fails))
		n->write_fails_at = rng_below(&w->rng, blocks);
	return n;
}

void world_leave(struct world *w)
{
	assert_non_null(inside(w));
	add_step(w, inside(w), true);
}

static uint64_t random_size(struct rng *r)
{
	static const uint64_t block = 256u << 10;

	switch (rng_below(r, 12)) {
	case 0:  return 0;
	case 1:  return 1 + rng_below(r, 3) + block * rng_below(r, 3);
	case 2:  return block * (1 + rng_below(r, 4));
	case 3:  return block * (20 + rng_below(r, 100)) + rng_below(r, 1000);
	case 4:  return block * 63 + world_random(r) % (3 * block);
	default: return 1 + rng_below(r, 100000);
	}
}

/* A symbolic link, or another name of a file or symbolic link before it. */
static void add_link(struct world *w)
{
	struct node *to = w->n_nodes > 0 ? w->node[rng_below(&w->rng, w->n_nodes)] : NULL;

	if (to == NULL || !wire_may_be_linked(to->type) || !world_unlucky(w, w->plan.links))
		world_add(w, WIRE_SYMLINK, 0);
	else
		world_add(w, WIRE_HARDLINK, 0)->link_to = to;
}

void world_grow(struct world *w, uint32_t entries)
{
	unsigned depth = 0;

	while (entries-- > 0) {
		while (depth > 0 && rng_one_in(&w->rng, 6)) {
			world_leave(w);
			depth--;
		}
		switch (rng_below(&w->rng, 8)) {
		case 0: case 1:
			world_add(w, WIRE_DIR, 0);
			depth++;
			break;
		case 2:
			add_link(w);
			break;
		default:
			world_add(w, WIRE_FILE, random_size(&w->rng));
		}
	}
	while (depth-- > 0)
		world_leave(w);
}

/* ---- Listing: a batch at a time, as a thread of the store would ---- */

/* Whether its other name can be named: else it is sent as a symbolic link, for want of something better. */
static bool linkable(const struct node *n)
{
	return n->link_to->snd_id != 0 &&
	    !(n->link_to->told && n->link_to->fate == SND_FAILED);
}

static struct span attrs_of(const struct node *n, uint8_t type, uint8_t *room)
{
	struct wire_attrs a = { .has_version = type == WIRE_FILE, .sparse = n->holes != NULL,
		.linked = wire_may_be_linked(n->type) && n->index % 2 == 0 };

	if (n->unsized) {
		a = (struct wire_attrs){ .unsized = true };
		return (struct span){ room, wire_attrs_encode(room, &a) };
	}
	put_u32(a.version, n->version);
	if (type == WIRE_HARDLINK)
		a.link_id = n->link_to->snd_id;
	return (struct span){ room, wire_attrs_encode(room, &a) };
}

/* `again`: in place of that hard link; 0: as the next entry. */
static void offer(struct world *w, struct node *n, uint64_t again)
{
	char name[16];
	uint8_t attrs[64];
	struct wire_entry f = { .type = n->type, .size_bytes = n->unsized ? 0 : n->size_bytes,
		.mtime_s = n->index, .mode = n->index & 07777,
		.name = { (const uint8_t *)name, 0 }, .target = { (const uint8_t *)"to", 0 } };

	if (f.type == WIRE_HARDLINK && (again != 0 || !linkable(n)))
		f.type = WIRE_SYMLINK;
	f.name.n = (size_t)snprintf(name, sizeof name, "%u", n->index);
	f.attrs = attrs_of(n, f.type, attrs);
	if (f.type == WIRE_SYMLINK)
		f.target.n = 2;
	if (n->type == WIRE_FILE) {
		w->files++;
		w->bytes += n->unsized ? 0 : n->size_bytes;
	}
	n->offered = true;
	if (n->unsized)
		world_soon(w, EV_GROWS, 0)->node = n;
	n->snd_id = again != 0 ? snd_offer_again(engine_snd(w->side[0].engine), again, &f, n) :
	    snd_offer(engine_snd(w->side[0].engine), &f, n);
}

void world_offer_again(struct world *w, struct node *n, uint64_t id)
{
	if (!w->side[0].over && !n->told)
		offer(w, n, id);
}

#define EARLY_BYTES 1000 /* of an early entry, at most: names and attributes are short */

static void on_listed(struct world *w)
{
	struct snd *s = engine_snd(w->side[0].engine);
	bool running = w->side[0].running;
	unsigned n = w->plan.list_batch;

	w->listing = false;
	w->side[0].busy--;
	if (w->side[0].over)
		return;
	for (; n > 0 && w->at_step < w->n_steps && (running ? snd_room(s) > 0 : snd_early_room(s, EARLY_BYTES)); n--) {
		struct step *st = &w->step[w->at_step++];

		if (st->leave)
			snd_leave(s);
		else
			offer(w, st->node, 0);
	}
	if (w->at_step == w->n_steps)
		assert_int_equal(snd_depth(s), 0);
	if (!running)
		return;
	w->listed = w->at_step == w->n_steps;
	snd_listed(s, w->files, w->bytes, w->listed);
}

static void list(struct world *w)
{
	struct snd *s = engine_snd(w->side[0].engine);

	/* snd_listed() says once that all has been. */
	if (w->listing || w->listed || snd_room(s) == 0)
		return;
	w->listing = true;
	w->side[0].busy++;
	world_soon(w, EV_LISTED, world_store_ns(w));
}

/* ---- The sessions' decisions ---- */

static void on_open(void *arg, const struct wire_open *o)
{
	struct side *sd = arg;
	struct event *ev;

	assert_int_equal(o->n_paths, 1);
	ev = world_soon(sd->w, EV_ACCEPT, world_store_ns(sd->w));
	ev->side = (unsigned)(sd - sd->w->side);
}

static void on_running(void *arg, const struct wire_opened *o)
{
	struct side *sd = arg;

	assert_int_equal(o->streams, sd->w->plan.lines);
	sd->running = true;
	assert_true((engine_snd(sd->engine) != NULL) == sd->sends);
	assert_true((engine_rcv(sd->engine) != NULL) != sd->sends);
	if (sd->sends)
		lines_start(sd->w);
}

static void on_note(void *arg, const struct wire_warning *n)
{
	struct side *sd = arg;

	assert_int_equal(n->kind, WIRE_WARNING_FAILED);
	sd->notes++;
}

static enum wire_busy busy(void *arg)
{
	struct side *sd = arg;

	return sd->busy == 0 ? WIRE_IDLE : sd->sends ? WIRE_READING : WIRE_WRITING;
}

static void on_ended(void *arg, const struct ptcp_err *why)
{
	struct side *sd = arg;

	assert_int_equal(sd->ended++, 0);
	sd->over = true;
	sd->failed = why != NULL;
	if (why != NULL) {
		assert_true(why->code < 0 && why->msg[0] != '\0');
		sd->why = *why;
	}
}

static const struct engine_ops ops = { .open = on_open, .running = on_running, .warning = on_note,
	.busy = busy, .ended = on_ended, .snd = &world_snd_ops, .rcv = &world_rcv_ops };

static void trace(void *arg, enum log_level level, const char *component, const char *msg)
{
	struct side *sd = arg;

	if (level == LOG_TRACE)
		fprintf(sd->w->record, "%s: %s\n", component, msg);
	else if (getenv("XFER_TRACE") != NULL)
		fprintf(stderr, "# %.6f %s %s %s\n", (double)sd->w->now_ns / 1e9, sd->sends ? "sender" : "receiver",
		    component, msg);
}

/* ---- The control channel ---- */

/* What the side has to say goes on its way, in pieces. */
static void flush(struct world *w, struct side *sd)
{
	struct buf *b = &engine_outbox(sd->engine)->b;
	struct event *ev;
	size_t n;
	uint64_t at;

	if (sd->deaf)
		return;
	while ((n = buf_len(b)) > 0) {
		if (w->plan.control_split > 0 && n > w->plan.control_split)
			n = 1 + rng_below(&w->rng, w->plan.control_split);
		at = w->now_ns + world_random(&w->rng) % (w->plan.control_latency_ns + 1);
		if (at < sd->pipe_free_at)
			at = sd->pipe_free_at;
		sd->pipe_free_at = at;
		ev = world_soon(w, EV_CONTROL, at - w->now_ns);
		ev->side = sd->sends ? 1 : 0;
		ev->bytes = world_alloc(NULL, n);
		memcpy(ev->bytes, buf_head(b), n);
		ev->n = n;
		engine_sent(sd->engine, n);
	}
}

/* As a party does after every event. */
static void pump(struct world *w, struct side *sd)
{
	uint32_t live;

	engine_tick(sd->engine, world_now(w));
	if (sd->running && !sd->over && sd->sends) {
		list(w);
		live = snd_stats(engine_snd(sd->engine)).live;
		w->most_live = live > w->most_live ? live : w->most_live;
		lines_feed(w);
		engine_tick(sd->engine, world_now(w));
	}
	if (w->plan.early && w->at_step == 0 && w->n_steps > 0 && sd->sends && !sd->running && !sd->over &&
	    !w->plan.receiver_starts)
		list(w);
	flush(w, sd);
}

static void accept_open(struct world *w, struct side *sd)
{
	struct wire_opened o = { .session = { 1, 2, 3 }, .streams = (uint16_t)w->plan.lines,
		.stripe = w->plan.stripe[sd->sends ? 0 : 1] };

	if (!sd->over)
		engine_accept(sd->engine, &o, world_now(w));
}

static void cut(struct world *w)
{
	struct ptcp_err why;
	unsigned i;

	w->cut = true;
	err_set(&why, PTCP_EPEER, "cut");
	for (i = 0; i < 2 && !w->plan.silent; i++)
		engine_closed(w->side[i].engine, &why);
}

static void happen(struct world *w, struct event *ev)
{
	switch (ev->kind) {
	case EV_CONTROL:
		tape_control(w, ev->side, ev->bytes, ev->n);
		if (!w->cut)
			engine_input(w->side[ev->side].engine, ev->bytes, ev->n, world_now(w));
		break;
	case EV_ACCEPT:
		accept_open(w, &w->side[ev->side]);
		break;
	case EV_LISTED:
		on_listed(w);
		break;
	case EV_CUT:
		cut(w);
		break;
	case EV_WRITTEN:
	case EV_PREPARED:
	case EV_COMMITTED:
	case EV_HASHED:
	case EV_VERIFIED:
		store_event(w, ev);
		break;
	case EV_MATCH_HASHED:
	case EV_MATCH_ASK:
	case EV_MATCH_FOUND:
	case EV_MATCH_PIECES:
	case EV_MATCH_SPLIT:
		match_event(w, ev);
		break;
	default:
		lines_event(w, ev);
	}
}

/* ---- A world from its beginning to its end ---- */

static void start_side(struct world *w, unsigned i)
{
	static const uint8_t path[] = { 0, 0, 1, 'p' };
	struct side *sd = &w->side[i];
	struct log log = { trace, sd, w->record != NULL ? LOG_TRACE : getenv("XFER_TRACE") != NULL ? LOG_DEBUG :
		LOG_ERROR };
	struct engine_opts o = { .software = "test", .timeout_ns = w->plan.timeout_ns,
		.max_entries = w->plan.max_entries, .max_streams = WORLD_LINES, .region_bytes = w->plan.striped ? 0 :
		w->plan.region_bytes, .ops = &ops, .arg = sd };
	struct wire_open open = { .streams = (uint16_t)w->plan.lines, .n_paths = 1,
		.stripe = w->plan.stripe[i], .paths = { path, sizeof path },
		.flags = (w->plan.verify ? WIRE_OPEN_VERIFY : 0) | (w->plan.dry_run ? WIRE_OPEN_DRY_RUN : 0) };
	static struct log logs[2];

	logs[i] = log;
	o.log = &logs[i];
	sd->w = w;
	sd->sends = i == 0;
	o.starter = sd->sends != w->plan.receiver_starts;
	open.role = sd->sends ? WIRE_ACCEPTOR_RECEIVES : WIRE_ACCEPTOR_SENDS;
	assert_int_equal(engine_new(&sd->engine, &o, o.starter ? &open : NULL, world_now(w), NULL), 0);
}

void world_init(struct world *w, const struct plan *p) { world_init_recorded(w, p, NULL); }

void world_init_recorded(struct world *w, const struct plan *p, FILE *record)
{
	unsigned i;

	/* Bitmaps of a file of unknown size have 16 MiB each, of which few pages are used: with a fixed threshold, the
	 * kernel gives zeros page by page, where the heap would clear all. */
	mallopt(M_MMAP_THRESHOLD, 1 << 20);
	*w = (struct world){ .plan = *p, .rng = { p->seed }, .now_ns = 5 * NS_PER_S, .record = record };
	for (i = 0; i < WORLD_LINES; i++) {
		w->line[i].bytes_per_s = 10000000;
		w->line[i].latency_ns = NS_PER_MS;
	}
	world_start(w);
}

void world_start(struct world *w)
{
	start_side(w, 0);
	start_side(w, 1);
	if (w->plan.cut)
		world_soon(w, EV_CUT, world_random(&w->rng) % w->plan.fault_ns);
}

static uint64_t next_ns(const struct world *w)
{
	uint64_t at = w->n_heap > 0 ? w->heap[0]->at : UINT64_MAX, t;
	unsigned i;

	for (i = 0; i < 2; i++) {
		t = engine_deadline(w->side[i].engine).ns;
		if (t < at)
			at = t;
	}
	return at;
}

bool world_run_for(struct world *w, uint64_t ns)
{
	uint64_t end = w->now_ns + ns, at, spins = 0;
	struct event *ev;

	pump(w, &w->side[0]);
	pump(w, &w->side[1]);
	while (!w->side[0].over || !w->side[1].over) {
		if ((at = next_ns(w)) > end)
			return false;
		check_that(w->n_events < EVENTS_MAX, "seed %" PRIu64 ": no end of events", w->plan.seed);
		/* A deadline in the past would make a loop spin. */
		spins = at <= w->now_ns && (w->n_heap == 0 || w->heap[0]->at > at) ? spins + 1 : 0;
		check_that(spins < 1000, "seed %" PRIu64 ": a deadline that does not go by", w->plan.seed);
		if (at > w->now_ns)
			w->now_ns = at;
		if (w->n_heap > 0 && w->heap[0]->at <= w->now_ns) {
			ev = pop(w);
			happen(w, ev);
			event_free(ev);
		}
		pump(w, &w->side[0]);
		pump(w, &w->side[1]);
	}
	return true;
}

void world_settle(struct world *w, unsigned side)
{
	struct side *sd = &w->side[side];
	struct buf *b = &engine_outbox(sd->engine)->b;
	struct event *ev;

	w->side[!side].over = sd->deaf = true;
	pump(w, sd);
	while (w->n_heap > 0) {
		check_that(w->n_events < EVENTS_MAX, "no end of events");
		ev = pop(w);
		w->now_ns = ev->at > w->now_ns ? ev->at : w->now_ns;
		happen(w, ev);
		event_free(ev);
		pump(w, sd);
		engine_sent(sd->engine, buf_len(b));
	}
	engine_sent(sd->engine, buf_len(b));
}

void world_run(struct world *w, uint64_t limit_ns)
{
	check_that(world_run_for(w, limit_ns), "seed %" PRIu64 ": it hangs", w->plan.seed);
}

static void node_agreed(const struct world *w, const struct node *n)
{
	bool sent_well = n->type == WIRE_DIR ? n->told == 0 || n->fate == SND_DONE :
	    n->fate == SND_DONE || n->fate == SND_SKIPPED;

	check_that(n->offered && n->told <= 1 && (n->type == WIRE_DIR || n->told == 1),
	    "seed %" PRIu64 ": entry %u was told of %u times", w->plan.seed, n->index, n->told);
	if (n->prepared)
		check_that(n->over && n->failed == !sent_well && (n->fate == SND_SKIPPED) == n->skipped,
		    "seed %" PRIu64 ": entry %u: the sender says %d, the receiver %s", w->plan.seed,
		    n->index, (int)n->fate, n->failed ? "failed" : "done");
	else
		check_that(!sent_well, "seed %" PRIu64 ": entry %u never came to the receiver",
		    w->plan.seed, n->index);
	if (sent_well && n->type == WIRE_FILE && !n->skipped && !w->plan.dry_run)
		check_that(n->n_written == n->n_blocks && n->committing && !n->spoilt,
		    "seed %" PRIu64 ": file %u is not whole", w->plan.seed, n->index);
}

void world_agreed(struct world *w)
{
	struct engine *s = w->side[0].engine, *r = w->side[1].engine;
	uint64_t files = 0, failed = 0, done_bytes = 0;
	uint32_t i;

	for (i = 0; i < 2; i++)
		check_that(!w->side[i].failed, "seed %" PRIu64 ": the %s failed: %s", w->plan.seed,
		    i == 0 ? "sender" : "receiver", w->side[i].why.msg);
	for (i = 0; i < w->n_nodes; i++) {
		struct node *n = w->node[i];

		node_agreed(w, n);
		failed += n->told == 1 && n->fate == SND_FAILED;
		files += n->type == WIRE_FILE && n->fate != SND_FAILED;
		done_bytes += n->fate == SND_DONE || (n->fate == SND_SKIPPED && !n->unsized) ? n->size_bytes : 0;
	}
	assert_int_equal(engine_files(s), files);
	assert_int_equal(engine_files(r), files);
	assert_int_equal(engine_failed(s), failed);
	assert_int_equal(engine_failed(r), failed);
	assert_int_equal(snd_stats(engine_snd(s)).live, 0);
	assert_true(rcv_idle(engine_rcv(r)));
	assert_int_equal(snd_stats(engine_snd(s)).done.file_bytes, rcv_stats(engine_rcv(r)).done.file_bytes);
	if (failed == 0 && !w->plan.dry_run) {
		assert_int_equal(snd_stats(engine_snd(s)).done.bytes, done_bytes);
		assert_int_equal(rcv_stats(engine_rcv(r)).done.bytes, rcv_stats(engine_rcv(r)).done.file_bytes);
		assert_int_equal(snd_stats(engine_snd(s)).done.resumed_bytes,
		    rcv_stats(engine_rcv(r)).done.resumed_bytes);
	}
}

void world_fini(struct world *w)
{
	uint32_t i;

	for (i = 0; i < 2; i++)
		engine_drop(w->side[i].engine);
	for (i = 0; i < w->n_nodes; i++) {
		struct node *n = w->node[i];

		/* Told at the latest now; a directory that was fine is dropped only when unfinished. */
		check_that(!n->offered || n->told == 1 || (n->type == WIRE_DIR && n->told == 0),
		    "seed %" PRIu64 ": entry %u told %u times", w->plan.seed, n->index, n->told);
		check_that(n->prepared == n->over, "seed %" PRIu64 ": entry %u was never let go of",
		    w->plan.seed, n->index);
		free(n->written);
		free(n->intact);
		free(n->splits);
		free(n->old);
		free(n->released);
		free(n->holes);
		store_lose_part(n);
		free(n);
	}
	for (i = 0; i < 2; i++)
		engine_free(w->side[i].engine);
	while (w->n_heap > 0)
		event_free(pop(w));
	free(w->heap);
	free(w->node);
	free(w->step);
}
