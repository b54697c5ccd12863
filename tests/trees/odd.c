/* Mounts a file system that lacks abilities: odd BACKING MOUNT LACK..
 *
 * Files are those of the folder BACKING, and the named abilities are refused, or have no effect. Speaks FUSE with the
 * kernel itself, without libfuse; one thread, one request after the other; root only. Ends when MOUNT is unmounted. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fuse.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#define SHORT_NAME 100
#define WRITE_MAX 131072

/* ---- What is lacking ---- */

enum lack { MODES, MODES_SILENTLY, OWNERS, HARD_LINKS, SYMLINKS, XATTRS, LOCKS, CASE, FORMS, DOTS, COLONS, LONG_NAMES,
	INODES, ALLOCATION, EXCHANGE, TIMES, SECONDS, HUNDREDTHS, YEARS, LACKS };
static const char *const words[LACKS] = { "modes", "modes-silently", "owners", "hard-links", "symlinks", "xattrs",
	"locks", "case", "forms", "dots", "colons", "long-names", "inodes", "allocation", "exchange", "times",
	"seconds", "hundredths", "years" };
static bool lacks[LACKS];

/* ---- Nodes: one for each file that the kernel knows ---- */

struct node {
	struct node *next;
	uint64_t id, lookups;
	dev_t dev;
	ino_t ino;
	int fd; /* O_PATH */
};

static struct node *nodes;
static uint64_t last_id = FUSE_ROOT_ID;
static int fuse;

static struct node *of_id(uint64_t id)
{
	struct node *n = nodes;

	while (n != NULL && n->id != id)
		n = n->next;
	return n;
}

/* Takes fd. */
static struct node *of_fd(int fd)
{
	struct stat st;
	struct node *n;

	if (fstat(fd, &st) != 0)
		return NULL;
	for (n = nodes; n != NULL && (n->dev != st.st_dev || n->ino != st.st_ino); n = n->next)
		;
	if (n != NULL) {
		close(fd);
	} else if ((n = calloc(1, sizeof *n)) != NULL) {
		*n = (struct node){ .next = nodes, .id = nodes == NULL ? FUSE_ROOT_ID : ++last_id, .dev = st.st_dev,
			.ino = st.st_ino, .fd = fd };
		nodes = n;
	}
	if (n != NULL)
		n->lookups++;
	return n;
}

static void forget(uint64_t id, uint64_t lookups)
{
	struct node **at = &nodes, *n;

	while ((n = *at) != NULL && n->id != id)
		at = &n->next;
	if (n == NULL || id == FUSE_ROOT_ID || (n->lookups -= lookups) > 0)
		return;
	*at = n->next;
	close(n->fd);
	free(n);
}

/* A path that leads to the node, also to a link. */
static const char *path_of(const struct node *n)
{
	static char path[40];

	snprintf(path, sizeof path, "/proc/self/fd/%d", n->fd);
	return path;
}

/* ---- Names ---- */

/* Without the differences that the file system ignores: of case, between U+0308 behind a, o or u and the letter of
 * both, and in dots and blanks at the end. */
static void fold(char out[NAME_MAX + 1], const char *name)
{
	static const char letters[] = "aouAOU", composed[] = "\xa4\xb6\xbc\x84\x96\x9c"; /* behind \xc3 */
	const char *letter;
	size_t n = 0;

	for (; *name != '\0' && n < NAME_MAX; name++) {
		letter = strchr(letters, *name);
		if (lacks[FORMS] && letter != NULL && strncmp(name + 1, "\xcc\x88", 2) == 0) {
			out[n++] = '\xc3';
			out[n++] = composed[letter - letters];
			name += 2;
		} else {
			out[n++] = lacks[CASE] ? (char)tolower((unsigned char)*name) : *name;
		}
	}
	while (lacks[DOTS] && n > 1 && (out[n - 1] == '.' || out[n - 1] == ' '))
		n--;
	out[n] = '\0';
}

static bool is_same(const char *a, const char *b)
{
	char folded[2][NAME_MAX + 1];

	fold(folded[0], a);
	fold(folded[1], b);
	return strcmp(folded[0], folded[1]) == 0;
}

/* The name of the existing entry that `name` means, or `name`; NULL: the name is impossible. */
static const char *own_name(const struct node *in, const char *name, int *error)
{
	static char own[2][NAME_MAX + 1];
	static unsigned turn;
	struct dirent *e;
	const char *found = name;
	DIR *d;
	int fd;

	*error = lacks[COLONS] && strchr(name, ':') != NULL ? EINVAL :
	    lacks[LONG_NAMES] && strlen(name) > SHORT_NAME ? ENAMETOOLONG : 0;
	if (*error != 0 || !(lacks[CASE] || lacks[FORMS] || lacks[DOTS]) ||
	    faccessat(in->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	    (fd = openat(in->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return *error != 0 ? NULL : name;
	d = fdopendir(fd);
	while ((e = readdir(d)) != NULL)
		if (is_same(e->d_name, name))
			found = strcpy(own[turn++ % 2], e->d_name);
	closedir(d);
	return found;
}

/* ---- Answers ---- */

enum { ANSWERED = 1 };

static int answer(uint64_t unique, int error, const void *data, size_t n)
{
	const size_t size = error == 0 ? n : 0;
	struct fuse_out_header h = { .len = (uint32_t)(sizeof h + size), .error = -error, .unique = unique };
	struct iovec v[2] = { { &h, sizeof h }, { (void *)(uintptr_t)data, size } };

	if (writev(fuse, v, 2) < 0 && errno != ENOENT) { /* ENOENT: the request was interrupted */
		perror("odd: answer");
		exit(1);
	}
	return ANSWERED;
}

static struct timespec shown(struct timespec t)
{
	if (lacks[YEARS] && t.tv_sec < 315532800)
		t = (struct timespec){ .tv_sec = 315532800 }; /* 1980, as FAT */
	if (lacks[HUNDREDTHS])
		t.tv_nsec -= t.tv_nsec % 10000000;
	if (lacks[SECONDS])
		t = (struct timespec){ .tv_sec = t.tv_sec - (t.tv_sec & 1) };
	return t;
}

/* The number of a name, not of a file. */
static uint64_t number_of(const struct node *n)
{
	char path[PATH_MAX];
	ssize_t i, size = readlink(path_of(n), path, sizeof path);
	uint64_t hash = 14695981039346656037u; /* FNV-1a */

	for (i = 0; i < size; i++)
		hash = (hash ^ (unsigned char)path[i]) * 1099511628211u;
	return hash;
}

static void describe(const struct node *n, const struct stat *st, struct fuse_attr *a)
{
	const struct timespec mtime = shown(st->st_mtim);

	*a = (struct fuse_attr){ .ino = lacks[INODES] ? number_of(n) : st->st_ino, .size = (uint64_t)st->st_size,
		.blocks = (uint64_t)st->st_blocks, .atime = (uint64_t)st->st_atim.tv_sec,
		.mtime = (uint64_t)mtime.tv_sec,
		.ctime = (uint64_t)st->st_ctim.tv_sec, .atimensec = (uint32_t)st->st_atim.tv_nsec,
		.mtimensec = (uint32_t)mtime.tv_nsec, .ctimensec = (uint32_t)st->st_ctim.tv_nsec, .mode = st->st_mode,
		.nlink = (uint32_t)st->st_nlink, .uid = st->st_uid, .gid = st->st_gid, .blksize = 4096 };
	if (lacks[MODES_SILENTLY])
		a->mode = (st->st_mode & S_IFMT) | 0777;
}

static int answer_attr(uint64_t unique, const struct node *n)
{
	struct fuse_attr_out out = { 0 };
	struct stat st;

	if (fstat(n->fd, &st) != 0)
		return answer(unique, errno, NULL, 0);
	describe(n, &st, &out.attr);
	return answer(unique, 0, &out, sizeof out);
}

/* The entry that was found or made; -1 and errno: it was not. */
static int entry_of(const struct node *in, const char *name, struct fuse_entry_out *out)
{
	int fd = openat(in->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct node *n = fd >= 0 ? of_fd(fd) : NULL;
	struct stat st;

	if (n == NULL || fstat(n->fd, &st) != 0)
		return -1;
	*out = (struct fuse_entry_out){ .nodeid = n->id };
	describe(n, &st, &out->attr);
	return 0;
}

static int answer_entry(uint64_t unique, const struct node *in, const char *name)
{
	struct fuse_entry_out out;
	int r = entry_of(in, name, &out);

	return answer(unique, r != 0 ? errno : 0, &out, sizeof out);
}

/* ---- Requests ---- */

static int set_times(const struct node *n, const struct fuse_setattr_in *a)
{
	struct timespec ts[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_nsec = UTIME_OMIT } };

	if (lacks[TIMES])
		return 0;
	if ((a->valid & FATTR_ATIME) != 0)
		ts[0] = (a->valid & FATTR_ATIME_NOW) != 0 ? (struct timespec){ .tv_nsec = UTIME_NOW } :
		    (struct timespec){ (time_t)a->atime, a->atimensec };
	if ((a->valid & FATTR_MTIME) != 0)
		ts[1] = (a->valid & FATTR_MTIME_NOW) != 0 ? (struct timespec){ .tv_nsec = UTIME_NOW } :
		    (struct timespec){ (time_t)a->mtime, a->mtimensec };
	return utimensat(AT_FDCWD, path_of(n), ts, 0);
}

static int set_attr(const struct node *n, const struct fuse_setattr_in *a)
{
	const bool owner = (a->valid & (FATTR_UID | FATTR_GID)) != 0;

	if (((a->valid & FATTR_MODE) != 0 && lacks[MODES]) || (owner && lacks[OWNERS])) {
		errno = owner && lacks[OWNERS] ? ENOSYS : EPERM;
		return -1;
	}
	if ((owner && fchownat(n->fd, "", (a->valid & FATTR_UID) != 0 ? a->uid : (uid_t)-1,
	    (a->valid & FATTR_GID) != 0 ? a->gid : (gid_t)-1, AT_EMPTY_PATH) != 0) ||
	    ((a->valid & FATTR_MODE) != 0 && !lacks[MODES_SILENTLY] && chmod(path_of(n), a->mode & 07777) != 0) ||
	    ((a->valid & FATTR_SIZE) != 0 && truncate(path_of(n), (off_t)a->size) != 0))
		return -1;
	return (a->valid & (FATTR_ATIME | FATTR_MTIME)) != 0 ? set_times(n, a) : 0;
}

static int rename_entry(const struct node *in, const char *from, uint64_t to_id, unsigned flags)
{
	const struct node *to = of_id(to_id);
	const char *name = from + strlen(from) + 1;
	int error;

	if (to == NULL || (from = own_name(in, from, &error)) == NULL || (name = own_name(to, name, &error)) == NULL) {
		errno = to == NULL ? ESTALE : error;
		return -1;
	}
	errno = EINVAL;
	return flags != 0 && lacks[EXCHANGE] ? -1 : renameat2(in->fd, from, to->fd, name, flags);
}

static int answer_statfs(uint64_t unique, const struct node *n)
{
	struct fuse_statfs_out out = { 0 };
	struct statvfs v;

	if (fstatvfs(n->fd, &v) != 0)
		return answer(unique, errno, NULL, 0);
	out.st = (struct fuse_kstatfs){ .blocks = v.f_blocks, .bfree = v.f_bfree, .bavail = v.f_bavail,
		.files = v.f_files, .ffree = v.f_ffree, .bsize = (uint32_t)v.f_bsize, .frsize = (uint32_t)v.f_frsize,
		.namelen = lacks[LONG_NAMES] ? SHORT_NAME : NAME_MAX };
	return answer(unique, 0, &out, sizeof out);
}

static int answer_open(uint64_t unique, const struct node *n, unsigned flags)
{
	int fd = open(path_of(n), (int)(flags & ~(unsigned)O_NOFOLLOW) | O_CLOEXEC);
	struct fuse_open_out out = { .fh = (uint64_t)fd, .open_flags = FOPEN_DIRECT_IO };

	return answer(unique, fd < 0 ? errno : 0, &out, sizeof out);
}

static int answer_create(uint64_t unique, const struct node *in, const struct fuse_create_in *a, const char *name)
{
	struct {
		struct fuse_entry_out entry;
		struct fuse_open_out open;
	} out = { .open = { .open_flags = FOPEN_DIRECT_IO } };
	int fd = openat(in->fd, name, (int)a->flags | O_CREAT | O_NOFOLLOW | O_CLOEXEC, a->mode & 07777);

	if (fd < 0 || entry_of(in, name, &out.entry) != 0)
		return answer(unique, errno, NULL, 0);
	out.open.fh = (uint64_t)fd;
	return answer(unique, 0, &out, sizeof out);
}

static int answer_read(uint64_t unique, const struct fuse_read_in *a)
{
	static char buf[1 << 20];
	ssize_t n = pread((int)a->fh, buf, a->size < sizeof buf ? a->size : sizeof buf, (off_t)a->offset);

	return answer(unique, n < 0 ? errno : 0, buf, n < 0 ? 0 : (size_t)n);
}

static int answer_list(uint64_t unique, const struct fuse_read_in *a)
{
	static char buf[1 << 16];
	DIR *d = (DIR *)(uintptr_t)a->fh;
	size_t n = 0, size;
	struct dirent *e;

	seekdir(d, (long)a->offset);
	while ((e = readdir(d)) != NULL) {
		struct fuse_dirent f = { .ino = e->d_ino, .off = (uint64_t)e->d_off,
			.namelen = (uint32_t)strlen(e->d_name), .type = e->d_type };

		size = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + f.namelen);
		if (n + size > a->size || n + size > sizeof buf)
			break;
		memset(buf + n, 0, size);
		memcpy(buf + n, &f, FUSE_NAME_OFFSET);
		memcpy(buf + n + FUSE_NAME_OFFSET, e->d_name, f.namelen);
		n += size;
	}
	return answer(unique, 0, buf, n);
}

static int answer_xattr(uint64_t unique, const struct node *n, const struct fuse_getxattr_in *a, const char *name)
{
	static char buf[XATTR_SIZE_MAX];
	size_t size = a->size < sizeof buf ? a->size : sizeof buf;
	ssize_t got = name != NULL ? getxattr(path_of(n), name, buf, size) : listxattr(path_of(n), buf, size);
	struct fuse_getxattr_out out = { .size = (uint32_t)got };

	if (got < 0)
		return answer(unique, errno, NULL, 0);
	return a->size == 0 ? answer(unique, 0, &out, sizeof out) : answer(unique, 0, buf, (size_t)got);
}

static int answer_init(uint64_t unique, const struct fuse_init_in *a)
{
	struct fuse_init_out out = { .major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION,
		.max_readahead = a->max_readahead, .max_write = WRITE_MAX, .max_background = 12,
		.congestion_threshold = 9,
		.flags = FUSE_BIG_WRITES | (lacks[LOCKS] ? FUSE_FLOCK_LOCKS : 0), .time_gran = 1 };

	out.minor = a->minor < out.minor ? a->minor : out.minor;
	return answer(unique, 0, &out, sizeof out);
}

/* Requests with the name of an existing or new entry. */
static int serve_name(const struct fuse_in_header *h, const struct node *n, const char *arg, const char *name)
{
	const struct fuse_mknod_in *m = (const void *)arg;
	const struct node *of;
	int error, r = -1;

	if ((name = own_name(n, name, &error)) == NULL)
		return answer(h->unique, error, NULL, 0);
	switch (h->opcode) {
	case FUSE_LOOKUP:
		return answer_entry(h->unique, n, name);
	case FUSE_UNLINK:
		return answer(h->unique, unlinkat(n->fd, name, 0) != 0 ? errno : 0, NULL, 0);
	case FUSE_RMDIR:
		return answer(h->unique, unlinkat(n->fd, name, AT_REMOVEDIR) != 0 ? errno : 0, NULL, 0);
	case FUSE_CREATE:
		return answer_create(h->unique, n, (const struct fuse_create_in *)arg, name);
	case FUSE_MKNOD:
		r = mknodat(n->fd, name, m->mode, m->rdev);
		break;
	case FUSE_MKDIR:
		r = mkdirat(n->fd, name, ((const struct fuse_mkdir_in *)arg)->mode);
		break;
	case FUSE_SYMLINK:
		errno = EPERM;
		r = lacks[SYMLINKS] ? -1 : symlinkat(arg + strlen(arg) + 1, n->fd, name);
		break;
	case FUSE_LINK:
		of = of_id(((const struct fuse_link_in *)arg)->oldnodeid);
		errno = of == NULL ? ESTALE : EPERM;
		r = lacks[HARD_LINKS] || of == NULL ? -1 :
		    linkat(AT_FDCWD, path_of(of), n->fd, name, AT_SYMLINK_FOLLOW);
		break;
	}
	return r != 0 ? answer(h->unique, errno, NULL, 0) : answer_entry(h->unique, n, name);
}

/* Requests of open files, and of nodes. ANSWERED; or 0: done; or -1 and errno. */
static int serve_node(const struct fuse_in_header *h, struct node *n, const char *arg)
{
	const struct fuse_setxattr_in *x = (const void *)arg;
	const struct fuse_write_in *w = (const void *)arg;
	const struct fuse_fallocate_in *f = (const void *)arg;
	const struct fuse_lseek_in *l = (const void *)arg;
	const struct fuse_rename2_in *r = (const void *)arg; /* begins as struct fuse_rename_in */
	static char link[PATH_MAX];
	const char *name;
	ssize_t done;
	int fd;

	errno = ENOSYS;
	switch (h->opcode) {
	case FUSE_GETATTR:
		return answer_attr(h->unique, n);
	case FUSE_SETATTR:
		return set_attr(n, (const void *)arg) != 0 ? -1 : answer_attr(h->unique, n);
	case FUSE_READLINK:
		return (done = readlinkat(n->fd, "", link, sizeof link)) < 0 ? -1 :
		    answer(h->unique, 0, link, (size_t)done);
	case FUSE_RENAME:
		return rename_entry(n, arg + sizeof(struct fuse_rename_in), r->newdir, 0);
	case FUSE_RENAME2:
		return rename_entry(n, arg + sizeof *r, r->newdir, r->flags);
	case FUSE_STATFS:
		return answer_statfs(h->unique, n);
	case FUSE_OPEN:
		return answer_open(h->unique, n, ((const struct fuse_open_in *)arg)->flags);
	case FUSE_OPENDIR:
		if ((fd = openat(n->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
			return -1;
		return answer(h->unique, 0, &(struct fuse_open_out){ .fh = (uintptr_t)fdopendir(fd) },
		    sizeof(struct fuse_open_out));
	case FUSE_READ:
		return answer_read(h->unique, (const void *)arg);
	case FUSE_READDIR:
		return answer_list(h->unique, (const void *)arg);
	case FUSE_RELEASEDIR:
		return closedir((DIR *)(uintptr_t)((const struct fuse_release_in *)arg)->fh);
	case FUSE_RELEASE:
		return close((int)((const struct fuse_release_in *)arg)->fh);
	case FUSE_WRITE:
		done = pwrite((int)w->fh, w + 1, w->size, (off_t)w->offset);
		return done < 0 ? -1 : answer(h->unique, 0, &(struct fuse_write_out){ .size = (uint32_t)done },
		    sizeof(struct fuse_write_out));
	case FUSE_FSYNC:
	case FUSE_FSYNCDIR:
	case FUSE_FLUSH:
		return 0;
	case FUSE_FALLOCATE:
		return lacks[ALLOCATION] ? -1 : fallocate((int)f->fh, (int)f->mode, (off_t)f->offset, (off_t)f->length);
	case FUSE_LSEEK:
		return lacks[ALLOCATION] || (done = lseek((int)l->fh, (off_t)l->offset, (int)l->whence)) < 0 ? -1 :
		    answer(h->unique, 0, &(struct fuse_lseek_out){ .offset = (uint64_t)done },
		    sizeof(struct fuse_lseek_out));
	case FUSE_SETXATTR:
		name = arg + FUSE_COMPAT_SETXATTR_IN_SIZE;
		return lacks[XATTRS] ? -1 : setxattr(path_of(n), name, name + strlen(name) + 1, x->size, (int)x->flags);
	case FUSE_GETXATTR:
	case FUSE_LISTXATTR:
		return lacks[XATTRS] ? -1 : answer_xattr(h->unique, n, (const void *)arg,
		    h->opcode == FUSE_GETXATTR ? arg + sizeof(struct fuse_getxattr_in) : NULL);
	case FUSE_REMOVEXATTR:
		return lacks[XATTRS] ? -1 : removexattr(path_of(n), arg);
	}
	return -1; /* among others, locks and files without a name */
}

/* Where in the argument of a request the name of its entry begins; -1: the request has none. */
static int name_at(uint32_t opcode)
{
	switch (opcode) {
	case FUSE_LOOKUP:
	case FUSE_UNLINK:
	case FUSE_RMDIR:
	case FUSE_SYMLINK:
		return 0;
	case FUSE_CREATE:
		return sizeof(struct fuse_create_in);
	case FUSE_MKNOD:
		return sizeof(struct fuse_mknod_in);
	case FUSE_MKDIR:
		return sizeof(struct fuse_mkdir_in);
	case FUSE_LINK:
		return sizeof(struct fuse_link_in);
	}
	return -1;
}

static void serve(const struct fuse_in_header *h, const char *arg)
{
	const struct fuse_batch_forget_in *batch = (const void *)arg;
	const struct fuse_forget_one *one = (const void *)(batch + 1);
	struct node *n = of_id(h->nodeid);
	uint32_t i;
	int r;

	switch (h->opcode) {
	case FUSE_INIT:
		answer_init(h->unique, (const void *)arg);
		return;
	case FUSE_FORGET:
		forget(h->nodeid, ((const struct fuse_forget_in *)arg)->nlookup);
		return;
	case FUSE_BATCH_FORGET:
		for (i = 0; i < batch->count; i++)
			forget(one[i].nodeid, one[i].nlookup);
		return;
	case FUSE_INTERRUPT:
		return;
	}
	errno = ESTALE;
	if (n != NULL && name_at(h->opcode) >= 0)
		r = serve_name(h, n, arg, arg + name_at(h->opcode));
	else
		r = n != NULL || h->nodeid == 0 ? serve_node(h, n, arg) : -1;
	if (r != ANSWERED)
		answer(h->unique, r < 0 ? errno : 0, NULL, 0);
}

static void start(const char *backing, const char *at)
{
	const struct rlimit files = { 1 << 19, 1 << 19 };
	const char how[] = "fd=%d,rootmode=40000,user_id=0,group_id=0,default_permissions,allow_other";
	char options[sizeof how + 20];
	int fd = open(backing, O_PATH | O_DIRECTORY | O_CLOEXEC);

	setrlimit(RLIMIT_NOFILE, &files);
	umask(0);
	fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof options, how, fuse);
	if (fd < 0 || of_fd(fd) == NULL || fuse < 0 ||
	    mount("odd", at, "fuse.odd", MS_NOSUID | MS_NODEV, options) != 0) {
		perror(at);
		exit(77);
	}
}

int main(int argc, char **argv)
{
	static char request[WRITE_MAX + 4096];
	ssize_t n;
	int i, lack;

	for (i = 3; i < argc; i++) {
		for (lack = 0; lack < LACKS && strcmp(argv[i], words[lack]) != 0; lack++)
			;
		if (lack == LACKS)
			break;
		lacks[lack] = true;
	}
	if (argc < 3 || i < argc) {
		fprintf(stderr, "usage: odd BACKING MOUNT LACK..\n");
		return 2;
	}
	start(argv[1], argv[2]);
	puts("mounted");
	fflush(stdout);
	while ((n = read(fuse, request, sizeof request)) > 0 || (n < 0 && (errno == EINTR || errno == ENOENT)))
		if (n > 0)
			serve((const void *)request, request + sizeof(struct fuse_in_header));
	return n < 0 && errno == ENODEV ? 0 : 1;
}
