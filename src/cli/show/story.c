#include "cli/show/story.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/client_opts.h"
#include "cli/show/json.h"
#include "core/text.h"
#include "core/units.h"

static void append(char *out, size_t cap, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void append(char *out, size_t cap, const char *fmt, ...)
{
	size_t n = strlen(out);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out + n, cap - n, fmt, ap);
	va_end(ap);
}

/* ---- Files ---- */

/* Holes and copies are no throughput; neither are bytes within a second. */
static bool has_rate(const struct story *s, const struct ptcp_result *r, uint64_t sent_bytes)
{
	return r->seconds >= 1 && s->arrived_bytes > 0 && s->arrived_bytes >= sent_bytes / 2;
}

enum { SMALL_BYTES = 100000 }; /* average length of a file; the cost of a shorter file is not its bytes */

double story_files_per_s(const struct ptcp_progress *g, double rate_bps)
{
	if (g->files < 2 || g->bytes == 0 || g->bytes / g->files >= SMALL_BYTES)
		return 0;
	return rate_bps / 8 / ((double)g->bytes / (double)g->files);
}

const char *story_files(char *out, size_t cap, const struct story *s, const struct ptcp_result *r)
{
	const struct ptcp_progress *g = &r->progress;
	bool known = r->same_files != UINT64_MAX && r->same_files <= g->files && r->same_bytes <= g->file_bytes;
	uint64_t same = known ? r->same_files : 0, same_bytes = known ? r->same_bytes : 0, n = g->files - same;
	uint64_t bytes = g->file_bytes - same_bytes;
	uint64_t resumed = g->resumed_bytes > same_bytes ? g->resumed_bytes - same_bytes : 0;
	uint64_t sent = bytes > resumed ? bytes - resumed : 0;
	char a[UNITS_TEXT_BYTES];

	snprintf(out, cap, "%s %llu", strcmp(s->command, "send") == 0 ? "sent" : "received",
	    (unsigned long long)n);
	if (same > 0)
		append(out, cap, " of %llu", (unsigned long long)g->files);
	append(out, cap, " file%s", plural(same > 0 ? g->files : n));
	if (n > 0 || same == 0)
		append(out, cap, ", %s", units_size_text(a, bytes));
	append(out, cap, " in %s", units_time_text(a, r->seconds));
	if (r->seconds >= 1 && n >= 2 && bytes / n < SMALL_BYTES)
		append(out, cap, ", %.0f files/s", (double)n / r->seconds);
	if (has_rate(s, r, sent))
		append(out, cap, ", %s", units_rate_text(a, connect_throughput_bps(s->arrived_bytes, r->seconds)));
	if (same > 0)
		append(out, cap, ", %llu %s (%s)", (unsigned long long)same, s->keeps ? "skipped" : "up to date",
		    units_size_text(a, same_bytes));
	if (n > 0 || same == 0)
		append(out, cap, ", %u stream%s", g->max_streams, plural(g->max_streams));
	if (r->deleted > 0)
		append(out, cap, ", %llu deleted", (unsigned long long)r->deleted);
	return out;
}

/* ---- Bytes ---- */

/* Files that were up to date are no data of this run. */
const char *story_bytes(char *out, size_t cap, const struct ptcp_result *r)
{
	const struct ptcp_progress *g = &r->progress;
	uint64_t same = r->same_bytes <= g->file_bytes && r->same_bytes <= g->resumed_bytes ? r->same_bytes : 0;
	uint64_t equal = g->resumed_bytes - same;
	char a[UNITS_TEXT_BYTES];

	out[0] = '\0';
	if (equal == 0 && g->saved_bytes == 0)
		return out;
	append(out, cap, "bytes: %s delivered", units_size_text(a, g->file_bytes - same));
	append(out, cap, ", %s sent on the wire", units_size_text(a, g->wire_bytes));
	if (g->saved_bytes > 0)
		append(out, cap, ", compressed from %s", units_size_text(a, g->wire_bytes + g->saved_bytes));
	if (equal > 0)
		append(out, cap, ", %s equal already", units_size_text(a, equal));
	if (equal > 0 && r->compared_bytes > 0 && r->compared_bytes != UINT64_MAX)
		append(out, cap, " (of %s compared)", units_size_text(a, r->compared_bytes));
	return out;
}

/* ---- Time: parts of less than a twentieth are left out ---- */

/* Keys of JSON, and words; %s: the other host. */
static const struct {
	const char *key, *text;
} causes[PTCP_SPENT_CAUSES] = {
	[PTCP_SPENT_OUR_DISK] = { "disk", "this host's disk" },
	[PTCP_SPENT_PEER_DISK] = { "peer_disk", "%s's disk" },
	[PTCP_SPENT_OUR_PROCESSOR] = { "processor", "this host's processor" },
	[PTCP_SPENT_PEER_PROCESSOR] = { "peer_processor", "%s's processor" },
	[PTCP_SPENT_VERIFYING] = { "verifying", "verification of existing data" },
	[PTCP_SPENT_PATH] = { "path", "path" },
	[PTCP_SPENT_WINDOW] = { "window", "path (limited by the receiver's window)" },
	[PTCP_SPENT_BUFFER] = { "buffer", "path (limited by the sender's buffer)" },
	[PTCP_SPENT_IMPACT] = { "impact", "impact budget" },
	[PTCP_SPENT_LIMIT] = { "limit", "rate limit" },
	[PTCP_SPENT_IDLE] = { "idle", "round trips" },
};

static double total_s(const struct ptcp_result *r)
{
	double s = 0;
	size_t i;

	for (i = 0; i < PTCP_SPENT_CAUSES; i++)
		s += r->spent_s[i];
	return s;
}

/* The largest part below the previous one, in order of the causes if equal; PTCP_SPENT_CAUSES: none. */
static size_t next_cause(const struct ptcp_result *r, size_t previous)
{
	size_t i, best = PTCP_SPENT_CAUSES;
	double of = previous < PTCP_SPENT_CAUSES ? r->spent_s[previous] : INFINITY;

	for (i = 0; i < PTCP_SPENT_CAUSES; i++)
		if ((r->spent_s[i] < of || (r->spent_s[i] <= of && i > previous)) &&
		    (best == PTCP_SPENT_CAUSES || r->spent_s[i] > r->spent_s[best]))
			best = i;
	return best;
}

const char *story_time(char *out, size_t cap, const struct story *s, const struct ptcp_result *r)
{
	const char *peer = s->peer != NULL && s->peer[0] != '\0' ? s->peer : "the other host", *word;
	char shown[TEXT_NAME_BYTES];
	double all = total_s(r);
	size_t i;

	out[0] = '\0';
	if (!(all > 0))
		return out;
	text_escape(shown, sizeof shown, peer);
	for (i = next_cause(r, PTCP_SPENT_CAUSES); i < PTCP_SPENT_CAUSES && r->spent_s[i] >= all / 20;
	    i = next_cause(r, i)) {
		append(out, cap, "%s%.0f %% ", out[0] != '\0' ? ", " : "time: ", 100 * r->spent_s[i] / all);
		if (strncmp(word = causes[i].text, "%s", 2) == 0)
			append(out, cap, "%s%s", shown, word + 2);
		else
			append(out, cap, "%s", word);
	}
	return out;
}

json_t *story_time_json(const struct ptcp_result *r)
{
	json_t *j = total_s(r) > 0 ? json_object() : json_null();
	size_t i;

	for (i = 0; json_is_object(j) && i < PTCP_SPENT_CAUSES; i++)
		json_object_set_new(j, causes[i].key, json_seconds(r->spent_s[i]));
	return j;
}
