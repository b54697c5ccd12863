#include "fixture.h"

struct ptcp_transfer_opts cf_opts(void)
{
	struct ptcp_transfer_opts o;

	ptcp_transfer_opts_init(&o);
	o.no_history = true;
	return o;
}

int cf_new(struct ptcp_task **t, const struct ptcp_transfer_opts *o, const struct cf_files *f, struct ptcp_err *e)
{
	size_t n = 0;

	while (n < CF_SOURCES && f->source[n] != NULL)
		n++;
	return (f->sends ? ptcp_send_new : ptcp_recv_new)(t, o, f->source, n, f->dest, e);
}

struct ptcp_task *cf_accepted(const struct ptcp_transfer_opts *o, const struct cf_files *f)
{
	struct ptcp_task *t;
	struct ptcp_err e;

	if (cf_new(&t, o, f, &e) < 0)
		fail_msg("refused: %s", e.msg);
	return t;
}

void cf_refused(const struct ptcp_transfer_opts *o, const struct cf_files *f, int code, const char *text)
{
	struct ptcp_task *t = NULL;
	struct ptcp_err e;
	int r = cf_new(&t, o, f, &e);

	if (r >= 0)
		fail_msg("not refused: %s", text);
	cf_says(&e, text);
	assert_int_equal(r, code);
	assert_int_equal(e.code, code);
	assert_null(t);
}

static void on_event(void *arg, const struct ptcp_event *ev)
{
	struct cf_events *all = arg;

	assert_true((size_t)ev->type < sizeof all->n / sizeof *all->n);
	all->n[ev->type]++;
	all->last = *ev;
	snprintf(all->text, sizeof all->text, "%s", ev->text != NULL ? ev->text : "");
	snprintf(all->path, sizeof all->path, "%s", ev->path != NULL ? ev->path : "");
	if (ev->peer != NULL)
		snprintf(all->peer, sizeof all->peer, "%s", ev->peer);
	all->code = ev->code;
	all->status = ev->status;
	if (all->then != NULL)
		all->then(all->arg, ev);
}

void cf_record(struct ptcp_transfer_opts *o, struct cf_events *ev)
{
	memset(ev, 0, sizeof *ev);
	o->event = on_event;
	o->arg = ev;
}

void cf_says(const struct ptcp_err *e, const char *text)
{
	if (strstr(e->msg, text) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", text, e->msg);
}
