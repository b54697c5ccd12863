/* Receives in a thread, while the main thread shows the progress, and cancels the transfer after some seconds.
 *
 *	cc -pthread -o threads threads.c $(pkg-config --cflags --libs libptcp)
 *	./threads SHA256:.. ptcp://HOST/PATH DIR SECONDS [RATE] */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <ptcp/ptcp.h>

struct job {
	struct ptcp_task *task;
	int result;
	struct ptcp_err err;
	pthread_mutex_t lock; /* of the next two: the event callback runs in the thread of the task */
	struct ptcp_progress progress;
	bool over;
};

static void on_event(void *arg, const struct ptcp_event *ev)
{
	struct job *job = arg;

	if (ev->type != PTCP_EVENT_PROGRESS)
		return;
	pthread_mutex_lock(&job->lock);
	job->progress = ev->progress; /* the event itself is valid during the call only */
	pthread_mutex_unlock(&job->lock);
}

static void *work(void *arg)
{
	struct job *job = arg;

	job->result = ptcp_task_run(job->task, &job->err);
	pthread_mutex_lock(&job->lock);
	job->over = true;
	pthread_mutex_unlock(&job->lock);
	return NULL;
}

/* Shows the progress ten times per second, for `seconds` at most; any thread may cancel a task, in any state. */
static void watch(struct job *job, double seconds)
{
	const struct timespec pause = { 0, 100000000 };
	bool over = false;

	for (; !over && seconds > 0; seconds -= 0.1) {
		pthread_mutex_lock(&job->lock);
		over = job->over;
		printf("\r%llu bytes", (unsigned long long)job->progress.bytes);
		pthread_mutex_unlock(&job->lock);
		fflush(stdout);
		nanosleep(&pause, NULL);
	}
	printf("\n");
	if (!over)
		ptcp_task_cancel(job->task);
}

int main(int argc, char **argv)
{
	struct job job = { .lock = PTHREAD_MUTEX_INITIALIZER };
	struct ptcp_transfer_opts opts;
	const char *pin = argv[1], *source = argc > 2 ? argv[2] : NULL;
	pthread_t thread;

	if (argc != 5 && argc != 6) {
		fprintf(stderr, "usage: threads FINGERPRINT ptcp://HOST/PATH DIR SECONDS [RATE]\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	ptcp_transfer_opts_init(&opts);
	opts.fingerprints = &pin;
	opts.n_fingerprints = 1;
	opts.event = on_event;
	opts.arg = &job;
	opts.rate = argc == 6 ? argv[5] : NULL;
	if (ptcp_recv_new(&job.task, &opts, &source, 1, argv[3], &job.err) < 0 ||
	    pthread_create(&thread, NULL, work, &job) != 0) {
		fprintf(stderr, "%s\n", job.task == NULL ? job.err.msg : "no thread");
		return 1;
	}
	watch(&job, atof(argv[4]));
	pthread_join(thread, NULL);
	ptcp_task_free(job.task);
	if (job.result < 0)
		fprintf(stderr, "%s: %s\n", ptcp_err_name(job.result), job.err.msg);
	return job.result < 0;
}
