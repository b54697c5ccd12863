#include "net/spool.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/fd.h"
#include "core/text.h"

/* Positions count from 0; file offsets are positions modulo `size`. The grains from grain_of(from) to `end` are
 * allocated. */
struct spool {
	int fd;
	uint64_t size;               /* whole grains */
	uint64_t from, to, end;      /* oldest byte, next byte to write, end of the space; from <= to <= end */
	struct spool_quota *quota;
};

static bool quota_take(struct spool_quota *r, uint64_t bytes)
{
	uint64_t was;

	if (r == NULL)
		return true;
	was = atomic_fetch_add(&r->used_bytes, bytes);
	if (bytes <= r->max_bytes && was <= r->max_bytes - bytes && quota_take(r->parent, bytes))
		return true;
	atomic_fetch_sub(&r->used_bytes, bytes);
	return false;
}

static void quota_give(struct spool_quota *r, uint64_t bytes)
{
	for (; r != NULL; r = r->parent)
		atomic_fetch_sub(&r->used_bytes, bytes);
}

static int punch(int fd, uint64_t at)
{
	return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at, SPOOL_GRAIN);
}

static int open_unlinked(const char *dir)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof path, "%s/ptcp-relay.XXXXXX", dir);
	if ((fd = mkostemp(path, O_CLOEXEC)) >= 0)
		unlink(path);
	return fd;
}

int spool_check(const char *dir, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	int fd = open_unlinked(dir), r = 0;

	text_escape(shown, sizeof shown, dir);
	if (fd < 0)
		return err_sys(e, PTCP_ECONFIG, "creating a file in %s", shown);
	if (write(fd, "", 1) != 1 || punch(fd, 0) < 0)
		r = err_sys(e, PTCP_ECONFIG, "releasing space of a file in %s (choose another file system)", shown);
	fd_close(&fd);
	return r;
}

int spool_new(struct spool **out, const char *dir, uint64_t max_bytes, struct spool_quota *quota, struct ptcp_err *e)
{
	struct spool *s = calloc(1, sizeof *s);
	char shown[TEXT_NAME_BYTES];

	if (s == NULL)
		return err_nomem(e);
	*s = (struct spool){ .fd = open_unlinked(dir), .quota = quota,
	    .size = max_bytes > SPOOL_GRAIN ? max_bytes - max_bytes % SPOOL_GRAIN : SPOOL_GRAIN };
	if (s->fd < 0) {
		free(s);
		return err_sys(e, PTCP_EIO, "creating a file in %s", text_escape(shown, sizeof shown, dir));
	}
	*out = s;
	return 0;
}

static uint64_t grain_of(uint64_t at) { return at - at % SPOOL_GRAIN; }

void spool_free(struct spool *s)
{
	if (s == NULL)
		return;
	fd_close(&s->fd);
	quota_give(s->quota, s->end - grain_of(s->from));
	free(s);
}

int spool_fd(const struct spool *s) { return s->fd; }
uint64_t spool_bytes(const struct spool *s) { return s->to - s->from; }

size_t spool_room(struct spool *s, off_t *at)
{
	if (s->to == s->end) {
		if (s->end - grain_of(s->from) >= s->size || !quota_take(s->quota, SPOOL_GRAIN))
			return 0;
		s->end += SPOOL_GRAIN;
	}
	*at = (off_t)(s->to % s->size);
	return (size_t)(s->end - s->to);
}

void spool_wrote(struct spool *s, size_t n)
{
	assert(n <= s->end - s->to);
	s->to += n;
}

size_t spool_oldest(const struct spool *s, off_t *at)
{
	uint64_t place = s->from % s->size, n = s->to - s->from;

	*at = (off_t)place;
	return (size_t)(n < s->size - place ? n : s->size - place);
}

/* Returns the quota even on failure: the caller then frees the spool. */
static int release(struct spool *s, uint64_t at, uint64_t until)
{
	int r = 0;

	for (; at < until; at += SPOOL_GRAIN) {
		if (r == 0)
			r = punch(s->fd, at % s->size);
		quota_give(s->quota, SPOOL_GRAIN);
	}
	return r;
}

int spool_read(struct spool *s, size_t n)
{
	uint64_t before = grain_of(s->from);

	assert(n <= s->to - s->from);
	s->from += n;
	return release(s, before, grain_of(s->from));
}

int spool_reset(struct spool *s)
{
	uint64_t before = grain_of(s->from), end = s->end;

	assert(s->from == s->to);
	s->from = s->to = s->end = 0;
	return release(s, before, end);
}
