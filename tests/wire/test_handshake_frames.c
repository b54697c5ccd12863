/* against: arithmetic */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "check.h"

#define CHECK(cases, check) check(cases, sizeof cases / sizeof *cases)

static const uint8_t session[WIRE_SESSION_BYTES] = {
	0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf
};

/* ---- HELLO ---- */

static void hello_golden(void **state)
{
	const struct wire_hello h = { 1, 1, 30000, 5000, 600000, 16384, 128, 2,
		{ WIRE_ABLE_ONE_CHANNEL, 0x8001 }, text_span("ptcp 0.1.0") };
	uint8_t f[WIRE_HELLO_MAX_BYTES];
	struct span in = check_golden("hello", f, wire_hello_encode(f, &h));
	struct wire_hello d;

	(void)state;
	assert_int_equal(wire_hello_decode(&d, in, NULL), 0);
	assert_int_equal(d.version_min, 1);
	assert_int_equal(d.version_max, 1);
	assert_int_equal(d.timeout_ms, 30000);
	assert_int_equal(d.quiet_ms, 5000);
	assert_int_equal(d.linger_ms, 600000);
	assert_int_equal(d.max_entries, 16384);
	assert_int_equal(d.max_streams, 128);
	assert_int_equal(d.n_abilities, 2);
	assert_int_equal(d.abilities[0], 1);
	assert_int_equal(d.abilities[1], 0x8001);
	assert_span(d.software, "ptcp 0.1.0");
	drop(in);
}

static void hello_largest(void **state)
{
	char software[WIRE_SOFTWARE_MAX];
	struct wire_hello h = { UINT16_MAX, UINT16_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT16_MAX,
		WIRE_ABILITIES_MAX, { 0 }, { (const uint8_t *)software, sizeof software } };
	uint8_t f[WIRE_HELLO_MAX_BYTES];
	size_t n;

	(void)state;
	memset(software, 0xff, sizeof software);
	memset(h.abilities, 0xff, sizeof h.abilities);
	n = wire_hello_encode(f, &h);
	assert_int_equal(n, WIRE_HEADER_BYTES + 156);
	check_frame("largest HELLO", f, n);
	h.version_min = h.version_max = 1;
	n = wire_hello_encode(f, &h);
	check_frame("largest HELLO of version 1", f, n);
}

static void hello_rules(void **state)
{
	static const struct patch cases[] = {
		{ "bad magic", "hello", 0, "50544351", false },
		{ "magic in another case", "hello", 0, "70746370", false },
		{ "no magic", "hello", 0, "00000000", false },
		{ "versions the wrong way round", "hello", 4, "0002 0001", false },
		{ "an older peer that also speaks ours", "hello", 4, "0000 0001", true },
		{ "no version in common is the engine's to judge", "hello", 4, "0002 0003", true },
		{ "no time", "hello", 8, "00000000", false },
		{ "longest time", "hello", 8, "ffffffff", true },
		{ "no silence", "hello", 12, "00000000", false },
		{ "no lingering", "hello", 16, "00000000", true },
		{ "no entries", "hello", 20, "00000000", false },
		{ "fewer entries than may be early", "hello", 20, "0000000f", false },
		{ "as many entries as may be early", "hello", 20, "00000010", true },
		{ "more entries than slots", "hello", 20, "00004001", true },
		{ "zero streams", "hello", 24, "0000", false },
		{ "most streams", "hello", 24, "ffff", true },
		{ "abilities that are not there", "hello", 26, "09", false },
		{ "too many abilities", "hello", 26, "21", false },
		{ "unknown abilities", "hello", 27, "ffff 0000", true },
		{ "software that is not there", "hello", 31, "0b", false },
		{ "bytes left over", "hello", 31, "09", false },
	};
	uint8_t f[SAMPLE_MAX_BYTES] = { 0 };
	size_t n, fields = WIRE_HEADER_BYTES + 28;
	unsigned i;
	bool same;

	(void)state;
	CHECK(cases, check_patches);
	/* One too many of what has a length. */
	for (i = 0; i <= 1; i++) {
		n = golden("hello-bare", f);
		assert_int_equal(n, fields);
		memset(f + n, 'x', 100);
		f[n - 1] = (uint8_t)(WIRE_SOFTWARE_MAX + i);
		set_length(f, n += WIRE_SOFTWARE_MAX + i);
		assert_int_equal(recode_exact(f, n, &same), i == 0 ? 0 : PTCP_EPROTO);
		n = golden("hello-bare", f);
		memset(f + n - 1, 0, 100);
		f[n - 2] = (uint8_t)(WIRE_ABILITIES_MAX + i);
		set_length(f, n += 2 * (WIRE_ABILITIES_MAX + i));
		assert_int_equal(recode_exact(f, n, &same), i == 0 ? 0 : PTCP_EPROTO);
	}
}

/* Who also speaks a later version may append what we do not know. */
static void hello_of_a_later_version(void **state)
{
	uint8_t f[SAMPLE_MAX_BYTES], *copy;
	struct wire_hello d;
	size_t n = golden("hello-later", f);

	(void)state;
	copy = exact(f + WIRE_HEADER_BYTES, n - WIRE_HEADER_BYTES);
	assert_int_equal(wire_hello_decode(&d, (struct span){ copy, n - WIRE_HEADER_BYTES }, NULL), 0);
	assert_int_equal(d.version_max, 2);
	assert_int_equal(d.software.n, 0);
	copy[7] = 1; /* version 1 alone has nothing more to say */
	assert_int_equal(wire_hello_decode(&d, (struct span){ copy, n - WIRE_HEADER_BYTES }, NULL),
	    PTCP_EPROTO);
	free(copy);
}

/* ---- OPEN ---- */

static void open_golden(void **state)
{
	static const struct { uint8_t flags; const char *path; } want[] = {
		{ WIRE_PATH_CONTENTS, "a" }, { 0, "" }, { 0, "b\xff" "c" },
	};
	uint8_t f[SAMPLE_MAX_BYTES], paths[64], flags;
	struct wire_open o = { WIRE_ACCEPTOR_RECEIVES, 0, WIRE_FSYNC_GROUP, WIRE_CC_AUTO,
		WIRE_OPEN_VERIFY, 4, 1, { paths, 0 }, 60000, 0, 0, 0, 0, 0, 0, 0, WIRE_COMPRESS_AUTO,
		WIRE_PRESERVE_TIMES | WIRE_PRESERVE_MODE | WIRE_PRESERVE_LINKS, 3600 };
	struct wire_open d;
	struct span in, rest, path;
	size_t i;

	(void)state;
	o.paths.n = wire_path_encode(paths, 0, text_span("in/run7"));
	in = check_golden("open-put", f, wire_open_encode(f, &o));
	assert_int_equal(wire_open_decode(&d, in, NULL), 0);
	assert_int_equal(d.role, WIRE_ACCEPTOR_RECEIVES);
	assert_int_equal(d.cipher, 0);
	assert_int_equal(d.flags, o.flags);
	assert_int_equal(d.streams, 4);
	assert_int_equal(d.n_paths, 1);
	assert_int_equal(d.wait_ms, 60000);
	assert_int_equal(d.compress, WIRE_COMPRESS_AUTO);
	assert_int_equal(d.preserve, o.preserve);
	assert_int_equal(d.modify_window_s, 3600);
	drop(in);

	o = (struct wire_open){ WIRE_ACCEPTOR_SENDS, 3, WIRE_FSYNC_GROUP, WIRE_CC_AUTO, o.flags | WIRE_OPEN_INTO_DIR,
	    128, 3, { paths, 0 }, 0, 0, 0x6000, 0, 0, 0, 0, 0, 5, 0, 0 };
	for (i = 0; i < 3; i++)
		o.paths.n += wire_path_encode(paths + o.paths.n, want[i].flags, text_span(want[i].path));
	in = check_golden("open-get", f, wire_open_encode(f, &o));
	assert_int_equal(wire_open_decode(&d, in, NULL), 0);
	assert_int_equal(d.role, WIRE_ACCEPTOR_SENDS);
	assert_int_equal(d.cipher, 3);
	assert_int_equal(d.n_paths, 3);
	assert_int_equal(d.stripe, 0x6000);
	assert_int_equal(d.compress, 5);
	for (rest = d.paths, i = 0; i < 3; i++) {
		assert_true(wire_path_next(&rest, &flags, &path));
		assert_int_equal(flags, want[i].flags);
		assert_span(path, want[i].path);
	}
	assert_int_equal(rest.n, 0);
	assert_false(wire_path_next(&rest, &flags, &path));
	drop(in);
}

/* Who only measures names no place. */
static void open_drop_golden(void **state)
{
	uint8_t f[SAMPLE_MAX_BYTES];
	struct wire_open o = { .role = WIRE_ACCEPTOR_DISCARDS, .cipher = 1, .streams = 10 }, d;
	struct span in = check_golden("open-drop", f, wire_open_encode(f, &o));

	(void)state;
	assert_int_equal(wire_open_decode(&d, in, NULL), 0);
	assert_int_equal(d.role, WIRE_ACCEPTOR_DISCARDS);
	assert_int_equal(d.streams, 10);
	assert_int_equal(d.n_paths, 0);
	drop(in);
}

static void open_flood_golden(void **state)
{
	uint8_t f[SAMPLE_MAX_BYTES];
	struct wire_open o = { .role = WIRE_ACCEPTOR_GENERATES, .cipher = 1, .streams = 10 }, d;
	struct span in = check_golden("open-flood", f, wire_open_encode(f, &o));

	(void)state;
	assert_int_equal(wire_open_decode(&d, in, NULL), 0);
	assert_int_equal(d.role, WIRE_ACCEPTOR_GENERATES);
	assert_int_equal(d.flags, 0);
	drop(in);
}

static void filters_golden(void **state)
{
	static const struct { uint8_t flags; const char *path; } want[] = {
		{ WIRE_PATH_RULE, "- *.o" }, { 0, "a" }, { WIRE_PATH_RULE, "+ k/*.o" },
	};
	uint8_t f[SAMPLE_MAX_BYTES], paths[64], flags;
	struct wire_open o = { WIRE_ACCEPTOR_SENDS, 0, WIRE_FSYNC_FILE, WIRE_CC_BBR,
		WIRE_OPEN_NO_RESUME | WIRE_OPEN_DRY_RUN, 1, 3, { paths, 0 }, 0, 0, 0, 100, 1000000,
		0x65000000, 0x66000000, 3, 0, WIRE_PRESERVE_OWNER | WIRE_PRESERVE_XATTR | WIRE_PRESERVE_SETID,
		0 }, d;
	struct span in, rest, path;
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++)
		o.paths.n += wire_path_encode(paths + o.paths.n, want[i].flags, text_span(want[i].path));
	in = check_golden("open-filters", f, wire_open_encode(f, &o));
	assert_int_equal(wire_open_decode(&d, in, NULL), 0);
	assert_true(d.min_bytes == 100 && d.max_bytes == 1000000 && d.newer_s == 0x65000000 && d.older_s == 0x66000000);
	assert_int_equal(d.max_depth, 3);
	assert_true(d.fsync == WIRE_FSYNC_FILE && d.congestion == WIRE_CC_BBR && d.flags == o.flags);
	assert_int_equal(d.preserve, o.preserve);
	for (rest = d.paths, i = 0; i < 3; i++) {
		assert_true(wire_path_next(&rest, &flags, &path));
		assert_int_equal(flags, want[i].flags);
		assert_span(path, want[i].path);
	}
	drop(in);
}

static void deletions_golden(void **state)
{
	uint8_t f[SAMPLE_MAX_BYTES], paths[64];
	struct wire_open o = { .role = WIRE_ACCEPTOR_RECEIVES, .flags = WIRE_OPEN_VERIFY | WIRE_OPEN_DELETE,
		.streams = 1, .n_paths = 2, .paths = { paths, 0 }, .max_delete = 1000 }, d;
	const struct wire_deleted w = { { (const uint8_t *)"a/\xff", 3 } };
	struct wire_deleted gone;
	struct span in;

	(void)state;
	o.paths.n = wire_path_encode(paths, 0, text_span("a"));
	o.paths.n += wire_path_encode(paths + o.paths.n, WIRE_PATH_RULE, text_span("- *.o"));
	in = check_golden("open-delete", f, wire_open_encode(f, &o));
	assert_int_equal(wire_open_decode(&d, in, NULL), 0);
	assert_true(d.max_delete == 1000 && d.flags == o.flags && d.n_paths == 2);
	drop(in);
	in = check_golden("deleted", f, wire_deleted_encode(f, &w));
	assert_int_equal(wire_deleted_decode(&gone, in, NULL), 0);
	assert_span(gone.path, "a/\xff");
	drop(in);
}

static void open_rules(void **state)
{
	static const struct patch cases[] = {
		{ "no role", "open-put", 0, "00", false },
		{ "unknown role", "open-put", 0, "05", false },
		{ "unknown role", "open-drop", 0, "05", false },
		{ "a flag where the acceptor generates", "open-flood", 4, "00000001", false },
		{ "SPOOLED where the acceptor generates", "open-flood", 4, "00000800", false },
		{ "SPOOLED where the acceptor discards", "open-drop", 4, "00000800", false },
		{ "a destination of what is flooded", "open-put", 0, "04", false },
		{ "a destination of what is dropped", "open-put", 0, "03", false },
		{ "sources of what is dropped", "open-get", 0, "03", false },
		{ "no destination", "open-drop", 0, "01", false },
		{ "no source", "open-drop", 0, "02", false },
		{ "a flag where there is nothing", "open-drop", 4, "00000001", false },
		{ "any cipher is the engine's to judge", "open-put", 1, "ff", true },
		{ "last congestion control", "open-put", 2, "0006", true },
		{ "unknown congestion control", "open-put", 2, "0007", false },
		{ "last way to sync", "open-put", 2, "0200", true },
		{ "unknown way to sync", "open-put", 2, "0300", false },
		{ "further flags", "open-put", 4, "000008c7", true },
		{ "no flag", "open-put", 4, "00000000", true },
		{ "last flag", "open-put", 4, "40000000", true },
		{ "unknown flag", "open-put", 4, "80000000", false },
		{ "zero streams", "open-put", 8, "0000", false },
		{ "most streams", "open-put", 8, "ffff", true },
		{ "no paths", "open-put", 10, "0000", false },
		{ "more paths than there are", "open-put", 10, "0002", false },
		{ "more paths than there are", "open-get", 10, "0004", false },
		{ "fewer paths than there are", "open-get", 10, "0002", false },
		{ "the longest wait", "open-put", 12, "ffffffff", true },
		{ "no compression", "open-put", 60, "00", true },
		{ "highest level", "open-put", 60, "13", true },
		{ "no such level", "open-put", 60, "14", false },
		{ "no such level", "open-put", 60, "fe", false },
		{ "compression of what is dropped", "open-drop", 60, "01", false },
		{ "compression of what is flooded", "open-flood", 60, "ff", false },
		{ "all attributes", "open-put", 61, "007f", true },
		{ "an unknown attribute", "open-put", 61, "0080", false },
		{ "attributes of what is dropped", "open-drop", 61, "0001", false },
		{ "the largest window of times", "open-put", 63, "ffffffff", true },
		{ "a window of times of what is dropped", "open-drop", 63, "00000001", false },
		{ "contents of the destination", "open-put", 67, "01", false },
		{ "unknown path flag", "open-get", 67, "08", false },
		{ "two flags of a path", "open-get", 67, "03", false },
		{ "two flags of a path", "open-filters", 67, "06", false },
		{ "rule for a destination", "open-put", 67, "02", false },
		{ "rule for a destination", "open-put", 67, "04", false },
		{ "empty rule", "open-get", 71, "02", false },
		{ "rules alone", "open-filters", 75, "02", false },
		{ "sources alone", "open-filters", 67, "00", true },
		{ "NUL in a rule", "open-filters", 70, "00", false },
		{ "unknown path flag", "open-get", 71, "80", false },
		{ "path longer than the frame", "open-put", 68, "0008", false },
		{ "path shorter than the frame", "open-put", 68, "0006", false },
		{ "NUL in a path", "open-put", 70, "00", false },
		{ "NUL at the end of a path", "open-put", 76, "00", false },
		{ "NUL in a later path", "open-get", 77, "00", false },
		{ "paths are confined when opened, not here", "open-put", 70, "2e2e2f2e2e2f78", true },
		{ "destinations", "open-get", 0, "01", false },
		{ "a rule without DELETE", "open-delete", 4, "00000001", false },
		{ "a limit without DELETE", "open-put", 16, "00000001", false },
		{ "the largest stripe", "open-put", 20, "00040000", true },
		{ "too large a stripe", "open-put", 20, "00040001", false },
		{ "DELETE of nothing", "open-delete", 16, "00000000", true },
		{ "two destinations with DELETE", "open-delete", 71, "00", false },
		{ "no destination with DELETE", "open-delete", 67, "02", false },
		{ "DELETE where the acceptor sends", "open-delete", 0, "02", true },
		{ "DELETE in a measurement", "open-drop", 4, "00040000", false },
	};
	static const struct payload whole[] = {
		{ "the root as destination", WIRE_OPEN,
		    "01 00 0000 00000000 0001 0001 00000000 00000000 00000000"
		    " 0000000000000000 0000000000000000 0000000000000000 0000000000000000 00000000 00 0000"
		    " 00000000 00 0000", true },
		{ "two destinations", WIRE_OPEN,
		    "01 00 0000 00000000 0001 0002 00000000 00000000 00000000"
		    " 0000000000000000 0000000000000000 0000000000000000 0000000000000000 00000000 00 0000"
		    " 00000000 00 0001 61 00 0001 62", false },
		{ "a destination and its backups", WIRE_OPEN,
		    "01 00 0000 00000000 0001 0003 00000000 00000000 00000000"
		    " 0000000000000000 0000000000000000 0000000000000000 0000000000000000 00000000 00 0000"
		    " 00000000 00 0001 61 08 0001 62 10 0001 7e", true },
		{ "two directories of backups", WIRE_OPEN,
		    "01 00 0000 00000000 0001 0003 00000000 00000000 00000000"
		    " 0000000000000000 0000000000000000 0000000000000000 0000000000000000 00000000 00 0000"
		    " 00000000 00 0001 61 08 0001 62 08 0001 63", false },
		{ "two older copies", WIRE_OPEN,
		    "01 00 0000 00000000 0001 0003 00000000 00000000 00000000"
		    " 0000000000000000 0000000000000000 0000000000000000 0000000000000000 00000000 00 0000"
		    " 00000000 00 0001 61 18 0001 62 18 0001 63", true },
		{ "an older copy to compare with", WIRE_OPEN,
		    "01 00 0000 00000000 0001 0002 00000000 00000000 00000000"
		    " 0000000000000000 0000000000000000 0000000000000000 0000000000000000 00000000 00 0000"
		    " 00000000 00 0001 61 20 0001 62", true },
		{ "an older copy to copy from", WIRE_OPEN,
		    "01 00 0000 00000000 0001 0002 00000000 00000000 00000000"
		    " 0000000000000000 0000000000000000 0000000000000000 0000000000000000 00000000 00 0000"
		    " 00000000 00 0001 61 28 0001 62", true },
		{ "older copies of two kinds", WIRE_OPEN,
		    "01 00 0000 00000000 0001 0003 00000000 00000000 00000000"
		    " 0000000000000000 0000000000000000 0000000000000000 0000000000000000 00000000 00 0000"
		    " 00000000 00 0001 61 18 0001 62 20 0001 63", false },
		{ "an empty older copy", WIRE_OPEN,
		    "01 00 0000 00000000 0001 0002 00000000 00000000 00000000"
		    " 0000000000000000 0000000000000000 0000000000000000 0000000000000000 00000000 00 0000"
		    " 00000000 00 0001 61 18 0000", false },
		{ "older copies of a sender", WIRE_OPEN,
		    "02 00 0000 00000000 0001 0002 00000000 00000000 00000000"
		    " 0000000000000000 0000000000000000 0000000000000000 0000000000000000 00000000 00 0000"
		    " 00000000 00 0001 61 28 0001 62", false },
		{ "two suffixes", WIRE_OPEN,
		    "01 00 0000 00000000 0001 0003 00000000 00000000 00000000"
		    " 0000000000000000 0000000000000000 0000000000000000 0000000000000000 00000000 00 0000"
		    " 00000000 00 0001 61 10 0001 7e 10 0001 7e", false },
		{ "an empty directory of backups", WIRE_OPEN,
		    "01 00 0000 00000000 0001 0002 00000000 00000000 00000000"
		    " 0000000000000000 0000000000000000 0000000000000000 0000000000000000 00000000 00 0000"
		    " 00000000 00 0001 61 08 0000", false },
		{ "a suffix with a slash", WIRE_OPEN,
		    "01 00 0000 00000000 0001 0002 00000000 00000000 00000000"
		    " 0000000000000000 0000000000000000 0000000000000000 0000000000000000 00000000 00 0000"
		    " 00000000 00 0001 61 10 0002 2f62", false },
		{ "an unknown kind of path", WIRE_OPEN,
		    "01 00 0000 00000000 0001 0002 00000000 00000000 00000000"
		    " 0000000000000000 0000000000000000 0000000000000000 0000000000000000 00000000 00 0000"
		    " 00000000 00 0001 61 38 0001 62", false },
		{ "backups of a sender", WIRE_OPEN,
		    "02 00 0000 00000000 0001 0002 00000000 00000000 00000000"
		    " 0000000000000000 0000000000000000 0000000000000000 0000000000000000 00000000 00 0000"
		    " 00000000 00 0001 61 08 0001 62", false },
		{ "no bytes", WIRE_OPEN, "", false },
	};

	(void)state;
	CHECK(cases, check_patches);
	CHECK(whole, check_payloads);
}

/* n_paths paths of `each` bytes but for the last, which fills the frame to `total`. */
static int try_open(unsigned n_paths, size_t each, size_t total, bool *same)
{
	static uint8_t f[WIRE_HEADER_BYTES + WIRE_CONTROL_MAX], paths[2 * WIRE_CONTROL_MAX];
	static uint8_t text[WIRE_CONTROL_MAX];
	struct wire_open o = { WIRE_ACCEPTOR_SENDS, 0, 0, 0, 0, 1, (uint16_t)n_paths, { paths, 0 }, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0 };
	size_t n = 0, i;

	memset(text, 'p', sizeof text);
	for (i = 0; i < n_paths; i++) {
		size_t len = i + 1 < n_paths || total == 0 ? each : total - 67 - n - 3;

		/* Not wire_path_encode(), which refuses what the decoder shall refuse. */
		paths[n] = 0;
		put_u16(paths + n + 1, (uint16_t)len);
		memcpy(paths + n + 3, text, len);
		n += 3 + len;
	}
	o.paths.n = n;
	if (o.n_paths > WIRE_PATHS_MAX) {
		o.n_paths = WIRE_PATHS_MAX;
		n = wire_open_encode(f, &o);
		put_u16(f + WIRE_HEADER_BYTES + 10, (uint16_t)n_paths);
	} else {
		n = wire_open_encode(f, &o);
	}
	if (recode_exact(f, n, same) == 0 && n > WIRE_CONTROL_MAX)
		check_frame("largest OPEN", f, n);
	return recode_exact(f, n, same);
}

static void open_largest(void **state)
{
	bool same;

	(void)state;
	assert_int_equal(try_open(1, WIRE_PATH_MAX, 0, &same), 0);
	assert_true(same);
	assert_int_equal(try_open(1, WIRE_PATH_MAX + 1, 0, &same), PTCP_EPROTO);
	assert_int_equal(try_open(WIRE_PATHS_MAX, 0, 0, &same), 0);
	assert_true(same);
	assert_int_equal(try_open(WIRE_PATHS_MAX, 60, 0, &same), 0);
	assert_int_equal(try_open(WIRE_PATHS_MAX + 1, 0, 0, &same), PTCP_EPROTO);
	assert_int_equal(try_open(16, 4093, WIRE_CONTROL_MAX, &same), 0);
	assert_true(same);
}

/* ---- OPENED ---- */

static void opened_golden(void **state)
{
	struct wire_opened o = { { 0 }, 0, 4, 0, 0 }, d;
	uint8_t f[WIRE_OPENED_MAX_BYTES];
	struct span in;

	(void)state;
	memcpy(o.session, session, sizeof session);
	in = check_golden("opened", f, wire_opened_encode(f, &o));
	assert_int_equal(wire_opened_decode(&d, in, NULL), 0);
	assert_memory_equal(d.session, session, sizeof session);
	assert_int_equal(d.cipher, 0);
	assert_int_equal(d.streams, 4);
	assert_int_equal(d.flags, 0);
	drop(in);

	o.cipher = 3;
	o.streams = 128;
	o.flags = WIRE_OPENED_EXPANDED | WIRE_OPENED_MOVERS;
	o.stripe = 0x18000;
	in = check_golden("opened-movers", f, wire_opened_encode(f, &o));
	assert_int_equal(wire_opened_decode(&d, in, NULL), 0);
	assert_int_equal(d.cipher, 3);
	assert_int_equal(d.streams, 128);
	assert_int_equal(d.flags, o.flags);
	assert_int_equal(d.stripe, o.stripe);
	drop(in);
}

static void endpoint(void **state)
{
	struct wire_endpoint o = { 9, { 0 }, 7811, text_span("192.0.2.1") }, d;
	uint8_t f[WIRE_ENDPOINT_MAX_BYTES];
	struct span in;
	unsigned i;

	(void)state;
	for (i = 0; i < 32; i++)
		o.peer[i] = (uint8_t)(0x40 + i);
	in = check_golden("endpoint", f, wire_endpoint_encode(f, &o));
	assert_int_equal(wire_endpoint_decode(&d, in, NULL), 0);
	assert_int_equal(d.id, 9);
	assert_memory_equal(d.peer, o.peer, sizeof o.peer);
	assert_int_equal(d.port, 7811);
	assert_span(d.host, "192.0.2.1");
	drop(in);
	o.port = 0;
	o.host = (struct span){ NULL, 0 };
	drop(check_golden("endpoint-gone", f, wire_endpoint_encode(f, &o)));
}

static void opened_rules(void **state)
{
	static const struct patch cases[] = {
		{ "zero streams", "opened", 17, "0000", false },
		{ "a flag that is none", "opened", 19, "04", false },
		{ "the largest stripe", "opened", 20, "00040000", true },
		{ "too large a stripe", "opened", 20, "00040001", false },
		{ "port 0 with a host", "endpoint", 36, "0000", false },
		{ "last port", "endpoint", 36, "ffff", true },
		{ "a port without a host", "endpoint-gone", 36, "0001", false },
		{ "host longer than the frame", "endpoint", 38, "0a", false },
		{ "host shorter than the frame", "endpoint", 38, "08", false },
		{ "NUL in a host", "endpoint", 41, "00", false },
		{ "space in a host", "endpoint", 41, "20", false },
		{ "escape in a host", "endpoint", 41, "1b", false },
	};

	(void)state;
	CHECK(cases, check_patches);
}

/* ---- ERROR, PING, JOIN, JOINED ---- */

static void error_golden(void **state)
{
	const struct wire_error w = { { 5, 2, text_span("not you, x") } };
	char text[WIRE_TEXT_MAX + 1];
	struct wire_error large = { { UINT16_MAX, UINT8_MAX, { (const uint8_t *)text, WIRE_TEXT_MAX } } }, d;
	uint8_t f[WIRE_ERROR_MAX_BYTES + 1];
	struct span in = check_golden("error", f, wire_error_encode(f, &w));
	bool same;

	(void)state;
	assert_int_equal(wire_error_decode(&d, in, NULL), 0);
	assert_int_equal(d.why.code, 5);
	assert_int_equal(d.why.cause, 2);
	assert_span(d.why.text, "not you, x");
	drop(in);

	memset(text, 0xff, sizeof text);
	assert_int_equal(wire_error_encode(f, &large), WIRE_ERROR_MAX_BYTES);
	check_frame("largest ERROR", f, WIRE_ERROR_MAX_BYTES);
	put_u16(f + WIRE_HEADER_BYTES + 3, WIRE_TEXT_MAX + 1);
	f[WIRE_ERROR_MAX_BYTES] = 'x';
	set_length(f, sizeof f);
	assert_int_equal(recode_exact(f, sizeof f, &same), PTCP_EPROTO);
}

static void ping_golden(void **state)
{
	static const struct patch cases[] = {
		{ "idle", "ping", 0, "00", true },
		{ "verifying", "ping", 0, "04", true },
		{ "unknown work", "ping", 0, "05", false },
		{ "any tick", "ping", 1, "ffffffffffffffff", true },
	};
	const struct wire_ping w = { WIRE_SYNCING, 0x0102030405060708 };
	struct wire_ping d;
	uint8_t f[WIRE_PING_MAX_BYTES];
	struct span in = check_golden("ping", f, wire_ping_encode(f, &w));

	(void)state;
	assert_int_equal(wire_ping_decode(&d, in, NULL), 0);
	assert_int_equal(d.busy, WIRE_SYNCING);
	assert_int_equal(d.tick, w.tick);
	drop(in);
	CHECK(cases, check_patches);
}

static void set_streams_golden(void **state)
{
	const struct wire_set_streams w = { 12, 0x0102030405060708 };
	struct wire_set_streams d;
	uint8_t f[WIRE_SET_STREAMS_MAX_BYTES];
	struct span in = check_golden("set-streams", f, wire_set_streams_encode(f, &w));

	(void)state;
	assert_int_equal(wire_set_streams_decode(&d, in, NULL), 0);
	assert_int_equal(d.streams, 12);
	assert_int_equal(d.bytes, w.bytes);
	drop(in);
}

static void tcp_report_golden(void **state)
{
	static const struct patch cases[] = {
		{ "a name that is not there", "tcp-report", 40, "06", false },
		{ "bytes left over", "tcp-report", 40, "04", false },
		{ "space in a name", "tcp-report", 41, "20", false },
		{ "escape in a name", "tcp-report", 42, "1b", false },
		{ "any time", "tcp-report", 0, "ffffffffffffffff", true },
		{ "a stream that is not there", "tcp-report", 46, "03", false },
		{ "a stream less", "tcp-report", 46, "01", false },
		{ "any RTT", "tcp-report", 47, "ffffffff", true },
	};
	static const struct payload whole[] = {
		{ "no name", WIRE_TCP_REPORT, "0000000000000000 0000000000000000 0000000000000000 0000000000000000"
		    " 0000000000000000 00 00", true },
		{ "too long a name", WIRE_TCP_REPORT, "0000000000000000 0000000000000000 0000000000000000 "
		    "0000000000000000 0000000000000000 10 61616161616161616161616161616161 00", false },
	};
	const struct wire_tcp_report w = { 1000000, 800000, 1, 2, 3, text_span("cubic"), 2, { 40000 },
		{ 20000 }, { 100 },
		{ 3 }, { 1 } };
	struct wire_tcp_report d, large;
	uint8_t f[WIRE_TCP_REPORT_MAX_BYTES];
	struct span in = check_golden("tcp-report", f, wire_tcp_report_encode(f, &w));

	(void)state;
	assert_int_equal(wire_tcp_report_decode(&d, in, NULL), 0);
	assert_true(d.elapsed_us == 1000000 && d.busy_us == 800000 && d.window_us == 1 && d.buffer_us == 2);
	assert_int_equal(d.retransmits, 3);
	assert_span(d.congestion, "cubic");
	assert_true(d.m == 2 && d.rtt_us[0] == 40000 && d.min_rtt_us[0] == 20000 && d.segments[0] == 100);
	assert_true(d.lost[0] == 3 && d.events[0] == 1 && d.rtt_us[1] == 0);
	drop(in);
	CHECK(cases, check_patches);
	CHECK(whole, check_payloads);
	memset(&large, 0xff, sizeof large);
	large.congestion = text_span("fifteen-letters");
	large.m = WIRE_REPORT_STREAMS_MAX;
	assert_int_equal(wire_tcp_report_encode(f, &large), sizeof f);
	check_frame("largest TCP_REPORT", f, sizeof f);
}

static void rate_golden(void **state)
{
	static const struct patch cases[] = {
		{ "any rate of all", "rate", 0, "ffffffffffffffff", true },
		{ "one rate more than there are", "rate", 8, "03", false },
		{ "one rate less", "rate", 8, "01", false },
		{ "a rate of nothing", "rate", 10, "0000000000000000", false },
		{ "the lowest rate", "rate", 10, "0000000000000001", true },
		{ "a rate that was not given", "rate", 26, "03", false },
		{ "all of the second", "rate", 26, "02020202", true },
		{ "the last stream without", "rate", 29, "00", false },
	};
	static const struct payload whole[] = {
		{ "rates without streams", WIRE_RATE, "0000000000000000 01 00 0000000000000001", true },
		{ "a stream without rates", WIRE_RATE, "0000000000000000 00 01 01", false },
		{ "too many rates", WIRE_RATE, "0000000000000000 11 00"
		    " 0000000000000001 0000000000000001 0000000000000001 0000000000000001 0000000000000001"
		    " 0000000000000001 0000000000000001 0000000000000001 0000000000000001 0000000000000001"
		    " 0000000000000001 0000000000000001 0000000000000001 0000000000000001 0000000000000001"
		    " 0000000000000001 0000000000000001", false },
		{ "too many streams", WIRE_RATE, "0000000000000000 00 81", false },
	};
	const struct wire_rate w = { 40000000, 2, 4, { 20000000, WIRE_RATE_IDLE }, { 1, 2, 0, 1 } };
	struct wire_rate d, large;
	uint8_t f[WIRE_RATE_MAX_BYTES];
	struct span in = check_golden("rate", f, wire_rate_encode(f, &w));

	(void)state;
	assert_int_equal(wire_rate_decode(&d, in, NULL), 0);
	assert_true(d.all_bps == w.all_bps && d.n == w.n && d.m == w.m);
	assert_memory_equal(d.bps, w.bps, sizeof d.bps);
	assert_memory_equal(d.of, w.of, sizeof d.of);
	drop(in);
	CHECK(cases, check_patches);
	CHECK(whole, check_payloads);
	memset(&large, 0xff, sizeof large);
	large.n = WIRE_RATES_MAX;
	large.m = WIRE_RATE_STREAMS_MAX;
	memset(large.of, WIRE_RATES_MAX, sizeof large.of);
	assert_int_equal(wire_rate_encode(f, &large), sizeof f);
	check_frame("largest RATE", f, sizeof f);
}

static void load_golden(void **state)
{
	static const struct patch cases[] = {
		{ "always busy", "load", 0, "03e8", true },
		{ "busier than that", "load", 0, "03e9", false },
		{ "never", "load", 0, "00000000", true },
		{ "more of the disk than there is", "load", 2, "03e9", false },
	};
	const struct wire_load w = { 950, 1000 };
	struct wire_load d;
	uint8_t f[WIRE_LOAD_MAX_BYTES];
	struct span in = check_golden("load", f, wire_load_encode(f, &w));

	(void)state;
	assert_int_equal(wire_load_decode(&d, in, NULL), 0);
	assert_true(d.busy_permille == 950 && d.disk_permille == 1000);
	drop(in);
	CHECK(cases, check_patches);
}

static void waiting_golden(void **state)
{
	const struct wire_waiting w = { 14 };
	struct wire_waiting d;
	uint8_t f[WIRE_WAITING_MAX_BYTES];
	struct span in = check_golden("waiting", f, wire_waiting_encode(f, &w));

	(void)state;
	assert_int_equal(wire_waiting_decode(&d, in, NULL), 0);
	assert_int_equal(d.ahead, 14);
	drop(in);
}

static void select_golden(void **state)
{
	static const struct payload cases[] = {
		{ "nothing selected", WIRE_SELECT, "01 0000", true },
		{ "more follow", WIRE_SELECT, "00 0001 6100", true },
		{ "neither final nor not", WIRE_SELECT, "02 0001 6100", false },
		{ "no bytes", WIRE_SELECT, "", false },
		{ "a path without its end", WIRE_SELECT, "00 0001 6100 62", false },
		{ "more paths than there are", WIRE_SELECT, "00 0002 6100", false },
		{ "fewer paths than there are", WIRE_SELECT, "00 0001 6100 6200", false },
		{ "an empty path", WIRE_SELECT, "00 0001 00", false },
		{ "an empty path in between", WIRE_SELECT, "00 0003 6100 00 6200", false },
	};
	const struct wire_select w = { 1, 2, { (const uint8_t *)"a/b\0.\xff ", 8 } };
	struct wire_select d;
	uint8_t f[SAMPLE_MAX_BYTES];
	struct span in = check_golden("select", f, wire_select_encode(f, &w));

	(void)state;
	assert_int_equal(wire_select_decode(&d, in, NULL), 0);
	assert_true(d.final == 1 && d.n_paths == 2 && d.paths.n == 8 && memcmp(d.paths.p, w.paths.p, 8) == 0);
	drop(in);
	CHECK(cases, check_payloads);
}

static void join_golden(void **state)
{
	struct wire_join w = { { 0 }, 7, { 0 } }, d;
	uint8_t f[WIRE_JOIN_MAX_BYTES];
	struct span in;
	unsigned i;

	(void)state;
	memcpy(w.session, session, sizeof session);
	for (i = 0; i < sizeof w.mac; i++)
		w.mac[i] = (uint8_t)(0xc0 + i);
	in = check_golden("join", f, wire_join_encode(f, &w));
	assert_int_equal(wire_join_decode(&d, in, NULL), 0);
	assert_memory_equal(d.session, session, sizeof session);
	assert_int_equal(d.stream, 7);
	assert_memory_equal(d.mac, w.mac, sizeof w.mac);
	drop(in);
	memset(&w, 0xff, sizeof w);
	assert_int_equal(wire_join_encode(f, &w), sizeof f);
	check_frame("largest JOIN", f, sizeof f);
}

static void joined_golden(void **state)
{
	static const struct payload cases[] = {
		{ "a byte in JOINED", WIRE_JOINED, "00", false },
		{ "nothing in JOINED", WIRE_JOINED, "", true },
	};
	uint8_t f[WIRE_JOINED_MAX_BYTES];
	struct span in = check_golden("joined", f, wire_joined_encode(f));

	(void)state;
	assert_int_equal(wire_joined_decode(in, NULL), 0);
	drop(in);
	CHECK(cases, check_payloads);
}

static void control_ack_golden(void **state)
{
	const struct wire_control_ack w = { 0x0102030405060708 };
	struct wire_control_ack d;
	uint8_t f[WIRE_CONTROL_ACK_MAX_BYTES];
	struct span in = check_golden("control-ack", f, wire_control_ack_encode(f, &w));

	(void)state;
	assert_int_equal(wire_control_ack_decode(&d, in, NULL), 0);
	assert_int_equal(d.bytes, w.bytes);
	drop(in);
}

static void route_golden(void **state)
{
	static const struct patch cases[] = {
		{ "port 0", "route", 0, "0000", false },
		{ "no host", "route", 2, "00", false },
		{ "a shorter host", "route", 2, "0a", false },
		{ "a space in it", "route", 3, "20", false },
		{ "a NUL in it", "route", 3, "00", false },
		{ "no ASCII", "route", 3, "c3", false },
		{ "the last of ASCII", "route", 3, "7e", true },
		{ "highest port", "route", 0, "ffff", true },
		{ "no spool", "route-spool", 14, "0000000000000000", true },
		{ "a spool of a byte", "route-spool", 14, "0000000000000001", true },
		{ "the largest spool", "route-spool", 14, "ffffffffffffffff", true },
		{ "a longer host, which takes a byte of the spool", "route-spool", 2, "0c", false },
		{ "the highest session", "route-control", 22, "ffffffffffffffff", true },
		{ "a control connection of no session", "route-control", 22, "0000000000000000", false },
		{ "neither control nor data connection", "route-control", 30, "02", false },
	};
	static const struct payload answers[] = {
		{ "a byte in ROUTED", WIRE_ROUTED, "00", false },
		{ "nothing in ROUTED", WIRE_ROUTED, "", true },
	};
	const struct wire_route w = { .port = 7811, .host = text_span("r.example-1") };
	uint8_t f[WIRE_ROUTE_MAX_BYTES], longest[255];
	const struct wire_route holds = { 7811, text_span("r.example-1"), 0x100000000, 0x123456789abcdef0, 0 };
	const struct wire_route control = { 7811, text_span("r.example-1"), 0, 0x123456789abcdef0, 1 };
	struct wire_route large = { 1, { longest, sizeof longest }, UINT64_MAX, UINT64_MAX, 1 }, d;
	struct span in = check_golden("route", f, wire_route_encode(f, &w));

	(void)state;
	assert_int_equal(wire_route_decode(&d, in, NULL), 0);
	assert_int_equal(d.port, 7811);
	assert_span(d.host, "r.example-1");
	assert_int_equal(d.spool_bytes, 0);
	drop(in);
	in = check_golden("route-spool", f, wire_route_encode(f, &holds));
	assert_int_equal(wire_route_decode(&d, in, NULL), 0);
	assert_span(d.host, "r.example-1");
	assert_int_equal(d.spool_bytes, 0x100000000);
	assert_true(d.session == 0x123456789abcdef0 && d.control == 0);
	drop(in);
	in = check_golden("route-control", f, wire_route_encode(f, &control));
	assert_int_equal(wire_route_decode(&d, in, NULL), 0);
	assert_true(d.session == 0x123456789abcdef0 && d.control == 1);
	drop(in);
	memset(longest, 'h', sizeof longest);
	assert_int_equal(wire_route_encode(f, &large), WIRE_ROUTE_MAX_BYTES);
	check_frame("largest ROUTE", f, WIRE_ROUTE_MAX_BYTES);
	CHECK(cases, check_patches);
	in = check_golden("routed", f, wire_routed_encode(f));
	assert_int_equal(wire_routed_decode(in, NULL), 0);
	drop(in);
	CHECK(answers, check_payloads);
}

/* A refusal says which frame it was and leaves the result alone. */
static void refusals(void **state)
{
	struct wire_join join, join_was;
	struct wire_opened opened, opened_was;
	struct ptcp_err e;

	(void)state;
	memset(&join, 0x77, sizeof join);
	join_was = join;
	assert_int_equal(wire_join_decode(&join, (struct span){ NULL, 0 }, &e), PTCP_EPROTO);
	assert_memory_equal(&join, &join_was, sizeof join);
	assert_int_equal(e.code, PTCP_EPROTO);
	assert_non_null(strstr(e.msg, "JOIN"));
	memset(&opened, 0x77, sizeof opened);
	opened_was = opened;
	assert_int_equal(wire_opened_decode(&opened, (struct span){ session, 16 }, &e), PTCP_EPROTO);
	assert_memory_equal(&opened, &opened_was, sizeof opened);
	assert_non_null(strstr(e.msg, "OPENED"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hello_golden),
		cmocka_unit_test(hello_largest),
		cmocka_unit_test(hello_rules),
		cmocka_unit_test(hello_of_a_later_version),
		cmocka_unit_test(open_golden),
		cmocka_unit_test(open_drop_golden),
		cmocka_unit_test(open_flood_golden),
		cmocka_unit_test(filters_golden), cmocka_unit_test(deletions_golden),
		cmocka_unit_test(open_rules),
		cmocka_unit_test(open_largest),
		cmocka_unit_test(opened_golden),
		cmocka_unit_test(endpoint), cmocka_unit_test(opened_rules),
		
		cmocka_unit_test(error_golden),
		cmocka_unit_test(ping_golden),
		cmocka_unit_test(set_streams_golden),
		cmocka_unit_test(tcp_report_golden),
		cmocka_unit_test(rate_golden),
		cmocka_unit_test(load_golden),
		cmocka_unit_test(waiting_golden), cmocka_unit_test(select_golden),
		cmocka_unit_test(join_golden),
		cmocka_unit_test(joined_golden),
		cmocka_unit_test(control_ack_golden),
		cmocka_unit_test(route_golden),
		cmocka_unit_test(refusals),
	};
	return cmocka_run_group_tests_name("wire/handshake_frames", tests, NULL, NULL);
}
