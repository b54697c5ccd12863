#include "fs/quota.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/err.h"
#include "core/units.h"
#include "fs/dir_impl.h"

struct usage {
	atomic_uint refs;
	pthread_mutex_t lock;
	uint64_t stored;    /* bytes on disk */
	uint64_t reserved;  /* bytes for files in transit, not on disk yet */
	bool counting, refused;
	uint64_t added;     /* bytes added to `stored` during a count */
	pthread_mutex_t names; /* recursive; taken before `lock` */
};

struct quota {
	struct usage *usage;
	uint64_t limit;
	uint64_t taken;     /* bytes taken by this tree; under the lock of the usage, like the limit */
	uint64_t lacking;   /* space refused last */
	uint64_t spare;     /* reserved for data that has not begun to arrive; while lent, part of neither sum */
	bool lent;
};

/* ---- Usage ---- */

struct usage *usage_new(void)
{
	struct usage *u = calloc(1, sizeof *u);
	pthread_mutexattr_t recursive;

	if (u == NULL)
		return NULL;
	atomic_init(&u->refs, 1);
	pthread_mutex_init(&u->lock, NULL);
	pthread_mutexattr_init(&recursive);
	pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&u->names, &recursive);
	pthread_mutexattr_destroy(&recursive);
	return u;
}

static struct usage *usage_ref(struct usage *u)
{
	atomic_fetch_add_explicit(&u->refs, 1, memory_order_relaxed);
	return u;
}

void usage_unref(struct usage *u)
{
	if (u == NULL || atomic_fetch_sub(&u->refs, 1) != 1)
		return;
	pthread_mutex_destroy(&u->lock);
	pthread_mutex_destroy(&u->names);
	free(u);
}

bool usage_is_shared(struct usage *u) { return atomic_load(&u->refs) > 1; }

uint64_t usage_bytes(struct usage *u)
{
	uint64_t bytes;

	pthread_mutex_lock(&u->lock);
	bytes = u->stored + u->reserved;
	pthread_mutex_unlock(&u->lock);
	return bytes;
}

void usage_count_begin(struct usage *u)
{
	pthread_mutex_lock(&u->lock);
	u->counting = true;
	u->added = 0;
	pthread_mutex_unlock(&u->lock);
}

/* Whether the count has seen what was written or removed meanwhile is unknown: assume the worst. */
void usage_count_end(struct usage *u, uint64_t bytes)
{
	pthread_mutex_lock(&u->lock);
	u->counting = u->refused = false;
	u->stored = bytes + u->added;
	pthread_mutex_unlock(&u->lock);
}

bool usage_refused(struct usage *u)
{
	bool refused;

	pthread_mutex_lock(&u->lock);
	refused = u->refused;
	pthread_mutex_unlock(&u->lock);
	return refused;
}

static uint64_t grains(uint64_t bytes)
{
	uint64_t n = bytes / QUOTA_GRAIN + (bytes % QUOTA_GRAIN != 0);

	return (n > 0 ? n : 1) * QUOTA_GRAIN;
}

uint64_t usage_of_entry(uint32_t format, uint64_t disk_bytes, uint64_t nlink)
{
	return S_ISDIR(format) ? QUOTA_GRAIN : grains(disk_bytes / (nlink > 1 ? nlink : 1));
}

/* With the lock held. A release during a count has no effect on its result. */
static void add_stored(struct usage *u, uint64_t bytes)
{
	u->stored += bytes;
	if (u->counting)
		u->added += bytes;
}

static uint64_t less(uint64_t from, uint64_t bytes) { return from > bytes ? from - bytes : 0; }

/* ---- Quotas ---- */

int tree_set_quota(struct tree *t, struct usage *u, uint64_t limit_bytes, struct ptcp_err *e)
{
	quota_free(t->quota);
	if ((t->quota = calloc(1, sizeof *t->quota)) == NULL)
		return err_nomem(e);
	t->quota->usage = usage_ref(u);
	t->quota->limit = limit_bytes;
	return 0;
}

void quota_free(struct quota *q)
{
	if (q != NULL)
		usage_unref(q->usage);
	free(q);
}

void tree_change_quota(struct tree *t, uint64_t limit_bytes)
{
	if (t->quota == NULL)
		return;
	pthread_mutex_lock(&t->quota->usage->lock);
	t->quota->limit = limit_bytes;
	pthread_mutex_unlock(&t->quota->usage->lock);
}

struct quota *dir_quota(const struct dir *d) { return d->tree->quota; }

bool tree_quota(const struct tree *t, uint64_t *used_bytes, uint64_t *limit_bytes)
{
	if (t->quota == NULL)
		return false;
	*used_bytes = usage_bytes(t->quota->usage);
	*limit_bytes = t->quota->limit;
	return true;
}

static bool lock(struct quota *q)
{
	if (q != NULL)
		pthread_mutex_lock(&q->usage->lock);
	return q != NULL;
}

static void unlock(struct quota *q) { pthread_mutex_unlock(&q->usage->lock); }

/* With the lock held, like the next functions. */
static bool fits(struct quota *q, uint64_t bytes)
{
	const struct usage *u = q->usage;
	uint64_t used = u->stored + u->reserved;

	if (used <= q->limit && bytes <= q->limit - used)
		return true;
	q->usage->refused = true;
	q->lacking = bytes;
	return false;
}

/* `needed` is the space of the whole transfer; 0: unknown. What was taken and refused is always more than what is
 * left. */
static int refuse(struct quota *q, uint64_t needed, bool at_least, struct ptcp_err *e)
{
	char need[UNITS_TEXT_BYTES], left[UNITS_TEXT_BYTES], limit[UNITS_TEXT_BYTES];
	uint64_t others = less(q->usage->stored + q->usage->reserved, q->taken), seen = q->taken + q->lacking;

	at_least |= needed < seen;
	return err_because(e, PTCP_ENOSPC, EDQUOT, "needs %s%s, and %s of the quota of %s are left (remove files "
	    "there, or have the server's administrator raise the quota)", at_least ? "at least " : "",
	    units_size_text(need, needed < seen ? seen : needed),
	    units_size_text(left, less(q->limit, others)), units_size_text(limit, q->limit));
}

int quota_err(struct quota *q, uint64_t entries, uint64_t bytes, struct ptcp_err *e)
{
	uint64_t least = entries > UINT64_MAX / QUOTA_GRAIN ? UINT64_MAX : entries * QUOTA_GRAIN;

	lock(q);
	refuse(q, bytes > least ? bytes : least, entries > 1, e);
	unlock(q);
	return PTCP_ENOSPC;
}

int quota_take(struct quota *q, uint64_t bytes, struct ptcp_err *e)
{
	int r = 0;

	if (!lock(q))
		return 0;
	if (!fits(q, bytes)) {
		r = refuse(q, 0, true, e);
	} else {
		add_stored(q->usage, bytes);
		q->taken += bytes;
	}
	unlock(q);
	return r;
}

void quota_give(struct quota *q, uint64_t bytes)
{
	if (!lock(q))
		return;
	q->usage->stored = less(q->usage->stored, bytes);
	q->taken = less(q->taken, bytes);
	unlock(q);
}

/* ---- Names ---- */

/* A file with further names keeps its space. Space beyond the size, such as that of a fragmented file's own records,
 * was not taken. */
static uint64_t freed_by(const struct stat *st)
{
	uint64_t disk = (uint64_t)st->st_blocks * 512, size = grains((uint64_t)st->st_size);

	if (!S_ISDIR(st->st_mode) && st->st_nlink != 1)
		return 0;
	disk = usage_of_entry(st->st_mode, disk, 1);
	return disk < size ? disk : size;
}

void quota_names_begin(struct quota *q, const struct sys *sys, int at, const char *name, uint64_t *freed)
{
	struct stat st;

	*freed = 0;
	if (q == NULL)
		return;
	pthread_mutex_lock(&q->usage->names);
	if (sys->fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		*freed = freed_by(&st);
}

void quota_names_end(struct quota *q, bool removed, uint64_t freed)
{
	if (q == NULL)
		return;
	if (removed)
		quota_give(q, freed);
	pthread_mutex_unlock(&q->usage->names);
}

/* ---- Files in transit ---- */

/* A file that has begun keeps the rest of its last grain, which is on disk already. */
static uint64_t spare(const struct quota_hold *h)
{
	return less(h->reserved, h->begun ? grains(h->stored) - h->stored : 0);
}

static uint64_t counted(const struct quota_hold *h) { return h->reserved - (h->q->lent ? spare(h) : 0); }

static void subtract_reserved(const struct quota_hold *h)
{
	h->q->usage->reserved -= counted(h);
	h->q->spare -= spare(h);
}

static void add_reserved(const struct quota_hold *h)
{
	h->q->usage->reserved += counted(h);
	h->q->spare += spare(h);
}

static void set(struct quota_hold *h, struct quota_hold to)
{
	struct quota *q = h->q;

	q->taken = less(q->taken + to.stored + counted(&to), h->stored + counted(h));
	subtract_reserved(h);
	add_reserved(&to);
	if (to.stored > h->stored)
		add_stored(q->usage, to.stored - h->stored);
	else
		q->usage->stored = less(q->usage->stored, h->stored - to.stored);
	h->reserved = to.reserved; /* not q, which other threads read to find the lock */
	h->stored = to.stored;
	h->whole = to.whole;
	h->begun = to.begun;
}

static int change(struct quota_hold *h, struct quota_hold to, struct ptcp_err *e)
{
	uint64_t before = h->stored + counted(h), after = to.stored + counted(&to);

	if (after > before && !fits(h->q, after - before))
		return refuse(h->q, 0, true, e);
	set(h, to);
	return 0;
}

/* While the spare space is lent, it must fit again together with the new space. */
int quota_reserve(struct quota_hold *h, uint64_t bytes, bool whole, struct ptcp_err *e)
{
	struct quota_hold to;
	uint64_t more;
	int r;

	if (!lock(h->q))
		return 0;
	to = *h;
	more = less(grains(bytes), h->reserved + h->stored);
	to.reserved += more;
	to.whole = whole;
	if (more > 0 && h->q->lent && (more > UINT64_MAX - h->q->spare || !fits(h->q, h->q->spare + more)))
		r = refuse(h->q, 0, true, e);
	else
		r = change(h, to, e);
	unlock(h->q);
	return r;
}

/* Of a whole file, blocks written twice need no more space. */
int quota_store(struct quota_hold *h, uint64_t n, struct ptcp_err *e)
{
	struct quota_hold to;
	int r;

	if (!lock(h->q))
		return 0;
	to = *h;
	if (n > to.reserved && to.whole)
		n = to.reserved;
	else if (n > to.reserved)
		to.reserved += grains(n - to.reserved);
	to.reserved -= n;
	to.stored += n;
	to.begun = true;
	r = change(h, to, e);
	unlock(h->q);
	return r;
}

void quota_found(struct quota_hold *h, uint64_t disk_bytes)
{
	if (!lock(h->q))
		return;
	subtract_reserved(h);
	h->stored = grains(disk_bytes);
	h->begun = true;
	add_reserved(h);
	unlock(h->q);
}

bool quota_emptied(struct quota_hold *h)
{
	struct quota_hold to;
	bool had;

	if (!lock(h->q))
		return false;
	to = *h;
	had = to.stored > 0;
	to.stored = 0;
	to.reserved += to.whole ? h->stored : 0;
	set(h, to);
	unlock(h->q);
	return had;
}

static void end(struct quota_hold *h, uint64_t bytes)
{
	struct quota_hold to = *h;

	to.reserved = 0;
	to.stored = bytes < h->stored ? bytes : h->stored;
	set(h, to);
	h->stored = 0; /* the usage counts from now on */
}

void quota_complete(struct quota_hold *h, uint64_t size_bytes)
{
	struct quota_hold to;

	if (!lock(h->q))
		return;
	to = *h;
	if (to.whole) {
		to.stored += to.reserved;
		to.reserved = 0;
	}
	set(h, to);
	end(h, grains(size_bytes));
	unlock(h->q);
}

void quota_end(struct quota_hold *h, uint64_t bytes)
{
	if (!lock(h->q))
		return;
	end(h, bytes);
	unlock(h->q);
}

void quota_lend(struct quota *q)
{
	if (!lock(q))
		return;
	if (!q->lent) {
		q->usage->reserved -= q->spare;
		q->taken = less(q->taken, q->spare);
		q->lent = true;
	}
	unlock(q);
}

int quota_reclaim(struct quota *q, struct ptcp_err *e)
{
	int r = 0;

	if (!lock(q))
		return 0;
	if (q->lent && q->spare > 0 && !fits(q, q->spare)) {
		r = refuse(q, 0, true, e);
	} else if (q->lent) {
		q->usage->reserved += q->spare;
		q->taken += q->spare;
		q->lent = false;
	}
	unlock(q);
	return r;
}
