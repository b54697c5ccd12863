/* Where a server listens: addresses to bind, and sockets that somebody has bound already. */
#include <fcntl.h>
#include <stdio.h>

#include "core/err.h"
#include "server/server_impl.h"

static void on_accepted(void *arg, int fd, const char *address)
{
	struct ptcp_server *s = arg;

	s->sessions.past.connections++;
	pending_take(&s->pending, fd, address, false);
}

static int take(struct ptcp_server *s, int fd, struct listener **out, struct ptcp_err *e)
{
	if ((fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)) < 0)
		return err_sys(e, PTCP_ECONFIG, "a socket that was passed");
	return listener_take(out, s->loop, fd, on_accepted, s, e);
}

static void note(struct ptcp_server *s, struct listener *l)
{
	struct place_listened *p = &s->at[s->n_at++];

	p->listener = l;
	snprintf(p->address, sizeof p->address, "%s", listener_address(l));
	p->port = listener_port(l);
}

int server_listen(struct ptcp_server *s, const char *where, struct ptcp_err *e)
{
	struct listener *l;
	int r;

	if ((r = listener_new(&l, s->loop, where, PTCP_PORT, on_accepted, s, e)) == 0)
		note(s, l);
	return r;
}

int server_listen_all(struct ptcp_server *s, const struct ptcp_server_opts *o, struct ptcp_err *e)
{
	struct listener *l;
	size_t i;
	int r = 0;

	for (i = 0; i < o->n_sockets && r == 0; i++)
		if ((r = take(s, o->sockets[i], &l, e)) == 0)
			note(s, l);
	if (r == 0 && (o->listen != NULL || o->n_sockets + o->n_also_listen == 0))
		r = server_listen(s, o->listen, e);
	for (i = 0; i < o->n_also_listen && r == 0; i++)
		r = server_listen(s, o->also_listen[i], e);
	return r;
}

void server_listen_end(struct ptcp_server *s)
{
	unsigned i;

	for (i = 0; i < s->n_at; i++) {
		listener_free(s->at[i].listener);
		s->at[i].listener = NULL;
	}
}

const char *ptcp_server_address(const struct ptcp_server *s) { return s->at[0].address; }
unsigned ptcp_server_port(const struct ptcp_server *s) { return s->at[0].port; }

bool ptcp_server_listening(const struct ptcp_server *s, size_t i, const char **address, unsigned *port)
{
	if (i >= s->n_at)
		return false;
	*address = s->at[i].address;
	*port = s->at[i].port;
	return true;
}
