#include "power.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"

#define FDS 1024
#define ENTRIES 64
#define SECTOR 512

struct node;

struct names {
	struct { char name[64]; struct node *node; } of[ENTRIES];
	unsigned n;
};

/* `from` gone (if any), `to` there as `node` (if any). */
struct change { char from[64], to[64]; struct node *node; };

struct meta_now { mode_t mode; struct timespec mtime; bool timed; };

struct node {
	struct node *next;
	mode_t type;
	/* of a file or link */
	uint8_t *now, *disk;
	size_t n_now, n_disk;
	struct meta_now meta_now, meta_disk;
	/* of a directory */
	struct names names, names_disk;
	struct change *log;
	unsigned n_log;
};

static struct node *all, *fds[FDS], *root;
static char root_path[500];
static uint64_t random_state;
static long calls, cut_at;
static bool off;

uint32_t power_random(uint32_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 33) % n;
}

static struct node *node_new(mode_t type)
{
	struct node *d = calloc(1, sizeof *d);

	assert_non_null(d);
	d->type = type;
	d->next = all;
	return all = d;
}

static struct node **lookup(struct names *s, const char *name)
{
	unsigned i;

	for (i = 0; i < s->n; i++)
		if (strcmp(s->of[i].name, name) == 0)
			return &s->of[i].node;
	return NULL;
}

static void set(struct names *s, const char *name, struct node *node)
{
	struct node **there = lookup(s, name);
	unsigned i;

	if (there == NULL && node != NULL) {
		assert_true(s->n < ENTRIES && strlen(name) < 64);
		strcpy(s->of[s->n].name, name);
		s->of[s->n++].node = node;
	} else if (there != NULL && node != NULL) {
		*there = node;
	} else if (there != NULL) {
		for (i = 0; &s->of[i].node != there; i++)
			;
		s->of[i] = s->of[--s->n];
	}
}

static void apply(struct names *s, const struct change *c)
{
	if (c->from[0] != '\0')
		set(s, c->from, NULL);
	if (c->to[0] != '\0')
		set(s, c->to, c->node);
}

static void change(struct node *dir, const char *from, const char *to, struct node *node)
{
	struct change *c;

	dir->log = realloc(dir->log, (dir->n_log + 1) * sizeof *dir->log);
	assert_non_null(dir->log);
	c = &dir->log[dir->n_log++];
	snprintf(c->from, sizeof c->from, "%s", from);
	snprintf(c->to, sizeof c->to, "%s", to);
	c->node = node;
	apply(&dir->names, c);
}

static void resize(struct node *f, size_t n)
{
	if (n > f->n_now) {
		f->now = realloc(f->now, n);
		assert_non_null(f->now);
		memset(f->now + f->n_now, 0, n - f->n_now);
	}
	f->n_now = n;
}

static void sync_data(struct node *f)
{
	f->disk = realloc(f->disk, f->n_now + 1);
	assert_non_null(f->disk);
	if (f->n_now > 0)
		memcpy(f->disk, f->now, f->n_now);
	f->n_disk = f->n_now;
}

static void sync_node(struct node *d)
{
	if (S_ISDIR(d->type)) {
		d->names_disk = d->names;
		d->n_log = 0;
	} else {
		sync_data(d);
		d->meta_disk = d->meta_now;
	}
}

/* ---- The tree at the start and at the end ---- */

static void load(struct node *d, const char *path)
{
	char below[1000];
	struct dirent *e;
	struct node *f;
	struct stat st;
	DIR *dir = opendir(path);
	int fd;

	assert_non_null(dir);
	while ((e = readdir(dir)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		snprintf(below, sizeof below, "%s/%s", path, e->d_name);
		assert_int_equal(lstat(below, &st), 0);
		f = node_new(st.st_mode & S_IFMT);
		set(&d->names, e->d_name, f);
		if (S_ISDIR(st.st_mode)) {
			load(f, below);
			continue;
		}
		resize(f, (size_t)st.st_size);
		if (S_ISLNK(st.st_mode)) {
			assert_int_equal(readlink(below, (char *)f->now, f->n_now), f->n_now);
		} else {
			fd = open(below, O_RDONLY | O_CLOEXEC);
			assert_int_equal(read(fd, f->now, f->n_now), f->n_now);
			close(fd);
		}
		f->meta_now = (struct meta_now){ st.st_mode & 07777, st.st_mtim, true };
	}
	closedir(dir);
}

static uint8_t byte_of(const uint8_t *p, size_t n, size_t at)
{
	return at < n ? p[at] : 0;
}

static size_t between(size_t a, size_t b)
{
	size_t low = a < b ? a : b, high = a < b ? b : a;

	switch (power_random(3)) {
	case 0: return a;
	case 1: return b;
	default: return low + power_random((uint32_t)(high - low) + 1);
	}
}

/* What of the file is there. */
static void save_file(const struct node *f, const char *path)
{
	size_t n = between(f->n_disk, f->n_now), at, i, seam;
	const struct meta_now *m = power_random(2) ? &f->meta_now : &f->meta_disk;
	uint8_t *buf = malloc(n + 1);
	int fd;

	assert_non_null(buf);
	for (at = 0; at < n; at += SECTOR) {
		seam = power_random(4);
		seam = seam == 0 ? 0 : seam == 1 ? SECTOR : seam == 2 ? power_random(SECTOR) : SECTOR;
		for (i = at; i < at + SECTOR && i < n; i++)
			buf[i] = i - at < seam ? byte_of(f->now, f->n_now, i) :
			    byte_of(f->disk, f->n_disk, i);
	}
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, buf, n), n);
	assert_int_equal(fchmod(fd, m->mode), 0);
	if (m->timed)
		assert_int_equal(futimens(fd, (struct timespec[2]){ m->mtime, m->mtime }), 0);
	close(fd);
	free(buf);
}

static void save(const struct node *d, const char *path)
{
	struct names there = d->names_disk;
	unsigned how = power_random(4), first = power_random(d->n_log + 1), i;
	char below[1000];
	struct node *f;

	for (i = 0; i < d->n_log; i++)
		if (how == 0 || (how == 1 && i < first) || (how == 2 && power_random(2)))
			apply(&there, &d->log[i]);
	for (i = 0; i < there.n; i++) {
		f = there.of[i].node;
		snprintf(below, sizeof below, "%s/%s", path, there.of[i].name);
		if (S_ISDIR(f->type)) {
			assert_int_equal(mkdir(below, 0755), 0);
			save(f, below);
		} else if (S_ISLNK(f->type)) {
			assert_int_equal(symlink((char *)f->now, below), 0);
		} else {
			save_file(f, below);
		}
	}
}

void power_on(const char *path, uint64_t seed, uint32_t of)
{
	struct node *d;
	int i;

	snprintf(root_path, sizeof root_path, "%s", path);
	random_state = seed * 0x9e3779b97f4a7c15u + 1;
	for (i = 0; i < 8; i++)
		power_random(2);
	calls = 0;
	cut_at = 1 + (long)power_random(of);
	off = false;
	root = node_new(S_IFDIR);
	load(root, path);
	for (d = all; d != NULL; d = d->next)
		sync_node(d);
}

bool power_is_off(void)
{
	return off;
}

void power_cut(const char *path)
{
	struct node *d;

	save(root, path);
	off = false;
	memset(fds, 0, sizeof fds);
	while ((d = all) != NULL) {
		all = d->next;
		free(d->now);
		free(d->disk);
		free(d->log);
		free(d);
	}
}

/* ---- The calls ---- */

/* True: the power is off. */
static bool tick(void)
{
	if (++calls == cut_at)
		off = true;
	if (off)
		errno = EIO;
	return off;
}

static struct node *node_of(int fd)
{
	assert_true(fd >= 0 && fd < FDS && fds[fd] != NULL);
	return fds[fd];
}

static int power_openat(int at, const char *name, int flags, mode_t mode)
{
	struct node *d = at == AT_FDCWD ? NULL : node_of(at), **there, *f;
	int fd;

	if (d != NULL && (flags & O_CREAT) && lookup(&d->names, name) == NULL) {
		if (tick())
			return -1;
		assert_true((flags & O_EXCL) != 0);
		f = node_new(S_IFREG);
		f->meta_now.mode = f->meta_disk.mode = mode;
		change(d, "", name, f);
	}
	if ((fd = sys_real.openat(at, name, flags, mode)) < 0)
		return -1;
	assert_true(fd < FDS);
	if (d == NULL) {
		assert_string_equal(name, root_path);
		fds[fd] = root;
	} else {
		there = lookup(&d->names, name);
		assert_non_null(there);
		fds[fd] = *there;
	}
	return fd;
}

static int power_openat2(int at, const char *name, struct open_how *how, size_t size)
{
	(void)at, (void)name, (void)how, (void)size;
	errno = ENOSYS;
	return -1;
}

static int power_dup(int fd)
{
	int copy = sys_real.dup(fd);

	if (copy >= 0)
		fds[copy] = node_of(fd);
	return copy;
}

static ssize_t power_pwrite(int fd, const void *buf, size_t n, off_t at)
{
	struct node *f = node_of(fd);
	ssize_t w;

	if (tick())
		return -1;
	if ((w = sys_real.pwrite(fd, buf, n, at)) > 0) {
		if ((size_t)at + (size_t)w > f->n_now)
			resize(f, (size_t)at + (size_t)w);
		memcpy(f->now + at, buf, (size_t)w);
	}
	return w;
}

static int power_ftruncate(int fd, off_t n)
{
	if (tick())
		return -1;
	resize(node_of(fd), (size_t)n);
	return sys_real.ftruncate(fd, n);
}

static int power_fallocate(int fd, int mode, off_t at, off_t n)
{
	struct node *f = node_of(fd);

	if (tick())
		return -1;
	assert_int_equal(mode, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
	if ((size_t)at < f->n_now)
		memset(f->now + at, 0, (size_t)(at + n) < f->n_now ? (size_t)n : f->n_now - (size_t)at);
	return sys_real.fallocate(fd, mode, at, n);
}

static int power_fsync(int fd)
{
	if (tick())
		return -1;
	sync_node(node_of(fd));
	return 0;
}

static int power_fdatasync(int fd)
{
	if (tick())
		return -1;
	sync_data(node_of(fd));
	return 0;
}

static int power_syncfs(int fd)
{
	struct node *d;

	node_of(fd);
	if (tick())
		return -1;
	for (d = all; d != NULL; d = d->next)
		sync_node(d);
	return 0;
}

static int power_fchmod(int fd, mode_t mode)
{
	if (tick())
		return -1;
	node_of(fd)->meta_now.mode = mode;
	return sys_real.fchmod(fd, mode);
}

static int power_futimens(int fd, const struct timespec ts[2])
{
	if (tick())
		return -1;
	node_of(fd)->meta_now.mtime = ts[1];
	node_of(fd)->meta_now.timed = true;
	return sys_real.futimens(fd, ts);
}

/* Of directories and links: not followed here. */
static int power_fchmodat(int at, const char *path, mode_t mode, int flags)
{
	return tick() ? -1 : sys_real.fchmodat(at, path, mode, flags);
}

static int power_utimensat(int at, const char *path, const struct timespec ts[2], int flags)
{
	return tick() ? -1 : sys_real.utimensat(at, path, ts, flags);
}

static int power_mkdirat(int at, const char *name, mode_t mode)
{
	if (tick())
		return -1;
	if (sys_real.mkdirat(at, name, mode) != 0)
		return -1;
	change(node_of(at), "", name, node_new(S_IFDIR));
	return 0;
}

static int power_symlinkat(const char *target, int at, const char *name)
{
	struct node *f;

	if (tick())
		return -1;
	if (sys_real.symlinkat(target, at, name) != 0)
		return -1;
	f = node_new(S_IFLNK);
	resize(f, strlen(target) + 1);
	memcpy(f->now, target, f->n_now);
	change(node_of(at), "", name, f);
	return 0;
}

static int power_renameat(int a, const char *from, int b, const char *to)
{
	struct node *d = node_of(a), **there = lookup(&d->names, from);

	assert_true(a == b);
	if (tick())
		return -1;
	if (sys_real.renameat(a, from, b, to) != 0)
		return -1;
	assert_non_null(there);
	change(d, from, to, *there);
	return 0;
}

/* Only RENAME_NOREPLACE. */
static int power_renameat2(int a, const char *from, int b, const char *to, unsigned flags)
{
	(void)flags;
	if (faccessat(b, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
		errno = EEXIST;
		return -1;
	}
	return power_renameat(a, from, b, to);
}

static int power_unlinkat(int at, const char *name, int flags)
{
	if (tick())
		return -1;
	if (sys_real.unlinkat(at, name, flags) != 0)
		return -1;
	change(node_of(at), name, "", NULL);
	return 0;
}

static int power_close(int *fd)
{
	if (*fd >= 0)
		fds[*fd] = NULL;
	return sys_real.close(fd);
}

static int real_fstat(int fd, struct stat *st) { return sys_real.fstat(fd, st); }
static int real_flock(int fd, int op) { return sys_real.flock(fd, op); }
static off_t real_lseek(int fd, off_t at, int whence) { return sys_real.lseek(fd, at, whence); }

static int real_fstatat(int at, const char *path, struct stat *st, int flags)
{
	return sys_real.fstatat(at, path, st, flags);
}

static int real_faccessat(int at, const char *path, int mode, int flags)
{
	return sys_real.faccessat(at, path, mode, flags);
}

static int real_fstatfs(int fd, struct statfs *st) { return sys_real.fstatfs(fd, st); }

static ssize_t real_preadv2(int fd, const struct iovec *v, int n, off_t at, int flags)
{
	return sys_real.preadv2(fd, v, n, at, flags);
}

const struct sys power_sys = {
	.openat = power_openat, .openat2 = power_openat2, .close = power_close, .dup = power_dup,
	.fstat = real_fstat, .fstatat = real_fstatat, .fstatfs = real_fstatfs, .faccessat = real_faccessat,
	.preadv2 = real_preadv2,
	.flock = real_flock, .lseek = real_lseek,
	.pwrite = power_pwrite, .ftruncate = power_ftruncate, .fallocate = power_fallocate,
	.fsync = power_fsync, .fdatasync = power_fdatasync, .syncfs = power_syncfs,
	.fchmod = power_fchmod, .fchmodat = power_fchmodat, .futimens = power_futimens,
	.utimensat = power_utimensat, .mkdirat = power_mkdirat, .symlinkat = power_symlinkat,
	.renameat = power_renameat, .renameat2 = power_renameat2, .unlinkat = power_unlinkat,
};
