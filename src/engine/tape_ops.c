/* The operations of an engine that is recorded: each writes a line, and calls the real one. */
#include "engine/tape.h"
#include "wire/block.h"

/* An operation without an answer; `...`: what its line has. */
#define OP(table, name, params, args, ...) \
	static void tape_##table##_##name params \
	{ \
		struct tape *t = arg; \
		tape_write(t, "op", #name, &(struct tape_args){ __VA_ARGS__ }); \
		t->depth++; \
		t->REAL_##table name args; \
		t->depth--; \
	}
#define REAL_engine real->
#define REAL_snd real->snd->
#define REAL_rcv real->rcv->

/* ---- Of the engine ---- */

OP(engine, open, (void *arg, const struct wire_open *o), (t->arg, o), .u = { o->role })
OP(engine, waiting, (void *arg, uint32_t ahead), (t->arg, ahead), .u = { ahead })
OP(engine, running, (void *arg, const struct wire_opened *o), (t->arg, o), .u = { o->streams })
OP(engine, warning, (void *arg, const struct wire_warning *n), (t->arg, n), .u = { n->kind, n->why.code })
OP(engine, ended, (void *arg, const struct ptcp_err *why), (t->arg, why), .why = why)
OP(engine, leftovers, (void *arg, const struct wire_leftovers *f), (t->arg, f), .u = { f->files })
OP(engine, deleted, (void *arg, const struct wire_deleted *f), (t->arg, f), .u = { f->path.n })
OP(engine, load, (void *arg, const struct wire_load *f), (t->arg, f), .u = { f->busy_permille })
OP(engine, endpoint, (void *arg, const struct wire_endpoint *f), (t->arg, f), .u = { f->id })
OP(engine, set_streams, (void *arg, const struct wire_set_streams *u), (t->arg, u), .u = { u->streams })
OP(engine, tcp_report, (void *arg, const struct wire_tcp_report *f), (t->arg, f), .u = { f->m })
OP(engine, rate, (void *arg, const struct wire_rate *f), (t->arg, f), .u = { f->all_bps })

static void answered(struct tape *t, const char *name, uint64_t value, const struct ptcp_err *why)
{
	tape_write(t, "ret", name, &(struct tape_args){ .u = { value }, .why = why });
}

static int tape_engine_control_ack(void *arg, uint64_t bytes, struct ptcp_err *e)
{
	struct tape *t = arg;
	int r;

	tape_write(t, "op", "control_ack", &(struct tape_args){ .u = { bytes } });
	r = t->real->control_ack(t->arg, bytes, e);
	answered(t, "control_ack", r < 0, r < 0 ? e : NULL);
	return r;
}

static int tape_engine_select(void *arg, const struct wire_select *f, struct ptcp_err *e)
{
	struct tape *t = arg;
	int r;

	tape_write(t, "op", "select", &(struct tape_args){ .u = { f->n_paths } });
	r = t->real->select(t->arg, f, e);
	answered(t, "select", r < 0, r < 0 ? e : NULL);
	return r;
}

static bool tape_engine_finish(void *arg)
{
	struct tape *t = arg;
	bool now;

	tape_write(t, "op", "finish", &(struct tape_args){ .u = { 0 } });
	t->depth++;
	now = t->real->finish(t->arg);
	t->depth--;
	answered(t, "finish", now, NULL);
	return now;
}

static enum wire_busy tape_engine_busy(void *arg)
{
	struct tape *t = arg;
	enum wire_busy busy = t->real->busy(t->arg);

	if (busy != t->busy)
		tape_write(t, "set", "busy", &(struct tape_args){ .u = { t->n_busy, busy } });
	t->n_busy++;
	return t->busy = busy;
}

static bool tape_engine_paced(void *arg)
{
	struct tape *t = arg;
	bool paced = t->real->paced(t->arg);

	if (paced != t->paced)
		tape_write(t, "set", "paced", &(struct tape_args){ .u = { t->n_paced, paced } });
	t->n_paced++;
	return t->paced = paced;
}

/* ---- Of the sender ---- */

OP(snd, ended, (void *arg, void *cookie, enum snd_fate fate, const struct ptcp_err *why),
    (t->arg, cookie, fate, why), .u = { fate }, .why = fate == SND_FAILED ? why : NULL)
OP(snd, check, (void *arg, void *cookie, uint64_t id), (t->arg, cookie, id), .u = { id })
OP(snd, compare, (void *arg, void *cookie, uint64_t id), (t->arg, cookie, id), .u = { id })
OP(snd, hash, (void *arg, void *cookie, uint64_t id, uint32_t first, uint32_t count),
    (t->arg, cookie, id, first, count), .u = { id, first, count })
OP(snd, pieces, (void *arg, void *cookie, uint64_t id, uint32_t block), (t->arg, cookie, id, block),
    .u = { id, block })
OP(snd, map, (void *arg, void *cookie, uint64_t id), (t->arg, cookie, id), .u = { id })
OP(snd, stalled, (void *arg, unsigned stream), (t->arg, stream), .u = { stream })
OP(snd, release, (void *arg, void *cookie, uint32_t block), (t->arg, cookie, block), .u = { block })
OP(snd, again, (void *arg, void *cookie, uint64_t id), (t->arg, cookie, id), .u = { id })

/* ---- Of the receiver ---- */

OP(rcv, differs, (void *arg, uint64_t id, void *cookie), (t->arg, id, cookie), .u = { id })
OP(rcv, accepted, (void *arg, uint64_t id, void *cookie, uint64_t size_bytes, bool parts),
    (t->arg, id, cookie, size_bytes, parts), .u = { id, size_bytes, parts })
OP(rcv, hole, (void *arg, uint64_t id, void *cookie, uint32_t first, uint32_t count),
    (t->arg, id, cookie, first, count), .u = { id, first, count })
OP(rcv, hashes, (void *arg, uint64_t id, void *cookie, uint32_t first, struct span hashes),
    (t->arg, id, cookie, first, hashes), .u = { id, first, hashes.n })
OP(rcv, pieces, (void *arg, uint64_t id, void *cookie, uint32_t block, struct span hashes),
    (t->arg, id, cookie, block, hashes), .u = { id, block, hashes.n })
OP(rcv, commit, (void *arg, uint64_t id, void *cookie, const struct wire_entry *end), (t->arg, id, cookie, end),
    .u = { id })
OP(rcv, ended, (void *arg, uint64_t id, void *cookie, bool skipped, const struct ptcp_err *why),
    (t->arg, id, cookie, skipped, why), .u = { id, skipped }, .why = why)
OP(rcv, totals, (void *arg, uint64_t files, uint64_t bytes, bool final), (t->arg, files, bytes, final),
    .u = { files, bytes, final })
OP(rcv, same, (void *arg, uint64_t id, void *cookie), (t->arg, id, cookie), .u = { id })
OP(rcv, sized, (void *arg, uint64_t id, void *cookie, uint64_t size_bytes), (t->arg, id, cookie, size_bytes),
    .u = { id, size_bytes })
OP(rcv, beginning, (void *arg, uint64_t id, void *cookie, uint64_t bytes), (t->arg, id, cookie, bytes),
    .u = { id, bytes })
OP(rcv, incomplete, (void *arg, void *cookie, bool failed), (t->arg, cookie, failed), .u = { failed })

static enum rcv_prep tape_rcv_prepare(void *arg, uint64_t id, const struct wire_entry *f, void *parent, void **cookie,
    uint64_t **claimed, struct ptcp_err *e)
{
	struct tape *t = arg;
	enum rcv_prep v;

	tape_write(t, "op", "prepare", &(struct tape_args){ .u = { id, f->type, f->size_bytes } });
	t->depth++;
	v = t->real->rcv->prepare(t->arg, id, f, parent, cookie, claimed, e);
	t->depth--;
	if (v == RCV_PARTS)
		tape_write_words(t, *claimed, wire_grid_blocks(wire_grid_of(f->size_bytes)));
	answered(t, "prepare", v, v == RCV_REFUSE ? e : NULL);
	return v;
}

/* ---- All ---- */

/* The record has no operation that the session has not. */
#define ENGINE_OPS(X) X(open) X(waiting) X(running) X(warning) X(control_ack) X(busy) X(paced) X(ended) X(finish) \
	X(leftovers) X(deleted) X(load) X(endpoint) X(set_streams) X(tcp_report) X(rate) X(select)
#define SND_OPS(X) X(ended) X(check) X(compare) X(hash) X(pieces) X(map) X(stalled) X(release) X(again)
#define RCV_OPS(X) X(prepare) X(differs) X(accepted) X(hole) X(hashes) X(pieces) X(commit) X(ended) X(totals) X(same) \
	X(sized) X(beginning) X(incomplete)

void tape_wrap_ops(struct tape *t)
{
#define X(name) t->ops.name = t->real->name != NULL ? tape_engine_##name : NULL;
	ENGINE_OPS(X)
#undef X
#define X(name) t->snd.name = t->real->snd->name != NULL ? tape_snd_##name : NULL;
	if (t->real->snd != NULL) {
		SND_OPS(X)
		t->ops.snd = &t->snd;
	}
#undef X
#define X(name) t->rcv.name = t->real->rcv->name != NULL ? tape_rcv_##name : NULL;
	if (t->real->rcv != NULL) {
		RCV_OPS(X)
		t->ops.rcv = &t->rcv;
	}
#undef X
}
