#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/text.h"
#include "server/managing_impl.h"

static void sum_failed(struct managing *m, const struct walk_entry *w, const char *path, struct ptcp_err *why)
{
	if (why->code == PTCP_ECHANGED)
		err_set(why, PTCP_ECHANGED, "changed while it was being read (read it again when no program writes "
		    "to it)");
	if (why->code == PTCP_EVANISHED)
		err_set(why, PTCP_EVANISHED, "vanished while it was being read (name another file)");
	if (w->dir != NULL)
		managing_fail_in(m, path, w->dir, w->name, why);
	else /* taken */
		managing_fail(m, path, why);
}

static int begin_file(struct managing *m, struct walk_entry *w, struct ptcp_err *e)
{
	struct managing_sums *s = &m->sums;
	struct source *source;
	uint64_t from, n;
	int r;

	s->listed = managing_listed(w);
	if (source_lacks_size(w) && (r = source_find_size(w, e)) < 0) /* reads up to SOURCE_CONTENT_MAX of /proc/.. */
		return r;
	if (w->content != NULL && (r = memory_charge(m->job.memory, w->size_bytes, e)) < 0)
		return r;
	s->content_bytes = w->content != NULL ? w->size_bytes : 0;
	if ((source = source_new(w)) == NULL)
		return err_nomem(e);
	source_permit_growth(source);
	s->listed.bytes = n = wire_range_clip(s->range, source_size_bytes(source), &from);
	r = file_sums_begin(s->at, source, from, n, e);
	source_unref(source);
	return r;
}

static void file_done(struct managing *m)
{
	char hex[2 * SUMS_BYTES_MAX + 1];
	uint8_t sums[SUMS_BYTES_MAX];
	size_t n = file_sums_end(m->sums.at, sums);

	text_hex(hex, sums, n);
	m->sums.listed.target = file_job_cut(hex, WIRE_PATH_MAX);
	managing_put_listed(m, &m->sums.listed, m->sums.path);
}

int managing_sum_more(struct managing *m, struct ptcp_err *e)
{
	struct managing_sums *s = &m->sums;
	struct ptcp_err why = { 0 };
	int r;

	if ((r = file_sums_step(s->at, &s->room, &why)) > 0)
		return 0;
	if (r == PTCP_ENOMEM && why.sys == 0)
		return err_nomem(e);
	if (r < 0)
		sum_failed(m, source_entry(file_sums_source(s->at)), s->path, &why);
	else
		file_done(m);
	memory_release(m->job.memory, s->content_bytes);
	s->content_bytes = 0;
	free(s->path);
	s->path = NULL;
	return 0;
}

static int sum_file(struct managing *m, struct walk_entry *w, const char *path, struct ptcp_err *e)
{
	struct ptcp_err why = { 0 };
	int r = begin_file(m, w, &why);

	if (r == PTCP_ENOMEM && why.sys == 0)
		return err_nomem(e);
	if (r < 0) {
		sum_failed(m, w, path, &why);
		return 0;
	}
	return (m->sums.path = strdup(path)) != NULL ? managing_sum_more(m, e) : err_nomem(e);
}

int managing_sum_entry(struct managing *m, struct walk_entry *w, const char *path, struct ptcp_err *e)
{
	struct ptcp_err why = { 0 };

	if (w->type == WALK_FILE)
		return sum_file(m, w, path, e);
	if (m->named) {
		err_set(&why, PTCP_EIO, "a special file, whose bytes are not read (name a regular file)");
		managing_fail(m, path, &why);
	}
	return 0;
}

bool managing_sum_full(const struct managing *m) { return m->sums.path != NULL || m->sums.room == 0; }

void managing_sum_fini(struct managing *m)
{
	file_sums_free(m->sums.at);
	free(m->sums.path);
}
