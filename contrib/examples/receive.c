/* Receives within a loop of its own (libuv here; any that can watch a descriptor and wait does), which
 * goes on with its other work: here it ticks. SIGINT cancels.
 *
 *	cc -o receive receive.c $(pkg-config --cflags --libs libptcp libuv)
 *	./receive ptcp://HOST/PATH DIR [SHA256:..] */
#include <signal.h>
#include <stdio.h>

#include <uv.h>

#include <ptcp/ptcp.h>

struct host {
	struct ptcp_task *transfer;
	uv_poll_t poll;         /* the transfer's descriptor */
	uv_timer_t timer;       /* and its time-out */
	uv_timer_t tick;        /* the host's own work */
	uv_signal_t interrupt;
	unsigned ticks;
	int result;
	struct ptcp_err err;
};

/* ---- The thirty lines that it takes ---- */

static void step(struct host *h);

static void on_readable(uv_poll_t *p, int status, int events)
{
	(void)status;
	(void)events;
	step(p->data);
}

static void on_timeout(uv_timer_t *t)
{
	step(t->data);
}

static void wait_for_it(struct host *h)
{
	int ms = ptcp_task_timeout_ms(h->transfer);

	if (ms < 0)
		uv_timer_stop(&h->timer);
	else
		uv_timer_start(&h->timer, on_timeout, (uint64_t)ms, 0);
}

static void step(struct host *h)
{
	h->result = ptcp_task_step(h->transfer, &h->err);
	if (h->result > 0) {
		wait_for_it(h);
		return;
	}
	uv_close((uv_handle_t *)&h->poll, NULL);
	uv_close((uv_handle_t *)&h->timer, NULL);
	uv_close((uv_handle_t *)&h->tick, NULL);
	uv_close((uv_handle_t *)&h->interrupt, NULL);
}

static int start(struct host *h, uv_loop_t *loop)
{
	if (ptcp_task_start(h->transfer, &h->err) < 0)
		return -1;
	uv_poll_init(loop, &h->poll, ptcp_task_fd(h->transfer));
	uv_timer_init(loop, &h->timer);
	h->poll.data = h->timer.data = h;
	uv_poll_start(&h->poll, UV_READABLE, on_readable);
	wait_for_it(h);
	return 0;
}

/* ---- The host ---- */

static void on_tick(uv_timer_t *t)
{
	struct host *h = t->data;

	h->ticks++;
}

static void on_interrupt(uv_signal_t *s, int number)
{
	struct host *h = s->data;

	(void)number;
	ptcp_task_cancel(h->transfer);
}

int main(int argc, char **argv)
{
	struct ptcp_transfer_opts opts;
	struct host h = { .result = 1 };
	const char *sources[1], *pin = argv[argc - 1];
	uv_loop_t *loop = uv_default_loop();

	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: receive ptcp://HOST/PATH DIR [FINGERPRINT]\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	ptcp_transfer_opts_init(&opts);
	if (argc == 4) {
		opts.fingerprints = &pin;
		opts.n_fingerprints = 1;
	}
	sources[0] = argv[1];
	if (ptcp_recv_new(&h.transfer, &opts, sources, 1, argv[2], &h.err) < 0 || start(&h, loop) < 0) {
		fprintf(stderr, "%s\n", h.err.msg);
		ptcp_task_free(h.transfer);
		return 2;
	}
	uv_timer_init(loop, &h.tick);
	h.tick.data = &h;
	uv_timer_start(&h.tick, on_tick, 1, 1);
	uv_signal_init(loop, &h.interrupt);
	h.interrupt.data = &h;
	uv_signal_start(&h.interrupt, on_interrupt, SIGINT);
	uv_run(loop, UV_RUN_DEFAULT); /* until step() has closed everything */
	uv_loop_close(loop);
	if (h.result < 0)
		fprintf(stderr, "%s\n", h.err.msg);
	else
		printf("received; %u ticks meanwhile\n", h.ticks);
	ptcp_task_free(h.transfer);
	return h.result < 0;
}
