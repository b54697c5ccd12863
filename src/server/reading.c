/* Parts of a file that a client reads: ptcp cat, recv --range. The file as it was opened is read range by range, in
 * pieces with a hash each. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/err.h"
#include "core/text.h"
#include "fs/fs_err.h"
#include "server/file_job.h"
#include "store/hash.h"
#include "store/part.h"
#include "store/source.h"
#include "store/walk.h"

#define STEP_BYTES (4 * WIRE_PIECE_BYTES)
#define OPEN_TRIES 16u

struct reading {
	struct file_job job; /* first */
	uint8_t *ranges;     /* as in READ */
	size_t ranges_bytes;
	struct span rest;    /* ranges to come */
	unsigned n_ranges;   /* begun; the last one has `left` bytes from `at` on */
	uint64_t at, left;
	struct source *source; /* NULL: not opened yet */
	struct wire_managed totals;
};

static struct reading *reading_of(const struct file_job *j) { return CONTAINER_OF(j, struct reading, job); }

static void reading_fail(struct reading *k, const struct ptcp_err *why)
{
	k->totals.failed++;
	file_job_fail(&k->job, request_path(&k->job.request, 0), why);
}

/* ---- The file ---- */

/* Of a file in /proc, for example. */
static int find_content(struct reading *k, struct walk_entry *w, struct ptcp_err *e)
{
	int r;

	if (!source_lacks_size(w) || (r = source_find_size(w, e)) == 0)
		r = w->content != NULL ? memory_charge(k->job.memory, w->size_bytes, e) : 0;
	return r;
}

static int check_type(const struct walk_entry *w, struct ptcp_err *e)
{
	if (w->type == WALK_FILE)
		return 0;
	if (w->type == WALK_DIR)
		return err_because(e, PTCP_EIO, EISDIR, "Is a directory (name a file)");
	return err_because(e, w->type == WALK_FAILED ? w->code : PTCP_EIO, w->type == WALK_FAILED ? w->sys : 0, "%s",
	    w->why != NULL ? w->why : "a special file, whose bytes are not read (name a regular file)");
}

/* Links are followed as far as a client may go. */
static int find_entry(struct reading *k, struct dir *d, const char *name, struct walk_entry *out, struct ptcp_err *e)
{
	static const struct walk_limits limits = { .links = WALK_LINKS_FOLLOW };
	struct walk *w;
	int r;

	dir_follow(d, k->job.request.own ? DIR_FOLLOW_ANYWHERE : DIR_FOLLOW_BENEATH);
	if ((r = walk_new(&w, k->job.memory, e)) < 0)
		return r;
	walk_limit(w, &limits);
	walk_flat(w);
	if ((r = walk_add(w, d, name, e)) == 0 && (r = walk_next(w, out, e)) == 0)
		r = err_set(e, PTCP_EVANISHED, "vanished before it was read (name another file)");
	walk_free(w);
	return r < 0 ? r : check_type(out, e);
}

static void put_opened(struct reading *k, const struct walk_entry *w)
{
	struct wire_listed f = { .type = file_job_type(w->format), .mode = (uint16_t)w->mode, .bytes = w->size_bytes,
		.disk_bytes = w->disk_bytes, .mtime_s = w->mtime.tv_sec, .mtime_ns = (uint32_t)w->mtime.tv_nsec,
		.path = file_job_cut(request_path(&k->job.request, 0), WIRE_PATH_MAX) };

	OUTBOX_PUT(&k->job.found, listed, LISTED, &f);
	k->totals.entries++;
}

static int open_source(struct reading *k, struct ptcp_err *e)
{
	char name[DESTINATION_NAME_BYTES], text[DIR_PATH_TEXT_BYTES];
	struct walk_entry w = { 0 };
	struct ptcp_err why = { 0 };
	struct dir *d = NULL;
	int r;

	if ((r = request_source(&k->job.request, request_path(&k->job.request, 0), false, &d, name, e)) < 0)
		return r;
	if (name[0] == '\0')
		r = err_because(&why, PTCP_EIO, EISDIR, "Is a directory (name a file)");
	else if (part_is_own_name(name))
		r = err_set(&why, PTCP_EREFUSED, "a name that ptcp reserves for unfinished files (choose another)");
	else if ((r = find_entry(k, d, name, &w, &why)) == 0 && (r = find_content(k, &w, &why)) == 0) {
		put_opened(k, &w);
		if ((k->source = source_new(&w)) == NULL)
			r = err_nomem(&why);
		else
			source_permit_growth(k->source);
	}
	if (r < 0)
		fs_err_strip(e, &why, dir_path_text(d, name, text, sizeof text));
	walk_entry_fini(&w);
	dir_unref(d);
	return r;
}

/* ---- Ranges ---- */

/* False: no range with a byte is left. */
static bool begin_range(struct reading *k)
{
	while (k->left == 0 && k->rest.n > 0) {
		k->left = wire_range_clip(wire_range_next(&k->rest), source_size_bytes(k->source), &k->at);
		k->n_ranges++;
	}
	return k->left > 0;
}

static int put_piece(struct reading *k, struct ptcp_err *e)
{
	uint32_t n = k->left < WIRE_PIECE_BYTES ? (uint32_t)k->left : WIRE_PIECE_BYTES;
	const struct wire_block b = { .id = wire_range_id(k->n_ranges - 1), .offset = k->at, .length_bytes = n };
	struct wire_block_end end = { .status = WIRE_BLOCK_GOOD };
	uint8_t *p = outbox_room(&k->job.found, WIRE_BLOCK_HEAD_BYTES + n + WIRE_BLOCK_END_BYTES), *data;
	int r;

	if (p == NULL)
		return err_nomem(e);
	data = p + wire_block_encode(p, &b);
	if ((r = source_read(k->source, data, n, k->at, true, e)) < 0)
		return r;
	end.check = hash_check(p + WIRE_HEADER_BYTES, hash_content(data, n));
	outbox_added(&k->job.found, WIRE_BLOCK_HEAD_BYTES + n + wire_block_end_encode(data + n, &end));
	k->at += n;
	k->left -= n;
	k->totals.bytes += n;
	return 0;
}

/* 1: more remains; 0: all ranges are read, from a file that is as it was. */
static int read_ranges(struct reading *k, struct ptcp_err *e)
{
	int r = 0;

	while (r == 0 && buf_len(&k->job.found.b) < STEP_BYTES) {
		if (!begin_range(k))
			return (r = source_check(k->source, e)) < 0 ? r : 0;
		r = put_piece(k, e);
	}
	return r < 0 ? r : 1;
}

/* ---- The job ---- */

/* Begins anew with the file that has the name now. */
static void restart(struct reading *k)
{
	source_unref(k->source);
	k->source = NULL;
	k->rest = (struct span){ k->ranges, k->ranges_bytes };
	k->n_ranges = 0;
	k->left = 0;
	k->totals = (struct wire_managed){ 0 };
	buf_consume(&k->job.found.b, buf_len(&k->job.found.b));
}

static int read_more(struct reading *k, struct ptcp_err *e)
{
	char text[DIR_PATH_TEXT_BYTES];
	struct ptcp_err why = { 0 };
	int r;

	if (k->source == NULL && (r = open_source(k, e)) < 0)
		return r;
	if ((r = read_ranges(k, &why)) < 0)
		fs_err_strip(e, &why, source_path_text(k->source, text, sizeof text));
	return r;
}

/* A file that another one has replaced meanwhile is read again, as long as nothing is sent. */
static int step(struct file_job *j, struct ptcp_err *e)
{
	struct reading *k = reading_of(j);
	bool first = k->source == NULL;
	struct ptcp_err why = { 0 };
	unsigned tries = 1;
	int r;

	while ((r = read_more(k, &why)) < 0 && first && tries++ < OPEN_TRIES &&
	    (r == PTCP_ECHANGED || (r == PTCP_EVANISHED && k->source != NULL)))
		restart(k);
	if (r >= 0)
		return r;
	if (r == PTCP_ENOMEM && why.sys == 0)
		return err_nomem(e);
	if (r == PTCP_ECHANGED)
		err_set(&why, r, "changed while it was being read (read it again when no program writes to it)");
	if (r == PTCP_EVANISHED && k->source != NULL)
		err_set(&why, r, "vanished while it was being read (name another file)");
	reading_fail(k, &why);
	return 0;
}

static void put_totals(const struct file_job *j, struct outbox *out, bool final)
{
	struct wire_managed f = reading_of(j)->totals;

	f.final = final;
	OUTBOX_PUT(out, managed, MANAGED, &f);
}

static void reading_record(const struct file_job *j, struct ptcp_server_record *r)
{
	const struct wire_managed *t = &reading_of(j)->totals;

	r->work = "read";
	r->files = t->entries;
	r->bytes = t->bytes;
	r->failed = t->failed;
}

static uint64_t moved(const struct file_job *j) { return reading_of(j)->totals.bytes; }

static int begin(struct file_job *j, struct ptcp_err *e)
{
	(void)j;
	(void)e;
	return 0;
}

static bool permits(const struct file_job *j, const struct authorization *now)
{
	return !now->write_once && authorization_same_place(now, &j->request.auth);
}

static void reading_free(struct file_job *j)
{
	struct reading *k = reading_of(j);

	source_unref(k->source);
	free(k->ranges);
	free(k);
}

static const struct file_job_ops ops = { .moved = moved, .begin = begin, .step = step, .put_totals = put_totals,
	.record = reading_record, .permits = permits, .free = reading_free };

int reading_new(struct file_job **out, struct job_set *t, const struct job_client *c, const struct wire_read *f,
    struct ptcp_err *e)
{
	struct reading *k = calloc(1, sizeof *k);
	char shown[TEXT_NAME_BYTES];
	int r;

	if (k == NULL)
		return err_nomem(e);
	if ((r = file_job_init(&k->job, &ops, t, c, sizeof *k + f->ranges.n, e)) < 0)
		goto out;
	if ((k->ranges = malloc(f->ranges.n)) == NULL) {
		r = err_nomem(e);
		goto out;
	}
	memcpy(k->ranges, f->ranges.p, f->ranges.n);
	k->ranges_bytes = f->ranges.n;
	k->rest = (struct span){ k->ranges, k->ranges_bytes };
	if ((r = request_take_read(&k->job.request, f->path, e)) < 0)
		goto out;
	log_at(&t->context->log, LOG_INFO, "server", "event=read from=%s client=%s path=\"%s\" ranges=%u",
	    c->address, c->fingerprint, text_escape_quoted(shown, sizeof shown, request_first(&k->job.request)),
	    f->n_ranges);
	*out = &k->job;
	file_job_start(&k->job);
	return 0;
out:
	file_job_fini(&k->job);
	free(k->ranges);
	free(k);
	return r;
}
