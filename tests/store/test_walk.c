#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/buf.h"
#include "core/text.h"
#include "store/walk.h"

static struct walk *walk;

static int setup(void **state)
{
	if (fx_tree_setup(state) != 0)
		return -1;
	return walk_new(&walk, NULL, NULL);
}

static int teardown(void **state)
{
	walk_free(walk);
	return fx_tree_teardown(state);
}

#define walk_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void again(void)
{
	walk_free(walk);
	assert_int_equal(walk_new(&walk, NULL, NULL), 0);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The walk as text, "TYPE DEPTH PATH[ -> TARGET]" a line. Checks on the way that
 * directories nest, and that each entry's dir and name lead to it. Lines between
 * the same WALK_DIR and its end come in the disk's order, so `sorted` sorts all. */
static char *listing(int sorted)
{
	static const char letter[] = { 'd', 'e', 'f', 'l', 's', '!' };
	static char text[60000];
	char *lines[1000], path[DIR_PATH_TEXT_BYTES], line[1200];
	struct walk_entry e;
	int n = 0, r, i, open = 0;

	while ((r = walk_next(walk, &e, NULL)) == 1) {
		assert_true(n < 1000);
		if (e.type == WALK_DIR_END)
			open--;
		if (e.type != WALK_FAILED)
			assert_int_equal(e.depth, open);
		if (e.type == WALK_DIR && !e.closed)
			open++;
		assert_int_equal(e.why != NULL, e.type == WALK_SKIPPED || e.type == WALK_FAILED);
		assert_int_equal(e.target != NULL, e.type == WALK_SYMLINK);
		snprintf(line, sizeof line, "%c%d %s%s%s", letter[e.type], e.depth,
		    dir_path_text(e.dir, e.name, path, sizeof path), e.target ? " -> " : "",
		    e.target ? e.target : "");
		lines[n] = strdup(line);
		assert_non_null(lines[n++]);
		walk_entry_fini(&e);
	}
	assert_int_equal(r, 0);
	assert_int_equal(open, 0);
	if (sorted)
		qsort(lines, (size_t)n, sizeof *lines, by_text);
	text[0] = '\0';
	for (i = 0; i < n; i++) {
		strcat(strcat(text, lines[i]), "\n");
		free(lines[i]);
	}
	return text;
}

static void types(void **state)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	const char *want =
	    "d0 t\nd1 t/d\nd1 t/empty\ne0 t\ne1 t/d\ne1 t/empty\nf1 t/f\nf2 t/d/x\n"
	    "l1 t/dangling -> no/where\nl1 t/to-dir -> d\ns1 t/fifo\ns1 t/sock\n";

	(void)state;
	fx_mkdir("t");
	fx_mkdir("t/d");
	fx_mkdir("t/empty");
	fx_text("t/f", "hello");
	fx_text("t/d/x", "");
	assert_int_equal(symlink("d", fx_path("t/to-dir")), 0);
	assert_int_equal(symlink("no/where", fx_path("t/dangling")), 0);
	assert_int_equal(mkfifo(fx_path("t/fifo"), 0600), 0);
	if (strlen(fx_path("t/sock")) < sizeof sun.sun_path) {
		strcpy(sun.sun_path, fx_path("t/sock"));
		assert_int_equal(bind(s, (struct sockaddr *)&sun, sizeof sun), 0);
	} else {
		assert_int_equal(mkfifo(fx_path("t/sock"), 0600), 0);
	}
	close(s);
	assert_int_equal(walk_add(walk, fx_root, "t", NULL), 0);
	assert_string_equal(listing(1), want);
	assert_int_equal(walk_add(walk, fx_root, NULL, NULL), 0); /* the same by "contents" */
	assert_string_equal(listing(1), want);
}

static void fields(void **state)
{
	struct timespec ts[2] = { { 0, UTIME_OMIT }, { 1234567890, 987654321 } };
	struct walk_entry e;
	struct stat st;

	(void)state;
	fx_text("f", "hello");
	if (fx_is_root())
		assert_int_equal(chown(fx_path("f"), 12, 34), 0);
	assert_int_equal(chmod(fx_path("f"), 04751), 0);
	assert_int_equal(link(fx_path("f"), fx_path("g")), 0);
	assert_int_equal(utimensat(AT_FDCWD, fx_path("f"), ts, 0), 0);
	assert_int_equal(stat(fx_path("f"), &st), 0);
	assert_int_equal(walk_add(walk, fx_root, "f", NULL), 0);
	assert_int_equal(walk_next(walk, &e, NULL), 1);
	assert_int_equal(e.type, WALK_FILE);
	assert_string_equal(e.name, "f");
	assert_ptr_equal(e.dir, fx_root);
	assert_int_equal(e.size_bytes, 5);
	assert_int_equal(e.mode, 04751);
	assert_true(e.dev == st.st_dev && e.ino == st.st_ino);
	assert_int_equal(e.mtime.tv_sec, 1234567890);
	assert_int_equal(e.mtime.tv_nsec, 987654321);
	assert_int_equal(e.ctime.tv_sec, st.st_ctim.tv_sec);
	assert_int_equal(e.ctime.tv_nsec, st.st_ctim.tv_nsec);
	assert_int_equal(e.nlink, 2);
	assert_int_equal(e.uid, st.st_uid);
	assert_int_equal(e.gid, st.st_gid);
	assert_false(e.sparse);
	walk_entry_fini(&e);
	walk_entry_fini(&e); /* leaves it empty */
	assert_int_equal(walk_next(walk, &e, NULL), 0);
}

static void in_the_order_added(void **state)
{
	(void)state;
	fx_mkdir("b");
	fx_text("b/1", "");
	fx_text("a", "");
	fx_mkdir("c");
	fx_text("c/2", "");
	walk_add(walk, fx_root, "none", NULL);
	walk_add(walk, fx_root, "b", NULL);
	walk_add(walk, fx_root, "a", NULL);
	walk_add(walk, fx_root, "..", NULL); /* not a name */
	walk_add(walk, fx_root, "c", NULL);
	assert_string_equal(listing(0),
	    "!0 none\nd0 b\nf1 b/1\ne0 b\nf0 a\n!0 ..\nd0 c\nf1 c/2\ne0 c\n");
	struct dir *b = dir_child(fx_root, "b"), *none = dir_child(fx_root, "none");
	walk_add(walk, b, NULL, NULL);
	walk_add(walk, none, NULL, NULL);
	dir_unref(b);
	dir_unref(none);
	assert_string_equal(listing(0), "f0 b/1\n!0 none\n");
}

static void any_name(void **state)
{
	static const char *const odd[] = { "-rf", "a\nb", "\xff\xfe", " ", "...", "\x1b[31m", "\\", "*" };
	char longest[256];
	struct walk_entry e;
	unsigned found = 0, i;

	(void)state;
	memset(longest, '\xc3', 255);
	longest[255] = '\0';
	fx_mkdir("t");
	assert_int_equal(chdir(fx_path("t")), 0);
	for (i = 0; i < 8; i++)
		assert_int_equal(close(open(odd[i], O_CREAT | O_WRONLY, 0600)), 0);
	assert_int_equal(mkdir(longest, 0700), 0);
	assert_int_equal(chdir("/"), 0);
	walk_add(walk, fx_root, "t", NULL);
	while (walk_next(walk, &e, NULL) == 1) {
		assert_true(e.type <= WALK_FILE);
		for (i = 0; i < 8; i++)
			if (e.type == WALK_FILE && strcmp(e.name, odd[i]) == 0)
				found |= 1u << i;
		if (e.type == WALK_DIR && strcmp(e.name, longest) == 0)
			found |= 1u << 8;
		walk_entry_fini(&e);
	}
	assert_int_equal(found, 0x1ff);
}

static void own_files_are_skipped(void **state)
{
	(void)state;
	fx_mkdir("t");
	fx_text("t/.ptcp-0123456789abcdef.part", "x");
	fx_text("t/.ptcp-0123456789abcdef.journal", "x");
	assert_int_equal(symlink("x", fx_path("t/.ptcp-0123456789abcdef.link")), 0);
	fx_text("t/.ptcp-0123456789abcde.part", "x");
	fx_text("t/.ptcp-0123456789ABCDEF.part", "x");
	fx_text("t/.ptcp-0123456789abcdef.party", "x");
	walk_add(walk, fx_root, "t", NULL);
	assert_string_equal(listing(1),
	    "d0 t\ne0 t\nf1 t/.ptcp-0123456789ABCDEF.part\nf1 t/.ptcp-0123456789abcde.part\n"
	    "f1 t/.ptcp-0123456789abcdef.party\ns1 t/.ptcp-0123456789abcdef.journal\n"
	    "s1 t/.ptcp-0123456789abcdef.link\ns1 t/.ptcp-0123456789abcdef.part\n");
	again();
	fx_text(".ptcp-0123456789abcdef.part", "x");
	walk_add(walk, fx_root, ".ptcp-0123456789abcdef.part", NULL);
	assert_string_equal(listing(1), "f0 .ptcp-0123456789abcdef.part\n");
}

static void holes(void **state)
{
	struct walk_entry e;

	(void)state;
	fx_text("f", "hello");
	assert_int_equal(truncate(fx_path("f"), 10000000), 0);
	walk_add(walk, fx_root, "f", NULL);
	assert_int_equal(walk_next(walk, &e, NULL), 1);
	assert_true(e.sparse);
	assert_int_equal(e.size_bytes, 10000000);
	walk_entry_fini(&e);
}

/* A listing of t, or of its contents, by rules such as "-*.o" and "+x". */
static const char *filtered(const char *name, const char *const *rules)
{
	struct dir *t = dir_child(fx_root, "t");
	struct filter *f;
	char *text;

	again();
	assert_int_equal(filter_new(&f, NULL, NULL), 0);
	for (; *rules != NULL; rules++)
		assert_int_equal(filter_add_pattern(f, **rules == '+', *rules + 1, NULL), 0);
	walk_filter(walk, f, false);
	walk_add(walk, name != NULL ? fx_root : t, name, NULL);
	dir_unref(t);
	text = listing(1);
	walk_free(walk);
	walk = NULL;
	filter_free(f);
	return text;
}

/* A listing of t, or of its contents, to that depth. */
static const char *shallow(const char *name, uint32_t max_depth)
{
	struct dir *t = dir_child(fx_root, "t");
	char *text;

	again();
	walk_limit(walk, &(struct walk_limits){ .max_depth = max_depth });
	walk_add(walk, name != NULL ? fx_root : t, name, NULL);
	dir_unref(t);
	text = listing(1);
	walk_free(walk);
	walk = NULL;
	return text;
}

/* Directories at the limit are listed, and not entered. */
static void depths(void **state)
{
	(void)state;
	fx_mkdir("t");
	fx_mkdir("t/d");
	fx_mkdir("t/d/e");
	fx_text("t/a", "");
	fx_text("t/d/b", "");
	fx_text("t/d/e/c", "");
	assert_string_equal(shallow(NULL, 1), "d0 t/d\nf0 t/a\n");
	assert_string_equal(shallow("t", 1), "d0 t\nd1 t/d\ne0 t\nf1 t/a\n");
	assert_string_equal(shallow(NULL, 2), "d0 t/d\nd1 t/d/e\ne0 t/d\nf0 t/a\nf1 t/d/b\n");
	assert_string_equal(shallow(NULL, 3), shallow(NULL, 0));
	assert_non_null(strstr(shallow("t", 3), "f3 t/d/e/c"));
}

#define RULES(...) (const char *const[]){ __VA_ARGS__, NULL }

static void filters(void **state)
{
	(void)state;
	fx_mkdir("t");
	fx_mkdir("t/d");
	fx_mkdir("t/d/e");
	fx_text("t/a.c", "");
	fx_text("t/a.o", "");
	fx_text("t/d/b.c", "");
	fx_text("t/d/b.o", "");
	fx_text("t/d/e/a.c", "");
	assert_int_equal(symlink("x.o", fx_path("t/l.o")), 0);
	assert_int_equal(mkfifo(fx_path("t/fifo.o"), 0600), 0);
	assert_string_equal(filtered("t", RULES("-*.o")),
	    "d0 t\nd1 t/d\nd2 t/d/e\ne0 t\ne1 t/d\ne2 t/d/e\nf1 t/a.c\nf2 t/d/b.c\nf3 t/d/e/a.c\n");
	/* anchored: below the name, or in the contents */
	assert_string_equal(filtered("t", RULES("-*.o", "-/t/d", "-/a.c")), "d0 t\ne0 t\nf1 t/a.c\n");
	assert_string_equal(filtered(NULL, RULES("-*.o", "-/t", "-/d", "-/d/b.c")), "f0 t/a.c\n");
	assert_string_equal(filtered(NULL, RULES("-*.o", "-/d/e", "-d/b.c")), "d0 t/d\ne0 t/d\nf0 t/a.c\n");
	/* the first rule wins; what is named is subject to the rules, and nothing brings back
	 * what is in a directory that is left out */
	assert_string_equal(filtered("t", RULES("+*.c", "-*")), "");
	assert_string_equal(filtered(NULL, RULES("+*.c", "-*")), "f0 t/a.c\n");
	assert_string_equal(filtered(NULL, RULES("+*/", "+*.c", "-*")),
	    "d0 t/d\nd1 t/d/e\ne0 t/d\ne1 t/d/e\nf0 t/a.c\nf1 t/d/b.c\nf2 t/d/e/a.c\n");
	assert_string_equal(filtered(NULL, RULES("+/d/***", "-*")),
	    "d0 t/d\nd1 t/d/e\ne0 t/d\ne1 t/d/e\nf1 t/d/b.c\nf1 t/d/b.o\nf2 t/d/e/a.c\n");
	assert_string_equal(filtered("t", RULES("-*")), "");
}

/* Nothing is said of a failure or oddity that was not asked for. */
static void filtered_failures(void **state)
{
	(void)state;
	fx_mkdir("t");
	fx_text("t/f", "");
	again();
	fx_fail_always(FX_fstatat, EACCES);
	assert_string_equal(filtered(NULL, RULES("-f")), "");
	fx_fail_always(FX_fstatat, EACCES);
	assert_string_equal(filtered(NULL, RULES("-g")), "!0 t/f\n");
	assert_string_equal(filtered("none", RULES("-f")), "!0 none\n");
}

/* Deeper than descriptors go, and than is allowed. */
static void deep(void **state)
{
	int i, before = fx_open_fds(), most = 0, r, dirs = 0, ends = 0, files = 0, failed = 0, n;
	struct walk_entry e;
	int fd = open(fx_path(""), O_PATH | O_CLOEXEC), next;

	(void)state;
	for (i = 0; i < WALK_DEPTH_MAX + 3; i++) {
		assert_int_equal(mkdirat(fd, "d", 0700), 0);
		next = openat(fd, "d", O_PATH | O_CLOEXEC);
		assert_true(next >= 0);
		close(fd);
		fd = next;
		if (i % 10 == 0)
			close(openat(fd, "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	}
	close(fd);
	walk_add(walk, fx_root, "d", NULL);
	while ((r = walk_next(walk, &e, NULL)) == 1) {
		dirs += e.type == WALK_DIR;
		ends += e.type == WALK_DIR_END;
		files += e.type == WALK_FILE;
		if (e.type == WALK_FAILED) {
			failed++;
			assert_int_equal(e.depth, WALK_DEPTH_MAX + 1);
		}
		walk_entry_fini(&e);
		if (dirs % 100 == 0 && (n = fx_open_fds()) > most)
			most = n;
	}
	assert_int_equal(r, 0);
	assert_int_equal(dirs, WALK_DEPTH_MAX + 1);
	assert_int_equal(ends, dirs);
	assert_int_equal(files, WALK_DEPTH_MAX / 10 + 1);
	assert_int_equal(failed, 1);
	assert_true(most <= before + DIR_OPEN_MAX + 70);
	/* nftw() would not: take it down from below. */
	n = 0;
	while (rename(fx_path("d/d"), fx_path("e")) == 0) {
		n++;
		unlink(fx_path("d/f"));
		assert_int_equal(rmdir(fx_path("d")), 0);
		assert_int_equal(rename(fx_path("e"), fx_path("d")), 0);
	}
	assert_int_equal(n, WALK_DEPTH_MAX + 2);
}

/* Makes "d/d/.." with so many levels, and so many files with long names in the last of them. */
static void chain(int levels, int files)
{
	int i, fd = open(fx_path(""), O_PATH | O_CLOEXEC), next;
	char name[250];

	for (i = 0; i < levels; i++) {
		assert_int_equal(mkdirat(fd, "d", 0700), 0);
		next = openat(fd, "d", O_PATH | O_CLOEXEC);
		assert_true(next >= 0);
		close(fd);
		fd = next;
	}
	close(openat(fd, "0", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	for (i = 0; i < files; i++) {
		snprintf(name, sizeof name, "%0249d", i);
		assert_int_equal(linkat(fd, "0", fd, name, 0), 0);
	}
	close(fd);
}

/* Of what lies deeper than the session takes the first directory fails, and the rest is listed. */
static void levels(void **state)
{
	struct walk_entry e;
	int r, dirs = 0, failed = 0;

	(void)state;
	chain(70, 0);
	fx_text("d/d/f", "x");
	walk_add(walk, fx_root, "d", NULL);
	while ((r = walk_next(walk, &e, NULL)) == 1) {
		dirs += e.type == WALK_DIR;
		if (e.type == WALK_DIR)
			walk_set_levels(walk, 7);
		if (e.type == WALK_FAILED) {
			failed++;
			assert_int_equal(e.depth, 7);
			assert_non_null(strstr(e.why, "more levels of directories than the receiver takes"));
		} else {
			failed -= e.type == WALK_FILE;
		}
		walk_entry_fini(&e);
	}
	assert_int_equal(r, 0);
	assert_int_equal(dirs, 7);
	assert_int_equal(failed, 0);
}

/* A directory that is read whole, and whose names take more memory than an empty buffer keeps. */
static void deep_and_wide(void **state)
{
	enum { N = BUF_KEPT_BYTES / 250 + 1000 };
	struct walk_entry e;
	int r, files = 0;

	(void)state;
	chain(70, N);
	walk_add(walk, fx_root, "d", NULL);
	while ((r = walk_next(walk, &e, NULL)) == 1) {
		assert_int_not_equal(e.type, WALK_FAILED);
		files += e.type == WALK_FILE;
		walk_entry_fini(&e);
	}
	assert_int_equal(r, 0);
	assert_int_equal(files, N + 1);
}

static void wide(void **state)
{
	enum { N = 20000 };
	struct walk_entry e;
	char name[20], *seen = calloc(N, 1);
	int i, r, fd, files = 0;

	(void)state;
	assert_non_null(seen);
	fx_mkdir("t");
	fx_text("t/0", "");
	fd = open(fx_path("t"), O_PATH | O_CLOEXEC);
	for (i = 1; i < N; i++) { /* links to one file, which is the fastest to make */
		snprintf(name, sizeof name, "%d", i);
		assert_int_equal(linkat(fd, "0", fd, name, 0), 0);
	}
	close(fd);
	walk_add(walk, fx_root, "t", NULL);
	while ((r = walk_next(walk, &e, NULL)) == 1) {
		if (e.type == WALK_FILE) {
			i = atoi(e.name);
			assert_true(i >= 0 && i < N && !seen[i]);
			seen[i] = 1;
			files++;
		}
		walk_entry_fini(&e);
	}
	assert_int_equal(r, 0);
	assert_int_equal(files, N);
	free(seen);
}

/* A directory of a million entries, played by the table: it is streamed. */
#define MILLION 1000000

static int played;

static struct dirent *many_readdir(DIR *d)
{
	static struct dirent de;

	(void)d;
	if (played == MILLION) {
		errno = 0;
		return NULL;
	}
	snprintf(de.d_name, sizeof de.d_name, "%d", played++);
	return &de;
}

static int many_fstatat(int d, const char *path, struct stat *st, int flags)
{
	(void)d, (void)flags;
	*st = (struct stat){ .st_mode = S_IFREG | 0644, .st_size = atoi(path) };
	return 0;
}

static void endless(void **state)
{
	struct sys sys = sys_real;
	struct walk_entry e;
	struct tree *t;
	struct dir *top;
	size_t before;
	int r, n = 0;

	(void)state;
	sys.readdir = many_readdir;
	sys.fstatat = many_fstatat;
	assert_int_equal(tree_open(&t, fx_path(""), &sys, NULL), 0);
	top = tree_root(t);
	walk_add(walk, top, NULL, NULL);
	before = mallinfo2().uordblks; /* 0 under a sanitizer */
	while ((r = walk_next(walk, &e, NULL)) == 1) {
		assert_int_equal(e.type, WALK_FILE);
		assert_int_equal(e.size_bytes, n);
		n++;
		walk_entry_fini(&e);
		if (n % 1000 == 0)
			assert_true(mallinfo2().uordblks < before + 100000);
	}
	assert_int_equal(r, 0);
	assert_int_equal(n, MILLION);
	dir_unref(top);
	tree_unref(t);
	again(); /* nothing of that tree is left */
}

/* Each call fails in turn. The walk goes on to its end, its directories nest
 * (listing() checks), it reports what failed, and nothing stays open. */
static void faults(void **state)
{
	static const int why[] = { EIO, EMFILE, EACCES };
	char *whole, *text, *part;
	int n, w, fds = 0;
	struct dir *b;

	(void)state;
	fx_mkdir("t");
	fx_mkdir("t/b");
	fx_mkdir("t/b/c");
	fx_text("t/b/x", "x");
	fx_text("t/b/c/y", "y");
	assert_int_equal(symlink("x", fx_path("t/l")), 0);
	walk_add(walk, fx_root, "t", NULL);
	whole = strdup(listing(1));
	assert_non_null(whole);
	for (w = 0; w < 3; w++) {
		for (n = 1;; n++) {
			again();
			b = dir_child(fx_root, "t");
			dir_unref(b);
			fds = fx_open_fds();
			fx_heal();
			walk_add(walk, fx_root, "t", NULL);
			fx_fail_nth(n, why[w]);
			text = listing(1);
			assert_int_equal(fx_open_fds(), fds);
			if (fx_failed() == 0)
				break;
			/* All is there, or it is said that something is not: a close that
			 * fails does no harm, nor does a lack of read permission that
			 * O_PATH makes up for. */
			assert_true(strcmp(text, whole) == 0 || text[0] == '!');
			for (part = strtok(text, "\n"); part != NULL; part = strtok(NULL, "\n"))
				assert_true(part[0] == '!' || strstr(whole, part) != NULL);
		}
		assert_true(n > 30);
	}
	assert_string_equal(text, whole);
	free(whole);
}

/* An unreadable directory: it, its failure, its end; the rest goes on. */
static void unreadable(void **state)
{
	struct walk_entry e;

	(void)state;
	fx_mkdir("t");
	fx_mkdir("t/d");
	fx_text("t/d/x", "x");
	walk_add(walk, fx_root, "t", NULL);
	assert_int_equal(walk_next(walk, &e, NULL), 1);
	walk_entry_fini(&e);
	assert_int_equal(walk_next(walk, &e, NULL), 1);
	assert_string_equal(e.name, "d");
	walk_entry_fini(&e);
	fx_fail_always(FX_fdopendir, EACCES);
	assert_int_equal(walk_next(walk, &e, NULL), 1);
	assert_int_equal(e.type, WALK_FAILED);
	assert_non_null(strstr(e.why, "t/d: "));
	assert_non_null(strstr(e.why, strerror(EACCES)));
	assert_null(e.name);
	walk_entry_fini(&e);
	assert_int_equal(walk_next(walk, &e, NULL), 1);
	assert_int_equal(e.type, WALK_DIR_END);
	assert_int_equal(e.depth, 1);
	assert_null(e.name);
	walk_entry_fini(&e);
	assert_int_equal(walk_next(walk, &e, NULL), 1);
	assert_int_equal(e.type, WALK_DIR_END);
	assert_int_equal(e.depth, 0);
	walk_entry_fini(&e);
	assert_int_equal(walk_next(walk, &e, NULL), 0);
}

/* The middle of a listing fails: the walk returns the entries before, then the failure. */
static void cut_short(void **state)
{
	char *text;
	int n = 0;

	(void)state;
	fx_mkdir("t");
	fx_text("t/1", "");
	fx_text("t/2", "");
	fx_text("t/3", "");
	for (n = 1; n < 100; n++) {
		again();
		fx_heal();
		walk_add(walk, fx_root, "t", NULL);
		fx_fail_nth(n, EIO);
		text = listing(0);
		if (strstr(text, "f1 t/") != NULL && strstr(text, "!0 t\ne0 t\n") != NULL)
			return;
	}
	fail_msg("no fault cut the listing short");
}

static const char *vanishing;

static void vanish(enum fx_call call)
{
	if (call == FX_fstatat && vanishing != NULL) {
		unlink(vanishing);
		vanishing = NULL;
	}
}

static void vanished(void **state)
{
	char path[500];

	(void)state;
	fx_mkdir("t");
	fx_text("t/1", "");
	walk_add(walk, fx_root, "t", NULL);
	struct walk_entry e;
	assert_int_equal(walk_next(walk, &e, NULL), 1);
	walk_entry_fini(&e);
	snprintf(path, sizeof path, "%s", fx_path("t/1"));
	vanishing = path;
	fx_before(vanish);
	assert_int_equal(walk_next(walk, &e, NULL), 1);
	assert_int_equal(e.type, WALK_DIR_END);
	walk_entry_fini(&e);
	assert_null(vanishing);
}

/* Freed in the middle: nothing leaks (the fixture and sanitizers look). */
static void abandoned(void **state)
{
	struct walk_entry e;

	(void)state;
	fx_mkdir("t");
	fx_mkdir("t/u");
	fx_text("t/u/x", "");
	walk_add(walk, fx_root, "t", NULL);
	walk_add(walk, fx_root, "t", NULL);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(walk_next(walk, &e, NULL), 1);
		walk_entry_fini(&e);
	}
}

/* ---- Selections ---- */

static struct selection *selected(const char *const *paths)
{
	struct selection *s;

	assert_int_equal(selection_new(&s, NULL, NULL), 0);
	for (; *paths != NULL; paths++)
		assert_int_equal(selection_add(s, *paths, strlen(*paths), NULL), 0);
	assert_int_equal(selection_sort(s, NULL), 0);
	walk_select(walk, s);
	walk_add(walk, fx_root, NULL, NULL);
	return s;
}

static void selections(void **state)
{
	struct filter *f;
	struct selection *s;

	(void)state;
	fx_mkdir("a");
	fx_mkdir("a/sub");
	fx_mkdir("a/sub/deep");
	fx_text("a/sub/deep/x", "");
	fx_text("a/sub/y", "");
	fx_text("a/z", "");
	fx_text("a.b", "");
	fx_text("other", "");
	assert_int_equal(symlink("a", fx_path("link")), 0);
	/* a directory's siblings that sort between it and its content; the same path twice; nothing that was not
	 * selected */
	s = selected((const char *const[]){ "a.b", "./a//sub/deep/", "a/sub/deep/x", "/a/z", "a.b", "link", NULL });
	assert_int_equal(selection_n(s), 5);
	assert_string_equal(listing(1), "d0 a\nd1 a/sub\nd2 a/sub/deep\ne0 a\ne1 a/sub\ne2 a/sub/deep\nf0 a.b\nf1 a/z\n"
	    "f3 a/sub/deep/x\nl0 link -> a\n");
	selection_free(s);
	again();
	/* missing, and below a file or a link */
	s = selected((const char *const[]){ "a/none/x", "other/x", "link/z", "a/z", NULL });
	assert_string_equal(listing(1), "!0 link\n!0 other\n!1 a/none\nd0 a\ne0 a\nf1 a/z\n");
	selection_free(s);
	again();
	/* the filter holds as well */
	assert_int_equal(filter_new(&f, NULL, NULL), 0);
	assert_int_equal(filter_add_pattern(f, false, "sub/", NULL), 0);
	walk_filter(walk, f, false);
	s = selected((const char *const[]){ "a/sub/y", "a/z", NULL });
	assert_string_equal(listing(1), "d0 a\ne0 a\nf1 a/z\n");
	selection_free(s);
	again();
	s = selected((const char *const[]){ NULL });
	assert_string_equal(listing(1), "");
	selection_free(s);
	again();
	s = selected((const char *const[]){ ".", "a/z", NULL });
	assert_string_equal(listing(1), "d0 a\nd1 a/sub\nd2 a/sub/deep\ne0 a\ne1 a/sub\ne2 a/sub/deep\nf0 a.b\nf0 "
	    "other\nf1 a/z\nf2 a/sub/y\nf3 a/sub/deep/x\nl0 link -> a\n");
	selection_free(s);
	filter_free(f);
}

static void selections_refused(void **state)
{
	static const char *const bad[] = { "", "..", "a/../b", "a/.." };
	char name[300], path[5000];
	struct selection *s;
	size_t i;

	(void)state;
	assert_int_equal(selection_new(&s, NULL, NULL), 0);
	for (i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(selection_add(s, bad[i], strlen(bad[i]), NULL), PTCP_EUSAGE);
	assert_int_equal(selection_add(s, "a\0b", 3, NULL), PTCP_EUSAGE);
	memset(name, 'n', sizeof name);
	assert_int_equal(selection_add(s, name, 256, NULL), PTCP_EUSAGE);
	assert_int_equal(selection_add(s, name, 255, NULL), 0);
	memset(path, '/', sizeof path);
	assert_int_equal(selection_add(s, path, 4097, NULL), PTCP_EUSAGE);
	assert_int_equal(selection_n(s), 1);
	selection_free(s);
}

/* Walks with a session's quarter of a budget; returns the result of the last call. */
static int walk_within(uint64_t session_bytes, uint64_t *most, struct ptcp_err *e)
{
	struct memory_budget *b;
	struct memory_account *a;
	struct walk_entry w;
	int r;

	assert_int_equal(memory_budget_new(&b, 4 * session_bytes, NULL), 0);
	assert_int_equal(memory_account_new(&a, b, "client", NULL), 0);
	walk_free(walk);
	assert_int_equal(walk_new(&walk, a, NULL), 0);
	assert_int_equal(walk_add(walk, fx_root, "d", NULL), 0);
	for (*most = 0; (r = walk_next(walk, &w, e)) == 1; walk_entry_fini(&w))
		if (memory_budget_used(b) > *most)
			*most = memory_budget_used(b);
	walk_free(walk);
	walk = NULL;
	assert_int_equal(memory_budget_used(b), 0);
	memory_account_free(a);
	memory_budget_free(b);
	return r;
}

#define MIB (UINT64_C(1) << 20)

/* Streams of directories, and names of a directory read whole, are the session's memory. */
static void memory(void **state)
{
	static const struct {
		int levels, files;
		uint64_t least, session_bytes; /* what the walk needs, and a share that is too small */
	} kinds[] = { { 50, 0, 50 * (32 << 10), MIB }, { 70, 6000, 64 * (32 << 10) + 6000 * 250, 3 * MIB } };
	struct ptcp_err e = { 0 };
	uint64_t most;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		chain(kinds[i].levels, kinds[i].files);
		assert_int_equal(walk_within(128 * MIB, &most, &e), 0);
		assert_true(most >= kinds[i].least);
		assert_int_equal(walk_within(kinds[i].session_bytes, &most, &e), PTCP_ENOMEM);
		assert_non_null(strstr(e.msg, "quarter of the server's --max-memory"));
		assert_int_equal(rename(fx_path("d"), fx_path(i == 0 ? "0" : "1")), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		walk_test(types), walk_test(fields), walk_test(in_the_order_added),
		walk_test(any_name), walk_test(own_files_are_skipped), walk_test(holes), walk_test(filters),
		walk_test(filtered_failures), walk_test(depths), walk_test(deep),
		walk_test(wide), walk_test(levels),
		walk_test(deep_and_wide), walk_test(endless), walk_test(faults), walk_test(unreadable),
		walk_test(cut_short),
		walk_test(vanished), walk_test(abandoned), walk_test(selections), walk_test(selections_refused),
		walk_test(memory),
	};
	return cmocka_run_group_tests_name("store/walk", tests, NULL, NULL);
}
