#include "player.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/bitmap.h"
#include "core/byteorder.h"
#include "core/err.h"
#include "engine/engine.h"
#include "player_lines.h"
#include "wire/block.h"

#define CPU_S 300u
#define DEPTH_MAX 20u

struct player {
	struct play *out;
	struct player_lines lines;
	size_t next;
	unsigned depth;
	uint64_t n_busy, n_paced;     /* inquiries */
	enum wire_busy busy;
	bool paced;
	struct engine *engine;
	struct engine_ops ops;
	struct rcv_ops rcv;
};

__attribute__((format(printf, 3, 4)))
static void end_as(struct player *p, enum played outcome, const char *fmt, ...)
{
	va_list ap;

	if (p->out->outcome != PLAYED_SAME)
		return;
	p->out->outcome = outcome;
	va_start(ap, fmt);
	vsnprintf(p->out->text, sizeof p->out->text, fmt, ap);
	va_end(ap);
}

static const struct player_line *peek(const struct player *p)
{
	return p->out->outcome == PLAYED_SAME && p->next < p->lines.n ? &p->lines.at[p->next] : NULL;
}

static const struct player_line *advance(struct player *p)
{
	const struct player_line *l = peek(p);

	p->next++;
	p->out->line = l->number;
	return l;
}

/* ---- Decisions ---- */

static bool same_numbers(const struct player_line *l, const uint64_t u[TAPE_NUMBERS])
{
	return memcmp(l->u, u, sizeof l->u) == 0;
}

static void decided(struct player *p, const char *name, const uint64_t u[TAPE_NUMBERS], const struct ptcp_err *why)
{
	const struct player_line *l = peek(p);

	p->out->decisions++;
	if (p->out->outcome != PLAYED_SAME || (l == NULL && p->next >= p->lines.n))
		return; /* the record ends within a call */
	if (l->kind != LINE_OP || strcmp(l->name, name) != 0)
		end_as(p, PLAYED_OTHERWISE, "line %lu has %s, and the engine decides %s", l->number, l->name, name);
	else if (!same_numbers(l, u))
		end_as(p, PLAYED_OTHERWISE, "line %lu: %s of %" PRIu64 ",%" PRIu64 ",%" PRIu64 ", not of the numbers "
		    "there", l->number, name, u[0], u[1], u[2]);
	else if (why != NULL && (!l->has_why || l->why.code != why->code))
		end_as(p, PLAYED_OTHERWISE, "line %lu: %s for another reason: %s", l->number, name, why->msg);
	else
		advance(p);
}

static void perform_nested(struct player *p);

static const struct player_line *answer(struct player *p, const char *name)
{
	const struct player_line *l = peek(p);

	if (l == NULL || l->kind != LINE_RET || strcmp(l->name, name) != 0) {
		if (l != NULL)
			end_as(p, PLAYED_OTHERWISE, "line %lu is not the answer of %s", l->number, name);
		return NULL;
	}
	return advance(p);
}

/* ---- Operations: those of the record, which src/engine/tape_ops.c writes ---- */

#define OP(table, name, params, why, ...) \
	static void on_##table##_##name params \
	{ \
		decided(arg, #name, (uint64_t[TAPE_NUMBERS]){ __VA_ARGS__ }, (why)); \
		perform_nested(arg); \
	}

OP(engine, open, (void *arg, const struct wire_open *o), NULL, o->role)
OP(engine, waiting, (void *arg, uint32_t ahead), NULL, ahead)
OP(engine, running, (void *arg, const struct wire_opened *o), NULL, o->streams)
OP(engine, warning, (void *arg, const struct wire_warning *n), NULL, n->kind, n->why.code)
OP(engine, leftovers, (void *arg, const struct wire_leftovers *f), NULL, f->files)
OP(engine, deleted, (void *arg, const struct wire_deleted *f), NULL, f->path.n)
OP(engine, load, (void *arg, const struct wire_load *f), NULL, f->busy_permille)
OP(engine, endpoint, (void *arg, const struct wire_endpoint *f), NULL, f->id)
OP(engine, set_streams, (void *arg, const struct wire_set_streams *u), NULL, u->streams)
OP(engine, tcp_report, (void *arg, const struct wire_tcp_report *f), NULL, f->m)
OP(engine, rate, (void *arg, const struct wire_rate *f), NULL, f->all_bps)

static void on_engine_ended(void *arg, const struct ptcp_err *why)
{
	struct player *p = arg;

	p->out->over = true;
	p->out->code = why != NULL ? why->code : 0;
	decided(p, "ended", (uint64_t[TAPE_NUMBERS]){ 0 }, why);
	perform_nested(p);
}

/* With a reason of the same length. */
static int refused(const struct player_line *l, struct ptcp_err *e)
{
	if (l == NULL || !l->has_why)
		return err_set(e, PTCP_EIO, "the record ends here");
	*e = l->why;
	return e->code;
}

static int result(struct player *p, const char *name, struct ptcp_err *e)
{
	const struct player_line *l = answer(p, name);

	return l != NULL && l->u[0] != 0 ? refused(l, e) : 0;
}

static int on_engine_control_ack(void *arg, uint64_t bytes, struct ptcp_err *e)
{
	decided(arg, "control_ack", (uint64_t[TAPE_NUMBERS]){ bytes }, NULL);
	return result(arg, "control_ack", e);
}

static int on_engine_select(void *arg, const struct wire_select *f, struct ptcp_err *e)
{
	decided(arg, "select", (uint64_t[TAPE_NUMBERS]){ f->n_paths }, NULL);
	return result(arg, "select", e);
}

static bool on_engine_finish(void *arg)
{
	const struct player_line *l;

	decided(arg, "finish", (uint64_t[TAPE_NUMBERS]){ 0 }, NULL);
	perform_nested(arg);
	l = answer(arg, "finish");
	return l == NULL || l->u[0] != 0;
}

/* The number of the inquiry tells whether the line is that of this one. */
static uint64_t inquired(struct player *p, const char *name, uint64_t *n, uint64_t now)
{
	const struct player_line *l = peek(p);

	if (l != NULL && l->kind == LINE_SET && strcmp(l->name, name) == 0 && l->u[0] == *n)
		now = advance(p)->u[1];
	++*n;
	return now;
}

static enum wire_busy on_engine_busy(void *arg)
{
	struct player *p = arg;
	uint64_t busy = inquired(p, "busy", &p->n_busy, p->busy);

	return p->busy = busy <= WIRE_VERIFYING ? (enum wire_busy)busy : WIRE_IDLE;
}

static bool on_engine_paced(void *arg)
{
	struct player *p = arg;

	return p->paced = inquired(p, "paced", &p->n_paced, p->paced) != 0;
}

OP(snd, ended, (void *arg, void *cookie, enum snd_fate fate, const struct ptcp_err *why),
    ((void)cookie, fate == SND_FAILED ? why : NULL), fate)
OP(snd, check, (void *arg, void *cookie, uint64_t id), ((void)cookie, NULL), id)
OP(snd, compare, (void *arg, void *cookie, uint64_t id), ((void)cookie, NULL), id)
OP(snd, hash, (void *arg, void *cookie, uint64_t id, uint32_t first, uint32_t count), ((void)cookie, NULL),
    id, first, count)
OP(snd, pieces, (void *arg, void *cookie, uint64_t id, uint32_t block), ((void)cookie, NULL), id, block)
OP(snd, map, (void *arg, void *cookie, uint64_t id), ((void)cookie, NULL), id)
OP(snd, stalled, (void *arg, unsigned stream), NULL, stream)
OP(snd, release, (void *arg, void *cookie, uint32_t block), ((void)cookie, NULL), block)
OP(snd, again, (void *arg, void *cookie, uint64_t id), ((void)cookie, NULL), id)

OP(rcv, differs, (void *arg, uint64_t id, void *cookie), ((void)cookie, NULL), id)
OP(rcv, accepted, (void *arg, uint64_t id, void *cookie, uint64_t size_bytes, bool parts), ((void)cookie, NULL),
    id, size_bytes, parts)
OP(rcv, hole, (void *arg, uint64_t id, void *cookie, uint32_t first, uint32_t count), ((void)cookie, NULL),
    id, first, count)
OP(rcv, hashes, (void *arg, uint64_t id, void *cookie, uint32_t first, struct span hashes), ((void)cookie, NULL),
    id, first, hashes.n)
OP(rcv, pieces, (void *arg, uint64_t id, void *cookie, uint32_t block, struct span hashes), ((void)cookie, NULL),
    id, block, hashes.n)
OP(rcv, commit, (void *arg, uint64_t id, void *cookie, const struct wire_entry *end),
    ((void)cookie, (void)end, NULL), id)
OP(rcv, ended, (void *arg, uint64_t id, void *cookie, bool skipped, const struct ptcp_err *why), ((void)cookie, why),
    id, skipped)
OP(rcv, totals, (void *arg, uint64_t files, uint64_t bytes, bool final), NULL, files, bytes, final)
OP(rcv, same, (void *arg, uint64_t id, void *cookie), ((void)cookie, NULL), id)
OP(rcv, sized, (void *arg, uint64_t id, void *cookie, uint64_t size_bytes), ((void)cookie, NULL), id, size_bytes)
OP(rcv, beginning, (void *arg, uint64_t id, void *cookie, uint64_t bytes), ((void)cookie, NULL), id, bytes)
OP(rcv, incomplete, (void *arg, void *cookie, bool failed), ((void)cookie, NULL), failed)

/* A bitmap of n blocks; what the line lacks is empty. */
static uint64_t *bitmap_of(const struct player_line *l, uint32_t n)
{
	uint64_t *bitmap = bitmap_new(n), i;

	for (i = 0; bitmap != NULL && i < bitmap_bytes(n) / 8 && i < buf_len(&l->data) / 8; i++)
		bitmap[i] = get_u64(buf_head(&l->data) + 8 * i);
	return bitmap;
}

static enum rcv_prep on_rcv_prepare(void *arg, uint64_t id, const struct wire_entry *f, void *parent, void **cookie,
    uint64_t **claimed, struct ptcp_err *e)
{
	const struct player_line *l;

	(void)parent;
	decided(arg, "prepare", (uint64_t[TAPE_NUMBERS]){ id, f->type, f->size_bytes }, NULL);
	perform_nested(arg);
	l = answer(arg, "prepare");
	*cookie = arg;
	if (l == NULL || l->u[0] > RCV_REFUSE || l->u[0] == RCV_REFUSE) {
		refused(l, e);
		return RCV_REFUSE;
	}
	if (l->u[0] == RCV_PARTS)
		*claimed = bitmap_of(l, wire_grid_blocks(wire_grid_of(f->size_bytes)));
	return l->u[0] == RCV_PARTS && *claimed == NULL ? RCV_ACCEPT : (enum rcv_prep)l->u[0];
}

#define SND(name) .name = on_snd_##name
static const struct snd_ops snd_ops = { SND(ended), SND(check), SND(compare), SND(hash), SND(pieces), SND(map),
    SND(stalled),
	SND(release), SND(again) };

#define RCV(name) .name = on_rcv_##name
static const struct rcv_ops rcv_ops = { RCV(prepare), RCV(differs), RCV(accepted), RCV(hole), RCV(hashes),
    RCV(pieces), RCV(commit),
	RCV(ended), RCV(totals), RCV(same), RCV(sized), RCV(beginning), RCV(incomplete) };

#define ENGINE(name) .name = on_engine_##name
static const struct engine_ops ops = { ENGINE(open), ENGINE(waiting), ENGINE(running), ENGINE(warning),
	ENGINE(control_ack), ENGINE(busy), ENGINE(paced), ENGINE(ended), ENGINE(finish), ENGINE(leftovers),
	ENGINE(deleted), ENGINE(load), ENGINE(endpoint), ENGINE(set_streams), ENGINE(tcp_report), ENGINE(rate),
	ENGINE(select), .snd = &snd_ops, .rcv = &rcv_ops };

/* ---- Calls ---- */

#define STREAMS 128u
#define MOST_BLOCKS (UINT32_C(1) << 27) /* of the largest file */

/* The bytes of the first input that has not been given. */
static void do_input(struct player *p, const struct player_line *l)
{
	struct buf *in = &p->lines.in;

	if (l->u[0] > buf_len(in)) {
		end_as(p, PLAYED_NOTHING, "line %lu: more input than the record has", l->number);
		return;
	}
	engine_input(p->engine, buf_head(in), (size_t)l->u[0], l->at);
	buf_consume(in, (size_t)l->u[0]);
}

/* Frames that others than the engine's own decisions have put into the outbox are zeros here. */
static void do_sent(struct player *p, const struct player_line *l)
{
	struct outbox *o = engine_outbox(p->engine);
	uint64_t all = l->u[0] + l->u[1], has = buf_len(&o->b);
	uint8_t *room;

	if (all > 2 * OUTBOX_MAX_BYTES || l->u[0] > all)
		end_as(p, PLAYED_NOTHING, "line %lu: more bytes than an outbox has", l->number);
	else if (has > all)
		end_as(p, PLAYED_OTHERWISE, "line %lu: the engine has %" PRIu64 " bytes for the peer, not %" PRIu64,
		    l->number, has, all);
	else if (has == all || (room = outbox_room(o, (size_t)(all - has))) != NULL) {
		if (has < all) {
			memset(room, 0, (size_t)(all - has));
			outbox_added(o, (size_t)(all - has));
		}
		engine_sent(p->engine, (size_t)l->u[0]);
	}
}

static struct span payload_of(const struct player_line *l)
{
	size_t n = buf_len(&l->data);

	return n >= WIRE_HEADER_BYTES ? (struct span){ buf_head(&l->data) + WIRE_HEADER_BYTES, n - WIRE_HEADER_BYTES } :
	    (struct span){ NULL, 0 };
}

static bool entry_of(struct player *p, const struct player_line *l, struct wire_entry *f)
{
	struct ptcp_err e;

	if (wire_entry_decode(f, payload_of(l), &e) == 0)
		return true;
	end_as(p, PLAYED_NOTHING, "line %lu: no entry: %s", l->number, e.msg);
	return false;
}

static void do_warn(struct player *p, const struct player_line *l, const struct ptcp_err *why)
{
	char path[WIRE_PATH_MAX + 1] = "";

	memset(path, 'x', l->u[1] < WIRE_PATH_MAX ? (size_t)l->u[1] : WIRE_PATH_MAX);
	if (why != NULL)
		engine_warn(p->engine, (enum wire_warning_kind)l->u[0], path, why);
}

static void do_accept(struct player *p, const struct player_line *l)
{
	struct wire_opened o;
	struct ptcp_err e;

	if (wire_opened_decode(&o, payload_of(l), &e) < 0)
		end_as(p, PLAYED_NOTHING, "line %lu: no OPENED: %s", l->number, e.msg);
	else
		engine_accept(p->engine, &o, l->at);
}

static void do_take(struct player *p, struct snd *s, const struct player_line *l)
{
	struct snd_job job;
	uint64_t u[TAPE_NUMBERS] = { 0 };

	if (snd_take(s, (unsigned)l->u[0], l->at, &job)) {
		u[0] = job.n;
		u[1] = job.extent[0].id;
		u[2] = job.extent[0].block;
		u[3] = job.extent[job.n - 1].id;
		u[4] = job.extent[job.n - 1].block;
	}
	decided(p, "job", u, NULL);
}

/* The record has none, and no decision depends on them. */
static const struct block_sum no_hashes[WIRE_HASHES_MAX];

/* Of the sender. */
static void perform_snd(struct player *p, struct snd *s, enum tape_call call, const struct player_line *l)
{
	const struct ptcp_err *why = l->has_why ? &l->why : NULL;
	const uint64_t *u = l->u;
	struct wire_entry f;

	switch ((int)call) {
	case TAPE_offer: if (entry_of(p, l, &f)) snd_offer(s, &f, p); break;
	case TAPE_offer_again: if (entry_of(p, l, &f)) snd_offer_again(s, u[0], &f, p); break;
	case TAPE_may_link: snd_may_link(s, u[0], (size_t)u[1]); break;
	case TAPE_give_up: snd_give_up(s, u[0]); break;
	case TAPE_leave: snd_leave(s); break;
	case TAPE_lack: snd_lack(s); break;
	case TAPE_close: snd_close(s); break;
	case TAPE_hold: snd_hold(s); break;
	case TAPE_release: snd_release(s); break;
	case TAPE_listed: snd_listed(s, u[0], u[1], u[2] != 0); break;
	case TAPE_set_mover: snd_set_mover(s, (unsigned)u[0], u[1]); break;
	case TAPE_stream_up: snd_stream_up(s, (unsigned)u[0], l->at); break;
	case TAPE_stream_lost: snd_stream_lost(s, (unsigned)u[0]); break;
	case TAPE_take: do_take(p, s, l); break;
	case TAPE_set_paced: snd_set_paced(s, u[0] != 0); break;
	case TAPE_share: if (u[1] <= SND_RATES) snd_share(s, (unsigned)u[0], (unsigned)u[1]); break;
	case TAPE_set_rate: if (u[0] <= SND_RATES) snd_set_rate(s, (unsigned)u[0], u[1]); break;
	case TAPE_read: snd_read(s, (unsigned)u[0], u[1], (uint32_t)u[2], l->digest, why, l->at); break;
	case TAPE_checked: snd_checked(s, u[0], why); break;
	case TAPE_compared: snd_compared(s, u[0], l->digest, why); break;
	case TAPE_hashed:
		if (why != NULL || (u[1] > 0 && u[1] <= WIRE_HASHES_MAX))
			snd_hashed(s, u[0], no_hashes, (uint32_t)u[1], why);
		break;
	case TAPE_pieces:
		if (why != NULL || (u[1] > 0 && u[1] <= WIRE_PIECES_MAX))
			snd_pieces(s, u[0], no_hashes, (uint32_t)u[1], why);
		break;
	case TAPE_mapped: snd_mapped(s, u[0], buf_len(&l->data) > 0 ? bitmap_of(l, MOST_BLOCKS) : NULL, why); break;
	case TAPE_grown: if (u[1] <= MOST_BLOCKS) snd_grown(s, u[0], (uint32_t)u[1]); break;
	case TAPE_sized: if (u[1] <= WIRE_UNSIZED_MAX) snd_sized(s, u[0], u[1]); break;
	case TAPE_input_failed: if (why != NULL) snd_input_failed(s, u[0], why); break;
	}
}

/* Of the receiver. */
static void perform_rcv(struct rcv *r, enum tape_call call, const struct player_line *l)
{
	const struct ptcp_err *why = l->has_why ? &l->why : NULL;
	const uint64_t *u = l->u;

	switch ((int)call) {
	case TAPE_prepared:
		if (u[1] <= RCV_REFUSE && (u[1] == RCV_REFUSE) == (why != NULL))
			rcv_prepared(r, u[0], (enum rcv_prep)u[1],
			    u[1] == RCV_PARTS ? bitmap_of(l, MOST_BLOCKS) : NULL, why);
		break;
	case TAPE_rcv_compared: rcv_compared(r, u[0], l->digest, why); break;
	case TAPE_verified: rcv_verified(r, u[0], (uint32_t)u[1], (uint32_t)u[2], u[3] != 0, l->digest); break;
	case TAPE_match: rcv_match(r, u[0], (uint32_t)u[1], (uint32_t)u[2]); break;
	case TAPE_split: rcv_split(r, u[0], (uint32_t)u[1], (uint32_t)u[2]); break;
	case TAPE_patch: rcv_patch(r, u[0], (uint32_t)u[1], u[2]); break;
	case TAPE_limit: rcv_limit(r, u[0], (uint32_t)u[1]); break;
	case TAPE_broken: if (why != NULL) rcv_broken(r, u[0], why); break;
	case TAPE_block:
		if (u[2] != RCV_BLOCK_FAILED || why != NULL)
			rcv_block(r, u[0], (uint32_t)u[1], (enum rcv_block_result)u[2], l->digest, why);
		break;
	case TAPE_committed: rcv_committed(r, u[0], why); break;
	case TAPE_not_linked: rcv_not_linked(r, u[0]); break;
	}
}

/* Calls whose first number is a stream. */
static bool has_stream(enum tape_call call)
{
	return call == TAPE_set_mover || call == TAPE_stream_up || call == TAPE_stream_lost || call == TAPE_take ||
	    call == TAPE_share || call == TAPE_read;
}

static void perform_call(struct player *p, enum tape_call call, const struct player_line *l)
{
	struct snd *s = engine_snd(p->engine);
	struct rcv *r = engine_rcv(p->engine);
	const struct ptcp_err *why = l->has_why ? &l->why : NULL;

	switch ((int)call) {
	case TAPE_input: do_input(p, l); return;
	case TAPE_accept: do_accept(p, l); return;
	case TAPE_closed: if (why != NULL) engine_closed(p->engine, why); return;
	case TAPE_fail: if (why != NULL) engine_fail(p->engine, why); return;
	case TAPE_warn: do_warn(p, l, why); return;
	case TAPE_finish: engine_finish(p->engine); return;
	case TAPE_finished: engine_finished(p->engine); return;
	case TAPE_drop: engine_drop(p->engine); return;
	case TAPE_progress: engine_progress(p->engine, l->at); return;
	case TAPE_deadline: engine_deadline(p->engine); return;
	case TAPE_tick: engine_tick(p->engine, l->at); return;
	case TAPE_sent: do_sent(p, l); return;
	}
	if (has_stream(call) && l->u[0] >= STREAMS)
		end_as(p, PLAYED_NOTHING, "line %lu: no such stream", l->number);
	else if (call >= TAPE_offer && call <= TAPE_input_failed && s != NULL)
		perform_snd(p, s, call, l);
	else if (call >= TAPE_prepared && r != NULL)
		perform_rcv(r, call, l);
	else
		end_as(p, PLAYED_OTHERWISE, "line %lu: the engine is no %s by now", l->number,
		    call >= TAPE_prepared ? "receiver" : "sender");
}

static void perform(struct player *p)
{
	const struct player_line *l = advance(p);
	unsigned call = 0;

	while (l->kind == LINE_CALL && call < TAPE_N_CALLS && strcmp(l->name, tape_call_names[call]) != 0)
		call++;
	if (l->kind != LINE_CALL || call == TAPE_N_CALLS) {
		end_as(p, PLAYED_OTHERWISE, "line %lu has %s, which the engine does not decide", l->number, l->name);
		return;
	}
	p->out->calls++;
	perform_call(p, (enum tape_call)call, l);
}

/* What the session did within the operation. */
static void perform_nested(struct player *p)
{
	const struct player_line *l;

	p->depth++;
	while (p->depth < DEPTH_MAX && (l = peek(p)) != NULL && l->kind == LINE_CALL && l->depth == p->depth)
		perform(p);
	p->depth--;
}

/* ---- All ---- */

static void use_operations(struct player *p, uint64_t optional)
{
	p->ops = ops;
	p->rcv = rcv_ops;
	p->ops.rcv = &p->rcv;
	if ((optional & TAPE_HAS_FINISH) == 0)
		p->ops.finish = NULL;
	if ((optional & TAPE_HAS_PACED) == 0)
		p->ops.paced = NULL;
	if ((optional & TAPE_HAS_HOLE) == 0)
		p->rcv.hole = NULL;
	if ((optional & TAPE_HAS_BEGINNING) == 0)
		p->rcv.beginning = NULL;
}

static bool begin(struct player *p, const struct log *log)
{
	const struct player_line *l = p->lines.n > 0 ? &p->lines.at[0] : NULL;
	struct engine_opts o = { .software = l != NULL ? l->name : "", .ops = &p->ops, .arg = p, .log = log };
	struct wire_open open;
	struct ptcp_err e;

	if (l == NULL || l->kind != LINE_NEW) {
		end_as(p, PLAYED_NOTHING, "no record of such an engine (was the log written with --log-level trace?)");
		return false;
	}
	advance(p);
	o.starter = l->u[0] != 0;
	o.one_channel = l->u[1] != 0;
	o.timeout_ns = l->u[2];
	o.quiet_ns = l->u[3];
	o.linger_ns = l->u[4];
	o.max_entries = l->u[5] < WIRE_SLOTS ? (uint32_t)l->u[5] : WIRE_SLOTS;
	o.max_streams = l->u[6] < STREAMS ? (uint16_t)l->u[6] : STREAMS;
	o.region_bytes = l->u[7];
	use_operations(p, l->u[8]);
	if ((o.starter && wire_open_decode(&open, payload_of(l), &e) < 0) ||
	    engine_new(&p->engine, &o, o.starter ? &open : NULL, l->at, &e) < 0) {
		end_as(p, PLAYED_NOTHING, "line %lu: no engine: %s", l->number, e.msg);
		return false;
	}
	return true;
}

static void play(struct play *out, FILE *record, unsigned number, const struct log *log)
{
	struct player p = { .out = out };
	unsigned long bad = player_lines_read(&p.lines, record, number);

	if (begin(&p, log))
		while (peek(&p) != NULL)
			perform(&p);
	if (bad > 0 && out->outcome == PLAYED_SAME)
		snprintf(out->text, sizeof out->text, "the record ends at line %lu, which is damaged", bad);
	_exit(0);
}

void play_record(struct play *out, FILE *record, unsigned number, const struct log *log)
{
	struct play *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct rlimit cpu = { CPU_S, CPU_S }, core = { 0, 0 };
	int status = 0;
	pid_t pid;

	*out = (struct play){ .outcome = PLAYED_NOTHING, .text = "no memory" };
	if (shared == MAP_FAILED)
		return;
	*shared = (struct play){ .outcome = PLAYED_SAME };
	fflush(NULL);
	if ((pid = fork()) == 0) {
		setrlimit(RLIMIT_CPU, &cpu);
		setrlimit(RLIMIT_CORE, &core);
		play(shared, record, number, log);
	}
	if (pid > 0 && waitpid(pid, &status, 0) == pid) {
		*out = *shared;
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
			out->outcome = PLAYED_DIED;
			snprintf(out->text, sizeof out->text, "line %lu: the engine ended the process (%s %d)",
			    out->line, WIFSIGNALED(status) ? "signal" : "status",
			    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		}
	}
	munmap(shared, sizeof *shared);
}
