/* References: what a file becomes, and that the older copies never change. */
#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/excluded.h"
#include "offer.h"
#include "store/reference.h"

/* "to/a" is received; "old/a" and "older/a" are those of references. */
static const struct offer file = { "a", 3 * OFFER_BLOCK - 100, 1, false };
static const struct timespec at_source = { 1001, 5 }, at_other = { 1002, 5 };

static struct dir *top;
static struct published published;
static struct references *refs;
static struct ptcp_err why;
static uint32_t rule_flags;
static mode_t source_mode;

static int setup(void **state)
{
	int r = fx_tree_setup(state);

	published = (struct published){ .max = 100 };
	refs = NULL;
	rule_flags = 0;
	source_mode = 0644;
	fx_mkdir("to");
	fx_mkdir("old");
	fx_mkdir("older");
	top = dir_child(fx_root, "to");
	return r;
}

static int teardown(void **state)
{
	references_free(refs);
	published_fini(&published);
	dir_unref(top);
	return fx_tree_teardown(state);
}

#define reference_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void begin(enum reference_kind kind, const char *first, const char *second)
{
	references_free(refs);
	assert_int_equal(references_new(&refs, kind, false, NULL, NULL), 0);
	assert_int_equal(references_add(refs, first, NULL), 0);
	if (second != NULL)
		assert_int_equal(references_add(refs, second, NULL), 0);
	references_begin(refs, top);
}

/* A file with the content of `o`. */
static void place(const char *path, const struct offer *o, mode_t mode, struct timespec time)
{
	const struct timespec ts[2] = { time, time };
	uint8_t content[3 * OFFER_BLOCK];
	uint32_t i, n = 0;

	for (i = 0; i < offer_blocks(o); i++)
		n += offer_block(o, i, content + n);
	fx_write(path, content, n);
	assert_int_equal(chmod(fx_path(path), mode) | utimensat(AT_FDCWD, fx_path(path), ts, 0), 0);
}

static struct meta meta(void)
{
	return (struct meta){ .set_mode = true, .set_mtime = true, .mode = source_mode, .mtime = at_source,
		.published = &published, .references = refs, .xattr_kinds = XATTR_USER };
}

enum became { SENT, COPIED, LINKED, OMITTED, FRESH, FAILED };

/* Receives the file as a session does. */
static enum became receive(void)
{
	const struct meta m = meta();
	struct sink_opts opts = offer_opts(&file);
	struct sink_existing x = { 0 };
	enum became became = FAILED;
	struct sink *s;
	uint32_t i;
	int r;

	opts.rules = (struct store_rules){ .flags = rule_flags };
	s = sink_new(top, file.name, file.size_bytes, &m, &opts);
	if ((r = sink_inspect(s, &x, &why)) < 0) {
		sink_unref(s);
		return FAILED;
	}
	switch (x.found) {
	case SINK_COPIED:
		became = offer_commit(s, &why) == 0 ? COPIED : FAILED;
		break;
	case SINK_KEPT:
		became = OMITTED;
		break;
	case SINK_UNCHANGED:
		became = x.is_linked ? LINKED : FRESH;
		break;
	case SINK_SAME: /* the content of the source is that of version 1 */
		became = sink_refresh(s, &why) == SINK_REFRESHED_COPY && offer_commit(s, &why) == 0 ? COPIED : FRESH;
		break;
	default:
		free(x.claimed);
		free(x.candidates);
		sink_restart(s);
		for (i = 0, r = 0; i < offer_blocks(&file) && r == 0; i++)
			r = offer_write(s, &file, i, &why);
		became = r == 0 && offer_commit(s, &why) == 0 ? SENT : FAILED;
	}
	sink_discard(s);
	sink_unref(s);
	return became;
}

static bool same_times(const struct stat *a, const struct timespec *t)
{
	return a->st_mtim.tv_sec == t->tv_sec && a->st_mtim.tv_nsec == t->tv_nsec;
}

/* ---- What a file becomes ---- */

enum has { NOTHING, ALL, MODE, TIME, CONTENT, /* of a reference or the destination: what differs */
	LINK, EMPTY, FULL, FIFO };            /* of the destination: something else: a link, directories */

static void make(const char *path, enum has has)
{
	static const struct offer other = { "a", 3 * OFFER_BLOCK - 100, 2, false };

	if (unlink(fx_path(path)) != 0 && errno == EISDIR) {
		unlink(fx_path("to/a/b"));
		assert_int_equal(rmdir(fx_path(path)), 0);
	}
	if (has == LINK)
		assert_int_equal(symlink("b", fx_path(path)), 0);
	else if (has == FIFO)
		assert_int_equal(mkfifo(fx_path(path), 0600), 0);
	else if (has == EMPTY || has == FULL)
		fx_mkdir(path);
	if (has == FULL)
		fx_text("to/a/b", "kept");
	if (has != NOTHING && has < LINK)
		place(path, has == CONTENT ? &other : &file, has == MODE ? 0600 : 0644,
		    has == TIME || has == CONTENT ? at_other : at_source);
}

static void every_case(void **state)
{
	static const struct {
		enum has there, ref;
		enum became of[3]; /* link, compare, copy */
	} cases[] = {
		{ NOTHING, NOTHING, { SENT, SENT, SENT } },
		{ NOTHING, ALL, { LINKED, OMITTED, COPIED } },
		{ NOTHING, MODE, { COPIED, COPIED, COPIED } },
		{ NOTHING, TIME, { SENT, SENT, SENT } },
		{ NOTHING, CONTENT, { SENT, SENT, SENT } },
		{ ALL, NOTHING, { FRESH, FRESH, FRESH } },
		{ ALL, ALL, { LINKED, OMITTED, FRESH } },
		{ ALL, MODE, { FRESH, FRESH, FRESH } },
		{ MODE, NOTHING, { FRESH, FRESH, FRESH } },
		{ MODE, ALL, { LINKED, OMITTED, FRESH } },
		{ MODE, MODE, { FRESH, FRESH, FRESH } },
		{ CONTENT, ALL, { LINKED, OMITTED, SENT } },
		{ CONTENT, MODE, { SENT, SENT, SENT } },
		{ TIME, ALL, { LINKED, OMITTED, SENT } },
		{ LINK, NOTHING, { SENT, SENT, SENT } },
		{ LINK, ALL, { LINKED, OMITTED, COPIED } },
		{ LINK, MODE, { COPIED, COPIED, COPIED } },
		{ LINK, CONTENT, { SENT, SENT, SENT } },
		{ EMPTY, ALL, { LINKED, OMITTED, SENT } },
		{ EMPTY, MODE, { SENT, SENT, SENT } },
		{ FULL, ALL, { FAILED, FAILED, FAILED } },
		{ FULL, MODE, { FAILED, FAILED, FAILED } },
		{ FIFO, ALL, { FAILED, FAILED, FAILED } },
	};
	struct stat st, old;
	enum became is;
	size_t i;
	int kind;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++)
		for (kind = 0; kind < 3; kind++) {
			published_fini(&published);
			published = (struct published){ .max = 100 };
			make("to/a", cases[i].there);
			make("old/a", cases[i].ref);
			make("older/a", NOTHING);
			begin((enum reference_kind)kind, "../old", "../older");
			if ((is = receive()) != cases[i].of[kind])
				fail_msg("case %zu, kind %d: %d instead of %d", i, kind, is, cases[i].of[kind]);
			assert_int_equal(fx_count("to"), is != OMITTED);
			if (is == FAILED && cases[i].there == FULL)
				fx_holds("to/a/b", "kept");
			if (is == OMITTED || is == FAILED)
				continue;
			offer_holds("to/a", &file);
			assert_int_equal(stat(fx_path("to/a"), &st), 0);
			assert_true((st.st_mode & 07777) == 0644 && same_times(&st, &at_source));
			assert_int_equal(st.st_nlink, is == LINKED ? 2 : 1);
			if (cases[i].ref == MODE) {
				assert_int_equal(stat(fx_path("old/a"), &old), 0);
				assert_int_equal(old.st_mode & 07777, 0600);
			}
		}
}

/* The first with all attributes counts, then the first with the data. */
static void the_best(void **state)
{
	const char *told;
	struct stat st, old;

	(void)state;
	make("old/a", MODE);
	make("older/a", ALL);
	begin(REFERENCE_LINK, "../old", "../older");
	assert_int_equal(receive(), LINKED);
	assert_int_equal(stat(fx_path("to/a"), &st) | stat(fx_path("older/a"), &old), 0);
	assert_int_equal(st.st_ino, old.st_ino);
	/* Where the file system permits no further link, the file is copied. */
	unlink(fx_path("to/a"));
	published_fini(&published);
	published = (struct published){ .max = 100 };
	fx_fail_always(FX_linkat, EMLINK);
	assert_int_equal(receive(), COPIED);
	fx_heal();
	offer_holds("to/a", &file);
	/* A reference that does not exist, or leads out of the root, is told once. */
	begin(REFERENCE_LINK, "../none", "../../out");
	told = references_warning(refs);
	assert_string_equal(told, "--link-dest ../none: no such directory: this directory is not used");
	assert_non_null(strstr(references_warning(refs), "leads out of the root directory"));
	assert_null(references_warning(refs));
}

/* ---- Older copies do not change ---- */

static struct stat was;

static void remember(void) { assert_int_equal(lstat(fx_path("old/a"), &was), 0); }

static void check_old(int nth)
{
	struct stat st;

	if (lstat(fx_path("old/a"), &st) != 0 || st.st_ino != was.st_ino || st.st_mode != was.st_mode ||
	    st.st_size != was.st_size || !same_times(&st, &was.st_mtim) || st.st_uid != was.st_uid)
		fail_msg("call %d: the older copy has changed", nth);
	if (S_ISREG(st.st_mode))
		offer_holds("old/a", &file);
}

static void share(void)
{
	published_fini(&published);
	published = (struct published){ .max = 100 };
	unlink(fx_path("to/a"));
	make("old/a", ALL);
	assert_int_equal(link(fx_path("old/a"), fx_path("to/a")), 0);
	remember();
}

/* A later run over the same copy: each attribute that changed, and with each result of a comparison. */
static void changed_later(void **state)
{
	struct stat st;
	unsigned i;

	(void)state;
	for (i = 0; i < 4; i++) {
		share();
		begin(REFERENCE_LINK, i % 2 == 0 ? "../older" : "../old", NULL);
		source_mode = 0640;
		rule_flags = i < 2 ? 0 : RULE_CHECKSUM;
		assert_int_equal(receive(), COPIED);
		check_old(0);
		offer_holds("to/a", &file);
		assert_int_equal(stat(fx_path("to/a"), &st), 0);
		assert_true(st.st_nlink == 1 && (st.st_mode & 07777) == 0640 && same_times(&st, &at_source));
		assert_int_equal(fx_count("to"), 1);
	}
	/* Data that cannot be copied is received. */
	share();
	rule_flags = 0;
	fx_fail_always(FX_sendfile, EIO);
	fx_fail_always(FX_clonerange, EIO);
	assert_int_equal(receive(), SENT);
	fx_heal();
	check_old(0);
	/* Unless an attribute changes, the name stays a link. */
	share();
	source_mode = 0644;
	assert_int_equal(receive(), FRESH);
	assert_int_equal(fx_calls_of(FX_fchmod) + fx_calls_of(FX_futimens), 0);
	assert_int_equal(stat(fx_path("to/a"), &st), 0);
	assert_int_equal(st.st_nlink, 2);
}

static bool refuses(struct dir *d)
{
	const struct meta m = { .set_mode = true, .mode = 0640, .mtime = at_source, .references = refs };
	const struct sink_opts opts = { .block_bytes = OFFER_BLOCK };
	struct sink *s = sink_new(d, "a", file.size_bytes, &m, &opts);
	int r = sink_refresh(s, &why);

	sink_unref(s);
	return r == PTCP_EREFUSED;
}

/* A name of the server's own file is neither copied nor linked. */
static void excluded(void **state)
{
	struct excluded *x;
	struct tree *tree;
	struct dir *root;
	struct meta m = meta();
	int fd = -1;

	(void)state;
	fx_mkdir("conf");
	make("conf/key", ALL);
	assert_int_equal(link(fx_path("conf/key"), fx_path("to/a")) | link(fx_path("conf/key"), fx_path("old/a")), 0);
	assert_int_equal(excluded_new(&x, NULL), 0);
	assert_int_equal(excluded_add(x, fx_path("conf"), NULL), 0);
	assert_int_equal(tree_open(&tree, fx_path("."), &sys_real, NULL), 0);
	assert_int_equal(tree_exclude(tree, x, NULL), 0);
	root = tree_root(tree);
	dir_unref(top);
	top = dir_child(root, "to");
	begin(REFERENCE_LINK, "../old", NULL);
	assert_true(refuses(top));
	assert_int_equal(unlink(fx_path("to/a")), 0);
	m.references = refs;
	assert_int_equal(references_use(refs, &(struct reference_entry){ .dir = top, .name = "a", .meta = &m,
	    .rules = &(struct store_rules){ 0 }, .size_bytes = file.size_bytes }, false, &fd), REFERENCE_NONE);
	assert_int_equal(fx_count("to"), 0);
	references_free(refs);
	refs = NULL;
	dir_unref(root);
	tree_unref(tree);
}

static bool link_is(const char *path, const char *target, time_t time)
{
	char now[20] = "";
	struct stat st;

	return readlink(fx_path(path), now, sizeof now - 1) > 0 && strcmp(now, target) == 0 &&
	    lstat(fx_path(path), &st) == 0 && st.st_mtim.tv_sec == time;
}

static void symlinks(void **state)
{
	const struct timespec ts[2] = { at_source, at_source };
	const struct store_rules rules = { .flags = 0 };
	struct reference_entry t = { .name = "l", .rules = &rules, .target = "there" };
	struct meta m;
	struct store_inode found;

	(void)state;
	assert_int_equal(symlink("there", fx_path("old/l")), 0);
	assert_int_equal(utimensat(AT_FDCWD, fx_path("old/l"), ts, AT_SYMLINK_NOFOLLOW), 0);
	begin(REFERENCE_COMPARE, "../old", NULL);
	m = meta();
	t.dir = top;
	t.meta = &m;
	assert_int_equal(references_use(refs, &t, false, NULL), REFERENCE_OMITTED);
	begin(REFERENCE_COPY, "../old", NULL);
	assert_int_equal(references_use(refs, &t, false, NULL), REFERENCE_NONE);
	begin(REFERENCE_LINK, "../old", NULL);
	m.references = refs;
	assert_int_equal(references_use(refs, &t, true, NULL), REFERENCE_LINKED);
	assert_false(fx_exists("to/l"));
	assert_int_equal(references_use(refs, &t, false, NULL), REFERENCE_LINKED);
	assert_true(link_is("to/l", "there", 1001));
	assert_true(store_symlink_same(top, "l", "there", &m, true, &found));
	/* Another time: the link is made again, rather than changed. */
	m.mtime = at_other;
	assert_false(store_symlink_same(top, "l", "there", &m, true, &found));
	assert_true(link_is("old/l", "there", 1001));
	m.references = NULL;
	assert_true(store_symlink_same(top, "l", "there", &m, true, &found));
	assert_true(link_is("old/l", "there", 1002));
	/* Another target, or time. */
	assert_int_equal(unlink(fx_path("to/l")), 0);
	t.target = "elsewhere";
	assert_int_equal(references_use(refs, &t, false, NULL), REFERENCE_NONE);
	m.mtime = at_source;
	t.target = "there";
	assert_int_equal(references_use(refs, &t, false, NULL), REFERENCE_NONE);
}

/* ---- Kills and faults ---- */

static void begin_case(int which)
{
	fx_heal();
	share();
	begin(which == 3 ? REFERENCE_COPY : which == 4 ? REFERENCE_COMPARE : REFERENCE_LINK, "../old", NULL);
	source_mode = which == 1 || which == 2 ? 0640 : 0644;
	if (which == 0 || which >= 2)
		unlink(fx_path("to/a"));
	if (which == 4)
		make("to/a", CONTENT);
}

enum { CASES = 5 };

static int last;

static void die_at_last(enum fx_call call)
{
	(void)call;
	if (last-- == 0)
		_exit(9);
}

/* Killed before any of its system calls; the next run completes the file. */
static void killed_anywhere(void **state)
{
	int which, n, status;
	pid_t child;

	(void)state;
	for (which = 0; which < CASES; which++) {
		for (n = 0, status = 1; status != 0; n++) {
			begin_case(which);
			if ((child = fork()) == 0) {
				last = n;
				fx_before(die_at_last);
				receive();
				_exit(0);
			}
			assert_int_equal(waitpid(child, &status, 0), child);
			assert_true(status == 0 || WEXITSTATUS(status) == 9);
			check_old(n);
			assert_int_not_equal(receive(), FAILED);
			check_old(n);
			assert_int_equal(fx_count("to"), which != 4);
			if (which != 4)
				offer_holds("to/a", &file);
		}
		assert_true(n > 5);
	}
}

static void faults(void **state)
{
	static const int errors[] = { EIO, ENOSPC, EPERM };
	size_t e;
	int n, which;

	(void)state;
	for (which = 0; which < CASES; which++)
		for (e = 0; e < 3; e++)
			for (n = 1;; n++) {
				begin_case(which);
				fx_heal();
				fx_fail_nth(n, errors[e]);
				receive();
				if (fx_failed() == 0)
					break;
				fx_heal();
				check_old(n);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		reference_test(every_case), reference_test(the_best), reference_test(changed_later),
		reference_test(excluded), reference_test(symlinks), reference_test(killed_anywhere),
		reference_test(faults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
