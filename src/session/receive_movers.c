/* Files that movers write: this host makes, locks and journals their parts, and completes them; movers ask for the
 * files whose data they receive, and close them first. */
#include <stdlib.h>

#include "core/err.h"
#include "session/receive_impl.h"
#include "store/hash.h"
#include "wire/block.h"
#include "wire/mover.h"

/* A mover waits for WORK_OPEN of the file. */
struct receive_want {
	struct receive_want *next;
	uint32_t mover;
	uint64_t id;
};

static const struct movers_target_ops target_ops;

int receive_movers_new(struct session *sess, struct ptcp_err *e)
{
	if ((sess->receive->shared = calloc(WIRE_SLOTS, sizeof(struct receive_entry *))) == NULL)
		return err_nomem(e);
	movers_watch_targets(sess->striping.movers, &target_ops, sess);
	return 0;
}

void receive_movers_free(struct receive_side *r)
{
	struct receive_want *w;

	if (r->shared == NULL)
		return;
	movers_watch_targets(r->session->striping.movers, NULL, NULL);
	while ((w = r->wants) != NULL) {
		r->wants = w->next;
		free(w);
	}
	free(r->shared);
}

/* ---- Opening ---- */

int receive_movers_open(struct receive_entry *t)
{
	return t->shared && !t->dry_run ? sink_open(t->sink, &t->why) : 0;
}

static unsigned flags_of(const struct session *sess, const struct receive_entry *t)
{
	return (t->grid.size_bytes > t->grid.block_bytes && sink_has_journal(t->sink) ? WIRE_TARGET_JOURNAL : 0) |
	    (sink_is_sparse(t->sink) ? WIRE_TARGET_SPARSE : 0) |
	    (sess->receive->sync != STORE_SYNC_NONE ? WIRE_TARGET_DURABLE : 0);
}

void receive_movers_accepted(struct session *sess, struct receive_entry *t, bool anew)
{
	sess->receive->shared[wire_slot(t->id)] = t;
	if (anew)
		receive_enqueue(sess, t, WORK_OPEN);
	else if (wire_grid_blocks(t->grid) == 1) /* a round trip costs as much as the file */
		movers_target_all(sess->striping.movers, t->id, t->sink, flags_of(sess, t));
}

static void answer(struct session *sess, uint32_t mover, uint64_t id)
{
	struct receive_entry *t = sess->receive->shared[wire_slot(id)];

	if (sess->end.over || t == NULL || t->id != id || t->ended)
		movers_close_of(sess->striping.movers, mover, id);
	else
		movers_target(sess->striping.movers, mover, id, t->sink, flags_of(sess, t));
}

static void on_wanted(void *arg, uint32_t mover, uint64_t id)
{
	struct session *sess = arg;
	const struct receive_entry *t = sess->receive->shared[wire_slot(id)];
	struct receive_want *w;

	if (t == NULL || t->id != id || t->work != WORK_OPEN) {
		answer(sess, mover, id);
	} else if ((w = malloc(sizeof *w)) == NULL) {
		movers_close_of(sess->striping.movers, mover, id); /* the block is sent again at the end */
	} else {
		*w = (struct receive_want){ sess->receive->wants, mover, id };
		sess->receive->wants = w;
	}
}

void receive_movers_opened(struct session *sess, struct receive_entry *t)
{
	struct receive_want **at = &sess->receive->wants, *w;
	struct ptcp_err bare;

	if (t->result < 0 && !sess->end.over) {
		sink_err_at(&bare, &t->why, t->sink, session_is_users(sess));
		t->work = WORK_OPEN; /* the engine sees work, whose end the entry awaits */
		rcv_broken(engine_rcv(sess->engine), t->id, &bare);
		t->work = WORK_NONE;
	}
	while ((w = *at) != NULL) {
		if (w->id != t->id) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		answer(sess, w->mover, w->id);
		free(w);
	}
	if (t->ended)
		receive_entry_done(sess, t);
	else if (t->commits && !sess->end.over)
		receive_enqueue(sess, t, WORK_COMMIT);
}

/* ---- Blocks ---- */

bool receive_movers_wrote(struct session *sess, struct stream *s, uint64_t id, uint32_t block, uint64_t hash,
    struct digest *term, struct ptcp_err *why)
{
	struct wire_grid grid;
	struct sink *sink = open_files_get(&sess->receive->files, id, &grid);
	uint32_t n = sink != NULL ? wire_grid_length(grid, block) : 0;
	struct ptcp_err whole;
	bool ok = true;

	*term = (struct digest){ 0, 0 };
	if (n > 0 && !(ok = sink_wrote(sink, block, hash, &whole) == 0))
		sink_err_at(why, &whole, sink, session_is_users(sess));
	if (n > 0 && (engine_open(sess->engine)->flags & WIRE_OPEN_VERIFY) != 0)
		*term = hash_term(block, n, hash);
	if (n > 0)
		remote_count(stream_remote(s), n);
	sink_unref(sink);
	return ok;
}

/* ---- Closing ---- */

bool receive_movers_close(struct session *sess, struct receive_entry *t, bool commits)
{
	struct receive_side *r = sess->receive;

	t->commits = commits;
	if (t->work == WORK_OPEN) /* not yet told to any mover */
		return true;
	if (r->shared[wire_slot(t->id)] != t)
		return false;
	r->shared[wire_slot(t->id)] = NULL;
	if (!movers_close(sess->striping.movers, t->id))
		return false;
	t->work = WORK_CLOSE;
	t->next = NULL;
	*r->closing.last = t;
	r->closing.last = &t->next;
	return true;
}

static void on_closed(void *arg, uint64_t id)
{
	struct session *sess = arg;
	struct receive_entry **at = &sess->receive->closing.first, *t;

	while ((t = *at) != NULL && t->id != id)
		at = &t->next;
	if (t == NULL)
		return;
	if ((*at = t->next) == NULL)
		sess->receive->closing.last = at;
	t->next = NULL;
	t->work = WORK_NONE;
	if (t->ended)
		receive_entry_done(sess, t);
	else if (t->commits && !sess->end.over)
		receive_enqueue(sess, t, WORK_COMMIT);
	session_pump(sess);
}

static const struct movers_target_ops target_ops = { on_wanted, on_closed };
