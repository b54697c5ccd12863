#include "store/fd_budget.h"

#include <stdatomic.h>
#include <sys/resource.h>

/* An idle process has 12 descriptors besides its worker loops; each I/O thread briefly opens up to two
 * directories and a file. */
#define SPARE 24u

/* Limit on files, whatever the process's limit: more would only wait for completion. */
#define FILES_MAX 4096u

static atomic_uint others, files;

/* May change while the process runs. */
static unsigned limit(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur > 1u << 20)
		return 1u << 20;
	return (unsigned)r.rlim_cur;
}

void fd_budget_count(int n) { atomic_fetch_add(&others, (unsigned)n); }

bool fd_budget_take(unsigned n)
{
	unsigned all = limit(), reserved = SPARE + all / 8 + atomic_load(&others);
	unsigned now = atomic_load(&files);

	do {
		if (now + n > FILES_MAX || now + n + reserved > all)
			return false;
	} while (!atomic_compare_exchange_weak(&files, &now, now + n));
	return true;
}

void fd_budget_take_unchecked(unsigned n) { atomic_fetch_add(&files, n); }
void fd_budget_give(unsigned n) { atomic_fetch_sub(&files, n); }
static unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
unsigned fd_budget_connections(void) { return limit() < 4 ? 1 : limit() / 4; }
unsigned fd_budget_unauthenticated(unsigned max) { return min(limit() / 8, max); }
unsigned fd_budget_directories(unsigned max) { return min(limit() / 16, max); }
