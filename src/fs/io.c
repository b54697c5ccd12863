#include "fs/io.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/err.h"
#include "core/thread.h"

struct io {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct io_job *first, **last;
	bool stop;
	unsigned n, max, idle, queued; /* threads, of these without work; jobs */
	pthread_t threads[];
};

static void *worker(void *arg)
{
	struct io *io = arg;
	struct io_job *job;

	pthread_mutex_lock(&io->lock);
	for (;;) {
		if ((job = io->first) == NULL) {
			if (io->stop)
				break;
			io->idle++;
			pthread_cond_wait(&io->wake, &io->lock);
			io->idle--;
			continue;
		}
		if ((io->first = job->next) == NULL)
			io->last = &io->first;
		io->queued--;
		pthread_mutex_unlock(&io->lock);
		job->run(job);
		pthread_mutex_lock(&io->lock);
	}
	pthread_mutex_unlock(&io->lock);
	return NULL;
}

int io_new(struct io **out, unsigned max_threads, struct ptcp_err *e)
{
	struct io *io = calloc(1, sizeof *io + max_threads * sizeof io->threads[0]);
	int r;

	if (io == NULL)
		return err_nomem(e);
	pthread_mutex_init(&io->lock, NULL);
	pthread_cond_init(&io->wake, NULL);
	io->last = &io->first;
	io->max = max_threads;
	if ((r = thread_start(&io->threads[0], worker, io, e)) < 0) {
		io_free(io);
		return r;
	}
	io->n = 1;
	*out = io;
	return 0;
}

void io_submit(struct io *io, struct io_job *job)
{
	job->next = NULL;
	pthread_mutex_lock(&io->lock);
	*io->last = job;
	io->last = &job->next;
	if (++io->queued > io->idle && io->n < io->max && !io->stop &&
	    thread_start(&io->threads[io->n], worker, io, NULL) == 0)
		io->n++;
	pthread_mutex_unlock(&io->lock);
	pthread_cond_signal(&io->wake);
}

void io_free(struct io *io)
{
	unsigned i;

	if (io == NULL)
		return;
	pthread_mutex_lock(&io->lock);
	io->stop = true;
	pthread_mutex_unlock(&io->lock);
	pthread_cond_broadcast(&io->wake);
	for (i = 0; i < io->n; i++)
		pthread_join(io->threads[i], NULL);
	pthread_cond_destroy(&io->wake);
	pthread_mutex_destroy(&io->lock);
	free(io);
}
