/* Part files written by a mover: opened on the engine's description, flushed before a report of their blocks, closed on
 * request. During a flush, the results for the next one gather. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/byteorder.h"
#include "core/err.h"
#include "core/units.h"
#include "wire/block.h"
#include "work/work_impl.h"

#define FLUSH_RESULTS 512      /* results at once */
#define FEW 8                  /* files that are synced one by one */

struct target_close {
	struct work *work;
	struct sink *sink;
	uint64_t id;
	struct io_call call;
};

struct target_result {
	struct target_result *next;
	uint32_t handle, block;
	uint64_t id, hash;
	enum rcv_block_result what;
	struct ptcp_err *why;
};

struct target_flush {
	struct work *work;
	struct target_result *first;
	struct sink *sink[FLUSH_RESULTS]; /* sinks of n files */
	uint64_t id[FLUSH_RESULTS];
	int result[FLUSH_RESULTS];
	struct ptcp_err *why[FLUSH_RESULTS]; /* reason of a failed flush; NULL: out of memory */
	unsigned n, failed;
	bool durable;
	struct io_call call;
};

static struct outbox *out_of(const struct work *w) { return mover_link_out(w->link); }

static void io_began(struct work *w) { w->n_io++; }

static void io_ended(struct work *w)
{
	w->n_io--;
	work_step_ended(w);
}

void work_targets_init(struct work_targets *t)
{
	open_files_init(&t->files);
	t->last = &t->first;
}

static void results_free(struct target_result *r)
{
	struct target_result *next;

	for (; r != NULL; r = next) {
		next = r->next;
		free(r->why);
		free(r);
	}
}

void work_targets_fini(struct work_targets *t)
{
	unsigned i;

	for (i = 0; i < WIRE_SLOTS; i++)
		open_files_clear(&t->files, t->files.slot[i].id);
	open_files_fini(&t->files);
	results_free(t->first);
}

/* ---- Opening ---- */

static bool is_open(struct work *w, uint64_t id)
{
	struct sink *s = open_files_get(&w->targets.files, id, NULL);

	sink_unref(s);
	return s != NULL;
}

bool work_target_missing(struct work *w, uint64_t id) { return !is_open(w, id); }

static void put_closed(struct work *w, uint64_t id)
{
	if (!w->over)
		OUTBOX_PUT(out_of(w), closed, CLOSED, (&(struct wire_closed){ id }));
}

/* A mover without the destination leaves. */
static void cannot_open(struct work *w, const struct ptcp_err *why)
{
	struct ptcp_err named = *why;

	err_while(&named, PTCP_ECONFIG, "destination (all movers need its file system)");
	work_end(w, &named);
}

static struct sink *sink_for(struct work *w, const struct wire_target *f, struct wire_grid grid, struct ptcp_err *e)
{
	const struct sink_opts o = { .block_bytes = grid.block_bytes,
		.has_version = (f->flags & WIRE_TARGET_JOURNAL) != 0,
		.sparse = (f->flags & WIRE_TARGET_SPARSE) != 0, .direct_io = work_direct_io(w), .shared = true,
		.lease = &w->targets.lease };
	const struct meta meta = { .set_mode = false };
	struct dir *dir;
	struct sink *s;
	char *name;

	if (work_files_target(&w->files, f, &dir, &name, e) < 0)
		return NULL;
	s = sink_new(dir, name, f->size_bytes, &meta, &o);
	dir_unref(dir);
	free(name);
	if (s == NULL)
		err_nomem(e);
	return s;
}

int work_on_target(struct work *w, const struct wire_target *f, struct ptcp_err *e)
{
	const struct wire_grid grid = wire_grid_of(f->size_bytes);
	struct sink *s;

	if (!w->receives)
		return err_set(e, PTCP_EPROTO, "TARGET for a mover that sends");
	if (!is_open(w, f->id)) {
		if (w->targets.files.slot[wire_slot(f->id)].id != 0)
			return err_set(e, PTCP_EPROTO, "TARGET in the place of another file");
		if ((s = sink_for(w, f, grid, e)) == NULL)
			return e->code;
		sink_join(s, f->ino);
		w->targets.durable = (f->flags & WIRE_TARGET_DURABLE) != 0;
		open_files_set(&w->targets.files, f->id, s, grid);
		sink_unref(s);
	}
	work_streams_known(w, f->id);
	return 0;
}

/* ---- Closing ---- */

static void on_work_targets_closed(struct io_call *k)
{
	struct target_close *c = CONTAINER_OF(k, struct target_close, call);
	struct work *w = c->work;

	put_closed(w, c->id);
	sink_unref(c->sink);
	free(c);
	io_ended(w);
}

/* On an I/O thread. */
static void run_close(struct io_call *k)
{
	struct target_close *c = CONTAINER_OF(k, struct target_close, call);

	sink_part_with(c->sink);
}

int work_on_close(struct work *w, const struct wire_close *f, struct ptcp_err *e)
{
	struct sink *s = open_files_get(&w->targets.files, f->id, NULL);
	struct target_close *c;

	open_files_clear(&w->targets.files, f->id);
	if (s == NULL || sink_discard_unopened(s)) {
		sink_unref(s);
		put_closed(w, f->id);
	} else {
		if ((c = calloc(1, sizeof *c)) == NULL) {
			sink_unref(s);
			return err_nomem(e);
		}
		*c = (struct target_close){ .work = w, .sink = s, .id = f->id };
		io_began(w);
		io_call_start(&c->call, &w->process->context, run_close, on_work_targets_closed);
	}
	work_streams_known(w, f->id);
	return 0;
}

/* ---- Results ---- */

static void flush_next(struct work *w);

static const struct ptcp_err *why_failed(const struct target_flush *f, const struct target_result *r)
{
	static const struct ptcp_err nomem = { .code = PTCP_ENOMEM, .msg = "out of memory" };
	unsigned i;

	if (r->what == RCV_BLOCK_FAILED)
		return r->why != NULL ? r->why : &nomem;
	for (i = 0; r->what == RCV_BLOCK_WRITTEN && f->failed > 0 && i < f->n; i++)
		if (f->id[i] == r->id && f->result[i] < 0)
			return f->why[i] != NULL ? f->why[i] : &nomem;
	return NULL;
}

/* The peer repeats the blocks of a stopped stream, and no report of a file follows CLOSED. */
static bool counts(const struct target_flush *f, const struct target_result *r)
{
	return work_stream_is_there(f->work, r->handle) && is_open(f->work, r->id);
}

static void put_unwritten(struct work *w, const struct target_result *r, const struct ptcp_err *why)
{
	struct wire_unwritten u = { r->handle, r->id, r->block, outbox_why(why) };

	OUTBOX_PUT(out_of(w), unwritten, UNWRITTEN, &u);
}

/* Results of one stream, as many as a frame takes; returns the next one. */
static const struct target_result *put_wrote(const struct target_flush *f, const struct target_result *r)
{
	uint8_t items[WIRE_WRITTEN_MAX * WIRE_WRITTEN_BYTES], *p = items;
	struct wire_wrote w = { .handle = r->handle };

	for (; r != NULL && w.n < WIRE_WRITTEN_MAX && r->handle == w.handle && counts(f, r) && why_failed(f, r) == NULL;
	    r = r->next) {
		put_u64(p, r->id);
		put_u32(p + 8, r->block);
		put_u64(p + 12, r->hash);
		p[20] = r->what == RCV_BLOCK_WRITTEN ? WIRE_WRITTEN_GOOD : WIRE_WRITTEN_CORRUPT;
		p += WIRE_WRITTEN_BYTES;
		w.n++;
	}
	w.items = (struct span){ items, (size_t)(p - items) };
	OUTBOX_PUT(out_of(f->work), wrote, WROTE, &w);
	return r;
}

static void work_targets_report(const struct target_flush *f)
{
	const struct target_result *r = f->first;
	const struct ptcp_err *why;

	while (r != NULL && !f->work->over) {
		if (!counts(f, r)) {
			r = r->next;
		} else if ((why = why_failed(f, r)) != NULL) {
			put_unwritten(f->work, r, why);
			r = r->next;
		} else {
			r = put_wrote(f, r);
		}
	}
}

static void on_flushed(struct io_call *k)
{
	struct target_flush *f = CONTAINER_OF(k, struct target_flush, call);
	struct work *w = f->work;
	unsigned i;

	work_targets_report(f);
	for (i = 0; i < f->n; i++) {
		sink_unref(f->sink[i]);
		free(f->why[i]);
	}
	results_free(f->first);
	free(f);
	w->targets.flush = NULL;
	flush_next(w);
	io_ended(w);
}

/* On an I/O thread. */
static void run_flush(struct io_call *k)
{
	struct target_flush *f = CONTAINER_OF(k, struct target_flush, call);
	bool all = f->durable && f->n > FEW && sink_flush_all(f->sink, f->n);
	struct ptcp_err why;
	unsigned i;

	for (i = 0; i < f->n && !all; i++)
		if ((f->result[i] = sink_flush(f->sink[i], f->durable, &why)) < 0) {
			if ((f->why[i] = malloc(sizeof why)) != NULL)
				sink_err_at(f->why[i], &why, f->sink[i], false);
			f->failed++;
		}
	for (i = 0; i < f->n; i++) /* the only block has come: CLOSE will wait for no thread */
		if (sink_size(f->sink[i]) <= WIRE_CHUNK_BYTES)
			sink_rest(f->sink[i]);
}

static void add_file(struct target_flush *f, uint64_t id)
{
	unsigned i = f->n;

	while (i > 0 && f->id[i - 1] != id)
		i--;
	if (i > 0 || (f->sink[f->n] = open_files_get(&f->work->targets.files, id, NULL)) == NULL)
		return;
	f->id[f->n++] = id;
}

static void flush_next(struct work *w)
{
	struct work_targets *t = &w->targets;
	struct target_result *r, **end = &t->first;
	struct target_flush *f;
	struct ptcp_err why;
	unsigned n;

	if (t->flush != NULL || t->first == NULL || w->over)
		return;
	if ((f = calloc(1, sizeof *f)) == NULL) {
		err_nomem(&why);
		work_end(w, &why);
		return;
	}
	f->work = w;
	f->durable = t->durable;
	for (n = 0; n < FLUSH_RESULTS && (r = *end) != NULL; n++, end = &r->next)
		if (r->what == RCV_BLOCK_WRITTEN)
			add_file(f, r->id);
	f->first = t->first;
	if ((t->first = *end) == NULL)
		t->last = &t->first;
	*end = NULL;
	t->flush = f;
	io_began(w);
	io_call_start(&f->call, &w->process->context, run_flush, on_flushed);
}

/* A mover that cannot open the part of a block has not the destination. */
static void check_destination(struct work *w, const struct stream_results *results)
{
	struct sink *s;
	unsigned i;

	for (i = 0; i < results->n; i++) {
		if (results->of[i].what != RCV_BLOCK_FAILED || results->of[i].why == NULL)
			continue;
		if ((s = open_files_get(&w->targets.files, results->of[i].id, NULL)) != NULL && !sink_is_open(s))
			cannot_open(w, results->of[i].why);
		sink_unref(s);
	}
}

void work_targets_received(struct work *w, uint32_t handle, struct stream_results *results)
{
	struct target_result *r;
	struct ptcp_err nomem, late;
	unsigned i;

	if (atomic_load(&w->targets.lease.refused)) { /* the engine has the blocks sent again */
		err_set(&late, PTCP_ETIMEOUT, "the engine: no response in time for a write");
		work_end(w, &late);
	}
	check_destination(w, results);
	for (i = 0; i < results->n; i++) {
		if ((r = w->over ? NULL : calloc(1, sizeof *r)) == NULL) {
			free(results->of[i].why);
			if (!w->over) {
				err_nomem(&nomem);
				work_end(w, &nomem);
			}
			continue;
		}
		*r = (struct target_result){ .handle = handle, .block = results->of[i].block, .id = results->of[i].id,
			.hash = results->of[i].hash, .what = results->of[i].what, .why = results->of[i].why };
		*w->targets.last = r;
		w->targets.last = &r->next;
	}
	flush_next(w);
}
