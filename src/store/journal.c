#include "store/journal.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/byteorder.h"
#include "fs/file_system.h"
#include "store/hash.h"
#include "store/part.h"

#define FORMAT 1
#define NAME_BYTES 256
#define NAME_AT 56
#define CHECK_AT (JOURNAL_HEADER_BYTES - 8)

static const uint8_t magic[8] = { 'p', 't', 'c', 'p', '-', 'j', 'n', 'l' };

static uint32_t count_blocks(const struct journal_key *k)
{
	return (uint32_t)(k->size_bytes / k->block_bytes + (k->size_bytes % k->block_bytes != 0));
}

/* Normally a block is written once, again only after a failed verification or a race of two copies. The limit
 * keeps a peer that repeats a block endlessly from filling the disk with records. */
static uint64_t max_records(const struct journal *j) { return (uint64_t)j->n_blocks * 4 + 4096; }

static void encode_header(uint8_t out[JOURNAL_HEADER_BYTES], const struct journal_key *k)
{
	size_t n = strlen(k->name);

	assert(n < NAME_BYTES);
	memset(out, 0, JOURNAL_HEADER_BYTES);
	memcpy(out, magic, sizeof magic);
	put_u32(out + 8, FORMAT);
	put_u32(out + 12, k->block_bytes);
	put_u64(out + 16, k->size_bytes);
	put_u64(out + 24, (uint64_t)k->mtime.tv_sec);
	put_u32(out + 32, (uint32_t)k->mtime.tv_nsec);
	put_u32(out + 36, (uint32_t)n);
	memcpy(out + 40, k->version, JOURNAL_VERSION_BYTES);
	memcpy(out + NAME_AT, k->name, n);
	put_u64(out + CHECK_AT, hash_content(out, CHECK_AT));
}

static uint64_t record_check(const struct journal *j, const uint8_t *record)
{
	uint8_t in[20];

	put_u64(in, j->check);
	memcpy(in + 8, record, 12);
	return hash_content(in, sizeof in);
}

static uint64_t record_at(uint64_t slot)
{
	return JOURNAL_HEADER_BYTES + slot * JOURNAL_RECORD_BYTES;
}

/* The version of no source. */
static const uint8_t no_version[JOURNAL_VERSION_BYTES];

static void identify(struct journal *j, const struct stat *st, const struct journal_key *k)
{
	struct journal_key lasting = *k;
	uint8_t header[JOURNAL_HEADER_BYTES];

	lasting.size_bytes = 0;
	lasting.mtime = (struct timespec){ 0 };
	lasting.version = no_version;
	encode_header(header, &lasting);
	j->dev = (uint64_t)st->st_dev;
	j->ino = (uint64_t)st->st_ino;
	j->check = get_u64(header + CHECK_AT);
	j->n_blocks = count_blocks(k);
}

void journal_create(struct journal *j, const struct dir *d, int at, const struct journal_key *k)
{
	const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	const struct sys *sys = dir_sys(d);
	uint8_t header[JOURNAL_HEADER_BYTES];
	char name[PART_NAME_BYTES];
	struct stat st;
	int fd;

	part_name(name, k->file != NULL ? k->file : k->name, PART_JOURNAL_SUFFIX);
	fd = sys->openat(at, name, flags, 0600);
	if (fd < 0 && errno == EEXIST && sys->unlinkat(at, name, 0) == 0)
		fd = sys->openat(at, name, flags, 0600);
	if (fd < 0)
		return;
	encode_header(header, k);
	if (sys->fstat(fd, &st) != 0 || sys_write_all(sys, fd, header, sizeof header, 0) != 0) {
		sys->unlinkat(at, name, 0);
		sys->close(&fd);
		return;
	}
	identify(j, &st, k);
	atomic_store(&j->next, 0);
	j->fd = fd;
}

/* As with a part, a journal is trusted only if no other user can have written to it. Where a mode cannot be changed (NTFS, vfat,
 * some network shares), the owner decides. */
static bool private(const struct sys *sys, int fd, const struct stat *st)
{
	struct stat now;

	return S_ISREG(st->st_mode) && st->st_nlink == 1 && st->st_uid == geteuid() && ((st->st_mode & 07777) == 0600 ||
	    ((sys->fchmod(fd, 0600) == 0 || fs_cannot(ABILITY_MODES, errno)) && sys->fstat(fd, &now) == 0 && now.st_mode == st->st_mode));
}

static enum journal_state compare(const uint8_t found[JOURNAL_HEADER_BYTES], const struct journal_key *k)
{
	uint8_t want[JOURNAL_HEADER_BYTES];

	encode_header(want, k);
	if (memcmp(found, want, sizeof want) == 0)
		return JOURNAL_MATCHES;
	if (get_u64(found + CHECK_AT) != hash_content(found, CHECK_AT) ||
	    memcmp(found, want, 12) != 0 || memcmp(found + NAME_AT, want + NAME_AT, NAME_BYTES) != 0)
		return JOURNAL_DAMAGED;
	return memcmp(found, want, 16) == 0 ? JOURNAL_OTHER : JOURNAL_CHANGED;
}

/* A source that gets its earlier version back (a snapshot of its file system) must not find later blocks under that version. */
static bool forget_version(const struct sys *sys, int fd, const struct journal_key *k)
{
	struct journal_key several = *k;
	uint8_t header[JOURNAL_HEADER_BYTES];

	several.version = no_version;
	encode_header(header, &several);
	return sys_write_all(sys, fd, header, sizeof header, 0) == 0 && (sys->fdatasync(fd) == 0 || fs_cannot(ABILITY_SYNC, errno));
}

enum journal_state journal_open(struct journal *j, const struct dir *d, int at, const struct journal_key *k)
{
	const int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
	const struct sys *sys = dir_sys(d);
	enum journal_state state = JOURNAL_DAMAGED;
	uint8_t header[JOURNAL_HEADER_BYTES];
	char name[PART_NAME_BYTES];
	struct stat st;
	int fd;

	fd = sys->openat(at, part_name(name, k->file != NULL ? k->file : k->name, PART_JOURNAL_SUFFIX), flags, 0);
	if (fd < 0)
		return errno == ENOENT ? JOURNAL_NONE : JOURNAL_DAMAGED;
	if (sys->fstat(fd, &st) == 0 && private(sys, fd, &st) && !dir_excludes(d, st.st_dev, st.st_ino) &&
	    sys_read_all(sys, fd, header, sizeof header, 0) == (ssize_t)sizeof header)
		state = compare(header, k);
	if (state == JOURNAL_OTHER && !forget_version(sys, fd, k))
		state = JOURNAL_CHANGED;
	if (state == JOURNAL_MATCHES || state == JOURNAL_OTHER) {
		identify(j, &st, k);
		atomic_store(&j->next, ((uint64_t)st.st_size - JOURNAL_HEADER_BYTES +
		    JOURNAL_RECORD_BYTES - 1) / JOURNAL_RECORD_BYTES);
		if (atomic_load(&j->next) > max_records(j))
			state = JOURNAL_DAMAGED;
	}
	if (state == JOURNAL_MATCHES || state == JOURNAL_OTHER)
		j->fd = fd;
	else
		sys->close(&fd);
	return state;
}

void journal_append(struct journal *j, const struct sys *sys, uint32_t block, uint64_t hash)
{
	uint8_t record[JOURNAL_RECORD_BYTES];
	uint64_t slot;

	if (j->fd < 0 || (slot = atomic_fetch_add(&j->next, 1)) >= max_records(j))
		return;
	put_u32(record, block);
	put_u64(record + 4, hash);
	put_u64(record + 12, record_check(j, record));
	/* A torn record (full disk) damages no other, since each has its own place. */
	sys_write_all(sys, j->fd, record, sizeof record, record_at(slot));
}

int journal_read(const struct journal *j, const struct sys *sys, uint64_t slot, unsigned n,
    struct journal_record *out)
{
	uint8_t raw[JOURNAL_READ * JOURNAL_RECORD_BYTES], *p;
	ssize_t got;
	unsigned i;
	int good = 0;

	assert(n <= JOURNAL_READ);
	got = sys_read_all(sys, j->fd, raw, n * JOURNAL_RECORD_BYTES, record_at(slot));
	if (got < 0)
		return -1;
	for (i = 0; i < (size_t)got / JOURNAL_RECORD_BYTES; i++) {
		p = raw + i * JOURNAL_RECORD_BYTES;
		if (get_u64(p + 12) != record_check(j, p) || get_u32(p) >= j->n_blocks)
			continue;
		out[good].block = get_u32(p);
		out[good].hash = get_u64(p + 4);
		out[good++].slot = slot + i;
	}
	return good;
}

void journal_cut(struct journal *j, const struct sys *sys, uint64_t slot)
{
	if (j->fd < 0 || atomic_load(&j->next) <= slot)
		return;
	atomic_store(&j->next, slot);
	if (sys->ftruncate(j->fd, (off_t)record_at(slot)) != 0)
		atomic_store(&j->next, 0); /* sink_keep() then removes the journal */
}

void journal_close(struct journal *j, const struct sys *sys)
{
	sys->close(&j->fd);
}

void journal_remove(struct journal *j, const struct dir *d, int at, const char *name)
{
	const struct sys *sys = dir_sys(d);
	char journal[PART_NAME_BYTES];
	struct stat st;

	if (j->fd < 0)
		return;
	part_name(journal, name, PART_JOURNAL_SUFFIX);
	if (sys->fstatat(at, journal, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    (uint64_t)st.st_dev == j->dev && (uint64_t)st.st_ino == j->ino)
		sys->unlinkat(at, journal, 0);
	journal_close(j, sys);
}
