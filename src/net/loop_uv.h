/* The libuv side of loops, for the rest of net. */
#ifndef NET_LOOP_UV_H
#define NET_LOOP_UV_H

#include <uv.h>

#include "net/loop.h"

uv_loop_t *loop_uv(struct loop *l);

/* Polls for the events `want` from now on; *events holds the current ones. */
static inline void poll_events(uv_poll_t *p, int *events, int want, uv_poll_cb fn)
{
	if (want == *events)
		return;
	*events = want;
	if (want == 0)
		uv_poll_stop(p);
	else
		uv_poll_start(p, want, fn);
}

#endif
