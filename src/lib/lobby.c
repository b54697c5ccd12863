#include "lib/lobby.h"

#include <unistd.h>

#include "core/err.h"
#include "core/units.h"
#include "lib/guest.h"
#include "store/fds.h"

#define TOLD_NS (60 * NS_PER_S)

int lobby_init(struct lobby *l, const struct lobby_opts *o, struct ptcp_err *e)
{
	*l = (struct lobby){ .o = *o };
	list_init(&l->guests);
	return door_new(&l->door, fds_strangers(o->waiting), o->sessions, o->streams, e);
}

void lobby_fini(struct lobby *l)
{
	door_free(l->door);
	l->door = NULL;
}

/* That is said now and then: a flood must not fill the log. */
static void shut_out(struct lobby *l, int fd, const char *address)
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

static void make_room(struct lobby *l, const struct source *crowded)
{
	struct list *i;

	for (i = l->guests.next; i != &l->guests; i = i->next) {
		struct guest *g = CONTAINER_OF(i, struct guest, in_list);

		if (g->o.from == crowded) {
			guest_free(g);
			return;
		}
	}
}

void lobby_take(struct lobby *l, int fd, const char *address, bool one_channel)
{
	struct source *from = door_knock(l->door, address, mono_now()), *crowded;
	struct guest_opts o = { .host = l->o.host, .fd = fd, .address = address, .from = from,
		.one_channel = one_channel, .lobby = l, .timeout_ns = l->o.timeout_ns, .ops = l->o.ops,
		.arg = l->o.arg };
	struct ptcp_err why;

	if (from == NULL) {
		shut_out(l, fd, address);
		return;
	}
	/* In a flood the oldest goes, so that a client's fast handshake gets through. */
	if ((crowded = door_crowded(l->door, from)) != NULL)
		make_room(l, crowded);
	if (guest_new(&o, &why) < 0) {
		log_at(&l->o.host->log, LOG_WARN, "server", "event=failed from=%s why=\"%s\"", address, why.msg);
		door_leave(l->door, from, DOOR_LOST);
	} else {
		l->n++;
		fds_count(1);
	}
}

void lobby_left(struct lobby *l, struct source *from, enum door_end how)
{
	l->n--;
	fds_count(-1);
	door_leave(l->door, from, how);
}

void lobby_empty(struct lobby *l)
{
	while (!list_empty(&l->guests))
		guest_free(CONTAINER_OF(l->guests.next, struct guest, in_list));
}
