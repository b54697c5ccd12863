#include "store/leftover.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/charged.h"
#include "fs/quota.h"
#include "store/part.h"
#include "store/walk.h"

#define MARKS_MAX 1000 /* marks in one walk */
#define STEM_BYTES 22  /* ".ptcp-" and 16 digits */

struct mark {
	struct dir *dir;
	char name[PART_NAME_BYTES];
};

struct leftovers {
	struct leftover_opts o;
	struct leftover_totals totals;
	struct walk *walk;
	unsigned n_marks;
	struct mark mark[MARKS_MAX];
};

/* A hidden file that may be a leftover, in `d`, open at `at`. */
struct leftover_candidate {
	struct dir *d;
	const struct sys *sys;
	int at;
	const char *name;
	struct stat st;
	bool locked; /* its part's lock is ours */
};

static bool has_suffix(const char *name, const char *suffix) { return strcmp(name + STEM_BYTES, suffix) == 0; }

/* The name of the same transfer's file with another suffix. */
static const char *with_suffix(char out[PART_NAME_BYTES], const char *name, const char *suffix)
{
	memcpy(out, name, STEM_BYTES);
	strcpy(out + STEM_BYTES, suffix);
	return out;
}

/* The newest ctime: transfers set the mtime of a part to the source's. */
static double age_s(const struct timespec *now, const struct stat *st)
{
	return (double)(now->tv_sec - st->st_ctim.tv_sec) + (double)(now->tv_nsec - st->st_ctim.tv_nsec) / 1e9;
}

static double group_age_s(const struct leftover_candidate *c, const struct timespec *now)
{
	static const char *const suffixes[] = { PART_SUFFIX, PART_JOURNAL_SUFFIX };
	double min = age_s(now, &c->st), age;
	char name[PART_NAME_BYTES];
	struct stat st;
	size_t i;

	if (!has_suffix(c->name, PART_SUFFIX) && !has_suffix(c->name, PART_JOURNAL_SUFFIX))
		return min;
	for (i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		with_suffix(name, c->name, suffixes[i]);
		if (c->sys->fstatat(c->at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && (age = age_s(now, &st)) < min)
			min = age;
	}
	return min;
}

/* Locks the part that `c` belongs to, which may be `c` itself: sets c->locked. Returns the part's descriptor, or -1:
 * no part, or it cannot be opened. *in_use: a transfer holds the lock; false also if the file system has no locks. */
static int lock_part(struct leftover_candidate *c, bool *in_use)
{
	char part[PART_NAME_BYTES];
	struct stat st, named;
	int fd;

	*in_use = false;
	if (!has_suffix(c->name, PART_SUFFIX) && !has_suffix(c->name, PART_JOURNAL_SUFFIX))
		return -1;
	with_suffix(part, c->name, PART_SUFFIX);
	fd = c->sys->openat(c->at, part, SYS_READ_FLAGS | O_RDWR, 0); /* NFS locks writable descriptors only */
	if (fd < 0 && errno == EACCES)
		fd = c->sys->openat(c->at, part, SYS_READ_FLAGS, 0);
	if (fd < 0)
		return -1;
	if (c->sys->flock(fd, LOCK_EX | LOCK_NB) != 0) {
		*in_use = errno == EWOULDBLOCK;
		return fd;
	}
	/* With the lock ours, nobody else renames the part: this comparison is final. */
	c->locked = c->sys->fstat(fd, &st) == 0 && c->sys->fstatat(c->at, part, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_dev == named.st_dev && st.st_ino == named.st_ino;
	*in_use = !c->locked; /* another transfer has taken over or completed the part just now */
	return fd;
}

/* Only regular files of this user, or symbolic links where a transfer creates links. */
static const char *not_ours(const struct leftover_candidate *c)
{
	if (c->st.st_uid != geteuid())
		return "owned by another user (the owner can remove it)";
	if (!S_ISREG(c->st.st_mode) && !(S_ISLNK(c->st.st_mode) && has_suffix(c->name, PART_LINK_SUFFIX)))
		return "not a file of ptcp (remove it by hand)";
	return NULL;
}

static void leftover_report(struct leftovers *k, const struct leftover *l)
{
	if (l->why != NULL) {
		k->totals.failed++;
	} else {
		k->totals.files++;
		k->totals.bytes += l->size_bytes;
	}
	if (k->o.found != NULL)
		k->o.found(k->o.arg, l);
}

static int unlink_file(const struct leftover_candidate *c)
{
	uint64_t freed;
	int r, err;

	quota_names_begin(dir_quota(c->d), c->sys, c->at, c->name, &freed);
	r = c->sys->unlinkat(c->at, c->name, 0);
	err = errno;
	quota_names_end(dir_quota(c->d), r == 0, freed);
	errno = err;
	return r;
}

/* With the lock of its part, if it has one. */
static void remove_file(struct leftovers *k, struct leftover_candidate *c, double age)
{
	struct leftover l = { .dir = c->d, .name = c->name, .size_bytes = (uint64_t)c->st.st_size, .age_s = age,
		.why = not_ours(c), .sys = EPERM };

	if (l.why == NULL && !k->o.dry_run && unlink_file(c) != 0) {
		if (errno == ENOENT)
			return;
		l.sys = errno;
		l.why = strerror(l.sys);
	}
	if (l.why == NULL && !k->o.dry_run)
		dir_changed(c->d);
	leftover_report(k, &l);
}

/* Whether a journal has a part, with which it is judged: alone it has no lock. */
static bool is_with_part(const struct leftover_candidate *c)
{
	char name[PART_NAME_BYTES];
	struct stat st;

	if (!has_suffix(c->name, PART_JOURNAL_SUFFIX))
		return false;
	with_suffix(name, c->name, PART_SUFFIX);
	return c->sys->fstatat(c->at, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void conclude(struct leftovers *k, struct leftover_candidate *c, bool in_use, double age, double min_s)
{
	if (in_use)
		k->totals.in_use++;
	else if (age < min_s)
		k->totals.recent++;
	else
		remove_file(k, c, age);
}

/* Before the part, whose removal ends the protection by the lock. */
static void conclude_journal(struct leftovers *k, const struct leftover_candidate *part, bool in_use,
    double age, double min_s)
{
	char name[PART_NAME_BYTES];
	struct leftover_candidate c = *part;

	c.name = with_suffix(name, part->name, PART_JOURNAL_SUFFIX);
	if (has_suffix(part->name, PART_SUFFIX) && c.sys->fstatat(c.at, name, &c.st, AT_SYMLINK_NOFOLLOW) == 0)
		conclude(k, &c, in_use, age, min_s);
}

static void judge(struct leftovers *k, struct leftover_candidate *c)
{
	double age, min_s = k->o.older_s;
	bool in_use = false, ours;
	int fd = -1;

	if (c->sys->fstatat(c->at, c->name, &c->st, AT_SYMLINK_NOFOLLOW) != 0 || is_with_part(c))
		return; /* the former: gone since the listing */
	if ((ours = not_ours(c) == NULL)) /* the lock of another user's file is not ours to take */
		fd = lock_part(c, &in_use);
	age = group_age_s(c, &k->o.now);
	if (ours && !c->locked && min_s < LEFTOVER_UNLOCKED_S)
		min_s = LEFTOVER_UNLOCKED_S;
	conclude_journal(k, c, in_use, age, min_s);
	conclude(k, c, in_use, age, min_s);
	c->sys->close(&fd);
}

static int judge_in(struct leftovers *k, struct dir *d, const char *name, struct ptcp_err *e)
{
	struct leftover_candidate c = { .d = d, .sys = dir_sys(d), .name = name };

	if ((c.at = dir_fd(d, e)) < 0)
		return c.at;
	judge(k, &c);
	dir_fd_done(d);
	return 0;
}

static void postpone(struct leftovers *k, const struct walk_entry *w)
{
	if (k->n_marks == MARKS_MAX)
		return; /* the next run removes it */
	strcpy(k->mark[k->n_marks].name, w->name);
	k->mark[k->n_marks++].dir = dir_ref(w->dir);
}

static void report_failed(struct leftovers *k, const struct walk_entry *w)
{
	char path[DIR_PATH_TEXT_BYTES];
	size_t n = strlen(dir_path_text(w->dir, w->name, path, sizeof path));
	const struct leftover l = { .dir = w->dir, .name = w->name,
		.why = w->why + (strncmp(w->why, path, n) == 0 ? n + 2 : 0), .sys = w->sys };

	leftover_report(k, &l);
}

static int on_entry(void *arg, struct walk_entry *w, struct ptcp_err *e)
{
	struct leftovers *k = arg;
	struct ptcp_err why;

	(void)e;

	if (w->type == WALK_FAILED)
		report_failed(k, w);
	else if (w->type != WALK_SKIPPED || !part_is_own_name(w->name))
		return 0;
	else if (has_suffix(w->name, PART_DIR_SUFFIX))
		postpone(k, w);
	else if (judge_in(k, w->dir, w->name, &why) < 0)
		k->totals.failed++;
	return 0;
}

static void judge_marks(void *arg)
{
	struct leftovers *k = arg;
	struct ptcp_err why;
	unsigned i;

	for (i = 0; i < k->n_marks && k->totals.in_use == 0 && k->totals.recent == 0; i++)
		if (judge_in(k, k->mark[i].dir, k->mark[i].name, &why) < 0)
			k->totals.failed++;
}

int leftovers_new(struct leftovers **out, struct dir *base, const struct leftover_opts *o, struct ptcp_err *e)
{
	struct leftovers *k = memory_calloc(o->memory, sizeof *k, e);
	int r;

	if (k == NULL)
		return PTCP_ENOMEM;
	k->o = *o;
	if ((r = walk_new(&k->walk, o->memory, e)) < 0 || (r = walk_add(k->walk, base, NULL, e)) < 0) {
		leftovers_free(k);
		return r;
	}
	*out = k;
	return 0;
}

int leftovers_step(struct leftovers *k, unsigned entries, struct ptcp_err *e)
{
	static const struct walk_steps steps = { .entry = on_entry, .end = judge_marks };

	return walk_step(&steps, &k->walk, entries, k, e);
}

const struct leftover_totals *leftovers_totals(const struct leftovers *k) { return &k->totals; }

void leftovers_free(struct leftovers *k)
{
	unsigned i;

	if (k == NULL)
		return;
	for (i = 0; i < k->n_marks; i++)
		dir_unref(k->mark[i].dir);
	walk_free(k->walk);
	memory_free(k->o.memory, k, sizeof *k);
}

int leftovers_clean(struct dir *base, const struct leftover_opts *o, struct leftover_totals *out, struct ptcp_err *e)
{
	struct leftovers *k = NULL;
	int r;

	*out = (struct leftover_totals){ 0 };
	if ((r = leftovers_new(&k, base, o, e)) < 0)
		return r;
	while ((r = leftovers_step(k, UINT_MAX, e)) > 0)
		;
	*out = k->totals;
	leftovers_free(k);
	return r;
}

/* ---- Counting ---- */

void leftover_count_add(struct leftover_count *to, const struct leftover_count *c)
{
	if (c->files > 0 && (to->files == 0 || c->age_s < to->age_s))
		to->age_s = c->age_s;
	to->files += c->files;
	to->bytes += c->bytes;
}

static void on_counted(void *arg, const struct leftover *l)
{
	const struct leftover_count c = { 1, l->size_bytes, l->age_s > 0 ? l->age_s : 0 };

	if (l->why == NULL)
		leftover_count_add(arg, &c);
}

static void count_in(struct dir *d, DIR *stream, struct leftover_count *c)
{
	struct leftovers *k = NULL;
	struct dirent *de;

	while ((de = dir_sys(d)->readdir(stream)) != NULL) {
		if (!part_is_own_name(de->d_name) || has_suffix(de->d_name, PART_DIR_SUFFIX))
			continue;
		if (k == NULL && (k = calloc(1, sizeof *k)) == NULL)
			return;
		k->o = (struct leftover_opts){ .dry_run = true, .found = on_counted, .arg = c };
		clock_gettime(CLOCK_REALTIME, &k->o.now);
		judge_in(k, d, de->d_name, NULL);
	}
	leftovers_free(k);
}

void leftovers_count(struct dir *d, struct leftover_count *c)
{
	const struct sys *sys = dir_sys(d);
	DIR *stream;
	int at, fd;

	if ((at = dir_fd(d, NULL)) < 0)
		return;
	fd = sys->openat(at, ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	dir_fd_done(d);
	if (fd < 0)
		return;
	if ((stream = sys->fdopendir(&fd)) == NULL)
		return;
	count_in(d, stream, c);
	sys->closedir(stream);
}
