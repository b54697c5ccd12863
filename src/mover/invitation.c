#include "mover/invitation.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/buf.h"
#include "core/clock.h"
#include "core/fd.h"
#include "core/text.h"
#include "core/units.h"
#include "fs/file_system.h"
#include "fs/sys.h"
#include "net/identity.h"

#define FIRST_LINE "ptcp-movers 1"
#define LAST_LINE "end" /* the file is complete */
#define RETRY_NS (100 * NS_PER_MS)

/* ---- Text ---- */

static bool add_line(struct buf *b, const char *word, const char *rest)
{
	size_t n = strlen(word) + strlen(rest) + 1; /* word, text and newline */
	uint8_t *p = buf_reserve(b, n + 1, NULL);

	if (p == NULL)
		return false;
	snprintf((char *)p, n + 1, "%s%s\n", word, rest);
	buf_added(b, n);
	return true;
}

int invitation_text(char **out, const struct invitation *v, struct ptcp_err *e)
{
	char key[2 * sizeof v->key + 1], run[2 * sizeof v->run + 1], port[12], shown[TEXT_NAME_BYTES];
	struct buf b = BUF_INIT;
	unsigned i;
	bool ok;

	text_hex(key, v->key, sizeof v->key);
	text_hex(run, v->run, sizeof v->run);
	ok = add_line(&b, FIRST_LINE, "") && add_line(&b, "run ", run) && add_line(&b, "key ", key) &&
	    add_line(&b, "engine ", v->engine);
	for (i = 0; ok && i < v->n_addresses; i++)
		ok = add_line(&b, "address ", v->address[i]);
	for (i = 0; ok && i < v->n_roots; i++) {
		if (strchr(v->root[i], '\n') != NULL) {
			buf_fini(&b);
			return err_set(e, PTCP_EUSAGE, "movers: %s: a newline in the path (rename it)",
			    text_escape(shown, sizeof shown, v->root[i]));
		}
		ok = add_line(&b, v->serves ? "serve " : v->writes ? "into " : "root ", v->root[i]);
	}
	snprintf(port, sizeof port, "%u", v->port);
	ok = ok && (!v->direct_io || add_line(&b, "direct", "")) && (!v->serves || add_line(&b, "port ", port)) &&
	    add_line(&b, LAST_LINE, "");
	*out = ok ? strndup((const char *)buf_head(&b), buf_len(&b)) : NULL;
	explicit_bzero(key, sizeof key);
	buf_fini(&b);
	return *out != NULL ? 0 : err_nomem(e);
}

static int digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

static bool unhex(uint8_t *out, size_t n, const char *text)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (digit(text[2 * i]) < 0 || digit(text[2 * i + 1]) < 0)
			return false;
		out[i] = (uint8_t)(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
	}
	return text[2 * n] == '\0';
}

static bool take_address(struct invitation *v, const char *text)
{
	char host[SOCK_HOST_BYTES];
	unsigned port = 0;

	if (v->n_addresses == INVITATION_ADDRESSES_MAX || sock_split(text, host, &port, 0, NULL) < 0 || port == 0 ||
	    strlen(text) >= sizeof v->address[0])
		return false;
	strcpy(v->address[v->n_addresses++], text);
	return true;
}

/* All roots are of one kind: "root", "into" or "serve". */
static bool take_root(struct invitation *v, char kind, const char *text)
{
	bool serves = kind == 's', writes = kind != 'r';

	if (v->n_roots == INVITATION_ROOTS_MAX || (v->n_roots > 0 && (v->writes != writes || v->serves != serves)) ||
	    text[0] != '/' || strlen(text) > WIRE_PATH_MAX || (v->root[v->n_roots] = strdup(text)) == NULL)
		return false;
	v->n_roots++;
	v->writes = writes;
	v->serves = serves;
	return true;
}

static bool take_port(struct invitation *v, const char *text)
{
	char *end;
	unsigned long port = strtoul(text, &end, 10);

	v->port = (unsigned)port;
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && port <= 65535;
}

/* One line; *seen: a bit for each of run, key, engine, port and direct. */
static bool take_line(struct invitation *v, const char *line, unsigned *seen)
{
	unsigned bit = 0;
	bool ok = false;

	if (strncmp(line, "run ", 4) == 0) {
		bit = 1;
		ok = unhex(v->run, sizeof v->run, line + 4);
	} else if (strncmp(line, "key ", 4) == 0) {
		bit = 2;
		ok = unhex(v->key, sizeof v->key, line + 4);
	} else if (strncmp(line, "engine ", 7) == 0) {
		bit = 4;
		if ((ok = identity_fingerprint_ok(line + 7)))
			strcpy(v->engine, line + 7);
	} else if (strncmp(line, "address ", 8) == 0) {
		ok = take_address(v, line + 8);
	} else if (strncmp(line, "root ", 5) == 0 || strncmp(line, "into ", 5) == 0) {
		ok = take_root(v, line[0], line + 5);
	} else if (strncmp(line, "serve ", 6) == 0) {
		ok = take_root(v, line[0], line + 6);
	} else if (strncmp(line, "port ", 5) == 0) {
		bit = 8;
		ok = take_port(v, line + 5);
	} else if (strcmp(line, "direct") == 0) {
		bit = 16;
		ok = v->direct_io = true;
	}
	ok = ok && (*seen & bit) == 0;
	*seen |= bit;
	return ok;
}

int invitation_parse(struct invitation *out, const char *text, size_t n, struct ptcp_err *e)
{
	struct invitation v = { .n_roots = 0 };
	char *copy = malloc(n + 1), *line, *rest = copy;
	unsigned seen = 0;
	bool ended = false, ok;

	if (copy == NULL)
		return err_nomem(e);
	memcpy(copy, text, n);
	copy[n] = '\0';
	ok = strlen(copy) == n && (line = strsep(&rest, "\n")) != NULL && strcmp(line, FIRST_LINE) == 0;
	while (ok && !ended && (line = strsep(&rest, "\n")) != NULL && rest != NULL)
		ok = (ended = strcmp(line, LAST_LINE) == 0) || take_line(&v, line, &seen);
	ok = ok && ended && rest != NULL && rest[0] == '\0';
	explicit_bzero(copy, n);
	free(copy);
	if (ok && (seen & 15) == (v.serves ? 15 : 7) && v.n_addresses > 0 && v.n_roots > 0) {
		*out = v;
		explicit_bzero(&v, sizeof v);
		return 0;
	}
	invitation_fini(&v);
	return err_set(e, PTCP_EUSAGE,
	    "not an invitation for movers (ptcp with --movers writes it, and removes it at the end)");
}

void invitation_fini(struct invitation *v)
{
	while (v->n_roots > 0)
		free(v->root[--v->n_roots]);
	explicit_bzero(v, sizeof *v);
}

/* ---- Files ---- */

int invitation_write(const char *path, const char *text, struct ptcp_err *e)
{
	size_t n = strlen(text), at = 0;
	char shown[TEXT_NAME_BYTES];
	ssize_t w = 0;
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600), r = 0;

	text_escape(shown, sizeof shown, path);
	if (fd < 0)
		return err_sys(e, PTCP_ECONFIG, "writing the invitation for movers, %s", shown);
	flock(fd, LOCK_EX | LOCK_NB); /* locked while empty; without locks the file stays if this process is killed */
	while (at < n && (w = write(fd, text + at, n - at)) > 0)
		at += (size_t)w;
	if (at < n || (fsync(fd) != 0 && !fs_cannot(ABILITY_SYNC, errno))) { /* other hosts read the file */
		r = err_sys(e, PTCP_ECONFIG, "writing the invitation for movers, %s", shown);
		unlink(path);
		fd_close(&fd);
	}
	return r < 0 ? r : fd;
}

static void remove_unlocked(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return;
	/* An empty file is being written. */
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		unlinkat(dir, name, 0);
	fd_close(&fd);
}

static void remove_stale(const char *dir, const char *prefix)
{
	DIR *d = opendir(dir);
	const struct dirent *f;

	if (d == NULL)
		return;
	while ((f = readdir(d)) != NULL)
		if (strncmp(f->d_name, prefix, strlen(prefix)) == 0)
			remove_unlocked(dirfd(d), f->d_name);
	closedir(d);
}

/* The host's name is part of the name: hosts may share the directory, but not locks. */
void invitation_path(char out[PATH_MAX], const char *dir, const char *suffix)
{
	char host[HOST_NAME_MAX + 1] = "", prefix[HOST_NAME_MAX + 16];

	if (gethostname(host, sizeof host - 1) != 0)
		host[0] = '\0';
	snprintf(prefix, sizeof prefix, "movers-%s-", host);
	remove_stale(dir, prefix);
	snprintf(out, PATH_MAX, "%s/%s%s", dir, prefix, suffix);
}

static int open_file(const char *path, uint64_t wait_ns, struct ptcp_err *e)
{
	struct mono until = mono_add_ns(mono_now(), wait_ns);
	const struct timespec pause = { 0, (long)RETRY_NS };
	char shown[TEXT_NAME_BYTES];
	struct stat st;
	int fd;

	while ((fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) < 0 && errno == ENOENT &&
	    mono_now().ns < until.ns)
		nanosleep(&pause, NULL);
	text_escape(shown, sizeof shown, path);
	if (fd < 0 && errno == ENOENT)
		return err_set(e, PTCP_EUSAGE, "--join %s: not on this host (name a file that all hosts share with "
		    "--mover-file, or pass the invitation on standard input: --mover-file -)", shown);
	if (fd < 0 || fstat(fd, &st) != 0) {
		fd_close(&fd);
		return err_sys(e, PTCP_EUSAGE, "--join %s", shown);
	}
	if (S_ISREG(st.st_mode) && (st.st_uid == geteuid() || st.st_uid == 0) && (st.st_mode & 077) == 0)
		return fd;
	fd_close(&fd);
	return err_set(e, PTCP_EUSAGE,
	    "--join %s: not a regular file of this user that no other user can access (chmod 600 it)", shown);
}

int invitation_read(struct invitation *out, const char *path, uint64_t wait_ns, struct ptcp_err *e)
{
	bool standard = text_is_stdio(path);
	int fd = standard ? STDIN_FILENO : open_file(path, wait_ns, e), r;
	char *text, shown[TEXT_NAME_BYTES];
	ssize_t got = 0;
	size_t n = 0;

	if (fd < 0)
		return fd;
	if ((text = malloc(INVITATION_MAX_BYTES)) == NULL)
		r = err_nomem(e);
	else {
		while (n < INVITATION_MAX_BYTES && ((got = read(fd, text + n, INVITATION_MAX_BYTES - n)) > 0 ||
		    (got < 0 && errno == EINTR)))
			n += got > 0 ? (size_t)got : 0;
		r = got < 0 ? err_sys(e, PTCP_EUSAGE, "reading") : invitation_parse(out, text, n, e);
		explicit_bzero(text, n);
	}
	free(text);
	if (!standard)
		fd_close(&fd);
	return r < 0 ? err_while(e, r, "--join %s", text_escape(shown, sizeof shown, path)) : 0;
}

int invitation_remove_own(const char *path, struct ptcp_err *e)
{
	struct invitation old;
	char shown[TEXT_NAME_BYTES];
	int fd, r = 0;

	if (invitation_read(&old, path, 0, NULL) < 0)
		return 0;
	invitation_fini(&old);
	if ((fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC)) < 0)
		return 0;
	if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
		r = err_set(e, PTCP_ECONFIG, "--mover-file %s: the invitation of a running process (name another file)",
		    text_escape(shown, sizeof shown, path));
	else if (unlink(path) != 0)
		r = err_sys(e, PTCP_ECONFIG, "--mover-file %s", text_escape(shown, sizeof shown, path));
	fd_close(&fd);
	return r;
}
