/* Work on files that a client requests: ls, du, mkdir, rm, mv, clean, reading and writing, with real files. The test
 * plays the connection of the client. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/text.h"
#include "core/units.h"
#include "server/file_job.h"
#include "store/file_sums.h"
#include "store/hash.h"
#include "store/sink.h"

static struct {
	struct job_set set;
	struct authorization auth;
	struct outbox box;
	struct file_job *job;
	bool pauses;
	unsigned n_flushed, n_filed, n_gone;
	struct ptcp_err filed;          /* code 0: done */
	char found[16384];              /* "path" or "path!" of each LISTED or LEFTOVER, each with a newline */
	struct wire_listed last;        /* without spans */
	char last_text[600], last_target[600];
	struct wire_managed managed;
	struct wire_cleaned cleaned;
	unsigned n_totals;
	unsigned n_pieces;              /* BLOCK frames, with data in `data` */
	struct wire_block piece[64];
	uint8_t data[1 << 20];
	size_t n_data;
} t;

static int conn; /* its address stands for the connection */

static void read_piece(struct span s)
{
	struct wire_block *b = &t.piece[t.n_pieces++ % 64];
	const uint8_t *data = s.p + WIRE_BLOCK_FIELDS;
	struct wire_block_end end;

	assert_int_equal(wire_block_decode(b, s.p - WIRE_HEADER_BYTES, NULL), 0);
	assert_int_equal(b->packed_bytes, 0);
	assert_true(b->length_bytes <= WIRE_PIECE_BYTES);
	assert_int_equal(s.n, WIRE_BLOCK_FIELDS + b->length_bytes + WIRE_BLOCK_END_BYTES);
	assert_int_equal(wire_block_end_decode(&end, data + b->length_bytes, NULL), 0);
	assert_int_equal(end.status, WIRE_BLOCK_GOOD);
	assert_int_equal(end.check, hash_check(s.p, hash_content(data, b->length_bytes)));
	if (t.n_data + b->length_bytes <= sizeof t.data)
		memcpy(t.data + t.n_data, data, b->length_bytes);
	t.n_data += b->length_bytes;
}

static void read_frame(uint8_t type, struct span s)
{
	struct wire_leftover l;
	size_t n = strlen(t.found);

	if (type == WIRE_LISTED) {
		assert_int_equal(wire_listed_decode(&t.last, s, NULL), 0);
		snprintf(t.found + n, sizeof t.found - n, "%.*s%s\n", (int)t.last.path.n, (const char *)t.last.path.p,
		    t.last.why.code != 0 ? "!" : "");
		span_copy(t.last_text, t.last.why.text);
		span_copy(t.last_target, t.last.target);
	} else if (type == WIRE_LEFTOVER) {
		assert_int_equal(wire_leftover_decode(&l, s, NULL), 0);
		snprintf(t.found + n, sizeof t.found - n, "%.*s%s\n", (int)l.path.n, (const char *)l.path.p,
		    l.why.text.n > 0 ? "!" : "");
	} else if (type == WIRE_BLOCK) {
		read_piece(s);
	} else if (type == WIRE_MANAGED) {
		assert_int_equal(wire_managed_decode(&t.managed, s, NULL), 0);
		t.n_totals++;
	} else {
		assert_int_equal(type, WIRE_CLEANED);
		assert_int_equal(wire_cleaned_decode(&t.cleaned, s, NULL), 0);
		t.n_totals++;
	}
}

static void read_frames(void)
{
	struct wire_header h;

	while (buf_len(&t.box.b) > 0) {
		assert_int_equal(wire_header_decode(&h, buf_head(&t.box.b), NULL), 0);
		read_frame(h.type, (struct span){ buf_head(&t.box.b) + WIRE_HEADER_BYTES, h.length });
		buf_consume(&t.box.b, WIRE_HEADER_BYTES + h.length);
	}
}

static bool flush_or_pause(struct job_conn *c)
{
	assert_ptr_equal(c, &conn);
	read_frames();
	t.n_flushed++;
	return t.pauses;
}

static void on_filed(struct job_conn *c, const struct ptcp_err *why)
{
	assert_ptr_equal(c, &conn);
	read_frames();
	if (why != NULL)
		t.filed = *why;
	t.n_filed++;
}

static void on_gone(void *arg)
{
	(void)arg;
	t.n_gone++;
}

static int setup(void **state)
{
	if (vf_setup(state) != 0)
		return -1;
	memset(&t, 0, sizeof t);
	t.set = (struct job_set){ .context = &vf.context, .root = vf.root, .o = &vf.o, .own_dirs = &vf.own_dirs,
	    .gone = on_gone };
	list_init(&t.set.turns);
	fx_mkdir("root/d");
	fx_mkdir("root/d/e");
	fx_text("root/d/e/deep", "12345");
	fx_text("root/d/x", "123");
	fx_text("root/d/.hidden", "1");
	fx_text("root/file", "1234567");
	fx_text("outside", "1");
	assert_int_equal(symlink("d/x", fx_path("root/link")), 0);
	return 0;
}

static int teardown(void **state)
{
	buf_fini(&t.box.b);
	assert_int_equal(t.set.n_file_jobs, 0);
	return vf_teardown(state);
}

#define job_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static struct job_client client(void)
{
	return (struct job_client){ .conn = (struct job_conn *)(void *)&conn, .fingerprint = "SHA256:client",
		.address = "192.0.2.1", .auth = &t.auth, .reports = { &t.box, flush_or_pause, on_filed } };
}

static void forget(void)
{
	t.found[0] = t.last_text[0] = '\0';
	t.filed = (struct ptcp_err){ 0 };
	t.n_filed = t.n_gone = t.n_flushed = t.n_totals = t.n_pieces = 0;
	t.n_data = 0;
	memset(&t.managed, 0, sizeof t.managed);
}

static int request(enum wire_manage_op op, unsigned flags, const char *path, const char *second)
{
	struct wire_manage f = { .op = (uint8_t)op, .flags = (uint8_t)flags };
	const struct job_client c = client();
	struct ptcp_err e;

	forget();
	vf_begin();
	vf_path(0, path);
	if (second != NULL)
		vf_path(0, second);
	f.n_paths = (uint16_t)vf.n_paths;
	f.paths = vf_paths();
	return managing_new(&t.job, &t.set, &c, &f, &e);
}

/* Carries the request out; returns the number of failures. */
static uint64_t work2(enum wire_manage_op op, unsigned flags, const char *path, const char *second)
{
	assert_int_equal(request(op, flags, path, second), 0);
	vf_wait(&t.n_gone, 1);
	assert_int_equal(t.n_filed, 1);
	if (t.filed.code != 0)
		fail_msg("%s", t.filed.msg);
	assert_int_equal(t.managed.final, 1);
	return t.managed.failed;
}

static uint64_t work(enum wire_manage_op op, unsigned flags, const char *path) { return work2(op, flags, path, NULL); }

/* ---- ls ---- */

static int compare(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* A walk lists a directory in no order: sorts the lines of t.found. */
static const char *sorted(void)
{
	static char out[sizeof t.found];
	char copy[sizeof t.found], *line[1000], *p = copy, *end;
	size_t i, n = 0;

	strcpy(copy, t.found);
	for (; (end = strchr(p, '\n')) != NULL; p = end + 1) {
		*end = '\0';
		line[n++] = p;
	}
	qsort(line, n, sizeof *line, compare);
	out[0] = '\0';
	for (i = 0; i < n; i++) {
		strcat(out, line[i]);
		strcat(out, "\n");
	}
	return out;
}

static void lists(void **state)
{
	static const struct { unsigned flags; const char *path, *found; } rows[] = {
		{ 0, "d", "d/e\nd/x\n" },
		{ 0, "d/", "d/e\nd/x\n" },
		{ WIRE_MANAGE_HIDDEN, "d", "d/.hidden\nd/e\nd/x\n" },
		{ WIRE_MANAGE_RECURSIVE, "d", "d/e\nd/e/deep\nd/x\n" },
		{ WIRE_MANAGE_ITSELF, "d", "d\n" },
		{ WIRE_MANAGE_ITSELF, "", ".\n" },
		{ 0, ".", "d\nfile\nlink\n" },
		{ 0, "", "d\nfile\nlink\n" },
		{ 0, "file", "file\n" },
		{ 0, "d/.hidden", "d/.hidden\n" },
		{ 0, "f*", "file\n" },
		{ 0, "missing", "missing!\n" },
		{ 0, "m*", "m*!\n" },
		{ 0, "../outside", "../outside!\n" },
		{ 0, "d/x/y", "d/x/y!\n" },
	};
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof rows / sizeof *rows; i++) {
		work(WIRE_MANAGE_LIST, rows[i].flags, rows[i].path);
		if (strcmp(sorted(), rows[i].found) != 0)
			fail_msg("ls \"%s\", flags %u: %s", rows[i].path, rows[i].flags, sorted());
	}
	assert_int_equal(work(WIRE_MANAGE_LIST, 0, "missing"), 1);
	assert_true(t.last.why.code > 0 && t.last_text[0] != '\0');
}

static void properties(void **state)
{
	(void)state;
	assert_int_equal(chmod(fx_path("root/file"), 0640), 0);
	assert_int_equal(work(WIRE_MANAGE_LIST, 0, "file"), 0);
	assert_int_equal(t.last.type, WIRE_LISTED_FILE);
	assert_int_equal(t.last.mode, 0640);
	assert_int_equal(t.last.bytes, 7);
	assert_int_equal(t.managed.entries, 1);
	assert_int_equal(t.managed.bytes, 7);
	assert_int_equal(work(WIRE_MANAGE_LIST, WIRE_MANAGE_ITSELF, "link"), 0);
	assert_int_equal(t.last.type, WIRE_LISTED_SYMLINK);
	assert_string_equal(t.last_target, "d/x");
	assert_int_equal(mkfifo(fx_path("root/pipe"), 0600), 0);
	assert_int_equal(work(WIRE_MANAGE_LIST, 0, "pipe"), 0);
	assert_int_equal(t.last.type, WIRE_LISTED_FIFO);
}

/* The server's own directories are invisible, beneath a root that contains them. */
static void own_directories(void **state)
{
	(void)state;
	t.set.root = fx_path("");
	fx_text("config/secret", "");
	work(WIRE_MANAGE_LIST, 0, "");
	assert_null(strstr(t.found, "config"));
	assert_non_null(strstr(t.found, "outside"));
	assert_int_equal(work(WIRE_MANAGE_LIST, 0, "config"), 1);
	assert_null(strstr(t.found, "secret"));
	assert_int_equal(work(WIRE_MANAGE_REMOVE, WIRE_MANAGE_RECURSIVE, "config"), 1);
	assert_true(fx_exists("config/secret"));
}

/* ---- du ---- */

static void counts(void **state)
{
	(void)state;
	assert_int_equal(work(WIRE_MANAGE_COUNT, 0, "d"), 0);
	assert_string_equal(t.found, "d\n");
	assert_int_equal(t.last.type, WIRE_LISTED_DIR);
	assert_int_equal(t.last.entries, 5);
	assert_int_equal(t.last.bytes, 5 + 3 + 1);
	assert_int_equal(t.managed.quota_bytes, 0);
	assert_int_equal(work2(WIRE_MANAGE_COUNT, 0, "file", "missing"), 1);
	assert_string_equal(t.found, "file\nmissing!\n");
	assert_int_equal(t.managed.bytes, 7);
}

/* With a quota the totals show the space used, and the quota. */
static void counts_with_a_quota(void **state)
{
	struct quota_table *table;

	(void)state;
	assert_int_equal(quota_table_new(&table, &vf.context.log, NULL), 0);
	t.set.quotas = table;
	t.auth.quota_bytes = 1 << 20;
	assert_int_equal(work(WIRE_MANAGE_COUNT, 0, "d"), 0);
	assert_int_equal(t.managed.quota_bytes, 1 << 20);
	assert_true(t.managed.quota_used_bytes > 0);
	assert_int_equal(work(WIRE_MANAGE_LIST, 0, "d"), 0);
	assert_int_equal(t.managed.quota_bytes, 0);
	quota_table_free(table);
}

/* ---- mkdir ---- */

static void makes_directories(void **state)
{
	(void)state;
	assert_int_equal(work2(WIRE_MANAGE_MKDIR, 0, "new", "d/new/"), 0);
	assert_int_equal(t.managed.entries, 2);
	assert_true(fx_exists("root/new") && fx_exists("root/d/new"));
	assert_int_equal(work(WIRE_MANAGE_MKDIR, 0, "new"), 1);
	assert_non_null(strstr(t.last_text, "exist"));
	assert_int_equal(work(WIRE_MANAGE_MKDIR, 0, "a/b/c"), 1);
	assert_false(fx_exists("root/a"));
	assert_int_equal(work(WIRE_MANAGE_MKDIR, WIRE_MANAGE_PARENTS, "a/b//c/"), 0);
	assert_true(fx_exists("root/a/b/c"));
	assert_int_equal(work(WIRE_MANAGE_MKDIR, WIRE_MANAGE_PARENTS, "a/b/c"), 0);
	assert_int_equal(work(WIRE_MANAGE_MKDIR, WIRE_MANAGE_PARENTS, "file/b"), 1);
	assert_int_equal(work(WIRE_MANAGE_MKDIR, WIRE_MANAGE_PARENTS, "../new/b"), 1);
	assert_false(fx_exists("new"));
	assert_int_equal(work(WIRE_MANAGE_MKDIR, 0, "."), 1);
	assert_non_null(strstr(t.last_text, "not the name of a file or directory"));
}

/* ---- rm ---- */

static void removes(void **state)
{
	(void)state;
	assert_int_equal(work(WIRE_MANAGE_REMOVE, 0, "link"), 0);
	assert_false(fx_exists("root/link"));
	assert_true(fx_exists("root/d/x")); /* links are not followed */
	assert_int_equal(work(WIRE_MANAGE_REMOVE, 0, "d"), 1);
	assert_non_null(strstr(t.last_text, "-r"));
	assert_true(fx_exists("root/d/x"));
	assert_int_equal(work(WIRE_MANAGE_REMOVE, WIRE_MANAGE_RECURSIVE, "d"), 0);
	assert_false(fx_exists("root/d"));
	assert_int_equal(t.managed.entries, 5);
	assert_int_equal(work2(WIRE_MANAGE_REMOVE, 0, "missing", "f*"), 1);
	assert_false(fx_exists("root/file"));
	fx_text("root/.ptcp-0123456789abcdef.part", "");
	assert_int_equal(work(WIRE_MANAGE_REMOVE, 0, ".ptcp-0123456789abcdef.part"), 1);
	assert_non_null(strstr(t.last_text, "ptcp clean"));
	fx_mkdir("beyond");
	fx_text("beyond/precious", "");
	fx_mkdir("root/away");
	assert_int_equal(symlink("../../beyond", fx_path("root/away/link")), 0);
	assert_int_equal(work(WIRE_MANAGE_REMOVE, WIRE_MANAGE_RECURSIVE, "away/"), 0);
	assert_true(fx_exists("beyond/precious"));
}

/* Never the root itself, a home directory, or a file beyond the root. */
static void never_removes(void **state)
{
	static const char *const paths[] = { "", ".", "/", "d/..", "../outside", "d/../../outside" };
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof paths / sizeof *paths; i++)
		if (work(WIRE_MANAGE_REMOVE, WIRE_MANAGE_RECURSIVE, paths[i]) != 1)
			fail_msg("removes \"%s\"", paths[i]);
	assert_true(fx_exists("root/d/e/deep") && fx_exists("root/file") && fx_exists("outside"));
	t.set.ephemeral = true;
	assert_int_equal(work(WIRE_MANAGE_REMOVE, WIRE_MANAGE_RECURSIVE, "~"), 1);
	assert_int_equal(work(WIRE_MANAGE_REMOVE, WIRE_MANAGE_RECURSIVE, "~root"), 1);
}

/* ---- mv ---- */

static void renames(void **state)
{
	(void)state;
	assert_int_equal(work2(WIRE_MANAGE_RENAME, 0, "file", "d/moved"), 0);
	fx_holds("root/d/moved", "1234567");
	assert_false(fx_exists("root/file"));
	assert_int_equal(work2(WIRE_MANAGE_RENAME, 0, "d/moved", "."), 0); /* into a directory */
	fx_holds("root/moved", "1234567");
	assert_int_equal(work2(WIRE_MANAGE_RENAME, 0, "moved", "d/x"), 1);
	fx_holds("root/d/x", "123");
	assert_int_equal(work2(WIRE_MANAGE_RENAME, WIRE_MANAGE_REPLACE, "moved", "d/x"), 0);
	fx_holds("root/d/x", "1234567");
	assert_int_equal(work2(WIRE_MANAGE_RENAME, 0, "d/x", "none/x"), 1);
	assert_non_null(strstr(t.last_text, "to none/x"));
	assert_int_equal(work2(WIRE_MANAGE_RENAME, 0, "d/x", "../x"), 1);
	assert_int_equal(work2(WIRE_MANAGE_RENAME, 0, "../outside", "x"), 1);
	assert_int_equal(work2(WIRE_MANAGE_RENAME, 0, "d", "d/e"), 1);
	assert_int_equal(work2(WIRE_MANAGE_RENAME, 0, "missing", "x"), 1);
	assert_int_equal(work2(WIRE_MANAGE_RENAME, 0, "d/x", "missing/"), 1);
	assert_int_equal(work2(WIRE_MANAGE_RENAME, 0, "", "d/x"), 1);
	assert_int_equal(work2(WIRE_MANAGE_RENAME, 0, "d/x", ".ptcp-0123456789abcdef.part"), 1);
	assert_true(fx_exists("root/d/x") && fx_exists("outside") && fx_exists("root/d/e/deep"));
}

/* ---- Rights ---- */

/* A job goes on while its client has the rights that the job needs. */
static void permits(void **state)
{
	static const struct { enum wire_manage_op op; bool read_only; } rows[] = {
		{ WIRE_MANAGE_LIST, true }, { WIRE_MANAGE_COUNT, true }, { WIRE_MANAGE_MKDIR, false },
		{ WIRE_MANAGE_REMOVE, false }, { WIRE_MANAGE_RENAME, false },
	};
	const struct authorization same = { 0 }, reads = { .read_only = true }, adds = { .write_once = true },
		elsewhere = { .below = "b" };
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(request(rows[i].op, 0, "missing", rows[i].op == WIRE_MANAGE_RENAME ? "x" : NULL), 0);
		assert_true(t.job->ops->permits(t.job, &same));
		assert_int_equal(t.job->ops->permits(t.job, &reads), rows[i].read_only);
		assert_false(t.job->ops->permits(t.job, &adds));
		assert_false(t.job->ops->permits(t.job, &elsewhere));
		assert_int_equal(t.set.n_file_jobs, 1);
		vf_wait(&t.n_gone, 1);
	}
	t.auth.read_only = true;
	assert_int_equal(request(WIRE_MANAGE_REMOVE, 0, "file", NULL), PTCP_EREFUSED);
	assert_int_equal(t.set.n_file_jobs, 0);
}

/* ---- Steps ---- */

static void make_many(void)
{
	char name[40];
	unsigned i;

	fx_mkdir("root/many");
	for (i = 0; i < 3 * FILE_JOB_STEP_ENTRIES; i++) {
		snprintf(name, sizeof name, "root/many/%u", i);
		fx_text(name, "");
	}
}

/* More entries than one step takes; a client that does not read stops the job until it has read. */
static void pauses(void **state)
{
	unsigned before;

	(void)state;
	make_many();
	t.pauses = true;
	assert_int_equal(request(WIRE_MANAGE_LIST, 0, "many", NULL), 0);
	vf_wait(&t.n_flushed, 1);
	assert_true(t.job->waits);
	before = t.n_flushed;
	t.pauses = false;
	file_job_resume(t.job);
	vf_wait(&t.n_gone, 1);
	assert_true(t.n_flushed > before);
	assert_int_equal(t.managed.entries, 3 * FILE_JOB_STEP_ENTRIES);
	assert_int_equal(t.n_filed, 1);
}

/* A client that leaves, during a step or a pause, ends the job without an answer. */
static void leaves(void **state)
{
	(void)state;
	make_many();
	t.pauses = true;
	assert_int_equal(request(WIRE_MANAGE_REMOVE, WIRE_MANAGE_RECURSIVE, "many", NULL), 0);
	vf_wait(&t.n_flushed, 1);
	file_job_leave(t.job);
	assert_int_equal(t.n_gone, 1);
	assert_true(fx_exists("root/many"));
	assert_true(vf_logged("the client has left"));
	assert_int_equal(request(WIRE_MANAGE_LIST, 0, "many", NULL), 0);
	file_job_leave(t.job);
	vf_wait(&t.n_gone, 1);
	assert_int_equal(t.n_filed, 0);
}

/* A root that cannot be opened: one error, no totals. */
static void no_root(void **state)
{
	(void)state;
	t.set.root = fx_path("none");
	assert_int_equal(request(WIRE_MANAGE_LIST, 0, "d", NULL), 0);
	vf_wait(&t.n_gone, 1);
	assert_int_equal(t.filed.code, PTCP_EIO);
	assert_int_equal(t.n_totals, 0);
}

/* The text is cut, never a frame that is too long. */
static void cuts(void **state)
{
	(void)state;
	assert_int_equal(file_job_cut("abc", 5).n, 3);
	assert_int_equal(file_job_cut("abc", 3).n, 3);
	assert_int_equal(file_job_cut("abc", 2).n, 2);
}

/* ---- clean ---- */

static int request_clean(const char *path, uint64_t older_ms, bool dry_run)
{
	const struct wire_clean f = { .older_ms = older_ms, .dry_run = dry_run,
		.path = { (const uint8_t *)path, strlen(path) } };
	const struct job_client c = client();
	struct ptcp_err e;

	forget();
	memset(&t.cleaned, 0, sizeof t.cleaned);
	return cleaning_new(&t.job, &t.set, &c, &f, &e);
}

static void clean(const char *path, uint64_t older_ms, bool dry_run)
{
	assert_int_equal(request_clean(path, older_ms, dry_run), 0);
	vf_wait(&t.n_gone, 1);
	assert_int_equal(t.filed.code, 0);
	assert_int_equal(t.cleaned.final, 1);
}

static void cleans(void **state)
{
	static const struct meta m = { 0 };
	struct tree *tree;
	struct dir *root;
	struct sink *s;

	(void)state;
	fx_text("root/d/.ptcp-0123456789abcdef.part", "12345678");
	clean("d", 3600000, false);
	assert_int_equal(t.cleaned.recent, 1);
	assert_int_equal(t.cleaned.files, 0);
	clean("d", 0, true);
	assert_string_equal(t.found, ".ptcp-0123456789abcdef.part\n");
	assert_int_equal(t.cleaned.bytes, 8);
	assert_true(fx_exists("root/d/.ptcp-0123456789abcdef.part"));
	clean("d", 0, false);
	assert_int_equal(t.cleaned.files, 1);
	assert_false(fx_exists("root/d/.ptcp-0123456789abcdef.part"));
	assert_true(fx_exists("root/d/x") && fx_exists("root/d/.hidden"));
	/* the part of a running transfer */
	assert_int_equal(tree_open(&tree, vf.root, &sys_real, NULL), 0);
	root = tree_root(tree);
	s = sink_new(root, "running", 10, &m, NULL);
	assert_int_equal(sink_open(s, NULL), 0);
	clean("", 0, false);
	assert_int_equal(t.cleaned.in_use, 1);
	assert_int_equal(t.cleaned.files, 0);
	sink_discard(s);
	sink_unref(s);
	dir_unref(root);
	tree_unref(tree);
}

static void cleans_nothing(void **state)
{
	const struct authorization same = { 0 }, reads = { .read_only = true }, adds = { .write_once = true };

	(void)state;
	assert_int_equal(request_clean("none", 0, false), 0);
	assert_true(t.job->ops->exclusive);
	assert_true(t.job->ops->permits(t.job, &same));
	assert_false(t.job->ops->permits(t.job, &reads) || t.job->ops->permits(t.job, &adds));
	vf_wait(&t.n_gone, 1);
	assert_true(t.filed.code < 0);
	assert_non_null(strstr(t.filed.msg, "none"));
	assert_int_equal(request_clean("../config", 0, false), 0);
	vf_wait(&t.n_gone, 1);
	assert_true(t.filed.code < 0);
	t.auth.read_only = true;
	assert_int_equal(request_clean("d", 0, false), PTCP_EREFUSED);
}

/* ---- Parts of a file ---- */

#define READ_MAX 64

static int request_parts(const char *path, const struct wire_range *r, unsigned n)
{
	uint8_t ranges[READ_MAX * WIRE_RANGE_BYTES];
	const struct wire_read f = { .n_ranges = (uint16_t)n, .path = { (const uint8_t *)path, strlen(path) },
		.ranges = { ranges, n * WIRE_RANGE_BYTES } };
	const struct job_client c = client();
	struct ptcp_err e;
	unsigned i;

	forget();
	for (i = 0; i < n; i++)
		wire_range_encode(ranges + i * WIRE_RANGE_BYTES, &r[i]);
	return reading_new(&t.job, &t.set, &c, &f, &e);
}

/* Returns the number of failures. */
static uint64_t parts(const char *path, const struct wire_range *r, unsigned n)
{
	assert_int_equal(request_parts(path, r, n), 0);
	vf_wait(&t.n_gone, 1);
	assert_true(t.n_filed == 1 && t.managed.final == 1);
	if (t.filed.code != 0)
		fail_msg("%s", t.filed.msg);
	return t.managed.failed;
}

static const struct wire_range whole = { 0, WIRE_RANGE_REST };

static uint64_t read_whole(const char *path) { return parts(path, &whole, 1); }

/* The slice of one byte after the other that Python takes of the file. */
static size_t slice(const uint8_t *file, int64_t size, struct wire_range r, uint8_t *out)
{
	int64_t from = r.start < 0 ? r.start + size : r.start, end = r.end < 0 ? r.end + size : r.end, i;
	size_t n = 0;

	for (i = from < 0 ? 0 : from; i < end && i < size; i++)
		out[n++] = file[i];
	return n;
}

static int64_t near(int64_t size)
{
	return rand() % 20 == 0 ? WIRE_RANGE_REST : rand() % 3 == 0 ? rand() % 10 - 5 :
	    rand() % (2 * size + 3) - size - 1;
}

/* Random ranges of files of sizes around those of pieces and steps, against slices. */
static void random_parts(void **state)
{
	static const int64_t sizes[] = { 0, 1, 100, WIRE_PIECE_BYTES - 1, WIRE_PIECE_BYTES, WIRE_PIECE_BYTES + 1,
		4 * WIRE_PIECE_BYTES + 1 };
	static uint8_t file[4 * WIRE_PIECE_BYTES + 1], want[sizeof t.data];
	struct wire_range r[READ_MAX];
	unsigned round, i, n;
	size_t n_want;
	int64_t size;
	uint64_t from;
	FILE *f;

	(void)state;
	srand(1);
	for (i = 0; i < sizeof file; i++)
		file[i] = (uint8_t)rand();
	for (round = 0; round < 40; round++) {
		size = sizes[round % 7];
		assert_non_null(f = fopen(fx_path("root/random"), "w"));
		assert_int_equal(fwrite(file, 1, (size_t)size, f), size);
		assert_int_equal(fclose(f), 0);
		n = 1 + (unsigned)rand() % 8;
		for (i = 0, n_want = 0; i < n; i++) {
			r[i] = (struct wire_range){ near(size), near(size) };
			if (n_want + wire_range_clip(r[i], (uint64_t)size, &from) > sizeof want)
				r[i].end = r[i].start;
			n_want += slice(file, size, r[i], want + n_want);
		}
		assert_int_equal(parts("random", r, n), 0);
		assert_string_equal(t.found, "random\n");
		assert_true(t.last.type == WIRE_LISTED_FILE && t.last.bytes == (uint64_t)size);
		assert_true(t.managed.entries == 1 && t.managed.bytes == n_want);
		assert_int_equal(t.n_data, n_want);
		assert_memory_equal(t.data, want, n_want);
	}
}

/* Each piece names its range, and its place in the file. */
static void pieces_of_parts(void **state)
{
	const struct wire_range r[] = { { 2, 5 }, { 9, 3 }, { -2, WIRE_RANGE_REST }, { 0, 1 } };

	(void)state;
	assert_int_equal(parts("file", r, 4), 0);
	assert_int_equal(t.n_pieces, 3);
	assert_true(t.piece[0].id == wire_range_id(0) && t.piece[0].offset == 2 && t.piece[0].length_bytes == 3);
	assert_true(t.piece[1].id == wire_range_id(2) && t.piece[1].offset == 5);
	assert_true(t.piece[2].id == wire_range_id(3) && t.piece[2].offset == 0);
	assert_memory_equal(t.data, "345671", 6);
}

static void parts_of_what(void **state)
{
	static const struct { const char *path; unsigned n_data; const char *why; } rows[] = {
		{ "file", 7, NULL }, { "link", 3, NULL }, { "/d/e/../x", 3, NULL }, { "d/.hidden", 1, NULL },
		{ "none", 0, "No such file" }, { "none/x", 0, "No such file" }, { "d", 0, "Is a directory" },
		{ "", 0, "Is a directory" }, { "dir-link", 0, "Is a directory" }, { "../outside", 0, "" },
		{ "away", 0, "leads out of the root" }, { "absolute", 0, "leads out of the root" },
		{ "lost", 0, "leads nowhere" },
		{ "circle", 0, "cannot be followed" }, { "pipe", 0, "" }, { "file/x", 0, "ot a directory" },
		{ ".ptcp-0123456789abcdef.part", 0, "reserves" }, { "d/*", 0, "No such file" },
	};
	unsigned i;

	(void)state;
	assert_int_equal(symlink("d", fx_path("root/dir-link")), 0);
	assert_int_equal(symlink("../outside", fx_path("root/away")), 0);
	assert_int_equal(symlink(fx_path("outside"), fx_path("root/absolute")), 0);
	assert_int_equal(symlink("none", fx_path("root/lost")), 0);
	assert_int_equal(symlink("circle", fx_path("root/circle")), 0);
	assert_int_equal(mkfifo(fx_path("root/pipe"), 0600), 0);
	fx_text("root/.ptcp-0123456789abcdef.part", "secret");
	for (i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(read_whole(rows[i].path), rows[i].why != NULL);
		if (t.n_data != rows[i].n_data || (rows[i].why != NULL && strstr(t.last_text, rows[i].why) == NULL))
			fail_msg("read \"%s\": %zu bytes, %s", rows[i].path, t.n_data, t.last_text);
		assert_null(strstr(t.last_text, fx_path("")));
	}
	t.set.root = fx_path("");
	fx_text("config/secret", "secret");
	assert_int_equal(symlink("config/secret", fx_path("to-secret")), 0);
	assert_int_equal(link(fx_path("config/secret"), fx_path("root/hard")), 0);
	assert_int_equal(read_whole("config/secret"), 1);
	assert_int_equal(read_whole("to-secret"), 1);
	assert_int_equal(read_whole("root/hard"), 1);
	assert_int_equal(t.n_data, 0);
}

/* All pieces are of one file: one that shrinks or is rewritten fails, one that grows does not. */
static void parts_of_changes(void **state)
{
	static const struct { const char *change; uint64_t failed; } rows[] = {
		{ "truncate -s 500000 big", 1 }, { "truncate -s 0 big", 1 }, { "touch -d 2001-01-01 big", 1 },
		{ "cp big other && mv other big", 1 }, { "rm big", 1 }, { "echo more >>big", 0 },
	};
	const struct wire_range r[2] = { { 0, 600000 }, { 300000, 900000 } };
	char line[4200];
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof rows / sizeof *rows; i++) {
		snprintf(line, sizeof line, "cd %s && head -c 1000000 /dev/zero >big", fx_path("root"));
		assert_int_equal(system(line), 0);
		t.pauses = true;
		assert_int_equal(request_parts("big", r, 2), 0);
		vf_wait(&t.n_flushed, 1);
		snprintf(line, sizeof line, "cd %s && %s", fx_path("root"), rows[i].change);
		assert_int_equal(system(line), 0);
		t.pauses = false;
		file_job_resume(t.job);
		vf_wait(&t.n_gone, 1);
		if (t.managed.failed != rows[i].failed)
			fail_msg("%s: %s", rows[i].change, t.last_text);
		if (rows[i].failed)
			assert_non_null(strstr(t.last_text, "it was being read"));
		else
			assert_int_equal(t.n_data, 1200000);
	}
}

static void parts_without_size(void **state)
{
	(void)state;
	t.set.root = "/proc";
	assert_int_equal(read_whole("version"), 0);
	assert_true(t.n_data > 10 && t.last.bytes == t.n_data);
	assert_memory_equal(t.data, "Linux version", 13);
}

static void parts_by_right(void **state)
{
	const struct authorization same = { 0 }, reads = { .read_only = true }, adds = { .write_once = true };

	(void)state;
	assert_int_equal(request_parts("file", &whole, 1), 0);
	assert_true(t.job->ops->permits(t.job, &same) && t.job->ops->permits(t.job, &reads));
	assert_false(t.job->ops->permits(t.job, &adds));
	vf_wait(&t.n_gone, 1);
	t.auth.read_only = true;
	assert_int_equal(read_whole("file"), 0);
	t.auth.write_once = true;
	assert_int_equal(request_parts("file", &whole, 1), PTCP_EREFUSED);
	t.auth.write_once = false;
	t.set.root = NULL;
	assert_int_equal(request_parts("file", &whole, 1), PTCP_EREFUSED);
}

/* Whoever goes away, or does not read, costs no more work. */
static void parts_left(void **state)
{
	static const struct wire_range many[READ_MAX] = { { 0, 0 } };
	struct wire_range r[READ_MAX];
	unsigned i;

	(void)state;
	assert_int_equal(parts("file", many, READ_MAX), 0);
	assert_true(t.n_pieces == 0 && t.managed.entries == 1);
	assert_int_equal(truncate(fx_path("root/file"), 1 << 20), 0);
	for (i = 0; i < READ_MAX; i++)
		r[i] = whole;
	t.pauses = true;
	assert_int_equal(request_parts("file", r, READ_MAX), 0);
	vf_wait(&t.n_flushed, 1);
	assert_true(t.n_data > 0 && t.n_data <= 5 * WIRE_PIECE_BYTES);
	file_job_leave(t.job);
	vf_wait(&t.n_gone, 1);
	assert_int_equal(t.n_filed, 0);
	assert_true(t.n_data <= 5 * WIRE_PIECE_BYTES);
}

/* ---- Digests ---- */

#define ALL_DIGESTS PTCP_DIGESTS_ALL

static int request_sums(const char *path, unsigned flags, unsigned digests, struct wire_range r)
{
	struct wire_sum f = { .flags = (uint8_t)flags, .digests = (uint16_t)digests, .start = r.start, .end = r.end };
	const struct job_client c = client();
	struct ptcp_err e;

	forget();
	vf_begin();
	vf_path(0, path);
	f.n_paths = 1;
	f.paths = vf_paths();
	return summing_new(&t.job, &t.set, &c, &f, &e);
}

/* Returns the number of failures. */
static uint64_t sums_of(const char *path, unsigned flags, unsigned digests, struct wire_range r)
{
	assert_int_equal(request_sums(path, flags, digests, r), 0);
	vf_wait(&t.n_gone, 1);
	assert_true(t.n_filed == 1 && t.managed.final == 1);
	if (t.filed.code != 0)
		fail_msg("%s", t.filed.msg);
	assert_int_equal(t.set.n_turns, 0);
	return t.managed.failed;
}

static const char *digest_of(const void *p, size_t n, unsigned digests)
{
	static char hex[2 * SUMS_BYTES_MAX + 1];
	uint8_t out[SUMS_BYTES_MAX];
	struct sums *s;

	assert_int_equal(sums_new(&s, digests, NULL), 0);
	sums_add(s, p, n);
	text_hex(hex, out, sums_end(s, out));
	sums_free(s);
	return hex;
}

/* Of ranges of files of sizes around those of buffers and steps, against the digests of slices. */
static void random_sums(void **state)
{
	static const int64_t sizes[] = { 0, 1, 1000, 262143, 262144, 262145, FILE_SUMS_STEP_BYTES - 1,
		FILE_SUMS_STEP_BYTES, 2 * FILE_SUMS_STEP_BYTES + 1 };
	static uint8_t file[2 * FILE_SUMS_STEP_BYTES + 1], want[sizeof file];
	struct wire_range r;
	unsigned round, i, digests;
	size_t n;
	FILE *f;

	(void)state;
	srand(2);
	for (i = 0; i < sizeof file; i++)
		file[i] = (uint8_t)rand();
	for (round = 0; round < 36; round++) {
		assert_non_null(f = fopen(fx_path("root/random"), "w"));
		assert_int_equal(fwrite(file, 1, (size_t)sizes[round % 9], f), sizes[round % 9]);
		assert_int_equal(fclose(f), 0);
		r = round < 9 ? whole : (struct wire_range){ near(sizes[round % 9]), near(sizes[round % 9]) };
		digests = round < 9 ? ALL_DIGESTS : 1 + (unsigned)rand() % ALL_DIGESTS;
		n = slice(file, sizes[round % 9], r, want);
		assert_int_equal(sums_of("random", 0, digests, r), 0);
		assert_string_equal(t.found, "random\n");
		assert_true(t.last.type == WIRE_LISTED_FILE && t.last.bytes == n);
		assert_true(t.managed.entries == 1 && t.managed.bytes == n);
		assert_string_equal(t.last_target, digest_of(want, n, digests));
	}
}

static void sums_of_what(void **state)
{
	static const struct { const char *path; unsigned flags; const char *found, *why; } rows[] = {
		{ "file", 0, "file\n", NULL }, { "link", 0, "link\n", NULL }, { "d/.hidden", 0, "d/.hidden\n", NULL },
		{ "file", 1, "file\n", NULL }, { "lin*", 0, "link\n", NULL }, { "d/*", 0, "d/e!\nd/x\n", "-r" },
		{ "none", 0, "none!\n", "No such file" }, { "d", 0, "d!\n", "Is a directory" },
		{ "", 0, "!\n", "Is a directory" }, { "d/e/", 1, "d/e/deep\n", NULL },
		{ "d/e", 1, "d/e/deep\n", NULL }, { "dir-link", 1, "dir-link/deep\n", NULL },
		{ "../outside", 0, "../outside!\n", "" }, { "away", 0, "away!\n", "leads out of the root" },
		{ "lost", 0, "lost!\n", "leads nowhere" }, { "pipe", 0, "pipe!\n", "special file" },
		{ "dir-link", 0, "dir-link!\n", "Is a directory" },
		{ ".ptcp-0123456789abcdef.part", 0, ".ptcp-0123456789abcdef.part!\n", "reserves" },
	};
	unsigned i;

	(void)state;
	assert_int_equal(symlink("d/e", fx_path("root/dir-link")), 0);
	assert_int_equal(symlink("../outside", fx_path("root/away")), 0);
	assert_int_equal(symlink("none", fx_path("root/lost")), 0);
	assert_int_equal(mkfifo(fx_path("root/pipe"), 0600), 0);
	fx_text("root/.ptcp-0123456789abcdef.part", "secret");
	for (i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(sums_of(rows[i].path, rows[i].flags, PTCP_MD5, whole), rows[i].why != NULL);
		if (rows[i].why != NULL && strchr(rows[i].path, '*') == NULL &&
		    strstr(t.last_text, rows[i].why) == NULL)
			fail_msg("\"%s\": %s", rows[i].path, t.last_text);
		if (strlen(t.found) != strlen(rows[i].found) || (strchr(rows[i].path, '*') == NULL &&
		    strcmp(t.found, rows[i].found) != 0))
			fail_msg("\"%s\": %s", rows[i].path, t.found);
	}
	/* of a tree: its files alone, without links, special files and unfinished ones */
	assert_int_equal(sums_of("", WIRE_MANAGE_RECURSIVE, PTCP_SHA256, whole), 0);
	assert_int_equal(t.managed.entries, 4);
	assert_non_null(strstr(t.found, "d/e/deep\n"));
	assert_non_null(strstr(t.found, "d/.hidden\n"));
	assert_null(strstr(t.found, "link"));
	t.set.root = fx_path("");
	fx_text("config/secret", "secret");
	assert_int_equal(symlink("config/secret", fx_path("to-secret")), 0);
	assert_int_equal(link(fx_path("config/secret"), fx_path("root/hard")), 0);
	assert_int_equal(sums_of("config/secret", 0, PTCP_MD5, whole), 1);
	assert_int_equal(sums_of("to-secret", 0, PTCP_MD5, whole), 1);
	assert_int_equal(sums_of("root/hard", 0, PTCP_MD5, whole), 1);
	assert_int_equal(sums_of("root", WIRE_MANAGE_RECURSIVE, PTCP_MD5, whole), 0);
	assert_null(strstr(t.found, "hard"));
	t.set.root = "/proc";
	assert_int_equal(sums_of("version", 0, PTCP_MD5, whole), 0);
	assert_true(t.last.bytes > 10);
}

static void sums_by_right(void **state)
{
	const struct authorization same = { 0 }, reads = { .read_only = true }, adds = { .write_once = true };

	(void)state;
	assert_int_equal(request_sums("file", 0, PTCP_MD5, whole), 0);
	assert_true(t.job->ops->permits(t.job, &same) && t.job->ops->permits(t.job, &reads));
	assert_false(t.job->ops->permits(t.job, &adds));
	vf_wait(&t.n_gone, 1);
	t.auth.read_only = true;
	assert_int_equal(sums_of("file", 0, PTCP_MD5, whole), 0);
	t.auth.write_once = true;
	assert_int_equal(request_sums("file", 0, PTCP_MD5, whole), PTCP_EREFUSED);
	t.auth.write_once = false;
	t.set.root = NULL;
	assert_int_equal(request_sums("file", 0, PTCP_MD5, whole), PTCP_EREFUSED);
}

/* A file of 1 TiB outlasts each test: whoever leaves ends the work, before or during a turn. */
static void sums_left(void **state)
{
	enum { MANY = 20 };
	struct file_job *job[MANY];
	unsigned i, queued = 0;

	(void)state;
	assert_int_equal(truncate(fx_path("root/file"), INT64_C(1) << 40), 0);
	for (i = 0; i < MANY; i++) {
		assert_int_equal(request_sums("file", 0, ALL_DIGESTS, whole), 0);
		job[i] = t.job;
	}
	while (queued < MANY - 1) { /* all have found their file, one step runs at a time */
		loop_run_once(vf.control, true);
		assert_true(t.set.n_turns <= 1);
		for (i = queued = 0; i < MANY; i++)
			queued += job[i]->queued;
	}
	for (i = 0; i < MANY; i++)
		file_job_leave(job[i]);
	vf_wait(&t.n_gone, MANY);
	assert_true(t.n_filed == 0 && t.set.n_turns == 0 && list_empty(&t.set.turns));
}

/* Small work does not wait for the end of large work. */
static void sums_in_turn(void **state)
{
	struct file_job *large;

	(void)state;
	assert_int_equal(truncate(fx_path("root/file"), INT64_C(1) << 40), 0);
	assert_int_equal(request_sums("file", 0, PTCP_SHA256, whole), 0);
	large = t.job;
	assert_int_equal(request_sums("d/x", 0, PTCP_SHA256, whole), 0);
	vf_wait(&t.n_gone, 1);
	assert_string_equal(t.found, "d/x\n");
	assert_string_equal(t.last_target, digest_of("123", 3, PTCP_SHA256));
	file_job_leave(large);
	vf_wait(&t.n_gone, 2);
}

static void sums_of_changes(void **state)
{
	static const struct { const char *change, *why; } rows[] = {
		{ "truncate -s 5 big", "changed while" }, { "touch -d 2001-01-01 big", "changed while" },
		{ "rm big", "vanished while" }, { "cp d/x other && mv other big", "while it was being read" },
	};
	char line[4200];
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof rows / sizeof *rows; i++) {
		snprintf(line, sizeof line, "cd %s && truncate -s %s big", fx_path("root"), i == 0 ? "1T" : "60M");
		assert_int_equal(system(line), 0);
		assert_int_equal(request_sums("big", 0, PTCP_XXH3, whole), 0);
		while (t.set.n_turns == 0 || t.n_flushed == 0)
			loop_run_once(vf.control, true);
		snprintf(line, sizeof line, "cd %s && %s", fx_path("root"), rows[i].change);
		assert_int_equal(system(line), 0);
		vf_wait(&t.n_gone, 1);
		assert_int_equal(t.managed.failed, 1);
		if (strstr(t.last_text, rows[i].why) == NULL)
			fail_msg("%s: %s", rows[i].change, t.last_text);
	}
}

/* ---- Writing ---- */

static const uint8_t *const content = (const uint8_t *)"abcdefghij";

static struct wire_write to_write(const char *path, uint32_t bytes, unsigned flags, const char *if_match)
{
	return (struct wire_write){ .flags = (uint8_t)flags, .fsync = WIRE_FSYNC_NONE, .size_bytes = bytes,
		.mtime_ns = WIRE_WRITE_NOW, .path = { (const uint8_t *)path, strlen(path) },
		.if_match = { (const uint8_t *)if_match, strlen(if_match) } };
}

/* A BLOCK of n bytes at `at`, with its check changed by `flip`. */
static uint32_t status_of_pieces;

static int give(const uint8_t *data, uint32_t at, uint32_t n, uint64_t flip, struct ptcp_err *e)
{
	const struct wire_block b = { .id = wire_range_id(0), .offset = at, .length_bytes = n };
	uint8_t head[WIRE_BLOCK_HEAD_BYTES];
	struct job_piece p = { .block = b, .fields = head + WIRE_HEADER_BYTES, .data = { data + at, n },
		.end = { status_of_pieces, 0 } };

	wire_block_encode(head, &b);
	p.end.check = hash_check(p.fields, hash_content(data + at, n)) ^ flip;
	return writing_take(t.job, &p, e);
}

static int begin_write(const struct wire_write *f)
{
	const struct job_client c = client();
	struct ptcp_err e;

	forget();
	return writing_new(&t.job, &t.set, &c, f, &e);
}

static void give_all(const uint8_t *data, uint32_t n)
{
	struct ptcp_err e;
	uint32_t at, part;

	for (at = 0; at < n; at += part) {
		part = n - at < WIRE_PIECE_BYTES ? n - at : WIRE_PIECE_BYTES;
		if (give(data, at, part, 0, &e) < 0)
			fail_msg("%s", e.msg);
	}
}

/* Carries it out; returns the cause of the failure, or 0. */
static int write_data(const struct wire_write *f, const uint8_t *data)
{
	assert_int_equal(begin_write(f), 0);
	give_all(data, f->size_bytes);
	vf_wait(&t.n_gone, 1);
	assert_true(t.n_filed == 1 && t.filed.code == 0 && t.managed.final == 1);
	assert_int_equal(t.managed.entries + t.managed.failed, 1);
	return (int)(t.managed.failed > 0 ? t.last.why.cause : 0);
}

static int writes(const char *path, uint32_t bytes, unsigned flags, const char *if_match)
{
	const struct wire_write f = to_write(path, bytes, flags, if_match);

	return write_data(&f, content);
}

static void holds(const char *path, const void *data, size_t n)
{
	static char got[WIRE_WRITE_MAX + 1];
	FILE *f = fopen(fx_path(path), "r");

	assert_non_null(f);
	assert_int_equal(fread(got, 1, sizeof got, f), n);
	assert_memory_equal(got, data, n);
	fclose(f);
}

static unsigned entries_of(const char *path)
{
	char line[4200], out[20] = "";
	FILE *f;

	snprintf(line, sizeof line, "ls -A %s | wc -l", fx_path(path));
	assert_non_null(f = popen(line, "r"));
	assert_non_null(fgets(out, sizeof out, f));
	pclose(f);
	return (unsigned)atoi(out);
}

/* Sizes around those of pieces; a new file, and one that is replaced; nothing but the file remains. */
static void writes_files(void **state)
{
	static const uint32_t sizes[] = { 0, 1, WIRE_PIECE_BYTES - 1, WIRE_PIECE_BYTES, WIRE_PIECE_BYTES + 1,
		WIRE_WRITE_MAX };
	static uint8_t data[WIRE_WRITE_MAX];
	struct wire_write f;
	struct stat st;
	unsigned i;

	(void)state;
	srand(1);
	for (i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)rand();
	for (i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
		f = to_write("d/e/new", sizes[i % 6], 0, "");
		f.fsync = i % 3;
		assert_int_equal(write_data(&f, data), 0);
		holds("root/d/e/new", data, f.size_bytes);
		assert_int_equal(entries_of("root/d/e"), 2);
		assert_int_equal(stat(fx_path("root/d/e/new"), &st), 0);
		assert_string_equal(t.found, "d/e/new\n");
		assert_true(t.last.type == WIRE_LISTED_FILE && t.last.bytes == f.size_bytes &&
		    t.last.mtime_s == st.st_mtim.tv_sec && t.last.mtime_ns == (uint32_t)st.st_mtim.tv_nsec &&
		    t.last.mode == (st.st_mode & 07777));
	}
}

static void modes_and_times_of_writes(void **state)
{
	struct wire_write f = to_write("w", 3, WIRE_WRITE_MODE, "");
	mode_t mask = umask(027);
	struct stat st;
	int64_t before;

	(void)state;
	f.mode = 0777;
	f.mtime_s = -5;
	f.mtime_ns = 7;
	assert_int_equal(write_data(&f, content), 0);
	assert_int_equal(stat(fx_path("root/w"), &st), 0);
	assert_true(st.st_mtim.tv_sec == -5 && st.st_mtim.tv_nsec == 7);
	assert_int_equal(st.st_mode & 0777, 0777); /* as a sender's, which has its own umask */
	assert_int_equal(chmod(fx_path("root/w"), 0604), 0);
	before = (int64_t)time(NULL) - 1;
	assert_int_equal(writes("w", 3, 0, ""), 0);
	assert_int_equal(stat(fx_path("root/w"), &st), 0);
	assert_true(st.st_mtim.tv_sec >= before && (st.st_mode & 0777) == 0604);
	assert_int_equal(writes("w2", 3, 0, ""), 0);
	assert_int_equal(stat(fx_path("root/w2"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	umask(mask);
}

static void writes_where(void **state)
{
	static const struct { const char *path; unsigned flags; int cause; const char *there; } rows[] = {
		{ "a/b/c", WIRE_WRITE_MKPATH, 0, "root/a/b/c" }, { "x/y", 0, ENOENT, NULL },
		{ "file", WIRE_WRITE_EXCLUSIVE, EEXIST, NULL }, { "fresh", WIRE_WRITE_EXCLUSIVE, 0, "root/fresh" },
		{ "d", 0, EISDIR, NULL }, { "d/", 0, EISDIR, NULL }, { "", 0, EISDIR, NULL },
		{ "file/x", WIRE_WRITE_MKPATH, ENOTDIR, NULL }, { "../out", WIRE_WRITE_MKPATH, -1, NULL },
		{ ".ptcp-0123456789abcdef.part", 0, -1, NULL }, { "pipe", 0, EEXIST, NULL },
		{ "link", 0, 0, "root/link" }, { "away/x", 0, -1, NULL },
	};
	unsigned i, n;
	int got;

	(void)state;
	assert_int_equal(mkfifo(fx_path("root/pipe"), 0600), 0);
	assert_int_equal(symlink("..", fx_path("root/away")), 0);
	n = entries_of("");
	for (i = 0; i < sizeof rows / sizeof *rows; i++) {
		got = writes(rows[i].path, 4, rows[i].flags, "");
		if ((got != 0) != (rows[i].cause != 0) || (rows[i].cause > 0 && strcmp(t.last_text, "") == 0))
			fail_msg("\"%s\": cause %d, %s", rows[i].path, got, t.last_text);
		if (rows[i].there != NULL)
			holds(rows[i].there, content, 4);
		assert_null(strstr(t.last_text, fx_path("")));
	}
	assert_int_equal(entries_of(""), n);
	holds("root/d/x", "123", 3); /* the link was replaced, not followed */
}

static char *version_of(const char *path)
{
	static char out[80];
	struct stat st;

	assert_int_equal(stat(fx_path(path), &st), 0);
	snprintf(out, sizeof out, "%lld@%lld.%09ld", (long long)st.st_size, (long long)st.st_mtim.tv_sec,
	    st.st_mtim.tv_nsec);
	return out;
}

/* Only the version that is named is replaced; each write makes another version, however soon. */
static void versions(void **state)
{
	char first[80];
	unsigned i;

	(void)state;
	for (i = 0; i < 50; i++) {
		strcpy(first, version_of("root/file"));
		assert_int_equal(writes("file", 5, 0, first), 0);
		holds("root/file", content, 5);
		assert_string_not_equal(first, version_of("root/file"));
		assert_true(writes("file", 6, 0, first) != 0);
		assert_non_null(strstr(t.last_text, "another version"));
		holds("root/file", content, 5);
	}
	assert_true(writes("none", 1, 0, first) != 0);
	assert_true(writes("d", 1, 0, first) != 0);
	assert_int_equal(entries_of("root"), 3);
}

static void malformed_versions(void **state)
{
	static const char *const texts[] = { "x", "1@2", "1@2.3", "@1.000000000", "1@.000000000", "1@--2.000000000",
		"1@2.0000000000", "1@2.000000000x", "18446744073709551616@0.000000000",
		"1@9223372036854775808.000000000" };
	struct wire_write f;
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof texts / sizeof *texts; i++) {
		f = to_write("file", 0, 0, texts[i]);
		if (begin_write(&f) != PTCP_EPROTO)
			fail_msg("%s", texts[i]);
	}
}

static void writes_by_right(void **state)
{
	const struct authorization same = { 0 }, reads = { .read_only = true }, adds = { .write_once = true };
	struct wire_write f = to_write("w", 1, 0, "");
	const struct wire_write one = to_write("file", 1, 0, "1@1.000000000");

	(void)state;
	assert_int_equal(begin_write(&f), 0);
	assert_true(t.job->ops->permits(t.job, &same));
	assert_false(t.job->ops->permits(t.job, &adds) || t.job->ops->permits(t.job, &reads));
	file_job_leave(t.job); /* before its data has come */
	assert_int_equal(t.n_gone + t.n_filed, 0);
	t.auth.read_only = true;
	assert_int_equal(begin_write(&f), PTCP_EREFUSED);
	t.auth = (struct authorization){ .write_once = true };
	assert_int_equal(begin_write(&one), PTCP_EREFUSED);
	assert_int_equal(write_data(&f, content), 0);
	assert_true(write_data(&f, content) != 0); /* of another time */
	f = to_write("w2", 2, 0, "");
	f.mtime_s = 5;
	f.mtime_ns = 6;
	assert_int_equal(write_data(&f, content), 0);
	assert_int_equal(write_data(&f, content), 0); /* the same file, which it has added before */
	assert_true(t.last.bytes == 2 && t.last.mtime_s == 5 && t.last.mtime_ns == 6);
	t.set.root = NULL;
	assert_int_equal(begin_write(&f), PTCP_EREFUSED);
}

static void altered_data(void **state)
{
	struct wire_write f = to_write("w", 2, 0, "");
	struct ptcp_err e;

	(void)state;
	assert_int_equal(begin_write(&f), 0);
	assert_int_equal(give(content, 0, 2, 1, &e), PTCP_EVERIFY);
	status_of_pieces = WIRE_BLOCK_VOID;
	assert_int_equal(give(content, 0, 2, 0, &e), PTCP_EPROTO);
	status_of_pieces = WIRE_BLOCK_GOOD;
	file_job_leave(t.job);
	assert_true(access(fx_path("root/w"), F_OK) != 0);
}

/* Another transfer has the part for long: the job waits a moment, then writes beside it, and the last to complete has
 * the name. A job that replaces a version waits for the other's end. */
static void waits_for_writers(void **state)
{
	struct wire_write f = to_write("w", 3, 0, "");
	const struct meta m = { .mode = 0644 };
	struct store_item item = { 0 };
	struct ptcp_err e;
	struct tree *tree;
	struct stat st;
	char match[64];
	struct dir *d;

	(void)state;
	assert_int_equal(tree_open(&tree, fx_path("root"), &sys_real, &e), 0);
	d = tree_root(tree);
	item.sink = sink_new(d, "w", 5, &m, NULL);
	assert_int_equal(sink_write(item.sink, "other", 5, 0, 0, &e), 0);
	assert_int_equal(begin_write(&f), 0);
	give_all(content, 3);
	vf_wait(&t.n_gone, 1);
	assert_int_equal(t.managed.failed, 0);
	holds("root/w", content, 3);
	assert_int_equal(stat(fx_path("root/w"), &st), 0);
	snprintf(match, sizeof match, "3@%lld.%09ld", (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	f = to_write("w", 3, 0, match);
	assert_int_equal(begin_write(&f), 0);
	give_all(content, 3);
	vf_wait(&t.n_totals, 3); /* more than a second */
	assert_true(t.managed.final == 0 && t.n_gone == 0);
	store_complete(&item, 1, STORE_SYNC_NONE);
	assert_int_equal(item.result, 0);
	sink_unref(item.sink);
	vf_wait(&t.n_gone, 1);
	assert_int_equal(t.managed.failed, 1);
	holds("root/w", "other", 5);
	dir_unref(d);
	tree_unref(tree);
}

/* Bytes in both directions keep to the limit of the rate. */
static void paced(void **state)
{
	static uint8_t data[100000];
	const struct wire_write f = to_write("w", sizeof data, 0, "");
	struct mono begun = mono_now();
	uint64_t took_ns;

	(void)state;
	pacer_set(&vf.context.pacing.in, 4000000, begun); /* 0.2 s for this file, less the reserve */
	pacer_set(&vf.context.pacing.out, 4000000, begun);
	assert_int_equal(write_data(&f, data), 0);
	took_ns = mono_diff_ns(mono_now(), begun);
	assert_true(took_ns >= 130 * NS_PER_MS);
	assert_int_equal(read_whole("w"), 0);
	assert_true(t.n_data == sizeof data && mono_diff_ns(mono_now(), begun) >= took_ns + 130 * NS_PER_MS);
}

/* ---- rmdir, touch, literal names ---- */

static void removes_empty_directories(void **state)
{
	static const struct { const char *path; bool works; } rows[] = {
		{ "empty", true }, { "d", false }, { "file", false }, { "link", false }, { "none", false },
		{ "", false }, { "dir-link", false },
	};
	unsigned i;

	(void)state;
	fx_mkdir("root/empty");
	assert_int_equal(symlink("d", fx_path("root/dir-link")), 0);
	for (i = 0; i < sizeof rows / sizeof *rows; i++)
		if ((work(WIRE_MANAGE_RMDIR, 0, rows[i].path) == 0) != rows[i].works)
			fail_msg("rmdir \"%s\": %s", rows[i].path, t.last_text);
	assert_true(access(fx_path("root/empty"), F_OK) != 0);
	assert_int_equal(access(fx_path("root/d/x"), F_OK), 0);
	t.set.root = fx_path("");
	assert_int_equal(work(WIRE_MANAGE_RMDIR, 0, "config"), 1); /* the server's own */
	assert_int_equal(access(fx_path("config"), F_OK), 0);
}

static void touches(void **state)
{
	const struct timespec old[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	struct stat st;

	(void)state;
	assert_int_equal(utimensat(AT_FDCWD, fx_path("root/file"), old, 0), 0);
	assert_int_equal(work(WIRE_MANAGE_TOUCH, 0, "file"), 0);
	assert_int_equal(stat(fx_path("root/file"), &st), 0);
	assert_true(st.st_mtim.tv_sec > 1 && st.st_size == 7);
	assert_int_equal(work(WIRE_MANAGE_TOUCH, 0, "d/new"), 0);
	assert_int_equal(stat(fx_path("root/d/new"), &st), 0);
	assert_true(S_ISREG(st.st_mode) && st.st_size == 0);
	assert_int_equal(utimensat(AT_FDCWD, fx_path("root/d"), old, 0), 0);
	assert_int_equal(work(WIRE_MANAGE_TOUCH, 0, "d"), 0);
	assert_int_equal(stat(fx_path("root/d"), &st), 0);
	assert_true(st.st_mtim.tv_sec > 1);
	assert_int_equal(work(WIRE_MANAGE_TOUCH, 0, "link"), 1);
	assert_int_equal(work(WIRE_MANAGE_TOUCH, 0, "none/x"), 1);
	assert_int_equal(work(WIRE_MANAGE_TOUCH, 0, ".ptcp-0123456789abcdef.part"), 1);
}

static void literal_names(void **state)
{
	(void)state;
	fx_text("root/a*", "1");
	fx_text("root/ab", "2");
	work(WIRE_MANAGE_LIST, WIRE_MANAGE_LITERAL | WIRE_MANAGE_ITSELF, "a*");
	assert_string_equal(t.found, "a*\n");
	assert_int_equal(work(WIRE_MANAGE_LIST, WIRE_MANAGE_LITERAL, "f*"), 1);
	assert_int_equal(work(WIRE_MANAGE_REMOVE, WIRE_MANAGE_LITERAL, "f*"), 1);
	assert_int_equal(work(WIRE_MANAGE_REMOVE, WIRE_MANAGE_LITERAL, "a*"), 0);
	assert_int_equal(access(fx_path("root/ab"), F_OK), 0);
	assert_int_equal(work(WIRE_MANAGE_COUNT, WIRE_MANAGE_LITERAL, "a*"), 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		job_test(lists), job_test(properties), job_test(own_directories), job_test(counts),
		job_test(counts_with_a_quota), job_test(makes_directories), job_test(removes), job_test(never_removes),
		job_test(renames), job_test(permits), job_test(pauses), job_test(leaves),
		job_test(no_root), job_test(cuts), job_test(cleans), job_test(cleans_nothing),
		job_test(random_parts), job_test(pieces_of_parts), job_test(parts_of_what), job_test(parts_of_changes),
		job_test(parts_without_size), job_test(parts_by_right), job_test(parts_left),
		job_test(random_sums), job_test(sums_of_what), job_test(sums_by_right), job_test(sums_left),
		job_test(sums_in_turn), job_test(sums_of_changes),
		job_test(writes_files),
		job_test(modes_and_times_of_writes), job_test(writes_where), job_test(versions),
		job_test(malformed_versions), job_test(writes_by_right), job_test(altered_data),
		job_test(waits_for_writers), job_test(paced), job_test(removes_empty_directories), job_test(touches),
		job_test(literal_names),
	};

	return cmocka_run_group_tests_name("server/file_job", tests, NULL, NULL);
}
