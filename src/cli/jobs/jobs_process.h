/* Processes of jobs. The kernel ends the processes when this process ends. */
#ifndef CLI_JOBS_JOBS_PROCESS_H
#define CLI_JOBS_JOBS_PROCESS_H

#include <ptcp/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct jobs_process {
	pid_t pid;   /* 0: none */
	int out_fd;  /* its standard output; -1: none */
	char *line;  /* the unfinished line */
	size_t n, room;
	bool skip;   /* the line is too long to be the event "end" */
	char *last;  /* the last line, or NULL */
};

/* Starts argv[0] with an empty standard input, and `log` as its standard error. */
int jobs_process_start(struct jobs_process *p, char *const argv[], const char *log, struct ptcp_err *e);
/* Asks the kernel to kill this process when the parent ends: no transfer continues without a queue. -1: the parent has
 * ended already. */
int jobs_process_bind(pid_t parent);
/* Reads what is there; false: the end of its output. */
bool jobs_process_read(struct jobs_process *p);
/* Whether it has ended; *status as waitpid(2) has it. Reads the rest of its output. */
bool jobs_process_ended(struct jobs_process *p, int *status);
/* Ends a process that still runs. */
void jobs_process_fini(struct jobs_process *p); /* zeroed, with descriptor -1, is fine */

#endif
