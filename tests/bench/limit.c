/* What this host can do at best with ordinary means: one file over N connections on loopback,
 * sendfile() into read() and pwrite(). No TLS, no hashes, no protocol. The bench sets ptcp beside it.
 *
 *   limit [-s] CONNECTIONS SOURCE TARGET     -s: splice() on the receiver instead */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEP_BYTES (256u << 10)
#define CONNECTIONS_MAX 128

static void die(const char *what)
{
	fprintf(stderr, "limit: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Each connection carries one contiguous part. */
struct part {
	pthread_t thread;
	int sock, file;
	off_t start, end;
	int splice;
};

static void *send_part(void *arg)
{
	struct part *p = arg;
	ssize_t n;

	while (p->start < p->end) {
		off_t left = p->end - p->start;

		n = sendfile(p->sock, p->file, &p->start, left < STEP_BYTES ? (size_t)left : STEP_BYTES);
		if (n <= 0)
			die("sendfile");
	}
	shutdown(p->sock, SHUT_WR);
	return NULL;
}

static void receive_copy(struct part *p)
{
	char *buf = malloc(STEP_BYTES);
	ssize_t n;

	if (buf == NULL)
		die("memory");
	while ((n = read(p->sock, buf, STEP_BYTES)) > 0) {
		if (pwrite(p->file, buf, (size_t)n, p->start) != n)
			die("pwrite");
		p->start += n;
	}
	if (n < 0)
		die("read");
	free(buf);
}

static void receive_splice(struct part *p)
{
	ssize_t n, left, m;
	int pipes[2];

	if (pipe(pipes) != 0)
		die("pipe");
	fcntl(pipes[1], F_SETPIPE_SZ, STEP_BYTES);
	while ((n = splice(p->sock, NULL, pipes[1], NULL, STEP_BYTES, SPLICE_F_MOVE)) > 0)
		for (left = n; left > 0; left -= m)
			if ((m = splice(pipes[0], NULL, p->file, &p->start, (size_t)left, SPLICE_F_MOVE)) <= 0)
				die("splice");
	if (n < 0)
		die("splice");
}

static void *receive_part(void *arg)
{
	struct part *p = arg;

	if (p->splice)
		receive_splice(p);
	else
		receive_copy(p);
	if (p->start != p->end) {
		errno = EPIPE;
		die("a part came short");
	}
	return NULL;
}

static void run(struct part *parts, unsigned n, void *(*fn)(void *arg))
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (pthread_create(&parts[i].thread, NULL, fn, &parts[i]) != 0)
			die("thread");
	for (i = 0; i < n; i++)
		pthread_join(parts[i].thread, NULL);
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t at_bytes = sizeof at;
	struct part parts[CONNECTIONS_MAX];
	int use_splice = argc == 5 && strcmp(argv[1], "-s") == 0;
	int listener, file, sock[CONNECTIONS_MAX], status;
	unsigned n, i;
	struct stat st;
	pid_t pid;

	argv += use_splice;
	if (argc - use_splice != 4 || (n = (unsigned)atoi(argv[1])) < 1 || n > CONNECTIONS_MAX) {
		fprintf(stderr, "usage: limit [-s] CONNECTIONS SOURCE TARGET\n");
		return 2;
	}
	if ((listener = socket(AF_INET, SOCK_STREAM, 0)) < 0 ||
	    bind(listener, (struct sockaddr *)&at, sizeof at) != 0 ||
	    getsockname(listener, (struct sockaddr *)&at, &at_bytes) != 0 ||
	    listen(listener, CONNECTIONS_MAX) != 0)
		die("socket");
	if ((file = open(argv[2], O_RDONLY)) < 0 || fstat(file, &st) != 0)
		die(argv[2]);

	/* Connected and accepted one by one, so the order tells which part is which. */
	for (i = 0; i < n; i++) {
		parts[i] = (struct part){ .file = file, .start = st.st_size / n * i,
			.end = i + 1 < n ? st.st_size / n * (i + 1) : st.st_size, .splice = use_splice };
		if ((parts[i].sock = socket(AF_INET, SOCK_STREAM, 0)) < 0 ||
		    connect(parts[i].sock, (struct sockaddr *)&at, sizeof at) != 0 ||
		    (sock[i] = accept(listener, NULL, NULL)) < 0)
			die("connection");
	}
	if ((pid = fork()) < 0)
		die("fork");
	if (pid == 0) {
		if ((file = open(argv[3], O_WRONLY | O_CREAT | O_EXCL, 0600)) < 0)
			die(argv[3]);
		for (i = 0; i < n; i++) {
			close(parts[i].sock);
			parts[i].sock = sock[i];
			parts[i].file = file;
		}
		run(parts, n, receive_part);
		return 0;
	}
	for (i = 0; i < n; i++)
		close(sock[i]);
	run(parts, n, send_part);
	if (waitpid(pid, &status, 0) != pid || status != 0)
		return 1;
	return 0;
}
