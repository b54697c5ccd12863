/* Small files written to another host: the client's side of ptcp_write_new(). One request has the data as well. */
#include <stdlib.h>
#include <string.h>

#include "client/remote_job_impl.h"
#include "core/err.h"
#include "core/opts.h"
#include "core/text.h"
#include "store/hash.h"
#include "store/rules.h"

struct write_task {
	struct ptcp_write_opts o;
	uint8_t *data;
	bool written; /* the answer has described the file */
};

void ptcp_write_opts_init(struct ptcp_write_opts *o) { *o = (struct ptcp_write_opts){ .size = sizeof *o, .mode = -1 }; }

static void write_task_free(void *work)
{
	struct write_task *w = work;

	free(w->data);
	free(w);
}

/* ---- The request ---- */

static void put_data(struct outbox *out, const uint8_t *data, uint32_t at, uint32_t n)
{
	const struct wire_block b = { .id = wire_range_id(0), .offset = at, .length_bytes = n };
	struct wire_block_end end = { .status = WIRE_BLOCK_GOOD };
	uint8_t *p = outbox_room(out, WIRE_BLOCK_HEAD_BYTES + n + WIRE_BLOCK_END_BYTES), *to;

	if (p == NULL)
		return;
	to = p + wire_block_encode(p, &b);
	memcpy(to, data + at, n);
	end.check = hash_check(p + WIRE_HEADER_BYTES, hash_content(to, n));
	outbox_added(out, WIRE_BLOCK_HEAD_BYTES + n + wire_block_end_encode(to + n, &end));
}

static void put_request(struct ptcp_task *t)
{
	struct write_task *w = t->remote_job->work;
	struct outbox *out = &t->remote_job->frames.conn.out;
	const char *match = t->o.older.if_match != NULL ? t->o.older.if_match : "";
	struct span rest = { t->files.open_paths, t->files.open_paths_bytes };
	struct wire_write f = {
		.flags = (t->o.older.exclusive ? WIRE_WRITE_EXCLUSIVE : 0) | (t->o.no_mkpath ? 0 : WIRE_WRITE_MKPATH) |
		    (w->o.mode >= 0 ? WIRE_WRITE_MODE : 0),
		.fsync = task_fsync(t), .mode = (uint16_t)(w->o.mode >= 0 ? w->o.mode : 0),
		.size_bytes = (uint32_t)w->o.bytes, .mtime_s = w->o.set_mtime ? w->o.mtime_s : 0,
		.mtime_ns = w->o.set_mtime ? w->o.mtime_ns : WIRE_WRITE_NOW,
		.if_match = { (const uint8_t *)match, strlen(match) }
	};
	uint32_t at, n;
	uint8_t flags;

	wire_path_next(&rest, &flags, &f.path);
	w->written = false;
	OUTBOX_PUT(out, write, WRITE, &f);
	for (at = 0; at < f.size_bytes; at += n) {
		n = f.size_bytes - at < WIRE_PIECE_BYTES ? f.size_bytes - at : WIRE_PIECE_BYTES;
		put_data(out, w->data, at, n);
	}
}

/* ---- Answers ---- */

static int on_written(struct ptcp_task *t, const struct wire_listed *f, struct ptcp_err *e)
{
	struct remote_job *h = t->remote_job;
	struct write_task *w = h->work;
	char path[WIRE_PATH_MAX + 1];
	struct ptcp_entry entry;

	if (w->written || h->failed_path != NULL)
		return err_set(e, PTCP_EPROTO, "unexpected LISTED frame in an answer to WRITE");
	if (f->why.code != 0)
		return remote_job_fails(h, f, e);
	w->written = true;
	entry = remote_job_entry(f, span_copy(path, f->path));
	if (w->o.written != NULL)
		w->o.written(w->o.arg, &entry);
	return 0;
}

static int on_ended(struct ptcp_task *t, const struct wire_managed *f, struct ptcp_err *e)
{
	struct remote_job *h = t->remote_job;
	struct write_task *w = h->work;
	struct ptcp_err why;

	if (!f->final)
		return 0;
	if ((f->failed > 0) != (h->failed_path != NULL) || (f->failed == 0 && !w->written))
		return err_set(e, PTCP_EPROTO, "unexpected MANAGED frame in an answer to WRITE");
	h->managed = (struct ptcp_manage_result){ .entries = f->failed == 0, .failed = f->failed,
		.bytes = f->failed == 0 ? w->o.bytes : 0 };
	if (f->failed > 0)
		remote_job_failed(h, &why);
	task_finish(t, f->failed > 0 ? &why : NULL);
	return 0;
}

/* ---- The task ---- */

static int check(const struct ptcp_task *t, const struct ptcp_write_opts *o, struct ptcp_err *e)
{
	struct store_match ignored;

	if (o->bytes > PTCP_WRITE_MAX || (o->data == NULL && o->bytes > 0))
		return err_set(e, PTCP_EUSAGE, "writing a file needs its data, of at most %u bytes (send larger files)",
		    PTCP_WRITE_MAX);
	if (o->mode < -1 || o->mode > 0777)
		return err_set(e, PTCP_EUSAGE, "writing a file: its mode is none of 0 to 0777, and not -1 (correct "
		    "it)");
	if (o->set_mtime && o->mtime_ns > 999999999)
		return err_set(e, PTCP_EUSAGE, "writing a file: nanoseconds of its time are 10^9 or more (count the "
		    "seconds)");
	if (t->o.older.if_match != NULL && t->o.older.exclusive)
		return err_set(e, PTCP_EUSAGE, "a file that is created has no version to replace (choose one)");
	return t->o.older.if_match != NULL ? store_match_parse(&ignored, t->o.older.if_match, e) : 0;
}

static int take_opts(struct ptcp_task *t, const void *o, struct ptcp_err *e)
{
	struct write_task *w = t->remote_job->work;
	int r;

	ptcp_write_opts_init(&w->o);
	if ((r = opts_copy(&w->o, sizeof w->o, o, "ptcp_write_opts_init", e)) < 0 || (r = check(t, &w->o, e)) < 0)
		return r;
	if ((w->data = malloc(w->o.bytes + 1)) == NULL)
		return err_nomem(e);
	if (w->o.bytes > 0)
		memcpy(w->data, w->o.data, w->o.bytes);
	w->o.data = NULL;
	return 0;
}

static const struct work_ops write_ops = { .request = JOB_FRAMES_WRITE_REQUESTED, .bytes = sizeof(struct write_task),
	.take = take_opts, .put = put_request, .opened = on_written, .ended = on_ended,
	.free = write_task_free };

int ptcp_write_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o, const char *url,
    const struct ptcp_write_opts *opts, struct ptcp_err *e)
{
	return remote_job_new_work(out, o, url, &write_ops, opts, e);
}
