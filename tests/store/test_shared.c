/* Parts that several hosts write: here the hosts are sinks of one process. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "offer.h"
#include "store/hash.h"

static const struct offer big = { "big", 20 * OFFER_BLOCK + 100, 1, false };

/* On the host that decides. */
static struct sink *head(bool opened)
{
	struct sink_opts o = offer_opts(&big);
	const struct meta m = { .mtime = { 1000, 0 } };
	struct sink *s;

	o.shared = true;
	s = sink_new(fx_root, big.name, big.size_bytes, &m, &o);
	if (opened)
		assert_int_equal(sink_open(s, NULL), 0);
	return s;
}

/* On another host. */
static struct sink *other(struct sink *h, uint64_t ino_off, struct ptcp_err *e)
{
	const struct sink_opts o = { .block_bytes = OFFER_BLOCK, .has_version = true };
	const struct meta none = { .set_mode = false };
	char part[SINK_PART_BYTES];
	struct sink *s = sink_new(fx_root, sink_part(h, part), big.size_bytes, &none, &o);
	uint64_t dev, ino;

	assert_true(sink_part_id(h, &dev, &ino));
	sink_join(s, ino + ino_off);
	if (sink_open(s, e) == 0)
		return s;
	sink_unref(s);
	return NULL;
}

/* Writes the block there, and counts it here; `flushed` false: the other host loses it. */
static void move(struct sink *h, struct sink *o, uint32_t block, bool flushed)
{
	uint8_t buf[OFFER_BLOCK];
	uint32_t n = offer_block(&big, block, buf);
	uint64_t hash = hash_content(buf, n);

	if (flushed) {
		assert_int_equal(sink_write(o, buf, n, (uint64_t)block * OFFER_BLOCK, hash, NULL), 0);
		assert_int_equal(sink_flush(o, true, NULL), 0);
	}
	assert_int_equal(sink_wrote(h, block, hash, NULL), 0);
}

/* The other host closes the part, and the file is complete. */
static void complete(struct sink *h, struct sink *o)
{
	sink_part_with(o);
	assert_int_equal(offer_commit(h, NULL), 0);
	sink_unref(h);
	sink_unref(o);
	offer_holds("big", &big);
}

/* The file is of two hosts' blocks, and none of the host that completes it. */
static void two_hosts(void **state)
{
	struct sink *h = head(true), *a = other(h, 0, NULL), *b = other(h, 0, NULL);
	uint32_t i;

	(void)state;
	for (i = 0; i < offer_blocks(&big); i++)
		move(h, i % 2 != 0 ? a : b, i, true);
	sink_part_with(b);
	sink_unref(b);
	complete(h, a);
	assert_int_equal(fx_count(""), 1);
}

/* A later run resumes flushed blocks, and no block that was only claimed. */
static void resumed(void **state)
{
	struct sink *h = head(true), *a = other(h, 0, NULL);
	bool have[OFFER_BLOCKS], same;
	uint32_t i;

	(void)state;
	for (i = 0; i < 9; i++)
		move(h, a, i, i != 4);
	sink_unref(a);
	sink_unref(h); /* killed */
	h = head(false);
	fx_heal();
	assert_int_equal(offer_resume(h, &big, have, &same, NULL), 8);
	assert_false(have[4]);
	assert_true(fx_calls_of(FX_fdatasync) >= 2); /* of cleared blocks, which other hosts write now */
	a = other(h, 0, NULL);
	for (i = 0; i < offer_blocks(&big); i++)
		if (!have[i])
			move(h, a, i, true);
	complete(h, a);
}

/* A host of an earlier run still writes: not into the file of this run. */
static void left_over(void **state)
{
	struct sink *h = head(true), *old = other(h, 0, NULL), *a;
	uint8_t junk[OFFER_BLOCK] = "junk";
	uint32_t i;

	(void)state;
	sink_unref(h);
	h = head(true);
	a = other(h, 0, NULL);
	for (i = 0; i < offer_blocks(&big); i++)
		move(h, a, i, true);
	assert_int_equal(sink_write(old, junk, OFFER_BLOCK, 0, 0, NULL), 0);
	complete(h, a);
	sink_unref(old);
}

/* A shared file system shows the part late, or an older one of this name first: the same write succeeds later, unless
 * the engine has given this host up meanwhile. Other failures are not of time. */
static void not_there_yet(void **state)
{
	struct sink_lease lease;
	const struct sink_opts o = { .block_bytes = OFFER_BLOCK, .has_version = true, .lease = &lease };
	const struct meta none = { .set_mode = false };
	struct sink *h = head(true), *a;
	uint8_t buf[OFFER_BLOCK];
	char part[SINK_PART_BYTES], away[PATH_MAX];
	uint64_t dev, ino;
	struct ptcp_err e;
	uint32_t i;

	(void)state;
	atomic_init(&lease.until_ns, UINT64_MAX);
	atomic_init(&lease.refused, false);
	a = sink_new(fx_root, sink_part(h, part), big.size_bytes, &none, &o);
	assert_true(sink_part_id(h, &dev, &ino));
	sink_join(a, ino);
	snprintf(away, sizeof away, "%s", fx_path("away"));
	assert_int_equal(rename(fx_path(part), away), 0);
	offer_block(&big, 0, buf);
	assert_int_equal(sink_write(a, buf, OFFER_BLOCK, 0, 0, &e), PTCP_EIO);
	assert_true(sink_is_late(a, &e));
	fx_text(part, "of an earlier run");
	assert_int_equal(sink_write(a, buf, OFFER_BLOCK, 0, 0, &e), PTCP_EIO);
	assert_true(sink_is_late(a, &e));
	assert_int_equal(rename(away, fx_path(part)), 0);
	fx_fail_always(FX_openat, EACCES);
	assert_true(sink_write(a, buf, OFFER_BLOCK, 0, 0, &e) < 0);
	assert_false(sink_is_late(a, &e));
	fx_heal();
	e.sys = ENOENT;
	atomic_store(&lease.until_ns, 0);
	assert_false(sink_is_late(a, &e));
	atomic_store(&lease.until_ns, UINT64_MAX);
	assert_true(sink_is_late(a, &e));
	for (i = 0; i < offer_blocks(&big); i++)
		move(h, a, i, true);
	assert_false(sink_is_late(a, &e)); /* a write of the open part has another cause */
	for (i = 0; i < 3; i++) { /* the same part is opened again, and only once closed */
		sink_rest(a);
		assert_false(sink_is_open(a));
		move(h, a, i, true);
		assert_true(sink_is_open(a));
	}
	complete(h, a);
}

/* A host that was given up writes no byte more, also not into the file that has its name meanwhile. */
static void lapsed(void **state)
{
	struct sink_lease lease;
	const struct sink_opts o = { .block_bytes = OFFER_BLOCK, .has_version = true, .sparse = true, .lease = &lease };
	const struct meta none = { .set_mode = false };
	struct sink *h = head(true), *a;
	uint8_t junk[OFFER_BLOCK] = "junk", buf[OFFER_BLOCK];
	char part[SINK_PART_BYTES];
	uint64_t dev, ino;
	struct ptcp_err e;
	uint32_t i;

	(void)state;
	atomic_init(&lease.until_ns, UINT64_MAX);
	atomic_init(&lease.refused, false);
	a = sink_new(fx_root, sink_part(h, part), big.size_bytes, &none, &o);
	assert_true(sink_part_id(h, &dev, &ino));
	sink_join(a, ino);
	for (i = 0; i < offer_blocks(&big); i++)
		move(h, a, i, true);
	assert_int_equal(offer_commit(h, NULL), 0);
	sink_unref(h);
	assert_false(atomic_load(&lease.refused));
	atomic_store(&lease.until_ns, mono_now().ns);
	assert_int_equal(sink_write(a, junk, OFFER_BLOCK, 0, 0, &e), PTCP_ETIMEOUT);
	assert_int_equal(sink_write_chunk(a, junk, 100, 0, &e), PTCP_ETIMEOUT);
	assert_true(atomic_load(&lease.refused));
	memset(buf, 0, sizeof buf);
	assert_int_equal(sink_write(a, buf, OFFER_BLOCK, 0, 0, &e), 0); /* nothing to write */
	sink_unref(a);
	offer_holds("big", &big);
}

static void refused(void **state)
{
	struct sink *h = head(true), *a;
	char part[SINK_PART_BYTES];
	struct ptcp_err e;

	(void)state;
	assert_null(other(h, 1, &e)); /* a later part, as another host may see it */
	assert_int_equal(e.sys, ESTALE);
	assert_int_equal(link(fx_path(sink_part(h, part)), fx_path("second")), 0);
	assert_null(other(h, 0, &e));
	assert_int_equal(e.sys, ESTALE);
	assert_int_equal(unlink(fx_path("second")), 0);
	assert_non_null(a = other(h, 0, &e));
	sink_unref(a);
	assert_int_equal(rename(fx_path(part), fx_path("away")), 0);
	assert_null(other(h, 0, &e));
	assert_int_equal(e.sys, ENOENT);
	assert_int_equal(symlink("away", fx_path(part)), 0);
	assert_null(other(h, 0, &e));
	assert_int_equal(e.sys, ELOOP);
	sink_unref(h);
	assert_true(sink_is_part(part));
	assert_false(sink_is_part("big"));
	assert_false(sink_is_part(".ptcp-0123456789abcdef.journal"));
	assert_false(sink_is_part(".ptcp-0123456789abcdef.part.part"));
	assert_false(sink_is_part("../.ptcp-0123456789abcdef.part"));
}

/* After the end of either. */
static void late(void **state)
{
	struct sink *h = head(true), *a = other(h, 0, NULL);
	uint8_t buf[OFFER_BLOCK];
	struct ptcp_err e;

	(void)state;
	offer_block(&big, 0, buf);
	sink_part_with(a);
	assert_int_equal(sink_write(a, buf, OFFER_BLOCK, 0, 0, &e), PTCP_ECANCELED);
	assert_int_equal(sink_flush(a, true, &e), 0);
	assert_int_equal(fx_count(""), 2);
	sink_discard(h);
	assert_int_equal(fx_count(""), 0);
	assert_int_equal(sink_wrote(h, 0, 0, &e), PTCP_ECANCELED);
	sink_unref(h);
	sink_unref(a);
}

/* A failed flush is reported. */
static void flushing_fails(void **state)
{
	struct sink *h = head(true), *a = other(h, 0, NULL);
	struct ptcp_err e;

	(void)state;
	fx_fail_always(FX_fdatasync, EIO);
	assert_int_equal(sink_flush(a, true, &e), PTCP_EIO);
	assert_int_equal(sink_flush(a, false, &e), 0);
	fx_heal();
	fx_fail_always(FX_close, EDQUOT); /* as a network file system may say with the last write */
	assert_true(sink_flush(a, false, &e) < 0);
	fx_heal();
	sink_unref(h);
	sink_unref(a);
}

/* Many files by one call, which uses the part that was opened first: it knows of all failures since. */
static void all_at_once(void **state)
{
	struct sink *h = head(true), *of[2] = { other(h, 0, NULL), other(h, 0, NULL) }, *turned[2] = { of[1], of[0] };

	(void)state;
	fx_heal();
	assert_true(sink_flush_all(of, 2));
	assert_int_equal(fx_calls_of(FX_syncfs), 1);
	fx_fail_always(FX_syncfs, EIO);
	assert_false(sink_flush_all(turned, 2));
	fx_heal();
	sink_part_with(of[0]);
	assert_false(sink_flush_all(turned, 2)); /* closed meanwhile */
	assert_int_equal(fx_calls_of(FX_syncfs), 0);
	sink_unref(h);
	sink_unref(of[0]);
	sink_unref(of[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fx_tree_test(two_hosts), fx_tree_test(resumed), fx_tree_test(left_over), fx_tree_test(lapsed),
		fx_tree_test(refused), fx_tree_test(late),
		fx_tree_test(not_there_yet), fx_tree_test(flushing_fails), fx_tree_test(all_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
