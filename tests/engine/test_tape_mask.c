/* What a record does not tell: names, texts, values, hashes and identities; frames stay as long, and can be decoded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/tape_mask.h"
#include "wire/attrs.h"
#include "wire/codec.h"
#include "wire/fields.h"

static struct tape_mask mask;
static uint8_t frame[1 << 16], before[1 << 16];

static int setup(void **state)
{
	(void)state;
	tape_mask_init(&mask, 12345678901u, 98765432109u);
	return 0;
}

static struct span span_of(const char *text) { return (struct span){ (const uint8_t *)text, strlen(text) }; }

static bool tells(size_t n, const char *word)
{
	size_t i, k = strlen(word);

	for (i = 0; i + k <= n; i++)
		if (memcmp(frame + i, word, k) == 0)
			return true;
	return false;
}

static struct span payload(size_t n) { return (struct span){ frame + WIRE_HEADER_BYTES, n - WIRE_HEADER_BYTES }; }

/* The frame of n bytes, masked and decoded into *f. */
static void masked(size_t n, unsigned type, union wire_any *f)
{
	struct ptcp_err e;

	memcpy(before, frame, n);
	tape_mask_frame(&mask, frame, n);
	assert_memory_equal(frame, before, WIRE_HEADER_BYTES);
	assert_false(tells(n, "secret"));
	assert_int_equal(wire_decode(f, type, payload(n), &e), 0);
}

/* Each type of the table that has a text, whatever it is called. */
static void texts_of_all_frames(void **state)
{
	static const struct span text = { (const uint8_t *)"secret/secret", 13 };
	unsigned type, i, n_types = 0;
	union wire_any f, out;
	bool has_text;
	size_t n;

	(void)state;
	for (type = 0; type < 256; type++) {
		const struct wire_layout *l = &wire_layouts[type];

		memset(&f, 0, sizeof f);
		for (i = 0, has_text = false; i < l->n; i++)
			if (l->field[i].kind == WIRE_FIELD_DATA) {
				has_text = true;
				memcpy((char *)&f + l->field[i].at, &text, sizeof text);
			} else if (l->field[i].kind == WIRE_FIELD_UINT && l->field[i].min > 0) {
				memcpy((char *)&f + l->field[i].at, &(uint64_t){ l->field[i].min }, l->field[i].size);
			}
		if (!has_text || type == WIRE_HELLO || type == WIRE_ENTRY || l->bytes > sizeof f ||
		    (l->valid != NULL && !l->valid(&f)))
			continue;
		n = wire_encode(frame, type, &f);
		if (wire_decode(&out, type, payload(n), NULL) < 0)
			continue;
		masked(n, type, &out);
		n_types++;
	}
	assert_true(n_types > 8);
}

static struct wire_entry entry_of(const char *name, uint8_t type, const char *target, struct span attrs)
{
	return (struct wire_entry){ .type = type, .id = UINT64_C(5) << 16, .mode = 0644,
		.size_bytes = type == WIRE_FILE ? 99 : 0, .name = span_of(name), .target = span_of(target),
		.attrs = attrs };
}

static void entries(void **state)
{
	static uint8_t attrs[1000], xattrs[500];
	struct wire_attrs a = { .has_owner = true, .uid = 7, .user = span_of("secretive"),
		.group = span_of("secret") }, got;
	struct span rest, name, value;
	struct wire_entry f;
	union wire_any out;
	size_t n;

	(void)state;
	n = wire_xattr_encode(xattrs, span_of("user.secret"), span_of("value: secret"));
	a.xattrs = (struct span){ xattrs, n };
	n = wire_attrs_encode(attrs, &a);
	f = entry_of("secret name", WIRE_FILE, "", (struct span){ attrs, n });
	masked(wire_entry_encode(frame, &f), WIRE_ENTRY, &out);
	memcpy(&f, &out, sizeof f);
	assert_int_equal(f.size_bytes, 99);
	assert_int_equal(f.name.n, 11);
	assert_int_equal(wire_attrs_decode(&got, &f, NULL), 0);
	assert_int_equal(got.uid, 7);
	assert_int_equal(got.user.n, 9);
	rest = got.xattrs;
	assert_true(wire_xattr_next(&rest, &name, &value));
	assert_int_equal(name.n, 11);
	assert_int_equal(value.n, 13);
	f = entry_of("link", WIRE_SYMLINK, "../secret/x", (struct span){ NULL, 0 });
	masked(wire_entry_encode(frame, &f), WIRE_ENTRY, &out);
	/* the directory itself has no name */
	f = entry_of(".", WIRE_DIR, "", (struct span){ NULL, 0 });
	masked(wire_entry_encode(frame, &f), WIRE_ENTRY, &out);
	memcpy(&f, &out, sizeof f);
	assert_true(wire_entry_is_base(&f));
}

static void names_of(char out[2][8], const char *a, const char *b)
{
	struct wire_deleted d;
	union wire_any f;
	unsigned i;

	for (i = 0; i < 2; i++) {
		d.path = span_of(i == 0 ? a : b);
		masked(wire_deleted_encode(frame, &d), WIRE_DELETED, &f);
		memcpy(&d, &f, sizeof d);
		span_copy(out[i], d.path);
	}
}

static void equal_names_stay_equal(void **state)
{
	char name[2][8];

	(void)state;
	names_of(name, "ab/cdef", "ab/cdef");
	assert_string_equal(name[0], name[1]);
	names_of(name, "ab/cdef", "ab/cdeg");
	assert_memory_equal(name[0], name[1], 3);
	assert_int_equal(name[0][2], '/');
	assert_string_not_equal(name[0], name[1]);
}

static void hashes_add_up(void **state)
{
	struct digest a = { 0x0123456789abcdef, 0xfedcba9876543210 }, b = { 0xffffffffffffffff, 0x8000000000000001 };
	struct digest sum = a, of_sum = tape_mask_digest(&mask, a);

	(void)state;
	digest_add(&sum, b);
	digest_add(&of_sum, tape_mask_digest(&mask, b));
	assert_true(digest_equal(tape_mask_digest(&mask, sum), of_sum));
	assert_false(digest_equal(tape_mask_digest(&mask, a), a));
	assert_false(digest_equal(tape_mask_digest(&mask, a), tape_mask_digest(&mask, b)));
	assert_true(digest_equal(tape_mask_digest(&mask, (struct digest){ 0, 0 }), (struct digest){ 0, 0 }));
}

/* In frames they are those that the engine's own calls have. */
static void hashes_in_frames(void **state)
{
	struct wire_file_end end = { UINT64_C(3) << 16, { 11, 22 } };
	struct wire_blocks have = { UINT64_C(3) << 16, 1, 2, { 33, 44 } };
	union wire_any f;

	(void)state;
	masked(wire_file_end_encode(frame, &end), WIRE_FILE_END, &f);
	assert_true(digest_equal(((struct wire_file_end *)&f)->digest, tape_mask_digest(&mask, end.digest)));
	masked(wire_have_encode(frame, &have), WIRE_HAVE, &f);
	assert_true(digest_equal(((struct wire_blocks *)&f)->digest, tape_mask_digest(&mask, have.digest)));
}

static void identities(void **state)
{
	struct wire_opened o = { .session = "secret session", .streams = 4 };
	union wire_any f;

	(void)state;
	masked(wire_opened_encode(frame, &o), WIRE_OPENED, &f);
	assert_int_equal(((struct wire_opened *)&f)->streams, 4);
	assert_int_equal(((struct wire_opened *)&f)->session[0], 0);
}

/* A peer may have put anything there. */
static void what_is_no_frame(void **state)
{
	static const uint8_t zeros[100];
	struct wire_header h = { WIRE_WARNING, WIRE_CRITICAL, 50 };

	(void)state;
	memset(frame, 0xff, 100);
	wire_header_encode(frame, &h);
	memcpy(frame + 20, "secret", 6);
	tape_mask_frame(&mask, frame, WIRE_HEADER_BYTES + 50);
	assert_memory_equal(frame + WIRE_HEADER_BYTES, zeros, 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_of_all_frames), cmocka_unit_test(entries),
		cmocka_unit_test(equal_names_stay_equal), cmocka_unit_test(hashes_add_up),
		cmocka_unit_test(hashes_in_frames), cmocka_unit_test(identities), cmocka_unit_test(what_is_no_frame),
	};

	return cmocka_run_group_tests_name("engine/tape_mask", tests, setup, NULL);
}
