#include "net/watch.h"

#include <stdlib.h>

#include "net/loop_uv.h"

struct watch {
	uv_poll_t poll;
	int events;
	void (*readable)(void *);
	void *arg;
};

/* After an error libuv has stopped polling. */
static void on_poll(uv_poll_t *h, int status, int events)
{
	struct watch *w = h->data;

	(void)events;
	if (status < 0)
		w->events = 0;
	w->readable(w->arg);
}

int watch_new(struct watch **out, struct loop *l, int fd, void (*readable)(void *arg), void *arg, struct ptcp_err *e)
{
	struct watch *w = calloc(1, sizeof *w);
	int r;

	if (w == NULL)
		return err_nomem(e);
	if ((r = uv_poll_init(loop_uv(l), &w->poll, fd)) < 0) {
		free(w);
		return err_set(e, PTCP_EIO, "polling a socket: %s", uv_strerror(r));
	}
	w->poll.data = w;
	w->readable = readable;
	w->arg = arg;
	watch_hold(w, false);
	*out = w;
	return 0;
}

void watch_hold(struct watch *w, bool hold)
{
	poll_events(&w->poll, &w->events, hold ? 0 : UV_READABLE, on_poll);
}

static void on_watch_closed(uv_handle_t *h) { free(h->data); }

void watch_free(struct watch *w)
{
	if (w == NULL)
		return;
	uv_poll_stop(&w->poll);
	uv_close((uv_handle_t *)&w->poll, on_watch_closed);
}
