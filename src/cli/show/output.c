#include "cli/show/output.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/client_opts.h"
#include "cli/hook.h"
#include "cli/process.h"
#include "cli/show/json.h"
#include "cli/show/story.h"
#include "cli/show/terminal.h"
#include "cli/sum_lines.h"
#include "core/sorted.h"
#include "core/text.h"
#include "core/units.h"

void output_init(struct output *o, const char *command, const struct log_opts *log)
{
	*o = (struct output){ .command = command, .json = log->json, .quiet = log->quiet, .list = log->list,
		.status = log_opts_status(log) };
}

/* The i-th requested path; NULL: the direct path. */
static const char *route(const struct output *o, size_t i)
{
	return o->routes == NULL || strcmp(o->routes[i], "direct") == 0 ? NULL : o->routes[i];
}

/* ---- Lists of files ---- */

/* A line "ACTION BYTES PATH"; `path` is raw; `bytes` of UINT64_MAX is shown as -. */
static void listing_print(const char *action, uint64_t bytes, const char *path)
{
	char shown[4 * 4096 + 1];

	text_escape(shown, sizeof shown, path);
	if (bytes == UINT64_MAX)
		printf("%-6s %12s %s\n", action, "-", shown);
	else
		printf("%-6s %12llu %s\n", action, (unsigned long long)bytes, shown);
}

/* The same later, by listing_end(), in the order of the bytes of the paths; without memory at once. */
static void listing_add(struct listing *l, const char *action, uint64_t bytes, const char *path)
{
	size_t room = l->room > 0 ? 2 * l->room : 64;
	struct listing_line *more = l->n < l->room ? l->line : realloc(l->line, room * sizeof *more);
	char *copy = strdup(path);

	if (more != NULL && l->n == l->room)
		l->room = room;
	if (more != NULL)
		l->line = more;
	if (more == NULL || copy == NULL) {
		free(copy);
		listing_print(action, bytes, path);
		return;
	}
	l->line[l->n++] = (struct listing_line){ action, bytes, copy };
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct listing_line *)a)->path, ((const struct listing_line *)b)->path);
}

static void listing_end(struct listing *l)
{
	size_t i;

	if (l->n > 0)
		sort_array(l->line, l->n, sizeof *l->line, by_path);
	for (i = 0; i < l->n; i++) {
		listing_print(l->line[i].action, l->line[i].bytes, l->line[i].path);
		free(l->line[i].path);
	}
	free(l->line);
	*l = (struct listing){ 0 };
}

/* ---- Text ---- */

/* Appends "  PART" if the line stays shorter than `width`: terminals differ in whether a character in the last
 * column starts a new line. Parts are ASCII. */
static bool add(char *buf, size_t cap, unsigned width, const char *part)
{
	size_t n = strlen(buf), gap = n > 0 ? 2 : 0, want = n + gap + strlen(part);

	if (want >= width || want >= cap)
		return false;
	memcpy(buf + n, "  ", gap);
	strcpy(buf + n + gap, part);
	return true;
}

static void files_text(char *out, size_t cap, const struct ptcp_progress *g)
{
	snprintf(out, cap, "%llu of %llu files", (unsigned long long)g->files, (unsigned long long)g->total_files);
}

const char *output_status_text(char *buf, size_t cap, unsigned width, const struct ptcp_event *ev)
{
	static const char *const activity[] = { [PTCP_TRANSFERRING] = "", [PTCP_VERIFYING] = "verifying existing data",
		[PTCP_SYNCING] = "syncing" };
	char a[UNITS_TEXT_BYTES], b[UNITS_TEXT_BYTES], part[9][80] = { "" };
	uint64_t total = ev->progress.total_bytes, files = ev->progress.total_files;
	const uint64_t small = 1000000; /* bytes of a file on average, below which the number tells more than the bytes */
	double files_per_s = story_files_per_s(&ev->progress, ev->rate_bps);
	size_t i;

	if (ev->progress.total_known && total > 0)
		snprintf(part[0], sizeof part[0], "%3u%%",
		    (unsigned)((double)(ev->progress.bytes < total ? ev->progress.bytes : total) / (double)total * 100));
	if (total == 0 && !ev->progress.total_known) /* standard input */
		snprintf(part[1], sizeof part[1], "%s", units_size_text(a, ev->progress.bytes));
	else
		snprintf(part[1], sizeof part[1], "%s of %s%s", units_size_text(a, ev->progress.bytes), units_size_text(b, total),
		    ev->progress.total_known ? "" : " so far");
	if (files > 1)
		files_text(part[total / files < small ? 2 : 5], sizeof part[2], &ev->progress);
	snprintf(part[files_per_s > 0 ? 5 : 3], sizeof part[3], "%s", units_rate_text(a, ev->rate_bps));
	if (files_per_s > 0)
		snprintf(part[3], sizeof part[3], "%.0f files/s", files_per_s);
	if (ev->eta_s >= 0 && ev->eta_s < 60)
		snprintf(part[4], sizeof part[4], "ETA %.0f s", ceil(ev->eta_s));
	else if (ev->eta_s >= 0)
		snprintf(part[4], sizeof part[4], "ETA %s", units_time_text(a, ev->eta_s));
	snprintf(part[6], sizeof part[6], "%u stream%s", ev->progress.streams, plural(ev->progress.streams));
	if (ev->n_movers > 0)
		snprintf(part[7], sizeof part[7], "%zu mover%s", ev->n_movers, plural(ev->n_movers));
	snprintf(part[8], sizeof part[8], "%s", activity[ev->progress.activity]);

	buf[0] = '\0';
	for (i = 0; i < sizeof part / sizeof *part; i++)
		if (part[i][0] != '\0' && !add(buf, cap, width, part[i]))
			break;
	return buf;
}

static const char *path_name(char out[TEXT_NAME_BYTES], const struct output *o, size_t i)
{
	return text_escape(out, TEXT_NAME_BYTES, route(o, i) != NULL ? route(o, i) : "direct");
}

/* Redraws the status line, with "A 94 Mbit/s  direct 47 Mbit/s" for as many of several paths as fit. */
static void text_progress(const struct output *o, const struct ptcp_event *ev)
{
	char part[TEXT_NAME_BYTES + UNITS_TEXT_BYTES], name[TEXT_NAME_BYTES], rate[UNITS_TEXT_BYTES], line[256];
	unsigned width = terminal_width();
	uint64_t left_ns;
	size_t i;

	if (!o->status)
		return;
	if (o->reconnect.attempt > 0) {
		left_ns = mono_diff_ns(o->reconnect.at, mono_now());
		snprintf(line, sizeof line, "reconnecting, attempt %u%s%s", o->reconnect.attempt, left_ns < NS_PER_S / 2 ? "" :
		    ", in ", left_ns < NS_PER_S / 2 ? "" : units_time_text(rate, (double)left_ns / 1e9));
		terminal_status(line);
		return;
	}
	output_status_text(line, sizeof line, width, ev);
	for (i = 0; o->n_paths > 1 && i < o->n_paths; i++) {
		snprintf(part, sizeof part, "%s %s", path_name(name, o, i), units_rate_text(rate, o->paths[i].rate_bps));
		if (!add(line, sizeof line, width, part))
			break;
	}
	terminal_status(line);
}

/* A file or link that is done or deleted, or in a dry run would be. */
static void text_file(struct output *o, const struct ptcp_event *ev)
{
	const char *action = ev->status == PTCP_FILE_DELETED ? "delete" : ev->is_link ? "link" : o->command;

	if (o->dry_run) {
		listing_add(&o->listing, action, ev->size_bytes, ev->path);
	} else if (o->list) {
		terminal_status("");
		listing_print(action, ev->size_bytes, ev->path);
		fflush(stdout); /* a pipe shows the file before the line that sums up */
	}
}

/* Changes of streams and paths are in the log, failed files in the lines on stderr. */
static void text_event(struct output *o, const struct ptcp_event *ev)
{
	char path[256];

	if (ev->type == PTCP_EVENT_START || ev->type == PTCP_EVENT_PROGRESS)
		text_progress(o, ev);
	else if (ev->type == PTCP_EVENT_WAITING && o->status)
		terminal_status(connect_waiting_text(path, sizeof path, ev));
	else if (ev->type == PTCP_EVENT_FILE && (ev->status == PTCP_FILE_DONE || ev->status == PTCP_FILE_DELETED))
		text_file(o, ev);
	else if (ev->type == PTCP_EVENT_DETACHED)
		puts(ev->text);
}

/* Prediction and result of --streams auto. */
static void text_advised(const struct ptcp_result *r)
{
	char predicted[UNITS_TEXT_BYTES], measured[UNITS_TEXT_BYTES];

	if (r->advised_streams > 0 && r->measured_bps > 0)
		terminal_line("predicted for %u stream%s%s: %s, slowing each competing flow by %.0f %%; measured: %s",
		    r->advised_streams, plural(r->advised_streams), r->from_history ? " from history" : "",
		    units_rate_text(predicted, r->predicted_bps), r->predicted_impact_percent,
		    units_rate_text(measured, r->measured_bps));
	if (r->fastest_streams > 0)
		terminal_line("limited to %u stream%s by --impact %.3g; %u streams would carry about %s and slow competing flows by %.0f %%",
		    r->advised_streams, plural(r->advised_streams), r->budget_percent, r->fastest_streams,
		    units_rate_text(predicted, r->fastest_bps), r->fastest_impact_percent);
}

static void text_deadline(const struct ptcp_result *r)
{
	char early[UNITS_TEXT_BYTES], rate[UNITS_TEXT_BYTES];
	const struct ptcp_deadline *d = &r->deadline;

	if (d->at_s == 0)
		return;
	units_time_text(early, fabs((double)d->at_s - d->end_s));
	if (!d->possible)
		terminal_line("missed the deadline by %s", early);
	else if (isnan(d->impact_percent))
		terminal_line("met the deadline, %s early; by how much competing flows were slowed is not known", early);
	else if (isinf(d->floor_bps) || d->impact_percent > 0)
		terminal_line("met the deadline, %s early, slowing each competing flow by %.0f %% at most", early,
		    d->impact_percent);
	else
		terminal_line("met the deadline, %s early, yielding to competing flows%s%s", early, d->floor_bps > 0 ?
		    " down to " : "", d->floor_bps > 0 ? units_rate_text(rate, d->floor_bps) : "");
}

/* File data, before compression. */
static uint64_t sent_bytes(const struct ptcp_result *r) { return r->progress.wire_bytes + r->progress.saved_bytes; }

/* Data that was sent in this run and is at the destination: neither blocks that were sent twice, nor holes. */
static uint64_t arrived_bytes(const struct ptcp_result *r)
{
	uint64_t sent = sent_bytes(r), arrived = r->progress.bytes - r->progress.resumed_bytes;

	return arrived < sent ? arrived : sent;
}

static void text_dry_end(const struct ptcp_result *r)
{
	char size[UNITS_TEXT_BYTES], resumed[UNITS_TEXT_BYTES], deleted[40] = "";

	if (r->deleted > 0)
		snprintf(deleted, sizeof deleted, ", would delete %llu", (unsigned long long)r->deleted);
	terminal_line("would complete %llu file%s, %s, %s of it already transferred%s",
	    (unsigned long long)r->progress.files, plural(r->progress.files),
	    units_size_text(size, r->progress.file_bytes), units_size_text(resumed, r->progress.resumed_bytes), deleted);
}

/* More than copies of late blocks at the end of a transfer usually are. */
static bool is_much(uint64_t copied_bytes, uint64_t of)
{
	return copied_bytes != UINT64_MAX && copied_bytes >= 1000000 && copied_bytes >= of / 20;
}

static void text_end(const struct output *o, const struct ptcp_result *r)
{
	const struct story s = { .command = o->command, .peer = o->peer, .keeps = o->keeps,
		.arrived_bytes = arrived_bytes(r) };
	char story[512], size[UNITS_TEXT_BYTES], name[TEXT_NAME_BYTES];
	size_t i;

	terminal_line("%s", story_files(story, sizeof story, &s, r));
	if (story_time(story, sizeof story, &s, r)[0] != '\0')
		terminal_line("%s", story);
	if (story_bytes(story, sizeof story, r)[0] != '\0')
		terminal_line("%s", story);
	if (is_much(r->copied_bytes, sent_bytes(r)))
		terminal_line("sent again: %s (%.0f %%), late blocks and those of lost streams",
		    units_size_text(size, r->copied_bytes), 100.0 * (double)r->copied_bytes / (double)sent_bytes(r));
	text_advised(r);
	text_deadline(r);
	if (o->congestion[0] != '\0' && (o->changed_congestion || r->advised_streams > 0))
		terminal_line("congestion control: %s (%s)", o->congestion, o->congestion_why);
	for (i = 0; o->n_paths > 1 && i < o->n_paths; i++)
		terminal_line("  %s%s: %s", route(o, i) != NULL ? "via " : "", path_name(name, o, i),
		    units_size_text(size, o->paths[i].bytes));
}

/* ---- JSON: fields and units are described in ptcp-json(7) ---- */

/* ["A", "B"] for "A,B". */
static json_t *relays(const char *route_text)
{
	json_t *list = json_array();
	size_t n;

	for (; route_text != NULL; route_text = route_text[n] == ',' ? route_text + n + 1 : NULL) {
		n = strcspn(route_text, ",");
		json_array_append_new(list, json_stringn(route_text, n));
	}
	return list;
}

/* Bytes of each path; while the transfer runs, also rates and streams. */
static json_t *paths(const struct output *o, bool running)
{
	json_t *list = json_array(), *path;
	size_t i;

	for (i = 0; i < o->n_paths; i++) {
		path = json_pack("{s:o, s:o}", "via", relays(route(o, i)), "bytes", json_count(o->paths[i].bytes));
		if (running && path != NULL) {
			json_object_set_new(path, "rate_bps", json_rate(o->paths[i].rate_bps));
			json_object_set_new(path, "streams", json_count(o->paths[i].streams));
		}
		json_array_append_new(list, path);
	}
	return list;
}

static json_t *json_progress(const struct output *o, const struct ptcp_event *ev)
{
	static const char *const activity[] = { [PTCP_TRANSFERRING] = "transferring",
		[PTCP_VERIFYING] = "verifying", [PTCP_SYNCING] = "syncing" };

	json_t *j = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o}", "event", "progress", "bytes",
	    json_count(ev->progress.bytes), "total_bytes", json_count(ev->progress.total_bytes), "wire_bytes",
	    json_count(ev->progress.wire_bytes), "saved_bytes", json_count(ev->progress.saved_bytes), "rate_bps", json_rate(ev->rate_bps),
	    "eta_s", json_seconds(ev->eta_s), "streams", json_count(ev->progress.streams), "resumed_bytes",
	    json_count(ev->progress.resumed_bytes), "activity", activity[ev->progress.activity], "paths", paths(o, true));

	if (ev->n_movers > 0)
		json_object_set_new(j, "movers", json_movers(ev->movers, ev->n_movers));
	return j;
}

static json_t *json_percent(double v) { return v >= 0 ? json_real(v) : json_null(); }

static json_t *json_deadline(const struct ptcp_deadline *d)
{
	return json_pack("{s:o, s:b, s:o, s:o, s:o, s:o}", "at", json_count((uint64_t)d->at_s), "possible", d->possible,
	    "streams", d->streams > 0 ? json_count(d->streams) : json_null(), "floor_bps",
	    isinf(d->floor_bps) ? json_null() : json_rate(d->floor_bps), "impact_percent",
	    json_percent(d->impact_percent), "end", isfinite(d->end_s) ? json_count((uint64_t)d->end_s) : json_null());
}

static json_t *json_deadline_event(const struct ptcp_event *ev)
{
	const struct ptcp_deadline *d = ev->deadline;
	json_t *j = json_deadline(d);

	json_object_set_new(j, "event", json_string("deadline"));
	json_object_set_new(j, "text", json_text(ev->text));
	json_object_set_new(j, "larger_impact_percent", json_percent(d->larger_impact_percent));
	json_object_set_new(j, "larger_end", isfinite(d->larger_end_s) ? json_count((uint64_t)d->larger_end_s) : json_null());
	return j;
}

static json_t *json_file(const struct output *o, const struct ptcp_event *ev)
{
	static const char *const status[] = { "done", "skipped", "failed", "deleted", "vanished" };
	json_t *j, *utf8 = json_string(ev->path);

	j = json_pack("{s:s, s:o, s:s, s:o, s:o, s:s, s:o}", "event", "file", "path", json_text(ev->path), "status",
	    status[ev->status], "error", ev->text == NULL ? json_null() : json_text(ev->text), "cause", json_cause(ev->sys), "type",
	    ev->is_link ? "link" : "file", "bytes", ev->size_bytes == UINT64_MAX ? json_null() : json_count(ev->size_bytes));
	if (utf8 == NULL && j != NULL)
		json_object_set_new(j, "path_raw", json_base64(ev->path, strlen(ev->path)));
	json_decref(utf8);
	if (ev->n_digests > 0)
		json_object_set_new(j, "digests", sum_object(ev->digest, ev->n_digests));
	if (o->dry_run)
		json_object_set_new(j, "dry_run", json_true());
	return j;
}

static void json_event(const struct output *o, const struct ptcp_event *ev)
{
	switch (ev->type) {
	case PTCP_EVENT_START:
		json_line(json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "event", "start", "command", o->command, "version",
		    ptcp_version(), "peer", json_text(ev->peer), "fingerprint", json_text(ev->peer_fingerprint), "cipher",
		    json_text(o->cipher), "streams", json_count(ev->progress.streams)));
		break;
	case PTCP_EVENT_PROGRESS:
		json_line(json_progress(o, ev));
		break;
	case PTCP_EVENT_STREAMS:
		json_line(json_pack("{s:s, s:o, s:o, s:o}", "event", "streams", "from", json_count(ev->from), "to",
		    json_count(ev->to), "reason", json_text(ev->text)));
		break;
	case PTCP_EVENT_MOVERS:
		json_line(json_pack("{s:s, s:o, s:o}", "event", "movers", "movers", json_count(ev->to), "text",
		    json_text(ev->text)));
		break;
	case PTCP_EVENT_PATHS:
		json_line(json_pack("{s:s, s:o, s:o}", "event", "paths", "reason", json_text(ev->text), "paths",
		    paths(o, true)));
		break;
	case PTCP_EVENT_RECONNECTING:
		json_line(json_pack("{s:s, s:o, s:o, s:o}", "event", "reconnecting", "attempt", json_count(ev->attempt), "in_s",
		    json_seconds(ev->in_s), "why", json_text(ev->text)));
		break;
	case PTCP_EVENT_FILE:
		json_line(json_file(o, ev));
		break;
	case PTCP_EVENT_DETACHED:
		json_line(json_pack("{s:s, s:o}", "event", "detached", "name", json_text(ev->text)));
		break;
	case PTCP_EVENT_WAITING:
		json_line(json_waiting(ev));
		break;
	case PTCP_EVENT_CONGESTION:
		json_line(json_pack("{s:s, s:o, s:o}", "event", "congestion", "name", json_text(ev->congestion), "reason",
		    json_text(ev->text)));
		break;
	case PTCP_EVENT_DEADLINE:
		json_line(json_deadline_event(ev));
		break;
	case PTCP_EVENT_WARNING:
		json_line(json_pack("{s:s, s:o}", "event", "warning", "text", json_text(ev->text)));
		break;
	case PTCP_EVENT_STATUS: /* only for status queries */
	case PTCP_EVENT_ADVICE: /* only of advice */
		break;
	}
}

static json_t *output_json_end(const struct output *o, const struct ptcp_result *r, int code, const struct ptcp_err *e)
{
	bool advised = r->advised_streams > 0, measured = advised && r->measured_bps > 0;
	json_t *end = json_end(code, e, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "bytes",
	    json_count(r->progress.file_bytes), "wire_bytes", json_count(r->progress.wire_bytes), "files", json_count(r->progress.files), "failed",
	    json_count(r->progress.failed), "resumed_bytes",
	    json_count(r->progress.resumed_bytes), "seconds", json_seconds(r->seconds), "throughput_bps",
	    json_rate(connect_throughput_bps(arrived_bytes(r), r->seconds)), "streams",
	    json_count(r->progress.max_streams), "paths", paths(o, false)));

	json_object_set_new(end, "saved_bytes", json_count(r->progress.saved_bytes));
	json_object_set_new(end, "copied_bytes",
	    r->copied_bytes != UINT64_MAX ? json_count(r->copied_bytes) : json_null());
	json_object_set_new(end, "probed_s", json_seconds(r->probed_s));
	json_object_set_new(end, "compared_bytes",
	    r->compared_bytes != UINT64_MAX ? json_count(r->compared_bytes) : json_null());
	json_object_set_new(end, "compress_level",
	    r->compress_level >= 0 ? json_count((uint64_t)r->compress_level) : json_null());
	json_object_set_new(end, "up_to_date", r->same_files != UINT64_MAX ? json_count(r->same_files) : json_null());
	json_object_set_new(end, "up_to_date_bytes",
	    r->same_bytes != UINT64_MAX ? json_count(r->same_bytes) : json_null());
	json_object_set_new(end, "time_s", story_time_json(r));
	json_object_set_new(end, "deleted", json_count(r->deleted));
	json_object_set_new(end, "vanished", json_count(r->vanished));
	/* prediction and result of --streams auto */
	json_object_set_new(end, "advised_streams", advised ? json_count(r->advised_streams) : json_null());
	json_object_set_new(end, "predicted_bps", advised ? json_rate(r->predicted_bps) : json_null());
	json_object_set_new(end, "predicted_impact_percent",
	    advised ? json_real(r->predicted_impact_percent) : json_null());
	json_object_set_new(end, "measured_bps", measured ? json_rate(r->measured_bps) : json_null());
	json_object_set_new(end, "from_history", json_boolean(r->from_history));
	json_object_set_new(end, "fastest_streams", r->fastest_streams > 0 ? json_count(r->fastest_streams) : json_null());
	json_object_set_new(end, "fastest_bps", r->fastest_streams > 0 ? json_rate(r->fastest_bps) : json_null());
	json_object_set_new(end, "fastest_impact_percent",
	    r->fastest_streams > 0 ? json_real(r->fastest_impact_percent) : json_null());
	json_object_set_new(end, "deadline", r->deadline.at_s != 0 ? json_deadline(&r->deadline) : json_null());
	json_object_set_new(end, "congestion", o->congestion[0] != '\0' ? json_text(o->congestion) : json_null());
	if (o->dry_run)
		json_object_set_new(end, "dry_run", json_true());
	return end;
}

/* ---- Both ---- */

static void copy_paths(struct output *o, const struct ptcp_event *ev)
{
	o->n_paths = ev->n_paths < PTCP_PATHS_MAX ? ev->n_paths : PTCP_PATHS_MAX;
	if (o->n_paths > 0)
		memcpy(o->paths, ev->paths, o->n_paths * sizeof *o->paths);
}

/* One line for an outage that lasts longer than the first attempt. */
static void note_reconnecting(struct output *o, const struct ptcp_event *ev)
{
	o->reconnect.attempt = ev->attempt;
	o->reconnect.at = mono_add_ns(mono_now(), (uint64_t)(ev->in_s * 1e9));
	if (ev->attempt == 2 && !o->quiet)
		terminal_line("ptcp: the connection is lost, trying again: %s", ev->text);
}

/* The host without the port. */
static void note_peer(struct output *o, const char *peer)
{
	const char *colon = strrchr(peer, ':');

	snprintf(o->peer, sizeof o->peer, "%.*s", (int)(colon != NULL ? (size_t)(colon - peer) : strlen(peer)), peer);
}

static void note_congestion(struct output *o, const struct ptcp_event *ev)
{
	o->changed_congestion |= o->congestion[0] != '\0';
	snprintf(o->congestion, sizeof o->congestion, "%s", ev->congestion);
	snprintf(o->congestion_why, sizeof o->congestion_why, "%s", ev->text);
}

/* A transfer whose only failure this is ends with the same sentence, which is not to be printed twice in a row. */
static void show_failed(struct output *o, const char *path, const char *why)
{
	char shown[TEXT_NAME_BYTES];

	terminal_failed(NULL, path, why);
	snprintf(o->failed, sizeof o->failed, "%s: %s", text_escape(shown, sizeof shown, path), why);
}

void output_event(void *arg, const struct ptcp_event *ev)
{
	struct output *o = arg;
	bool progress = ev->type == PTCP_EVENT_START || ev->type == PTCP_EVENT_PROGRESS;
	char line[256];

	if (progress || ev->type == PTCP_EVENT_PATHS)
		copy_paths(o, ev);
	if (ev->type == PTCP_EVENT_START && ev->peer != NULL)
		note_peer(o, ev->peer);
	if (ev->type == PTCP_EVENT_RECONNECTING)
		note_reconnecting(o, ev);
	else if (progress && ev->progress.bytes != o->reconnect.bytes)
		o->reconnect = (struct output_reconnect){ .bytes = ev->progress.bytes };
	if (progress && process_state_requested())
		terminal_line("ptcp: state: %s", output_status_text(line, sizeof line, sizeof line, ev));
	if (ev->type == PTCP_EVENT_WARNING) {
		terminal_line("ptcp: warning: %s", ev->text != NULL ? ev->text : "");
		o->failed[0] = '\0';
	}
	if (ev->type == PTCP_EVENT_FILE && ev->status == PTCP_FILE_VANISHED)
		terminal_failed("warning", ev->path, ev->text != NULL ? ev->text : ptcp_err_text(ev->code));
	o->below += ev->type == PTCP_EVENT_FILE && ev->code == PTCP_EPARENT;
	if (ev->type == PTCP_EVENT_FILE && ev->status == PTCP_FILE_FAILED && ev->code != PTCP_EPARENT)
		show_failed(o, ev->path, ev->text != NULL ? ev->text : ptcp_err_text(ev->code));
	if (ev->type == PTCP_EVENT_DEADLINE && (!o->quiet || !ev->deadline->possible))
		terminal_line("ptcp: %s%s", ev->deadline->possible ? "" : "warning: ", ev->text);
	if (ev->type == PTCP_EVENT_CONGESTION)
		note_congestion(o, ev);
	if (ev->type == PTCP_EVENT_MOVERS && !o->quiet)
		terminal_line("ptcp: %s", ev->text);
	o->detached |= ev->type == PTCP_EVENT_DETACHED;
	if (o->json)
		json_event(o, ev);
	else
		text_event(o, ev);
}

int output_end(struct output *o, int code, const struct ptcp_result *r, const struct ptcp_err *e)
{
	int status = exit_status(code);
	const char *failure = code != 0 ? exit_sentence(e) : NULL;

	terminal_status("");
	listing_end(&o->listing);
	if (o->json)
		json_line(output_json_end(o, r, code, e));
	else if (status == 0 && o->dry_run && !o->quiet)
		text_dry_end(r);
	else if (status == 0 && !o->quiet && !o->detached)
		text_end(o, r);
	terminal_failed_below(o->below);
	if (failure != NULL && strcmp(failure, o->failed) != 0)
		terminal_line("ptcp: %s", failure);
	if (o->on_end != NULL)
		hook_end(o->on_end, output_json_end(o, r, code, e), o->command, o->sources, o->n_sources, o->dest);
	return status;
}
