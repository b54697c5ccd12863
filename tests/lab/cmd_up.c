/* lab up */
#include "cmd.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/err.h"
#include "keeper.h"

struct up_opts {
	const char *path;
	char name[TOPO_NAME_BYTES];
	pid_t with; /* 0: nobody */
};

/* "a/b/pair.yaml" -> "pair" */
static void name_of(const char *path, char *name)
{
	const char *slash = strrchr(path, '/');
	char *dot;

	snprintf(name, TOPO_NAME_BYTES, "%s", slash ? slash + 1 : path);
	dot = strrchr(name, '.');
	if (dot)
		*dot = '\0';
}

/* A process id, or -1. */
static pid_t pid_of(const char *text)
{
	char *end;
	long pid = strtol(text, &end, 10);

	return end == text || *end != '\0' || pid < 1 || pid > INT_MAX ? -1 : (pid_t)pid;
}

static int parse(struct up_opts *o, int argc, char **argv)
{
	const char *name = NULL;

	memset(o, 0, sizeof *o);
	for (int i = 1; i < argc; i++) {
		const char *a = argv[i];

		if ((strcmp(a, "-n") == 0 || strcmp(a, "--name") == 0) && i + 1 < argc)
			name = argv[++i];
		else if ((strcmp(a, "-w") == 0 || strcmp(a, "--with") == 0) && i + 1 < argc)
			o->with = pid_of(argv[++i]);
		else if (a[0] == '-' || o->path)
			return -1;
		else
			o->path = a;
	}
	if (o->path == NULL || o->with < 0)
		return -1;
	if (name)
		snprintf(o->name, sizeof o->name, "%s", strlen(name) < TOPO_NAME_BYTES ? name : "");
	else
		name_of(o->path, o->name);
	return state_name_ok(o->name) ? 0 : -1;
}

/* What crashed labs left, whoever's turn it was to clear it. */
static void clear_all_crashed(void)
{
	char **names;
	int n;

	if (state_list(&names, &n, NULL) < 0)
		return;
	for (int i = 0; i < n; i++) {
		if (state_clear_crashed(names[i], NULL) == 1)
			fprintf(stderr, "lab: cleared away what the crashed lab %s left\n", names[i]);
		free(names[i]);
	}
	free(names);
}

/* *no_namespaces tells a machine where labs may not be made from other failures. */
static int up(const struct up_opts *o, struct topo *t, int *no_namespaces, struct ptcp_err *e)
{
	char path[PATH_MAX];
	struct keeper_opts k = { .name = o->name, .topology = o->path, .with_pidfd = -1 };
	int r;

	if (realpath(o->path, path))
		k.topology = path;
	if (o->with > 0) {
		k.with_pidfd = (int)syscall(SYS_pidfd_open, o->with, 0);
		if (k.with_pidfd < 0)
			return err_sys(e, PTCP_EUSAGE, "process %d", (int)o->with);
	}
	k.lock_fd = state_create(o->name, e);
	if (k.lock_fd < 0)
		return k.lock_fd;
	r = keeper_start(t, &k, e);
	*no_namespaces = r == PTCP_EREFUSED;
	return r < 0 ? err_while(e, r, "lab %s", o->name) : 0;
}

int cmd_up(int argc, char **argv)
{
	struct up_opts o;
	struct topo *t;
	struct ptcp_err e;
	int no_namespaces = 0, r;

	if (parse(&o, argc, argv) < 0)
		return cmd_usage(argv);
	if (topo_load(&t, o.path, &e) < 0) {
		/* As compilers do, so that editors find the place. */
		fprintf(stderr, "%s\n", e.msg);
		return EXIT_USAGE;
	}
	clear_all_crashed();
	r = up(&o, t, &no_namespaces, &e);
	if (r == 0)
		printf("lab %s is up: %d hosts, %d links\n", o.name, t->hosts, t->links);
	topo_free(t);
	if (r < 0) {
		cmd_fail(&e);
		return no_namespaces ? EXIT_NO_NAMESPACES : 1;
	}
	return 0;
}
