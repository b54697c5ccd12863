/* To be preloaded: a host whose firewall drops connections to it. The queue of the listening socket is full, and stays
 * so; connections of the program to others work. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FULL 8 /* connections; two would do */

int listen(int fd, int backlog)
{
	int (*real)(int, int);
	struct sockaddr_storage sa;
	socklen_t n = sizeof sa;
	int i, c;

	(void)backlog;
	*(void **)&real = dlsym(RTLD_NEXT, "listen");
	if (real(fd, 0) != 0 || getsockname(fd, (struct sockaddr *)&sa, &n) != 0)
		return -1;
	if (sa.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&sa)->sin6_addr = in6addr_loopback;
	else if (sa.ss_family == AF_INET)
		((struct sockaddr_in *)&sa)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (i = 0; i < FULL; i++)
		if ((c = socket(sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) >= 0)
			(void)connect(c, (struct sockaddr *)&sa, n); /* stays open */
	return 0;
}

int accept4(int fd, struct sockaddr *sa, socklen_t *n, int flags)
{
	(void)fd, (void)sa, (void)n, (void)flags;
	usleep(100000); /* the caller polls */
	errno = EAGAIN;
	return -1;
}
