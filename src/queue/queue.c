#include "queue/queue.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"

static const char *const end_words[] = {
#define END_WORD(NAME, word) word,
	QUEUE_ENDS(END_WORD)
#undef END_WORD
};

const char *queue_state_name(enum queue_state s)
{
	static const char *const names[] = { "waiting", "running", "done", "failed", "cancelled" };

	return names[s];
}

bool queue_name_ok(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t n = strlen(name);

	return n > 0 && n <= QUEUE_NAME_MAX && strspn(name, letters) == n && strchr("._-", name[0]) == NULL;
}

/* ---- Tasks ---- */

int queue_texts_add(struct queue_texts *t, const char *text, struct ptcp_err *e)
{
	char **more = realloc(t->of, (t->n + 2) * sizeof *more);

	if (more == NULL)
		return err_nomem(e);
	t->of = more;
	if ((t->of[t->n] = strdup(text)) == NULL)
		return err_nomem(e);
	t->of[++t->n] = NULL;
	return 0;
}

void queue_texts_fini(struct queue_texts *t)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		free(t->of[i]);
	free(t->of);
	*t = (struct queue_texts){ .n = 0 };
}

void queue_task_fini(struct queue_task *t)
{
	queue_texts_fini(&t->sources);
	queue_texts_fini(&t->options);
	queue_texts_fini(&t->after);
	free(t->destination);
	free(t->pairs);
	free(t->directory);
	free(t->blackout);
	free(t->on_success);
	free(t->on_failure);
	free(t->on_overdue);
	*t = (struct queue_task){ .priority = 0 };
}

/* The fields of a task, for writing, reading and comparing. */
enum task_kind { TASK_TEXTS, TASK_TEXT, TASK_INT, TASK_TIME };
static const struct task_field {
	const char *key;
	enum task_kind kind;
	size_t at;
} task_fields[] = {
#define FIELD(key, kind, member) { key, kind, offsetof(struct queue_task, member) }
	FIELD("source", TASK_TEXTS, sources), FIELD("option", TASK_TEXTS, options), FIELD("after", TASK_TEXTS, after),
	FIELD("destination", TASK_TEXT, destination), FIELD("pairs", TASK_TEXT, pairs),
	FIELD("on-success", TASK_TEXT, on_success), FIELD("on-failure", TASK_TEXT, on_failure),
	FIELD("on-overdue", TASK_TEXT, on_overdue), FIELD("blackout", TASK_TEXT, blackout),
	FIELD("directory", TASK_TEXT, directory), FIELD("priority", TASK_INT, priority),
	FIELD("start", TASK_TIME, start_s), FIELD("deadline", TASK_TIME, deadline_s),
	FIELD("retries", TASK_INT, retries),
#undef FIELD
};
#define N_TASK_FIELDS (sizeof task_fields / sizeof *task_fields)

static const void *member(const struct queue_task *t, const struct task_field *f) { return (const char *)t + f->at; }
static void *writable(struct queue_task *t, const struct task_field *f) { return (char *)t + f->at; }

static bool texts_equal(const struct queue_texts *a, const struct queue_texts *b)
{
	size_t i;

	for (i = 0; i < a->n && i < b->n && strcmp(a->of[i], b->of[i]) == 0; i++)
		;
	return i == a->n && i == b->n;
}

static bool field_equal(const struct task_field *f, const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	if (f->kind == TASK_TEXTS)
		return texts_equal(a, b);
	if (f->kind == TASK_TEXT)
		return *x == NULL || *y == NULL ? *x == *y : strcmp(*x, *y) == 0;
	return f->kind == TASK_INT ? *(const int *)a == *(const int *)b : *(const int64_t *)a == *(const int64_t *)b;
}

bool queue_task_equal(const struct queue_task *a, const struct queue_task *b)
{
	size_t i;

	for (i = 0; i < N_TASK_FIELDS; i++)
		if (!field_equal(&task_fields[i], member(a, &task_fields[i]), member(b, &task_fields[i])))
			return false;
	return true;
}

static void write_field(struct queue_record *r, const struct task_field *f, const void *at)
{
	const struct queue_texts *t = at;
	size_t i;

	if (f->kind == TASK_TEXTS)
		for (i = 0; i < t->n; i++)
			queue_record_add(r, f->key, t->of[i]);
	else if (f->kind == TASK_TEXT)
		queue_record_add(r, f->key, *(char *const *)at);
	else
		queue_record_number(r, f->key, f->kind == TASK_INT ? *(const int *)at : *(const int64_t *)at);
}

static int read_field(const struct task_field *f, void *at, const char *value, struct ptcp_err *e)
{
	if (f->kind == TASK_TEXTS)
		return queue_texts_add(at, value, e);
	if (f->kind == TASK_INT)
		*(int *)at = atoi(value);
	else if (f->kind == TASK_TIME)
		*(int64_t *)at = strtoll(value, NULL, 10);
	else if ((*(char **)at = strdup(value)) == NULL)
		return err_nomem(e);
	return 0;
}

/* ---- Jobs ---- */

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct queue_job *)a)->name, ((const struct queue_job *)b)->name);
}

struct queue_job *queue_find(const struct job_queue *q, const char *name)
{
	const struct queue_job key = { .name = (char *)(uintptr_t)name };
	struct queue_job *const *found = tfind(&key, (void *const *)(uintptr_t)&q->by_name, by_name);

	return found != NULL ? *found : NULL;
}

static void job_free(struct queue_job *j)
{
	queue_task_fini(&j->task);
	free(j->blackout);
	free(j->name);
	free(j->error);
	free(j->hosts);
	free(j);
}

void queue_free(struct job_queue *q)
{
	size_t i;

	for (i = 0; i < q->n; i++) {
		tdelete(q->job[i], &q->by_name, by_name);
		job_free(q->job[i]);
	}
	free(q->job);
	free(q->blackout_text);
	free(q->blackout);
	*q = (struct job_queue){ .n = 0 };
}

static struct queue_job *job_new(struct job_queue *q, const char *name)
{
	struct queue_job *j = calloc(1, sizeof *j), **more = q->job;

	if (j == NULL || (j->name = strdup(name)) == NULL) {
		free(j);
		return NULL;
	}
	if (q->n == q->room && (more = realloc(q->job, (q->room * 2 + 16) * sizeof *more)) != NULL) {
		q->job = more;
		q->room = q->room * 2 + 16;
	}
	if (more == NULL || tsearch(j, &q->by_name, by_name) == NULL) {
		job_free(j);
		return NULL;
	}
	return q->job[q->n++] = j;
}

/* The windows of a text; NULL for none. */
static int read_windows(struct blackout **out, const char *text, struct ptcp_err *e)
{
	struct blackout *b = NULL;
	int r = 0;

	if (text != NULL && strcmp(text, "none") != 0 &&
	    ((b = malloc(sizeof *b)) == NULL || (r = blackout_parse(b, text, e)) < 0)) {
		free(b);
		return r < 0 ? r : err_nomem(e);
	}
	free(*out);
	*out = b;
	return 0;
}

static int apply_blackout(struct job_queue *q, char *fields, struct ptcp_err *e)
{
	const char *key, *value, *windows = NULL;
	char *text = NULL;
	int r;

	while (queue_record_next(&fields, &key, &value))
		if (strcmp(key, "windows") == 0)
			windows = value;
	if ((r = read_windows(&q->blackout, windows, e)) < 0)
		return r;
	if (windows != NULL && (text = strdup(windows)) == NULL)
		return err_nomem(e);
	free(q->blackout_text);
	q->blackout_text = text;
	return 0;
}

/* Takes the task. */
static int apply_add(struct job_queue *q, const char *name, struct queue_task *t, struct ptcp_err *e)
{
	struct queue_job *j = queue_find(q, name);

	if (j == NULL && (j = job_new(q, name)) == NULL)
		return err_nomem(e);
	if (j->state == QUEUE_RUNNING || j->state == QUEUE_DONE)
		return 0;
	if (read_windows(&j->blackout, t->blackout, e) < 0)
		return e->code;
	if (t->pairs == NULL || j->task.pairs == NULL || strcmp(t->pairs, j->task.pairs) != 0)
		j->sum = (struct queue_counts){ .bytes = 0 }, j->alone_until = 0;
	queue_task_fini(&j->task);
	j->task = *t;
	j->state = QUEUE_WAITING;
	j->alerted = false;
	j->tries = 0;
	j->again_s = 0;
	j->prepared = false;
	*t = (struct queue_task){ .priority = 0 };
	return 0;
}

static int read_add(struct job_queue *q, char *fields, struct ptcp_err *e)
{
	struct queue_task t = { .priority = 0 };
	const char *key, *value, *name = NULL;
	size_t i;
	int r = 0;

	while (r == 0 && queue_record_next(&fields, &key, &value)) {
		if (strcmp(key, "name") == 0)
			name = value;
		for (i = 0; i < N_TASK_FIELDS && r == 0; i++)
			if (strcmp(key, task_fields[i].key) == 0)
				r = read_field(&task_fields[i], writable(&t, &task_fields[i]), value, e);
	}
	if (r == 0)
		r = name == NULL || !queue_name_ok(name) ? err_set(e, PTCP_ECONFIG,
		    "a job without a name (restore the journal)") :
		    apply_add(q, name, &t, e);
	queue_task_fini(&t);
	return r;
}

/* ---- What happens to jobs ---- */

static void forget_failure(struct queue_job *j)
{
	j->tries = 0;
	j->again_s = 0;
	free(j->error);
	j->error = NULL;
}

static void apply_order(struct queue_job *j, const char *word, int64_t at_s)
{
	bool over = j->state == QUEUE_DONE || j->state == QUEUE_FAILED || j->state == QUEUE_CANCELLED;

	if (strcmp(word, "pause") == 0) {
		j->paused = !over;
	} else if (strcmp(word, "resume") == 0) {
		j->paused = false;
	} else if (strcmp(word, "cancel") == 0 && !over) {
		j->state = QUEUE_CANCELLED;
		j->paused = false;
		j->ended_s = at_s;
	} else if (strcmp(word, "retry") == 0 && j->state != QUEUE_RUNNING) {
		if (j->state == QUEUE_DONE)
			j->sum = (struct queue_counts){ .bytes = 0 }, j->alone_until = 0;
		j->state = QUEUE_WAITING;
		j->paused = false;
		forget_failure(j);
	}
}

/* Members of the record "end", except for those that are no sums of whole numbers. */
static const struct count_field {
	const char *key;
	size_t at;
} count_fields[] = {
#define COUNT(key, member) { key, offsetof(struct queue_counts, member) }
	COUNT("bytes", bytes), COUNT("files", files), COUNT("same-bytes", same_bytes), COUNT("same-files", same_files),
	COUNT("failed-files", failed_files), COUNT("position", position), COUNT("pairs", pairs),
	COUNT("failed", failed_pairs),
#undef COUNT
};
#define N_COUNTS (sizeof count_fields / sizeof *count_fields)

static uint64_t *count_at(struct queue_counts *c, size_t i)
{
	return (uint64_t *)(void *)((char *)c + count_fields[i].at);
}

void queue_counts_add(struct queue_counts *sum, struct queue_counts c)
{
	uint64_t position = c.position > 0 ? c.position : sum->position;
	size_t i;

	for (i = 0; i < N_COUNTS; i++)
		*count_at(sum, i) += *count_at(&c, i);
	sum->position = position;
	sum->failures += c.failures;
	sum->seconds += c.seconds;
	if (c.has_impact && (!sum->has_impact || c.impact_percent > sum->impact_percent))
		sum->impact_percent = c.impact_percent;
	sum->has_impact |= c.has_impact;
}

static int apply_end(struct queue_job *j, const struct queue_ended *x, int64_t at_s, int64_t since_s,
    struct ptcp_err *e)
{
	bool cancelled = j->state == QUEUE_CANCELLED;
	struct queue_counts counts = x->counts;
	char *error = NULL;

	if (x->error != NULL && (error = strdup(x->error)) == NULL)
		return err_nomem(e);
	counts.failures = x->end == QUEUE_AGAIN || x->end == QUEUE_GIVEN_UP;
	queue_counts_add(&j->sum, counts);
	if (at_s >= since_s)
		queue_counts_add(&j->recent, counts);
	j->exit = x->exit;
	j->ended_s = at_s;
	j->prepared = false;
	if (x->alone_until > 0)
		j->alone_until = x->alone_until;
	j->state = x->end == QUEUE_SUCCEEDED ? QUEUE_DONE : x->end == QUEUE_GIVEN_UP ? QUEUE_FAILED :
	    cancelled ? QUEUE_CANCELLED : QUEUE_WAITING;
	if (x->end == QUEUE_SUCCEEDED || x->end == QUEUE_MORE) {
		forget_failure(j);
		j->turns++;
	} else if (x->end != QUEUE_STOPPED) {
		free(j->error);
		j->error = error, error = NULL;
		j->tries++;
		j->again_s = x->again_s;
	}
	free(error);
	return 0;
}

struct event_fields {
	const char *name;
	int64_t at_s;
	struct queue_ended ended;
};

static void read_event(struct event_fields *f, char *fields)
{
	const char *key, *value;
	size_t i;

	while (queue_record_next(&fields, &key, &value)) {
		for (i = 0; i < N_COUNTS; i++)
			if (strcmp(key, count_fields[i].key) == 0)
				*count_at(&f->ended.counts, i) = strtoull(value, NULL, 10);
		for (i = 0; i < sizeof end_words / sizeof *end_words; i++)
			if (strcmp(key, "result") == 0 && strcmp(value, end_words[i]) == 0)
				f->ended.end = (enum queue_end)i;
		if (strcmp(key, "name") == 0)
			f->name = value;
		else if (strcmp(key, "at") == 0)
			f->at_s = strtoll(value, NULL, 10);
		else if (strcmp(key, "again") == 0)
			f->ended.again_s = strtoll(value, NULL, 10);
		else if (strcmp(key, "exit") == 0)
			f->ended.exit = atoi(value);
		else if (strcmp(key, "error") == 0)
			f->ended.error = value;
		else if (strcmp(key, "seconds") == 0)
			f->ended.counts.seconds = strtod(value, NULL);
		else if (strcmp(key, "impact") == 0)
			f->ended.counts.impact_percent = strtod(value, NULL), f->ended.counts.has_impact = true;
		else if (strcmp(key, "alone") == 0)
			f->ended.alone_until = strtoull(value, NULL, 10);
	}
}

int queue_apply(struct job_queue *q, const char *word, char *fields, struct ptcp_err *e)
{
	struct event_fields f = { .name = NULL };
	struct queue_job *j;

	if (strcmp(word, "add") == 0)
		return read_add(q, fields, e);
	if (strcmp(word, "blackout") == 0)
		return apply_blackout(q, fields, e);
	read_event(&f, fields);
	if (f.name == NULL || (j = queue_find(q, f.name)) == NULL)
		return err_set(e, PTCP_ECONFIG, "a record about an unknown job (restore the journal)");
	if (strcmp(word, "end") == 0)
		return apply_end(j, &f.ended, f.at_s, q->since_s, e);
	if (strcmp(word, "overdue") == 0) {
		j->alerted = true;
		return 0;
	}
	if (strcmp(word, "begin") == 0) {
		j->state = QUEUE_RUNNING;
		j->begun_s = f.at_s;
		return 0;
	}
	apply_order(j, word, f.at_s);
	return 0;
}

/* ---- Writing ---- */

void queue_write_add(struct queue_record *r, const char *name, const struct queue_task *t, int64_t now_s)
{
	size_t i;

	queue_record_begin(r, "add");
	queue_record_add(r, "name", name);
	queue_record_number(r, "at", now_s);
	for (i = 0; i < N_TASK_FIELDS; i++)
		write_field(r, &task_fields[i], member(t, &task_fields[i]));
	queue_record_seal(r);
}

void queue_write_order(struct queue_record *r, const char *word, const char *name, int64_t now_s)
{
	queue_record_begin(r, word);
	queue_record_add(r, "name", name);
	queue_record_number(r, "at", now_s);
	queue_record_seal(r);
}

void queue_write_overdue(struct queue_record *r, const char *name, int64_t now_s)
{
	queue_write_order(r, "overdue", name, now_s);
}

void queue_write_begin(struct queue_record *r, const char *name, int64_t now_s)
{
	queue_write_order(r, "begin", name, now_s);
}

void queue_write_end(struct queue_record *r, const char *name, const struct queue_ended *x, int64_t now_s)
{
	struct queue_counts c = x->counts;
	char seconds[32], impact[32];
	size_t i;

	queue_record_begin(r, "end");
	queue_record_add(r, "name", name);
	queue_record_number(r, "at", now_s);
	queue_record_add(r, "result", end_words[x->end]);
	queue_record_number(r, "exit", x->exit);
	queue_record_add(r, "error", x->error);
	if (x->again_s > 0)
		queue_record_number(r, "again", x->again_s);
	for (i = 0; i < N_COUNTS; i++)
		if (*count_at(&c, i) > 0)
			queue_record_number(r, count_fields[i].key, (int64_t)*count_at(&c, i));
	if (x->alone_until > 0)
		queue_record_number(r, "alone", (int64_t)x->alone_until);
	snprintf(seconds, sizeof seconds, "%.3f", c.seconds);
	queue_record_add(r, "seconds", seconds);
	snprintf(impact, sizeof impact, "%.3f", c.impact_percent);
	queue_record_add(r, "impact", c.has_impact ? impact : NULL);
	queue_record_seal(r);
}

void queue_write_blackout(struct queue_record *r, const char *windows, int64_t now_s)
{
	queue_record_begin(r, "blackout");
	queue_record_number(r, "at", now_s);
	queue_record_add(r, "windows", windows);
	queue_record_seal(r);
}

/* ---- Order ---- */

#define CHAIN_MAX 1000 /* jobs, each after the one before; the depth of the recursion */

static int check_chain(const struct job_queue *q, struct queue_job *j, unsigned depth, struct ptcp_err *e)
{
	struct queue_job *before;
	size_t i;
	int r = 0;

	if (j->order == ORDER_CHECKED || j->state == QUEUE_DONE)
		return 0;
	if (j->order == ORDER_ON_CHAIN)
		return err_set(e, PTCP_ECONFIG, "%s: comes after itself (leave out one `after` of the circle)",
		    j->name);
	if (depth > CHAIN_MAX)
		return err_set(e, PTCP_ECONFIG, "%s: ends a chain of over %d jobs (make several queues of them)",
		    j->name, CHAIN_MAX);
	j->order = ORDER_ON_CHAIN;
	for (i = 0; i < j->task.after.n && r == 0; i++) {
		if ((before = queue_find(q, j->task.after.of[i])) == NULL)
			return err_set(e, PTCP_ECONFIG, "%s: comes after %s, which is no job (correct the name, or add "
			    "that job first)", j->name, j->task.after.of[i]);
		r = check_chain(q, before, depth + 1, e);
	}
	j->order = ORDER_CHECKED;
	return r;
}

int queue_check_order(const struct job_queue *q, struct ptcp_err *e)
{
	size_t i;
	int r = 0;

	for (i = 0; i < q->n; i++)
		q->job[i]->order = ORDER_UNKNOWN;
	for (i = 0; i < q->n && r == 0; i++)
		r = check_chain(q, q->job[i], 1, e);
	return r;
}

bool queue_is_overdue(const struct queue_job *j, int64_t now_s)
{
	int64_t end_s = j->state == QUEUE_DONE ? j->ended_s : j->state == QUEUE_CANCELLED ? 0 : now_s;

	return j->task.deadline_s > 0 && end_s > j->task.deadline_s;
}

const char *queue_held_by(const struct job_queue *q, const struct queue_job *j, int64_t now_s)
{
	const struct queue_job *before;
	size_t i;

	if (j->paused)
		return "pause";
	for (i = 0; i < j->task.after.n; i++)
		if ((before = queue_find(q, j->task.after.of[i])) == NULL || before->state != QUEUE_DONE)
			return "after";
	if (j->task.start_s > now_s)
		return "start";
	if (j->again_s > now_s && j->again_s <= now_s + QUEUE_PAUSE_MAX_S)
		return "retry";
	return queue_blackout(q, j, now_s).closed ? "blackout" : NULL;
}

/* The common part of two spans. */
static struct blackout_span join(struct blackout_span a, struct blackout_span b)
{
	if (a.closed != b.closed) /* closed windows prevail */
		return a.closed ? a : b;
	a.from_s = a.from_s > b.from_s ? a.from_s : b.from_s;
	a.until_s = a.until_s < b.until_s ? a.until_s : b.until_s;
	return a;
}

struct blackout_span queue_blackout(const struct job_queue *q, const struct queue_job *j, int64_t now_s)
{
	return join(blackout_at(q->blackout, now_s), blackout_at(j->blackout, now_s));
}

enum { OPEN_MAX_S = 366 * 86400 };

int64_t queue_open_s(const struct job_queue *q, const struct queue_job *j, int64_t now_s, int64_t until_s)
{
	int64_t open_s = 0, at_s = now_s, end_s;
	struct blackout_span s;

	while (at_s < until_s) {
		s = queue_blackout(q, j, at_s);
		end_s = s.until_s < until_s && at_s - now_s < OPEN_MAX_S ? s.until_s : until_s;
		open_s += s.closed ? 0 : end_s - at_s;
		at_s = end_s;
	}
	return open_s;
}
