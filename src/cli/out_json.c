/* One object a line. The manual pages ptcp-send.1 and ptcp-serve.1 describe each field with
 * its unit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"
#include "cli/output.h"
#include "core/text.h"

static json_t *base64(const char *s)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *p = (const unsigned char *)s;
	size_t n = strlen(s), i;
	char *out = malloc((n + 2) / 3 * 4 + 1), *q = out;
	json_t *j;

	if (out == NULL)
		return NULL;
	for (i = 0; i < n; i += 3) {
		unsigned v = (unsigned)p[i] << 16 | (unsigned)(i + 1 < n ? p[i + 1] : 0) << 8 |
		    (unsigned)(i + 2 < n ? p[i + 2] : 0);

		*q++ = digits[v >> 18];
		*q++ = digits[v >> 12 & 63];
		*q++ = i + 1 < n ? digits[v >> 6 & 63] : '=';
		*q++ = i + 2 < n ? digits[v & 63] : '=';
	}
	*q = '\0';
	j = json_string(out);
	free(out);
	return j;
}

static void json_start(struct output *o, const struct ptcp_event *ev)
{
	json_line(json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "event", "start", "command", o->command,
	    "version", ptcp_version(), "peer", json_text(ev->peer), "fingerprint",
	    json_text(ev->peer_fingerprint), "cipher", json_text(o->cipher), "streams", json_count(ev->progress.streams)));
}

/* ["A", "B"] of "A,B". */
static json_t *relays(const char *candidate)
{
	json_t *list = json_array();
	const char *end;

	while (candidate != NULL) {
		end = strchr(candidate, ',');
		json_array_append_new(list, json_stringn(candidate, end != NULL ? (size_t)(end - candidate) : strlen(candidate)));
		candidate = end != NULL ? end + 1 : NULL;
	}
	return list;
}

/* What each path has carried; with rates and streams while it runs. */
static json_t *paths(const struct output *o, bool running)
{
	json_t *list = json_array(), *one;
	size_t i;

	for (i = 0; i < o->n_paths; i++) {
		one = json_pack("{s:o, s:o}", "via", relays(output_via(o, i)), "bytes",
		    json_count(o->paths[i].bytes));
		if (running && one != NULL) {
			json_object_set_new(one, "rate_bps", json_rate(o->paths[i].rate_bps));
			json_object_set_new(one, "streams", json_count(o->paths[i].streams));
		}
		json_array_append_new(list, one);
	}
	return list;
}

static void json_progress(struct output *o, const struct ptcp_event *ev)
{
	static const char *const activity[] = { [PTCP_TRANSFERRING] = "transferring",
		[PTCP_VERIFYING] = "verifying", [PTCP_SYNCING] = "syncing" };

	json_line(json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o}", "event", "progress", "bytes",
	    json_count(ev->progress.bytes), "total_bytes", json_count(ev->progress.total_bytes), "rate_bps",
	    json_rate(ev->rate_bps), "eta_s", json_seconds(ev->eta_s), "streams", json_count(ev->progress.streams),
	    "resumed_bytes", json_count(ev->progress.resumed_bytes), "activity", activity[ev->progress.activity],
	    "paths", paths(o, true)));
}

static void json_streams(struct output *o, const struct ptcp_event *ev)
{
	(void)o;
	json_line(json_pack("{s:s, s:o, s:o, s:o}", "event", "streams", "from", json_count(ev->from), "to",
	    json_count(ev->to), "reason", json_text(ev->text)));
}

static void json_paths(struct output *o, const struct ptcp_event *ev)
{
	json_line(json_pack("{s:s, s:o, s:o}", "event", "paths", "reason", json_text(ev->text), "paths", paths(o, true)));
}

/* What is told of then is what would be. */
static void add_dry_run(json_t *j, const struct output *o)
{
	if (o->dry_run)
		json_object_set_new(j, "dry_run", json_true());
}

static void json_file(struct output *o, const struct ptcp_event *ev)
{
	static const char *const status[] = { "done", "skipped", "failed" };
	json_t *j, *probe;

	j = json_pack("{s:s, s:o, s:s, s:o}", "event", "file", "path", json_text(ev->path), "status",
	    status[ev->status], "error", ev->status == PTCP_FILE_DONE ? json_null() : json_text(ev->text));
	if ((probe = json_string(ev->path)) == NULL && j != NULL)
		json_object_set_new(j, "path_raw", base64(ev->path));
	json_decref(probe);
	add_dry_run(j, o);
	json_line(j);
}

static void json_detached(struct output *o, const struct ptcp_event *ev)
{
	(void)o;
	json_line(json_pack("{s:s, s:o}", "event", "detached", "name", json_text(ev->text)));
}

/* What --streams auto had come to; null where it had not. */
static void add_advised(json_t *end, const struct ptcp_result *r)
{
	bool any = r->advised_streams > 0, seen = any && r->measured_bps > 0;

	json_object_set_new(end, "advised_streams", any ? json_count(r->advised_streams) : json_null());
	json_object_set_new(end, "predicted_bps", any ? json_rate(r->predicted_bps) : json_null());
	json_object_set_new(end, "predicted_impact_percent",
	    any ? json_real(r->predicted_impact_percent) : json_null());
	json_object_set_new(end, "measured_bps", seen ? json_rate(r->measured_bps) : json_null());
	json_object_set_new(end, "from_history", json_boolean(r->from_history));
}

static void json_end(struct output *o, const struct ptcp_result *r, int status,
    const char *failure)
{
	json_t *end;

	end = json_pack("{s:s, s:b, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "event",
	    "end", "ok", status == 0, "exit", status, "error", json_text(failure), "bytes",
	    json_count(r->progress.file_bytes), "wire_bytes", json_count(r->progress.wire_bytes), "files", json_count(r->progress.files),
	    "failed", json_count(r->progress.failed), "resumed_bytes", json_count(r->progress.resumed_bytes), "seconds",
	    json_seconds(r->seconds), "throughput_bps", json_rate(output_throughput_bps(r)), "streams",
	    json_count(r->progress.max_streams), "paths", paths(o, false));
	add_advised(end, r);
	add_dry_run(end, o);
	json_line(end);
}

const struct output_ops output_json = {
	.start = json_start,
	.progress = json_progress,
	.streams = json_streams,
	.paths = json_paths,
	.file = json_file,
	.detached = json_detached,
	.end = json_end,
};

void output_listening(bool json, const char *address, unsigned port, const char *fingerprint)
{
	bool bracket = strchr(address, ':') != NULL;

	if (json) {
		json_line(json_pack("{s:s, s:s, s:i, s:s}", "event", "listening", "address", address,
		    "port", (int)port, "fingerprint", fingerprint));
		return;
	}
	printf("listening %s%s%s:%u %s\n", bracket ? "[" : "", address, bracket ? "]" : "", port,
	    fingerprint);
	fflush(stdout);
}
