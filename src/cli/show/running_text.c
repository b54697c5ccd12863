/* The texts between running commands and who asks them; pure functions. */
#include "cli/running.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/show/output.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

/* ---- Requests ---- */

enum running_request running_request_parse(const char *text, const char **rate)
{
	if (strncmp(text, "rate ", 5) == 0) {
		*rate = text + 5;
		return RUNNING_RATE;
	}
	return strcmp(text, "cancel") == 0 ? RUNNING_CANCEL : strcmp(text, "status") == 0 ? RUNNING_STATUS :
	    RUNNING_UNKNOWN;
}

/* ---- Answers ---- */

int running_answer_parse(json_t **out, const char *name, const char *text, struct ptcp_err *e)
{
	json_t *j = json_loads(text, 0, NULL);
	const char *why = json_string_value(json_object_get(j, "error"));
	char shown[sizeof e->msg];
	json_int_t code;
	int r;

	if (!json_is_object(j) || (why != NULL && why[0] == '\0')) {
		json_decref(j);
		return err_set(e, PTCP_EPEER, "%s: no answer from the running ptcp: nothing was changed (if the "
		    "transfer is suspended, continue it and try again)", name);
	}
	if (why == NULL) {
		*out = j;
		return 0;
	}
	code = json_integer_value(json_object_get(j, "code"));
	r = err_set(e, code < 0 && code >= INT16_MIN ? (int)code : PTCP_EPEER, "%s",
	    text_escape(shown, sizeof shown, why));
	json_decref(j);
	return r;
}

/* ---- One line of ptcp status ---- */

static const char *text_of(const json_t *status, const char *key)
{
	const char *text = json_string_value(json_object_get(status, key));

	return text != NULL ? text : "";
}

static uint64_t count_of(const json_t *status, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(status, key));

	return n > 0 ? (uint64_t)n : 0;
}

static void write_text(FILE *f, const char *before, const json_t *status, const char *key)
{
	char shown[4 * 4096 + 1];

	fprintf(f, "%s%s", before, text_escape(shown, sizeof shown, text_of(status, key)));
}

static void write_server(FILE *f, const json_t *j)
{
	char in[UNITS_TEXT_BYTES], out[UNITS_TEXT_BYTES];
	uint64_t sessions = count_of(j, "sessions"), streams = count_of(j, "streams"),
	    movers = json_array_size(json_object_get(j, "movers"));

	fprintf(f, "  %llu session%s, %llu stream%s", (unsigned long long)sessions, plural(sessions),
	    (unsigned long long)streams, plural(streams));
	if (movers > 0)
		fprintf(f, ", %llu mover%s", (unsigned long long)movers, plural(movers));
	fprintf(f, "  received %s, sent %s", units_rate_text(in, (double)count_of(j, "received_bps")),
	    units_rate_text(out, (double)count_of(j, "sent_bps")));
	fprintf(f, ", memory %s", units_size_text(in, count_of(j, "memory_bytes")));
	write_text(f, "  ", j, "address");
}

/* A transfer: progress as on the status line, and the limit. */
static void write_transfer(FILE *f, const json_t *j)
{
	struct ptcp_event ev = { .rate_bps = (double)count_of(j, "rate_bps"), .eta_s = -1 };
	const json_t *eta = json_object_get(j, "eta_s");
	uint64_t sources = count_of(j, "sources");
	char line[256];

	ev.progress.bytes = count_of(j, "bytes");
	ev.progress.total_known = json_is_integer(json_object_get(j, "total_bytes"));
	ev.progress.total_bytes = ev.progress.total_known ? count_of(j, "total_bytes") : ev.progress.bytes;
	ev.progress.streams = (uint16_t)count_of(j, "streams");
	ev.n_movers = json_array_size(json_object_get(j, "movers"));
	if (json_is_number(eta))
		ev.eta_s = json_number_value(eta);
	if (ev.progress.bytes > 0 || strcmp(text_of(j, "state"), "running") == 0)
		fprintf(f, "  %s", output_status_text(line, sizeof line, sizeof line, &ev));
	if (text_of(j, "limit")[0] != '\0')
		write_text(f, "  limit ", j, "limit");
	write_text(f, "  ", j, "source");
	if (sources > 1)
		fprintf(f, " and %llu more", (unsigned long long)sources - 1);
	write_text(f, " to ", j, "destination");
}

void running_write(FILE *f, const json_t *status)
{
	write_text(f, "", status, "name");
	write_text(f, "  ", status, "state");
	if (strcmp(text_of(status, "state"), RUNNING_SILENT) == 0)
		fprintf(f, "  (does not answer; it may be suspended)");
	else if (strcmp(text_of(status, "command"), "serve") == 0)
		write_server(f, status);
	else
		write_transfer(f, status);
	fprintf(f, "\n");
}
