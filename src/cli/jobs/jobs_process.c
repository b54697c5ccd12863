#include "cli/jobs/jobs_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/exec.h"
#include "core/err.h"
#include "core/fd.h"
#include "core/text.h"

enum { LINE_MAX_BYTES = 256 << 10, CHUNK_BYTES = 16 << 10 };

int jobs_process_start(struct jobs_process *p, char *const argv[], const char *log, struct ptcp_err *e)
{
	int log_fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0600), out[2], r;
	char shown[TEXT_NAME_BYTES];

	*p = (struct jobs_process){ .out_fd = -1 };
	if (log_fd < 0)
		return err_sys(e, PTCP_EIO, "cannot write %s", text_escape(shown, sizeof shown, log));
	if (pipe2(out, O_CLOEXEC) != 0) {
		fd_close(&log_fd);
		return err_sys(e, PTCP_ENOMEM, "cannot create a pipe");
	}
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	r = exec_spawn(&p->pid, argv, EXEC_NO_INPUT, out[1], log_fd);
	fd_close(&log_fd);
	fd_close(&out[1]);
	if (r == 0) {
		p->out_fd = fd_take(&out[0]);
		return 0;
	}
	p->pid = 0;
	fd_close(&out[0]);
	errno = r;
	return err_sys(e, PTCP_EIO, "cannot start %s", argv[0]);
}

int jobs_process_bind(pid_t parent)
{
	return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent ? 0 : -1;
}

static void end_line(struct jobs_process *p)
{
	if (!p->skip && p->n > 0) {
		p->line[p->n] = '\0';
		free(p->last);
		p->last = p->line;
		p->line = NULL;
		p->room = 0;
	}
	p->n = 0;
	p->skip = false;
}

static void keep(struct jobs_process *p, const char *text, size_t n)
{
	char *more;

	if (p->n + n >= LINE_MAX_BYTES)
		p->skip = true;
	if (p->skip)
		return;
	if (p->n + n + 1 > p->room) {
		if ((more = realloc(p->line, 2 * (p->n + n) + 1)) == NULL) {
			p->skip = true;
			return;
		}
		p->line = more;
		p->room = 2 * (p->n + n) + 1;
	}
	memcpy(p->line + p->n, text, n);
	p->n += n;
}

bool jobs_process_read(struct jobs_process *p)
{
	char chunk[CHUNK_BYTES], *at, *end;
	ssize_t n;

	while (p->out_fd >= 0 && (n = read(p->out_fd, chunk, sizeof chunk)) != 0) {
		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		for (at = chunk; (end = memchr(at, '\n', (size_t)(chunk + n - at))) != NULL; at = end + 1) {
			keep(p, at, (size_t)(end - at));
			end_line(p);
		}
		keep(p, at, (size_t)(chunk + n - at));
	}
	return false;
}

bool jobs_process_ended(struct jobs_process *p, int *status)
{
	if (p->pid == 0 || waitpid(p->pid, status, WNOHANG) != p->pid)
		return false;
	p->pid = 0;
	(void)jobs_process_read(p);
	return true;
}

void jobs_process_fini(struct jobs_process *p)
{
	if (p->pid > 0) {
		kill(-p->pid, SIGKILL);
		waitpid(p->pid, NULL, 0);
	}
	fd_close(&p->out_fd);
	free(p->line);
	free(p->last);
	*p = (struct jobs_process){ .out_fd = -1 };
}
