/* Blocks of the source in the part of another version, or in the file to be replaced: sink_match(). */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/bitmap.h"
#include "fs/fs_err.h"
#include "store/hash.h"
#include "store/sink_impl.h"

/* Work on one call of sink_match(). */
struct matching {
	struct sink *s;
	int basis;       /* the file to be replaced; -1: none */
	uint8_t *buf;    /* a block */
	bool cloned;     /* the part shares the blocks with the basis */
};

/* Reads the block into m->buf; true if the hash is equal. */
static bool has_hash(struct matching *m, int fd, uint32_t block, uint64_t hash)
{
	uint64_t off = (uint64_t)block * m->s->opts.block_bytes;
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
		if (s->n_renamed == 1 || (m->basis >= 0 && has_hash(m, m->basis, block, hash)))
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
	if ((*good = has_hash(m, fd, block, hash)))
		journal_append(&s->journal, dir_sys(s->dir), block, hash);
	else if (!s->in_place || s->opts.sparse)
		r = sink_punch(s, fd, off, sink_block_length(s, block), e);
	sink_leave(s, *good ? off + sink_block_length(s, block) : 0);
	return r;
}

static int match(struct matching *m, uint32_t block, uint64_t hash, bool *good, struct ptcp_err *e)
{
	int r;

	*good = false;
	if (m->cloned || (m->s->in_part != NULL && bitmap_has(m->s->in_part, block))) {
		if ((r = match_part(m, block, hash, good, e)) < 0 || *good)
			return r;
	}
	if (m->cloned || m->basis < 0 || !has_hash(m, m->basis, block, hash))
		return 0;
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
	if (m->basis < 0 || s->not_cloned || s->in_part != NULL || s->hold.q != NULL || bytes > s->size_bytes - off)
		return 0;
	if ((r = sink_enter(s, false, &fd, e)) < 0)
		return r;
	m->cloned = dir_sys(s->dir)->clonerange(fd, m->basis, off, bytes) == 0;
	s->not_cloned = !m->cloned;
	sink_leave(s, m->cloned ? off + bytes : 0);
	return 0;
}

int sink_match(struct sink *s, uint32_t first, uint32_t n, const uint64_t *hash, struct sink_run runs[SINK_RUNS],
    unsigned *n_runs, struct ptcp_err *e)
{
	struct matching m = { .s = s, .basis = -1, .buf = direct_io_memory(s->opts.block_bytes) };
	struct digest term;
	uint32_t i;
	bool good;
	int r;

	*n_runs = 0;
	if (m.buf == NULL)
		return err_nomem(e);
	if ((r = open_basis(&m, first, hash[0], e)) == 0)
		r = try_clone(&m, first, n, e);
	for (i = 0; i < n && r == 0; i++) {
		if ((r = match(&m, first + i, hash[i], &good, e)) < 0)
			break;
		term = hash_term(first + i, sink_block_length(s, first + i), hash[i]);
		sink_add_run(runs, n_runs, first + i, good, &term);
	}
	dir_sys(s->dir)->close(&m.basis);
	free(m.buf);
	return r;
}
