#include "cli/show/json.h"

#include <errno.h>
#include <math.h>
#include <ptcp/ptcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "core/err.h"
#include "core/text.h"

json_t *json_waiting(const struct ptcp_event *ev)
{
	return json_pack("{s:s, s:o, s:o*}", "event", "waiting",
	    "ahead", ev->ahead == PTCP_AHEAD_UNKNOWN ? json_null() : json_count(ev->ahead),
	    "reason", ev->text != NULL ? json_text(ev->text) : NULL);
}

int json_line(json_t *object)
{
	int r = -1;

	if (object != NULL &&
	    json_dumpf(object, stdout, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15)) == 0) {
		putchar('\n');
		r = 0;
	}
	json_decref(object);
	return fflush(stdout) == 0 ? r : -1;
}

int json_result(json_t *object, struct ptcp_err *e)
{
	if (object == NULL)
		return err_nomem(e);
	json_line(object);
	return 0;
}

json_t *json_count(uint64_t v)
{
	return json_integer(v < INT64_MAX ? (json_int_t)v : INT64_MAX);
}

json_t *json_whole(json_t *list, size_t members)
{
	if (json_array_size(list) == members)
		return list;
	json_decref(list);
	return NULL;
}

json_t *json_rate(double bps)
{
	return json_integer(isfinite(bps) && bps > 0 && bps < 9e18 ? llround(bps) : 0);
}

json_t *json_seconds(double s)
{
	return isfinite(s) && s >= 0 && s < 1e12 ? json_real(round(s * 1e6) / 1e6) : json_null();
}

json_t *json_text(const char *s)
{
	json_t *j;
	size_t cap;
	char *shown;

	if (s == NULL)
		return json_null();
	if ((j = json_string(s)) != NULL)
		return j;
	cap = strlen(s) * 4 + 8;
	if ((shown = malloc(cap)) == NULL)
		return NULL;
	j = json_string(text_escape(shown, cap, s));
	free(shown);
	return j;
}

json_t *json_cause(int sys) { return json_text(ptcp_cause_name(sys)); }

json_t *json_end(int code, const struct ptcp_err *e, json_t *more)
{
	json_t *end = json_pack("{s:s, s:b, s:i, s:o, s:o}", "event", "end", "ok", code == 0, "exit",
	    (int)exit_status(code), "error", json_text(code != 0 ? exit_sentence(e) : NULL), "cause",
	    json_cause(code == PTCP_EBUSY ? EBUSY : code != 0 ? e->sys : 0));

	if (end != NULL && (more == NULL || json_object_update(end, more) != 0)) {
		json_decref(end);
		end = NULL;
	}
	json_decref(more);
	return end;
}

json_t *json_base64(const void *data, size_t n)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *p = data;
	size_t i;
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

json_t *json_mover(const struct ptcp_mover_stats *m)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "host", json_text(m->host), "bytes", json_count(m->bytes), "rate_bps",
	    json_rate(m->rate_bps), "streams", json_count(m->streams));
}

json_t *json_movers(const struct ptcp_mover_stats *movers, size_t n)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < n; i++)
		json_array_append_new(list, json_mover(&movers[i]));
	return list;
}
