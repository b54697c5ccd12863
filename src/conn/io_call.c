#include "conn/context.h"
#include "conn/io_call.h"
#include "core/list.h"

static void on_done(struct msg *m)
{
	struct io_call *c = CONTAINER_OF(m, struct io_call, msg);

	c->done(c);
}

static void io_call_run(struct io_job *io)
{
	struct io_call *c = CONTAINER_OF(io, struct io_call, io);

	c->work(c);
	loop_post(c->control, &c->msg);
}

void io_call_start(struct io_call *c, const struct context *context, void (*work)(struct io_call *c),
    void (*done)(struct io_call *c))
{
	c->control = context->control;
	c->work = work;
	c->done = done;
	c->io.run = io_call_run;
	c->msg.run = on_done;
	io_submit(context->io, &c->io);
}
