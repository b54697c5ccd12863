/* Runs $PTCP_REAL with the arguments on a kernel without Landlock: its system calls fail as they do there.
 *
 *   PTCP_REAL=ptcp unable ARGUMENT.. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 444, 0, 2), /* landlock_create_ruleset */
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 446, 1, 0), /* landlock_restrict_self */
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof code / sizeof *code, code };
	const char *real = getenv("PTCP_REAL");

	(void)argc;
	if (real == NULL || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
		perror("unable");
		return 126;
	}
	argv[0] = (char *)(size_t)real;
	execv(real, argv);
	perror(real);
	return 127;
}
