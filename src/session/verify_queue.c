/* Existing data is read back and hashed before it counts, on I/O threads, a step at a time and a few files at once,
 * while missing blocks are received. Also syncs large files to disk from time to time. */
#include <stdlib.h>

#include "core/err.h"
#include "core/units.h"
#include "fs/fs_err.h"
#include "session/job_size.h"
#include "session/receive_impl.h"
#include "store/hash.h"

#define VERIFY_JOBS_MAX 2u            /* jobs of a session at once; sessions share the I/O threads */
#define MATCHING_MAX (128u << 10)     /* blocks of files that are matched at once: 1 MiB of hashes */
#define SYNC_BYTES (256u << 20)       /* a power failure costs at most SYNC_BYTES, */
#define SYNC_NS (2 * NS_PER_S)        /* time whose data is synced at once */

/* A step, on an I/O thread. */
struct verify_step {
	struct verify_step *next; /* in the same job */
	struct session *session;
	struct receive_entry *entry;
	struct match_step match; /* VERIFY_MATCH */
	struct sink_search search;
	bool charged;            /* first of a job: its searches, one after the other, have memory */
	uint64_t has[SINK_SPLIT];
	struct sink_run run[SINK_RUNS];
	unsigned n_runs;
	struct digest sum;
	struct io_call call;
};

/* The entry has left its queue. Once the part is verified, the candidates are matched. */
static void finish(struct session *sess, struct receive_entry *t)
{
	struct receive_side *r = sess->receive;

	t->verifying = false;
	if (t->ended) {
		receive_entry_done(sess, t);
	} else if (!sess->end.over && t->verify == VERIFY_PART && t->existing.candidates != NULL) {
		if (r->matching < MATCHING_MAX) {
			receive_match_begin(sess, t);
			return;
		}
		t->verifying = true;
		list_append(&r->match_queue, &t->waiting);
	}
}

static void serve_match_queue(struct session *sess)
{
	struct receive_side *r = sess->receive;
	struct receive_entry *t;

	while (!list_empty(&r->match_queue) && (r->matching < MATCHING_MAX || sess->end.over)) {
		t = CONTAINER_OF(r->match_queue.next, struct receive_entry, waiting);
		list_remove(&t->waiting);
		finish(sess, t);
	}
}

/* Reports a step to the engine. True: more steps follow. */
static bool report(struct verify_step *b, struct rcv *rcv)
{
	bool compare = b->entry->verify == VERIFY_SAME;
	uint64_t id = b->entry->id;
	struct ptcp_err bare;
	char path[DIR_PATH_TEXT_BYTES];
	unsigned i;

	if (b->call.result < 0) {
		fs_err_strip(&bare, &b->call.why, sink_path_text(b->entry->sink, path, sizeof path));
		if (b->entry->verify == VERIFY_MATCH && receive_disk_full(b->session, &bare))
			return false;
		if (compare)
			rcv_compared(rcv, id, b->sum, &bare);
		else
			rcv_broken(rcv, id, &bare);
		return false;
	}
	for (i = 0; i < b->n_runs; i++)
		if (b->run[i].to == 0)
			rcv_verified(rcv, id, b->run[i].first, b->run[i].n, b->run[i].good, b->run[i].sum);
	if (b->call.result == 0 && compare)
		rcv_compared(rcv, id, b->sum, NULL);
	if (b->entry->verify != VERIFY_MATCH)
		return b->call.result > 0;
	search_pace_done(&b->session->receive->search.pace, b->search.searched_bytes, b->search.found_bytes);
	return b->match.split ? receive_match_split(b->session, b->entry, b->has) :
	    receive_match_stepped(b->session, b->entry, b->run, b->n_runs);
}

static void on_steps(struct io_call *k)
{
	struct verify_step *b = CONTAINER_OF(k, struct verify_step, call), *next;
	struct session *sess = b->session;

	sess->receive->n_verifying--;
	if (b->charged)
		memory_release(sess->o.memory, SEARCH_MEMORY_BYTES);
	engine_progress(sess->engine, mono_now());
	for (; b != NULL; b = next) {
		struct receive_entry *t = b->entry;

		next = b->next;
		if (!sess->end.over && !t->ended && report(b, engine_rcv(sess->engine)) && !t->ended)
			list_append(&sess->receive->verify_queue, &t->waiting);
		else
			finish(sess, t);
		free(b);
	}
	session_pump(sess);
}

static int run_match(struct verify_step *b)
{
	const struct match_step *m = &b->match;

	if (m->split)
		return sink_split(b->entry->sink, m->first, m->n, m->sum, m->from, m->to, b->has, &b->search,
		    &b->call.why);
	return sink_match(b->entry->sink, m->first, m->n, m->ahead, m->sum, &b->search, b->run, &b->n_runs,
	    &b->call.why);
}

static void run_step(struct verify_step *b)
{
	struct sink *s = b->entry->sink;

	switch (b->entry->verify) {
	case VERIFY_PART:
		b->call.result = sink_verify_next(s, b->run, &b->n_runs, &b->call.why);
		break;
	case VERIFY_SAME:
		b->call.result = sink_same_next(s, &b->sum, &b->call.why);
		break;
	case VERIFY_MATCH:
		b->call.result = run_match(b);
		break;
	}
}

/* On an I/O thread. */
static void run_steps(struct io_call *k)
{
	struct verify_step *b;

	for (b = CONTAINER_OF(k, struct verify_step, call); b != NULL; b = b->next)
		run_step(b);
}

void resume_verify_start(struct session *sess, struct receive_entry *t, enum verify what)
{
	t->verify = what;
	t->verifying = true;
	list_append(&sess->receive->verify_queue, &t->waiting);
}

void resume_verify_hashes(void *arg, uint64_t id, void *cookie, uint32_t first, struct span hashes)
{
	struct receive_entry *t = cookie;

	(void)id;
	(void)first; /* as requested: the engine has compared both */
	receive_match_hashes(t, hashes);
	if (!t->verifying)
		resume_verify_start(arg, t, VERIFY_MATCH);
}

void resume_verify_pieces(void *arg, uint64_t id, void *cookie, uint32_t block, struct span hashes)
{
	struct receive_entry *t = cookie;
	struct match_step step;

	(void)id;
	(void)block;
	receive_match_pieces(t, hashes);
	if (!t->verifying && receive_match_next(t, &step))
		resume_verify_start(arg, t, VERIFY_MATCH);
}

/* NULL: without memory; the session ends. */
static struct verify_step *step_new(struct session *sess, struct receive_entry *t)
{
	struct verify_step *b = calloc(1, sizeof *b);
	struct ptcp_err why;

	if (b == NULL) {
		err_nomem(&why);
		engine_fail(sess->engine, &why);
		finish(sess, t);
		return NULL;
	}
	b->session = sess;
	b->entry = t;
	if (t->verify == VERIFY_MATCH && receive_match_next(t, &b->match))
		b->search.allowed_bytes = receive_match_allowance(sess);
	return b;
}

/* Without memory nothing is searched: the blocks are received. */
static void charge_searches(struct session *sess, struct verify_step *first)
{
	struct verify_step *b;

	for (b = first; b != NULL && b->search.allowed_bytes == 0; b = b->next)
		;
	if (b == NULL)
		return;
	first->charged = memory_charge(sess->o.memory, SEARCH_MEMORY_BYTES, NULL) == 0;
	for (b = first; b != NULL && !first->charged; b = b->next)
		b->search.allowed_bytes = 0;
}

/* The next job of the queue; NULL: empty. */
static struct verify_step *next_steps(struct session *sess)
{
	struct list *queue = &sess->receive->verify_queue;
	struct verify_step *first = NULL, **end = &first;
	struct job_size size = { 0, 0 };
	struct receive_entry *t;

	while (!list_empty(queue) && !job_full(&size)) {
		t = CONTAINER_OF(queue->next, struct receive_entry, waiting);
		list_remove(&t->waiting);
		if (sess->end.over || t->ended) {
			finish(sess, t);
		} else if ((*end = step_new(sess, t)) != NULL) {
			job_add(&size, t->size_bytes);
			end = &(*end)->next;
		}
	}
	return first;
}

void resume_verify_pump(struct session *sess)
{
	struct receive_side *r = sess->receive;
	struct verify_step *first;

	serve_match_queue(sess);
	while ((r->n_verifying < VERIFY_JOBS_MAX || sess->end.over) && (first = next_steps(sess)) != NULL) {
		r->n_verifying++;
		charge_searches(sess, first);
		io_call_start(&first->call, sess->o.context, run_steps, on_steps);
	}
}

/* ---- Periodic sync of large files ---- */

static void on_synced(struct io_call *k)
{
	struct receive_side *r = CONTAINER_OF(k, struct receive_side, sync_call);

	sink_unref(r->syncing);
	r->syncing = NULL;
	session_pump(r->session);
}

/* On an I/O thread. An error here also fails the next write to the file. */
static void run_sync(struct io_call *k)
{
	sink_sync(CONTAINER_OF(k, struct receive_side, sync_call)->syncing, &k->why);
}

void resume_verify_written(struct session *sess, uint64_t id, uint32_t block, struct mono now)
{
	struct receive_side *r = sess->receive;
	bool may_sync = r->sync != STORE_SYNC_NONE && r->syncing == NULL;
	struct sink *s;

	if ((s = open_files_wrote(&r->files, id, block, may_sync, SYNC_BYTES, SYNC_NS, now)) == NULL)
		return;
	r->syncing = s;
	io_call_start(&r->sync_call, sess->o.context, run_sync, on_synced);
}
