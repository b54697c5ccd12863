/* Commands that start movers: srun, mpirun, ssh. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/err.h"
#include "core/fd.h"
#include "core/text.h"
#include "mover/movers_impl.h"

static void launcher_free(struct launcher *l)
{
	list_remove(&l->in_list);
	line_reader_free(l->lines);
	child_free(l->child);
	free(l);
}

/* The commands of many hosts often fail for the same cause, shown once. */
static bool said_by_another(const struct launcher *l)
{
	const struct launcher *other;

	LIST_EACH(&l->set->launchers, other, struct launcher, in_list)
		if (other != l && strcmp(other->last, l->last) == 0)
			return true;
	return false;
}

static void on_line(void *arg, const char *line)
{
	struct launcher *l = arg;
	struct movers *m = l->set;
	char text[sizeof l->last + 20];

	if (line[0] == '\0')
		return;
	text_escape(l->last, sizeof l->last, line);
	log_at(m->o.log, m->invitation.serves ? LOG_WARN : LOG_INFO, "movers", "event=launcher-output line=\"%s\"",
	    l->last);
	snprintf(text, sizeof text, "movers: %s", l->last);
	if (!m->invitation.serves && !said_by_another(l))
		m->o.notify(m->o.arg, text);
}

static void on_output_closed(void *arg, bool broken)
{
	struct launcher *l = arg;

	(void)broken;
	line_reader_free(l->lines);
	l->lines = NULL;
}

static const struct line_reader_ops line_ops = { .line = on_line, .closed = on_output_closed, .text = true };

static const char *how(const struct launcher *l, char *out, size_t cap)
{
	snprintf(out, cap, l->signal != 0 ? "was ended by signal %d" : "ended with status %d",
	    l->signal != 0 ? l->signal : l->status);
	return out;
}

/* Other hosts carry the data: the user learns of the one that is missing; what its command printed has been shown. */
static void notify_failure(const struct launcher *l)
{
	char text[300], ended[40], host[100];

	if ((l->status == 0 && l->signal == 0) || l->set->invitation.serves || (l->host[0] == '\0' && l->set->n == 0))
		return;
	snprintf(text, sizeof text, "movers: the command that starts them%s%s %s%s", l->host[0] != '\0' ? " on " : "",
	    text_escape(host, sizeof host, l->host), how(l, ended, sizeof ended),
	    l->last[0] != '\0' ? "" : ", without output");
	l->set->o.notify(l->set->o.arg, text);
}

static void on_launch_ended(void *arg, int status, int signal)
{
	struct launcher *l = arg;

	l->ended = true;
	l->status = status;
	l->signal = signal;
	if (l->lines != NULL)
		line_reader_drain(l->lines); /* the session may end now */
	notify_failure(l);
	if (l->set->invitation.serves)
		log_at(l->set->o.log, LOG_WARN, "movers", "event=launcher-ended status=%d signal=%d movers=%u "
		    "last=\"%s\" why=\"the server does not start movers again (start them by hand, or restart the "
		    "server)\"", status, signal, l->set->n, l->last);
	movers_changed(l->set);
}

/* Passes the invitation on standard input. A command that has ended already reads nothing: on_launch_ended() says
 * why. */
static bool invite(const struct movers *m, int fd)
{
	size_t n = strlen(m->text);
	ssize_t sent = write(fd, m->text, n);

	return sent == (ssize_t)n || (sent < 0 && (errno == EPIPE || errno == ECONNRESET));
}

int movers_launch(struct movers *m, char *const *argv, const char *host, struct ptcp_err *e)
{
	struct launcher *l = calloc(1, sizeof *l);
	struct child_opts o = { .argv = argv, .merged = true, .apart = true, .ended = on_launch_ended, .arg = l };
	int fd, r;

	if (l == NULL)
		return err_nomem(e);
	l->set = m;
	snprintf(l->host, sizeof l->host, "%s", host != NULL ? host : "");
	list_append(&m->launchers, &l->in_list);
	if ((r = child_start(&l->child, m->o.control, &o, &fd, e)) < 0) {
		launcher_free(l);
		if (e != NULL)
			e->code = PTCP_EUSAGE; /* no host was asked for anything */
		return err_while(e, PTCP_EUSAGE, "--movers");
	}
	if (m->file == NULL && !invite(m, fd)) {
		fd_close(&fd);
		launcher_free(l);
		return err_set(e, PTCP_EUSAGE, "movers: the invitation is too long for a pipe (use a file)");
	}
	shutdown(fd, SHUT_WR); /* srun stays while its input is open */
	if ((r = line_reader_new(&l->lines, m->o.control, &fd, &line_ops, l, e)) < 0)
		launcher_free(l);
	return r;
}

void launchers_free(struct movers *m)
{
	while (!list_empty(&m->launchers))
		launcher_free(CONTAINER_OF(m->launchers.next, struct launcher, in_list));
}

/* ---- None is left ---- */

/* True if all launchers, at least one, have ended; *one: a launcher. */
static bool have_ended(const struct movers *m, const struct launcher **one)
{
	const struct launcher *l;

	*one = NULL;
	LIST_EACH(&m->launchers, l, struct launcher, in_list) {
		if (!l->ended)
			return false;
		*one = l;
	}
	return *one != NULL;
}

/* The last line that a command has printed; NULL: none. */
static const char *last_line(const struct movers *m)
{
	const struct launcher *l;

	LIST_EACH(&m->launchers, l, struct launcher, in_list)
		if (l->last[0] != '\0')
			return l->last;
	return NULL;
}

/* The only command, or one of several, has ended without starting a mover. */
static int launcher_fault(const struct launcher *l, struct ptcp_err *e)
{
	char ended[40];

	return err_set(e, PTCP_ECONNECT, "movers: none has joined; the command that starts them %s%s%s (ptcp doctor "
	    "--movers tests the command)", how(l, ended, sizeof ended), l->last[0] != '\0' ? ": " : ", without output",
	    l->last);
}

int movers_fault(const struct movers *m, struct mono now, struct ptcp_err *e)
{
	const struct launcher *l;
	bool over = have_ended(m, &l);
	const char *last;

	if (m->n > 0)
		return 0;
	if (over && !m->ever && (l->signal != 0 || l->status != 0))
		return launcher_fault(l, e);
	if (over && l->signal != 0)
		return err_set(e, PTCP_ECONNECT, "movers: none is left, and the command that starts them was ended by "
		    "signal %d; %s (run the same command again to resume)", l->signal, m->why.msg);
	if (mono_diff_ns(now, m->none_since) < m->o.wait_ns)
		return 0;
	if (m->ever)
		return err_set(e, PTCP_ECONNECT, "movers: none is left: %s (run the same command again to resume)",
		    m->why.msg);
	if ((last = last_line(m)) != NULL)
		return err_set(e, PTCP_ECONNECT, "movers: none has joined within %.3g s; the command that starts them "
		    "says: %.100s (allow more time with --movers-wait)", (double)m->o.wait_ns / 1e9, last);
	return err_set(e, PTCP_ECONNECT, "movers: none has joined within %.3g s%s (can they reach this host, and read "
	    "their invitation? allow more time with --movers-wait)", (double)m->o.wait_ns / 1e9,
	    over ? "; the command that starts them has ended, without output" : "");
}

struct mono movers_deadline(const struct movers *m)
{
	return m->n > 0 ? MONO_NEVER : mono_add_ns(m->none_since, m->o.wait_ns);
}
