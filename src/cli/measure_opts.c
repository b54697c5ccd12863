#include "cli/measure_opts.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/exit.h"
#include "cli/process.h"
#include "cli/terminal.h"
#include "core/err.h"

static void show(void *arg, const struct ptcp_event *ev)
{
	char line[64];

	(void)arg;
	if (ev->type == PTCP_EVENT_STREAMS) {
		snprintf(line, sizeof line, "probing with %u stream%s", ev->to, ev->to == 1 ? "" : "s");
		terminal_status(line);
	}
}

void probe_opts(const struct connect_args *a, struct ptcp_transfer_opts *o)
{
	ptcp_transfer_opts_init(o);
	connect_apply(a, o);
	if (!a->talk.quiet && !a->talk.json && terminal_is(STDERR_FILENO))
		o->event = show;
}

static void cancel(void *handle)
{
	ptcp_transfer_cancel(handle);
}

int probe_run(struct ptcp_transfer *t, struct ptcp_err *e)
{
	int r;

	process_catch(EXIT_INTERRUPTED, "\nptcp: interrupted twice: ended at once (run it again)\n");
	process_set_stop(cancel, t);
	r = ptcp_transfer_run(t, e);
	process_set_stop(NULL, NULL);
	terminal_status("");
	return r;
}

int probe_direction(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	bool *receive = (bool *)(void *)((char *)args + o->at);

	*receive = strcmp(text, "recv") == 0;
	return *receive || strcmp(text, "send") == 0 ? 0 :
	    opt_reject(o, text, e, "no such direction (send: from here, or recv: to here)");
}

struct levels {
	unsigned *level;
	size_t most, n;
};

static int add_level(void *args, const struct opt *o, const char *part, struct ptcp_err *e)
{
	struct levels *l = args;

	if (l->n == l->most)
		return opt_reject(o, part, e, "too many numbers of streams (leave some out)");
	if (opt_number(part, 1, PTCP_STREAMS_MAX, &l->level[l->n]) < 0)
		return opt_reject(o, part, e, "not a number from 1 to 128");
	l->n++;
	return 0;
}

int probe_levels(const struct opt *o, const char *text, unsigned *level, size_t most, size_t *n,
    struct ptcp_err *e)
{
	struct levels l = { level, most, 0 };
	int r = opt_each(&l, o, text, e, add_level);

	*n = l.n;
	return r;
}
