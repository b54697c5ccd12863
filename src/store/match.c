/* Blocks of the source in the part of another version, or in the file to be replaced: sink_match(). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/bitmap.h"
#include "fs/fs_err.h"
#include "store/hash.h"
#include "store/sink_impl.h"

enum {
	SLACK_BYTES = 4 << 20, /* around the expected place of a block, or of pieces */
	REACH = 8,             /* a search goes this many times as far as the blocks looked for are long */
	GAP_BYTES = 32 << 20   /* part of the old file for the pieces of a step, at most */
};

/* Work on one call of sink_match() or sink_split(). */
struct matching {
	struct sink *s;
	int basis;       /* the file to be replaced; -1: none */
	uint64_t basis_bytes;
	uint8_t *buf;    /* a block */
	bool cloned;     /* the part shares the blocks with the basis */
	struct sink_search *search;
	const struct block_sum *sum; /* sums of the blocks [first, end) */
	uint32_t first, end;
};

static uint64_t offset_of(const struct matching *m, uint32_t block) { return (uint64_t)block * m->s->opts.block_bytes; }

/* Reads the bytes at `off` into m->buf; true if the block has the same. */
static bool has_hash(struct matching *m, int fd, uint64_t off, uint32_t block, uint64_t hash)
{
	uint32_t n = sink_block_length(m->s, block), at, chunk;
	struct block_hash h = { 0 };

	if (sink_get(m->s, fd, m->buf, n, off) != (ssize_t)n)
		return false;
	for (at = 0; at < n; at += chunk) {
		chunk = n - at < HASH_CHUNK_BYTES ? n - at : HASH_CHUNK_BYTES;
		block_hash_add(&h, hash_content(m->buf + at, chunk));
	}
	return block_hash_end(&h) == hash;
}

static int open_named(const struct matching *m, struct ptcp_err *e, int *fd)
{
	int at = dir_fd(m->s->dir, e);

	if (at < 0)
		return at;
	*fd = dir_sys(m->s->dir)->openat(at, m->s->name, SYS_READ_FLAGS, 0);
	dir_fd_done(m->s->dir);
	return 0;
}

/* Of several files with other names, the first block decides. */
static void open_renamed(struct matching *m, uint32_t block, uint64_t hash)
{
	struct sink *s = m->s;
	unsigned i;

	for (i = 0; i < s->n_renamed; i++) {
		m->basis = renames_open(s->opts.renames, s->renamed[i]);
		if (s->n_renamed == 1 || (m->basis >= 0 && has_hash(m, m->basis, offset_of(m, block), block, hash)))
			break;
		dir_sys(s->dir)->close(&m->basis);
	}
	if (i < s->n_renamed)
		s->renamed[0] = s->renamed[i];
	s->n_renamed = i < s->n_renamed;
	s->basis_bytes = s->n_renamed > 0 ? s->basis_bytes : 0;
}

/* Another file may have the name since sink_inspect(): the hashes decide, such as `hash` of the block. */
static int open_basis(struct matching *m, uint32_t block, uint64_t hash, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(m->s->dir);
	struct stat st;
	int r;

	if (m->s->basis_bytes == 0)
		return 0;
	if (m->s->n_renamed > 0)
		open_renamed(m, block, hash);
	else if ((r = open_named(m, e, &m->basis)) < 0)
		return r;
	if (m->basis >= 0 && (sys->fstat(m->basis, &st) != 0 || !S_ISREG(st.st_mode) ||
	    dir_excludes(m->s->dir, st.st_dev, st.st_ino)))
		sys->close(&m->basis);
	if (m->basis >= 0 && sink_is_direct(m->s) && !direct_io_begin(sys, m->basis))
		sink_refuse_direct(m->s);
	m->basis_bytes = m->basis >= 0 ? (uint64_t)st.st_size : 0;
	return 0;
}

/* From m->buf to the part, as if the block had been received. */
static int put(struct matching *m, uint32_t block, uint64_t hash, struct ptcp_err *e)
{
	uint64_t off = (uint64_t)block * m->s->opts.block_bytes;
	uint32_t n = sink_block_length(m->s, block), at;
	int r;

	for (at = 0; n - at > HASH_CHUNK_BYTES; at += HASH_CHUNK_BYTES)
		if ((r = sink_write_chunk(m->s, m->buf + at, HASH_CHUNK_BYTES, off + at, e)) < 0)
			return r;
	return sink_write(m->s, m->buf + at, n - at, off + at, hash, e);
}

/* Matches the block of the part, or clears the block, since the source may have a hole. In place, blocks of a source
 * without holes keep their data until new data arrives. */
static int match_part(struct matching *m, uint32_t block, uint64_t hash, bool *good, struct ptcp_err *e)
{
	struct sink *s = m->s;
	uint64_t off = (uint64_t)block * s->opts.block_bytes;
	int fd, r;

	if ((r = sink_enter(s, false, &fd, e)) < 0)
		return r;
	if ((*good = has_hash(m, fd, off, block, hash)))
		journal_append(&s->journal, dir_sys(s->dir), block, hash);
	else if (!s->in_place || s->opts.sparse)
		r = sink_punch(s, fd, off, sink_block_length(s, block), e);
	sink_leave(s, *good ? off + sink_block_length(s, block) : 0);
	return r;
}

/* ---- Blocks at other offsets ---- */

/* In place, moved data would overwrite old data before the search. With a quota, pieces would count twice; direct I/O
 * does not write pieces. */
static bool may_search(const struct matching *m)
{
	const struct sink *s = m->s;

	return m->basis >= 0 && m->search->searched_bytes < m->search->allowed_bytes && !s->in_place &&
	    s->hold.q == NULL && !sink_is_direct(s) && s->opts.block_bytes == HASH_CHUNK_BYTES;
}

static ssize_t read_basis(void *arg, void *buf, size_t n, uint64_t off)
{
	struct matching *m = arg;

	return sink_get(m->s, m->basis, buf, n, off);
}

/* Finds the first of the blocks from `block` on, at *off between `from` and `to`; m->end: none. */
static int look_between(struct matching *m, uint32_t block, uint64_t from, uint64_t to, uint32_t *found,
    uint64_t *off, struct ptcp_err *e)
{
	struct search look = { .unit = m->sum + (block - m->first), .n = m->end - block, .one = true,
		.unit_bytes = m->s->opts.block_bytes, .last_bytes = sink_block_length(m->s, m->end - 1),
		.read = read_basis, .arg = m };
	uint64_t *at, scanned;
	uint32_t i;
	int r;

	look.n = look.n < SEARCH_UNITS_MAX ? look.n : SEARCH_UNITS_MAX;
	look.last_bytes = block + look.n < m->end ? look.unit_bytes : look.last_bytes;
	*found = m->end;
	if ((at = malloc(look.n * sizeof *at)) == NULL)
		return err_nomem(e);
	memset(at, 0xff, look.n * sizeof *at);
	r = search_file(&look, from, to, at, &scanned, e);
	m->search->searched_bytes += scanned;
	for (i = look.n; r == 0 && i-- > 0;)
		if (at[i] != SEARCH_NOWHERE) {
			*found = block + i;
			*off = at[i];
		}
	free(at);
	return r;
}

/* Of a few blocks, at the end of the known hashes, a search through the whole file would cost more than the blocks. */
static uint64_t allowance(const struct matching *m, uint32_t block, uint64_t most)
{
	uint64_t left = m->search->allowed_bytes - m->search->searched_bytes;
	uint64_t reach = SLACK_BYTES + REACH * (offset_of(m, m->end) - offset_of(m, block));

	if (m->search->allowed_bytes < UINT64_MAX && reach < left)
		left = reach;
	return left < most ? left : most;
}

/* The end of the last block found, or, behind blocks received without comparison, the place of `block`, roughly. */
static uint64_t begin_of(const struct matching *m, uint32_t block)
{
	const struct sink_moved *at = &m->s->moved;
	uint64_t there = offset_of(m, block) + (uint64_t)at->shift;

	there = there < m->basis_bytes ? there : m->basis_bytes;
	return there > at->at + SLACK_BYTES ? there - SLACK_BYTES : at->at < m->basis_bytes ? at->at : m->basis_bytes;
}

/* Looks for the block, and for the blocks behind with known sums, first behind the last block found, then before. The
 * place of the found block bounds the places of the blocks up to there. */
static int search(struct matching *m, uint32_t block, struct ptcp_err *e)
{
	struct sink_moved *at = &m->s->moved;
	uint64_t begin = begin_of(m, block), back, off = 0;
	uint32_t found;
	int r;

	if ((block >= at->gap_first && block < at->gap_end) || block < at->lost_end || !may_search(m))
		return 0;
	r = look_between(m, block, begin, begin + allowance(m, block, m->basis_bytes - begin), &found, &off, e);
	back = allowance(m, block, begin);
	if (r == 0 && found == m->end && back > 0)
		r = look_between(m, block, begin - back, begin, &found, &off, e);
	if (r < 0)
		return r;
	at->gap_first = block;
	at->gap_end = found;
	at->from = begin;
	at->to = begin + offset_of(m, found) - offset_of(m, block);
	if (found < m->end) {
		at->shift = (int64_t)(off - offset_of(m, found));
		at->to = off > begin ? off : at->to;
	} else {
		at->lost_end = m->end;
		at->to += SLACK_BYTES;
	}
	return 0;
}

/* The block is at this offset of the basis. */
static bool is_there(struct matching *m, uint64_t off, uint32_t block, uint64_t hash)
{
	uint32_t n = sink_block_length(m->s, block);

	return off <= m->basis_bytes && n <= m->basis_bytes - off && has_hash(m, m->basis, off, block, hash);
}

static void found_at(struct matching *m, uint64_t off, uint32_t block)
{
	struct sink_moved *at = &m->s->moved;

	at->shift = (int64_t)(off - offset_of(m, block));
	at->at = off + sink_block_length(m->s, block);
	at->lost_end = 0;
}

static int match(struct matching *m, uint32_t block, uint64_t hash, bool *good, struct ptcp_err *e)
{
	uint64_t own = offset_of(m, block), off = own + (uint64_t)m->s->moved.shift;
	bool own_known = false;
	int r;

	*good = false;
	if (m->cloned || (m->s->in_part != NULL && bitmap_has(m->s->in_part, block))) {
		if ((r = match_part(m, block, hash, good, e)) < 0)
			return r;
		own_known = m->cloned;
		if (*good) {
			if (m->cloned)
				found_at(m, own, block);
			return 0;
		}
	}
	if (m->basis < 0)
		return 0;
	if ((off == own && own_known) || !is_there(m, off, block, hash)) {
		off = own;
		if (m->s->moved.shift == 0 || own_known || !is_there(m, own, block, hash)) {
			if ((r = search(m, block, e)) < 0)
				return r;
			off = own + (uint64_t)m->s->moved.shift;
			if (off == own || block < m->s->moved.gap_end || !is_there(m, off, block, hash))
				return 0;
		}
	}
	if (off != own)
		m->search->found_bytes += sink_block_length(m->s, block);
	found_at(m, off, block);
	*good = true;
	return put(m, block, hash, e);
}

/* Where the file system shares blocks between files, the part receives blocks of the basis without a copy, and is
 * hashed. A quota would count replaced blocks twice. */
static int try_clone(struct matching *m, uint32_t first, uint32_t n, struct ptcp_err *e)
{
	struct sink *s = m->s;
	uint64_t off = (uint64_t)first * s->opts.block_bytes, bytes = (uint64_t)n * s->opts.block_bytes;
	int fd, r;

	if (bytes > s->size_bytes - off && s->basis_bytes == s->size_bytes) /* the ends of both can be shared */
		bytes = s->size_bytes - off;
	if (m->basis < 0 || s->not_cloned || s->moved.shift != 0 || s->in_part != NULL || s->hold.q != NULL ||
	    bytes > s->size_bytes - off)
		return 0;
	if ((r = sink_enter(s, false, &fd, e)) < 0)
		return r;
	m->cloned = dir_sys(s->dir)->clonerange(fd, m->basis, off, bytes) == 0;
	s->not_cloned = !m->cloned;
	sink_leave(s, m->cloned ? off + bytes : 0);
	return 0;
}

/* Part of the old file for pieces of a block of the gap, and of the rest of a step: all of the gap, or, of a large gap,
 * the same distance from the beginning or the end. */
static struct sink_run gap_run(const struct matching *m, uint32_t block)
{
	const struct sink_moved *at = &m->s->moved;
	uint64_t before = offset_of(m, block - at->gap_first), behind = offset_of(m, at->gap_end - block);
	struct sink_run run = { .first = block, .n = 1, .from = at->from, .to = at->to };

	if (run.to - run.from <= GAP_BYTES)
		return run;
	if (before <= behind)
		run.from += before > SLACK_BYTES ? before - SLACK_BYTES : 0;
	else if (run.to - run.from > behind + SLACK_BYTES)
		run.from = run.to - behind - SLACK_BYTES;
	run.from = run.from < run.to ? run.from : run.to;
	run.to = run.to - run.from > GAP_BYTES ? run.from + GAP_BYTES : run.to;
	return run;
}

/* Neither a block of this file, nor the end of the gap, nor a piece of an earlier gap has been found: pieces would cost
 * two round trips and a second search, which --delta on permits. */
static bool is_unrelated(const struct matching *m)
{
	const struct sink_moved *at = &m->s->moved;

	return at->at == 0 && at->no_pieces && at->gap_end == m->end && m->search->allowed_bytes < UINT64_MAX;
}

/* A bad block; pieces may be found. */
static void add_bad_run(struct matching *m, struct sink_run *runs, unsigned *n_runs, uint32_t block)
{
	const struct sink_moved *at = &m->s->moved;
	struct sink_run *last = *n_runs > 0 ? &runs[*n_runs - 1] : NULL;

	if (block < at->gap_first || block >= at->gap_end || at->from >= at->to || is_unrelated(m) || !may_search(m))
		sink_add_run(runs, n_runs, block, false, NULL);
	else if (last != NULL && last->to > 0 && last->first >= at->gap_first && block == last->first + last->n)
		last->n++;
	else
		runs[(*n_runs)++] = gap_run(m, block);
}

int sink_match(struct sink *s, uint32_t first, uint32_t n, uint32_t ahead, const struct block_sum *sum,
    struct sink_search *search, struct sink_run runs[SINK_RUNS], unsigned *n_runs, struct ptcp_err *e)
{
	struct matching m = { .s = s, .basis = -1, .buf = direct_io_memory(s->opts.block_bytes), .search = search,
		.sum = sum, .first = first, .end = first + ahead };
	struct digest term;
	uint32_t i;
	bool good;
	int r;

	*n_runs = 0;
	if (m.buf == NULL)
		return err_nomem(e);
	if ((r = open_basis(&m, first, sum[0].content, e)) == 0)
		r = try_clone(&m, first, n, e);
	for (i = 0; i < n && r == 0; i++) {
		if ((r = match(&m, first + i, sum[i].content, &good, e)) < 0)
			break;
		term = hash_term(first + i, sink_block_length(s, first + i), sum[i].content);
		if (good)
			sink_add_run(runs, n_runs, first + i, true, &term);
		else
			add_bad_run(&m, runs, n_runs, first + i);
	}
	dir_sys(s->dir)->close(&m.basis);
	free(m.buf);
	return r;
}

/* ---- Pieces ---- */

/* Length of the run of pieces from `piece` on, up to `n`, in the order of the block in the basis, too. */
static uint32_t run_bytes(const uint64_t *found, uint32_t piece, uint32_t n, uint32_t bytes)
{
	uint32_t i;

	for (i = piece + 1; i < n && found[i] == found[i - 1] + HASH_PIECE_BYTES; i++)
		;
	return i < n ? (i - piece) * HASH_PIECE_BYTES : bytes - piece * HASH_PIECE_BYTES;
}

/* Copies n bytes at `from` of the basis, pieces with these sums, to `off` of the part. 1: the basis has changed. */
static int copy_pieces(struct matching *m, const struct block_sum *sum, uint64_t from, uint32_t n, uint64_t off,
    struct ptcp_err *e)
{
	uint32_t at, piece;

	if (sink_get(m->s, m->basis, m->buf, n, from) != (ssize_t)n)
		return 1;
	for (at = 0; at < n; at += piece) {
		piece = n - at < HASH_PIECE_BYTES ? n - at : HASH_PIECE_BYTES;
		if (hash_content(m->buf + at, piece) != sum[at / HASH_PIECE_BYTES].content)
			return 1;
	}
	return sink_write_chunk(m->s, m->buf, n, off, e);
}

/* The first pieces say where the neighbors are. */
static void found_pieces(struct matching *m, uint64_t at, uint32_t n, uint64_t off)
{
	struct sink_moved *moved = &m->s->moved;

	m->search->found_bytes += n;
	if (moved->at > 0)
		return;
	moved->shift = (int64_t)(at - off);
	moved->at = at + n;
}

static int put_pieces(struct matching *m, uint32_t block, const struct block_sum *sum, const uint64_t *found,
    uint64_t *has, struct ptcp_err *e)
{
	uint32_t bytes = sink_block_length(m->s, block), n = (bytes + HASH_PIECE_BYTES - 1) / HASH_PIECE_BYTES;
	uint32_t i, run, all;
	uint64_t off;
	int r;

	*has = 0;
	for (i = 0; i < n; i += run) {
		run = 1;
		if (found[i] == SEARCH_NOWHERE)
			continue;
		all = run_bytes(found, i, n, bytes);
		run = (all + HASH_PIECE_BYTES - 1) / HASH_PIECE_BYTES;
		off = offset_of(m, block) + (uint64_t)i * HASH_PIECE_BYTES;
		if ((r = copy_pieces(m, sum + i, found[i], all, off, e)) < 0)
			return r;
		if (r > 0)
			continue;
		*has |= (run < 64 ? (UINT64_C(1) << run) - 1 : UINT64_MAX) << i;
		found_pieces(m, found[i], all, off);
	}
	return 0;
}

static int split(struct matching *m, uint32_t n, uint64_t from, uint64_t to, uint64_t *found, uint64_t *has,
    struct ptcp_err *e)
{
	struct search look = { .unit = m->sum, .unit_bytes = HASH_PIECE_BYTES, .read = read_basis, .arg = m };
	uint32_t i, per = HASH_CHUNK_BYTES / HASH_PIECE_BYTES, last = sink_block_length(m->s, m->first + n - 1);
	int r;

	look.n = (n - 1) * per + (last + HASH_PIECE_BYTES - 1) / HASH_PIECE_BYTES;
	look.last_bytes = last % HASH_PIECE_BYTES > 0 ? last % HASH_PIECE_BYTES : HASH_PIECE_BYTES;
	memset(found, 0xff, look.n * sizeof *found);
	to = to < m->basis_bytes ? to : m->basis_bytes;
	if ((r = search_file(&look, from, to, found, &m->search->searched_bytes, e)) < 0)
		return r;
	for (i = 0; i < n && r == 0; i++)
		r = put_pieces(m, m->first + i, m->sum + i * per, found + i * per, &has[i], e);
	m->s->moved.no_pieces = m->search->found_bytes == 0;
	return r;
}

int sink_split(struct sink *s, uint32_t first, uint32_t n, const struct block_sum *sum, uint64_t from, uint64_t to,
    uint64_t has[SINK_SPLIT], struct sink_search *search, struct ptcp_err *e)
{
	struct matching m = { .s = s, .basis = -1, .buf = direct_io_memory(s->opts.block_bytes), .search = search,
		.sum = sum, .first = first, .end = first + n };
	uint64_t *found = malloc(SEARCH_UNITS_MAX * sizeof *found);
	int r = 0;

	memset(has, 0, SINK_SPLIT * sizeof *has);
	if (m.buf == NULL || found == NULL)
		r = err_nomem(e);
	else if ((r = open_basis(&m, first, 0, e)) == 0 && may_search(&m))
		r = split(&m, n, from, to, found, has, e);
	dir_sys(s->dir)->close(&m.basis);
	free(found);
	free(m.buf);
	return r;
}

int sink_recall(struct sink *s, void *buf, size_t n, uint64_t off, struct ptcp_err *e)
{
	int fd = sink_enter_open(s);
	ssize_t got;

	if (fd < 0)
		return fs_err_set(e, PTCP_ECANCELED, 0, s->dir, s->name,
		    "read back after its completion or cancellation");
	got = sink_get(s, fd, buf, n, off);
	sink_leave(s, 0);
	return got == (ssize_t)n ? 0 : fs_err_sys(e, got < 0 ? errno : EIO, s->dir, s->name, "cannot read");
}
