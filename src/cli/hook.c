#include "cli/hook.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/exec.h"
#include "cli/show/json.h"
#include "cli/show/terminal.h"
#include "core/clock.h"
#include "core/fd.h"

/* A file in memory: the command may read or ignore the object, and the writer never waits. */
static int object_fd(const json_t *object)
{
	char *text = json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII);
	int fd = text != NULL ? memfd_create("end", MFD_CLOEXEC) : -1;
	size_t n = text != NULL ? strlen(text) : 0, at = 0;
	ssize_t w = 0;

	if (text != NULL)
		text[n++] = '\n'; /* in place of the NUL */
	while (fd >= 0 && at < n && (w = write(fd, text + at, n - at)) > 0)
		at += (size_t)w;
	free(text);
	if (at < n || lseek(fd, 0, SEEK_SET) != 0)
		fd_close(&fd);
	return fd;
}

int hook_start(pid_t *pid, const char *command, const json_t *object)
{
	char *argv[] = { (char *)(uintptr_t)"/bin/sh", (char *)(uintptr_t)"-c", (char *)(uintptr_t)command, NULL };
	int fd = object_fd(object), r;

	if (fd < 0)
		return ENOMEM;
	r = exec_spawn(pid, argv, fd, STDERR_FILENO, -1);
	fd_close(&fd);
	return r;
}

void hook_judge(const char *what, int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
		terminal_line("ptcp: warning: the command of %s exited with status %d", what, WEXITSTATUS(status));
	else if (WIFSIGNALED(status))
		terminal_line("ptcp: warning: the command of %s was ended by a signal (%s)", what,
		    strsignal(WTERMSIG(status)));
}

void hook_run(const char *what, const char *command, const json_t *object, double limit_s)
{
	const struct timespec look = { .tv_nsec = 10 * (long)NS_PER_MS };
	struct mono until = mono_add_ns(mono_now(), (uint64_t)(limit_s * (double)NS_PER_S));
	pid_t pid, ended = 0;
	int status = 0, r = hook_start(&pid, command, object);

	if (r != 0) {
		terminal_line("ptcp: warning: the command of %s cannot be started: %s", what, strerror(r));
		return;
	}
	while ((ended = waitpid(pid, &status, WNOHANG)) == 0 && mono_now().ns < until.ns)
		nanosleep(&look, NULL);
	if (ended == 0) {
		exec_end(pid);
		terminal_line("ptcp: warning: the command of %s has not ended after %.3g s, and was ended "
		    "(start it in the background)", what,
		    limit_s);
	} else if (ended > 0) {
		hook_judge(what, status);
	}
}

void hook_end(const char *command, json_t *end, const char *action, const char *const *sources, size_t n_sources,
    const char *dest)
{
	json_t *list = json_array();
	size_t i;

	if (command != NULL && end != NULL) {
		for (i = 0; i < n_sources; i++)
			json_array_append_new(list, json_text(sources[i]));
		json_object_set_new(end, "command", json_text(action));
		json_object_set(end, "sources", list);
		json_object_set_new(end, "destination", json_text(dest));
		hook_run("--on-end", command, end, HOOK_LIMIT_S);
	}
	json_decref(list);
	json_decref(end);
}
