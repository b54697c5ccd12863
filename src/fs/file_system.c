#include "fs/file_system.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/units.h"
#include "fs/acl.h"
#include "fs/dir_impl.h"
#include "fs/fs_err.h"

/* ---- Errors ---- */

bool fs_cannot(enum ability a, int sys)
{
	static const int errors[ABILITIES][6] = {
		[ABILITY_MODES] = { EPERM, EOPNOTSUPP, ENOSYS },
		[ABILITY_OWNERS] = { EPERM, EOPNOTSUPP, ENOSYS, EINVAL }, /* a number unknown to the user namespace */
		[ABILITY_XATTRS] = { EPERM, EOPNOTSUPP, ENOSYS, EACCES, EBADF }, /* another user's directory, O_PATH */
		[ABILITY_ACLS] = { EPERM, EOPNOTSUPP, ENOSYS, EACCES, EBADF, EINVAL },
		[ABILITY_HARD_LINKS] = { EPERM, EOPNOTSUPP, ENOSYS, EMLINK, EXDEV },
		[ABILITY_SYMLINKS] = { EPERM, EOPNOTSUPP, ENOSYS },
		[ABILITY_TIMES] = { EPERM, EOPNOTSUPP, ENOSYS },
		[ABILITY_CASE] = { EEXIST },
		[ABILITY_LOCKS] = { ENOLCK, EOPNOTSUPP, ENOSYS },
		[ABILITY_HOLES] = { EOPNOTSUPP, ENOSYS, EINVAL },
		[ABILITY_SYNC] = { EINVAL, EOPNOTSUPP, ENOSYS },
		[ABILITY_NO_REPLACE] = { EINVAL, EOPNOTSUPP, ENOSYS },
	};
	size_t i;

	for (i = 0; i < sizeof errors[a] / sizeof errors[a][0] && errors[a][i] != 0; i++)
		if (errors[a][i] == sys)
			return true;
	return false;
}

/* ---- Types ---- */

static const struct {
	long magic;
	const char *type;
} local[] = { { EXT4_SUPER_MAGIC, "ext4" }, { XFS_SUPER_MAGIC, "xfs" }, { BTRFS_SUPER_MAGIC, "btrfs" },
	{ TMPFS_MAGIC, "tmpfs" }, { RAMFS_MAGIC, "ramfs" }, { F2FS_SUPER_MAGIC, "f2fs" } };

/* The type of the mounted device; without /proc it stays empty. */
static void find_type(char type[FILE_SYSTEM_TYPE_BYTES], dev_t dev)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	unsigned major_of, minor_of;
	char *line = NULL, *at;
	size_t cap = 0;

	while (f != NULL && getline(&line, &cap, f) > 0)
		if (sscanf(line, "%*u %*u %u:%u", &major_of, &minor_of) == 2 && major_of == major(dev) &&
		    minor_of == minor(dev) && (at = strstr(line, " - ")) != NULL)
			sscanf(at, " - %31s", type);
	free(line);
	if (f != NULL)
		fclose(f);
}

static int identify(struct file_system *out, struct dir *d, int at, struct ptcp_err *e)
{
	struct statfs fs;
	size_t i;

	if (dir_sys(d)->fstatfs(at, &fs) != 0)
		return fs_err_sys(e, errno, d, NULL, NULL);
	*out = (struct file_system){ .time_ns = 1, .first_s = INT64_MIN, .last_s = INT64_MAX,
		.name_max = (unsigned)fs.f_namelen };
	for (i = 0; i < sizeof local / sizeof *local; i++)
		if ((long)fs.f_type == local[i].magic) {
			out->local = out->tried = true;
			strcpy(out->type, local[i].type);
		}
	if (!out->local)
		find_type(out->type, dir_dev(d));
	return 0;
}

/* ---- Trying ---- */

struct trial {
	const struct sys *sys;
	struct file_system *out;
	int at, fd;
	struct stat st;       /* result of look() */
	char name[NAME_MAX];  /* name of a part file: a leftover if this process is killed */
};

static void lacks(struct trial *t, enum ability a, bool does) { t->out->lacks |= (uint32_t)does << a; }

static bool look(struct trial *t) { return t->sys->fstat(t->fd, &t->st) == 0; }

static void try_modes(struct trial *t)
{
	const mode_t modes[] = { 0640, 0400, 0600 };
	size_t i;

	for (i = 0; i < sizeof modes / sizeof *modes; i++)
		lacks(t, ABILITY_MODES, t->sys->fchmod(t->fd, modes[i]) != 0 || !look(t) ||
		    (t->st.st_mode & 07777) != modes[i]);
}

/* Only root gives files away; the others set the owner of their own file again. */
static void try_owners(struct trial *t)
{
	const uid_t other = geteuid() == 0 ? 1 : geteuid();
	const gid_t group = t->st.st_gid;
	int r = t->sys->fchownat(t->fd, "", other, group, AT_EMPTY_PATH);

	if (r != 0 && errno == EINVAL) /* a number unknown to the user namespace */
		return;
	lacks(t, ABILITY_OWNERS, r != 0 || !look(t) || t->st.st_uid != other);
	t->sys->fchownat(t->fd, "", geteuid(), group, AT_EMPTY_PATH);
}

static bool store_time(struct trial *t, int64_t s, long ns, struct timespec *stored)
{
	const struct timespec ts[2] = { { s, ns }, { s, ns } };

	if (t->sys->futimens(t->fd, ts) != 0 || !look(t))
		return false;
	*stored = t->st.st_mtim;
	return true;
}

static void try_times(struct trial *t)
{
	/* 1960, 2446, and an odd second of 2002 with a fraction of nine digits. */
	const int64_t early = -315619200, late = INT64_C(14999999998), now = 1012000001;
	static const uint64_t steps[] = { 1, 100, 1000, NS_PER_MS, 10 * NS_PER_MS, NS_PER_S, 2 * NS_PER_S };
	const long fraction = 987654321;
	struct timespec got;
	uint64_t error;
	size_t i;

	if (!store_time(t, now, fraction, &got) || got.tv_sec < now - 1 || got.tv_sec > now + 1) {
		t->out->time_ns = 0;
		lacks(t, ABILITY_TIMES, true);
		return;
	}
	error = (uint64_t)llabs((now - got.tv_sec)  * (int64_t)NS_PER_S + fraction - got.tv_nsec);
	for (i = 0; i + 1 < sizeof steps / sizeof *steps && error >= steps[i]; i++)
		;
	t->out->time_ns = steps[i];
	/* Out of range, a time becomes the first or last one, or loses bits. */
	if (store_time(t, early, 0, &got) && got.tv_sec != early)
		t->out->first_s = got.tv_sec > early && got.tv_sec < now ? got.tv_sec : 0;
	if (store_time(t, late, 0, &got) && got.tv_sec != late)
		t->out->last_s = got.tv_sec > now && got.tv_sec < late ? got.tv_sec : INT32_MAX;
	lacks(t, ABILITY_TIMES, t->out->time_ns != 1 || t->out->first_s != INT64_MIN || t->out->last_s != INT64_MAX);
}

static void try_attributes(struct trial *t)
{
	/* Version 2; owner rw, user 1 r, group none, mask r, others none. */
	static const uint8_t acl[] = { 2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 4, 0, 1, 0, 0, 0,
		4, 0, 0, 0, 255, 255, 255, 255, 16, 0, 4, 0, 255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255 };

	lacks(t, ABILITY_XATTRS, t->sys->fsetxattr(t->fd, "user.ptcp.try", "1", 1, 0) != 0 &&
	    fs_cannot(ABILITY_XATTRS, errno));
	lacks(t, ABILITY_ACLS, t->sys->fsetxattr(t->fd, ACL_ACCESS, acl, sizeof acl, 0) != 0 ?
	    errno != EINVAL && fs_cannot(ABILITY_ACLS, errno) :
	    t->sys->fgetxattr(t->fd, ACL_ACCESS, NULL, 0) <= 0);
}

/* Both names must have one inode number: where inode numbers belong to names, links are not recognized. */
static void try_links(struct trial *t)
{
	char link[NAME_MAX + 8];
	struct stat st;

	snprintf(link, sizeof link, "%.*s.link", (int)(strlen(t->name) - strlen(".part")), t->name);
	lacks(t, ABILITY_HARD_LINKS, t->sys->linkat(t->at, t->name, t->at, link, 0) != 0 || !look(t) ||
	    t->sys->fstatat(t->at, link, &st, AT_SYMLINK_NOFOLLOW) != 0 || st.st_ino != t->st.st_ino ||
	    st.st_nlink < 2);
	t->sys->unlinkat(t->at, link, 0);
	lacks(t, ABILITY_SYMLINKS, t->sys->symlinkat("try", t->at, link) != 0);
	t->sys->unlinkat(t->at, link, 0);
}

static void try_case(struct trial *t)
{
	char other[NAME_MAX];
	struct stat st;
	size_t i;

	for (i = 0; t->name[i] != '\0'; i++)
		other[i] = (char)toupper((unsigned char)t->name[i]);
	other[i] = '\0';
	lacks(t, ABILITY_CASE, t->sys->fstatat(t->at, other, &st, AT_SYMLINK_NOFOLLOW) == 0);
}

static bool creates(struct trial *t, const char *name)
{
	int fd = t->sys->openat(t->at, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno == EEXIST;
	t->sys->close(&fd);
	t->sys->unlinkat(t->at, name, 0);
	return true;
}

static void try_characters(struct trial *t)
{
	static const char often[] = ":*?\"<>|\\\n";
	char name[NAME_MAX + sizeof often];
	size_t i, n = 0;

	snprintf(name, sizeof name, "%s%s", t->name, often);
	if (creates(t, name))
		return;
	for (i = 0; often[i] != '\0'; i++) {
		snprintf(name, sizeof name, "%s%c", t->name, often[i]);
		if (!creates(t, name))
			t->out->refused[n++] = often[i];
	}
}

static void try_contents(struct trial *t)
{
	enum { HOLE = 1 << 20 };

	lacks(t, ABILITY_LOCKS, t->sys->flock(t->fd, LOCK_EX | LOCK_NB) != 0 && fs_cannot(ABILITY_LOCKS, errno));
	lacks(t, ABILITY_SYNC, t->sys->fsync(t->fd) != 0 && fs_cannot(ABILITY_SYNC, errno));
	lacks(t, ABILITY_HOLES, t->sys->ftruncate(t->fd, HOLE) == 0 && look(t) && t->st.st_blocks >= HOLE / 512);
}

/* A renamed file must be recognized, too. */
static void try_rename(struct trial *t)
{
	char to[NAME_MAX + 8];
	struct stat st;

	snprintf(to, sizeof to, "%.*s.link", (int)(strlen(t->name) - strlen(".part")), t->name);
	if (!look(t))
		return;
	if (t->sys->renameat2(t->at, t->name, t->at, to, RENAME_NOREPLACE) != 0) {
		lacks(t, ABILITY_NO_REPLACE, fs_cannot(ABILITY_NO_REPLACE, errno));
		if (t->sys->renameat(t->at, t->name, t->at, to) != 0)
			return;
	}
	strcpy(t->name, to);
	lacks(t, ABILITY_HARD_LINKS, t->sys->fstatat(t->at, to, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_ino != t->st.st_ino);
}

static int try_all(struct file_system *out, const struct dir *d, int at, struct ptcp_err *e)
{
	struct trial t = { .sys = dir_sys(d), .out = out, .at = at };
	struct stat before;
	const uintptr_t own = (uintptr_t)&t; /* differs by thread */
	const bool dated = t.sys->fstat(at, &before) == 0;

	snprintf(t.name, sizeof t.name, ".ptcp-%08x%08x.part", (unsigned)getpid(), (unsigned)own);
	if ((t.fd = t.sys->openat(at, t.name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)) < 0)
		return fs_err_sys(e, errno, d, NULL, "cannot create a file");
	if (look(&t)) {
		try_contents(&t);
		try_times(&t);
		try_modes(&t);
		try_attributes(&t);
		try_links(&t);
		try_case(&t);
		try_characters(&t);
		try_owners(&t);
		try_rename(&t);
	}
	t.sys->unlinkat(at, t.name, 0);
	t.sys->close(&t.fd);
	if (dated)
		t.sys->utimensat(at, ".", (const struct timespec[2]){ before.st_atim, before.st_mtim }, 0);
	return 0;
}

int file_system_try(struct dir *d, struct file_system *out, struct ptcp_err *e)
{
	int at, r;

	if ((at = dir_fd(d, e)) < 0)
		return at;
	if ((r = identify(out, d, at, e)) == 0 && (r = try_all(out, d, at, e)) == 0)
		out->tried = true;
	dir_fd_done(d);
	return r;
}

/* ---- Those of a tree ---- */

const struct file_system *file_system_known(const struct dir *d)
{
	const struct known_file_systems *k = &d->tree->file_systems;
	const struct file_system *found = NULL;
	unsigned i;

	pthread_mutex_lock(&d->tree->lock);
	for (i = k->n; i-- > 0 && found == NULL;)
		found = d->known && k->of[i].dev == d->dev ? &k->of[i].is : NULL;
	pthread_mutex_unlock(&d->tree->lock);
	return found;
}

static const struct file_system *add(struct tree *t, const struct file_system *is, uint64_t dev)
{
	struct known_file_systems *k = &t->file_systems;
	struct known_file_system *added = NULL;

	pthread_mutex_lock(&t->lock);
	if (k->n < sizeof k->of / sizeof *k->of) {
		added = &k->of[k->n++];
		*added = (struct known_file_system){ .dev = dev, .is = *is };
	}
	pthread_mutex_unlock(&t->lock);
	return added != NULL ? &added->is : NULL;
}

static const struct file_system *find(struct dir *d, bool tried)
{
	const struct file_system *found = NULL;
	struct file_system is;
	int at = dir_fd(d, NULL);

	if (at < 0)
		return NULL;
	if (((found = file_system_known(d)) == NULL || found->tried < tried) && identify(&is, d, at, NULL) == 0) {
		if (tried && !is.tried)
			try_all(&is, d, at, NULL);
		is.tried |= tried;
		found = add(d->tree, &is, dir_dev(d));
	}
	dir_fd_done(d);
	return found;
}

const struct file_system *file_system_of(struct dir *d) { return find(d, false); }
const struct file_system *file_system_tried(struct dir *d) { return find(d, true); }

bool file_system_known_lacks(const struct dir *d, enum ability a)
{
	const struct file_system *f = file_system_known(d);

	return f != NULL && file_system_lacks(f, a);
}

void file_system_share(const struct dir *from, struct dir *to)
{
	const struct file_system *known = from->tree != to->tree && to->known && from->dev == to->dev ?
	    file_system_known(from) : NULL, *there = known != NULL ? file_system_known(to) : NULL;

	if (known != NULL && (there == NULL || there->tried < known->tried))
		add(to->tree, known, dir_dev(to));
}

bool file_system_stores_as(const struct file_system *f, struct timespec source, struct timespec stored)
{
	const int64_t step_s = f->time_ns > NS_PER_S ? (int64_t)(f->time_ns / NS_PER_S) : 1;

	if (!f->tried || !file_system_stores(f, source))
		return false;
	if (f->time_ns < NS_PER_S)
		return stored.tv_sec == source.tv_sec &&
		    stored.tv_nsec == source.tv_nsec - source.tv_nsec % (long)f->time_ns;
	return stored.tv_nsec == 0 && stored.tv_sec <= source.tv_sec && source.tv_sec - stored.tv_sec < step_s &&
	    stored.tv_sec % step_s == 0;
}

/* ---- As text ---- */

static void append(char *out, const char *text)
{
	size_t n = strlen(out);

	snprintf(out + n, FILE_SYSTEM_TEXT_BYTES - n, "%s", text);
}

static void append_item(char *out, const char *text)
{
	append(out, strchr(out, ':') != NULL ? ", " : ": ");
	append(out, text);
}

static int year_of(int64_t s)
{
	time_t t = (time_t)s;
	struct tm tm;

	return gmtime_r(&t, &tm) != NULL ? tm.tm_year + 1900 : 0;
}

static void append_times(const struct file_system *f, char *out)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} steps[] = { { 100, "100 ns" }, { 1000, "1 us" }, { NS_PER_MS, "1 ms" }, { 10 * NS_PER_MS, "10 ms" },
		{ NS_PER_S, "1 s" }, { 2 * NS_PER_S, "2 s" } };
	char text[40];
	size_t i;

	if (f->time_ns == 0)
		append_item(out, "no times");
	for (i = 0; i < sizeof steps / sizeof *steps; i++) {
		snprintf(text, sizeof text, "times to %s", steps[i].text);
		if (steps[i].ns == f->time_ns)
			append_item(out, text);
	}
	snprintf(text, sizeof text, "times from %d on", year_of(f->first_s));
	if (f->first_s != INT64_MIN)
		append_item(out, text);
	snprintf(text, sizeof text, "times until %d", year_of(f->last_s));
	if (f->last_s != INT64_MAX)
		append_item(out, text);
}

bool file_system_text(const struct file_system *f, uint32_t of, char out[FILE_SYSTEM_TEXT_BYTES])
{
	static const char *const names[ABILITIES] = { [ABILITY_MODES] = "modes", [ABILITY_OWNERS] = "owners",
		[ABILITY_XATTRS] = "extended attributes", [ABILITY_ACLS] = "ACLs", [ABILITY_HARD_LINKS] = "hard links",
		[ABILITY_SYMLINKS] = "symbolic links", [ABILITY_LOCKS] = "locks", [ABILITY_HOLES] = "holes",
		[ABILITY_SYNC] = "sync", [ABILITY_NO_REPLACE] = "exclusive renames" };
	const uint32_t missing = f->lacks & of;
	unsigned i, last = 0, n = 0;

	if (missing == 0)
		return false;
	snprintf(out, FILE_SYSTEM_TEXT_BYTES, "%s", f->type[0] != '\0' ? f->type : "this file system");
	for (i = 0; i < ABILITIES; i++)
		last = names[i] != NULL && (missing >> i & 1) != 0 ? i : last;
	for (i = 0; i < ABILITIES; i++)
		if (names[i] != NULL && (missing >> i & 1) != 0) {
			append(out, n++ == 0 ? ": no " : i == last ? " or " : ", ");
			append(out, names[i]);
		}
	if ((missing >> ABILITY_TIMES & 1) != 0)
		append_times(f, out);
	if ((missing >> ABILITY_CASE & 1) != 0)
		append_item(out, "case is ignored");
	return true;
}
