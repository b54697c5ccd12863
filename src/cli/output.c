#include "cli/output.h"

#include <string.h>
#include <unistd.h>

#include "cli/exit.h"
#include "cli/process.h"
#include "cli/terminal.h"

void output_init(struct output *o, const char *command, bool json, bool quiet)
{
	memset(o, 0, sizeof *o);
	o->ops = json ? &output_json : &output_text;
	o->command = command;
	o->quiet = quiet;
	o->status = !json && !quiet && terminal_is(STDERR_FILENO);
}

static void say_state(const struct ptcp_event *ev)
{
	char line[256];

	terminal_line("ptcp: state: %s", output_status_text(line, sizeof line, sizeof line, ev));
}

const char *output_via(const struct output *o, size_t i)
{
	return o->vias == NULL || strcmp(o->vias[i], "direct") == 0 ? NULL : o->vias[i];
}

static void keep_paths(struct output *o, const struct ptcp_event *ev)
{
	o->n_paths = ev->n_paths < PTCP_PATHS_MAX ? ev->n_paths : PTCP_PATHS_MAX;
	if (o->n_paths > 0)
		memcpy(o->paths, ev->paths, o->n_paths * sizeof *o->paths);
}

void output_event(void *arg, const struct ptcp_event *ev)
{
	struct output *o = arg;

	if (ev->type == PTCP_EVENT_START || ev->type == PTCP_EVENT_PROGRESS) {
		keep_paths(o, ev);
		if (process_state_asked())
			say_state(ev);
	}
	switch (ev->type) {
	case PTCP_EVENT_START:
		o->started = true;
		o->ops->start(o, ev);
		break;
	case PTCP_EVENT_PROGRESS:
		o->ops->progress(o, ev);
		break;
	case PTCP_EVENT_STREAMS:
		o->ops->streams(o, ev);
		break;
	case PTCP_EVENT_FILE:
		if (ev->status == PTCP_FILE_FAILED)
			terminal_failed(NULL, ev->path, ev->text != NULL ? ev->text : ptcp_err_text(ev->code));
		o->ops->file(o, ev);
		break;
	case PTCP_EVENT_DETACHED:
		o->detached = true;
		o->ops->detached(o, ev);
		break;
	case PTCP_EVENT_PATHS:
		keep_paths(o, ev);
		o->ops->paths(o, ev);
		break;
	case PTCP_EVENT_STATUS:
		break; /* not of a transfer's own */
	case PTCP_EVENT_WARNING:
		terminal_line("ptcp: warning: %s", ev->text != NULL ? ev->text : "");
		break;
	}
}

int output_end(struct output *o, int code, const struct ptcp_result *r, const struct ptcp_err *e)
{
	int status = exit_status(code);
	const char *why = e->msg[0] != '\0' ? e->msg : ptcp_err_text(code);

	terminal_status("");
	o->ops->end(o, r, status, code == 0 ? NULL : why);
	if (code != 0)
		terminal_line("ptcp: %s", why);
	return status;
}

double output_throughput_bps(const struct ptcp_result *r)
{
	return r->seconds > 0 ? (double)r->progress.wire_bytes * 8 / r->seconds : 0;
}
