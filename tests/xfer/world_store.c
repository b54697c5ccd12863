/* What receives in a world: nodes instead of files, each operation now, later or in vain. */
#include "world_impl.h"

#include <stdio.h>

#include "core/bitmap.h"
#include "core/err.h"

static struct rcv *rcv_of(struct world *w) { return session_rcv(w->side[1].session); }

static struct event *store_soon(struct world *w, enum event_kind kind, struct node *n, uint64_t id)
{
	struct event *ev = world_soon(w, kind, world_store_ns(w));

	ev->node = n;
	ev->id = id;
	w->side[1].busy++;
	return ev;
}

static enum rcv_prep verdict(const struct node *n, struct ptcp_err *why)
{
	err_set(why, PTCP_EIO, "refused");
	return n->refused ? RCV_REFUSE : n->have_it ? RCV_HAVE_IT : RCV_ACCEPT;
}

static enum rcv_prep on_prepare(void *arg, uint64_t id, const struct wire_entry *f, void *parent,
    void **cookie, uint64_t **claimed, struct ptcp_err *e)
{
	struct side *sd = arg;
	struct world *w = sd->w;
	char name[16];
	unsigned index;
	struct node *n;

	(void)claimed;
	assert_true(f->name.n < sizeof name);
	snprintf(name, sizeof name, "%.*s", (int)f->name.n, (const char *)f->name.p);
	assert_int_equal(sscanf(name, "%u", &index), 1);
	assert_true(index < w->n_nodes);
	n = w->node[index];
	assert_true(f->type == n->type && f->size_bytes == n->size_bytes && f->mode == (index & 07777) &&
	    f->mtime_s == index && (f->type == WIRE_SYMLINK) == (f->target.n == 2));
	assert_false(n->prepared);
	assert_ptr_equal(parent, n->parent);
	assert_true(n->parent == NULL || (n->parent->accepted && !n->parent->committing));
	if (n->parent != NULL)
		n->parent->open_children++;
	n->prepared = true;
	n->id = id;
	*cookie = n;
	if (world_unlucky(w, w->plan.later)) {
		store_soon(w, EV_PREPARED, n, id);
		return RCV_LATER;
	}
	n->accepted = !n->refused && !n->have_it;
	return verdict(n, e);
}

static void on_accepted(void *arg, uint64_t id, void *cookie, uint64_t size_bytes, bool parts)
{
	struct node *n = cookie;

	(void)arg;
	(void)parts;
	assert_true(n->type == WIRE_FILE && n->id == id && n->size_bytes == size_bytes);
	assert_null(n->written);
	n->accepted = true;
	n->written = world_alloc(NULL, bitmap_bytes(n->n_blocks) + 8);
}

static void on_commit(void *arg, uint64_t id, void *cookie, const struct wire_entry *end)
{
	struct side *sd = arg;
	struct node *n = cookie;

	check_that(!n->committing && !n->over && n->accepted && n->id == id, "entry %u commits", n->index);
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
	struct node *n = cookie;

	(void)arg;
	assert_true(n->id == id && !n->over);
	n->over = true;
	n->skipped = skipped;
	n->failed = why != NULL;
	if (n->parent != NULL)
		n->parent->open_children--;
	if (why == NULL && !skipped)
		assert_true(n->committing && !n->commit_fails);
}

static void on_totals(void *arg, uint64_t files, uint64_t bytes, bool final)
{
	struct side *sd = arg;

	assert_true(files <= sd->w->files && bytes <= sd->w->bytes);
	if (final)
		assert_true(files == sd->w->files && bytes == sd->w->bytes);
}

const struct rcv_ops world_rcv_ops = { on_prepare, NULL, on_accepted, NULL, on_commit, on_ended, on_totals };

static void on_prepared(struct world *w, struct event *ev)
{
	struct ptcp_err why;
	enum rcv_prep v = verdict(ev->node, &why);

	/* The sender may have failed it meanwhile: then it is over. */
	if (v == RCV_ACCEPT && !ev->node->over)
		ev->node->accepted = true;
	rcv_prepared(rcv_of(w), ev->id, v, NULL, v == RCV_REFUSE ? &why : NULL);
}

static void on_written(struct world *w, struct event *ev)
{
	struct ptcp_err why;

	err_set(&why, PTCP_EIO, "cannot be written");
	rcv_block(rcv_of(w), ev->id, ev->block, ev->what, ev->term,
	    ev->what == RCV_BLOCK_FAILED ? &why : NULL);
}

void store_event(struct world *w, struct event *ev)
{
	struct ptcp_err why;

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
	default:
		err_set(&why, PTCP_EIO, "cannot be renamed");
		rcv_committed(rcv_of(w), ev->id, ev->node->commit_fails ? &why : NULL);
	}
}

void store_block(struct world *w, const struct event *ev)
{
	struct node *n = ev->node;
	struct event *news;

	session_progress(w->side[1].session, world_now(w));
	check_that(n->prepared && (n->accepted || n->over), "block %u of %u, which was not accepted",
	    ev->block, n->index);
	if (n->over || n->committing)
		return;
	news = store_soon(w, EV_WRITTEN, n, ev->id);
	news->block = ev->block;
	news->term = world_term(w, n, ev->block);
	if (n->spoilt && ev->block == n->n_blocks / 2)
		news->term.lo++;
	if (ev->block == n->write_fails_at) {
		news->what = RCV_BLOCK_FAILED;
	} else if (world_unlucky(w, w->plan.bad_blocks)) {
		news->what = RCV_BLOCK_BAD;
	} else {
		news->what = RCV_BLOCK_WRITTEN;
		if (bitmap_add(n->written, ev->block))
			n->n_written++;
		else
			w->copies++;
	}
}
