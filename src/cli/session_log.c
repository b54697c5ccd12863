#include "cli/session_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/show/json.h"
#include "core/err.h"
#include "core/fd.h"
#include "core/text.h"
#include "core/userdir.h"

static void earlier_name(char out[PTCP_PATH_BYTES + 2], const char *path)
{
	snprintf(out, PTCP_PATH_BYTES + 2, "%s.1", path);
}

/* ---- Writing ---- */

/* Opens the file, locked, with its size; -1 with errno. Waits for no FIFO, and follows no link. */
static int open_locked(const char *path, struct stat *st)
{
	struct stat named;
	int fd;

	while ((fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW,
	    0640)) >= 0) {
		if (fstat(fd, st) == 0 && !S_ISREG(st->st_mode))
			errno = EINVAL;
		else if (fd_lock(fd, FD_LOCK_LOOP_MS) && fstat(fd, st) == 0) {
			if (stat(path, &named) == 0 && named.st_ino == st->st_ino && named.st_dev == st->st_dev)
				return fd;
			fd_close(&fd); /* another process has renamed it meanwhile */
			continue;
		}
		fd_close(&fd);
		return -1;
	}
	return -1;
}

/* The lock of the full file keeps others from renaming its successor. */
static int open_with_room(const struct session_log *l, size_t n, struct stat *st)
{
	char earlier[PTCP_PATH_BYTES + 2];
	int full = open_locked(l->path, st), fd;

	if (full < 0 || (uint64_t)st->st_size + n <= l->max_bytes)
		return full;
	earlier_name(earlier, l->path);
	fd = rename(l->path, earlier) == 0 ? open_locked(l->path, st) : -1;
	fd_close(&full);
	return fd;
}

static int failed(struct ptcp_err *e, int code, const char *path)
{
	char shown[TEXT_NAME_BYTES];

	return err_sys(e, code, "the log of sessions %s", text_escape(shown, sizeof shown, path));
}

int session_log_open(struct session_log *l, const char *file, uint64_t max_bytes, struct ptcp_err *e)
{
	char dir[USERDIR_BYTES];
	struct stat st;
	int fd, r;

	*l = (struct session_log){ .path = "", .max_bytes = max_bytes };
	if (file != NULL && strcmp(file, "none") == 0)
		return 0;
	if (file != NULL && strlen(file) >= sizeof l->path)
		return err_set(e, PTCP_ECONFIG, "the log of sessions: path too long (name a shorter path)");
	if (file == NULL && ((r = userdir_state(dir, NULL, e)) < 0 || (r = userdir_make(dir, e)) < 0))
		return r;
	if (file != NULL)
		strcpy(l->path, file);
	else
		snprintf(l->path, sizeof l->path, "%s/" SESSION_LOG_NAME, dir);
	if ((fd = open_locked(l->path, &st)) >= 0) {
		fd_close(&fd);
		return 0;
	}
	r = failed(e, PTCP_ECONFIG, l->path);
	l->path[0] = '\0';
	return r;
}

static char *record_line(const struct ptcp_server_record *r, size_t *n)
{
	struct timespec now;
	struct tm tm;
	char when[40], *line;
	json_t *j;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &tm);
	j = json_pack("{s:s, s:s, s:I, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:o, s:o}",
	    "event", "record", "time", when, "time_s", (json_int_t)now.tv_sec, "work", r->work, "client", r->client,
	    "name", json_text(r->name), "address", json_text(r->address),
	    "third", r->third[0] != '\0' ? json_text(r->third) : json_null(), "path", json_text(r->path),
	    "files", json_count(r->files), "bytes", json_count(r->bytes), "failed", json_count(r->failed),
	    "seconds", json_seconds(r->seconds), "exit", (int)exit_status(r->code), "cause", json_cause(r->sys),
	    "error", r->code != 0 ? json_text(r->why) : json_null());
	line = json_dumps(j, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15));
	json_decref(j);
	if (line != NULL) {
		*n = strlen(line) + 1;
		line[*n - 1] = '\n'; /* in place of the NUL */
	}
	return line;
}

/* Ends a line that a crash has cut, which readers then skip. */
static bool begins_line(int fd, const struct stat *st)
{
	char last;

	return st->st_size == 0 || (pread(fd, &last, 1, st->st_size - 1) == 1 && last == '\n') ||
	    write(fd, "\n", 1) == 1;
}

int session_log_add(struct session_log *l, const struct ptcp_server_record *r, struct ptcp_err *e)
{
	struct stat st;
	size_t n;
	char *line;
	int fd, result = 0;

	if (l->path[0] == '\0')
		return 0;
	if ((line = record_line(r, &n)) == NULL)
		return err_nomem(e);
	errno = ENOSPC; /* the cause of a short write */
	if ((fd = open_with_room(l, n, &st)) < 0 || !begins_line(fd, &st) || write(fd, line, n) != (ssize_t)n) {
		result = failed(e, PTCP_EIO, l->path);
		if (fd >= 0 && ftruncate(fd, st.st_size) < 0)
			result = failed(e, PTCP_EIO, l->path);
	}
	fd_close(&fd);
	free(line);
	return result;
}

/* ---- Reading ---- */

static void read_lines(FILE *f, void (*each)(void *arg, json_t *record), void *arg, uint64_t *skipped)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	json_t *j;

	while ((n = getline(&line, &cap, f)) > 0) {
		j = json_loadb(line, (size_t)n, JSON_REJECT_DUPLICATES, NULL);
		if (json_is_object(j))
			each(arg, j);
		else
			++*skipped;
		json_decref(j);
	}
	free(line);
}

/* The earlier file is opened last: what was renamed meanwhile is read once. */
int session_log_read(const char *path, void (*each)(void *arg, json_t *record), void *arg, uint64_t *skipped,
    struct ptcp_err *e)
{
	char earlier[PTCP_PATH_BYTES + 2];
	const char *names[2] = { path, earlier };
	FILE *f[2] = { NULL, NULL };
	struct stat st[2] = { { .st_ino = 0 } };
	int i, r = 0;

	*skipped = 0;
	earlier_name(earlier, path);
	for (i = 0; i < 2 && r == 0; i++) {
		int fd = open(names[i], O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

		if (fd >= 0 && fstat(fd, &st[i]) == 0 && !S_ISREG(st[i].st_mode))
			r = err_set(e, PTCP_EIO, "the log of sessions: not a regular file (name the file of "
			    "--session-log)");
		else if (fd < 0 && (errno != ENOENT || i == 0))
			r = failed(e, PTCP_EIO, names[i]);
		else if (fd >= 0 && (f[i] = fd_file(&fd, "r")) == NULL)
			r = failed(e, PTCP_EIO, names[i]);
		fd_close(&fd);
	}
	if (r == 0 && f[1] != NULL && (st[0].st_ino != st[1].st_ino || st[0].st_dev != st[1].st_dev))
		read_lines(f[1], each, arg, skipped);
	if (r == 0)
		read_lines(f[0], each, arg, skipped);
	for (i = 0; i < 2; i++)
		if (f[i] != NULL)
			fclose(f[i]);
	return r;
}
