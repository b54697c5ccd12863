/* ptcp jobs: the command line, and the actions on a queue that need no run. */
#include <limits.h>
#include <ptcp/ptcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/jobs/jobs_impl.h"
#include "cli/jobs/jobs_process.h"
#include "cli/process.h"
#include "cli/running.h"
#include "cli/show/json.h"
#include "cli/show/terminal.h"
#include "core/err.h"
#include "core/prometheus.h"
#include "core/text.h"
#include "core/units.h"
#include "queue/queue_report.h"

enum { AT_ONCE = 2, REPORT_S = 86400 };

/* ---- Adding ---- */

/* An equal job stays in the queue unchanged, although a start of 22:00, or a deadline, means another day by now. */
static void add_one(struct jobs *s, struct queue_record *rec, const char *name, struct queue_task *t, int64_t now_s)
{
	const struct queue_job *j = queue_find(&s->queue, name);
	int64_t start_s = t->start_s, deadline_s = t->deadline_s;

	if (j != NULL && j->task.start_s > 0 && start_s > 0)
		t->start_s = j->task.start_s;
	if (j != NULL && j->task.deadline_s > 0 && deadline_s > 0)
		t->deadline_s = j->task.deadline_s;
	if (j != NULL && queue_task_equal(&j->task, t))
		return;
	t->start_s = start_s;
	t->deadline_s = deadline_s;
	if (j != NULL && (j->state == QUEUE_DONE || j->state == QUEUE_RUNNING))
		terminal_line("ptcp: warning: %s is %s, and stays as it was (give the other job a name of its own)",
		    name,
		    queue_state_name(j->state));
	else
		queue_write_add(rec, name, t, now_s);
}

/* Checks the order of jobs with the records, before the records are written. */
static int check_record(const struct jobs *s, const struct queue_record *rec, struct ptcp_err *e)
{
	struct queue_record copy = { .text = NULL };
	struct job_queue all = { .n = 0 };
	char *at, *end, *fields;
	const char *word;
	size_t i;
	int r = 0;

	for (i = 0; i < s->queue.n; i++)
		queue_write_add(&copy, s->queue.job[i]->name, &s->queue.job[i]->task, 0);
	for (i = 0; i < 2 && r == 0; i++) {
		at = i == 0 ? copy.text : strdup(rec->text);
		for (word = at; at != NULL && r == 0 && (end = strchr(word, '\n')) != NULL; word = end + 1)
			if (queue_record_read((char *)(uintptr_t)word, (size_t)(end - word), &word, &fields))
				r = queue_apply(&all, word, fields, e);
		if (i == 1)
			free(at);
	}
	if (r == 0)
		r = queue_check_order(&all, e);
	queue_free(&all);
	queue_record_free(&copy);
	return r;
}

static int commit(struct jobs *s, const struct queue_record *rec, struct ptcp_err *e)
{
	return rec->n == 0 ? 0 : queue_journal_append(&s->journal, &s->queue, rec, e);
}

/* The windows of the queue, "none" for none. */
static void set_blackout(const struct jobs *s, struct queue_record *rec, const char *windows, int64_t now_s)
{
	const char *old = s->queue.blackout_text;

	if (strcmp(windows, old != NULL ? old : "none") != 0)
		queue_write_blackout(rec, windows, now_s);
}

static int change_blackout(struct jobs *s, const char *windows, struct ptcp_err *e)
{
	struct queue_record rec = { .text = NULL };
	int r = queue_journal_lock(&s->journal, &s->queue, -1, e);

	if (r < 0)
		return r;
	set_blackout(s, &rec, windows, s->now_s);
	r = commit(s, &rec, e);
	queue_journal_unlock(&s->journal);
	queue_record_free(&rec);
	return r;
}

static int add_file(struct jobs *s, const char *path, struct ptcp_err *e)
{
	const int64_t now_s = (int64_t)time(NULL);
	struct queue_record rec = { .text = NULL };
	struct queue_file f;
	char cwd[PATH_MAX];
	size_t i;
	int r;

	if (getcwd(cwd, sizeof cwd) == NULL)
		return err_sys(e, PTCP_EIO, "the current directory has no path");
	if ((r = queue_file_read(&f, path, now_s, jobs_check, cwd, e)) < 0)
		return r;
	if ((r = queue_journal_lock(&s->journal, &s->queue, -1, e)) == 0) {
		if (f.blackout != NULL)
			set_blackout(s, &rec, f.blackout, now_s);
		for (i = 0; i < f.n; i++)
			add_one(s, &rec, f.job[i].name, &f.job[i].task, now_s);
		if (rec.n == 0 || (r = check_record(s, &rec, e)) == 0)
			r = commit(s, &rec, e);
		queue_journal_unlock(&s->journal);
	}
	queue_record_free(&rec);
	queue_file_fini(&f);
	return r;
}

static int copy_texts(struct queue_texts *to, const char *const *of, size_t n, struct ptcp_err *e)
{
	size_t i;
	int r = 0;

	for (i = 0; i < n && r == 0; i++)
		r = queue_texts_add(to, of[i], e);
	return r;
}

static int task_of(struct queue_task *t, const struct jobs_args *a, size_t n, char **operands, int64_t now_s,
    struct ptcp_err *e)
{
	const char *const *at = (const char *const *)operands;
	size_t sources = n > 0 ? n - 1 : 0;
	char cwd[PATH_MAX];
	int r;

	if (a->name == NULL || !queue_name_ok(a->name))
		return err_set(e, PTCP_EUSAGE, "--name: not a name (up to %d letters, digits, '.', '_' and '-')",
		    QUEUE_NAME_MAX);
	if ((a->pairs != NULL) != (n == 0) || (a->pairs == NULL && n < 2))
		return err_set(e, PTCP_EUSAGE,
		    "add: nothing to transfer (name a source and a destination, --pairs FILE, or a "
		    "file of jobs)");
	if (a->start != NULL && units_parse_next(a->start, now_s, &t->start_s) < 0)
		return err_set(e, PTCP_EUSAGE, "--start: not a time to come (such as 22:00 or 2027-01-31T22:00)");
	if (a->deadline != NULL && units_parse_deadline(a->deadline, t->start_s > 0 ? t->start_s : now_s,
	    &t->deadline_s) < 0)
		return err_set(e, PTCP_EUSAGE, "--deadline: not a time after the start (such as 08:00, "
		    "2027-01-31T08:00 or 2h)");
	t->priority = a->priority;
	t->retries = a->retries;
	if ((r = copy_texts(&t->sources, at, sources, e)) < 0 ||
	    (r = copy_texts(&t->options, a->options.of, a->options.n, e)) < 0 ||
	    (r = copy_texts(&t->after, a->after.of, a->after.n, e)) < 0)
		return r;
	if ((n > 0 && (t->destination = strdup(operands[n - 1])) == NULL) ||
	    (a->pairs != NULL && (t->pairs = strdup(a->pairs)) == NULL) ||
	    (a->on_success != NULL && (t->on_success = strdup(a->on_success)) == NULL) ||
	    (a->on_failure != NULL && (t->on_failure = strdup(a->on_failure)) == NULL) ||
	    (a->on_overdue != NULL && (t->on_overdue = strdup(a->on_overdue)) == NULL) ||
	    (a->blackout != NULL && (t->blackout = strdup(a->blackout)) == NULL))
		return err_nomem(e);
	if (getcwd(cwd, sizeof cwd) == NULL)
		return err_sys(e, PTCP_EIO, "the current directory has no path");
	return jobs_check(cwd, a->name, t, e);
}

static int add_task(struct jobs *s, const struct jobs_args *a, size_t n, char **operands, struct ptcp_err *e)
{
	const int64_t now_s = (int64_t)time(NULL);
	struct queue_record rec = { .text = NULL };
	struct queue_task t = { .priority = 0 };
	int r = task_of(&t, a, n, operands, now_s, e);

	if (r == 0 && (r = queue_journal_lock(&s->journal, &s->queue, -1, e)) == 0) {
		add_one(s, &rec, a->name, &t, now_s);
		if (rec.n == 0 || (r = check_record(s, &rec, e)) == 0)
			r = commit(s, &rec, e);
		queue_journal_unlock(&s->journal);
	}
	queue_record_free(&rec);
	queue_task_fini(&t);
	return r;
}

/* ---- Orders ---- */

static int no_job(struct ptcp_err *e, const char *name)
{
	char shown[TEXT_NAME_BYTES];

	return err_set(e, PTCP_EUSAGE, "%s: no job of this queue (ptcp jobs status lists them)",
	    text_escape(shown, sizeof shown, name));
}

/* Whether an order without names is for a job. */
static bool is_meant(const char *word, const struct queue_job *j)
{
	bool over = j->state == QUEUE_DONE || j->state == QUEUE_FAILED || j->state == QUEUE_CANCELLED;

	if (strcmp(word, "retry") == 0)
		return j->state == QUEUE_FAILED;
	return !over && j->paused == (strcmp(word, "resume") == 0);
}

static int order(struct jobs *s, const char *word, size_t n, char **names, struct ptcp_err *e)
{
	const int64_t now_s = (int64_t)time(NULL);
	struct queue_record rec = { .text = NULL };
	size_t i;
	int r;

	if (n == 0 && strcmp(word, "cancel") == 0)
		return err_set(e, PTCP_EUSAGE, "cancel: needs the names of jobs (ptcp jobs status lists them)");
	if ((r = queue_journal_lock(&s->journal, &s->queue, -1, e)) < 0)
		return r;
	for (i = 0; i < n && r == 0; i++)
		if (queue_find(&s->queue, names[i]) == NULL)
			r = no_job(e, names[i]);
		else
			queue_write_order(&rec, word, names[i], now_s);
	for (i = 0; i < s->queue.n && n == 0; i++)
		if (is_meant(word, s->queue.job[i]))
			queue_write_order(&rec, word, s->queue.job[i]->name, now_s);
	if (r == 0)
		r = commit(s, &rec, e);
	queue_journal_unlock(&s->journal);
	queue_record_free(&rec);
	return r;
}

/* ---- Status and log ---- */

/* The progress of a running job. */
static void show_progress(const struct queue_job *j)
{
	struct ptcp_err e;
	json_t *status;

	if (j->state != QUEUE_RUNNING || !running_exists(j->name) ||
	    running_request(&status, j->name, "status", &e) < 0)
		return;
	printf("  ");
	running_write(stdout, status);
	json_decref(status);
}

static bool has_open_jobs(const struct jobs *s)
{
	size_t i;

	for (i = 0; i < s->queue.n; i++)
		if (s->queue.job[i]->state == QUEUE_WAITING || s->queue.job[i]->state == QUEUE_RUNNING)
			return true;
	return false;
}

static int status(struct jobs *s, size_t n, char **names, struct ptcp_err *e)
{
	const struct queue_job *j;
	size_t i;

	for (i = 0; i < (n > 0 ? n : s->queue.n); i++) {
		if ((j = n > 0 ? queue_find(&s->queue, names[i]) : s->queue.job[i]) == NULL)
			return no_job(e, names[i]);
		jobs_show(s, j);
		if (!s->json && !s->quiet)
			show_progress(j);
	}
	if (s->json || s->quiet)
		return 0;
	if (s->queue.n == 0)
		terminal_line("ptcp: the queue has no job");
	else if (has_open_jobs(s) && !jobs_are_run(s->dir))
		terminal_line("ptcp: nothing runs this queue (ptcp jobs run does)");
	return 0;
}

struct logging {
	const struct jobs *s;
	size_t n;
	char **names;
};

static bool is_named(const struct logging *l, const char *name)
{
	size_t i;

	for (i = 0; i < l->n && strcmp(l->names[i], name) != 0; i++)
		;
	return l->n == 0 || i < l->n;
}

static void log_record(void *arg, const char *word, char *fields)
{
	const struct logging *l = arg;
	json_t *j = json_pack("{s:s}", "event", word);
	const char *key, *value, *name = "";
	char text[2048] = "", shown[2048], at[32] = "";
	size_t n = 0;

	while (queue_record_next(&fields, &key, &value)) {
		json_object_set_new(j, key, json_text(value));
		if (strcmp(key, "name") == 0)
			name = value;
		else if (strcmp(key, "at") == 0)
			queue_moment(at, strtoll(value, NULL, 10));
		else if (n < sizeof text)
			n += (size_t)snprintf(text + n, sizeof text - n, " %s=%s", key, value);
	}
	if (!is_named(l, name))
		json_decref(j);
	else if (l->s->json)
		json_line(j);
	else {
		printf("%s %s: %s%s\n", at, name, word, text_escape(shown, sizeof shown, text));
		json_decref(j);
	}
}

/* The messages of the last process of a job. */
static void log_messages(const struct jobs *s, const char *name)
{
	char path[PATH_MAX], line[1024], shown[4 * sizeof line];
	FILE *f;

	snprintf(path, sizeof path, "%s/log/%s", s->dir, name);
	if ((f = fopen(path, "re")) == NULL)
		return;
	while (fgets(line, sizeof line, f) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		printf("  %s\n", text_escape(shown, sizeof shown, line));
	}
	fclose(f);
}

static int show_log(struct jobs *s, size_t n, char **names, struct ptcp_err *e)
{
	struct logging l = { s, n, names };
	size_t i;
	int r;

	s->journal.each = log_record;
	s->journal.arg = &l;
	if ((r = queue_journal_follow(&s->journal, &s->queue, e)) < 0)
		return r;
	for (i = 0; i < n; i++) {
		if (queue_find(&s->queue, names[i]) == NULL)
			return no_job(e, names[i]);
		if (!s->json)
			log_messages(s, names[i]);
	}
	return 0;
}

/* ---- The command line ---- */

static const char *const actions[] = { "run", "add", "status", "log", "report", "pause", "resume", "cancel", "retry" };
#define ALL_ACTIONS "run, add, status, log, report, pause, resume, cancel or retry"

static int act(struct jobs *s, const struct jobs_args *a, const char *action, size_t n, char **operands,
    struct ptcp_err *e)
{
	bool makes = strcmp(action, "run") == 0 || strcmp(action, "add") == 0;
	char dir[USERDIR_BYTES];
	int r;

	if ((r = a->state == NULL ? userdir_state(dir, NULL, e) : 0) < 0)
		return r;
	if (snprintf(s->dir, sizeof s->dir, "%s%s", a->state != NULL ? a->state : dir,
	    a->state != NULL ? "" : "/jobs") >= (int)sizeof s->dir)
		return err_set(e, PTCP_EUSAGE, "--state: the path is too long (name a shorter one)");
	if ((r = queue_journal_open(&s->journal, s->dir, makes, e)) < 0)
		return r;
	if (strcmp(action, "log") == 0)
		return show_log(s, n, operands, e);
	if (strcmp(action, "run") == 0 && n > 1)
		return err_set(e, PTCP_EUSAGE, "run: takes one file of jobs (join the others to it)");
	if (strcmp(action, "report") == 0 && n > 0)
		return err_set(e, PTCP_EUSAGE, "report: takes no names (ptcp jobs status NAME.. shows single jobs)");
	if (a->html && a->json)
		return err_set(e, PTCP_EUSAGE, "--html: not with --json (leave one out)");
	s->queue.since_s = a->since_s > 0 ? a->since_s : s->now_s - REPORT_S;
	if ((r = queue_journal_follow(&s->journal, &s->queue, e)) < 0)
		return r;
	if (strcmp(action, "status") == 0)
		return (r = status(s, n, operands, e)) < 0 || a->metrics == NULL ? r :
		    prometheus_write(a->metrics, jobs_metrics, s, e);
	if (strcmp(action, "report") == 0)
		return jobs_report(s, a->html), 0;
	if (!makes)
		return order(s, action, n, operands, e);
	if (n == 1 && a->name == NULL)
		r = add_file(s, operands[0], e);
	else if (strcmp(action, "add") == 0)
		r = add_task(s, a, n, operands, e);
	if (r < 0 || strcmp(action, "add") == 0)
		return r;
	return a->blackout != NULL && (r = change_blackout(s, a->blackout, e)) < 0 ? r : jobs_run(s, a, e);
}

/* A process of the queue: PARENT NAME DIRECTORY COMMAND .. */
static int carry(int argc, char **argv)
{
	const struct command *c = argc > 3 ? command_find(argv[3]) : NULL;
	struct ptcp_err e;

	if (c == NULL || jobs_process_bind((pid_t)strtol(argv[0], NULL, 10)) != 0) {
		err_set(&e, PTCP_EUSAGE,
		    "%s: only processes of ptcp jobs run use this action (ptcp jobs --help lists the "
		    "others)", JOBS_CARRY);
		return exit_fail(&e);
	}
	if (chdir(argv[2]) != 0) {
		err_sys(&e, PTCP_EUSAGE, "%s: cannot enter the directory", argv[2]);
		return exit_fail(&e);
	}
	running_prefer(argv[1]);
	return c->run(c, argc - 4, argv + 4);
}

#define AT(member) offsetof(struct jobs_args, member)
static const struct opt jobs_options[] = {
	{ "state", 0, "DIR", "directory of the queue (default: ~/.local/state/ptcp/jobs)", opt_text, AT(state), 0, 0 },
	{ "quiet", 'q', NULL, "print errors only", opt_true, AT(quiet), 0, 0 },
	{ "json", 0, NULL, "print a JSON object for each job and each change of a job", opt_true, AT(json), 0, 0 },
	{ .name = NULL },
};
static const struct opt run_options[] = {
	{ "at-once", 0, "N", "at most N transfers at once for each pair of hosts, and each local disk (default: 2)",
	    opt_unsigned, AT(at_once), 1, 64 },
	{ "stay", 0, NULL, "wait for further jobs when all are over", opt_true, AT(stay), 0, 0 },
	{ "metrics-listen", 0, "ADDR:PORT", "answer Prometheus at http://ADDR:PORT/metrics, whoever asks", opt_text,
	    AT(metrics_listen), 0, 0 },
	{ .name = NULL },
};
static const struct opt add_options[] = {
	{ "name", 0, "NAME", "name of the job", opt_text, AT(name), 0, 0 },
	{ "option", 'o', "NAME[=VALUE]", "an option of ptcp send or recv, without dashes; repeatable", opt_texts_each,
	    AT(options), 0, 0 },
	{ "pairs", 0, "FILE", "transfer the pairs of FILE, a source and a destination a line", opt_text, AT(pairs), 0,
	    0 },
	{ "priority", 0, "N", "jobs of higher priority begin first (default: 0)", opt_int, AT(priority), -1000, 1000 },
	{ "after", 0, "NAME,..", "begin when these jobs are done", opt_texts_commas, AT(after), 0, 0 },
	{ "start", 0, "TIME", "begin at this time, such as 22:00", opt_text, AT(start), 0, 0 },
	{ "deadline", 0, "TIME", "be done by this time, such as 08:00, or within 2h", opt_text, AT(deadline), 0, 0 },
	{ "retries", 0, "N", "repetitions after failures in succession (default: 10)", opt_unsigned, AT(retries), 0,
	    1000 },
	{ .name = NULL },
};
static int set_windows(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct blackout b;
	int r;

	if (strcmp(text, "none") != 0 && (r = blackout_parse(&b, text, e)) < 0)
		return err_while(e, r, "--%s", o->name);
	return opt_text(args, o, text, e);
}

/* With run: for all jobs. */
static const struct opt all_jobs_options[] = {
	{ "on-success", 0, "COMMAND", "run COMMAND when a job is done, with its object on standard input", opt_text,
	    AT(on_success), 0, 0 },
	{ "on-failure", 0, "COMMAND", "run COMMAND when a job has failed for good", opt_text, AT(on_failure), 0, 0 },
	{ "on-overdue", 0, "COMMAND", "run COMMAND when a job misses its deadline", opt_text, AT(on_overdue), 0, 0 },
	{ "blackout", 0, "WINDOWS", "run nothing in these windows, such as 'Mon-Fri 08:00-18:00'", set_windows,
	    AT(blackout), 0, 0 },
	{ .name = NULL },
};
static const struct opt metrics_options[] = {
	{ "metrics", 0, "FILE", "write Prometheus metrics of the queue to FILE", opt_text, AT(metrics), 0, 0 },
	{ .name = NULL },
};
static const struct opt report_options[] = {
	{ "since", 0, "TIME", "from this time on: an age (2h, 7d), today, yesterday, or a date (default: 1d)",
	    opt_since, AT(since_s), 0, 0 },
	{ "html", 0, NULL, "print a page in HTML", opt_true, AT(html), 0, 0 },
	{ .name = NULL },
};
/* A title names the actions that take its options. */
static const struct opt_group tables[] = { GROUP_OWN(jobs_options), GROUP_OF("Options of run", run_options),
	GROUP_OF("Options of add", add_options), GROUP_OF("Options of run and add", all_jobs_options),
	GROUP_OF("Options of run and status", metrics_options), GROUP_OF("Options of report", report_options),
	GROUP_END };

static int check_options(const struct options_given *given, const char *action, struct ptcp_err *e)
{
	const struct opt_group *g;
	const struct opt *o;
	size_t i;

	for (i = 0; i < given->n; i++)
		for (g = tables; g->options != NULL; g++)
			for (o = g->options; o->name != NULL; o++)
				if (o == given->at[i].of && g->title[0] != '\0' && strstr(g->title, action) == NULL)
					return err_set(e, PTCP_EUSAGE,
					    "--%s: not for %s (see \"%s\" of ptcp help jobs)", o->name, action,
					    g->title);
	return 0;
}

static int run_jobs(const struct command *c, int argc, char **argv)
{
	struct jobs_args a = { .at_once = AT_ONCE, .retries = QUEUE_RETRIES };
	struct jobs s = { .journal = { .fd = -1 }, .now_s = (int64_t)time(NULL) };
	struct options_given given = { .n = 0 };
	struct ptcp_err e = { .code = 0 };
	size_t i;
	int n, r;

	if (argc > 0 && strcmp(argv[0], JOBS_CARRY) == 0)
		return carry(argc - 1, argv + 1);
	process_catch(EXIT_INTERRUPTED, INTERRUPTED_TWICE);
	if ((r = options_parse(c, argc, argv, &a, &n, &given, &e)) == 0) {
		s.json = a.json;
		s.quiet = a.quiet;
		for (i = 0; i < sizeof actions / sizeof *actions && strcmp(actions[i], argv[0]) != 0; i++)
			;
		r = i == sizeof actions / sizeof *actions ?
		    err_set(&e, PTCP_EUSAGE, "%s: no such action (" ALL_ACTIONS ")", argv[0]) :
		    check_options(&given, actions[i], &e);
		if (r == 0)
			r = act(&s, &a, actions[i], (size_t)n - 1, argv + 1, &e);
	}
	queue_journal_close(&s.journal);
	queue_free(&s.queue);
	options_given_free(&given);
	opt_copies_free(&a.options.of, &a.options.n);
	opt_copies_free(&a.after.of, &a.after.n);
	if (a.json && r != OPTIONS_HELP)
		json_line(json_end(r, &e, json_object()));
	return command_end(c, r, &e);
}

const struct command command_jobs = { "jobs", "run [FILE] | add FILE | add --name NAME SRC... DEST | "
	"status | log | pause | resume | retry [NAME...] | cancel NAME... | report",
	"run a queue of transfers that survives interruptions", run_jobs, tables, 1, INT_MAX,
	"needs an action: " ALL_ACTIONS };
