/* The streams of a world: what the sender's jobs become. */
#include "core/bitmap.h"
#include "core/err.h"
#include "wire/block.h"
#include "world_impl.h"

static void on_ended(void *arg, void *cookie, enum snd_fate fate, const struct ptcp_err *why)
{
	struct node *n = cookie;

	(void)arg;
	assert_int_equal(n->told++, 0);
	assert_true((why != NULL) == (fate == SND_FAILED));
	n->fate = fate;
}

static void on_check(void *arg, void *cookie, uint64_t id)
{
	struct side *sd = arg;
	struct event *ev = world_soon(sd->w, EV_CHECKED, world_store_ns(sd->w));

	ev->node = cookie;
	ev->id = id;
	sd->busy++;
}

static void on_compare(void *arg, void *cookie, uint64_t id)
{
	struct side *sd = arg;
	struct event *ev = world_soon(sd->w, EV_COMPARED, world_store_ns(sd->w));

	ev->node = cookie;
	ev->id = id;
	sd->busy++;
}

static void on_map(void *arg, void *cookie, uint64_t id)
{
	struct side *sd = arg;
	struct event *ev = world_soon(sd->w, EV_MAPPED, world_store_ns(sd->w));

	ev->node = cookie;
	ev->id = id;
	assert_non_null(ev->node->holes);
	sd->busy++;
}

static void on_stalled(void *arg, unsigned stream)
{
	struct side *sd = arg;

	if (sd->w->line[stream].reading == 0) /* else our disk is to blame */
		line_lost(sd->w, stream);
}

static bool is_released(const struct node *n, uint32_t block)
{
	return n->released != NULL && bitmap_has(n->released, block);
}

static void on_release(void *arg, void *cookie, uint32_t block)
{
	struct node *n = cookie;

	(void)arg;
	check_that(n->unsized && block < n->n_blocks && bitmap_has(n->written, block), "block %u of %u is released",
	    block, n->index);
	if (n->released == NULL)
		n->released = world_alloc(NULL, bitmap_bytes(n->n_blocks));
	check_that(bitmap_add(n->released, block), "block %u of %u is released twice", block, n->index);
	while (n->low < n->n_blocks && bitmap_has(n->released, n->low))
		n->low++;
}

static void on_again(void *arg, void *cookie, uint64_t id)
{
	struct side *sd = arg;
	struct event *ev = world_soon(sd->w, EV_AGAIN, world_store_ns(sd->w));

	ev->node = cookie;
	ev->id = id;
	sd->busy++;
}

const struct snd_ops world_snd_ops = { on_ended, on_check, on_compare, match_on_hash, match_on_pieces, on_map,
    on_stalled,
	on_release, on_again };

/* The input of a file goes on, as far as its memory permits. */
static void on_grows(struct world *w, struct node *n)
{
	struct snd *s = engine_snd(w->side[0].engine);
	uint32_t full = (uint32_t)(n->size_bytes / (256u << 10)), room = n->low + WORLD_WINDOW;
	struct ptcp_err why;
	bool all;

	if (w->side[0].over || n->told)
		return;
	n->n_read += rng_below(&w->rng, 6);
	n->n_read = n->n_read < full ? n->n_read : full;
	n->n_read = n->n_read < room ? n->n_read : room;
	err_set(&why, PTCP_EIO, "the input cannot be read");
	if (n->n_read < full || room < n->n_blocks) {
		all = false;
		snd_grown(s, n->snd_id, n->n_read);
	} else if (n->changed && n->index % 2 == 0) {
		all = snd_input_failed(s, n->snd_id, &why);
	} else {
		all = snd_sized(s, n->snd_id, n->size_bytes);
	}
	if (!all)
		world_soon(w, EV_GROWS, 1 + world_random(&w->rng) % w->plan.store_ns)->node = n;
}


static void line_comes(struct world *w, unsigned line, uint64_t after_ns)
{
	if (!w->line[line].gone_for_good && !w->plan.no_streams)
		world_soon(w, EV_UP, after_ns)->line = line;
}

void lines_start(struct world *w)
{
	unsigned i;

	for (i = 0; i < w->plan.lines; i++)
		line_comes(w, i, world_random(&w->rng) % (20 * NS_PER_MS));
	for (i = 0; i < w->plan.deaths; i++)
		world_soon(w, EV_DIES, world_random(&w->rng) % w->plan.fault_ns)->line =
		    rng_below(&w->rng, w->plan.lines);
	for (i = 0; i < w->plan.stalls; i++)
		world_soon(w, EV_STALLS, world_random(&w->rng) % w->plan.fault_ns)->line =
		    rng_below(&w->rng, w->plan.lines);
}

void line_lost(struct world *w, unsigned i)
{
	struct line *l = &w->line[i];

	if (!l->up)
		return;
	w->side[0].busy -= l->reading;
	l->up = l->stalled = false;
	l->jobs = l->reading = 0;
	l->free_at = 0;
	l->epoch++;
	snd_stream_lost(engine_snd(w->side[0].engine), i);
	line_comes(w, i, NS_PER_MS + world_random(&w->rng) % (200 * NS_PER_MS));
}

/* ---- Jobs ---- */

static bool unreadable(const struct node *n, uint32_t block)
{
	return n->read_fails_at != NO_BLOCK && block >= n->read_fails_at;
}

/* The job is read from the disk, goes out extent by extent, and is then reported. */
static void send_job(struct world *w, unsigned line, const struct snd_job *job)
{
	struct line *l = &w->line[line];
	uint64_t read_ns = world_unlucky(w, 4) ? world_store_ns(w) : 0, at = w->now_ns + read_ns;
	struct event *ev;
	unsigned i;

	if (at < l->free_at)
		at = l->free_at;
	for (i = 0; i < job->n; i++) {
		const struct snd_extent *x = &job->extent[i];
		struct node *n = x->cookie;

		check_that(!n->told, "entry %u is over, its block %u is sent", n->index, x->block);
		assert_int_equal(x->length, wire_grid_length(wire_grid_of(n->size_bytes), x->block));
		check_that(!is_released(n, x->block) && (!n->unsized || x->block < n->low + WORLD_WINDOW),
		    "block %u of %u is sent, it is not in memory", x->block, n->index);
		check_that(!world_is_hole(n, x->block), "block %u of %u, a hole, is sent", x->block, n->index);
		check_that(n->intact == NULL || !bitmap_has(n->intact, x->block),
		    "block %u of %u was here, it is sent again", x->block, n->index);
		check_that(x->omit == 0 || match_wants(n, x->block, x->omit),
		    "pieces of block %u of %u are missing", x->block, n->index);
		if (w->plan.movers > 0 && x->offset / w->plan.region_bytes < WORLD_REGIONS)
			n->movers[x->offset / w->plan.region_bytes] |= (uint16_t)(1u << line % w->plan.movers);
		if (unreadable(n, x->block))
			continue;
		at += (uint64_t)x->length * NS_PER_S / l->bytes_per_s;
		ev = world_soon(w, EV_ARRIVED, at + l->latency_ns - w->now_ns);
		ev->line = line;
		ev->epoch = l->epoch;
		ev->id = x->id;
		ev->block = x->block;
		ev->node = n;
	}
	w->handed += job->n;
	l->free_at = at;
	l->jobs++;
	l->reading++;
	w->side[0].busy++;
	ev = world_soon(w, EV_READ, read_ns);
	ev->line = line;
	ev->epoch = l->epoch;
	ev = world_soon(w, EV_SENT, at - w->now_ns + w->job_news_ns);
	ev->line = line;
	ev->epoch = l->epoch;
	ev->job = world_alloc(NULL, sizeof *job);
	*ev->job = *job;
}

void lines_feed(struct world *w)
{
	struct snd *s = engine_snd(w->side[0].engine);
	struct snd_job job;
	bool more = true;
	unsigned i;

	while (more) {
		more = false;
		for (i = 0; i < w->plan.lines; i++)
			if (w->line[i].up && w->line[i].jobs < w->plan.jobs &&
			    snd_take(s, i, world_now(w), &job)) {
				assert_true(job.n > 0);
				send_job(w, i, &job);
				more = true;
			}
	}
}

/* The job has left: its stream is free for another, and word of it comes a little later. */
static void on_sent(struct world *w, struct event *ev)
{
	struct event *news;
	unsigned i;

	if (w->line[ev->line].epoch != ev->epoch || w->line[ev->line].stalled)
		return;
	w->line[ev->line].jobs--;
	for (i = 0; i < ev->job->n; i++) {
		news = world_soon(w, EV_NEWS, world_unlucky(w, w->plan.late_news) ?
		    world_random(&w->rng) % (100 * NS_PER_MS) : 0);
		news->line = ev->line;
		news->id = ev->job->extent[i].id;
		news->block = ev->job->extent[i].block;
		news->node = ev->job->extent[i].cookie;
	}
}

static void on_news(struct world *w, const struct event *ev)
{
	struct ptcp_err why;

	if (w->side[0].over)
		return;
	err_set(&why, PTCP_EIO, "cannot be read");
	snd_read(engine_snd(w->side[0].engine), ev->line, ev->id, ev->block,
	    world_term(w, ev->node, ev->node->version, ev->block), unreadable(ev->node, ev->block) ? &why : NULL,
	    world_now(w));
}

static void on_arrived(struct world *w, const struct event *ev)
{
	/* What was on its way when the stream died may have arrived before the sender knew. */
	if (w->cut || (w->line[ev->line].epoch != ev->epoch && rng_one_in(&w->rng, 2)) ||
	    (w->line[ev->line].epoch == ev->epoch && w->line[ev->line].stalled))
		return;
	if (!w->side[1].over)
		store_block(w, ev);
}

static void on_checked(struct world *w, const struct event *ev)
{
	struct ptcp_err why;

	w->side[0].busy--;
	err_set(&why, PTCP_ECHANGED, "it has changed");
	if (!w->side[0].over)
		snd_checked(engine_snd(w->side[0].engine), ev->id, ev->node->changed ? &why : NULL);
}

static void on_compared(struct world *w, const struct event *ev)
{
	struct ptcp_err why;

	w->side[0].busy--;
	err_set(&why, PTCP_ECHANGED, "it has changed");
	if (!w->side[0].over)
		snd_compared(engine_snd(w->side[0].engine), ev->id, world_sum(w, ev->node, ev->node->version),
		    ev->node->changed ? &why : NULL);
}

static void on_mapped(struct world *w, const struct event *ev)
{
	struct node *n = ev->node;
	uint64_t *holes;
	struct ptcp_err why;

	w->side[0].busy--;
	if (w->side[0].over)
		return;
	if (unreadable(n, 0)) {
		err_set(&why, PTCP_EIO, "cannot be read");
		snd_mapped(engine_snd(w->side[0].engine), ev->id, NULL, &why);
		return;
	}
	holes = world_alloc(NULL, bitmap_bytes(n->n_blocks));
	memcpy(holes, n->holes, bitmap_bytes(n->n_blocks));
	snd_mapped(engine_snd(w->side[0].engine), ev->id, holes, NULL);
}

static void on_up(struct world *w, unsigned line)
{
	if (w->side[0].over || w->line[line].up)
		return;
	w->line[line].up = true;
	if (w->plan.movers > 0)
		snd_set_mover(engine_snd(w->side[0].engine), line, 1 + line % w->plan.movers);
	snd_stream_up(engine_snd(w->side[0].engine), line, world_now(w));
}

static void on_read(struct world *w, const struct event *ev)
{
	if (w->line[ev->line].epoch != ev->epoch)
		return;
	w->line[ev->line].reading--;
	w->side[0].busy--;
}

void lines_event(struct world *w, struct event *ev)
{
	switch (ev->kind) {
	case EV_CHECKED:
		on_checked(w, ev);
		break;
	case EV_COMPARED:
		on_compared(w, ev);
		break;
	case EV_MAPPED:
		on_mapped(w, ev);
		break;
	case EV_AGAIN:
		w->side[0].busy--;
		world_offer_again(w, ev->node, ev->id);
		break;
	case EV_GROWS:
		on_grows(w, ev->node);
		break;
	case EV_READ:
		on_read(w, ev);
		break;
	case EV_SENT:
		on_sent(w, ev);
		break;
	case EV_NEWS:
		on_news(w, ev);
		break;
	case EV_ARRIVED:
		on_arrived(w, ev);
		break;
	case EV_UP:
		on_up(w, ev->line);
		break;
	case EV_DIES:
		if (!w->side[0].over)
			line_lost(w, ev->line);
		break;
	case EV_STALLS:
		w->line[ev->line].stalled = w->line[ev->line].up;
		break;
	default:
		fail_msg("no such event");
	}
}
