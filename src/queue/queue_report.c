#include "queue/queue_report.h"

#include <string.h>
#include <time.h>

#include "core/text.h"
#include "core/units.h"

enum { ROWS_MAX = 100, CELL_BYTES = 512 }; /* rows of a section */

struct page {
	FILE *f;
	const struct job_queue *q;
	const char *dir;
	int64_t now_s;
};

/* ---- Jobs as text ---- */

const char *queue_moment(char out[32], int64_t at_s)
{
	const time_t t = (time_t)at_s;
	struct tm tm;

	if (localtime_r(&t, &tm) == NULL || strftime(out, 32, "%Y-%m-%d %H:%M:%S", &tm) == 0)
		snprintf(out, 32, "@%lld", (long long)at_s);
	return out;
}

void queue_state_text(FILE *f, const struct job_queue *q, const struct queue_job *j, int64_t now_s)
{
	const char *held = j->state == QUEUE_WAITING ? queue_held_by(q, j, now_s) : NULL;
	char at[32];
	size_t i;

	fputs(queue_state_name(j->state), f);
	if (held != NULL && strcmp(held, "after") == 0)
		for (i = 0; i < j->task.after.n; i++)
			fprintf(f, "%s%s", i == 0 ? " after " : ", ", j->task.after.of[i]);
	else if (held != NULL && strcmp(held, "pause") == 0)
		fputs(", paused", f);
	else if (held != NULL && strcmp(held, "blackout") == 0)
		fprintf(f, ", blackout until %s", queue_moment(at, queue_blackout(q, j, now_s).until_s));
	else if (held != NULL)
		fprintf(f, ", %s at %s", held, queue_moment(at, held[0] == 's' ? j->task.start_s : j->again_s));
	if (queue_is_overdue(j, now_s))
		fprintf(f, ", overdue since %s", queue_moment(at, j->task.deadline_s));
}

/* ---- Sections: problems first ---- */

enum { SECTION_FAILED, SECTION_OPEN, SECTION_DONE, SECTION_CANCELLED, N_SECTIONS };
static const char *const titles[N_SECTIONS] = { "Failed", "Open", "Done", "Cancelled" };

/* N_SECTIONS: ended before the time of the report. */
static unsigned section_of(const struct job_queue *q, const struct queue_job *j)
{
	bool old = j->ended_s < q->since_s;

	switch (j->state) {
	case QUEUE_FAILED:
		return SECTION_FAILED;
	case QUEUE_DONE:
		return old ? N_SECTIONS : SECTION_DONE;
	case QUEUE_CANCELLED:
		return old ? N_SECTIONS : SECTION_CANCELLED;
	case QUEUE_WAITING:
	case QUEUE_RUNNING:
		break;
	}
	return SECTION_OPEN;
}

bool queue_is_reported(const struct job_queue *q, const struct queue_job *j) { return section_of(q, j) < N_SECTIONS; }

void queue_add_up(struct queue_totals *t, const struct job_queue *q, int64_t now_s)
{
	size_t i;

	*t = (struct queue_totals){ .overdue = 0 };
	for (i = 0; i < q->n; i++) {
		const struct queue_job *j = q->job[i];

		if (queue_is_reported(q, j)) {
			t->state[j->state]++;
			t->overdue += queue_is_overdue(j, now_s);
		}
		queue_counts_add(&t->recent, j->recent);
	}
}

/* ---- Cells ---- */

/* The value of an option of a job, "" without a value; NULL: the job has no such option. */
static const char *option_of(const struct queue_job *j, const char *name)
{
	const char *value = NULL, *option;
	size_t n = strlen(name), i;

	for (i = 0; i < j->task.options.n; i++) { /* the last one counts */
		option = j->task.options.of[i];
		if (strncmp(option, name, n) == 0 && (option[n] == '=' || option[n] == '\0'))
			value = option + n + (option[n] == '=');
	}
	return value;
}

const char *queue_digests(const struct queue_job *j)
{
	const char *digest = option_of(j, "digest");

	return digest == NULL && option_of(j, "manifest") != NULL ? "sha256" : digest;
}

static void print_problem(FILE *f, const struct page *p, const struct queue_job *j)
{
	char at[32];

	if (j->state == QUEUE_DONE || j->state == QUEUE_FAILED || j->state == QUEUE_CANCELLED)
		fprintf(f, "%s at %s", queue_state_name(j->state), queue_moment(at, j->ended_s));
	else
		queue_state_text(f, p->q, j, p->now_s);
	if (j->state == QUEUE_DONE && queue_is_overdue(j, p->now_s))
		fprintf(f, ", after the deadline %s", queue_moment(at, j->task.deadline_s));
	if (j->recent.failures > 0)
		fprintf(f, ", %llu failed attempt%s", (unsigned long long)j->recent.failures,
		    plural(j->recent.failures));
	if (j->recent.failed_files > 0)
		fprintf(f, ", %llu file%s failed", (unsigned long long)j->recent.failed_files,
		    plural(j->recent.failed_files));
	if (j->error != NULL)
		fprintf(f, ": %s", j->error);
}

static void print_arrived(FILE *f, const struct queue_counts *c)
{
	char size[UNITS_TEXT_BYTES];
	uint64_t files = c->files - c->same_files;

	if (c->seconds <= 0)
		return;
	fprintf(f, "%llu file%s, %s", (unsigned long long)files, plural(files),
	    units_size_text(size, c->bytes - c->same_bytes));
	if (c->same_files > 0)
		fprintf(f, " (%llu there before)", (unsigned long long)c->same_files);
}

static void print_took(FILE *f, const struct queue_counts *c)
{
	char took[UNITS_TEXT_BYTES], rate[UNITS_TEXT_BYTES];

	if (c->seconds <= 0)
		return;
	fputs(units_time_text(took, c->seconds), f);
	if (c->bytes > c->same_bytes)
		fprintf(f, ", %s", units_rate_text(rate, (double)(c->bytes - c->same_bytes) * 8 / c->seconds));
}

static void print_verified(FILE *f, const struct queue_job *j)
{
	const char *digests = queue_digests(j), *manifest = option_of(j, "manifest");
	bool arrived = j->recent.files > j->recent.same_files;

	if (arrived)
		fputs(option_of(j, "no-verify") == NULL ? "blocks by xxh3" : "blocks not", f);
	if (digests != NULL && arrived)
		fprintf(f, ", files by %s%s%s", digests, manifest != NULL ? " in " : "",
		    manifest != NULL ? manifest : "");
	if (j->recent.same_files > 0)
		fprintf(f, "%sthose there before by %s", arrived ? "; " : "",
		    option_of(j, "ignore-existing") != NULL ? "name" : option_of(j, "size-only") != NULL ? "size" :
		    option_of(j, "checksum") != NULL ? "content" : "size and time");
}

static void print_impact(FILE *f, const struct queue_counts *c)
{
	if (c->seconds <= 0)
		return;
	if (!c->has_impact)
		fputs("unknown", f);
	else if (c->impact_percent > 0)
		fprintf(f, "at most %.2g %%", c->impact_percent);
	else
		fputs("no more than one stream", f);
}

enum { CELL_NAME, CELL_PROBLEM, CELL_ARRIVED, CELL_TOOK, CELL_VERIFIED, CELL_IMPACT, N_CELLS };
static const char *const columns[N_CELLS] = { "Job", "State", "Arrived", "Time", "Verified", "Impact" };

/* Writes a cell, escaped for terminals. */
static void print_cell(char shown[CELL_BYTES], const struct page *p, const struct queue_job *j, unsigned cell)
{
	char text[CELL_BYTES] = "";
	FILE *f = fmemopen(text, sizeof text, "w");

	if (f == NULL)
		return;
	switch (cell) {
	case CELL_NAME:
		fprintf(f, "%s %s %s", j->name, j->task.pairs != NULL ? "by" : "to",
		    j->task.pairs != NULL ? j->task.pairs : j->task.destination);
		break;
	case CELL_PROBLEM:
		print_problem(f, p, j);
		break;
	case CELL_ARRIVED:
		print_arrived(f, &j->recent);
		break;
	case CELL_TOOK:
		print_took(f, &j->recent);
		break;
	case CELL_VERIFIED:
		print_verified(f, j);
		break;
	default:
		print_impact(f, &j->recent);
	}
	fclose(f);
	text[sizeof text - 1] = '\0';
	text_escape(shown, CELL_BYTES, text);
}

/* ---- Layouts ---- */

struct layout {
	void (*begin)(FILE *f, const char *title);
	void (*row)(FILE *f, char cell[N_CELLS][CELL_BYTES]);
	void (*end)(FILE *f, size_t left_out);
};

static void text_begin(FILE *f, const char *title) { fprintf(f, "\n%s\n", title); }

static void text_row(FILE *f, char cell[N_CELLS][CELL_BYTES])
{
	static const char *const before[N_CELLS] = { "  ", ": ", "\n      ", " in ", "\n      verified: ",
		"\n      impact: " };
	size_t i;

	for (i = 0; i < N_CELLS; i++)
		if (cell[i][0] != '\0')
			fprintf(f, "%s%s", before[i], cell[i]);
	putc('\n', f);
}

static void text_end(FILE *f, size_t left_out)
{
	if (left_out > 0)
		fprintf(f, "  %zu more (ptcp jobs status lists all)\n", left_out);
}

static void html_put(FILE *f, const char *text)
{
	for (; *text != '\0'; text++)
		switch (*text) {
		case '&':
			fputs("&amp;", f);
			break;
		case '<':
			fputs("&lt;", f);
			break;
		case '>':
			fputs("&gt;", f);
			break;
		default:
			putc(*text, f);
		}
}

static void html_begin(FILE *f, const char *title)
{
	size_t i;

	fprintf(f, "<h2>%s</h2>\n<table>\n<tr>", title);
	for (i = 0; i < N_CELLS; i++)
		fprintf(f, "<th>%s</th>", columns[i]);
	fprintf(f, "</tr>\n");
}

static void html_row(FILE *f, char cell[N_CELLS][CELL_BYTES])
{
	size_t i;

	fprintf(f, "<tr>");
	for (i = 0; i < N_CELLS; i++) {
		fprintf(f, "<td>");
		html_put(f, cell[i]);
		fprintf(f, "</td>");
	}
	fprintf(f, "</tr>\n");
}

static void html_end(FILE *f, size_t left_out)
{
	fprintf(f, "</table>\n");
	if (left_out > 0)
		fprintf(f, "<p>%zu more (ptcp jobs status lists all)</p>\n", left_out);
}

static void print_sections(const struct page *p, const struct layout *l)
{
	char cell[N_CELLS][CELL_BYTES];
	unsigned section, k;
	size_t i, n;

	for (section = 0; section < N_SECTIONS; section++) {
		for (i = n = 0; i < p->q->n; i++) {
			if (section_of(p->q, p->q->job[i]) != section)
				continue;
			if (n == 0)
				l->begin(p->f, titles[section]);
			if (n++ >= ROWS_MAX)
				continue;
			for (k = 0; k < N_CELLS; k++)
				print_cell(cell[k], p, p->q->job[i], k);
			l->row(p->f, cell);
		}
		if (n > 0)
			l->end(p->f, n > ROWS_MAX ? n - ROWS_MAX : 0);
	}
}

/* "from .. to ..: 3 done, 1 failed, ..", "5 files, 1.50 GB arrived, ..". */
static void print_summary(const struct page *p, const struct queue_totals *t, const char *line_end)
{
	char from[32], to[32];
	unsigned i;

	fprintf(p->f, "From %s to %s:", queue_moment(from, p->q->since_s), queue_moment(to, p->now_s));
	for (i = 0; i <= QUEUE_CANCELLED; i++)
		fprintf(p->f, " %zu %s%s", t->state[i], queue_state_name((enum queue_state)i),
		    i < QUEUE_CANCELLED ? "," : "");
	fprintf(p->f, "; %zu overdue%s\n", t->overdue, line_end);
	if (t->recent.seconds > 0) {
		print_arrived(p->f, &t->recent);
		fputs(" arrived; the transfers took ", p->f);
		print_took(p->f, &t->recent);
		fputs("; impact: ", p->f);
		print_impact(p->f, &t->recent);
	} else {
		fputs("nothing was transferred", p->f);
	}
	putc('\n', p->f);
}

static void report_text(const struct page *p, const struct queue_totals *t)
{
	static const struct layout layout = { text_begin, text_row, text_end };
	char shown[TEXT_NAME_BYTES];

	fprintf(p->f, "Jobs of %s\n", text_escape(shown, sizeof shown, p->dir));
	print_summary(p, t, "");
	print_sections(p, &layout);
}

static void report_html(const struct page *p, const struct queue_totals *t)
{
	static const struct layout layout = { html_begin, html_row, html_end };
	char shown[TEXT_NAME_BYTES];

	fprintf(p->f, "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>ptcp jobs</title>\n"
	    "<style>\n"
	    "body { font-family: sans-serif; margin: 2em; }\ntable { border-collapse: collapse; width: 100%%; }\n"
	    "th, td { border: 1px solid #bbb; padding: .3em .6em; text-align: left; vertical-align: top; }\n"
	    "</style></head>\n<body>\n<h1>Jobs of ");
	html_put(p->f, text_escape(shown, sizeof shown, p->dir));
	fprintf(p->f, "</h1>\n<p>");
	print_summary(p, t, "<br>");
	fprintf(p->f, "</p>\n");
	print_sections(p, &layout);
	fprintf(p->f, "<p>Impact: the largest predicted slowdown of a competing flow, compared with a "
	    "transfer of one stream.</p>\n</body>\n</html>\n");
}

void queue_report(FILE *f, const struct job_queue *q, const char *dir, bool html, int64_t now_s)
{
	const struct page p = { f, q, dir, now_s };
	struct queue_totals t;

	queue_add_up(&t, q, now_s);
	if (html)
		report_html(&p, &t);
	else
		report_text(&p, &t);
}
