#include "queue/queue_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/atomic_file.h"
#include "core/err.h"
#include "core/fd.h"
#include "core/userdir.h"

#define READ_BYTES 65536

static int no_queue(struct ptcp_err *e, const char *dir)
{
	if (errno == ENOENT)
		return err_because(e, PTCP_ECONFIG, ENOENT,
		    "%s: no queue of jobs is there (make one by ptcp jobs add or "
		    "run, or name its directory by --state)", dir);
	return err_sys(e, PTCP_ECONFIG, "%s: cannot open the queue of jobs", dir);
}

/* Who may write into the directory may put links in the places of its files. */
static int check_owner(const char *dir, struct ptcp_err *e)
{
	struct stat st;

	if (stat(dir, &st) != 0)
		return no_queue(e, dir);
	if (st.st_uid != geteuid() || (st.st_mode & 022) != 0)
		return err_set(e, PTCP_ECONFIG, "%s: not a directory of this user alone, who carries out its jobs "
		    "(correct owner and mode)", dir);
	return 0;
}

int queue_journal_open(struct queue_journal *j, const char *dir, bool make, struct ptcp_err *e)
{
	struct stat st;
	int r;

	*j = (struct queue_journal){ .fd = -1 };
	if ((make && (r = userdir_make(dir, e)) < 0) || (r = check_owner(dir, e)) < 0)
		return r;
	if (asprintf(&j->path, "%s/journal", dir) < 0)
		return j->path = NULL, err_nomem(e);
	j->fd = open(j->path, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | (make ? O_CREAT : 0),
	    0600);
	if (j->fd < 0)
		return no_queue(e, dir);
	if (fstat(j->fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022) != 0)
		return err_set(e, PTCP_ECONFIG, "%s: not a file of this user alone, who carries out its jobs (correct "
		    "owner and mode)", j->path);
	if (make && st.st_size == 0 && !atomic_file_sync_name(j->path))
		return err_sys(e, PTCP_EIO, "%s: cannot sync the directory", dir);
	return 0;
}

void queue_journal_close(struct queue_journal *j)
{
	fd_close(&j->fd);
	free(j->path);
	j->path = NULL;
}

static int apply_line(struct queue_journal *j, struct job_queue *q, char *line, size_t n, struct ptcp_err *e)
{
	char *copy = j->each != NULL ? strndup(line, n) : NULL, *fields;
	const char *word;
	int r;

	j->line++;
	if (copy != NULL && queue_record_read(copy, n, &word, &fields))
		j->each(j->arg, word, fields);
	free(copy);
	if (!queue_record_read(line, n, &word, &fields))
		return err_set(e, PTCP_ECONFIG, "%s:%u: damaged: its checksum differs (restore the file, or remove the "
		    "line)", j->path, j->line);
	if ((r = queue_apply(q, word, fields, e)) < 0)
		return err_while(e, r, "%s:%u", j->path, j->line);
	return 0;
}

/* Applies the complete lines of `text`; *used: their bytes. */
static int apply_lines(struct queue_journal *j, struct job_queue *q, char *text, size_t n, size_t *used,
    struct ptcp_err *e)
{
	char *end;
	int r = 0;

	*used = 0;
	while (r == 0 && (end = memchr(text + *used, '\n', n - *used)) != NULL) {
		r = apply_line(j, q, text + *used, (size_t)(end - text) - *used, e);
		*used = (size_t)(end - text) + 1;
	}
	return r;
}

/* Another program has emptied or replaced the journal: nothing may be appended to the rest. */
static int check_whole(const struct queue_journal *j, struct ptcp_err *e)
{
	struct stat st;

	if (fstat(j->fd, &st) != 0)
		return err_sys(e, PTCP_EIO, "%s: cannot read", j->path);
	if (st.st_nlink > 0 && st.st_size >= j->done)
		return 0;
	return err_set(e, PTCP_ECONFIG, "%s: %s while the queue was in use: the jobs are lost (restore the file, or "
	    "add the jobs again)", j->path, st.st_nlink > 0 ? "shortened" : "removed");
}

int queue_journal_follow(struct queue_journal *j, struct job_queue *q, struct ptcp_err *e)
{
	size_t room = READ_BYTES, have = 0, used;
	char *text = malloc(room + 1), *more;
	ssize_t n = 0;
	int r = text != NULL ? check_whole(j, e) : err_nomem(e);

	while (r == 0 && (n = pread(j->fd, text + have, room - have, j->done + (off_t)have)) > 0) {
		have += (size_t)n;
		r = apply_lines(j, q, text, have, &used, e);
		j->done += (off_t)used;
		memmove(text, text + used, have -= used);
		if (have == room && (more = realloc(text, room * 2 + 1)) != NULL)
			text = more, room *= 2;
		if (have == room)
			r = err_nomem(e);
	}
	if (r == 0 && n < 0)
		r = err_sys(e, PTCP_EIO, "%s: cannot read", j->path);
	free(text);
	return r;
}

int queue_journal_lock(struct queue_journal *j, struct job_queue *q, int wait_ms, struct ptcp_err *e)
{
	int r;

	if (!fd_lock(j->fd, wait_ms))
		return err_sys(e, PTCP_EIO, "%s: cannot lock", j->path);
	if ((r = queue_journal_follow(j, q, e)) < 0)
		queue_journal_unlock(j);
	return r;
}

void queue_journal_unlock(struct queue_journal *j) { flock(j->fd, LOCK_UN); }

static int write_all(const struct queue_journal *j, const struct queue_record *rec, struct ptcp_err *e)
{
	size_t at = 0;
	ssize_t n;
	int sys;

	/* a torn line would become the beginning of this record */
	if (ftruncate(j->fd, j->done) != 0)
		return err_sys(e, PTCP_EIO, "%s: cannot remove a torn line", j->path);
	while (at < rec->n && (n = write(j->fd, rec->text + at, rec->n - at)) > 0)
		at += (size_t)n;
	if (at == rec->n && fsync(j->fd) == 0)
		return 0;
	sys = errno != 0 ? errno : EIO;
	(void)!ftruncate(j->fd, j->done);
	errno = sys;
	return err_sys(e, err_from_errno(sys), "%s: cannot record", j->path);
}

int queue_journal_append(struct queue_journal *j, struct job_queue *q, const struct queue_record *rec,
    struct ptcp_err *e)
{
	int r = rec->failed ? err_nomem(e) : check_whole(j, e);

	if (r == 0)
		r = write_all(j, rec, e);
	return r < 0 ? r : queue_journal_follow(j, q, e);
}
