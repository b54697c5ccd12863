/* against: arithmetic */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "check.h"
#include "wire/attrs.h"
#include "wire/block.h"
#include "wire/jobs.h"

/* All of it; the caller frees it. Tests run at the top of the tree. */
static char *protocol(void)
{
	FILE *f = fopen("PROTOCOL.md", "r");
	char *text = NULL;
	size_t n = 0;

	check_that(f != NULL && getdelim(&text, &n, '\0', f) > 0, "no PROTOCOL.md here");
	fclose(f);
	return text;
}

/* Every frame's golden bytes come back, cut short, prolonged and bent. */
static void every_sample(void **state)
{
	uint8_t f[SAMPLE_MAX_BYTES];
	size_t i, n;

	(void)state;
	for (i = 0; i < N_SAMPLES; i++) {
		n = hex_bytes(f, samples[i].hex);
		assert_true(n <= sizeof f);
		check_that(f[0] == samples[i].type, "%s: of another type", samples[i].name);
		check_frame(samples[i].name, f, n);
	}
}

/* The fuzz target begins with frames that are valid today: make fuzz-seeds. */
static void seeds_of_the_fuzz_target(void **state)
{
	uint8_t want[SAMPLE_MAX_BYTES], got[SAMPLE_MAX_BYTES + 1];
	char path[200];
	size_t i, n;
	FILE *f;

	(void)state;
	for (i = 0; i < N_SAMPLES; i++) {
		n = hex_bytes(want, samples[i].hex);
		snprintf(path, sizeof path, "tests/fuzz/seeds/wire/%s", samples[i].name);
		check_that((f = fopen(path, "rb")) != NULL, "%s: missing (make fuzz-seeds)", path);
		check_that(fread(got, 1, sizeof got, f) == n && memcmp(got, want, n) == 0,
		    "%s: outdated (make fuzz-seeds)", path);
		fclose(f);
	}
}

/* Each sample from the front of what has come: nothing until all of it is here, and what follows is left alone. */
static void one_after_the_other(void **state)
{
	uint8_t f[2 * SAMPLE_MAX_BYTES];
	struct wire_header h;
	struct span in;
	size_t i, n, k;

	(void)state;
	for (i = 0; i < N_SAMPLES; i++) {
		n = hex_bytes(f, samples[i].hex);
		if (samples[i].type == WIRE_BLOCK) /* not on such a channel */
			continue;
		for (k = 0; k < n; k++)
			assert_int_equal(wire_frame_next(&h, &in, (struct span){ f, k }, NULL), 0);
		memcpy(f + n, f, n);
		assert_int_equal(wire_frame_next(&h, &in, (struct span){ f, 2 * n }, NULL), 1);
		assert_int_equal(h.type, samples[i].type);
		assert_ptr_equal(in.p, f + WIRE_HEADER_BYTES);
		assert_int_equal(in.n, n - WIRE_HEADER_BYTES);
	}
	wire_header_encode(f, &(struct wire_header){ WIRE_BLOCK, WIRE_CRITICAL, WIRE_CONTROL_MAX + 1 });
	assert_int_equal(wire_frame_next(&h, &in, (struct span){ f, WIRE_HEADER_BYTES }, NULL), PTCP_EPROTO);
}

/* A new frame needs a sample. */
static void every_frame_has_a_sample(void **state)
{
	size_t i;
	bool has;

	(void)state;
#define X(name, number, max)                                                   \
	for (has = false, i = 0; i < N_SAMPLES; i++)                           \
		has = has || samples[i].type == number;                        \
	check_that(has, "no sample of %s in samples.h", #name);                \
	assert_string_equal(wire_type_name(number), #name);                    \
	assert_true(wire_type_known(number));
	WIRE_FRAMES(X)
#undef X
	assert_false(wire_type_known(0));
	assert_false(wire_type_known(255));
	assert_false(wire_type_known(100000));
	assert_string_equal(wire_type_name(0), "?");
	assert_string_equal(wire_type_name(255), "?");
}

/* PROTOCOL.md's table of frames has the frames between peers, with the same names, numbers and limits in the same
 * order, and no others. */
static void every_frame_is_listed(void **state)
{
	char row[200], expected[80];
	FILE *f = fopen("PROTOCOL.md", "r"); /* tests run at the top of the tree */
	unsigned before = 0;

	(void)state;
	check_that(f != NULL, "no PROTOCOL.md here");
	do
		check_that(fgets(row, sizeof row, f) != NULL, "PROTOCOL.md has no table of frames");
	while (strncmp(row, "|---|---:|---:|", 15) != 0);
#define X(name, number, max)                                                   \
	snprintf(expected, sizeof expected, "| %s | %d | %u |", #name, number, (unsigned)(max)); \
	check_that(fgets(row, sizeof row, f) != NULL && strncmp(row, expected, strlen(expected)) == 0, \
	    "PROTOCOL.md says %s instead of %s", row, expected);               \
	check_that(number > before, "%s has a number out of order", #name);    \
	before = number;
	WIRE_PEER_FRAMES(X)
#undef X
	check_that(fgets(row, sizeof row, f) != NULL && row[0] == '\n', "PROTOCOL.md has one too many: %s", row);
	fclose(f);
}

/* And what each is made of is told: in a section of its name and number, a table of its fields, or as nothing. */
static void every_frame_is_described(void **state)
{
	char heading[60], table[60], nothing[60], *text = protocol();

	(void)state;
#define X(name, number, max)                                                   \
	snprintf(heading, sizeof heading, "%s (%d)", #name, number);           \
	snprintf(table, sizeof table, "| field of %s |", #name);               \
	snprintf(nothing, sizeof nothing, "%s has no payload", #name);         \
	check_that(strstr(text, heading) != NULL || strstr(text, table) != NULL || strstr(text, nothing) != NULL, \
	    "PROTOCOL.md does not describe %s", #name);
	WIRE_PEER_FRAMES(X)
#undef X
	free(text);
}

static void every_ability_is_described(void **state)
{
	char *text = protocol(), *table = strstr(text, "| ability | |"), *end = NULL, row[20];
	unsigned i;

	(void)state;
	check_that(table != NULL && (end = strstr(table, "\n\n")) != NULL, "PROTOCOL.md has no table of abilities");
	*end = '\0';
	for (i = WIRE_ABLE_ONE_CHANNEL; i <= WIRE_ABLE_ONE_CHANNEL; i++) {
		snprintf(row, sizeof row, "\n| %u | ", i);
		check_that(strstr(table, row) != NULL, "PROTOCOL.md does not have ability %u", i);
	}
	free(text);
}

/* The field that gives the length of a DATA or the count of an ARRAY. */
static const struct wire_field *count_of(const struct wire_layout *l, const struct wire_field *d)
{
	const struct wire_field *c;

	for (c = l->field; c < l->field + l->n; c++)
		if (d->kind == WIRE_FIELD_ARRAY ? c->kind == WIRE_FIELD_UINT && c->at == d->count_at :
		    c->kind == WIRE_FIELD_LENGTH && c->at == d->at)
			return c;
	fail_msg("%s has no length", d->name);
	return NULL;
}

static unsigned largest_payload(const struct wire_layout *l)
{
	const struct wire_field *d;
	unsigned bytes = 0;

	for (d = l->field; d != NULL && d < l->field + l->n; d++)
		if (d->kind == WIRE_FIELD_ARRAY)
			bytes += d->size * (unsigned)count_of(l, d)->max;
		else if (d->kind == WIRE_FIELD_LENGTH)
			bytes += d->size + (unsigned)d->max;
		else
			bytes += d->size;
	return bytes;
}

/* The limit of a type is the size of its largest payload; HELLO can grow, the others here end with a list. */
static void limits_are_the_largest_payloads(void **state)
{
	(void)state;
#define X(name, number, max)                                                   \
	if (number != WIRE_HELLO && number != WIRE_OPEN && number != WIRE_SELECT && number != WIRE_OPENED && \
	    number != WIRE_ENTRY && number != WIRE_READ && number != WIRE_SUM && \
	    number != WIRE_MANAGE && number != WIRE_HASHES && number != WIRE_PIECES && number != WIRE_SEND && \
	    number != WIRE_SENT && \
	    number != WIRE_WROTE && number != WIRE_BLOCK) \
		assert_int_equal(largest_payload(&wire_layouts[number]), max); \
	assert_int_equal(WIRE_##name##_MAX_BYTES, WIRE_HEADER_BYTES + (max));
	WIRE_FRAMES(X)
#undef X
}

/* ---- The tables of PROTOCOL.md ---- */

/* "name `type`" of a field, as PROTOCOL.md writes it. */
/* Times before 1970. */
static bool is_signed(const struct wire_field *d)
{
	return strcmp(d->name, "mtime_s") == 0 || strcmp(d->name, "newer_s") == 0 || strcmp(d->name, "older_s") == 0 ||
	    strcmp(d->name, "start") == 0 || strcmp(d->name, "end") == 0;
}

static void describe(char out[80], const struct wire_layout *l, const struct wire_field *d)
{
	switch ((enum wire_field_kind)d->kind) {
	case WIRE_FIELD_DATA:
		snprintf(out, 80, "%s `bytes[%s]`", d->name, count_of(l, d)->name);
		break;
	case WIRE_FIELD_REST:
		snprintf(out, 80, "%s", d->name);
		break;
	case WIRE_FIELD_BYTES:
		snprintf(out, 80, "%s `bytes[%u]`", d->name, d->size);
		break;
	case WIRE_FIELD_ARRAY:
		snprintf(out, 80, "%s %s times `u%u`", d->name, count_of(l, d)->name, 8 * d->size);
		break;
	default:
		if (d + 1 < l->field + l->n && d[1].name == NULL) /* two halves */
			snprintf(out, 80, "%s `bytes[16]`", d->name);
		else
			snprintf(out, 80, "%s%s`%c%u`", d->name, d->name[0] != '\0' ? " " : "",
			    is_signed(d) ? 'i' : 'u', 8 * d->size);
	}
}

/* A number in the text, not a part of another one. */
static bool mentions(const char *text, const char *number)
{
	const char *at = text, *after;

	while ((at = strstr(at, number)) != NULL) {
		after = at + strlen(number);
		if ((at == text || strchr("0123456789,^x", at[-1]) == NULL) && strchr("0123456789^", *after) == NULL &&
		    !(*after == ',' && after[1] >= '0' && after[1] <= '9'))
			return true;
		at = after;
	}
	return false;
}

/* The description gives the number, in one of the ways that PROTOCOL.md writes large ones. */
static bool states(const char *text, uint64_t v)
{
	static const char *const format[] = { "%llu", "2^%llu", "10^%llu", "bit %llu", "2^64 - %llu", "0%llo" };
	uint64_t of[] = { v, 65, 20, 65, UINT64_MAX - v + 1, v }, power = 1;
	char number[40];
	size_t i;

	for (i = 0; i < 64; i++) {
		if (v == UINT64_C(1) << i)
			of[1] = i;
		if (v >> i == 1 && (v & (v + 1)) == 0)
			of[3] = i;
	}
	for (i = 0; i < 20; i++, power *= 10)
		if (v == power || v == power - 1)
			of[2] = i;
	for (i = 0; i < sizeof of / sizeof *of; i++) {
		snprintf(number, sizeof number, format[i], (unsigned long long)of[i]);
		if (mentions(text, number))
			return true;
	}
	return (v & (v + 1)) == 0 && v > 1 && states(text, v - (v >> 1)); /* the highest of several flags */
}

/* The description of a field in `row` says which values the decoder accepts, or refers to the tables that do. */
static void check_limits(const char *name, const struct wire_field *d, const char *row)
{
	uint64_t natural = d->size < 8 ? (UINT64_C(1) << 8 * d->size) - 1 : UINT64_MAX;
	char text[500];

	snprintf(text, sizeof text, "%.*s", (int)strcspn(row, "\n"), row);
	if ((d->kind != WIRE_FIELD_UINT && d->kind != WIRE_FIELD_LENGTH && d->kind != WIRE_FIELD_ARRAY) ||
	    strstr(text, "see below") != NULL)
		return;
	check_that(d->max >= natural || states(text, d->max) ||
	    (d->max == WIRE_LINK_NS_MAX && strstr(text, "at most an hour")),
	    "PROTOCOL.md, %s: %s is at most %llu, instead of %s", name, d->name, (unsigned long long)d->max, text);
	check_that(d->min == 0 || mentions(text, "not 0") || states(text, d->min),
	    "PROTOCOL.md, %s: %s is at least %llu, instead of %s", name, d->name, (unsigned long long)d->min, text);
}

/* Rows of the table at `text` are the fields of l, with their offsets and limits; more rows may follow only where types
 * share a table. */
static void check_table(const char *name, const char *text, const struct wire_layout *l, bool shared)
{
	char offset[60] = "", field[80], row[180];
	const struct wire_field *d;
	unsigned fixed = 0;
	bool progress = false;

	for (d = l->field; d < l->field + l->n; d++) {
		if (d->name == NULL || (progress && d->at < offsetof(struct wire_state,
		    progress) + sizeof(struct ptcp_progress) && d->kind == WIRE_FIELD_UINT)) {
			fixed += d->size;
			continue;
		}
		describe(field, l, d);
		if (l == &wire_layouts[WIRE_STATE] && d->at == offsetof(struct wire_state, progress)) {
			progress = true; /* the fields of PROGRESS, in one row */
			strcpy(field, "progress `bytes[86]`");
		}
		text = strchr(text, '\n') + 1;
		snprintf(row, sizeof row, "| %u%s | %s |", fixed, offset, field);
		check_that(strncmp(text, row, strlen(row)) == 0, "PROTOCOL.md, %s: %.60s.. instead of %s",
		    name, text, row);
		check_limits(name, d, text + strlen(row));
		if (d->kind == WIRE_FIELD_DATA)
			snprintf(offset + strlen(offset), sizeof offset - strlen(offset), " + %s",
			    count_of(l, d)->name);
		else if (d->kind == WIRE_FIELD_ARRAY)
			snprintf(offset + strlen(offset), sizeof offset - strlen(offset), " + %.0u%s",
			    d->size > 1 ? d->size : 0, count_of(l, d)->name);
		else
			fixed += d->size;
	}
	check_that(shared || strchr(text, '\n')[1] == '\n', "PROTOCOL.md, %s: a field too many", name);
}

/* PROTOCOL.md lists the fields of each frame, in order, with offsets, types and limits. */
static void every_field_is_listed(void **state)
{
	char *text = protocol(), title[60], *at, *table;
	bool shared;

	(void)state;
#define X(name, number, max)                                                   \
	shared = number == WIRE_NEED || number == WIRE_HOLE || number == WIRE_MATCH || number == WIRE_SPLIT; \
	snprintf(title, sizeof title, "| offset | field of %s |", shared || \
	    number == WIRE_HAVE ? "NEED, HAVE, HOLE, MATCH and SPLIT" : #name); \
	if ((table = strstr(text, title)) == NULL) {                           \
		snprintf(title, sizeof title, "\n### %s (%d)\n", #name, number); \
		if ((at = strstr(text, title)) != NULL)                        \
			table = strstr(at, "| offset | field | |");            \
	}                                                                      \
	if (wire_layouts[number].n > 1) {                                      \
		check_that(table != NULL, "PROTOCOL.md has no table of %s", #name); \
		check_table(#name, strchr(table, '\n') + 1, &wire_layouts[number], shared); \
	}
	WIRE_PEER_FRAMES(X)
#undef X
	free(text);
}

/* The table behind `head` has exactly these rows, each beginning with a number and a name (or a number alone). */
struct value {
	uint64_t number;
	const char *name;
};

static void check_values(const char *text, const char *head, const struct value *value, size_t n)
{
	const char *row = strstr(text, head);
	char begins[80];
	size_t i;

	check_that(row != NULL, "PROTOCOL.md has no table %s", head);
	row = strchr(strchr(row, '\n') + 1, '\n') + 1; /* behind the line of dashes */
	for (i = 0; i < n; i++, row = strchr(row, '\n') + 1) {
		snprintf(begins, sizeof begins, "| %llu | %s", (unsigned long long)value[i].number, value[i].name);
		check_that(strncmp(row, begins, strlen(begins)) == 0, "PROTOCOL.md: %.60s.. instead of %s", row,
		    begins);
	}
	check_that(*row == '\n', "PROTOCOL.md, table %s: a row too many: %.60s", head, row);
}

#define VALUES(text, head, ...) \
	check_values(text, head, (const struct value[]){ __VA_ARGS__ }, \
	    sizeof((const struct value[]){ __VA_ARGS__ }) / sizeof(struct value))

static int by_number(const void *a, const void *b)
{
	const struct value *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

static void every_value_is_listed(void **state)
{
	struct value flags[] = {
#define SENT(member, bit, FLAG, ...) { UINT64_C(1) << bit, #FLAG " |" },
#define OF_PATH(FLAG, bit) { UINT64_C(1) << bit, #FLAG " |" },
		PTCP_TRANSFER_OPTIONS(PTCP_NO_ROW, SENT, PTCP_NO_ROW, PTCP_NO_ROW)
		OPEN_BITS_OF_PATHS(OF_PATH) OPEN_BITS_OF_DELTA(OF_PATH)
#undef OF_PATH
	}, preserved[] = { PTCP_OPTIONS_PRESERVE(SENT)
#undef SENT
	};
	char *text = protocol();

	(void)state;
	qsort(flags, sizeof flags / sizeof *flags, sizeof *flags, by_number);
	check_values(text, "| flag | name | |", flags, sizeof flags / sizeof *flags);
	check_values(text, "| preserve | name | |", preserved, sizeof preserved / sizeof *preserved);
	VALUES(text, "| role | name | |", { WIRE_ACCEPTOR_RECEIVES, "ACCEPTOR_RECEIVES |" },
	    { WIRE_ACCEPTOR_SENDS, "ACCEPTOR_SENDS |" },
	    { WIRE_ACCEPTOR_DISCARDS, "ACCEPTOR_DISCARDS |" }, { WIRE_ACCEPTOR_GENERATES, "ACCEPTOR_GENERATES |" });
	VALUES(text, "| kind | |", { WIRE_PATH_PLACE, "a source, or the destination" },
	    { WIRE_PATH_CONTENTS, "a source: the content" },
	    { WIRE_PATH_RULE, "RULE:" },
	    { WIRE_PATH_BACKUP_DIR, "BACKUP_DIR:" }, { WIRE_PATH_SUFFIX, "SUFFIX:" },
	    { WIRE_PATH_LINK_DEST, "LINK_DEST:" }, { WIRE_PATH_COMPARE_DEST, "COMPARE_DEST:" },
	    { WIRE_PATH_COPY_DEST, "COPY_DEST:" },
	    { WIRE_PATH_IF_MATCH, "IF_MATCH:" });
	VALUES(text, "| congestion | name | |", { WIRE_CC_AUTO, "AUTO |" }, { WIRE_CC_SYSTEM, "SYSTEM |" },
	    { WIRE_CC_CUBIC, "CUBIC |" }, { WIRE_CC_BBR, "BBR |" }, { WIRE_CC_RENO, "RENO |" },
	    { WIRE_CC_YIELD, "YIELD |" },
	    { WIRE_CC_FAIR, "FAIR |" });
	VALUES(text, "| tag | name | of | value |", { WIRE_ATTR_VERSION, "VERSION |" },
	    { WIRE_ATTR_SPARSE, "SPARSE |" },
	    { WIRE_ATTR_LINK_ID, "LINK_ID |" }, { WIRE_ATTR_OWNER, "OWNER |" }, { WIRE_ATTR_XATTRS, "XATTRS |" },
	    { WIRE_ATTR_LINKED, "LINKED |" }, { WIRE_ATTR_UNSIZED, "UNSIZED |" });
	VALUES(text, "| op | |", { WIRE_MANAGE_LIST, "LIST:" }, { WIRE_MANAGE_COUNT, "COUNT:" },
	    { WIRE_MANAGE_MKDIR, "MKDIR" },
	    { WIRE_MANAGE_REMOVE, "REMOVE" }, { WIRE_MANAGE_RENAME, "RENAME:" },
	    { WIRE_MANAGE_RMDIR, "RMDIR:" }, { WIRE_MANAGE_TOUCH, "TOUCH:" });
	VALUES(text, "| flag of MANAGE | name | of | |", { WIRE_MANAGE_RECURSIVE, "RECURSIVE |" },
	    { WIRE_MANAGE_HIDDEN, "HIDDEN |" },
	    { WIRE_MANAGE_ITSELF, "ITSELF |" }, { WIRE_MANAGE_PARENTS, "PARENTS |" },
	    { WIRE_MANAGE_REPLACE, "REPLACE |" },
	    { WIRE_MANAGE_LITERAL, "LITERAL |" });
	VALUES(text, "| flag of WRITE | name | |", { WIRE_WRITE_EXCLUSIVE, "EXCLUSIVE |" },
	    { WIRE_WRITE_MKPATH, "MKPATH |" }, { WIRE_WRITE_MODE, "MODE |" });
#define X(name, value, text) { -(value), "" },
	VALUES(text, "| code | meaning |", PTCP_ERRORS(X));
#undef X
	free(text);
}

/* ---- Headers ---- */

static void headers(void **state)
{
	static const struct { const char *hex; bool good; } cases[] = {
		{ "0501 0000 00000009", true },
		{ "0500 0000 00000009", true },   /* the flag says nothing to who knows the type */
		{ "0501 0000 00000009", true },   /* the largest PING */
		{ "0501 0000 0000000a", false },
		{ "0501 0000 ffffffff", false },
		{ "0503 0000 00000009", false },  /* unknown flags */
		{ "0581 0000 00000009", false },
		{ "0501 0100 00000009", false },  /* reserved bytes */
		{ "0501 0001 00000009", false },
		{ "2001 0000 00040028", true },   /* the largest BLOCK */
		{ "2001 0000 00040029", false },
		{ "1001 0000 00010000", true },   /* the largest ENTRY */
		{ "1001 0000 00010001", false },
		{ "0001 0000 00000000", false },  /* unknown and critical */
		{ "6a01 0000 00000000", false },
		{ "ff01 0000 00000000", false },
		{ "0000 0000 00000000", true },   /* unknown, to be skipped */
		{ "6a00 0000 00010000", true },
		{ "ff00 0000 00010000", true },
		{ "6a00 0000 00010001", false },  /* but not at any length */
		{ "ff02 0000 00000000", false },
	};
	struct wire_header h, untouched = { 7, 7, 7 };
	uint8_t in[WIRE_HEADER_BYTES], out[WIRE_HEADER_BYTES], *copy;
	struct ptcp_err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(hex_bytes(in, cases[i].hex), sizeof in);
		copy = exact(in, sizeof in);
		h = untouched;
		e = (struct ptcp_err){ 0 };
		if (cases[i].good) {
			check_that(wire_header_decode(&h, copy, &e) == 0, "%s", cases[i].hex);
			wire_header_encode(out, &h);
			assert_memory_equal(out, in, sizeof in);
		} else {
			check_that(wire_header_decode(&h, copy, &e) == PTCP_EPROTO, "%s", cases[i].hex);
			assert_memory_equal(&h, &untouched, sizeof h);
			assert_int_equal(e.code, PTCP_EPROTO);
			assert_true(e.msg[0] != '\0');
			assert_int_equal(wire_header_decode(&h, copy, NULL), PTCP_EPROTO);
		}
		free(copy);
	}
}

/* All 256 types at all lengths around their limits: only known ones may be critical. */
static void header_of_every_type(void **state)
{
	uint8_t in[WIRE_HEADER_BYTES];
	struct wire_header h;
	unsigned type;
	int r;

	(void)state;
	for (type = 0; type < 256; type++) {
		wire_header_encode(in, &(struct wire_header){ (uint8_t)type, WIRE_CRITICAL, 0 });
		r = wire_header_decode(&h, in, NULL);
		assert_int_equal(r, wire_type_known(type) ? 0 : PTCP_EPROTO);
		wire_header_encode(in, &(struct wire_header){ (uint8_t)type, 0, 0 });
		assert_int_equal(wire_header_decode(&h, in, NULL), 0);
		wire_header_encode(in, &(struct wire_header){ (uint8_t)type, 0,
		    WIRE_CHUNK_BYTES + 1000 });
		assert_int_equal(wire_header_decode(&h, in, NULL), PTCP_EPROTO);
	}
}

/* ---- Blocks ---- */

static void block_golden(void **state)
{
	const struct wire_block b = { .id = 0x10002, .offset = 262144, .length_bytes = 5 };
	const struct wire_block_end end = { WIRE_BLOCK_GOOD, 0x0123456789abcdef };
	uint8_t f[SAMPLE_MAX_BYTES], *copy;
	struct wire_block d = { 0 };
	struct wire_block_end de = { 9, 9 };
	size_t n;

	(void)state;
	n = wire_block_encode(f, &b);
	assert_int_equal(n, WIRE_BLOCK_HEAD_BYTES);
	memcpy(f + n, "hello", 5);
	n += 5;
	assert_int_equal(wire_block_end_encode(f + n, &end), WIRE_BLOCK_END_BYTES);
	n += WIRE_BLOCK_END_BYTES;
	drop(check_golden("block", f, n));

	copy = exact(f, WIRE_BLOCK_HEAD_BYTES);
	assert_int_equal(wire_block_decode(&d, copy, NULL), 0);
	assert_int_equal(d.id, b.id);
	assert_int_equal(d.offset, b.offset);
	assert_int_equal(d.length_bytes, b.length_bytes);
	free(copy);
	copy = exact(f + n - WIRE_BLOCK_END_BYTES, WIRE_BLOCK_END_BYTES);
	assert_int_equal(wire_block_end_decode(&de, copy, NULL), 0);
	assert_int_equal(de.status, end.status);
	assert_int_equal(de.check, end.check);
	free(copy);
}

static void block_rules(void **state)
{
	static const struct patch cases[] = {
		{ "slot out of range", "block", 0, "0000000000014000", false },
		{ "last slot", "block", 0, "0000000000013fff", true },
		{ "id without a count", "block", 0, "0000000000000002", false },
		{ "largest id", "block", 0, "ffffffffffff3fff", true },
		{ "beyond the largest file", "block", 8, "0001000000000000", false },
		{ "over the end of the largest file", "block", 8, "0000fffffffffffc", false },
		{ "last bytes of the largest file", "block", 8, "0000fffffffffffb", true },
		{ "offset that would wrap", "block", 8, "ffffffffffffffff", false },
		{ "fewer bytes than the header says", "block", 16, "00000004", false },
		{ "more bytes than the header says", "block", 16, "00000006", false },
		{ "length that would wrap", "block", 16, "ffffffe0", false },
		{ "compressed length that the header does not have", "block", 20, "00000001", false },
		{ "void", "block", 29, "00000001", true },
		{ "unknown status", "block", 29, "00000002", false },
		{ "unknown status", "block", 29, "ffffffff", false },
		{ "reserved field at the end", "block", 33, "80000000", false },
		{ "any check", "block", 37, "ffffffffffffffff", true },
	};
	static const struct payload whole[] = {
		{ "empty block", WIRE_BLOCK, "0000000000010002 0000000000000000 00000000 00000000"
		    "00000000 00000000 0000000000000000", false },
		{ "block of one byte", WIRE_BLOCK, "0000000000010002 0000000000000000 00000001"
		    "00000000 ff 00000000 00000000 0000000000000000", true },
		{ "compressed block", WIRE_BLOCK, "0000000000010002 0000000000000000 00040000"
		    "00000003 aabbcc 00000000 00000000 0000000000000000", true },
		{ "compressed to its own length", WIRE_BLOCK, "0000000000010002 0000000000000000 00000003"
		    "00000003 aabbcc 00000000 00000000 0000000000000000", false },
		{ "a patch without a piece", WIRE_BLOCK, "0000000000010002 0000000000000000 00040000"
		    "80000008 ffffffffffffffff 00000000 00000000 0000000000000000", true },
		{ "a patch that does not tell the pieces", WIRE_BLOCK, "0000000000010002 0000000000000000 00040000"
		    "80000007 ffffffffffffff 00000000 00000000 0000000000000000", false },
		{ "a patch as long as the block", WIRE_BLOCK, "0000000000010002 0000000000000000 00000008"
		    "80000008 ffffffffffffffff 00000000 00000000 0000000000000000", false },
		{ "compressed to more", WIRE_BLOCK, "0000000000010002 0000000000000000 00000002"
		    "00000003 aabbcc 00000000 00000000 0000000000000000", false },
		{ "compressed from more than a chunk", WIRE_BLOCK, "0000000000010002 0000000000000000 00040001"
		    "00000003 aabbcc 00000000 00000000 0000000000000000", false },
	};
	uint8_t f[WIRE_BLOCK_HEAD_BYTES];
	struct wire_block d;

	(void)state;
	check_patches(cases, sizeof cases / sizeof *cases);
	check_payloads(whole, sizeof whole / sizeof *whole);

	/* Another frame of the same length is no block. */
	wire_block_encode(f, &(struct wire_block){ .id = 0x10002, .length_bytes = 5 });
	f[0] = WIRE_ENTRY;
	assert_int_equal(wire_block_decode(&d, f, NULL), PTCP_EPROTO);
}

static void pieces_of_blocks(void **state)
{
	static uint8_t data[WIRE_CHUNK_BYTES], was[WIRE_CHUNK_BYTES];
	static const struct { uint32_t n; uint64_t omit; uint32_t rest; bool fits; } cases[] = {
		{ WIRE_CHUNK_BYTES, UINT64_MAX, 0, true }, { WIRE_CHUNK_BYTES, 1, WIRE_CHUNK_BYTES - 4096, true },
		{ WIRE_CHUNK_BYTES, UINT64_C(1) << 63, WIRE_CHUNK_BYTES - 4096, true }, { 1, 1, 0, true }, { 1, 2, 1,
		    false },
		{ 4096, 2, 4096, false }, { 4097, 2, 4096, true }, { 4097, 1, 1, true }, { 4097, 5, 1, false },
		{ 10000, 5, 4096, true }, { 10000, 2, 5904, true },
	};
	uint32_t i, k;

	(void)state;
	for (k = 0; k < sizeof data; k++)
		was[k] = (uint8_t)(k * 7 + k / 4096);
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(wire_omit_fits(cases[i].omit, cases[i].n), cases[i].fits);
		assert_int_equal(wire_patch_bytes(cases[i].n, cases[i].omit), cases[i].rest);
		memcpy(data, was, sizeof data);
		assert_int_equal(wire_patch_gather(data, cases[i].n, cases[i].omit), cases[i].rest);
		memset(data + cases[i].rest, 0, cases[i].n - cases[i].rest);
		wire_patch_spread(data, cases[i].n, cases[i].omit);
		for (k = 0; k < cases[i].n; k++)
			assert_true((cases[i].omit >> k / 4096 & 1) != 0 || data[k] == was[k]);
		assert_memory_equal(data + cases[i].n, was + cases[i].n, sizeof data - cases[i].n);
	}
}

static void largest_block(void **state)
{
	const struct wire_block b = { UINT64_C(0xffffffffffff3fff), WIRE_FILE_MAX - WIRE_CHUNK_BYTES,
		WIRE_CHUNK_BYTES, 0, false };
	const struct wire_block_end end = { WIRE_BLOCK_VOID, UINT64_MAX };
	uint8_t *f = malloc(RECODE_MAX_BYTES);
	size_t n;
	bool same;

	(void)state;
	assert_non_null(f);
	n = wire_block_encode(f, &b);
	memset(f + n, 0x5a, b.length_bytes);
	n += b.length_bytes;
	n += wire_block_end_encode(f + n, &end);
	assert_int_equal(n, RECODE_MAX_BYTES);
	assert_int_equal(recode_exact(f, n, &same), 0);
	assert_true(same);
	/* One more, consistently, is over the limit. */
	put_u32(f + 4, WIRE_BLOCK_FIELDS + WIRE_CHUNK_BYTES + 1 + WIRE_BLOCK_END_BYTES);
	put_u32(f + WIRE_HEADER_BYTES + 16, WIRE_CHUNK_BYTES + 1);
	assert_int_equal(recode_exact(f, n, &same), PTCP_EPROTO);
	free(f);
}

/* ---- The grid ---- */

static void check_grid(uint64_t size)
{
	uint32_t b = wire_grid_bytes(size), n = wire_grid_blocks(wire_grid_of(size)), i, last;
	uint64_t sum = 0;

	check_that(b == 256u << 10 || b == 512u << 10 || b == 1u << 20 || b == 2u << 20,
	    "%llu: blocks of %u", (unsigned long long)size, b);
	assert_true(n <= 1u << 27);
	if (size == 0) {
		assert_int_equal(n, 0);
		assert_int_equal(wire_grid_length(wire_grid_of(size), 0), 0);
		return;
	}
	/* As small as the number of blocks allows. */
	assert_true(n <= 1u << 20 || b == WIRE_BLOCK_MAX);
	if (b > 256u << 10)
		assert_true(size > (uint64_t)(b / 2) << 20);
	/* All full but for the last, which has the rest. */
	assert_true(n > 0);
	last = wire_grid_length(wire_grid_of(size), n - 1);
	assert_in_range(last, 1, b);
	check_that((uint64_t)(n - 1) * b + last == size, "%llu: not covered",
	    (unsigned long long)size);
	for (i = 0; i < n - 1; i += n <= 4096 ? 1 : n / 64)
		assert_int_equal(wire_grid_length(wire_grid_of(size), i), b);
	if (n > 1)
		assert_int_equal(wire_grid_length(wire_grid_of(size), n - 2), b);
	for (i = 0; n <= 4096 && i < n; i++)
		sum += wire_grid_length(wire_grid_of(size), i);
	assert_true(n > 4096 || sum == size);
	check_that(wire_grid_range_bytes(wire_grid_of(size), 0, n) == size &&
	    wire_grid_range_bytes(wire_grid_of(size), n - 1, UINT32_MAX) == last &&
	    wire_grid_range_bytes(wire_grid_of(size), n / 2, 1) == wire_grid_length(wire_grid_of(size), n / 2) &&
	    wire_grid_range_bytes(wire_grid_of(size), n, 1) == 0, "%llu: ranges", (unsigned long long)size);
	/* Nothing beyond. */
	assert_int_equal(wire_grid_length(wire_grid_of(size), n), 0);
	assert_int_equal(wire_grid_length(wire_grid_of(size), n + 1), 0);
	assert_int_equal(wire_grid_length(wire_grid_of(size), UINT32_MAX), 0);
}

static void grid_of_known_sizes(void **state)
{
	static const struct { uint64_t size; uint32_t bytes, blocks; } cases[] = {
		{ 0, 1u << 18, 0 },
		{ 1, 1u << 18, 1 },
		{ (1u << 18) - 1, 1u << 18, 1 },
		{ 1u << 18, 1u << 18, 1 },
		{ (1u << 18) + 1, 1u << 18, 2 },
		{ (1u << 19) - 1, 1u << 18, 2 },
		{ 5000000000, 1u << 18, 19074 },
		{ UINT64_C(1) << 32, 1u << 18, 1u << 14 },
		{ (UINT64_C(1) << 38) - 1, 1u << 18, 1u << 20 },
		{ UINT64_C(1) << 38, 1u << 18, 1u << 20 },
		{ (UINT64_C(1) << 38) + 1, 1u << 19, (1u << 19) + 1 },
		{ UINT64_C(1) << 39, 1u << 19, 1u << 20 },
		{ (UINT64_C(1) << 39) + 1, 1u << 20, (1u << 19) + 1 },
		{ UINT64_C(1) << 40, 1u << 20, 1u << 20 },
		{ (UINT64_C(1) << 40) + 1, 1u << 21, (1u << 19) + 1 },
		{ UINT64_C(1) << 41, 1u << 21, 1u << 20 },
		{ (UINT64_C(1) << 41) + 1, 1u << 21, (1u << 20) + 1 },
		{ WIRE_FILE_MAX - 1, 1u << 21, 1u << 27 },
		{ WIRE_FILE_MAX, 1u << 21, 1u << 27 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(wire_grid_bytes(cases[i].size), cases[i].bytes);
		assert_int_equal(wire_grid_blocks(wire_grid_of(cases[i].size)), cases[i].blocks);
		check_grid(cases[i].size);
	}
}

/* Too large is refused before; if it is not, nothing wraps. */
static void grid_of_impossible_sizes(void **state)
{
	static const uint64_t sizes[] = { WIRE_FILE_MAX + 1, UINT64_C(1) << 60,
		UINT64_MAX - WIRE_BLOCK_MAX, UINT64_MAX - 1, UINT64_MAX };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		assert_int_equal(wire_grid_bytes(sizes[i]), WIRE_BLOCK_MAX);
		assert_int_equal(wire_grid_blocks(wire_grid_of(sizes[i])), 0);
		assert_int_equal(wire_grid_length(wire_grid_of(sizes[i]), 0), 0);
		assert_int_equal(wire_grid_length(wire_grid_of(sizes[i]), UINT32_MAX), 0);
	}
}

static bool chunk_at(struct wire_chunk *c, uint64_t size, uint64_t offset, uint32_t n)
{
	const struct wire_block b = { .id = 0x10002, .offset = offset, .length_bytes = n };

	return wire_chunk_find(c, &b, wire_grid_of(size));
}

/* The chunks of a file cover the file, and nothing else fits. */
static void chunks(void **state)
{
	static const uint64_t sizes[] = { 1, 5, WIRE_CHUNK_BYTES, WIRE_CHUNK_BYTES + 1, 5000000,
		(UINT64_C(1) << 38) + 1,
		(UINT64_C(1) << 39) + WIRE_CHUNK_BYTES + 7, (UINT64_C(1) << 41) - 3, WIRE_FILE_MAX };
	struct wire_chunk c;
	uint64_t size, off, from;
	uint32_t grid, n;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		size = sizes[i];
		grid = wire_grid_bytes(size);
		from = size > 64 * (uint64_t)grid ? (size - 1) / grid * grid - 60 * (uint64_t)grid : 0;
		for (off = from; off < size; off += n) {
			n = size - off < WIRE_CHUNK_BYTES ? (uint32_t)(size - off) : WIRE_CHUNK_BYTES;
			assert_true(chunk_at(&c, size, off, n));
			assert_int_equal(c.block, off / grid);
			assert_int_equal(c.block_bytes, wire_grid_length(wire_grid_of(size), c.block));
			assert_int_equal(c.index, off % grid / WIRE_CHUNK_BYTES);
			assert_int_equal(c.last, off + n == size || (off + n) % grid == 0);
			assert_false(chunk_at(&c, size, off, n + 1));
			assert_false(n > 1 && chunk_at(&c, size, off, n - 1));
			assert_false(n > 1 && chunk_at(&c, size, off + 1, n - 1));
			assert_false(chunk_at(&c, size, off + 1, n));
		}
		assert_false(chunk_at(&c, size, size, 1));
	}
	assert_false(chunk_at(&c, 0, 0, 1));
	assert_false(chunk_at(&c, WIRE_FILE_MAX + 1, 0, WIRE_CHUNK_BYTES));
	assert_false(chunk_at(&c, UINT64_MAX, UINT64_MAX - 1, 1));
}

static void grid_of_random_sizes(void **state)
{
	uint64_t x = 0x9e3779b97f4a7c15; /* xorshift64 from a fixed start */
	unsigned i;

	(void)state;
	for (i = 0; i < 20000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		check_grid((x & (WIRE_FILE_MAX - 1)) >> (x >> 58) % 48);
	}
	for (i = 18; i <= 48; i++) {
		check_grid((UINT64_C(1) << i) - 1);
		check_grid(UINT64_C(1) << i);
		if (i < 48)
			check_grid((UINT64_C(1) << i) + 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_sample), cmocka_unit_test(seeds_of_the_fuzz_target),
		cmocka_unit_test(one_after_the_other),
		cmocka_unit_test(every_frame_has_a_sample),
		cmocka_unit_test(every_frame_is_listed),
		cmocka_unit_test(every_frame_is_described),
		cmocka_unit_test(every_ability_is_described),
		cmocka_unit_test(limits_are_the_largest_payloads),
		cmocka_unit_test(every_field_is_listed),
		cmocka_unit_test(every_value_is_listed),
		cmocka_unit_test(headers),
		cmocka_unit_test(header_of_every_type),
		cmocka_unit_test(block_golden),
		cmocka_unit_test(block_rules),
		cmocka_unit_test(largest_block), cmocka_unit_test(pieces_of_blocks),
		cmocka_unit_test(grid_of_known_sizes),
		cmocka_unit_test(grid_of_impossible_sizes),
		cmocka_unit_test(chunks),
		cmocka_unit_test(grid_of_random_sizes),
	};
	return cmocka_run_group_tests_name("wire/frame", tests, NULL, NULL);
}
