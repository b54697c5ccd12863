/* A bad peer, for tests/hostile/test_hostile:
 *
 *   hostile client CASE CONFIG_DIR PORT [ARGUMENT...]   connects to a ptcp serve
 *   hostile grants CASE CONFIG_DIR PORT ARGUMENT...     the same, for tests/e2e/test_third
 *   hostile server CASE CONFIG_DIR [ARGUMENT...]        prints "PORT FINGERPRINT", waits for one ptcp
 *
 * Ends with 0 when the other side did what it must. */
#include "hostile.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int hostile_listener = -1;

/* It ends in the middle of things: what it leaks is not what is tested. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

static const struct hostile *find(const struct hostile *h, const char *name)
{
	for (; h->name != NULL; h++)
		if (strcmp(h->name, name) == 0)
			return h;
	die("no case %s", name);
}

static unsigned listen_here(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct timeval patience = { 10, 0 };
	socklen_t n = sizeof sa;
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (s < 0 || bind(s, (struct sockaddr *)&sa, n) < 0 || listen(s, 64) < 0 ||
	    getsockname(s, (struct sockaddr *)&sa, &n) < 0)
		die("cannot listen");
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	printf("%u %s\n", ntohs(sa.sin_port), self.fingerprint);
	fflush(stdout);
	hostile_listener = s;
	return ntohs(sa.sin_port);
}

int main(int argc, char **argv)
{
	bool grants = argc > 1 && strcmp(argv[1], "grants") == 0;
	bool client = grants || (argc > 1 && strcmp(argv[1], "client") == 0);

	if (argc < (client ? 5 : 4))
		die("usage: hostile client CASE CONFIG PORT .. | hostile server CASE CONFIG ..");
	signal(SIGPIPE, SIG_IGN);
	peer_init(argv[3]);
	if (client)
		find(grants ? hostile_grants : hostile_client, argv[2])->run((unsigned)atoi(argv[4]), argv + 5);
	else
		find(hostile_server, argv[2])->run(listen_here(), argv + 4);
	return 0;
}
