#include "server/job_conn.h"

#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/units.h"
#include "server/link_table.h"
#include "store/fd_budget.h"
#include "wire/job.h"
#include "wire/outbox.h"

#define PATIENCE_NS (10 * NS_PER_S) /* to ask */
#define LINGER_NS (2 * NS_PER_S)    /* to read our last word */
#define UNREAD_BYTES (8u << 20)     /* so much waits for who does not read what it is told */

struct job_conn {
	struct list in_list;
	struct job_set *set;
	struct chan *chan;
	struct timer *timer;
	struct authorization auth;
	char fingerprint[PTCP_FINGERPRINT_BYTES], address[SOCK_TEXT_BYTES];
	struct buf in;
	struct outbox out;
	struct job *job; /* NULL: not yet, or no more */
	uint64_t ends;         /* an errand of this client's with that id, of which it wants to hear; 0: none */
	bool ending, closing;
	bool deaf;             /* going, as it does not read */
};

static void job_conn_free(struct job_conn *c)
{
	struct job_set *t = c->set;

	if (c->job != NULL)
		job_leave(c->job);
	list_remove(&c->in_list);
	chan_free(c->chan);
	timer_free(c->timer);
	buf_fini(&c->in);
	buf_fini(&c->out.b);
	free(c);
	fd_budget_count(-1);
	t->n_callers--;
	t->gone(t->arg);
}

void job_conns_end(struct job_set *t)
{
	struct list *l, *next;
	struct job_conn *c;

	for (l = t->callers.next; l != &t->callers; l = next) {
		next = l->next;
		c = CONTAINER_OF(l, struct job_conn, in_list);
		if (c->job == NULL && !c->ending)
			job_conn_free(c);
	}
}

void job_conns_judge_again(struct job_set *t,
    bool (*admits)(void *arg, const char *fingerprint, struct authorization *a), void *arg)
{
	struct list *l, *next;
	struct job_conn *c;

	for (l = t->callers.next; l != &t->callers; l = next) {
		next = l->next;
		c = CONTAINER_OF(l, struct job_conn, in_list);
		if (c->job == NULL && !c->ending && !admits(arg, c->fingerprint, &c->auth))
			job_conn_free(c);
	}
}

unsigned job_conns_of(const struct job_set *t, const char *fingerprint)
{
	const struct list *l;
	unsigned n = 0;

	for (l = t->callers.next; l != &t->callers; l = l->next)
		n += strcmp(CONTAINER_OF(l, struct job_conn, in_list)->fingerprint, fingerprint) == 0;
	return n;
}

struct outbox *job_conn_outbox(struct job_conn *c) { return &c->out; }

void job_conn_flush(struct job_conn *c)
{
	struct buf *b = &c->out.b;
	size_t n;

	while (buf_len(b) > 0 && (n = chan_write(c->chan, buf_head(b), buf_len(b))) > 0)
		buf_consume(b, n);
	chan_flush(c->chan);
	if (c->ending && !c->closing && buf_len(b) == 0) {
		c->closing = true;
		chan_shutdown(c->chan);
	} else if (!c->ending && !c->deaf && buf_len(b) > UNREAD_BYTES) {
		log_at(&c->set->host->log, LOG_WARN, "server", "event=errand-unread from=%s client=%s why=\"it does not read "
		    "what it is told\"", c->address, c->fingerprint);
		c->deaf = true;
		timer_set(c->timer, mono_now()); /* not now: the errand is still telling it */
	}
}

static void end(struct job_conn *c)
{
	c->ending = true;
	timer_set(c->timer, mono_add_ns(mono_now(), LINGER_NS));
	job_conn_flush(c);
}

void job_conn_over(struct job_conn *c, const struct ptcp_err *why, const struct wire_end *e)
{
	c->job = NULL;
	if (why != NULL)
		outbox_put_error(&c->out, why);
	else
		OUTBOX_PUT(&c->out, end, END, e);
	end(c);
}

static void refuse(struct job_conn *c, const struct ptcp_err *why)
{
	c->ends = 0;
	log_at(&c->set->host->log, LOG_WARN, "server", "event=errand-refused from=%s client=%s why=\"%s\"",
	    c->address, c->fingerprint, why->msg);
	job_conn_over(c, why, NULL);
}

/* ---- What is asked ---- */

/* The frame at `*at` in what has come: 1, and `*at` behind it; 0: not all of it is here. */
static int frame_at(struct job_conn *c, size_t *at, struct wire_header *h, struct span *payload, struct ptcp_err *e)
{
	int r = wire_frame_next(h, payload, (struct span){ buf_head(&c->in) + *at, buf_len(&c->in) - *at }, e);

	if (r > 0)
		*at += WIRE_HEADER_BYTES + h->length;
	return r;
}

static int unexpected(unsigned type, struct ptcp_err *e)
{
	return err_set(e, PTCP_EPROTO, "unexpected %s frame", wire_type_name(type));
}

/* The last of them, which says what. */
static int take_what(struct job_order *o, unsigned type, struct span in, struct ptcp_err *e)
{
	struct wire_probe f;
	int r;

	if (type == WIRE_OPEN)
		return wire_open_decode(&o->open, in, e);
	if (type != WIRE_PROBE)
		return unexpected(type, e);
	if ((r = wire_probe_decode(&f, in, e)) < 0)
		return r;
	o->open = (struct wire_open){ .role = WIRE_ACCEPTOR_DISCARDS, .cipher = f.cipher, .streams = f.streams };
	o->messages = f.messages;
	return 0;
}

/* GRANT, and OPEN or PROBE, after JOB. */
static int take_order(struct job_conn *c, size_t at, struct span first, struct ptcp_err *e)
{
	struct job_order o = { .caller = c, .client = c->fingerprint, .address = c->address, .auth = &c->auth };
	struct wire_header h;
	struct span grant, what;
	size_t start = at;
	int r;

	if ((r = wire_job_decode(&o.job, first, e)) < 0 || (r = frame_at(c, &at, &h, &grant, e)) <= 0)
		return r;
	if (h.type != WIRE_GRANT)
		return unexpected(h.type, e);
	o.grant_frame = (struct span){ buf_head(&c->in) + start, at - start };
	if ((r = wire_grant_decode(&o.grant, grant, e)) < 0 || (r = frame_at(c, &at, &h, &what, e)) <= 0)
		return r;
	if (at < buf_len(&c->in))
		return err_set(e, PTCP_EPROTO, "bytes behind what is asked for");
	if ((r = take_what(&o, h.type, what, e)) < 0 || (r = job_new(&c->job, c->set, &o, e)) < 0)
		return r;
	return 1;
}

static void put_state(struct job_conn *c, const struct job *r)
{
	struct wire_state s;

	job_state(r, &s);
	OUTBOX_PUT(&c->out, state, STATE, &s);
}

static int tell(struct job_conn *c, struct span in, struct ptcp_err *e)
{
	struct wire_status f;
	struct job *r = NULL;
	struct ptcp_err why;
	int err;

	if ((err = wire_status_decode(&f, in, e)) < 0)
		return err;
	if (f.id != 0 && (r = job_find(c->set, c->fingerprint, f.id, NULL)) == NULL)
		return err_set(e, PTCP_EPEER, "that transfer: not known there (results are kept for a day, and lost when that "
		    "daemon is restarted; the same command begins it again, where it was)");
	if (f.cancel && !job_is_over(r)) {
		c->ends = f.id;
		err_set(&why, PTCP_ECANCELED, "transfer: interrupted by its owner (the same command goes on from here)");
		job_cancel(r, &why); /* job_conns_tell() follows */
		return 1;
	}
	if (r != NULL)
		put_state(c, r);
	else
		while ((r = job_find(c->set, c->fingerprint, 0, r)) != NULL)
			put_state(c, r);
	end(c);
	return 1;
}

/* What is known of the ways to other hosts is for those who could have it measured. */
static int tell_links(struct job_conn *c, struct span in, struct ptcp_err *e)
{
	int err;

	if ((err = wire_links_decode(in, e)) < 0)
		return err;
	if (c->auth.no_relay)
		return err_set(e, PTCP_EREFUSED, "what that daemon knows of links: not for this client (have its administrator "
		    "authorize it without --no-relay)");
	if (!link_table_put(c->set->told, &c->out))
		return err_set(e, PTCP_EPEER, "that daemon does not measure its links (have its administrator start it with --watch)");
	end(c);
	return 1;
}

void job_conns_tell(struct job_set *t, const struct job *r)
{
	struct job_conn *c;
	struct list *l;

	for (l = t->callers.next; l != &t->callers; l = l->next) {
		c = CONTAINER_OF(l, struct job_conn, in_list);
		if (c->ends == 0 || !job_is(r, c->fingerprint, c->ends))
			continue;
		c->ends = 0;
		put_state(c, r);
		end(c);
	}
}

static int take(struct job_conn *c, struct ptcp_err *e)
{
	struct wire_header h;
	struct span in;
	size_t at = 0;
	int r;

	if ((r = frame_at(c, &at, &h, &in, e)) <= 0)
		return r;
	switch (h.type) {
	case WIRE_JOB: return take_order(c, at, in, e);
	case WIRE_STATUS: return tell(c, in, e);
	case WIRE_LINKS: return tell_links(c, in, e);
	default: return unexpected(h.type, e);
	}
}

static int hear(struct job_conn *c, const uint8_t *bytes, size_t n, struct ptcp_err *e)
{
	uint8_t *room = buf_reserve(&c->in, n);

	if (room == NULL)
		return err_nomem(e);
	memcpy(room, bytes, n);
	buf_added(&c->in, n);
	return take(c, e);
}

static void on_readable(void *arg)
{
	struct job_conn *c = arg;
	struct ptcp_err why;
	uint8_t bytes[4096];
	size_t n;
	int r;

	while ((n = chan_read(c->chan, bytes, sizeof bytes)) > 0) {
		if (c->ending)
			continue;
		if (c->job != NULL) {
			err_set(&why, PTCP_EPROTO, "bytes behind what was asked for");
			job_cancel(c->job, &why);
			continue;
		}
		if (c->ends != 0)
			r = err_set(&why, PTCP_EPROTO, "bytes behind what was asked for");
		else
			r = hear(c, bytes, n, &why);
		if (r < 0)
			refuse(c, &why);
		else if (r > 0 && c->job != NULL)
			timer_set(c->timer, MONO_NEVER);
	}
}

static void on_writable(void *arg)
{
	job_conn_flush(arg);
}

static void on_closed(void *arg, const struct ptcp_err *why)
{
	(void)why;
	job_conn_free(arg);
}

static const struct chan_ops chan_ops = { .readable = on_readable, .writable = on_writable, .closed = on_closed };

static void on_timer(void *arg)
{
	job_conn_free(arg);
}

int job_conn_new(struct job_set *t, struct chan *chan, const char *address, const struct authorization *auth,
    struct ptcp_err *e)
{
	struct job_conn *c = calloc(1, sizeof *c);
	int r;

	if (c == NULL) {
		chan_free(chan);
		return err_nomem(e);
	}
	c->set = t;
	c->chan = chan;
	c->auth = *auth;
	strcpy(c->fingerprint, chan_fingerprint(chan));
	strncpy(c->address, address, sizeof c->address - 1);
	list_append(&t->callers, &c->in_list);
	t->n_callers++;
	fd_budget_count(1);
	chan_detach(chan);
	if ((r = chan_attach(chan, t->host->control, &chan_ops, c, e)) < 0 ||
	    (r = timer_new(&c->timer, t->host->control, on_timer, c, e)) < 0) {
		job_conn_free(c);
		return r;
	}
	timer_set(c->timer, mono_add_ns(mono_now(), PATIENCE_NS));
	return 0;
}
