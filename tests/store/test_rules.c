/* Every rule, of every type of entry, about everything that exists. */
#include "store/rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#define SIZE 100
#define TIME { 1000, 500 }

/* What exists, in the order of the letters below. `same`: as rules_entry has it. */
static const struct rules_entry there[] = {
	{ .type = RULES_NOTHING },
	{ .type = RULES_FILE, .size_bytes = SIZE, .mtime = TIME },
	{ .type = RULES_FILE, .size_bytes = SIZE, .mtime = { 1000, 0 } },   /* of a file system with whole seconds */
	{ .type = RULES_FILE, .size_bytes = SIZE, .mtime = { 1000, 499 } }, /* older */
	{ .type = RULES_FILE, .size_bytes = SIZE, .mtime = { 1000, 501 } }, /* newer */
	{ .type = RULES_FILE, .size_bytes = SIZE + 1, .mtime = TIME },
	{ .type = RULES_FILE, .size_bytes = SIZE + 1, .mtime = { 999, 600 } },
	{ .type = RULES_FILE, .size_bytes = SIZE + 1, .mtime = { 1001, 0 } },
	{ .type = RULES_SYMLINK, .mtime = { 1001, 0 } },
	{ .type = RULES_SYMLINK, .same = true },
	{ .type = RULES_FILE, .size_bytes = SIZE, .mtime = { 1001, 0 }, .same = true }, /* another name of the file */
	{ .type = RULES_DIR, .mtime = { 1001, 0 } },
	{ .type = RULES_SPECIAL, .mtime = { 1001, 0 } },
};
#define N (sizeof there / sizeof *there)

static const enum rules_type types[] = { RULES_FILE, RULES_HARDLINK, RULES_SYMLINK, RULES_DIR };

static enum rules_answer ask(uint32_t flags, bool write_once, enum rules_type type, size_t i)
{
	const struct store_rules r = { .flags = flags, .write_once = write_once };
	const struct rules_entry offered = { .type = type, .size_bytes = SIZE, .mtime = TIME };
	struct rules_entry e = there[i];

	e.same = e.same && type != RULES_DIR;
	return rules_judge(&r, &offered, &e);
}

/* Of each type: R receive, U unchanged, C compare, S the same, K keep, X refuse. */
static void one_rule(void **state)
{
	static const struct {
		uint32_t flag;
		bool write_once;
		const char *answers[4];
	} rules[] = {
		/*       nothing, 2 equal, older, newer, 3 of another size, link, 2 that are the entry, directory,
		 * special */
		{ 0, false, { "RUCRRRRRRSSRR", "RRRRRRRRRSSRR", "RRRRRRRRRSSRR", "RRRRRRRRRRRSR" } },
		{ RULE_IGNORE_EXISTING, false, { "RKKKKKKKKKKKK", "RKKKKKKKKKKKK", "RKKKKKKKKKKKK", "RKKKKKKKKKKSK" } },
		{ RULE_EXCLUSIVE, false, { "RXXXXXXXXXXXX", "RXXXXXXXXXXXX", "RXXXXXXXXXXXX", "RXXXXXXXXXXSX" } },
		{ RULE_EXISTING, false, { "KUCRRRRRRSSRR", "KRRRRRRRRSSRR", "KRRRRRRRRSSRR", "KRRRRRRRRRRSR" } },
		{ RULE_UPDATE, false, { "RUCRKRRKRSSRR", "RRRRKRRKRSSRR", "RRRRRRRRRSSRR", "RRRRRRRRRRRSR" } },
		{ RULE_SIZE_ONLY, false, { "RUUUURRRRSSRR", "RRRRRRRRRSSRR", "RRRRRRRRRSSRR", "RRRRRRRRRRRSR" } },
		{ RULE_CHECKSUM, false, { "RCCCCRRRRSSRR", "RRRRRRRRRSSRR", "RRRRRRRRRSSRR", "RRRRRRRRRRRSR" } },
		{ RULE_IGNORE_TIMES, false, { "RRRRRRRRRSSRR", "RRRRRRRRRSSRR", "RRRRRRRRRSSRR", "RRRRRRRRRRRSR" } },
		{ RULE_NO_RESUME, false, { "RRRRRRRRRSSRR", "RRRRRRRRRSSRR", "RRRRRRRRRSSRR", "RRRRRRRRRRRSR" } },
		{ 0, true, { "RXXXXXXXXSSXX", "RXXXXXXXXSSXX", "RXXXXXXXXSSXX", "RXXXXXXXXXXSX" } },
	};
	static const char letters[] = { [RULES_RECEIVE] = 'R', [RULES_UNCHANGED] = 'U', [RULES_COMPARE] = 'C',
		[RULES_SAME] = 'S', [RULES_KEEP] = 'K', [RULES_REFUSE] = 'X' };
	char got[N + 1] = "";
	size_t r, t, i;

	(void)state;
	for (r = 0; r < sizeof rules / sizeof *rules; r++)
		for (t = 0; t < 4; t++) {
			for (i = 0; i < N; i++)
				got[i] = letters[ask(rules[r].flag, rules[r].write_once, types[t], i)];
			assert_string_equal(got, rules[r].answers[t]);
		}
}

/* What one rule keeps, no other rule gives up. */
static void rules_together(void **state)
{
	static const uint32_t flags[] = { RULE_IGNORE_EXISTING, RULE_EXISTING, RULE_UPDATE,
		RULE_SIZE_ONLY, RULE_CHECKSUM, RULE_IGNORE_TIMES, RULE_NO_RESUME };
	const unsigned n = sizeof flags / sizeof *flags;
	enum rules_answer all;
	unsigned set, f;
	uint32_t bits;
	size_t t, i;

	(void)state;
	for (set = 0; set < 1u << n; set++) {
		for (bits = 0, f = 0; f < n; f++)
			bits |= set >> f & 1 ? flags[f] : 0;
		for (t = 0; t < 4; t++)
			for (i = 0; i < N; i++) {
				all = ask(bits, false, types[t], i);
				assert_int_not_equal(all, RULES_REFUSE);
				for (f = 0; f < n; f++)
					if ((set >> f & 1) != 0 && ask(flags[f], false, types[t], i) == RULES_KEEP)
						assert_true(all == RULES_KEEP || all == RULES_SAME);
				if (there[i].type != RULES_NOTHING && types[t] != RULES_DIR)
					assert_true(ask(bits, true, types[t], i) > RULES_COMPARE);
			}
	}
}

/* What stores the time of the source otherwise: by the digest, whether the file is the same. */
static void other_times(void **state)
{
	static const struct {
		struct timespec source, there;
		bool compares;
	} of[] = { { { 10, 123456789 }, { 10, 123456700 }, true }, { { 10, 123456789 }, { 10, 120000000 }, true },
		{ { 10, 123456789 }, { 10, 0 }, true }, { { 11, 5 }, { 10, 0 }, true }, { { 10, 5 }, { 9, 0 }, false },
		{ { -10, 5 }, { -9, 0 }, true }, { { 10, 5 }, { 11, 0 }, false }, { { 10, 5 }, { 10, 6 }, false } };
	const struct store_rules none = { 0 };
	struct rules_entry offered = { .type = RULES_FILE, .size_bytes = 7 }, found = offered;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof of / sizeof *of; i++) {
		offered.mtime = of[i].source;
		found.mtime = of[i].there;
		assert_int_equal(rules_judge(&none, &offered, &found), of[i].compares ? RULES_COMPARE : RULES_RECEIVE);
	}
	offered.timeless = true;
	assert_int_equal(rules_judge(&none, &offered, &found), RULES_COMPARE);
	found.size_bytes = 8;
	assert_int_equal(rules_judge(&none, &offered, &found), RULES_RECEIVE);
}

/* Equal times suffice only to the nanosecond, and not where everything is read. */
static void equal_times(void **state)
{
	static const struct {
		struct timespec source, there;
		enum rules_answer answer;
	} of[] = {
		{ { 10, 123456789 }, { 10, 123456789 }, RULES_UNCHANGED }, { { -10, 5 }, { -10, 5 }, RULES_UNCHANGED },
		{ { 10, 0 }, { 10, 0 }, RULES_UNCHANGED }, { { 10, 123456789 }, { 10, 123456700 }, RULES_COMPARE },
		{ { 10, 123456789 }, { 10, 0 }, RULES_COMPARE }, { { 11, 5 }, { 10, 0 }, RULES_COMPARE },
		{ { 10, 123456789 }, { 10, 123456788 }, RULES_RECEIVE },
	};
	struct store_rules r = { 0 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof of / sizeof *of; i++) {
		const struct rules_entry found = { .type = RULES_FILE, .size_bytes = 7, .mtime = of[i].there };
		const struct rules_entry offered = { .type = RULES_FILE, .size_bytes = 7, .mtime = of[i].source };

		r.reads = false;
		assert_int_equal(rules_judge(&r, &offered, &found), of[i].answer);
		r.reads = true;
		assert_int_equal(rules_judge(&r, &offered, &found),
		    of[i].answer == RULES_UNCHANGED ? RULES_COMPARE : of[i].answer);
	}
}

/* Whole seconds that differ by no more than the window are equal: for what is up to date, and for what is newer. */
static void time_window(void **state)
{
	static const struct {
		struct timespec source, there;
		enum rules_answer none, one, two, update; /* by windows of 0, 1 and 2 s; by 2 s, and -u */
	} of[] = {
		{ { 10, 5 }, { 10, 5 }, RULES_UNCHANGED, RULES_UNCHANGED, RULES_UNCHANGED, RULES_UNCHANGED },
		{ { 10, 5 }, { 10, 6 }, RULES_RECEIVE, RULES_UNCHANGED, RULES_UNCHANGED, RULES_UNCHANGED },
		{ { 10, 5 }, { 11, 999999999 }, RULES_RECEIVE, RULES_UNCHANGED, RULES_UNCHANGED, RULES_UNCHANGED },
		{ { 10, 5 }, { 8, 0 }, RULES_RECEIVE, RULES_RECEIVE, RULES_UNCHANGED, RULES_UNCHANGED },
		{ { 10, 5 }, { 12, 9 }, RULES_RECEIVE, RULES_RECEIVE, RULES_UNCHANGED, RULES_UNCHANGED },
		{ { 10, 5 }, { 13, 0 }, RULES_RECEIVE, RULES_RECEIVE, RULES_RECEIVE, RULES_KEEP },
		{ { 10, 5 }, { 7, 999999999 }, RULES_RECEIVE, RULES_RECEIVE, RULES_RECEIVE, RULES_RECEIVE },
		{ { 11, 5 }, { 10, 0 }, RULES_COMPARE, RULES_UNCHANGED, RULES_UNCHANGED, RULES_UNCHANGED }, /* FAT */
		{ { -1, 5 }, { 1, 5 }, RULES_RECEIVE, RULES_RECEIVE, RULES_UNCHANGED, RULES_UNCHANGED },
		{ { INT64_MIN, 0 }, { INT64_MAX, 0 }, RULES_RECEIVE, RULES_RECEIVE, RULES_RECEIVE, RULES_KEEP },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof of / sizeof *of; i++) {
		struct rules_entry found = { .type = RULES_FILE, .size_bytes = 7, .mtime = of[i].there };
		const struct rules_entry offered = { .type = RULES_FILE, .size_bytes = 7, .mtime = of[i].source };
		struct store_rules r = { 0 };

		assert_int_equal(rules_judge(&r, &offered, &found), of[i].none);
		r.window_s = 1;
		assert_int_equal(rules_judge(&r, &offered, &found), of[i].one);
		r.window_s = 2;
		assert_int_equal(rules_judge(&r, &offered, &found), of[i].two);
		r.reads = true;
		assert_int_equal(rules_judge(&r, &offered, &found),
		    of[i].two == RULES_UNCHANGED ? RULES_COMPARE : of[i].two);
		r.reads = false;
		r.flags = RULE_UPDATE;
		assert_int_equal(rules_judge(&r, &offered, &found), of[i].update);
		found.size_bytes = 8; /* another size: kept only if newer beyond the window */
		assert_int_equal(rules_judge(&r, &offered, &found),
		    of[i].update == RULES_KEEP ? RULES_KEEP : RULES_RECEIVE);
	}
}

static void files_found(void **state)
{
	static const struct {
		mode_t mode;
		enum rules_type type;
	} found[] = { { S_IFREG, RULES_FILE }, { S_IFLNK, RULES_SYMLINK }, { S_IFDIR, RULES_DIR },
		{ S_IFIFO, RULES_SPECIAL },
		{ S_IFSOCK, RULES_SPECIAL }, { S_IFCHR, RULES_SPECIAL }, { S_IFBLK, RULES_SPECIAL } };
	struct rules_entry e;
	struct stat st = { .st_size = 7, .st_mtim = { 8, 9 } };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof found / sizeof *found; i++) {
		st.st_mode = found[i].mode | 0644;
		e = rules_entry_of(&st);
		assert_true(e.type == found[i].type && e.size_bytes == 7 && e.mtime.tv_sec == 8 &&
		    e.mtime.tv_nsec == 9 && !e.same);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(one_rule), cmocka_unit_test(rules_together),
		cmocka_unit_test(other_times), cmocka_unit_test(equal_times), cmocka_unit_test(time_window),
		cmocka_unit_test(files_found) };

	return cmocka_run_group_tests_name("store/rules", tests, NULL, NULL);
}
