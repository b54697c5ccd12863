/* Parts of a file of another host: the client's side of ptcp cat and recv --range. Requests have a limited number of
 * ranges, and follow one another on one connection. */
#include <stdlib.h>
#include <string.h>

#include "client/remote_job_impl.h"
#include "core/err.h"
#include "core/opts.h"
#include "core/text.h"
#include "store/hash.h"

struct read_task {
	struct ptcp_read_opts o;
	struct ptcp_range *ranges;
	size_t n_ranges;
	size_t n_done;           /* ranges of answered requests */
	size_t next;             /* number of the range of the next piece, */
	uint64_t at, left;       /* place of this piece, and missing bytes of the range */
	bool opened;             /* the first answer has described the file */
	bool described;          /* so has the answer to the present request */
	struct wire_listed file; /* as described first, without spans */
	uint64_t bytes;          /* number of bytes so far */
};

void ptcp_read_opts_init(struct ptcp_read_opts *o) { *o = (struct ptcp_read_opts){ .size = sizeof *o }; }

static void read_task_free(void *work)
{
	struct read_task *r = work;

	free(r->ranges);
	free(r);
}

/* ---- The request ---- */

/* Of a file that may have grown since the first answer, the ranges are those of the size then. */
static struct wire_range range_of(const struct read_task *r, size_t i)
{
	struct wire_range w = { r->ranges[i].start, r->ranges[i].end };
	uint64_t from, bytes;

	if (!r->opened)
		return w;
	bytes = wire_range_clip(w, r->file.bytes, &from);
	return (struct wire_range){ (int64_t)from, (int64_t)(from + bytes) };
}

static size_t n_requested(const struct read_task *r)
{
	return r->n_ranges - r->n_done < WIRE_RANGES_MAX ? r->n_ranges - r->n_done : WIRE_RANGES_MAX;
}

static void put_request(struct ptcp_task *t)
{
	struct read_task *r = t->remote_job->work;
	struct span rest = { t->files.open_paths, t->files.open_paths_bytes };
	struct wire_read f = { .n_ranges = (uint16_t)n_requested(r) };
	uint8_t ranges[WIRE_RANGES_MAX * WIRE_RANGE_BYTES], flags;
	size_t i, n = 0;

	wire_path_next(&rest, &flags, &f.path);
	for (i = 0; i < f.n_ranges; i++) {
		const struct wire_range w = range_of(r, r->n_done + i);

		n += wire_range_encode(ranges + n, &w);
	}
	f.ranges = (struct span){ ranges, n };
	r->described = false;
	r->next = r->n_done;
	r->left = 0;
	OUTBOX_PUT(&t->remote_job->frames.conn.out, read, READ, &f);
}

/* ---- Answers ---- */

static void report_opened(const struct read_task *r, const struct wire_listed *f)
{
	char path[WIRE_PATH_MAX + 1];
	const struct ptcp_entry entry = remote_job_entry(f, span_copy(path, f->path));

	if (r->o.opened != NULL)
		r->o.opened(r->o.arg, &entry);
}

/* The file that the answer before described; it may have grown. */
static bool is_same(const struct wire_listed *a, const struct wire_listed *b)
{
	return b->bytes > a->bytes || (a->bytes == b->bytes && a->mtime_s == b->mtime_s && a->mtime_ns == b->mtime_ns);
}

static int begin_range(struct read_task *r)
{
	r->left = wire_range_clip(range_of(r, r->next), r->file.bytes, &r->at);
	return r->left > 0;
}

/* On to the next range with a byte, among those requested. */
static bool find_range(struct read_task *r)
{
	while (r->described && r->left == 0 && r->next < r->n_done + n_requested(r) && !begin_range(r))
		r->next++;
	return r->left > 0;
}

static int on_opened(struct ptcp_task *t, const struct wire_listed *f, struct ptcp_err *e)
{
	struct remote_job *h = t->remote_job;
	struct read_task *r = h->work;

	if (f->why.code != 0 && h->failed_path == NULL)
		return remote_job_fails(h, f, e);
	if (f->why.code != 0 || r->described || f->type != WIRE_LISTED_FILE || f->bytes > WIRE_FILE_MAX)
		return err_set(e, PTCP_EPROTO, "unexpected LISTED frame in an answer to READ");
	if (r->opened && !is_same(&r->file, f))
		return err_set(e, PTCP_ECHANGED, "the file changed while it was being read (read it again when no "
		    "program writes to it)");
	if (!r->opened) {
		r->file = *f;
		report_opened(r, f);
	}
	r->opened = r->described = true;
	find_range(r);
	return 0;
}

static int on_piece(struct ptcp_task *t, const struct job_piece *p, struct ptcp_err *e)
{
	struct read_task *r = t->remote_job->work;
	const struct ptcp_piece piece = { .range = r->next, .offset = p->block.offset, .data = p->data.p,
		.bytes = p->data.n };

	/* Without a range that is due, `left` is 0. */
	if (p->block.id != wire_range_id((unsigned)(r->next - r->n_done)) ||
	    p->block.offset != r->at || p->data.n > r->left || p->end.status != WIRE_BLOCK_GOOD)
		return err_set(e, PTCP_EPROTO, "unexpected BLOCK frame in an answer to READ");
	if (p->end.check != hash_check(p->fields, hash_content(p->data.p, p->data.n)))
		return err_set(e, PTCP_EVERIFY, "the bytes arrived altered (run the same command again; check the "
		    "memory of both hosts if that happens again)");
	r->at += p->data.n;
	r->left -= p->data.n;
	t->remote_job->managed.bytes = r->bytes += p->data.n;
	r->o.piece(r->o.arg, &piece);
	if (r->left == 0) {
		r->next++;
		find_range(r);
	}
	return 0;
}

static int on_ended(struct ptcp_task *t, const struct wire_managed *f, struct ptcp_err *e)
{
	struct remote_job *h = t->remote_job;
	struct read_task *r = h->work;
	struct ptcp_err why;

	if (!f->final)
		return 0;
	if ((f->failed > 0) != (h->failed_path != NULL) || (f->failed == 0 && (!r->described || find_range(r))))
		return err_set(e, PTCP_EPROTO, "unexpected MANAGED frame in an answer to READ");
	h->managed.entries = f->failed == 0;
	h->managed.failed = f->failed;
	if (f->failed > 0) {
		remote_job_failed(h, &why);
		task_finish(t, &why);
		return 0;
	}
	r->n_done += n_requested(r);
	if (r->n_done < r->n_ranges)
		return remote_job_request_next(t, e);
	task_finish(t, NULL);
	return 0;
}

/* ---- The task ---- */

static int copy_ranges(struct read_task *r, struct ptcp_err *e)
{
	static const struct ptcp_range whole = { 0, PTCP_RANGE_REST };
	const struct ptcp_range *from = r->o.n_ranges > 0 ? r->o.ranges : &whole;

	r->n_ranges = r->o.n_ranges > 0 ? r->o.n_ranges : 1;
	r->o.ranges = NULL;
	if ((r->ranges = calloc(r->n_ranges, sizeof *r->ranges)) == NULL)
		return err_nomem(e);
	memcpy(r->ranges, from, r->n_ranges * sizeof *r->ranges);
	return 0;
}

static int take_opts(struct ptcp_task *t, const void *o, struct ptcp_err *e)
{
	struct read_task *r = t->remote_job->work;
	int got;

	ptcp_read_opts_init(&r->o);
	if ((got = opts_copy(&r->o, sizeof r->o, o, "ptcp_read_opts_init", e)) < 0)
		return got;
	if (r->o.piece == NULL || (r->o.ranges == NULL && r->o.n_ranges > 0))
		return err_set(e, PTCP_EUSAGE, "reading a file needs a function for the pieces, and as many ranges as "
		    "counted (set both)");
	return copy_ranges(r, e);
}

static const struct work_ops read_ops = { .request = JOB_FRAMES_READ_REQUESTED, .bytes = sizeof(struct read_task),
	.take = take_opts, .put = put_request, .opened = on_opened, .piece = on_piece, .ended = on_ended,
	.free = read_task_free };

int ptcp_read_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o, const char *url,
    const struct ptcp_read_opts *opts, struct ptcp_err *e)
{
	return remote_job_new_work(out, o, url, &read_ops, opts, e);
}
