/* Limits by size, time and depth: what they leave out is not offered. */
#include <time.h>

#include "client/task_impl.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

/* Ages count back from now, which is the same for all sessions of the transfer. */
static int take_time(int64_t *out, const char *option, const char *text, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];

	return text == NULL || units_parse_when(text, time(NULL), out) == 0 ? 0 :
	    err_set(e, PTCP_EUSAGE, "--%s '%s': no time (write an age such as 7d, a date such as 2026-11-30 or "
	    "2026-11-30T18:00, or seconds since 1970 such as @1700000000)", option,
	    text_escape(shown, sizeof shown, text));
}

int limits_take(struct ptcp_task *t, struct ptcp_err *e)
{
	int r;

	if ((r = take_time(&t->files.newer_s, "newer-than", t->o.limits.newer_than, e)) < 0 ||
	    (r = take_time(&t->files.older_s, "older-than", t->o.limits.older_than, e)) < 0)
		return r;
	if (t->o.limits.max_size > 0 && t->o.limits.max_size < t->o.limits.min_size)
		return err_set(e, PTCP_EUSAGE, "--max-size: less than --min-size, so that no file is left (raise it)");
	if (t->o.limits.newer_than != NULL && t->o.limits.older_than != NULL && t->files.older_s <= t->files.newer_s)
		return err_set(e, PTCP_EUSAGE, "--older-than: not later than --newer-than, so that no file is left "
		    "(name a later time)");
	return 0;
}

void limits_put(const struct ptcp_task *t, struct wire_open *open)
{
	open->min_bytes = t->o.limits.min_size;
	open->max_bytes = t->o.limits.max_size;
	open->max_depth = t->o.limits.max_depth;
	open->newer_s = t->files.newer_s;
	open->older_s = t->files.older_s;
}

const char *limits_first(const struct ptcp_task *t)
{
	const struct ptcp_limits *o = &t->o.limits;

	return o->min_size > 0 ? "--min-size" : o->max_size > 0 ? "--max-size" :
	    o->newer_than != NULL ? "--newer-than" : o->older_than != NULL ? "--older-than" :
	    o->max_depth > 0 ? "--max-depth" : o->stop_after_s > 0 ? "--stop-after" :
	    o->stop_at != NULL ? "--stop-at" : o->deadline != NULL ? "--deadline" : NULL;
}
