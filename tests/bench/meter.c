/* Runs a command and says what it has cost, and what it has cost the daemons it talked to.
 *
 *   meter [-d PID]... COMMAND...     prints: seconds  client CPU s  daemon CPU s  client KiB  daemon KiB
 *   meter port                       prints a TCP port of 127.0.0.1 that is free now
 *
 * The command's CPU time is what wait4() says of it and the children it waited for. A daemon's is
 * /proc/PID/stat before and after, of it, its children and theirs, those already waited for
 * included: to 10 ms. Both times meter first waits until it has no children. A daemon that ignores SIGCHLD would not
 * account for them: that is an error. Memory is the largest resident size of one process on each side. The exit status
 * is the command's. */
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DAEMONS_MAX 8
#define TREE_MAX 256
#define POLL_NS 20000000L
#define SCAN_EVERY 8     /* polls: looking for new children reads all of /proc */
#define STEADY_POLLS 250 /* until we give up waiting for children to end */

static int daemons[DAEMONS_MAX];
static unsigned n_daemons;

static int tree[TREE_MAX]; /* the daemons first, then their descendants */
static unsigned n_tree;
static unsigned long long ticks; /* of the tree, at the last scan */
static long daemon_kib;

static void die(const char *what)
{
	fprintf(stderr, "meter: %s\n", what);
	exit(125);
}

struct proc {
	int pid, parent;
	unsigned long long ticks;
};

/* False when the process is gone. */
static bool proc_read(int pid, struct proc *p)
{
	unsigned long long u, s;
	long long cu, cs;
	char path[64], line[1024], *at;
	size_t n;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	if ((f = fopen(path, "r")) == NULL)
		return false;
	n = fread(line, 1, sizeof line - 1, f);
	fclose(f);
	line[n] = '\0';
	/* Behind the name, which may hold anything. */
	if ((at = strrchr(line, ')')) == NULL || sscanf(at + 1,
	    " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %lld %lld",
	    &p->parent, &u, &s, &cu, &cs) != 5)
		return false;
	p->pid = pid;
	p->ticks = u + s + (unsigned long long)(cu + cs);
	return true;
}

/* The number behind a key of /proc/PID/status. */
static bool status_read(int pid, const char *key, int base, unsigned long long *value)
{
	char path[64], line[256];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/status", pid);
	if ((f = fopen(path, "r")) == NULL)
		return false;
	while (!found && fgets(line, sizeof line, f) != NULL)
		if (strncmp(line, key, strlen(key)) == 0) {
			*value = strtoull(line + strlen(key), NULL, base);
			found = true;
		}
	fclose(f);
	return found;
}

static bool in_tree(int pid)
{
	unsigned i;

	for (i = 0; i < n_tree; i++)
		if (tree[i] == pid)
			return true;
	return false;
}

/* Finds the daemons and all that descends from them, adds up what they have used. */
static void scan(void)
{
	static struct proc all[8192];
	unsigned n = 0, i;
	struct dirent *d;
	DIR *dir = opendir("/proc");
	bool found = true;

	if (dir == NULL)
		die("no /proc here");
	while ((d = readdir(dir)) != NULL && n < sizeof all / sizeof *all)
		if (d->d_name[0] >= '1' && d->d_name[0] <= '9' && proc_read(atoi(d->d_name), &all[n]))
			n++;
	closedir(dir);
	for (n_tree = 0; n_tree < n_daemons; n_tree++)
		tree[n_tree] = daemons[n_tree];
	while (found) {
		found = false;
		for (i = 0; i < n; i++)
			if (in_tree(all[i].parent) && !in_tree(all[i].pid) && n_tree < TREE_MAX) {
				tree[n_tree++] = all[i].pid;
				found = true;
			}
	}
	ticks = 0;
	for (i = 0; i < n; i++)
		if (in_tree(all[i].pid))
			ticks += all[i].ticks;
}

/* Scans until the daemons have no children and nothing changes: one scan alone could find a child
 * gone whose parent it had read before that waited for it. */
static void settle(void)
{
	const struct timespec pause = { 0, POLL_NS };
	unsigned long long last;
	unsigned i;

	scan();
	for (i = 0; i < STEADY_POLLS && n_daemons > 0; i++) {
		last = ticks;
		nanosleep(&pause, NULL);
		scan();
		if (n_tree == n_daemons && ticks == last)
			return;
	}
}

static void look_at_memory(void)
{
	unsigned long long kib;
	unsigned i;

	for (i = 0; i < n_tree; i++)
		if (status_read(tree[i], "VmHWM:", 10, &kib) && (long)kib > daemon_kib)
			daemon_kib = (long)kib;
}

/* The highest resident size of a daemon counts from here on. */
static void prepare_daemon(int pid)
{
	unsigned long long ignored;
	char path[64];
	FILE *f;

	if (!status_read(pid, "SigIgn:", 16, &ignored))
		die("a daemon is not there");
	if (ignored & 1ull << (SIGCHLD - 1))
		die("a daemon ignores SIGCHLD: what its children cost is unknown");
	snprintf(path, sizeof path, "/proc/%d/clear_refs", pid);
	if ((f = fopen(path, "w")) != NULL) {
		fputs("5", f);
		fclose(f);
	}
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int free_port(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof at;
	int s = socket(AF_INET, SOCK_STREAM, 0);

	if (s < 0 || bind(s, (struct sockaddr *)&at, n) != 0 ||
	    getsockname(s, (struct sockaddr *)&at, &n) != 0)
		die("no free port");
	printf("%d\n", ntohs(at.sin_port));
	return 0;
}

static void on_child(int sig) { (void)sig; }

int main(int argc, char **argv)
{
	const struct timespec poll = { 0, POLL_NS };
	unsigned long long before;
	struct rusage used;
	sigset_t child;
	double start, end;
	unsigned polls;
	int i = 1, status = 0;
	pid_t pid;

	if (argc == 2 && strcmp(argv[1], "port") == 0)
		return free_port();
	for (; i + 1 < argc && strcmp(argv[i], "-d") == 0 && n_daemons < DAEMONS_MAX; i += 2) {
		daemons[n_daemons] = atoi(argv[i + 1]);
		prepare_daemon(daemons[n_daemons++]);
	}
	if (i >= argc)
		die("usage: meter [-d PID]... COMMAND...");
	settle();
	before = ticks;

	/* A signal that is blocked here ends sigtimedwait() at once: no poll is waited out. */
	signal(SIGCHLD, on_child);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	start = seconds();
	if ((pid = fork()) < 0)
		die("fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sigprocmask(SIG_UNBLOCK, &child, NULL);
		dup2(2, 1);
		execvp(argv[i], argv + i);
		fprintf(stderr, "meter: %s: %s\n", argv[i], strerror(errno));
		_exit(127);
	}
	for (polls = 1; wait4(pid, &status, WNOHANG, &used) == 0; polls++) {
		sigtimedwait(&child, NULL, &poll);
		if (n_daemons > 0 && polls % SCAN_EVERY == 2)
			scan();
		look_at_memory();
	}
	end = seconds();
	scan();
	look_at_memory();
	settle();
	printf("%.4f %.4f %.4f %ld %ld\n", end - start,
	    (double)used.ru_utime.tv_sec + (double)used.ru_stime.tv_sec +
	    (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6,
	    (double)(ticks - before) / (double)sysconf(_SC_CLK_TCK), used.ru_maxrss, daemon_kib);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 126;
}
