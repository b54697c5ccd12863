#include "state.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/err.h"

static const char *const files[] = { "state", "state.new", "control", "hosts", "log", "lock" };

/* Where all labs of this user are; made if it is not there. */
static int base_dir(char *buf, size_t size, struct ptcp_err *e)
{
	const char *given = getenv("PTCP_LAB_DIR"), *run = getenv("XDG_RUNTIME_DIR");
	struct stat st;

	if (given)
		snprintf(buf, size, "%s", given);
	else if (geteuid() == 0)
		snprintf(buf, size, "/run/ptcp-lab");
	else if (run && access(run, W_OK) == 0)
		snprintf(buf, size, "%s/ptcp-lab", run);
	else
		snprintf(buf, size, "/tmp/ptcp-lab-%u", (unsigned)geteuid());
	if (mkdir(buf, 0700) < 0 && errno != EEXIST)
		return err_sys(e, PTCP_EIO, "cannot make %s (PTCP_LAB_DIR sets another)", buf);
	/* In /tmp somebody else could have been first. */
	if (lstat(buf, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return err_set(e, PTCP_EREFUSED, "%s is not ours", buf);
	return 0;
}

int state_path(char *buf, size_t size, const char *name, const char *file, struct ptcp_err *e)
{
	char base[PATH_MAX / 2];
	int r = base_dir(base, sizeof base, e);

	if (r == 0)
		snprintf(buf, size, "%s/%s%s%s", base, name, file[0] ? "/" : "", file);
	return r;
}

int state_name_ok(const char *name)
{
	if (name[0] == '\0' || name[0] == '.' || strlen(name) >= TOPO_NAME_BYTES)
		return 0;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && strchr("-_.", *name) == NULL)
			return 0;
	return 1;
}

/* A directory without a lock file is what is left of a `lab up` that was killed: it
 * gets one, and with it is a crashed lab. The lock file may be removed between our
 * open and our lock: then we hold the lock of nothing, and try again. */
static int lock_file(const char *name, struct ptcp_err *e)
{
	char path[PATH_MAX];
	int r = state_path(path, sizeof path, name, "lock", e);
	struct stat mine, there;

	while (r == 0) {
		int fd = open(path, O_RDWR | O_CLOEXEC | O_CREAT, 0600);

		if (fd < 0)
			return errno == ENOENT ? PTCP_ENOTYET :
			    err_sys(e, PTCP_EIO, "cannot open %s", path);
		if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
			close(fd);
			return err_set(e, PTCP_EREFUSED, "lab %s is up already", name);
		}
		if (fstat(fd, &mine) == 0 && stat(path, &there) == 0 &&
		    mine.st_ino == there.st_ino)
			return fd;
		close(fd);
	}
	return r;
}

int state_create(const char *name, struct ptcp_err *e)
{
	char path[PATH_MAX];

	for (int tries = 0; tries < 10; tries++) {
		int r = state_path(path, sizeof path, name, "", e);

		if (r < 0)
			return r;
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return err_sys(e, PTCP_EIO, "cannot make %s", path);
		r = lock_file(name, e);
		if (r != PTCP_ENOTYET) /* else the directory was just removed */
			return r;
	}
	return err_set(e, PTCP_EIO, "cannot make %s", path);
}

int state_lock(const char *name, struct ptcp_err *e)
{
	int r = lock_file(name, e);

	return r == PTCP_ENOTYET ? err_set(e, r, "there is no lab %s", name) : r;
}

int state_write(const struct state *s, struct ptcp_err *e)
{
	char path[PATH_MAX], new[PATH_MAX];
	int r = state_path(path, sizeof path, s->name, "state", e);
	FILE *f;

	if (r < 0)
		return r;
	state_path(new, sizeof new, s->name, "state.new", e);
	f = fopen(new, "we");
	if (f == NULL)
		return err_sys(e, PTCP_EIO, "cannot write %s", new);
	fprintf(f, "lab %d %d %d %d %s\n", (int)s->keeper, (int)s->emulator, s->user_fd,
	    s->hosts, s->topology);
	for (int i = 0; i < s->hosts; i++)
		fprintf(f, "host %s %u %d %llu %llu\n", s->host[i].name, s->host[i].address,
		    s->host[i].fd, (unsigned long long)s->host[i].id.inode, s->host[i].id.cookie);
	if (fclose(f) != 0 || rename(new, path) < 0)
		return err_sys(e, PTCP_EIO, "cannot write %s", path);
	return 0;
}

static int read_hosts(struct state *s, FILE *f)
{
	for (int i = 0; i < s->hosts; i++) {
		struct state_host *h = &s->host[i];
		unsigned long long inode;

		if (fscanf(f, " host %31s %u %d %llu %llu", h->name, &h->address, &h->fd,
		    &inode, &h->id.cookie) != 5)
			return -1;
		h->id.inode = (ino_t)inode;
	}
	return 0;
}

int state_read(struct state *s, const char *name, struct ptcp_err *e)
{
	char path[PATH_MAX];
	int r = state_path(path, sizeof path, name, "state", e);
	FILE *f;

	if (r < 0)
		return r;
	memset(s, 0, sizeof *s);
	snprintf(s->name, sizeof s->name, "%s", name);
	f = fopen(path, "re");
	if (f == NULL)
		return err_set(e, PTCP_ENOTYET, "there is no lab %s", name);
	if (fscanf(f, "lab %d %d %d %d %4095[^\n]", &s->keeper, &s->emulator, &s->user_fd,
	    &s->hosts, s->topology) != 5 || s->hosts < 1 || s->hosts > TOPO_MAX_NODES ||
	    (s->host = calloc((size_t)s->hosts, sizeof *s->host)) == NULL ||
	    read_hosts(s, f) < 0) {
		r = err_set(e, PTCP_ECONFIG, "%s is damaged", path);
		state_fini(s);
	}
	fclose(f);
	return r;
}

void state_fini(struct state *s)
{
	free(s->host);
	s->host = NULL;
	s->hosts = 0;
}

void state_remove(const char *name)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if (state_path(path, sizeof path, name, files[i], NULL) == 0)
			unlink(path);
	if (state_path(path, sizeof path, name, "", NULL) == 0)
		rmdir(path);
}

int state_list(char ***names, int *n, struct ptcp_err *e)
{
	char base[PATH_MAX / 2];
	struct dirent *entry;
	int r = base_dir(base, sizeof base, e);
	DIR *d = r == 0 ? opendir(base) : NULL;

	*names = NULL;
	*n = 0;
	if (r < 0)
		return r;
	if (d == NULL)
		return err_sys(e, PTCP_EIO, "cannot read %s", base);
	while ((entry = readdir(d)) != NULL) {
		char **more;

		if (!state_name_ok(entry->d_name))
			continue;
		more = realloc(*names, (size_t)(*n + 1) * sizeof *more);
		if (more == NULL)
			break;
		*names = more;
		(*names)[(*n)++] = strdup(entry->d_name);
	}
	closedir(d);
	return 0;
}

int state_clear_crashed(const char *name, struct ptcp_err *e)
{
	struct state s;
	struct ns_id *id;
	int fd = state_lock(name, e), r = 1;

	if (fd < 0)
		return fd == PTCP_EREFUSED || fd == PTCP_ENOTYET ? 0 : fd;
	if (state_read(&s, name, NULL) == 0) {
		id = calloc((size_t)s.hosts, sizeof *id);
		for (int i = 0; id && i < s.hosts; i++)
			id[i] = s.host[i].id;
		if (id == NULL || ns_end_processes(id, s.hosts) < 0)
			r = err_set(e, PTCP_EIO, "processes of the crashed lab %s do not end", name);
		free(id);
		state_fini(&s);
	}
	if (r == 1)
		state_remove(name);
	close(fd);
	return r;
}
