/* What exists: sink_inspect(), sink_look(), sink_refresh(). */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/bitmap.h"
#include "fs/file_system.h"
#include "fs/fs_err.h"
#include "store/named_acl.h"
#include "store/sink_impl.h"

enum look { INSPECT, INSPECT_OTHER, LOOK_AND_COMPARE, LOOK }; /* the last two for dry runs */

/* Clears the unclaimed blocks of [from, to). */
static int clear_range(struct sink *s, const uint64_t *claimed, uint64_t from, uint64_t to,
    struct ptcp_err *e)
{
	uint64_t bytes = s->opts.block_bytes, end;
	int r = 0;

	while (from < to && r == 0) {
		end = (from / bytes + 1) * bytes;
		if (bitmap_has(claimed, (uint32_t)(from / bytes))) {
			from = end;
			continue;
		}
		while (end < to && !bitmap_has(claimed, (uint32_t)(end / bytes)))
			end += bytes;
		end = end < to ? end : to;
		r = sink_punch(s, s->part.fd, from, end - from, e);
		from = end;
	}
	return r;
}

/* `end` is where the last claimed block ends. */
static int clear_unclaimed(struct sink *s, const uint64_t *claimed, uint64_t end, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(s->dir);
	off_t data, hole;
	uint64_t at;
	int r = 0;

	if (sys->ftruncate(s->part.fd, (off_t)end) != 0)
		return fs_err_sys(e, errno, s->dir, s->name, "cannot shorten the old part file");
	for (at = 0; at < end && r == 0; at = (uint64_t)hole) {
		if ((data = sys->lseek(s->part.fd, (off_t)at, SEEK_DATA)) < 0 && errno == ENXIO)
			break;
		if (data < 0) /* SEEK_DATA is not supported */
			data = (off_t)at;
		if ((hole = sys->lseek(s->part.fd, data, SEEK_HOLE)) <= data)
			hole = (off_t)end;
		r = clear_range(s, claimed, (uint64_t)data, (uint64_t)hole, e);
	}
	s->end_bytes = end;
	return r;
}

/* Reads the blocks claimed by the journal; *end is the end of the last one. */
static int read_claims(struct sink *s, struct sink_existing *out, uint64_t *end, struct ptcp_err *e)
{
	struct journal_record of[JOURNAL_READ];
	uint64_t slot, n = atomic_load(&s->journal.next), here;
	int got, i;

	if ((out->claimed = bitmap_new(s->journal.n_blocks)) == NULL)
		return err_nomem(e);
	for (slot = 0; slot < n; slot += JOURNAL_READ) {
		got = journal_read(&s->journal, dir_sys(s->dir), slot,
		    n - slot < JOURNAL_READ ? (unsigned)(n - slot) : JOURNAL_READ, of);
		for (i = 0; i < got; i++) {
			out->n_claimed += bitmap_add(out->claimed, of[i].block);
			here = (uint64_t)of[i].block * s->opts.block_bytes +
			    sink_block_length(s, of[i].block);
			*end = here > *end ? here : *end;
		}
	}
	return 0;
}

/* With part and journal open. */
static int resume(struct sink *s, bool other_version, struct sink_existing *out, struct ptcp_err *e)
{
	uint64_t end = 0;
	int r;

	if ((r = read_claims(s, out, &end, e)) < 0 || out->n_claimed == 0 ||
	    (r = clear_unclaimed(s, out->claimed, end, e)) < 0 ||
	    (s->opts.shared && (r = sink_flush_cleared(s, s->part.fd, e)) < 0) ||
	    (r = sink_begin_direct_alone(s, e)) < 0)
		return r;
	if (!other_version && (r = sink_verify_begin(s, out->claimed, e)) < 0)
		return r;
	if (other_version && (s->in_part = bitmap_copy(out->claimed, s->journal.n_blocks)) == NULL)
		return err_nomem(e);
	out->found = SINK_PART;
	return 0;
}

static int inspect_part(struct sink *s, int at, struct sink_existing *out, struct ptcp_err *e)
{
	const struct journal_key key = sink_key(s);
	enum journal_state state;
	int r;

	if ((r = sink_take_part(s, at, PART_RESUME, e)) < 0 || s->part.fd < 0)
		return r;
	quota_found(&s->hold, s->part.disk_bytes);
	state = journal_open(&s->journal, s->dir, at, &key);
	if (state == JOURNAL_CHANGED || (state == JOURNAL_OTHER && !s->opts.matches))
		out->restart_why = "the source has changed since: restarting from scratch";
	else if (state == JOURNAL_DAMAGED)
		out->restart_why = "the journal is damaged: restarting from scratch";
	sink_number_part(s);
	if (state == JOURNAL_MATCHES || (state == JOURNAL_OTHER && s->opts.matches))
		r = resume(s, state == JOURNAL_OTHER, out, e);
	if (out->found != SINK_PART) { /* the first write empties it */
		sink_close(s);
		free(out->claimed);
		out->claimed = NULL;
	}
	return r;
}

/* All blocks of a file in place are candidates; the rest behind them is cut off later, see sink_cut_rest(). */
static int inspect_in_place(struct sink *s, int at, struct sink_existing *out, struct ptcp_err *e)
{
	uint32_t n = (uint32_t)((s->size_bytes + s->opts.block_bytes - 1) / s->opts.block_bytes), there;
	int r;

	if (!s->opts.delta)
		return 0; /* the first write empties it */
	if ((r = sink_take_part(s, at, PART_RESUME, e)) < 0)
		return r;
	quota_found(&s->hold, s->part.disk_bytes);
	sink_number_part(s);
	there = s->part.size_bytes >= s->size_bytes ? n : (uint32_t)(s->part.size_bytes / s->opts.block_bytes);
	s->end_bytes = there < n ? (uint64_t)there * s->opts.block_bytes : s->part.size_bytes;
	if ((r = sink_begin_direct_alone(s, e)) < 0)
		return r;
	if (there == 0)
		return 0;
	if ((s->in_part = bitmap_new(n)) == NULL || (out->claimed = bitmap_new(n)) == NULL)
		return err_nomem(e);
	bitmap_set(s->in_part, true, 0, there);
	bitmap_set(out->claimed, true, 0, there);
	out->n_claimed = there;
	return 0;
}

/* Claims the blocks for sink_match(). */
static int add_candidates(struct sink *s, struct sink_existing *out, struct ptcp_err *e)
{
	uint32_t n = (uint32_t)((s->size_bytes + s->opts.block_bytes - 1) / s->opts.block_bytes), block;
	uint64_t with_bytes = s->basis_bytes < s->opts.block_bytes && s->basis_bytes < s->size_bytes ? 0 :
	    (s->basis_bytes + s->opts.block_bytes - 1) / s->opts.block_bytes;
	uint32_t in_basis = with_bytes < n ? (uint32_t)with_bytes : n;

	if (in_basis == 0 && s->in_part == NULL)
		return 0;
	out->in_part = s->in_part != NULL;
	out->candidates = s->in_part != NULL ? bitmap_copy(s->in_part, n) : bitmap_new(n);
	if (out->candidates == NULL || (out->claimed == NULL && (out->claimed = bitmap_new(n)) == NULL))
		return err_nomem(e);
	for (block = 0; block < in_basis; block++)
		if (bitmap_add(out->claimed, block)) {
			bitmap_add(out->candidates, block);
			out->n_claimed++;
		}
	out->found = SINK_PART;
	return 0;
}

/* The earlier run was interrupted between renaming the file and removing the journal. Another transfer of the
 * file that begins just now may lose its journal, hence only the ability to resume. */
static void remove_stale_journal(struct sink *s, int at)
{
	const struct sys *sys = dir_sys(s->dir);
	char part[PART_NAME_BYTES], journal[PART_NAME_BYTES];
	struct stat st;

	part_name(part, s->key, PART_SUFFIX);
	part_name(journal, s->key, PART_JOURNAL_SUFFIX);
	if (sys->fstatat(at, journal, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    sys->fstatat(at, part, &st, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
		sys->unlinkat(at, journal, 0);
}

/* Data that cannot be copied is received. */
static int copied(int result, struct sink_existing *out, const struct ptcp_err *e)
{
	out->found = result >= 0 ? SINK_COPIED : SINK_NOTHING;
	return result < 0 && (result == PTCP_ENOMEM || result == PTCP_ENOSPC || (e != NULL && e->sys == EWOULDBLOCK)) ?
	    result : 0;
}

static int found_unchanged(struct sink *s, int at, struct stat *st, enum look how, struct sink_existing *out,
    struct ptcp_err *e)
{
	int r = 0;

	if (how == INSPECT)
		r = sink_refresh_found(s, at, st, e);
	else
		sink_set_id(s, st);
	if (r == SINK_REFRESHED_COPY || (r < 0 && sink_has_others(s, st)))
		return copied(r, out, e);
	out->found = how == INSPECT ? SINK_UNCHANGED : SINK_KEPT;
	out->lacking = r > 0;
	return r < 0 ? r : 0;
}

/* What a reference does for the file. 1: nothing else is to be examined. */
static int refer(struct sink *s, int at, enum look how, struct sink_existing *out, struct ptcp_err *e)
{
	const struct reference_entry t = { .dir = s->dir, .name = s->name, .meta = &s->meta, .rules = &s->opts.rules,
		.size_bytes = s->size_bytes };
	int fd = -1, r = 0;

	if (s->meta.references == NULL || s->opts.unsized || how == INSPECT_OTHER)
		return 0;
	switch (references_use(s->meta.references, &t, how != INSPECT, &fd)) {
	case REFERENCE_NONE:
		return 0;
	case REFERENCE_LINKED:
		out->is_linked = how == INSPECT;
		if (how == INSPECT) /* the file is there now, as if a killed run had made it */
			return 0;
		break;
	case REFERENCE_OMITTED:
		break;
	case REFERENCE_DATA:
		if (how == INSPECT)
			r = copied(sink_copy_in(s, at, fd, e), out, e);
		dir_sys(s->dir)->close(&fd);
		if (how == INSPECT)
			return r < 0 ? r : out->found == SINK_COPIED;
		break;
	}
	out->found = SINK_KEPT;
	return 1;
}

static int found_same(struct sink *s, const struct stat *st, enum look how, struct sink_existing *out,
    struct ptcp_err *e)
{
	int r;

	if (how == LOOK) {
		sink_set_id(s, st);
		out->found = SINK_KEPT;
	} else if (s->opts.block_bytes > 0) {
		if ((r = sink_same_begin(s, st, e)) < 0)
			return r;
		out->found = SINK_SAME;
	}
	return 0;
}

/* The file has just been received under another name of the sources. */
static bool collides(const struct sink *s, int at, const struct stat *st, enum look how, enum rules_answer answer)
{
	return how != LOOK && (answer == RULES_UNCHANGED || answer == RULES_COMPARE || answer == RULES_RECEIVE) &&
	    S_ISREG(st->st_mode) &&
	    published_has(s->meta.published, s->dir, at, s->name, st, answer == RULES_RECEIVE);
}

/* Before the first byte of a new file: part files have other names, so that the rename would be the first to fail. */
static int check_name(const struct sink *s, struct ptcp_err *e)
{
	const struct file_system *f = file_system_known(s->dir);

	if (f == NULL || !f->tried || f->local)
		return 0;
	if (strlen(s->name) > f->name_max)
		return fs_err_sys(e, ENAMETOOLONG, s->dir, s->name, NULL);
	return strpbrk(s->name, f->refused) == NULL ? 0 : fs_err_set(e, PTCP_EIO, EINVAL, s->dir, s->name,
	    "the file system permits no such character in a name (rename the source)");
}

/* The sink has claimed the file before, and found it locked by another transfer. */
static bool is_claimed(const struct sink *s, const struct stat *st)
{
	return s->in_place && atomic_load(&s->part_ino) == st->st_ino && atomic_load(&s->part_dev) == st->st_dev;
}

/* Another source of this name is writing into the file. */
static bool is_taken(const struct sink *s, const struct stat *st)
{
	return s->opts.in_place && S_ISREG(st->st_mode) && !is_claimed(s, st) &&
	    published_writes(s->meta.published, s->dir, s->name, st);
}

/* Two sources never meet in one file: a name of a file that is written to under another name gets a file of its own,
 * also if the file seems to be up to date; and into a file that is up to date nothing is written under another name. */
static enum rules_answer choose_in_place(struct sink *s, const struct stat *st, enum rules_answer answer)
{
	struct published *p = s->meta.published;
	uint64_t dev = (uint64_t)st->st_dev, ino = (uint64_t)st->st_ino;

	s->in_place = false;
	if (!s->opts.in_place || s->meta.backup != NULL || s->meta.references != NULL || !S_ISREG(st->st_mode))
		return answer;
	if (answer == RULES_COMPARE || answer == RULES_RECEIVE)
		s->in_place = published_may_write(p, s->dir, s->name, dev, ino);
	else if (answer != RULES_UNCHANGED)
		return answer;
	return s->in_place || st->st_nlink < 2 || published_may_keep(p, s->dir, s->name, dev, ino) ? answer :
	    RULES_RECEIVE;
}

int sink_check_match(const struct sink *s, int at, const char *name, struct ptcp_err *e)
{
	struct stat st;

	if (!s->opts.match.set || (dir_sys(s->dir)->fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    store_match_is(&s->opts.match, &st)))
		return 0;
	return fs_err_set(e, PTCP_EREFUSED, ESTALE, s->dir, s->name, STORE_OTHER_VERSION_WHY);
}

static int inspect_target(struct sink *s, int at, enum look how, struct sink_existing *out, struct ptcp_err *e)
{
	struct rules_entry there = { .type = RULES_NOTHING };
	enum rules_answer answer;
	struct stat st = { 0 };
	bool taken = false;
	int r, sys;

	if (dir_sys(s->dir)->fstatat(at, s->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (dir_excludes(s->dir, st.st_dev, st.st_ino))
			return fs_err_set(e, PTCP_EREFUSED, EACCES, s->dir, s->name, EXCLUDED_WHY);
		there = rules_entry_of(&st);
		there.same = s->owner != NULL && sink_is_own(s, at, &st);
	} else {
		sys = errno;
		if ((r = check_name(s, e)) < 0)
			return r;
		if (sys != ENOENT)
			return fs_err_sys(e, sys, s->dir, s->name, NULL);
	}
	if ((r = sink_check_match(s, at, s->name, e)) < 0)
		return r;
	s->missing = there.type == RULES_NOTHING;
	if (how == INSPECT && there.type == RULES_FILE && there.size_bytes > s->opts.block_bytes)
		remove_stale_journal(s, at);
	answer = sink_judge(s, &there);
	out->is_new = there.type == RULES_NOTHING;
	out->held_bytes = there.type == RULES_FILE ? there.size_bytes : 0;
	if (how == INSPECT) {
		taken = is_taken(s, &st);
		answer = choose_in_place(s, &st, answer);
	}
	if (how == INSPECT && there.type == RULES_FILE && s->opts.delta && sink_has_journal(s) && !s->in_place)
		s->basis_bytes = there.size_bytes;
	if (taken && answer != RULES_KEEP)
		return published_refuse(s->meta.published, s->dir, s->name, e);
	if (collides(s, at, &st, how, answer))
		return published_refuse(s->meta.published, s->dir, s->name, e);
	switch (answer) {
	case RULES_SAME:
		sink_set_id(s, &st);
		out->found = SINK_KEPT;
		return 0;
	case RULES_KEEP:
		out->found = SINK_KEPT;
		return 0;
	case RULES_UNCHANGED:
		return found_unchanged(s, at, &st, how, out, e);
	case RULES_COMPARE:
		return found_same(s, &st, how, out, e);
	case RULES_REFUSE:
		return sink_taken(s, e);
	case RULES_RECEIVE:
		break;
	}
	return 0;
}

void sink_restart(struct sink *s)
{
	pthread_mutex_lock(&s->lock);
	sink_verify_end(s);
	free(s->in_part);
	s->in_part = NULL;
	sink_close(s);
	s->end_bytes = 0;
	pthread_mutex_unlock(&s->lock);
}

int store_look(struct dir *parent, const char *name, struct rules_entry *out, struct ptcp_err *e)
{
	struct stat st;
	int at = dir_fd(parent, e), r = 0;

	*out = (struct rules_entry){ .type = RULES_NOTHING };
	if (at < 0)
		return at;
	if (dir_sys(parent)->fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		r = errno == ENOENT ? 0 : fs_err_sys(e, errno, parent, name, NULL);
	else if (!dir_excludes(parent, st.st_dev, st.st_ino))
		*out = rules_entry_of(&st);
	dir_fd_done(parent);
	return r;
}

static uint64_t part_space(const struct sink *s, int at)
{
	char part[PART_NAME_BYTES];
	struct stat st;

	return dir_sys(s->dir)->fstatat(at, part_name(part, s->key, PART_SUFFIX), &st, AT_SYMLINK_NOFOLLOW) == 0 ?
	    (uint64_t)st.st_blocks * 512 : 0;
}

static int inspect(struct sink *s, enum look how, struct sink_existing *out, struct ptcp_err *e)
{
	struct sink_existing seen = { .found = SINK_NOTHING };
	int at, r;

	if ((at = dir_fd(s->dir, e)) < 0)
		return at;
	pthread_mutex_lock(&s->lock);
	assert(s->state == SINK_OPEN && s->part.fd < 0);
	if ((r = refer(s, at, how, &seen, e)) == 0 && how != INSPECT_OTHER)
		r = inspect_target(s, at, how, &seen, e);
	r = r < 0 ? r : 0;
	if (r == 0 && how <= INSPECT_OTHER && seen.found == SINK_NOTHING && sink_has_journal(s) &&
	    (s->opts.rules.flags & RULE_NO_RESUME) == 0 &&
	    (r = (s->in_place ? inspect_in_place : inspect_part)(s, at, &seen, e)) == 0 &&
	    !(s->missing && s->opts.renames != NULL))
		r = add_candidates(s, &seen, e);
	if (r == 0 && seen.found != SINK_KEPT && sink_has_journal(s))
		seen.held_bytes += part_space(s, at);
	pthread_mutex_unlock(&s->lock);
	dir_fd_done(s->dir);
	if (r == 0) {
		*out = seen;
	} else {
		free(seen.claimed);
		free(seen.candidates);
	}
	return r;
}

int sink_inspect(struct sink *s, struct sink_existing *out, struct ptcp_err *e)
{
	int r = inspect(s, INSPECT, out, e);

	s->inspected = r == 0;
	return r;
}

int sink_inspect_other(struct sink *s, struct sink_existing *out, struct ptcp_err *e)
{
	return inspect(s, INSPECT_OTHER, out, e);
}

int sink_inspect_renamed(struct sink *s, struct sink_existing *out, struct ptcp_err *e)
{
	int r;

	if (!s->missing || s->opts.renames == NULL || (out->found != SINK_NOTHING && out->found != SINK_PART))
		return 0;
	if (renames_find(s->opts.renames, s->size_bytes, &s->meta.mtime, s->name, s->opts.delta, s->renamed,
	    &s->n_renamed) > 0)
		return 1;
	pthread_mutex_lock(&s->lock);
	if (s->n_renamed > 0)
		s->basis_bytes = out->held_bytes = s->size_bytes;
	r = add_candidates(s, out, e);
	pthread_mutex_unlock(&s->lock);
	return r;
}

int sink_look(struct sink *s, bool compares, struct sink_existing *out, struct ptcp_err *e)
{
	return inspect(s, compares ? LOOK_AND_COMPARE : LOOK, out, e);
}
