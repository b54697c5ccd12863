#include "store/renames.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/charged.h"
#include "core/sorted.h"
#include "core/text.h"
#include "store/hash.h"
#include "store/walk.h"

/* Each file has a record of each kind. Records are sorted in runs, each more than twice as long as the next one: so n
 * records of roots that are added one by one take about n log(n)^2 comparisons. */
enum renames_kind { OF_TIME, OF_NAME, OF_BOTH, KINDS };
enum { RUNS_MAX = 33 }; /* 2^32 records have no more runs */

struct renames_record {
	uint64_t size_kind;  /* the size, times KINDS, and the kind */
	uint64_t key;        /* the time in nanoseconds, modulo 2^64, the hash of the name, or the sum of both */
	struct renamed file; /* an index in `dirs`, and an offset in `names` */
};

/* A growing array. */
struct renames_array {
	void *of;
	uint32_t n, room;
};

struct renames {
	struct memory_account *memory;
	pthread_mutex_t lock;      /* for additions, and for readers beside additions */
	struct renames_array roots; /* directories to be examined */
	uint32_t next_root;
	struct walk *walk;         /* NULL: between two roots */
	struct renames_array dirs;  /* directories with files */
	struct renames_array names; /* characters; each name is terminated */
	struct renames_array records;
	uint32_t run_end[RUNS_MAX];
	unsigned n_runs;
	uint64_t left_bytes;       /* further memory for the list */
	unsigned max_entries;      /* entries examined in a step */
	bool full;                 /* no memory for more */
	bool sorted;               /* all files of all roots are known */
};

static struct dir **dirs_of(const struct renames_array *a) { return a->of; }
static struct renames_record *records(const struct renames *r) { return r->records.of; }
static const char *name_of(const struct renames *r, struct renamed f) { return (const char *)r->names.of + f.name; }

struct renames *renames_new(struct memory_account *memory, const struct renames_limits *max, struct ptcp_err *e)
{
	struct renames *r = memory_calloc(memory, sizeof *r, e);

	if (r == NULL)
		return NULL;
	r->memory = memory;
	r->left_bytes = max->bytes;
	r->max_entries = max->entries;
	pthread_mutex_init(&r->lock, NULL);
	return r;
}

static void free_dirs(struct renames *r, struct renames_array *a)
{
	uint32_t i;

	for (i = 0; i < a->n; i++)
		dir_unref(dirs_of(a)[i]);
	memory_free(r->memory, a->of, a->room * sizeof(struct dir *));
}

void renames_free(struct renames *r)
{
	if (r == NULL)
		return;
	walk_free(r->walk);
	free_dirs(r, &r->roots);
	free_dirs(r, &r->dirs);
	memory_free(r->memory, r->names.of, r->names.room);
	memory_free(r->memory, r->records.of, r->records.room * sizeof(struct renames_record));
	pthread_mutex_destroy(&r->lock);
	memory_free(r->memory, r, sizeof *r);
}

/* Room for n more; false without memory. */
static bool make_room(struct renames *r, struct renames_array *a, uint32_t n, size_t item_bytes)
{
	uint32_t to = a->room > 0 ? a->room * 2 : 1024;
	void *p;

	if (n <= a->room - a->n)
		return true;
	if (a->room > UINT32_MAX / 4 || (to - a->room) * item_bytes > r->left_bytes ||
	    (p = memory_realloc(r->memory, a->of, a->room * item_bytes, to * item_bytes, NULL)) == NULL)
		return false;
	r->left_bytes -= (to - a->room) * item_bytes;
	a->of = p;
	a->room = to;
	return true;
}

static bool add_dir(struct renames *r, struct renames_array *a, struct dir *d)
{
	if (!make_room(r, a, 1, sizeof(struct dir *)))
		return false;
	dirs_of(a)[a->n++] = dir_ref(d);
	return true;
}

void renames_add(struct renames *r, struct dir *d)
{
	pthread_mutex_lock(&r->lock);
	if (add_dir(r, &r->roots, d))
		r->sorted = false;
	pthread_mutex_unlock(&r->lock);
}

/* ---- Steps ---- */

static int by_kind_and_key(const void *a, const void *b)
{
	const struct renames_record *f = a, *g = b;

	if (f->size_kind != g->size_kind)
		return f->size_kind < g->size_kind ? -1 : 1;
	return f->key < g->key ? -1 : f->key > g->key;
}

static uint64_t time_key(const struct timespec *t) { return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec; }

static void add_record(struct renames *r, uint64_t size_bytes, enum renames_kind kind, uint64_t key,
    struct renamed file)
{
	records(r)[r->records.n++] = (struct renames_record){ size_bytes * KINDS + kind, key, file };
}

static bool add_file(struct renames *r, const struct walk_entry *w)
{
	uint32_t n = (uint32_t)strlen(w->name) + 1;
	uint64_t time = time_key(&w->mtime), hash = hash_content(w->name, n - 1);
	struct renamed file;

	if (!make_room(r, &r->records, KINDS, sizeof(struct renames_record)) || !make_room(r, &r->names, n, 1) ||
	    ((r->dirs.n == 0 || dirs_of(&r->dirs)[r->dirs.n - 1] != w->dir) && !add_dir(r, &r->dirs, w->dir)))
		return false;
	file = (struct renamed){ r->dirs.n - 1, r->names.n };
	memcpy((char *)r->names.of + r->names.n, w->name, n);
	r->names.n += n;
	add_record(r, w->size_bytes, OF_TIME, time, file);
	add_record(r, w->size_bytes, OF_NAME, hash, file);
	add_record(r, w->size_bytes, OF_BOTH, time + hash, file);
	return true;
}

static int on_entry(void *arg, struct walk_entry *w, struct ptcp_err *e)
{
	struct renames *r = arg;

	(void)e;
	if (w->type != WALK_FILE || w->size_bytes == 0 || r->full)
		return 0;
	pthread_mutex_lock(&r->lock);
	r->full = !add_file(r, w);
	pthread_mutex_unlock(&r->lock);
	return r->full ? PTCP_ENOMEM : 0;
}

static uint32_t run_begin(const struct renames *r, unsigned run) { return run == 0 ? 0 : r->run_end[run - 1]; }

/* The new records become a run, together with those before that are not much longer. */
static void sort_new(struct renames *r)
{
	uint32_t from = run_begin(r, r->n_runs);

	if (from == r->records.n)
		return;
	while (r->n_runs > 0 && (from - run_begin(r, r->n_runs - 1)) / 2 <= r->records.n - from)
		from = run_begin(r, --r->n_runs);
	sort_array(records(r) + from, r->records.n - from, sizeof(struct renames_record), by_kind_and_key);
	r->run_end[r->n_runs++] = r->records.n;
}

/* A directory without permission, or without memory to list it, has no candidates. */
static int next_root(void *arg, struct ptcp_err *e)
{
	static const struct walk_limits limits = { .one_file_system = true };
	struct renames *r = arg;
	struct dir *d = NULL;

	pthread_mutex_lock(&r->lock);
	if (r->next_root < r->roots.n)
		d = dirs_of(&r->roots)[r->next_root++];
	pthread_mutex_unlock(&r->lock);
	if (d == NULL || walk_new(&r->walk, r->memory, e) < 0)
		return 0;
	walk_limit(r->walk, &limits);
	return walk_add(r->walk, d, NULL, e) < 0 ? 0 : 1;
}

/* 1: more remains. */
static int step(struct renames *r)
{
	static const struct walk_steps steps = { .next = next_root, .entry = on_entry };
	bool sorted;

	pthread_mutex_lock(&r->lock);
	sorted = r->sorted;
	pthread_mutex_unlock(&r->lock);
	if (sorted)
		return 0;
	if (!r->full && walk_step(&steps, &r->walk, r->max_entries, r, NULL) > 0)
		return 1;
	walk_free(r->walk);
	r->walk = NULL;
	pthread_mutex_lock(&r->lock);
	sort_new(r);
	r->sorted = r->full || r->next_root == r->roots.n;
	sorted = r->sorted;
	pthread_mutex_unlock(&r->lock);
	return !sorted;
}

/* ---- Candidates ---- */

/* The first record of the run of that kind whose key is not below. */
static uint32_t lower_bound(const struct renames *r, unsigned run, uint64_t size_bytes, enum renames_kind kind,
    uint64_t key)
{
	const struct renames_record wanted = { .size_kind = size_bytes * KINDS + kind, .key = key };
	uint32_t from = run_begin(r, run), to = r->run_end[run], at;

	while (from < to) {
		at = from + (to - from) / 2;
		if (by_kind_and_key(&records(r)[at], &wanted) < 0)
			from = at + 1;
		else
			to = at;
	}
	return from;
}

static bool is_of(const struct renames *r, unsigned run, uint32_t at, uint64_t size_bytes, enum renames_kind kind)
{
	return at < r->run_end[run] && records(r)[at].size_kind == size_bytes * KINDS + kind;
}

bool renames_may_have(struct renames *r, uint64_t size_bytes)
{
	unsigned i;
	bool may;

	pthread_mutex_lock(&r->lock);
	may = !r->sorted;
	for (i = 0; i < r->n_runs && !may; i++)
		may = is_of(r, i, lower_bound(r, i, size_bytes, OF_TIME, 0), size_bytes, OF_TIME);
	pthread_mutex_unlock(&r->lock);
	return may;
}

struct renames_found {
	struct renamed *out;
	unsigned n;
};

static void take(struct renames_found *f, struct renamed file)
{
	unsigned i;

	for (i = 0; i < f->n && (f->out[i].dir != file.dir || f->out[i].name != file.name); i++)
		;
	if (i == f->n)
		f->out[f->n++] = file;
}

/* Takes files of the key (NULL: of any) up to a number of `max`. */
static void take_all(const struct renames *r, uint64_t size_bytes, enum renames_kind kind, const uint64_t *key,
    struct renames_found *f, unsigned max)
{
	unsigned i;
	uint32_t at;

	for (i = 0; i < r->n_runs; i++) {
		at = lower_bound(r, i, size_bytes, kind, key != NULL ? *key : 0);
		for (; f->n < max && is_of(r, i, at, size_bytes, kind) &&
		    (key == NULL || records(r)[at].key == *key); at++)
			take(f, records(r)[at].file);
	}
}

int renames_find(struct renames *r, uint64_t size_bytes, const struct timespec *mtime, const char *name, bool large,
    struct renamed out[RENAMES_FOUND], unsigned *n)
{
	const uint64_t time = time_key(mtime), hash = hash_content(name, strlen(name)), both = time + hash;
	struct renames_found f = { .out = out };

	*n = 0;
	if (step(r) > 0)
		return 1;
	take_all(r, size_bytes, OF_BOTH, &both, &f, RENAMES_FOUND);
	take_all(r, size_bytes, OF_TIME, &time, &f, RENAMES_FOUND / 2);
	take_all(r, size_bytes, OF_NAME, &hash, &f, RENAMES_FOUND);
	take_all(r, size_bytes, OF_TIME, &time, &f, RENAMES_FOUND);
	if (large)
		take_all(r, size_bytes, OF_TIME, NULL, &f, RENAMES_FOUND);
	*n = f.n;
	return 0;
}

int renames_open(struct renames *r, struct renamed file)
{
	char name[TEXT_NAME_BYTES];
	struct dir *d;
	int at, fd = -1, error = ENOENT;

	pthread_mutex_lock(&r->lock);
	d = dir_ref(dirs_of(&r->dirs)[file.dir]);
	snprintf(name, sizeof name, "%s", name_of(r, file));
	pthread_mutex_unlock(&r->lock);
	if ((at = dir_fd(d, NULL)) >= 0) {
		fd = dir_sys(d)->openat(at, name, SYS_READ_FLAGS, 0);
		error = errno;
		dir_fd_done(d);
	}
	dir_unref(d);
	errno = error;
	return fd;
}
