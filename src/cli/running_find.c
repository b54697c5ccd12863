/* Requests to running commands, by name. */
#include "cli/running.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/err.h"
#include "core/fd.h"
#include "core/local_sock.h"
#include "core/sorted.h"
#include "core/userdir.h"

#define CONNECT_MS 1000
#define ANSWER_MS 3000
#define SUFFIX ".sock"

/* Connects to a command in one directory, and removes the socket of an ended one; -1: none. */
static int connect_in(const char *dir, const char *name)
{
	char path[USERDIR_RUNTIME_BYTES + RUNNING_NAME_BYTES + sizeof SUFFIX];
	int lock = userdir_private(dir, false, NULL), fd;
	pid_t process;
	uid_t user;

	if (lock < 0)
		return -1;
	snprintf(path, sizeof path, "%s/%s" SUFFIX, dir, name);
	if (local_sock_connect(&fd, path, CONNECT_MS, NULL) < 0) {
		local_sock_remove_stale(path); /* no new process has just bound the socket: the lock is held */
		fd = -1;
	} else if (!local_sock_peer(fd, &user, &process) || user != geteuid()) {
		fd_close(&fd);
	}
	fd_close(&lock);
	return fd;
}

static int connect_to(const char *name)
{
	char dir[USERDIR_RUNTIME][USERDIR_RUNTIME_BYTES];
	unsigned n = userdir_runtime(dir), i;
	int fd = -1;

	for (i = 0; i < n && fd < 0 && running_name_ok(name); i++)
		fd = connect_in(dir[i], name);
	return fd;
}

bool running_exists(const char *name)
{
	int fd = connect_to(name);

	if (fd < 0)
		return false;
	fd_close(&fd);
	return true;
}

/* Takes the connection. */
static int ask(json_t **answer, int *fd, const char *name, const char *request, struct ptcp_err *e)
{
	struct pollfd p = { .fd = *fd, .events = POLLIN };
	char *text = malloc(RUNNING_ANSWER_BYTES);
	bool answered;
	int passed = -1, r;

	answered = text != NULL && local_sock_send(*fd, request, -1) && poll(&p, 1, ANSWER_MS) == 1 &&
	    local_sock_receive(*fd, text, RUNNING_ANSWER_BYTES, &passed) == 1;
	fd_close(&passed);
	fd_close(fd);
	r = running_answer_parse(answer, name, answered ? text : "", e);
	free(text);
	return r;
}

int running_request(json_t **answer, const char *name, const char *request, struct ptcp_err *e)
{
	int fd = connect_to(name);

	if (fd < 0)
		return err_set(e, PTCP_EPEER,
		    "%s: no running transfer of this user has this name (ptcp status lists the names)", name);
	return ask(answer, &fd, name, request, e);
}

/* ---- All ---- */

static void add_from(json_t *list, const char *dir)
{
	char name[RUNNING_NAME_BYTES + sizeof SUFFIX];
	int lock = userdir_private(dir, false, NULL), fd;
	struct dirent *entry;
	json_t *j;
	size_t n;
	DIR *d;

	if (lock < 0)
		return;
	flock(lock, LOCK_UN); /* connect_in() takes the lock for each socket */
	if ((d = fd_dir(&lock)) == NULL)
		return;
	while ((entry = readdir(d)) != NULL) {
		n = strlen(entry->d_name);
		if (n < sizeof SUFFIX || n >= sizeof name || strcmp(entry->d_name + n - strlen(SUFFIX), SUFFIX) != 0)
			continue;
		memcpy(name, entry->d_name, n - strlen(SUFFIX));
		name[n - strlen(SUFFIX)] = '\0';
		if (!running_name_ok(name) || (fd = connect_in(dir, name)) < 0)
			continue;
		if (ask(&j, &fd, name, "status", NULL) < 0) /* suspended, for instance */
			j = json_pack("{s:s, s:s, s:s}", "event", "status", "name", name, "state", RUNNING_SILENT);
		json_array_append_new(list, j);
	}
	closedir(d);
}

static const char *name_of(const json_t *status)
{
	const char *name = json_string_value(json_object_get(status, "name"));

	return name != NULL ? name : "";
}

static int by_name(const void *a, const void *b)
{
	return strcmp(name_of(*(json_t *const *)a), name_of(*(json_t *const *)b));
}

/* NULL: out of memory. Takes the list. */
static json_t *sorted(json_t *list)
{
	size_t n = json_array_size(list), i;
	json_t **at = calloc(n + 1, sizeof *at), *out = json_array();

	for (i = 0; at != NULL && i < n; i++)
		at[i] = json_array_get(list, i);
	if (at != NULL)
		sort_array(at, n, sizeof *at, by_name);
	for (i = 0; at != NULL && out != NULL && i < n; i++)
		json_array_append(out, at[i]);
	if (at == NULL) {
		json_decref(out);
		out = NULL;
	}
	free(at);
	json_decref(list);
	return out;
}

json_t *running_list(void)
{
	char dir[USERDIR_RUNTIME][USERDIR_RUNTIME_BYTES];
	unsigned n = userdir_runtime(dir), i;
	json_t *list = json_array();

	for (i = 0; i < n && list != NULL; i++)
		add_from(list, dir[i]);
	return list != NULL ? sorted(list) : NULL;
}
