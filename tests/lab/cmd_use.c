/* lab exec, addr, set, cut, restore, stats */
#include "cmd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/err.h"
#include "ctl.h"

static const struct state_host *find_host(const struct state *s, const char *name,
    struct ptcp_err *e)
{
	for (int i = 0; i < s->hosts; i++)
		if (strcmp(s->host[i].name, name) == 0)
			return &s->host[i];
	err_set(e, PTCP_EUSAGE, "lab %s has no host \"%s\"", s->name, name);
	return NULL;
}

/* Enter the host; on success this process is there. */
static int enter(const char *lab, const char *host, struct ptcp_err *e)
{
	char path[PATH_MAX];
	struct state s;
	const struct state_host *h;
	int r = cmd_find_lab(&s, lab, e);

	if (r < 0)
		return r;
	h = find_host(&s, host, e);
	r = h == NULL ? PTCP_EUSAGE : state_path(path, sizeof path, s.name, "hosts", e);
	if (r == 0)
		r = ns_join(s.keeper, s.user_fd, h->fd, &h->id, e);
	if (r == 0) {
		/* A comfort: addresses do without it. */
		if (access("/etc/hosts", F_OK) == 0 && ns_cover_etc_hosts(path, e) < 0)
			fprintf(stderr, "lab: %s\n", e->msg);
		setenv("PTCP_LAB", s.name, 1);
		setenv("PTCP_LAB_HOST", host, 1);
	}
	state_fini(&s);
	return r;
}

int cmd_exec(int argc, char **argv)
{
	struct ptcp_err e;
	const char *name;
	int at = cmd_name_option(argc, argv, &name);

	if (at < 0 || argc - at < 2)
		return cmd_usage(argv);
	if (enter(name, argv[at], &e) < 0)
		return cmd_fail(&e);
	execvp(argv[at + 1], argv + at + 1);
	err_sys(&e, PTCP_EIO, "cannot run %s", argv[at + 1]);
	cmd_fail(&e);
	return errno == ENOENT ? 127 : 126;
}

static void print_address(const struct state_host *h, int with_name)
{
	struct in_addr a = { htonl(h->address) };

	if (with_name)
		printf("%s ", h->name);
	printf("%s\n", inet_ntoa(a));
}

int cmd_addr(int argc, char **argv)
{
	struct state s;
	struct ptcp_err e;
	const char *name;
	const struct state_host *h = NULL;
	int at = cmd_name_option(argc, argv, &name);

	if (at < 0 || argc - at > 1)
		return cmd_usage(argv);
	if (cmd_find_lab(&s, name, &e) < 0)
		return cmd_fail(&e);
	if (at < argc) {
		h = find_host(&s, argv[at], &e);
		if (h)
			print_address(h, 0);
	} else {
		for (int i = 0; i < s.hosts; i++)
			print_address(&s.host[i], 1);
	}
	state_fini(&s);
	return at < argc && h == NULL ? cmd_fail(&e) : 0;
}

/* Send "argv[0] arguments" to the emulator and print what it answers. */
static int ask(int argc, char **argv, int least, int most)
{
	char path[PATH_MAX], *words[CTL_MAX_WORDS], *text;
	struct state s;
	struct ptcp_err e;
	const char *name;
	int at = cmd_name_option(argc, argv, &name), n = 1, r;

	if (at < 0 || argc - at < least || argc - at > most)
		return cmd_usage(argv);
	words[0] = argv[0];
	while (at < argc)
		words[n++] = argv[at++];
	r = cmd_find_lab(&s, name, &e);
	if (r == 0) {
		r = state_path(path, sizeof path, s.name, "control", &e);
		state_fini(&s);
	}
	if (r == 0)
		r = ctl_ask(path, n, words, &text, &e);
	if (r < 0)
		return cmd_fail(&e);
	fputs(text, stdout);
	free(text);
	return 0;
}

int cmd_set(int argc, char **argv)
{
	return ask(argc, argv, 2, CTL_MAX_WORDS - 2);
}

int cmd_cut(int argc, char **argv)
{
	return ask(argc, argv, 1, 1);
}

int cmd_restore(int argc, char **argv)
{
	return ask(argc, argv, 1, 1);
}

int cmd_stats(int argc, char **argv)
{
	return ask(argc, argv, 0, 1);
}
