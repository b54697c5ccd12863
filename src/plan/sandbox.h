/* One planning run: a thread with memory and a GLPK environment of its own.
 *
 * GLPK answers misuse, exhausted memory and internal trouble by abort(); its
 * error hook may only leave by longjmp(), after which nothing but
 * glp_free_env() is safe. So a run ends in the same way wherever it fails, by
 * run_fail(), and what it allocated is freed as a whole. Because the GLPK
 * environment belongs to a thread, a thread of our own also leaves the caller's
 * alone. */
#ifndef PLAN_SANDBOX_H
#define PLAN_SANDBOX_H

#include <stddef.h>

#include <ptcp/err.h>

#define SANDBOX_MEMORY_BYTES ((size_t)400 << 20) /* ours and GLPK's, each */

struct sandbox;

/* Calls fn(run, arg) in a thread and waits. 0, or what run_fail() said. All that
 * fn took by sandbox_alloc() is gone then. `memory_bytes` bounds ours and GLPK's
 * memory; `effort_s` sets when sandbox_hurry() becomes true. */
int sandbox_start(void (*fn)(struct sandbox *, void *), void *arg, size_t memory_bytes,
    double effort_s, struct ptcp_err *e);

/* n zeroed elements; never NULL. */
void *sandbox_alloc(struct sandbox *run, size_t n, size_t size);
/* A copy of n elements in an array of twice the room (at least 64), counted in *room; the old array stays until the end
 * of the run. */
void *sandbox_grow(struct sandbox *run, const void *old, size_t n, size_t *room, size_t size);
/* Release frees the memory allocated since the mark. */
size_t sandbox_mark(const struct sandbox *run);
void sandbox_release(struct sandbox *run, size_t mark);

/* Ends the run. */
_Noreturn void run_fail(struct sandbox *run, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Whether the effort is used up: take what there is. */
int sandbox_hurry(const struct sandbox *run);
double sandbox_left_s(const struct sandbox *run);

#endif
