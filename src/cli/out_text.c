#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/output.h"
#include "cli/terminal.h"
#include "core/text.h"
#include "core/units.h"

/* Appends " PART" unless that would make the line `width` columns wide: the last column
 * stays free, as terminals differ on whether filling it starts a new line. Parts are ASCII. */
static bool add(char *buf, size_t cap, unsigned width, const char *part)
{
	size_t n = strlen(buf), gap = n > 0 ? 2 : 0, want = n + gap + strlen(part);

	if (want >= width || want >= cap)
		return false;
	memcpy(buf + n, "  ", gap);
	strcpy(buf + n + gap, part);
	return true;
}

const char *output_status_text(char *buf, size_t cap, unsigned width, const struct ptcp_event *ev)
{
	static const char *const activity[] = { [PTCP_TRANSFERRING] = "",
		[PTCP_VERIFYING] = "verifying what is there", [PTCP_SYNCING] = "syncing" };
	char a[UNITS_TEXT_BYTES], b[UNITS_TEXT_BYTES], part[6][80] = { "" };
	uint64_t total = ev->progress.total_bytes;
	size_t i;

	if (ev->progress.total_known && total > 0)
		snprintf(part[0], sizeof part[0], "%3u%%",
		    (unsigned)((double)(ev->progress.bytes < total ? ev->progress.bytes : total) / (double)total * 100));
	snprintf(part[1], sizeof part[1], "%s of %s%s", units_size_text(a, ev->progress.bytes),
	    units_size_text(b, total), ev->progress.total_known ? "" : " so far");
	snprintf(part[2], sizeof part[2], "%s", units_rate_text(a, ev->rate_bps));
	if (ev->eta_s >= 0 && ev->eta_s < 60)
		snprintf(part[3], sizeof part[3], "ETA %.0fs", ceil(ev->eta_s));
	else if (ev->eta_s >= 0)
		snprintf(part[3], sizeof part[3], "ETA %s", units_time_text(a, ev->eta_s));
	snprintf(part[4], sizeof part[4], "%u stream%s", ev->progress.streams, ev->progress.streams == 1 ? "" : "s");
	snprintf(part[5], sizeof part[5], "%s", activity[ev->progress.activity]);

	buf[0] = '\0';
	for (i = 0; i < sizeof part / sizeof *part; i++)
		if (part[i][0] != '\0' && !add(buf, cap, width, part[i]))
			break;
	return buf;
}

static const char *path_name(char out[TEXT_NAME_BYTES], const struct output *o, size_t i)
{
	return text_escape(out, TEXT_NAME_BYTES, output_via(o, i) != NULL ? output_via(o, i) : "direct");
}

static void text_streams(struct output *o, const struct ptcp_event *ev)
{
	(void)o; /* the status line shows their number; the log says why */
	(void)ev;
}

static void text_paths(struct output *o, const struct ptcp_event *ev)
{
	(void)o; /* the log says so */
	(void)ev;
}

static void text_file(struct output *o, const struct ptcp_event *ev)
{
	char path[4 * 4096 + 1];

	/* What failed has its line; what went well is in the last one. */
	if (o->dry_run && ev->status == PTCP_FILE_DONE)
		puts(text_escape(path, sizeof path, ev->path));
}

static void text_detached(struct output *o, const struct ptcp_event *ev)
{
	(void)o;
	puts(ev->text);
}

/* What --streams auto had come to, and what it was worth. */
static void text_advised(const struct ptcp_result *r)
{
	char predicted[UNITS_TEXT_BYTES], seen[UNITS_TEXT_BYTES];

	if (r->advised_streams > 0 && r->measured_bps > 0)
		terminal_line("of %u stream%s %s and %.0f %% from each other flow were predicted%s, %s came",
		    r->advised_streams, r->advised_streams == 1 ? "" : "s",
		    units_rate_text(predicted, r->predicted_bps), r->predicted_impact_percent,
		    r->from_history ? " from history" : "", units_rate_text(seen, r->measured_bps));
}

/* "A 94 Mbit/s  direct 47 Mbit/s" behind the rest, as many as fit. */
static void add_paths(char *buf, size_t cap, unsigned width, const struct output *o)
{
	char part[TEXT_NAME_BYTES + UNITS_TEXT_BYTES], name[TEXT_NAME_BYTES], rate[UNITS_TEXT_BYTES];
	size_t i;

	for (i = 0; o->n_paths > 1 && i < o->n_paths; i++) {
		snprintf(part, sizeof part, "%s %s", path_name(name, o, i),
		    units_rate_text(rate, o->paths[i].rate_bps));
		if (!add(buf, cap, width, part))
			return;
	}
}

static void text_progress(struct output *o, const struct ptcp_event *ev)
{
	char line[256];

	if (!o->status)
		return;
	output_status_text(line, sizeof line, terminal_width(), ev);
	add_paths(line, sizeof line, terminal_width(), o);
	terminal_status(line);
}

static void say_paths(const struct output *o)
{
	char name[TEXT_NAME_BYTES], size[UNITS_TEXT_BYTES];
	size_t i;

	for (i = 0; o->n_paths > 1 && i < o->n_paths; i++)
		terminal_line("  %s%s: %s", output_via(o, i) != NULL ? "via " : "", path_name(name, o, i),
		    units_size_text(size, o->paths[i].bytes));
}

static void text_end(struct output *o, const struct ptcp_result *r, int status,
    const char *failure)
{
	char size[UNITS_TEXT_BYTES], time[UNITS_TEXT_BYTES], rate[UNITS_TEXT_BYTES];
	char there[UNITS_TEXT_BYTES + 20] = "", found[UNITS_TEXT_BYTES];

	(void)failure;
	if (status != 0 || o->quiet || o->detached)
		return;
	if (o->dry_run) {
		terminal_line("would have %llu file%s there, %s, of which %s are there already",
		    (unsigned long long)r->progress.files, r->progress.files == 1 ? "" : "s", units_size_text(size, r->progress.file_bytes),
		    units_size_text(found, r->progress.resumed_bytes));
		return;
	}
	if (r->progress.resumed_bytes > 0)
		snprintf(there, sizeof there, " (%s were there)", units_size_text(found, r->progress.resumed_bytes));
	terminal_line("%s %llu file%s, %s%s in %s, %s, %u stream%s",
	    strcmp(o->command, "send") == 0 ? "sent" : "received", (unsigned long long)r->progress.files,
	    r->progress.files == 1 ? "" : "s", units_size_text(size, r->progress.file_bytes), there,
	    units_time_text(time, r->seconds), units_rate_text(rate, output_throughput_bps(r)),
	    r->progress.max_streams, r->progress.max_streams == 1 ? "" : "s");
	text_advised(r);
	say_paths(o);
}

const struct output_ops output_text = {
	.start = text_progress,
	.progress = text_progress,
	.streams = text_streams,
	.paths = text_paths,
	.file = text_file,
	.detached = text_detached,
	.end = text_end,
};
