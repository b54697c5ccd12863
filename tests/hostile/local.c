/* What disturbs a host from within: somebody who may write beneath a root, and a kernel that lacks calls. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hostile.h"

static volatile sig_atomic_t over;

static void on_term(int sig)
{
	(void)sig;
	over = 1;
}

/* ARGUMENTS: pairs of paths that are exchanged, one pair after the other, until we are told to end. Then
 * each is where it was, and we print how often. */
static void swap(unsigned port, char **arguments)
{
	unsigned long swaps = 0;
	char **pair = arguments;

	(void)port;
	signal(SIGTERM, on_term);
	puts("open");
	fflush(stdout);
	for (; !over || swaps % 2 != 0; pair = pair[0] != NULL ? pair : arguments) {
		if (renameat2(AT_FDCWD, pair[0], AT_FDCWD, pair[1], RENAME_EXCHANGE) == 0)
			swaps++;
		else if (errno != ENOENT) /* the transfer may just be replacing it */
			die("%s and %s: %s", pair[0], pair[1], strerror(errno));
		else if (over)
			break;
		if (swaps % 2 == 0)
			pair += 2;
	}
	printf("%lu\n", swaps);
}

/* ARGUMENTS: a command, which is run as by a kernel without openat2(2). */
static void without_openat2(unsigned port, char **arguments)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof code / sizeof *code, code };

	(void)port;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		die("no filter for system calls here: %s", strerror(errno));
	if (syscall(SYS_openat2, AT_FDCWD, ".", NULL, 0) != -1 || errno != ENOSYS)
		die("openat2 is there all the same");
	execvp(arguments[0], arguments);
	die("%s: %s", arguments[0], strerror(errno));
}

const struct hostile hostile_local[] = {
	{ "swap", swap }, { "without-openat2", without_openat2 }, { NULL, NULL }
};
