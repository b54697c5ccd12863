/* Lists of pairs: forms of lines, batches, a million pairs in bounded memory, hosts of operands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "queue/pair_list.h"

static char path[80];

static void list(const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* Batches of a list as "SOURCE.. > DESTINATION;" or the error, which begins after the path. */
static void batches_are(const char *text, uint64_t alone_until, const char *want)
{
	struct pair_batch b = { .end = 0 };
	struct ptcp_err e;
	char got[2048] = "";
	size_t i;
	int r;

	list(text);
	while ((r = pair_batch_read(&b, path, "/", b.end, alone_until, &e)) == 0 && b.n > 0) {
		uint64_t end = b.end;

		for (i = 0; i < b.sources.n; i++)
			snprintf(got + strlen(got), sizeof got - strlen(got), "%s ", b.sources.of[i]);
		snprintf(got + strlen(got), sizeof got - strlen(got), "> %s;", b.destination);
		pair_batch_fini(&b);
		b.end = end;
	}
	if (r < 0)
		snprintf(got + strlen(got), sizeof got - strlen(got), "%s", e.msg + strlen(path));
	pair_batch_fini(&b);
	assert_string_equal(got, want);
}

static void forms(void **state)
{
	(void)state;
	batches_are("", 0, "");
	batches_are("# nothing\n\n  \n", 0, "");
	batches_are("a h:b", 0, "a > h:b;");
	batches_are("\"a b\"\t'h:c d'\r\n", 0, "a b > h:c d;");
	batches_are("a\\ b h:/x/a\\ b\n", 0, "a b > h:/x/;");
	batches_are("file:///d/a%20b ptcp://h/x\n", 0, "/d/a b > ptcp://h/x;");
	batches_are("file://localhost/a file://host/b\n", 0,
	    ": the line at byte 0: not a local path (write file:///PATH, or the path)");
	batches_are("a h:b\nc\n", 0,
	    "a > h:b;: the line at byte 6: not a source and a destination (quote paths with blanks)");
	batches_are("a b c\n", 0, ": the line at byte 0: not a source and a destination (quote paths with blanks)");
	batches_are("a \"b\n", 0, ": the line at byte 0: not a source and a destination (quote paths with blanks)");
}

static void batched(void **state)
{
	(void)state;
	batches_are("/d/a h:/x/a\n/d/b h:/x/b\n/e/c h:/x/c\n", 0, "/d/a /d/b /e/c > h:/x/;");
	batches_are("/d/a h:/x/\n/d/b h:/x/\n", 0, "/d/a /d/b > h:/x/;");
	batches_are("/d/a h:/x/a\n/d/b h:/y/b\n", 0, "/d/a > h:/x/;/d/b > h:/y/;");
	batches_are("/d/a h:/x/a\n/e/a h:/x/a\n", 0, "/d/a > h:/x/;/e/a > h:/x/;"); /* one name, one batch */
	batches_are("/d/a h:/x/a\n/d/b h:/x/c\n/d/d h:/x/d\n", 0, "/d/a > h:/x/;/d/b > h:/x/c;/d/d > h:/x/;");
	batches_are("/d/a h:/x/a\n/d/ h:/x/\n", 0, "/d/a > h:/x/;/d/ > h:/x/;"); /* a directory's content */
	batches_are("h:/d/a /x/a\nk:/d/b /x/b\n", 0, "h:/d/a > /x/;k:/d/b > /x/;"); /* sources of two hosts */
	batches_are("/d/a%20b h:/x/a%20b\n/d/c h:/x/c\n", 0, "/d/a%20b > h:/x/a%20b;/d/c > h:/x/;");
	batches_are("ptcp://h a\nptcp://h/b c/b\n", 0, "ptcp://h > a;ptcp://h/b > c/;");
	batches_are("g:/d/a h:/x/a\ng:/d/b h:/x/b\ng:/d/c h:/x/c\n", 15,
	    "g:/d/a > h:/x/a;g:/d/b > h:/x/b;g:/d/c > h:/x/;");
	/* What does not exist needs no process of its own. */
	batches_are("/no/a h:/x/a\n/no/b h:/x/b\n/etc h:/x/etc\nno/c h:/x/c\n/no/d h:/y/d\n", 1000,
	    "/no/a /no/b > h:/x/;/etc > h:/x/etc;no/c > h:/x/;/no/d > h:/y/;");
}

/* Bytes of a name; a line of a list can name anything but a remote path with a line feed or carriage return. */
static void draw(char *out, size_t cap, bool local)
{
	size_t n = 1 + (size_t)rand() % (cap - 1), i;

	for (i = 0; i < n; i++)
		do
			out[i] = rand() % 2 == 0 ? "\\\"' #%\t:/a"[rand() % 10] : (char)(1 + rand() % 255);
		while (!local && (out[i] == '\n' || out[i] == '\r'));
	out[n] = '\0';
}

/* A pair that is written can be read, whatever the directory of the reader. */
static void written(void **state)
{
	char source[24], dest[24], from[32], to[32], want[64], *text;
	struct pair_batch b;
	struct ptcp_err e;
	unsigned round;
	size_t n;
	FILE *f;

	(void)state;
	srand(7);
	for (round = 0; round < 3000; round++) {
		bool local = round % 2 == 0;

		draw(source, sizeof source, local);
		draw(dest, sizeof dest, !local);
		snprintf(from, sizeof from, "%s%s", local ? "./" : "h:x", source);
		snprintf(to, sizeof to, "%s%s/x", local ? "h:x" : "/", dest);
		f = open_memstream(&text, &n);
		pair_write(f, from, to, "/home/u v");
		fclose(f);
		list(text);
		assert_int_equal(pair_batch_read(&b, path, "/elsewhere", 0, 1, &e), 0);
		assert_int_equal(b.n, 1);
		snprintf(want, sizeof want, "%s%s", local ? "/home/u v/" : "", from);
		assert_string_equal(b.sources.of[0], want);
		if (b.missing) /* the directory, and the name of the source */
			assert_memory_equal(b.destination, to, strlen(b.destination));
		else
			assert_string_equal(b.destination, to);
		assert_int_equal(b.end, n);
		pair_batch_fini(&b);
		free(text);
	}
	f = open_memstream(&text, &n);
	pair_write(f, "a/b_1.txt", "ptcp://h/x", "/home/u");
	fclose(f);
	assert_string_equal(text, "/home/u/a/b_1.txt ptcp://h/x\n");
	free(text);
}

static void hosts(void **state)
{
	static const struct { const char *operand, *host; } of[] = {
		{ "/a/b:c", "" }, { "a", "" }, { "./a:b", "" }, { "h:b", "h" }, { "u@h:/b", "u@h" },
		    { "ptcp://h:7811/x", "h:7811" },
		{ "ptcp://h", "h" }, { "ssh://u@h/x", "u@h" }, { "[::1]:x", "[::1]" }, { "u@[fe80::1]:x/y:z",
		    "u@[fe80::1]" }, { "[::1", "" },
	};
	char out[PAIR_HOST_BYTES];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof of / sizeof *of; i++)
		assert_string_equal(pair_host(out, of[i].operand), of[i].host);
}

static void a_million(void **state)
{
	struct pair_batch b = { .end = 0 };
	struct mallinfo2 before, now;
	struct ptcp_err e;
	uint64_t n = 0, at = 0, most = 0, batches = 0;
	FILE *f = fopen(path, "w");
	unsigned i;

	(void)state;
	assert_non_null(f);
	for (i = 0; i < 1000000; i++)
		fprintf(f, "/data/run7/part%u/file%u.dat ptcp://archive.example.org/run7/part%u/file%u.dat\n",
		    i / 5000, i, i / 5000, i);
	fclose(f);
	before = mallinfo2();
	do {
		assert_int_equal(pair_batch_read(&b, path, "/", at, 0, &e), 0);
		now = mallinfo2();
		if (now.uordblks + now.hblkhd > before.uordblks + before.hblkhd + most)
			most = now.uordblks + now.hblkhd - before.uordblks - before.hblkhd;
		n += b.n;
		at = b.end;
		batches += b.n > 0;
		i = b.n > 0;
		pair_batch_fini(&b);
	} while (i);
	assert_int_equal(n, 1000000);
	assert_int_equal(batches, 1000); /* 1,000 pairs each */
	print_message("# at most %llu KiB for a batch\n", (unsigned long long)most >> 10);
	assert_true(most < 1 << 20);
}

static int setup(void **state)
{
	(void)state;
	snprintf(path, sizeof path, "%s/pairs.XXXXXX", getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
	return mkstemp(path) < 0;
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forms),
		cmocka_unit_test(batched), cmocka_unit_test(written),
		cmocka_unit_test(hosts),
		cmocka_unit_test(a_million),
	};

	return cmocka_run_group_tests_name("queue/pair_list", tests, setup, teardown);
}
