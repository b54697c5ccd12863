#include "store/hash.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define END UINT16_MAX
enum {
	WINDOW_BYTES = 4 * HASH_CHUNK_BYTES,
	BUCKETS_LOG = 13,
	FILTER_LOG = 16,
	FAILURES_MAX = 4 /* the search gives units up whose beginning is everywhere, such as spaces */
};

/* A window of the file, and an index of the units. */
struct scan {
	const struct search *search;
	uint64_t *found;
	uint8_t *buf;               /* [base, base + have) of the file */
	uint64_t base, to;
	uint64_t at;                /* bytes from here on stay in memory */
	size_t have, room;
	uint16_t bucket[1u << BUCKETS_LOG]; /* first unit of the list, in ascending order; END: none */
	uint16_t next[SEARCH_UNITS_MAX];
	uint8_t failures[SEARCH_UNITS_MAX];
	uint64_t filter[(1u << FILTER_LOG) / 64]; /* a bit of each head: most offsets end here */
};

static_assert(WINDOW_BYTES + sizeof(struct scan) + SEARCH_UNITS_MAX * sizeof(uint64_t) <= SEARCH_MEMORY_BYTES,
    "what callers charge");

static uint32_t mixed(uint32_t head) { return head * 2654435769u; }
static uint32_t bucket_of(uint32_t head) { return mixed(head) >> (32 - BUCKETS_LOG); }

static bool may_have(const struct scan *c, uint32_t head)
{
	uint32_t bit = mixed(head) >> (32 - FILTER_LOG);

	return (c->filter[bit / 64] >> bit % 64 & 1) != 0;
}

static uint32_t unit_bytes(const struct scan *c, uint32_t unit)
{
	return unit == c->search->n - 1 ? c->search->last_bytes : c->search->unit_bytes;
}

static void index_units(struct scan *c)
{
	uint32_t i = c->search->n, bit;
	uint16_t *first;

	memset(c->bucket, 0xff, sizeof c->bucket);
	while (i-- > 0) {
		if (c->search->unit[i].head == 0 || c->found[i] != SEARCH_NOWHERE)
			continue;
		bit = mixed(c->search->unit[i].head) >> (32 - FILTER_LOG);
		c->filter[bit / 64] |= UINT64_C(1) << bit % 64;
		first = &c->bucket[bucket_of(c->search->unit[i].head)];
		c->next[i] = *first;
		*first = (uint16_t)i;
	}
}

/* Reads n bytes at `off` into the window; false: the file is shorter. */
static bool fill(struct scan *c, uint64_t off, uint32_t n)
{
	size_t want, done = (size_t)(c->at - c->base);
	ssize_t got;

	if (off > c->to || n > c->to - off)
		return false;
	if (off - c->base + n > c->room) {
		memmove(c->buf, c->buf + done, c->have - done);
		c->have -= done;
		c->base = c->at;
	}
	if (off - c->base + n <= c->have)
		return true;
	want = c->room - c->have;
	want = want < c->to - c->base - c->have ? want : (size_t)(c->to - c->base - c->have);
	if (want > 0 && (got = c->search->read(c->search->arg, c->buf + c->have, want, c->base + c->have)) > 0)
		c->have += (size_t)got;
	return off - c->base + n <= c->have;
}

static const uint8_t *memory_at(const struct scan *c, uint64_t off) { return c->buf + (off - c->base); }

/* Whether the unit is at `off`. *hash: hash of *n bytes at `off`, unless *n is 0. */
static bool is_at(struct scan *c, uint32_t unit, uint64_t off, uint64_t *hash, uint32_t *n)
{
	if (*n != unit_bytes(c, unit)) {
		if (!fill(c, off, unit_bytes(c, unit)))
			return false;
		*n = unit_bytes(c, unit);
		*hash = hash_content(memory_at(c, off), *n);
	}
	return *hash == c->search->unit[unit].content;
}

/* Takes the units at `off`, with this head, off their list; returns the first unit, or n. */
static uint32_t look_up(struct scan *c, uint32_t head, uint64_t off)
{
	uint16_t *link = &c->bucket[bucket_of(head)];
	uint32_t unit, first = c->search->n, n = 0;
	uint64_t hash = 0;

	while ((unit = *link) != END) {
		if (c->search->unit[unit].head == head && c->found[unit] == SEARCH_NOWHERE) {
			if (is_at(c, unit, off, &hash, &n)) {
				c->found[unit] = off;
				first = first < unit ? first : unit;
			} else {
				c->failures[unit]++;
			}
		}
		if (c->found[unit] != SEARCH_NOWHERE || c->failures[unit] >= FAILURES_MAX)
			*link = c->next[unit];
		else
			link = &c->next[unit];
	}
	return first;
}

/* Advances *off to the next unit, and returns the unit; n: the file has no more. */
static uint32_t roll(struct scan *c, uint64_t *off)
{
	const uint32_t leave = hash_head_leave();
	const uint8_t *p, *end;
	uint32_t head, unit;

	for (; c->at = *off, fill(c, *off, HASH_HEAD_BYTES); ++*off) {
		head = hash_head(memory_at(c, *off));
		for (;;) {
			c->at = *off;
			if (may_have(c, head) && (unit = look_up(c, head, *off)) < c->search->n)
				return unit;
			p = memory_at(c, *off);
			end = c->buf + c->have - HASH_HEAD_BYTES;
			if (p == end)
				break;
			do
				head = hash_head_roll(head, p[0], p[HASH_HEAD_BYTES], leave);
			while (++p < end && !may_have(c, head));
			*off = c->base + (uint64_t)(p - c->buf);
		}
	}
	return c->search->n;
}

/* Whether the expected unit is at *off, or else the next unit behind, as if *unit had changed in place. */
static bool expected(struct scan *c, uint32_t *unit, uint64_t *off)
{
	uint32_t i, n;
	uint64_t hash;

	c->at = *off;
	for (i = 0; i < 2 && *unit + i < c->search->n; i++) {
		n = 0;
		if (!is_at(c, *unit + i, *off + i * c->search->unit_bytes, &hash, &n))
			continue;
		*unit += i;
		*off += i * c->search->unit_bytes;
		if (c->found[*unit] == SEARCH_NOWHERE)
			c->found[*unit] = *off;
		return true;
	}
	return false;
}

static uint64_t scan(struct scan *c, uint64_t from)
{
	uint64_t off = from;
	uint32_t unit = 0;

	do {
		if (!expected(c, &unit, &off) && (unit = roll(c, &off)) == c->search->n)
			break;
		off += unit_bytes(c, unit++);
	} while (!c->search->one);
	return off - from;
}

int search_file(const struct search *s, uint64_t from, uint64_t to, uint64_t *found, uint64_t *scanned,
    struct ptcp_err *e)
{
	struct scan *c;

	*scanned = 0;
	if (from >= to)
		return 0;
	if ((c = calloc(1, sizeof *c)) == NULL)
		return err_nomem(e);
	c->room = to - from < WINDOW_BYTES ? (size_t)(to - from) : WINDOW_BYTES;
	if ((c->buf = malloc(c->room)) == NULL) {
		free(c);
		return err_nomem(e);
	}
	c->search = s;
	c->found = found;
	c->base = c->at = from;
	c->to = to;
	index_units(c);
	*scanned = scan(c, from);
	free(c->buf);
	free(c);
	return 0;
}
