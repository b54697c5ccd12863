/* Event loops, what crosses between threads, and timers: all that libuv gives us. A loop
 * and what hangs on it belong to the thread that runs it, except where said. */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include <stdbool.h>

#include "core/clock.h"
#include "core/err.h"

struct loop;

/* Embedded by the sender; `run` is called once on the loop's thread and may free it. */
struct msg {
	void (*run)(struct msg *m);
	struct msg *next;
};

int loop_new(struct loop **out, struct ptcp_err *e);
/* Runs the loop in a thread of its own, signals blocked; loop_free() ends and joins it. */
int loop_start_thread(struct loop *l, struct ptcp_err *e);
/* Runs it here until loop_stop(). */
void loop_run(struct loop *l);
/* One turn of it here: what is due is done, with `wait` at least something. */
void loop_turn(struct loop *l, bool wait);
/* For somebody else's loop: a turn is due when the descriptor is readable, or after so long (0: now, -1: not
 * for any time). */
int loop_fd(const struct loop *l);
int loop_timeout_ms(struct loop *l);
/* Any thread and signal handlers; idempotent. What was posted before still runs, on the loop's thread. */
void loop_stop(struct loop *l);
/* After it has been stopped: it may run again. */
void loop_reset(struct loop *l);
/* For how long its thread has waited for something to do, so far. Any thread. */
uint64_t loop_idle_ns(struct loop *l);
/* Everything on it must have been freed, nothing may be posted any more. Waits for a resolver that a
 * cancelled dial has left behind. NULL is fine. */
void loop_free(struct loop *l);

/* Any thread; first in, first out. Not after the loop has been stopped. */
void loop_post(struct loop *l, struct msg *m);

/* `fn` is called on the loop's thread soon after loop_wake(), which any thread and signal handlers may
 * call while the loop exists. */
void loop_on_wake(struct loop *l, void (*fn)(void *arg), void *arg);
void loop_wake(struct loop *l);

struct timer;

int timer_new(struct timer **out, struct loop *l, void (*fire)(void *arg), void *arg,
    struct ptcp_err *e);
/* Fires once at or soon after `at` (millisecond grain), never before; MONO_NEVER: not. */
void timer_set(struct timer *t, struct mono at);
void timer_free(struct timer *t); /* NULL is fine; never fires afterwards */

#endif
