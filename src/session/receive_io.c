/* What the store does for a batch of entries, on an I/O thread. */
#include "session/receive_impl.h"

static int make_dir(struct item *t)
{
	bool made;
	int r;

	if (t->source != NULL && (r = destination_mark(t->dir, t->name, t->source, &t->why)) < 0)
		return r;
	if ((r = store_mkdir(t->dir, t->name, &t->meta, &made, &t->why)) < 0) {
		if (t->source != NULL)
			destination_unmark(t->dir, t->name);
		return r;
	}
	t->fresh = made;
	return 0;
}

static void do_work(struct item *t)
{
	t->result = 0;
	switch (t->work) {
	case WORK_NONE:
	case WORK_ACCEPT:
	case WORK_COMMIT:
		break;
	case WORK_MKDIR:
		t->result = make_dir(t);
		break;
	case WORK_LOOK:
		t->result = sink_inspect(t->sink, &t->look, &t->why);
		break;
	case WORK_REFRESH:
		t->result = sink_refresh(t->sink, &t->why);
		t->lacking = t->result > 0;
		break;
	case WORK_LOOK_DIR:
		t->fresh = dir_fd(t->self, NULL) < 0;
		if (!t->fresh)
			dir_fd_done(t->self);
		break;
	case WORK_LOOK_SAME:
		t->same = sink_seems_same(t->sink);
		break;
	case WORK_SYMLINK:
		t->result = store_symlink(t->dir, t->name, t->target, &t->meta, &t->why);
		break;
	case WORK_HARDLINK:
		t->result = store_hardlink(t->self, t->target, t->dir, t->name, &t->why);
		break;
	case WORK_FINISH_DIR:
		t->result = store_dir_finish(t->self, &t->meta, &t->why);
		t->lacking = t->result > 0;
		break;
	case WORK_LET_GO:
		if (t->keep)
			sink_keep(t->sink);
		else
			sink_discard(t->sink);
		break;
	}
}

/* What is done of it so far is to become durable. */
static bool completes(const struct item *t)
{
	return t->result >= 0 && t->work >= WORK_COMMIT && t->work <= WORK_FINISH_DIR;
}

/* What is complete now: files get their names, and all of it becomes durable. */
static void complete(struct receive_side *r)
{
	struct store_item *end = r->ends;
	struct item *t;

	for (t = r->batch; t != NULL; t = t->next) {
		if (!completes(t))
			continue;
		*end++ = (struct store_item){ .sink = t->work == WORK_COMMIT ? t->sink : NULL,
			.dir = t->work == WORK_FINISH_DIR ? t->self : t->dir, .why = &t->why };
	}
	if (end == r->ends)
		return;
	atomic_store(&r->completing, true);
	store_complete(r->ends, (unsigned)(end - r->ends), r->sync);
	atomic_store(&r->completing, false);
	end = r->ends;
	for (t = r->batch; t != NULL; t = t->next) {
		if (!completes(t))
			continue;
		t->result = end->result;
		t->lacking |= end++->attr_dropped;
		if (t->result == 0 && t->work == WORK_FINISH_DIR && t->source != NULL)
			destination_unmark(t->dir, t->name);
	}
}

void receive_work(struct io_job *io)
{
	struct receive_side *r = CONTAINER_OF(io, struct receive_side, io);
	struct item *t;

	for (t = r->batch; t != NULL; t = t->next)
		do_work(t);
	complete(r);
	loop_post(r->session->o.host->control, &r->done);
}
