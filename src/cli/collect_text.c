#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/collect_output.h"
#include "cli/terminal.h"
#include "core/text.h"
#include "core/units.h"

/* No plan is for anything: why. */
static const char *nothing(const struct ptcp_collect_event *ev)
{
	size_t i, failed = 0;

	for (i = 0; i < ev->n_sources; i++)
		failed += ev->sources[i].state == PTCP_COLLECT_FAILED;
	return failed == 0 ? "all is there already" : failed < ev->n_sources ? "all that could be measured is there already" :
	    "no source could be measured";
}

static void text_plan(struct collect_shown *s, const struct ptcp_collect_event *ev)
{
	char time[UNITS_TEXT_BYTES], size[UNITS_TEXT_BYTES];

	if (s->quiet)
		return;
	if (ev->text != NULL)
		terminal_line("ptcp: planned anew, as %s: all is there after %s", ev->text,
		    units_time_text(time, ev->planned_s));
	else if (ev->total_bytes == 0)
		terminal_line("ptcp: planned: nothing, %s", nothing(ev));
	else
		terminal_line("ptcp: planned: %s in %s", units_size_text(size, ev->total_bytes),
		    units_time_text(time, ev->planned_s));
}

static void text_progress(struct collect_shown *s, const struct ptcp_collect_event *ev)
{
	char done[UNITS_TEXT_BYTES], all[UNITS_TEXT_BYTES], rate[UNITS_TEXT_BYTES], eta[UNITS_TEXT_BYTES];
	char plan[UNITS_TEXT_BYTES], line[250];
	unsigned width = terminal_width();
	size_t i, n, running = 0;

	if (!s->status)
		return;
	for (i = 0; i < ev->n_sources; i++)
		running += ev->sources[i].state == PTCP_COLLECT_RUNNING;
	n = (size_t)snprintf(line, sizeof line, "%3.0f%%  %s of %s  %s  ETA %s, plan %s  %zu host%s",
	    ev->total_bytes > 0 ? floor(100 * (double)ev->bytes / (double)ev->total_bytes) : 0,
	    units_size_text(done, ev->bytes), units_size_text(all, ev->total_bytes),
	    units_rate_text(rate, ev->rate_bps), ev->eta_s >= 0 ? units_time_text(eta, ev->eta_s) : "?",
	    units_time_text(plan, fmax(0, ev->planned_s - ev->elapsed_s)), running, running == 1 ? "" : "s");
	if (n >= width && width > 0)
		line[width - 1 < sizeof line ? width - 1 : sizeof line - 1] = '\0';
	terminal_status(line);
}

static void text_source(struct collect_shown *s, const struct ptcp_collect_event *ev)
{
	const struct ptcp_collect_source *one = &ev->sources[ev->source];
	const char *name = host_name(s->overlay, one->host);

	if (one->state == PTCP_COLLECT_FAILED)
		terminal_line("ptcp: %s: %s", name, ev->text);
	else if (one->state == PTCP_COLLECT_WAITING && ev->text != NULL)
		terminal_line("ptcp: warning: %s: %s; trying again", name, ev->text);
}

static void text_file(struct collect_shown *s, const struct ptcp_collect_event *ev)
{
	(void)s; /* its line on stderr says so */
	(void)ev;
}

static void say_source(const struct collect_shown *s, const struct ptcp_collect_source *one)
{
	char size[UNITS_TEXT_BYTES], there[UNITS_TEXT_BYTES];
	char more[UNITS_TEXT_BYTES + 20] = "";

	if (one->progress.resumed_bytes > 0)
		snprintf(more, sizeof more, " (%s were there)", units_size_text(there, one->progress.resumed_bytes));
	terminal_line("  %s: %llu file%s, %s%s", host_name(s->overlay, one->host), (unsigned long long)one->progress.files,
	    one->progress.files == 1 ? "" : "s", units_size_text(size, one->progress.bytes), more);
}

static void say_links(const struct collect_shown *s, const struct ptcp_collect *c)
{
	struct ptcp_collect_link l;
	struct ptcp_overlay_link of;
	char name[LINK_NAME_BYTES], size[UNITS_TEXT_BYTES];
	size_t i;

	for (i = 0; i < ptcp_overlay_links(s->overlay); i++) {
		ptcp_collect_link(c, i, &l);
		ptcp_overlay_link(s->overlay, i, &of);
		if (l.bytes > 0)
			terminal_line("  %s: %s", link_name(name, s->overlay, of.from, of.to), units_size_text(size, l.bytes));
	}
}

static void text_end(struct collect_shown *s, const struct ptcp_collect *c, int status, const char *failure)
{
	char size[UNITS_TEXT_BYTES], time[UNITS_TEXT_BYTES], plan[UNITS_TEXT_BYTES];
	struct ptcp_collect_source one;
	struct ptcp_collect_result r;
	size_t i;

	(void)failure;
	if (status != 0 || s->quiet || c == NULL)
		return;
	ptcp_collect_result_init(&r);
	ptcp_collect_result(c, &r);
	terminal_line("collected %llu file%s, %s from %zu host%s in %s, planned %s", (unsigned long long)r.files,
	    r.files == 1 ? "" : "s", units_size_text(size, r.bytes), r.sources_done, r.sources_done == 1 ? "" : "s",
	    units_time_text(time, r.seconds), units_time_text(plan, r.planned_s));
	for (i = 0; i < ptcp_collect_sources(c); i++) {
		ptcp_collect_source(c, i, &one);
		say_source(s, &one);
	}
	if (s->verbose)
		say_links(s, c);
}

const struct collect_ops collect_text = {
	.plan = text_plan,
	.progress = text_progress,
	.source = text_source,
	.file = text_file,
	.end = text_end,
};
