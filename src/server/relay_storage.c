#include "server/relay_storage.h"

#include <stdlib.h>
#include <string.h>

#include "core/units.h"

/* Longer than the ends wait for each other (ENGINE_BUSY_TIMEOUTS): who is left then has forgotten about it. */
#define IDLE_NS (4 * 3600 * NS_PER_S)

/* Of a client with connections that may store something. */
struct lodger {
	struct list in_list;
	char *client;
	unsigned n;
	struct spool_quota room;
};

struct hold {
	struct lodger *lodger;
	struct spool_quota room;
	struct splice_spool splice;
};

void relay_storage_init(struct relay_storage *h, uint64_t max_bytes, const char *dir, struct io *io)
{
	*h = (struct relay_storage){ .all.max_bytes = max_bytes, .dir = dir, .io = io };
	list_init(&h->clients);
}

static struct lodger *lodger_of(struct relay_storage *h, const char *client)
{
	struct lodger *c;
	struct list *l;

	for (l = h->clients.next; l != &h->clients; l = l->next)
		if (strcmp(CONTAINER_OF(l, struct lodger, in_list)->client, client) == 0)
			return CONTAINER_OF(l, struct lodger, in_list);
	if ((c = calloc(1, sizeof *c)) == NULL || (c->client = strdup(client)) == NULL) {
		free(c);
		return NULL;
	}
	c->room = (struct spool_quota){ .max_bytes = h->all.max_bytes / 2, .parent = &h->all };
	list_append(&h->clients, &c->in_list);
	return c;
}

/* ---- Elsewhere: on the store's threads ---- */

struct trip {
	struct io_job io;
	struct splice_job *job;
};

static void on_io(struct io_job *io)
{
	struct splice_job *job = CONTAINER_OF(io, struct trip, io)->job;

	free(CONTAINER_OF(io, struct trip, io));
	job->run(job);
}

/* Without memory the loop waits for the disk. */
static void elsewhere(void *arg, struct splice_job *job)
{
	struct trip *t = malloc(sizeof *t);

	if (t == NULL) {
		job->run(job);
		return;
	}
	t->job = job;
	t->io.run = on_io;
	io_submit(arg, &t->io);
}

/* ---- One connection ---- */

struct hold *relay_storage_take(struct relay_storage *h, const char *client, uint64_t asked_bytes)
{
	struct lodger *c;
	struct hold *d;

	if (asked_bytes == 0 || h->all.max_bytes == 0 || (d = calloc(1, sizeof *d)) == NULL)
		return NULL;
	if ((c = lodger_of(h, client)) == NULL) {
		free(d);
		return NULL;
	}
	c->n++;
	d->lodger = c;
	d->room = (struct spool_quota){ .max_bytes = asked_bytes < c->room.max_bytes ? asked_bytes : c->room.max_bytes,
		.parent = &c->room };
	if (d->room.max_bytes < SPOOL_GRAIN)
		d->room.max_bytes = SPOOL_GRAIN;
	d->splice = (struct splice_spool){ .dir = h->dir, .quota = &d->room, .idle_ns = IDLE_NS, .submit = elsewhere,
		.arg = h->io };
	return d;
}

const struct splice_spool *relay_storage_of(const struct hold *d)
{
	return d != NULL ? &d->splice : NULL;
}

void relay_storage_give(struct hold *d)
{
	struct lodger *c;

	if (d == NULL)
		return;
	c = d->lodger;
	free(d);
	if (--c->n > 0)
		return;
	list_remove(&c->in_list);
	free(c->client);
	free(c);
}
