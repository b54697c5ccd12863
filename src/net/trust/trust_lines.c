#include "net/trust/trust_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/atomic_file.h"
#include "core/fd.h"
#include "core/trusted_file.h"

int trust_path(char out[TRUST_PATH_BYTES], const char *dir, const char *name, struct ptcp_err *e)
{
	char where[USERDIR_BYTES];
	int r;

	if ((r = userdir_config(where, dir, e)) < 0)
		return r;
	snprintf(out, TRUST_PATH_BYTES, "%s/%s", where, name);
	return 0;
}

/* Opens a regular file; NULL with `e`, whose `sys` is ENOENT if the file does not exist. */
static FILE *open_file(const char *path, struct ptcp_err *e)
{
	int fd = trusted_file_open(path);
	FILE *f;

	if (fd < 0 && errno == EINVAL)
		err_set(e, PTCP_ECONFIG, "%s: not a regular file (move it away)", path);
	else if (fd < 0)
		err_sys(e, PTCP_ECONFIG, "reading %s", path);
	if (fd < 0)
		return NULL;
	if ((f = fd_file(&fd, "r")) == NULL)
		err_sys(e, PTCP_ECONFIG, "reading %s", path);
	return f;
}

int trust_lines_open(struct trust_lines *l, const char *dir, const char *name, struct ptcp_err *e)
{
	char path[TRUST_PATH_BYTES];
	struct ptcp_err why;
	const char *fault;
	int r;

	*l = (struct trust_lines){ .name = name };
	if ((r = trust_path(path, dir, name, e)) < 0)
		return r;
	if ((l->f = open_file(path, &why)) == NULL) {
		if (why.sys == ENOENT)
			return 0;
		if (e != NULL)
			*e = why;
		return why.code;
	}
	if ((fault = trusted_file_fault(fileno(l->f), path)) == NULL)
		return 1;
	fclose(l->f);
	l->f = NULL;
	return err_set(e, PTCP_ECONFIG, "%s: %s", path, fault);
}

bool trust_lines_raw(struct trust_lines *l)
{
	ssize_t n = getline(&l->line, &l->cap, l->f);
	char *p;

	if (n <= 0)
		return false;
	l->n++;
	/* Byte order marks, before each line: another line becomes the first when the file is written again. */
	while (n >= 3 && memcmp(l->line, "\xef\xbb\xbf", 3) == 0) {
		memmove(l->line, l->line + 3, (size_t)n - 2);
		n -= 3;
	}
	while ((p = memchr(l->line, '\0', (size_t)n)) != NULL)
		*p = TRUST_NUL_MARK;
	return true;
}

#define SPACES " \t\r\n" /* between words */

char *trust_word(char **line)
{
	char *p = *line + strspn(*line, SPACES), *end = p + strcspn(p, SPACES);

	if (*p == '\0' || *p == '#')
		return NULL;
	*line = end + (*end != '\0');
	*end = '\0';
	return p;
}

bool trust_lines_next(struct trust_lines *l, char **first, char **rest)
{
	while (trust_lines_raw(l)) {
		*rest = l->line;
		if ((*first = trust_word(rest)) != NULL)
			return true;
	}
	return false;
}

int trust_lines_close(struct trust_lines *l, int r, struct ptcp_err *e)
{
	if (ferror(l->f))
		r = err_set(e, PTCP_ECONFIG, "%s: reading failed (check the disk)", l->name);
	free(l->line);
	fclose(l->f);
	return r;
}

int trust_lines_have(const char *dir, const char *name, const char *first, struct ptcp_err *e)
{
	struct trust_lines l;
	char *word, *rest;
	int r;

	if ((r = trust_lines_open(&l, dir, name, e)) <= 0)
		return r;
	r = 0;
	while (r == 0 && trust_lines_next(&l, &word, &rest))
		r = strcmp(word, first) == 0;
	return trust_lines_close(&l, r, e);
}

/* ---- Replacing lines ---- */

/* `what` has one space between words, and the line any, as for trust_word(). */
static bool begins(const char *line, const char *what)
{
	size_t n;

	for (;; what += n + 1) {
		line += strspn(line, SPACES);
		n = strcspn(what, " ");
		if (strncmp(line, what, n) != 0 || (line[n] != '\0' && strchr(SPACES, line[n]) == NULL))
			return false;
		line += n;
		if (what[n] == '\0')
			return true;
	}
}

/* Reads lines as trust_lines_next() does, so that a line that counts there is found here. */
static int copy_others(FILE *to, const char *path, const char *what, const char *also, struct ptcp_err *e)
{
	struct trust_lines l = { .name = path };
	struct ptcp_err why;
	int found = 0;

	if ((l.f = open_file(path, &why)) == NULL) {
		if (why.sys != ENOENT && e != NULL)
			*e = why;
		return why.sys == ENOENT ? 0 : why.code;
	}
	while (trust_lines_raw(&l)) {
		if (begins(l.line, what) || (also != NULL && begins(l.line, also))) {
			found = 1;
			continue;
		}
		fputs(l.line, to);
		if (strchr(l.line, '\n') == NULL) /* an unterminated last line, edited by hand */
			fputc('\n', to);
	}
	return trust_lines_close(&l, found, e);
}

int trust_lines_replace(const char *dir, const char *name, const char *what, const char *also, const char *line,
    struct ptcp_err *e)
{
	char path[TRUST_PATH_BYTES];
	struct atomic_file n;
	int lock, r;

	if ((r = trust_path(path, dir, name, e)) < 0)
		return r;
	if ((lock = userdir_lock(path, e)) < 0)
		return lock;
	if (!atomic_file_begin(&n, path)) {
		r = err_sys(e, PTCP_ECONFIG, "writing %s", path);
	} else {
		r = copy_others(n.f, path, what, also, e);
		if (r >= 0 && line != NULL)
			fprintf(n.f, "%s\n", line);
		if (!atomic_file_end(&n, r >= 0, true))
			r = err_sys(e, PTCP_ECONFIG, "writing %s", path);
	}
	fd_close(&lock);
	return r;
}

bool trust_ends_in_line(int fd)
{
	struct stat st;
	char last;

	return fstat(fd, &st) == 0 && st.st_size > 0 && pread(fd, &last, 1, st.st_size - 1) == 1 && last != '\n';
}

bool trust_changed(const char *dir, const char *name, struct trust_stamp *last)
{
	struct trust_stamp now = { .exists = false };
	char path[TRUST_PATH_BYTES];
	struct stat st;
	bool same;

	if (trust_path(path, dir, name, NULL) == 0 && stat(path, &st) == 0)
		now = (struct trust_stamp){ true, st.st_dev, st.st_ino, st.st_size, st.st_ctim };
	same = now.exists == last->exists && now.dev == last->dev && now.ino == last->ino &&
	    now.size == last->size && now.changed.tv_sec == last->changed.tv_sec &&
	    now.changed.tv_nsec == last->changed.tv_nsec;
	*last = now;
	return !same;
}
