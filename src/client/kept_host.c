/* Connections to hosts that outlive a task: the next task on files of the same host takes one over, without a new
 * connection and its handshake. */
#include "client/kept_host.h"

#include <pthread.h>
#include <stdio.h>
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
	char *terms;
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
	while (h->n > 0) {
		free(h->kept[--h->n].terms);
		if (h->pid == getpid())
			chan_free(h->kept[h->n].chan);
	}
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

/* The host, identity and fingerprints of a connection; to be freed. NULL: without memory. */
static char *terms_of(const struct ptcp_task *t)
{
	const struct ptcp_transfer_opts *o = &t->o;
	char *text = NULL;
	size_t bytes, i;
	FILE *f = open_memstream(&text, &bytes);

	if (f == NULL)
		return NULL;
	fprintf(f, "%s\n%s\n%d", t->known_as, o->config_dir != NULL ? o->config_dir : "", o->family);
	for (i = 0; i < o->n_fingerprints; i++)
		fprintf(f, "\n%s", o->fingerprints[i]);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

static struct chan *take_at(struct ptcp_host *h, unsigned i)
{
	struct chan *c = h->kept[i].chan;

	free(h->kept[i].terms);
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
	char *terms;
	unsigned i;

	if (h == NULL || h->pid != getpid() || (terms = terms_of(t)) == NULL)
		return NULL;
	pthread_mutex_lock(&h->lock);
	drop_old(h, mono_now());
	for (i = h->n; i-- > 0 && c == NULL;)
		if (strcmp(h->kept[i].terms, terms) == 0)
			c = take_at(h, i);
	pthread_mutex_unlock(&h->lock);
	free(terms);
	t->remote_job->reused = c != NULL;
	return c;
}

void host_give(struct ptcp_task *t)
{
	struct remote_job *j = t->remote_job;
	struct ptcp_host *h = j != NULL ? j->host : NULL;
	char *terms;

	if (h == NULL || !j->complete || t->chan == NULL || t->target.ssh || h->pid != getpid() ||
	    !chan_is_idle(t->chan) || (terms = terms_of(t)) == NULL)
		return;
	pthread_mutex_lock(&h->lock);
	drop_old(h, mono_now());
	if (h->n < KEPT_MAX) {
		chan_detach(t->chan);
		h->kept[h->n++] = (struct kept){ .chan = t->chan, .terms = terms, .since = mono_now() };
		t->chan = NULL;
		terms = NULL;
	}
	pthread_mutex_unlock(&h->lock);
	free(terms);
}
