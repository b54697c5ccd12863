#include "net/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/fd.h"
#include "core/text.h"
#include "net/loop_uv.h"

#define EXIT_MS 500  /* time until SIGTERM, */
#define TERM_MS 2000 /* time from then until SIGKILL */

struct child {
	uv_process_t uv;
	uv_timer_t timer;       /* runs after child_free() */
	struct child_opts o;
	bool freed, over, killed;
	unsigned n_closing;
};

static void on_handle_closed(uv_handle_t *h)
{
	struct child *c = h->data;

	if (--c->n_closing == 0)
		free(c);
}

static void release(struct child *c)
{
	if (!c->freed || !c->over)
		return;
	c->n_closing = 2;
	uv_close((uv_handle_t *)&c->uv, on_handle_closed);
	uv_close((uv_handle_t *)&c->timer, on_handle_closed);
}

static void send_signal(struct child *c, int signal)
{
	if (c->o.apart)
		kill(-c->uv.pid, signal);
	else
		uv_process_kill(&c->uv, signal);
}

static void on_child_ended(uv_process_t *p, int64_t status, int signal)
{
	struct child *c = p->data;

	c->over = true;
	if (c->o.apart) /* the rest of the group must not outlive the child */
		send_signal(c, c->killed ? SIGKILL : SIGTERM);
	if (c->freed)
		release(c);
	else if (c->o.ended != NULL)
		c->o.ended(c->o.arg, (int)status, signal);
}

int child_start(struct child **out, struct loop *l, const struct child_opts *o, int *fd, struct ptcp_err *e)
{
	uv_process_options_t uv = { .exit_cb = on_child_ended, .file = o->argv[0],
		.args = (char **)(uintptr_t)o->argv, .stdio_count = 3,
		.flags = o->apart ? UV_PROCESS_DETACHED : 0 };
	struct child *c = calloc(1, sizeof *c);
	char shown[TEXT_NAME_BYTES];
	int pair[2], r;

	if (c == NULL)
		return err_nomem(e);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		free(c);
		return err_sys(e, PTCP_EIO, "creating a socket pair");
	}
	c->o = *o;
	c->uv.data = c->timer.data = c;
	uv.stdio = (uv_stdio_container_t[]){
		{ .flags = UV_INHERIT_FD, .data.fd = pair[1] },
		{ .flags = UV_INHERIT_FD, .data.fd = pair[1] },
		{ .flags = o->quiet ? UV_IGNORE : UV_INHERIT_FD, .data.fd = o->merged ? pair[1] : STDERR_FILENO },
	};
	uv_timer_init(loop_uv(l), &c->timer);
	r = uv_spawn(loop_uv(l), &c->uv, &uv);
	fd_close(&pair[1]);
	if (r < 0) {
		fd_close(&pair[0]);
		c->freed = c->over = true;
		release(c);
		return err_set(e, PTCP_ECONNECT, "%s: %s (install this program, or name another)",
		    text_escape(shown, sizeof shown, o->argv[0]), strerror(-r)); /* libuv returns a negative errno */
	}
	fcntl(pair[0], F_SETFL, O_NONBLOCK);
	*fd = pair[0];
	*out = c;
	return 0;
}

static void on_exit_timeout(uv_timer_t *t)
{
	struct child *c = t->data;

	send_signal(c, c->killed ? SIGKILL : SIGTERM);
	c->killed = true;
	uv_timer_start(&c->timer, on_exit_timeout, TERM_MS, 0);
}

void child_free(struct child *c)
{
	if (c == NULL)
		return;
	c->freed = true;
	if (!c->over)
		uv_timer_start(&c->timer, on_exit_timeout, EXIT_MS, 0);
	release(c);
}

static void look_at_handle(uv_handle_t *h, void *any)
{
	const struct child *c = h->data;

	if (h->type == UV_PROCESS && c->freed && !c->over)
		*(bool *)any = true;
}

bool children_end(struct loop *l)
{
	bool any = false;

	uv_walk(loop_uv(l), look_at_handle, &any);
	return any;
}
