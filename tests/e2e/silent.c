/* A bad peer, for the end-to-end scripts: listens on a free port of 127.0.0.1, prints it,
 * and to whoever connects
 *
 *   silent hold       says nothing, ever
 *   silent close      closes at once
 *   silent garbage    sends bytes that are no TLS
 *   silent http       answers as a web server does
 */
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static const char http[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof a;
	int s = socket(AF_INET, SOCK_STREAM, 0), c;
	char junk[4096];

	if (argc != 2 || s < 0 || bind(s, (struct sockaddr *)&a, len) < 0 || listen(s, 64) < 0 ||
	    getsockname(s, (struct sockaddr *)&a, &len) < 0) {
		perror("silent");
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	memset(junk, 0x5a, sizeof junk);
	printf("%d\n", ntohs(a.sin_port));
	fflush(stdout);
	while ((c = accept(s, NULL, NULL)) >= 0) {
		if (strcmp(argv[1], "hold") == 0)
			continue; /* the descriptor stays open */
		if (strcmp(argv[1], "garbage") == 0 && write(c, junk, sizeof junk) < 0)
			perror("write");
		if (strcmp(argv[1], "http") == 0 && write(c, http, sizeof http - 1) < 0)
			perror("write");
		close(c);
	}
	return 0;
}
