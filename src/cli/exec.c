#include "cli/exec.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/process.h"
#include "cli/show/terminal.h"
#include "core/clock.h"
#include "core/err.h"
#include "core/fd.h"
#include "core/units.h"

#define LOOK_NS (10 * NS_PER_MS)
#define END_NS (2 * NS_PER_S)   /* time from SIGTERM to SIGKILL */
#define LEFT_NS (100 * NS_PER_MS) /* time from the end of the command to SIGKILL for its other processes */

extern char **environ;

int exec_open(struct exec *x, const char *command, struct ptcp_err *e)
{
	int fd[2];

	if (pipe2(fd, O_CLOEXEC) != 0)
		return err_sys(e, PTCP_ENOMEM, "--exec: cannot create a pipe");
	*x = (struct exec){ .command = command, .fd = fd[0], .write_fd = fd[1] };
	return 0;
}

/* Signals are as in a shell, although this process ignores some. */
int exec_spawn(pid_t *pid, char *const argv[], int in, int out, int err)
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
	if ((r = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO)) == 0 && err >= 0)
		r = posix_spawn_file_actions_adddup2(&files, err, STDERR_FILENO);
	if (r == 0 && in >= 0)
		r = posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
	if (r == 0 && in == EXEC_NO_INPUT)
		r = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (r == 0)
		r = posix_spawnp(pid, argv[0], &files, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	return r;
}

/* A terminal would stop a reader in the background. */
static int spawn(struct exec *x)
{
	char *argv[] = { (char *)(uintptr_t)"/bin/sh", (char *)(uintptr_t)"-c", (char *)(uintptr_t)x->command, NULL };

	return exec_spawn(&x->pid, argv, terminal_is(STDIN_FILENO) ? EXEC_NO_INPUT : -1, x->write_fd, -1);
}

void exec_start(struct exec *x)
{
	if (x->write_fd < 0)
		return;
	if ((x->failed = spawn(x)) != 0)
		x->pid = 0;
	fd_close(&x->write_fd);
}

void exec_give_up(struct exec *x) { atomic_store(&x->given_up, true); }

static void pause_ns(uint64_t ns)
{
	const struct timespec t = { .tv_nsec = (long)ns };

	nanosleep(&t, NULL);
}

static int judge(int status, struct ptcp_err *e)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFEXITED(status))
		return err_set(e, PTCP_EIO, "the command of --exec exited with status %d: the file is not complete, "
		    "and was not published", WEXITSTATUS(status));
	return err_set(e, PTCP_EIO, "the command of --exec was ended by a signal (%s): the file is not complete, and "
	    "was not published", strsignal(WTERMSIG(status)));
}

int exec_ended(struct exec *x, struct ptcp_err *e)
{
	int status;
	pid_t r;

	if (x->failed != 0)
		return err_set(e, PTCP_EIO, "the command of --exec cannot be started: %s", strerror(x->failed));
	while ((r = waitpid(x->pid, &status, WNOHANG)) == 0) {
		if (process_stopping() || atomic_load(&x->given_up))
			return err_set(e, PTCP_ECANCELED, "%s", ptcp_err_text(PTCP_ECANCELED));
		pause_ns(LOOK_NS);
	}
	x->pid = 0;
	return r > 0 ? judge(status, e) : err_sys(e, PTCP_EIO, "cannot wait for the command of --exec");
}

/* Does not reap the process. */
static bool is_running(pid_t pid)
{
	siginfo_t i = { .si_pid = 0 };

	return waitid(P_PID, (id_t)pid, &i, WEXITED | WNOHANG | WNOWAIT) == 0 && i.si_pid == 0;
}

/* SIGKILL also ends processes in the group that ignore SIGTERM. The command is reaped last: until then no new process
 * group can have its number. */
int exec_end(pid_t pid)
{
	struct mono until = mono_add_ns(mono_now(), END_NS);
	int status = 0;

	kill(-pid, SIGTERM);
	kill(-pid, SIGCONT);
	while (is_running(pid) && mono_now().ns < until.ns)
		pause_ns(LOOK_NS);
	pause_ns(LEFT_NS);
	kill(-pid, SIGKILL);
	waitpid(pid, &status, 0);
	return status;
}

void exec_fini(struct exec *x)
{
	if (x->fd < 0)
		return;
	fd_close(&x->write_fd);
	fd_close(&x->fd);
	x->fd = x->write_fd = -1;
	if (x->pid > 0)
		exec_end(x->pid);
	x->pid = 0;
}
