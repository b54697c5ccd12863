/* against: arithmetic */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "check.h"

#define CHECK(cases, check) check(cases, sizeof cases / sizeof *cases)
#define ID UINT64_C(0x10002)

static const struct digest digest = { 0x1122334455667788, 0x99aabbccddeeff00 };

/* ---- ENTRY ---- */

static void entry_golden(void **state)
{
	static const struct {
		const char *sample;
		struct wire_entry f;
		const char *name, *target, *attrs;
		size_t n_attrs;
	} cases[] = {
		{ "entry-dir", { .type = WIRE_DIR, .id = 0x10000, .mtime_s = 1700000000,
		    .mtime_ns = 999999999, .mode = 0755 }, "run7", "", "", 0 },
		{ "entry-file", { .type = WIRE_FILE, .id = 0x20001, .parent = 0x10000,
		    .size_bytes = 5000000000, .mtime_s = -1, .mode = 07777 },
		    "n\n\xfe", "", "\x01\x01\0\x02hi", 6 },
		{ "entry-empty", { .type = WIRE_FILE, .id = 0x103fff, .mtime_ns = 1 }, "0", "", "", 0 },
		{ "entry-symlink", { .type = WIRE_SYMLINK, .id = 0x20002, .parent = 0x10000,
		    .mtime_s = 1, .mtime_ns = 2, .mode = 0777 }, "link", "../..", "", 0 },
		{ "entry-hardlink", { .type = WIRE_HARDLINK, .id = 0x30001, .parent = 0x10000,
		    .mtime_s = 1, .mtime_ns = 2, .mode = 0644 }, "other", "", "\0\x03\0\x08\0\0\0\0\0\x02\0\x01", 12 },
		{ "entry-dir-end", { .type = WIRE_DIR_END, .id = 0x10000, .mtime_s = 1700000000,
		    .mtime_ns = 999999999, .mode = 0755 }, "", "", "", 0 },
	};
	uint8_t out[WIRE_ENTRY_BYTES(12)];
	struct wire_entry f, d;
	struct span in;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		f = cases[i].f;
		f.name = text_span(cases[i].name);
		f.target = text_span(cases[i].target);
		f.attrs = (struct span){ (const uint8_t *)cases[i].attrs, cases[i].n_attrs };
		in = check_golden(cases[i].sample, out, wire_entry_encode(out, &f));
		memset(&d, 0x77, sizeof d);
		assert_int_equal(wire_entry_decode(&d, in, NULL), 0);
		assert_int_equal(d.type, f.type);
		assert_int_equal(d.id, f.id);
		assert_int_equal(d.parent, f.parent);
		assert_int_equal(d.size_bytes, f.size_bytes);
		assert_true(d.mtime_s == f.mtime_s);
		assert_int_equal(d.mtime_ns, f.mtime_ns);
		assert_int_equal(d.mode, f.mode);
		assert_span(d.name, cases[i].name);
		assert_span(d.target, cases[i].target);
		assert_int_equal(d.attrs.n, f.attrs.n);
		assert_memory_equal(d.attrs.p, f.attrs.p, f.attrs.n);
		drop(in);
	}
}

/* Offsets: type 0, id 1, parent 9, size 17, mtime 25, ns 33, mode 37, lengths 41 43 45, name 49. */
static void entry_rules(void **state)
{
	static const struct patch cases[] = {
		{ "no type", "entry-file", 0, "00", false },
		{ "unknown type", "entry-file", 0, "06", false },
		{ "unknown type", "entry-file", 0, "ff", false },
		{ "id 0", "entry-file", 1, "0000000000000000", false },
		{ "id without a count", "entry-file", 1, "0000000000000001", false },
		{ "slot out of range", "entry-file", 1, "0000000000024000", false },
		{ "slot out of range", "entry-file", 1, "000000000002ffff", false },
		{ "last slot", "entry-file", 1, "0000000000023fff", true },
		{ "largest id", "entry-file", 1, "ffffffffffff3fff", true },
		{ "in the destination", "entry-file", 9, "0000000000000000", true },
		{ "parent without a count", "entry-file", 9, "0000000000000003", false },
		{ "parent's slot out of range", "entry-file", 9, "0000000000014000", false },
		{ "in itself", "entry-file", 9, "0000000000020001", false },
		{ "largest file", "entry-file", 17, "0001000000000000", true },
		{ "larger than the largest file", "entry-file", 17, "0001000000000001", false },
		{ "larger than the largest file", "entry-file", 17, "ffffffffffffffff", false },
		{ "earliest time", "entry-file", 25, "8000000000000000", true },
		{ "latest time", "entry-file", 25, "7fffffffffffffff 3b9ac9ff", true },
		{ "a second of nanoseconds", "entry-file", 33, "3b9aca00", false },
		{ "most nanoseconds", "entry-file", 33, "ffffffff", false },
		{ "mode over 07777", "entry-file", 37, "00001000", false },
		{ "mode of a regular file", "entry-file", 37, "000081a4", false },
		{ "name longer than the frame", "entry-file", 41, "00ff", false },
		{ "name and target of the right sum", "entry-file", 41, "0002 0001", false },
		{ "no name", "entry-empty", 41, "0000", false },
		{ "target longer than the frame", "entry-file", 43, "ffff", false },
		{ "attributes longer than the frame", "entry-file", 45, "00000007", false },
		{ "attributes shorter than the frame", "entry-file", 45, "00000005", false },
		{ "attributes of a length that would wrap", "entry-file", 45, "ffffffff", false },
		{ "'/' in a name", "entry-file", 50, "2f", false },
		{ "NUL in a name", "entry-file", 50, "00", false },
		{ "NUL at the end of a name", "entry-file", 51, "00", false },
		{ "'/' for a name", "entry-empty", 49, "2f", false },
		{ "'.' for a name", "entry-empty", 49, "2e", false },
		{ "'..' in front of a name", "entry-file", 49, "2e2e", true },
		{ "'...' for a name", "entry-file", 49, "2e2e2e", true },
		{ "unknown attribute", "entry-file", 52, "7fff", true },
		{ "unknown critical attribute", "entry-file", 52, "8000", false },
		{ "unknown critical attribute", "entry-file", 52, "ffff", false },
		{ "attribute longer than the attributes", "entry-file", 54, "0003", false },
		{ "attribute shorter than the attributes", "entry-file", 54, "0001", false },
		{ "empty attribute, then half a tag", "entry-file", 54, "0000 0000", false },
		{ "directory with a size", "entry-dir", 17, "0000000000000001", false },
		{ "directory of a file's shape", "entry-file", 0, "01", false },
		{ "link with a size", "entry-symlink", 17, "0000000000000001", false },
		{ "file with a target", "entry-symlink", 0, "02", false },
		{ "directory with a target", "entry-symlink", 0, "01", false },
		{ "link without a target", "entry-empty", 0, "03", false },
		{ "hard link with a target", "entry-symlink", 0, "05", false },
		{ "hard link to no file", "entry-empty", 0, "05", false },
		{ "NUL in a target", "entry-symlink", 55, "00", false },
		{ "any bytes in a target", "entry-symlink", 53, "2f1bff0a2f", true },
		{ "DIR_END with a name", "entry-empty", 0, "04", false },
		{ "DIR_END with a parent", "entry-dir-end", 9, "0000000000020001", false },
		{ "incomplete DIR_END", "entry-dir-end", 17, "0000000000000001", true },
		{ "DIR_END of content left out", "entry-dir-end", 17, "0000000000000002", true },
		{ "DIR_END with a size", "entry-dir-end", 17, "0000000000000003", false },
		{ "a name alone with a size", "entry-file", 0, "06", false },
		{ "a name alone with a target", "entry-symlink", 0, "06", false },
		{ "a name alone without a name", "entry-dir-end", 0, "06", false },
		{ "DIR_END of nothing", "entry-dir-end", 1, "0000000000000000", false },
		{ "directory without a name", "entry-dir-end", 0, "01", false },
		{ "file without a name", "entry-dir-end", 0, "02", false },
	};
#define FIXED "0000000000010000 0000000000000000 0000000000000000 0000000000000000 00000000 000001a4"
	static const struct payload whole[] = {
		{ "'..' for a name", WIRE_ENTRY, "02" FIXED "0002 0000 00000000 2e2e", false },
		{ "'.' for a directory at the top", WIRE_ENTRY, "01" FIXED "0001 0000 00000000 2e", true },
		{ "'.' for a directory below", WIRE_ENTRY, "01 0000000000010000 0000000000020001 0000000000000000"
		    "0000000000000000 00000000 000001a4 0001 0000 00000000 2e", false },
		{ "'..' for a directory", WIRE_ENTRY, "01" FIXED "0002 0000 00000000 2e2e", false },
		{ "'.' for a link", WIRE_ENTRY, "03" FIXED "0001 0001 00000000 2e 61", false },
		{ "'.a' for a name", WIRE_ENTRY, "02" FIXED "0002 0000 00000000 2e61", true },
		{ "DIR_END with a target", WIRE_ENTRY, "04" FIXED "0000 0001 00000000 61", false },
		{ "empty attribute", WIRE_ENTRY, "02" FIXED "0001 0000 00000004 61 0000 0000", true },
		{ "two attributes", WIRE_ENTRY, "02" FIXED "0001 0000 00000009 61 0101 0001 aa 0102 0000", true },
		{ "a critical attribute behind another", WIRE_ENTRY,
		    "02" FIXED "0001 0000 00000009 61 0101 0001 aa 8002 0000", false },
		{ "half a tag", WIRE_ENTRY, "02" FIXED "0001 0000 00000001 61 00", false },
		{ "a tag without a length", WIRE_ENTRY, "02" FIXED "0001 0000 00000003 61 0101 00", false },
	};

	(void)state;
	CHECK(cases, check_patches);
	CHECK(whole, check_payloads);
}

/* Encodes with contents of these lengths, too long ones by hand; as recode_exact(). */
static int try_entry(uint8_t type, size_t name, size_t target, size_t attrs, bool *same)
{
	static uint8_t f[2 * WIRE_CONTROL_MAX], text[2 * WIRE_CONTROL_MAX];
	const struct wire_entry w = { .type = type, .id = UINT64_C(0xffffffffffff3fff),
		.parent = UINT64_C(0xfffffffffffe3fff), .size_bytes = type == WIRE_FILE ? WIRE_FILE_MAX : 0,
		.mtime_s = INT64_MIN, .mtime_ns = 999999999, .mode = 07777 };
	uint8_t *p = f + wire_entry_encode(f, &w);
	size_t n;

	memset(text, 'x', sizeof text);
	memcpy(p, text, name + target);
	p += name + target;
	if (attrs > 0) {
		assert_in_range(attrs, 4, 4 + UINT16_MAX);
		put_u16(p, 0x7fff);
		put_u16(p + 2, (uint16_t)(attrs - 4));
		memcpy(p + 4, text, attrs - 4);
		p += attrs;
	}
	put_u16(f + WIRE_HEADER_BYTES + 41, (uint16_t)name);
	put_u16(f + WIRE_HEADER_BYTES + 43, (uint16_t)target);
	put_u32(f + WIRE_HEADER_BYTES + 45, (uint32_t)attrs);
	n = (size_t)(p - f);
	set_length(f, n);
	if (recode_exact(f, n, same) == 0)
		check_frame("large ENTRY", f, n);
	return recode_exact(f, n, same);
}

static void entry_largest(void **state)
{
	const size_t room = WIRE_CONTROL_MAX - 49 - 255;
	bool same;

	(void)state;
	assert_int_equal(try_entry(WIRE_FILE, 255, 0, 0, &same), 0);
	assert_true(same);
	assert_int_equal(try_entry(WIRE_FILE, 256, 0, 0, &same), PTCP_EPROTO);
	assert_int_equal(try_entry(WIRE_FILE, 255, 0, room, &same), 0);
	assert_true(same);
	assert_int_equal(try_entry(WIRE_FILE, 255, 0, room + 1, &same), PTCP_EPROTO);
	assert_int_equal(try_entry(WIRE_SYMLINK, 255, WIRE_PATH_MAX, 0, &same), 0);
	assert_true(same);
	assert_int_equal(try_entry(WIRE_SYMLINK, 255, WIRE_PATH_MAX + 1, 0, &same), PTCP_EPROTO);
	assert_int_equal(try_entry(WIRE_SYMLINK, 255, WIRE_PATH_MAX, room - WIRE_PATH_MAX, &same), 0);
	assert_true(same);
}

/* ---- FILE_END, TOTALS, END ---- */

static void file_end_golden(void **state)
{
	static const struct patch cases[] = {
		{ "slot out of range", "file-end", 0, "0000000000014000", false },
		{ "id without a count", "file-end", 0, "0000000000000002", false },
		{ "largest values", "file-end", 0,
		    "ffffffffffff3fff ffffffffffffffff ffffffffffffffff", true },
	};
	const struct wire_file_end w = { ID, digest };
	struct wire_file_end d;
	uint8_t f[WIRE_FILE_END_MAX_BYTES];
	struct span in = check_golden("file-end", f, wire_file_end_encode(f, &w));

	(void)state;
	assert_int_equal(wire_file_end_decode(&d, in, NULL), 0);
	assert_int_equal(d.id, ID);
	assert_true(digest_equal(d.digest, digest));
	drop(in);
	CHECK(cases, check_patches);
}

static void totals_golden(void **state)
{
	static const struct patch cases[] = {
		{ "largest values", "totals", 0, "ffffffffffffffff ffffffffffffffff", true },
		{ "not final", "totals", 16, "00", true },
		{ "more than final", "totals", 16, "02", false },
	};
	const struct wire_totals w = { 1000, 5000000000, 1 };
	struct wire_totals d;
	uint8_t f[WIRE_TOTALS_MAX_BYTES];
	struct span in = check_golden("totals", f, wire_totals_encode(f, &w));

	(void)state;
	assert_int_equal(wire_totals_decode(&d, in, NULL), 0);
	assert_int_equal(d.files, 1000);
	assert_int_equal(d.bytes, 5000000000);
	assert_int_equal(d.final, 1);
	drop(in);
	CHECK(cases, check_patches);
}

static void end_golden(void **state)
{
	static const struct patch cases[] = {
		{ "largest values", "end", 0, "ffffffffffffffff ffffffffffffffff", true },
	};
	const struct wire_end w = { 999, 1 };
	struct wire_end d;
	uint8_t f[WIRE_END_MAX_BYTES];
	struct span in = check_golden("end", f, wire_end_encode(f, &w));

	(void)state;
	assert_int_equal(wire_end_decode(&d, in, NULL), 0);
	assert_int_equal(d.files, 999);
	assert_int_equal(d.failed, 1);
	drop(in);
	CHECK(cases, check_patches);
}

/* ---- ANSWER, NEED, HAVE, ACK, DONE ---- */

static void answer_golden(void **state)
{
	static const struct { const char *sample; uint8_t verdict; } goldens[] = {
		{ "answer-all", WIRE_SEND_ALL }, { "answer-none", WIRE_SEND_NONE },
		{ "answer-parts", WIRE_SEND_PARTS }, { "answer-compare", WIRE_COMPARE },
		{ "answer-no-link", WIRE_NO_LINK },
	};
	static const struct patch cases[] = {
		{ "no verdict", "answer-all", 8, "00", false },
		{ "unknown verdict", "answer-all", 8, "06", false },
		{ "slot out of range", "answer-all", 0, "0000000000014000", false },
		{ "id without a count", "answer-all", 0, "0000000000000002", false },
		{ "largest id", "answer-all", 0, "ffffffffffff3fff", true },
	};
	uint8_t f[WIRE_ANSWER_MAX_BYTES];
	struct wire_answer d;
	struct span in;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof goldens / sizeof *goldens; i++) {
		in = check_golden(goldens[i].sample, f,
		    wire_answer_encode(f, &(struct wire_answer){ ID, goldens[i].verdict }));
		assert_int_equal(wire_answer_decode(&d, in, NULL), 0);
		assert_int_equal(d.id, ID);
		assert_int_equal(d.verdict, goldens[i].verdict);
		drop(in);
	}
	CHECK(cases, check_patches);
}

static void ranges_golden(void **state)
{
	static const struct patch cases[] = {
		{ "no blocks", "need", 12, "00000000", false },
		{ "one block", "need", 12, "00000001", true },
		{ "up to the last number", "need", 8, "fffffffe 00000001", true },
		{ "an end that wraps", "need", 8, "ffffffff 00000001", false },
		{ "an end that wraps", "need", 8, "00000001 ffffffff", false },
		{ "from the first to the last number", "need", 8, "00000000 ffffffff", true },
		{ "slot out of range", "need", 0, "0000000000014000", false },
		{ "id without a count", "need", 0, "0000000000000002", false },
		{ "no blocks", "have", 12, "00000000", false },
		{ "an end that wraps", "have", 8, "fffffffb 00000005", false },
		{ "largest values", "have", 0, "ffffffffffff3fff 00000000 ffffffff"
		    "ffffffffffffffff ffffffffffffffff", true },
		{ "slot out of range", "have", 0, "0000000000014000", false },
		{ "no blocks", "hole", 12, "00000000", false },
		{ "an end that wraps", "hole", 8, "00000001 ffffffff", false },
		{ "largest values", "hole", 0, "ffffffffffff3fff 00000000 ffffffff", true },
		{ "slot out of range", "hole", 0, "0000000000014000", false },
		{ "id without a count", "hole", 0, "0000000000000002", false },
		{ "no blocks", "match", 12, "00000000", false },
		{ "an end that wraps", "match", 8, "00000001 ffffffff", false },
		{ "slot out of range", "match", 0, "0000000000014000", false },
	};
	const struct wire_blocks need = { ID, 5, 7, { 0, 0 } }, have = { ID, 0, 5, digest },
	    hole = { ID, 5, 0x07ffff00, { 0, 0 } }, match = { ID, 5, 1024, { 0, 0 } };
	uint8_t f[WIRE_HAVE_MAX_BYTES];
	struct wire_blocks d;
	struct span in = check_golden("need", f, wire_need_encode(f, &need));

	(void)state;
	assert_int_equal(wire_need_decode(&d, in, NULL), 0);
	assert_int_equal(d.id, ID);
	assert_int_equal(d.first, 5);
	assert_int_equal(d.count, 7);
	assert_true(digest_equal(d.digest, (struct digest){ 0, 0 }));
	drop(in);
	in = check_golden("hole", f, wire_hole_encode(f, &hole));
	assert_int_equal(wire_hole_decode(&d, in, NULL), 0);
	assert_true(d.id == ID && d.first == 5 && d.count == 0x07ffff00);
	assert_true(digest_equal(d.digest, (struct digest){ 0, 0 }));
	drop(in);
	in = check_golden("match", f, wire_match_encode(f, &match));
	assert_int_equal(wire_match_decode(&d, in, NULL), 0);
	assert_true(d.id == ID && d.first == 5 && d.count == 1024);
	drop(in);
	in = check_golden("have", f, wire_have_encode(f, &have));
	assert_int_equal(wire_have_decode(&d, in, NULL), 0);
	assert_int_equal(d.id, ID);
	assert_int_equal(d.first, 0);
	assert_int_equal(d.count, 5);
	assert_true(digest_equal(d.digest, digest));
	drop(in);
	CHECK(cases, check_patches);
}

static void hashes_golden(void **state)
{
	static const struct patch cases[] = {
		{ "slot out of range", "hashes", 0, "0000000000014000", false },
		{ "up to the last block", "hashes", 8, "fffffffd", true },
		{ "an end that wraps", "hashes", 8, "fffffffe", false },
		{ "fewer than there are", "hashes", 12, "0001", false },
		{ "more than there are", "hashes", 12, "0003", false },
		{ "slot out of range", "pieces", 0, "0000000000014000", false },
		{ "fewer than there are", "pieces", 12, "0001", false },
		{ "more than there are", "pieces", 12, "0003", false },
		{ "no block", "split", 12, "00000000", false },
		{ "an end that wraps", "split", 8, "ffffffff", false },
		{ "slot out of range", "patch", 0, "0000000000014000", false },
		{ "no piece", "patch", 12, "0000000000000000", false },
		{ "all pieces", "patch", 12, "ffffffffffffffff", true },
	};
	static const struct payload whole[] = {
		{ "no hash", WIRE_HASHES, "0000000000010002 00000005 0000", false },
		{ "half a hash", WIRE_HASHES, "0000000000010002 00000005 0001 1122334455667788", false },
		{ "a hash", WIRE_HASHES, "0000000000010002 00000005 0001 112233445566778801234567", true },
		{ "a hash and a byte", WIRE_HASHES, "0000000000010002 00000005 0001 11223344556677880123456789",
		    false },
		{ "no piece", WIRE_PIECES, "0000000000010002 00000005 0000", false },
		{ "too many pieces", WIRE_PIECES, "0000000000010002 00000005 0041 112233445566778801234567", false },
	};
	static const struct block_sum sums[] = { { 0x1122334455667788, 0x01234567 }, { 0x99aabbccddeeff00,
	    0x89abcdef } };
	uint8_t two[2 * WIRE_HASH_BYTES], f[WIRE_HASHES_MAX_BYTES];
	const struct wire_hashes hashes = { ID, 5, 2, { two, sizeof two } };
	const struct wire_blocks split = { .id = ID, .first = 5, .count = 64 };
	const struct wire_patch patch = { ID, 5, 0x80000000000000ff };
	struct wire_hashes d;
	struct wire_patch p;
	struct span in;

	(void)state;
	wire_hash_encode(two, sums[0]);
	wire_hash_encode(two + WIRE_HASH_BYTES, sums[1]);
	assert_int_equal(wire_hash_decode(two + WIRE_HASH_BYTES).head, sums[1].head);
	in = check_golden("hashes", f, wire_hashes_encode(f, &hashes));
	assert_int_equal(wire_hashes_decode(&d, in, NULL), 0);
	assert_true(d.id == ID && d.first == 5 && d.n == 2 && d.hashes.n == sizeof two);
	assert_memory_equal(d.hashes.p, two, sizeof two);
	drop(in);
	drop(check_golden("pieces", f, wire_pieces_encode(f, &hashes)));
	drop(check_golden("split", f, wire_split_encode(f, &split)));
	in = check_golden("patch", f, wire_patch_encode(f, &patch));
	assert_int_equal(wire_patch_decode(&p, in, NULL), 0);
	assert_true(p.id == ID && p.block == 5 && p.omit == patch.omit);
	drop(in);
	CHECK(cases, check_patches);
	CHECK(whole, check_payloads);
}

static void ack_golden(void **state)
{
	static const struct patch cases[] = {
		{ "slot out of range", "ack", 0, "0000000000014000", false },
		{ "id without a count", "ack", 0, "0000000000000002", false },
		{ "largest values", "ack", 0, "ffffffffffff3fff ffffffff", true },
	};
	uint8_t f[WIRE_ACK_MAX_BYTES];
	struct span in = check_golden("ack", f, wire_ack_encode(f, &(struct wire_ack){ ID, 19073 }));
	struct wire_ack d;

	(void)state;
	assert_int_equal(wire_ack_decode(&d, in, NULL), 0);
	assert_int_equal(d.id, ID);
	assert_int_equal(d.block, 19073);
	drop(in);
	CHECK(cases, check_patches);
}

static void size_golden(void **state)
{
	static const struct patch cases[] = {
		{ "slot out of range", "size", 0, "0000000000014000", false },
		{ "largest size", "size", 8, "0000200000000000", true },
		{ "too large", "size", 8, "0000200000000001", false },
		{ "a size beside no size", "entry-unsized", 17, "0000000000000001", false },
	};
	uint8_t f[WIRE_SIZE_MAX_BYTES];
	struct span in = check_golden("size", f, wire_size_encode(f, &(struct wire_size){ ID, 0x12345678 }));
	struct wire_size d;

	(void)state;
	assert_int_equal(wire_size_decode(&d, in, NULL), 0);
	assert_true(d.id == ID && d.size_bytes == 0x12345678);
	drop(in);
	CHECK(cases, check_patches);
}

static void done_golden(void **state)
{
	static const struct patch cases[] = {
		{ "slot out of range", "done", 0, "0000000000014000", false },
		{ "id without a count", "done", 0, "0000000000000002", false },
		{ "largest id", "done", 0, "ffffffffffff3fff", true },
	};
	uint8_t f[WIRE_DONE_MAX_BYTES];
	struct span in = check_golden("done", f, wire_done_encode(f, &(struct wire_done){ ID }));
	struct wire_done d;

	(void)state;
	assert_int_equal(wire_done_decode(&d, in, NULL), 0);
	assert_int_equal(d.id, ID);
	drop(in);
	CHECK(cases, check_patches);
}

/* ---- FAIL, NOTE ---- */

static void fail_golden(void **state)
{
	static const struct patch cases[] = {
		{ "slot out of range", "fail", 0, "0000000000014000", false },
		{ "id without a count", "fail", 0, "0000000000000002", false },
		{ "any code", "fail", 8, "ffff", true },
		{ "text longer than the frame", "fail", 11, "0008", false },
		{ "text shorter than the frame", "fail", 11, "0006", false },
	};
	const struct wire_fail w = { ID, { 15, 1, text_span("changed") } };
	char text[WIRE_TEXT_MAX];
	struct wire_fail large = { UINT64_C(0xffffffffffff3fff),
		{ UINT16_MAX, UINT8_MAX, { (const uint8_t *)text, sizeof text } } }, d;
	uint8_t f[WIRE_FAIL_MAX_BYTES + 1];
	struct span in = check_golden("fail", f, wire_fail_encode(f, &w));
	bool same;

	(void)state;
	assert_int_equal(wire_fail_decode(&d, in, NULL), 0);
	assert_int_equal(d.id, ID);
	assert_int_equal(d.why.code, 15);
	assert_int_equal(d.why.cause, 1);
	assert_span(d.why.text, "changed");
	drop(in);
	CHECK(cases, check_patches);

	memset(text, 0xff, sizeof text);
	assert_int_equal(wire_fail_encode(f, &large), WIRE_FAIL_MAX_BYTES);
	check_frame("largest FAIL", f, WIRE_FAIL_MAX_BYTES);
	put_u16(f + WIRE_HEADER_BYTES + 11, WIRE_TEXT_MAX + 1);
	f[WIRE_FAIL_MAX_BYTES] = 'x';
	set_length(f, sizeof f);
	assert_int_equal(recode_exact(f, sizeof f, &same), PTCP_EPROTO);
}

/* Offsets: kind 0, code 1, cause 3, lengths 4 and 6, path 8. */
static void note_golden(void **state)
{
	static const struct patch cases[] = {
		{ "no kind", "warning-failed", 0, "00", false },
		{ "a failure inside", "warning-failed", 0, "03", true },
		{ "unknown kind", "warning-failed", 0, "04", false },
		{ "any code", "warning-failed", 1, "ffff", true },
		{ "any cause", "warning-failed", 3, "ff", true },
		{ "path longer than the frame", "warning-failed", 4, "0008", false },
		{ "text longer than the frame", "warning-failed", 6, "0005", false },
		{ "text shorter than the frame", "warning-failed", 6, "0003", false },
		{ "another cut between path and text", "warning-failed", 4, "0004 0003", true },
		{ "NUL in a path", "warning-failed", 8, "00", false },
		{ "NUL at the end of a path", "warning-failed", 10, "00", false },
		{ "NUL in a text", "warning-failed", 11, "00", true },
	};
	static const struct payload whole[] = {
		{ "no path", WIRE_WARNING, "02 0000 00 0000 0001 78", true },
		{ "nothing but a kind", WIRE_WARNING, "01 0000 00 0000 0000", true },
	};
	static uint8_t text[WIRE_PATH_MAX], f[WIRE_WARNING_MAX_BYTES + 1];
	const struct wire_warning w = { WIRE_WARNING_FAILED, text_span("a/b"), { 13, 1, text_span("gone") } },
		large = { WIRE_WARNING_ONLY, { text, WIRE_PATH_MAX }, { UINT16_MAX, UINT8_MAX, { text,
		    WIRE_TEXT_MAX } } };
	struct span in = check_golden("warning-failed", f, wire_warning_encode(f, &w));
	struct wire_warning d;
	bool same;

	(void)state;
	assert_int_equal(wire_warning_decode(&d, in, NULL), 0);
	assert_int_equal(d.kind, WIRE_WARNING_FAILED);
	assert_int_equal(d.why.code, 13);
	assert_int_equal(d.why.cause, 1);
	assert_span(d.path, "a/b");
	assert_span(d.why.text, "gone");
	drop(in);
	CHECK(cases, check_patches);
	CHECK(whole, check_payloads);

	memset(text, 0xff, sizeof text);
	assert_int_equal(wire_warning_encode(f, &large), WIRE_WARNING_MAX_BYTES);
	check_frame("largest NOTE", f, WIRE_WARNING_MAX_BYTES);
	f[WIRE_WARNING_MAX_BYTES] = 'x';
	set_length(f, sizeof f);
	put_u16(f + WIRE_HEADER_BYTES + 6, WIRE_TEXT_MAX + 1);
	assert_int_equal(recode_exact(f, sizeof f, &same), PTCP_EPROTO);
	put_u16(f + WIRE_HEADER_BYTES + 3, WIRE_PATH_MAX + 1);
	put_u16(f + WIRE_HEADER_BYTES + 5, WIRE_TEXT_MAX);
	assert_int_equal(recode_exact(f, sizeof f, &same), PTCP_EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entry_golden),
		cmocka_unit_test(entry_rules),
		cmocka_unit_test(entry_largest),
		cmocka_unit_test(file_end_golden),
		cmocka_unit_test(totals_golden),
		cmocka_unit_test(end_golden),
		cmocka_unit_test(answer_golden),
		cmocka_unit_test(ranges_golden),
		cmocka_unit_test(hashes_golden), cmocka_unit_test(ack_golden),
		cmocka_unit_test(size_golden),
		cmocka_unit_test(done_golden),
		cmocka_unit_test(fail_golden),
		cmocka_unit_test(note_golden),
	};
	return cmocka_run_group_tests_name("wire/entry_frames", tests, NULL, NULL);
}
