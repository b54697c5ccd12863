/* When the space of a client's directory is counted, and which usage its sessions see. */
#include "fixture.h"

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

	if (vf_setup(state) != 0 || quota_table_new(&table, &vf.host.log, NULL) < 0)
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
	int r;
	unsigned calls, n_done;
};

static void on_done(struct msg *m) { CONTAINER_OF(m, struct session, done)->n_done++; }

static void apply(struct io_job *io)
{
	struct session *s = CONTAINER_OF(io, struct session, io);
	int r;

	s->calls++;
	if ((r = quota_table_apply(table, vf.host.io, s->tree, s->limit, s->need, &s->io, NULL)) > 0)
		return; /* perhaps already continued by another thread */
	s->r = r;
	s->done.run = on_done;
	loop_post(vf.control, &s->done);
}

static void begin(struct session *s, unsigned i, uint64_t limit, enum quota_need need)
{
	*s = (struct session){ .tree = tree[i], .limit = limit, .need = need, .io.run = apply };
	io_submit(vf.host.io, &s->io);
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

/* What cannot be examined is logged: the usage is a lower bound then. Root may examine everything. */
static void unreadable(void **state)
{
	struct session s;

	(void)state;
	if (geteuid() == 0)
		skip();
	fx_mkdir("root/closed");
	assert_int_equal(chmod(fx_path("root/closed"), 0), 0);
	run(&s, 0, 5 * MIB, QUOTA_COUNT);
	assert_true(vf_logged("event=count-incomplete"));
	assert_int_equal(chmod(fx_path("root/closed"), 0700), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		quota_test(needs), quota_test(shared), quota_test(directories), quota_test(listed), quota_test(unreadable),
	};

	return cmocka_run_group_tests_name("server/quota_table", tests, NULL, NULL);
}
