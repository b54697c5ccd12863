/* When the space of a client's directory is counted, and which usage its sessions see. */
#include "fixture.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fs/quota.h"

#define MIB (UINT64_C(1) << 20)

static struct quota_table *table;
static struct tree *tree[3];

static int setup(void **state)
{
	unsigned i;

	if (vf_setup(state) != 0 || quota_table_new(&table, &vf.context.log, NULL) < 0)
		return -1;
	for (i = 0; i < 3; i++)
		assert_int_equal(tree_open(&tree[i], vf.root, &sys_real, NULL), 0);
	return 0;
}

static int teardown(void **state)
{
	unsigned i;

	for (i = 0; i < 3; i++)
		tree_unref(tree[i]);
	quota_table_free(table);
	return vf_teardown(state);
}

#define quota_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* A job of a session that applies a quota, as often as it must; the result reaches the control loop. */
struct session {
	struct io_job io;
	struct msg done;
	struct tree *tree;
	uint64_t limit;
	enum quota_need need;
	struct memory_account *memory;
	int r;
	struct ptcp_err e;
	unsigned calls, n_done;
};

static void on_done(struct msg *m) { CONTAINER_OF(m, struct session, done)->n_done++; }

static void apply(struct io_job *io)
{
	struct session *s = CONTAINER_OF(io, struct session, io);
	int r;

	s->calls++;
	if ((r = quota_table_apply(table, vf.context.io, s->tree, s->limit, s->need, s->memory, &s->io, &s->e)) > 0)
		return; /* perhaps already continued by another thread */
	s->r = r;
	s->done.run = on_done;
	loop_post(vf.control, &s->done);
}

static void begin(struct session *s, unsigned i, uint64_t limit, enum quota_need need)
{
	*s = (struct session){ .tree = tree[i], .limit = limit, .need = need, .io.run = apply };
	io_submit(vf.context.io, &s->io);
}

/* The first session that is not refused because an earlier count was not whole. */
static void run_again(struct session *s, unsigned i, uint64_t limit)
{
	do {
		begin(s, i, limit, QUOTA_COUNT);
		vf_wait(&s->n_done, 1);
	} while (s->r < 0);
}

static void run(struct session *s, unsigned i, uint64_t limit, enum quota_need need)
{
	begin(s, i, limit, need);
	vf_wait(&s->n_done, 1);
	assert_int_equal(s->r, 0);
}

static uint64_t used(unsigned i, uint64_t limit)
{
	uint64_t n, l;

	assert_true(tree_quota(tree[i], &n, &l));
	assert_int_equal(l, limit);
	return n;
}

static void make_file(const char *name, size_t bytes)
{
	static uint8_t data[1 << 20];

	memset(data, 1, sizeof data);
	fx_write(name, data, bytes);
}

static unsigned counts(void)
{
	const char *at = vf.log;
	unsigned n = 0;

	for (; (at = strstr(at, "event=counted")) != NULL; at++)
		n++;
	return n;
}

static void needs(void **state)
{
	struct session s;
	uint64_t n, l;

	(void)state;
	make_file("root/a", MIB);
	run(&s, 0, 0, QUOTA_COUNT); /* no quota */
	assert_false(tree_quota(tree[0], &n, &l));
	run(&s, 0, 5 * MIB, QUOTA_NONE);
	assert_false(tree_quota(tree[0], &n, &l));
	run(&s, 0, 5 * MIB, QUOTA_ADJUST); /* the first count is yet to come */
	assert_false(tree_quota(tree[0], &n, &l));
	assert_int_equal(counts(), 0);
	run(&s, 0, 5 * MIB, QUOTA_COUNT);
	assert_int_equal(s.calls, 2);
	assert_int_equal(counts(), 1);
	assert_in_range(used(0, 5 * MIB), MIB + QUOTA_GRAIN, MIB + 8 * QUOTA_GRAIN);
	run(&s, 1, 7 * MIB, QUOTA_ADJUST);
	assert_int_equal(used(1, 7 * MIB), used(0, 5 * MIB));
}

/* Sessions of one directory share a count and the usage; the count is not repeated while it is fresh. */
static void shared(void **state)
{
	struct session s[3];
	struct quota *q;
	struct dir *d;
	uint64_t before;

	(void)state;
	make_file("root/a", MIB);
	begin(&s[0], 0, 5 * MIB, QUOTA_COUNT);
	begin(&s[1], 1, 6 * MIB, QUOTA_COUNT);
	vf_wait(&s[0].n_done, 1);
	vf_wait(&s[1].n_done, 1);
	assert_int_equal(counts(), 1);
	before = used(0, 5 * MIB);
	assert_int_equal(used(1, 6 * MIB), before);
	d = tree_root(tree[0]);
	q = dir_quota(d);
	assert_int_equal(quota_take(q, MIB, NULL), 0);
	assert_int_equal(used(1, 6 * MIB), before + MIB);
	make_file("root/by-another-program", MIB);
	run(&s[2], 2, 5 * MIB, QUOTA_COUNT);
	assert_int_equal(s[2].calls, 1);
	assert_int_equal(counts(), 1);
	assert_int_equal(used(2, 5 * MIB), before + MIB);
	quota_give(q, MIB);
	dir_unref(d);
}

/* The same directory by another path is the same directory; another one has usage of its own. */
static void directories(void **state)
{
	struct tree *link, *other;
	struct session s;

	(void)state;
	make_file("root/a", MIB);
	fx_mkdir("other");
	assert_int_equal(symlink("root", fx_path("link")), 0);
	assert_int_equal(tree_open(&link, fx_path("link"), &sys_real, NULL), 0);
	assert_int_equal(tree_open(&other, fx_path("other"), &sys_real, NULL), 0);
	run(&s, 0, 5 * MIB, QUOTA_COUNT);
	tree_unref(tree[1]);
	tree[1] = link;
	run(&s, 1, 5 * MIB, QUOTA_COUNT);
	assert_int_equal(counts(), 1);
	tree_unref(tree[2]);
	tree[2] = other;
	run(&s, 2, 5 * MIB, QUOTA_COUNT);
	assert_int_equal(counts(), 2);
	assert_in_range(used(2, 5 * MIB), QUOTA_GRAIN, 4 * QUOTA_GRAIN);
}

struct listed {
	unsigned n;
	char path[400];
	uint64_t used, limit;
};

static void on_entry(void *arg, const struct quota_entry *q)
{
	struct listed *l = arg;

	l->n++;
	snprintf(l->path, sizeof l->path, "%s", q->path);
	l->used = q->used_bytes;
	l->limit = q->limit_bytes;
}

/* The list has each counted directory, with the limit of the latest session. */
static void listed(void **state)
{
	struct listed l = { 0 };
	struct session s;

	(void)state;
	quota_table_each(table, on_entry, &l);
	assert_int_equal(l.n, 0);
	run(&s, 0, 5 * MIB, QUOTA_COUNT);
	run(&s, 1, 9 * MIB, QUOTA_COUNT);
	quota_table_each(table, on_entry, &l);
	assert_int_equal(l.n, 1);
	assert_string_equal(l.path, vf.root);
	assert_int_equal(l.used, used(0, 5 * MIB));
	assert_int_equal(l.limit, 9 * MIB);
}

static atomic_bool fails;

static int fstatat_fails(int d, const char *path, struct stat *st, int flags)
{
	if (atomic_load(&fails) && strcmp(path, "closed") == 0) {
		errno = EACCES;
		return -1;
	}
	return fstatat(d, path, st, flags);
}

/* Files beneath what cannot be examined would be free: until the next count, no work may add files. */
static void not_whole(void **state)
{
	static struct sys sys; /* the thread that parked the session may release its reference to the root last */
	struct session s;

	(void)state;
	sys = sys_real;
	sys.fstatat = fstatat_fails;
	tree_unref(tree[0]);
	assert_int_equal(tree_open(&tree[0], vf.root, &sys, NULL), 0);
	fx_mkdir("root/closed");
	atomic_store(&fails, true);
	begin(&s, 0, 5 * MIB, QUOTA_COUNT);
	vf_wait(&s.n_done, 1);
	assert_int_equal(s.r, PTCP_EIO);
	assert_non_null(strstr(s.e.msg, "entries that cannot be examined: 1"));
	assert_true(vf_logged("event=count-incomplete"));
	run(&s, 0, 5 * MIB, QUOTA_ADJUST);
	run(&s, 0, 5 * MIB, QUOTA_SHOW);
	atomic_store(&fails, false);
	run_again(&s, 0, 5 * MIB);
	tree_unref(tree[0]);
	assert_int_equal(tree_open(&tree[0], vf.root, &sys_real, NULL), 0);
}

/* A count for which the client has no memory refuses; the directory counts as the client's. */
static void without_memory(void **state)
{
	struct memory_account *few, *enough;
	struct memory_budget *b;
	struct session s;

	(void)state;
	assert_int_equal(memory_budget_new(&b, 64 << 10, NULL), 0);
	assert_int_equal(memory_account_new(&few, b, "client", NULL), 0);
	s = (struct session){ .tree = tree[0], .limit = 5 * MIB, .need = QUOTA_COUNT, .memory = few, .io.run = apply };
	io_submit(vf.context.io, &s.io);
	vf_wait(&s.n_done, 1);
	assert_int_equal(s.r, PTCP_ENOMEM);
	assert_non_null(strstr(s.e.msg, "--max-memory"));
	assert_in_range(memory_budget_used(b), 1, 8 << 10);
	memory_account_free(few);
	memory_budget_set(b, 64 * MIB);
	assert_int_equal(memory_account_new(&enough, b, "client", NULL), 0);
	run_again(&s, 0, 5 * MIB);
	memory_account_free(enough);
	quota_table_free(table);
	assert_int_equal(memory_budget_used(b), 0);
	memory_budget_free(b);
	assert_int_equal(quota_table_new(&table, &vf.context.log, NULL), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		quota_test(needs), quota_test(shared), quota_test(directories), quota_test(listed),
		quota_test(not_whole), quota_test(without_memory),
	};

	return cmocka_run_group_tests_name("server/quota_table", tests, NULL, NULL);
}
