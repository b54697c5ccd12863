#include "fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/sink.h"

struct tree *fx_tree;
struct dir *fx_root;

static char root[400];
static int fds_before;

static atomic_int calls, calls_of[FX_CALLS_N], nth, nth_sys, always[FX_CALLS_N], failed;
static atomic_size_t most;
static void (*_Atomic before)(enum fx_call);

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

void fx_in_memory(void)
{
	if (access("/dev/shm", W_OK | X_OK) == 0)
		setenv("TMPDIR", "/dev/shm", 0);
}

void fx_on_disk(void)
{
	const char *disk = getenv("PTCP_TEST_DISK");

	if (disk != NULL)
		setenv("TMPDIR", disk, 1);
}

int fx_setup(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	fx_heal();
	fds_before = fx_open_fds();
	snprintf(root, sizeof root, "%s/ptcp-test-XXXXXX", tmp != NULL ? tmp : "/tmp");
	return mkdtemp(root) != NULL ? 0 : -1;
}

int fx_teardown(void **state)
{
	(void)state;
	fx_heal();
	if (nftw(root, remove_one, 64, FTW_DEPTH | FTW_PHYS) != 0)
		return -1;
	assert_int_equal(fx_open_fds(), fds_before);
	return 0;
}

int fx_tree_setup(void **state)
{
	if (fx_setup(state) != 0 || tree_open(&fx_tree, fx_path(""), &fx_sys, NULL) != 0)
		return -1;
	fx_root = tree_root(fx_tree);
	return 0;
}

int fx_tree_teardown(void **state)
{
	dir_unref(fx_root);
	tree_unref(fx_tree);
	assert_int_equal(fx_open_files(), 0);
	return fx_teardown(state);
}

const char *fx_path(const char *below)
{
	static char text[8][5000];
	static unsigned turn;
	char *p = text[turn++ % 8];

	snprintf(p, sizeof text[0], "%s/%s", root, below);
	return p;
}

int fx_open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	if (d == NULL)
		return -1;
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

int fx_open_files(void)
{
	char link[300], to[PATH_MAX];
	DIR *d = opendir("/proc/self/fd");
	struct dirent *de;
	struct stat st;
	int n = 0;
	ssize_t len;

	assert_non_null(d);
	while ((de = readdir(d)) != NULL) {
		snprintf(link, sizeof link, "/proc/self/fd/%s", de->d_name);
		if ((len = readlink(link, to, sizeof to)) < (ssize_t)strlen(root) ||
		    strncmp(to, root, strlen(root)) != 0)
			continue;
		n += stat(link, &st) == 0 && S_ISREG(st.st_mode);
	}
	closedir(d);
	return n;
}

void fx_write(const char *below, const void *data, size_t n)
{
	FILE *f = fopen(fx_path(below), "w");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

void fx_text(const char *below, const char *text)
{
	fx_write(below, text, strlen(text));
}

void fx_mkdir(const char *below)
{
	assert_int_equal(mkdir(fx_path(below), 0755), 0);
}

long fx_read(const char *below, void *buf, size_t cap)
{
	struct stat st;
	int fd = open(fx_path(below), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -1;
	assert_int_equal(fstat(fd, &st), 0);
	if (cap > 0)
		assert_true(read(fd, buf, cap) >= 0);
	close(fd);
	return (long)st.st_size;
}

void fx_holds(const char *below, const char *text)
{
	char buf[4096];
	long n = fx_read(below, buf, sizeof buf);

	assert_int_equal(n, strlen(text));
	assert_memory_equal(buf, text, strlen(text));
}

int fx_exists(const char *below)
{
	struct stat st;

	return lstat(fx_path(below), &st) == 0;
}

int fx_count(const char *below)
{
	DIR *d = opendir(fx_path(below));
	int n = -2;

	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

int fx_is_root(void)
{
	return geteuid() == 0;
}

void fx_needs_linux(void)
{
#ifdef PTCP_POSIX
	skip();
#endif
}

void fx_heal(void)
{
	int i;

	atomic_store(&nth, 0);
	atomic_store(&calls, 0);
	atomic_store(&failed, 0);
	atomic_store(&most, 0);
	atomic_store(&before, NULL);
	for (i = 0; i < FX_CALLS_N; i++) {
		atomic_store(&always[i], 0);
		atomic_store(&calls_of[i], 0);
	}
}

void fx_fail_nth(int n, int sys)
{
	atomic_store(&nth_sys, sys);
	atomic_store(&nth, atomic_load(&calls) + n);
}

void fx_fail_always(enum fx_call call, int sys)
{
	atomic_store(&always[call], sys);
}

int fx_failed(void)
{
	return atomic_load(&failed);
}

int fx_calls(void)
{
	return atomic_load(&calls);
}

int fx_calls_of(enum fx_call call)
{
	return atomic_load(&calls_of[call]);
}

void fx_short_io(size_t n)
{
	atomic_store(&most, n);
}

void fx_before(void (*hook)(enum fx_call call))
{
	atomic_store(&before, hook);
}

/* PTCP_TEST_SLOW_DISK=MS: one call in four takes up to so many milliseconds more, as on a disk that others use. */
static void be_slow(void)
{
	static _Thread_local unsigned state;
	const char *text = getenv("PTCP_TEST_SLOW_DISK");
	unsigned ms = text != NULL ? (unsigned)strtoul(text, NULL, 10) : 0;

	if (state == 0)
		state = (unsigned)gettid();
	if (ms > 0 && rand_r(&state) % 4 == 0)
		usleep(1000 * ((unsigned)rand_r(&state) % ms));
}

/* Counts this call; the errno it is to fail with, or 0. */
static int fault(enum fx_call call)
{
	void (*hook)(enum fx_call) = atomic_load(&before);
	int n = atomic_fetch_add(&calls, 1) + 1, sys = atomic_load(&always[call]);

	be_slow();
	if (hook != NULL)
		hook(call);
	atomic_fetch_add(&calls_of[call], 1);
	if (sys == 0 && n == atomic_load(&nth))
		sys = atomic_load(&nth_sys);
	if (sys != 0) {
		atomic_fetch_add(&failed, 1);
		errno = sys;
	}
	return sys;
}

#define FAULTY(name, type, bad, params, args) \
	static type faulty_##name params \
	{ \
		return fault(FX_##name) ? bad : sys_real.name args; \
	}

FAULTY(openat, int, -1, (int d, const char *p, int f, mode_t m), (d, p, f, m))
FAULTY(openat2, int, -1, (int d, const char *p, struct open_how *h, size_t n), (d, p, h, n))
FAULTY(dup, int, -1, (int fd), (fd))
FAULTY(fstat, int, -1, (int fd, struct stat *st), (fd, st))
FAULTY(fstatat, int, -1, (int d, const char *p, struct stat *st, int f), (d, p, st, f))
FAULTY(readdir, struct dirent *, NULL, (DIR *d), (d))
FAULTY(readlinkat, ssize_t, -1, (int d, const char *p, char *b, size_t n), (d, p, b, n))
FAULTY(ftruncate, int, -1, (int fd, off_t n), (fd, n))
FAULTY(fallocate, int, -1, (int fd, int m, off_t a, off_t n), (fd, m, a, n))
FAULTY(lseek, off_t, -1, (int fd, off_t a, int w), (fd, a, w))
FAULTY(sendfile, ssize_t, -1, (int to, int fd, off_t *a, size_t n), (to, fd, a, n))
FAULTY(setdirect, int, -1, (int fd, bool on), (fd, on))
FAULTY(dioalign, int, -1, (int fd, uint32_t *m, uint32_t *o), (fd, m, o))
FAULTY(cachestat, int, -1, (int fd, uint64_t a, uint64_t n, uint64_t *p), (fd, a, n, p))

atomic_bool fx_clones;

static int faulty_clonerange(int fd, int from, uint64_t off, uint64_t n)
{
	static uint8_t copy[1 << 20];

	if (fault(FX_clonerange))
		return -1;
	if (!atomic_load(&fx_clones))
		return sys_real.clonerange(fd, from, off, n);
	if (n > sizeof copy || pread(from, copy, n, (off_t)off) != (ssize_t)n) {
		errno = EINVAL;
		return -1;
	}
	return pwrite(fd, copy, n, (off_t)off) == (ssize_t)n ? 0 : -1;
}

long fx_file_system = NFS_SUPER_MAGIC;

static int faulty_faccessat(int at, const char *path, int mode, int flags)
{
	return fault(FX_faccessat) ? -1 : sys_real.faccessat(at, path, mode, flags);
}

static int faulty_fstatfs(int fd, struct statfs *st)
{
	int r = fault(FX_fstatfs) ? -1 : sys_real.fstatfs(fd, st);

	if (r == 0)
		st->f_type = fx_file_system;
	return r;
}

/* No test can see whether the disk has it, and waiting for it takes minutes. */
#define NO_SYNC(name) \
	static int faulty_##name(int fd) \
	{ \
		assert_true(fd >= 0); \
		return fault(FX_##name) ? -1 : 0; \
	}

NO_SYNC(fsync)
NO_SYNC(fdatasync)
NO_SYNC(syncfs)

FAULTY(flock, int, -1, (int fd, int op), (fd, op))
FAULTY(fchmod, int, -1, (int fd, mode_t m), (fd, m))
FAULTY(fchmodat, int, -1, (int d, const char *p, mode_t m, int f), (d, p, m, f))
FAULTY(futimens, int, -1, (int fd, const struct timespec ts[2]), (fd, ts))
FAULTY(utimensat, int, -1, (int d, const char *p, const struct timespec ts[2], int f), (d, p, ts, f))
FAULTY(mkdirat, int, -1, (int d, const char *p, mode_t m), (d, p, m))
FAULTY(symlinkat, int, -1, (const char *t, int d, const char *p), (t, d, p))
FAULTY(linkat, int, -1, (int a, const char *p, int b, const char *q, int f), (a, p, b, q, f))
FAULTY(renameat2, int, -1, (int a, const char *p, int b, const char *q, unsigned f), (a, p, b, q, f))
FAULTY(renameat, int, -1, (int a, const char *p, int b, const char *q), (a, p, b, q))
FAULTY(fchownat, int, -1, (int d, const char *p, uid_t u, gid_t g, int f), (d, p, u, g, f))
FAULTY(flistxattr, ssize_t, -1, (int fd, char *b, size_t n), (fd, b, n))
FAULTY(fgetxattr, ssize_t, -1, (int fd, const char *k, void *b, size_t n), (fd, k, b, n))
FAULTY(fsetxattr, int, -1, (int fd, const char *k, const void *b, size_t n, int f), (fd, k, b, n, f))
FAULTY(fremovexattr, int, -1, (int fd, const char *k), (fd, k))
FAULTY(getxattrat, ssize_t, -1, (int d, const char *p, const char *k, void *b, size_t n), (d, p, k, b, n))
FAULTY(unlinkat, int, -1, (int d, const char *p, int f), (d, p, f))

/* As in Linux, a close that fails has closed. */
static int faulty_close(int *fd)
{
	int sys = *fd >= 0 ? fault(FX_close) : 0, r = sys_real.close(fd);

	return sys != 0 ? sys : r;
}

static DIR *faulty_fdopendir(int *fd)
{
	if (fault(FX_fdopendir) == 0)
		return sys_real.fdopendir(fd);
	sys_real.close(fd);
	return NULL;
}

static int faulty_closedir(DIR *d)
{
	int sys = fault(FX_closedir), r = sys_real.closedir(d);

	if (sys == 0)
		return r;
	errno = sys;
	return -1;
}

static size_t at_most(size_t n)
{
	size_t m = atomic_load(&most);

	return m > 0 && n > m ? m : n;
}

static ssize_t faulty_preadv2(int fd, const struct iovec *v, int n, off_t off, int flags)
{
	struct iovec one = { v->iov_base, at_most(v->iov_len) };

	assert_int_equal(n, 1);
	return fault(FX_preadv2) ? -1 : sys_real.preadv2(fd, &one, 1, off, flags);
}

static ssize_t faulty_pwrite(int fd, const void *buf, size_t n, off_t off)
{
	return fault(FX_pwrite) ? -1 : sys_real.pwrite(fd, buf, at_most(n), off);
}

const struct sys fx_sys = {
#define X(name) .name = faulty_##name,
	FX_CALLS(X)
#undef X
};
