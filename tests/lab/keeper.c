#include "keeper.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/err.h"
#include "emu.h"
#include "ns.h"
#include "state.h"
#include "veth.h"

struct keeper {
	const struct topo *topo;
	const struct keeper_opts *o;
	struct state state;
	int emu_ns, ctl_fd, signal_fd;
};

/* Detach from the caller's terminal and files, whose ends others may wait for. */
static int detach(const struct keeper *k, int report_fd, struct ptcp_err *e)
{
	char path[4096];
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), log;
	int r = state_path(path, sizeof path, k->o->name, "log", e);

	if (r < 0)
		return r;
	log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (log < 0)
		return err_sys(e, PTCP_EIO, "cannot open %s", path);
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(log, 2) < 0)
		return err_sys(e, PTCP_EIO, "cannot open /dev/null");
	for (int fd = 3; fd < 1024; fd++)
		if (fd != report_fd && fd != k->o->lock_fd && fd != k->o->with_pidfd)
			close(fd);
	setsid();
	return chdir("/") < 0 ? err_sys(e, PTCP_EIO, "cannot enter /") : 0;
}

static int make_hosts(struct keeper *k, struct ptcp_err *e)
{
	const struct topo *t = k->topo;
	struct ns_id ignored;
	int r = ns_new(&k->emu_ns, &ignored, e);

	for (int i = 0; r == 0 && i < t->hosts; i++) {
		struct state_host *h = &k->state.host[i];
		char peer[EMU_PEER_NAME_BYTES];

		memcpy(h->name, t->node[i].name, sizeof h->name);
		h->address = t->node[i].address;
		r = ns_new(&h->fd, &h->id, e);
		if (r == 0) {
			emu_peer_name(peer, i);
			r = ns_setup_host(&t->node[i], peer, k->emu_ns, e);
		}
	}
	if (r == 0 && setns(k->emu_ns, CLONE_NEWNET) < 0)
		r = err_sys(e, PTCP_EIO, "cannot enter the emulator's namespace");
	for (int i = 0; r == 0 && i < t->hosts; i++) {
		char peer[EMU_PEER_NAME_BYTES];

		emu_peer_name(peer, i);
		r = veth_bring_up(peer, e);
	}
	return r;
}

static int write_hosts_file(const struct keeper *k, struct ptcp_err *e)
{
	char path[4096];
	int r = state_path(path, sizeof path, k->o->name, "hosts", e);
	FILE *f = r == 0 ? fopen(path, "we") : NULL;

	if (r < 0)
		return r;
	if (f == NULL)
		return err_sys(e, PTCP_EIO, "cannot write %s", path);
	fputs("127.0.0.1 localhost\n", f);
	for (int i = 0; i < k->state.hosts; i++) {
		struct in_addr a = { htonl(k->state.host[i].address) };

		fprintf(f, "%s %s\n", inet_ntoa(a), k->state.host[i].name);
	}
	return fclose(f) == 0 ? 0 : err_sys(e, PTCP_EIO, "cannot write %s", path);
}

static int start_emulator(struct keeper *k, struct ptcp_err *e)
{
	char path[4096];
	sigset_t none;
	struct ptcp_err why;
	pid_t keeper = getpid();
	int r = state_path(path, sizeof path, k->o->name, "control", e);

	k->ctl_fd = r < 0 ? r : ctl_listen(path, e);
	if (k->ctl_fd < 0)
		return k->ctl_fd;
	k->state.emulator = fork();
	if (k->state.emulator < 0)
		return err_sys(e, PTCP_EIO, "cannot start the emulator");
	if (k->state.emulator > 0) {
		close(k->ctl_fd);
		return 0;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != keeper)
		_exit(1);
	close(k->o->lock_fd);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	emu_run(k->topo, k->ctl_fd, &why);
	fprintf(stderr, "emulator: %s\n", why.msg);
	_exit(1);
}

/* Until something ends the lab. */
static void wait_for_end(const struct keeper *k)
{
	struct pollfd p[2] = { { .fd = k->signal_fd, .events = POLLIN },
	    { .fd = k->o->with_pidfd, .events = POLLIN } };

	while (poll(p, 2, -1) < 0 && errno == EINTR)
		;
}

/* Safe at any stage of bringing the lab up. */
static void end_lab(struct keeper *k)
{
	struct ns_id *id = calloc((size_t)k->topo->hosts, sizeof *id);
	int n = 0;

	if (k->state.emulator > 0) {
		kill(k->state.emulator, SIGKILL);
		waitpid(k->state.emulator, NULL, 0);
	}
	for (int i = 0; id && i < k->topo->hosts; i++)
		if (k->state.host[i].id.inode != 0)
			id[n++] = k->state.host[i].id;
	/* The last one made may be where we are, after a failure. */
	if (k->emu_ns >= 0)
		setns(k->emu_ns, CLONE_NEWNET);
	if (n > 0)
		ns_end_processes(id, n);
	free(id);
	state_remove(k->o->name);
}

static int bring_up(struct keeper *k, struct ptcp_err *e)
{
	struct rlimit files = { 4096, 4096 };
	sigset_t set;
	int r;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	setrlimit(RLIMIT_NOFILE, &files); /* if allowed; a host needs one */
	signal(SIGPIPE, SIG_IGN); /* `lab up` may be gone when we report */
	k->signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (k->signal_fd < 0)
		return err_sys(e, PTCP_EIO, "signalfd");
	r = ns_begin(&k->state.user_fd, e);
	if (r == 0)
		r = make_hosts(k, e);
	if (r == 0)
		r = write_hosts_file(k, e);
	if (r == 0)
		r = start_emulator(k, e);
	k->state.keeper = getpid();
	return r == 0 ? state_write(&k->state, e) : r;
}

static void run(const struct topo *t, const struct keeper_opts *o, int report_fd)
{
	struct keeper k = { .topo = t, .o = o, .emu_ns = -1, .signal_fd = -1,
	    .state = { .user_fd = -1, .hosts = t->hosts } };
	struct ptcp_err e = { 0 };

	snprintf(k.state.name, sizeof k.state.name, "%s", o->name);
	snprintf(k.state.topology, sizeof k.state.topology, "%s", o->topology);
	k.state.host = calloc((size_t)t->hosts, sizeof *k.state.host);
	if (k.state.host == NULL)
		err_nomem(&e);
	else if (detach(&k, report_fd, &e) == 0)
		bring_up(&k, &e);
	if (write(report_fd, &e, sizeof e) == sizeof e && e.code == 0) {
		close(report_fd);
		wait_for_end(&k);
	}
	end_lab(&k);
	_exit(0);
}

int keeper_start(const struct topo *t, const struct keeper_opts *o, struct ptcp_err *e)
{
	struct ptcp_err got = { 0 };
	int report[2];
	ssize_t n;
	pid_t pid;

	if (pipe2(report, O_CLOEXEC) < 0)
		return err_sys(e, PTCP_EIO, "pipe");
	pid = fork();
	if (pid == 0)
		run(t, o, report[1]);
	close(report[1]);
	close(o->lock_fd);
	if (pid < 0) {
		close(report[0]);
		return err_sys(e, PTCP_EIO, "fork");
	}
	n = read(report[0], &got, sizeof got);
	close(report[0]);
	if (n == sizeof got && got.code == 0)
		return 0;
	waitpid(pid, NULL, 0);
	if (n != sizeof got)
		return err_set(e, PTCP_EIO, "the lab's keeper died");
	return err_set(e, got.code, "%s", got.msg);
}
