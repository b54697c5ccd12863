#include "core/thread.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "core/err.h"

static int start(pthread_t *out, const pthread_attr_t *attr, void *(*fn)(void *arg), void *arg, struct ptcp_err *e)
{
	sigset_t all, old;
	int sys;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	sys = pthread_create(out, attr, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (sys == 0)
		return 0;
	err_set(e, PTCP_ENOMEM, "cannot start a thread: %s (raise the limit on processes, see ulimit -u)",
	    strerror(sys));
	if (e != NULL)
		e->sys = sys;
	return PTCP_ENOMEM;
}

int thread_start(pthread_t *out, void *(*fn)(void *arg), void *arg, struct ptcp_err *e)
{
	return start(out, NULL, fn, arg, e);
}

int thread_start_detached(size_t stack_bytes, void *(*fn)(void *arg), void *arg, struct ptcp_err *e)
{
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, stack_bytes);
	r = start(&thread, &attr, fn, arg, e);
	pthread_attr_destroy(&attr);
	return r;
}

uint64_t thread_waits(void)
{
	struct rusage u;

	return getrusage(RUSAGE_THREAD, &u) == 0 ? (uint64_t)u.ru_nvcsw : 0;
}
