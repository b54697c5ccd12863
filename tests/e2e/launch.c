/* Starts a program as a service manager would: with sockets that listen, or a descriptor that does not, and
 * a place to be notified at, what arrives there being written to a file.
 *
 *   launch [-n SOCKETS | -p PORT | -d] [-r RESTARTS] FILE PROGRAM [ARGUMENT...]
 *
 * Signals go on to the program, whose status it ends with; -r: it is started again so many times when it ends, with the
 * same sockets; -p: a socket of this port on all addresses. */
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t child;

static void pass_on(int sig)
{
	kill(child, sig);
}

static int listening(int port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(port > 0 ? INADDR_ANY : INADDR_LOOPBACK), .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (port > 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &port, sizeof port);
	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof sa) < 0 || listen(fd, 64) < 0) {
		perror("launch");
		exit(99);
	}
	return fd;
}

/* An abstract address; it goes with the socket. */
static int notified(char *name, size_t cap)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), n;

	n = snprintf(name, cap, "@ptcp-launch-%ld", (long)getpid());
	memcpy(sa.sun_path, name, (size_t)n);
	sa.sun_path[0] = '\0';
	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, (socklen_t)(sizeof sa.sun_family + (size_t)n)) < 0) {
		perror("launch");
		exit(99);
	}
	return fd;
}

static void make_sockets(int *fd, int sockets, int port, int bad)
{
	int i;

	for (i = 0; i < sockets; i++)
		fd[i] = bad ? open("/dev/null", O_RDONLY) : listening(port);
	for (i = 0; i < sockets; i++) /* above those that are passed */
		fd[i] = fcntl(fd[i], F_DUPFD_CLOEXEC, 20);
}

static void become(char **argv, const int *fd, int sockets)
{
	char text[32];
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* it does not stay when we are killed */
	for (i = 0; i < sockets; i++)
		dup2(fd[i], 3 + i);
	snprintf(text, sizeof text, "%d", sockets);
	setenv("LISTEN_FDS", text, 1);
	snprintf(text, sizeof text, "%ld", (long)getpid());
	setenv("LISTEN_PID", text, 1);
	execv(argv[0], argv);
	perror(argv[0]);
	_exit(99);
}

int main(int argc, char **argv)
{
	int opt, sockets = 1, bad = 0, port = 0, restarts = 0, status = 0, over = 0, fd, passed[8];
	char name[64], text[1024];
	ssize_t n;
	FILE *f;

	while ((opt = getopt(argc, argv, "+n:p:r:d")) != -1)
		if (opt == 'n')
			sockets = atoi(optarg);
		else if (opt == 'p')
			port = atoi(optarg);
		else if (opt == 'r')
			restarts = atoi(optarg);
		else
			bad = 1;
	if (argc - optind < 2 || sockets < 1 || sockets > 8 || (f = fopen(argv[optind], "w")) == NULL)
		return 99;
	fd = notified(name, sizeof name);
	setenv("NOTIFY_SOCKET", name, 1);
	make_sockets(passed, sockets, port, bad);
	if ((child = fork()) == 0)
		become(argv + optind + 1, passed, sockets);
	signal(SIGTERM, pass_on);
	signal(SIGHUP, pass_on);
	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		/* Its last words are read after it has ended: the end is learned once. */
		over = over || waitpid(child, &status, WNOHANG) == child;
		if (poll(&p, 1, over ? 0 : 50) > 0 && (n = recv(fd, text, sizeof text - 1, 0)) > 0) {
			text[n] = '\0';
			fprintf(f, "%s\n", text);
			fflush(f);
		} else if (over && restarts-- > 0) {
			over = 0;
			if ((child = fork()) == 0)
				become(argv + optind + 1, passed, sockets);
		} else if (over) {
			break;
		}
	}
	fclose(f);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}
