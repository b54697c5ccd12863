#include "store/fd_budget.h"

#include <stdatomic.h>
#include <sys/resource.h>

/* A process without a transfer has 12 beside its worker loops; every thread of the store's may have two
 * directories and a file open for a moment. */
#define SPARE 24u

/* Of files, whatever the limit: more only waits to be completed. */
#define FILES_MAX 4096u

static atomic_uint others, files;

/* It may be changed while we run. */
static unsigned limit(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur > 1u << 20)
		return 1u << 20;
	return (unsigned)r.rlim_cur;
}

void fd_budget_count(int n)
{
	atomic_fetch_add(&others, (unsigned)n);
}

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

void fd_budget_take_anyway(unsigned n)
{
	atomic_fetch_add(&files, n);
}

void fd_budget_give(unsigned n)
{
	atomic_fetch_sub(&files, n);
}

unsigned fd_budget_connections(void)
{
	unsigned most = limit() / 4;

	return most > 0 ? most : 1;
}

unsigned fd_budget_strangers(unsigned most)
{
	unsigned few = limit() / 8;

	return few < most ? few : most;
}

unsigned fd_budget_directories(unsigned most)
{
	unsigned few = limit() / 16;

	return few < most ? few : most;
}
