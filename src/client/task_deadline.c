/* --deadline: asks the model once a second, and carries its choice out. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/task_impl.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

#define REPORT_NS (5 * NS_PER_S) /* shortest time between two reports */
#define LATEST_S (366 * 86400)   /* seconds since 1970, without an @, are no duration */

int deadline_take(struct ptcp_task *t, struct ptcp_err *e)
{
	const char *text = t->o.limits.deadline, *other;
	const int64_t now_s = time(NULL);
	char shown[TEXT_NAME_BYTES];

	if (text == NULL)
		return 0;
	other = t->o.detach ? "--detach" : t->o.mover.command != NULL ? "--movers" : t->o.congestion != NULL &&
	    strcmp(t->o.congestion, "auto") != 0 ? "--congestion" : NULL;
	if (other != NULL)
		return err_set(e, PTCP_EUSAGE, "--deadline: not with %s, as this host adapts the streams "
		    "(leave one out)", other);
	if (units_parse_deadline(text, now_s, &t->deadline.at_s) < 0 || t->deadline.at_s > now_s + LATEST_S)
		return err_set(e, PTCP_EUSAGE, "--deadline '%s': no time to come (write a time of the day such as "
		    "08:00, a date such as 2026-11-30T08:00, or a duration such as 2h)",
		    text_escape(shown, sizeof shown, text));
	return 0;
}

static double clock_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- A step ---- */

/* `most` stays as it was at the time when the budget was in use. */
static struct deadline_step view(struct ptcp_task *t, double now_s)
{
	const struct stream_control *m = t->history.adaptive ? session_stream_control(t->session) : NULL;
	struct task_deadline *d = &t->deadline;
	const struct ptcp_progress *g = &t->report.last;
	struct deadline_step s = { .left_s = (double)d->at_s - now_s, .yields_only = task_yields(t),
		.left_bits = g->total_bytes > g->bytes ? 8 * (double)(g->total_bytes - g->bytes) : 0,
		.streams = g->streams };

	if (m == NULL || !m->advised)
		return s;
	if ((d->most == 0 || d->model.mode == DEADLINE_COMPETES) && m->phase == STREAM_CONTROL_HOLDING)
		d->most = m->answer;
	s.most = d->most > 0 ? d->most : 1;
	s.advice = &m->advice;
	s.probes = m->phase == STREAM_CONTROL_PROBING || m->streams != m->target;
	return s;
}

static void carry_out(struct ptcp_task *t)
{
	const struct deadline *m = &t->deadline.model;

	session_set_most_streams(t->session, m->streams > 0 ? m->streams : t->o.max_streams);
	session_set_floor(t->session, m->floor_bps);
}

void deadline_start(struct ptcp_task *t)
{
	struct task_deadline *d = &t->deadline;
	struct deadline_step s;

	if (!task_has_deadline(t))
		return;
	s = view(t, clock_s());
	if (!d->begun) {
		deadline_init(&d->model, s.left_s);
		deadline_begin(&d->model, &s);
	}
	d->begun = true;
	d->stepped = mono_now();
	d->bytes = t->report.last.bytes - t->report.last.resumed_bytes;
	carry_out(t);
}

/* ---- Reports ---- */

/* The time of the day, with the date unless today. */
static const char *clock_text(char out[UNITS_TEXT_BYTES], double at_s)
{
	time_t at = (time_t)ceil(at_s), now = time(NULL);
	struct tm then = { 0 }, today;
	bool same;

	same = localtime_r(&at, &then) != NULL && localtime_r(&now, &today) != NULL && then.tm_yday == today.tm_yday &&
	    then.tm_year == today.tm_year;
	if (strftime(out, UNITS_TEXT_BYTES, same ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &then) == 0)
		snprintf(out, UNITS_TEXT_BYTES, "@%.0f", at_s);
	return out;
}

static void say_impossible(char *out, size_t cap, const struct ptcp_task *t, const struct ptcp_deadline *d)
{
	char at[UNITS_TEXT_BYTES], end[UNITS_TEXT_BYTES], larger[UNITS_TEXT_BYTES];
	int n;

	if (!t->history.adaptive)
		n = snprintf(out, cap, "the deadline %s cannot be met: with %u stream%s done at %s",
		    clock_text(at, (double)d->at_s), t->report.last.streams, plural(t->report.last.streams),
		    clock_text(end, d->end_s));
	else
		n = snprintf(out, cap, "the deadline %s cannot be met: at an impact of %.3g %% done at %s",
		    clock_text(at, (double)d->at_s), task_impact(t), clock_text(end, d->end_s));
	if (!isnan(d->larger_impact_percent) && n > 0 && (size_t)n < cap)
		snprintf(out + n, cap - (size_t)n, "; at %.0f %% at %s (--impact %.0f)", d->larger_impact_percent,
		    clock_text(larger, d->larger_end_s), d->larger_impact_percent);
}

static void say_possible(char *out, size_t cap, const struct ptcp_deadline *d)
{
	char at[UNITS_TEXT_BYTES], end[UNITS_TEXT_BYTES], rate[UNITS_TEXT_BYTES], streams[40];

	if (d->streams > 0)
		snprintf(streams, sizeof streams, "%u stream%s", d->streams, plural(d->streams));
	else
		snprintf(streams, sizeof streams, "the streams");
	clock_text(at, (double)d->at_s);
	if (isinf(d->floor_bps))
		snprintf(out, cap, "deadline %s: the streams use the budget, done at %s", at,
		    clock_text(end, d->end_s));
	else if (d->floor_bps > 0)
		snprintf(out, cap, "deadline %s: %s yield%s to competing flows, down to %s", at, streams,
		    d->streams == 1 ? "s" : "", units_rate_text(rate, d->floor_bps));
	else
		snprintf(out, cap, "deadline %s: %s yield%s to competing flows", at, streams,
		    d->streams == 1 ? "s" : "");
}

static bool differs(const struct task_deadline *d, const struct ptcp_deadline *next)
{
	return next->possible != d->now.possible || next->streams != d->now.streams ||
	    isinf(next->floor_bps) != isinf(d->now.floor_bps) || (!isinf(next->floor_bps) &&
	    fabs(next->floor_bps - d->now.floor_bps) > DEADLINE_REPORT_RATIO * d->now.floor_bps);
}

/* True: another report is due, d->now. */
static bool is_news(struct ptcp_task *t, const struct deadline_step *s, double now_s)
{
	struct task_deadline *d = &t->deadline;
	struct ptcp_deadline next = { .at_s = d->at_s, .streams = d->model.streams, .floor_bps = d->model.floor_bps,
		.impact_percent = 100 * d->model.impact_ratio, .end_s = NAN };
	struct deadline_outlook at;
	struct mono now = mono_now();

	deadline_outlook(&at, &d->model, s, ADVICE_CURVE_MAX);
	if (!at.known || !t->report.last.total_known)
		return false;
	next.possible = at.possible;
	next.end_s = now_s + at.left_s;
	next.larger_impact_percent = 100 * at.larger_ratio;
	next.larger_end_s = now_s + at.larger_left_s;
	if (d->reported.ns != 0 && (!differs(d, &next) || mono_diff_ns(now, d->reported) < REPORT_NS))
		return false;
	d->reported = now;
	d->now = next;
	return true;
}

bool deadline_pump(struct ptcp_task *t)
{
	struct task_deadline *d = &t->deadline;
	uint64_t bytes = t->report.last.bytes - t->report.last.resumed_bytes;
	struct mono now = mono_now();
	struct deadline_step s;
	double now_s;

	if (!task_has_deadline(t) || t->session == NULL || !d->begun || mono_diff_ns(now, d->stepped) < NS_PER_S)
		return false;
	now_s = clock_s();
	s = view(t, now_s);
	s.interval_s = (double)mono_diff_ns(now, d->stepped) / 1e9;
	s.delivered_bps = bytes > d->bytes ? 8 * (double)(bytes - d->bytes) / s.interval_s : 0;
	d->stepped = now;
	d->bytes = bytes;
	deadline_step(&d->model, &s);
	carry_out(t);
	if (isnan(d->model.impact_ratio) || 100 * d->model.impact_ratio > d->largest_percent)
		d->largest_percent = 100 * d->model.impact_ratio; /* once unknown, it stays unknown */
	return is_news(t, &s, now_s);
}

const char *deadline_text(const struct ptcp_task *t, char *out, size_t cap)
{
	const struct ptcp_deadline *d = &t->deadline.now;

	if (d->possible)
		say_possible(out, cap, d);
	else
		say_impossible(out, cap, t, d);
	return out;
}

void deadline_result(const struct ptcp_task *t, struct ptcp_deadline *out)
{
	const struct task_deadline *d = &t->deadline;
	double end_s = clock_s();

	*out = (struct ptcp_deadline){ .at_s = d->at_s, .floor_bps = d->begun ? d->model.floor_bps : 0,
		.streams = d->begun ? d->model.streams : 0, .impact_percent = d->largest_percent, .end_s = NAN,
		.larger_impact_percent = NAN, .larger_end_s = NAN };
	if (d->at_s == 0)
		return;
	out->end_s = end_s;
	out->possible = t->over && t->result == 0 && end_s <= (double)d->at_s;
}
