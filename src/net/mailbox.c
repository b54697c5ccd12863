#include "net/mailbox.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/list.h"

struct mailbox {
	pthread_mutex_t lock; /* guards all below */
	struct loop *loop;
	struct msg *first, **last;
	unsigned n;
	struct msg wake;      /* runs the messages, */
	bool posted;          /* posted, or running */
	bool closed;          /* freed once it has run */
};

static void deliver(struct msg *wake);

int mailbox_new(struct mailbox **out, struct loop *l, struct ptcp_err *e)
{
	struct mailbox *b = calloc(1, sizeof *b);

	if (b == NULL)
		return err_nomem(e);
	pthread_mutex_init(&b->lock, NULL);
	b->loop = l;
	b->last = &b->first;
	b->wake.run = deliver;
	*out = b;
	return 0;
}

static void release(struct mailbox *b)
{
	pthread_mutex_destroy(&b->lock);
	free(b);
}

static struct msg *mailbox_take(struct mailbox *b)
{
	struct msg *m = b->first;

	if ((b->first = m->next) == NULL)
		b->last = &b->first;
	b->n--;
	return m;
}

/* As a loop: messages posted meanwhile wait for the next turn. */
static void deliver(struct msg *wake)
{
	struct mailbox *b = CONTAINER_OF(wake, struct mailbox, wake);
	struct loop *here;
	struct msg *m;
	unsigned left;
	bool closed;

	pthread_mutex_lock(&b->lock);
	here = b->loop;
	for (left = b->n; left > 0 && b->loop == here; left--) {
		m = mailbox_take(b);
		pthread_mutex_unlock(&b->lock);
		m->run(m);
		pthread_mutex_lock(&b->lock);
	}
	closed = b->closed;
	if (!closed && b->n > 0)
		loop_post(b->loop, &b->wake);
	else
		b->posted = false;
	pthread_mutex_unlock(&b->lock);
	if (closed)
		release(b);
}

void mailbox_post(struct mailbox *b, struct msg *m)
{
	m->next = NULL;
	pthread_mutex_lock(&b->lock);
	*b->last = m;
	b->last = &m->next;
	b->n++;
	if (!b->posted) {
		b->posted = true;
		loop_post(b->loop, &b->wake);
	}
	pthread_mutex_unlock(&b->lock);
}

void mailbox_move(struct mailbox *b, struct loop *to, struct msg *first)
{
	pthread_mutex_lock(&b->lock);
	b->loop = to;
	if ((first->next = b->first) == NULL)
		b->last = &first->next;
	b->first = first;
	b->n++;
	pthread_mutex_unlock(&b->lock);
}

void mailbox_free(struct mailbox *b)
{
	bool posted;

	if (b == NULL)
		return;
	pthread_mutex_lock(&b->lock);
	b->closed = posted = b->posted;
	pthread_mutex_unlock(&b->lock);
	if (!posted)
		release(b);
}
