/* What the tests of net share: a directory of their own, files in it, an identity, a loop that is
 * run until something holds; and what is true of every test (no descriptor stays open). */
#ifndef TESTS_NET_FIXTURE_H
#define TESTS_NET_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>

#include "core/units.h"
#include "net/identity.h"
#include "net/loop.h"
#include "timed.h"

/* cmocka setup and teardown: an empty directory; afterwards it is removed, and as many descriptors
 * must be open as before. SIGPIPE is ignored. */
int nf_setup(void **state);
int nf_teardown(void **state);
#define nf_test(f) cmocka_unit_test_setup_teardown(f, nf_setup, nf_teardown)
#define nf_timed_test(f) timed_test_setup_teardown(f, nf_setup, nf_teardown)

extern char nf_dir[200];
/* "DIR/name"; one of a few buffers used in turn. */
const char *nf_path(const char *name);
void nf_write(const char *name, const char *text, unsigned mode);
/* The file as a string. */
const char *nf_read(const char *name);
int nf_count_files(void);

int nf_open_fds(void);

/* Runs the loop until *flag, at most so many milliseconds of a quiet machine (patience.h); what *flag is then. */
bool nf_run_until(struct loop *l, const bool *flag, unsigned ms);
/* Runs it until that is true, at most as long as an event may take; whether it is then. */
#define NF_AWAIT_MS 20000
bool nf_await(struct loop *l, bool (*is_true)(void *arg), void *arg);
/* Runs it until nothing is left that could be done now: what the test has written to sockets of this thread, except
 * over TCP, has been handled. */
void nf_settle(struct loop *l);
/* For what does not happen: runs it for so long at least, and until it has settled. A busy machine sees less of it,
 * and fails no test by that. */
void nf_run_for(struct loop *l, unsigned ms);

/* Writes to a descriptor what it takes of `all` bytes in all, and whether that was anything; reads from another what
 * there is, which must be the same; both. Neither blocks. */
bool nf_put(int to, size_t all, size_t *sent);
void nf_take(int from, size_t *got);
void nf_move(int to, int from, size_t all, size_t *sent, size_t *got);

void nf_sleep_ms(unsigned ms);

#endif
