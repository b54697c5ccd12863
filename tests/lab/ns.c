#include "ns.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/err.h"
#include "veth.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -1;
	ret = write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
	close(fd);
	return ret;
}

int ns_begin(int *user_fd, struct ptcp_err *e)
{
	char map[64];
	unsigned uid = geteuid(), gid = getegid();

	*user_fd = -1;
	if (uid == 0)
		return 0;
	if (unshare(CLONE_NEWUSER) < 0)
		return err_sys(e, PTCP_EREFUSED, "cannot make a user namespace (needs root, or a "
		    "kernel that lets users make namespaces)");
	snprintf(map, sizeof map, "0 %u 1", uid);
	if (write_file("/proc/self/setgroups", "deny") < 0 ||
	    write_file("/proc/self/uid_map", map) < 0)
		return err_sys(e, PTCP_EREFUSED, "cannot map the user namespace's ids");
	snprintf(map, sizeof map, "0 %u 1", gid);
	if (write_file("/proc/self/gid_map", map) < 0)
		return err_sys(e, PTCP_EREFUSED, "cannot map the user namespace's ids");
	/* What changes its rights is no longer open to its owner, so nobody could enter. */
	prctl(PR_SET_DUMPABLE, 1);
	*user_fd = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
	return *user_fd < 0 ? err_sys(e, PTCP_EIO, "cannot open /proc/self/ns/user") : 0;
}

/* The cookie of the namespace the caller is in. */
static unsigned long long cookie_here(void)
{
	unsigned long long cookie = 0;
	socklen_t len = sizeof cookie;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0) {
		getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &len);
		close(fd);
	}
	return cookie;
}

int ns_new(int *fd, struct ns_id *id, struct ptcp_err *e)
{
	struct stat st;

	if (unshare(CLONE_NEWNET) < 0)
		return err_sys(e, PTCP_EREFUSED, "cannot make a network namespace (needs root, or "
		    "user namespaces)");
	*fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (*fd < 0 || fstat(*fd, &st) < 0)
		return err_sys(e, PTCP_EIO, "cannot open /proc/self/ns/net");
	id->inode = st.st_ino;
	id->cookie = cookie_here();
	return 0;
}

static int set_sysctl(const char *name, const char *value)
{
	char path[PATH_MAX];
	size_t n = (size_t)snprintf(path, sizeof path, "/proc/sys/net/%s", name);

	for (size_t i = strlen("/proc/sys/net/"); i < n; i++)
		if (path[i] == '.')
			path[i] = '/';
	return write_file(path, value);
}

int ns_setup_host(const struct topo_node *h, const char *peer, int emu_ns, struct ptcp_err *e)
{
	int r;

	/* No router solicitations and the like: only what tests send. */
	set_sysctl("ipv6.conf.all.disable_ipv6", "1");
	set_sysctl("ipv6.conf.default.disable_ipv6", "1");
	/* One run must not learn from the one before. */
	if (set_sysctl("ipv4.tcp_no_metrics_save", "1") < 0)
		return err_sys(e, PTCP_EIO, "cannot set net.ipv4.tcp_no_metrics_save");
	for (int i = 0; i < h->sysctls; i++)
		if (set_sysctl(h->sysctl[i].name, h->sysctl[i].value) < 0)
			return err_sys(e, PTCP_ECONFIG, "host %s: cannot set net.%s to \"%s\"",
			    h->name, h->sysctl[i].name, h->sysctl[i].value);
	r = veth_create(peer, emu_ns, h->mtu, e);
	if (r == 0)
		r = veth_configure(h->address, h->window_bytes, e);
	return r < 0 ? err_while(e, r, "host %s", h->name) : 0;
}

static int join(pid_t pid, int fd, int type)
{
	char path[64];
	int copy, ret;

	snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
	copy = open(path, O_RDONLY | O_CLOEXEC);
	if (copy < 0)
		return -1;
	ret = setns(copy, type);
	close(copy);
	return ret;
}

int ns_join(pid_t pid, int user_fd, int net_fd, const struct ns_id *id, struct ptcp_err *e)
{
	struct stat st;

	if ((user_fd >= 0 && join(pid, user_fd, CLONE_NEWUSER) < 0) ||
	    join(pid, net_fd, CLONE_NEWNET) < 0)
		return err_sys(e, PTCP_EREFUSED, "cannot enter the host's namespace");
	if (stat("/proc/self/ns/net", &st) < 0 || st.st_ino != id->inode ||
	    cookie_here() != id->cookie)
		return err_set(e, PTCP_EREFUSED, "that namespace is not the lab's any more");
	return 0;
}

int ns_cover_etc_hosts(const char *path, struct ptcp_err *e)
{
	if (unshare(CLONE_NEWNS) < 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount(path, "/etc/hosts", NULL, MS_BIND, NULL) < 0)
		return err_sys(e, PTCP_EIO, "cannot lay the lab's names over /etc/hosts");
	return 0;
}

/* ------------------------------------------------------ ending processes */

/* Whether process `pid` is in namespace `id`: compared by inode and, as numbers
 * come back, by cookie, which a child reads inside. */
static int is_inside(pid_t pid, const struct ns_id *id)
{
	char path[64];
	struct stat st;
	int fd, status = -1;
	pid_t child;

	snprintf(path, sizeof path, "/proc/%d/ns/net", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_ino != id->inode || id->cookie == 0) {
		int same = fd >= 0 && st.st_ino == id->inode;

		if (fd >= 0)
			close(fd);
		return same;
	}
	child = fork();
	if (child == 0) {
		char user[64];
		int ufd;

		snprintf(user, sizeof user, "/proc/%d/ns/user", (int)pid);
		ufd = open(user, O_RDONLY | O_CLOEXEC);
		setns(ufd, CLONE_NEWUSER); /* fails if we are in it already */
		_exit(setns(fd, CLONE_NEWNET) == 0 && cookie_here() == id->cookie ? 0 : 1);
	}
	close(fd);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int is_in_any(pid_t pid, const struct ns_id *id, int n)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof path, "/proc/%d/ns/net", (int)pid);
	if (stat(path, &st) < 0)
		return 0;
	for (int i = 0; i < n; i++)
		if (st.st_ino == id[i].inode)
			return is_inside(pid, &id[i]);
	return 0;
}

/* The process cannot be another one by the time of the signal: pidfd first, look
 * second. */
static int signal_inside(const struct ns_id *id, int n, int sig)
{
	DIR *d = opendir("/proc");
	struct dirent *entry;
	int found = 0;

	while (d && (entry = readdir(d)) != NULL) {
		pid_t pid = (pid_t)atoi(entry->d_name);
		int fd;

		if (pid <= 0 || pid == getpid())
			continue;
		fd = (int)syscall(SYS_pidfd_open, pid, 0);
		if (fd < 0)
			continue;
		if (is_in_any(pid, id, n)) {
			syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0);
			found++;
		}
		close(fd);
	}
	if (d)
		closedir(d);
	return found;
}

int ns_end_processes(const struct ns_id *id, int n)
{
	int found = signal_inside(id, n, SIGTERM), left = found;

	for (int tenths = 0; left > 0 && tenths < 50; tenths++) {
		usleep(100000);
		left = signal_inside(id, n, tenths < 10 ? 0 : SIGKILL);
	}
	return left > 0 ? -1 : found;
}
