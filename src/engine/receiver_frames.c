/* What the sender says, what the store has done: PROTOCOL.md, section 8, "At the receiver". */
#include "core/err.h"
#include "engine/receiver_impl.h"
#include "wire/attrs.h"

/* Whether the sender may name this directory as a parent. */
static bool parent_ok(const struct rcv *r, uint64_t id)
{
	const struct item *f = rcv_find(r, id);

	if (f != NULL)
		return f->type == WIRE_DIR && f->state != COMMITTING;
	return !rcv_unheard(r, id); /* was one that has failed, as far as we can tell */
}

static int on_dir_end(struct rcv *r, const struct wire_entry *w, struct ptcp_err *e)
{
	struct item *f = rcv_find(r, w->id);

	if (f == NULL && !rcv_unheard(r, w->id))
		return 0;
	if (f == NULL || f->state != OPEN || f->children > 0)
		return rcv_violation("DIR_END", e);
	if (r->o.dry_run)
		rcv_done(r, f);
	else
		rcv_commit(r, f, w);
	return 0;
}

/* Whether the sender may name this as the file that a link is another name of. */
static bool link_ok(const struct rcv *r, const struct wire_entry *w)
{
	struct wire_attrs a;
	const struct item *f;

	if (w->type != WIRE_HARDLINK)
		return true;
	if (wire_attrs_decode(&a, w, NULL) < 0 || rcv_unheard(r, a.link_id))
		return false;
	f = rcv_find(r, a.link_id);
	return f == NULL || f->type == WIRE_FILE;
}

static int on_entry(struct rcv *r, struct span in, struct ptcp_err *e)
{
	struct wire_entry w;
	int err;

	if ((err = wire_entry_decode(&w, in, e)) < 0)
		return err;
	if (w.type == WIRE_DIR_END)
		return on_dir_end(r, &w, e);
	if (wire_slot(w.id) >= r->o.max_entries || r->slot[wire_slot(w.id)] != NULL ||
	    !rcv_unheard(r, w.id) || (w.parent != 0 && !parent_ok(r, w.parent)) || !link_ok(r, &w))
		return rcv_violation("ENTRY", e);
	r->highest = w.id >> 16;
	rcv_new_entry(r, &w, in);
	return 0;
}

/* ---- Blocks and the end of a file ---- */

void rcv_try_commit(struct rcv *r, struct item *f)
{
	struct ptcp_err why;

	if (f->n_done < f->n_blocks)
		return;
	f->state = COMPLETE;
	if (f->n_blocks != 1 && !f->has_digest)
		return;
	if (f->n_blocks != 1 && r->o.verify && !digest_equal(f->sum, f->wanted)) {
		err_set(&why, PTCP_EVERIFY, "the file's digest differs from the source's "
		    "(check memory and disk of both hosts, then send it again)");
		rcv_fail(r, f, &why);
		return;
	}
	rcv_commit(r, f, NULL);
}

void rcv_block(struct rcv *r, uint64_t id, uint32_t block, enum rcv_block_news news,
    struct digest term, const struct ptcp_err *why)
{
	struct wire_ack ack = { id, block };
	struct wire_blocks need = { .id = id, .first = block, .count = 1 };
	struct item *f = rcv_find(r, id);

	if (f == NULL || f->state != RECEIVING || block >= f->n_blocks || !rcv_track(r, f) ||
	    !rcv_wanted(f, block))
		return;
	switch (news) {
	case RCV_BLOCK_FAILED:
		rcv_fail(r, f, why);
		break;
	case RCV_BLOCK_BAD:
		OUTBOX_PUT(r->out, need, NEED, &need);
		break;
	case RCV_BLOCK_WRITTEN:
		rcv_add_blocks(r, f, block, 1);
		digest_add(&f->sum, term);
		OUTBOX_PUT(r->out, ack, ACK, &ack);
		rcv_try_commit(r, f);
		break;
	}
}

static int on_file_end(struct rcv *r, struct span in, struct ptcp_err *e)
{
	struct wire_file_end w;
	struct item *f;
	int err;

	if ((err = wire_file_end_decode(&w, in, e)) < 0)
		return err;
	if ((f = rcv_find(r, w.id)) == NULL && !rcv_unheard(r, w.id))
		return 0;
	if (f == NULL || f->has_digest ||
	    (f->state != COMPARING && (f->state != COMPLETE || f->n_blocks == 1)))
		return rcv_violation("FILE_END", e);
	f->wanted = w.digest;
	f->has_digest = true;
	if (f->state == COMPARING)
		rcv_try_compare(r, f);
	else
		rcv_try_commit(r, f);
	return 0;
}

static int on_fail(struct rcv *r, struct span in, struct ptcp_err *e)
{
	struct wire_fail w;
	struct ptcp_err why;
	struct item *f;
	uint8_t *p;
	int err;

	if ((err = wire_fail_decode(&w, in, e)) < 0)
		return err;
	if ((f = rcv_find(r, w.id)) == NULL && !rcv_unheard(r, w.id))
		return 0;
	if (f == NULL || f->type != WIRE_FILE || f->state == WAITING || f->state == PREPARING)
		return rcv_violation("FAIL", e);
	if (f->state == COMMITTING)
		return 0; /* too late: its DONE or FAIL is on the way */
	outbox_reason(&why, w.code, w.text);
	rcv_fail_waiters(r, f);
	if ((p = outbox_room(r->out, WIRE_FAIL_MAX_BYTES)) != NULL)
		outbox_added(r->out, wire_fail_encode(p, &w));
	rcv_end(r, f, false, &why);
	return 0;
}

void rcv_committed(struct rcv *r, uint64_t id, const struct ptcp_err *why)
{
	struct item *f = rcv_find(r, id);

	if (f == NULL || f->state != COMMITTING)
		return;
	if (why != NULL)
		rcv_fail(r, f, why);
	else
		rcv_done(r, f);
	rcv_run_waiting(r);
}

static int on_totals(struct rcv *r, struct span in, struct ptcp_err *e)
{
	struct wire_totals t;
	int err;

	if ((err = wire_totals_decode(&t, in, e)) < 0)
		return err;
	r->o.ops->totals(r->o.arg, t.files, t.bytes, t.final);
	return 0;
}

static int take_frame(struct rcv *r, unsigned type, struct span in, struct ptcp_err *e)
{
	switch (type) {
	case WIRE_ENTRY:    return on_entry(r, in, e);
	case WIRE_FILE_END: return on_file_end(r, in, e);
	case WIRE_HOLE:     return rcv_on_hole(r, in, e);
	case WIRE_FAIL:     return on_fail(r, in, e);
	case WIRE_TOTALS:   return on_totals(r, in, e);
	default:            return rcv_violation(wire_type_name(type), e);
	}
}

int rcv_frame(struct rcv *r, unsigned type, struct span in, struct ptcp_err *e)
{
	int err = take_frame(r, type, in, e);

	rcv_run_waiting(r); /* another name of a file that is complete now */
	return err;
}
