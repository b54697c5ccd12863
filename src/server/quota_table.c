#include "server/quota_table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/charged.h"
#include "core/clock.h"
#include "core/err.h"
#include "core/list.h"
#include "core/text.h"
#include "core/units.h"
#include "fs/quota.h"
#include "store/walk.h"

#define STEP_ENTRIES 4096        /* other clients' work on the I/O threads comes between two steps */
#define FRESH_NS (60 * NS_PER_S) /* a count is repeated after this time, */
#define FRESH_COUNTS 20          /* at the earliest after so many durations of a count: 5 % of the time */
#define RETRY_NS (1 * NS_PER_S)  /* the same after a refusal, which a count that is too large may have caused */
#define RETRY_COUNTS 2
#define DIRECTORIES_MAX 4096     /* remembered without sessions */

struct directory {
	struct list in_list;    /* least recently used first */
	struct quota_table *table;
	struct memory_account *memory;
	uint64_t dev, ino;
	char *path;
	struct usage *usage;
	uint64_t limit_bytes;   /* limit of the latest session */
	bool counted, counting;
	struct ptcp_err why;    /* why the last count is not whole; code 0: it is */
	struct mono began, at;  /* start and end of the last count */
	/* during a count: */
	struct walk *walk;
	struct io *io;
	uint64_t bytes, failed;
	struct io_job step, *first, **last; /* waiting jobs */
};

struct quota_table {
	const struct log *log;
	pthread_mutex_t lock;
	struct list list;
	unsigned n;
};

int quota_table_new(struct quota_table **out, const struct log *log, struct ptcp_err *e)
{
	struct quota_table *t = calloc(1, sizeof *t);

	if (t == NULL)
		return err_nomem(e);
	t->log = log;
	pthread_mutex_init(&t->lock, NULL);
	list_init(&t->list);
	*out = t;
	return 0;
}

static void directory_free(struct directory *d)
{
	struct memory_account *memory = d->memory;

	usage_unref(d->usage);
	memory_free(memory, d->path, d->path != NULL ? strlen(d->path) + 1 : 0);
	memory_free(memory, d, sizeof *d);
	memory_account_free(memory);
}

static void forget(struct quota_table *t, struct directory *d)
{
	list_remove(&d->in_list);
	t->n--;
	directory_free(d);
}

void quota_table_free(struct quota_table *t)
{
	if (t == NULL)
		return;
	while (!list_empty(&t->list))
		forget(t, CONTAINER_OF(t->list.next, struct directory, in_list));
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* ---- Counting ---- */

static int count_entry(void *arg, struct walk_entry *w, struct ptcp_err *e)
{
	struct directory *d = arg;

	(void)e;
	if (w->type == WALK_FAILED)
		d->failed++;
	else if (w->type != WALK_DIR_END && w->format != 0 && !w->excluded)
		d->bytes += usage_of_entry(w->format, w->disk_bytes, w->nlink);
	return 0;
}

static void quota_table_report(const struct directory *d)
{
	char shown[TEXT_NAME_BYTES];

	text_escape_quoted(shown, sizeof shown, d->path);
	log_at(d->table->log, LOG_DEBUG, "server", "event=counted dir=\"%s\" bytes=%llu seconds=%.3f", shown,
	    (unsigned long long)d->bytes, (double)mono_diff_ns(d->at, d->began) / 1e9);
	if (d->why.code != 0)
		log_at(d->table->log, LOG_WARN, "server", "event=count-incomplete dir=\"%s\" failed=%llu why=\"%s\"",
		    shown, (unsigned long long)d->failed, d->why.msg);
}

static void end_count(struct directory *d)
{
	struct quota_table *t = d->table;
	struct io_job *job, *next;

	walk_free(d->walk);
	d->walk = NULL;
	if (d->why.code == 0 && d->failed > 0)
		err_set(&d->why, PTCP_EIO, "the quota: cannot count the space beneath this client's directory, entries "
		    "that cannot be examined: %llu (have the server's administrator make them readable for the server)",
		    (unsigned long long)d->failed);
	usage_count_end(d->usage, d->bytes);
	pthread_mutex_lock(&t->lock);
	d->at = mono_now();
	d->counted = true;
	d->counting = false;
	job = d->first;
	quota_table_report(d);
	for (; job != NULL; job = next) {
		next = job->next;
		io_submit(d->io, job);
	}
	pthread_mutex_unlock(&t->lock);
}

static void count_step(struct io_job *job)
{
	static const struct walk_steps steps = { .entry = count_entry };
	struct directory *d = CONTAINER_OF(job, struct directory, step);

	if (walk_step(&steps, &d->walk, STEP_ENTRIES, d, &d->why) > 0)
		io_submit(d->io, &d->step);
	else
		end_count(d);
}

static int begin_count(struct directory *d, struct dir *root, struct io *io, struct ptcp_err *e)
{
	int r;

	if ((r = walk_new(&d->walk, d->memory, e)) < 0)
		return r;
	if ((r = walk_add(d->walk, root, NULL, e)) < 0) {
		walk_free(d->walk);
		d->walk = NULL;
		return r;
	}
	usage_count_begin(d->usage);
	d->counting = true;
	d->began = mono_now();
	d->bytes = QUOTA_GRAIN; /* the directory itself */
	d->failed = 0;
	d->why.code = 0;
	d->first = NULL;
	d->last = &d->first;
	d->io = io;
	d->step.run = count_step;
	io_submit(io, &d->step);
	return 0;
}

/* ---- Directories ---- */

static bool is_stale(const struct directory *d)
{
	uint64_t age = mono_diff_ns(mono_now(), d->at), took = mono_diff_ns(d->at, d->began);

	if (!d->counted)
		return true;
	if ((d->why.code != 0 || usage_refused(d->usage)) && age > RETRY_NS && age > RETRY_COUNTS * took)
		return true;
	return age > FRESH_NS && age > FRESH_COUNTS * took;
}

static struct directory *find(struct quota_table *t, uint64_t dev, uint64_t ino)
{
	struct directory *d;

	LIST_EACH(&t->list, d, struct directory, in_list)
		if (d->dev == dev && d->ino == ino)
			return d;
	return NULL;
}

/* Forgets the directory not used for longest. */
static void make_room(struct quota_table *t)
{
	struct directory *d;

	if (t->n < DIRECTORIES_MAX)
		return;
	LIST_EACH(&t->list, d, struct directory, in_list)
		if (!d->counting && !usage_is_shared(d->usage)) {
			forget(t, d);
			return;
		}
}

static struct directory *directory_new(struct dir *root, const struct memory_account *of, struct ptcp_err *e)
{
	struct memory_account *memory;
	char path[DIR_PATH_RAW_BYTES];
	struct directory *d;

	dir_whole_path_text(root, path, sizeof path);
	if (memory_account_same(&memory, of, e) < 0)
		return NULL;
	if ((d = memory_calloc(memory, sizeof *d, e)) == NULL) {
		memory_account_free(memory);
		return NULL;
	}
	d->memory = memory;
	if ((d->path = memory_calloc(memory, strlen(path) + 1, e)) == NULL ||
	    ((d->usage = usage_new()) == NULL && err_nomem(e) < 0)) {
		directory_free(d);
		return NULL;
	}
	strcpy(d->path, path);
	return d;
}

static struct directory *add(struct quota_table *t, struct dir *root, const struct stat *st,
    const struct memory_account *memory, struct ptcp_err *e)
{
	struct directory *d;

	make_room(t);
	if ((d = directory_new(root, memory, e)) == NULL)
		return NULL;
	d->table = t;
	d->dev = st->st_dev;
	d->ino = st->st_ino;
	list_append(&t->list, &d->in_list);
	t->n++;
	return d;
}

/* With the lock held. 1: wait. */
static int apply(struct quota_table *t, struct io *io, struct dir *root, struct tree *tree, const struct stat *st,
    uint64_t limit, enum quota_need need, const struct memory_account *memory, struct io_job *again, struct ptcp_err *e)
{
	struct directory *d = find(t, st->st_dev, st->st_ino);
	int r;

	if (d == NULL && need == QUOTA_ADJUST)
		return 0; /* the first count is yet to come */
	if (d == NULL && (d = add(t, root, st, memory, e)) == NULL)
		return PTCP_ENOMEM;
	list_remove(&d->in_list);
	list_append(&t->list, &d->in_list);
	d->limit_bytes = limit;
	if (need >= QUOTA_SHOW && !d->counting && is_stale(d) && (r = begin_count(d, root, io, e)) < 0)
		return r;
	if (need >= QUOTA_SHOW && d->counting) {
		again->next = NULL;
		*d->last = again;
		d->last = &again->next;
		return 1;
	}
	if (need == QUOTA_COUNT && d->why.code != 0) {
		if (e != NULL)
			*e = d->why;
		return d->why.code;
	}
	return tree_set_quota(tree, d->usage, limit, e);
}

int quota_table_apply(struct quota_table *t, struct io *io, struct tree *tree, uint64_t limit_bytes,
    enum quota_need need, struct memory_account *memory, struct io_job *again, struct ptcp_err *e)
{
	struct dir *root;
	struct stat st;
	int at, r;

	if (need == QUOTA_NONE || limit_bytes == 0)
		return 0;
	root = tree_root(tree);
	if ((at = r = dir_fd(root, e)) >= 0) {
		r = dir_sys(root)->fstat(at, &st) == 0 ? 0 : err_sys(e, PTCP_EIO, "examining the directory");
		dir_fd_done(root);
	}
	if (r >= 0) {
		pthread_mutex_lock(&t->lock);
		r = apply(t, io, root, tree, &st, limit_bytes, need, memory, again, e);
		pthread_mutex_unlock(&t->lock);
	}
	dir_unref(root);
	return r;
}

void quota_table_each(struct quota_table *t, void (*each)(void *arg, const struct quota_entry *q), void *arg)
{
	struct directory *d;

	pthread_mutex_lock(&t->lock);
	LIST_EACH(&t->list, d, struct directory, in_list)
		if (d->counted)
			each(arg, &(struct quota_entry){ d->path, usage_bytes(d->usage), d->limit_bytes });
	pthread_mutex_unlock(&t->lock);
}
