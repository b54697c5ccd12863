/* Direct I/O of a sink: fs/direct_io.h. */
#include <errno.h>

#include "fs/fs_err.h"
#include "store/sink_impl.h"

bool sink_wants_direct(const struct sink *s)
{
	return s->opts.direct_io != NULL && s->size_bytes > DIRECT_IO_FILE_BYTES;
}

bool sink_is_direct(const struct sink *s)
{
	return sink_wants_direct(s) && !atomic_load_explicit(&s->not_direct, memory_order_relaxed);
}

void sink_refuse_direct(struct sink *s)
{
	atomic_store(&s->not_direct, true);
	direct_io_refuse(s->opts.direct_io, s->dir, s->name);
}

bool sink_begin_direct(struct sink *s)
{
	if (!sink_is_direct(s))
		return false;
	if (direct_io_begin(dir_sys(s->dir), s->part.fd))
		return true;
	sink_refuse_direct(s);
	return false;
}

/* The file system allocates under the lock of the inode: direct writes of several threads overlap only in space that is
 * there (ext4: twice the speed). A quota counts what is written, so a part that was cut off must not occupy more. */
static int allocate(struct sink *s, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(s->dir);
	int error;

	if (s->opts.sparse || s->opts.unsized || s->hold.q != NULL || sys->fallocate(s->part.fd, 0, 0,
	    (off_t)s->size_bytes) == 0)
		return 0;
	error = errno;
	sys->ftruncate(s->part.fd, (off_t)s->end_bytes); /* gives back what it got of a full disk */
	return error == ENOSPC || error == EDQUOT ? fs_err_sys(e, error, s->dir, s->name, "cannot write") : 0;
}

int sink_begin_direct_alone(struct sink *s, struct ptcp_err *e) { return sink_begin_direct(s) ? allocate(s, e) : 0; }

int sink_put(struct sink *s, int fd, const void *buf, size_t n, uint64_t off)
{
	const struct sys *sys = dir_sys(s->dir);
	int error;

	if (!sink_is_direct(s))
		return sys_write_all(sys, fd, buf, n, off);
	if (!direct_io_is_refusal(error = direct_io_write(sys, fd, buf, n, off)))
		return error;
	direct_io_end(sys, fd);
	sink_refuse_direct(s);
	return sys_write_all(sys, fd, buf, n, off);
}

ssize_t sink_get(struct sink *s, int fd, void *buf, size_t n, uint64_t off)
{
	const struct sys *sys = dir_sys(s->dir);
	ssize_t got;

	if (!sink_is_direct(s))
		return sys_read_all(sys, fd, buf, n, off);
	if ((got = direct_io_read(sys, fd, buf, n, off)) >= 0 || !direct_io_is_refusal(errno))
		return got;
	direct_io_end(sys, fd);
	sink_refuse_direct(s);
	return sys_read_all(sys, fd, buf, n, off);
}
