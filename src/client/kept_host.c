/* Connections to hosts that outlive a task: the next task on files of the same host takes one over, without a new
 * connection and its handshake. */
#include "client/kept_host.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/remote_job_impl.h"
#include "core/err.h"
#include "core/units.h"

enum { KEPT_MAX = 8 }; /* connections of one handle: as many concurrent tasks profit */
static const uint64_t kept_ns = 45 * NS_PER_S; /* the server closes an unused connection after a minute */

struct kept {
	struct chan *chan; /* attached to no loop */
	char name[REMOTE_USER_BYTES + SOCK_HOST_BYTES];
	struct mono since;
};

struct ptcp_host {
	pthread_mutex_t lock;
	pid_t pid;            /* a child of fork() uses none of the connections */
	struct kept kept[KEPT_MAX];
	unsigned n;
};

int ptcp_host_open(struct ptcp_host **out, struct ptcp_err *e)
{
	struct ptcp_host *h = calloc(1, sizeof *h);

	if (h == NULL)
		return err_nomem(e);
	pthread_mutex_init(&h->lock, NULL);
	h->pid = getpid();
	*out = h;
	return 0;
}

void ptcp_host_close(struct ptcp_host *h)
{
	if (h == NULL)
		return;
	while (h->pid == getpid() && h->n > 0)
		chan_free(h->kept[--h->n].chan);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

int ptcp_task_keep(struct ptcp_task *t, struct ptcp_host *h, struct ptcp_err *e)
{
	if (t->remote_job == NULL || !remote_job_is_on_files(t->remote_job) || t->ran)
		return err_set(e, PTCP_EUSAGE, "a task that keeps its connection works on remote files, and has not "
		    "begun (keep no other)");
	t->remote_job->host = h;
	return 0;
}

/* ---- Connections ---- */

/* Whether the peer has neither closed the connection nor sent anything. */
static bool is_quiet(const struct chan *c)
{
	uint8_t byte;

	return recv(chan_fd(c), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
}

static struct chan *take_at(struct ptcp_host *h, unsigned i)
{
	struct chan *c = h->kept[i].chan;

	h->kept[i] = h->kept[--h->n];
	return c;
}

static void drop_old(struct ptcp_host *h, struct mono now)
{
	unsigned i = h->n;

	while (i-- > 0)
		if (mono_diff_ns(now, h->kept[i].since) >= kept_ns || !is_quiet(h->kept[i].chan))
			chan_free(take_at(h, i));
}

struct chan *host_take(struct ptcp_task *t)
{
	struct ptcp_host *h = t->remote_job->host;
	struct chan *c = NULL;
	unsigned i;

	if (h == NULL || h->pid != getpid())
		return NULL;
	pthread_mutex_lock(&h->lock);
	drop_old(h, mono_now());
	for (i = h->n; i-- > 0 && c == NULL;)
		if (strcmp(h->kept[i].name, t->known_as) == 0)
			c = take_at(h, i);
	pthread_mutex_unlock(&h->lock);
	t->remote_job->reused = c != NULL;
	return c;
}

void host_give(struct ptcp_task *t)
{
	struct remote_job *j = t->remote_job;
	struct ptcp_host *h = j != NULL ? j->host : NULL;
	struct kept *k;

	if (h == NULL || !j->complete || t->chan == NULL || t->target.ssh || h->pid != getpid() ||
	    !chan_is_idle(t->chan))
		return;
	pthread_mutex_lock(&h->lock);
	drop_old(h, mono_now());
	if (h->n < KEPT_MAX) {
		chan_detach(t->chan);
		k = &h->kept[h->n++];
		*k = (struct kept){ .chan = t->chan, .since = mono_now() };
		strcpy(k->name, t->known_as);
		t->chan = NULL;
	}
	pthread_mutex_unlock(&h->lock);
}
