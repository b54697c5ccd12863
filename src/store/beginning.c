/* The beginning of a file whose transfer failed, under a name of its own: sink_keep_beginning(). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/file_system.h"
#include "fs/fs_err.h"
#include "store/sink_impl.h"

#define NAME_MAX_BYTES 255

/* The part is truncated before it is renamed: after a crash in between no file is longer than its verified data. */
static int publish(struct sink *s, int at, uint64_t bytes, const char *name, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(s->dir);
	int r;

	if (sys->ftruncate(s->part.fd, (off_t)bytes) != 0 ||
	    sys->fchmod(s->part.fd, dir_new_mode(s->dir, s->meta.mode)) != 0 ||
	    (sys->fsync(s->part.fd) != 0 && !fs_cannot(ABILITY_SYNC, errno)))
		return fs_err_sys(e, errno, s->dir, name, "cannot keep the beginning");
	if ((r = sink_rename_part(s, at, name, e)) != 0)
		return r;
	s->named = true;
	quota_complete(&s->hold, bytes);
	dir_changed(s->dir);
	return dir_sync(s->dir, e);
}

static int keep(struct sink *s, uint64_t bytes, struct ptcp_err *e)
{
	char name[NAME_MAX_BYTES + sizeof SINK_PARTIAL_SUFFIX];
	int at, r;

	if (s->part.fd < 0 || s->sync_errno != 0 || bytes == 0)
		return fs_err_set(e, PTCP_EIO, 0, s->dir, s->name, "nothing was written");
	if (strlen(s->name) + strlen(SINK_PARTIAL_SUFFIX) > NAME_MAX_BYTES)
		return fs_err_sys(e, ENAMETOOLONG, s->dir, s->name, "cannot keep the beginning");
	snprintf(name, sizeof name, "%s%s", s->name, SINK_PARTIAL_SUFFIX);
	if ((at = dir_fd(s->dir, e)) < 0)
		return at;
	r = publish(s, at, bytes, name, e);
	dir_fd_done(s->dir);
	return r;
}

int sink_keep_beginning(struct sink *s, uint64_t bytes, struct ptcp_err *e)
{
	int r;

	pthread_mutex_lock(&s->lock);
	sink_stop_writers(s, SINK_DONE);
	r = keep(s, bytes, e);
	pthread_mutex_unlock(&s->lock);
	sink_discard(s); /* closes the part; removes it unless it has the name */
	return r;
}
