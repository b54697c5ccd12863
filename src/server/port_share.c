#include "server/port_share.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/err.h"
#include "core/fd.h"
#include "core/units.h"
#include "fs/fd_budget.h"
#include "net/admission.h"
#include "net/watch.h"

#define ACCEPTS 16                    /* per turn; then a rest: connecting without end must not occupy the loop */
#define REST_NS (5 * NS_PER_MS)
#define AGAIN_NS (10 * NS_PER_MS)     /* time until a process may have taken connections */
#define SWEEP_NS NS_PER_S
#define KEY_NS (2 * NS_PER_S)         /* maximum time for the key */

struct port_share {
	struct port_share_opts o;
	char *path;
	int fd;
	struct watch *watch;
	struct timer *rest, *again, *sweep;
	struct list borrowers;
	unsigned n, labels;
	uint64_t registered, refused;
	bool waits;                       /* `again` is set */
	struct log_limit log_limit;
};

/* A registered process, or one that has connected to register. */
struct borrower {
	struct list in_list;
	struct port_share *share;
	int fd;
	struct watch *watch;              /* NULL: over; the place is free once nothing passed is left in its queue */
	uid_t user;
	pid_t process;
	struct mono since;
	char label[TLS_SHARE_LABEL_BYTES]; /* "": none */
	unsigned passed;                  /* passed connections since its queue was empty */
};

static bool is_over(const struct borrower *b) { return b->watch == NULL; }

static void log_refused(struct port_share *s, const struct borrower *b, const char *why)
{
	unsigned left_out;

	s->refused++;
	if (log_limit_allows(&s->log_limit, mono_now(), &left_out))
		log_at(s->o.log, LOG_WARN, "share", "event=refused user=%u process=%d why=\"%s\"", (unsigned)b->user,
		    (int)b->process, why);
}

void port_share_stats(const struct port_share *s, struct ptcp_server_stats *st)
{
	if (s == NULL)
		return;
	st->shared_now = s->labels;
	st->shared = s->registered;
	st->shared_refused = s->refused;
}

static void change_labels(struct port_share *s, int n)
{
	s->labels += (unsigned)n;
	s->o.changed(s->o.arg, s->labels);
}

/* ---- The end of a registration ---- */

static void free_borrower(struct borrower *b)
{
	watch_free(b->watch);
	fd_close(&b->fd);
	fd_budget_count(-1);
	list_remove(&b->in_list);
	b->share->n--;
	free(b);
}

/* A process that does not take what was passed keeps its place: otherwise a user could collect connections in queues,
 * by registering again and again. Frees the borrower in general. */
static void end(struct borrower *b)
{
	struct port_share *s = b->share;

	if (b->label[0] != '\0') {
		log_at(s->o.log, LOG_INFO, "share", "event=ended user=%u process=%d", (unsigned)b->user,
		    (int)b->process);
		b->label[0] = '\0';
		change_labels(s, -1);
	}
	watch_free(b->watch);
	b->watch = NULL;
	if (!local_sock_drained(b->fd))
		return;
	free_borrower(b);
}

static void on_sweep(void *arg)
{
	struct port_share *s = arg;
	struct mono now = mono_now();
	struct borrower *b;

	LIST_EACH(&s->borrowers, b, struct borrower, in_list)
		if (is_over(b) || (b->label[0] == '\0' && mono_diff_ns(now, b->since) >= admission_limit_ns(KEY_NS)))
			end(b);
	if (s->n > 0)
		timer_set(s->sweep, mono_add_ns(now, SWEEP_NS));
}

/* ---- Registering ---- */

static struct borrower *find(struct port_share *s, const char *label)
{
	struct borrower *b;

	LIST_EACH(&s->borrowers, b, struct borrower, in_list)
		if (strcmp(b->label, label) == 0)
			return b;
	return NULL;
}

static void refuse(struct borrower *b, const char *why)
{
	char text[LOCAL_SOCK_TEXT_BYTES];

	log_refused(b->share, b, why);
	port_share_error_text(text, why);
	local_sock_send(b->fd, text, -1);
}

/* NULL: registered. */
static const char *take_key(struct borrower *b, const char *text)
{
	const char *key = port_share_register_parse(text);
	char label[TLS_SHARE_LABEL_BYTES], answer[LOCAL_SOCK_TEXT_BYTES];

	if (key == NULL)
		return "not a registration of this version (update the older ptcp)";
	if (tls_share_label(label, key, NULL) < 0)
		return "no memory";
	if (find(b->share, label) != NULL)
		return "this key is registered already";
	port_share_answer_text(answer, b->share->o.port);
	if (!local_sock_send(b->fd, answer, -1))
		return "its socket is closed";
	strcpy(b->label, label);
	log_at(b->share->o.log, LOG_INFO, "share", "event=registered user=%u process=%d", (unsigned)b->user,
	    (int)b->process);
	b->share->registered++;
	change_labels(b->share, 1);
	return NULL;
}

static void on_message(void *arg)
{
	struct borrower *b = arg;
	char text[LOCAL_SOCK_TEXT_BYTES];
	const char *why = NULL;
	int passed, r = local_sock_receive(b->fd, text, sizeof text, &passed);

	if (r < 0)
		return;
	fd_close(&passed);
	if (r > 0 && (why = b->label[0] != '\0' ? "a second message" : take_key(b, text)) == NULL)
		return;
	if (why != NULL)
		refuse(b, why);
	end(b);
}

static unsigned count_user(const struct port_share *s, uid_t user)
{
	const struct borrower *b;
	unsigned n = 0;

	LIST_EACH(&s->borrowers, b, struct borrower, in_list)
		n += b->user == user;
	return n;
}

/* NULL: there is room. */
static const char *check_room(const struct port_share *s, uid_t user)
{
	unsigned most = s->o.max_user < s->o.max / 2 ? s->o.max_user : s->o.max / 2;

	if (count_user(s, user) >= most)
		return "too many sessions of this user share the port";
	if (s->n >= s->o.max || fd_budget_left() == 0)
		return "too many sessions share the port";
	return NULL;
}

/* Takes the connection. */
static void admit(struct port_share *s, int *fd)
{
	struct borrower *b = calloc(1, sizeof *b);
	const char *why = "no memory";
	struct ptcp_err e;

	if (b != NULL) {
		*b = (struct borrower){ .share = s, .fd = fd_take(fd), .since = mono_now() };
		why = !local_sock_peer(b->fd, &b->user, &b->process) ? "its user is unknown" : check_room(s, b->user);
		if (why != NULL)
			refuse(b, why);
		else if (watch_new(&b->watch, s->o.loop, b->fd, on_message, b, &e) < 0)
			why = e.msg;
	}
	if (why != NULL) {
		fd_close(b != NULL ? &b->fd : fd);
		free(b);
		return;
	}
	fd_budget_count(1);
	list_append(&s->borrowers, &b->in_list);
	if (s->n++ == 0)
		timer_set(s->sweep, mono_add_ns(mono_now(), SWEEP_NS));
}

static void on_incoming(void *arg)
{
	struct port_share *s = arg;
	int i, fd;

	for (i = 0; i < ACCEPTS && (fd = local_sock_accept(s->fd)) >= 0; i++)
		admit(s, &fd);
	if (i < ACCEPTS && errno == EAGAIN)
		return;
	watch_hold(s->watch, true); /* a lack of descriptors is a reason, too */
	timer_set(s->rest, mono_add_ns(mono_now(), REST_NS));
}

static void on_rested(void *arg)
{
	struct port_share *s = arg;

	watch_hold(s->watch, false);
}

/* ---- Passing connections ---- */

/* Connections in the queues of the user. */
static unsigned count_passed(struct port_share *s, uid_t user)
{
	struct borrower *b;
	unsigned n = 0;

	LIST_EACH(&s->borrowers, b, struct borrower, in_list) {
		if (b->user != user || b->passed == 0)
			continue;
		if (local_sock_drained(b->fd))
			b->passed = 0;
		n += b->passed;
	}
	return n;
}

static enum inbound_lend wait_for_room(struct port_share *s)
{
	if (!s->waits) /* others must not defer it */
		timer_set(s->again, mono_add_ns(mono_now(), AGAIN_NS));
	s->waits = true;
	return INBOUND_LEND_BUSY;
}

enum inbound_lend port_share_lend(struct port_share *s, const char *label, int fd)
{
	struct borrower *b = find(s, label);

	if (b == NULL)
		return INBOUND_LEND_UNKNOWN;
	if (count_passed(s, b->user) >= PORT_SHARE_USER_PASSED_MAX || b->passed >= PORT_SHARE_PASSED_MAX)
		return wait_for_room(s);
	if (local_sock_send(b->fd, PORT_SHARE_CONNECTION, fd)) {
		b->passed++;
		return INBOUND_LENT;
	}
	if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN) {
		end(b);
		return INBOUND_LEND_UNKNOWN;
	}
	return wait_for_room(s); /* the queue is full, or the kernel has too many passed descriptors of this process */
}

static void on_again(void *arg)
{
	struct port_share *s = arg;

	s->waits = false;
	s->o.again(s->o.arg);
}

/* ---- Start and end ---- */

int port_share_new(struct port_share **out, const struct port_share_opts *o, struct ptcp_err *e)
{
	struct port_share *s = calloc(1, sizeof *s);
	int r;

	if (s == NULL)
		return err_nomem(e);
	s->o = *o;
	s->fd = -1;
	list_init(&s->borrowers);
	if ((s->path = strdup(o->path)) == NULL)
		r = err_nomem(e);
	else if ((r = local_sock_listen(&s->fd, s->path, 0666, e)) < 0)
		r = err_while(e, r, "sharing the port");
	if (r < 0 || (r = watch_new(&s->watch, o->loop, s->fd, on_incoming, s, e)) < 0 ||
	    (r = timer_new(&s->rest, o->loop, on_rested, s, e)) < 0 ||
	    (r = timer_new(&s->again, o->loop, on_again, s, e)) < 0 ||
	    (r = timer_new(&s->sweep, o->loop, on_sweep, s, e)) < 0) {
		port_share_free(s);
		return r;
	}
	*out = s;
	return 0;
}

void port_share_set_max_user(struct port_share *s, unsigned max_user) { s->o.max_user = max_user; }

void port_share_free(struct port_share *s)
{
	struct borrower *b;

	if (s == NULL)
		return;
	LIST_EACH(&s->borrowers, b, struct borrower, in_list)
		free_borrower(b);
	watch_free(s->watch);
	timer_free(s->rest);
	timer_free(s->again);
	timer_free(s->sweep);
	if (s->fd >= 0) {
		unlink(s->path); /* fails in a sandbox; the next start replaces the socket */
		fd_close(&s->fd);
	}
	free(s->path);
	free(s);
}
