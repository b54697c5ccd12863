/* ptcp jobs: a queue of transfers on disk. cmd_jobs.c reads the command line, jobs_run.c is the world of a queue_run:
 * processes, files and the clock; jobs_show.c prints. */
#ifndef CLI_JOBS_JOBS_IMPL_H
#define CLI_JOBS_JOBS_IMPL_H

#include <jansson.h>

#include "cli/options.h"
#include "core/userdir.h"
#include "queue/queue_file.h"
#include "queue/queue_journal.h"

struct jobs_args {
	const char *state;   /* --state; NULL: the user's */
	unsigned at_once;
	bool stay, json, quiet, html;
	int64_t since_s;     /* jobs report */
	const char *name, *pairs, *start, *deadline; /* options of jobs add */
	const char *on_success, *on_failure, *on_overdue; /* with jobs run: defaults for all jobs */
	const char *metrics, *metrics_listen;
	const char *blackout; /* windows of the job, or, with jobs run, of the queue */
	struct opt_texts options, after;
	int priority;
	unsigned retries;
	const char *program; /* carries out the transfers; NULL: this one */
};

/* An open queue. */
struct jobs {
	char dir[USERDIR_BYTES];
	struct job_queue queue;
	struct queue_journal journal;
	int64_t now_s; /* time of the beginning of this program */
	bool json, quiet;
};

/* Adds the jobs of a file, unless `file` is NULL, and runs the queue: 0 if all jobs are done, else PTCP_EPARTIAL. */
int jobs_run(struct jobs *s, const struct jobs_args *a, struct ptcp_err *e);

/* Whether a process runs the queue, as far as its process number tells. */
bool jobs_are_run(const char *dir);

/* The object for a job. */
json_t *jobs_json(const struct jobs *s, const struct queue_job *j);
/* Prints the state of a job on stdout: a JSON object, or a line. */
void jobs_show(const struct jobs *s, const struct queue_job *j);

/* Prints the report about the time since queue.since_s on stdout. */
void jobs_report(const struct jobs *s, bool html);

/* Writes the metrics of the queue for Prometheus; `s` is a struct jobs. */
void jobs_metrics(FILE *f, void *s);

/* "ptcp jobs carry PARENT NAME DIRECTORY COMMAND ..", for processes of the queue: runs a command, until the parent
 * ends, by the name of the job, unless a running command has the name. */
#define JOBS_CARRY "carry"

/* The command line of a process, ended by NULL; texts are borrowed, except for `owned`. `open_s`: the time until the
 * deadline, without windows in which nothing runs. PTCP_EUSAGE: no operand is remote. */
struct jobs_command {
	const char **argv;
	size_t n;
	char parent[24];
	struct queue_texts owned;
};
int jobs_command_make(struct jobs_command *c, const char *program, const struct queue_job *j,
    const struct queue_texts *sources, const char *dest, int64_t open_s, struct ptcp_err *e);
void jobs_command_fini(struct jobs_command *c); /* zeroed is fine */

/* A queue_check_fn: whether send and recv have the options of a task. */
int jobs_check(void *arg, const char *name, struct queue_task *t, struct ptcp_err *e);

#endif
