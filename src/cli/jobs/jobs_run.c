/* The world of a queue: processes, the journal, lists of pairs, the clock. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/exec.h"
#include "cli/hook.h"
#include "cli/jobs/jobs_impl.h"
#include "cli/jobs/jobs_process.h"
#include "cli/metrics/scrape.h"
#include "cli/process.h"
#include "cli/show/json.h"
#include "cli/show/terminal.h"
#include "core/clock.h"
#include "core/err.h"
#include "core/fd.h"
#include "core/prometheus.h"
#include "core/text.h"
#include "core/units.h"
#include "queue/pair_list.h"
#include "queue/queue_run.h"

enum { LOOK_MS = 10000 }; /* also notices that the clock was set */

struct jobs_child {
	struct queue_job *job; /* NULL: free */
	struct jobs_process process;
	struct pair_batch batch;
	struct timespec begun;
};

struct jobs_world {
	struct jobs *s;
	const struct jobs_args *a;
	const char *program;
	struct scrape *scrape; /* NULL: no --metrics-listen */
	int64_t published_s;   /* time of the last metrics */
	bool unpublished;      /* the last attempt has failed */
	struct queue_run *run;
	struct jobs_child child[QUEUE_PROCESSES_MAX];
	struct { pid_t pid; char what[QUEUE_NAME_MAX + 32]; } hook[QUEUE_PROCESSES_MAX]; /* commands of ended jobs */
	int events, watch;
	bool troubled; /* records cannot be written */
};

/* For the handler of signals. */
static int signal_events = -1;

static void wake(void)
{
	int saved = errno;
	uint64_t one = 1;

	(void)!write(signal_events, &one, sizeof one);
	errno = saved;
}

static void on_child(int sig)
{
	(void)sig;
	wake();
}

static void on_stop(void *handle)
{
	(void)handle;
	wake();
}

/* ---- Functions of the struct queue_world ---- */

static struct jobs_child *child_of(struct jobs_world *w, const struct queue_job *j)
{
	size_t i;

	for (i = 0; i < QUEUE_PROCESSES_MAX && w->child[i].job != j; i++)
		;
	return i < QUEUE_PROCESSES_MAX ? &w->child[i] : NULL;
}

static int set_place(struct queue_job *j, const char *source, const char *dest, struct ptcp_err *e)
{
	char from[PAIR_HOST_BYTES], to[PAIR_HOST_BYTES], path[PATH_MAX], *hosts;
	struct stat st;

	if (asprintf(&hosts, "%s>%s", pair_host(from, source), pair_host(to, dest)) < 0)
		return err_nomem(e);
	free(j->hosts);
	j->hosts = hosts;
	j->disk = 0;
	if (from[0] == '\0') {
		snprintf(path, sizeof path, "%s%s%s", source[0] == '/' ? "" : j->task.directory,
		    source[0] == '/' ? "" : "/", source);
		j->disk = stat(path, &st) == 0 ? (uint64_t)st.st_dev : 0;
	}
	return 0;
}

static int read_batch(struct pair_batch *b, const struct queue_job *j, struct ptcp_err *e)
{
	char path[PATH_MAX];

	snprintf(path, sizeof path, "%s%s%s", j->task.pairs[0] == '/' ? "" : j->task.directory,
	    j->task.pairs[0] == '/' ? "" : "/", j->task.pairs);
	return pair_batch_read(b, path, j->task.directory, j->sum.position, j->alone_until, e);
}

static int world_prepare(void *arg, struct queue_job *j, struct ptcp_err *e)
{
	struct pair_batch b;
	int r;

	(void)arg;
	if (j->task.pairs == NULL)
		return set_place(j, j->task.sources.of[0], j->task.destination, e);
	if ((r = read_batch(&b, j, e)) < 0)
		return r;
	r = b.n == 0 ? 1 : set_place(j, b.sources.of[0], b.destination, e);
	pair_batch_fini(&b);
	return r;
}

static int start_child(struct jobs_world *w, struct jobs_child *c, const struct queue_job *j, struct ptcp_err *e)
{
	const struct queue_task *t = &j->task;
	const int64_t now_s = (int64_t)time(NULL);
	bool pairs = t->pairs != NULL;
	struct jobs_command command = { .n = 0 };
	char log[PATH_MAX];
	int r;

	if (pairs && (r = read_batch(&c->batch, j, e)) < 0)
		return r;
	if (c->batch.missing) {
		wake(); /* look_at_children() ends what needs no process */
		return 0;
	}
	snprintf(log, sizeof log, "%s/log/%s", w->s->dir, j->name);
	if ((r = jobs_command_make(&command, w->program, j, pairs ? &c->batch.sources : &t->sources,
	    pairs ? c->batch.destination : t->destination, queue_open_s(&w->s->queue, j, now_s, t->deadline_s),
	    e)) == 0)
		r = jobs_process_start(&c->process, (char *const *)(uintptr_t)command.argv, log, e);
	jobs_command_fini(&command);
	return r;
}

static int world_start(void *arg, struct queue_job *j, struct ptcp_err *e)
{
	struct jobs_world *w = arg;
	struct jobs_child *c = child_of(w, NULL);
	int r;

	*c = (struct jobs_child){ .job = j, .process = { .out_fd = -1 } };
	clock_gettime(CLOCK_MONOTONIC, &c->begun);
	if ((r = start_child(w, c, j, e)) == 0)
		return 0;
	pair_batch_fini(&c->batch);
	c->job = NULL;
	return r;
}

static void world_stop(void *arg, struct queue_job *j)
{
	struct jobs_child *c = child_of(arg, j);

	if (c != NULL && c->process.pid > 0)
		kill(c->process.pid, SIGTERM);
}

/* Appends whole, or not at all: another attempt must not repeat pairs. */
static int append(const char *path, const char *text, size_t n, struct ptcp_err *e)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600), r = 0;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0) {
		r = err_sys(e, PTCP_EIO, "%s: cannot write", path);
	} else if (write(fd, text, n) != (ssize_t)n || fsync(fd) != 0) {
		r = err_sys(e, err_from_errno(errno), "%s: cannot write", path);
		(void)!ftruncate(fd, st.st_size);
	}
	fd_close(&fd);
	return r;
}

static int world_skip(void *arg, struct queue_job *j, struct ptcp_err *e)
{
	struct jobs_world *w = arg;
	struct jobs_child *c = child_of(w, j);
	char path[PATH_MAX], *text;
	size_t n, i;
	FILE *f;
	int r;

	if (c == NULL)
		return 0; /* never begun */
	if ((f = open_memstream(&text, &n)) == NULL)
		return err_nomem(e);
	for (i = 0; i < c->batch.n; i++)
		pair_write(f, c->batch.sources.of[i], c->batch.destination, j->task.directory);
	snprintf(path, sizeof path, "%s/failed/%s", w->s->dir, j->name);
	r = fclose(f) == 0 ? append(path, text, n, e) : err_nomem(e);
	free(text);
	return r;
}

static int world_lock(void *arg, struct ptcp_err *e)
{
	struct jobs_world *w = arg;

	return queue_journal_lock(&w->s->journal, &w->s->queue, FD_LOCK_LOOP_MS, e);
}

static int world_record(void *arg, const struct queue_record *rec, struct ptcp_err *e)
{
	struct jobs_world *w = arg;
	int r = rec != NULL ? queue_journal_append(&w->s->journal, &w->s->queue, rec, e) : 0;

	queue_journal_unlock(&w->s->journal);
	return r;
}

static void release(struct jobs_child *c)
{
	jobs_process_fini(&c->process);
	pair_batch_fini(&c->batch);
	c->job = NULL;
}

/* ---- Commands of ended jobs ---- */

/* A killed run loses the commands of jobs with a recorded end. */
static void start_hook(struct jobs_world *w, const struct queue_job *j, const char *what, const char *own,
    const char *of_run)
{
	const char *command = own != NULL ? own : of_run;
	json_t *object;
	size_t i;
	int r;

	if (command == NULL)
		return;
	for (i = 0; i < QUEUE_PROCESSES_MAX - 1 && w->hook[i].pid > 0; i++)
		;
	snprintf(w->hook[i].what, sizeof w->hook[i].what, "%s of %s", what, j->name);
	object = jobs_json(w->s, j);
	r = w->hook[i].pid > 0 ? EAGAIN : hook_start(&w->hook[i].pid, command, object);
	json_decref(object);
	if (r != 0) {
		terminal_line("ptcp: warning: the command of %s cannot be started: %s", w->hook[i].what, strerror(r));
		w->hook[i].pid = 0;
	}
}

/* Returns the number of running commands. */
static size_t look_at_hooks(struct jobs_world *w)
{
	size_t running = 0, i;
	int status;

	for (i = 0; i < QUEUE_PROCESSES_MAX; i++) {
		if (w->hook[i].pid > 0 && waitpid(w->hook[i].pid, &status, WNOHANG) == w->hook[i].pid) {
			hook_judge(w->hook[i].what, status);
			w->hook[i].pid = 0;
		}
		running += w->hook[i].pid > 0;
	}
	return running;
}

/* Waits for the commands at the end of the run, unless the run is told to end. */
static void end_hooks(struct jobs_world *w)
{
	struct mono until = mono_add_ns(mono_now(), HOOK_LIMIT_S * NS_PER_S);
	size_t i;

	while (look_at_hooks(w) > 0 && mono_now().ns < until.ns && !process_stopping())
		(void)poll(NULL, 0, 20);
	for (i = 0; i < QUEUE_PROCESSES_MAX; i++)
		if (w->hook[i].pid > 0) {
			exec_end(w->hook[i].pid);
			terminal_line("ptcp: warning: the command of %s has not ended %s, and was ended (start it "
			    "in the background)", w->hook[i].what, process_stopping() ? "before the queue" : "in time");
		}
}

/* Once the end of a process is recorded, its pairs are needed no more. */
static void world_changed(void *arg, const struct queue_job *j)
{
	struct jobs_world *w = arg;
	struct jobs_child *c = child_of(w, j);

	if (c != NULL && !j->alive)
		release(c);
	jobs_show(w->s, j);
	if (j->state == QUEUE_DONE)
		start_hook(w, j, "on_success", j->task.on_success, w->a->on_success);
	else if (j->state == QUEUE_FAILED)
		start_hook(w, j, "on_failure", j->task.on_failure, w->a->on_failure);
}

static void world_overdue(void *arg, const struct queue_job *j)
{
	struct jobs_world *w = arg;

	jobs_show(w->s, j);
	start_hook(w, j, "on_overdue", j->task.on_overdue, w->a->on_overdue);
}

static void world_trouble(void *arg, const struct ptcp_err *e)
{
	((struct jobs_world *)arg)->troubled = e != NULL;
	if (e != NULL)
		terminal_line("ptcp: %s (until the queue can record, no job begins; trying again)", e->msg);
	else
		terminal_line("ptcp: the queue can record again");
}

/* ---- Ends of processes ---- */

/* Whether the process has reached its host, as the event "end" has it. */
static bool has_connected(const json_t *end) { return json_array_size(json_object_get(end, "paths")) > 0; }

/* What a repetition may change. A host that refuses, or whose key is unknown, does so again, unless it is busy. */
static enum queue_verdict verdict_of(int status, const json_t *end)
{
	static const struct { int status; enum queue_verdict verdict; } table[] = {
		{ EXIT_DONE, QUEUE_FINE }, { EXIT_VANISHED, QUEUE_FINE }, { EXIT_USAGE, QUEUE_WRONG },
		{ EXIT_INFEASIBLE, QUEUE_WRONG }, { EXIT_REFUSED, QUEUE_WRONG }, { EXIT_CONNECT, QUEUE_NO_HOST },
	};
	const char *cause = json_string_value(json_object_get(end, "cause"));
	size_t i;

	for (i = 0; i < sizeof table / sizeof *table; i++)
		if (table[i].status == status)
			break;
	if (i == sizeof table / sizeof *table || (status == EXIT_REFUSED && (has_connected(end) ||
	    (cause != NULL && strcmp(cause, "EBUSY") == 0))))
		return QUEUE_FAILS;
	return table[i].verdict;
}

static uint64_t member_count(const json_t *end, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(end, key));

	return v > 0 ? (uint64_t)v : 0;
}

/* The predicted impact, if the process knows: one stream is the measure of impacts. */
static void read_impact(struct queue_counts *c, const json_t *end)
{
	const json_t *impact = json_object_get(json_object_get(end, "deadline"), "impact_percent");

	if (!json_is_number(impact))
		impact = json_object_get(end, "predicted_impact_percent");
	c->has_impact = json_is_number(impact) || member_count(end, "streams") == 1;
	c->impact_percent = json_number_value(impact);
}

/* Judges a process by exit status and last line, the event "end". */
static void ended(struct jobs_world *w, struct jobs_child *c, int status)
{
	json_t *end = c->process.last != NULL ? json_loads(c->process.last, 0, NULL) : NULL;
	struct queue_job *j = c->job;
	bool pairs = j->task.pairs != NULL;
	struct queue_process p = { .exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
		.error = json_string_value(json_object_get(end, "error")) };
	char text[160];
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	p.verdict = WIFEXITED(status) ? verdict_of(p.exit, end) : QUEUE_FAILS;
	p.counts = (struct queue_counts){ .bytes = member_count(end, "bytes"), .files = member_count(end, "files"),
		.same_bytes = member_count(end, "up_to_date_bytes"), .same_files = member_count(end, "up_to_date"),
		.failed_files = member_count(end, "failed"),
		.position = pairs ? c->batch.end : 0, .pairs = pairs ? c->batch.n : 0,
		.seconds = (double)(now.tv_sec - c->begun.tv_sec) + (double)(now.tv_nsec - c->begun.tv_nsec) / 1e9 };
	read_impact(&p.counts, end);
	p.alone = c->batch.n <= 1;
	if (p.error == NULL && p.exit != EXIT_DONE) {
		snprintf(text, sizeof text, "the process ended with %s %d (ptcp jobs log %s shows its messages)",
		    WIFEXITED(status) ? "status" : "signal", WIFEXITED(status) ? p.exit : WTERMSIG(status), j->name);
		p.error = text;
	}
	queue_run_ended(w->run, j, &p, (int64_t)time(NULL));
	json_decref(end);
}

/* Pairs whose sources do not exist: a process for each would say no more. */
static void ended_missing(struct jobs_world *w, struct jobs_child *c)
{
	char shown[TEXT_NAME_BYTES], text[TEXT_NAME_BYTES + 80];
	const struct queue_process p = { .verdict = QUEUE_FAILS, .exit = EXIT_FAILED, .error = text, .alone = true,
		.counts = { .position = c->batch.end, .pairs = c->batch.n } };

	c->batch.missing = false;
	snprintf(text, sizeof text, "%s: %s", text_escape(shown, sizeof shown, c->batch.sources.of[0]),
	    strerror(ENOENT));
	queue_run_ended(w->run, c->job, &p, (int64_t)time(NULL));
}

static void look_at_children(struct jobs_world *w)
{
	struct jobs_child *c;
	int status;

	for (c = w->child; c < w->child + QUEUE_PROCESSES_MAX; c++) {
		if (c->job == NULL)
			continue;
		if (c->batch.missing && c->job->alive)
			ended_missing(w, c);
		if (c->process.out_fd >= 0 && !jobs_process_read(&c->process))
			fd_close(&c->process.out_fd);
		if (jobs_process_ended(&c->process, &status))
			ended(w, c, status);
	}
}

/* ---- The loop ---- */

static void drain(int fd)
{
	char buf[4096];

	while (read(fd, buf, sizeof buf) > 0)
		;
}

static void rest(struct jobs_world *w, int64_t until_s)
{
	struct pollfd p[QUEUE_PROCESSES_MAX + 2 + SCRAPE_FDS] = { { w->events, POLLIN, 0 }, { w->watch, POLLIN, 0 } };
	const struct pollfd *scrapers;
	int64_t left_s = until_s - (int64_t)time(NULL);
	nfds_t n = 2;
	size_t i;

	if (w->troubled)
		p[1].fd = -1; /* the attempts to record are changes of the journal themselves */
	for (i = 0; i < QUEUE_PROCESSES_MAX; i++)
		if (w->child[i].job != NULL && w->child[i].process.out_fd >= 0)
			p[n++] = (struct pollfd){ w->child[i].process.out_fd, POLLIN, 0 };
	scrapers = p + n;
	n += scrape_polled(w->scrape, p + n);
	(void)poll(p, n, left_s <= 0 ? 100 : left_s >= LOOK_MS / 1000 ? LOOK_MS : (int)left_s * 1000);
	drain(w->events);
	drain(w->watch);
	scrape_step(w->scrape, scrapers, jobs_metrics, w->s);
}

/* Writes the metrics, at most once a second; tells the first of successive failures. */
static void publish(struct jobs_world *w, int64_t now_s)
{
	struct ptcp_err e;
	bool failed;

	if (w->a->metrics == NULL || w->published_s == now_s)
		return;
	w->published_s = now_s;
	if ((failed = prometheus_write(w->a->metrics, jobs_metrics, w->s, &e) < 0) && !w->unpublished)
		terminal_line("ptcp: warning: %s", e.msg);
	w->unpublished = failed;
}

static int loop(struct jobs_world *w, bool stay, struct ptcp_err *e)
{
	int64_t until_s;
	int r;

	for (;;) {
		if ((r = queue_journal_follow(&w->s->journal, &w->s->queue, e)) < 0)
			return r;
		until_s = queue_run_step(w->run, (int64_t)time(NULL));
		publish(w, (int64_t)time(NULL));
		if (queue_run_idle(w->run, (int64_t)time(NULL)) && (!stay || process_stopping()))
			return 0;
		rest(w, until_s);
		if (process_stopping()) /* first: the processes may have got the same signal */
			queue_run_stop(w->run);
		look_at_children(w);
		look_at_hooks(w);
	}
}

/* ---- Beginning and end ---- */

static int lock_run(const char *dir, struct ptcp_err *e)
{
	char path[PATH_MAX], pid[24] = "";
	int fd;

	snprintf(path, sizeof path, "%s/run.lock", dir);
	if ((fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) < 0)
		return err_sys(e, PTCP_ECONFIG, "%s: cannot open the lock of the queue", path);
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		if (read(fd, pid, sizeof pid - 1) > 0)
			pid[strspn(pid, "0123456789")] = '\0';
		fd_close(&fd);
		return err_set(e, PTCP_ECONFIG,
		    "%s: another ptcp jobs run uses this queue (process %s; end it, or name "
		    "another directory by --state)", dir, pid[0] != '\0' ? pid : "unknown");
	}
	snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
	if (ftruncate(fd, 0) == 0)
		(void)!write(fd, pid, strlen(pid));
	return fd;
}

/* An attempt to lock would refuse a run that begins at that moment. */
bool jobs_are_run(const char *dir)
{
	char path[PATH_MAX], pid[24] = "";
	bool known;
	int fd;

	snprintf(path, sizeof path, "%s/run.lock", dir);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)) < 0)
		return false;
	known = read(fd, pid, sizeof pid - 1) > 0 && atol(pid) > 0;
	fd_close(&fd);
	return known && kill((pid_t)atol(pid), 0) == 0;
}

static int make_folders(const char *dir, struct ptcp_err *e)
{
	static const char *const names[] = { "log", "failed" };
	char path[USERDIR_BYTES + 16];
	size_t i;
	int r = 0;

	for (i = 0; i < 2 && r == 0; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, names[i]);
		r = userdir_make(path, e);
	}
	return r;
}

static int open_events(struct jobs_world *w, struct ptcp_err *e)
{
	struct sigaction child = { .sa_handler = on_child, .sa_flags = SA_RESTART };

	if ((w->events = signal_events = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0 ||
	    (w->watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) < 0 ||
	    inotify_add_watch(w->watch, w->s->journal.path, IN_MODIFY) < 0)
		return err_sys(e, PTCP_ENOMEM, "cannot wait for events");
	sigemptyset(&child.sa_mask);
	sigaction(SIGCHLD, &child, NULL);
	process_set_stop(on_stop, w);
	return 0;
}

/* The result of a run. */
static int outcome(const struct jobs *s, struct ptcp_err *e)
{
	const struct job_queue *q = &s->queue;
	size_t failed = 0, held = 0, i;

	if (process_stopping())
		return err_set(e, PTCP_ECANCELED, "%s: interrupted (the same command goes on)", s->dir);
	for (i = 0; i < q->n; i++) {
		failed += q->job[i]->state == QUEUE_FAILED;
		held += q->job[i]->state == QUEUE_WAITING;
	}
	if (failed + held == 0)
		return 0;
	return err_set(e, PTCP_EPARTIAL, "%s: %zu job%s failed, and %zu wait%s for them or for an order (ptcp jobs "
	    "status shows all, ptcp jobs retry repeats)", s->dir, failed, plural(failed), held, singular(held));
}

int jobs_run(struct jobs *s, const struct jobs_args *a, struct ptcp_err *e)
{
	char own[PATH_MAX];
	struct jobs_world w = { .s = s, .a = a, .events = -1, .watch = -1,
		.program = a->program != NULL ? a->program : process_own_path(own, sizeof own) };
	const struct queue_world world = { world_prepare, world_start, world_stop, world_skip, world_lock, world_record,
		world_changed, world_overdue,
		world_trouble, &w };
	int lock = lock_run(s->dir, e), r = lock;
	size_t i;

	if (r >= 0 && w.program == NULL)
		r = err_set(e, PTCP_EIO, "the path of this program is not known (mount /proc)");
	if (r >= 0 && a->metrics_listen != NULL)
		r = scrape_new(&w.scrape, a->metrics_listen, e);
	if (r >= 0 && w.scrape != NULL && !s->quiet)
		terminal_line("ptcp: metrics at http://%s/metrics", scrape_address(w.scrape));
	if (r >= 0 && (r = make_folders(s->dir, e)) == 0 && (r = open_events(&w, e)) == 0 &&
	    (r = queue_run_new(&w.run, &s->queue, a->at_once, &world, e)) == 0 &&
	    (r = loop(&w, a->stay, e)) == 0)
		r = outcome(s, e);
	process_set_stop(NULL, NULL);
	signal(SIGCHLD, SIG_DFL);
	publish(&w, 0);
	scrape_free(w.scrape);
	end_hooks(&w);
	for (i = 0; i < QUEUE_PROCESSES_MAX; i++)
		if (w.child[i].job != NULL)
			release(&w.child[i]);
	queue_run_free(w.run);
	fd_close(&w.events);
	fd_close(&w.watch);
	fd_close(&lock);
	return r;
}
