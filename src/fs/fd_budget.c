#include "fs/fd_budget.h"

#include <stdatomic.h>
#include <sys/resource.h>

#include "core/err.h"

/* An idle process has 12 descriptors besides its worker loops; each I/O thread briefly opens up to two
 * directories and a file. */
#define SPARE 24u

/* Shares of the limit: one descriptor in so many. */
enum { INBOUND = 8, WAITING = 8, DIRECTORIES = 16 };

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

static unsigned share_of_inbound(void) { return limit() / INBOUND; }
static unsigned share_of_waiting(void) { return limit() / WAITING; }
static unsigned share_of_directories(void) { return limit() / DIRECTORIES; }

/* For `others` and `files`. */
static unsigned room_of(unsigned max)
{
	unsigned shares = SPARE + max / INBOUND + max / WAITING + max / DIRECTORIES;

	return max > shares ? max - shares : 0;
}

static unsigned room(void) { return room_of(limit()); }

/* The lowest limit from which on there is room for n: the shares are rounded. */
static unsigned limit_for(unsigned n)
{
	unsigned max = 2 * (n + SPARE);

	while (room_of(max - 1) >= n)
		max--;
	return max;
}

bool fd_budget_fits(unsigned n) { return limit() >= limit_for(n); }

int fd_budget_check(unsigned n, struct ptcp_err *e)
{
	return fd_budget_fits(n) ? 0 : err_set(e, PTCP_ECONFIG, "open files: the limit of %u is too low, at least %u "
	    "are needed (run ulimit -n %u first, or set LimitNOFILE= in a systemd unit)", limit(),
	    limit_for(n), limit_for(n));
}

/* Adds n to *count if the result is at most `max`. */
static bool fd_budget_add(atomic_uint *count, unsigned n, unsigned max)
{
	unsigned now = atomic_load(count);

	do {
		if (now > max || n > max - now)
			return false;
	} while (!atomic_compare_exchange_weak(count, &now, now + n));
	return true;
}

static unsigned room_beside(unsigned used)
{
	unsigned all = room();

	return all > used ? all - used : 0;
}

void fd_budget_count(int n) { atomic_fetch_add(&others, (unsigned)n); }
bool fd_budget_reserve(unsigned n) { return fd_budget_add(&others, n, room_beside(atomic_load(&files))); }
unsigned fd_budget_left(void) { return room_beside(atomic_load(&files) + atomic_load(&others)); }

static bool take_below(unsigned n, unsigned max)
{
	unsigned all = room_of(max), used = atomic_load(&others);

	return fd_budget_add(&files, n, min(min(all / 2, FILES_MAX), all > used ? all - used : 0));
}

bool fd_budget_take(unsigned n)
{
	static atomic_uint known, takes;
	unsigned max;

	if (atomic_fetch_add(&takes, 1) % FD_BUDGET_FILES_PER_LIMIT != 0 && take_below(n, atomic_load(&known)))
		return true;
	max = limit();
	atomic_store(&known, max);
	return take_below(n, max);
}

void fd_budget_take_unchecked(unsigned n) { atomic_fetch_add(&files, n); }
void fd_budget_give(unsigned n) { atomic_fetch_sub(&files, n); }

bool fd_budget_take_directory(void) { return fd_budget_add(&directories, 1, min(share_of_directories(), FILES_MAX)); }
void fd_budget_give_directory(void) { atomic_fetch_sub(&directories, 1); }

void fd_budget_count_inbound(int n) { atomic_fetch_add(&inbound, (unsigned)n); }
bool fd_budget_inbound_full(void) { return atomic_load(&inbound) >= share_of_inbound(); }

unsigned fd_budget_connections(void) { return limit() < 4 ? 1 : limit() / 4; }
unsigned fd_budget_unauthenticated(unsigned max) { return min(limit() / 16, max); }
unsigned fd_budget_waiting(unsigned max) { return min(share_of_waiting(), max); }
unsigned fd_budget_directories(unsigned max) { return min(limit() / 16, max); }
