/* Digests of sent files for the user of the sender (sums/sums.h), beside the transfer. A file of several blocks is read
 * from front to back on I/O threads while streams send it, as a rule from the page cache, at most WINDOW_BYTES ahead of
 * them; before the end of the file is sent, the hashes of the read blocks are compared with those of the sent ones. A
 * file of one block is read once complete. */
#include <stdlib.h>
#include <string.h>

#include "core/charged.h"
#include "core/err.h"
#include "fs/fs_err.h"
#include "session/job_size.h"
#include "session/send_impl.h"
#include "sums/sums.h"
#include "wire/block.h"

enum { SUM_JOBS_MAX = 2, WINDOW_BYTES = 64 << 20 };

struct send_sums {
	struct list in_queue;
	struct send_sums *next;    /* in the same job */
	struct session *session;
	struct send_entry *entry;  /* NULL: dropped meanwhile */
	struct source *source;
	struct sums *sums;
	struct file_digest blocks; /* hashes of the read blocks */
	uint64_t reached;          /* end of the last byte given to a stream */
	uint64_t check_id;         /* id of the file that the engine wants checked; 0: none */
	bool queued, running, done;
	bool ended;                /* the file is complete: it is reported with the digests and the fate */
	enum snd_fate fate;
	bool unexpected;           /* `why` reports an unexpected digest */
	struct ptcp_err why;       /* reason for no digests */
	char hex[2 * SUMS_BYTES_MAX + 1];
	struct io_call call;       /* call of the first one in a job */
};

static bool is_single(const struct source *s)
{
	uint64_t size = source_size_bytes(s);

	return size <= wire_grid_bytes(size);
}

static void sums_release(struct send_sums *m)
{
	struct session *sess = m->session;

	if (m->queued)
		list_remove(&m->in_queue);
	sums_free(m->sums);
	source_unref(m->source);
	memory_free(sess->o.memory, m, sizeof *m);
}

/* ---- On an I/O thread ---- */

static int read_chunk(void *arg, void *buf, uint32_t n, uint64_t off, struct ptcp_err *e)
{
	struct send_sums *m = arg;
	int r = source_read(m->source, buf, n, off, true, e);

	if (r == 0)
		sums_add(m->sums, buf, n);
	return r;
}

static void sum_step(struct send_sums *m)
{
	char path[DIR_PATH_TEXT_BYTES];
	uint8_t out[SUMS_BYTES_MAX];
	struct ptcp_err why;
	int r;

	if (m->done) /* the answer is due only, not from within the engine's request */
		return;
	if ((r = file_digest_step(&m->blocks, source_size_bytes(m->source), read_chunk, m, &why)) == 0 && m->ended)
		r = source_check(m->source, &why) < 0 ? why.code : 0;
	if (r > 0)
		return;
	m->done = true;
	if (r < 0)
		fs_err_strip(&m->why, &why, source_path_text(m->source, path, sizeof path));
	else
		text_hex(m->hex, out, sums_end(m->sums, out));
	m->unexpected = r == PTCP_EVERIFY || (r == 0 && sums_expected_check(&m->session->send->expected,
	    m->session->send->digests, m->hex, &m->why) < 0);
}

static void sum_steps(struct io_call *k)
{
	struct send_sums *m;

	for (m = CONTAINER_OF(k, struct send_sums, call); m != NULL; m = m->next)
		sum_step(m);
}

/* ---- On the control thread ---- */

static void on_summed(struct io_call *k);

static bool may_run(const struct send_sums *m)
{
	return m->ended || m->check_id != 0 ||
	    (uint64_t)m->blocks.next * m->blocks.block_bytes < m->reached + WINDOW_BYTES;
}

static void enqueue(struct send_sums *m)
{
	if (m->queued || m->running || (m->done && m->check_id == 0) || !may_run(m))
		return;
	list_append(&m->session->send->sums_queue, &m->in_queue);
	m->queued = true;
}

static void start_jobs(struct session *sess)
{
	struct send_side *t = sess->send;
	struct send_sums *first, **end, *m;
	struct job_size size;

	while (t->n_sums < SUM_JOBS_MAX && !list_empty(&t->sums_queue)) {
		size = (struct job_size){ 0, 0 };
		for (first = NULL, end = &first; !list_empty(&t->sums_queue) && !job_full(&size); end = &m->next) {
			m = CONTAINER_OF(t->sums_queue.next, struct send_sums, in_queue);
			list_remove(&m->in_queue);
			m->queued = false;
			m->running = true;
			m->next = NULL;
			*end = m;
			job_add(&size, source_size_bytes(m->source));
		}
		t->n_sums++;
		io_call_start(&first->call, sess->o.context, sum_steps, on_summed);
	}
}

/* The answer to the engine: the end of the file is sent if the digested blocks are the sent ones. The engine has no
 * hashes of holes: a sparse file counts as the same if it is unchanged. */
static void answer(struct send_sums *m)
{
	struct session *sess = m->session;
	struct snd *snd = engine_snd(sess->engine);
	char path[DIR_PATH_TEXT_BYTES];
	struct ptcp_err changed;
	uint64_t id = m->check_id;

	m->check_id = 0;
	if (m->why.code == 0 && !source_sparse(m->source) && !snd_digest_is(snd, id, m->blocks.digest)) {
		source_changed(m->source, &changed);
		fs_err_strip(&m->why, &changed, source_path_text(m->source, path, sizeof path));
	}
	if (m->why.code != 0)
		snd_checked(snd, id, &m->why);
	else
		send_check_unchanged(sess, m->entry, id);
}

static void step_done(struct send_sums *m)
{
	struct session *sess = m->session;

	m->running = false;
	if (m->entry == NULL) {
		sums_release(m);
	} else if (!m->done) {
		enqueue(m);
	} else if (m->ended) {
		snd_release(engine_snd(sess->engine));
		send_ended(sess, m->entry, m->fate, NULL);
	} else if (m->check_id != 0 && !sess->end.over) {
		answer(m);
	}
}

static void on_summed(struct io_call *k)
{
	struct send_sums *m = CONTAINER_OF(k, struct send_sums, call), *next;
	struct session *sess = m->session;

	engine_progress(sess->engine, mono_now());
	sess->send->n_sums--;
	for (; m != NULL; m = next) {
		next = m->next;
		step_done(m);
	}
	start_jobs(sess);
	session_pump(sess);
}

/* NULL: no memory, and the session fails. */
static struct send_sums *sums_of(struct session *sess, struct send_entry *o)
{
	struct send_sums *m = o->sums;
	struct ptcp_err why;

	if (m != NULL)
		return m;
	if ((m = memory_calloc(sess->o.memory, sizeof *m, &why)) == NULL ||
	    sums_new(&m->sums, sess->send->digests, &why) < 0) {
		if (m != NULL)
			memory_free(sess->o.memory, m, sizeof *m);
		engine_fail(sess->engine, &why);
		return NULL;
	}
	m->session = sess;
	m->entry = o;
	m->source = source_ref(o->source);
	m->blocks.block_bytes = wire_grid_bytes(source_size_bytes(o->source));
	o->sums = m;
	return m;
}

static bool wanted(const struct session *sess, const struct send_entry *o)
{
	return sess->send->digests != 0 && o->source != NULL;
}

void send_sums_reached(struct session *sess, struct send_entry *o, uint64_t end_bytes)
{
	struct send_sums *m;

	if (!wanted(sess, o) || is_single(o->source) || (m = sums_of(sess, o)) == NULL)
		return;
	if (end_bytes > m->reached)
		m->reached = end_bytes;
	enqueue(m);
	start_jobs(sess);
}

bool send_sums_check(struct session *sess, struct send_entry *o, uint64_t id)
{
	struct send_sums *m;

	if (!wanted(sess, o) || (m = sums_of(sess, o)) == NULL)
		return false;
	m->check_id = id;
	enqueue(m);
	start_jobs(sess);
	return true;
}

bool send_sums_end(struct session *sess, struct send_entry *o, enum snd_fate fate)
{
	struct send_sums *m;

	if (!wanted(sess, o) || (fate != SND_DONE && sess->send->expected.digest == 0) ||
	    (m = sums_of(sess, o)) == NULL || m->done)
		return false;
	m->ended = true;
	m->fate = fate;
	snd_hold(engine_snd(sess->engine)); /* the outcome of the session depends on an unexpected digest */
	enqueue(m);
	start_jobs(sess);
	return true;
}

const char *send_sums_hex(const struct send_entry *o)
{
	return o->sums != NULL && o->sums->done && o->sums->why.code == 0 ? o->sums->hex : NULL;
}

const struct ptcp_err *send_sums_why(const struct send_entry *o)
{
	return o->sums != NULL && o->sums->done && o->sums->why.code != 0 ? &o->sums->why : NULL;
}

const struct ptcp_err *send_sums_unexpected(const struct send_entry *o)
{
	return o->sums != NULL && o->sums->unexpected ? &o->sums->why : NULL;
}

void send_sums_free(struct send_entry *o)
{
	struct send_sums *m = o->sums;

	o->sums = NULL;
	if (m == NULL)
		return;
	m->entry = NULL;
	if (!m->running)
		sums_release(m);
}
