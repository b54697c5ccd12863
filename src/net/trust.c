#include "net/trust.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/atomic_file.h"
#include "core/text.h"
#include "core/trusted_file.h"
#include "core/userdir.h"
#include "net/identity.h"

#define PATH_BYTES (USERDIR_BYTES + 64)

static int file_path(char out[PATH_BYTES], const char *dir, const char *name, struct ptcp_err *e)
{
	char where[USERDIR_BYTES];
	int r;

	if ((r = userdir_config(where, dir, e)) < 0)
		return r;
	snprintf(out, PATH_BYTES, "%s/%s", where, name);
	return 0;
}

/* Splits off the next word of a line; NULL at the end. */
static char *word(char **line)
{
	char *p = *line + strspn(*line, " \t\r\n"), *end = p + strcspn(p, " \t\r\n");

	if (*p == '\0' || *p == '#')
		return NULL;
	*line = end + (*end != '\0');
	*end = '\0';
	return p;
}

struct lines {
	FILE *f;
	char *line;
	size_t cap;
};

/* Stands for a NUL, which would end the line early: a NUL in the line of a client would cut off its restrictions. */
#define NUL_MARK '\1'

/* The first word of the next line that has any, and the rest of the line. */
static bool next_line(struct lines *l, char **first, char **rest)
{
	ssize_t n;
	char *p;

	while ((n = getline(&l->line, &l->cap, l->f)) > 0) {
		while ((p = memchr(l->line, '\0', (size_t)n)) != NULL)
			*p = NUL_MARK;
		*rest = l->line;
		if ((*first = word(rest)) != NULL)
			return true;
	}
	return false;
}

static void close_lines(struct lines *l)
{
	free(l->line);
	fclose(l->f);
}

/* NULL with `e`; e->sys is ENOENT if the file does not exist. */
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
	if ((f = fdopen(fd, "r")) == NULL) {
		err_sys(e, PTCP_ECONFIG, "reading %s", path);
		close(fd);
	}
	return f;
}

/* PTCP_ECONFIG when the file cannot be read or trusted; *out NULL: it does not exist. */
static int open_trusted(FILE **out, const char *dir, const char *name, struct ptcp_err *e)
{
	char path[PATH_BYTES];
	struct ptcp_err why;
	const char *fault;
	int r;

	*out = NULL;
	if ((r = file_path(path, dir, name, e)) < 0)
		return r;
	if ((*out = open_file(path, &why)) == NULL) {
		if (why.sys == ENOENT)
			return 0;
		if (e != NULL)
			*e = why;
		return why.code;
	}
	if ((fault = trusted_file_fault(fileno(*out), path)) == NULL)
		return 0;
	fclose(*out);
	*out = NULL;
	return err_set(e, PTCP_ECONFIG, "%s: %s", path, fault);
}

/* ---- known_hosts ---- */

int known_hosts_check(const char *dir, const char *host, const char *fingerprint, struct ptcp_err *e)
{
	enum known_host found = HOST_UNKNOWN;
	char *rest, *name, *fp;
	struct lines l = { .f = NULL };
	int r;

	if ((r = open_trusted(&l.f, dir, "known_hosts", e)) < 0)
		return r;
	if (l.f == NULL)
		return HOST_UNKNOWN;
	while (found != HOST_MATCHES && next_line(&l, &name, &rest))
		if (strcasecmp(name, host) == 0 && (fp = word(&rest)) != NULL)
			found = strcmp(fp, fingerprint) == 0 ? HOST_MATCHES : HOST_DIFFERS;
	r = ferror(l.f) ? err_set(e, PTCP_ECONFIG, "known_hosts: reading failed (check the disk)") : (int)found;
	close_lines(&l);
	return r;
}

bool known_hosts_single(const char *dir, const char *host, char fingerprint[PTCP_FINGERPRINT_BYTES])
{
	char path[PATH_BYTES], *rest, *name, *fp;
	struct lines l = { .f = NULL };
	unsigned n = 0;

	if (file_path(path, dir, "known_hosts", NULL) < 0 || (l.f = open_file(path, NULL)) == NULL)
		return false;
	while (next_line(&l, &name, &rest)) {
		if ((fp = word(&rest)) == NULL || strcasecmp(name, host) != 0 || !identity_fingerprint_ok(fp) ||
		    (n > 0 && strcmp(fp, fingerprint) == 0))
			continue;
		strcpy(fingerprint, fp);
		n++;
	}
	close_lines(&l);
	return n == 1;
}

/* Whether the last line lacks its newline, as after editing by hand. */
static bool ends_in_line(int fd)
{
	struct stat st;
	char last;

	return fstat(fd, &st) == 0 && st.st_size > 0 && pread(fd, &last, 1, st.st_size - 1) == 1 &&
	    last != '\n';
}

/* Whether a line of known_hosts can hold the name. */
static bool host_ok(const char *host)
{
	const char *p;

	for (p = host; *p != '\0'; p++)
		if (!isgraph((unsigned char)*p))
			return false;
	return host[0] != '\0' && host[0] != '#';
}

static int append_host(const char *path, const char *host, const char *fingerprint, struct ptcp_err *e)
{
	char line[512];
	int fd, n, r = 0;

	fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);
	if (fd < 0)
		return err_sys(e, PTCP_ECONFIG, "writing %s", path);
	n = snprintf(line, sizeof line, "%s%s %s\n", ends_in_line(fd) ? "\n" : "", host, fingerprint);
	errno = EIO; /* for a partial write */
	if (n >= (int)sizeof line)
		r = err_set(e, PTCP_ECONFIG, "the name of the host is too long for known_hosts (use its address)");
	else if (write(fd, line, (size_t)n) != n) /* a single write keeps lines whole even for programs without the lock */
		r = err_sys(e, PTCP_ECONFIG, "writing %s", path);
	close(fd);
	return r;
}

int known_hosts_add(const char *dir, const char *host, const char *fingerprint, struct ptcp_err *e)
{
	char path[PATH_BYTES];
	int lock, r;

	if ((r = file_path(path, dir, "known_hosts", e)) < 0)
		return r;
	if (!host_ok(host))
		return err_set(e, PTCP_ECONFIG, "the name of the host cannot be written to known_hosts (use its address)");
	if ((lock = userdir_lock(path, e)) < 0)
		return lock;
	r = known_hosts_check(dir, host, fingerprint, e);
	if (r == HOST_MATCHES)
		r = 0;
	else if (r >= 0)
		r = append_host(path, host, fingerprint, e);
	close(lock);
	return r;
}

/* ---- authorized_clients ---- */

/* Writes " KEY=VALUE" (s may be NULL), percent-encoding bytes that would break the line. */
static void write_value(FILE *f, const char *key, const char *s)
{
	if (s == NULL)
		return;
	fprintf(f, " %s=", key);
	for (; *s != '\0'; s++)
		fprintf(f, (unsigned char)*s <= ' ' || *s == '%' || *s == '#' || *s == 0x7f ? "%%%02X" : "%c",
		    (unsigned char)*s);
}

/* Parses the words after the fingerprint; false if a word is unknown. */
static bool parse_permission(char *rest, struct authorization *a)
{
	char *w;

	*a = (struct authorization){ 0 };
	if (strchr(rest, NUL_MARK) != NULL)
		return false;
	while ((w = word(&rest)) != NULL) {
		if (strcmp(w, "read-only") == 0)
			a->read_only = true;
		else if (strcmp(w, "no-relay") == 0)
			a->no_relay = true;
		else if (strncmp(w, "root=/", 6) == 0) {
			if (!text_percent_decode(a->root, sizeof a->root, w + 5))
				return false;
		} else if (strncmp(w, "name=", 5) == 0) {
			if (!text_percent_decode(a->name, sizeof a->name, w + 5))
				return false;
		} else {
			return false;
		}
	}
	return true;
}

/* *f NULL: nobody is admitted; negative, with the reason in the log, unless the file is missing. */
static int open_clients(FILE **f, const char *dir, const struct log *log)
{
	struct ptcp_err e;
	int r = open_trusted(f, dir, "authorized_clients", &e);

	if (r == 0)
		return 0;
	*f = NULL;
	log_at(log, LOG_ERROR, "trust", "no client is admitted: %s", e.msg);
	return r;
}

int authorized_find(const char *dir, const char *fingerprint, struct authorization *out,
    const struct log *log)
{
	struct lines l = { .f = NULL };
	struct authorization a;
	char *rest, *fp;
	int found = open_clients(&l.f, dir, log);

	if (l.f == NULL)
		return found;
	while (next_line(&l, &fp, &rest)) {
		if (strcmp(fp, fingerprint) != 0)
			continue;
		found = parse_permission(rest, &a);
		if (!found)
			log_at(log, LOG_ERROR, "trust", "authorized_clients: the line of %s is malformed: refused",
			    fingerprint);
		break;
	}
	if (ferror(l.f))
		found = PTCP_EIO;
	close_lines(&l);
	if (found > 0)
		*out = a;
	return found;
}

bool authorized_changed(const char *dir, struct trust_stamp *last)
{
	struct trust_stamp now = { .exists = false };
	char path[PATH_BYTES];
	struct stat st;
	bool same;

	if (file_path(path, dir, "authorized_clients", NULL) == 0 && stat(path, &st) == 0)
		now = (struct trust_stamp){ true, st.st_dev, st.st_ino, st.st_size, st.st_ctim };
	same = now.exists == last->exists && now.dev == last->dev && now.ino == last->ino &&
	    now.size == last->size && now.changed.tv_sec == last->changed.tv_sec &&
	    now.changed.tv_nsec == last->changed.tv_nsec;
	*last = now;
	return !same;
}

int authorized_each(const char *dir, void (*each)(void *arg, const char *fingerprint, const struct authorization *a),
    void *arg, struct ptcp_err *e)
{
	struct lines l = { .f = NULL };
	struct authorization a;
	char *rest, *fp;
	int r = open_trusted(&l.f, dir, "authorized_clients", e);

	if (r < 0 || l.f == NULL)
		return r;
	while (next_line(&l, &fp, &rest))
		if (identity_fingerprint_ok(fp) && parse_permission(rest, &a))
			each(arg, fp, &a);
	if (ferror(l.f))
		r = err_sys(e, PTCP_ECONFIG, "reading authorized_clients");
	close_lines(&l);
	return r;
}

static void write_permission(FILE *f, const char *fingerprint, const struct ptcp_permission *p)
{
	fprintf(f, "%s", fingerprint);
	if (p->read_only)
		fputs(" read-only", f);
	if (p->no_relay)
		fputs(" no-relay", f);
	write_value(f, "root", p->root);
	write_value(f, "name", p->name);
	fputc('\n', f);
}

/* Copies all lines except those of the fingerprint; returns whether it left out a line. */
static int copy_others(FILE *to, const char *path, const char *fingerprint, struct ptcp_err *e)
{
	char *line = NULL, last = '\n';
	size_t cap = 0, n = strlen(fingerprint);
	struct ptcp_err why;
	FILE *from = open_file(path, &why);
	int found = 0;
	ssize_t got;

	if (from == NULL && why.sys != ENOENT && e != NULL)
		*e = why;
	if (from == NULL)
		return why.sys == ENOENT ? 0 : why.code;
	while ((got = getline(&line, &cap, from)) > 0) {
		const char *p = line + strspn(line, " \t");

		if (strncmp(p, fingerprint, n) == 0 && (p[n] == '\0' || isspace((unsigned char)p[n])))
			found = 1;
		else
			fwrite(line, 1, (size_t)got, to);
		last = line[got - 1];
	}
	if (last != '\n') /* an unterminated last line, edited by hand */
		fputc('\n', to);
	if (ferror(from))
		found = err_set(e, PTCP_ECONFIG, "%s: reading failed (check the disk)", path);
	free(line);
	fclose(from);
	return found;
}

static int replace_file(const char *path, const char *fingerprint, const struct ptcp_permission *p,
    struct ptcp_err *e)
{
	struct atomic_file n;
	int r;

	if (!atomic_file_begin(&n, path))
		return err_sys(e, PTCP_ECONFIG, "writing %s", path);
	r = copy_others(n.f, path, fingerprint, e);
	if (r >= 0 && p != NULL)
		write_permission(n.f, fingerprint, p);
	return atomic_file_end(&n, r >= 0, true) ? r : err_sys(e, PTCP_ECONFIG, "writing %s", path);
}

int authorized_set(const char *dir, const char *fingerprint, const struct ptcp_permission *p,
    struct ptcp_err *e)
{
	char path[PATH_BYTES];
	int lock, r;

	if ((r = file_path(path, dir, "authorized_clients", e)) < 0)
		return r;
	if ((lock = userdir_lock(path, e)) < 0)
		return lock;
	r = replace_file(path, fingerprint, p, e);
	close(lock);
	return r;
}

void ptcp_permission_init(struct ptcp_permission *p)
{
	*p = (struct ptcp_permission){ .size = sizeof *p };
}
