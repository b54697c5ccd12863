/* Digests of files of this host, and their names. */
#include <errno.h>
#include <ptcp/ptcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/file_digests.h"
#include "client/manage_task.h"
#include "conn/remote.h"
#include "core/err.h"
#include "core/opts.h"
#include "core/text.h"
#include "fs/fs_err.h"
#include "store/destination.h"
#include "store/file_sums.h"
#include "store/part.h"

/* ---- Names ---- */

static const char *const digest_names[] = {
#define X(NAME, name, bit, bytes) [bit] = name,
	PTCP_DIGESTS(X)
#undef X
};
#define N_DIGESTS (sizeof digest_names / sizeof *digest_names)

const char *ptcp_digest_name(enum ptcp_digest d)
{
	size_t i;

	for (i = 0; i < N_DIGESTS; i++)
		if ((unsigned)d == 1u << i)
			return digest_names[i];
	return NULL;
}

int ptcp_digests_parse(unsigned *out, const char *names, struct ptcp_err *e)
{
	unsigned all = sums_named(names);
	char shown[TEXT_NAME_BYTES];

	if (all == 0)
		return err_set(e, PTCP_EUSAGE, "%s: not a digest (sha256, sha512, sha1, md5, blake2b, adler32, "
		    "crc32c or xxh3; several are separated by commas)", text_escape(shown, sizeof shown, names));
	*out = all;
	return 0;
}

/* ---- Files ---- */

struct summing {
	struct ptcp_manage_opts o;
	struct file_sums *sums;
	const char *path;    /* as the caller wrote it */
	struct dir *base;    /* directory of the file, or the directory at `path` */
	bool content;
	struct ptcp_manage_result totals;
	struct ptcp_err first; /* first failure, */
	bool itself;           /* the first failure is about `path` */
};

static int sum_fails(struct summing *s, const char *path, const struct ptcp_err *why)
{
	const struct ptcp_entry entry = { .path = path, .url = strcmp(path, s->path) == 0 ? 0 : SIZE_MAX,
		.code = why->code, .sys = err_cause(why), .why = why->msg };

	if (s->totals.failed++ == 0) {
		s->first = *why;
		s->itself = strcmp(path, s->path) == 0;
	}
	if (s->o.entry != NULL)
		s->o.entry(s->o.arg, &entry);
	return 0;
}

/* To be freed. */
static char *path_of(const struct summing *s, const struct dir *d, const char *name)
{
	char *below, *path;
	size_t n = strlen(s->path);

	if (!s->content)
		return strdup(s->path);
	if ((below = dir_path_below(d, s->base, name != NULL ? name : "")) == NULL)
		return NULL;
	if ((path = malloc(n + strlen(below) + 2)) != NULL)
		sprintf(path, "%s%s%s", s->path, n > 0 && s->path[n - 1] == '/' ? "" : "/", below);
	free(below);
	return path;
}

static int read_file(struct summing *s, struct walk_entry *w, uint64_t *bytes, uint8_t out[SUMS_BYTES_MAX],
    struct ptcp_err *e)
{
	struct source *source;
	uint64_t from, room;
	int r;

	if (source_lacks_size(w) && (r = source_find_size(w, e)) < 0)
		return r;
	if ((source = source_new(w)) == NULL)
		return err_nomem(e);
	source_permit_growth(source);
	*bytes = wire_range_clip(manage_range(&s->o), source_size_bytes(source), &from);
	if ((r = file_sums_begin(s->sums, source, from, *bytes, e)) == 0)
		do
			room = FILE_SUMS_STEP_BYTES;
		while ((r = file_sums_step(s->sums, &room, e)) > 0);
	source_unref(source);
	if (r == 0)
		file_sums_end(s->sums, out);
	return r;
}

static int sum_one(struct summing *s, struct walk_entry *w, const char *path)
{
	struct ptcp_entry entry = { .path = path, .type = PTCP_ENTRY_FILE, .mode = w->mode, .disk_bytes = w->disk_bytes,
		.url = s->content ? SIZE_MAX : 0,
		.mtime_s = w->mtime.tv_sec, .mtime_ns = (unsigned)w->mtime.tv_nsec };
	char hex[2 * SUMS_BYTES_MAX + 1], text[DIR_PATH_TEXT_BYTES];
	struct file_digests digests;
	uint8_t out[SUMS_BYTES_MAX];
	struct ptcp_err why = { 0 }, stripped;

	dir_path_text(w->dir, w->name, text, sizeof text);
	if (read_file(s, w, &entry.bytes, out, &why) < 0) {
		fs_err_strip(&stripped, &why, text);
		return sum_fails(s, path, &stripped);
	}
	text_hex(hex, out, sums_bytes(s->o.digests));
	file_digests(&digests, s->o.digests, hex, &entry);
	s->totals.entries++;
	s->totals.bytes += entry.bytes;
	s->totals.disk_bytes += entry.disk_bytes;
	if (s->o.entry != NULL)
		s->o.entry(s->o.arg, &entry);
	return 0;
}

static int sum_entry(struct summing *s, struct walk_entry *w, struct ptcp_err *e)
{
	char text[DIR_PATH_TEXT_BYTES];
	struct ptcp_err why = { .code = PTCP_EIO }, stripped;
	char *path;
	int r = 0;

	if (w->type == WALK_DIR_END || (s->content && w->type != WALK_FILE && w->type != WALK_FAILED))
		return 0;
	if ((path = path_of(s, w->dir, w->name)) == NULL)
		return err_nomem(e);
	if (w->type == WALK_FILE) {
		r = sum_one(s, w, path);
	} else {
		if (w->type == WALK_FAILED)
			err_because(&why, w->code, w->sys, "%s", w->why);
		else
			err_set(&why, PTCP_EIO, "a special file, whose bytes are not read (name a regular file)");
		fs_err_strip(&stripped, &why, dir_path_text(w->dir, w->name, text, sizeof text));
		r = sum_fails(s, path, &stripped);
	}
	free(path);
	return r;
}

static int sum_walk(struct summing *s, const char *name, struct ptcp_err *e)
{
	static const struct walk_limits follow = { .links = WALK_LINKS_FOLLOW };
	struct walk_entry w;
	struct walk *walk;
	int r;

	if ((r = walk_new(&walk, NULL, e)) < 0)
		return r;
	if (name != NULL) {
		dir_follow(s->base, DIR_FOLLOW_ANYWHERE);
		walk_limit(walk, &follow);
		walk_flat(walk);
	}
	if ((r = walk_add(walk, s->base, name, e)) == 0)
		while ((r = walk_next(walk, &w, e)) > 0) {
			r = sum_entry(s, &w, e);
			walk_entry_fini(&w);
			if (r < 0)
				break;
		}
	walk_free(walk);
	return r;
}

static bool may_be_file(const struct ptcp_err *e) { return e->sys == ENOTDIR || e->sys == ELOOP || e->sys == ENOENT; }

/* A directory, or a file. */
static int sum_path(struct summing *s, struct ptcp_err *e)
{
	char name[DESTINATION_NAME_BYTES], text[TEXT_NAME_BYTES];
	struct ptcp_err why, stripped;
	int r;

	r = destination_source(NULL, s->path, true, &s->base, name, &why);
	s->content = r == 0;
	if (r < 0 && may_be_file(&why) && !text_is_contents(s->path))
		r = destination_source(NULL, s->path, false, &s->base, name, &why);
	if (r < 0) {
		fs_err_strip(&stripped, &why, text_escape(text, sizeof text, s->path));
		return sum_fails(s, s->path, &stripped);
	}
	if (s->content && !s->o.recursive) {
		err_because(&why, PTCP_EIO, EISDIR, "Is a directory (-r takes the files below it)");
		return sum_fails(s, s->path, &why);
	}
	return sum_walk(s, s->content ? NULL : name, e);
}

/* One failure, of the path itself, is the error of the call. */
static int sum_outcome(const struct summing *s, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	uint64_t n = s->totals.failed;

	text_escape(shown, sizeof shown, s->path);
	if (n == 0)
		return 0;
	if (n == 1 && s->itself) {
		if (e != NULL)
			*e = s->first;
		return err_while(e, s->first.code, "%s", shown);
	}
	return err_set(e, s->totals.entries > 0 ? PTCP_EPARTIAL : PTCP_EIO, "%s: %llu failure%s (see above)", shown,
	    (unsigned long long)n, n == 1 ? "" : "s");
}

int ptcp_sum(const char *path, const struct ptcp_manage_opts *m, struct ptcp_manage_result *result, struct ptcp_err *e)
{
	struct summing s = { .path = path };
	char shown[TEXT_NAME_BYTES];
	struct remote ignored;
	int r;

	if ((r = manage_take_opts(&s.o, PTCP_SUM, 1, m, e)) < 0 || (r = remote_parse(&ignored, path, e)) < 0)
		return r;
	if (r > 0)
		return err_set(e, PTCP_EUSAGE, "%s: on another host (use ptcp_manage_new())",
		    text_escape(shown, sizeof shown, path));
	if ((r = file_sums_new(&s.sums, s.o.digests, NULL, e)) == 0)
		r = sum_path(&s, e);
	file_sums_free(s.sums);
	dir_unref(s.base);
	if (result != NULL)
		results_copy(result, &s.totals, sizeof s.totals);
	return r < 0 ? r : sum_outcome(&s, e);
}
