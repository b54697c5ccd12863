#include "conn/pending.h"

#include <unistd.h>

#include "conn/inbound.h"
#include "core/err.h"
#include "core/units.h"
#include "store/fd_budget.h"

#define TOLD_NS (60 * NS_PER_S)

int pending_init(struct pending *l, const struct pending_opts *o, struct ptcp_err *e)
{
	*l = (struct pending){ .o = *o };
	list_init(&l->guests);
	return admission_new(&l->admission, fd_budget_unauthenticated(o->waiting), o->sessions, o->streams, e);
}

void pending_fini(struct pending *l)
{
	admission_free(l->admission);
	l->admission = NULL;
}

/* That is said now and then: a flood must not fill the log. */
static void shut_out(struct pending *l, int fd, const char *address)
{
	struct mono now = mono_now();

	close(fd);
	l->shut_out++;
	if (l->shut_out > 1 && mono_diff_ns(now, l->told) < TOLD_NS)
		return;
	l->told = now;
	log_at(&l->o.host->log, LOG_WARN, "server", "event=shut-out from=%s connections=%llu why=\"too many "
	    "from there that come to nothing\"", address, (unsigned long long)l->shut_out);
}

static void make_room(struct pending *l, const struct peer_address *crowded)
{
	struct list *i;

	for (i = l->guests.next; i != &l->guests; i = i->next) {
		struct inbound *g = CONTAINER_OF(i, struct inbound, in_list);

		if (g->o.from == crowded) {
			inbound_free(g);
			return;
		}
	}
}

void pending_take(struct pending *l, int fd, const char *address, bool one_channel)
{
	struct peer_address *from = admission_begin(l->admission, address, mono_now()), *crowded;
	struct inbound_opts o = { .host = l->o.host, .fd = fd, .address = address, .from = from,
		.one_channel = one_channel, .pending = l, .timeout_ns = l->o.timeout_ns, .ops = l->o.ops,
		.arg = l->o.arg };
	struct ptcp_err why;

	if (from == NULL) {
		shut_out(l, fd, address);
		return;
	}
	/* In a flood the oldest goes, so that a client's fast handshake gets through. */
	if ((crowded = admission_excess(l->admission, from)) != NULL)
		make_room(l, crowded);
	if (inbound_new(&o, &why) < 0) {
		log_at(&l->o.host->log, LOG_WARN, "server", "event=failed from=%s why=\"%s\"", address, why.msg);
		admission_leave(l->admission, from, ADMISSION_LOST);
	} else {
		l->n++;
		fd_budget_count(1);
	}
}

void pending_left(struct pending *l, struct peer_address *from, enum admission_end how)
{
	l->n--;
	fd_budget_count(-1);
	admission_leave(l->admission, from, how);
}

void pending_empty(struct pending *l)
{
	while (!list_empty(&l->guests))
		inbound_free(CONTAINER_OF(l->guests.next, struct inbound, in_list));
}
