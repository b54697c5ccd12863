#include "plan/sandbox.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/err.h"
#include "core/thread.h"
#include "core/units.h"
#include "plan/glpk_calls.h"

struct block {
	struct block *older;
	size_t bytes;
	_Alignas(max_align_t) char data[];
};

struct sandbox {
	jmp_buf out;
	void (*fn)(struct sandbox *, void *);
	void *arg;
	struct block *blocks;
	size_t nblocks, used_bytes, memory_bytes;
	double effort_s; /* CPU time of the thread: the load of the machine does not change plans */
	bool (*go_on)(void *arg, double cpu_s);
	void *go_on_arg;
	char glpk_error[200]; /* GLPK's last line, for errors */
	int code;
	struct ptcp_err err;
};

void *sandbox_alloc(struct sandbox *run, size_t n, size_t size)
{
	struct block *b;

	if (n == 0)
		n = 1;
	if (n > (run->memory_bytes - run->used_bytes) / size)
		sandbox_fail(run, PTCP_ENOMEM, "planning: more than %zu MiB needed (a smaller "
		    "overlay, longer slots or fewer windows need less)", run->memory_bytes >> 20);
	b = calloc(1, sizeof *b + n * size);
	if (b == NULL)
		sandbox_fail(run, PTCP_ENOMEM, "%s", ptcp_err_text(PTCP_ENOMEM));
	b->bytes = n * size;
	b->older = run->blocks;
	run->blocks = b;
	run->nblocks++;
	run->used_bytes += b->bytes;
	return b->data;
}

void *sandbox_grow(struct sandbox *run, const void *old, size_t n, size_t *room, size_t size)
{
	void *grown;

	*room = *room == 0 ? 64 : 2 * *room;
	grown = sandbox_alloc(run, *room, size);
	if (n > 0)
		memcpy(grown, old, n * size);
	return grown;
}

size_t sandbox_mark(const struct sandbox *run)
{
	return run->nblocks;
}

void sandbox_release(struct sandbox *run, size_t mark)
{
	while (run->nblocks > mark) {
		struct block *b = run->blocks;

		run->blocks = b->older;
		run->nblocks--;
		run->used_bytes -= b->bytes;
		free(b);
	}
}

void sandbox_fail(struct sandbox *run, int code, const char *fmt, ...)
{
	char text[sizeof run->err.msg];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	run->code = err_set(&run->err, code, "%s", text);
	longjmp(run->out, 1);
}

static double cpu_s(void)
{
	struct timespec t;

	return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0 ? (double)t.tv_sec +
	    (double)t.tv_nsec / (double)NS_PER_S : 0;
}

double sandbox_left_s(const struct sandbox *run)
{
	return fmax(0, run->effort_s - cpu_s());
}

void sandbox_set_check(struct sandbox *run, bool (*go_on)(void *arg, double cpu_s), void *arg)
{
	run->go_on = go_on;
	run->go_on_arg = arg;
}

void sandbox_check(struct sandbox *run)
{
	if (run->go_on != NULL && !run->go_on(run->go_on_arg, cpu_s()))
		sandbox_fail(run, PTCP_ECANCELED, "planning: canceled");
}

int sandbox_hurry(const struct sandbox *run)
{
	return sandbox_left_s(run) <= 0;
}

/* Silences GLPK, which turns its output on again after an error. */
static int glpk_says(void *info, const char *s)
{
	struct sandbox *run = info;

	if (strncmp(s, "Error detected", 14) != 0)
		snprintf(run->glpk_error, sizeof run->glpk_error, "%.*s", (int)strcspn(s, "\n"), s);
	return 1;
}

static void glpk_failed(void *info)
{
	struct sandbox *run = info;

	if (strstr(run->glpk_error, "memory") != NULL)
		sandbox_fail(run, PTCP_ENOMEM, "planning: %s", run->glpk_error);
	sandbox_fail(run, PTCP_ERANGE, "planning: GLPK failed: %s", run->glpk_error);
}

static void *run_thread(void *p)
{
	struct sandbox *run = p;

	if (setjmp(run->out) == 0) {
		glpk.term_out(GLP_OFF);
		glpk.term_hook(glpk_says, run);
		glpk.error_hook(glpk_failed, run);
		glpk.mem_limit((int)(run->memory_bytes >> 20) + 1);
		run->fn(run, run->arg);
	}
	glpk.error_hook(NULL, NULL);
	glpk.free_env();
	sandbox_release(run, 0);
	return NULL;
}

int sandbox_start(void (*fn)(struct sandbox *, void *), void *arg, size_t memory_bytes, double effort_s,
    struct ptcp_err *e)
{
	struct sandbox *run = calloc(1, sizeof *run);
	pthread_t thread;
	int r;

	if (run == NULL)
		return err_nomem(e);
	if ((r = glpk_load(e)) < 0) {
		free(run);
		return r;
	}
	run->fn = fn;
	run->arg = arg;
	run->memory_bytes = memory_bytes;
	run->effort_s = effort_s;
	if ((r = thread_start(&thread, run_thread, run, e)) == 0) {
		pthread_join(thread, NULL);
		r = run->code;
		if (r < 0 && e != NULL)
			*e = run->err;
	}
	free(run);
	return r;
}
