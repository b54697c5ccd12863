#include "fs/direct_io.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t round_up(uint64_t n) { return (size_t)((n + DIRECT_IO_BYTES - 1) / DIRECT_IO_BYTES * DIRECT_IO_BYTES); }
static bool is_aligned(uint64_t n) { return n % DIRECT_IO_BYTES == 0; }

bool direct_io_report(struct direct_io *t)
{
	int refused = DIRECT_IO_REFUSED;

	return atomic_compare_exchange_strong(&t->refused, &refused, DIRECT_IO_REPORTED);
}

void direct_io_refuse(struct direct_io *t, const struct dir *d, const char *name)
{
	int accepted = DIRECT_IO_ACCEPTED;

	if (!atomic_compare_exchange_strong(&t->refused, &accepted, DIRECT_IO_NAMING))
		return;
	dir_path_raw(d, name, t->path, sizeof t->path);
	atomic_store(&t->refused, DIRECT_IO_REFUSED);
}

/* Some file systems accept the flag, and use the page cache nevertheless: the kernel reports an alignment of 0. */
bool direct_io_begin(const struct sys *sys, int fd)
{
	uint32_t memory, offset;

	if (sys->dioalign(fd, &memory, &offset) == 0 &&
	    (offset == 0 || memory > DIRECT_IO_BYTES || offset > DIRECT_IO_BYTES))
		return false;
	return sys->setdirect(fd, true) == 0;
}

void direct_io_end(const struct sys *sys, int fd) { sys->setdirect(fd, false); }

bool direct_io_is_refusal(int error) { return error == EINVAL || error == EOPNOTSUPP; }

void *direct_io_memory(size_t n) { return aligned_alloc(DIRECT_IO_BYTES, round_up(n > 0 ? n : 1)); }

/* A short read that ends anywhere may be the end of the file: reading the last unit again tells. */
static ssize_t read_aligned(const struct sys *sys, int fd, uint8_t *buf, size_t n, uint64_t off)
{
	size_t done = 0, at, end;
	ssize_t got;

	while (done < n) {
		at = done / DIRECT_IO_BYTES * DIRECT_IO_BYTES;
		struct iovec v = { buf + at, n - at };

		if ((got = sys->preadv2(fd, &v, 1, (off_t)(off + at), 0)) < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if ((end = at + (size_t)got) <= done)
			break;
		done = end;
	}
	return (ssize_t)done;
}

ssize_t direct_io_read(const struct sys *sys, int fd, void *buf, size_t n, uint64_t off)
{
	uint64_t from = off / DIRECT_IO_BYTES * DIRECT_IO_BYTES;
	size_t lead = (size_t)(off - from), whole = round_up(lead + n);
	uint8_t *room;
	ssize_t got;

	if (lead == 0 && whole == n && is_aligned((uintptr_t)buf))
		return read_aligned(sys, fd, buf, n, off);
	if ((room = direct_io_memory(whole)) == NULL) {
		errno = ENOMEM;
		return -1;
	}
	if ((got = read_aligned(sys, fd, room, whole, from)) >= 0) {
		got = (size_t)got < lead ? 0 : (size_t)got - lead < n ? got - (ssize_t)lead : (ssize_t)n;
		memcpy(buf, room + lead, (size_t)got);
	}
	free(room);
	return got;
}

int direct_io_write(const struct sys *sys, int fd, const void *buf, size_t n, uint64_t off)
{
	size_t whole = is_aligned((uintptr_t)buf) ? n - n % DIRECT_IO_BYTES : 0, rest = n - whole;
	uint8_t *room;
	int error = 0;

	assert(is_aligned(off));
	if (whole > 0)
		error = sys_write_all(sys, fd, buf, whole, off);
	if (error != 0 || rest == 0)
		return error;
	if ((room = direct_io_memory(rest)) == NULL)
		return ENOMEM;
	memcpy(room, (const uint8_t *)buf + whole, rest);
	memset(room + rest, 0, round_up(rest) - rest);
	error = sys_write_all(sys, fd, room, round_up(rest), off + whole);
	free(room);
	return error;
}
