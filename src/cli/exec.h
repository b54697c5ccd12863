/* Commands in process groups of their own, and --exec: a command of the shell whose output is sent, and which decides
 * whether the output is complete. */
#ifndef CLI_EXEC_H
#define CLI_EXEC_H

#include <ptcp/err.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

struct exec {
	const char *command;
	int fd;              /* the output of the command; -1: not open */
	int write_fd;        /* the command gets this end; -1 once the command runs */
	pid_t pid;           /* 0: not started, or reaped */
	int failed;          /* errno of the start; 0: none */
	atomic_bool given_up;
};

/* Opens the pipe; the command is not started yet. */
int exec_open(struct exec *x, const char *command, struct ptcp_err *e);
/* Starts the command, once, in a process group of its own, by /bin/sh -c. A failure shows in exec_ended(). */
void exec_start(struct exec *x);
/* After the end of its output: waits for its end, but no longer than until a signal stops this process, or
 * exec_give_up(). Other results than exit status 0 are PTCP_EIO. */
int exec_ended(struct exec *x, struct ptcp_err *e);
void exec_give_up(struct exec *x); /* any thread */
/* Ends a command that exec_ended() has not reaped, with its process group, and closes the pipe. Zeroed with fd -1 is
 * fine. */
void exec_fini(struct exec *x);

/* ---- Any command ---- */

/* Starts argv[0], searched in PATH, in a process group of its own, with `in`, `out` and `err` (-1: ours) as standard
 * descriptors. 0 or an errno. */
enum { EXEC_NO_INPUT = -2 }; /* an `in` without any data */
int exec_spawn(pid_t *pid, char *const argv[], int in, int out, int err);
/* Ends the command, if it has not ended, with its process group; takes up to 2 s. Its status, as waitpid(2) has it. */
int exec_end(pid_t pid);

#endif
