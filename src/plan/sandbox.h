/* A planning run: a thread with its own memory and GLPK environment.
 *
 * GLPK calls abort() on misuse, exhausted memory and internal errors; its error hook may only leave by
 * longjmp(), after which only glp_free_env() is safe. Every failure of a run therefore ends in
 * sandbox_fail(), and the memory of the run is freed as a whole. The GLPK environment belongs to a thread;
 * our own thread leaves the caller's environment alone. */
#ifndef PLAN_SANDBOX_H
#define PLAN_SANDBOX_H

#include <ptcp/err.h>
#include <stdbool.h>
#include <stddef.h>

#define SANDBOX_MEMORY_BYTES ((size_t)400 << 20) /* memory for the run, and for GLPK */

struct sandbox;

/* Calls fn(run, arg) in a thread and waits. Returns 0, or the error of sandbox_fail(). Memory of
 * sandbox_alloc() is freed afterwards. `memory_bytes` limits the memory of the run, and GLPK's;
 * sandbox_hurry() becomes true after `effort_s`. */
int sandbox_start(void (*fn)(struct sandbox *, void *), void *arg, size_t memory_bytes,
    double effort_s, struct ptcp_err *e);

/* sandbox_check() calls go_on(arg, CPU time), and fails the run with PTCP_ECANCELED if the result is false. */
void sandbox_set_check(struct sandbox *run, bool (*go_on)(void *arg, double cpu_s), void *arg);
void sandbox_check(struct sandbox *run);

/* n zeroed elements; never NULL. */
void *sandbox_alloc(struct sandbox *run, size_t n, size_t size);
/* A copy of n elements in an array of twice the room (at least 64), counted in *room; the old array stays
 * until the end of the run. */
void *sandbox_grow(struct sandbox *run, const void *old, size_t n, size_t *room, size_t size);
/* Release frees the memory allocated since the mark. */
size_t sandbox_mark(const struct sandbox *run);
void sandbox_release(struct sandbox *run, size_t mark);

/* Ends the run. */
_Noreturn void sandbox_fail(struct sandbox *run, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Whether the effort is used up, and the present result must do. */
int sandbox_hurry(const struct sandbox *run);
double sandbox_left_s(const struct sandbox *run);

#endif
