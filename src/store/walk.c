#include "store/walk.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "core/charged.h"
#include "core/fd.h"
#include "core/list.h"
#include "core/text.h"
#include "fs/fd_budget.h"
#include "fs/fs_err.h"
#include "store/part.h"
#include "store/walk_rules.h"

/* Levels below this one (or less, see fs/fd_budget.h) are read completely when entered and their
 * stream is closed, so that a deep tree does not exhaust the descriptors. */
#define STREAMS_MAX 64

/* An added entry. */
struct item {
	struct list node;
	struct dir *dir;
	bool has_name;
	char name[]; /* else the content of dir */
};

/* A directory being listed, below the directory of `up`. */
struct walk_level {
	struct walk_level *up;
	struct dir *dir;
	bool counted;     /* counted in the descriptor budget */
	DIR *stream;      /* NULL at the end, and after reading completely */
	size_t stream_bytes; /* memory charged for `stream` */
	struct buf names; /* names of a directory read completely, each with its NUL */
	size_t used;      /* bytes of the name read last, which is the first of `names` until the next one is read */
	bool selected;    /* the names are those of `part` instead */
	struct selection_part part, below; /* not read yet; of the name read last */
	bool whole;       /* the name read last is selected itself */
	char name[256];   /* its name */
	char *why;        /* the listing failed; to be reported next, with this code */
	int code, sys;
	int depth;        /* depth of the directory; -1 for an added directory's content */
	struct level_rules rules;
	uint64_t dev, ino;
};

struct walk {
	struct memory_account *memory;
	struct list items;
	struct walk_level *top;
	unsigned streams, max_streams;
	bool flat;
	struct dir *enter; /* the WALK_DIR returned last: its content is next */
	int enter_depth;
	uint64_t enter_dev, enter_ino;
	bool enter_selected; /* selected as far as it is in enter_part */
	struct selection_part enter_part;
	const struct selection *selection; /* NULL: all */
	struct walk_rules rules;
	struct walk_limits limits;
	uint32_t levels; /* see walk_set_levels() */
	uint64_t dev;      /* file system of the added entry */
	bool content;      /* the added entry is the content of a directory */
};

int walk_new(struct walk **out, struct memory_account *memory, struct ptcp_err *e)
{
	struct walk *w = memory_calloc(memory, sizeof *w, e);

	if (w == NULL)
		return PTCP_ENOMEM;
	w->memory = w->rules.memory = memory;
	list_init(&w->items);
	w->max_streams = fd_budget_directories(STREAMS_MAX);
	w->levels = WALK_DEPTH_MAX + 1;
	*out = w;
	return 0;
}

static size_t item_bytes(const char *name) { return sizeof(struct item) + (name != NULL ? strlen(name) + 1 : 0); }

static void item_free(struct walk *w, struct item *it)
{
	list_remove(&it->node);
	dir_unref(it->dir);
	memory_free(w->memory, it, item_bytes(it->has_name ? it->name : NULL));
}

static void close_stream(struct walk *w, struct walk_level *l)
{
	if (l->stream == NULL)
		return;
	dir_sys(l->dir)->closedir(l->stream);
	l->stream = NULL;
	memory_release(w->memory, l->stream_bytes);
	w->streams--;
	if (l->counted)
		fd_budget_give_directory();
	l->counted = false;
}

static void pop(struct walk *w)
{
	struct walk_level *l = w->top;

	w->top = l->up;
	close_stream(w, l);
	buf_fini(&l->names);
	filter_scope_free(l->rules.own);
	dir_unref(l->dir);
	free(l->why);
	memory_free(w->memory, l, sizeof *l);
}

void walk_free(struct walk *w)
{
	if (w == NULL)
		return;
	while (w->top != NULL)
		pop(w);
	while (!list_empty(&w->items))
		item_free(w, CONTAINER_OF(w->items.next, struct item, node));
	dir_unref(w->enter);
	walk_rules_fini(&w->rules);
	memory_free(w->memory, w, sizeof *w);
}

void walk_filter(struct walk *w, const struct filter *f, bool own)
{
	w->rules.filter = f;
	w->rules.own = own;
}

void walk_judge(struct walk *w, const struct filter *f, bool own, struct dir *base, const char *above)
{
	walk_filter(w, f, own);
	w->rules.base = dir_ref(base);
	w->rules.base_path = above;
}

void walk_flat(struct walk *w) { w->flat = true; }
void walk_limit(struct walk *w, const struct walk_limits *l) { w->limits = *l; }
void walk_set_levels(struct walk *w, uint32_t levels) { w->levels = levels < WALK_DEPTH_MAX ? levels : WALK_DEPTH_MAX + 1; }
void walk_select(struct walk *w, const struct selection *s) { w->selection = s; }

int walk_add(struct walk *w, struct dir *dir, const char *name, struct ptcp_err *e)
{
	struct item *it = memory_calloc(w->memory, item_bytes(name), e);

	if (it == NULL)
		return PTCP_ENOMEM;
	if ((it->has_name = name != NULL))
		strcpy(it->name, name);
	it->dir = dir_ref(dir);
	list_append(&w->items, &it->node);
	return 0;
}

static int select_name(const struct walk *w, struct walk_level *l, const char **name)
{
	const char *at;
	size_t n;

	l->whole = false;
	if (selection_next(w->selection, &l->part, &at, &n, &l->below, &l->whole) == 0)
		return 0;
	memcpy(l->name, at, n); /* at most 255 bytes: selection_add() */
	l->name[n] = '\0';
	*name = l->name;
	return 1;
}

/* 1 and the name of l's next entry, valid until the next call; 0 at the end; -1 and errno. */
static int read_name(const struct walk *w, struct walk_level *l, const char **name)
{
	struct dirent *de;

	if (l->selected)
		return select_name(w, l, name);
	if (l->stream == NULL) {
		buf_consume(&l->names, l->used);
		l->used = 0;
		if (buf_len(&l->names) == 0)
			return 0;
		*name = (const char *)buf_head(&l->names);
		l->used = strlen(*name) + 1;
		return 1;
	}
	do {
		errno = 0;
		if ((de = dir_sys(l->dir)->readdir(l->stream)) == NULL)
			return errno == 0 ? 0 : -1;
	} while (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0);
	*name = de->d_name;
	return 1;
}

/* The only failure that ends the walk. */
static bool lacks_memory(const struct ptcp_err *why) { return why->code == PTCP_ENOMEM && why->sys == 0; }

static int out_of_memory(const struct ptcp_err *why, struct ptcp_err *e)
{
	if (e != NULL)
		*e = *why;
	return PTCP_ENOMEM;
}

/* Ends the level and stores the message in `why` for the next call. */
static int fail_listing(struct walk *w, struct walk_level *l, const struct ptcp_err *why, struct ptcp_err *e)
{
	struct ptcp_err gone = { 0 };

	close_stream(w, l);
	if (lacks_memory(why))
		return out_of_memory(why, e);
	if (why->sys == ENOENT || why->sys == ESTALE)
		fs_err_set(&gone, PTCP_EVANISHED, why->sys, l->dir, NULL, "vanished before it was sent");
	l->code = gone.code != 0 ? PTCP_EVANISHED : PTCP_EIO;
	l->sys = why->sys;
	return (l->why = strdup(gone.code != 0 ? gone.msg : why->msg)) != NULL ? 0 : err_nomem(e);
}

/* The C library's buffer: the preferred block of the file system, between 32 KiB and 1 MiB. */
static size_t stream_bytes(const struct stat *st)
{
	size_t block = st->st_blksize > 0 ? (size_t)st->st_blksize : 0;

	return block < 32u << 10 ? 32u << 10 : block < 1u << 20 ? block : 1u << 20;
}

/* Takes `fd`, also on failure; negative only without memory, else see l->stream and errno. */
static int stream_new(struct walk *w, struct walk_level *l, int *fd, struct ptcp_err *why)
{
	const struct sys *sys = dir_sys(l->dir);
	struct stat st = { 0 };
	int r;

	sys->fstat(*fd, &st); /* a failure shows below */
	l->stream_bytes = stream_bytes(&st);
	if ((r = memory_charge(w->memory, l->stream_bytes, why)) < 0) {
		fd_close(fd);
		return r;
	}
	if ((l->stream = sys->fdopendir(fd)) == NULL)
		memory_release(w->memory, l->stream_bytes);
	return 0;
}

static int open_stream(struct walk *w, struct walk_level *l, struct ptcp_err *why)
{
	int at, fd, saved, r;

	if ((at = dir_fd(l->dir, why)) < 0)
		return at;
	/* A separate open file, since a stream moves its position. */
	fd = dir_sys(l->dir)->openat(at, ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	saved = errno;
	dir_fd_done(l->dir);
	if (fd >= 0) {
		if ((r = stream_new(w, l, &fd, why)) < 0)
			return r;
		saved = errno;
	}
	if (l->stream == NULL)
		return fs_err_sys(why, saved, l->dir, NULL, "cannot list the directory");
	w->streams++;
	l->counted = fd_budget_take_directory();
	return 0;
}

static int read_whole(struct walk *w, struct walk_level *l, struct ptcp_err *why)
{
	struct buf all = { .memory = w->memory };
	const char *name;
	uint8_t *p;
	size_t n;
	int r;

	while ((r = read_name(w, l, &name)) > 0) {
		n = strlen(name) + 1;
		if ((p = buf_reserve(&all, n, why)) == NULL) {
			buf_fini(&all);
			return PTCP_ENOMEM;
		}
		memcpy(p, name, n);
		buf_added(&all, n);
	}
	if (r < 0)
		r = fs_err_sys(why, errno, l->dir, NULL, "cannot list the whole directory");
	close_stream(w, l);
	l->names = all;
	return r;
}

/* Begins to list dir, and takes the caller's reference. A directory that cannot be listed becomes a level at
 * its end, with a `why`. Fails only without memory. */
static int push(struct walk *w, struct dir *dir, int depth, struct ptcp_err *e)
{
	struct walk_level *l = memory_calloc(w->memory, sizeof *l, e);
	struct ptcp_err why = { 0 };
	int r;

	if (l == NULL) {
		dir_unref(dir);
		return PTCP_ENOMEM;
	}
	l->dir = dir;
	l->depth = depth;
	l->dev = w->enter_dev;
	l->ino = w->enter_ino;
	l->up = w->top;
	w->top = l;
	if (depth < 0 && w->selection != NULL)
		l->selected = selection_begin(w->selection, &l->part);
	else if (depth >= 0 && w->enter_selected) {
		l->selected = true;
		l->part = w->enter_part;
	}
	w->enter_selected = false;
	if ((r = walk_rules_enter(&w->rules, &l->rules, l->up != NULL ? &l->up->rules : NULL, l->dir, depth < 0, &why)) < 0) {
		l->selected = false;
		return fail_listing(w, l, &why, e);
	}
	if (l->selected)
		return 0;
	if ((r = open_stream(w, l, &why)) == 0 && (w->streams > w->max_streams || !l->counted))
		r = read_whole(w, l, &why);
	return r == 0 ? 0 : fail_listing(w, l, &why, e);
}

void walk_entry_fini(struct walk_entry *e)
{
	dir_unref(e->dir);
	free(e->name);
	free(e->target);
	free(e->content);
	free(e->why);
	*e = (struct walk_entry){ 0 };
}

void walk_entry_set_mode(struct walk_entry *e, uint32_t mode) { e->mode = mode; }

void walk_entry_fill(struct walk_entry *e, uint8_t *content, uint64_t bytes)
{
	e->content = content;
	e->size_bytes = e->disk_bytes = bytes;
	e->sparse = false;
}

static int read_target(struct walk_entry *out, int at, struct ptcp_err *why)
{
	const struct sys *sys = dir_sys(out->dir);
	char target[PATH_MAX + 1];
	ssize_t n = sys->readlinkat(at, out->name, target, sizeof target);

	if (n < 0)
		return fs_err_sys(why, errno, out->dir, out->name, "cannot read the symbolic link");
	if ((size_t)n == sizeof target)
		return fs_err_sys(why, ENAMETOOLONG, out->dir, out->name, "cannot read the symbolic link");
	if ((out->target = strndup(target, (size_t)n)) == NULL)
		return err_nomem(why);
	return 0;
}

static const char *special(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFIFO: return "a FIFO: not sent";
	case S_IFSOCK: return "a socket: not sent";
	case S_IFCHR: return "a character device: not sent";
	case S_IFBLK: return "a block device: not sent";
	default: return "of an unknown type: not sent";
	}
}

/* Makes the entry WALK_SKIPPED, with the message `text` in `why` and out->why. */
static int skip(struct walk_entry *out, const char *text, struct ptcp_err *why)
{
	fs_err_set(why, 0, 0, out->dir, out->name, text);
	out->type = WALK_SKIPPED;
	free(out->target);
	out->target = NULL;
	return (out->why = strdup(why->msg)) != NULL ? 0 : err_nomem(why);
}

/* Fills in the result of stat; dir, name and depth are set. */
static int classify(struct walk_entry *out, int at, const struct stat *st, struct ptcp_err *why)
{
	out->size_bytes = (uint64_t)st->st_size;
	out->disk_bytes = (uint64_t)st->st_blocks * 512;
	out->dev = (uint64_t)st->st_dev;
	out->ino = (uint64_t)st->st_ino;
	out->nlink = (uint64_t)st->st_nlink;
	out->mode = st->st_mode & 07777;
	out->format = st->st_mode & S_IFMT;
	out->uid = st->st_uid;
	out->gid = st->st_gid;
	out->mtime = st->st_mtim;
	out->ctime = st->st_ctim;
	if (S_ISREG(st->st_mode)) {
		out->type = WALK_FILE;
		out->sparse = (uint64_t)st->st_blocks < out->size_bytes / 512;
		return 0;
	}
	if (S_ISLNK(st->st_mode)) {
		out->type = WALK_SYMLINK;
		return read_target(out, at, why);
	}
	if (!S_ISDIR(st->st_mode))
		return skip(out, special(st->st_mode), why);
	out->type = WALK_DIR;
	return 0;
}

static bool is_itself(const char *name) { return strcmp(name, ".") == 0; }

/* Whether the link, below so many directories of the source, may lead out of the source, by its target alone: as rsync has
 * it, ".." behind another component counts as well. */
static bool is_unsafe(const char *target, int depth)
{
	bool down = false;
	size_t n;

	if (target[0] == '/' || target[0] == '\0')
		return true;
	for (; *target != '\0'; target += n + (target[n] == '/')) {
		n = strcspn(target, "/");
		if (n == 2 && memcmp(target, "..", 2) == 0) {
			if (down || --depth < 0)
				return true;
		} else if (n > 0 && !(n == 1 && *target == '.')) {
			down = true;
		}
	}
	return false;
}

/* Whether the link is to be followed; negative without memory. */
static int follows(const struct walk *w, struct walk_entry *out, int at, struct ptcp_err *why)
{
	int r;

	if (w->limits.links != WALK_LINKS_UNSAFE)
		return w->limits.links == WALK_LINKS_FOLLOW;
	if ((r = read_target(out, at, why)) == 0)
		r = is_unsafe(out->target, out->depth);
	free(out->target);
	out->target = NULL;
	return r;
}

/* What the link leads to. */
static int stat_target(const struct walk *w, struct walk_entry *out, int at, struct stat *st, struct ptcp_err *why)
{
	const struct walk_level *l;

	out->followed = true;
	if (dir_stat_target(out->dir, at, out->name, st) != 0)
		return fs_err_set(why, errno == EXDEV ? PTCP_EREFUSED : PTCP_EIO, errno, out->dir, out->name,
		    errno == ENOENT ? "a symbolic link that leads nowhere" :
		    errno == EXDEV ? "a symbolic link that leads out of the root directory" :
		    "a symbolic link that cannot be followed");
	for (l = w->top; l != NULL && S_ISDIR(st->st_mode); l = l->up)
		if (l->dev == (uint64_t)st->st_dev && l->ino == (uint64_t)st->st_ino)
			return fs_err_set(why, PTCP_EIO, ELOOP, out->dir, out->name,
			    "a symbolic link to a directory that it lies in");
	return 0;
}

static int stat_entry(const struct walk *w, struct walk_entry *out, struct ptcp_err *why)
{
	struct stat st;
	int at, r;

	/* Some file systems have names over 255 bytes. */
	if (!is_itself(out->name) && !text_name_ok(out->name, strlen(out->name)))
		return fs_err_set(why, PTCP_EIO, ENAMETOOLONG, out->dir, out->name, "name too long to be sent");
	if ((at = dir_fd(out->dir, why)) < 0)
		return at;
	if (dir_sys(out->dir)->fstatat(at, out->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		r = fs_err_sys(why, errno, out->dir, out->name, NULL);
	else if (!S_ISLNK(st.st_mode) || (r = follows(w, out, at, why)) == 0 ||
	    (r > 0 && (r = stat_target(w, out, at, &st, why)) == 0))
		r = classify(out, at, &st, why);
	dir_fd_done(out->dir);
	return r;
}

/* Whether the content of the directory is left out. */
static bool is_limit(const struct walk *w, const struct walk_entry *d)
{
	return (w->limits.max_depth > 0 && (uint32_t)d->depth + w->content >= w->limits.max_depth) ||
	    (w->limits.one_file_system && d->dev != w->dev);
}

/* One entry of `dir`, found in the listing `in`, or added (NULL). 1 and *out; 0 if the entry is not reported;
 * negative only without memory. */
static int examine(struct walk *w, struct dir *dir, const char *name, const struct walk_level *in,
    struct walk_entry *out, struct ptcp_err *e)
{
	struct ptcp_err why = { 0 };
	int r, leave_out;

	*out = (struct walk_entry){
		.depth = in != NULL ? in->depth + 1 : 0, .dir = dir_ref(dir), .name = strdup(name),
		.type = WALK_FAILED,
	};
	r = out->name != NULL ? stat_entry(w, out, &why) : err_nomem(&why);
	if (r == 0 && in != NULL && in->selected && !in->whole && out->type != WALK_DIR) {
		r = fs_err_sys(&why, ENOTDIR, dir, name, NULL);
		free(out->target);
		out->target = NULL;
	}
	/* An entry removed since the listing counts as not listed. */
	leave_out = in != NULL && !in->selected && r < 0 && why.sys == ENOENT && !out->followed;
	if (!leave_out)
		leave_out = walk_rules_judge(&w->rules, in != NULL ? &in->rules : NULL, dir, name, out->type == WALK_DIR, out->left_out,
		    &why);
	if (!leave_out && r < 0 && out->followed) /* a link to nowhere, which could lead to a directory */
		leave_out = walk_rules_judge(&w->rules, in != NULL ? &in->rules : NULL, dir, name, true, out->left_out, &why);
	if (leave_out < 0)
		r = leave_out;
	if (leave_out > 0) {
		walk_entry_fini(out);
		return 0;
	}
	if (r == 0 && in != NULL && (out->type == WALK_FILE || out->type == WALK_SYMLINK) && part_is_own_name(name))
		r = skip(out, "left by an unfinished transfer of ptcp to this directory: not sent (run that transfer again to "
		    "finish it, or ptcp clean to remove it)", &why);
	if (r == 0 && (out->type == WALK_DIR || out->type == WALK_FILE) &&
	    (out->excluded = dir_excludes(dir, out->dev, out->ino)))
		r = in != NULL ? skip(out, EXCLUDED_WHY, &why) :
		    fs_err_set(&why, PTCP_EREFUSED, EACCES, dir, name, EXCLUDED_WHY);
	if (in == NULL)
		w->dev = out->dev;
	if (r == 0 && out->type == WALK_DIR && (uint32_t)out->depth >= w->levels)
		r = fs_err_set(&why, PTCP_EIO, 0, dir, name, "more levels of directories than the receiver takes (send it by itself)");
	out->closed = r == 0 && out->type == WALK_DIR && is_limit(w, out);
	if (r == 0 && out->type == WALK_DIR && !w->flat && !out->closed && (w->enter = dir_child(dir, name)) == NULL)
		r = err_nomem(&why);
	w->enter_depth = out->depth;
	w->enter_dev = out->dev;
	w->enter_ino = out->ino;
	if ((w->enter_selected = in != NULL && in->selected && !in->whole))
		w->enter_part = in->below;
	if (r < 0 && !lacks_memory(&why)) {
		out->type = WALK_FAILED;
		out->code = why.code;
		out->sys = why.sys;
		r = (out->why = strdup(why.msg)) != NULL ? 0 : err_nomem(&why);
	}
	if (r == 0)
		return 1;
	walk_entry_fini(out);
	return out_of_memory(&why, e);
}

/* The added directory itself. The failure to list its content is reported. */
static int examine_itself(const struct walk *w, struct dir *dir, struct walk_entry *out, struct ptcp_err *e)
{
	struct ptcp_err why;

	*out = (struct walk_entry){ .dir = dir_ref(dir), .name = strdup(".") };
	if (out->name != NULL && stat_entry(w, out, &why) == 0)
		return 1;
	if (out->name == NULL)
		err_nomem(&why);
	walk_entry_fini(out);
	return lacks_memory(&why) ? out_of_memory(&why, e) : 0;
}

/* The directory is the top of what is listed next; a failure shows when it is listed. */
static void note_top(struct walk *w, struct dir *dir)
{
	struct stat st = { 0 };
	int at;

	if ((at = dir_fd(dir, NULL)) >= 0) {
		dir_sys(dir)->fstat(at, &st);
		dir_fd_done(dir);
	}
	w->dev = w->enter_dev = (uint64_t)st.st_dev;
	w->enter_ino = (uint64_t)st.st_ino;
}

/* The next added entry: 1 with an entry, 0 without. */
static int next_item(struct walk *w, struct walk_entry *out, struct ptcp_err *e)
{
	struct item *it = CONTAINER_OF(w->items.next, struct item, node);
	int r;

	w->content = !it->has_name;
	if (!it->has_name) {
		note_top(w, it->dir);
		r = push(w, dir_ref(it->dir), -1, e);
	} else if (is_itself(it->name)) {
		r = examine_itself(w, it->dir, out, e);
	} else {
		r = examine(w, it->dir, it->name, NULL, out, e);
	}
	item_free(w, it);
	return r;
}

/* The next entry of the innermost directory: 1 with an entry, 0 without. */
static int next_in(struct walk *w, struct walk_level *l, struct walk_entry *out, struct ptcp_err *e)
{
	const char *name;
	struct ptcp_err why = { 0 };
	int r;

	if (l->stream != NULL || buf_len(&l->names) > 0 || (l->selected && l->part.next < l->part.end)) {
		if ((r = read_name(w, l, &name)) > 0)
			return examine(w, l->dir, name, l, out, e);
		if (r == 0) {
			close_stream(w, l);
			return 0;
		}
		fs_err_sys(&why, errno, l->dir, NULL, "cannot list the whole directory");
		return fail_listing(w, l, &why, e);
	}
	*out = (struct walk_entry){ .type = WALK_FAILED, .depth = l->depth < 0 ? 0 : l->depth, .dir = dir_ref(l->dir),
		.why = l->why, .code = l->code, .sys = l->sys };
	if (l->why != NULL) {
		l->why = NULL;
		return 1;
	}
	out->type = WALK_DIR_END;
	r = l->depth >= 0; /* an added directory's content has neither WALK_DIR nor WALK_DIR_END */
	pop(w);
	if (r == 0)
		walk_entry_fini(out);
	return r;
}

void walk_skip(struct walk *w)
{
	dir_unref(w->enter);
	w->enter = NULL;
}

int walk_next(struct walk *w, struct walk_entry *out, struct ptcp_err *e)
{
	struct walk_entry got;
	struct dir *d;
	int r = 0;

	while (r == 0) {
		if ((d = w->enter) != NULL) {
			w->enter = NULL;
			r = push(w, d, w->enter_depth, e);
		} else if (w->top != NULL) {
			r = next_in(w, w->top, &got, e);
		} else if (!list_empty(&w->items)) {
			r = next_item(w, &got, e);
		} else {
			return 0;
		}
	}
	if (r < 0)
		return r;
	*out = got;
	return 1;
}

/* The next entry, or the end of the tree. 1: more remain. */
static int step_in(const struct walk_steps *s, struct walk **walk, void *arg, struct ptcp_err *e)
{
	struct walk_entry w;
	int r = walk_next(*walk, &w, e);

	if (r > 0) {
		r = s->entry(arg, &w, e);
		walk_entry_fini(&w);
		return r < 0 ? r : 1;
	}
	if (r == 0) {
		walk_free(*walk);
		*walk = NULL;
		if (s->end != NULL)
			s->end(arg);
		r = s->next != NULL;
	}
	return r;
}

int walk_step(const struct walk_steps *s, struct walk **walk, unsigned entries, void *arg, struct ptcp_err *e)
{
	int r = 1;

	while (r > 0 && entries-- > 0 && (s->full == NULL || !s->full(arg)))
		r = *walk != NULL ? step_in(s, walk, arg, e) : s->next(arg, e);
	return r;
}
