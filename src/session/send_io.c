/* The engine's requests about sources, answered on I/O threads: is the file unchanged, where are its holes, what is
 * its digest? */
#include <assert.h>
#include <stdlib.h>

#include "core/bitmap.h"
#include "core/err.h"
#include "fs/fs_err.h"
#include "session/job_size.h"
#include "session/send_impl.h"
#include "store/hash.h"
#include "wire/block.h"

#define DIGESTS_MAX 2u /* jobs of a session with digests; sessions share the I/O threads */

/* CHECK_GROWN: the digest of a file that has grown, to compare what was sent with what the file has now. CHECK_HASHES:
 * the hashes of some blocks. CHECK_PIECES: of the pieces of a block, in a step. */
enum check_kind { CHECK_UNCHANGED, CHECK_HOLES, CHECK_GROWN, CHECK_DIGEST, CHECK_HASHES, CHECK_PIECES };

static_assert((int)WIRE_BLOCK_PIECE_BYTES == (int)HASH_PIECE_BYTES &&
    WIRE_PIECES_MAX * WIRE_BLOCK_PIECE_BYTES == WIRE_CHUNK_BYTES && FILE_DIGEST_EACH == WIRE_PIECES_MAX,
    "a step has the pieces of a block");

static bool is_digest(enum check_kind k) { return k >= CHECK_GROWN; }

struct check {
	struct list in_queue;   /* digest_queue */
	struct check *next;     /* in the same job */
	enum check_kind kind;
	struct session *session;
	struct source *source;
	uint64_t id;
	uint64_t *holes;
	struct file_digest sum;
	uint32_t reported, end; /* CHECK_HASHES, CHECK_PIECES: end of what is reported, and of all */
	struct block_sum each[FILE_DIGEST_EACH];
	struct io_call call;    /* result 1: more to read */
};

static void check_free(struct check *c)
{
	source_unref(c->source);
	free(c->holes);
	free(c);
}

static void report(struct check *c, struct snd *snd)
{
	const struct ptcp_err *why = c->call.result < 0 ? &c->call.why : NULL;
	char path[DIR_PATH_TEXT_BYTES];
	struct ptcp_err changed;

	switch (c->kind) {
	case CHECK_UNCHANGED:
		snd_checked(snd, c->id, why);
		break;
	case CHECK_HOLES:
		snd_mapped(snd, c->id, why == NULL ? c->holes : NULL, why);
		if (why == NULL)
			c->holes = NULL;
		break;
	case CHECK_GROWN:
		if (why == NULL && !snd_digest_is(snd, c->id, c->sum.digest)) {
			source_changed(c->source, &changed);
			fs_err_strip(&c->call.why, &changed, source_path_text(c->source, path, sizeof path));
			why = &c->call.why;
		}
		snd_checked(snd, c->id, why);
		break;
	case CHECK_DIGEST:
		snd_compared(snd, c->id, c->sum.digest, why);
		break;
	case CHECK_HASHES:
		snd_hashed(snd, c->id, c->each, c->sum.next - c->reported, why);
		c->reported = c->sum.next;
		break;
	case CHECK_PIECES:
		snd_pieces(snd, c->id, c->each, c->sum.next - c->reported, why);
		c->reported = c->sum.next;
		break;
	}
}

static void run_checks(struct io_call *k);
static void on_checked(struct io_call *k);

/* A job has digests, or a single check of another kind. */
static void submit(struct check *first)
{
	struct send_side *t = first->session->send;

	t->n_checks++;
	t->n_digests += is_digest(first->kind);
	io_call_start(&first->call, first->session->o.context, run_checks, on_checked);
}

/* The next job of the queue; NULL: empty. */
static struct check *next_digests(struct session *sess)
{
	struct send_side *t = sess->send;
	struct check *first = NULL, **end = &first, *c;
	struct job_size size = { 0, 0 };

	while (!list_empty(&t->digest_queue) && !job_full(&size)) {
		c = CONTAINER_OF(t->digest_queue.next, struct check, in_queue);
		list_remove(&c->in_queue);
		if (!snd_awaits_digest(engine_snd(sess->engine), c->id)) {
			check_free(c);
			continue;
		}
		job_add(&size, source_size_bytes(c->source));
		c->next = NULL;
		*end = c;
		end = &c->next;
	}
	return first;
}

/* In order and a few at once: the receiver may request the digest of every offered file, and listing and reading
 * blocks would wait behind the digests. */
static void start_digests(struct session *sess)
{
	struct check *first;

	while (sess->send->n_digests < DIGESTS_MAX && !sess->end.over && (first = next_digests(sess)) != NULL)
		submit(first);
}

void send_digest_queue_fini(struct send_side *t)
{
	struct check *c;

	while (!list_empty(&t->digest_queue)) {
		c = CONTAINER_OF(t->digest_queue.next, struct check, in_queue);
		list_remove(&c->in_queue);
		check_free(c);
	}
}

static void checked(struct session *sess, struct check *c)
{
	if (!sess->end.over && c->call.result > 0) {
		if (c->kind == CHECK_UNCHANGED)
			c->kind = CHECK_GROWN;
		if (c->kind >= CHECK_HASHES)
			report(c, engine_snd(sess->engine));
		list_append(&sess->send->digest_queue, &c->in_queue);
	} else {
		if (!sess->end.over)
			report(c, engine_snd(sess->engine));
		check_free(c);
	}
}

static void on_checked(struct io_call *k)
{
	struct check *c = CONTAINER_OF(k, struct check, call), *next;
	struct session *sess = c->session;

	engine_progress(sess->engine, mono_now());
	sess->send->n_checks--;
	sess->send->n_digests -= is_digest(c->kind);
	for (; c != NULL; c = next) {
		next = c->next;
		checked(sess, c);
	}
	start_digests(sess);
	session_pump(sess);
}

static int map_holes(struct check *c, struct ptcp_err *e)
{
	uint64_t size = source_size_bytes(c->source);

	if ((c->holes = bitmap_new(wire_grid_blocks(wire_grid_of(size)))) == NULL)
		return err_nomem(e);
	return source_map(c->source, wire_grid_bytes(size), c->holes, e);
}

/* Holes are not read; they count as blocks of zeros. */
static int digest(struct check *c, struct ptcp_err *e)
{
	int r;

	if (source_sparse(c->source) && c->sum.holes == NULL) {
		if ((r = map_holes(c, e)) < 0)
			return r;
		c->sum.holes = c->holes;
	}
	return file_digest_next(&c->sum, c->source, e);
}

/* A digest is computed in steps, with other work in between. */
static void run_check(struct check *c)
{
	struct io_call *k = &c->call;
	char path[DIR_PATH_TEXT_BYTES];
	struct ptcp_err why;

	switch (c->kind) {
	case CHECK_UNCHANGED:
		k->result = source_check(c->source, &why);
		break;
	case CHECK_HOLES:
		k->result = map_holes(c, &why);
		break;
	case CHECK_GROWN:
	case CHECK_DIGEST:
		k->result = digest(c, &why);
		break;
	case CHECK_HASHES:
	case CHECK_PIECES:
		k->result = file_digest_until(&c->sum, c->source, c->end, &why);
		break;
	}
	if (k->result < 0)
		fs_err_strip(&k->why, &why, source_path_text(c->source, path, sizeof path));
}

/* On an I/O thread. */
static void run_checks(struct io_call *k)
{
	struct check *c;

	for (c = CONTAINER_OF(k, struct check, call); c != NULL; c = c->next)
		run_check(c);
}

static struct check *check_new(struct session *sess, void *cookie, uint64_t id, enum check_kind kind)
{
	struct send_entry *o = cookie;
	struct check *c = calloc(1, sizeof *c);
	struct ptcp_err why;

	if (c == NULL) {
		err_nomem(&why);
		engine_fail(sess->engine, &why);
		return NULL;
	}
	c->kind = kind;
	c->session = sess;
	c->source = source_ref(o->source);
	c->id = id;
	c->sum = (struct file_digest){ .block_bytes = wire_grid_bytes(source_size_bytes(c->source)) };
	return c;
}

static void submit_new(struct check *c)
{
	if (c != NULL)
		submit(c);
}

static void queue(struct session *sess, struct check *c)
{
	list_append(&sess->send->digest_queue, &c->in_queue);
	start_digests(sess);
}

void send_check_unchanged(struct session *sess, struct send_entry *o, uint64_t id)
{
	submit_new(check_new(sess, o, id, CHECK_UNCHANGED));
}

void send_check(void *arg, void *cookie, uint64_t id)
{
	if (!send_sums_check(arg, cookie, id))
		send_check_unchanged(arg, cookie, id);
}

void send_map(void *arg, void *cookie, uint64_t id) { submit_new(check_new(arg, cookie, id, CHECK_HOLES)); }

void send_compare(void *arg, void *cookie, uint64_t id)
{
	struct check *c = check_new(arg, cookie, id, CHECK_DIGEST);

	((struct send_entry *)cookie)->compared = true;
	if (c != NULL)
		queue(arg, c);
}

/* Of blocks of the file that block_bytes divides. */
static void hash(struct session *sess, void *cookie, uint64_t id, enum check_kind kind, uint32_t block_bytes,
    uint32_t first, uint32_t count)
{
	struct check *c = check_new(sess, cookie, id, kind);

	if (c == NULL)
		return;
	c->sum.block_bytes = block_bytes;
	c->sum.next = c->reported = first;
	c->end = first + count;
	c->sum.each = c->each;
	queue(sess, c);
}

void send_hash(void *arg, void *cookie, uint64_t id, uint32_t first, uint32_t count)
{
	const struct send_entry *o = cookie;

	hash(arg, cookie, id, CHECK_HASHES, wire_grid_bytes(source_size_bytes(o->source)), first, count);
}

void send_pieces(void *arg, void *cookie, uint64_t id, uint32_t block)
{
	hash(arg, cookie, id, CHECK_PIECES, WIRE_BLOCK_PIECE_BYTES, block * WIRE_PIECES_MAX, WIRE_PIECES_MAX);
}
