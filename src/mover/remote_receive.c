/* Files that movers write: the engine's end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/byteorder.h"
#include "core/err.h"
#include "fs/dir.h"
#include "mover/movers_impl.h"
#include "wire/outbox.h"

void movers_watch_targets(struct movers *m, const struct movers_target_ops *ops, void *arg)
{
	m->target_ops = ops;
	m->target_arg = arg;
}

/* ---- Describing ---- */

static void put_close(struct mover *v, uint64_t id)
{
	OUTBOX_PUT(mover_link_out(v->link), close, CLOSE, (&(struct wire_close){ id }));
}

/* A path in no root becomes a path without a file there: the mover leaves. */
static void describe(struct movers *m, struct mover *only, uint64_t id, struct sink *s, unsigned flags)
{
	char path[2 * DIR_PATH_RAW_BYTES], below[DIR_PATH_RAW_BYTES], part[SINK_PART_BYTES];
	struct wire_target f = { .id = id, .size_bytes = sink_size(s), .flags = (uint8_t)flags };
	const char *rest, *above;
	struct mover *v;
	uint64_t dev;

	above = remote_absolute(m, dir_root_path(sink_dir(s)));
	snprintf(path, sizeof path, "%s/%s", strcmp(above, "/") == 0 ? "" : above,
	    dir_path_raw(sink_dir(s), sink_part(s, part), below, sizeof below));
	rest = remote_below_root(m, path, &f.root);
	if (rest == NULL || strlen(rest) > WIRE_PATH_MAX)
		rest = part;
	f.path = (struct span){ (const uint8_t *)rest, strlen(rest) };
	if (!sink_part_id(s, &dev, &f.ino)) {
		if (only != NULL)
			put_close(only, id);
		return;
	}
	LIST_EACH(&m->movers, v, struct mover, in_list)
		if (v->joined && (only == NULL || v == only)) {
			v->known[wire_slot(id)] = id;
			OUTBOX_PUT(mover_link_out(v->link), target, TARGET, &f);
		}
}

void movers_target(struct movers *m, uint32_t mover, uint64_t id, struct sink *s, unsigned flags)
{
	struct mover *v = movers_find(m, mover);

	if (v != NULL)
		describe(m, v, id, s, flags);
}

void movers_target_all(struct movers *m, uint64_t id, struct sink *s, unsigned flags)
{
	describe(m, NULL, id, s, flags);
}

void movers_close_of(struct movers *m, uint32_t mover, uint64_t id)
{
	struct mover *v = movers_find(m, mover);

	if (v != NULL)
		put_close(v, id);
}

static struct closing *find_closing(const struct mover *v, uint64_t id)
{
	struct closing *c;

	LIST_EACH(&v->closing, c, struct closing, in_list)
		if (c->id == id)
			return c;
	return NULL;
}

/* Without memory to remember the file, the mover leaves: it must not write into a complete file. */
static bool close_at(struct mover *v, uint64_t id)
{
	struct closing *c = malloc(sizeof *c);
	struct ptcp_err nomem;

	if (c == NULL) {
		err_nomem(&nomem);
		mover_link_lose(v->link, &nomem);
		return false;
	}
	c->id = id;
	list_append(&v->closing, &c->in_list);
	v->known[wire_slot(id)] = 0;
	put_close(v, id);
	return true;
}

bool movers_close(struct movers *m, uint64_t id)
{
	bool any = false;
	struct mover *v;

	LIST_EACH(&m->movers, v, struct mover, in_list)
		if (v->known[wire_slot(id)] == id)
			any |= close_at(v, id);
	return any;
}

/* One mover has closed the file. */
static void closed(struct movers *m, uint64_t id)
{
	const struct mover *v;

	LIST_EACH(&m->movers, v, struct mover, in_list)
		if (find_closing(v, id) != NULL)
			return;
	if (m->target_ops != NULL)
		m->target_ops->closed(m->target_arg, id);
}

void remote_targets_end(struct movers *set, struct mover *gone)
{
	struct closing *c;

	while (!list_empty(&gone->closing)) {
		c = CONTAINER_OF(gone->closing.next, struct closing, in_list);
		list_remove(&c->in_list);
		closed(set, c->id);
		free(c);
	}
}

/* ---- Frames of the mover ---- */

int remote_on_want(struct mover *m, const struct wire_want *f, struct ptcp_err *e)
{
	const struct remote_stream *r = remote_find(m, f->handle);

	if (r == NULL || r->state == REMOTE_CONNECTING)
		return remote_no_such(e);
	if (m->set->target_ops == NULL)
		put_close(m, f->id);
	else
		m->set->target_ops->wanted(m->set->target_arg, m->id, f->id);
	return 0;
}

/* Only files in `closing` wait for an answer. */
int remote_on_closed(struct mover *m, const struct wire_closed *f, struct ptcp_err *e)
{
	struct closing *c = find_closing(m, f->id);

	(void)e;
	if (c != NULL) {
		list_remove(&c->in_list);
		free(c);
		closed(m->set, f->id);
	}
	return 0;
}

/* The stream of results. 1: none that takes them. */
static int stream_of(struct mover *m, uint32_t handle, struct stream **out, struct ptcp_err *e)
{
	const struct remote_stream *r = remote_find(m, handle);

	if (r != NULL && (r->state == REMOTE_STOPPING || r->state == REMOTE_ORPHAN))
		return 1;
	if (r == NULL || r->state != REMOTE_STREAM || m->set->target_ops == NULL)
		return remote_no_such(e);
	*out = r->stream;
	return 0;
}

static int take_item(struct stream_results *out, const struct mover *m, const uint8_t *p, struct ptcp_err *e)
{
	uint64_t id = get_u64(p);

	if (p[20] > WIRE_WRITTEN_CORRUPT || !wire_id_ok(id) ||
	    (m->known[wire_slot(id)] != id && find_closing(m, id) == NULL))
		return err_set(e, PTCP_EPROTO, "a block of a file that the mover does not have");
	out->of[out->n].id = id;
	out->of[out->n].block = get_u32(p + 8);
	out->of[out->n].hash = get_u64(p + 12);
	out->of[out->n].what = p[20] == WIRE_WRITTEN_GOOD ? RCV_BLOCK_WRITTEN : RCV_BLOCK_BAD;
	out->n++;
	return 0;
}

int remote_on_wrote(struct mover *m, const struct wire_wrote *f, struct ptcp_err *e)
{
	struct stream_results results = { .n = 0 };
	struct stream *s = NULL;
	unsigned i;
	int r;

	if ((r = stream_of(m, f->handle, &s, e)) != 0)
		return r < 0 ? r : 0;
	for (i = 0; i < f->n; i++)
		if ((r = take_item(&results, m, f->items.p + i * WIRE_WRITTEN_BYTES, e)) < 0)
			return r;
	stream_deliver(s, &results);
	return 0;
}

int remote_on_unwritten(struct mover *m, const struct wire_unwritten *f, struct ptcp_err *e)
{
	struct stream_results results = { .n = 1 };
	struct stream *s = NULL;
	int r;

	if ((r = stream_of(m, f->handle, &s, e)) != 0)
		return r < 0 ? r : 0;
	results.of[0].id = f->id;
	results.of[0].block = f->block;
	results.of[0].what = RCV_BLOCK_FAILED;
	if ((results.of[0].why = malloc(sizeof *e)) != NULL)
		remote_reason(results.of[0].why, m, &f->why);
	stream_deliver(s, &results);
	return 0;
}
