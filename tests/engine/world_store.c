/* What receives in a world: nodes instead of files, each operation now, later or in vain. */
#include "world_impl.h"

#include <stdio.h>

#include "core/bitmap.h"
#include "core/byteorder.h"
#include "core/err.h"
#include "wire/attrs.h"

static struct rcv *rcv_of(struct world *w) { return engine_rcv(w->side[1].engine); }

static struct event *store_soon(struct world *w, enum event_kind kind, struct node *n, uint64_t id)
{
	struct event *ev = world_soon(w, kind, world_store_ns(w));

	ev->node = n;
	ev->id = id;
	w->side[1].busy++;
	return ev;
}

/* ---- What is here of a file ---- */

void store_lose_part(struct node *n)
{
	free(n->content);
	free(n->journal);
	n->content = NULL;
	n->journal = NULL;
	n->part = 0;
}

/* A part without anything in it. */
static void new_part(struct node *n)
{
	store_lose_part(n);
	n->part = n->version;
	n->content = world_alloc(NULL, (size_t)n->n_blocks * sizeof *n->content + 8);
	n->journal = world_alloc(NULL, bitmap_bytes(n->n_blocks) + 8);
}

void store_name(struct node *n)
{
	uint32_t i;

	for (i = 0; i < n->n_blocks; i++)
		check_that(n->content[i] == (world_is_hole(n, i) ? 0 : n->version),
		    "block %u of file %u is of version %u", i, n->index, n->content[i]);
	n->here = n->part;
	store_lose_part(n);
}

/* ---- Verdicts ---- */

/* `again`: it has been compared. */
static enum rcv_prep verdict(struct world *w, struct node *n, bool again, uint64_t **claimed,
    struct ptcp_err *why)
{
	bool keep = n->type == WIRE_FILE && n->part == n->version && !w->plan.dry_run && !n->unsized;

	err_set(why, PTCP_EIO, "refused");
	if (n->refused)
		return RCV_REFUSE;
	if (n->as_link && world_unlucky(w, w->plan.links))
		return RCV_NO_LINK;
	if (n->have_it || (n->here == n->version && !w->plan.verify && !n->unsized))
		return RCV_UP_TO_DATE;
	if (n->here != 0 && w->plan.verify && !again && !n->unsized)
		return RCV_COMPARE;
	if (!keep && n->old != NULL && n->here == 0 && n->version == 1 && !w->plan.dry_run) {
		*claimed = world_alloc(NULL, bitmap_bytes(n->n_blocks) + 8);
		bitmap_set(*claimed, true, 0, n->n_blocks);
		return RCV_PARTS;
	}
	if (!keep)
		return RCV_ACCEPT;
	*claimed = world_alloc(NULL, bitmap_bytes(n->n_blocks) + 8);
	memcpy(*claimed, n->journal, bitmap_bytes(n->n_blocks));
	return RCV_PARTS;
}

/* What follows from a verdict here. */
static void judged(struct world *w, struct node *n, enum rcv_prep v)
{
	if (v == RCV_COMPARE)
		store_soon(w, EV_HASHED, n, n->id);
	else if (v == RCV_ACCEPT || v == RCV_PARTS)
		n->accepted = true;
	n->not_linked = v == RCV_NO_LINK;
}

static void check_attrs(const struct wire_entry *f, const struct node *n)
{
	struct wire_attrs a;

	assert_int_equal(wire_attrs_decode(&a, f, NULL), 0);
	assert_int_equal(a.unsized, n->unsized);
	if (n->unsized)
		return;
	assert_true(a.has_version == (n->type == WIRE_FILE) && a.sparse == (n->holes != NULL));
	assert_true(a.linked == (wire_may_be_linked(n->type) && n->index % 2 == 0));
	assert_true(!a.has_version || get_u32(a.version) == n->version);
	if (f->type == WIRE_HARDLINK)
		check_that(a.link_id == n->link_to->id && n->link_to->over && !n->link_to->failed,
		    "link %u before its file %u", n->index, n->link_to->index);
}

static enum rcv_prep on_prepare(void *arg, uint64_t id, const struct wire_entry *f, void *parent,
    void **cookie, uint64_t **claimed, struct ptcp_err *e)
{
	struct side *sd = arg;
	struct world *w = sd->w;
	enum rcv_prep v;
	char name[16];
	unsigned index;
	struct node *n;

	assert_true(f->name.n < sizeof name);
	snprintf(name, sizeof name, "%.*s", (int)f->name.n, (const char *)f->name.p);
	assert_int_equal(sscanf(name, "%u", &index), 1);
	assert_true(index < w->n_nodes);
	n = w->node[index];
	assert_true(f->type == n->type || (n->type == WIRE_HARDLINK && f->type == WIRE_SYMLINK));
	assert_true(f->size_bytes == (n->unsized ? 0 : n->size_bytes) && f->mode == (index & 07777) &&
	    f->mtime_s == index && (f->type == WIRE_SYMLINK) == (f->target.n == 2));
	check_attrs(f, n);
	assert_false(n->prepared);
	assert_ptr_equal(parent, n->parent);
	assert_true(n->parent == NULL || (n->parent->accepted && !n->parent->committing));
	if (n->parent != NULL)
		n->parent->open_children++;
	n->prepared = true;
	n->as_link = f->type == WIRE_HARDLINK;
	n->id = id;
	*cookie = n;
	if (world_unlucky(w, w->plan.later)) {
		store_soon(w, EV_PREPARED, n, id);
		return RCV_LATER;
	}
	v = verdict(w, n, false, claimed, e);
	judged(w, n, v);
	return v;
}

static void on_differs(void *arg, uint64_t id, void *cookie)
{
	struct side *sd = arg;

	store_soon(sd->w, EV_PREPARED, cookie, id)->block = 1; /* again */
}

static void on_same(void *arg, uint64_t id, void *cookie)
{
	struct side *sd = arg;

	store_soon(sd->w, EV_PREPARED, cookie, id)->block = 2; /* and it was this one */
}

/* What is claimed is read in runs, while blocks come. */
static void verify_claims(struct world *w, struct node *n)
{
	uint32_t i = 0, end;
	struct event *ev;

	while ((i = bitmap_next(n->journal, true, i, n->n_blocks)) < n->n_blocks) {
		end = bitmap_next(n->journal, false, i, n->n_blocks);
		if (end - i > 8)
			end = i + 1 + rng_below(&w->rng, end - i);
		ev = store_soon(w, EV_VERIFIED, n, n->id);
		ev->block = i;
		ev->n = end - i;
		i = end;
	}
}

static void on_accepted(void *arg, uint64_t id, void *cookie, uint64_t size_bytes, bool parts)
{
	struct side *sd = arg;
	struct node *n = cookie;
	uint32_t i;

	assert_true(n->type == WIRE_FILE && n->id == id && size_bytes == (n->unsized ? 0 : n->size_bytes));
	assert_false(sd->w->plan.dry_run);
	assert_null(n->written);
	n->accepted = true;
	n->written = world_alloc(NULL, bitmap_bytes(n->n_blocks) + 8);
	if (!parts) {
		new_part(n);
		return;
	}
	if (n->part != n->version) {
		new_part(n);
		match_begin(sd->w, n);
		return;
	}
	n->intact = world_alloc(NULL, bitmap_bytes(n->n_blocks) + 8);
	for (i = 0; i < n->n_blocks; i++)
		if (bitmap_has(n->journal, i) && n->content[i] == (world_is_hole(n, i) ? 0 : n->version))
			bitmap_add(n->intact, i);
	verify_claims(sd->w, n);
}

static void on_hole(void *arg, uint64_t id, void *cookie, uint32_t first, uint32_t count)
{
	struct side *sd = arg;
	struct node *n = cookie;
	uint32_t i;

	assert_true(n->id == id && n->accepted && !n->committing && !n->over);
	for (i = first; i < first + count; i++) {
		check_that(world_is_hole(n, i), "block %u of %u is no hole", i, n->index);
		check_that(bitmap_add(n->written, i), "block %u of %u is a hole twice", i, n->index);
		bitmap_add(n->journal, i);
		n->content[i] = 0;
	}
	n->n_written += count;
	sd->w->holes += count;
}

static void on_commit(void *arg, uint64_t id, void *cookie, const struct wire_entry *end)
{
	struct side *sd = arg;
	struct node *n = cookie;

	check_that(!n->committing && !n->over && n->accepted && n->id == id && !sd->w->plan.dry_run,
	    "entry %u commits", n->index);
	check_that(n->n_written == n->n_blocks, "file %u commits with %u of %u blocks", n->index,
	    n->n_written, n->n_blocks);
	assert_true((end != NULL) == (n->type == WIRE_DIR));
	if (end != NULL)
		assert_true(end->mode == (n->index & 07777) && end->mtime_s == n->index);
	check_that(n->open_children == 0, "directory %u ends before what is in it", n->index);
	n->committing = true;
	store_soon(sd->w, EV_COMMITTED, n, id);
}

static void on_ended(void *arg, uint64_t id, void *cookie, bool skipped, const struct ptcp_err *why)
{
	struct side *sd = arg;
	struct node *n = cookie;

	assert_true(n->id == id && !n->over);
	if (n->not_linked && why == NULL) {
		assert_true(skipped && n->type == WIRE_HARDLINK);
		if (n->parent != NULL)
			n->parent->open_children--;
		n->prepared = n->accepted = n->committing = n->not_linked = false;
		return;
	}
	n->over = true;
	n->skipped = skipped;
	n->failed = why != NULL;
	if (n->parent != NULL)
		n->parent->open_children--;
	if (why == NULL && !skipped && !sd->w->plan.dry_run)
		assert_true(n->committing && !n->commit_fails);
	if (skipped || (why != NULL && why->code != PTCP_ECANCELED))
		store_lose_part(n);
}

static void on_totals(void *arg, uint64_t files, uint64_t bytes, bool final)
{
	struct side *sd = arg;

	assert_true(files <= sd->w->files && bytes <= sd->w->bytes);
	if (final)
		assert_true(files == sd->w->files && bytes == sd->w->bytes);
}

static void on_sized(void *arg, uint64_t id, void *cookie, uint64_t size_bytes)
{
	struct node *n = cookie;

	(void)arg;
	check_that(n->unsized && !n->sized && !n->over && n->id == id && n->size_bytes == size_bytes,
	    "the size of %u", n->index);
	n->sized = true;
}

/* As many as are written without a gap; blocks whose news are on their way may be missing. */
static void on_beginning(void *arg, uint64_t id, void *cookie, uint64_t bytes)
{
	struct node *n = cookie;
	uint32_t i = bitmap_next(n->written, false, 0, n->n_blocks);

	(void)arg;
	check_that(n->unsized && !n->over && n->id == id && bytes <= n->size_bytes &&
	    bytes <= (uint64_t)i * (256u << 10), "the beginning of %u", n->index);
}

/* A directory lacks what failed before it was prepared. */
static void on_incomplete(void *arg, void *cookie, bool failed)
{
	struct node *n = cookie;

	(void)arg;
	assert_true(failed && n->type == WIRE_DIR && n->accepted && !n->over && !n->committing);
}

const struct rcv_ops world_rcv_ops = { on_prepare, on_differs, on_accepted, on_hole, match_on_hashes,
    match_on_pieces_of,
	on_commit, on_ended, on_totals, on_same, on_sized, on_beginning, on_incomplete };

static void on_prepared(struct world *w, struct event *ev)
{
	uint64_t *claimed = NULL;
	struct ptcp_err why;
	enum rcv_prep v = ev->block == 2 ? RCV_UP_TO_DATE : verdict(w, ev->node, ev->block == 1, &claimed, &why);

	/* The sender may have failed it meanwhile: then it is over. */
	if (!ev->node->over)
		judged(w, ev->node, v);
	rcv_prepared(rcv_of(w), ev->id, v, claimed, v == RCV_REFUSE ? &why : NULL);
}

static void on_hashed(struct world *w, struct event *ev)
{
	struct ptcp_err why;
	bool bad = world_unlucky(w, w->plan.unreadable);

	err_set(&why, PTCP_EIO, "cannot be read");
	rcv_compared(rcv_of(w), ev->id, world_sum(w, ev->node, ev->node->here), bad ? &why : NULL);
}

/* A run of claimed blocks: good as a whole, or block by block. */
static void on_verified(struct world *w, struct event *ev)
{
	struct node *n = ev->node;
	uint32_t first = ev->block, end = first + (uint32_t)ev->n, i;
	struct digest sum = { 0, 0 };

	if (n->over)
		return;
	if (bitmap_next(n->intact, false, first, end) == end) {
		for (i = first; i < end; i++)
			digest_add(&sum, world_is_hole(n, i) ? (struct digest){ 0, 7 } :
			    world_term(w, n, n->version, i));
		bitmap_set(n->written, true, first, end);
		n->n_written += end - first;
		w->resumed += end - first;
		rcv_verified(rcv_of(w), ev->id, first, end - first, true, sum);
		return;
	}
	for (i = first; i < end && !n->over && !n->committing; i++) {
		if (bitmap_has(n->intact, i)) {
			bitmap_add(n->written, i);
			n->n_written++;
			w->resumed++;
		} else {
			bitmap_set(n->journal, false, i, i + 1);
			w->asked_again++;
		}
		rcv_verified(rcv_of(w), ev->id, i, 1, bitmap_has(n->intact, i), world_term(w, n, n->version, i));
	}
}

static void on_written(struct world *w, struct event *ev)
{
	struct ptcp_err why;

	err_set(&why, PTCP_EIO, "cannot be written");
	if (ev->what == RCV_BLOCK_WRITTEN && !ev->node->over)
		bitmap_add(ev->node->journal, ev->block);
	rcv_block(rcv_of(w), ev->id, ev->block, ev->what, ev->term,
	    ev->what == RCV_BLOCK_FAILED ? &why : NULL);
}

static void on_committed(struct world *w, struct event *ev)
{
	struct ptcp_err why;

	err_set(&why, PTCP_EIO, "cannot be renamed");
	if (ev->node->type == WIRE_FILE && !ev->node->commit_fails)
		store_name(ev->node);
	if (ev->node->as_link && !ev->node->commit_fails && !ev->node->over && world_unlucky(w, w->plan.links)) {
		ev->node->not_linked = true;
		rcv_not_linked(rcv_of(w), ev->id);
		return;
	}
	rcv_committed(rcv_of(w), ev->id, ev->node->commit_fails ? &why : NULL);
}

void store_event(struct world *w, struct event *ev)
{
	w->side[1].busy--;
	if (w->side[1].over)
		return;
	switch (ev->kind) {
	case EV_PREPARED:
		on_prepared(w, ev);
		break;
	case EV_WRITTEN:
		on_written(w, ev);
		break;
	case EV_HASHED:
		on_hashed(w, ev);
		break;
	case EV_VERIFIED:
		on_verified(w, ev);
		break;
	default:
		on_committed(w, ev);
	}
}

void store_block(struct world *w, const struct event *ev)
{
	struct node *n = ev->node;
	struct event *news;

	tape_block(w, n, ev->id, ev->block);
	engine_progress(w->side[1].engine, world_now(w));
	check_that(n->prepared && (n->accepted || n->over), "block %u of %u, which was not accepted",
	    ev->block, n->index);
	if (n->over || n->committing)
		return;
	check_that(!n->unsized || n->sized || (uint64_t)(ev->block + 1) * (256u << 10) <= n->size_bytes,
	    "the last block of %u, before its size", n->index);
	news = store_soon(w, EV_WRITTEN, n, ev->id);
	news->block = ev->block;
	news->term = world_term(w, n, n->version, ev->block);
	if (n->spoilt && ev->block == n->n_blocks / 2)
		news->term.lo++;
	if (ev->block == n->write_fails_at) {
		news->what = RCV_BLOCK_FAILED;
	} else if (world_unlucky(w, w->plan.bad_blocks)) {
		news->what = RCV_BLOCK_BAD;
	} else {
		news->what = RCV_BLOCK_WRITTEN;
		n->content[ev->block] = n->version;
		if (bitmap_add(n->written, ev->block))
			n->n_written++;
		else
			w->copies++;
	}
}
