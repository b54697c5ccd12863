/* Files that an engine names to a mover.
 * against: paths */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "work/work_impl.h"

static char top[] = "/tmp/ptcp-work-files.XXXXXX", tree[64], alone[64];

static void make(const char *name, const char *content)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", top, name);
	assert_non_null(f = fopen(path, "w"));
	fputs(content, f);
	fclose(f);
}

static int set_up(void **state)
{
	char path[128];

	(void)state;
	if (mkdtemp(top) == NULL)
		return -1;
	snprintf(tree, sizeof tree, "%s/tree", top);
	snprintf(alone, sizeof alone, "%s/alone", top);
	snprintf(path, sizeof path, "%s/tree/sub", top);
	mkdir(tree, 0700);
	mkdir(path, 0700);
	make("alone", "alone");
	make("secret", "secret");
	make("tree/sub/a", "inside");
	snprintf(path, sizeof path, "%s/tree/up", top);
	return symlink("..", path);
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", top);
	return system(command);
}

/* As the engine would describe the file at that path. */
static struct wire_source described(unsigned slot, unsigned root, const char *path, const char *real)
{
	struct wire_source s = { .id = 1u << 16 | slot, .root = (uint16_t)root,
		.path = { (const uint8_t *)path, strlen(path) } };
	char all[160];
	struct stat st;

	snprintf(all, sizeof all, "%s/%s", top, real);
	assert_int_equal(lstat(all, &st), 0);
	s.size_bytes = (uint64_t)st.st_size;
	s.ino = st.st_ino;
	s.mtime_s = st.st_mtim.tv_sec;
	s.mtime_ns = (uint32_t)st.st_mtim.tv_nsec;
	s.ctime_s = st.st_ctim.tv_sec;
	s.ctime_ns = (uint32_t)st.st_ctim.tv_nsec;
	return s;
}

static void begin(struct work_files *f)
{
	struct invitation v = { .root = { tree, alone }, .n_roots = 2 };

	memset(f, 0, sizeof *f);
	assert_int_equal(work_files_open(f, &v, 0, NULL), 0);
}

static void reads(void **state)
{
	struct wire_source a = described(0, 0, "sub/a", "tree/sub/a"), b = described(1, 1, "", "alone");
	struct work_files f;
	struct ptcp_err e;
	char got[8] = "";

	(void)state;
	begin(&f);
	assert_int_equal(work_files_add(&f, &a, NULL, &e), 0);
	assert_int_equal(work_files_add(&f, &b, NULL, &e), 0);
	assert_int_equal(source_read(work_files_find(&f, a.id), got, 6, 0, true, &e), 0);
	assert_string_equal(got, "inside");
	memset(got, 0, sizeof got);
	assert_int_equal(source_read(work_files_find(&f, b.id), got, 5, 0, true, &e), 0);
	assert_string_equal(got, "alone");
	/* The same slot for another file; and forgotten. */
	a.id += 1u << 16;
	assert_int_equal(work_files_add(&f, &a, NULL, &e), 0);
	assert_non_null(work_files_find(&f, a.id));
	assert_null(work_files_find(&f, a.id - (1u << 16)));
	work_files_forget(&f, a.id - (1u << 16));
	assert_non_null(work_files_find(&f, a.id));
	work_files_forget(&f, a.id);
	assert_null(work_files_find(&f, a.id));
	work_files_fini(&f);
}

/* Another inode, size or time than the engine has listed: another file, or a later one. */
static void changed(void **state)
{
	struct wire_source a = described(0, 0, "sub/a", "tree/sub/a"), b = a, c = a;
	struct work_files f;
	struct ptcp_err e;
	char got[8];

	(void)state;
	begin(&f);
	a.ino++;
	b.mtime_ns ^= 1;
	c.size_bytes--;
	assert_int_equal(work_files_add(&f, &a, NULL, &e), 0);
	assert_int_equal(source_read(work_files_find(&f, a.id), got, 6, 0, true, &e), PTCP_ECHANGED);
	assert_int_equal(work_files_add(&f, &b, NULL, &e), 0);
	assert_int_equal(source_read(work_files_find(&f, b.id), got, 6, 0, true, &e), PTCP_ECHANGED);
	assert_int_equal(work_files_add(&f, &c, NULL, &e), 0);
	assert_int_equal(source_read(work_files_find(&f, c.id), got, 5, 0, true, &e), PTCP_ECHANGED);
	work_files_fini(&f);
}

/* What no engine asks for, as it lists only what lies beneath the sources. */
static void outside(void **state)
{
	static const char *const paths[] = { "../secret", "sub/../../secret", "/etc/passwd", "", ".", "..",
		"sub/", "sub//a", "./sub/a", "sub/./a" };
	struct wire_source s;
	struct work_files f;
	struct ptcp_err e;
	char got[8];
	size_t i;

	(void)state;
	begin(&f);
	for (i = 0; i < sizeof paths / sizeof *paths; i++) {
		s = described(0, 0, paths[i], "secret");
		assert_int_equal(work_files_add(&f, &s, NULL, &e), PTCP_EPROTO);
		assert_null(work_files_find(&f, s.id));
	}
	s = described(0, 2, "sub/a", "tree/sub/a"); /* no such root */
	assert_int_equal(work_files_add(&f, &s, NULL, &e), PTCP_EPROTO);
	s = described(0, 1, "secret", "secret"); /* beside a source that is a file */
	assert_int_equal(work_files_add(&f, &s, NULL, &e), PTCP_EPROTO);
	/* Through a link, which the walk of the engine does not follow either. */
	s = described(0, 0, "up/secret", "secret");
	assert_int_equal(work_files_add(&f, &s, NULL, &e), 0);
	assert_true(source_read(work_files_find(&f, s.id), got, 6, 0, true, &e) < 0);
	work_files_fini(&f);
}

/* A mover writes parts beneath the destination, and nothing else. */
static void parts(void **state)
{
	static const struct { const char *path; unsigned root; bool ok; } cases[] = {
		{ "sub/.ptcp-0123456789abcdef.part", 0, true }, { ".ptcp-0123456789abcdef.part", 0, true },
		    { "sub/a", 0, false },
		{ "../.ptcp-0123456789abcdef.part", 0, false }, { "sub/.ptcp-0123456789abcdef.journal", 0, false },
		{ "sub/../.ptcp-0123456789abcdef.part", 0, false }, { "/.ptcp-0123456789abcdef.part", 0, false },
		{ ".ptcp-0123456789abcdef.part", 1, false }, { ".ptcp-0123456789abcdef.part", 2, false },
		    { "", 1, false },
	};
	struct work_files f;
	struct wire_target t;
	struct ptcp_err e;
	struct dir *dir;
	char *name;
	size_t i;

	(void)state;
	begin(&f);
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		t = (struct wire_target){ .id = 1u << 16, .root = (uint16_t)cases[i].root, .size_bytes = 1,
			.path = { (const uint8_t *)cases[i].path, strlen(cases[i].path) } };
		assert_int_equal(work_files_target(&f, &t, &dir, &name, &e), cases[i].ok ? 0 : PTCP_EPROTO);
		if (!cases[i].ok)
			continue;
		assert_string_equal(name, ".ptcp-0123456789abcdef.part");
		dir_unref(dir);
		free(name);
	}
	work_files_fini(&f);
}

/* A root that is a file is read only, even one with the name of a part. */
static void a_part_as_a_root(void **state)
{
	char part[96];
	struct invitation v = { .root = { part }, .n_roots = 1 };
	struct wire_target t = { .id = 1u << 16, .size_bytes = 1 };
	struct work_files f;
	struct ptcp_err e;
	struct dir *dir;
	char *name;

	(void)state;
	make(".ptcp-0123456789abcdef.part", "read this");
	snprintf(part, sizeof part, "%s/.ptcp-0123456789abcdef.part", top);
	memset(&f, 0, sizeof f);
	assert_int_equal(work_files_open(&f, &v, 0, NULL), 0);
	assert_int_equal(work_files_target(&f, &t, &dir, &name, &e), PTCP_EPROTO);
	work_files_fini(&f);
}

static void a_missing_root(void **state)
{
	char gone[96];
	struct invitation v = { .root = { gone }, .n_roots = 1 };
	struct work_files f = { .n_roots = 0 };
	struct ptcp_err e;

	(void)state;
	snprintf(gone, sizeof gone, "%s/gone", top);
	assert_int_equal(work_files_open(&f, &v, 0, &e), PTCP_ECONFIG);
	assert_non_null(strstr(e.msg, "No such file"));
	work_files_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads), cmocka_unit_test(changed), cmocka_unit_test(outside), cmocka_unit_test(parts),
		cmocka_unit_test(a_part_as_a_root), cmocka_unit_test(a_missing_root),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
