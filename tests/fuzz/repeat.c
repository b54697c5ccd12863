/* Linked into programs of libFuzzer, in the place of functions whose results differ from run to run: libFuzzer inserts
 * numbers that the program compares into inputs, so that it would try other inputs in each run. */
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#define OWN_PID 4711

int __wrap_clock_gettime(clockid_t id, struct timespec *t);
pid_t __wrap_getpid(void);
int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *n);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *n);

static uint64_t now_us;

/* Each call takes a microsecond. */
int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
	now_us++;
	t->tv_sec = (id == CLOCK_REALTIME ? 1800000000 : 100000) + (time_t)(now_us / 1000000);
	t->tv_nsec = (long)(now_us % 1000000 * 1000);
	return 0;
}

pid_t __wrap_getpid(void)
{
	return OWN_PID;
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *n)
{
	int r = __real_getsockopt(fd, level, name, value, n);

	if (r == 0 && level == SOL_SOCKET && name == SO_PEERCRED)
		((struct ucred *)value)->pid = OWN_PID;
	return r;
}

int __real_uv_timer_start(uv_timer_t *t, uv_timer_cb expired, uint64_t ms, uint64_t repeat_ms);
int __wrap_uv_timer_start(uv_timer_t *t, uv_timer_cb expired, uint64_t ms, uint64_t repeat_ms);

/* Timers of less than a second expire in the next turn of the loop, others not during one input. */
int __wrap_uv_timer_start(uv_timer_t *t, uv_timer_cb expired, uint64_t ms, uint64_t repeat_ms)
{
	if (ms >= 500)
		return 0;
	now_us += ms * 1000;
	return __real_uv_timer_start(t, expired, 0, repeat_ms);
}

/* Or the negative of an address, which helps no input: those of Linux are above 2^40 and below 2^47. */
__attribute__((no_sanitize("coverage"))) static int is_address(uint64_t n)
{
	if (n >> 63 != 0)
		n = -n;
	return n >> 40 != 0 && n >> 47 == 0;
}

#define WRAP(compare)                                                                                          \
	void __real_##compare(uint64_t a, uint64_t b);                                                         \
	void __wrap_##compare(uint64_t a, uint64_t b);                                                         \
	__attribute__((no_sanitize("coverage"))) void __wrap_##compare(uint64_t a, uint64_t b)                 \
	{                                                                                                      \
		if (!is_address(a) && !is_address(b))                                                          \
			__real_##compare(a, b);                                                                \
	}

WRAP(__sanitizer_cov_trace_cmp8)
WRAP(__sanitizer_cov_trace_const_cmp8)
