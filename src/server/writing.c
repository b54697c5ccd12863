/* Small files that a client writes in one request: ptcp_write_new(). The data waits in memory until all of it has
 * arrived; then the file is written, verified and published as any file that a session receives. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "core/charged.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"
#include "fs/fs_err.h"
#include "server/file_job.h"
#include "store/hash.h"
#include "store/part.h"
#include "store/sink.h"

/* Periods and limit of waiting for the end of a transfer with the part of the file. After `brief_ns` the data is
 * written beside the transfer, except in place of a version. */
static const uint64_t retry_ns = 5 * NS_PER_MS, retry_max_ns = 100 * NS_PER_MS, wait_max_ns = 3600 * NS_PER_S,
    brief_ns = NS_PER_S;

struct writing {
	struct file_job job; /* first */
	struct wire_write f; /* without spans */
	struct store_match match;
	uint8_t *data;       /* f.size_bytes bytes, of which `n` have arrived */
	uint32_t n;
	struct mono begun;   /* time of the first step */
	bool beside;         /* a transfer takes long */
	struct stat status;  /* status of the complete file */
	struct wire_managed totals;
};

static struct writing *writing_of(const struct file_job *j) { return CONTAINER_OF(j, struct writing, job); }

static void put_written(struct writing *w)
{
	struct wire_listed l = { .type = WIRE_LISTED_FILE, .mode = w->status.st_mode & 07777,
		.bytes = (uint64_t)w->status.st_size, .disk_bytes = (uint64_t)w->status.st_blocks * 512,
		.mtime_s = w->status.st_mtim.tv_sec, .mtime_ns = (uint32_t)w->status.st_mtim.tv_nsec,
		.path = file_job_cut(request_path(&w->job.request, 0), WIRE_PATH_MAX) };

	OUTBOX_PUT(&w->job.found, listed, LISTED, &l);
	w->totals.entries = 1;
}

/* ---- The file ---- */

/* The time that the file gets: of the client; or the present one, later than that of the file it replaces, so that no
 * two versions have the same. */
static int choose_time(const struct writing *w, struct dir *d, const char *name, struct sink *s, struct ptcp_err *e)
{
	struct timespec t = { .tv_sec = w->f.mtime_s, .tv_nsec = (long)w->f.mtime_ns };
	struct rules_entry there;
	int r;

	if (w->f.mtime_ns == WIRE_WRITE_NOW) {
		clock_gettime(CLOCK_REALTIME, &t);
		if ((r = store_look(d, name, &there, e)) < 0)
			return r;
		if (there.type == RULES_FILE && (there.mtime.tv_sec > t.tv_sec ||
		    (there.mtime.tv_sec == t.tv_sec && there.mtime.tv_nsec >= t.tv_nsec))) {
			t = there.mtime;
			t.tv_sec += t.tv_nsec == 999999999;
			t.tv_nsec = t.tv_nsec == 999999999 ? 0 : t.tv_nsec + 1;
		}
	}
	sink_set_time(s, t);
	return 0;
}

static int complete(struct writing *w, struct dir *d, const char *name, struct sink *s, struct ptcp_err *e)
{
	static const enum store_sync sync[] = { [WIRE_FSYNC_GROUP] = STORE_SYNC_GROUP,
		[WIRE_FSYNC_NONE] = STORE_SYNC_NONE, [WIRE_FSYNC_FILE] = STORE_SYNC_FILE };
	struct store_item item = { .sink = s, .why = e };
	struct sink_existing found;
	int r;

	if ((r = sink_reserve(s, e)) < 0 || (r = sink_inspect(s, &found, e)) < 0)
		return r;
	if (found.found == SINK_KEPT) { /* a client that may only add has added it before */
		w->status = (struct stat){ .st_mode = w->f.mode, .st_size = w->f.size_bytes,
			.st_mtim = { .tv_sec = w->f.mtime_s, .tv_nsec = (long)w->f.mtime_ns } };
		return 0;
	}
	/* With the lock on the part the file of the name stays, as far as ptcp is concerned. */
	if ((r = w->f.size_bytes > 0 ? sink_write(s, w->data, w->f.size_bytes, 0, 0, e) : sink_open(s, e)) < 0)
		return r;
	if ((r = choose_time(w, d, name, s, e)) < 0)
		return r;
	store_complete(&item, 1, sync[w->f.fsync]);
	return item.result;
}

static struct sink *make_sink(struct writing *w, struct dir *d, const char *name)
{
	const bool adds = w->job.request.auth.write_once;
	const bool now = w->f.mtime_ns == WIRE_WRITE_NOW;
	const struct meta m = { .mtime = { .tv_sec = w->f.mtime_s, .tv_nsec = now ? -1 : (long)w->f.mtime_ns },
		.set_mode = (w->f.flags & WIRE_WRITE_MODE) != 0,
		.mode = (w->f.flags & WIRE_WRITE_MODE) != 0 ? w->f.mode : 0666 };
	const struct sink_opts o = { .block_bytes = WIRE_WRITE_MAX, .match = w->match, .status = &w->status,
		.owner = adds ? w->job.client : NULL,
		.rules = { .write_once = adds, .flags = RULE_NO_RESUME | RULE_IGNORE_TIMES |
		    ((w->f.flags & WIRE_WRITE_EXCLUSIVE) != 0 ? RULE_EXCLUSIVE : 0) } };

	return sink_new(d, name, w->f.size_bytes, &m, &o);
}

static int write_into(struct writing *w, const struct destination *at, struct ptcp_err *e)
{
	char text[DIR_PATH_TEXT_BYTES];
	struct ptcp_err why = { 0 };
	struct sink *s;
	int r;

	if (part_is_own_name(at->rename))
		return err_set(e, PTCP_EREFUSED, "a name that ptcp reserves for unfinished files (choose another)");
	if ((s = make_sink(w, at->base, at->rename)) == NULL)
		return err_nomem(e);
	if (w->beside)
		sink_part_alone(s);
	if ((r = complete(w, at->base, at->rename, s, &why)) < 0) {
		sink_discard(s);
		fs_err_strip(e, &why, dir_path_text(at->base, at->rename, text, sizeof text));
	}
	sink_unref(s);
	return r;
}

static int write_file(struct writing *w, struct ptcp_err *e)
{
	int flags = DESTINATION_FILE | ((w->f.flags & WIRE_WRITE_MKPATH) != 0 ? DESTINATION_MKPATH : 0), r;
	struct destination at;

	if ((r = request_target(&w->job.request, request_path(&w->job.request, 0), flags, &at, e)) < 0)
		return r;
	r = write_into(w, &at, e);
	destination_fini(&at);
	return r;
}

/* ---- The job ---- */

/* Whether another transfer writes the file, and may end soon. */
static bool waits_for_lock(struct writing *w, int r, const struct ptcp_err *why)
{
	uint64_t waited_ns = mono_diff_ns(mono_now(), w->begun);

	if (r != PTCP_EIO || why->sys != EWOULDBLOCK || waited_ns > wait_max_ns)
		return false;
	w->beside = waited_ns > brief_ns;
	w->job.again_ns = waited_ns / 4 < retry_ns ? retry_ns : waited_ns / 4 < retry_max_ns ? waited_ns / 4 :
	    retry_max_ns;
	return true;
}

static int step(struct file_job *j, struct ptcp_err *e)
{
	struct writing *w = writing_of(j);
	struct ptcp_err why = { 0 };
	int r;

	if (w->begun.ns == 0)
		w->begun = mono_now();
	if ((r = write_file(w, &why)) >= 0) {
		put_written(w);
		return 0;
	}
	if (waits_for_lock(w, r, &why))
		return 1;
	if (r == PTCP_ENOMEM && why.sys == 0)
		return err_nomem(e);
	w->totals.failed = 1;
	file_job_fail(j, request_path(&j->request, 0), &why);
	return 0;
}

static uint64_t moved(const struct file_job *j) { return writing_of(j)->n; }

static void put_totals(const struct file_job *j, struct outbox *out, bool final)
{
	struct wire_managed f = writing_of(j)->totals;

	f.final = final;
	f.bytes = f.entries > 0 ? writing_of(j)->f.size_bytes : 0;
	OUTBOX_PUT(out, managed, MANAGED, &f);
}

static void writing_record(const struct file_job *j, struct ptcp_server_record *r)
{
	const struct wire_managed *t = &writing_of(j)->totals;

	r->work = "write";
	r->files = t->entries;
	r->bytes = writing_of(j)->n;
	r->failed = t->failed;
}

static int writing_begin(struct file_job *j, struct ptcp_err *e)
{
	(void)j;
	(void)e;
	return 0;
}

static bool permits(const struct file_job *j, const struct authorization *now)
{
	return !now->read_only && now->write_once == j->request.auth.write_once &&
	    authorization_same_place(now, &j->request.auth);
}

static void writing_free(struct file_job *j)
{
	struct writing *w = writing_of(j);

	free(w->data);
	free(w);
}

static const struct file_job_ops ops = { .receives = true, .moved = moved, .begin = writing_begin,
	.step = step, .put_totals = put_totals, .record = writing_record, .permits = permits, .free = writing_free };

int writing_take(struct file_job *j, const struct job_piece *p, struct ptcp_err *e)
{
	struct writing *w = writing_of(j);

	if (p->end.status != WIRE_BLOCK_GOOD)
		return err_set(e, PTCP_EPROTO, "unexpected BLOCK frame behind WRITE");
	if (p->end.check != hash_check(p->fields, hash_content(p->data.p, p->data.n)))
		return err_set(e, PTCP_EVERIFY, "the bytes arrived altered (run the same command again; check the "
		    "memory of both hosts if that happens again)");
	memcpy(w->data + w->n, p->data.p, p->data.n);
	w->n += (uint32_t)p->data.n;
	if (w->n == w->f.size_bytes)
		file_job_start(j);
	return 0;
}

static int take(struct writing *w, const struct wire_write *f, struct ptcp_err *e)
{
	char text[WIRE_IF_MATCH_MAX + 1];
	int r;

	w->f = *f;
	w->f.path = w->f.if_match = (struct span){ NULL, 0 };
	if (f->size_bytes > 0 && (w->data = malloc(f->size_bytes)) == NULL)
		return err_nomem(e);
	if (f->if_match.n > 0 && (r = store_match_parse(&w->match, span_copy(text, f->if_match), e)) < 0)
		return err_set(e, PTCP_EPROTO, "malformed version in WRITE");
	return request_take_write(&w->job.request, f, e);
}

int writing_new(struct file_job **out, struct job_set *t, const struct job_client *c, const struct wire_write *f,
    struct ptcp_err *e)
{
	struct writing *w = calloc(1, sizeof *w);
	char shown[TEXT_NAME_BYTES];
	int r;

	if (w == NULL)
		return err_nomem(e);
	if ((r = file_job_init(&w->job, &ops, t, c, sizeof *w + f->size_bytes, e)) < 0 || (r = take(w, f, e)) < 0) {
		file_job_fini(&w->job);
		writing_free(&w->job);
		return r;
	}
	log_at(&t->context->log, LOG_INFO, "server", "event=write from=%s client=%s path=\"%s\" bytes=%u", c->address,
	    c->fingerprint, text_escape_quoted(shown, sizeof shown, request_first(&w->job.request)), f->size_bytes);
	*out = &w->job;
	if (f->size_bytes == 0)
		file_job_start(&w->job);
	return 0;
}
