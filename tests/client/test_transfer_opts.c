/* Options of a task: defaults, ranges, combinations, and copies. The table of options says what each permits. */
#include <math.h>

#include "fixture.h"

#define FP "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

static const struct cf_files sends = { true, { "a" }, CF_NO_HOST "b" };

/* ---- The table ---- */

/* Stores the number in the member of the row; false: the member has no such number. */
static bool store(struct ptcp_transfer_opts *o, const struct ptcp_option *row, double n)
{
	void *at = (char *)o + row->at;
	double min = row->type == PTCP_OPTION_INT || row->type == PTCP_OPTION_WORD ? INT32_MIN : 0;
	double max = row->type == PTCP_OPTION_UINT64 ? 9e18 : min < 0 ? INT32_MAX : UINT32_MAX;

	if (row->type != PTCP_OPTION_DOUBLE && !(n >= min && n <= max))
		return false;
	switch (row->type) {
	case PTCP_OPTION_DOUBLE: *(double *)at = n; return true;
	case PTCP_OPTION_UINT64: *(uint64_t *)at = (uint64_t)n; return true;
	case PTCP_OPTION_INT:
	case PTCP_OPTION_WORD: *(int *)at = (int)n; return true;
	case PTCP_OPTION_UNSIGNED:
	case PTCP_OPTION_UINT32: *(uint32_t *)at = (uint32_t)n; return true;
	default: return false;
	}
}

static void takes(const struct ptcp_option *row, double n, bool permitted)
{
	struct ptcp_transfer_opts o = cf_opts();
	struct ptcp_err e;
	int r;

	if (!store(&o, row, n))
		return;
	r = options_check(&o, &e);
	if (r != (permitted ? 0 : PTCP_EUSAGE))
		fail_msg("%s = %g: %d", row->member, n, r);
	if (r < 0)
		cf_says(&e, row->member);
}

/* Each number is permitted from the minimum to the maximum and, besides, as its initial value. */
static void ranges(void **state)
{
	const struct ptcp_option *row;
	unsigned numbers = 0;
	double step;
	size_t i;

	(void)state;
	for (i = 0; (row = ptcp_transfer_option(i)) != NULL; i++) {
		if (!store(&(struct ptcp_transfer_opts){ .size = 0 }, row, 1))
			continue;
		numbers++;
		step = row->type == PTCP_OPTION_DOUBLE ? 0.001 : 1;
		takes(row, row->min, true);
		takes(row, row->max, true);
		takes(row, row->initial, true);
		if (row->min - step != row->initial)
			takes(row, row->min - step, false);
		if (row->max + step != row->initial)
			takes(row, row->max + step, false);
		if (row->type == PTCP_OPTION_DOUBLE)
			takes(row, NAN, false);
	}
	assert_true(numbers >= 10);
	assert_null(ptcp_transfer_option(i + 1));
}

/* Each switch alone, and one option of each other type: work on files refuses what ptcp_option_of_files() excludes. */
static void of_files(void **state)
{
	static const struct ptcp_rule rule = { .pattern = "*.o" };
	const char *list[] = { "a" };
	const struct ptcp_option *row;
	struct ptcp_transfer_opts o;
	struct ptcp_err e;
	size_t i;
	int r, writes;

	(void)state;
	for (i = 0; (row = ptcp_transfer_option(i)) != NULL; i++) {
		for (writes = 0; writes < 2; writes++) {
			char *at = (char *)&o + row->at;

			ptcp_transfer_opts_init(&o);
			assert_int_equal(options_check_files(&o, writes, &e), 0);
			if (row->type == PTCP_OPTION_CALLBACK)
				continue;
			if (row->type == PTCP_OPTION_SWITCH)
				*(bool *)at = !*(bool *)at;
			else if (!store(&o, row, row->initial + 1))
				*(const void **)at = row->type == PTCP_OPTION_RULES ? (const void *)&rule : list;
			if (row->type == PTCP_OPTION_TEXTS || row->type == PTCP_OPTION_RULES)
				*(size_t *)(at + sizeof(void *)) = 1;
			r = options_check_files(&o, writes, &e);
			if (r != (ptcp_option_of_files(row, writes) ? 0 : PTCP_EUSAGE))
				fail_msg("%s, %d: %d", row->member, writes, r);
			if (r < 0)
				cf_says(&e, row->member);
		}
	}
	row = ptcp_transfer_option(0);
	assert_false(ptcp_option_of_files(row, false) || ptcp_option_of_files(row, true));
}

static void family_five(void **state)
{
	struct ptcp_transfer_opts o = cf_opts();
	struct ptcp_err e;

	(void)state;
	o.family = 5;
	assert_int_equal(options_check(&o, &e), PTCP_EUSAGE);
	cf_says(&e, "5 is no address family");
}

/* One of the words, as a whole. */
static void words(void **state)
{
	static const char *const good[] = { "auto", "system", "cubic", "bbr", "reno" };
	static const char *const bad[] = { "", "cub", "cubi", "cubic|bbr", "cubicc", "CUBIC", "o", "|", "ren\033" };
	struct ptcp_transfer_opts o = cf_opts();
	struct ptcp_err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof good / sizeof *good; i++) {
		o.congestion = good[i];
		assert_int_equal(options_check(&o, &e), 0);
	}
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		o.congestion = bad[i];
		if (options_check(&o, &e) != PTCP_EUSAGE)
			fail_msg("'%s' is permitted", bad[i]);
		cf_says(&e, "auto|system|cubic|bbr|reno");
		assert_null(strchr(e.msg, '\033'));
	}
}

/* What a new struct has: each member its initial value, which the check permits. */
static void initial(void **state)
{
	struct ptcp_transfer_opts o, zero;
	struct ptcp_err e;

	(void)state;
	memset(&o, 0xff, sizeof o);
	memset(&zero, 0, sizeof zero);
	ptcp_transfer_opts_init(&o);
	assert_int_equal(o.size, sizeof o);
	assert_int_equal(options_check(&o, &e), 0);
	assert_int_equal(o.max_streams, 32);
	assert_int_equal(o.older.max_delete, PTCP_MAX_DELETE_CAREFUL);
	assert_int_equal(o.pipe.fd, -1);
	assert_true(o.timeout_s == 30 && o.wait_s == 60 && o.retry_for_s == 600 && o.impact_percent == 10);
	assert_true(o.preserve.times && o.preserve.mode && o.preserve.links);
	assert_false(o.preserve.owner || o.preserve.xattr || o.preserve.setid);
	assert_null(o.event);
	assert_memory_equal(&o.paths, &zero.paths, sizeof o.paths);
}

/* ---- The flags of OPEN ---- */

static void flags(void **state)
{
	struct ptcp_transfer_opts o = cf_opts();
	const uint32_t usual = options_open_flags(&o);

	(void)state;
	assert_int_equal(usual, WIRE_OPEN_VERIFY | WIRE_OPEN_MKPATH);
#define SETS(member, flag) \
	o = cf_opts(), o.member = true, assert_int_equal(options_open_flags(&o), usual | (flag))
#define CLEARS(member, value, flag) \
	o = cf_opts(), o.member = value, assert_int_equal(options_open_flags(&o), usual & ~(uint32_t)(flag))
	SETS(update, WIRE_OPEN_UPDATE);
	SETS(size_only, WIRE_OPEN_SIZE_ONLY);
	SETS(ignore_existing, WIRE_OPEN_IGNORE_EXISTING);
	SETS(older.exclusive, WIRE_OPEN_EXCLUSIVE);
	SETS(checksum, WIRE_OPEN_CHECKSUM);
	SETS(ignore_times, WIRE_OPEN_IGNORE_TIMES);
	SETS(delete_extra, WIRE_OPEN_DELETE | WIRE_OPEN_RENAMES);
	SETS(wire.detect_renames, WIRE_OPEN_RENAMES);
	SETS(dry_run, WIRE_OPEN_DRY_RUN);
	SETS(no_growing, WIRE_OPEN_NO_GROWING);
	SETS(remove_sources, WIRE_OPEN_REMOVE_SOURCES);
	SETS(no_resume, WIRE_OPEN_NO_RESUME);
	SETS(partial, WIRE_OPEN_PARTIAL);
	SETS(dest_is_file, WIRE_OPEN_FILE);
	CLEARS(no_verify, true, WIRE_OPEN_VERIFY);
	CLEARS(no_mkpath, true, WIRE_OPEN_MKPATH);
#undef SETS
#undef CLEARS
}

static void preserved(void **state)
{
	struct ptcp_transfer_opts o = cf_opts();
	const uint16_t usual = options_preserve(&o);

	(void)state;
	assert_int_equal(usual, WIRE_PRESERVE_TIMES | WIRE_PRESERVE_MODE | WIRE_PRESERVE_LINKS);
#define PRESERVED(member, bit, FLAG, initial) \
	o = cf_opts(), o.preserve.member = !(initial), \
	    assert_int_equal(options_preserve(&o), usual ^ WIRE_PRESERVE_##FLAG);
	PTCP_OPTIONS_PRESERVE(PRESERVED)
#undef PRESERVED
}

/* ---- Combinations ---- */

static void contradictions(void **state)
{
	struct ptcp_transfer_opts o;

	(void)state;
#define REFUSED(text, ...) \
	o = cf_opts(), __VA_ARGS__, cf_refused(&o, &sends, PTCP_EUSAGE, text)
#define ACCEPTED(...) \
	o = cf_opts(), __VA_ARGS__, ptcp_task_free(cf_accepted(&o, &sends))
	REFUSED("--checksum: not with --no-verify", o.checksum = o.no_verify = true);
	REFUSED("--checksum: not with --ignore-times", o.checksum = o.ignore_times = true);
	REFUSED("--checksum: not with --size-only", o.checksum = o.size_only = true);
	ACCEPTED(o.checksum = o.update = true);
	REFUSED("--remove-source-files: not with --no-verify", o.remove_sources = o.no_verify = true);
	REFUSED("--remove-source-files: not with --fsync none", o.remove_sources = true, o.fsync = PTCP_FSYNC_NONE);
	ACCEPTED(o.remove_sources = true, o.fsync = PTCP_FSYNC_FILE);
	REFUSED("--congestion cubic: not with --impact 0", o.impact_percent = 0, o.congestion = "cubic");
	ACCEPTED(o.impact_percent = 0, o.congestion = "auto");
	ACCEPTED(o.impact_percent = 0, o.congestion = "cubic", o.streams = 2);
	REFUSED("streams: 129", o.streams = PTCP_STREAMS_MAX + 1);
	REFUSED("rate", o.rate = "fast");
	REFUSED("congestion: 'x'", o.congestion = "x");
	o = cf_opts();
	o.remote.launch = "sh";
	ptcp_task_free(cf_accepted(&o, &sends));
	cf_refused(&o, &(struct cf_files){ true, { "a" }, "host:b" }, PTCP_EUSAGE, "launch: only for a transfer with one ptcp://");
	cf_refused(&o, &(struct cf_files){ true, { CF_NO_HOST "a" }, "ptcp://127.0.0.1:2/" }, PTCP_EUSAGE, "launch: only for");
}

static const char *const three[] = { "127.0.0.1:2", "127.0.0.1:3", "direct" };

static void relays(void **state)
{
	static char name[301];
	static const char *const twice[] = { "127.0.0.1:2", "127.0.0.1:2" }, *const target[] = { "127.0.0.1:1" };
	static const double good[] = { 0, 1e9, 0 }, negative[] = { 1, -1, 1 }, endless[] = { 1, 1, INFINITY };
	static const char *const bad[] = { "", ",", "a,", ",a", "a:0", "a:x", "a b", name, "a,a", "a,A:7811", "1,2,3,4,5,6,7,8,9",
		"a,127.0.0.1:1" };
	const char *many[PTCP_PATHS_MAX + 1];
	struct ptcp_transfer_opts o;
	struct ptcp_task *t;
	size_t i;

	(void)state;
	memset(name, 'h', sizeof name - 1); /* longer than the name of any host */
	for (i = 0; i < sizeof many / sizeof *many; i++)
		many[i] = "127.0.0.1:2";
	REFUSED("--paths: only with --relays", o.path.n_selected = 2);
	REFUSED("--relays: not with --via", o.candidates = three, o.n_candidates = 3, o.paths = three, o.n_paths = 1);
	REFUSED("--relays: more than 16", o.candidates = many, o.n_candidates = PTCP_PATHS_MAX + 1);
	REFUSED("--paths 4: only 3 relays", o.candidates = three, o.n_candidates = 3, o.path.n_selected = 4);
	REFUSED("the same path twice", o.paths = twice, o.n_paths = 2);
	REFUSED("cannot be its own relay", o.paths = target, o.n_paths = 1);
	REFUSED("the bandwidth of candidate 1", o.candidates = three, o.n_candidates = 3, o.path.candidate_bps = negative);
	REFUSED("the bandwidth of candidate 2", o.candidates = three, o.n_candidates = 3, o.path.candidate_bps = endless);
	REFUSED("the share of path 1", o.paths = three, o.n_paths = 3, o.path.shares = negative);
	REFUSED("the share of path 2", o.paths = three, o.n_paths = 3, o.path.shares = endless);

	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		REFUSED("--via", o.paths = &bad[i], o.n_paths = 1);
		REFUSED("--via", o.candidates = &bad[i], o.n_candidates = 1);
	}
	REFUSED("--via: more than 16 paths", o.paths = many, o.n_paths = PTCP_PATHS_MAX + 1);

	o = cf_opts(); /* two of the candidates are used at first */
	o.candidates = three;
	o.n_candidates = 3;
	o.path.candidate_bps = good;
	t = cf_accepted(&o, &sends);
	assert_int_equal(t->paths.n, 3);
	assert_int_equal(t->paths.n_places, 2);
	assert_true(t->paths.chosen);
	assert_null(t->o.path.candidate_bps); /* the caller's memory */
	ptcp_task_free(t);
	o.path.n_selected = 3;
	t = cf_accepted(&o, &sends);
	assert_int_equal(t->paths.n_places, 3);
	ptcp_task_free(t);
	o.n_candidates = 1;
	o.path.n_selected = 0;
	t = cf_accepted(&o, &sends);
	assert_int_equal(t->paths.n_places, 1);
	ptcp_task_free(t);
}

static void spooling(void **state)
{
	static const uint64_t none[] = { 0, 0, 0 }, some[] = { 0, 1 << 20, 0 };
	struct ptcp_transfer_opts o;
	struct ptcp_task *t;

	(void)state;
	REFUSED("relays would store the data in plaintext", o.paths = three, o.n_paths = 3, o.path.spool_bytes = some,
	    o.cipher = PTCP_CIPHER_NONE);
	ACCEPTED(o.paths = three, o.n_paths = 3, o.path.spool_bytes = none, o.cipher = PTCP_CIPHER_NONE);
	o = cf_opts();
	o.paths = three;
	o.n_paths = 3;
	o.path.spool_bytes = some;
	t = cf_accepted(&o, &sends);
	assert_true(t->paths.spools);
	assert_int_equal(t->paths.at[0].spool_bytes, 0);
	assert_int_equal(t->paths.at[1].spool_bytes, 1 << 20);
	ptcp_task_free(t);
}

static void pins(void **state)
{
	static const char *const good[] = { FP, "h=" FP, "h:7=" FP, "[::1]:7=" FP };
	static const char *const bad[] = { "", "x", "SHA256:x", "h=", "h=x", FP "=", FP "A" };
	struct ptcp_transfer_opts o;
	size_t i;

	(void)state;
	ACCEPTED(o.fingerprints = good, o.n_fingerprints = sizeof good / sizeof *good);
	for (i = 0; i < sizeof bad / sizeof *bad; i++)
		REFUSED("not SHA256:..", o.fingerprints = &bad[i], o.n_fingerprints = 1);
}

/* ---- Copies ---- */

/* The caller's memory may end with ptcp_send_new(). */
static void copies(void **state)
{
	char text[6][64] = { "cubic", "8Mbit/s", "/config", "127.0.0.1:2", FP, "ssh -v" };
	const char *const path[] = { text[3] }, *const pin[] = { text[4] };
	struct ptcp_transfer_opts o = cf_opts();
	struct ptcp_task *t;

	(void)state;
	o.congestion = text[0];
	o.rate = text[1];
	o.config_dir = text[2];
	o.paths = path;
	o.n_paths = 1;
	o.fingerprints = pin;
	o.n_fingerprints = 1;
	o.ssh = text[5];
	t = cf_accepted(&o, &sends);
	memset(text, 'x', sizeof text);
	assert_string_equal(t->o.congestion, "cubic");
	assert_string_equal(t->o.rate, "8Mbit/s");
	assert_string_equal(t->o.config_dir, "/config");
	assert_string_equal(t->o.ssh, "ssh -v");
	assert_string_equal(t->o.paths[0], "127.0.0.1:2");
	assert_null(t->o.paths[1]);
	assert_string_equal(t->o.fingerprints[0], FP);
	assert_int_equal(timetable_bps(&t->rate, 0), 8000000);
	ptcp_task_free(t);
}

static void lists(void **state)
{
	static const char *const in[] = { "a", "", "b" };
	const char *const *out = task_copy_list(in, 3);

	(void)state;
	assert_string_equal(out[0], "a");
	assert_string_equal(out[1], "");
	assert_string_equal(out[2], "b");
	assert_null(out[3]);
	assert_ptr_not_equal(out[0], in[0]);
	task_free_list(out, 3);
	out = task_copy_list(NULL, 0);
	assert_null(out[0]);
	task_free_list(out, 0);
	task_free_list(NULL, 3);
}

/* The struct of an older library is a prefix of ours; of a newer library's struct, we do not know the end. */
static void other_sizes(void **state)
{
	struct { struct ptcp_transfer_opts o; char more[16]; } newer = { .o = cf_opts() };
	struct ptcp_transfer_opts o = cf_opts();
	struct ptcp_task *t;

	(void)state;
	o.streams = 3;
	o.max_streams = 7;
	o.size = offsetof(struct ptcp_transfer_opts, max_streams);
	assert_true(offsetof(struct ptcp_transfer_opts, streams) < o.size);
	t = cf_accepted(&o, &sends);
	assert_int_equal(t->o.streams, 3);
	assert_int_equal(t->o.max_streams, 32);
	ptcp_task_free(t);
	newer.o.size = sizeof newer;
	cf_refused(&newer.o, &sends, PTCP_EUSAGE, "ptcp_transfer_opts_init");
	o.size = 0;
	cf_refused(&o, &sends, PTCP_EUSAGE, "ptcp_transfer_opts_init");
	assert_int_equal(cf_new(&t, NULL, &sends, NULL), 0); /* the defaults */
	assert_int_equal(t->o.max_streams, 32);
	ptcp_task_free(t);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges),
		cmocka_unit_test(of_files),
		cmocka_unit_test(family_five),
		cmocka_unit_test(words),
		cmocka_unit_test(initial),
		cmocka_unit_test(flags), cmocka_unit_test(preserved),
		cmocka_unit_test(contradictions),
		cmocka_unit_test(relays),
		cmocka_unit_test(spooling),
		cmocka_unit_test(pins),
		cmocka_unit_test(copies),
		cmocka_unit_test(lists),
		cmocka_unit_test(other_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
