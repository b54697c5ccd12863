#include "cli/systemd.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FIRST_PASSED 3

static long number(const char *name)
{
	const char *text = getenv(name);

	return text != NULL && *text != '\0' && text[strspn(text, "0123456789")] == '\0' ? atol(text) : -1;
}

size_t systemd_sockets(int *first)
{
	long pid = number("LISTEN_PID"), n = number("LISTEN_FDS");

	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	*first = FIRST_PASSED;
	return pid == (long)getpid() && n > 0 ? (size_t)n : 0;
}

static int notify = -1; /* connected to NOTIFY_SOCKET */

void systemd_open(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	size_t n;

	if (path == NULL || (path[0] != '/' && path[0] != '@') || (n = strlen(path)) >= sizeof sa.sun_path)
		return;
	memcpy(sa.sun_path, path, n);
	if (path[0] == '@')
		sa.sun_path[0] = '\0'; /* abstract: without a file, and without a NUL at the end */
	notify = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (notify >= 0 && connect(notify, (struct sockaddr *)&sa,
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (path[0] == '/'))) < 0) {
		close(notify);
		notify = -1;
	}
}

void systemd_tell(const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (notify < 0)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	send(notify, text, strlen(text), MSG_NOSIGNAL);
}
