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

/* Splits off the next word of a line; NULL at its end. */
static char *word(char **line)
{
	char *p = *line + strspn(*line, " \t\r\n"), *end = p + strcspn(p, " \t\r\n");

	if (*p == '\0' || *p == '#')
		return NULL;
	*line = end + (*end != '\0');
	*end = '\0';
	return p;
}

/* As it is in its directory: who can write either decides whom we trust. */
static const char *fault(FILE *f, const char *dir)
{
	struct stat st, above;

	if (fstat(fileno(f), &st) < 0 || stat(dir, &above) < 0)
		return "cannot be examined";
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return "belongs to another user (chown it, and look at what it says)";
	if ((st.st_mode & 022) != 0)
		return "others can write it (chmod 600 it, and look at what it says)";
	if ((above.st_mode & 022) != 0 && (above.st_mode & S_ISVTX) == 0)
		return "others can write its directory (chmod 700 that, and look at what the file says)";
	return NULL;
}

/* PTCP_ECONFIG when it cannot be read or trusted; *out NULL: there is none. */
static int open_trusted(FILE **out, const char *dir, const char *name, struct ptcp_err *e)
{
	char path[PATH_BYTES], where[USERDIR_BYTES];
	const char *why;
	int r;

	*out = NULL;
	if ((r = userdir_config(where, dir, e)) < 0 || (r = file_path(path, dir, name, e)) < 0)
		return r;
	if ((*out = fopen(path, "re")) == NULL)
		return errno == ENOENT ? 0 : err_sys(e, PTCP_ECONFIG, "reading %s", path);
	if ((why = fault(*out, where)) == NULL)
		return 0;
	fclose(*out);
	*out = NULL;
	return err_set(e, PTCP_ECONFIG, "%s: %s", path, why);
}

/* ---- known_hosts ---- */

int known_hosts_check(const char *dir, const char *host, const char *fingerprint, struct ptcp_err *e)
{
	char *line = NULL, *rest, *name, *fp;
	enum known found = KNOWN_NOT;
	size_t cap = 0;
	FILE *f;
	int r;

	if ((r = open_trusted(&f, dir, "known_hosts", e)) < 0)
		return r;
	if (f == NULL)
		return KNOWN_NOT;
	while (found != KNOWN_SAME && getline(&line, &cap, f) > 0) {
		rest = line;
		if ((name = word(&rest)) == NULL || (fp = word(&rest)) == NULL ||
		    strcasecmp(name, host) != 0)
			continue;
		found = strcmp(fp, fingerprint) == 0 ? KNOWN_SAME : KNOWN_OTHER;
	}
	r = ferror(f) ? err_set(e, PTCP_ECONFIG, "known_hosts: cannot be read to its end (see whether its disk is in order)") : (int)found;
	free(line);
	fclose(f);
	return r;
}

bool known_hosts_only(const char *dir, const char *host, char fingerprint[PTCP_FINGERPRINT_BYTES])
{
	char path[PATH_BYTES], *line = NULL, *rest, *name, *fp;
	unsigned n = 0;
	size_t cap = 0;
	struct ptcp_err e;
	FILE *f;

	if (file_path(path, dir, "known_hosts", &e) < 0 || (f = fopen(path, "re")) == NULL)
		return false;
	while (getline(&line, &cap, f) > 0) {
		rest = line;
		if ((name = word(&rest)) == NULL || (fp = word(&rest)) == NULL || strcasecmp(name, host) != 0 ||
		    !identity_fingerprint_ok(fp) || (n > 0 && strcmp(fp, fingerprint) == 0))
			continue;
		strcpy(fingerprint, fp);
		n++;
	}
	free(line);
	fclose(f);
	return n == 1;
}

/* A file edited by hand may end within a line. */
static bool ends_in_line(int fd)
{
	struct stat st;
	char last;

	return fstat(fd, &st) == 0 && st.st_size > 0 && pread(fd, &last, 1, st.st_size - 1) == 1 &&
	    last != '\n';
}

/* As a line of known_hosts can hold it. */
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
	errno = EIO; /* if only a part is written */
	if (n >= (int)sizeof line)
		r = err_set(e, PTCP_ECONFIG, "the name of the host is too long for known_hosts (use its address)");
	else if (write(fd, line, (size_t)n) != n) /* one write: lines of who knows no lock stay whole */
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
	if (r == KNOWN_SAME)
		r = 0;
	else if (r >= 0)
		r = append_host(path, host, fingerprint, e);
	close(lock);
	return r;
}

/* ---- authorized_clients ---- */

/* root= values are percent-encoded where a byte would break the line. */
static void encode(char *out, size_t cap, const char *s)
{
	size_t n = 0;

	for (; *s != '\0' && n + 4 < cap; s++) {
		unsigned char c = (unsigned char)*s;

		if (c <= ' ' || c == '%' || c == '#' || c == 0x7f)
			n += (size_t)snprintf(out + n, cap - n, "%%%02X", c);
		else
			out[n++] = *s;
	}
	out[n] = '\0';
}

/* What follows the fingerprint; false if any of it is not understood. */
static bool parse_permission(char *rest, struct authorization *a)
{
	char *w;

	*a = (struct authorization){ 0 };
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

/* NULL (but for a list that is not there, the log says why) when it admits nobody. */
static FILE *open_clients(const char *dir, const struct log *log)
{
	struct ptcp_err e;
	FILE *f;

	if (open_trusted(&f, dir, "authorized_clients", &e) == 0)
		return f;
	log_at(log, LOG_ERROR, "trust", "nobody is let in: %s", e.msg);
	return NULL;
}

int authorized_find(const char *dir, const char *fingerprint, struct authorization *out,
    const struct log *log)
{
	char *line = NULL, *rest, *fp;
	struct authorization a;
	size_t cap = 0;
	int found = 0;
	FILE *f = open_clients(dir, log);

	if (f == NULL)
		return 0;
	while (getline(&line, &cap, f) > 0) {
		rest = line;
		if ((fp = word(&rest)) == NULL || strcmp(fp, fingerprint) != 0)
			continue;
		found = parse_permission(rest, &a);
		if (!found)
			log_at(log, LOG_ERROR, "trust", "authorized_clients: the line of %s is malformed: refused",
			    fingerprint);
		break;
	}
	if (ferror(f))
		found = 0;
	free(line);
	fclose(f);
	if (found)
		*out = a;
	return found;
}

bool authorized_changed(const char *dir, struct trust_stamp *last)
{
	struct trust_stamp now = { .there = false };
	char path[PATH_BYTES];
	struct stat st;
	bool same;

	if (file_path(path, dir, "authorized_clients", NULL) == 0 && stat(path, &st) == 0)
		now = (struct trust_stamp){ true, st.st_dev, st.st_ino, st.st_size, st.st_ctim };
	same = now.there == last->there && now.dev == last->dev && now.ino == last->ino &&
	    now.size == last->size && now.changed.tv_sec == last->changed.tv_sec &&
	    now.changed.tv_nsec == last->changed.tv_nsec;
	*last = now;
	return !same;
}

void authorized_each(const char *dir, void (*each)(void *arg, const struct authorization *a), void *arg,
    const struct log *log)
{
	char *line = NULL, *rest, *fp;
	struct authorization a;
	size_t cap = 0;
	FILE *f = open_clients(dir, log);

	while (f != NULL && getline(&line, &cap, f) > 0) {
		rest = line;
		if ((fp = word(&rest)) != NULL && identity_fingerprint_ok(fp) && parse_permission(rest, &a))
			each(arg, &a);
	}
	free(line);
	if (f != NULL)
		fclose(f);
}

static void write_permission(FILE *f, const char *fingerprint, const struct ptcp_permission *p)
{
	char text[3 * TRUST_ROOT_BYTES + 4];

	fprintf(f, "%s", fingerprint);
	if (p->read_only)
		fputs(" read-only", f);
	if (p->no_relay)
		fputs(" no-relay", f);
	if (p->root != NULL) {
		encode(text, sizeof text, p->root);
		fprintf(f, " root=%s", text);
	}
	if (p->name != NULL) {
		encode(text, sizeof text, p->name);
		fprintf(f, " name=%s", text);
	}
	fputc('\n', f);
}

/* Copies all lines but those of the fingerprint; 1 if there was one. */
static int copy_others(FILE *to, const char *path, const char *fingerprint, struct ptcp_err *e)
{
	char *line = NULL, last = '\n';
	size_t cap = 0, n = strlen(fingerprint);
	FILE *from = fopen(path, "re");
	int found = 0;
	ssize_t got;

	if (from == NULL)
		return errno == ENOENT ? 0 : err_sys(e, PTCP_ECONFIG, "reading %s", path);
	while ((got = getline(&line, &cap, from)) > 0) {
		const char *p = line + strspn(line, " \t");

		if (strncmp(p, fingerprint, n) == 0 && (p[n] == '\0' || isspace((unsigned char)p[n])))
			found = 1;
		else
			fwrite(line, 1, (size_t)got, to);
		last = line[got - 1];
	}
	if (last != '\n') /* edited by hand */
		fputc('\n', to);
	if (ferror(from))
		found = err_set(e, PTCP_ECONFIG, "%s: cannot be read to its end (see whether its disk is in order)", path);
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
