/* lab down, list */
#include "cmd.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/err.h"

#define WAIT_TENTHS 100 /* for the keeper to finish; it needs up to 6 s */

/* Ask the keeper, by pidfd so that it can be no other process; it holds the lock
 * until all is gone. */
static int end_keeper(const char *name, struct ptcp_err *e)
{
	struct state s;
	int fd, lock;

	if (state_read(&s, name, e) < 0) /* coming up just now */
		return err_set(e, PTCP_EREFUSED, "lab %s is coming up; try again", name);
	fd = (int)syscall(SYS_pidfd_open, s.keeper, 0);
	state_fini(&s);
	lock = state_lock(name, NULL);
	if (fd >= 0 && lock == PTCP_EREFUSED)
		syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0);
	if (fd >= 0)
		close(fd);
	for (int i = 0; lock == PTCP_EREFUSED && i < WAIT_TENTHS; i++) {
		usleep(i < 10 ? 10000 : 100000);
		lock = state_lock(name, NULL);
	}
	if (lock >= 0)
		close(lock);
	if (lock == PTCP_EREFUSED)
		return err_set(e, PTCP_ETIMEOUT, "lab %s does not end", name);
	return 0;
}

/* 1: ended, 0: there was none, or an error. */
static int end_lab(const char *name, struct ptcp_err *e)
{
	int lock = state_lock(name, e), r;

	if (lock == PTCP_ENOTYET)
		return 0;
	if (lock == PTCP_EREFUSED) {
		r = end_keeper(name, e);
		if (r < 0)
			return r;
		state_clear_crashed(name, e); /* if the keeper was killed just now */
		return 1;
	}
	if (lock < 0)
		return lock;
	close(lock);
	return state_clear_crashed(name, e);
}

static int end_all(struct ptcp_err *e)
{
	char **names;
	int n, r = state_list(&names, &n, e), worst = r;

	for (int i = 0; r >= 0 && i < n; i++) {
		int ended = end_lab(names[i], e);

		if (ended < 0)
			worst = ended;
		if (ended == 1)
			printf("lab %s is down\n", names[i]);
		free(names[i]);
	}
	if (r >= 0)
		free(names);
	return worst;
}

int cmd_down(int argc, char **argv)
{
	struct ptcp_err e;
	struct state s;
	const char *name;
	int at, r;

	if (argc == 2 && strcmp(argv[1], "-a") == 0)
		return end_all(&e) < 0 ? cmd_fail(&e) : 0;
	at = cmd_name_option(argc, argv, &name);
	if (at < 0 || at != argc)
		return cmd_usage(argv);
	if (name == NULL) {
		r = cmd_find_lab(&s, NULL, &e);
		if (r == PTCP_ENOTYET) /* nothing to do: no failure, whoever asks twice */
			return 0;
		if (r < 0)
			return cmd_fail(&e);
		state_fini(&s);
		name = s.name;
	}
	r = end_lab(name, &e);
	if (r < 0)
		return cmd_fail(&e);
	if (r == 1)
		printf("lab %s is down\n", name);
	return 0;
}

static void print_lab(const char *name)
{
	struct state s;
	int lock = state_lock(name, NULL);

	if (lock >= 0) {
		close(lock);
		printf("%s crashed\n", name);
	} else if (lock == PTCP_EREFUSED && state_read(&s, name, NULL) == 0) {
		printf("%s up keeper=%d emulator=%d hosts=%d topology=%s\n", name,
		    (int)s.keeper, (int)s.emulator, s.hosts, s.topology);
		state_fini(&s);
	}
}

int cmd_list(int argc, char **argv)
{
	struct ptcp_err e;
	char **names;
	int n;

	if (argc > 1)
		return cmd_usage(argv);
	if (state_list(&names, &n, &e) < 0)
		return cmd_fail(&e);
	for (int i = 0; i < n; i++) {
		print_lab(names[i]);
		free(names[i]);
	}
	free(names);
	return 0;
}
