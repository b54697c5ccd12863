/* Parts that several hosts write, on a shared file system. */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "fs/file_system.h"
#include "fs/fs_err.h"
#include "store/sink_impl.h"

static_assert(SINK_PART_BYTES == PART_NAME_BYTES, "sink_part()");

int sink_open(struct sink *s, struct ptcp_err *e)
{
	int at, r = 0;

	if ((at = dir_fd(s->dir, e)) < 0)
		return at;
	pthread_mutex_lock(&s->lock);
	if (s->state == SINK_OPEN && s->part.fd < 0)
		/* a new inode: a host of an earlier run may still have the old one open */
		r = sink_open_part(s, at, true, e);
	pthread_mutex_unlock(&s->lock);
	dir_fd_done(s->dir);
	return r;
}

const char *sink_part(const struct sink *s, char *out) { return part_name(out, s->key, PART_SUFFIX); }

struct dir *sink_dir(const struct sink *s) { return s->dir; }
uint64_t sink_size(const struct sink *s) { return s->size_bytes; }
bool sink_is_sparse(const struct sink *s) { return s->opts.sparse; }
bool sink_is_in_place(const struct sink *s) { return s->in_place; }

bool sink_is_part(const char *name)
{
	size_t n = strlen(name), end = strlen(PART_SUFFIX);

	return part_is_own_name(name) && n > end && strcmp(name + n - end, PART_SUFFIX) == 0;
}

int sink_wrote(struct sink *s, uint32_t block, uint64_t hash, struct ptcp_err *e)
{
	int fd = sink_enter_open(s), r;

	if (fd < 0)
		return fs_err_set(e, PTCP_ECANCELED, 0, s->dir, s->name,
		    "written to after its completion or cancellation");
	if ((r = quota_store(&s->hold, sink_block_length(s, block), e)) == 0 && sink_has_journal(s))
		journal_append(&s->journal, dir_sys(s->dir), block, hash);
	sink_leave(s, 0);
	return r;
}

/* ---- On another host ---- */

void sink_join(struct sink *s, uint64_t ino)
{
	assert(ino != 0 && s->part.fd < 0);
	s->join_ino = ino;
}

bool sink_is_late(const struct sink *s, const struct ptcp_err *why)
{
	const struct sink_lease *l = s->opts.lease;

	return s->join_ino != 0 && !sink_is_open(s) && (why->sys == ENOENT || why->sys == ESTALE) &&
	    (l == NULL || mono_now().ns < atomic_load(&l->until_ns));
}

/* 0, or an errno. Closing a duplicate has a network file system write back what is in its cache. */
static int flush(const struct sys *sys, int fd, bool durable)
{
	int copy;

	if (durable)
		return sys->fdatasync(fd) == 0 || fs_cannot(ABILITY_SYNC, errno) ? 0 : errno;
	copy = sys->dup(fd);
	return copy >= 0 ? sys->close(&copy) : errno;
}

int sink_flush(struct sink *s, bool durable, struct ptcp_err *e)
{
	int fd = sink_enter_open(s), error, r = 0;

	if (fd < 0)
		return 0;
	if ((error = flush(dir_sys(s->dir), fd, durable)) != 0)
		r = fs_err_sys(e, error, s->dir, s->name, "cannot sync");
	sink_leave(s, 0);
	return r;
}

/* As in store_complete(): a descriptor reports failures since its opening, hence the part that was opened first. */
bool sink_flush_all(struct sink *const *of, unsigned n)
{
	struct sink *first = of[0];
	unsigned i;
	bool ok;
	int fd;

	if (!sink_syncfs_reports())
		return false;
	for (i = 1; i < n; i++) {
		if (atomic_load(&of[i]->part_dev) != atomic_load(&first->part_dev))
			return false;
		if (of[i]->part_number < first->part_number)
			first = of[i];
	}
	if ((fd = sink_enter_open(first)) < 0)
		return false;
	ok = dir_sys(first->dir)->syncfs(fd) == 0;
	sink_leave(first, 0);
	return ok;
}

void sink_rest(struct sink *s)
{
	pthread_mutex_lock(&s->lock);
	if (s->join_ino != 0 && s->writers == 0) {
		sink_close(s);
		atomic_store(&s->part_opened, false);
	}
	pthread_mutex_unlock(&s->lock);
}

void sink_part_with(struct sink *s)
{
	pthread_mutex_lock(&s->lock);
	sink_stop_writers(s, SINK_DONE);
	sink_close(s);
	pthread_mutex_unlock(&s->lock);
}
