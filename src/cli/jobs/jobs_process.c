#include "cli/jobs/jobs_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/err.h"
#include "core/fd.h"
#include "core/text.h"

extern char **environ;

enum { LINE_MAX_BYTES = 256 << 10, CHUNK_BYTES = 16 << 10 };

/* The process gets the signals of a shell, and a process group: signals of a terminal are for the queue, which ends
 * processes in order. */
static int spawn(pid_t *pid, char *const argv[], const char *log, int out)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t all, none;
	int r;

	sigfillset(&all);
	sigemptyset(&none);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setsigmask(&attr, &none);
	if ((r = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0)) == 0 &&
	    (r = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO)) == 0 &&
	    (r = posix_spawn_file_actions_addopen(&files, STDERR_FILENO, log, O_WRONLY | O_CREAT | O_TRUNC, 0600)) == 0)
		r = posix_spawn(pid, argv[0], &files, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	return r;
}

int jobs_process_start(struct jobs_process *p, char *const argv[], const char *log, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	int out[2], r;

	*p = (struct jobs_process){ .out_fd = -1 };
	if (pipe2(out, O_CLOEXEC) != 0)
		return err_sys(e, PTCP_ENOMEM, "cannot create a pipe");
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	r = spawn(&p->pid, argv, log, out[1]);
	fd_close(&out[1]);
	if (r == 0) {
		p->out_fd = fd_take(&out[0]);
		return 0;
	}
	p->pid = 0;
	fd_close(&out[0]);
	errno = r;
	return err_sys(e, PTCP_EIO, "cannot start %s, with messages to %s", argv[0],
	    text_escape(shown, sizeof shown, log));
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
