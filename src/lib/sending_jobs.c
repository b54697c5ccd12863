/* What the engine asks of sources, on I/O threads: are they still what was listed, where are their holes,
 * what is their digest. */
#include <stdlib.h>

#include "core/bitmap.h"
#include "core/err.h"
#include "lib/sending_impl.h"
#include "lib/why.h"
#include "store/sum.h"

#define COMPARES_MAX 2u /* of a party, of the I/O threads that all share */

enum ask { ASK_CHECK, ASK_MAP, ASK_COMPARE };

struct asked {
	struct list in_list;    /* in to_compare */
	enum ask ask;
	struct party *party;
	struct source *source;
	uint64_t id;
	uint64_t *holes;
	struct sum sum;
	int result;             /* 1: there is more to read */
	struct ptcp_err why;
	struct io_job io;
	struct msg msg;
};

static void asked_free(struct asked *a)
{
	source_unref(a->source);
	free(a->holes);
	free(a);
}

static void tell(struct asked *a, struct snd *snd)
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

static void submit(struct asked *a)
{
	struct sending *t = a->party->snd;

	t->asked++;
	t->comparing += a->ask == ASK_COMPARE;
	io_submit(a->party->o.host->io, &a->io);
}

/* In turn, and few at once: the receiver may ask for all that has been offered, and whoever reads blocks
 * or lists would wait behind that. */
static void compare_some(struct party *p)
{
	struct sending *t = p->snd;
	struct asked *a;

	while (t->comparing < COMPARES_MAX && !p->over && !list_empty(&t->to_compare)) {
		a = CONTAINER_OF(t->to_compare.next, struct asked, in_list);
		list_remove(&a->in_list);
		if (snd_compares(session_snd(p->session), a->id))
			submit(a);
		else
			asked_free(a);
	}
}

void sending_forget_compares(struct sending *t)
{
	struct asked *a;

	while (!list_empty(&t->to_compare)) {
		a = CONTAINER_OF(t->to_compare.next, struct asked, in_list);
		list_remove(&a->in_list);
		asked_free(a);
	}
}

static void on_answered(struct msg *m)
{
	struct asked *a = CONTAINER_OF(m, struct asked, msg);
	struct party *p = a->party;
	struct sending *t = p->snd;

	session_progress(p->session, mono_now());
	t->asked--;
	t->comparing -= a->ask == ASK_COMPARE;
	if (!p->over && a->result > 0) {
		list_append(&t->to_compare, &a->in_list);
	} else {
		if (!p->over)
			tell(a, session_snd(p->session));
		asked_free(a);
	}
	compare_some(p);
	party_pump(p);
}

static int map(struct asked *a, struct ptcp_err *e)
{
	uint64_t size = source_size_bytes(a->source);

	if ((a->holes = bitmap_new(wire_grid_blocks(size))) == NULL)
		return err_nomem(e);
	return source_map(a->source, wire_grid_bytes(size), a->holes, e);
}

/* Holes are not read, but have the terms of their zeros. */
static int compare(struct asked *a, struct ptcp_err *e)
{
	int r;

	if (source_sparse(a->source) && a->sum.holes == NULL) {
		if ((r = map(a, e)) < 0)
			return r;
		a->sum.holes = a->holes;
	}
	return sum_next(&a->sum, a->source, e);
}

/* On an I/O thread. A digest is read step by step: others want to be served between. */
static void answer(struct io_job *io)
{
	struct asked *a = CONTAINER_OF(io, struct asked, io);
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
		why_bare(&a->why, &why, source_path_text(a->source, path, sizeof path));
	a->msg.run = on_answered;
	loop_post(a->party->o.host->control, &a->msg);
}

static void ask(struct party *p, void *cookie, uint64_t id, enum ask what)
{
	struct outgoing *o = cookie;
	struct asked *a = calloc(1, sizeof *a);
	struct ptcp_err why;

	if (a == NULL) {
		err_nomem(&why);
		party_fail(p, &why);
		return;
	}
	a->ask = what;
	a->party = p;
	a->source = source_ref(o->source);
	a->id = id;
	a->io.run = answer;
	sum_init(&a->sum, wire_grid_bytes(source_size_bytes(a->source)), NULL);
	if (what != ASK_COMPARE) {
		submit(a);
	} else {
		list_append(&p->snd->to_compare, &a->in_list);
		compare_some(p);
	}
}

void sending_check(void *arg, void *cookie, uint64_t id) { ask(arg, cookie, id, ASK_CHECK); }
void sending_map(void *arg, void *cookie, uint64_t id) { ask(arg, cookie, id, ASK_MAP); }
void sending_compare(void *arg, void *cookie, uint64_t id) { ask(arg, cookie, id, ASK_COMPARE); }
