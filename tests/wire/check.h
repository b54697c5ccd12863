/* What the tests of src/wire share: goldens, patches of goldens, and the properties that
 * every frame has. Include after cmocka.h. */
#ifndef TESTS_WIRE_CHECK_H
#define TESTS_WIRE_CHECK_H

#include <stdbool.h>
#include <stdlib.h>

#include "recode.h"
#include "samples.h"

#define check_that(cond, ...)                                                  \
	do {                                                                   \
		if (!(cond))                                                   \
			fail_msg(__VA_ARGS__);                                 \
	} while (0)

/* A copy that ends where its memory ends, so that a sanitizer sees the first byte too
 * many; malloc(0) may be NULL and so is the copy of nothing. */
static inline uint8_t *exact(const uint8_t *p, size_t n)
{
	uint8_t *q = n > 0 ? malloc(n) : NULL;

	assert_true(n == 0 || q != NULL);
	if (n > 0)
		memcpy(q, p, n);
	return q;
}

static inline uint8_t *recode_room(void)
{
	static uint8_t room[RECODE_MAX_BYTES];

	return room;
}

/* recode() of an exact copy; `same`: it gave back what it was given. The frame itself is
 * not touched. Errors must leave a sentence only from decoders, so `e` is not looked at. */
static inline int recode_exact(const uint8_t *frame, size_t n, bool *same)
{
	uint8_t *copy = exact(frame, n);
	struct ptcp_err e;
	size_t out_n = 0;
	int r = recode(copy, n, recode_room(), &out_n, &e);

	*same = r == 0 && recoded_same(frame, n, recode_room(), out_n);
	free(copy);
	return r;
}

/* A header's length that fits what follows it. */
static inline void set_length(uint8_t *frame, size_t n)
{
	put_u32(frame + 4, (uint32_t)(n - WIRE_HEADER_BYTES));
}

/* A HELLO of a side that also speaks later versions may go on. */
static inline bool open_ended(const uint8_t *frame, size_t n)
{
	const uint8_t *p = frame + WIRE_HEADER_BYTES;

	return frame[0] == WIRE_HELLO && n >= WIRE_HEADER_BYTES + 8 && get_u16(p + 6) > WIRE_VERSION;
}

/* A good frame: comes back as it is; refused when it ends early (its header saying so) or
 * goes on; with one bit flipped either refused or another good frame. */
static inline void check_frame(const char *name, const uint8_t *frame, size_t n)
{
	size_t i, step = n > 1024 ? 127 : 1;
	uint8_t *f = malloc(n + 1);
	bool same;
	int r;

	assert_non_null(f);
	memcpy(f, frame, n);
	f[n] = 0;
	r = recode_exact(f, n, &same);
	check_that(r != RECODE_MISSING, "%s: no layout in fields.c", name);
	check_that(r == 0 && same, "%s: does not come back", name);
	for (i = WIRE_HEADER_BYTES; i < n; i += step) {
		set_length(f, i);
		r = recode_exact(f, i, &same);
		check_that(r < 0 || (open_ended(f, i) && same), "%s: cut to %zu bytes", name, i);
	}
	if (n < RECODE_MAX_BYTES) {
		set_length(f, n + 1);
		r = recode_exact(f, n + 1, &same);
		check_that(r < 0 || (open_ended(f, n + 1) && same), "%s: and one byte more", name);
	}
	memcpy(f, frame, n);
	for (i = 0; i < n * 8; i += i < 1024 ? 1 : step) {
		f[i / 8] ^= (uint8_t)(0x80 >> i % 8);
		r = recode_exact(f, n, &same);
		check_that(r < 0 || (r == 0 && same), "%s: bit %zu flipped", name, i);
		f[i / 8] ^= (uint8_t)(0x80 >> i % 8);
	}
	free(f);
}

/* The golden frame of that name at `out`, which has SAMPLE_MAX_BYTES. */
static inline size_t golden(const char *name, uint8_t *out)
{
	size_t i;

	for (i = 0; i < N_SAMPLES; i++)
		if (strcmp(samples[i].name, name) == 0)
			return hex_bytes(out, samples[i].hex);
	fail_msg("no sample %s", name);
	return 0;
}

static inline void drop(struct span s)
{
	free((void *)(uintptr_t)s.p);
}

/* What an encoder wrote is the golden frame of that name. The payload, an exact copy for
 * the decoder; the caller frees it with drop(). */
__attribute__((warn_unused_result))
static inline struct span check_golden(const char *name, const uint8_t *frame, size_t n)
{
	uint8_t want[SAMPLE_MAX_BYTES];

	assert_int_equal(n, golden(name, want));
	assert_memory_equal(frame, want, n);
	return (struct span){ exact(frame + WIRE_HEADER_BYTES, n - WIRE_HEADER_BYTES),
		n - WIRE_HEADER_BYTES };
}

/* A golden frame with some bytes of its payload replaced: one rule each. */
struct patch {
	const char *why, *sample;
	unsigned at;
	const char *hex;
	bool good;
};

static inline void check_patches(const struct patch *p, size_t count)
{
	uint8_t f[SAMPLE_MAX_BYTES];
	size_t i, n;
	bool same;
	int r;

	for (i = 0; i < count; i++, p++) {
		n = golden(p->sample, f);
		assert_true(WIRE_HEADER_BYTES + p->at + hex_bytes(f + WIRE_HEADER_BYTES + p->at, p->hex) <= n);
		r = recode_exact(f, n, &same);
		check_that(p->good ? r == 0 && same : r == PTCP_EPROTO, "%s, %s: %s", p->sample,
		    p->why, p->good ? "refused" : "accepted");
	}
}

/* A payload in hex, whole. */
struct payload {
	const char *why;
	uint8_t type;
	const char *hex;
	bool good;
};

static inline void check_payloads(const struct payload *p, size_t count)
{
	uint8_t f[SAMPLE_MAX_BYTES] = { 0 };
	size_t i, n;
	bool same;
	int r;

	for (i = 0; i < count; i++, p++) {
		f[0] = p->type;
		f[1] = WIRE_CRITICAL;
		n = WIRE_HEADER_BYTES + hex_bytes(f + WIRE_HEADER_BYTES, p->hex);
		set_length(f, n);
		r = recode_exact(f, n, &same);
		check_that(p->good ? r == 0 && same : r == PTCP_EPROTO, "%s: %s", p->why,
		    p->good ? "refused" : "accepted");
	}
}

static inline struct span text_span(const char *s)
{
	return (struct span){ (const uint8_t *)s, strlen(s) };
}

static inline void assert_span(struct span s, const char *want)
{
	assert_int_equal(s.n, strlen(want));
	assert_memory_equal(s.p, want, s.n);
}

#endif
