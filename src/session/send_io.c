/* What the engine asks of sources, on I/O threads: are they still what was listed, where are their holes,
 * what is their digest. */
#include <stdlib.h>

#include "conn/err_path.h"
#include "core/bitmap.h"
#include "core/err.h"
#include "session/send_impl.h"
#include "store/source.h"

#define COMPARES_MAX 2u /* of a party, of the I/O threads that all share */

enum ask { ASK_CHECK, ASK_MAP, ASK_COMPARE };

struct request {
	struct list in_list;    /* in to_compare */
	enum ask ask;
	struct session *session;
	struct source *source;
	uint64_t id;
	uint64_t *holes;
	struct file_digest sum;
	int result;             /* 1: there is more to read */
	struct ptcp_err why;
	struct io_job io;
	struct msg msg;
};

static void asked_free(struct request *a)
{
	source_unref(a->source);
	free(a->holes);
	free(a);
}

static void tell(struct request *a, struct snd *snd)
{
	const struct ptcp_err *why = a->result < 0 ? &a->why : NULL;

	switch (a->ask) {
	case ASK_CHECK:
		snd_checked(snd, a->id, why);
		break;
	case ASK_MAP:
		snd_mapped(snd, a->id, why == NULL ? a->holes : NULL, why);
		if (why == NULL)
			a->holes = NULL;
		break;
	case ASK_COMPARE:
		snd_compared(snd, a->id, a->sum.digest, why);
		break;
	}
}

static void submit(struct request *a)
{
	struct send_side *t = a->session->send;

	t->asked++;
	t->comparing += a->ask == ASK_COMPARE;
	io_submit(a->session->o.host->io, &a->io);
}

/* In turn, and few at once: the receiver may ask for all that has been offered, and whoever reads blocks
 * or lists would wait behind that. */
static void compare_some(struct session *sess)
{
	struct send_side *t = sess->send;
	struct request *a;

	while (t->comparing < COMPARES_MAX && !sess->over && !list_empty(&t->to_compare)) {
		a = CONTAINER_OF(t->to_compare.next, struct request, in_list);
		list_remove(&a->in_list);
		if (snd_compares(engine_snd(sess->engine), a->id))
			submit(a);
		else
			asked_free(a);
	}
}

void send_forget_compares(struct send_side *t)
{
	struct request *a;

	while (!list_empty(&t->to_compare)) {
		a = CONTAINER_OF(t->to_compare.next, struct request, in_list);
		list_remove(&a->in_list);
		asked_free(a);
	}
}

static void on_answered(struct msg *m)
{
	struct request *a = CONTAINER_OF(m, struct request, msg);
	struct session *sess = a->session;
	struct send_side *t = sess->send;

	engine_progress(sess->engine, mono_now());
	t->asked--;
	t->comparing -= a->ask == ASK_COMPARE;
	if (!sess->over && a->result > 0) {
		list_append(&t->to_compare, &a->in_list);
	} else {
		if (!sess->over)
			tell(a, engine_snd(sess->engine));
		asked_free(a);
	}
	compare_some(sess);
	session_pump(sess);
}

static int map(struct request *a, struct ptcp_err *e)
{
	uint64_t size = source_size_bytes(a->source);

	if ((a->holes = bitmap_new(wire_grid_blocks(size))) == NULL)
		return err_nomem(e);
	return source_map(a->source, wire_grid_bytes(size), a->holes, e);
}

/* Holes are not read, but have the terms of their zeros. */
static int compare(struct request *a, struct ptcp_err *e)
{
	int r;

	if (source_sparse(a->source) && a->sum.holes == NULL) {
		if ((r = map(a, e)) < 0)
			return r;
		a->sum.holes = a->holes;
	}
	return file_digest_next(&a->sum, a->source, e);
}

/* On an I/O thread. A digest is read step by step: others want to be served between. */
static void answer(struct io_job *io)
{
	struct request *a = CONTAINER_OF(io, struct request, io);
	char path[DIR_PATH_TEXT_BYTES];
	struct ptcp_err why;

	switch (a->ask) {
	case ASK_CHECK:
		a->result = source_check(a->source, &why);
		break;
	case ASK_MAP:
		a->result = map(a, &why);
		break;
	case ASK_COMPARE:
		a->result = compare(a, &why);
		break;
	}
	if (a->result < 0)
		err_path_strip(&a->why, &why, source_path_text(a->source, path, sizeof path));
	a->msg.run = on_answered;
	loop_post(a->session->o.host->control, &a->msg);
}

static void ask(struct session *sess, void *cookie, uint64_t id, enum ask what)
{
	struct outgoing *o = cookie;
	struct request *a = calloc(1, sizeof *a);
	struct ptcp_err why;

	if (a == NULL) {
		err_nomem(&why);
		session_fail(sess, &why);
		return;
	}
	a->ask = what;
	a->session = sess;
	a->source = source_ref(o->source);
	a->id = id;
	a->io.run = answer;
	a->sum = (struct file_digest){ .block_bytes = wire_grid_bytes(source_size_bytes(a->source)) };
	if (what != ASK_COMPARE) {
		submit(a);
	} else {
		list_append(&sess->send->to_compare, &a->in_list);
		compare_some(sess);
	}
}

void send_check(void *arg, void *cookie, uint64_t id) { ask(arg, cookie, id, ASK_CHECK); }
void send_map(void *arg, void *cookie, uint64_t id) { ask(arg, cookie, id, ASK_MAP); }
void send_compare(void *arg, void *cookie, uint64_t id) { ask(arg, cookie, id, ASK_COMPARE); }
