/* Event loops, messages between threads, and timers, on top of libuv. A loop and all objects on it belong to
 * the thread that runs the loop, except where stated. */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include <stdbool.h>

#include "core/clock.h"
#include "core/err.h"

struct loop;

/* Embedded by the sender; `run` is called once on the loop's thread and may free the message. */
struct msg {
	void (*run)(struct msg *m);
	struct msg *next;
};

int loop_new(struct loop **out, struct ptcp_err *e);
/* Runs the loop in a new thread with signals blocked; loop_free() ends and joins the thread. */
int loop_start_thread(struct loop *l, struct ptcp_err *e);
/* Runs the loop on this thread until loop_stop(). */
void loop_run(struct loop *l);
/* One iteration on this thread: handles the events that are due; with `wait` waits for at least one. */
void loop_run_once(struct loop *l, bool wait);
/* For embedding in a foreign event loop: loop_run_once() is due when the descriptor is readable, or after the
 * timeout (0: now, -1: no timeout). */
int loop_fd(const struct loop *l);
int loop_timeout_ms(struct loop *l);
/* Any thread and signal handlers; idempotent. Messages posted before still run, on the loop's thread. */
void loop_stop(struct loop *l);
/* After a stop: the loop may run again. */
void loop_reset(struct loop *l);
/* Total time that the loop's thread waited for events. Any thread. */
uint64_t loop_idle_ns(struct loop *l);
/* All objects on the loop must be free, and no thread may post to it. NULL is fine. */
void loop_free(struct loop *l);

/* Any thread; first in, first out. Not after the loop was stopped. */
void loop_post(struct loop *l, struct msg *m);

/* loop_wake() (any thread and signal handlers, while the loop exists) makes the loop's thread call `fn`
 * soon. */
void loop_on_wake(struct loop *l, void (*fn)(void *arg), void *arg);
void loop_wake(struct loop *l);

/* Buffers for data in transit, in two sizes, aligned, to be released with free(). The loop keeps a few returned ones,
 * which are still in the CPU's cache when the next channel takes them. Loop thread only. */
#define LOOP_BUFFER_BYTES (264u << 10)
#define LOOP_LARGE_BUFFER_BYTES (336u << 10)
#define LOOP_BUFFER_ALIGN 4096

void *loop_buffer_take(struct loop *l, bool large); /* NULL: no memory */
void loop_buffer_give(struct loop *l, void *p, bool large); /* NULL is fine, for l (frees p) and for p */
/* When a user of many buffers has ended. */
void loop_buffers_trim(struct loop *l);

struct timer;

int timer_new(struct timer **out, struct loop *l, void (*fire)(void *arg), void *arg, struct ptcp_err *e);
/* Fires once, at `at` or up to some milliseconds later; MONO_NEVER cancels. */
void timer_set(struct timer *t, struct mono at);
void timer_free(struct timer *t); /* NULL is fine; the timer does not fire afterwards */

#endif
