/* Commands that start movers: srun, mpirun, ssh. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/err.h"
#include "core/text.h"
#include "mover/movers_impl.h"

static void launcher_free(struct launcher *l)
{
	list_remove(&l->in_list);
	line_reader_free(l->lines);
	child_free(l->child);
	free(l);
}

static void on_line(void *arg, const char *line)
{
	struct launcher *l = arg;

	text_escape(l->last, sizeof l->last, line);
	log_at(l->set->o.log, LOG_INFO, "movers", "event=launcher-output line=\"%s\"", l->last);
}

static void on_output_closed(void *arg, bool broken)
{
	struct launcher *l = arg;

	(void)broken;
	line_reader_free(l->lines);
	l->lines = NULL;
}

static const struct line_reader_ops line_ops = { on_line, on_output_closed, NULL };

static void on_ended(void *arg, int status, int signal)
{
	struct launcher *l = arg;

	l->ended = true;
	l->status = status;
	l->signal = signal;
	if (l->set->invitation.serves)
		log_at(l->set->o.log, LOG_WARN, "movers", "event=launcher-ended status=%d signal=%d movers=%u last=\"%s\" "
		    "why=\"the server does not start movers again (start them by hand, or restart the server)\"", status, signal,
		    l->set->n, l->last);
	movers_changed(l->set);
}

int movers_launch(struct movers *m, char *const *argv, struct ptcp_err *e)
{
	struct launcher *l = calloc(1, sizeof *l);
	struct child_opts o = { .argv = argv, .apart = true, .ended = on_ended, .arg = l };
	int fd, r;

	if (l == NULL)
		return err_nomem(e);
	l->set = m;
	list_append(&m->launchers, &l->in_list);
	if ((r = child_start(&l->child, m->o.control, &o, &fd, e)) < 0) {
		launcher_free(l);
		return err_while(e, r, "--movers");
	}
	if (m->file == NULL && write(fd, m->text, strlen(m->text)) != (ssize_t)strlen(m->text)) {
		close(fd);
		launcher_free(l);
		return err_set(e, PTCP_EUSAGE, "movers: the invitation is too long for a pipe (use a file)");
	}
	shutdown(fd, SHUT_WR); /* srun stays while its input is open */
	if ((r = line_reader_new(&l->lines, m->o.control, fd, &line_ops, l, e)) < 0)
		launcher_free(l);
	return r;
}

bool launchers_ended(const struct movers *m, const struct launcher **one)
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

void launchers_free(struct movers *m)
{
	while (!list_empty(&m->launchers))
		launcher_free(CONTAINER_OF(m->launchers.next, struct launcher, in_list));
}
