#include "offer.h"

#include <stdlib.h>
#include <string.h>

#include "store/hash.h"

struct direct_io *offer_direct_io;

struct sink_opts offer_opts(const struct offer *o)
{
	struct sink_opts opts = { .block_bytes = OFFER_BLOCK, .has_version = o->version != 0,
		.sparse = o->sparse, .direct_io = offer_direct_io, .rules.reads = true };

	memset(opts.version, o->version, sizeof opts.version);
	return opts;
}

struct sink *offer_sink(struct dir *d, const struct offer *o)
{
	struct meta m = { .set_mode = true, .set_mtime = true, .mode = 0644,
	    .mtime = { 1000 + o->version, 5 } };
	struct sink_opts opts = offer_opts(o);

	return sink_new(d, o->name, o->size_bytes, &m, &opts);
}

uint32_t offer_blocks(const struct offer *o)
{
	return (uint32_t)((o->size_bytes + OFFER_BLOCK - 1) / OFFER_BLOCK);
}

bool offer_hole(const struct offer *o, uint32_t block)
{
	return o->sparse && block % 3 == 1;
}

uint32_t offer_block(const struct offer *o, uint32_t block, uint8_t buf[OFFER_BLOCK])
{
	uint64_t off = (uint64_t)block * OFFER_BLOCK, left = o->size_bytes - off;
	uint32_t n = left < OFFER_BLOCK ? (uint32_t)left : OFFER_BLOCK, i;

	for (i = 0; i < n; i++)
		buf[i] = (uint8_t)(((off + i) * 2654435761u >> 13) + o->version * 97u) | 1;
	if (offer_hole(o, block))
		memset(buf, 0, n);
	else if (o->sparse && n > 4096)
		memset(buf, 0, 4096);
	return n;
}

struct digest offer_digest(const struct offer *o)
{
	struct digest sum = { 0, 0 };
	uint8_t buf[OFFER_BLOCK];
	uint32_t i, n;

	for (i = 0; i < offer_blocks(o); i++) {
		n = offer_block(o, i, buf);
		digest_add(&sum, hash_term(i, n, hash_content(buf, n)));
	}
	return sum;
}

int offer_commit(struct sink *s, struct ptcp_err *e)
{
	struct store_item one = { .sink = s, .why = e };

	store_complete(&one, 1, STORE_SYNC_NONE);
	return one.result;
}

int offer_write(struct sink *s, const struct offer *o, uint32_t block, struct ptcp_err *e)
{
	uint8_t buf[OFFER_BLOCK];
	uint32_t n = offer_block(o, block, buf);

	return sink_write(s, buf, n, (uint64_t)block * OFFER_BLOCK, hash_content(buf, n), e);
}

/* What is told of the blocks must be true of them, each once. */
static int verify(struct sink *s, const struct offer *o, const struct sink_existing *look,
    bool have[OFFER_BLOCKS], struct ptcp_err *e)
{
	struct sink_run runs[SINK_RUNS];
	uint32_t told = 0, block, bytes;
	uint8_t buf[OFFER_BLOCK];
	struct digest sum;
	int r, good = 0;
	unsigned i, n;

	do {
		if ((r = sink_verify_next(s, runs, &n, e)) < 0)
			return r;
		for (i = 0; i < n; i++) {
			sum = (struct digest){ 0, 0 };
			for (block = runs[i].first; block < runs[i].first + runs[i].n; block++) {
				assert_true(block < offer_blocks(o));
				assert_true(look->claimed[0] >> block & 1);
				assert_false(have[block]);
				have[block] = runs[i].good;
				good += runs[i].good;
				told++;
				bytes = offer_block(o, block, buf);
				digest_add(&sum, hash_term(block, bytes, hash_content(buf, bytes)));
			}
			if (runs[i].good)
				assert_true(digest_equal(sum, runs[i].sum));
		}
	} while (r == 1);
	assert_int_equal(told, look->n_claimed);
	return good;
}

int offer_resume(struct sink *s, const struct offer *o, bool have[OFFER_BLOCKS], bool *same,
    struct ptcp_err *e)
{
	struct digest sum, want = offer_digest(o);
	struct sink_existing look;
	int r;

	memset(have, 0, OFFER_BLOCKS * sizeof *have);
	*same = false;
	if ((r = sink_inspect(s, &look, e)) != 0)
		return r;
	if (look.found == SINK_PART) {
		r = verify(s, o, &look, have, e);
		free(look.claimed);
		return r;
	}
	assert_null(look.claimed);
	if (look.found != SINK_SAME)
		return 0;
	while ((r = sink_same_next(s, &sum, e)) == 1)
		;
	if (r == 0)
		*same = digest_equal(sum, want);
	return r;
}

int offer_rest(struct sink *s, const struct offer *o, const bool have[OFFER_BLOCKS],
    struct ptcp_err *e)
{
	uint32_t i;
	int r = 0;

	for (i = 0; i < offer_blocks(o) && r == 0; i++)
		if (!have[i] && !offer_hole(o, i))
			r = offer_write(s, o, i, e);
	return r;
}

bool offer_is(const struct offer *o, const uint8_t *p, size_t n)
{
	uint8_t buf[OFFER_BLOCK];
	uint32_t i, bytes;

	if (n != o->size_bytes)
		return false;
	for (i = 0; i < offer_blocks(o); i++) {
		bytes = offer_block(o, i, buf);
		if (memcmp(p + (size_t)i * OFFER_BLOCK, buf, bytes) != 0)
			return false;
	}
	return true;
}

void offer_holds(const char *below, const struct offer *o)
{
	static uint8_t back[OFFER_BLOCKS * OFFER_BLOCK];
	long n = fx_read(below, back, sizeof back);

	assert_int_equal(n, o->size_bytes);
	assert_true(offer_is(o, back, (size_t)n));
}
