#include "store/sink.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/text.h"
#include "store/fail.h"
#include "store/part.h"

enum sink_state {
	SINK_OPEN, /* may be written to; fd may still be -1 */
	SINK_DONE, /* committed or discarded, or about to be: no more writes */
};

struct sink {
	struct dir *dir;
	uint64_t size_bytes;
	struct meta meta;
	atomic_uint refs;
	/* Taken twice a block, some 20 ns each against the microseconds of the write:
	 * it makes sure that nobody writes to a descriptor that another has closed. */
	pthread_mutex_t lock;
	enum sink_state state;
	int fd;
	unsigned writers;
	pthread_cond_t idle; /* writers is 0 */
	uint64_t end_bytes; /* the furthest byte written */
	char name[];
};

static atomic_uint open_count;

struct sink *sink_new(struct dir *dir, const char *name, uint64_t size_bytes, const struct meta *m)
{
	size_t n = strlen(name);
	struct sink *s;

	assert(text_name_ok(name, n));
	if ((s = malloc(sizeof *s + n + 1)) == NULL)
		return NULL;
	*s = (struct sink){ .dir = dir_ref(dir), .size_bytes = size_bytes, .meta = *m, .fd = -1 };
	atomic_init(&s->refs, 1);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->idle, NULL);
	memcpy(s->name, name, n + 1);
	return s;
}

struct sink *sink_ref(struct sink *s)
{
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
	return s;
}

static void close_part(struct sink *s)
{
	if (s->fd < 0)
		return;
	dir_sys(s->dir)->close(s->fd);
	s->fd = -1;
	atomic_fetch_sub(&open_count, 1);
}

void sink_unref(struct sink *s)
{
	if (s == NULL || atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	close_part(s);
	dir_unref(s->dir);
	pthread_cond_destroy(&s->idle);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

const char *sink_path_text(const struct sink *s, char *out, size_t cap)
{
	return dir_path_text(s->dir, s->name, out, cap);
}

unsigned sink_open_count(void)
{
	return atomic_load(&open_count);
}

/* With s->lock held, and the directory open at `at`. `whole`: one write is all. */
static int open_part(struct sink *s, int at, bool whole, struct ptcp_err *e)
{
	int fd = part_open(s->dir, at, s->name, !whole, e);

	if (fd < 0)
		return fd;
	s->fd = fd;
	atomic_fetch_add(&open_count, 1);
	return 0;
}

static bool enough_open(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 && atomic_load(&open_count) >= limit.rlim_cur / 2;
}

/* A descriptor to write to, until leave(). */
static int enter(struct sink *s, bool whole, int *fd, struct ptcp_err *e)
{
	int r = 0, at;

	pthread_mutex_lock(&s->lock);
	if (s->state == SINK_DONE) {
		r = fail_why(e, PTCP_ECANCELED, 0, s->dir, s->name,
		    "written to after it was complete or given up");
	} else if (s->fd < 0 && enough_open()) {
		r = STORE_AGAIN;
	} else if (s->fd < 0) {
		if ((at = dir_fd(s->dir, e)) < 0) {
			r = at;
		} else {
			r = open_part(s, at, whole, e);
			dir_fd_done(s->dir);
		}
	}
	if (r == 0) {
		s->writers++;
		*fd = s->fd;
	}
	pthread_mutex_unlock(&s->lock);
	return r;
}

static void leave(struct sink *s, uint64_t end_bytes)
{
	pthread_mutex_lock(&s->lock);
	if (end_bytes > s->end_bytes)
		s->end_bytes = end_bytes;
	if (--s->writers == 0 && s->state == SINK_DONE)
		pthread_cond_signal(&s->idle);
	pthread_mutex_unlock(&s->lock);
}

int sink_write(struct sink *s, const void *buf, size_t n, uint64_t off, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(s->dir);
	const char *p = buf;
	size_t done = 0;
	ssize_t w;
	int fd, r;

	assert(off <= s->size_bytes && n <= s->size_bytes - off);
	if ((r = enter(s, off == 0 && n == s->size_bytes, &fd, e)) != 0)
		return r;
	while (done < n && r == 0) {
		w = sys->pwrite(fd, p + done, n - done, (off_t)(off + done));
		if (w > 0)
			done += (size_t)w;
		else if (w == 0)
			r = fail_sys(e, EIO, s->dir, s->name, "cannot write");
		else if (errno != EINTR)
			r = fail_sys(e, errno, s->dir, s->name, "cannot write");
	}
	leave(s, off + done);
	return r;
}

/* The owner of a file may change its mode and times unless the file system has
 * none (vfat, some network shares): then there is nothing to set. */
static bool cannot_hold(int sys)
{
	return sys == EPERM || sys == EOPNOTSUPP || sys == ENOSYS;
}

static int set_meta(struct sink *s, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(s->dir);
	struct timespec ts[2] = { { .tv_nsec = UTIME_OMIT }, s->meta.mtime };
	mode_t mode = s->meta.set_mode ? s->meta.mode & 0777 : 0666 & ~dir_umask(s->dir);

	if (s->end_bytes != s->size_bytes && sys->ftruncate(s->fd, (off_t)s->size_bytes) != 0)
		return fail_sys(e, errno, s->dir, s->name, "cannot set its length");
	if (sys->fchmod(s->fd, mode) != 0 && !cannot_hold(errno))
		return fail_sys(e, errno, s->dir, s->name, "cannot set its mode");
	if (s->meta.set_mtime && sys->futimens(s->fd, ts) != 0 && !cannot_hold(errno))
		return fail_sys(e, errno, s->dir, s->name, "cannot set its times");
	return 0;
}

/* A network file system may report a failed write only when a descriptor is
 * closed, and ours has to stay open, for its lock, until the file is renamed. */
static int flush(struct sink *s, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(s->dir);
	int fd = sys->dup(s->fd);

	if (fd < 0 || sys->close(fd) != 0)
		return fail_sys(e, errno, s->dir, s->name, "cannot finish writing");
	return 0;
}

/* With s->lock held: what is being written gets done (a copy of a block may come late, and would
 * change the times that are about to be set), and nothing follows. */
static void stop_writers(struct sink *s)
{
	s->state = SINK_DONE;
	while (s->writers > 0)
		pthread_cond_wait(&s->idle, &s->lock);
}

int sink_commit(struct sink *s, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(s->dir);
	char part[PART_NAME_BYTES];
	int at, r = 0;

	if ((at = dir_fd(s->dir, e)) < 0)
		return at;
	pthread_mutex_lock(&s->lock);
	assert(s->state == SINK_OPEN);
	stop_writers(s);
	part_name(part, s->name, PART_SUFFIX);
	if (s->fd < 0)
		r = open_part(s, at, s->size_bytes == 0, e);
	if (r == 0 && (r = set_meta(s, e)) == 0 && (r = flush(s, e)) == 0 &&
	    (r = fail_unless_replaceable(e, at, s->dir, s->name)) == 0) {
		if (sys->renameat(at, part, at, s->name) != 0) {
			r = fail_sys(e, errno, s->dir, s->name,
			    "cannot give the file its final name");
		} else {
			close_part(s);
		}
	}
	if (r < 0)
		s->state = SINK_OPEN;
	pthread_mutex_unlock(&s->lock);
	dir_fd_done(s->dir);
	return r;
}

void sink_discard(struct sink *s)
{
	char part[PART_NAME_BYTES];
	int at;

	pthread_mutex_lock(&s->lock);
	stop_writers(s);
	/* The lock on what fd is makes the name ours; a committed file has none. */
	if (s->fd >= 0 && (at = dir_fd(s->dir, NULL)) >= 0) {
		dir_sys(s->dir)->unlinkat(at, part_name(part, s->name, PART_SUFFIX), 0);
		dir_fd_done(s->dir);
	}
	close_part(s);
	pthread_mutex_unlock(&s->lock);
}

bool sink_give_up(struct sink *s)
{
	bool nothing;

	if (pthread_mutex_trylock(&s->lock) != 0)
		return false; /* somebody is opening it */
	if ((nothing = s->fd < 0 && s->writers == 0))
		s->state = SINK_DONE;
	pthread_mutex_unlock(&s->lock);
	return nothing;
}

bool sink_is_own_name(const char *name)
{
	static const char *const suffixes[] = { PART_SUFFIX, PART_LINK_SUFFIX, PART_JOURNAL_SUFFIX,
		PART_DIR_SUFFIX };
	size_t i;

	if (strncmp(name, ".ptcp-", 6) != 0 || strspn(name + 6, "0123456789abcdef") != 16)
		return false;
	for (i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
		if (strcmp(name + 6 + 16, suffixes[i]) == 0)
			return true;
	return false;
}
