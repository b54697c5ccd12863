#include "store/leftover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "store/part.h"
#include "store/store_err.h"
#include "store/walk.h"

#define MARKS_MAX 1000 /* in one walk */
#define STEM_BYTES 22  /* ".ptcp-" and 16 digits */

struct mark {
	struct dir *dir;
	char name[PART_NAME_BYTES];
};

struct cleaning {
	const struct leftover_opts *o;
	struct leftover_totals *totals;
	bool stopped;
	unsigned n_marks;
	struct mark mark[MARKS_MAX];
};

/* One file to be judged, in `d`, open at `at`. */
struct candidate {
	struct dir *d;
	const struct sys *sys;
	int at;
	const char *name;
	struct stat st;
	char part[PART_NAME_BYTES];  /* the part with the same stem, which may be `name` itself */
	bool part_exists, locked;
};

static bool has_suffix(const char *name, const char *suffix) { return strcmp(name + STEM_BYTES, suffix) == 0; }

/* The newest ctime: transfers set the mtime of a part to the source's. */
static double age_s(const struct timespec *now, const struct stat *st)
{
	return (double)(now->tv_sec - st->st_ctim.tv_sec) + (double)(now->tv_nsec - st->st_ctim.tv_nsec) / 1e9;
}

static double group_age_s(const struct candidate *c, const struct timespec *now)
{
	static const char *const suffixes[] = { PART_SUFFIX, PART_JOURNAL_SUFFIX };
	double least = age_s(now, &c->st), age;
	char name[PART_NAME_BYTES];
	struct stat st;
	size_t i;

	if (!has_suffix(c->name, PART_SUFFIX) && !has_suffix(c->name, PART_JOURNAL_SUFFIX))
		return least;
	for (i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		memcpy(name, c->name, STEM_BYTES);
		strcpy(name + STEM_BYTES, suffixes[i]);
		if (c->sys->fstatat(c->at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && (age = age_s(now, &st)) < least)
			least = age;
	}
	return least;
}

/* Locks the part that `c` belongs to. Returns its descriptor, or -1: no part, or not locked; c->locked false with
 * c->part_exists: in use, or without locks on this file system (*in_use false). */
static int lock_part(struct candidate *c, bool *in_use)
{
	struct stat st, named;
	int fd;

	*in_use = false;
	if (!has_suffix(c->name, PART_SUFFIX) && !has_suffix(c->name, PART_JOURNAL_SUFFIX))
		return -1;
	memcpy(c->part, c->name, STEM_BYTES);
	strcpy(c->part + STEM_BYTES, PART_SUFFIX);
	fd = c->sys->openat(c->at, c->part, SYS_READ_FLAGS | O_RDWR, 0); /* NFS locks writable descriptors only */
	if (fd < 0 && errno == EACCES)
		fd = c->sys->openat(c->at, c->part, SYS_READ_FLAGS, 0);
	if (fd < 0) {
		c->part_exists = errno != ENOENT;
		return -1;
	}
	c->part_exists = true;
	if (c->sys->flock(fd, LOCK_EX | LOCK_NB) != 0) {
		*in_use = errno == EWOULDBLOCK;
		return fd;
	}
	/* With the lock ours, nobody else renames the part: this comparison is final. */
	c->locked = c->sys->fstat(fd, &st) == 0 && c->sys->fstatat(c->at, c->part, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_dev == named.st_dev && st.st_ino == named.st_ino;
	*in_use = !c->locked; /* another transfer has taken over or completed the part just now */
	return fd;
}

/* Only regular files of this user, or symbolic links where a transfer creates links. */
static const char *not_ours(const struct candidate *c)
{
	if (c->st.st_uid != geteuid())
		return "owned by another user (the owner can remove it)";
	if (!S_ISREG(c->st.st_mode) && !(S_ISLNK(c->st.st_mode) && has_suffix(c->name, PART_LINK_SUFFIX)))
		return "not a file of ptcp (remove it by hand)";
	return NULL;
}

static void report(struct cleaning *k, const struct candidate *c, double age, const char *why)
{
	const struct leftover l = { .dir = c->d, .name = c->name, .size_bytes = (uint64_t)c->st.st_size, .age_s = age,
		.why = why };

	if (why != NULL) {
		k->totals->failed++;
	} else {
		k->totals->files++;
		k->totals->bytes += l.size_bytes;
	}
	if (k->o->found != NULL && !k->o->found(k->o->arg, &l))
		k->stopped = true;
}

/* The part's lock is ours where the file has one. */
static void remove_file(struct cleaning *k, struct candidate *c, double age)
{
	const char *why = not_ours(c);

	if (why == NULL && !k->o->dry_run && c->sys->unlinkat(c->at, c->name, 0) != 0) {
		if (errno == ENOENT)
			return;
		why = strerror(errno);
	}
	if (why == NULL && !k->o->dry_run)
		dir_changed(c->d);
	report(k, c, age, why);
}

static void judge(struct cleaning *k, struct candidate *c)
{
	double age, min_s = k->o->older_s;
	bool in_use = false, ours;
	int fd = -1;

	if (c->sys->fstatat(c->at, c->name, &c->st, AT_SYMLINK_NOFOLLOW) != 0)
		return; /* gone since the listing */
	if ((ours = not_ours(c) == NULL)) /* the lock of another user's file is not ours to take */
		fd = lock_part(c, &in_use);
	age = group_age_s(c, &k->o->now);
	if (ours && !c->locked && min_s < LEFTOVER_UNLOCKED_S)
		min_s = LEFTOVER_UNLOCKED_S;
	if (in_use)
		k->totals->in_use++;
	else if (age < min_s)
		k->totals->recent++;
	else
		remove_file(k, c, age);
	if (fd >= 0)
		c->sys->close(fd);
}

static int judge_in(struct cleaning *k, struct dir *d, const char *name, struct ptcp_err *e)
{
	struct candidate c = { .d = d, .sys = dir_sys(d), .name = name };

	if ((c.at = dir_fd(d, e)) < 0)
		return c.at;
	judge(k, &c);
	dir_fd_done(d);
	return 0;
}

static void postpone(struct cleaning *k, const struct walk_entry *w)
{
	if (k->n_marks == MARKS_MAX)
		return; /* the next run removes it */
	strcpy(k->mark[k->n_marks].name, w->name);
	k->mark[k->n_marks++].dir = dir_ref(w->dir);
}

static void on_entry(struct cleaning *k, const struct walk_entry *w)
{
	struct ptcp_err why;
	char path[DIR_PATH_TEXT_BYTES];

	if (w->type == WALK_FAILED) {
		k->totals->failed++;
		if (k->o->found != NULL && !k->o->found(k->o->arg, &(struct leftover){ .dir = w->dir, .name = w->name,
		    .why = w->why + (strncmp(w->why, dir_path_text(w->dir, w->name, path, sizeof path), strlen(path)) == 0 ?
		    strlen(path) + 2 : 0) }))
			k->stopped = true;
	} else if (w->type != WALK_SKIPPED || !part_is_own_name(w->name)) {
		return;
	} else if (has_suffix(w->name, PART_DIR_SUFFIX)) {
		postpone(k, w);
	} else if (judge_in(k, w->dir, w->name, &why) < 0) {
		k->totals->failed++;
	}
}

static int walk_all(struct cleaning *k, struct walk *w, struct ptcp_err *e)
{
	struct walk_entry entry;
	struct ptcp_err why;
	unsigned i;
	int r = 0;

	while (!k->stopped && (r = walk_next(w, &entry, e)) > 0) {
		on_entry(k, &entry);
		walk_entry_fini(&entry);
	}
	for (i = 0; i < k->n_marks; i++) {
		if (r == 0 && !k->stopped && k->totals->in_use == 0 && k->totals->recent == 0 &&
		    judge_in(k, k->mark[i].dir, k->mark[i].name, &why) < 0)
			k->totals->failed++;
		dir_unref(k->mark[i].dir);
	}
	return r < 0 ? r : 0;
}

int leftovers_clean(struct dir *base, const struct leftover_opts *o, struct leftover_totals *out, struct ptcp_err *e)
{
	struct cleaning *k = calloc(1, sizeof *k);
	struct walk *w = NULL;
	int r;

	*out = (struct leftover_totals){ 0 };
	if (k == NULL)
		return err_nomem(e);
	k->o = o;
	k->totals = out;
	if ((r = walk_new(&w, e)) == 0 && (r = walk_add(w, base, NULL, e)) == 0)
		r = walk_all(k, w, e);
	walk_free(w);
	free(k);
	return r;
}
