/* What the engine asks of sources, on I/O threads: are they still what was listed, where are their holes,
 * what is their digest. */
#include <stdlib.h>

#include "core/bitmap.h"
#include "core/err.h"
#include "lib/sending_impl.h"
#include "lib/why.h"
#include "store/sum.h"

enum ask { ASK_CHECK, ASK_MAP, ASK_COMPARE };

struct asked {
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

static void done(struct asked *a)
{
	a->party->snd->asked--;
	a->party->snd->comparing -= a->ask == ASK_COMPARE;
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

static void on_answered(struct msg *m)
{
	struct asked *a = CONTAINER_OF(m, struct asked, msg);
	struct party *p = a->party;

	session_progress(p->session, mono_now());
	if (!p->over && a->result > 0) {
		io_submit(p->o.host->io, &a->io);
		return;
	}
	if (!p->over)
		tell(a, session_snd(p->session));
	done(a);
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
	p->snd->asked++;
	p->snd->comparing += what == ASK_COMPARE;
	io_submit(p->o.host->io, &a->io);
}

void sending_check(void *arg, void *cookie, uint64_t id) { ask(arg, cookie, id, ASK_CHECK); }
void sending_map(void *arg, void *cookie, uint64_t id) { ask(arg, cookie, id, ASK_MAP); }
void sending_compare(void *arg, void *cookie, uint64_t id) { ask(arg, cookie, id, ASK_COMPARE); }
