#include "core/thread.h"

#include <signal.h>
#include <string.h>

#include "core/err.h"

int thread_start(pthread_t *out, void *(*fn)(void *arg), void *arg, struct ptcp_err *e)
{
	sigset_t all, old;
	int sys;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	sys = pthread_create(out, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (sys == 0)
		return 0;
	err_set(e, PTCP_ENOMEM, "cannot start a thread: %s (raise the limit on processes, see ulimit -u)", strerror(sys));
	if (e != NULL)
		e->sys = sys;
	return PTCP_ENOMEM;
}
