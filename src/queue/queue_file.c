#include "queue/queue_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/yaml.h"
#include "conf/yaml_fields.h"
#include "core/err.h"
#include "core/sorted.h"
#include "core/units.h"

enum { JOBS_MAX = 100000, TEXTS_MAX = 10000, PRIORITY_MAX = 1000, RETRIES_MAX = 1000 };

/* A job before the conversion of values. */
struct raw {
	char *name, *destination, *pairs, *start, *deadline, *on_success, *on_failure, *on_overdue;
	int blackout, source, sources, options, after, priority, retries; /* nodes; -1: not given */
};

#define AT(member) offsetof(struct raw, member)
static const struct conf_field fields[] = {
	{ "name", CONF_TEXT, AT(name), 1 },
	{ "source", CONF_NODE, AT(source), 0 },
	{ "sources", CONF_NODE, AT(sources), 0 },
	{ "destination", CONF_TEXT, AT(destination), 0 },
	{ "pairs", CONF_TEXT, AT(pairs), 0 },
	{ "options", CONF_NODE, AT(options), 0 },
	{ "priority", CONF_NODE, AT(priority), 0 },
	{ "after", CONF_NODE, AT(after), 0 },
	{ "start", CONF_TEXT, AT(start), 0 },
	{ "deadline", CONF_TEXT, AT(deadline), 0 },
	{ "on_success", CONF_TEXT, AT(on_success), 0 },
	{ "on_failure", CONF_TEXT, AT(on_failure), 0 },
	{ "on_overdue", CONF_TEXT, AT(on_overdue), 0 },
	{ "retries", CONF_NODE, AT(retries), 0 },
	{ "blackout", CONF_NODE, AT(blackout), 0 },
	{ .key = NULL },
};
struct raw_queue {
	int jobs, blackout;
};
static const struct conf_field top[] = {
	{ "jobs", CONF_NODE, offsetof(struct raw_queue, jobs), 1 },
	{ "blackout", CONF_NODE, offsetof(struct raw_queue, blackout), 0 },
	{ .key = NULL },
};

static void raw_fini(struct raw *w)
{
	free(w->name);
	free(w->destination);
	free(w->pairs);
	free(w->start);
	free(w->deadline);
	free(w->on_success);
	free(w->on_failure);
	free(w->on_overdue);
}

/* A text, or a list of texts. */
static int read_texts(struct queue_texts *t, const struct conf_doc *d, int node, const char *what, struct ptcp_err *e)
{
	const char *text;
	size_t i, n;
	int r;

	if (node < 0)
		return 0;
	if (conf_want_list(d, node, what, TEXTS_MAX, &n, e) < 0)
		return (r = conf_want_text(d, node, what, &text, e)) < 0 ? r : queue_texts_add(t, text, e);
	for (i = 0, r = 0; i < n && r == 0; i++)
		if ((r = conf_want_text(d, conf_item(d, node, i), what, &text, e)) == 0)
			r = queue_texts_add(t, text, e);
	return r;
}

/* Windows: a text, or a list of texts; joined by commas. "none" stands for no window. */
static int read_windows(char **out, const struct conf_doc *d, int node, struct ptcp_err *e)
{
	struct queue_texts t = { .n = 0 };
	struct blackout b;
	struct ptcp_err why;
	size_t n, i;
	FILE *f;
	int r = read_texts(&t, d, node, "blackout", e);

	if (r == 0 && t.n > 0) {
		if ((f = open_memstream(out, &n)) == NULL)
			r = err_nomem(e);
		for (i = 0; i < t.n && r == 0; i++)
			fprintf(f, "%s%s", i > 0 ? "," : "", t.of[i]);
		if (f != NULL && fclose(f) != 0)
			r = err_nomem(e);
		if (r == 0 && strcmp(*out, "none") != 0 && blackout_parse(&b, *out, &why) < 0)
			r = conf_fail(d, node, e, "%s: %s", "blackout", why.msg);
	}
	queue_texts_fini(&t);
	return r;
}

/* "NAME" for true, nothing for false, "NAME=VALUE" otherwise. */
static int add_option(struct queue_texts *t, const char *name, const char *value, struct ptcp_err *e)
{
	char *text;
	int r;

	if (strcmp(value, "false") == 0)
		return 0;
	if (strcmp(value, "true") == 0)
		return queue_texts_add(t, name, e);
	if (asprintf(&text, "%s=%s", name, value) < 0)
		return err_nomem(e);
	r = queue_texts_add(t, text, e);
	free(text);
	return r;
}

static int read_options(struct queue_texts *t, const struct conf_doc *d, int node, struct ptcp_err *e)
{
	struct queue_texts values = { .n = 0 };
	const char *name;
	size_t i, k, n;
	int r;

	if (node < 0)
		return 0;
	if ((r = conf_want_map(d, node, "options", TEXTS_MAX, &n, e)) < 0)
		return r;
	for (i = 0; i < n && r == 0; i++) {
		if ((r = conf_want_text(d, conf_key(d, node, i), "options", &name, e)) == 0)
			r = read_texts(&values, d, conf_value(d, node, i), name, e);
		for (k = 0; k < values.n && r == 0; k++)
			r = add_option(t, name, values.of[k], e);
		queue_texts_fini(&values);
	}
	return r;
}

static int read_number(int *out, const struct conf_doc *d, int node, const char *what, int min, int max,
    struct ptcp_err *e)
{
	const char *text;
	char *end;
	long v;
	int r;

	if (node < 0)
		return 0;
	if ((r = conf_want_text(d, node, what, &text, e)) < 0)
		return r;
	v = strtol(text, &end, 10);
	if (end == text || *end != '\0' || v < min || v > max)
		return conf_fail(d, node, e, "%s: not a whole number (%d to %d)", what, min, max);
	*out = (int)v;
	return 0;
}

static char *take(char **text)
{
	char *t = *text;

	*text = NULL;
	return t;
}

static int check_operands(const struct queue_task *t, const struct conf_doc *d, int node, const char *name,
    struct ptcp_err *e)
{
	if (!queue_name_ok(name))
		return conf_fail(d, node, e, "name: not a name (up to %d letters, digits, '.', '_' and '-')",
		    QUEUE_NAME_MAX);
	if (t->pairs != NULL && (t->sources.n > 0 || t->destination != NULL))
		return conf_fail(d, node, e, "%s: pairs and a source or destination (leave one out)", name);
	if (t->pairs == NULL && (t->sources.n == 0 || t->destination == NULL))
		return conf_fail(d, node, e, "%s: nothing to transfer (add a source and a destination, or pairs)",
		    name);
	return 0;
}

static int convert(struct queue_file_job *j, struct raw *w, const struct conf_doc *d, int node, int64_t now_s,
    struct ptcp_err *e)
{
	struct queue_task *t = &j->task;
	int retries = QUEUE_RETRIES, r;

	j->name = take(&w->name);
	t->destination = take(&w->destination);
	t->pairs = take(&w->pairs);
	t->on_success = take(&w->on_success);
	t->on_failure = take(&w->on_failure);
	t->on_overdue = take(&w->on_overdue);
	if ((r = read_texts(&t->sources, d, w->source, "source", e)) < 0 ||
	    (r = read_texts(&t->sources, d, w->sources, "sources", e)) < 0 ||
	    (r = read_texts(&t->after, d, w->after, "after", e)) < 0 ||
	    (r = read_windows(&t->blackout, d, w->blackout, e)) < 0 ||
	    (r = read_options(&t->options, d, w->options, e)) < 0 ||
	    (r = read_number(&t->priority, d, w->priority, "priority", -PRIORITY_MAX, PRIORITY_MAX, e)) < 0 ||
	    (r = read_number(&retries, d, w->retries, "retries", 0, RETRIES_MAX, e)) < 0)
		return r;
	t->retries = (unsigned)retries;
	if (w->start != NULL && units_parse_next(w->start, now_s, &t->start_s) < 0)
		return conf_fail(d, conf_lookup(d, node, "start"), e, "start: not a time to come (such as 22:00 or "
		    "2027-01-31T22:00)");
	if (w->deadline != NULL && units_parse_deadline(w->deadline, t->start_s > 0 ? t->start_s : now_s,
	    &t->deadline_s) < 0)
		return conf_fail(d, conf_lookup(d, node, "deadline"), e, "deadline: not a time after the start (such "
		    "as 08:00, 2027-01-31T08:00 or 2h)");
	return check_operands(t, d, node, j->name, e);
}

static int read_job(struct queue_file_job *j, const struct conf_doc *d, int node, int64_t now_s, queue_check_fn *check,
    void *arg, struct ptcp_err *e)
{
	struct raw w = { .blackout = -1, .source = -1, .sources = -1, .options = -1, .after = -1, .priority = -1,
		.retries = -1 };
	struct ptcp_err why;
	int r = conf_read_map(d, node, "job", fields, &w, e);

	if (r == 0 && (r = convert(j, &w, d, node, now_s, e)) == 0 && check(arg, j->name, &j->task, &why) < 0)
		r = conf_fail(d, node, e, "%s: %s", j->name, why.msg);
	raw_fini(&w);
	return r;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp((*(const struct queue_file_job *const *)a)->name,
	    (*(const struct queue_file_job *const *)b)->name);
}

static int check_names(const struct queue_file *f, const char *path, struct ptcp_err *e)
{
	const struct queue_file_job **sorted = calloc(f->n + 1, sizeof *sorted);
	size_t i;
	int r = 0;

	if (sorted == NULL)
		return err_nomem(e);
	for (i = 0; i < f->n; i++)
		sorted[i] = &f->job[i];
	sort_array(sorted, f->n, sizeof *sorted, compare_names);
	for (i = 1; i < f->n && r == 0; i++)
		if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
			r = err_set(e, PTCP_ECONFIG, "%s: two jobs are named %s (a name stands for one job)", path,
			    sorted[i]->name);
	free(sorted);
	return r;
}

int queue_file_read(struct queue_file *f, const char *path, int64_t now_s, queue_check_fn *check, void *arg,
    struct ptcp_err *e)
{
	struct conf_doc *d = NULL;
	const char *fault;
	struct raw_queue w = { .jobs = -1, .blackout = -1 };
	size_t i, n = 0;
	int r;

	*f = (struct queue_file){ .n = 0 };
	if ((r = conf_doc_load(&d, path, &fault, e)) == 0 && fault != NULL)
		r = err_set(e, PTCP_ECONFIG, "%s: %s", path, fault);
	if (r == 0 && (r = conf_read_map(d, conf_doc_root(d), "jobs", top, &w, e)) == 0 &&
	    (r = read_windows(&f->blackout, d, w.blackout, e)) == 0 &&
	    (r = conf_want_list(d, w.jobs, "jobs", JOBS_MAX, &n, e)) == 0 && (f->job = calloc(n + 1,
	    sizeof *f->job)) == NULL)
		r = err_nomem(e);
	for (i = 0; i < n && r == 0; i++) {
		f->n = i + 1;
		r = read_job(&f->job[i], d, conf_item(d, w.jobs, i), now_s, check, arg, e);
	}
	conf_doc_free(d);
	if (r == 0)
		r = check_names(f, path, e);
	if (r < 0)
		queue_file_fini(f);
	return r;
}

void queue_file_fini(struct queue_file *f)
{
	size_t i;

	for (i = 0; i < f->n; i++) {
		free(f->job[i].name);
		queue_task_fini(&f->job[i].task);
	}
	free(f->job);
	free(f->blackout);
	*f = (struct queue_file){ .n = 0 };
}
