/* The driver of the network laboratory; see README.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "core/err.h"

static const struct cmd {
	const char *name;
	int (*run)(int, char **);
	const char *use, *what;
} cmds[] = {
	{ "up", cmd_up, "[-n NAME] [-w PID] TOPOLOGY.yaml",
	    "make a lab (named as the file); -w ends it with that process" },
	{ "exec", cmd_exec, "[-n NAME] HOST COMMAND [ARGUMENT]...",
	    "run a command on a host, as this process" },
	{ "addr", cmd_addr, "[-n NAME] [HOST]", "print the address of a host, or of all" },
	{ "set", cmd_set, "[-n NAME] LINK KEY=VALUE...",
	    "change rate, delay, jitter, loss, queue, reorder, police, red" },
	{ "cut", cmd_cut, "[-n NAME] LINK", "let a link lose everything" },
	{ "restore", cmd_restore, "[-n NAME] LINK", "end a cut" },
	{ "stats", cmd_stats, "[-n NAME] [LINK]", "counters of the emulator and links" },
	{ "down", cmd_down, "[-n NAME] | -a", "end a lab and all that runs in it; -a: all labs" },
	{ "list", cmd_list, "", "labs that are up, and leftovers of crashed ones" },
	{ "selftest", cmd_selftest, "[-q] [TEST]...",
	    "measure the laboratory's own accuracy; -q: shorter, rougher" },
};
#define CMDS (sizeof cmds / sizeof *cmds)

static int help(FILE *f)
{
	fputs("usage: lab COMMAND ...\n", f);
	for (size_t i = 0; i < CMDS; i++)
		fprintf(f, "  %-9s%s\n           %s\n", cmds[i].name, cmds[i].use, cmds[i].what);
	fputs("LINK is a link's name, NAME/fwd or NAME/rev for one direction, or all. Without\n"
	    "-n NAME a command means the lab in $PTCP_LAB, or the only one that is up.\n", f);
	return f == stdout ? 0 : EXIT_USAGE;
}

int cmd_usage(char **argv)
{
	for (size_t i = 0; i < CMDS; i++)
		if (strcmp(cmds[i].name, argv[0]) == 0)
			fprintf(stderr, "usage: lab %s %s\n", cmds[i].name, cmds[i].use);
	return EXIT_USAGE;
}

int cmd_fail(const struct ptcp_err *e)
{
	fprintf(stderr, "lab: %s\n", e->msg);
	return e->code == PTCP_EUSAGE || e->code == PTCP_ECONFIG ? EXIT_USAGE : 1;
}

int cmd_name_option(int argc, char **argv, const char **name)
{
	const char *given = NULL;
	int at = 1;

	if (argc > 1 && (strcmp(argv[1], "-n") == 0 || strcmp(argv[1], "--name") == 0)) {
		given = argv[2];
		at = 3;
	} else if (argc > 1 && argv[1][0] == '-' && argv[1][1] != '\0' &&
	    strcmp(argv[1], "--") != 0) {
		return -1;
	} else if (argc > 1 && strcmp(argv[1], "--") == 0) {
		at = 2;
	}
	if (at == 3 && (given == NULL || !state_name_ok(given)))
		return -1;
	*name = given;
	return at;
}

/* The name of the only lab that is up. */
static int only_lab(char *name, size_t size, struct ptcp_err *e)
{
	char **names;
	int n, up = 0, r = state_list(&names, &n, e);

	if (r < 0)
		return r;
	for (int i = 0; i < n; i++) {
		int fd = state_lock(names[i], NULL);

		if (fd == PTCP_EREFUSED && up++ == 0)
			snprintf(name, size, "%s", names[i]);
		if (fd >= 0)
			close(fd);
		free(names[i]);
	}
	free(names);
	if (up == 0)
		return err_set(e, PTCP_ENOTYET, "there is no lab (lab up TOPOLOGY.yaml makes one)");
	if (up > 1)
		return err_set(e, PTCP_EUSAGE, "there are %d labs: say which with -n NAME", up);
	return 0;
}

int cmd_find_lab(struct state *s, const char *name, struct ptcp_err *e)
{
	char found[TOPO_NAME_BYTES];
	int fd, r;

	if (name == NULL)
		name = getenv("PTCP_LAB");
	if (name == NULL) {
		r = only_lab(found, sizeof found, e);
		if (r < 0)
			return r;
		name = found;
	}
	if (!state_name_ok(name))
		return err_set(e, PTCP_EUSAGE, "\"%s\" is no lab's name", name);
	fd = state_lock(name, e);
	if (fd >= 0) {
		close(fd);
		return err_set(e, PTCP_ENOTYET, "lab %s has crashed (lab down -n %s clears it "
		    "away)", name, name);
	}
	return fd == PTCP_EREFUSED ? state_read(s, name, e) : fd;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		for (size_t i = 0; i < CMDS; i++)
			if (strcmp(argv[1], cmds[i].name) == 0)
				return cmds[i].run(argc - 1, argv + 1);
	return help(argc > 1 && strstr(argv[1], "help") ? stdout : stderr);
}
