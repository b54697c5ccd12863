#include "store/fd_budget.h"

#include <stdatomic.h>
#include <sys/resource.h>

/* An idle process has 12 descriptors besides its worker loops; each I/O thread briefly opens up to two
 * directories and a file. */
#define SPARE 24u

/* Limit on files, whatever the process's limit: more would only wait for completion. */
#define FILES_MAX 4096u

static atomic_uint others, files, directories, inbound;

static unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }

/* May change while the process runs. */
static unsigned limit(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur > 1u << 20)
		return 1u << 20;
	return (unsigned)r.rlim_cur;
}

static unsigned share_of_inbound(void) { return limit() / 8; }
static unsigned share_of_waiting(void) { return limit() / 8; }
static unsigned share_of_directories(void) { return limit() / 16; }

/* For `others` and `files`. */
static unsigned room(void)
{
	unsigned shares = SPARE + share_of_inbound() + share_of_waiting() + share_of_directories();

	return limit() > shares ? limit() - shares : 0;
}

/* Adds n to *count if the result is at most `max`. */
static bool add(atomic_uint *count, unsigned n, unsigned max)
{
	unsigned now = atomic_load(count);

	do {
		if (now > max || n > max - now)
			return false;
	} while (!atomic_compare_exchange_weak(count, &now, now + n));
	return true;
}

static unsigned room_beside(unsigned used) { return room() > used ? room() - used : 0; }

void fd_budget_count(int n) { atomic_fetch_add(&others, (unsigned)n); }
bool fd_budget_reserve(unsigned n) { return add(&others, n, room_beside(atomic_load(&files))); }
unsigned fd_budget_left(void) { return room_beside(atomic_load(&files) + atomic_load(&others)); }

bool fd_budget_take(unsigned n)
{
	return add(&files, n, min(min(room() / 2, FILES_MAX), room_beside(atomic_load(&others))));
}

void fd_budget_take_unchecked(unsigned n) { atomic_fetch_add(&files, n); }
void fd_budget_give(unsigned n) { atomic_fetch_sub(&files, n); }

bool fd_budget_take_directory(void) { return add(&directories, 1, min(share_of_directories(), FILES_MAX)); }
void fd_budget_give_directory(void) { atomic_fetch_sub(&directories, 1); }

void fd_budget_count_inbound(int n) { atomic_fetch_add(&inbound, (unsigned)n); }
bool fd_budget_inbound_full(void) { return atomic_load(&inbound) >= share_of_inbound(); }

unsigned fd_budget_connections(void) { return limit() < 4 ? 1 : limit() / 4; }
unsigned fd_budget_unauthenticated(unsigned max) { return min(limit() / 16, max); }
unsigned fd_budget_waiting(unsigned max) { return min(share_of_waiting(), max); }
unsigned fd_budget_directories(unsigned max) { return min(limit() / 16, max); }
