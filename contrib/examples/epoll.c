/* Sends several files or directories at once, each as a task of its own, in one loop of epoll. SIGINT cancels.
 *
 *	cc -o epoll epoll.c $(pkg-config --cflags --libs libptcp)
 *	./epoll SHA256:.. ptcp://HOST/DIR/ SOURCE... */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <ptcp/ptcp.h>

#define TASKS_MAX 64

static struct ptcp_task *volatile tasks[TASKS_MAX];

static void on_interrupt(int number)
{
	size_t i;

	(void)number;
	for (i = 0; i < TASKS_MAX; i++)
		if (tasks[i] != NULL)
			ptcp_task_cancel(tasks[i]); /* may be called from signal handlers */
}

/* The next time-out of all tasks, in milliseconds, as epoll_wait() takes it. */
static int next_timeout(size_t n)
{
	int ms, least = -1;
	size_t i;

	for (i = 0; i < n; i++)
		if (tasks[i] != NULL && (ms = ptcp_task_timeout_ms(tasks[i])) >= 0 && (least < 0 || ms < least))
			least = ms;
	return least;
}

/* One step of a task; at its end, prints the result and returns true. */
static bool step(int epoll, size_t i, const char *name, int *failed)
{
	struct ptcp_err e;
	int r = ptcp_task_step(tasks[i], &e);

	if (r > 0)
		return false;
	if (r < 0)
		fprintf(stderr, "%s: %s: %s\n", name, ptcp_err_name(r), e.msg);
	else
		printf("%s: sent\n", name);
	*failed += r < 0;
	epoll_ctl(epoll, EPOLL_CTL_DEL, ptcp_task_fd(tasks[i]), NULL);
	return true;
}

static int run(int epoll, size_t n, char **names)
{
	struct epoll_event ready[TASKS_MAX];
	size_t left = n, i;
	int failed = 0;

	while (left > 0) {
		/* tasks have time-outs as well as descriptors: a step without need does no harm */
		if (epoll_wait(epoll, ready, TASKS_MAX, next_timeout(n)) < 0 && errno != EINTR)
			return -1;
		for (i = 0; i < n; i++)
			if (tasks[i] != NULL && step(epoll, i, names[i], &failed)) {
				struct ptcp_task *t = tasks[i];

				tasks[i] = NULL; /* not canceled from here on */
				ptcp_task_free(t);
				left--;
			}
	}
	return failed;
}

static int start(int epoll, size_t i, const struct ptcp_transfer_opts *opts, const char *source, const char *dest)
{
	struct epoll_event watch = { .events = EPOLLIN };
	struct ptcp_task *t = NULL;
	struct ptcp_err e;

	if (ptcp_send_new(&t, opts, &source, 1, dest, &e) < 0 || ptcp_task_start(t, &e) < 0) {
		fprintf(stderr, "%s: %s\n", source, e.msg);
		ptcp_task_free(t);
		return -1;
	}
	tasks[i] = t;
	return epoll_ctl(epoll, EPOLL_CTL_ADD, ptcp_task_fd(t), &watch);
}

int main(int argc, char **argv)
{
	struct sigaction interrupt = { .sa_handler = on_interrupt }; /* signal() may last for one signal only */
	struct ptcp_transfer_opts opts;
	const char *pin = argv[1];
	int epoll = epoll_create1(EPOLL_CLOEXEC), i, failed;

	if (argc < 4 || argc - 3 > TASKS_MAX || epoll < 0) {
		fprintf(stderr, "usage: epoll FINGERPRINT ptcp://HOST/DIR/ SOURCE...\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	sigaction(SIGINT, &interrupt, NULL);
	ptcp_transfer_opts_init(&opts);
	opts.fingerprints = &pin;
	opts.n_fingerprints = 1;
	for (i = 3; i < argc; i++)
		if (start(epoll, (size_t)i - 3, &opts, argv[i], argv[2]) < 0)
			return 1;
	failed = run(epoll, (size_t)argc - 3, argv + 3);
	close(epoll);
	return failed != 0;
}
