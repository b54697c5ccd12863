/* against: arithmetic */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "check.h"
#include "wire/attrs.h"

/* What "entry-attrs" has of them, and "entry-hardlink". */
static struct wire_attrs all(void)
{
	static const uint8_t xattrs[] = "\6user.a\0";

	return (struct wire_attrs){ .has_version = true,
		.version = { 0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac,
		    0xad, 0xae, 0xaf },
		.sparse = true, .has_owner = true, .uid = 1000, .gid = 100,
		.user = text_span("ada"), .group = text_span("ws"), .xattrs = { xattrs, 9 },
		.linked = true };
}

static void assert_same(const struct wire_attrs *a, const struct wire_attrs *b)
{
	assert_true(a->has_version == b->has_version && a->sparse == b->sparse && a->linked == b->linked &&
	    a->link_id == b->link_id && a->has_owner == b->has_owner && a->uid == b->uid &&
	    a->gid == b->gid && a->user.n == b->user.n && a->group.n == b->group.n &&
	    a->xattrs.n == b->xattrs.n);
	assert_memory_equal(a->version, b->version, WIRE_VERSION_BYTES);
	if (a->user.n > 0)
		assert_memory_equal(a->user.p, b->user.p, a->user.n);
	if (a->group.n > 0)
		assert_memory_equal(a->group.p, b->group.p, a->group.n);
	if (a->xattrs.n > 0)
		assert_memory_equal(a->xattrs.p, b->xattrs.p, a->xattrs.n);
}

static void check_whole(const char *sample, uint8_t type, const struct wire_attrs *a)
{
	uint8_t frame[SAMPLE_MAX_BYTES], out[SAMPLE_MAX_BYTES];
	size_t n = golden(sample, frame);
	struct span in = { exact(frame + WIRE_HEADER_BYTES, n - WIRE_HEADER_BYTES), n - WIRE_HEADER_BYTES };
	struct wire_attrs d;
	struct wire_entry f;

	memset(&d, 0x77, sizeof d);
	assert_int_equal(wire_entry_decode(&f, in, NULL), 0);
	assert_int_equal(f.type, type);
	assert_int_equal(wire_attrs_decode(&d, &f, NULL), 0);
	assert_same(&d, a);
	assert_int_equal(wire_attrs_bytes(a), f.attrs.n);
	assert_int_equal(wire_attrs_encode(out, a), f.attrs.n);
	assert_memory_equal(out, f.attrs.p, f.attrs.n);
	free((void *)(uintptr_t)in.p);
}

static void attrs_golden(void **state)
{
	struct wire_attrs a = all(), link = { .link_id = 0x20001 }, none = { 0 };

	(void)state;
	check_whole("entry-attrs", WIRE_FILE, &a);
	check_whole("entry-hardlink", WIRE_HARDLINK, &link);
	check_whole("entry-dir", WIRE_DIR, &none);
}

/* Decodes hex as the attributes of an entry of that type, in memory of their very size. */
static int decode(uint8_t type, const char *hex, struct wire_attrs *a, struct ptcp_err *e)
{
	uint8_t raw[512], *copy;
	size_t n = hex_bytes(raw, hex);
	struct wire_entry f = { .type = type, .id = 0x30001, .attrs = { NULL, n } };
	int r;

	f.attrs.p = copy = exact(raw, n);
	r = wire_attrs_decode(a, &f, e);
	free(copy);
	return r;
}

static void rules(void **state)
{
	static const struct { const char *why; uint8_t type; const char *hex; bool good; } cases[] = {
		{ "none", WIRE_FILE, "", true },
		{ "none of a link", WIRE_HARDLINK, "", false },
		{ "none of what ends", WIRE_DIR_END, "", true },
		{ "unknown", WIRE_FILE, "0007 0001 ff", true },
		{ "links may follow", WIRE_FILE, "0006 0000", true },
		{ "links may follow, with a value", WIRE_FILE, "0006 0001 ff", false },
		{ "links may follow a directory", WIRE_DIR, "0006 0000", false },
		{ "links may follow a symbolic link", WIRE_SYMLINK, "0006 0000", true },
		{ "links may follow a symbolic link, with a value", WIRE_SYMLINK, "0006 0001 ff", false },
		{ "links may follow a link", WIRE_HARDLINK, "0003 0008 0000000000020001 0006 0000", false },
		{ "unknown", WIRE_DIR_END, "7fff 0000", true },
		{ "unknown and critical", WIRE_FILE, "8000 0000", false },
		{ "unknown and critical, behind others", WIRE_FILE, "0002 0000 ffff 0000", false },
		{ "twice", WIRE_FILE, "0002 0000 0002 0000", false },
		{ "an unknown one twice", WIRE_FILE, "0101 0000 0101 0000", false },
		{ "not in order", WIRE_FILE, "0101 0000 0002 0000", false },
		{ "half a tag", WIRE_FILE, "0002 0000 00", false },
		{ "half a length", WIRE_FILE, "0002 00", false },
		{ "shorter than it says", WIRE_FILE, "0101 0002 aa", false },
		{ "a short version", WIRE_FILE, "0001 000f a0a1a2a3a4a5a6a7a8a9aaabacadae", false },
		{ "a long version", WIRE_FILE, "0001 0011 a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0", false },
		{ "a directory's version", WIRE_DIR, "0001 0010 a0a1a2a3a4a5a6a7a8a9aaabacadaeaf", false },
		{ "holes with a value", WIRE_FILE, "0002 0001 00", false },
		{ "a directory's holes", WIRE_DIR, "0002 0000", false },
		{ "a link's holes", WIRE_HARDLINK, "0002 0000 0003 0008 0000000000020001", false },
		{ "link", WIRE_HARDLINK, "0003 0008 0000000000020001", true },
		{ "link to what has the same count", WIRE_HARDLINK, "0003 0008 0000000000030002", false },
		{ "link to what comes later", WIRE_HARDLINK, "0003 0008 0000000000040002", false },
		{ "link to no id", WIRE_HARDLINK, "0003 0008 0000000000000000", false },
		{ "link to a slot out of range", WIRE_HARDLINK, "0003 0008 0000000000024000", false },
		{ "half a link", WIRE_HARDLINK, "0003 0007 00000000000200", false },
		{ "a file's link", WIRE_FILE, "0003 0008 0000000000020001", false },
		{ "a symbolic link's link", WIRE_SYMLINK, "0003 0008 0000000000020001", false },
		{ "owner", WIRE_DIR, "0004 000a ffffffff ffffffff 00 00", true },
		{ "owner of a symbolic link", WIRE_SYMLINK, "0004 000c 00000001 00000002 01 61 01 2f", true },
		{ "owner of what ends", WIRE_DIR_END, "0004 000a 00000000 00000000 00 00", false },
		{ "owner of a link", WIRE_HARDLINK,
		    "0003 0008 0000000000020001 0004 000a 00000000 00000000 00 00", false },
		{ "user longer than the value", WIRE_FILE, "0004 000b 00000000 00000000 02 61 00", false },
		{ "no group", WIRE_FILE, "0004 000a 00000000 00000000 01 61", false },
		{ "owner, and more", WIRE_FILE, "0004 000b 00000000 00000000 00 00 00", false },
		{ "NUL in a user", WIRE_FILE, "0004 000c 00000000 00000000 02 6100 00", false },
		{ "NUL in a group", WIRE_FILE, "0004 000b 00000000 00000000 00 01 00", false },
		{ "two of them", WIRE_DIR, "0005 000b 01 61 0001 00 02 6262 0001 00", true },
		{ "none of them", WIRE_DIR, "0005 0000", false },
		{ "one without a name", WIRE_FILE, "0005 0003 00 0000", false },
		{ "one with NUL in its name", WIRE_FILE, "0005 0005 02 6100 0000", false },
		{ "one longer than the value", WIRE_FILE, "0005 0005 01 61 0002 00", false },
		{ "one without a length", WIRE_FILE, "0005 0002 01 61", false },
		{ "of a link", WIRE_HARDLINK, "0003 0008 0000000000020001 0005 0004 01 61 0000", false },
		{ "no size yet", WIRE_FILE, "8001 0000", true },
		{ "no size yet, with a value", WIRE_FILE, "8001 0001 00", false },
		{ "no size of a directory", WIRE_DIR, "8001 0000", false },
		{ "no size, but a version", WIRE_FILE, "0001 0010 a0a1a2a3a4a5a6a7a8a9aaabacadaeaf 8001 0000", false },
		{ "no size, but holes", WIRE_FILE, "0002 0000 8001 0000", false },
		{ "no size, but links", WIRE_FILE, "0006 0000 8001 0000", false },
	};
	struct wire_attrs a, untouched;
	struct ptcp_err e;
	size_t i;
	int r;

	(void)state;
	memset(&untouched, 0x77, sizeof untouched);
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		a = untouched;
		e = (struct ptcp_err){ 0 };
		r = decode(cases[i].type, cases[i].hex, &a, &e);
		check_that(r == (cases[i].good ? 0 : PTCP_EPROTO), "%s, %s: %d", cases[i].why, cases[i].hex, r);
		if (r < 0) {
			assert_memory_equal(&a, &untouched, sizeof a);
			assert_true(e.code == PTCP_EPROTO && e.msg[0] != '\0');
		}
	}
}

/* Each subset comes back, and each of its truncations is refused or a smaller subset. */
static void every_subset(void **state)
{
	uint8_t out[256], again[256], *copy;
	struct wire_attrs full = all(), a, d;
	struct wire_entry f = { .type = WIRE_FILE, .id = 0x30001 };
	unsigned set;
	size_t n, i;

	(void)state;
	for (set = 0; set < 16; set++) {
		a = full;
		if (!(a.has_version = set & 1))
			memset(a.version, 0, sizeof a.version);
		a.sparse = set & 2;
		if (!(set & 4)) {
			a.has_owner = false;
			a.uid = a.gid = 0;
			a.user = a.group = (struct span){ NULL, 0 };
		}
		if (!(set & 8))
			a.xattrs = (struct span){ NULL, 0 };
		n = wire_attrs_encode(out, &a);
		assert_int_equal(n, wire_attrs_bytes(&a));
		for (i = 0; i <= n; i++) {
			f.attrs = (struct span){ copy = exact(out, i), i };
			if (wire_attrs_decode(&d, &f, NULL) == 0) {
				assert_int_equal(wire_attrs_encode(again, &d), i);
				assert_memory_equal(again, out, i);
			}
			if (i == n)
				assert_same(&d, &a);
			free(copy);
		}
	}
}

/* One bit flipped: refused, or well-formed and its own encoding (unknown tags apart). */
static void every_flip(void **state)
{
	uint8_t out[256], again[256], *copy;
	struct wire_attrs a = all(), d;
	struct wire_entry f = { .type = WIRE_FILE, .id = 0x30001 };
	size_t n = wire_attrs_encode(out, &a), i;

	(void)state;
	for (i = 0; i < n * 8; i++) {
		out[i / 8] ^= (uint8_t)(0x80 >> i % 8);
		f.attrs = (struct span){ copy = exact(out, n), n };
		if (wire_attrs_decode(&d, &f, NULL) == 0 && wire_attrs_bytes(&d) == n) {
			assert_int_equal(wire_attrs_encode(again, &d), n);
			assert_memory_equal(again, out, n);
		}
		free(copy);
		out[i / 8] ^= (uint8_t)(0x80 >> i % 8);
	}
}

/* The largest of everything fits an ENTRY beside the longest name and target. */
static void largest(void **state)
{
	static uint8_t list[WIRE_XATTRS_MAX_BYTES + 300], frame[8 + WIRE_CONTROL_MAX], attrs[WIRE_CONTROL_MAX];
	static uint8_t text[WIRE_XATTRS_MAX_BYTES];
	struct wire_attrs a = { .has_owner = true, .uid = UINT32_MAX, .gid = UINT32_MAX,
		.user = { text, WIRE_OWNER_NAME_MAX }, .group = { text, WIRE_OWNER_NAME_MAX } }, d;
	struct wire_entry f = { .type = WIRE_SYMLINK, .id = 0x30001, .name = { text, 255 },
		.target = { text, WIRE_PATH_MAX } }, got;
	struct span name, value;
	size_t n;

	(void)state;
	memset(text, 'x', sizeof text);
	n = wire_xattr_encode(list, (struct span){ text, WIRE_XATTR_NAME_MAX },
	    (struct span){ text, WIRE_XATTRS_MAX_BYTES - WIRE_XATTR_BYTES(WIRE_XATTR_NAME_MAX, 0) });
	assert_int_equal(n, WIRE_XATTRS_MAX_BYTES);
	a.xattrs = (struct span){ list, n };
	f.attrs = (struct span){ attrs, wire_attrs_encode(attrs, &a) };
	n = wire_entry_encode(frame, &f);
	assert_in_range(n, WIRE_XATTRS_MAX_BYTES, 8 + WIRE_CONTROL_MAX);
	assert_int_equal(wire_entry_decode(&got, (struct span){ frame + 8, n - 8 }, NULL), 0);
	assert_int_equal(wire_attrs_decode(&d, &got, NULL), 0);
	assert_same(&d, &a);
	assert_true(wire_xattr_next(&d.xattrs, &name, &value));
	assert_true(name.n == 255 && value.n == WIRE_XATTRS_MAX_BYTES - 258);
	assert_false(wire_xattr_next(&d.xattrs, &name, &value));

	/* One byte more of them is too much. */
	f.target.n = 1;
	put_u16(attrs + f.attrs.n - WIRE_XATTRS_MAX_BYTES - 2, WIRE_XATTRS_MAX_BYTES + 1);
	put_u16(attrs + f.attrs.n - WIRE_XATTRS_MAX_BYTES + 256, WIRE_XATTRS_MAX_BYTES - 257);
	f.attrs.n++;
	assert_int_equal(wire_attrs_decode(&d, &f, NULL), PTCP_EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attrs_golden),
		cmocka_unit_test(rules),
		cmocka_unit_test(every_subset),
		cmocka_unit_test(every_flip),
		cmocka_unit_test(largest),
	};
	return cmocka_run_group_tests_name("wire/attrs", tests, NULL, NULL);
}
